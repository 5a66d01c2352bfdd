"""From blocks to chunks: join the small, cut the long, never lose a position.

Sizes are in estimated tokens: a quarter for a letter or space, a half for ASCII punctuation and digits, one for each
character of scripts that the models split character by character. The estimate errs on the high side for English, so
that a passage with its context stays inside the 256 tokens the embedding model reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.ingest.chunker.blocks import Block, Outline, clip
from memdir.ingest.text import DecodedText
from memdir.store.types import Chunk

CHUNKS_MAX: Final = 20_000
"""Chunks of one document; what comes after is not searchable and the document's status says so."""

TARGET_TOKENS: Final = 200
MAX_TOKENS: Final = 300
MIN_TOKENS: Final = 48
"""A passage below this is joined with the next even across a heading."""
OVERLAP_TOKENS: Final = 30

_SENTENCE_END: Final = re.compile(r"[.!?…][\"')\]»”]*\s+|[。！？]\s*|[;；]\s+")
_SPACE: Final = re.compile(r"\s+|[,，、]\s*")


def _weight_table() -> npt.NDArray[np.float32]:
    table = np.full(0x110000, 0.5, dtype=np.float32)
    table[:128] = [0.5 if not (chr(code).isalpha() or chr(code).isspace()) else 0.25 for code in range(128)]
    for low, high in (
        (0x0E00, 0x1000),
        (0x1780, 0x1800),
        (0x2E80, 0xA4D0),
        (0xAC00, 0xD7B0),
        (0xF900, 0xFB00),
        (0x1F000, 0x30000),
    ):
        table[low:high] = 1.0
    return table


_WEIGHTS: Final = _weight_table()


