"""Requests about names: finding, making, moving and removing them, and the kernel's references to what they stand for."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.attributes import AttributeEncoder
from memdir.fs.fuse.backing import Backings
from memdir.fs.fuse.options import OpenObserver
from memdir.fs.fuse.wire import (
    HEADER_GID,
    HEADER_PID,
    HEADER_UID,
    OK,
    Handler,
    Header,
    MalformedRequestError,
    Reply,
    one_name,
    two_names,
)
from memdir.fs.types import ROOT_INO, VIRTUAL_INO_BASE, AttrChange, Inode, Owner
from memdir.fs.vfs import Vfs

_FORGET_MAX: Final = 65_536
"""One BATCH_FORGET; the kernel sends as many as fit into its smallest buffer."""


class NameHandlers:
    """LOOKUP, FORGET and everything that changes a directory. Every inode handed to the kernel is retained in the filesystem
    first, because the kernel counts each answer as one reference and gives them back with FORGET."""

    def __init__(self, vfs: Vfs, encoder: AttributeEncoder, *, negative_timeout_s: int) -> None:
        self._vfs = vfs
        self._find = vfs.find
        self._retain = vfs.retain
        self._encode = encoder.entry
        self._absent = abi.ENTRY_HEAD.pack(0, 0, negative_timeout_s, 0, 0, 0) + bytes(abi.ATTR.size)

    def handlers(self) -> dict[int, Handler]:
        return {
            abi.Op.LOOKUP: self.lookup,
            abi.Op.FORGET: self.forget,
            abi.Op.BATCH_FORGET: self.batch_forget,
            abi.Op.READLINK: self.readlink,
            abi.Op.SYMLINK: self.symlink,
            abi.Op.MKNOD: self.mknod,
            abi.Op.MKDIR: self.mkdir,
            abi.Op.LINK: self.link,
            abi.Op.UNLINK: self.unlink,
            abi.Op.RMDIR: self.rmdir,
            abi.Op.RENAME: self.rename,
            abi.Op.RENAME2: self.rename2,
        }

    def lookup(self, ino: int, body: memoryview, header: Header) -> Reply:
        name = one_name(body)
        try:
            inode = self._find(ino, name)
        except FsError as error:
            if error.errno != errno.ENOTDIR or name != b".":
                raise
            inode = self._vfs.get(ino)  # open_by_handle_at(2) of a file that the kernel has forgotten
        if inode is None:
            return self._absent  # remembered by the kernel until a notification or its own create says otherwise
        self._retain(inode.ino)
        return inode.encoded or self._encode(inode)

    def forget(self, ino: int, body: memoryview, header: Header) -> Reply:
        (count,) = abi.FORGET_IN.unpack_from(body)
        self._forget_one(ino, count)
        return None

    def batch_forget(self, ino: int, body: memoryview, header: Header) -> Reply:
        count, _ = abi.BATCH_FORGET_IN.unpack_from(body)
        items = body[abi.BATCH_FORGET_IN.size :]
        if count > _FORGET_MAX or len(items) < count * abi.FORGET_ONE.size:
            raise MalformedRequestError(f"{count} references to forget do not fit into {len(items)} bytes")
        for one, references in abi.FORGET_ONE.iter_unpack(items[: count * abi.FORGET_ONE.size]):
            self._forget_one(one, references)
        return None

    def _forget_one(self, ino: int, count: int) -> None:
        """The root is never forgotten; an inode that is gone already has nothing to forget."""
        if ino == ROOT_INO:
            return
        try:
            self._vfs.forget(ino, count)
        except FsError as error:
            if error.errno not in (errno.ENOENT, errno.ESTALE):
                raise

    def _hand_out(self, inode: Inode) -> bytes:
        self._retain(inode.ino)
        return inode.encoded or self._encode(inode)

    def readlink(self, ino: int, body: memoryview, header: Header) -> Reply:
        return self._vfs.readlink(ino)

    def symlink(self, ino: int, body: memoryview, header: Header) -> Reply:
        name, target = two_names(body)
        return self._hand_out(self._vfs.symlink(ino, name, target, _owner(header)))

    def mknod(self, ino: int, body: memoryview, header: Header) -> Reply:
        mode, rdev, _, _ = abi.MKNOD_IN.unpack_from(body)
        name = one_name(body[abi.MKNOD_IN.size :])
        return self._hand_out(self._vfs.create(ino, name, mode, _owner(header), rdev))

    def mkdir(self, ino: int, body: memoryview, header: Header) -> Reply:
        mode, _ = abi.MKDIR_IN.unpack_from(body)
        name = one_name(body[abi.MKDIR_IN.size :])
        return self._hand_out(self._vfs.mkdir(ino, name, stat.S_IFDIR | stat.S_IMODE(mode), _owner(header)))

    def link(self, ino: int, body: memoryview, header: Header) -> Reply:
        (existing,) = abi.LINK_IN.unpack_from(body)
        return self._hand_out(self._vfs.link(existing, ino, one_name(body[abi.LINK_IN.size :])))

    def unlink(self, ino: int, body: memoryview, header: Header) -> Reply:
        self._vfs.unlink(ino, one_name(body))
        return OK

    def rmdir(self, ino: int, body: memoryview, header: Header) -> Reply:
        self._vfs.rmdir(ino, one_name(body))
        return OK

    def rename(self, ino: int, body: memoryview, header: Header) -> Reply:
        (folder,) = abi.RENAME_IN.unpack_from(body)
        name, new_name = two_names(body[abi.RENAME_IN.size :])
        self._vfs.rename(ino, name, folder, new_name)
        return OK

    def rename2(self, ino: int, body: memoryview, header: Header) -> Reply:
        folder, flags, _ = abi.RENAME2_IN.unpack_from(body)
        name, new_name = two_names(body[abi.RENAME2_IN.size :])
        self._vfs.rename(ino, name, folder, new_name, flags)
        return OK


class OpenHandlers:
    """OPEN, CREATE and RELEASE of the observed profile. Handles only count opens: all state is in the inode."""

    def __init__(
        self, vfs: Vfs, encoder: AttributeEncoder, observer: OpenObserver | None, backings: Backings | None = None
    ) -> None:
        self._vfs = vfs
        self._encoder = encoder
        self._observer = observer
        self._backings = backings
        self._last_handle = 0

    def handlers(self) -> dict[int, Handler]:
        return {abi.Op.OPEN: self.open, abi.Op.CREATE: self.create, abi.Op.RELEASE: self.release}

    def open(self, ino: int, body: memoryview, header: Header) -> Reply:
        flags, _ = abi.OPEN_IN.unpack_from(body)
        self._vfs.get(ino)
        return self._opened(ino, flags, header)

    def create(self, ino: int, body: memoryview, header: Header) -> Reply:
        """The kernel believes the name is free. If it appeared meanwhile, an open without O_EXCL opens what is there."""
        flags, mode, _, _ = abi.CREATE_IN.unpack_from(body)
        name = one_name(body[abi.CREATE_IN.size :])
        is_new = True
        try:
            inode = self._vfs.create(ino, name, stat.S_IFREG | stat.S_IMODE(mode), _owner(header))
        except FsError as error:
            if error.errno != errno.EEXIST or flags & os.O_EXCL:
                raise
            inode, is_new = self._vfs.lookup(ino, name), False
            if not inode.is_file:
                raise
            if flags & os.O_TRUNC:
                inode = self._vfs.setattr(inode.ino, AttrChange(size=0))
        self._vfs.retain(inode.ino)
        opened = self._opened(inode.ino, flags, header, is_new=is_new)
        return self._encoder.entry(inode) + opened

    def release(self, ino: int, body: memoryview, header: Header) -> Reply:
        if self._observer is not None:
            self._observer.closed(ino)
        if self._backings is not None:
            self._backings.closed(ino)
        return OK

    def _opened(self, ino: int, flags: int, header: Header, *, is_new: bool = False) -> bytes:
        self._last_handle += 1
        if self._observer is not None:
            self._observer.opened(ino, header[HEADER_PID], flags)
        backing_id, is_true = 0, True
        if self._backings is not None and ino < VIRTUAL_INO_BASE:
            backing_id, is_true = self._backings.opened(ino, flags, is_new=is_new)
        mode = abi.FOPEN_PASSTHROUGH if backing_id else abi.FOPEN_KEEP_CACHE if is_true else 0
        return abi.OPEN_OUT.pack(self._last_handle, mode, backing_id)


def _owner(header: Header) -> Owner:
    return Owner(header[HEADER_UID], header[HEADER_GID])
