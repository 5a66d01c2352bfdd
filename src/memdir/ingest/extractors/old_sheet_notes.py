"""What stands on a sheet of Excel before 2007 and in none of its values: comments on cells, text boxes, headers and footers
([MS-XLS] 2.4). Calamine reads values alone."""

from __future__ import annotations

import contextlib
import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import olefile

from memdir.ingest.extractors import ole_objects
from memdir.ingest.extractors.output import clean
from memdir.ingest.extractors.sheet_notes import column_name, headers_and_footers_line

_BEGIN, _SHEET, _OBJECT, _TEXT, _CONTINUED, _NOTE, _HEADER, _FOOTER = 0x809, 0x85, 0x5D, 0x1B6, 0x3C, 0x1C, 0x14, 0x15
_OLD_BOOK: Final = "Book"
"""Of Excel 5 and 95, whose records are others."""
_LENGTH_AT: Final = 10
"""Of a TxO record: how many characters the records behind it hold."""


def notes(path: Path) -> dict[str, list[str]]:
    """As `sheet_notes.notes`; as far as the records are whole."""
    found: dict[str, list[str]] = {}
    with contextlib.suppress(*ole_objects.FAULTS, struct.error), olefile.OleFileIO(path) as storage:
        if not storage.exists(_OLD_BOOK):
            _add(ole_objects.stream(storage, "Workbook"), found)
    return found


def _add(data: bytes, found: dict[str, list[str]]) -> None:
    names: dict[int, str] = {}
    texts: dict[int, str] = {}
    said: dict[int, str] = {}
    printed: defaultdict[str, list[str]] = defaultdict(list)
    name, shape, left = "", 0, 0
    for at, kind, body in records(data):
        if kind == _SHEET:
            names[struct.unpack_from("<I", body)[0]] = _string(body, 6, 1)
        elif kind == _BEGIN and at in names:
            _end(name, texts, said, found)
            name, texts, said = names[at], {}, {}
        elif kind == _OBJECT:
            shape = struct.unpack_from("<H", body, 6)[0]
        elif kind == _TEXT:
            left = struct.unpack_from("<H", body, _LENGTH_AT)[0]
            texts[shape] = ""
        elif kind == _CONTINUED and left and body:
            piece = _characters(body, 0, left)
            texts[shape] += piece
            left -= len(piece)
        elif kind == _NOTE:
            row, column, _, number = struct.unpack_from("<4H", body)
            author = _string(body, 8, 2)
            said[number] = f"Comment{f' of {author}' if author else ''} on {column_name(column)}{row + 1}: "
        elif kind in (_HEADER, _FOOTER) and body:
            printed[name].append(_string(body, 0, 2))
    _end(name, texts, said, found)
    for sheet, parts in printed.items():
        found.setdefault(sheet, []).extend(headers_and_footers_line(parts))


def _end(name: str, texts: dict[int, str], said: dict[int, str], found: dict[str, list[str]]) -> None:
    """A sheet is whole: which texts are comments is known now."""
    for shape, text in texts.items():
        words = " ".join(clean(text).split())
        author = said.get(shape, "").removeprefix("Comment of ").partition(" on ")[0]
        if words:
            found.setdefault(name, []).append(f"{said.get(shape, 'Text box: ')}{words.removeprefix(f'{author}: ')}")


def records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Where each record of a workbook begins, its kind and what it holds ([MS-XLS] 2.1.4)."""
    at = 0
    while at + 4 <= len(data):
        kind, length = struct.unpack_from("<HH", data, at)
        yield at, kind, data[at + 4 : at + 4 + length]
        at += 4 + length


def _string(data: bytes, at: int, width: int) -> str:
    """A text behind its length of `width` bytes."""
    return _characters(data, at + width, int.from_bytes(data[at : at + width], "little"))


def _characters(data: bytes, at: int, most: int) -> str:
    """Behind a byte that says whether a character takes two."""
    if data[at : at + 1] == b"\x01":
        return data[at + 1 : at + 1 + 2 * most].decode("utf-16-le", "replace")
    return data[at + 1 : at + 1 + most].decode("latin-1")
