"""Filesystems under test. Every one on disk ends with fsck: a test that leaves a finding behind fails."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache import large
from memdir.fs.cache.disk_space import RESERVE_NAME
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.memory import MemoryFs

UID, GID = 1000, 1000

AnyFs = MemoryFs | SqliteFs
Factory = Callable[..., SqliteFs]


def crashed_copy(fs: SqliteFs, target: Path) -> Path:
    """The folder as a process that is killed at this moment leaves it."""
    target.mkdir()
    with fs._lock, fs._tables.database._lock:  # SQLite's own crash safety is not what is tested: no write of it is cut in two
        for path in sorted(fs._folder.iterdir()):
            with contextlib.suppress(FileNotFoundError):  # a segment that is released, or a blob that is removed meanwhile
                if path.is_dir():
                    shutil.copytree(path, target / path.name)
                elif not path.name.endswith("-shm") and path.name != RESERVE_NAME:
                    (target / path.name).write_bytes(path.read_bytes())
    return target


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cache"


@pytest.fixture
def opened(folder: Path, clock: FakeClock) -> Iterator[Factory]:
    """`opened(**options)` opens the cache in `folder`; at the end everything is closed and checked."""
    held: list[SqliteFs] = []

    def open_fs(where: Path = folder, **options: bool) -> SqliteFs:
        fs = SqliteFs.open(where, clock=clock, uid=UID, gid=GID, **options)
        held.append(fs)
        return fs

    yield open_fs
    for fs in held:
        fs.close()
    if (folder / "cache.db").exists():
        assert check(folder) == []


@pytest.fixture(params=["memory", "sqlite", "blobs"])
def fs(request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[AnyFs]:
    """Each implementation of the contract; the last keeps all contents in blobs."""
    if request.param == "blobs":
        monkeypatch.setattr(large, "BLOB_MIN_BYTES", 1)
    if request.param == "memory":
        memory = MemoryFs(clock=clock, uid=UID, gid=GID)
        yield memory
        memory.close()
    else:
        yield request.getfixturevalue("opened")()
