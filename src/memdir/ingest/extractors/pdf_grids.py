"""Tables whose cells have borders or backgrounds, by what is drawn on a PDF page: the lines and boxes that touch make a grid,
and each word belongs to the cell that its middle is in, however many lines a cell has.

As lattice methods do (A. Nurminen, "Algorithmic extraction of data in tables in PDF documents", 2013).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_float
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pypdfium2 import raw

_WORD: Final = re.compile(r"[^ \t\r\n]+")
_PARTED: Final = re.compile(r"[\x02\ufffe\xad] ")
"""A word at the end of a line, as PDFium says it."""
_PIECES_MAX: Final = 20_000
_EDGES_MAX, _LINES_MAX = 8_000, 500
"""What is on a page, its edges, and its lines in one direction; a page with more is a drawing."""
_PLACES_MAX: Final = 5_000
"""Of a grid."""
_SEGMENTS_MAX: Final = 400
"""Of one path."""
_BOX_POINTS_MAX: Final = 5
_PAGE: Final = 0.8
"""Of the page's width and height: a box from there on is its background."""
_COLUMNS_MIN, _ROWS_MIN = 2, 2
_NEAR: Final = 3.0
"""Points: what is no further apart is one line, or touches. Borders of cells may have room between them."""
_THIN: Final = 3.0
"""Points: a box that is no wider is a line."""
_SHORT: Final = 0.25
"""Of the width or height of a grid: what is shorter there is of something else that touches it."""
_ROOM: Final = 0.6
"""Of a letter's height, the room between two columns that no line parts."""
_FILLED_MIN: Final = 0.5
"""Share of the cells that are not empty; a chart with a grid has few."""
_ROWS_TOGETHER_MIN: Final = 3
"""Lines of text that end early, from which they are rows; and so many in each cell are few."""
_WHOLE_MIN: Final = 0.6
"""Cells to places of the grid: with fewer a table and other boxes touch."""
_CELL_MAX_CHARS: Final = 1_000
"""A page laid out in boxes has more in one."""
_STRAIGHT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Grid:
    """A table as rows of cells, and the part of the page's text that it is."""

    start: int
    end: int
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class _Line:
    """Upright: `at` is where it is across the page, and `first` to `last` up the page; level: the other way round."""

    at: float
    first: float
    last: float

    def meets(self, other: _Line) -> bool:
        """Whether a line of the other direction crosses or touches it."""
        return (
            self.first - _NEAR <= other.at <= self.last + _NEAR and other.first - _NEAR <= self.at <= other.last + _NEAR
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Word:
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


def grids(page: Any, content: Any, text: str) -> list[Grid]:
    """The grids of a pypdfium2 page in the order of their text; its text page `content` has a box for each letter of `text`.
    PdfiumError for a letter without a box."""
    if page.get_rotation():  # lines of text run upright there
        return []
    upright, pieces = _edges(page)
    level = _whole(pieces)
    if not level or max(len(upright), len(level)) > _LINES_MAX:
        return []
    groups = sorted(_meeting(upright, [line for line in level if _is_held(line, upright)]), key=_area)
    groups = [group for group in groups if len(group[0]) > _COLUMNS_MIN and len(group[1]) > _ROWS_MIN]
    stacks = _stacks(pieces)
    words = _words(content, text) if groups or stacks else []
    found: list[Grid] = []
    for columns, rows in [*groups, *(_ruled(*stack, words) for stack in stacks)]:
        grid = _grid(columns, rows, words)
        if grid is not None and all(grid.end <= other.start or other.end <= grid.start for other in found):
            found.append(grid)
    return sorted(found, key=lambda grid: grid.start)


def _edges(page: Any) -> tuple[list[_Line], list[_Line]]:
    """What is drawn as upright lines, whole, and as level ones, in pieces; and the edges of boxes but for the background."""
    edge_left, edge_bottom, edge_right, edge_top = page.get_bbox()
    wide, high = _PAGE * (edge_right - edge_left), _PAGE * (edge_top - edge_bottom)
    upright: list[_Line] = []
    level: list[_Line] = []
    pieces = raw.FPDFPage_CountObjects(page)
    for number in range(pieces if pieces <= _PIECES_MAX else 0):
        piece = raw.FPDFPage_GetObject(page, number)
        for box in _boxes(piece) if raw.FPDFPageObj_GetType(piece) == raw.FPDF_PAGEOBJ_PATH else ():
            left, right = max(box[0], edge_left), min(box[2], edge_right)
            bottom, top = max(box[1], edge_bottom), min(box[3], edge_top)
            if right - left > wide and top - bottom > high:
                continue
            if top - bottom > _THIN:
                upright += [_Line(at, bottom, top) for at in ([left, right] if right - left > _THIN else [(left + right) / 2])]
            if right - left > _THIN:
                level += [_Line(at, left, right) for at in ([bottom, top] if top - bottom > _THIN else [(bottom + top) / 2])]
        if len(upright) + len(level) > _EDGES_MAX:
            return [], []
    return _whole(upright), level


def _is_held(line: _Line, upright: Sequence[_Line]) -> bool:
    """Whether a level line runs from an upright one to another: what underlines a word in a cell does not."""
    ends = (line.first, line.last)
    return all(any(abs(other.at - end) <= 2 * _NEAR and other.meets(line) for other in upright) for end in ends)


def _boxes(path: Any) -> Iterator[tuple[float, float, float, float]]:
    """Left, bottom, right and top of the straight lines and boxes of a path; nothing of other shapes."""
    count = raw.FPDFPath_CountSegments(path)
    if not 2 <= count <= _SEGMENTS_MAX:
        return
    placed = raw.FS_MATRIX()
    raw.FPDFPageObj_GetMatrix(path, placed)
    parts: list[list[tuple[float, float]]] = []
    x, y = c_float(), c_float()
    for number in range(count):
        segment = raw.FPDFPath_GetPathSegment(path, number)
        kind = raw.FPDFPathSegment_GetType(segment)
        if kind == raw.FPDF_SEGMENT_BEZIERTO or not raw.FPDFPathSegment_GetPoint(segment, byref(x), byref(y)):
            return
        point = (
            placed.a * x.value + placed.c * y.value + placed.e,
            placed.b * x.value + placed.d * y.value + placed.f,
        )  # fmt: skip
        if kind == raw.FPDF_SEGMENT_MOVETO:
            parts.append([point])
        elif parts:
            parts[-1].append(point)
    for part in parts:
        across, up = [point[0] for point in part], [point[1] for point in part]
        is_line = min(max(across) - min(across), max(up) - min(up)) <= _THIN  # its ends may be aslant, as borders meet
        is_box = all(min(abs(one[0] - other[0]), abs(one[1] - other[1])) < _STRAIGHT for one, other in pairwise(part))
        if (is_line or is_box) and len(part) <= _BOX_POINTS_MAX:
            yield min(across), min(up), max(across), max(up)


def _whole(lines: Sequence[_Line]) -> list[_Line]:
    """Pieces that are at one place and touch are one line."""
    whole: list[_Line] = []
    for some in _near(lines):
        at = (some[0].at + some[-1].at) / 2
        last: _Line | None = None
        for piece in sorted(some, key=lambda line: line.first):
            if last is not None and piece.first <= last.last + _NEAR:
                whole.pop()
                last = _Line(at, last.first, max(last.last, piece.last))
            else:
                last = _Line(at, piece.first, piece.last)
            whole.append(last)
    return whole


def _near(lines: Iterable[_Line]) -> list[list[_Line]]:
    near: list[list[_Line]] = []
    for line in sorted(lines, key=lambda line: line.at):
        if near and line.at - near[-1][-1].at <= _NEAR and line.at - near[-1][0].at <= 2 * _NEAR:
            near[-1].append(line)
        else:
            near.append([line])
    return near


def _places(lines: Sequence[_Line]) -> list[float]:
    return [(some[0].at + some[-1].at) / 2 for some in _near(lines)]


def _meeting(upright: Sequence[_Line], level: Sequence[_Line]) -> list[tuple[list[_Line], list[_Line]]]:
    """Upright and level lines that meet each other, directly or over others."""
    left = set(range(len(level)))
    waiting = list(upright)
    groups = []
    while waiting:
        columns, rows, pending = [], [], [waiting.pop()]
        while pending:
            column = pending.pop()
            columns.append(column)
            for number in [number for number in left if level[number].meets(column)]:
                left.discard(number)
                rows.append(level[number])
                pending += [other for other in waiting if other.meets(level[number])]
                waiting = [other for other in waiting if not other.meets(level[number])]
        groups.append((columns, rows))
    return groups


def _area(group: tuple[Sequence[_Line], Sequence[_Line]]) -> float:
    across, up = ([line.at for line in lines] for lines in group)
    return (max(across) - min(across)) * (max(up, default=0.0) - min(up, default=0.0))


def _stacks(pieces: Sequence[_Line]) -> list[tuple[list[float], list[_Line]]]:
    """Level lines below each other that begin, end and are parted at the same places: borders of cells without upright ones.
    Each as these places and the lines from the top."""
    stacks: list[tuple[list[float], list[_Line]]] = []
    for some in reversed(_near(pieces)):
        ordered = sorted(some, key=lambda line: line.first)
        ends = [ordered[0].first]
        for one, other in pairwise(ordered):
            if abs(other.first - one.last) > _NEAR:
                break
            ends.append(other.first)
        else:
            ends.append(ordered[-1].last)
            line = _Line(some[0].at, ends[0], ends[-1])
            for places, lines in stacks:
                if len(places) == len(ends) and all(abs(one - other) <= _NEAR for one, other in zip(places, ends, strict=True)):
                    lines.append(line)
                    break
            else:
                stacks.append((ends, [line]))
    return [stack for stack in stacks if len(stack[1]) > _ROWS_MIN]


def _ruled(places: Sequence[float], level: Sequence[_Line], words: Sequence[_Word]) -> tuple[list[_Line], list[_Line]]:
    """A stack as lines in both directions, with the head above its first line and the row below its last. Where lines go
    through, columns are parted by room that no word stands in."""
    inside = [word for word in words if places[0] - _NEAR <= word.left and word.right <= places[-1] + _NEAR]
    is_through = len(places) == 2
    if is_through:
        places = _columns([word for word in inside if level[-1].at < word.y < level[0].at], places)
    below = (min((line.at - word.top for word in inside if word.y < line.at), default=0.0) for line in level[:-1])
    room = sorted(below)[(len(level) - 1) // 2] + _NEAR
    level = [*level]
    for number, sign in ((0, 1), (-1, -1)):
        at = level[number].at
        line = [word for word in inside if sign * (word.y - at) > 0 and min(abs(word.bottom - at), abs(word.top - at)) <= room]
        is_in_cells = all(_strip(word.left, places) == _strip(word.right, places) for word in line)
        if is_in_cells and len({_strip(word.x, places) for word in line}) > 1:
            edge = max(word.top for word in line) if sign > 0 else min(word.bottom for word in line)
            level.append(_Line(edge + sign, places[0], places[-1]))
    ats = sorted(line.at for line in level)
    rows = ([word for word in inside if low < word.y < high] for low, high in pairwise(ats))
    if is_through and not all(_is_one_row(places, row) for row in rows):
        return [], []
    return [_Line(place, ats[0], ats[-1]) for place in places], level


def _is_one_row(places: Sequence[float], words: Sequence[_Word]) -> bool:
    """Whether one of the cells has one line of text, and none as many as the first when that has more."""
    cells: dict[int, list[_Line]] = {}
    for word in sorted(words, key=lambda word: word.left):
        cells.setdefault(_strip(word.x, places), []).append(_Line(word.bottom, 0.0, 0.0))
    counts = [len(_near(lines)) for lines in cells.values()]
    return not counts or (min(counts) == 1 and (counts[0] == 1 or counts[0] not in counts[1:]))


def _columns(words: Sequence[_Word], edges: Sequence[float]) -> Sequence[float]:
    """Both edges, and the middles of the room between words that runs from the first row to the last; the edges alone when that
    makes fewer columns than a list has."""
    ordered = sorted(words, key=lambda word: word.left)
    places, reached = [edges[0]], ordered[0].right if ordered else 0.0
    for word in ordered:
        if word.left > reached + _ROOM * (word.top - word.bottom):
            places.append((reached + word.left) / 2)
        reached = max(reached, word.right)
    return [*places, edges[1]] if len(places) > 2 else edges


def _words(content: Any, text: str) -> list[_Word]:
    found = []
    for word in _WORD.finditer(text):
        left, bottom, _, top = content.get_charbox(word.start(), loose=True)
        right = content.get_charbox(word.end() - 1, loose=True)[2]
        found.append(_Word(word.start(), word.end(), word[0], left, bottom, right, top))
    return found


def _grid(upright: Sequence[_Line], level: Sequence[_Line], words: Sequence[_Word]) -> Grid | None:
    """The words within. None when it is no table."""
    across, down = _places(upright), _places(level)[::-1]
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
        return _grid(*used, words)
    cells = _cells(upright, level, across, down)
    held: dict[tuple[int, int], list[_Word]] = {}
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


def _is_parted(cells: Sequence[tuple[Sequence[_Word], float]]) -> bool:
    """Whether lines of text in cells side by side, each with its width, are rows that nothing is drawn between: they end where
    there was room for the next word, or most cells have as many, and not few."""
    wrapped = parted = 0
    counts: list[int] = []
    for words, width in cells:
        begin, before = words[0].left, wrapped + parted
        for one, other in pairwise(words):
            if other.left > one.left and abs(other.bottom - one.bottom) <= _NEAR:
                continue
            if one.right - begin + (other.right - other.left) + _NEAR < width - 2 * (words[0].top - words[0].bottom):
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
    upright: Sequence[_Line], level: Sequence[_Line], across: Sequence[float], down: Sequence[float],
    places: Sequence[tuple[int, int]],
) -> tuple[list[_Line], list[_Line]]:  # fmt: skip
    """The lines where words stand: not those of an empty frame around them, nor of what touches it."""
    rows, columns = [row for row, _ in places], [column for _, column in places]
    left, right = across[min(columns)], across[max(columns) + 1]
    bottom, top = down[max(rows) + 1], down[min(rows)]
    return _within(upright, left, right, bottom, top), _within(level, bottom, top, left, right)


def _within(lines: Sequence[_Line], first: float, last: float, begin: float, end: float) -> list[_Line]:
    """Those between two places that are there for a good part of `begin` to `end`."""
    kept: list[_Line] = []
    for some in _near(lines):
        length = sum(max(0.0, min(line.last, end) - max(line.first, begin)) for line in some)
        if first - _NEAR <= some[0].at <= last + _NEAR and length >= _SHORT * (end - begin):
            kept += some
    return kept


def _cells(
    upright: Sequence[_Line], level: Sequence[_Line], columns: Sequence[float], rows: Sequence[float]
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


def _is_at(lines: Sequence[_Line], at: float, place: float) -> bool:
    """Whether one of the lines is there at this place of its length."""
    return any(abs(line.at - at) <= 2 * _NEAR and line.first - _NEAR <= place <= line.last + _NEAR for line in lines)
