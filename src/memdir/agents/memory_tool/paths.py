"""Paths as a model writes them, `/memories/…`: the names below the root, or a refusal.

A path is refused when anything between here and the disk could read it as leading elsewhere: `..` in every spelling (percent-
encoded once or more, full-width, with invisible characters), what looks like a slash, backslashes, NUL and other control
characters. Nothing is repaired: a path that has to be guessed at is not one to write to. Pure.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from memdir.agents.memory_tool.files import MemoryToolError, Names
from memdir.core.limits import NAME_MAX_BYTES, PATH_MAX_BYTES

ROOT: Final = "/memories"
_ENCODED: Final = re.compile(r"%(?:2e|2f|5c|00|25|c0|e0|u)", re.IGNORECASE)
"""Percent-encoded dot, slash, backslash, NUL, percent sign; the beginnings of overlong forms, and of `%u002e`."""
_SLASHES: Final = frozenset("\\/\u2044\u2215\u29f8\u29f9\u29f5\u2571\u2572\uff0f\uff3c\ufe68\u1735\u27cb\u27cd\u3033\u4e3f")
_DOTS: Final = frozenset(
    ".\u2024\u2025\u2026\uff0e\ufe52\ufe19\u3002\uff61\u0701\u0702\u06d4\u0660\u06f0\ua4f8\ua60e\u00b7\u2219\u22c5"
)
"""What is, or is drawn like, a dot; three of these alone make a name that nobody needs."""
_SHOWN_MAX_CHARS: Final = 200


def names_of(path: object) -> Names:
    """The names of `path` below the root; () for the root itself. MemoryToolError for every path that is not plainly inside."""
    if not isinstance(path, str):
        raise MemoryToolError(f"Error: a path must be a string such as {ROOT}/notes.md")
    if path.rstrip("/") == ROOT and len(path) <= len(ROOT) + 1:
        return ()
    if not path.startswith(ROOT + "/"):
        raise _outside(path)
    try:
        raw = path.encode("utf-8")
    except UnicodeEncodeError:
        raise _outside(path) from None
    if len(raw) > PATH_MAX_BYTES or _ENCODED.search(path):
        raise _outside(path)
    names = tuple(path[len(ROOT) + 1 :].removesuffix("/").split("/"))
    for name in names:
        if not _is_plain(name):
            raise _outside(path)
    return names


def shown(names: Names) -> str:
    """The path of names below the root, as a model writes it."""
    return "/".join((ROOT, *names))


def _is_plain(name: str) -> bool:
    if not name or len(name.encode()) > NAME_MAX_BYTES or name != name.strip():
        return False
    folded = unicodedata.normalize("NFKC", name)
    for text in (name, folded):
        if _SLASHES.intersection(text) or all(character in _DOTS for character in text):
            return False
    return not any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp") for character in name)


def _outside(path: str) -> MemoryToolError:
    text = ascii(path[:_SHOWN_MAX_CHARS])
    return MemoryToolError(f"Error: The path {text} is not a plain path inside {ROOT}, such as {ROOT}/notes.md")
