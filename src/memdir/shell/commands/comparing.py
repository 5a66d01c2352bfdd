"""Commands that compare files and carry changes over: diff, cmp, patch."""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.shell.commands.call import Call, base, joined
from memdir.shell.commands.dates import full_time, zone
from memdir.shell.commands.options import parsed

_LINES_MAX: Final = 100_000
_CELLS_MAX: Final = 4_000_000
"""Of the table of an exact comparison, after what is equal at both ends is set aside: 2,000 x 2,000 changed lines. Beyond it
the longest equal blocks are looked for (difflib), which is as correct and not always as short."""
NO_NEWLINE: Final = "\\ No newline at end of file"
_WIDTH: Final = 130
_TAB: Final = 8

_DIFF_LONG: Final = {
    "unified?": "u", "context?": "context", "brief": "q", "report-identical-files": "s", "recursive": "r", "ignore-case": "i",
    "ignore-all-space": "w", "ignore-space-change": "b", "ignore-blank-lines": "B", "side-by-side": "y", "normal": "normal",
    "new-file": "N", "text": "a", "strip-trailing-cr": "cr", "suppress-common-lines": "suppress", "width=": "W", "ed": "e",
    "exclude=": "x", "color?": "-", "minimal": "d", "label=": "L", "no-dereference": "-", "ignore-trailing-space": "Z",
    "rcs": "n",
}  # fmt: skip

Block = tuple[int, int, int, int]
"""Lines `a1:a2` of the old were changed into `b1:b2` of the new."""


def diff(call: Call) -> None:
    """diff [OPTION]... OLD NEW"""
    given = [re.sub(r"^-([uUcC])=?(\d+)$", lambda match: f"-{match[1].upper()}{match[2]}", arg) for arg in call.args]
    found, operands = parsed(given, "uqsriwbByNapcendtEZ", "UCWxL", _DIFF_LONG)
    options = dict(found)
    if len(operands) != 2:
        raise UsageError("missing operand" if len(operands) < 2 else f"extra operand '{operands[2]}'")
    old, new = operands
    if call.space.is_dir(old) != call.space.is_dir(new) and "-" not in operands:
        if call.space.is_dir(old):
            old = joined(old, base(new))
        else:
            new = joined(new, base(old))
    comparison = _Comparison(call, options, [value for name, value in found if name == "L"])
    if call.space.is_dir(old):
        comparison.folders(old, new, [value for name, value in found if name == "x"])
    else:
        comparison.files(old, new, head=None)


