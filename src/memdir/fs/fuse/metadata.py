"""Requests about attributes, extended attributes and the filesystem as a whole."""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable
from typing import Final

from memdir.core.clock import Clock
from memdir.core.limits import KIB
from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.attributes import AttributeEncoder
from memdir.fs.fuse.wire import OK, SETID_BITS, Handler, Header, MalformedRequestError, Reply, one_name
from memdir.fs.types import AttrChange
from memdir.fs.vfs import Vfs

_SECOND_NS: Final = 1_000_000_000
_CHANGES: Final = (
    abi.FATTR_MODE | abi.FATTR_UID | abi.FATTR_GID | abi.FATTR_SIZE | abi.FATTR_ATIME | abi.FATTR_MTIME | abi.FATTR_CTIME
)
_XATTR_LIST_MAX_BYTES: Final = 64 * KIB
"""XATTR_LIST_MAX of Linux; a longer list is E2BIG there too."""
_CAPABILITY: Final = b"security.capability"
_SECURITY: Final = b"security."
_SUPPORTED_NAMESPACES: Final = (b"user.", b"trusted.", _SECURITY)
"""The kernel lets only root set the last two. `system.` holds POSIX ACLs; modes are all there is. Saying so, also of a label
that a file does not have (EOPNOTSUPP, not ENODATA), makes `ls -l` and `cp` ask once and not for every file."""


