"""A marked block in the bytes of a text file that belongs to somebody else. Pure: no files.

Put in and taken out again, the bytes are what they were before: whether they ended with a newline, their line ends, a byte
order mark. What was written around the block, or into it, while it stood there stays.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Final, Literal

_BLOCKS_MAX: Final = 16
"""Copies of one block that are taken out: somebody may have pasted it."""


Comment = Literal["html", "hash"]
"""How the marks are hidden from who reads the file: `<!-- … -->` in Markdown, `# …` in TOML and the like."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inserted:
    """What was put in, so that it can be taken out: the lines between the markers, what stood before them, and its hash."""

    key: str
    lines: tuple[str, ...]
    prefix: str
    """Line ends put between the file and the block; two when the file's last line had none."""
    before_sha256: str
    comment: Comment = "html"


def with_block(data: bytes, key: str, lines: tuple[str, ...], comment: Comment = "html") -> tuple[bytes, Inserted]:
    """`data` with the block at its end, and what it takes to undo that."""
    end = line_end(data)
    prefix = b"" if not data else end if data.endswith(b"\n") else end * 2
    before = hashlib.sha256(data).hexdigest()
    inserted = Inserted(key=key, lines=lines, prefix=prefix.decode(), before_sha256=before, comment=comment)
    return data + prefix + _block(inserted, end), inserted


def without_block(data: bytes, key: str, inserted: Inserted | None, comment: Comment = "html") -> bytes:
    """`data` without the block of `key`; `data` itself when there is none. `inserted` is what put it there, if known."""
    untouched = None if inserted is None else around(data, inserted)
    if untouched is not None and not untouched[1]:
        return untouched[0]
    for _ in range(_BLOCKS_MAX):
        shorter = _without_one(data, key, inserted, comment if inserted is None else inserted.comment)
        if shorter is None:
            return data
        data = shorter
    return data


def _without_one(data: bytes, key: str, inserted: Inserted | None, comment: Comment) -> bytes | None:
    lines = data.splitlines(keepends=True) if b"\n" in data else [data]
    begin, end = (mark.encode() for mark in _marks(key, comment))
    at = next((number for number, line in enumerate(lines) if line.strip() == begin), None)
    if at is None:
        return None
    ours = set() if inserted is None else {line.encode("utf-8") for line in inserted.lines}
    to = _last_line(lines, at, begin, end, ours)
    kept = [line for line in lines[at + 1 : to + 1] if line.strip() != end and line.rstrip(b"\r\n") not in ours]
    before, after = b"".join(lines[:at]), b"".join(lines[to + 1 :])
    if inserted is None:  # nobody knows which lines were ours: what stands between the markers was
        kept = [] if lines[to].strip() == end else kept
    if kept:
        return before + b"".join(kept) + after
    blank = line_end(data)
    added = inserted is None or inserted.prefix
    return (before.removesuffix(blank) if added and before.endswith(blank * 2) else before) + after


def _last_line(lines: list[bytes], at: int, begin: bytes, end: bytes, ours: set[bytes]) -> int:
    """The number of the block's last line: its end marker; without one, the last line in a row that is ours."""
    for number in range(at + 1, len(lines)):
        word = lines[number].strip()
        if word == end:
            return number
        if word == begin:
            break
    last = at
    while last + 1 < len(lines) and lines[last + 1].rstrip(b"\r\n") in ours:
        last += 1
    return last


def around(data: bytes, inserted: Inserted) -> tuple[bytes, bytes] | None:
    """What stood before the block when it was put in, and what stands behind it now; None when one of the two was changed."""
    block = _block(inserted, line_end(data))
    at = data.find(block)
    prefix = inserted.prefix.encode()
    if at < 0 or not data[:at].endswith(prefix):
        return None
    original = data[: at - len(prefix)]
    return (original, data[at + len(block) :]) if hashlib.sha256(original).hexdigest() == inserted.before_sha256 else None


def handed_over(data: bytes, inserted: Inserted, next_one: Inserted) -> tuple[bytes, Inserted] | None:
    """`data` without the block when another block follows it at once, and what it takes to undo that one then: what was put
    before the first (a newline that the file's last line had not) is put before the other now. None in any other case."""
    found = around(data, inserted)
    begun = (next_one.prefix + _marks(next_one.key, next_one.comment)[0]).encode()
    if found is None or not found[1].startswith(begun):
        return None
    rest = found[0] + inserted.prefix.encode() + found[1][len(next_one.prefix.encode()) :]
    return rest, replace(next_one, prefix=inserted.prefix, before_sha256=inserted.before_sha256)


def _block(inserted: Inserted, end: bytes) -> bytes:
    first, last = _marks(inserted.key, inserted.comment)
    return end.join(line.encode("utf-8") for line in (first, *inserted.lines, last)) + end


def _marks(key: str, comment: Comment) -> tuple[str, str]:
    before, after = ("<!-- ", " -->") if comment == "html" else ("# ", "")
    return f"{before}memdir:begin {key}{after}", f"{before}memdir:end {key}{after}"


def line_end(data: bytes) -> bytes:
    """As most lines of the file have it."""
    return b"\r\n" if data.count(b"\r\n") * 2 > data.count(b"\n") else b"\n"
