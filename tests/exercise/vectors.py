"""Paths that want out: every way of writing "above", with what stands before and behind it, in the spellings that some layer
somewhere takes for a dot or a slash. The same list on every run."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import Final

TARGET: Final = "canary"
"""What lies beside the root; each vector tries to reach or make it."""

_DOTS: Final = [
    "..", "...", "....", ". .", "..\u200b", "\u200b..", ".\u200d.", "\uff0e\uff0e", "\u2024\u2024", "\u2025", "%2e%2e",
    "%2E.", "%252e%252e", "\udcc0\udcae\udcc0\udcae", "\udce0\udc80\udcae.", "..\0", "\0..", ".. ", " ..", "..\n", "..\r",
    "..;", "\u202e..", "~", "$HOME",
]  # fmt: skip
"""Two dots as they are, fullwidth, as leaders, percent-encoded once and twice, in overlong UTF-8 (surrogates stand for those
bytes), with NUL, blanks and invisible characters around them."""
_SLASHES: Final = [
    "/", "//", "/./", "\\", "\\/", "%2f", "%5c", "\uff0f", "\u2215", "\u2044", "\u29f8", "\udcc0\udcaf", "\0/", "/\0",
]  # fmt: skip
_FRONTS: Final = ["", "/", "//", "a/", "/a/", "/link/", "/up/", "file:///", "\\\\host\\share\\", "C:\\", "/proc/self/root/"]
_ALONE: Final = [
    "", "/", ".", "./", "..", "/..", "/../", "\0", "a\0b", "/etc/passwd", "//etc/passwd", "/dev/null",
    "/proc/self/cwd/canary", "~root/canary", "`touch canary`", "$(touch canary)", "; touch canary", "-rf", "--", "\n",
    "\r\n", "\t", "con", "nul", "a" * 255, "a" * 256, "ü" * 127, "ü" * 128, "a/" * 2047, "a/" * 2100, "\ud800",
    "a\udfff/b", "\ud83d", "\udc80", "\udcff/\udcfe", "\ufeffa", "\uffff", "\u0085", "\u2028", "/link", "/link/",
    "/link/canary", "/up", "/up/canary", "/link/../canary", "/up/../canary", "/self", "/self/self/canary",
    "/.memdir/../canary", "/.memdir/errors/../../../canary", "/profile.md/../canary", "canary\0.txt",
    "/a/b/../../../canary",
]  # fmt: skip


def vectors() -> Iterator[str]:
    """More than 500, each once."""
    seen = set()
    for vector in (*_ALONE, *_combined(), *_normalised()):
        if vector not in seen:
            seen.add(vector)
            yield vector


def _combined() -> Iterator[str]:
    for number, dots in enumerate(_DOTS):
        for turn, slash in enumerate(_SLASHES):
            depth = 1 + (number + turn) % 3
            front = _FRONTS[(number * len(_SLASHES) + turn) % len(_FRONTS)]
            yield front + (dots + slash) * depth + TARGET
            if number < 10:
                yield dots + slash + front + TARGET + slash + dots


def _normalised() -> Iterator[str]:
    """Letters that are one in some normal form and several bytes in each: they must neither meet nor change."""
    for text in ("é", "Å", "ﬁ", "①", "가", "\u1e9b\u0323", "K", "ſ", "ß", "İ", "\u0345", "ΐ", "..é/", "é/.."):
        for form in ("NFC", "NFD", "NFKC", "NFKD"):
            yield unicodedata.normalize(form, text) + "-name"
        yield text.upper() + "-name"
        yield text.casefold() + "-name"
