"""Three-way merge as a function: what it keeps, what it refuses, and that git agrees with it."""

from __future__ import annotations

import random
import shutil
import subprocess
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.sync.conflicts.merge import TEXT_MAX_BYTES, merge
from memdir.sync.conflicts.text_diff import common, numbered

few = st.lists(st.sampled_from("abcdef"), max_size=9)
"""Lines that repeat, so that there are many ways to say what changed."""


def text(lines: list[str], *, newline: str = "\n", last: bool = True) -> bytes:
    joined = "".join(line + newline for line in lines)
    return (joined if last else joined.removesuffix(newline)).encode()


texts = st.builds(text, few, last=st.booleans())


@given(texts, texts)
def test_a_change_of_one_side_is_taken(base: bytes, changed: bytes) -> None:
    assert merge(base, changed, base) == merge(base, base, changed) == merge(base, changed, changed) == changed


@given(texts, texts, texts)
def test_the_order_of_the_sides_does_not_matter(base: bytes, ours: bytes, theirs: bytes) -> None:
    assert merge(base, ours, theirs) == merge(base, theirs, ours)


@given(texts, texts, texts)
@settings(max_examples=120)
def test_merging_the_result_again_gives_the_result(base: bytes, ours: bytes, theirs: bytes) -> None:
    merged = merge(base, ours, theirs)
    if merged is not None:
        assert merge(base, merged, theirs) == merge(base, ours, merged) == merged


@given(texts, texts, texts)
@settings(max_examples=120)
def test_no_line_is_lost_that_a_side_added_or_both_kept_and_none_comes_from_nowhere(
    base: bytes, ours: bytes, theirs: bytes
) -> None:
    merged = merge(base, ours, theirs)
    if merged is None:
        return
    before, left, right, after = (Counter(side.split(b"\n")) for side in (base, ours, theirs, merged))
    for line in before | left | right | after:
        if before[line] == 0:
            assert after[line] >= max(left[line], right[line]), "added"
        if max(before[line], left[line], right[line]) == 1:
            assert after[line] >= min(left[line], right[line]), "kept by both, or moved"
        assert after[line] <= left[line] + right[line], "from somewhere"


def unique_edits(seed: int) -> tuple[list[str], list[str], list[str]]:
    """A base of different lines, and edits of two sides that do not touch each other."""
    chosen = random.Random(seed)
    base = [f"line {number}" for number in range(chosen.randrange(4, 60))]
    ours, theirs = list(base), list(base)
    for at in range(len(base) - 1, 0, -2):
        side, name = chosen.choice(((ours, "ours"), (theirs, "theirs"), (None, "")))
        if side is not None:
            where = side.index(base[at])
            side[where : where + 1] = [f"{name} {at} {number}" for number in range(chosen.randrange(3))]
    return base, ours, theirs


@pytest.mark.promise("sync.merge")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_edits_that_do_not_touch_each_other_are_all_in_the_result(newline: str) -> None:
    for seed in range(150):
        base, ours, theirs = unique_edits(seed)
        merged = merge(*(text(side, newline=newline) for side in (base, ours, theirs)))
        assert merged is not None
        lines = merged.decode().split(newline)[:-1]
        gone = (set(base) - set(ours)) | (set(base) - set(theirs))
        assert set(lines) == (set(base) | set(ours) | set(theirs)) - gone
        for side in (ours, theirs):
            assert [line for line in lines if line in side] == [line for line in side if line in lines], "in its order"


BASE = b"1\n2\n3\n4\n5\n"


@pytest.mark.parametrize(
    ("ours", "theirs", "merged"),
    [
        (b"0\n" + BASE, BASE + b"6\n", b"0\n" + BASE + b"6\n"),
        (BASE.replace(b"2\n", b""), BASE.replace(b"4\n", b"vier\n"), b"1\n3\nvier\n5\n"),
        (BASE + b"end", BASE.replace(b"1\n", b"one\n"), b"one\n2\n3\n4\n5\nend"),
        (BASE[:-1], BASE.replace(b"1\n", b"one\n"), b"one\n2\n3\n4\n5"),
        (BASE.replace(b"3\n", b"x\n"), BASE.replace(b"3\n", b"x\n").replace(b"1\n", b"y\n"), b"y\n2\nx\n4\n5\n"),
        (BASE.replace(b"1\n", b"one\r\n"), BASE.replace(b"4\n", b"vier\n"), b"one\r\n2\n3\nvier\n5\n"),
        ("1\n2\n3\n4\n5\nä ".encode(), BASE.replace(b"1\n", "ö\n".encode()), "ö\n2\n3\n4\n5\nä ".encode()),
    ],
)
def test_what_is_clear_is_merged(ours: bytes, theirs: bytes, merged: bytes) -> None:
    assert merge(BASE, ours, theirs) == merged


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (BASE.replace(b"3\n", b"x\n"), BASE.replace(b"3\n", b"y\n")),
        (BASE.replace(b"3\n", b"x\n"), BASE.replace(b"3\n", b"")),
        (BASE.replace(b"2\n", b"x\n"), BASE.replace(b"3\n", b"y\n")),
        (BASE.replace(b"2\n", b"2\nx\n"), BASE.replace(b"3\n", b"y\n")),
        (BASE + b"our note\n", BASE + b"their note\n"),
        (BASE.replace(b"\n", b"\r\n"), BASE.replace(b"3\n", b"y\n")),
        (BASE + b"\0", BASE.replace(b"1\n", b"one\n")),
        (BASE + b"\xff\n", BASE.replace(b"1\n", b"one\n")),
        (BASE + b"x" * TEXT_MAX_BYTES, BASE.replace(b"1\n", b"one\n")),
        (BASE + b"\n" * 60_000, BASE.replace(b"1\n", b"one\n")),
    ],
)
def test_what_touches_or_is_no_text_is_not_merged(ours: bytes, theirs: bytes) -> None:
    assert merge(BASE, ours, theirs) is None


