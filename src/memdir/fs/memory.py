"""A whole filesystem in memory: the contract, complete, with nothing behind it. For tests and for the simulator."""

from __future__ import annotations

import os
import stat
from typing import Final

from memdir.core.clock import Clock, SystemClock
from memdir.core.limits import KIB
from memdir.fs.posix.absent import AbsentOps
from memdir.fs.types import ROOT_INO, FsStats, Inode

_BLOCK_BYTES: Final = 4 * KIB
_BLOCKS: Final = 1 << 28


class MemoryFs(AbsentOps):
    """`fs.vfs.Vfs` and `fs.tree.SyncTree` in memory; the same rules as the cache, because it is the same code."""

    def __init__(
        self, *, clock: Clock | None = None, uid: int | None = None, gid: int | None = None, sync: bool = True
    ) -> None:
        super().__init__(
            clock=clock or SystemClock(),
            uid=os.getuid() if uid is None else uid,
            gid=os.getgid() if gid is None else gid,
        )
        self._records_intents = sync
        now_ns = self._clock.now_ns()
        self._insert(root_inode(self.uid, self.gid, now_ns))

    def statfs(self) -> FsStats:
        with self._lock:
            used = sum(len(chunk) for contents in self._files.values() for chunk in contents.chunks.values())
            free = _BLOCKS - (used + _BLOCK_BYTES - 1) // _BLOCK_BYTES
            return FsStats(
                block_size=_BLOCK_BYTES, blocks=_BLOCKS, blocks_free=free, blocks_available=free,
                inodes=1 << 32, inodes_free=(1 << 32) - len(self._inodes),
            )  # fmt: skip

    def fsync(self, ino: int) -> None:
        self.get(ino)

    def close(self) -> None:
        """Nothing to release."""


def root_inode(uid: int, gid: int, now_ns: int) -> Inode:
    """The root of a new filesystem; it is its own parent."""
    return Inode(
        ino=ROOT_INO, mode=stat.S_IFDIR | 0o755, uid=uid, gid=gid, nlink=2, size=0, atime_ns=now_ns, mtime_ns=now_ns,
        ctime_ns=now_ns, parent=ROOT_INO,
    )  # fmt: skip
