"""Where the text of a hit stands in a file as it is now: the server read an earlier state, perhaps in another encoding."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from memdir.core.encodings import legacy_encoding
from memdir.core.patterns.matcher import is_utf8

_INDENT_MAX: Final = 200
_MARKS: Final = (
    (b"\xff\xfe\x00\x00", "utf-32"),
    (b"\x00\x00\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
)
"""Byte order marks; the four bytes of one begin with the two of another."""
_JSON_LINES: Final = re.compile(rb'(?:\\n)?",?[ \t]*\r?\n[ \t]*"')
"""Between two lines of a notebook's cell."""
_BROKEN: Final = re.compile("[\udc80-\udcff]")


def placed(data: bytes, text: str, first: int, last: int) -> tuple[int, int] | None:
    """The lines on which `text` stands in a file: those that were said when it is there, else where it is first, also when its
    lines were broken in another way; None when it is nowhere."""
    wanted = text.encode("utf-8", "replace").strip()
    for read in _readings(data):
        begins = _line_of(read, wanted, text, first)
        if begins is not None:
            return begins, begins + last - first
    words = rb"\s+".join(map(re.escape, wanted.split()))
    for read in _words_in(data) if words else ():
        found = re.search(words, read)
        if found is not None:
            begins = read.count(b"\n", 0, found.start()) + 1
            return begins, begins + read.count(b"\n", *found.span())
    return None


def _words_in(data: bytes) -> Iterator[bytes]:
    """The file, and the file without what JSON puts between the lines of a notebook's cell."""
    yield data
    yield _JSON_LINES.sub(b"\n", data).replace(b'\\"', b' "').replace(b"\\\\", b" \\")


def _readings(data: bytes) -> Iterator[bytes]:
    """The file in UTF-8 in each way in which the server may have read it."""
    yield data
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            yield data.decode(encoding, "replace").encode()
            return
    if not is_utf8(data):
        yield _BROKEN.sub("\ufffd", data.decode("utf-8", "surrogateescape")).encode()
        yield data.decode(legacy_encoding(data) or "cp1252", "replace").encode()


def _line_of(data: bytes, wanted: bytes, text: str, line: int) -> int | None:
    at = 0
    for _ in range(line - 1):
        at = data.find(b"\n", at) + 1
        if not at:
            break
    else:
        if data.startswith(wanted, at) or data[at : at + len(wanted) + _INDENT_MAX].lstrip().startswith(wanted):
            return line
    found = data.find(wanted)
    before = text[: len(text) - len(text.lstrip())].count("\n")
    return None if found < 0 else max(1, data.count(b"\n", 0, found) + 1 - before)
