"""What is drawn on a PDF page, as upright and level lines: borders of cells, the edges of their backgrounds, rules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ctypes import byref, c_float
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from pypdfium2 import raw

_PIECES_MAX: Final = 20_000
_EDGES_MAX, _LINES_MAX = 8_000, 500
"""What is on a page, its edges, and its lines in one direction; a page with more is a drawing."""
_SEGMENTS_MAX: Final = 400
"""Of one path."""
_BOX_POINTS_MAX: Final = 5
_RULES_MIN: Final = 3
"""Level lines below each other that may be of one table."""
_PAGE: Final = 0.8
"""Of the page's width and height: a box from there on is its background."""
NEAR: Final = 3.0
"""Points: what is no further apart is one line, or touches. Borders of cells may have room between them."""
_THIN: Final = 3.0
"""Points: a box that is no wider is a line."""
_STRAIGHT: Final = 0.5


@dataclass(frozen=True, slots=True)
class Line:
    """Upright: `at` is where it is across the page, and `first` to `last` up the page; level: the other way round."""

    at: float
    first: float
    last: float

    def meets(self, other: Line) -> bool:
        """Whether a line of the other direction crosses or touches it."""
        return (
            self.first - NEAR <= other.at <= self.last + NEAR and other.first - NEAR <= self.at <= other.last + NEAR
        )  # fmt: skip


Lines = tuple[Sequence[Line], Sequence[Line]]
"""Upright and level ones."""


def lattices(page: Any) -> tuple[list[Lines], list[tuple[list[float], list[Line]]]]:
    """Upright and level lines that meet each other, the smallest first, of a pypdfium2 page; and its `_stacks`."""
    upright, pieces = _edges(page)
    level = _merged(pieces)
    if not level or max(len(upright), len(level)) > _LINES_MAX:
        return [], []
    return sorted(_meeting(upright, [line for line in level if _spans_columns(line, upright)]), key=_area), _stacks(pieces)


def _edges(page: Any) -> tuple[list[Line], list[Line]]:
    """What is drawn as upright lines, whole, and as level ones, in pieces; and the edges of boxes but for the background."""
    edge_left, edge_bottom, edge_right, edge_top = page.get_bbox()
    wide, high = _PAGE * (edge_right - edge_left), _PAGE * (edge_top - edge_bottom)
    upright: list[Line] = []
    level: list[Line] = []
    pieces = raw.FPDFPage_CountObjects(page)
    for number in range(pieces if pieces <= _PIECES_MAX else 0):
        piece = raw.FPDFPage_GetObject(page, number)
        for box in _boxes(piece) if raw.FPDFPageObj_GetType(piece) == raw.FPDF_PAGEOBJ_PATH else ():
            left, right = max(box[0], edge_left), min(box[2], edge_right)
            bottom, top = max(box[1], edge_bottom), min(box[3], edge_top)
            if right - left > wide and top - bottom > high:
                continue
            if top - bottom > _THIN:
                upright += [Line(at, bottom, top) for at in ([left, right] if right - left > _THIN else [(left + right) / 2])]
            if right - left > _THIN:
                level += [Line(at, left, right) for at in ([bottom, top] if top - bottom > _THIN else [(bottom + top) / 2])]
        if len(upright) + len(level) > _EDGES_MAX:
            return [], []
    return _merged(upright), level


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


def _merged(lines: Sequence[Line]) -> list[Line]:
    """Pieces that are at one place and touch are one line."""
    whole: list[Line] = []
    for some in clusters(lines):
        at = (some[0].at + some[-1].at) / 2
        last: Line | None = None
        for piece in sorted(some, key=lambda line: line.first):
            if last is not None and piece.first <= last.last + NEAR:
                whole.pop()
                last = Line(at, last.first, max(last.last, piece.last))
            else:
                last = Line(at, piece.first, piece.last)
            whole.append(last)
    return whole


def clusters(lines: Iterable[Line]) -> list[list[Line]]:
    """Lines that are at one place, by their places."""
    groups: list[list[Line]] = []
    for line in sorted(lines, key=lambda line: line.at):
        if groups and line.at - groups[-1][-1].at <= NEAR and line.at - groups[-1][0].at <= 2 * NEAR:
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def places(lines: Iterable[Line]) -> list[float]:
    """Where lines are."""
    return [(some[0].at + some[-1].at) / 2 for some in clusters(lines)]


def _spans_columns(line: Line, upright: Sequence[Line]) -> bool:
    """Whether a level line runs from an upright one to another: what underlines a word in a cell does not."""
    ends = (line.first, line.last)
    return all(any(abs(other.at - end) <= 2 * NEAR and other.meets(line) for other in upright) for end in ends)


def _meeting(upright: Sequence[Line], level: Sequence[Line]) -> list[tuple[list[Line], list[Line]]]:
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


def _area(group: tuple[Sequence[Line], Sequence[Line]]) -> float:
    across, up = ([line.at for line in lines] for lines in group)
    return (max(across) - min(across)) * (max(up, default=0.0) - min(up, default=0.0))


def _stacks(pieces: Sequence[Line]) -> list[tuple[list[float], list[Line]]]:
    """Level lines below each other that begin, end and are parted at the same places: borders of cells without upright ones.
    Each as these places and the lines from the top."""
    stacks: list[tuple[list[float], list[Line]]] = []
    for some in reversed(clusters(pieces)):
        ordered = sorted(some, key=lambda line: line.first)
        ends = [ordered[0].first]
        for one, other in pairwise(ordered):
            if abs(other.first - one.last) > NEAR:
                break
            ends.append(other.first)
        else:
            ends.append(ordered[-1].last)
            line = Line(some[0].at, ends[0], ends[-1])
            for known, lines in stacks:
                if len(known) == len(ends) and all(abs(one - other) <= NEAR for one, other in zip(known, ends, strict=True)):
                    lines.append(line)
                    break
            else:
                stacks.append((ends, [line]))
    return [stack for stack in stacks if len(stack[1]) >= _RULES_MIN]
