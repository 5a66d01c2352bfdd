"""A real mount keeps the contract: the cases of `MemoryFs` and of the cache, asked by system calls."""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache import large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.fuse.session import FuseOptions, FuseSession, Profile
from memdir.fs.memory import MemoryFs
from tests.fs.conftest import GID, UID
from tests.fs.contract import VfsContract
from tests.fuse.mounted_fs import MountedFs

pytestmark = [pytest.mark.mount, pytest.mark.promise("parts.contract", "exercise.one-contract")]

_END_TIMEOUT_S = 30.0


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=[("memory", "fast"), ("sqlite", "fast"), ("blobs", "fast"), ("sqlite", "observed")], ids="-".join)
def fs(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MountedFs]:
    """A mount served by a thread of this process, so that it reads the test's clock. Nothing here maps files of it."""
    kind, profile = request.param
    if kind == "blobs":
        monkeypatch.setattr(large, "BLOB_MIN_BYTES", 1)
    folder, root = tmp_path / "cache", tmp_path / "mnt"
    root.mkdir()
    behind: MemoryFs | SqliteFs
    if kind == "memory":
        behind = MemoryFs(clock=clock, uid=UID, gid=GID)
    else:
        behind = SqliteFs.open(folder, clock=clock, uid=UID, gid=GID)
    session = FuseSession(behind, root, FuseOptions(profile=Profile(profile)), clock=clock)
    session.mount()
    thresholds, umask = gc.get_threshold(), os.umask(0)
    thread = threading.Thread(target=session.run)
    thread.start()
    mounted = MountedFs(root, behind)
    try:
        yield mounted
    finally:
        mounted.close()
        session.unmount(lazy=True)
        thread.join(_END_TIMEOUT_S)
        gc.unfreeze()
        gc.set_threshold(*thresholds)
        os.umask(umask)
        behind.close()
    assert not thread.is_alive()
    assert session.stats().failures == 0
    if kind != "memory":
        assert check(folder) == []


class TestMount(VfsContract):
    """The same cases, by inheritance; only `NumberContract` is missing, which no system call can ask."""