class _Comparison:
    """The options of one `diff`, and what is printed by them."""

    def __init__(self, call: Call, options: dict[str, str], labels: Sequence[str]) -> None:
        self._call = call
        self._options = options
        self._labels = labels
        if "y" in options:
            self._style = "side"
        elif "e" in options:
            self._style = "ed"
        elif "n" in options:
            self._style = "rcs"
        elif {"c", "C", "context"} & options.keys():
            self._style = "context"
        else:
            self._style = "unified" if {"u", "U"} & options.keys() else "normal"
        around = options.get("U") or options.get("C") or options.get("context") or options.get("u") or "3"
        if not around.isdigit():
            raise UsageError(f"invalid context length '{around}'")
        self._around = int(around)

    def folders(self, old: str, new: str, excluded: Sequence[str]) -> None:
        space, call = self._call.space, self._call
        here, there = set(space.names(old)), set(space.names(new))
        for name in sorted(here | there):
            if any(fnmatch.fnmatchcase(name, pattern) for pattern in excluded):
                continue
            left, right = joined(old, name), joined(new, name)
            if name not in there or name not in here:
                if "N" in self._options and not space.is_dir(left if name in here else right):
                    self.files(left, right, head=self._head(left, right))
                    continue
                call.say(f"Only in {old.rstrip('/') if name in here else new.rstrip('/')}: {name}")
                call.status = max(call.status, 1)
            elif space.is_dir(left) and space.is_dir(right):
                if "r" in self._options:
                    self.folders(left, right, excluded)
                else:
                    call.say(f"Common subdirectories: {left} and {right}")
            elif space.is_dir(left) or space.is_dir(right):
                kinds = ["directory" if space.is_dir(path) else "regular file" for path in (left, right)]
                call.say(f"File {left} is a {kinds[0]} while file {right} is a {kinds[1]}")
                call.status = max(call.status, 1)
            else:
                self.files(left, right, head=self._head(left, right))

    def _head(self, left: str, right: str) -> str:
        flags = " ".join(arg for arg in self._call.args if arg.startswith("-"))
        return f"diff {flags} {left} {right}" if flags else f"diff {left} {right}"

    def files(self, old: str, new: str, *, head: str | None) -> None:
        call, options = self._call, self._options
        data: list[bytes] = []
        for path in (old, new):
            try:
                data.append(call.read(path))
            except FsError as error:
                if "N" in options and not call.space.is_there(path):
                    data.append(b"")
                    continue
                call.fail(f"{path}: {error.message}", 2)
        if len(data) < 2:
            return
        if any(b"\0" in one[:8192] for one in data) and "a" not in options:
            if data[0] != data[1]:
                call.say(f"Binary files {old} and {new} differ")
                call.status = max(call.status, 1)
            return
        left, right = (one.decode("utf-8", "surrogateescape") for one in data)
        a, b = lines_of(left), lines_of(right)
        if max(len(a), len(b)) > _LINES_MAX:
            call.fail(f"{old} and {new} have more than {_LINES_MAX:,} lines", 2)
            return
        blocks = self._blocks(a, b)
        if not blocks:
            if "s" in options:
                call.say(f"Files {old} and {new} are identical")
            if self._style == "side" and "suppress" not in options:
                self._side(a, b, [])
            return
        call.status = max(call.status, 1)
        if "q" in options:
            call.say(f"Files {old} and {new} differ")
            return
        if head is not None:
            call.say(head)
        printing = {
            "normal": self._normal, "ed": self._ed, "rcs": self._rcs, "side": self._side, "unified": self._unified,
            "context": self._context,
        }[self._style]  # fmt: skip
        if self._style in ("unified", "context"):
            self._names(old, new)
        printing(a, b, blocks)

    def _blocks(self, a: list[str], b: list[str]) -> list[Block]:
        keys_a, keys_b = [self._key(line) for line in a], [self._key(line) for line in b]
        blocks = changed_blocks(keys_a, keys_b)
        if "B" in self._options:
            blocks = [
                block for block in blocks if any(line.strip() for line in (*a[block[0] : block[1]], *b[block[2] : block[3]]))
            ]
        return blocks

    def _key(self, line: str) -> str:
        options = self._options
        if "cr" in options:
            line = line.replace("\r\n", "\n")
        if "w" in options:
            line = re.sub(r"\s+", "", line)
        elif "b" in options:
            line = re.sub(r"\s+", " ", line).rstrip()
        elif {"Z", "E"} & options.keys():
            line = line.rstrip()
        return line.lower() if "i" in options else line

    def _names(self, old: str, new: str) -> None:
        marks = ("---", "+++") if self._style == "unified" else ("***", "---")
        for number, (mark, path) in enumerate(zip(marks, (old, new), strict=True)):
            if number < len(self._labels):
                self._call.say(f"{mark} {self._labels[number]}")
            else:
                self._call.say(f"{mark} {path}\t{self._time(path)}")

    def _time(self, path: str) -> str:
        try:
            when = self._call.space.stat(path).mtime_ns
        except FsError:
            when = 0
        return full_time(when, zone(self._call.env))

    def _put(self, mark: str, line: str) -> None:
        if line.endswith("\n"):
            self._call.say(mark + line, end="")
        else:
            self._call.say(f"{mark}{line}\n{NO_NEWLINE}")

    def _normal(self, a: list[str], b: list[str], blocks: list[Block]) -> None:
        for a1, a2, b1, b2 in blocks:
            letter = "c" if a1 < a2 and b1 < b2 else "d" if a1 < a2 else "a"
            self._call.say(f"{_span(a1, a2)}{letter}{_span(b1, b2)}")
            for line in a[a1:a2]:
                self._put("< ", line)
            if letter == "c":
                self._call.say("---")
            for line in b[b1:b2]:
                self._put("> ", line)

    def _ed(self, _a: list[str], b: list[str], blocks: list[Block]) -> None:
        for a1, a2, b1, b2 in reversed(blocks):
            letter = "c" if a1 < a2 and b1 < b2 else "d" if a1 < a2 else "a"
            self._call.say(f"{_span(a1, a2)}{letter}")
            if letter != "d":
                for line in b[b1:b2]:
                    self._call.say(line.rstrip("\n"))
                self._call.say(".")

    def _rcs(self, _a: list[str], b: list[str], blocks: list[Block]) -> None:
        for a1, a2, b1, b2 in blocks:
            if a1 < a2:
                self._call.say(f"d{a1 + 1} {a2 - a1}")
            if b1 < b2:
                self._call.say(f"a{a2} {b2 - b1}")
                for line in b[b1:b2]:
                    self._call.say(line, end="")

    def _unified(self, a: list[str], b: list[str], blocks: list[Block]) -> None:
        for hunk in _hunks(blocks, len(a), len(b), self._around):
            self._call.say(f"@@ -{_range(hunk.a1, hunk.a2)} +{_range(hunk.b1, hunk.b2)} @@")
            at = hunk.a1
            for a1, a2, b1, b2 in hunk.blocks:
                for line in a[at:a1]:
                    self._put(" ", line)
                for line in a[a1:a2]:
                    self._put("-", line)
                for line in b[b1:b2]:
                    self._put("+", line)
                at = a2
            for line in a[at : hunk.a2]:
                self._put(" ", line)

    def _context(self, a: list[str], b: list[str], blocks: list[Block]) -> None:
        for hunk in _hunks(blocks, len(a), len(b), self._around):
            self._call.say("***************")
            self._call.say(f"*** {_pair(hunk.a1, hunk.a2)} ****")
            if any(a1 < a2 for a1, a2, _, _ in hunk.blocks):
                self._context_side(a, hunk.a1, hunk.a2, [(a1, a2, b1 < b2) for a1, a2, b1, b2 in hunk.blocks], "-")
            self._call.say(f"--- {_pair(hunk.b1, hunk.b2)} ----")
            if any(b1 < b2 for _, _, b1, b2 in hunk.blocks):
                self._context_side(b, hunk.b1, hunk.b2, [(b1, b2, a1 < a2) for a1, a2, b1, b2 in hunk.blocks], "+")

    def _context_side(self, lines: list[str], at: int, end: int, blocks: list[tuple[int, int, bool]], mark: str) -> None:
        for first, last, both in blocks:
            for line in lines[at:first]:
                self._put("  ", line)
            for line in lines[first:last]:
                self._put("! " if both else f"{mark} ", line)
            at = last
        for line in lines[at:end]:
            self._put("  ", line)

    def _side(self, a: list[str], b: list[str], blocks: list[Block]) -> None:
        width = int(self._options.get("W", _WIDTH))
        at = 0
        both = [*blocks, (len(a), len(a), len(b), len(b))]
        behind = 0
        for a1, a2, b1, b2 in both:
            if "suppress" not in self._options:
                for offset in range(a1 - at):
                    self._row(a[at + offset], " ", b[behind + offset], width)
            pairs = min(a2 - a1, b2 - b1)
            for offset in range(pairs):
                self._row(a[a1 + offset], "|", b[b1 + offset], width)
            for line in a[a1 + pairs : a2]:
                self._row(line, "<", "", width)
            for line in b[b1 + pairs : b2]:
                self._row("", ">", line, width)
            at, behind = a2, b2

    def _row(self, left: str, mark: str, right: str, width: int) -> None:
        """Two columns as GNU diff sets them: tabs up to the mark, and up to the right column."""
        second = (width + _TAB + 3) // (2 * _TAB) * _TAB
        first_width = max(0, min(second - 3, width - second))
        between = (first_width + second - 1) // 2
        line = left.rstrip("\n").expandtabs()[:first_width]
        text = right.rstrip("\n").expandtabs()[:first_width]
        if mark != " ":
            line = _tabbed(line, len(line), between) + mark
            self._call.say(line if mark == "<" else _tabbed(line, between + 1, second) + text)
        else:
            self._call.say(_tabbed(line, len(line), second) + text if text else line)


