"""From bytes to text without losing the way back: every character knows the byte of the original it came from.

Detection follows what editors and git do: a byte order mark decides; then UTF-8; then an encoding from before Unicode, by
its letters, but only when the bytes look like written text. A NUL in the first 8,000 bytes means binary (git's rule).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.core.encodings import CONTROLS, legacy_encoding
from memdir.core.limits import MIB

TEXT_MAX_BYTES: Final = 32 * MIB
"""Text beyond this is kept but not indexed; about what the bound on chunks of one document covers."""

_ESCAPED: Final = re.compile("[\udc80-\udcff]")
_SNIFF_BYTES: Final = 8000
_BOMS: Final = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_UNIT_BYTES: Final = {"utf-16-le": 2, "utf-16-be": 2, "utf-32-le": 4, "utf-32-be": 4}
_MAGIC: Final = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"PK\x03\x04", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"\x7fELF", "application/x-elf"),
    (b"SQLite format 3\x00", "application/vnd.sqlite3"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
)
_BY_SUFFIX: Final = {
    "md": "text/markdown",
    "markdown": "text/markdown",
    "txt": "text/plain",
    "text": "text/plain",
    "log": "text/plain",
    "rst": "text/x-rst",
    "org": "text/x-org",
    "tex": "text/x-tex",
    "html": "text/html",
    "htm": "text/html",
    "css": "text/css",
    "csv": "text/csv",
    "tsv": "text/tab-separated-values",
    "eml": "message/rfc822",
    "mbox": "application/mbox",
    "vtt": "text/vtt",
    "srt": "application/x-subrip",
    "ics": "text/calendar",
    "json": "application/json",
    "jsonl": "application/jsonl",
    "ndjson": "application/jsonl",
    "yaml": "application/yaml",
    "yml": "application/yaml",
    "toml": "application/toml",
    "xml": "application/xml",
    "svg": "image/svg+xml",
    "py": "text/x-python",
    "js": "text/javascript",
    "mjs": "text/javascript",
    "ts": "text/x-typescript",
    "tsx": "text/x-typescript",
    "go": "text/x-go",
    "rs": "text/x-rust",
    "java": "text/x-java",
    "c": "text/x-c",
    "h": "text/x-c",
    "cpp": "text/x-c++",
    "sh": "text/x-shellscript",
    "sql": "application/sql",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

Offsets = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodedText:
    """The text of a file with exact positions in its bytes. Lines end at a line feed; the first is line 1."""

    text: str
    encoding: str
    size_bytes: int
    """Of the whole original."""
    truncated: bool
    """The original is longer than TEXT_MAX_BYTES; `text` is its beginning."""
    bom_bytes: int
    _offsets: Offsets | None
    """Byte of each character and of the end; None when every character is one byte."""
    _line_starts: list[int] = field(default_factory=list)

    def byte_at(self, index: int) -> int:
        """The byte of the original where character `index` begins; `len(text)` gives the end."""
        return self.bom_bytes + index if self._offsets is None else int(self._offsets[index])

    def line_at(self, index: int) -> int:
        """The line, from 1, that holds character `index`."""
        return bisect_right(self.line_starts, index)

    @property
    def line_starts(self) -> list[int]:
        """The character where each line begins; always starts with 0. Made on first use."""
        starts = self._line_starts
        if not starts:
            starts.append(0)
            position = self.text.find("\n")
            while position >= 0:
                starts.append(position + 1)
                position = self.text.find("\n", position + 1)
            if len(starts) > 1 and starts[-1] == len(self.text):
                starts.pop()
        return starts


def decode(data: bytes) -> DecodedText | None:
    """The text in `data`, or None when it is not text. Never raises."""
    if data.startswith(tuple(magic for magic, _ in _MAGIC)):
        return None
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            if encoding == "utf-8":
                return None if b"\x00" in data[:_SNIFF_BYTES] else _utf8(data, len(bom))
            return _wide(data, len(bom), encoding)
    if b"\x00" in data[:_SNIFF_BYTES]:
        return None
    return _utf8(data, 0) or _legacy(data)


def media_type(path: str | None, data: bytes) -> str:
    """A MIME type from the content's signature, then the name, then whether it is text."""
    name = (path or "").rsplit("/", 1)[-1]
    by_name = _BY_SUFFIX.get(name.rsplit(".", 1)[-1].lower()) if "." in name else None
    for magic, kind in _MAGIC:
        if data.startswith(magic):
            return by_name if by_name and kind == "application/zip" and "openxml" in by_name else kind
    if decode(data[: 2 * _SNIFF_BYTES]) is None:
        return "application/octet-stream"
    return by_name if by_name and "openxml" not in by_name else "text/plain"


