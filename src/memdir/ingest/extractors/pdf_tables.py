"""Tables in the text of a PDF page, which says where letters stand and nothing of tables: lines below each other whose words
stand in columns, with more room between them than words have. What is not sure stays as it was."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from typing import Any, Final

from pypdfium2 import PdfiumError

from memdir.ingest.extractors.output import table_lines
from memdir.ingest.extractors.pdf_grids import Grid, Word, columns_of, grid_of, grids, is_one_row, separators, words_of
from memdir.ingest.extractors.pdf_lines import Line

_LINE: Final = re.compile(r"[^\r\n]+")
_SPACES: Final = " \t\r\n"
"""Not the control codes that Python counts as space as well: TeX has ligatures there."""
_SPACE_BETWEEN: Final = re.compile(rf"[^{_SPACES}][{_SPACES}]+[^{_SPACES}]")
_LEADERS: Final = re.compile(r"(?:\. ?){3}")
_VALUE: Final = re.compile(r"[-+−(<~±$€£]*\d[\d.,%()/–-]*")
_ROWS_MIN: Final = 3
_COLUMNS_MIN: Final = 3
"""Two columns are as well a list, an index, or names and what they mean, and read as well without."""
_WIDE: Final = 0.45
"""Of a letter's height, the room that a letter of a line takes on average from which it may be in columns; prose has .40."""
_GAP: Final = 0.8
"""Of a letter's height, the room between two cells; justified prose has up to .6."""
_WORD_GAP: Final = 0.3
_HEAD_GAP: Final = 1.4
"""As much room as between words of one head, and so much more, is between two heads."""
_APART: Final = 4.0
"""Of a letter's height, the distance between two lines from which they are not in one table."""
_SAME_LINE: Final = 0.4
"""Of a letter's height, how much higher or lower a word of the same line may stand."""
_PITCH_MIN, _ROW_PITCH = 0.8, 1.25
"""From line to line, at least, in heights of a letter; and from row to row, in that of the closest lines."""
_LINES_A_CELL: Final = 3
_LINE_MAX_CHARS: Final = 200
_CELL_MAX_CHARS: Final = 60
_CELL_MEAN_MAX_CHARS: Final = 25
_VALUE_MAX_CHARS: Final = 16
"""One column at least has none that is longer."""
_FILLED_MIN: Final = 0.6
"""Share of the cells that are not empty."""
_CONTENTS_COLUMNS: Final = 3
"""Number, title, page."""
_FONT_SAMPLE_CHARS: Final = 24
"""Of each end of a line, so many letters tell whether its font is one of code."""
_SAME_WIDTH: Final = 0.02
"""Of a letter's height, how much the widths of letters may differ in a font where all are as wide: code and what programs print
has columns of its own."""


@dataclass(frozen=True, slots=True)
class _Cell:
    left: float
    right: float
    text: str


@dataclass(frozen=True, slots=True)
class _Row:
    start: int
    end: int
    """In the page's text."""
    bottom: float
    height: float
    words: Sequence[Word]
    cells: list[_Cell]


def with_tables(page: Any, content: Any, text: str) -> str:
    """`text` of the text page `content` of a pypdfium2 page, with rows of tables as lines of Markdown and empty lines around
    each table."""
    words = words_of(content, text)
    if not words:
        return text
    try:
        pieces, done = [], 0
        for grid in _grids(page, content, words):
            pieces += [_with_tables(content, text, words, done, grid.start), "\n", *_markdown(grid.rows), "\n"]
            done = grid.end
        return "".join([*pieces, _with_tables(content, text, words, done, len(text))])
    except PdfiumError:  # a letter without a box
        return text


