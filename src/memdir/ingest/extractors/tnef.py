"""`winmail.dat`, in which Outlook packs what other mail programs do not know: the text of the mail and the files attached to it
([MS-OXTNEF]); and text that it packed by itself ([MS-OXRTFCP])."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memdir.ingest.extractors import embedded, markup, packages, rtf, web
from memdir.ingest.extractors.output import ExtractionError, Output

_SUBJECT, _BODY, _MESSAGE = 0x00018004, 0x0002800C, 0x00069003
_CODE_PAGE, _ATTACHMENT_BEGINS, _ATTACHMENT_NAME = 0x00069007, 0x00069002, 0x00018010
_ATTACHMENT_DATA, _ATTACHMENT = 0x0006800F, 0x00069005
"""Attributes ([MS-OXTNEF] 2.1.3)."""
_TITLE, _TEXT, PACKED_RTF, _HTML, _OBJECT, _LONG_NAME = 0x0037, 0x1000, 0x1009, 0x1013, 0x3701, 0x3707
"""Properties ([MS-OXPROPS])."""
_SIZES: Final = {2: 4, 3: 4, 4: 4, 5: 8, 6: 8, 7: 8, 10: 4, 11: 4, 20: 8, 64: 8, 72: 16}
"""Bytes of values of these types, as far as they fill fours."""
_VARIABLE: Final = (0x1E, 0x1F, 0x0D, 0x102)
_WIDE: Final = 0x1F
_MANY: Final = 0x1000
_NAMED: Final = 0x8000
_CLASS_BYTES: Final = 16
_PACKED, _PLAIN = b"LZFu", b"MELA"
_RTF_MAX_BYTES: Final = 64 << 20
_DICTIONARY_BYTES: Final = 4096
_BEGIN: Final = (
    b"{\\rtf1\\ansi\\mac\\deff0\\deftab720{\\fonttbl;}{\\f0\\fnil \\froman \\fswiss \\fmodern \\fscript \\fdecor MS Sans Serif"
    b"SymbolArialTimes New RomanCourier{\\colortbl\\red0\\green0\\blue0\r\n\\par \\pard\\plain\\f0\\fs20\\b\\i\\u\\tab\\tx"
)
"""What the dictionary holds before the first byte (2.1.2.1)."""


@dataclass(slots=True)
class _Attached:
    name: str = ""
    data: bytes = b""
    properties: dict[int, bytes] = field(default_factory=dict)


def extract(path: Path, out: Output) -> None:
    """ExtractionError when it is damaged from the beginning."""
    out.engine = "memdir tnef"
    encoding = "cp1252"
    said: dict[int, bytes] = {}
    files: list[_Attached] = []
    properties: dict[int, bytes] = {}
    for kind, data in _attributes(path.read_bytes()):
        if kind == _CODE_PAGE and len(data) >= 4:
            encoding = f"cp{struct.unpack_from('<I', data)[0]}"
        elif kind == _MESSAGE:
            properties = dict(_properties(data))
        elif kind == _ATTACHMENT_BEGINS:
            files.append(_Attached())
        elif not files:
            said[kind] = data
        elif kind == _ATTACHMENT_NAME:
            files[-1].name = _decoded(data, encoding)
        elif kind == _ATTACHMENT_DATA:
            files[-1].data = data
        elif kind == _ATTACHMENT:
            files[-1].properties = dict(_properties(data))
    out.title = _decoded(said.get(_SUBJECT, b"") or properties.get(_TITLE, b""), encoding)
    out.heading(1, out.title)
    _add_text(_decoded(said.get(_BODY, b""), encoding), properties, encoding, out)
    for number, one in enumerate(files, start=1):
        long_name = one.properties.get(_LONG_NAME, b"")
        name = _decoded(long_name, encoding) or one.name or f"attachment {number}"
        embedded.add(one.data or one.properties.get(_OBJECT, b"")[_CLASS_BYTES:], name, out, title="Attachment")


def _add_text(plain: str, properties: dict[int, bytes], encoding: str, out: Output) -> None:
    """The plainest that has words."""
    text = plain or _decoded(properties.get(_TEXT, b""), encoding)
    if text.strip():
        out.paragraph(text)
    elif properties.get(_HTML):
        out.paragraph(markup.markdown(web.decoded(properties[_HTML])))
    elif properties.get(PACKED_RTF):
        rtf.add(unpacked(properties[PACKED_RTF]), out)


def unpacked(data: bytes) -> bytes:
    """The RTF of PidTagRtfCompressed, as far as it goes. ExtractionError when it is of an unknown kind."""
    if len(data) < 16 or data[8:12] not in (_PACKED, _PLAIN):
        raise ExtractionError("its text is packed in an unknown way", hint="export the message again")
    if data[8:12] == _PLAIN:
        return data[16:]
    window = bytearray(_BEGIN.ljust(_DICTIONARY_BYTES, b"\0"))
    at, place = 16, len(_BEGIN)
    found = bytearray()
    while at < len(data) and len(found) < _RTF_MAX_BYTES:
        control = data[at]
        at += 1
        for bit in range(8):
            if at >= len(data):
                break
            if control >> bit & 1:
                token = int.from_bytes(data[at : at + 2], "big")
                at += 2
                begin, length = token >> 4, (token & 15) + 2
                if begin == place:  # the end
                    return bytes(found)
            else:
                window[place] = data[at]
                begin, length = place, 1
                at += 1
            for source in range(begin, begin + length):  # what is copied may overlap what it makes
                found.append(window[source % _DICTIONARY_BYTES])
                window[place] = found[-1]
                place = (place + 1) % _DICTIONARY_BYTES
    return bytes(found)


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    """As far as they are whole."""
    at = 6
    while at + 9 <= len(data):
        kind, length = struct.unpack_from("<II", data, at + 1)
        if at + 9 + length > len(data):
            break
        yield kind, data[at + 9 : at + 9 + length]
        at += 9 + length + 2
    if at == 6:
        raise ExtractionError("it is damaged or cut off", hint=packages.DAMAGED_HINT)


def _properties(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Number and value of the properties without a name of their own, as far as they can be told apart; text in UTF-16 has the
    mark of that before it."""
    try:
        count, at = struct.unpack_from("<I", data)[0], 4
        for _ in range(count):
            kind, number = struct.unpack_from("<HH", data, at)
            at += 4
            if number >= _NAMED:
                is_text, length = struct.unpack_from("<II", data, at + 16)
                at += 24 + (_filled(length) if is_text else 0)
            many, kind = kind & _MANY, kind & ~_MANY
            is_variable = kind in _VARIABLE
            values = 1
            if many or is_variable:
                values = struct.unpack_from("<I", data, at)[0]
                at += 4
            for index in range(values):
                if is_variable:
                    size = struct.unpack_from("<I", data, at)[0]
                    at += 4
                else:
                    size = _SIZES[kind]
                if not index and number < _NAMED and is_variable:
                    yield number, (b"\xff\xfe" if kind == _WIDE else b"") + data[at : at + size]
                at += _filled(size)
                if at > len(data):
                    return
    except (struct.error, KeyError):
        return


def _filled(size: int) -> int:
    """Up to the next four."""
    return size + -size % 4


def _decoded(data: bytes, encoding: str) -> str:
    if data.startswith(b"\xff\xfe"):
        return data[2:].decode("utf-16-le", "replace").rstrip("\0")
    try:
        return data.decode(encoding, "replace").rstrip("\0")
    except LookupError:
        return data.decode("cp1252", "replace").rstrip("\0")
