"""How much of a memory may go at once without a question. Light to import."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memdir.core.errors import UsageError

_FORM: Final = re.compile(r"(?P<number>\d{1,9})(?P<percent>%?)")
_PERCENT_MAX: Final = 100
DELETIONS_FREE: Final = 25


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxDelete:
    """Missing paths are believed up to `count` of them, or up to `share` of all agreed ones, whichever is more."""

    count: int = DELETIONS_FREE
    share: float = 0.3

    def allows(self, missing: int, total: int) -> bool:
        """Whether `missing` of `total` paths may go unasked."""
        return missing <= max(self.count, int(total * self.share))


def parse_max_delete(text: str) -> MaxDelete:
    """`20%` or `500`; empty for the default. UsageError."""
    if not text:
        return MaxDelete()
    found = _FORM.fullmatch(text)
    number = int(found["number"]) if found else 0
    if found is None or (found["percent"] and number > _PERCENT_MAX):
        raise UsageError(f"{text!r} is neither a number of files nor a share", hint="such as 500, 20% or 0")
    return MaxDelete(count=0, share=number / _PERCENT_MAX) if found["percent"] else MaxDelete(count=number, share=0.0)
