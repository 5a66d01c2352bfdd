"""Random operations give the same answers on a mount and on a native directory, whatever came before them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.exercise.difference import DifferenceError, OwnMount, Pair, compare, with_remounts
from tests.exercise.generator import operations
from tests.exercise.operations import Answer, Op, World

pytestmark = pytest.mark.mount


def run(own: OwnMount, seeds: Sequence[int], steps: int, remounts: Sequence[str] = ()) -> None:
    for seed in seeds:
        compare(with_remounts(operations(seed, steps), remounts), own.pair, f"seed {seed}")


@pytest.mark.promise("exercise.same-as-native")
def test_a_mount_answers_like_a_native_directory(own: OwnMount) -> None:
    run(own, range(100) if own.label == "fast" else range(500, 550), 50)


@pytest.mark.promise("exercise.same-as-native")
@pytest.mark.parametrize("how", [["clean"], ["kill"], ["kill", "clean", "kill"]], ids="-".join)
def test_a_mount_answers_like_a_native_directory_with_remounts_between(own: OwnMount, how: list[str]) -> None:
    run(own, range(5000, 5002), 60, how)


# What these runs found once


def both(own: OwnMount, ops: list[Op]) -> None:
    compare(ops, own.pair, "found once")


def test_root_keeps_setuid_bits_of_a_file_it_allocates_or_copies_into(own: OwnMount) -> None:
    both(own, [["open", 0, "f", os.O_RDWR | os.O_CREAT, 0o6755], ["fallocate", 0, 16, 262_144, 131_072]])
    both(
        own,
        [
            ["open", 0, "f", os.O_RDWR | os.O_CREAT, 0o6755],
            ["open", 1, "g", os.O_RDWR | os.O_CREAT, 0o644],
            ["write", 1, 1, 5000],
            ["copy", 1, 0, 5000, 0, 0],
        ],
    )


def test_a_change_of_owner_to_nobody_else_clears_setuid(own: OwnMount) -> None:
    both(own, [["open", 0, "f", os.O_RDWR | os.O_CREAT, 0o4755], ["fchown", 0, -1, -1]])


def test_an_allocation_without_effect_moves_the_times(own: OwnMount) -> None:
    for mode in (0, 1, 3):
        both(own, [["open", 0, "f", os.O_RDWR | os.O_CREAT, 0o644], ["utime", "f", 5, True], ["fallocate", 0, mode, 0, 4096]])
        both(own, [["open", 0, "f", os.O_RDWR | os.O_CREAT, 0o644], ["fallocate", 0, mode, 66_771, 4096]])


# The comparison itself


class Careless(World):
    """A directory in which RENAME_NOREPLACE replaces."""

    def do_renameat2(self, path: str, other: str, flags: int) -> Answer:
        return super().do_renameat2(path, other, flags & ~1)


def careless_pair(one: Path, other: Path) -> Pair:
    pair = Pair(one, other)
    pair.worlds = (Careless(pair.worlds[0].root), pair.worlds[1])
    return pair


def test_a_planted_difference_is_found_and_cut_down_to_what_it_needs(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
    made = {"a": ["mknod", "a", 0o644], "b": ["mknod", "b", 0o644]}
    padding = [["mkdir", f"folder-{number}", 0o755] for number in range(40)]
    ops = [*padding[:20], made["a"], *padding[20:30], made["b"], *padding[30:], ["renameat2", "a", "b", 1], ["unlink", "a"]]
    with pytest.raises(DifferenceError, match="shrunk to 3 operations") as caught:
        compare(ops, lambda: careless_pair(tmp_path / "one", tmp_path / "other"), "planted")
    assert '[["mknod", "a", 420], ["mknod", "b", 420], ["renameat2", "a", "b", 1]]' in str(caught.value)


def test_a_seed_gives_the_same_operations_again() -> None:
    assert operations(3, 200) == operations(3, 200)
    assert operations(3, 200) != operations(4, 200)


# More of the same


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.promise("exercise.same-as-native")
def test_a_mount_answers_like_a_native_directory_in_many_more_cases(own: OwnMount) -> None:
    run(own, range(100_000, 101_000), 200)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.promise("exercise.same-as-native")
@pytest.mark.parametrize("how", [["clean", "clean"], ["kill", "kill", "clean"]], ids="-".join)
def test_many_more_cases_with_remounts_between(own: OwnMount, how: list[str]) -> None:
    run(own, range(200_000, 200_050), 200, how)
