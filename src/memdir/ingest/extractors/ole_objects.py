"""Files that stand in office documents as OLE objects: attached ones ([MS-OLEDS] 2.3.6) and documents of other programs."""

from __future__ import annotations

import contextlib
import posixpath
import re
import zipfile
from io import BytesIO
from pathlib import Path
from typing import Final

import olefile

from memdir.ingest.extractors import embedded, packages
from memdir.ingest.extractors.output import Output

_EMBEDDED: Final = re.compile(r"(?:word|ppt|xl)/embeddings/.+|Object \d+")
_ATTACHED: Final = "\x01Ole10Native"
_WRAPPED: Final = ("Package", "CONTENTS")
"""Where newer office files and PDFs stand in an object."""
_DOCUMENTS: Final = ("WordDocument", "Workbook", "Book", "PowerPoint Document")
FAULTS: Final = (OSError, ValueError, IndexError, KeyError, TypeError, AttributeError)
"""What olefile raises over a compound file that is damaged."""
_LENGTH_BYTES: Final = 4
_MAGIC: Final = b"\xd0\xcf\x11\xe0"


def add_all(path: Path, out: Output) -> None:
    """A section for each file in a package of an office program; workbooks behind charts are none."""
    with packages.opened(path) as archive:
        names = archive.namelist()
        charts = [name.replace("/_rels/", "/").removesuffix(".rels") for name in names if "/charts/_rels/" in name]
        behind = {place for chart in charts for _, _, place in packages.related(archive, chart)}
        for name in names:
            if _EMBEDDED.fullmatch(name) and name not in behind:
                add_part(archive, name, out)


def add_part(archive: zipfile.ZipFile, name: str, out: Output) -> None:
    """A section for the file that one part is or holds; nothing when no program here knows it, or it is large."""
    add(packages.small_part(archive, name), posixpath.basename(name), out)


def add(data: bytes, name: str, out: Output) -> None:
    """The same for the bytes of an object."""
    called, held = _held(data) if data.startswith(_MAGIC) else ("", data)
    if held:
        embedded.add(held, called or name, out, title="Attachment")


def add_attached(data: bytes, out: Output) -> None:
    """The same for the stream of an attached file."""
    called, held = _attached(data)
    if held:
        embedded.add(held, called, out, title="Attachment")


def add_stored_in(path: Path, out: Output) -> None:
    """The same for the objects in a compound file, if it is one."""
    with contextlib.suppress(*FAULTS), olefile.OleFileIO(path) as storage:
        add_stored(storage, out)


def add_stored(storage: olefile.OleFileIO, out: Output) -> None:
    """The same for the objects in a compound file of Word or Excel."""
    for entry in storage.listdir():
        if len(entry) > 1 and entry[-1] in (_ATTACHED, *_WRAPPED):
            data = b""
            with contextlib.suppress(*FAULTS):
                data = stream(storage, entry)
            if entry[-1] == _ATTACHED:
                add_attached(data, out)
            elif data:
                embedded.add(data, entry[-2], out, title="Attachment")


def stream(storage: olefile.OleFileIO, name: str | list[str]) -> bytes:
    """The bytes of a stream, no more than of a part of a package."""
    with storage.openstream(name) as handle:
        return bytes(handle.read(packages.PART_MAX_BYTES))


def _held(data: bytes) -> tuple[str, bytes]:
    """Name and contents of what an object is about; no contents when it is nothing that can be read."""
    try:
        with olefile.OleFileIO(BytesIO(data)) as storage:
            if storage.exists(_ATTACHED):
                return _attached(stream(storage, _ATTACHED))
            for name in _WRAPPED:
                if storage.exists(name):
                    return "", stream(storage, name)
            return "", data if any(map(storage.exists, _DOCUMENTS)) else b""
    except FAULTS:
        return "", b""


def _attached(data: bytes) -> tuple[str, bytes]:
    """Size, flags, label, place, flags, then two pieces behind their lengths: a place and the contents. Newer programs put a
    command and the label in UTF-16 behind. A link to a file elsewhere has no contents."""
    label, _, rest = data[6:].partition(b"\x00")
    _, rest = _piece(rest.partition(b"\x00")[2][4:], 1)
    held, rest = _piece(rest, 1)
    named = label.decode("cp1252", "replace")
    if len(rest) > 2 * _LENGTH_BYTES:
        wide = _piece(_piece(rest, 2)[1], 2)[0]
        named = wide.decode("utf-16-le", "replace") or named
    return named, held


def _piece(data: bytes, width: int) -> tuple[bytes, bytes]:
    """What stands behind its length in characters of `width` bytes, and the rest."""
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little") * width
    return data[_LENGTH_BYTES:end], data[end:]
