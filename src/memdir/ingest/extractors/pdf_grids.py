"""Tables whose cells have borders or backgrounds, by what is drawn on a PDF page: the lines and boxes that touch make a grid,
and each word belongs to the cell that its middle is in, however many lines a cell has.

As lattice methods do (A. Nurminen, "Algorithmic extraction of data in tables in PDF documents", 2013).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pypdfium2 import PdfiumError

from memdir.ingest.extractors.pdf_lines import NEAR, Line, clusters, lattices
from memdir.ingest.extractors.pdf_lines import places as places_of

_WORD: Final = re.compile(r"[^ \t\r\n]+")
_PARTED: Final = re.compile(r"[\x02\ufffe\xad] ")
"""A word at the end of a line, as PDFium says it."""
_PLACES_MAX: Final = 5_000
"""Of a grid."""
_COLUMNS_MIN, _ROWS_MIN = 2, 2
_SHORT: Final = 0.25
"""Of the width or height of a grid: what is shorter there is of something else that touches it."""
_ROOM: Final = 0.5
"""Of a letter's height, the room between two columns that no line parts."""
_FILLED_MIN: Final = 0.5
"""Share of the cells that are not empty; a chart with a grid has few."""
_ROWS_TOGETHER_MIN: Final = 3
"""Lines of text that end early, from which they are rows; and so many in each cell are few."""
_WHOLE_MIN: Final = 0.6
"""Cells to places of the grid: with fewer a table and other boxes touch."""
_CELL_MAX_CHARS: Final = 1_000
"""A page laid out in boxes has more in one."""


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as rows of cells, and the part of the page's text that it is."""

    start: int
    end: int
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class Word:
    """Its part of the page's text, and its box in points."""

    start: int
    end: int
    text: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def x(self) -> float:
        return (self.left + self.right) / 2

    @property
    def y(self) -> float:
        return (self.bottom + self.top) / 2


def grids(page: Any, words: Sequence[Word]) -> tuple[list[Grid], list[Grid]]:
    """The grids of a pypdfium2 page with these words: those with lines in both directions, which is sure, and others."""
    groups, stacks = lattices(page)
    ruled = (_ruled(*stack, words) for stack in stacks)
    sure, others = ([grid for one in some if (grid := grid_of(*one, words))] for some in (groups, ruled))
    return sure, others


