"""Three-way merge of text: what two sides made of one base, when that can be said without a guess. Pure.

The rule is diff3's (Khanna, Kunal, Pierce, "A formal investigation of diff3", 2007): lines that all three have in common stay,
and between two such lines the side that changed something wins; when both did, and not the same, it is no clean merge. So
changes that touch each other are none, and neither are two different additions at the same place: of two notes appended to the
end of a file nobody can say which comes first.

Where equal lines repeat, there are several ways to say what changed, and they can lead to different merges. Two of them are
tried, the one found from the top and the one found from the bottom; and merging the result again with either side must change
nothing, so that a repetition after a crash does no harm. When these disagree, it is no clean merge.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, Final

from memdir.core.limits import MIB
from memdir.sync.conflicts.text_diff import common, lines_of, numbered

TEXT_MAX_BYTES: Final = MIB
"""Larger files are not merged: a person should look at those."""
_LINES_MAX: Final = 50_000
_JSON_SUFFIXES: Final = frozenset({".json", ".ipynb", ".geojson"})


def merge(base: bytes, ours: bytes, theirs: bytes, *, path: str = "") -> bytes | None:
    """What both sides did to `base`, None when that is not clear. The order of the sides does not matter.

    Files whose name (`path`) says JSON must still be JSON afterwards, when they were before. Raises nothing.
    """
    if ours == theirs or theirs == base:
        return ours
    if ours == base:
        return theirs
    if not all(_is_text(side) for side in (base, ours, theirs)):
        return None
    texts = [lines_of(side) for side in (base, ours, theirs)]
    if max(map(len, texts)) > _LINES_MAX:
        return None
    numbers = numbered(*texts)
    merged = _agreed(*numbers)
    if merged is None:
        return None
    lines = {number: line for text, row in zip(texts, numbers, strict=True) for number, line in zip(row, text, strict=True)}
    result = b"".join(lines[number] for number in merged)
    return result if _keeps_json(path, (base, ours, theirs), result) else None


def _is_text(side: bytes) -> bool:
    if len(side) > TEXT_MAX_BYTES or b"\0" in side:
        return False
    try:
        side.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _agreed(base: list[int], ours: list[int], theirs: list[int]) -> list[int] | None:
    """The merge that is found both from the top and from the bottom, and again when it is repeated. That one side's changes are
    contained in the other already may be found in one way only: nothing new comes of it."""
    from_top, from_bottom = _two_ways(base, ours, theirs)
    merged = _one_of(from_top, from_bottom)
    if merged is None or (from_top != from_bottom and merged not in (ours, theirs)):
        return None
    again = (_one_of(*_two_ways(base, merged, theirs)), _one_of(*_two_ways(base, ours, merged)))
    return merged if again == (merged, merged) else None


def _two_ways(base: list[int], ours: list[int], theirs: list[int]) -> tuple[list[int] | None, list[int] | None]:
    from_bottom = _chunks(base[::-1], ours[::-1], theirs[::-1])
    return _chunks(base, ours, theirs), None if from_bottom is None else from_bottom[::-1]


def _one_of(left: list[int] | None, right: list[int] | None) -> list[int] | None:
    """What is clean in one way or in both; None when it is in none, or differs."""
    if left is None:
        return right
    return left if right is None or left == right else None


def _chunks(base: list[int], ours: list[int], theirs: list[int]) -> list[int] | None:
    """diff3: from one line that all have in common to the next."""
    in_ours, in_theirs = dict(common(base, ours)), dict(common(base, theirs))
    stable = [(i, in_ours[i], in_theirs[i]) for i in range(len(base)) if i in in_ours and i in in_theirs]
    merged: list[int] = []
    at, here, there = 0, 0, 0
    for end, end_here, end_there in (*stable, (len(base), len(ours), len(theirs))):
        former, left, right = base[at:end], ours[here:end_here], theirs[there:end_there]
        if left in (former, right):
            merged += right
        elif right == former:
            merged += left
        else:
            return None
        if end < len(base):
            merged.append(base[end])
        at, here, there = end + 1, end_here + 1, end_there + 1
    return merged


def _keeps_json(path: str, before: Sequence[bytes], merged: bytes) -> bool:
    """Two valid documents can make an invalid one, line by line, or one in which a key stands twice."""
    if PurePosixPath(path).suffix.lower() not in _JSON_SUFFIXES:
        return True
    return not all(_is_json(side) for side in before) or _is_json(merged)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text, object_pairs_hook=_unique_keys)
    except (ValueError, RecursionError):
        return False
    return True


def _unique_keys(pairs: list[tuple[str, Any]]) -> None:
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError("a key stands twice")
