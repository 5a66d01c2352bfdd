"""Attributes as NFS version 3 carries them."""

from __future__ import annotations

import os
import stat
import struct
from typing import Final

from memdir.fs.nfs.xdr import TRUE, u64
from memdir.fs.types import FsStats, Inode

_TYPES: Final = {
    stat.S_IFREG: 1, stat.S_IFDIR: 2, stat.S_IFBLK: 3, stat.S_IFCHR: 4, stat.S_IFLNK: 5, stat.S_IFSOCK: 6, stat.S_IFIFO: 7,
}  # fmt: skip
_FATTR: Final = struct.Struct(">IIIIIQQIIQQIIIIII")


def fattr(inode: Inode, used: int, fsid: int) -> bytes:
    """fattr3. `used` are the bytes on the disk."""
    mode = inode.mode
    return _FATTR.pack(
        _TYPES[stat.S_IFMT(mode)], mode & 0o7777, inode.nlink, inode.uid, inode.gid, inode.size, used,
        os.major(inode.rdev), os.minor(inode.rdev), fsid, inode.ino,
        *nfstime(inode.atime_ns), *nfstime(inode.mtime_ns), *nfstime(inode.ctime_ns),
    )  # fmt: skip


def before(inode: Inode) -> bytes:
    """pre_op_attr: what weak cache consistency compares."""
    return TRUE + u64(inode.size) + struct.pack(">IIII", *nfstime(inode.mtime_ns), *nfstime(inode.ctime_ns))


def fsstat(stats: FsStats) -> bytes:
    """What FSSTAT says behind the attributes: bytes and files, all, free, and free for this user; volatile at any time."""
    size = stats.block_size
    return struct.pack(
        ">QQQQQQI", stats.blocks * size, stats.blocks_free * size, stats.blocks_available * size,
        stats.inodes, stats.inodes_free, stats.inodes_free, 0,
    )  # fmt: skip


def nfstime(at_ns: int) -> tuple[int, int]:
    """nfstime3 has 32 bits for seconds since 1970."""
    seconds, rest = divmod(at_ns, 1_000_000_000)
    return min(max(seconds, 0), 0xFFFFFFFF), rest if 0 <= seconds <= 0xFFFFFFFF else 0


def stamps(verifier: bytes) -> tuple[int, int]:
    """A create verifier as two times that the filesystem keeps exactly."""
    first, second = struct.unpack(">II", verifier)
    return first * 1_000_000_000, second * 1_000_000_000
