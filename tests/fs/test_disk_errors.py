"""A disk that refuses at any call: the errno goes to the caller, nothing is half done, and it goes on when the disk does."""

from __future__ import annotations

import errno
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.fs.cache import disk_space, flusher, flushing, journal, large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.types import ROOT_INO

from . import snapshot, workload
from .conftest import GID, UID
from .contract import make
from .disk import SHORT, Disk

OPERATIONS = 6
KINDS = {"no space": errno.ENOSPC, "quota": errno.EDQUOT, "error": errno.EIO, "half a write": SHORT}
EXPECTED = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


# What a VFS raises in Python goes to SQLite as a code, and to sys.unraisablehook when no call of ours is there to raise it.
pytestmark = [
    pytest.mark.promise("survives.errors"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def _by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher.Flusher, "start", lambda self: None)
    monkeypatch.setattr(flusher.Flusher, "_pause", lambda self: None)
    monkeypatch.setattr(flushing.Flushing, "_wait_for_round", lambda self: self._flusher._write())
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 4096)
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 8_000)
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 20_000)


def opened(disk: FaultyDisk) -> SqliteFs:
    """With one more try when the disk refused the first: what it says is made for people."""
    where = Path(disk.root) / "cache"
    for _ in range(3):
        try:
            return SqliteFs.open(where, clock=FakeClock(), uid=UID, gid=GID)
        except (MemdirError, OSError):
            if not disk.refused:
                raise
    pytest.fail("it does not open")


class FaultyDisk(Disk):
    """Refuses the call `at` and, with `lasting`, every one behind it until `heal`."""

    def __init__(self, root: Path, *, at: int, number: int, lasting: bool) -> None:
        super().__init__(root)
        self.refused = False
        self.healed = False

        def fault(call: int) -> int:
            if self.healed or not (call == at or (lasting and call > at)):
                return 0
            if self.refused and number == SHORT:
                return errno.ENOSPC
            self.refused = True
            return number

        self.fault = fault

    def heal(self) -> None:
        self.healed = True


def intended(fs: SqliteFs) -> set[bytes]:
    """Paths that the sync engine will hear of."""
    return {note[2] for note in fs._intents._pending.values()}


def live(disk: FaultyDisk, seed: int) -> SqliteFs | None:
    """Work with a filesystem on the disk; every operation happens or does not. Returns it when it is still open."""
    rng = random.Random(f"errors {seed}")
    try:
        fs = SqliteFs.open(Path(disk.root) / "cache", clock=FakeClock(), uid=UID, gid=GID)
    except (MemdirError, OSError):
        assert disk.refused
        return None
    done = 0
    while done < OPERATIONS:
        before = snapshot.visible(fs), intended(fs)
        failure: FsError | None = None

        def operation(call: Callable[[], bool]) -> bool:
            nonlocal failure
            try:
                return call()
            except FsError as error:
                failure = error
                return True

        done += operation(lambda: workload.step(fs, rng, refusals=EXPECTED))
        if failure is not None:
            assert disk.refused, failure
            assert failure.errno in EXPECTED
            assert snapshot.visible(fs) == before[0]
            assert before[1] <= intended(fs)  # a write into a blob is told to the sync engine before it is tried
        if rng.random() < 0.2:
            operation(lambda: bool(fs.fsync(ROOT_INO)))
        if rng.random() < 0.4:
            fs._flusher._write()
        if rng.random() < 0.3:
            fs._flusher._tidy()
    return fs


def survive(top: Path, seed: int, *, at: int, number: int, lasting: bool) -> int:
    """One life on a disk that refuses; returns how many calls there were."""
    root = top / f"{seed}-{at}"
    root.mkdir()
    disk = FaultyDisk(root, at=at, number=number, lasting=lasting)
    with disk.recording():
        fs = live(disk, seed)
        calls = disk.calls
        disk.heal()
        if fs is None:
            fs = opened(disk)
        for _ in range(3):
            fs._flusher._write()
            fs._flusher._tidy()
        assert fs._applied_lsn == fs.last_lsn
        if fs._journal.trouble is None:
            assert fs.trouble is None
            make(fs, b"works", b"again")
            fs._flusher._write()
            fs.fsync(ROOT_INO)
        expected = snapshot.visible(fs), dict(fs._intents._pending)
        fs.close()
        assert check(root / "cache") == []
        with opened(disk) as fs:
            assert (snapshot.visible(fs), dict(fs._intents._pending)) == expected
    assert check(root / "cache") == []
    shutil.rmtree(root)
    return calls


def every_call(top: Path, seed: int, stride: int) -> Iterator[int]:
    calls = survive(top, seed, at=0, number=0, lasting=False)
    assert calls > 40
    return iter(range(1 + seed % stride, calls + 1, stride))


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(3))
def test_a_call_that_the_disk_refuses_leaves_nothing_half_done(tmp_path: Path, seed: int, kind: str, lasting: bool) -> None:
    stride = 2 if kind == "no space" and not lasting else 9
    for at in every_call(tmp_path, seed, stride):
        survive(tmp_path, seed, at=at, number=KINDS[kind], lasting=lasting)


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_call_that_the_disk_refuses_leaves_nothing_half_done_many_times(tmp_path: Path, kind: str, lasting: bool) -> None:
    for seed in range(100, 120):
        for at in every_call(tmp_path, seed, 1):
            survive(tmp_path, seed, at=at, number=KINDS[kind], lasting=lasting)
