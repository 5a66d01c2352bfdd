"""The pieces of a passage that an answer is chosen from: lines, and the sentences of long lines."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from memdir.store.text.sentences import sentences

UNITS_MAX: Final = 64
"""Of one passage; a passage holds about 1,200 characters."""
LONG_LINE_CHARS: Final = 240

_STARTS_ANEW: Final = re.compile(
    r"\s*(?:[-*+•>|#\[{}<@]|\d{1,3}[.)]\s|//|--|/\*"
    r"|\S{1,30}:(?:\s|$)|[A-Z\u00c0-\u00de][\w.'-]*(?: [A-Z\u00c0-\u00de][\w.'-]*){1,3}:\s"
    r"|\d{4}-\d\d-\d\d[T ]\d|\d\d?:\d\d(?::\d\d|\s+[-–]|\s+[^:]{1,30}:\s)|[^\s,;]+,[^\s,;][^,]*,\S|[\w.]+ = )"
)


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


def starts_anew(line: str) -> bool:
    """Whether a line cannot be the rest of the one above: list items, keys, speakers, times, rows, code."""
    return _STARTS_ANEW.match(line) is not None