class MetadataHandlers:
    """GETATTR, SETATTR, STATFS and the four xattr requests.

    `security.capability` is always absent: the kernel may ask for it before every write, so the answer must cost nothing.
    """

    def __init__(self, vfs: Vfs, encoder: AttributeEncoder, clock: Clock) -> None:
        self._vfs = vfs
        self._get = vfs.get
        self._encode = encoder.entry
        self._clock = clock

    def handlers(self) -> dict[int, Handler]:
        return {
            abi.Op.GETATTR: self.getattr,
            abi.Op.SETATTR: self.setattr,
            abi.Op.STATFS: self.statfs,
            abi.Op.GETXATTR: self.getxattr,
            abi.Op.SETXATTR: self.setxattr,
            abi.Op.LISTXATTR: self.listxattr,
            abi.Op.REMOVEXATTR: self.removexattr,
        }

    def getattr(self, ino: int, body: memoryview, header: Header) -> Reply:
        inode = self._get(ino)
        return (inode.encoded or self._encode(inode))[abi.ATTR_OUT_OFFSET :]

    def setattr(self, ino: int, body: memoryview, header: Header) -> Reply:
        valid, _, _, size, _, atime_s, mtime_s, ctime_s, atime_part, mtime_part, ctime_part, mode, _, uid, gid, _ = (
            abi.SETATTR_IN.unpack_from(body)
        )
        now_ns = self._clock.now_ns
        if not valid & _CHANGES:
            return self._drop_privileges(ino)
        change = AttrChange(
            mode=stat.S_IMODE(mode) if valid & abi.FATTR_MODE else self._kept_mode(ino, valid),
            uid=uid if valid & abi.FATTR_UID else None,
            gid=gid if valid & abi.FATTR_GID else None,
            size=size if valid & abi.FATTR_SIZE else None,
            atime_ns=_moment(valid, abi.FATTR_ATIME, abi.FATTR_ATIME_NOW, atime_s, atime_part, now_ns),
            mtime_ns=_moment(valid, abi.FATTR_MTIME, abi.FATTR_MTIME_NOW, mtime_s, mtime_part, now_ns),
            ctime_ns=ctime_s * _SECOND_NS + ctime_part if valid & abi.FATTR_CTIME else None,
        )
        return self._encode(self._vfs.setattr(ino, change))[abi.ATTR_OUT_OFFSET :]

    def _drop_privileges(self, ino: int) -> Reply:
        """Nothing to change, and yet a request: chown(2) with neither a user nor a group, or the first write of somebody who
        may not keep setuid and setgid (the kernel sends both in the same form). Either takes those bits away. On other
        filesystems Linux refuses the chown to those who may not change the mode; here the two cannot be told apart."""
        inode = self._get(ino)
        drops = inode.mode & SETID_BITS and inode.is_file
        inode = self._vfs.setattr(ino, AttrChange(uid=inode.uid) if drops else AttrChange())
        return self._encode(inode)[abi.ATTR_OUT_OFFSET :]

    def _kept_mode(self, ino: int, valid: int) -> int | None:
        """The mode to state so that a truncation keeps setuid and setgid: when the kernel does not ask to clear them (the
        caller has CAP_FSETID). A change of owner always clears them."""
        if not valid & abi.FATTR_SIZE or valid & (abi.FATTR_KILL_SUIDGID | abi.FATTR_UID | abi.FATTR_GID):
            return None
        mode = self._get(ino).mode
        return stat.S_IMODE(mode) if mode & SETID_BITS else None

    def statfs(self, ino: int, body: memoryview, header: Header) -> Reply:
        stats = self._vfs.statfs()
        return abi.STATFS_OUT.pack(
            stats.blocks,
            stats.blocks_free,
            stats.blocks_available,
            stats.inodes,
            stats.inodes_free,
            stats.block_size,
            stats.name_max,
            stats.block_size,
        )

    def getxattr(self, ino: int, body: memoryview, header: Header) -> Reply:
        size, _ = abi.GETXATTR_IN.unpack_from(body)
        name = one_name(body[abi.GETXATTR_IN.size :])
        if name == _CAPABILITY:
            return errno.ENODATA
        if not name.startswith(_SUPPORTED_NAMESPACES):
            return errno.EOPNOTSUPP
        if name in _SUPPORTED_NAMESPACES:
            return errno.EINVAL
        try:
            return _sized(self._vfs.getxattr(ino, name), size)
        except FsError as error:
            return errno.EOPNOTSUPP if error.errno == errno.ENODATA and name.startswith(_SECURITY) else error.errno

    def setxattr(self, ino: int, body: memoryview, header: Header) -> Reply:
        size, flags = abi.SETXATTR_IN.unpack_from(body)
        raw = bytes(body[abi.SETXATTR_IN.size :])
        end = raw.find(0)
        if end < 0 or len(raw) - end - 1 != size:
            raise MalformedRequestError("an extended attribute is a name, a NUL and as many bytes as announced")
        name = raw[:end]
        if name == _CAPABILITY or not name.startswith(_SUPPORTED_NAMESPACES):
            return errno.EOPNOTSUPP
        if name in _SUPPORTED_NAMESPACES:  # xattr(7): the name behind the namespace cannot be empty
            return errno.EINVAL
        self._vfs.setxattr(ino, name, raw[end + 1 :], flags)
        return OK

    def listxattr(self, ino: int, body: memoryview, header: Header) -> Reply:
        size, _ = abi.GETXATTR_IN.unpack_from(body)
        listing = b"".join(name + b"\0" for name in self._vfs.listxattr(ino))
        if len(listing) > _XATTR_LIST_MAX_BYTES:
            return errno.E2BIG
        return _sized(listing, size)

    def removexattr(self, ino: int, body: memoryview, header: Header) -> Reply:
        name = one_name(body)
        if name == _CAPABILITY:
            return errno.ENODATA
        if not name.startswith(_SUPPORTED_NAMESPACES):
            return errno.EOPNOTSUPP
        if name in _SUPPORTED_NAMESPACES:
            return errno.EINVAL
        self._vfs.removexattr(ino, name)
        return OK


def _sized(value: bytes, size: int) -> Reply:
    """getxattr(2): with size 0 the length is asked for, and a buffer too small is ERANGE."""
    if size == 0:
        return abi.GETXATTR_OUT.pack(len(value), 0)
    return value if len(value) <= size else errno.ERANGE


def _moment(valid: int, given: int, now: int, seconds: int, part_ns: int, now_ns: Callable[[], int]) -> int | None:
    """utimensat(2): a time that was given, the current one, or none."""
    if not valid & given:
        return None
    return now_ns() if valid & now else seconds * _SECOND_NS + part_ns