def test_valid_json_stays_valid_json_and_no_key_comes_twice() -> None:
    base = b"[\n1,\n2,\n3,\n4\n]\n"
    ours, theirs = base.replace(b"1,\n", b"0,\n1,\n"), base.replace(b"4\n", b"4,\n5\n")
    assert merge(base, ours, theirs, path="/a.json") == b"[\n0,\n1,\n2,\n3,\n4,\n5\n]\n"
    ours, theirs = base.replace(b"\n]", b""), base.replace(b"1,\n", b"0,\n1,\n")
    assert merge(base, ours, theirs, path="/a.json") is not None, "one side was none before"
    ours, theirs = b"[\n1,\n2,\n3]\n", b"[1,\n2,\n3,\n4\n]\n"
    assert merge(base, ours, theirs, path="/a.txt") is not None
    keys = b'{\n"a": 1,\n"b": 2,\n"c": 3\n}\n'
    ours, theirs = keys.replace(b'"a"', b'"d"'), keys.replace(b'"c"', b'"d"')
    assert merge(keys, ours, theirs, path="/a.json") is None
    assert merge(keys, ours, theirs, path="/a.yaml") is not None


@given(st.lists(st.integers(0, 3), max_size=14), st.lists(st.integers(0, 3), max_size=14))
@settings(max_examples=80)
def test_the_most_common_lines_are_found(left: list[int], right: list[int]) -> None:
    pairs = common(left, right)
    assert all(left[i] == right[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in pairwise(pairs))
    longest = [0] * (len(right) + 1)
    for line in left:
        row = [0]
        for j, other in enumerate(right):
            row.append(longest[j] + 1 if line == other else max(longest[j + 1], row[j]))
        longest = row
    assert len(pairs) == longest[-1]


def test_very_different_texts_are_compared_in_bounded_time() -> None:
    chosen = random.Random(1)
    left, right = ([chosen.randrange(60) for _ in range(50_000)] for _ in range(2))
    began_s = time.process_time()
    common(left, right)
    assert time.process_time() - began_s < 4


def test_a_large_rewrite_keeps_what_is_there_once() -> None:
    chosen = random.Random(2)
    left = [f"line {number}" for number in range(3000)]
    right = [line if chosen.random() < 0.5 else f"new {line}" for line in left]
    pairs = common(*numbered(left, right))
    assert len(pairs) == sum(a == b for a, b in zip(left, right, strict=True))


def mutated(lines: list[str], chosen: random.Random, alphabet: list[str]) -> list[str]:
    out = list(lines)
    for _ in range(chosen.randrange(1, 4)):
        at = chosen.randrange(len(out) + 1)
        out[at : at + chosen.randrange(3)] = [chosen.choice(alphabet) for _ in range(chosen.randrange(3))]
    return out


def git_merge(folder: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    for name, content in (("base", base), ("ours", ours), ("theirs", theirs)):
        (folder / name).write_bytes(content)
    done = subprocess.run(
        ["git", "merge-file", "-p", "ours", "base", "theirs"], cwd=folder, capture_output=True, check=False, timeout=60
    )
    return done.stdout if done.returncode == 0 else None


def compare_with_git(folder: Path, seeds: range) -> Counter[tuple[bool, bool]]:
    """How often each of the two found a clean merge; what both found is equal."""
    seen: Counter[tuple[bool, bool]] = Counter()
    for seed in seeds:
        chosen = random.Random(seed)
        alphabet = [f"line {number}" for number in range(chosen.choice((4, 10, 200)))] + [""]
        base = [chosen.choice(alphabet) for _ in range(chosen.randrange(1, 40))]
        sides = [text(base)] + [text(mutated(base, chosen, alphabet), last=chosen.random() < 0.8) for _ in range(2)]
        merged, by_git = merge(*sides), git_merge(folder, *sides)
        seen[merged is not None, by_git is not None] += 1
        if merged is not None and by_git is not None:
            assert merged == by_git, f"seed {seed}"
    return seen


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_what_git_merges_cleanly_too_is_merged_as_git_does(tmp_path: Path) -> None:
    seen = compare_with_git(tmp_path, range(80))
    assert seen[True, True] > 20
    assert seen[True, False] <= 2


@pytest.mark.long
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not here")
def test_thousands_of_merges_are_git_s(tmp_path: Path) -> None:
    seen = compare_with_git(tmp_path, range(1000, 6000))
    assert seen[True, False] < 0.01 * seen[True, True]
    assert seen[False, True] < 0.25 * seen[True, True]
