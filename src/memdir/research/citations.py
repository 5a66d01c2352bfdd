"""Citations `[sources/NAME.md#L3-L9@1a2b3c4d]`: lines of an archived page, with the first eight hex digits of their SHA-256.

Models write the path and the lines; the hash is added when the file is written, and proves later that the lines are the
same."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from memdir.store.text.sentences import sentences as spans

SPAN_MAX_LINES: Final = 60
"""A citation of a whole page proves nothing."""

PATTERN: Final = re.compile(
    r"\[?(?P<path>(?:\.{1,2}/)*sources/[^\s\[\]()#@`*]+?\.md)#L(?P<first>\d{1,7})(?:\s?[-–]\s?L?(?P<last>\d{1,7}))?"
    r"(?:@(?P<hash>[0-9a-f]{8}))?\]?(?P<link>\([^()\s]{0,300}\))?"
)
_MARK: Final = re.compile("[\ue000-\uf8ff]")
_MARKS_FIRST: Final = 0xE000
_MARKS_COUNT: Final = 0x1900
_FENCE: Final = re.compile(r"\s{0,3}(?:```|~~~)")
_SKIPPED: Final = re.compile(r"\s*(?:#{1,6}\s|\|?[\s:|-]+\|?\s*$|<!--)")
_RULE: Final = re.compile(r"\s*\|(?:\s*:?-+:?\s*\|)+\s*")
_ITEM: Final = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s+(?:\[[ xX~]\]\s+)?|\s*(?:>\s?)+|\s*\|\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Citation:
    """`first` and `last` count lines from 1; `span_hash` is empty when it was never stamped."""

    path: str
    first: int
    last: int
    span_hash: str = ""

    def __str__(self) -> str:
        return f"[{self.path}#L{self.first}-L{self.last}{'@' + self.span_hash if self.span_hash else ''}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A statement of a Markdown text, without its citations. `line` counts from 1; `start` and `end` are where it stands in the
    text, its citations included; sentences of one paragraph, item or row have one `block`."""

    text: str
    line: int
    block: int
    start: int
    end: int
    citations: tuple[Citation, ...]


def found(match: re.Match[str]) -> Citation:
    path = match["path"].lstrip("./")
    first = int(match["first"])
    return Citation(path=path, first=first, last=int(match["last"] or first), span_hash=match["hash"] or "")


def citations(text: str) -> Iterator[tuple[int, Citation]]:
    """Every citation with the number of its line."""
    for match in PATTERN.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, found(match)


def span_hash(lines: Sequence[str], first: int, last: int) -> str:
    return hashlib.sha256("\n".join(lines[first - 1 : last]).encode()).hexdigest()[:8]


def stamped(text: str, lines_of: Callable[[str], Sequence[str]]) -> str:
    """`text` with every citation in its one form, and hashed where its lines exist and it has no hash yet."""

    def form(match: re.Match[str]) -> str:
        one = found(match)
        lines = lines_of(one.path)
        if not one.span_hash and 1 <= one.first <= one.last <= len(lines):
            one = Citation(path=one.path, first=one.first, last=one.last, span_hash=span_hash(lines, one.first, one.last))
        return str(one)

    return PATTERN.sub(form, text)


def sentences(text: str) -> list[Sentence]:
    """The statements of a text: sentences of paragraphs, items and rows. Headings, rules, code and comments are none.

    Citations that follow the full stop belong to the sentence before it."""
    marks = _Marks(text)
    marked = marks.text
    result: list[Sentence] = []
    for block, (start, end) in enumerate(_blocks(marked)):
        for first, last in _split(marked, start, end):
            piece = marked[first:last]
            bare = _MARK.sub(" ", piece).strip()
            owned = marks.citations(piece)
            if not bare.strip(" .,;:|*_-()[]"):
                if owned and result and result[-1].end >= marks.place(start) - 1:
                    before = result[-1]
                    result[-1] = Sentence(
                        text=before.text,
                        line=before.line,
                        block=before.block,
                        start=before.start,
                        end=marks.place(last),
                        citations=(*before.citations, *owned),
                    )
                continue
            at = marks.place(first)
            clean = re.sub(r"\s+", " ", bare).replace(" .", ".").replace(" ,", ",")
            line = text.count("\n", 0, at) + 1
            result.append(Sentence(text=clean, line=line, block=block, start=at, end=marks.place(last), citations=owned))
    return result


class _Marks:
    """A text with each citation as one private character, so that sentences are split beside citations and not in them."""

    def __init__(self, text: str) -> None:
        self._cited: list[Citation] = []
        self._saved = [0]
        self.text = PATTERN.sub(self._mark, _MARK.sub("?", text))
        self._places = [match.start() for match in _MARK.finditer(self.text)]

    def _mark(self, match: re.Match[str]) -> str:
        if len(self._cited) >= _MARKS_COUNT:
            return match[0]
        self._cited.append(found(match))
        self._saved.append(self._saved[-1] + len(match[0]) - 1)
        return chr(_MARKS_FIRST + len(self._cited) - 1)

    def citations(self, piece: str) -> tuple[Citation, ...]:
        return tuple(self._cited[ord(mark) - _MARKS_FIRST] for mark in _MARK.findall(piece))

    def place(self, index: int) -> int:
        """Where in the given text a place of the marked one stands."""
        return index + self._saved[bisect_left(self._places, index)]


def _blocks(marked: str) -> Iterator[tuple[int, int]]:
    """From where to where paragraphs, items and rows go, their markers left out."""
    fenced = False
    start = end = -1
    at = 0
    lines = marked.split("\n")
    for number, line in enumerate(lines):
        stop = at + len(line)
        if _FENCE.match(line):
            fenced = not fenced
            skipped = True
        else:
            heads_table = line.lstrip().startswith("|") and number + 1 < len(lines) and bool(_RULE.fullmatch(lines[number + 1]))
            skipped = fenced or heads_table or not line.strip() or bool(_SKIPPED.match(line))
        item = _ITEM.match(line)
        if (skipped or item) and start >= 0:
            yield start, end
            start = -1
        if not skipped:
            if start < 0:
                start = at + (item.end() if item else len(line) - len(line.lstrip()))
            end = stop
        at = stop + 1
    if start >= 0:
        yield start, end


def _split(marked: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Sentences with what stands behind them: citations between two belong to the one before."""
    begins = [first for first, _last in spans(_MARK.sub(" ", marked), start, end)][1:]
    yield from pairwise((start, *begins, end))