class Measure:
    """Estimated tokens of any span of a text in constant time."""

    def __init__(self, text: str) -> None:
        points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
        self._sums = np.concatenate((np.zeros(1), np.cumsum(_WEIGHTS[points], dtype=np.float64)))

    def tokens(self, start: int, end: int) -> float:
        return float(self._sums[end] - self._sums[start])

    def reach(self, start: int, tokens: float) -> int:
        """The furthest end such that `start` to end is at most `tokens`; at least one character on."""
        end = int(np.searchsorted(self._sums, self._sums[start] + tokens, side="right")) - 1
        return max(start + 1, end)

    def back(self, end: int, tokens: float) -> int:
        """The earliest start such that start to `end` is at most `tokens`."""
        return int(np.searchsorted(self._sums, self._sums[end] - tokens, side="left"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Span:
    start: int
    end: int
    heading: tuple[str, ...]
    note: str


def pack(text: DecodedText, outline: Outline) -> Sequence[Chunk]:
    """Chunks in order of their first byte; at most CHUNKS_MAX."""
    if not text.text or text.text.isspace():
        return ()
    measure = Measure(text.text)
    chunks: list[Chunk] = []
    for span in _spans(text.text, measure, outline.blocks):
        trimmed = _trim(text.text, span.start, span.end)
        if trimmed is None:
            continue
        start, end = trimmed
        parts = [part for part in (outline.title, *span.heading, span.note) if part]
        unique = list(dict.fromkeys(parts))
        chunks.append(
            Chunk(
                ordinal=len(chunks),
                start_byte=text.byte_at(start),
                end_byte=text.byte_at(end),
                start_line=text.line_at(start),
                end_line=text.line_at(end - 1),
                text=text.text[start:end],
                context=clip(" › ".join(unique)),
            )
        )
        if len(chunks) >= CHUNKS_MAX:
            break
    return chunks


def _trim(text: str, start: int, end: int) -> tuple[int, int] | None:
    """Without blank lines at the start and white space at the end; indentation of the first line stays."""
    while end > start and text[end - 1].isspace():
        end -= 1
    if end == start:
        return None
    first = start
    while text[first].isspace():
        first += 1
    newline = text.rfind("\n", start, first)
    return (newline + 1 if newline >= 0 else start), end


def _common(left: tuple[str, ...], right: tuple[str, ...]) -> tuple[str, ...]:
    size = 0
    while size < min(len(left), len(right)) and left[size] == right[size]:
        size += 1
    return left[:size]


def _spans(text: str, measure: Measure, blocks: Sequence[Block]) -> Iterator[_Span]:
    """Greedy packing. A heading change ends a passage that has grown to MIN_TOKENS; a hard block always does."""
    open_: _Span | None = None
    last: Block | None = None
    for block in blocks:
        if block.skip or text[block.start : block.end].isspace():
            if block.skip and open_ is not None:
                yield open_
                open_ = None
            last = None if block.skip else last
            continue
        if open_ is not None and _closes(measure, open_, block, block.heading != (last.heading if last else ())):
            yield open_
            open_ = None
        if measure.tokens(block.start, block.end) > MAX_TOKENS:
            if open_ is not None:
                yield open_
                open_ = None
            yield from _cut(text, measure, block)
            last = None
            continue
        if open_ is None:
            start = block.start
            if block.turn and last is not None and last.turn and not block.hard and last.end == block.start:
                overlap = measure.tokens(last.start, last.end)
                if overlap <= OVERLAP_TOKENS and overlap + measure.tokens(block.start, block.end) <= MAX_TOKENS:
                    start = last.start
            open_ = _Span(start=start, end=block.end, heading=block.heading, note=block.note)
        else:
            heading = open_.heading if open_.heading == block.heading else _common(open_.heading, block.heading)
            open_ = _Span(start=open_.start, end=block.end, heading=heading, note=open_.note or block.note)
        last = block
    if open_ is not None:
        yield open_


def _closes(measure: Measure, open_: _Span, block: Block, new_heading: bool) -> bool:
    have = measure.tokens(open_.start, open_.end)
    both = measure.tokens(open_.start, block.end)
    if block.hard or both > (MAX_TOKENS if have >= MIN_TOKENS else MAX_TOKENS + MIN_TOKENS):
        return True
    if both <= TARGET_TOKENS:
        return new_heading and have >= MIN_TOKENS
    return have >= MIN_TOKENS


def _cut(text: str, measure: Measure, block: Block) -> Iterator[_Span]:
    """A block too long for one passage: cut at lines, sentences, spaces, or anywhere, with a small overlap."""
    start = block.start
    while start < block.end:
        if measure.tokens(start, block.end) <= MAX_TOKENS:
            yield _Span(start=start, end=block.end, heading=block.heading, note=block.note)
            return
        limit = min(block.end, measure.reach(start, TARGET_TOKENS + 40))
        floor = measure.reach(start, TARGET_TOKENS * 0.6)
        end = _last_break(text, floor, limit)
        yield _Span(start=start, end=end, heading=block.heading, note=block.note)
        start = max(start + 1, _overlap_start(text, measure, start, end))


def _last_break(text: str, floor: int, limit: int) -> int:
    """The best place to cut in (floor, limit]: after the last line, sentence or space."""
    newline = text.rfind("\n", floor, limit)
    if newline >= 0:
        return newline + 1
    window = text[floor:limit]
    for pattern in (_SENTENCE_END, _SPACE):
        ends = [found.end() for found in pattern.finditer(window)]
        if ends:
            return floor + ends[-1]
    return limit


def _overlap_start(text: str, measure: Measure, start: int, end: int) -> int:
    """Where the next passage begins: at the last line, sentence or word within OVERLAP_TOKENS before `end`."""
    earliest = max(start + 1, measure.back(end, OVERLAP_TOKENS))
    newline = text.find("\n", earliest, end - 1)
    if newline >= 0 and newline + 1 < end:
        return newline + 1
    window = text[earliest : end - 1]
    for pattern in (_SENTENCE_END, _SPACE):
        found = pattern.search(window)
        if found is not None and earliest + found.end() < end:
            return earliest + found.end()
    return end