def _cut(data: bytes, bom_bytes: int) -> tuple[bytes, bool]:
    if len(data) <= TEXT_MAX_BYTES:
        return data[bom_bytes:], False
    end = TEXT_MAX_BYTES
    while end > TEXT_MAX_BYTES - 4 and data[end] & 0xC0 == 0x80:
        end -= 1
    return data[bom_bytes:end], True


def _utf8(data: bytes, bom_bytes: int) -> DecodedText | None:
    """UTF-8, forgiving up to one broken byte in 200 when the rest is clearly UTF-8; a broken byte becomes U+FFFD."""
    body, truncated = _cut(data, bom_bytes)
    sample = body[: 64 * 1024]
    if len(sample) - len(sample.translate(None, CONTROLS)) > len(sample) // 50:
        return None
    offsets: Offsets | None = None
    try:
        text = body.decode("utf-8")
        if not body.isascii():
            raw = np.frombuffer(body, dtype=np.uint8)
            offsets = np.append(np.flatnonzero((raw & 0xC0) != 0x80), len(body)).astype(np.int64) + bom_bytes
    except UnicodeDecodeError:
        text = body.decode("utf-8", "surrogateescape")
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        broken = (points >= 0xDC80) & (points <= 0xDCFF)
        good = int(((points >= 0x80) & ~broken).sum())
        bad = int(broken.sum())
        if not bom_bytes and (bad * 200 > len(body) or good < 4 * bad):
            return None
        widths = 1 + (points >= 0x80).astype(np.int64) + (points >= 0x800) + (points >= 0x10000)
        widths[broken] = 1
        offsets = np.concatenate((np.zeros(1, np.int64), np.cumsum(widths))) + bom_bytes
        text = _ESCAPED.sub("\N{REPLACEMENT CHARACTER}", text)
    return DecodedText(
        text=text, encoding="utf-8", size_bytes=len(data), truncated=truncated, bom_bytes=bom_bytes, _offsets=offsets
    )


def _wide(data: bytes, bom_bytes: int, encoding: str) -> DecodedText | None:
    unit = _UNIT_BYTES[encoding]
    end = min(len(data), TEXT_MAX_BYTES)
    truncated = end < len(data)
    if truncated:
        end -= (end - bom_bytes) % unit
        high = data[end - 1] if encoding.endswith("le") else data[end - 2]
        if unit == 2 and 0xD8 <= high <= 0xDB:
            end -= 2
    body = data[bom_bytes:end]
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        return None
    if "\x00" in text[:_SNIFF_BYTES]:
        return None
    if unit == 2:
        order = "<u2" if encoding.endswith("le") else ">u2"
        units = np.frombuffer(body, dtype=order)
        starts = np.flatnonzero((units & 0xFC00) != 0xDC00).astype(np.int64) * 2
    else:
        starts = np.arange(len(text), dtype=np.int64) * 4
    offsets = np.append(starts, len(body)) + bom_bytes
    return DecodedText(
        text=text, encoding=encoding, size_bytes=len(data), truncated=truncated, bom_bytes=bom_bytes, _offsets=offsets
    )


def _legacy(data: bytes) -> DecodedText | None:
    """A text from before Unicode; None when it looks like no text in any encoding."""
    body = data[:TEXT_MAX_BYTES]
    encoding = legacy_encoding(body)
    if encoding is None:
        return None
    try:
        text = body.decode(encoding, "surrogateescape")
        offsets = _widths(text, encoding)
    except (LookupError, UnicodeError):
        return None
    if offsets is not None and offsets[-1] != len(body):
        return None
    return DecodedText(
        text=_ESCAPED.sub("\N{REPLACEMENT CHARACTER}", text),
        encoding=encoding,
        size_bytes=len(data),
        truncated=len(body) < len(data),
        bom_bytes=0,
        _offsets=offsets,
    )


def _widths(text: str, encoding: str) -> Offsets | None:
    """The byte of each character and of the end; None when each is one byte."""
    points, which = np.unique(np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32), return_inverse=True)
    widths = np.array([len(chr(point).encode(encoding, "surrogateescape")) for point in points.tolist()], dtype=np.int64)
    if (widths == 1).all():
        return None
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(widths[which])))
