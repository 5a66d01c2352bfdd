"""Rows of tables that are people: a list of birthdays, a team with its roles, as Markdown, CSV or a sheet. Pure."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from memdir.memory.turns import SELF

_PERSON: Final = re.compile(
    r"(?:(?:full|first) )?names?|person|people|who|members?|team ?mates?|colleagues?|contacts?|friends?|child(?:ren)?|kids?|"
    r"guests?|employees?|wer|personen?|mitglied(?:er)?|kollegen?|kontakte?|freunde?|kinder|nombres?|personas?|noms?|personnes?",
    re.IGNORECASE,
)
"""What the first column of such a table is called."""
_FIRST_NAME: Final = re.compile(r"(?:first|given)[ _]?names?|vornamen?|prénoms?|nombres?", re.IGNORECASE)
_SURNAME: Final = re.compile(r"(?:last|family|sur)[ _]?names?|nachnamen?|name|noms?|apellidos?", re.IGNORECASE)
_REMARK: Final = re.compile(
    r"(?:notes?|comments?|remarks?|info|about|details|notizen?|bemerkung(?:en)?|anmerkung(?:en)?|notas?|remarques?)?",
    re.IGNORECASE,
)
"""A column whose cells say by themselves what they say."""
_NAME: Final = re.compile(r"[A-ZÀ-Þ][\w'’.-]*(?: (?:[A-ZÀ-Þ][\w'’.-]*|de|la|van|von|der|den|di|du)){0,4}(?: \([^()]{1,30}\))?")
_ROW_NUMBER: Final = "row"
"""What the first column is called in the text of a sheet."""
_BLANK: Final = re.compile(r"(?:[-–—?.\s]*|n/?a|none|tbd|unknown)", re.IGNORECASE)
COLUMNS_MAX: Final = 8
_LINE_MAX_CHARS: Final = 4000
ROWS_MAX: Final = 100
"""Of a CSV file, and cards in one file. One that has more is an export, to be found and not to be remembered."""
Person: TypeAlias = tuple[str, list[tuple[str, str]]]
"""Whom a row is about, and what it says of them: the form of a statement (`pair`, or `item` for a remark) and its words."""


def is_of_cards(path: str) -> bool:
    """Whether a file is a book of addresses, in whose text each heading is somebody."""
    return path.casefold().endswith(".vcf")


def is_export_of_cards(text: str, path: str) -> bool:
    """Whether a book of addresses has more cards than somebody keeps by hand."""
    return is_of_cards(path) and text.count("\n## ") > ROWS_MAX


def are_of_people(columns: Sequence[str]) -> bool:
    """Whether the rows below the names of these columns may be people."""
    if not 1 < len(columns) <= COLUMNS_MAX + 1:
        return False
    names = _with_whole_names(columns, columns)[0]
    return len(names) > 1 and _PERSON.fullmatch(names[0]) is not None


def person_in(columns: Sequence[str], cells: Sequence[str]) -> Person | None:
    """What a row says, below columns that `are_of_people`; None of one that lacks a name, or has other columns."""
    if len(columns) != len(cells):
        return None
    columns, cells = _with_whole_names(columns, cells)
    if not (cells[0].casefold() in SELF or _NAME.fullmatch(cells[0])):
        return None
    said = [
        ("item", cell) if _REMARK.fullmatch(column) else ("pair", f"{column[:1].upper()}{column[1:]}: {cell}")
        for column, cell in zip(columns[1:], cells[1:], strict=True)
        if _BLANK.fullmatch(cell) is None
    ]
    return cells[0], said


def _with_whole_names(columns: Sequence[str], cells: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Without the numbers of rows, and with a first name and a surname in one column."""
    if columns[0].casefold() == _ROW_NUMBER:
        columns, cells = columns[1:], cells[1:]
    for first, last in ((0, 1), (1, 0)):
        if len(columns) > 1 and _FIRST_NAME.fullmatch(columns[first]) and _SURNAME.fullmatch(columns[last]):
            return ["Name", *columns[2:]], [f"{cells[first]} {cells[last]}".strip(), *cells[2:]]
    return columns, cells


def rows_of_csv(text: str) -> Iterator[tuple[int, int, list[str]]]:
    """Where each line that is a row begins and ends, and its cells; nothing for a file of more than ROWS_MAX."""
    lines = text.splitlines(keepends=True)
    if len(lines) > ROWS_MAX + 1:
        return
    separator = max(",;\t", key=lines[0].count) if lines else ","
    at = 0
    for line in lines:
        written = line.rstrip("\r\n")
        if len(written) <= _LINE_MAX_CHARS and "\0" not in written:
            cells = next(csv.reader([written], delimiter=separator), [])
            yield at, at + len(written), [" ".join(cell.split()) for cell in cells]
        at += len(line)
