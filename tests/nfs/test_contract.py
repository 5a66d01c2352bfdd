"""NFS keeps the contract of the filesystem: the cases of the cache and of the mount, asked by the protocol."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache import large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.memory import MemoryFs
from memdir.fs.nfs.handles import Handles
from memdir.fs.nfs.procedures import Nfs3
from memdir.fs.nfs.server import NfsServer
from memdir.fs.types import AttrChange
from tests.fs.conftest import GID, UID
from tests.fs.contract import VfsContract, make
from tests.nfs.client import Connection, NfsFs

pytestmark = pytest.mark.promise("parts.contract", "exercise.one-contract")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["memory", "sqlite", "blobs"])
def fs(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> Iterator[NfsFs]:
    """A filesystem behind a server in this process, asked by root."""
    if request.param == "blobs":
        monkeypatch.setattr(large, "BLOB_MIN_BYTES", 1)
    behind: MemoryFs | SqliteFs
    if request.param == "memory":
        behind = MemoryFs(clock=clock, uid=UID, gid=GID)
    else:
        behind = SqliteFs.open(tmp_path / "cache", clock=clock, uid=UID, gid=GID)
    handles = Handles(tmp_path)
    server = NfsServer(Nfs3(behind, handles, clock=clock), handles, owner_uid=0)
    connection = Connection(server.start())
    try:
        yield NfsFs(connection, connection.mount(handles.export), behind)
    finally:
        connection.close()
        server.stop()
        behind.close()
    assert server.failures == 0
    if request.param != "memory":
        assert check(tmp_path / "cache") == []


class TestNfs(VfsContract):
    """The same cases, by inheritance. What version 3 does not have (extended attributes, ranges, flags of rename, holes) the
    filesystem behind answers."""

    removing_the_parent = errno.EEXIST
    moving_dot = errno.EINVAL
    """As RFC 1813 says (3.3.13, 3.3.14), and not as Linux."""

    # Times of version 3 have no sign.
    def test_setattr_changes_what_it_names(self, fs: NfsFs, clock: FakeClock) -> None:  # type: ignore[override]
        inode = make(fs, b"a")
        clock.advance(1)
        changed = fs.setattr(inode.ino, AttrChange(mode=0o600, uid=5, gid=6, atime_ns=11, mtime_ns=12 * 10**9 + 3))
        assert (changed.mode & 0o7777, changed.uid, changed.gid) == (0o600, 5, 6)
        assert (changed.atime_ns, changed.mtime_ns, changed.ctime_ns) == (11, 12 * 10**9 + 3, clock.now_ns())