def _grids(page: Any, content: Any, words: Sequence[Word]) -> list[Grid]:
    """Tables with cells of several lines, in the order of the text; of those that are the same the surest or the largest."""
    if page.get_rotation():  # lines of text run upright there
        return []
    sure, others = grids(page, words)
    found: list[Grid] = []
    for grid in (*sure, *sorted((*others, *_by_row_spacing(content, words)), key=lambda grid: -len(grid.rows))):
        if all(grid.end <= other.start or other.end <= grid.start for other in found):
            found.append(grid)
    return sorted(found, key=lambda grid: grid.start)


def _by_row_spacing(content: Any, words: Sequence[Word]) -> Iterator[Grid]:
    """Tables without lines whose rows are further apart than the lines of a cell."""
    for lines, columns in _regions(words):
        pitches = [above[0].bottom - below[0].bottom for above, below in pairwise(lines)]
        if len(lines) < _ROWS_MIN or min(pitches) < _PITCH_MIN * (lines[0][0].top - lines[0][0].bottom):
            continue
        edges = [
            (min(word.bottom for word in above) + max(word.top for word in below)) / 2
            for (above, below), pitch in zip(pairwise(lines), pitches, strict=True)
            if pitch > _ROW_PITCH * min(pitches)
        ]
        if not _ROWS_MIN <= len(edges) + 1 < len(lines):  # with a line to each row they are told by the page's own lines
            continue
        edges = [max(word.top for word in lines[0]) + 1, *edges, min(word.bottom for word in lines[-1]) - 1]
        longest = max((word for line in lines for word in line), key=lambda word: len(word.text))
        if _is_code(content, longest.text, longest.start, longest.top - longest.bottom):
            continue
        across = [columns[0][0] - 1, *separators(columns), columns[-1][1] + 1]
        inside = [word for line in lines for word in line]
        rows = ([word for word in inside if low < word.y < high] for high, low in pairwise(edges))
        if not all(is_one_row(across, row) for row in rows):
            continue
        upright = [Line(place, edges[-1], edges[0]) for place in across]
        grid = grid_of(upright, [Line(place, across[0], across[-1]) for place in edges], words)
        if grid is not None and _is_table(grid.rows, lines_a_cell=_LINES_A_CELL):
            yield grid


def _regions(words: Sequence[Word]) -> Iterator[tuple[list[list[Word]], list[tuple[float, float]]]]:
    """Lines of text below each other, from the top, and the columns between which there is room all the way down."""
    lines: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.y):
        if lines and abs(lines[-1][0].y - word.y) <= _SAME_LINE * (word.top - word.bottom):
            lines[-1].append(word)
        else:
            lines.append([word])
    lines = [sorted(line, key=lambda word: word.left) for line in lines]
    begin = 0
    while begin < len(lines):
        height = lines[begin][0].top - lines[begin][0].bottom
        columns, end = _columns([], lines[begin], height), begin + 1
        while len(columns) >= _COLUMNS_MIN and end < len(lines):
            wider = _columns(columns, lines[end], height)
            is_far = lines[end - 1][0].bottom - lines[end][0].bottom > _APART * height
            if is_far or len(wider) < _COLUMNS_MIN or (len(wider) < len(columns) and end > begin + 1):
                break
            columns, end = wider, end + 1
        if len(columns) >= _COLUMNS_MIN:
            yield lines[begin:end], columns
        begin = end


def _columns(columns: Sequence[tuple[float, float]], line: Sequence[Word], height: float) -> list[tuple[float, float]]:
    return columns_of([*columns, *((word.left, word.right) for word in line)], height)


def _with_tables(page: Any, text: str, words: Sequence[Word], start: int, stop: int) -> str:
    """Of a part of the text, by where its words stand alone."""
    pieces, done, above = [], start, None
    for is_wide, group in groupby(_LINE.finditer(text, start, stop), key=lambda line: _is_wide(page, text, line)):
        lines = list(group)
        if is_wide and len(lines) >= _ROWS_MIN:
            rows = [_row(line, words) for line in lines]
            if above:
                rows.insert(0, _row(above, words))
            for first, last, table in _tables(rows, begin=1 if above else 0):
                pieces += [text[done:first], "\n", *table, "\n"]
                done = last
        above = lines[-1]
    return "".join([*pieces, text[done:stop]])


