"""Documents of Hangul (.hwp 5) by Hancom's published specification of the format: the text of their paragraphs, in order.

A compound file with a stream for each section; a stream is records, each with a word that holds its kind and its size.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import Any, Final

from memdir.ingest.extractors import ole_objects, packages
from memdir.ingest.extractors.output import ExtractionError, Output, encrypted

HEADER: Final = "FileHeader"
_SECTION: Final = "BodyText/Section{}"
_FLAGS_AT: Final = 36
_PACKED, _LOCKED, _FOR_READERS_ONLY = 1, 2, 4
_PREVIEW: Final = "PrvText"
"""The beginning of the text: all that can be read of a file that is made for readers only."""
_PARAGRAPH_TEXT: Final = 67
_LONG: Final = 0xFFF
"""The size stands in a word of its own."""
_SECTIONS_MAX: Final = 1_000
_UNPACKED_MAX_BYTES: Final = 64 << 20
_SINGLE: Final = frozenset({0, 10, 13, *range(24, 32)})
"""Of the control characters those that stand alone. The others take eight characters with what they need."""
_CONTROL_CHARS: Final = 8
_SHOWN: Final = {9: "\t", 10: "\n", 24: "-", 30: "\u00a0", 31: " "}


def add(storage: Any, out: Output) -> None:
    """ExtractionError when it is encrypted or damaged."""
    flags = struct.unpack_from("<I", ole_objects.stream(storage, HEADER), _FLAGS_AT)[0]
    if flags & _LOCKED:
        raise encrypted()
    if flags & _FOR_READERS_ONLY:
        out.paragraph(ole_objects.stream(storage, _PREVIEW).decode("utf-16-le", "replace"))
        out.fact("unread", "all but its beginning: it was saved for readers only")
        return
    for number in range(_SECTIONS_MAX):
        if not storage.exists(_SECTION.format(number)):
            return
        data = ole_objects.stream(storage, _SECTION.format(number))
        if flags & _PACKED:
            try:
                data = zlib.decompressobj(-zlib.MAX_WBITS).decompress(data, _UNPACKED_MAX_BYTES)
            except zlib.error as error:
                raise ExtractionError("it is damaged: a section cannot be unpacked", hint=packages.DAMAGED_HINT) from error
        for text in _paragraphs(data):
            out.paragraph(text)
        out.progress(number + 1, 0)


def _paragraphs(data: bytes) -> Iterator[str]:
    at = 0
    while at + 4 <= len(data):
        head = struct.unpack_from("<I", data, at)[0]
        size, at = head >> 20, at + 4
        if size == _LONG and at + 4 <= len(data):
            size, at = struct.unpack_from("<I", data, at)[0], at + 4
        if head & 0x3FF == _PARAGRAPH_TEXT:
            yield _text(data[at : at + size])
        at += size


def _text(data: bytes) -> str:
    units = struct.unpack(f"<{len(data) // 2}H", data[: len(data) // 2 * 2])
    kept: list[int] = []
    at = 0
    while at < len(units):
        unit = units[at]
        if unit > 31:
            kept.append(unit)
        else:
            kept += map(ord, _SHOWN.get(unit, ""))
        at += 1 if unit > 31 or unit in _SINGLE else _CONTROL_CHARS
    return struct.pack(f"<{len(kept)}H", *kept).decode("utf-16-le", "replace")
