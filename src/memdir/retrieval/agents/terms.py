"""Words of memories and of queries: folded as FTS5's unicode61 does, stemmed by Porter's algorithm of 1980.

M. F. Porter, "An algorithm for suffix stripping", Program 14 (3), 1980. Runs of scripts without spaces count by pairs of
characters, as everywhere here. Stop words count in a memory's length and are never looked for.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import Stemmer

from memdir.retrieval.agents.expansion import expand
from memdir.store.stopwords import ENGLISH
from memdir.store.texts import bigrams, unspaced_runs
from memdir.store.words import fold

TERMS_VERSION: Final = 1
"""Of what is counted: an index with another number is made anew."""
_WORD: Final = re.compile(r"[^\W_]+")
_STOP: Final = ENGLISH
_STEMS_MAX: Final = 200_000
QUERY_WORDS_MAX: Final = 64
"""Different words of a query that are looked for; of more, the first ones."""
_TAG_WORDS_MAX: Final = 4
_local = threading.local()


class _Stems(dict[str, str]):
    """Stems of the words seen last. One for each thread: a stemmer may not be shared."""

    def __init__(self) -> None:
        super().__init__()
        self._stemmer = Stemmer.Stemmer("porter")

    def __missing__(self, word: str) -> str:
        if len(self) >= _STEMS_MAX:
            self.clear()
        found: str = self._stemmer.stemWord(word)
        self[word] = found
        return found


def _stems() -> _Stems:
    try:
        known: _Stems = _local.stems
    except AttributeError:
        known = _local.stems = _Stems()
    return known


def stem(word: str) -> str:
    """Of a folded word."""
    return _stems()[word]


def words(text: str) -> list[str]:
    """Folded words in order, stop words too."""
    found: list[str] = _WORD.findall(fold(text))
    if text.isascii() or not unspaced_runs(text):
        return found
    return [part for word in found for part in (_pairs(word) or [word])]


def _pairs(word: str) -> list[str]:
    return [pair for run in unspaced_runs(word) for pair in bigrams(run)]


def is_stop_word(word: str) -> bool:
    """Of a folded word."""
    return word in _STOP


def counted(content: str, tags: Iterable[str]) -> tuple[dict[str, int], int]:
    """How often each stem stands in a memory's text and tags, and how many words that are, stop words included."""
    stems = _stems()
    found: dict[str, int] = {}
    listed = words(content)
    for tag in tags:
        listed += words(tag)
    for word in listed:
        if word not in _STOP:
            one = stems[word]
            found[one] = found.get(one, 0) + 1
    return found, len(listed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A word of a query: its stem, and the stems of what it abbreviates or is abbreviated to."""

    word: str
    stems: tuple[str, ...]
    """The word's own first."""


def asked(query: str, tags: Sequence[str] = ()) -> list[Asked]:
    """The words that a query looks for; those of its tags count as words of it. Each stem once: the first word has it."""
    seen: set[str] = set()
    found: list[Asked] = []
    for word in (*words(query), *(part for tag in tags for part in words(tag))):
        if word in _STOP or stem(word) in seen:
            continue
        stems = tuple(dict.fromkeys(stem(form) for form in expand(word)))
        fresh = tuple(one for one in stems if one not in seen)
        seen.update(fresh)
        found.append(Asked(word=word, stems=fresh))
        if len(found) == QUERY_WORDS_MAX:
            break
    return found


def tag_key(tag: str) -> str:
    """By what tags are compared: `Bug-Fix` and `bug fix` are the same tag."""
    return " ".join(words(tag)) or fold(tag).strip()


def tags_said(query: str, known: Iterable[str] | dict[str, object]) -> list[str]:
    """Tag keys among `known` whose words stand side by side in the query."""
    listed = words(query)[: 4 * QUERY_WORDS_MAX]
    runs: dict[str, None] = {}
    for size in range(1, _TAG_WORDS_MAX + 1):
        for at in range(len(listed) - size + 1):
            runs[" ".join(listed[at : at + size])] = None
    return [run for run in runs if run in known]
