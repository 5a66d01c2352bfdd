"""The objects in the files of Pages, Numbers and Keynote since 2013.

Apple publishes nothing of it. A file `*.iwa` is a row of blocks packed with Snappy (google/snappy, format_description.txt,
without the checksums of its framing). Unpacked they are messages of protocol buffers (protobuf.dev, "Encoding"): for each
object a head, with its identity and the kinds and lengths of the messages behind it.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from memdir.ingest.extractors import packages
from memdir.ingest.extractors.output import ExtractionError

_UNPACKED_MAX_BYTES: Final = 64 << 20
"""Of all blocks of one file."""
_VARINT_MAX_BITS: Final = 63
_FIXED: Final = {1: 8, 5: 4}
"""Bytes of a value of these wire types."""
Fields = dict[int, list["int | bytes"]]
"""Values by number of the field, in their order."""


@dataclass(slots=True)
class ArchivedObject:
    """An object: what kind of message it is, its bytes, the file that it is in."""

    kind: int
    data: bytes
    file: str
    _fields: Fields | None = field(default=None, init=False)

    @property
    def fields(self) -> Fields:
        """Empty where the bytes are no message."""
        if self._fields is None:
            self._fields = fields(self.data) or {}
        return self._fields


def objects(archive: zipfile.ZipFile) -> dict[int, ArchivedObject]:
    """All objects by their identity, those of templates and styles left out."""
    inner = next((name for name in archive.namelist() if name.endswith("Index.zip")), None)
    if inner is not None:
        archive = zipfile.ZipFile(io.BytesIO(packages.part(archive, inner)))
    found: dict[int, ArchivedObject] = {}
    for name in archive.namelist():
        base = name.rpartition("/")[2]
        if base.endswith(".iwa") and not base.startswith(("MasterSlide", "TemplateSlide", "DocumentStylesheet", "ViewState")):
            found.update(_in_file(_unpacked(packages.part(archive, name)), base))
    return found


def _in_file(data: bytes, file: str) -> Iterator[tuple[int, ArchivedObject]]:
    at = 0
    while at < len(data):
        length, at = _varint(data, at)
        head = fields(data[at : at + length]) or {}
        at += length
        for number, raw in enumerate(head.get(2, [])):
            message = (fields(raw) if isinstance(raw, bytes) else None) or {}
            size = integer(message, 3)
            if not number:
                yield integer(head, 1), ArchivedObject(kind=integer(message, 1), data=data[at : at + size], file=file)
            at += size


def fields(data: bytes) -> Fields | None:
    """The fields of a message; None when it is none."""
    found: Fields = {}
    at = 0
    try:
        while at < len(data):
            key, at = _varint(data, at)
            wire = key & 7
            value: int | bytes
            if wire == 0:
                value, at = _varint(data, at)
            elif wire == 2:
                length, at = _varint(data, at)
                value, at = data[at : at + length], at + length
            elif wire in _FIXED:
                value, at = data[at : at + _FIXED[wire]], at + _FIXED[wire]
            else:
                return None
            if at > len(data) or key < 8:
                return None
            found.setdefault(key >> 3, []).append(value)
    except IndexError:
        return None
    return found


def integer(of: Fields, number: int) -> int:
    """0 where there is none."""
    value = of.get(number, [0])[0]
    return value if isinstance(value, int) else 0


def texts(of: Fields, number: int) -> list[str]:
    """All values of a field with text."""
    return [value.decode("utf-8", "replace") for value in of.get(number, []) if isinstance(value, bytes)]


def messages(of: Fields, number: int) -> list[Fields]:
    """All values of a field with messages."""
    return [fields(value) or {} for value in of.get(number, []) if isinstance(value, bytes)]


def references(of: Fields, number: int) -> list[int]:
    """The identities of the objects that a field refers to."""
    return [integer(message, 1) for message in messages(of, number)]


def _unpacked(data: bytes) -> bytes:
    pieces: list[bytes] = []
    at = total = 0
    while at + 4 <= len(data):
        length = int.from_bytes(data[at + 1 : at + 4], "little")
        piece = _snappy(data[at + 4 : at + 4 + length])
        total += len(piece)
        if total > _UNPACKED_MAX_BYTES:
            raise ExtractionError(
                f"a part of it unpacks to more than {_UNPACKED_MAX_BYTES >> 20} MiB", hint="split the document"
            )
        pieces.append(piece)
        at += 4 + length
    return b"".join(pieces)


def _snappy(block: bytes) -> bytes:
    """One block, of 64 KiB at most."""
    _, at = _varint(block, 0)
    found = bytearray()
    while at < len(block):
        tag = block[at]
        at += 1
        kind, length = tag & 3, tag >> 2
        if kind == 0:
            extra = max(length - 59, 0)
            if extra:
                length = int.from_bytes(block[at : at + extra], "little")
                at += extra
            found += block[at : at + length + 1]
            at += length + 1
            continue
        if kind == 1:
            length, back = (length & 7) + 3, (tag >> 5 << 8) | block[at]
            at += 1
        else:
            size = 2 if kind == 2 else 4
            back = int.from_bytes(block[at : at + size], "little")
            at += size
        begin = len(found) - back
        if begin < 0 or not back or len(found) > _UNPACKED_MAX_BYTES:
            raise ExtractionError("it is damaged: a block refers to nothing", hint=packages.DAMAGED_HINT)
        many = length + 1
        while many > 0:  # what is copied may overlap what it makes
            copied = found[begin : begin + many]
            found += copied
            many -= len(copied)
            begin += len(copied)
    return bytes(found)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A number of as many bytes as it needs, and where the next thing begins. IndexError at the end of the data."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > _VARINT_MAX_BITS:
            raise IndexError