def _markdown(rows: Sequence[Sequence[str]], *, has_head: bool | None = None) -> Iterator[str]:
    """Lines of Markdown; a first row with a number in it is no head."""
    escaped = ([cell.replace("|", "\\|") for cell in cells] for cells in rows)
    return table_lines(escaped, header=not any(map(_VALUE.fullmatch, rows[0])) if has_head is None else has_head)


def _is_wide(page: Any, text: str, line: re.Match[str]) -> bool:
    shown = line[0].strip(_SPACES)
    if not _SPACE_BETWEEN.search(shown) or len(shown) > _LINE_MAX_CHARS:
        return False
    start = line.start() + line[0].index(shown)
    left, bottom, _, top = page.get_charbox(start, loose=True)
    right = page.get_charbox(start + len(shown) - 1)[2]
    height = top - bottom
    if right - left <= _WIDE * height * len(shown):
        return False
    end = start + len(shown)
    # Lines of code may have numbers before them, of another font.
    pieces = {(start, min(start + _FONT_SAMPLE_CHARS, end)), (max(start, end - _FONT_SAMPLE_CHARS), end)}
    return not any(_is_code(page, text[first:last], first, height) for first, last in pieces)


def _is_code(page: Any, letters: str, start: int, height: float) -> bool:
    """Whether letters of different kinds are all as wide; digits are in most fonts."""
    if "".join(letters.split()).isdigit():
        return False
    widths = [
        box[2] - box[0]
        for place, letter in enumerate(letters)
        if letter not in _SPACES
        for box in [page.get_charbox(start + place, loose=True)]
    ]
    return bool(max(widths) - min(widths) < _SAME_WIDTH * height)


def _row(line: re.Match[str], words: Sequence[Word]) -> _Row:
    """The words of a line and its cells, from left to right; none when it does not run from left to right."""
    first = bisect_left(words, line.start(), key=lambda word: word.start)
    own = list(takewhile(lambda word: word.start < line.end(), words[first:]))
    if not own:
        return _Row(line.start(), line.end(), 0.0, 0.0, [], [])
    height = max(word.top - word.bottom for word in own)
    cells: list[_Cell] = []
    for before, word in zip([None, *own], own, strict=False):
        if before is not None and word.left < before.left:
            return _Row(line.start(), line.end(), word.bottom, height, [], [])
        if cells and word.left - cells[-1].right <= _GAP * height:
            cells[-1] = _Cell(cells[-1].left, max(word.right, cells[-1].right), f"{cells[-1].text} {word.text}")
        else:
            cells.append(_Cell(word.left, word.right, word.text))
    return _Row(line.start(), line.end(), own[-1].bottom, height, own, cells)


def _tables(rows: Sequence[_Row], begin: int) -> Iterator[tuple[int, int, list[str]]]:
    """Each table as the part of the text that it stands in, and its lines in Markdown. A row before `begin` may be a head."""
    free = 0
    while begin < len(rows):
        columns: list[tuple[float, float]] = []
        end = begin
        while end < len(rows) and (end == begin or _follows(rows[end - 1], rows[end])):
            wider = _joined(columns, rows[end].cells)
            if wider is None:
                break
            columns = wider
            end += 1
        table = [_placed(columns, row.cells) for row in rows[begin:end]]
        if _is_table(table):
            start = begin
            has_head = not any(map(_VALUE.fullmatch, table[0]))
            if not has_head and begin > free and _follows(rows[begin - 1], rows[begin]):
                head = _head(columns, rows[begin - 1])
                if head:
                    start, has_head, table = begin - 1, True, [head, *table]
            free = end
            yield rows[start].start, rows[end - 1].end, list(_markdown(table, has_head=has_head))
        begin = max(end, begin + 1)


