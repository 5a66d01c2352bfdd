"""From ranked hits to what an agent reads: hits of a file joined where they touch, lines around them, a budget in tokens.

Filling a budget is a knapsack whose items lose value when others of their kind are in it. The greedy choice by value per token
is good, and not arbitrarily bad once the single best item is taken first where it fits (Khuller, Moss and Naor, "The Budgeted
Maximum Coverage Problem", 1999). Everything here is pure: the same hits give the same spans.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

CONTEXT_LINES_MAX: Final = 100
"""Lines before and after a hit."""
SPAN_MAX_BYTES: Final = 64 * 1024
"""Of one span with what is around it; a hit alone may be longer."""
LEFT_OUT_PATHS_MAX: Final = 100
"""Paths named of those that a budget left out; all are counted."""
AGAIN: Final = 0.5
"""Each further span of a file is worth this much of the one before: a second file says more than a second place in one."""
CHARS_A_TOKEN: Final = 4
"""Of ASCII text, as a rule of thumb of all current tokenizers; every other character counts as a token."""
HEAD_TOKENS: Final = 4
"""A span's line numbers."""

Read = Callable[[str], bytes | None]
"""The bytes of a document by its id, UTF-8; None when there are none, or too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Lines are counted from 1 and both ends belong to it; bytes are half open, without the last line's end."""

    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """What is shown of a document in one piece."""

    document_id: str
    path: str
    score: float
    place: Place
    text: str
    """Exactly the bytes of `place`, decoded."""
    hits: tuple[int, ...]
    """Which of the ranked hits are in it, the best first."""

    @property
    def order(self) -> tuple[float, str, int]:
        """Best first, ties by path and offset."""
        return (-self.score, self.path or self.document_id, self.place.start_byte)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Spans that did not fit a budget."""

    count: int
    paths: tuple[str, ...]
    """Of their documents, the best first, at most LEFT_OUT_PATHS_MAX."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """The spans that fit, in the order that they came in, and what they cost."""

    spans: tuple[Span, ...]
    tokens: int
    left_out: LeftOut


def joined(spans: Sequence[Span], read: Read, *, context_lines: int = 0) -> list[Span]:
    """Spans widened by the lines around them, then those of one document that touch or overlap made into one with the best of
    their scores. Best first. A document that cannot be read, or in which a span's text does not stand any more, keeps its spans
    as they are."""
    if context_lines > CONTEXT_LINES_MAX:
        raise ValueError(f"at most {CONTEXT_LINES_MAX} lines around a hit")
    of_document: dict[str, list[Span]] = {}
    for span in spans:
        of_document.setdefault(span.document_id, []).append(span)
    made: list[Span] = []
    for document_id, own in of_document.items():
        if len(own) == 1 and context_lines == 0:
            made += own
            continue
        data = read(document_id)
        made += own if data is None else _joined_in(data, own, context_lines)
    return sorted(made, key=lambda span: span.order)


def together(spans: Sequence[Span]) -> list[Span]:
    """Spans of one document one after the other as they stand in it, documents by their best span."""
    best: dict[str, tuple[float, str, int]] = {}
    for span in spans:
        best[span.document_id] = min(best.get(span.document_id, span.order), span.order)
    return sorted(spans, key=lambda span: (best[span.document_id], span.place.start_byte, span.place.end_byte))


def _joined_in(data: bytes, spans: Sequence[Span], context_lines: int) -> list[Span]:
    places = [_standing(data, span) for span in spans]
    widened = [
        (_widened(data, place, context_lines), replace(span, place=place))
        for place, span in zip(places, spans, strict=True)
        if place is not None
    ]
    widened.sort(key=lambda pair: (pair[0].start_byte, pair[0].end_byte, pair[1].order))
    runs: list[tuple[Place, list[Span]]] = []
    for place, span in widened:
        if runs and _touch(data, runs[-1][0], place):
            last, members = runs[-1]
            if place.end_byte > last.end_byte:
                last = replace(last, end_line=place.end_line, end_byte=place.end_byte)
            runs[-1] = (last, [*members, span])
        else:
            runs.append((place, [span]))
    lost = [span for place, span in zip(places, spans, strict=True) if place is None]
    return lost + [_one(data, place, members) for place, members in runs]


def _standing(data: bytes, span: Span) -> Place | None:
    """Where a span's text stands: in its place, or around it (the line of a literal match). None when it does not any more."""
    text, place = span.text.encode(), span.place
    if data.startswith(text, place.start_byte):
        return place
    first = data.rfind(b"\n", 0, place.start_byte) + 1
    found = data.find(text, first, _line_end(data, place.end_byte))
    return None if found < 0 else replace(place, start_byte=found, end_byte=found + len(text))


