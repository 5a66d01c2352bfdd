"""kill -9 at any moment: every answered operation is there afterwards, and fsck finds nothing."""

from __future__ import annotations

import contextlib
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.errors import BusyError
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.memory import MemoryFs

from . import snapshot, workload


@contextlib.contextmanager
def started(folder: Path, kind: str, seed: int, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A child that runs the workload; killed at the end of the block."""
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.fs.workload", str(folder), kind, str(seed), *more],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, cwd=Path(__file__).parents[2],
    )  # fmt: skip
    try:
        yield child
    finally:
        child.kill()
        child.communicate(timeout=30)


def answers(child: subprocess.Popen[bytes], wanted: int) -> int:
    """Wait for that many answered operations; returns how many there were."""
    assert child.stdout is not None
    assert child.stderr is not None
    count = 0
    while count < wanted:
        got = child.stdout.read(wanted - count)
        assert got, child.stderr.read().decode()
        count += len(got)
    return count


def killed_after(folder: Path, kind: str, seed: int, answered: int, *more: str) -> int:
    """Kill the workload once `answered` operations were answered; returns how many were in the end."""
    with started(folder, kind, seed, *more) as child:
        count = answers(child, answered)
        child.kill()
        assert child.stdout is not None
        while got := child.stdout.read(65536):  # answered before the signal arrived
            count += len(got)
    return count


def after(kind: str, seed: int, steps: int) -> MemoryFs:
    fs = MemoryFs()
    operations = workload.operations(fs, kind, seed)
    for _ in range(steps):
        next(operations)
    return fs


def verify(folder: Path, kind: str, seed: int, count: int) -> None:
    assert check(folder) == []
    with SqliteFs.open(folder) as fs:
        found = snapshot.visible(fs)
        intents = {intent.path for intent in fs.intents(0, 1_000_000)}
    assert check(folder) == []
    # The operation in work when the signal came may have happened; `big` makes its three files in its first step.
    candidates = [snapshot.visible(after(kind, seed, count)), snapshot.visible(after(kind, seed, count + 1))]
    assert found in candidates, f"{kind} {seed}: {count} answered operations are not what is there"
    assert found.keys() <= intents  # the sync engine hears of every path


def verify_blobs(folder: Path, kind: str, seed: int, count: int) -> None:
    """An operation that was not answered may have been done in part: a write over bytes of a blob has no undo."""
    assert check(folder) == []
    with SqliteFs.open(folder) as fs:
        found = snapshot.visible(fs)
    assert check(folder) == []
    before, following = snapshot.visible(after(kind, seed, count)), snapshot.visible(after(kind, seed, count + 1))
    assert found.keys() in (before.keys(), following.keys())
    for path, node in found.items():
        old, new = before.get(path), following.get(path)
        if node not in (old, new):
            assert old is not None
            assert new is not None
            assert node[:-1] in (old[:-1], new[:-1])
            assert is_between(node[-1], old[-1], new[-1]), f"{kind} {seed}: {path} after {count} operations"


def is_between(found: object, old: object, new: object) -> bool:
    """Whether every byte is one that was or should have become."""
    assert isinstance(found, bytes)
    assert isinstance(old, bytes)
    assert isinstance(new, bytes)
    size = len(found)
    pairs = zip(found, old.ljust(size, b"\0"), new.ljust(size, b"\0"), strict=False)
    return size in (len(old), len(new)) and all(byte in (was, will) for byte, was, will in pairs)


@pytest.mark.promise("large.killed")
@pytest.mark.parametrize("kind", ["big", "append", "save"])
def test_nothing_answered_is_lost_of_contents_in_blobs(kind: str, tmp_path: Path) -> None:
    rng = random.Random(f"blobs {kind}")
    for seed in range(2):
        folder = tmp_path / f"{seed}"
        count = killed_after(folder, kind, seed, rng.randrange(1, 400 if kind != "big" else 120), "2000")
        verify_blobs(folder, kind, seed, count)


@pytest.mark.parametrize("kind", workload.KINDS)
def test_nothing_answered_is_lost(kind: str, tmp_path: Path) -> None:
    rng = random.Random(kind)
    for seed in range(3):
        folder = tmp_path / f"{seed}"
        count = killed_after(folder, kind, seed, rng.randrange(1, 600 if kind != "big" else 120))
        verify(folder, kind, seed, count)


def test_a_second_process_is_kept_out_and_the_lock_dies_with_its_holder(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    with started(folder, "copy", 9) as child:
        answers(child, 5)
        with pytest.raises(BusyError):
            SqliteFs.open(folder)
        with pytest.raises(BusyError):
            check(folder)
        child.kill()
        child.wait(30)
        SqliteFs.open(folder).close()


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", workload.KINDS)
def test_nothing_answered_is_lost_of_contents_in_blobs_many_times(kind: str, tmp_path: Path) -> None:
    rng = random.Random(f"long blobs {kind}")
    for seed in range(200, 230):
        folder = tmp_path / f"{seed}"
        count = killed_after(folder, kind, seed, int(2 ** rng.uniform(0, 12 if kind != "big" else 9)), "2000")
        verify_blobs(folder, kind, seed, count)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", workload.KINDS)
def test_nothing_answered_is_lost_many_times(kind: str, tmp_path: Path) -> None:
    rng = random.Random(f"long {kind}")
    for seed in range(100, 130):
        folder = tmp_path / f"{seed}"
        count = killed_after(folder, kind, seed, int(2 ** rng.uniform(0, 12)))
        verify(folder, kind, seed, count)