def _head(columns: Sequence[tuple[float, float]], row: _Row) -> list[str]:
    """The words of the line above as heads of the nearest columns; nothing where they stand no further apart between columns
    than within one, as in a sentence, or where a column more than one has none."""
    if not row.words or row.words[0].left < columns[0][0] - row.height or row.words[-1].right > columns[-1][1] + row.height:
        return []
    near = [min(range(len(columns)), key=lambda place: _distance(columns[place], word)) for word in row.words]
    gaps = [
        (one != other, after.left - word.right)
        for (one, other), (word, after) in zip(pairwise(near), pairwise(row.words), strict=True)
    ]
    within = max((gap for between, gap in gaps if not between), default=_WORD_GAP * row.height)
    if any(gap < _HEAD_GAP * within for between, gap in gaps if between) or len(set(near)) < len(columns) - 1:
        return []
    head = [
        " ".join(word.text for word, place in zip(row.words, near, strict=True) if place == column)
        for column in range(len(columns))
    ]
    return [] if any(map(_VALUE.fullmatch, head)) else head


def _distance(column: tuple[float, float], word: Word) -> float:
    return max(column[0] - word.right, word.left - column[1])


def _follows(above: _Row, below: _Row) -> bool:
    return 0 < above.bottom - below.bottom < _APART * above.height


def _joined(columns: Sequence[tuple[float, float]], cells: Sequence[_Cell]) -> list[tuple[float, float]] | None:
    """Columns with room for these cells; None when a cell reaches over two, or two stand in one."""
    if len(cells) < 2:
        return None
    wider = list(columns)
    taken: set[int] = set()
    for cell in cells:
        met = [place for place, (left, right) in enumerate(wider) if cell.left < right and left < cell.right]
        if len(met) > 1 or taken.intersection(met):
            return None
        if met:
            left, right = wider[met[0]]
            wider[met[0]] = (min(left, cell.left), max(right, cell.right))
            taken.add(met[0])
        else:
            wider.append((cell.left, cell.right))
            taken.add(len(wider) - 1)
    wider.sort()
    return wider if all(one[1] <= other[0] for one, other in pairwise(wider)) else None


def _placed(columns: Sequence[tuple[float, float]], cells: Sequence[_Cell]) -> list[str]:
    return [next((cell.text for cell in cells if left <= cell.left <= right), "") for left, right in columns]


def _is_table(rows: Sequence[Sequence[str]], *, lines_a_cell: int = 1) -> bool:
    """Whether enough of it is filled, with words and numbers and not with lines of prose that stand beside each other."""
    if len(rows) < _ROWS_MIN or len(rows[0]) < _COLUMNS_MIN:
        return False
    cells = [cell for row in rows for cell in row if cell]
    lengths = [len(cell) for cell in cells]
    is_filled = len(cells) >= _FILLED_MIN * len(rows) * len(rows[0])
    most, mean = lines_a_cell * _CELL_MAX_CHARS, lines_a_cell * _CELL_MEAN_MAX_CHARS
    is_short = max(lengths) <= most and sum(lengths) <= mean * len(cells)
    columns = list(zip(*rows, strict=True))
    has_values = any(all(len(cell) <= _VALUE_MAX_CHARS for cell in column) for column in columns)
    has_words = sum(any(map(str.isalnum, cell)) for cell in cells) > len(cells) / 2
    return is_filled and is_short and has_values and has_words and not _is_of_contents(columns)


def _is_of_contents(columns: Sequence[Sequence[str]]) -> bool:
    """A table of contents or an index: titles, then pages that grow."""
    if any(_LEADERS.search(cell) for column in columns for cell in column):
        return True
    pages = [cell for cell in columns[-1] if cell]
    titled = any(not any(map(_VALUE.fullmatch, column)) for column in columns[:-1]) and len(columns) <= _CONTENTS_COLUMNS
    return titled and all(map(str.isdecimal, pages)) and [*map(int, pages)] == sorted(map(int, pages))
