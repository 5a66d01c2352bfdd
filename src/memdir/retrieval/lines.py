"""Inside a passage: the one to three lines that answer best, with exact positions.

Lines are scored by the words they share with the query (rare ones count more) and by their vectors. Long lines are taken
apart into sentences, so that a paragraph on one line still gives a short answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.statements import Statement, statements_of
from memdir.retrieval.types import Hit
from memdir.retrieval.units import Unit, units_of
from memdir.retrieval.words import Query
from memdir.store.text.analysis import forms_in, languages_of
from memdir.store.types import Chunk, Matrix, StoredChunk

HIT_TEXT_MAX_CHARS: Final = 2000
LINES_MAX: Final = 3
_LEXICAL_SHARE: Final = 0.45
_COVERED_SHARE: Final = 0.45
"""More for the words the more of them some statement has: vectors are for what is said in other words."""
_NEIGHBOUR_SHARE: Final = 0.8
"""A neighbouring line joins the answer when it scores at least this share of the best line."""
SENTENCE_LINES_MAX: Final = 5
"""Of a wrapped sentence, which is printed whole."""
BLOCK_LINES_MAX: Final = 6
"""Of a key, signature or heading with what is below it, when all of that may be the answer."""
READ_MAX: Final = 512
"""Passages whose statements are remembered; about 20 KiB each."""
_EQUAL_SHARE: Final = 0.92
_ABOVE_SHARE: Final = 0.8
"""Of what stands in the heading, question or signature above, beside what the line itself says."""
_BOTH_SHARE: Final = 0.3
"""More for a word that is in the line as well as above it: the line is about what it stands under."""
_KIND_SHARE: Final = 0.15
"""For a number where one is asked for, a name where a person is."""
_WANTS_NUMBER: Final = re.compile(
    r"\b(?:when|how (?:many|much|long|old|far|early|late|warm|cold|high|big|often)|what (?:time|date|year|day)"
    r"|which (?:number|year|day)|wann|wie ?(?:viele?|lange|hoch|alt|oft|spät|früh)|combien|quand|à quelle heure|cu[aá]nt[oa]s?"
    r"|cu[aá]ndo|quando|quant[oiae]|hoeveel|wanneer|hoe (?:laat|lang|hoog|oud)|сколько|когда"
    r"|pay|code|price|cost|date|number|phone|capacity|temperature)\b"
    r"|いくら|いくつ|何[時年月日人個回円]|いつ|多少|几|什么时候",
    re.IGNORECASE,
)
_WANTS_NAME: Final = re.compile(
    r"\b(?:who|whom|whose|wer|wem|wen|qui|quién|quem|chi|wie is|кто|кого|кому)\b|誰|谁", re.IGNORECASE
)
_NAME: Final = re.compile(
    r"(?<=[\w,;:=(\"'“„»«>|-] )[\"'“„»«]?[A-ZÀ-ÞА-Я][\w.'’-]+|[\"'][A-ZÀ-ÞА-Я][\w.'-]+(?: [A-ZÀ-ÞА-Я][\w.'-]+){0,3}[\"']"
)
_NUMBER: Final = re.compile(r"\d[\d.,:/-]*")
_SAME_COSINE: Final = 0.01
_SPREAD_MIN: Final = 0.25
"""Of the cosines in a passage. Where all lie closer together the model does not tell the lines apart (a script that it was not
trained on, rows of one shape), and what little differs is noise that must not outweigh a word."""
_LEAD_SHARE: Final = 0.5
_ALONE_SHARE: Final = 0.85
"""Of a heading or question under which nothing more is in the passage."""


def choose(text: str, units: Sequence[Unit], query: Query, cosines: Matrix) -> tuple[int, int]:
    """First and last unit of the answer, inclusive. `cosines[i]` compares the query with unit i.

    The best statement whole, what it stands under when that was asked for and is near, neighbours that are nearly as good.
    """
    found, have = _read(text)
    parts = _Parts.of(units, found, have, query, cosines)
    scores = parts.scores() + _KIND_SHARE * _of_kind(text, found, query)
    best = int(np.argmax(scores))
    chosen = found[best]
    first, last = chosen.first, min(chosen.last, chosen.first + SENTENCE_LINES_MAX - 1)
    equal = [
        one
        for number, one in enumerate(found)
        if one.parents and one.parents[-1:] == chosen.parents[-1:] and scores[number] >= _EQUAL_SHARE * scores[best]
    ]
    if len(equal) > 1:
        # The line above was asked for and nothing tells which of those below answers: the block is the answer.
        low, high = min(one.first for one in equal), max(one.last for one in equal)
        if _lines(units, min(first, low), max(last, high)) <= BLOCK_LINES_MAX:
            first, last = min(first, low), max(last, high)
    nearest = float(parts.cosines.max()) - _SAME_COSINE
    for number in chosen.parents:
        parent = found[number]
        most = LINES_MAX if len(equal) < 2 and parts.cosines[number] < nearest else BLOCK_LINES_MAX
        if (parent.lead or parent.comment) and parts.asked_above(best, number) and _lines(units, parent.first, last) <= most:
            first = min(first, parent.first)
    return _with_neighbours(units, found, scores, best, (first, last))


@lru_cache(maxsize=READ_MAX)
def _read(text: str) -> tuple[Sequence[Statement], Sequence[frozenset[str]]]:
    """The statements of a passage, and the words of each in every form; the same for every query."""
    found = statements_of(text, units_of(text))
    languages = languages_of(text)
    return found, [frozenset(forms_in(text[one.start : one.end], languages)) for one in found]


def _with_neighbours(
    units: Sequence[Unit], found: Sequence[Statement], scores: Matrix, best: int, chosen: tuple[int, int]
) -> tuple[int, int]:
    """Statements right before and after that are nearly as good, the better side first, while LINES_MAX lines are enough."""
    first, last = chosen
    wanted = max(float(scores[best]) * _NEIGHBOUR_SHARE, 0.05)
    low = high = best
    while True:
        sides = [number for number in (high + 1, low - 1) if 0 <= number < len(found) and scores[number] >= wanted]
        if not sides:
            return first, last
        number = max(sides, key=lambda side: float(scores[side]))
        top, bottom = min(first, found[number].first), max(last, found[number].last)
        if _lines(units, top, bottom) > LINES_MAX or bottom - top >= LINES_MAX:
            return first, last
        first, last, low, high = top, bottom, min(low, number), max(high, number)


def _of_kind(text: str, found: Sequence[Statement], query: Query) -> Matrix:
    """1 for each statement with a number or name that the query asks for and does not say itself, else 0."""
    pattern = _NUMBER if _WANTS_NUMBER.search(query.text) else _NAME if _WANTS_NAME.search(query.text) else None
    hits = np.zeros(len(found), dtype=np.float32)
    if pattern is None:
        return hits
    for number, one in enumerate(found):
        said = (value.group(0).strip("\"'“„»«") for value in pattern.finditer(text, one.start, one.end))
        hits[number] = not one.lead and any(value not in query.text for value in said)
    return hits


def _lines(units: Sequence[Unit], first: int, last: int) -> int:
    return units[last].line - units[first].line + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parts:
    """What of the query is in each statement, by words (columns of `own` and `above`) and by vectors."""

    statements: Sequence[Statement]
    own: npt.NDArray[np.bool_]
    above: npt.NDArray[np.bool_]
    """In what a statement stands under."""
    cosines: Matrix
    above_cosines: Matrix

    @classmethod
    def of(
        cls,
        units: Sequence[Unit],
        found: Sequence[Statement],
        have: Sequence[frozenset[str]],
        query: Query,
        cosines: Matrix,
    ) -> _Parts:
        shape = (len(found), len(query.forms))
        own = np.array([[not forms.isdisjoint(words) for forms in query.forms] for words in have], dtype=bool).reshape(shape)
        near = np.array([_cosine(units, one, cosines) for one in found], dtype=np.float32)
        above = np.zeros(shape, dtype=bool)
        highest = near.copy()
        for number, one in enumerate(found):
            for parent in one.parents:
                above[number] |= own[parent]
                highest[number] = max(highest[number], near[parent])
        return cls(statements=found, own=own, above=above, cosines=near, above_cosines=highest)

    def scores(self) -> Matrix:
        """One number a statement; those that only lead on to others come last."""
        new = (self.own & ~self.above).sum(axis=0)
        weights = np.log1p(len(self.own) / np.maximum(new, 1))
        raw = self.own @ weights + _ABOVE_SHARE * ((self.above & ~self.own) @ weights)
        raw += _BOTH_SHARE * ((self.above & self.own) @ weights)
        best = float(raw.max()) if len(raw) else 0.0
        lexical = raw / best if best > 0 else raw
        share = _LEXICAL_SHARE + _COVERED_SHARE * min(1.0, best / float(weights.sum()) if best > 0 else 0.0)
        # Cosines of short lines lie close together: what matters is the order within the passage.
        low, high = float(self.cosines.min()), float(self.cosines.max())
        spread = max(high - low, _SPREAD_MIN)
        own, above = ((part - low) / spread for part in (self.cosines, self.above_cosines))
        semantic = np.maximum(own, _ABOVE_SHARE * above + (1 - _ABOVE_SHARE) * own)
        scores: Matrix = (share * lexical + (1 - share) * semantic).astype(np.float32)
        led = {parent for one in self.statements for parent in one.parents}
        for number, one in enumerate(self.statements):
            if one.mail_header:
                scores[number] *= _LEAD_SHARE
            elif one.lead:
                scores[number] *= _LEAD_SHARE if number in led else _ALONE_SHARE
        return scores

    def asked_above(self, number: int, parent: int) -> bool:
        """Whether a statement lacks words of the query that are in what it stands under, or is no more like it."""
        missing = bool((self.own[parent] & ~self.own[number]).any())
        return missing or float(self.cosines[parent]) > float(self.cosines[number]) - _SAME_COSINE


def _cosine(units: Sequence[Unit], one: Statement, cosines: Matrix) -> float:
    """The mean over the units of a statement, each by how much of the statement is in it."""
    total = weight = 0.0
    for number in range(one.first, one.last + 1):
        shared = min(units[number].end, one.end) - max(units[number].start, one.start)
        total += shared * float(cosines[number])
        weight += shared
    return total / weight if weight else float(cosines[one.first])


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


def hit_at(
    stored: StoredChunk,
    start: int,
    end: int,
    *,
    score: float,
    signals: Mapping[str, float] | None = None,
    why: str | None = None,
    alike: int = 0,
) -> Hit:
    """Characters `start` to `end` of a passage as a hit."""
    place = extent(stored.chunk, start, end)
    return Hit(
        stored=stored,
        start_line=place.start_line,
        end_line=place.end_line,
        start_byte=place.start_byte,
        end_byte=place.end_byte,
        text=place.text,
        score=round(score, 4),
        title=stored.chunk.context.split(" › ", 1)[0] or None,
        signals=signals,
        why=why,
        alike=alike,
    )


class _byte_counter:  # noqa: N801
    """How many bytes a piece of the chunk has in the original, found from the size of the whole.

    UTF-8 first; then one byte a character (Windows-1252, KOI8-R and so on); then UTF-16 and UTF-32; then two bytes for what is
    beyond ASCII (Shift JIS, GB 18030, Big5, EUC); then UTF-8 with broken bytes, each of which was decoded to U+FFFD.
    """

    def __init__(self, chunk: Chunk) -> None:
        size = chunk.end_byte - chunk.start_byte
        text = chunk.text
        self._size = size
        self._encoding = "broken"
        if len(text.encode("utf-8", "replace")) == size:
            self._encoding = "utf-8"
        elif len(text) == size:
            self._encoding = "single"
        elif len(text.encode("utf-16-le", "replace")) == size:
            self._encoding = "utf-16-le"
        elif 4 * len(text) == size:
            self._encoding = "utf-32-le"
        elif _bytes_by_twos(text) == size:
            self._encoding = "double"

    def __call__(self, piece: str) -> int:
        if self._encoding == "single":
            return len(piece)
        if self._encoding == "double":
            return _bytes_by_twos(piece)
        if self._encoding == "broken":
            return min(self._size, len(piece.replace("\N{REPLACEMENT CHARACTER}", "?").encode("utf-8", "replace")))
        return len(piece.encode(self._encoding, "replace"))


def _bytes_by_twos(text: str) -> int:
    return len(text) + sum(char > "\x7f" for char in text)
