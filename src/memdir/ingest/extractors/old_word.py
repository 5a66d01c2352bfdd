"""The text of Word files from before 2007 by Microsoft's [MS-DOC]: its parts, and of the document itself headings, items and
tables."""

from __future__ import annotations

import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from memdir.ingest.extractors import ole_objects, packages
from memdir.ingest.extractors.output import ExtractionError, Output, encrypted

STREAM: Final = "WordDocument"
_WORD_97: Final = 0xC1
"""The number of the format (nFib) since which there is a table of pieces."""
_COMPLEX, _ENCRYPTED, _SECOND_TABLE = 0x0004, 0x0100, 0x0200
_CCP_AT: Final = 76
"""FibRgLw97.ccpText; behind it the lengths of the other parts of the text, in characters."""
_PARAGRAPHS_AT, _CLX_AT = 258, 418
"""FibRgFcLcb97: where the table of paragraphs (fcPlcfBtePapx) and the pieces of the text (fcClx) stand in the table stream."""
_PARTS: Final = ("Footnotes", "Headers and footers", None, "Comments", "Endnotes", "Text boxes", "Text boxes of headers")
"""Behind the document."""
_FIELD: Final = re.compile(r"\x13([^\x13\x14\x15]*)(?:\x14([^\x13\x14\x15]*))?\x15")
"""A field: its code, and what it shows."""
_RUBY: Final = re.compile(r"\s*EQ\b.*\\s\\up\s*\d+\(([^()]*)\),([^()]*)\)")
"""The code of words with their reading above: a formula that sets one over the other."""
_FIELDS_DEEP: Final = 8
_SIGNS: Final = str.maketrans({"\r": "\n", "\x0b": "\n", "\x0c": "\n", "\x1e": "-", "\x1f": None, "\0": None})
_MARK: Final = re.compile(r"[\r\x07\x0c]")
_CELL: Final = "\x07"
_PAGE_BYTES: Final = 512
_PAPX_BYTES: Final = 13
_HEADINGS: Final = range(1, 10)
"""Styles with these numbers are Word's headings ([MS-DOC] 2.9.271)."""
_IN_TABLE, _ROW_END, _LIST = 0x2416, 0x2417, 0x460B
"""Sprms ([MS-DOC] 2.6.2). Their upper three bits tell the size of what they set."""
_SIZES: Final = (1, 1, 2, 4, 2, 2, 0, 3)
_LONG_SPRM: Final = 0xD608


@dataclass(frozen=True, slots=True)
class _Paragraph:
    """What is known of a paragraph, and where its bytes begin."""

    begin: int = 0
    style: int = 0
    in_table: bool = False
    is_row_end: bool = False
    is_item: bool = False


@dataclass(frozen=True, slots=True)
class _Piece:
    """Some of the text: its first character in the document, its bytes in the stream, bytes a character."""

    begin: int
    at: int
    width: int
    text: str


def add(storage: Any, out: Output) -> None:
    """ExtractionError when it is encrypted or saved in parts by Word 6; what else is wrong is a fault of struct or an index."""
    data = ole_objects.stream(storage, STREAM)
    number, flags = struct.unpack_from("<H6xH", data, 2)
    if flags & _ENCRYPTED:
        raise encrypted()
    if number < _WORD_97:
        if flags & _COMPLEX:
            raise ExtractionError("it is of Word 6 or 95, saved in parts", hint=packages.DAMAGED_HINT)
        first, last = struct.unpack_from("<II", data, 24)
        out.paragraph(_readable(data[first:last].decode("cp1252", "replace")))
        return
    table = ole_objects.stream(storage, "1Table" if flags & _SECOND_TABLE else "0Table")
    pieces = list(_pieces(data, table))
    text = "".join(piece.text for piece in pieces)
    begin, *lengths = struct.unpack_from(f"<{len(_PARTS) + 1}i", data, _CCP_AT)
    _document(text[: max(begin, 0)], _known(data, table, pieces), out)
    begin = max(begin, 0)
    for title, length in zip(_PARTS, lengths, strict=True):
        part = _readable(text[begin : begin + max(length, 0)])
        begin += max(length, 0)
        if title and part.strip():
            out.heading(2, title)
            out.paragraph(part)


def _pieces(data: bytes, table: bytes) -> Iterator[_Piece]:
    """The text in the order of the document: a piece is stored in one byte a character, or in two ([MS-DOC] 2.4.1)."""
    at, length = struct.unpack_from("<II", data, _CLX_AT)
    end = at + length
    while table[at] == 1:  # formatting that pieces refer to
        at += 3 + struct.unpack_from("<H", table, at + 1)[0]
    if table[at] != 2 or end > len(table):
        raise ValueError("no table of pieces")
    count = (struct.unpack_from("<I", table, at + 1)[0] - 4) // 12
    bounds = struct.unpack_from(f"<{count + 1}I", table, at + 5)
    begin = 0
    for number in range(count):
        place = struct.unpack_from("<2xI", table, at + 5 + 4 * (count + 1) + 8 * number)[0]
        chars = bounds[number + 1] - bounds[number]
        if chars < 0:
            raise ValueError("pieces out of order")
        if place & 0x40000000:
            first = (place & 0x3FFFFFFF) // 2
            piece = _Piece(begin, first, 1, data[first : first + chars].decode("cp1252", "replace"))
        else:
            piece = _Piece(begin, place, 2, data[place : place + 2 * chars].decode("utf-16-le", "replace"))
        begin += len(piece.text)
        yield piece


