"""Inodes as the kernel wants them: `struct fuse_entry_out`, kept with the inode until an attribute changes."""

from __future__ import annotations

from collections.abc import Callable

from memdir.fs.fuse.abi import ATTR, ENTRY_HEAD
from memdir.fs.types import VIRTUAL_INO_BASE, Inode
from memdir.fs.vfs import Lender

_SECOND_NS = 1_000_000_000
_BLOCK_BYTES = 4096
_SPARSE_MIN_BYTES = 1 << 20
"""Smaller files are taken to have no holes: asking would cost each `ls -l` more than knowing it saves."""


class AttributeEncoder:
    """Encodes inodes; one timeout for names and attributes. Virtual inodes are never cached by the kernel."""

    def __init__(self, timeout_s: int, allocated_bytes: Callable[[int], int], lender: Lender | None = None) -> None:
        self._timeout_s = timeout_s
        self._allocated_bytes = allocated_bytes
        self._lender = lender

    def entry(self, inode: Inode) -> bytes:
        """fuse_entry_out of `inode`: 128 bytes. The bytes from ATTR_OUT_OFFSET on are its fuse_attr_out."""
        return inode.encoded or self._encode(inode)

    def _encode(self, inode: Inode) -> bytes:
        """Another thread may change the inode meanwhile; the filesystem then resets `encoded` after its last assignment, but
        that may come before ours. So look again afterwards and keep only what is still true."""
        is_lent = self._lender is not None and self._refreshed(self._lender, inode.ino)
        ino, size, ctime_ns, mtime_ns, mode, nlink = _snapshot(inode)
        atime_ns = inode.atime_ns
        timeout_s = self._timeout_s if ino < VIRTUAL_INO_BASE and not is_lent else 0
        encoded = ENTRY_HEAD.pack(ino, 0, timeout_s, timeout_s, 0, 0) + ATTR.pack(
            ino,
            size,
            ((size if size < _SPARSE_MIN_BYTES else self._allocated_bytes(ino)) + 511) >> 9,
            atime_ns // _SECOND_NS,
            mtime_ns // _SECOND_NS,
            ctime_ns // _SECOND_NS,
            atime_ns % _SECOND_NS,
            mtime_ns % _SECOND_NS,
            ctime_ns % _SECOND_NS,
            mode,
            nlink,
            inode.uid,
            inode.gid,
            inode.rdev,
            _BLOCK_BYTES,
            0,
        )
        if is_lent:
            return encoded
        inode.encoded = encoded
        if _snapshot(inode) != (ino, size, ctime_ns, mtime_ns, mode, nlink):
            inode.encoded = None
        return encoded

    @staticmethod
    def _refreshed(lender: Lender, ino: int) -> bool:
        """Whether the kernel may be changing the file by itself: its attributes are true for this moment only."""
        if not lender.is_lent(ino):
            return False
        lender.refresh(ino)
        return True


def _snapshot(inode: Inode) -> tuple[int, int, int, int, int, int]:
    """Every change of an attribute moves at least one of these (ctime at the least)."""
    return inode.ino, inode.size, inode.ctime_ns, inode.mtime_ns, inode.mode, inode.nlink
