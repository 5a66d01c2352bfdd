"""Byte-exact search over originals: the server's `grep -rnF`. No index, no decoding before a match."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

LINE_TEXT_MAX_BYTES: Final = 2000
_BINARY_LOOK_BYTES: Final = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralHit:
    """One line that holds the bytes. A line with several matches is one hit, with the position of the first."""

    path: str
    document_id: str
    line: int
    start_byte: int
    end_byte: int
    """The match itself, half open; it may reach over line ends when the needle does."""
    text: str
    """The line, at most LINE_TEXT_MAX_BYTES around the match; bytes that are not UTF-8 read as U+FFFD."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiteralSource:
    """A document to look through; `read` gives its bytes when its turn comes."""

    path: str
    document_id: str
    read: Callable[[], bytes]


def search(sources: Iterable[LiteralSource], needle: bytes, *, limit: int) -> list[LiteralHit]:
    """Hits in the order of the sources and then of the lines, at most `limit`; stops reading once it has them.

    Binary documents (a NUL in the first 8,000 bytes) are passed over, as grep does without -a.
    """
    hits: list[LiteralHit] = []
    if not needle:
        return hits
    for source in sources:
        if len(hits) >= limit:
            break
        data = source.read()
        if b"\x00" in data[:_BINARY_LOOK_BYTES]:
            continue
        for hit in _in_document(source, data, needle):
            hits.append(hit)
            if len(hits) >= limit:
                break
    return hits


def _in_document(source: LiteralSource, data: bytes, needle: bytes) -> Iterator[LiteralHit]:
    line, counted = 1, 0
    position = data.find(needle)
    while position >= 0:
        line += data.count(b"\n", counted, position)
        counted = position
        start = data.rfind(b"\n", 0, position) + 1
        stop = data.find(b"\n", position)
        stop = len(data) if stop < 0 else stop
        first = max(start, position - LINE_TEXT_MAX_BYTES // 2)
        shown = data[first : min(stop, first + LINE_TEXT_MAX_BYTES)]
        yield LiteralHit(
            path=source.path,
            document_id=source.document_id,
            line=line,
            start_byte=position,
            end_byte=position + len(needle),
            text=shown.decode("utf-8", "replace").rstrip("\r"),
        )
        position = data.find(needle, max(stop, position + 1))
