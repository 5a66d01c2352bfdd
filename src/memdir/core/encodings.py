"""Which encoding from before Unicode a text is in, as chardet tells from its letters."""

from __future__ import annotations

import re
from typing import Final

_SAMPLE_BYTES: Final = 64 * 1024
CONTROLS: Final = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27}) + b"\x7f"
"""Bytes that no text holds."""
_CP1252_HOLES: Final = b"\x81\x8d\x8f\x90\x9d"
_LETTERS_MIN: Final = 9
"""With fewer beyond ASCII nothing can be told."""
_C1: Final = re.compile("[\x80-\x9f]")
"""Controls that no text holds; they come out of bytes that are read in a wrong encoding."""
_CONFIDENCE_MIN: Final = 0.025
"""Of chardet, which is less sure of bytes at random."""


def legacy_encoding(data: bytes) -> str | None:
    """Python's name of the encoding of a text that is not UTF-8; None when it looks like no text in any.

    Windows-1252, which holds Latin-1, where too few letters tell another one.
    """
    sample = data[:_SAMPLE_BYTES]
    if any(code in sample for code in CONTROLS):
        return None
    beyond_ascii = sum(byte >= 0x80 for byte in sample)
    is_western = not any(code in sample for code in _CP1252_HOLES) and beyond_ascii * 10 <= 3 * len(sample)
    if is_western and beyond_ascii < _LETTERS_MIN:
        return "cp1252"
    import chardet  # not needed for most files

    eras = chardet.EncodingEra.MODERN_WEB | chardet.EncodingEra.LEGACY_ISO
    found = chardet.detect(sample, encoding_era=eras if is_western else eras | chardet.EncodingEra.DOS)
    if not is_western and (found["encoding"] is None or found["confidence"] < _CONFIDENCE_MIN):
        return None
    name = (found["encoding"] or "cp1252").lower()
    if name in ("iso-8859-1", "windows-1252"):
        return "cp1252"
    if _C1.search(sample.decode(name, "replace")):
        return "cp1252" if is_western else None
    return name
