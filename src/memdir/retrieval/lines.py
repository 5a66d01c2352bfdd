"""Inside a passage: the one to three lines that answer best, with exact positions.

Lines are scored by the words they share with the query (rare ones count more) and by their vectors. Long lines are taken
apart into sentences, so that a paragraph on one line still gives a short answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from memdir.retrieval.units import Unit, flows
from memdir.retrieval.words import Query, stems
from memdir.store.types import Chunk, Matrix

HIT_TEXT_MAX_CHARS: Final = 2000
LINES_MAX: Final = 3
_LEXICAL_SHARE: Final = 0.45
_NEIGHBOUR_SHARE: Final = 0.8
"""A neighbouring line joins the answer when it scores at least this share of the best line."""
_HEADING: Final = re.compile(r"\s*(?:#{1,6}\s|={2,}\s|\*{2,}\s|---|\"\"\")")


def choose(text: str, units: Sequence[Unit], query: Query, cosines: Matrix) -> tuple[int, int]:
    """First and last unit of the answer, inclusive. `cosines[i]` compares the query with unit i.

    The best unit, the rest of its sentence when the line is wrapped, then neighbours that are nearly as good.
    """
    scores = _scores(text, units, query, cosines)
    best = int(np.argmax(scores))
    first = last = best
    while last - first + 1 < LINES_MAX and last + 1 < len(units) and flows(text, units[last], units[last + 1]):
        last += 1
    while last - first + 1 < LINES_MAX and first > 0 and flows(text, units[first - 1], units[first]):
        first -= 1
    while last - first + 1 < LINES_MAX and last + 1 < len(units) and _leads_on(text[units[last].start : units[last].end]):
        last += 1
    wanted = max(float(scores[best]) * _NEIGHBOUR_SHARE, 0.05)
    while last - first + 1 < LINES_MAX:
        after = scores[last + 1] if last + 1 < len(units) and _near(units[last], units[last + 1]) else -1.0
        before = scores[first - 1] if first > 0 and _near(units[first - 1], units[first]) else -1.0
        if max(after, before) < wanted:
            break
        if after >= before:
            last += 1
        else:
            first -= 1
    return first, last


def _leads_on(line: str) -> bool:
    """A heading, a question, or the opening of a block says what comes next; alone it answers nothing."""
    return line.endswith(("?", "？", ":", "{", "(")) or _HEADING.match(line) is not None


def _near(left: Unit, right: Unit) -> bool:
    return right.line - left.line <= 1


def _scores(text: str, units: Sequence[Unit], query: Query, cosines: Matrix) -> Matrix:
    wanted = query.stems
    found = [wanted & frozenset(stems(text[unit.start : unit.end])) for unit in units]
    frequency: dict[str, int] = {}
    for words in found:
        for word in words:
            frequency[word] = frequency.get(word, 0) + 1
    weight = {word: math.log(1 + len(units) / count) for word, count in frequency.items()}
    raw = np.array([sum(weight[word] for word in words) for words in found], dtype=np.float32)
    lexical = raw / raw.max() if len(raw) and raw.max() > 0 else raw
    # Cosines of short lines lie close together: what matters is the order within the passage.
    low, high = float(cosines.min()), float(cosines.max())
    semantic = (cosines - low) / (high - low) if high - low > 1e-6 else np.ones_like(cosines)
    scores: Matrix = (_LEXICAL_SHARE * lexical + (1 - _LEXICAL_SHARE) * semantic).astype(np.float32)
    for index, unit in enumerate(units):
        if _HEADING.match(text[unit.start : unit.end]):
            scores[index] *= 0.85
    return scores


@dataclass(frozen=True, slots=True, kw_only=True)
class Extent:
    """Where the chosen lines stand in the document."""

    start_line: int
    end_line: int
    start_byte: int
    end_byte: int
    text: str


def extent(chunk: Chunk, start: int, end: int) -> Extent:
    """Positions of characters `start` to `end` of the chunk's text; at most HIT_TEXT_MAX_CHARS of it."""
    end = min(end, start + HIT_TEXT_MAX_CHARS)
    width = _byte_counter(chunk)
    before = width(chunk.text[:start])
    return Extent(
        start_line=chunk.start_line + chunk.text.count("\n", 0, start),
        end_line=chunk.start_line + chunk.text.count("\n", 0, max(start, end - 1)),
        start_byte=chunk.start_byte + before,
        end_byte=chunk.start_byte + before + width(chunk.text[start:end]),
        text=chunk.text[start:end],
    )


class _byte_counter:  # noqa: N801
    """How many bytes a piece of the chunk has in the original, found from the size of the whole.

    UTF-8 first; then one byte a character (Windows-1252); then UTF-16 and UTF-32; then UTF-8 with broken bytes, each of
    which was decoded to U+FFFD.
    """

    def __init__(self, chunk: Chunk) -> None:
        size = chunk.end_byte - chunk.start_byte
        text = chunk.text
        self._size = size
        self._encoding = "broken"
        if len(text.encode("utf-8", "replace")) == size:
            self._encoding = "utf-8"
        elif len(text) == size:
            self._encoding = "cp1252"
        elif len(text.encode("utf-16-le", "replace")) == size:
            self._encoding = "utf-16-le"
        elif 4 * len(text) == size:
            self._encoding = "utf-32-le"

    def __call__(self, piece: str) -> int:
        if self._encoding == "cp1252":
            return len(piece)
        if self._encoding == "broken":
            return min(self._size, len(piece.replace("\N{REPLACEMENT CHARACTER}", "?").encode("utf-8", "replace")))
        return len(piece.encode(self._encoding, "replace"))
