"""Questions for a tool of some kind: "which package manager do we use" is answered by what speaks of pnpm. English. Pure."""

from __future__ import annotations

import re
from typing import Final

from memdir.retrieval.agents.stems import stem
from memdir.store.text.tools import KINDS
from memdir.store.text.words import fold

_ASKED: Final = re.compile(
    r"\b(?:(?:which|what|whats|what['’]s(?: the| our)?)(?: (?:kind|sort|type) of)? "
    r"(?P<one>(?!(?:do|does|did|is|are|was|should|can|if|about)\b)(?:[^\W\d_]+ ){0,2}?[^\W\d_]+)"
    r"(?= (?:do|does|did|should|shall|can|must|are|is|was) (?:we|you|i|they|this|that|the|it|our|used)\b| (?:here|for|in|to)\b|"
    r"[?.!,]|\s*$)|"
    r"what (?:do|does|should|did) (?:we|you|i|they|this \w+|the \w+|it) use (?:for|as)(?: our| the| a)? "
    r"(?P<other>(?:[^\W\d_]+ ){0,2}?[^\W\d_]+)(?=[?.!,]| here\b|\s*$))",
    re.IGNORECASE,
)
_OF_ANY_KIND: Final = frozenset(
    """
    tool tools system framework library engine provider service software app application program platform runner manager server
    code our the
    """.split()  # noqa: SIM905
)


def _stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, re.findall(r"[^\W_]+", fold(text))))


_SINGLE: Final = frozenset(name for kind in KINDS for name in kind.names if " " not in name)


def _words_of(name: str) -> tuple[str, ...]:
    """By which a memory is looked for: the name, or the first word of a longer one where that is a name, too."""
    plain = name.removeprefix("=")
    first = plain.split(" ")[0]
    return tuple(re.findall(r"[^\W_]+", fold(plain))) if plain == first else (first,) if first in _SINGLE else ()


_OF_PROJECTS: Final = frozenset(
    (
        *("editor", "shell", "terminal", "browser", "database", "queue", "cache", "javascript packages", "python packages"),
        *("java build", "tests", "browser tests", "linter", "formatter", "bundler", "frontend", "web framework", "builds"),
        *("hosting", "orchestration", "infrastructure", "monitoring", "styles", "language", "passwords", "chat"),
    )
)
"""Other kinds are called as much else is: a file, a document."""
_KINDS: Final = [
    (_stems(f"{kind.name} {kind.words}"), tuple(word for name in kind.names for word in _words_of(name)))
    for kind in KINDS
    if kind.name in _OF_PROJECTS
]


def tools_asked(query: str) -> dict[str, tuple[str, ...]]:
    """By the words with which a query asks for a tool of a kind, folded, the names of such tools; empty for the words that
    only say that it is one."""
    found: dict[str, tuple[str, ...]] = {}
    for match in _ASKED.finditer(query):
        said = fold(match["one"] or match["other"]).split()
        kind = [word for word in said if word not in _OF_ANY_KIND]
        names = [one for words, those in _KINDS if kind and _stems(" ".join(kind)) <= words for one in those]
        if names:
            found |= dict.fromkeys((*said, "use", "used"), ()) | {kind[-1]: tuple(dict.fromkeys(names))}
    return found