def _ruled(places: Sequence[float], level: Sequence[Line], words: Sequence[Word]) -> tuple[list[Line], list[Line]]:
    """A stack as lines in both directions, with the head above its first line and the row below its last. Where lines go
    through, columns are parted by room that no word stands in."""
    inside = [word for word in words if places[0] - NEAR <= word.left and word.right <= places[-1] + NEAR]
    is_through = len(places) == 2
    if is_through:
        rows = [word for word in inside if level[-1].at < word.y < level[0].at]
        columns = columns_of(
            [(word.left, word.right) for word in rows], max((word.top - word.bottom for word in rows), default=0.0)
        )
        places = [places[0], *separators(columns), places[-1]] if len(columns) > _COLUMNS_MIN else places
    below = (min((line.at - word.top for word in inside if word.y < line.at), default=0.0) for line in level[:-1])
    room = sorted(below)[(len(level) - 1) // 2] + NEAR
    level = [*level]
    for number, sign in ((0, 1), (-1, -1)):
        at = level[number].at
        line = [word for word in inside if sign * (word.y - at) > 0 and min(abs(word.bottom - at), abs(word.top - at)) <= room]
        is_in_cells = all(_strip(word.left, places) == _strip(word.right, places) for word in line)
        if is_in_cells and len({_strip(word.x, places) for word in line}) > 1:
            edge = max(word.top for word in line) if sign > 0 else min(word.bottom for word in line)
            level.append(Line(edge + sign, places[0], places[-1]))
    ats = sorted(line.at for line in level)
    strips = ([word for word in inside if low < word.y < high] for low, high in pairwise(ats))
    if is_through and not all(is_one_row(places, strip) for strip in strips):
        return [], []
    return [Line(place, ats[0], ats[-1]) for place in places], level


def is_one_row(places: Sequence[float], words: Sequence[Word]) -> bool:
    """Whether one of the cells has one line of text, and none as many as the first when that has more."""
    cells: dict[int, list[Line]] = {}
    for word in sorted(words, key=lambda word: word.left):
        cells.setdefault(_strip(word.x, places), []).append(Line(word.bottom, 0.0, 0.0))
    counts = [len(clusters(lines)) for lines in cells.values()]
    return not counts or (min(counts) == 1 and (counts[0] == 1 or counts[0] not in counts[1:]))


def columns_of(spans: Iterable[tuple[float, float]], height: float) -> list[tuple[float, float]]:
    """Left and right of columns that hold these spans, with more room between two than words of that height have."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted(spans):
        if columns and left - columns[-1][1] <= _ROOM * height:
            columns[-1] = (columns[-1][0], max(columns[-1][1], right))
        else:
            columns.append((left, right))
    return columns


def separators(columns: Sequence[tuple[float, float]]) -> list[float]:
    """The middles of the room between columns."""
    return [(one[1] + other[0]) / 2 for one, other in pairwise(columns)]


def words_of(content: Any, text: str) -> list[Word]:
    """The words of a pypdfium2 text page; none when its letters cannot be told to be those of `text`, or one has no box."""
    if content.count_chars() != len(text):
        return []
    found = []
    try:
        for word in _WORD.finditer(text):
            left, bottom, _, top = content.get_charbox(word.start(), loose=True)
            right = content.get_charbox(word.end() - 1)[2]
            found.append(Word(word.start(), word.end(), word[0], left, bottom, right, top))
    except PdfiumError:
        return []
    return found


def grid_of(upright: Sequence[Line], level: Sequence[Line], words: Sequence[Word]) -> Grid | None:
    """The words within. None when it is no table."""
    across, down = places_of(upright), places_of(level)[::-1]
    if len(across) <= _COLUMNS_MIN or len(down) <= _ROWS_MIN or len(across) * len(down) > _PLACES_MAX:
        return None
    inside = [
        number for number, word in enumerate(words) if across[0] < word.x < across[-1] and down[-1] < word.y < down[0]
    ]  # fmt: skip
    if not inside or inside[-1] - inside[0] + 1 != len(inside):  # other text runs through it
        return None
    places = [(_strip(words[number].y, down), _strip(words[number].x, across)) for number in inside]
    used = _used(upright, level, across, down, places)
    if len(used[0]) < len(upright) or len(used[1]) < len(level):
        return grid_of(*used, words)
    cells = _cells(upright, level, across, down)
    held: dict[tuple[int, int], list[Word]] = {}
    for number, (row, column) in zip(inside, places, strict=True):
        held.setdefault(cells[row][column], []).append(words[number])
    for row in range(len(cells)):
        if _is_parted([(some, across[at[1] + 1] - across[at[1]]) for at, some in held.items() if at[0] == row]):
            return None
    texts = {place: [word.text for word in some] for place, some in held.items()}
    rows, columns = sorted({row for row, _ in texts}), sorted({column for _, column in texts})
    table = [[_PARTED.sub("", " ".join(texts.get((row, column), ()))) for column in columns] for row in rows]
    count = len({place for line in cells for place in line})
    is_filled = len(texts) >= _FILLED_MIN * count and count >= _WHOLE_MIN * len(cells) * len(cells[0])
    is_short = all(len(cell) <= _CELL_MAX_CHARS for line in table for cell in line)
    if len(rows) < _ROWS_MIN or len(columns) < _COLUMNS_MIN or not is_filled or not is_short:
        return None
    return Grid(words[inside[0]].start, words[inside[-1]].end, table)


def _is_parted(cells: Sequence[tuple[Sequence[Word], float]]) -> bool:
    """Whether lines of text in cells side by side, each with its width, are rows that nothing is drawn between: they end where
    there was room for the next word, or most cells have as many, and not few."""
    wrapped = parted = 0
    counts: list[int] = []
    for words, width in cells:
        begin, before = words[0].left, wrapped + parted
        for one, other in pairwise(words):
            if other.left > one.left and abs(other.bottom - one.bottom) <= NEAR:
                continue
            if one.right - begin + (other.right - other.left) + NEAR < width - 2 * (words[0].top - words[0].bottom):
                parted += 1
            else:
                wrapped += 1
            begin = other.left
        counts.append(wrapped + parted - before + 1)
    most = max(counts, default=0)
    agree = counts.count(most)
    as_many = (most > _ROWS_TOGETHER_MIN and agree > 1 and 2 * agree > len(counts)) or (most > 1 and agree == len(counts) > 3)
    return as_many or (parted >= _ROWS_TOGETHER_MIN and parted > wrapped)


def _strip(place: float, lines: Sequence[float]) -> int:
    """Between which two lines, from left to right or from the top, a place is."""
    between = (at for at, (one, other) in enumerate(pairwise(lines)) if min(one, other) <= place <= max(one, other))
    return next(between, -1)


def _used(
    upright: Sequence[Line], level: Sequence[Line], across: Sequence[float], down: Sequence[float],
    places: Sequence[tuple[int, int]],
) -> tuple[list[Line], list[Line]]:  # fmt: skip
    """The lines where words stand: not those of an empty frame around them, nor of what touches it."""
    rows, columns = [row for row, _ in places], [column for _, column in places]
    left, right = across[min(columns)], across[max(columns) + 1]
    bottom, top = down[max(rows) + 1], down[min(rows)]
    return _within(upright, left, right, bottom, top), _within(level, bottom, top, left, right)


def _within(lines: Sequence[Line], first: float, last: float, begin: float, end: float) -> list[Line]:
    """Those between two places that are there for a good part of `begin` to `end`."""
    kept: list[Line] = []
    for some in clusters(lines):
        length = sum(max(0.0, min(line.last, end) - max(line.first, begin)) for line in some)
        if first - NEAR <= some[0].at <= last + NEAR and length >= _SHORT * (end - begin):
            kept += some
    return kept


def _cells(
    upright: Sequence[Line], level: Sequence[Line], columns: Sequence[float], rows: Sequence[float]
) -> list[list[tuple[int, int]]]:
    """For each place of the grid the first place of its cell: that left of it or above where no line is between them."""
    cells: list[list[tuple[int, int]]] = []
    for row, (top, bottom) in enumerate(pairwise(rows)):
        cells.append([])
        for column, (left, right) in enumerate(pairwise(columns)):
            if column and not _is_at(upright, left, (top + bottom) / 2):
                cells[row].append(cells[row][column - 1])
            elif row and not _is_at(level, top, (left + right) / 2):
                cells[row].append(cells[row - 1][column])
            else:
                cells[row].append((row, column))
    return cells


def _is_at(lines: Sequence[Line], at: float, place: float) -> bool:
    """Whether one of the lines is there at this place of its length."""
    return any(abs(line.at - at) <= 2 * NEAR and line.first - NEAR <= place <= line.last + NEAR for line in lines)