def _one(data: bytes, place: Place, members: Sequence[Span]) -> Span:
    best = min(members, key=lambda span: span.order)
    text = best.text if place == best.place else data[place.start_byte : place.end_byte].decode("utf-8", "replace")
    hits = tuple(dict.fromkeys(hit for span in sorted(members, key=lambda span: span.order) for hit in span.hits))
    return replace(best, place=place, text=text, hits=hits)


def _touch(data: bytes, first: Place, second: Place) -> bool:
    """Whether nothing but the end of a line is between two places in their order."""
    return second.start_byte <= first.end_byte or data[first.end_byte : second.start_byte] in (b"\n", b"\r\n")


def _widened(data: bytes, place: Place, lines: int) -> Place:
    """`place` with whole lines around it, as many as SPAN_MAX_BYTES has room for: before and after in turns."""
    if lines == 0:
        return place
    start, end = place.start_byte, place.end_byte
    start_line, end_line = place.start_line, place.end_line
    start = data.rfind(b"\n", 0, start) + 1
    end = _line_end(data, end)
    for _ in range(lines):
        before = start if start == 0 else data.rfind(b"\n", 0, start - 1) + 1
        if before < start and end - before <= SPAN_MAX_BYTES:
            start, start_line = before, start_line - 1
        after = _line_end(data, _next_line(data, end))
        if _next_line(data, end) < len(data) and after - start <= SPAN_MAX_BYTES:
            end, end_line = after, end_line + 1
    return Place(start_line=start_line, end_line=end_line, start_byte=start, end_byte=end)


def _next_line(data: bytes, end: int) -> int:
    """The first byte behind the line end at `end`."""
    found = data.find(b"\n", end)
    return len(data) if found < 0 else found + 1


def _line_end(data: bytes, at: int) -> int:
    """Where the line that holds the byte `at` ends, without `\\r` and `\\n`."""
    found = data.find(b"\n", at)
    end = len(data) if found < 0 else found
    return end - 1 if end > at and data[end - 1 : end] == b"\r" else end


def tokens_of(text: str) -> int:
    """About how many tokens a text is to a model; no tokenizer is asked, so that every model gets about the same."""
    ascii_chars = sum(map(str.isascii, text)) if not text.isascii() else len(text)
    return math.ceil(ascii_chars / CHARS_A_TOKEN) + len(text) - ascii_chars


def filled(spans: Sequence[Span], budget_tokens: int) -> Filled:
    """The most useful of `spans` that together cost at most `budget_tokens`: the best one first if it fits at all, then by
    score per token, each further one of a file for less. A file's path is paid for once."""
    costs = [HEAD_TOKENS + tokens_of(span.text) for span in spans]
    heads = {span.document_id: tokens_of(span.path) for span in spans}
    taken: dict[str, int] = {}
    chosen: set[int] = set()
    spent = 0
    open_ = sorted(range(len(spans)), key=lambda place: spans[place].order)
    while open_:
        best: tuple[float, int] | None = None
        for place in open_:
            span = spans[place]
            times = taken.get(span.document_id, 0)
            cost = costs[place] + (0 if times else heads[span.document_id])
            if spent + cost > budget_tokens:
                continue
            worth = math.inf if not chosen and place == open_[0] else span.score * AGAIN**times / cost
            if best is None or worth > best[0]:
                best = (worth, place)
        if best is None:
            break
        place = best[1]
        document_id = spans[place].document_id
        spent += costs[place] + (0 if taken.get(document_id) else heads[document_id])
        taken[document_id] = taken.get(document_id, 0) + 1
        chosen.add(place)
        open_.remove(place)
    paths = tuple(dict.fromkeys(spans[place].path for place in open_))
    return Filled(
        spans=tuple(span for place, span in enumerate(spans) if place in chosen),
        tokens=spent,
        left_out=LeftOut(count=len(open_), paths=paths[:LEFT_OUT_PATHS_MAX]),
    )
