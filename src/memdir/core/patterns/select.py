"""The lines of one file that are shown: what grep's options of the same letters choose, for the mount and the server alike."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from memdir.core.limits import EXACT_LINE_MAX_BYTES, EXACT_TEXT_MAX_BYTES, MIB
from memdir.core.patterns.matcher import Line, Matcher, is_binary

_GROUP_MAX: Final = 100
"""Lines that were asked for in one excerpt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Which lines of a file that matches (or, with `invert`, does not), and what of them."""

    invert: bool = False
    only_matching: bool = False
    """The matches themselves, each by itself."""
    before: int | None = None
    after: int | None = None
    """Lines around; with either, neighbours are one excerpt."""
    max_count: int | None = None
    """Lines of each file."""
    files_only: bool = False
    """The first of each file."""
    count: bool = False
    """How many lines there are, and none of them."""

    @property
    def has_context(self) -> bool:
        return self.before is not None or self.after is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """Lines `first` to `last`, counted from 1, without the last line end. Bytes are half open: from the match in the first
    line, if there is one, to the end of that in the last."""

    first: int
    last: int
    start_byte: int
    end_byte: int
    text: bytes
    matched: tuple[int, ...]
    """Numbers of the lines in it that were asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What was found in one file."""

    excerpts: tuple[Excerpt, ...] = ()
    count: int = 0
    binary: bool = False
    """It matches, and is none whose lines can be shown."""


@dataclass(slots=True)
class Room:
    """What is left of the lines that one answer may hold."""

    lines: int
    text_bytes: int = EXACT_TEXT_MAX_BYTES

    def take(self, excerpts: Iterator[Excerpt]) -> Iterator[Excerpt]:
        """As long as there is room; the last one may be larger than it."""
        for excerpt in excerpts:
            yield excerpt
            self.lines -= len(excerpt.matched)
            self.text_bytes -= len(excerpt.text)
            if self.is_full:
                return

    @property
    def is_full(self) -> bool:
        return self.lines <= 0 or self.text_bytes <= 0

    @property
    def note(self) -> str | None:
        """For an answer that ends because its text takes too much room."""
        return None if self.text_bytes > 0 else f"stopped after {EXACT_TEXT_MAX_BYTES // MIB} MiB of lines"


def look_into(matcher: Matcher, data: bytes, choice: Choice, room: Room) -> Look:
    """The lines (or matches) of a file for which there is room; a count is bounded by `choice.max_count` only."""
    binary = is_binary(data)
    if binary:
        data = data.replace(b"\0", b"\n")  # as grep does, so that no match reaches over a NUL
    lines = islice(_lines(matcher, data, invert=choice.invert), 1 if choice.files_only else choice.max_count)
    if choice.count:
        return Look(count=sum(1 for _ in lines))
    if binary:
        return Look(binary=next(lines, None) is not None)
    lines = islice(lines, room.lines)
    if choice.only_matching and not choice.files_only:
        parts = islice(matcher.parts(data, lines), room.lines)
        return Look(excerpts=tuple(room.take(_excerpt(data, [part], (part.number,)) for part in parts)))
    return Look(excerpts=tuple(room.take(_excerpts(data, lines, choice))))


def _lines(matcher: Matcher, data: bytes, *, invert: bool) -> Iterator[Line]:
    if not invert:
        yield from matcher.lines(data)
        return
    number, at = 1, 0
    for line in matcher.lines(data):
        yield from _every_line(data, number, at, line.line_start)
        number, at = line.number + 1, line.line_end + 1
    yield from _every_line(data, number, at, len(data))


def _every_line(data: bytes, number: int, at: int, stop: int) -> Iterator[Line]:
    while at < stop:
        end = data.find(b"\n", at, stop)
        end = stop if end < 0 else end
        yield Line(number, at, end, at, end)
        number, at = number + 1, end + 1


def _excerpts(data: bytes, lines: Iterator[Line], choice: Choice) -> Iterator[Excerpt]:
    if not choice.has_context:
        yield from (_excerpt(data, [line], (line.number,)) for line in lines)
        return
    before, after = choice.before or 0, choice.after or 0
    group: list[Line] = []
    up = before
    for line in lines:
        gap = line.number - group[-1].number - 1 if group else 0
        if gap > before + after:
            yield _around(data, group, up, after)
            group, up = [], before
        elif len(group) == _GROUP_MAX:  # the next excerpt goes on where this one ends
            yield _around(data, group, up, 0)
            group, up = [], gap
        group.append(line)
    if group:
        yield _around(data, group, up, after)


def _around(data: bytes, group: list[Line], before: int, after: int) -> Excerpt:
    start, first = group[0].line_start, group[0].number
    while start and group[0].number - first < before:
        start, first = data.rfind(b"\n", 0, start - 1) + 1, first - 1
    end, last = group[-1].line_end, group[-1].number
    while end + 1 < len(data) and last - group[-1].number < after:
        following = data.find(b"\n", end + 1)
        end, last = len(data) if following < 0 else following, last + 1
    own = {line.number: line for line in group}
    lines = [own.get(line.number, line) for line in _every_line(data, first, start, end)]
    if len(lines) < last - first + 1:  # the last one is empty
        lines.append(own.get(last, Line(last, end, end, end, end)))
    return _excerpt(data, lines, tuple(own))


def _excerpt(data: bytes, lines: list[Line], matched: tuple[int, ...]) -> Excerpt:
    return Excerpt(
        first=lines[0].number,
        last=lines[-1].number,
        start_byte=lines[0].start_byte,
        end_byte=lines[-1].end_byte,
        text=b"\n".join(_shown(data, line) for line in lines),
        matched=matched,
    )


def _shown(data: bytes, line: Line) -> bytes:
    """The line, or the part of it that begins a little before the match."""
    first = max(line.line_start, min(line.start_byte - EXACT_LINE_MAX_BYTES // 2, line.line_end - EXACT_LINE_MAX_BYTES))
    return data[first : min(line.line_end, first + EXACT_LINE_MAX_BYTES)]
