"""What kind of text a file holds, by its name, and what that means for a question.

A question in a sentence is about something that somebody wrote down in sentences, more often than about code that has the same
words; one with an identifier, a path or an error message is about code as often as not.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from memdir.store.paths import is_tool_owned, suffix

Kind = Literal["prose", "code", "data", "generated"]

_CODE: Final = frozenset(
    """
    .py .pyi .js .mjs .cjs .jsx .ts .tsx .go .rs .java .kt .kts .scala .c .h .cc .cpp .cxx .hpp .hh .cs .rb .php .swift .m .mm
    .pl .pm .sh .bash .zsh .fish .ps1 .bat .lua .r .jl .dart .ex .exs .erl .hrl .hs .ml .mli .clj .cljs .el .lisp .scm .vim .sql
    .css .scss .sass .less .vue .svelte .tf .proto .graphql .asm .s .f90 .pas .d .zig .nim .cmake .mk .gradle .groovy .dts
    """.split()  # noqa: SIM905
)
_DATA: Final = frozenset(
    """
    .json .jsonl .ndjson .yaml .yml .toml .ini .cfg .conf .env .xml .csv .tsv .properties .plist .svg .lock .po .pot .geojson
    """.split()  # noqa: SIM905
)
_GENERATED: Final = re.compile(
    r"(?:^|/)(?:package-lock\.json|npm-shrinkwrap\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Pipfile\.lock|Cargo\.lock|"
    r"go\.sum|composer\.lock|Gemfile\.lock|mix\.lock|flake\.lock|packages\.lock\.json)\Z|\.min\.(?:js|css|mjs)\Z|"
    r"\.(?:js|css)\.map\Z|_pb2(?:_grpc)?\.pyi?\Z|\.pb\.(?:go|cc|h)\Z|\.g\.dart\Z|\.designer\.cs\Z",
    re.IGNORECASE,
)
_MAKEFILES: Final = frozenset({"makefile", "dockerfile", "cmakelists.txt", "rakefile", "jenkinsfile", "meson.build"})
PRIOR: Final = {"prose": 0.0, "code": 0.1, "data": 0.1, "generated": 0.2}
"""What a passage's cosine loses beside a question in a sentence. Measured on notes beside 511 modules of Python's library
(`memdir bench retrieval --mixed`)."""
_POINTED: Final = re.compile(
    r"\w_\w|\w\(|::|->|=>|[{}<>\\=`$]|/\w+\.\w|\w\.\w+\(|[a-z][A-Z]|\b[A-Z]+_[A-Z]|0x[0-9a-f]|\b\w+(?:Error|Exception)\b"
)
_SAYS_SO: Final = re.compile(
    r"@generated\b|\b(?:auto-?generated|generated (?:by|from|with|code))\b[^\n]{0,200}\n?[^\n]{0,200}\bdo not (?:edit|modify)\b"
    r"|\bdo not (?:edit|modify)\b[^\n]{0,100}\bgenerated\b",
    re.IGNORECASE,
)
"""What generators write at the top of their files."""
_HEAD_CHARS: Final = 2_000
_MINIFIED_MIN_CHARS: Final = 5_000
_MINIFIED_LINE_CHARS: Final = 500
"""Of a line of code on average, from which on nobody wrote it so."""
_SENTENCE_MIN_WORDS: Final = 3


@lru_cache(maxsize=16_384)
def kind_of(path: str | None) -> Kind:
    """By the file's name; what has none, or an unknown one, is prose."""
    if not path:
        return "prose"
    if _GENERATED.search(path) is not None or is_tool_owned(path):
        return "generated"
    ending = suffix(path)
    if ending in _CODE or path.rpartition("/")[2].lower() in _MAKEFILES:
        return "code"
    return "data" if ending in _DATA else "prose"


def is_generated(path: str | None, text: str) -> bool:
    """Whether a tool wrote the file: by its name, by what its head says, or because its lines are none that people write."""
    if kind_of(path) == "generated":
        return True
    if kind_of(path) != "code":
        return False
    if _SAYS_SO.search(text, 0, _HEAD_CHARS) is not None:
        return True
    return len(text) > _MINIFIED_MIN_CHARS and len(text) > _MINIFIED_LINE_CHARS * (1 + text.count("\n"))


def is_sentence(question: str) -> bool:
    """Whether a question is one that people ask each other: several words, and nothing that is written in code only."""
    return len(question.split()) >= _SENTENCE_MIN_WORDS and _POINTED.search(question) is None
