"""Attributes, references and extended attributes."""

from __future__ import annotations

import errno
import stat
from collections.abc import Sequence
from typing import Final

from memdir.core.limits import KIB, NAME_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.posix.placed import PlacedOps
from memdir.fs.posix.privileges import without_privileges
from memdir.fs.posix.state import SIZE_MAX_BYTES
from memdir.fs.posix.txn import CUT, Txn
from memdir.fs.types import XATTR_CREATE, XATTR_REPLACE, AttrChange, Inode

XATTR_VALUE_MAX_BYTES: Final = 64 * KIB
XATTR_TOTAL_MAX_BYTES: Final = 1024 * KIB
"""Names and values of one inode together; ENOSPC past it, as on ext4."""
XATTR_NAMES_MAX_BYTES: Final = 64 * KIB
"""XATTR_LIST_MAX of Linux: with more names they could not be listed any more."""

_TIME_MAX_NS: Final = (1 << 63) - 1
_ID_MAX: Final = (1 << 32) - 2
"""uid and gid 2**32 - 1 mean "leave as it is" in chown(2)."""


def _clamped(time_ns: int) -> int:
    """Times outside of signed 64-bit nanoseconds (1677 to 2262) become the nearest that can be kept, as Linux does it."""
    return min(max(time_ns, -_TIME_MAX_NS - 1), _TIME_MAX_NS)


class AttributeOps(PlacedOps):
    """See `fs.vfs.Vfs` for what each method promises."""

    def get(self, ino: int) -> Inode:
        with self._lock:
            return self._inodes.get(ino) or self._inode(ino)

    def retain(self, ino: int, count: int = 1) -> None:
        with self._lock:
            self._inode(ino).lookups += count

    def forget(self, ino: int, count: int) -> None:
        with self._lock:
            inode = self._inodes.get(ino)
            if inode is None:
                return
            inode.lookups = max(inode.lookups - count, 0)
            if not inode.lookups and not inode.nlink:
                txn = self._begin(quiet=True)
                txn.gone.append(ino)
                self._commit(txn)

    def setattr(self, ino: int, change: AttrChange) -> Inode:
        with self._lock:
            self._prepare()
            inode = self._inode(ino)
            if ino in self._lent:
                self.refresh(ino)
            txn = self._begin()
            self._stage_attributes(txn, inode, change)
            self._commit(txn)
            if change.size is not None:
                self._finish_size(inode)
        self._announce()
        return inode

    def _stage_attributes(self, txn: Txn, inode: Inode, change: AttrChange) -> None:
        draft = txn.edit(inode)
        if change.size is not None:
            self._stage_size(txn, inode, draft, change.size)
        if not (0 <= (change.uid or 0) <= _ID_MAX and 0 <= (change.gid or 0) <= _ID_MAX):
            raise FsError(errno.EINVAL)
        if change.uid is not None:
            draft.uid = change.uid
        if change.gid is not None:
            draft.gid = change.gid
        if change.mode is not None:
            draft.mode = stat.S_IFMT(inode.mode) | stat.S_IMODE(change.mode)
        elif change.uid is not None or change.gid is not None or change.size is not None:
            draft.mode = without_privileges(draft.mode)
        if change.atime_ns is not None:
            draft.atime_ns = _clamped(change.atime_ns)
        if change.mtime_ns is not None:
            draft.mtime_ns = _clamped(change.mtime_ns)
        draft.ctime_ns = txn.now_ns if change.ctime_ns is None else _clamped(change.ctime_ns)
        if draft.mode != inode.mode or draft.version != inode.version:
            self._note_put(txn, inode)

    def _stage_size(self, txn: Txn, inode: Inode, draft: Inode, size: int) -> None:
        """truncate(2): the time of modification moves even when the size stays."""
        if inode.is_dir:
            raise FsError(errno.EISDIR)
        if not inode.is_file or size < 0:
            raise FsError(errno.EINVAL)
        if size > SIZE_MAX_BYTES:
            raise FsError(errno.EFBIG)
        if inode.place:
            self._stage_placed_size(inode, draft, size)
        elif size < inode.size:
            txn.contents.append((CUT, inode.ino, size, 0))
        if size != inode.size:
            draft.size = size
            draft.version += 1
        draft.mtime_ns = txn.now_ns

    def readlink(self, ino: int) -> bytes:
        with self._lock:
            inode = self._inode(ino)
            target = inode.target
        if target is None or not inode.is_symlink:
            raise FsError(errno.EINVAL)
        return target

    def getxattr(self, ino: int, name: bytes) -> bytes:
        with self._lock:
            values = self._xattrs.get(ino)
            if values is None:
                values = self._xattrs_of(ino)
            value = values.get(name)
        if value is None:
            raise FsError(errno.ENODATA)
        return value

    def setxattr(self, ino: int, name: bytes, value: bytes, flags: int = 0) -> None:
        if not 0 < len(name) <= NAME_MAX_BYTES or b"\0" in name:
            raise FsError(errno.ERANGE)
        if len(value) > XATTR_VALUE_MAX_BYTES:
            raise FsError(errno.E2BIG)
        if flags & ~(XATTR_CREATE | XATTR_REPLACE):
            raise FsError(errno.EINVAL)
        with self._lock:
            self._prepare()
            values = self._xattrs_of(ino)
            if flags & XATTR_CREATE and name in values:
                raise FsError(errno.EEXIST)
            if flags & XATTR_REPLACE and name not in values:
                raise FsError(errno.ENODATA)
            names = sum(len(other) + 1 for other in values if other != name)
            if names + len(name) + 1 > XATTR_NAMES_MAX_BYTES:
                raise FsError(errno.ENOSPC, "the names of a file's extended attributes have at most 64 KiB")
            others = sum(len(other) + len(held) for other, held in values.items() if other != name)
            if others + len(name) + len(value) > XATTR_TOTAL_MAX_BYTES:
                raise FsError(errno.ENOSPC, "the extended attributes of one file hold at most 1 MiB")
            self._change_xattr(ino, name, bytes(value))

    def listxattr(self, ino: int) -> Sequence[bytes]:
        with self._lock:
            return tuple(self._xattrs_of(ino))

    def removexattr(self, ino: int, name: bytes) -> None:
        with self._lock:
            self._prepare()
            if name not in self._xattrs_of(ino):
                raise FsError(errno.ENODATA)
            self._change_xattr(ino, name, None)

    def _change_xattr(self, ino: int, name: bytes, value: bytes | None) -> None:
        txn = self._begin()
        txn.edit(self._inode(ino)).ctime_ns = txn.now_ns
        txn.xattrs.append((ino, name, value))
        self._commit(txn)
