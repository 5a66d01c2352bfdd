"""The pieces of a passage that an answer is chosen from: lines, and the sentences of long lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.store.text.sentences import sentences

UNITS_MAX: Final = 64
"""Of one passage; a passage holds about 1,200 characters."""
LONG_LINE_CHARS: Final = 240


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """A line or a sentence of a passage: characters `start` to `end` of its text, `line` counted from 0."""

    start: int
    end: int
    line: int


def units_of(text: str) -> list[Unit]:
    """Lines without their blanks at both ends; long ones as sentences. Blank lines are left out.

    The same text always gives the same units: vectors of units are kept beside the passage.
    """
    units: list[Unit] = []
    position = 0
    for number, raw in enumerate(text.split("\n")):
        start = position + len(raw) - len(raw.lstrip())
        end = position + len(raw.rstrip())
        position += len(raw) + 1
        if start >= end:
            continue
        if end - start <= LONG_LINE_CHARS:
            units.append(Unit(start=start, end=end, line=number))
            continue
        units.extend(Unit(start=first, end=last, line=number) for first, last in sentences(text, start, end))
    return units[:UNITS_MAX]
