"""Word and PowerPoint files from before 2007, and those of Hangul: the text of the compound file's streams, by Microsoft's
[MS-DOC] and [MS-PPT].

No library with a fitting licence that is looked after reads them.
"""

from __future__ import annotations

import contextlib
import struct
import zlib
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import olefile

from memdir.ingest.extractors import hwp, old_word, ole_objects, packages
from memdir.ingest.extractors.output import ExtractionError, Output, encrypted

_SLIDES, _USER = "PowerPoint Document", "Current User"
_LOCKED: Final = "EncryptedPackage"
"""Where a newer office file is that wants a password ([MS-OFFCRYPTO] 2.3.4.4)."""
_DEPTH_MAX: Final = 32

_SIGNS: Final = str.maketrans({"\r": "\n", "\x0b": "\n"})
_CURRENT_LOCKED: Final = 0xF3D1C4DF
_NOTES_ATOM, _SLIDE_PERSIST, _DRAWING, _TEXT_CHARS, _TEXT_BYTES, _SLIDE_LIST = 1009, 1011, 1036, 4000, 4008, 4080
_OBJECT: Final = 4113
"""Kinds of records ([MS-PPT] 2.13.24)."""
_LIST_OF_SLIDES, _LIST_OF_NOTES = 0, 2


class _Record(NamedTuple):
    """A record of PowerPoint's stream; `begin` and `end` are those of what it holds ([MS-PPT] 2.3.1)."""

    kind: int
    instance: int
    is_container: bool
    begin: int
    end: int


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged, or neither of the two."""
    out.engine = f"olefile {version('olefile')}"
    try:
        with olefile.OleFileIO(str(path)) as storage:
            if storage.exists(old_word.STREAM):
                old_word.add(storage, out)
                ole_objects.add_stored(storage, out)
            elif storage.exists(_SLIDES):
                _slides(storage, out)
            elif storage.exists(hwp.HEADER):
                hwp.add(storage, out)
            elif storage.exists(_LOCKED):
                raise encrypted()
            else:
                raise ExtractionError("it is a compound file with neither words nor slides nor sheets in it")
            out.progress(0, 0)  # damaged properties can take olefile for ever
            told = storage.get_metadata()
            out.title = _named(told.title, told.codepage)
            out.fact("author", _named(told.author, told.codepage))
    except (*ole_objects.FAULTS, struct.error) as error:
        raise ExtractionError("it is damaged or cut off", hint=packages.DAMAGED_HINT) from error


def _named(value: Any, code_page: int | None) -> str:
    if not isinstance(value, bytes):
        return str(value or "")
    try:
        return value.decode(f"cp{(code_page or 1252) % 65536}")
    except (LookupError, UnicodeError):  # Python has most code pages, not those of a Mac
        return value.decode("cp1252", "replace")


def _slides(storage: Any, out: Output) -> None:
    user, data = ole_objects.stream(storage, _USER), ole_objects.stream(storage, _SLIDES)
    token, edit = struct.unpack_from("<II", user, 12)
    if token == _CURRENT_LOCKED:
        raise encrypted()
    places, document = _places(data, edit)
    slides: list[tuple[int, int, list[str]]] = []  # where it stands, its number for its notes, its title and lists
    notes: dict[int, str] = {}
    for texts in _inside(data, _record(data, places[document])):
        if texts.kind != _SLIDE_LIST:
            continue
        for record in _inside(data, texts):
            if record.kind == _SLIDE_PERSIST:
                reference, slide_id = struct.unpack_from("<I8xI", data, record.begin)
                if texts.instance == _LIST_OF_SLIDES:
                    slides.append((places[reference], slide_id, []))
                elif texts.instance == _LIST_OF_NOTES:
                    notes |= _notes(data, _record(data, places[reference]))
            elif texts.instance == _LIST_OF_SLIDES and slides:
                slides[-1][2].extend(_text(data, record))
    out.fact("slides", len(slides))
    for number, (place, slide_id, outline) in enumerate(slides, start=1):
        said = [*outline, *_drawn(data, _record(data, place))]
        title = said.pop(0) if said and "\n" not in said[0].strip() else ""
        out.heading(2, f"Slide {number}: {title}" if title else f"Slide {number}")
        for text in said:
            out.paragraph(text)
        out.paragraph(f"Notes: {notes[slide_id]}" if notes.get(slide_id) else "")
        out.progress(number, len(slides))
    for place in sorted(set(places.values())):
        record = _record(data, place)
        if record.kind == _OBJECT:
            ole_objects.add(_unpacked(data[record.begin : record.end], record.instance), "object", out)


def _unpacked(data: bytes, instance: int) -> bytes:
    """An object as it is, or deflated behind its size ([MS-PPT] 2.10.34); nothing when it is damaged."""
    with contextlib.suppress(zlib.error):
        return zlib.decompressobj().decompress(data[4:], packages.PART_MAX_BYTES) if instance else data
    return b""


def _places(data: bytes, edit: int) -> tuple[dict[int, int], int]:
    """Where each object stands, and which is the document. Every save adds to the file; the newest that names one is right."""
    places: dict[int, int] = {}
    document = 0
    seen: set[int] = set()
    while edit and edit not in seen:
        seen.add(edit)
        edit, place, named = struct.unpack_from("<8xIII", data, _record(data, edit).begin)
        document = document or named
        directory = _record(data, place)
        at = directory.begin
        while at < directory.end:
            head = struct.unpack_from("<I", data, at)[0]
            count = head >> 20
            for offset, object_at in enumerate(struct.unpack_from(f"<{count}I", data, at + 4)):
                places.setdefault((head & 0xFFFFF) + offset, object_at)
            at += 4 + 4 * count
    return places, document


def _notes(data: bytes, page: _Record) -> dict[int, str]:
    """The speaker's notes on a page of notes, under the number of its slide."""
    of = [struct.unpack_from("<I", data, record.begin)[0] for record in _inside(data, page) if record.kind == _NOTES_ATOM]
    return {of[0]: "\n".join(_drawn(data, page))} if of else {}


def _drawn(data: bytes, page: _Record) -> Iterator[str]:
    """The texts in the drawing of a page."""
    for record in _inside(data, page):
        if record.kind == _DRAWING:
            yield from _texts(data, record, 0)


def _texts(data: bytes, parent: _Record, depth: int) -> Iterator[str]:
    for record in _inside(data, parent):
        if record.is_container and depth < _DEPTH_MAX:
            yield from _texts(data, record, depth + 1)
        else:
            yield from _text(data, record)


def _text(data: bytes, record: _Record) -> Iterator[str]:
    if record.kind in (_TEXT_CHARS, _TEXT_BYTES):
        code = "utf-16-le" if record.kind == _TEXT_CHARS else "latin-1"
        text = data[record.begin : record.end].decode(code, "replace").translate(_SIGNS)
        if text.strip(" *\n"):  # a star stands for the number of the slide
            yield text


def _inside(data: bytes, parent: _Record) -> Iterator[_Record]:
    at = parent.begin
    while at + 8 <= parent.end:
        record = _record(data, at, parent.end)
        yield record
        at = record.end


def _record(data: bytes, at: int, end: int | None = None) -> _Record:
    """No longer than `end`: what overlaps would be read again and again."""
    version_and_instance, kind, length = struct.unpack_from("<HHI", data, at)
    return _Record(
        kind, version_and_instance >> 4, version_and_instance & 0xF == 0xF, at + 8, min(at + 8 + length, end or len(data))
    )
