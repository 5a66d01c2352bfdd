"""Which lines two texts have in common, in order: what the three-way merge and the shown differences are made of.

Myers' greedy algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), which finds the fewest insertions and
deletions. Its cost grows with the square of their number, so beyond a bound the texts are cut at lines that each has exactly
once (Cohen's patience diff) and the pieces are compared for themselves. What is still too different counts as having nothing in
common: coarser, never wrong.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Final

_EDITS_MAX: Final = 400
"""Insertions and deletions that one run of Myers' algorithm looks for: at most 80,000 steps."""
_STEPS_MAX: Final = 400_000
"""Steps of all runs of one comparison, well under a second."""

Pairs = list[tuple[int, int]]


def lines_of(content: bytes) -> list[bytes]:
    """A line ends with a newline, and only with that: a carriage return before it belongs to the line."""
    pieces = content.split(b"\n")
    return [piece + b"\n" for piece in pieces[:-1]] + ([pieces[-1]] if pieces[-1] else [])


def numbered(*texts: Sequence[Hashable]) -> list[list[int]]:
    """Equal lines get equal numbers, so that comparing them costs the same whatever their length."""
    known: dict[Hashable, int] = {}
    return [[known.setdefault(line, len(known)) for line in text] for text in texts]


def common(left: Sequence[int], right: Sequence[int]) -> Pairs:
    """Positions of lines that both have, growing on both sides."""
    found: Pairs = []
    steps_left = _STEPS_MAX
    waiting = [(0, len(left), 0, len(right))]
    while waiting:
        low, high, begin, end = waiting.pop()
        while low < high and begin < end and left[low] == right[begin]:
            found.append((low, begin))
            low, begin = low + 1, begin + 1
        while low < high and begin < end and left[high - 1] == right[end - 1]:
            high, end = high - 1, end - 1
            found.append((high, end))
        if low == high or begin == end or steps_left <= 0:
            continue
        pairs, steps = _fewest_edits(left[low:high], right[begin:end], steps_left)
        steps_left -= steps
        if pairs is not None:
            found += [(low + i, begin + j) for i, j in pairs]
            continue
        corners = [(low - 1, begin - 1), *_anchors(left, right, (low, high, begin, end)), (high, end)]
        found += corners[1:-1]
        if len(corners) > 2:
            waiting += [(a + 1, c, b + 1, d) for (a, b), (c, d) in pairwise(corners)]
    return _slid(sorted(found), left, right)


def _slid(pairs: Pairs, left: Sequence[int], right: Sequence[int]) -> Pairs:
    """An insertion or a deletion between equal lines could stand at several places; it goes to the last of them, so that the
    same edit is found at the same place whatever else changed."""
    slid: Pairs = []
    i = j = 0
    for at, to in pairs:
        if i == at and j < to and right[j] == right[to]:
            to = j  # noqa: PLW2901
        elif j == to and i < at and left[i] == left[at]:
            at = i  # noqa: PLW2901
        slid.append((at, to))
        i, j = at + 1, to + 1
    return slid


def _fewest_edits(left: Sequence[int], right: Sequence[int], steps_max: int) -> tuple[Pairs | None, int]:
    """The pairs that leave the fewest insertions and deletions, None when there are too many of those; steps taken."""
    n, m = len(left), len(right)
    furthest = [0] * (2 * _EDITS_MAX + 3)
    trace: list[array[int]] = []
    steps = 0
    for edits in range(min(n + m, _EDITS_MAX) + 1):
        steps += edits + 1
        if steps > steps_max:
            break
        trace.append(array("i", [furthest[k] for k in range(-edits - 1, edits + 2)]))
        for k in range(-edits, edits + 1, 2):
            down = k == -edits or (k != edits and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = x - k
            while x < n and y < m and left[x] == right[y]:
                x, y = x + 1, y + 1
            furthest[k] = x
            if x >= n and y >= m:
                return _walk_back(trace, n, m), steps
    return None, steps


def _walk_back(trace: list[array[int]], x: int, y: int) -> Pairs:
    """`trace[d]` holds the furthest points before round d, for diagonals -d-1 to d+1."""
    pairs: Pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        before, middle, k = trace[edits], edits + 1, x - y
        down = k == -edits or (k != edits and before[middle + k - 1] < before[middle + k + 1])
        from_k = k + 1 if down else k - 1
        from_x = before[middle + from_k] if edits else 0
        from_y = from_x - from_k if edits else 0
        snake_x = from_x + (not down) if edits else 0
        while x > snake_x:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = from_x, from_y
    return pairs


def _anchors(left: Sequence[int], right: Sequence[int], window: tuple[int, int, int, int]) -> Pairs:
    """Lines that each side has exactly once in the window: the longest run of them that grows on both sides."""
    low, high, begin, end = window
    here, there = Counter(left[low:high]), Counter(right[begin:end])
    place = {line: begin + j for j, line in enumerate(right[begin:end]) if there[line] == 1 and here[line] == 1}
    ends: list[int] = []
    """For each length, the smallest right position on which a growing run of that length ends …"""
    last: list[int] = []
    """… and its number in `candidates`."""
    candidates: list[tuple[int, int, int]] = []
    for i in range(low, high):
        j = place.get(left[i])
        if j is None:
            continue
        length = bisect_left(ends, j)
        candidates.append((i, j, last[length - 1] if length else -1))
        if length == len(ends):
            ends.append(j)
            last.append(len(candidates) - 1)
        else:
            ends[length], last[length] = j, len(candidates) - 1
    pairs: Pairs = []
    at = last[-1] if last else -1
    while at >= 0:
        i, j, at = candidates[at]
        pairs.append((i, j))
    return pairs[::-1]


def unified(before: Sequence[str], after: Sequence[str], old: str, new: str, *, context: int = 3) -> list[str]:
    """The lines of a unified diff (diffutils(1)) of lines with their newlines, itself without them; empty when there is no
    difference."""
    pairs = common(*numbered(before, after))
    groups: list[list[str]] = []
    starts: list[tuple[int, int]] = []
    left = right = 0
    since_change = 2 * context + 1
    for i, j in (*pairs, (len(before), len(after))):
        changed = [f"-{line}" for line in before[left:i]] + [f"+{line}" for line in after[right:j]]
        if changed:
            if since_change > 2 * context:
                lead = min(context, left)
                starts.append((left - lead, right - lead))
                groups.append([f" {line}" for line in before[left - lead : left]])
            else:
                groups[-1] += [f" {line}" for line in before[left - since_change + min(since_change, context) : left]]
            groups[-1] += changed
            since_change = 0
        if i < len(before):
            if groups and since_change < context:
                groups[-1].append(f" {before[i]}")
            since_change += 1
        left, right = i + 1, j + 1
    lines = [f"--- {old}", f"+++ {new}"] if groups else []
    for (at, to), group in zip(starts, groups, strict=True):
        removed, added = (sum(line[0] in kinds for line in group) for kinds in (" -", " +"))
        lines.append(f"@@ -{_window(at, removed)} +{_window(to, added)} @@")
        for line in group:
            lines += [line[:-1]] if line.endswith("\n") else [line, "\\ No newline at end of file"]
    return lines


def _window(start: int, count: int) -> str:
    return f"{start + 1 if count else start},{count}"