def _tabbed(line: str, at: int, to: int) -> str:
    """`line`, which ends in column `at`, with tabs and spaces up to column `to`."""
    while at < to:
        stop = (at // _TAB + 1) * _TAB
        if stop <= to:
            line, at = line + "\t", stop
        else:
            line, at = line + " " * (to - at), to
    return line


@dataclass(frozen=True, slots=True)
class _Hunk:
    """Lines `a1:a2` and `b1:b2` with the changed blocks in them."""

    a1: int
    a2: int
    b1: int
    b2: int
    blocks: list[Block]


def _hunks(blocks: list[Block], length_a: int, length_b: int, around: int) -> Iterator[_Hunk]:
    groups: list[list[Block]] = []
    for block in blocks:
        if groups and block[0] - groups[-1][-1][1] <= 2 * around:
            groups[-1].append(block)
        else:
            groups.append([block])
    for group in groups:
        first, last = group[0], group[-1]
        before = min(around, first[0], first[2])
        after = min(around, length_a - last[1], length_b - last[3])
        yield _Hunk(first[0] - before, last[1] + after, first[2] - before, last[3] + after, group)


def changed_blocks(a: Sequence[str], b: Sequence[str]) -> list[Block]:
    """A shortest way from `a` to `b`, by their longest common subsequence (of large changes, a good one)."""
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    end = 0
    while end < min(len(a), len(b)) - start and a[-1 - end] == b[-1 - end]:
        end += 1
    inner_a, inner_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(inner_a) * len(inner_b) > _CELLS_MAX:
        matcher = difflib.SequenceMatcher(None, inner_a, inner_b, autojunk=False)
        equal = [(m.a, m.b) for block in matcher.get_matching_blocks() for m in _each(block)]
    else:
        equal = _common(inner_a, inner_b)
    blocks: list[Block] = []
    at_a = at_b = 0
    for i, j in [*equal, (len(inner_a), len(inner_b))]:
        if i > at_a or j > at_b:
            blocks.append((start + at_a, start + i, start + at_b, start + j))
        at_a, at_b = i + 1, j + 1
    return [_slid(block, a, b) for block in blocks]


def _each(block: difflib.Match) -> Iterator[difflib.Match]:
    for offset in range(block.size):
        yield difflib.Match(block.a + offset, block.b + offset, 1)


def _slid(block: Block, a: Sequence[str], b: Sequence[str]) -> Block:
    """A block of only added or only deleted lines is moved as far down as it can be, as GNU diff shows it."""
    a1, a2, b1, b2 = block
    if a1 == a2:
        while b2 < len(b) and a2 < len(a) and b[b1] == b[b2] and a[a2] == b[b1]:
            a1, a2, b1, b2 = a1 + 1, a2 + 1, b1 + 1, b2 + 1
    elif b1 == b2:
        while a2 < len(a) and b2 < len(b) and a[a1] == a[a2] and b[b2] == a[a1]:
            a1, a2, b1, b2 = a1 + 1, a2 + 1, b1 + 1, b2 + 1
    return a1, a2, b1, b2


def _common(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of a longest common subsequence (Wagner-Fischer over rows, from behind)."""
    table = [[0] * (len(b) + 1)]
    for line in reversed(a):
        below, row = table[-1], [0] * (len(b) + 1)
        for j in range(len(b) - 1, -1, -1):
            row[j] = below[j + 1] + 1 if line == b[j] else max(below[j], row[j + 1])
        table.append(row)
    table.reverse()
    pairs, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif table[i + 1][j] >= table[i][j + 1]:
            i += 1
        else:
            j += 1
    return pairs


def lines_of(text: str) -> list[str]:
    """Split after `\\n` only."""
    found = text.split("\n")
    last = found.pop()
    return [line + "\n" for line in found] + ([last] if last else [])


def _span(first: int, last: int) -> str:
    if last - first <= 1:
        return str(first + 1 if last > first else first)
    return f"{first + 1},{last}"


def _range(first: int, last: int) -> str:
    count = last - first
    return str(first + 1) if count == 1 else f"{first if count == 0 else first + 1},{count}"


def _pair(first: int, last: int) -> str:
    return str(last) if last - first <= 1 else f"{first + 1},{last}"


def cmp(call: Call) -> None:
    """cmp [-s] [-l] FILE1 [FILE2]"""
    found, operands = parsed(call.args, "slb", "in", {"quiet": "s", "silent": "s", "verbose": "l", "print-bytes": "b"})
    options = dict(found)
    if not operands:
        raise UsageError("missing operand")
    left, right = operands[0], operands[1] if len(operands) > 1 else "-"
    data = []
    for path in (left, right):
        try:
            data.append(call.read(path))
        except FsError as error:
            call.fail(f"{path}: {error.message}", 2)
            return
    one, two = data
    differing = [at for at in range(min(len(one), len(two))) if one[at] != two[at]] if one != two else []
    if differing and "l" in options:
        width = len(str(min(len(one), len(two))))
        for at in differing:
            call.say(f"{at + 1:>{width}} {one[at]:3o} {two[at]:3o}")
    elif differing and "s" not in options:
        call.say(f"{left} {right} differ: byte {differing[0] + 1}, line {one[: differing[0]].count(10) + 1}")
    if len(one) != len(two) and (not differing or "l" in options) and "s" not in options:
        shorter, short = (left, one) if len(one) < len(two) else (right, two)
        line = short.count(10)
        where = f"line {line}" if short.endswith(b"\n") else f"in line {line + 1}"
        call.fail(f"EOF on {shorter} " + (f"after byte {len(short)}, {where}" if short else "which is empty"), 1)
    if one != two:
        call.status = max(call.status, 1)