def _known(data: bytes, table: bytes, pieces: list[_Piece]) -> Callable[[int], _Paragraph]:
    """What is known of the paragraph that ends with a character of the text; nothing when the table is damaged."""
    try:
        paragraphs = sorted(_paragraphs(data, table), key=lambda paragraph: paragraph.begin)
    except (struct.error, IndexError):
        paragraphs = []
    begins = [paragraph.begin for paragraph in paragraphs]
    starts = [piece.begin for piece in pieces]

    def of(character: int) -> _Paragraph:
        piece = pieces[bisect_right(starts, character) - 1]
        number = bisect_right(begins, piece.at + (character - piece.begin) * piece.width) - 1
        return paragraphs[number] if number >= 0 else _Paragraph()

    return of


def _paragraphs(data: bytes, table: bytes) -> Iterator[_Paragraph]:
    """Those of each page of the table of paragraphs ([MS-DOC] 2.9.175, PapxFkp): bounds, where what is known of each stands in
    the page, and in the last byte how many there are."""
    at, length = struct.unpack_from("<II", data, _PARAGRAPHS_AT)
    count = max(length - 4, 0) // 8
    for number in dict.fromkeys(struct.unpack_from(f"<{count}I", table, at + 4 * (count + 1))):
        begin = (number & 0x3FFFFF) * _PAGE_BYTES
        page = data[begin : begin + _PAGE_BYTES]
        inside = page[-1]
        bounds = struct.unpack_from(f"<{inside + 1}I", page)
        for place in range(inside):
            offset = 2 * page[4 * (inside + 1) + _PAPX_BYTES * place]
            if not offset:
                yield _Paragraph(bounds[place])
                continue
            size = page[offset]
            known = page[offset + 1 :][: 2 * size - 1] if size else page[offset + 2 :][: 2 * page[offset + 1]]
            (style,) = struct.unpack_from("<H", known)
            sprms = dict(_sprms(known[2:]))
            yield _Paragraph(
                bounds[place], style, bool(sprms.get(_IN_TABLE)), bool(sprms.get(_ROW_END)), bool(sprms.get(_LIST))
            )


def _sprms(known: bytes) -> Iterator[tuple[int, int]]:
    """Each property and the number it is set to, as far as it is one."""
    at = 0
    while at + 3 <= len(known):
        (sprm,) = struct.unpack_from("<H", known, at)
        size = _SIZES[sprm >> 13]
        if not size:
            width = 2 if sprm == _LONG_SPRM else 1
            size = width + int.from_bytes(known[at + 2 : at + 2 + width], "little") - (width - 1)
        yield sprm, int.from_bytes(known[at + 2 : at + 2 + size], "little")
        at += 2 + size


def _document(text: str, known: Callable[[int], _Paragraph], out: Output) -> None:
    text = _without_codes(text)
    rows: list[list[str]] = []
    cells: list[str] = []
    said: list[str] = []
    begin = 0
    in_list = False
    for mark in _MARK.finditer(text):
        words = text[begin : mark.start()].translate(_SIGNS).strip()
        begin = mark.end()
        paragraph = known(mark.start())
        if paragraph.is_row_end:
            rows.append(cells)
            cells = []
            continue
        if paragraph.in_table or mark[0] == _CELL:
            said.append(words)
            if mark[0] == _CELL:
                cells.append("\n".join(said))
                said.clear()
            continue
        out.table([*rows, [*cells, *said]])
        rows, cells, said = [], [], []
        is_item = paragraph.is_item and paragraph.style not in _HEADINGS
        if in_list and not is_item:
            out.end_list()
        in_list = is_item
        if is_item:
            out.item(words)
        elif paragraph.style in _HEADINGS:
            out.heading(paragraph.style, words)
        else:
            out.paragraph(words)
    out.table([*rows, [*cells, *said]])
    out.paragraph(text[begin:].translate(_SIGNS))


def _without_codes(text: str) -> str:
    """What fields show, at its place; nothing around it."""
    for _ in range(_FIELDS_DEEP):
        text, found = _FIELD.subn(_shown, text)
        if not found:
            break
    return text


def _shown(field: re.Match[str]) -> str:
    if field[2] is None:
        ruby = _RUBY.match(field[1])
        return (f"{ruby[2]}({ruby[1]})" if ruby else "").ljust(len(field[0]), "\0")
    return "\0" * (field.start(2) - field.start()) + field[2] + "\0"


def _readable(text: str) -> str:
    """A paragraph a line, the cells of a row between bars."""
    shown = _without_codes(text).translate(_SIGNS)
    lines = shown.replace("\x07\x07", "\n").replace("\x07", " | ").split("\n")
    return "\n\n".join(line.strip() for line in lines if line.strip(" |"))
