"""Documents of Pages, Numbers and Keynote (iWork): text, slides with their notes, sheets with their tables, comments; of those
from before 2013, which are XML, the paragraphs and the cells with text."""

from __future__ import annotations

import contextlib
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from lxml import etree

from memdir.ingest.extractors import iwa, packages
from memdir.ingest.extractors.iwa import ArchivedObject, integer, messages, references, texts
from memdir.ingest.extractors.output import ExtractionError, Output, comment_text, encrypted, number_text

OLD_INDEXES: Final = ("index.xml", "index.apxl")
_SHOW_DOCUMENT = _NUMBERS_DOCUMENT = 1
_SLIDE, _STORAGE, _TABLE, _MODEL, _STRINGS, _RICH, _COMMENT, _AUTHOR = 5, 2001, 6000, 6001, 6005, 6218, 3056, 212
"""Kinds of messages: KN.SlideArchive, TSWP.StorageArchive, TST.TableInfoArchive, TST.TableModelArchive, TST.TableDataList,
TST.RichTextPayloadArchive, TSD.CommentStorageArchive, TSK.AnnotationAuthorArchive."""
_BODY, _HEADER, _FOOTNOTE, _TEXT_BOX, _NOTE, _CELL = range(6)
"""TSWP.StorageArchive.KindType; footers are of the kind HEADER, too."""
_DEPTH_MAX: Final = 12
_CELLS_MAX: Final = 500_000
_OLD_UNREAD: Final = frozenset({"master-slides", "theme-list", "theme", "stylesheet", "styles", "master-slide", "metadata"})
_EPOCH: Final = datetime(2001, 1, 1)  # noqa: DTZ001  dates of cells have no zone
_CELL_VERSION: Final = 5
_DECIMAL_BIAS: Final = 0x1820
_NUMBER, _TEXT, _DATE, _BOOLEAN, _DURATION, _RICH_TEXT, _CURRENCY = 2, 3, 5, 6, 7, 9, 10
_ANCHOR: Final = "\ufffc"
"""Where something stands in a text."""


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged."""
    with packages.opened(path) as archive:
        names = archive.namelist()
        if any(name.endswith((".iwph", ".iwpv2")) for name in names):
            raise encrypted()
        old = next((name for name in OLD_INDEXES if name in names), None)
        out.engine = "memdir iwork"
        if old is not None:
            _old(packages.part(archive, old), out)
            return
        try:
            _Document(iwa.objects(archive)).write(out)
        except (IndexError, KeyError, ValueError, struct.error, zipfile.BadZipFile) as error:
            raise ExtractionError("it is damaged", hint=packages.DAMAGED_HINT) from error


class _Document:
    def __init__(self, objects: Mapping[int, ArchivedObject]) -> None:
        self._objects = objects
        self._cells_left = _CELLS_MAX
        self._told: set[str] = set()
        """Texts; comments of 2013 are among them."""

    def write(self, out: Output) -> None:
        slides = self._slides()
        root = next(
            (one for one in self._objects.values() if one.file == "Document.iwa" and one.kind == _NUMBERS_DOCUMENT), None
        )
        if slides:
            self._write_slides(slides, out)
        elif root is not None and references(root.fields, 1):
            self._write_sheets(references(root.fields, 1), out)
        else:
            self._write_pages(out)
        self._comments(out)

    def _write_pages(self, out: Output) -> None:
        storages = self._of(_STORAGE)
        for kind, heading in ((_BODY, ""), (_TEXT_BOX, "Text boxes"), (_FOOTNOTE, "Footnotes")):
            said = [text for one in storages if integer(one.fields, 1) == kind and (text := self._text(one))]
            out.heading(2, heading if said else "")
            for text in said:
                out.paragraph(text)
            if kind == _BODY:
                for table in self._of(_TABLE):
                    self._table(table, out)
        headers = [self._text(one) for one in storages if integer(one.fields, 1) == _HEADER]
        packages.add_headers_and_footers(headers, out)

    def _write_sheets(self, sheets: list[int], out: Output) -> None:
        for number, sheet in enumerate(self._some(sheets), start=1):
            out.heading(2, f"Sheet: {next(iter(texts(sheet.fields, 1)), number)}")
            for drawn in self._some(references(sheet.fields, 2)):
                if drawn.kind == _TABLE:
                    self._table(drawn, out)
                else:
                    for storage in self._storages(drawn):
                        out.paragraph(self._text(storage))
            out.progress(number, len(sheets))

    def _slides(self) -> list[ArchivedObject]:
        """In the order of the show; as they come where that is not known."""
        found: list[ArchivedObject] = []
        for document in self._of(_SHOW_DOCUMENT):
            for show in self._some(references(document.fields, 2)):
                for tree in messages(show.fields, 3):
                    for node in self._nodes([*references(tree, 2), *references(tree, 1)], 0):
                        found += [one for one in self._some(references(node.fields, 2)) if one.kind == _SLIDE]
        return list({id(one): one for one in found}.values()) or self._of(_SLIDE)

    def _nodes(self, ids: list[int], depth: int) -> Iterator[ArchivedObject]:
        for node in self._some(ids) if depth < _DEPTH_MAX else ():
            yield node
            yield from self._nodes(references(node.fields, 1), depth + 1)

    def _write_slides(self, slides: list[ArchivedObject], out: Output) -> None:
        out.fact("slides", len(slides))
        for number, slide in enumerate(slides, start=1):
            own = [one for one in self._objects.values() if one.file == slide.file]
            storages = [one for one in own if one.kind == _STORAGE]
            titles = [one for place in self._some(references(slide.fields, 5)) for one in self._storages(place)]
            title = " ".join(self._text(titles[0]).split()) if titles else ""
            out.heading(2, f"Slide {number}: {title}" if title else f"Slide {number}")
            of_notes = [one for note in self._some(references(slide.fields, 27)) for one in self._storages(note)]
            notes = []
            for storage in storages:
                kind, text = integer(storage.fields, 1), self._text(storage)
                if kind == _NOTE or storage in of_notes:
                    notes.append(text)
                elif kind != _CELL and text and not (titles and storage is titles[0]):
                    out.paragraph(text)
            for table in own:
                if table.kind == _TABLE:
                    self._table(table, out)
            for text in notes:
                out.paragraph(f"Notes: {text}" if text else "")
            out.progress(number, len(slides))

    def _comments(self, out: Output) -> None:
        for comment in self._of(_COMMENT):
            author = "".join(name for one in self._some(references(comment.fields, 3)) for name in texts(one.fields, 1))
            said = "".join(texts(comment.fields, 1)).strip()
            out.paragraph(comment_text(said, author).strip() if said and said not in self._told else "")

    def _table(self, table: ArchivedObject, out: Output) -> None:
        for model in self._some(references(table.fields, 2)):
            out.paragraph("".join(texts(model.fields, 8)))
            for store in messages(model.fields, 4):
                strings = self._strings(references(store, 4), references(store, 17))
                rows = list(self._rows(store, integer(model.fields, 7), strings))
                if rows:
                    width = max((number for row in rows for number, cell in enumerate(row, start=1) if cell), default=0)
                    out.table(row[:width] for row in rows)
                else:  # cells of 2013 are written in another way: their words at least
                    out.paragraph("\n".join(strings.values()))

    def _strings(self, *lists: list[int]) -> dict[tuple[int, int], str]:
        """What cells refer to: (0, key) for plain text, (1, key) for text with formats."""
        found: dict[tuple[int, int], str] = {}
        for is_rich, ids in enumerate(lists):
            for data_list in self._some(ids):
                for entry in messages(data_list.fields, 3):
                    text = "".join(texts(entry, 3)) if not is_rich else ""
                    for payload in self._some(references(entry, 9)):
                        text = "\n".join(map(self._text, self._some(references(payload.fields, 1))))
                    if text:
                        found[is_rich, integer(entry, 1)] = text
        return found

    def _rows(self, store: iwa.Fields, columns: int, strings: Mapping[tuple[int, int], str]) -> Iterator[list[str]]:
        for tiles in messages(store, 3):
            for tile in (one for entry in messages(tiles, 1) for one in self._some(references(entry, 2))):
                for row in messages(tile.fields, 5):
                    buffer, offsets = row.get(6, [b""])[0], row.get(7, [b""])[0]
                    if not isinstance(buffer, bytes) or not isinstance(offsets, bytes) or not buffer:
                        continue
                    places = struct.unpack(f"<{len(offsets) // 2}h", offsets[: len(offsets) // 2 * 2])[:columns]
                    step = 4 if integer(row, 8) else 1
                    self._cells_left -= len(places)
                    if self._cells_left < 0:
                        return
                    yield [_cell(buffer[place * step :], strings) if place >= 0 else "" for place in places]

    def _storages(self, referring: ArchivedObject) -> Iterator[ArchivedObject]:
        """The texts that an object refers to, however deep in its message."""
        waiting = [(referring.data, 0)]
        while waiting:
            data, depth = waiting.pop(0)
            message = iwa.fields(data) if depth < _DEPTH_MAX else None
            if message is None:
                continue
            storage = self._objects.get(integer(message, 1)) if list(message) == [1] else None
            if storage is not None and storage.kind == _STORAGE:
                yield storage
            waiting += [(value, depth + 1) for values in message.values() for value in values if isinstance(value, bytes)]

    def _text(self, storage: ArchivedObject) -> str:
        text = "\n".join(texts(storage.fields, 3)).replace(_ANCHOR, "").strip()
        self._told.add(text)
        return text

    def _of(self, kind: int) -> list[ArchivedObject]:
        return [one for one in self._objects.values() if one.kind == kind]

    def _some(self, ids: list[int]) -> list[ArchivedObject]:
        return [self._objects[one] for one in ids if one in self._objects]


def _cell(data: bytes, strings: Mapping[tuple[int, int], str]) -> str:
    """A cell as a spreadsheet shows it. What stands in it is told by the bits of a number, in their order."""
    if len(data) < 12 or data[0] != _CELL_VERSION:
        return ""
    kind, flags = data[1], int.from_bytes(data[8:12], "little")
    at = 12
    values: dict[int, bytes] = {}
    for bit, size in ((1, 16), (2, 8), (4, 8), (8, 4), (16, 4)):
        if flags & bit:
            values[bit] = data[at : at + size]
            at += size
    double = struct.unpack("<d", values[2])[0] if 2 in values else 0.0
    if kind in (_NUMBER, _CURRENCY):
        return number_text(_decimal(values[1]) if 1 in values else double)
    if kind in (_TEXT, _RICH_TEXT):
        bit = 8 if kind == _TEXT else 16
        return strings.get((int(kind == _RICH_TEXT), int.from_bytes(values.get(bit, b""), "little")), "")
    if kind == _DATE and 4 in values:
        with contextlib.suppress(OverflowError, ValueError):
            told = (_EPOCH + timedelta(seconds=struct.unpack("<d", values[4])[0])).isoformat(" ", "seconds")
            return told.removesuffix(" 00:00:00")
    if kind == _BOOLEAN:
        return "TRUE" if double else "FALSE"
    if kind == _DURATION:
        with contextlib.suppress(OverflowError, ValueError):
            return str(timedelta(seconds=double))
    return ""


def _decimal(data: bytes) -> float:
    """IEEE 754-2008 decimal128, its significand as an integer."""
    exponent = ((data[15] & 0x7F) << 7 | data[14] >> 1) - _DECIMAL_BIAS
    value = float((data[14] & 1) << 112 | int.from_bytes(data[:14], "little"))
    sign = -1 if data[15] & 0x80 else 1
    return sign * (value * 10.0**exponent if exponent >= 0 else value / 10.0**-exponent)


def _old(data: bytes, out: Output) -> None:
    """The XML of before 2013: paragraphs, tables, slides, sheets. What stands in masters and styles is left out."""
    try:
        root = etree.fromstring(data, packages.parser())
    except etree.LxmlError:
        root = None
    if root is None:
        raise ExtractionError("it is damaged, or encrypted with a password", hint=packages.DAMAGED_HINT)
    slides = 0
    waiting = [root]
    while waiting:
        element = waiting.pop()
        name = packages.local_name(element.tag) if isinstance(element.tag, str) else ""
        if name == "p":
            out.paragraph(packages.words(element))
        elif name == "grid":
            out.table(_old_rows(element))
        elif name not in _OLD_UNREAD:
            if name == "slide":
                slides += 1
                out.heading(2, f"Slide {slides}")
            elif name == "workspace":
                out.heading(2, f"Sheet: {_attribute(element, 'workspace-name')}")
            elif name == "tabular-model":
                out.paragraph(_attribute(element, "name"))
            waiting += reversed(element)
    out.fact("slides", slides or None)


def _old_rows(grid: Any) -> Iterator[list[str]]:
    columns = max(int(_attribute(next(packages.elements(grid, "columns")), "count") or 1), 1)
    cells = [cell for source in packages.elements(grid, "datasource") for cell in source]
    for begin in range(0, min(len(cells), _CELLS_MAX), columns):
        yield [_old_cell(cell) for cell in cells[begin : begin + columns]]


def _old_cell(cell: Any) -> str:
    """What it says, its number, or what its formula came to."""
    said = [_attribute(one, "s") or packages.words(one) for one in packages.elements(cell, "ct", "p")]
    numbers = [float(_attribute(one, "v") or "nan") for one in packages.elements(cell, "n", "rn")]
    return " ".join(filter(None, said)) or "".join(f"{number:.15g}" for number in numbers[:1] if not math.isnan(number))


def _attribute(element: Any, name: str) -> str:
    """In any namespace; "" where there is none."""
    return next((str(value) for key, value in element.attrib.items() if packages.local_name(key) == name), "")
