"""What the filesystems that lie over another one have in common: nodes of their own, that nobody can change."""

from __future__ import annotations

import errno
from abc import ABC, abstractmethod
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.types import Inode, Owner
from memdir.fs.vfs import Invalidator, Vfs


class Layer(ABC):
    """The part of a `Vfs` over `base` that goes through unless it is about a node of this layer; then it is EROFS."""

    def __init__(self, base: Vfs, *, first_ino: int) -> None:
        """Inodes from `first_ino` on are this layer's."""
        self._base: Final = base
        self._first_ino: Final = first_ino
        self._invalidators: list[Invalidator] = []

    @abstractmethod
    def find(self, parent: int, name: bytes) -> Inode | None:
        """See `Vfs`."""

    @abstractmethod
    def _refuse_name(self, parent: int, name: bytes) -> None:
        """FsError EROFS when the name stands for a node of this layer."""

    @abstractmethod
    def _own_size(self, ino: int) -> int:
        """Of a file of this layer, in bytes. FsError EISDIR for a folder."""

    def connect(self, invalidator: Invalidator) -> None:
        """Tell `invalidator` of nodes of this layer that came, changed or went. The base has its own `connect`."""
        self._invalidators.append(invalidator)

    def _entry_changed(self, parent: int, name: bytes) -> None:
        for invalidator in self._invalidators:
            invalidator.entry_changed(parent, name)
            invalidator.inode_changed(parent)  # a listing is forgotten with a name only where the kernel knows that name

    def _refuse(self, ino: int) -> None:
        if ino >= self._first_ino:
            raise FsError(errno.EROFS)

    def lookup(self, parent: int, name: bytes) -> Inode:
        inode = self.find(parent, name)
        if inode is None:
            raise FsError(errno.ENOENT)
        return inode

    def create(self, parent: int, name: bytes, mode: int, owner: Owner, rdev: int = 0) -> Inode:
        self._refuse_name(parent, name)
        return self._base.create(parent, name, mode, owner, rdev)

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> Inode:
        self._refuse_name(parent, name)
        return self._base.mkdir(parent, name, mode, owner)

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> Inode:
        self._refuse_name(parent, name)
        return self._base.symlink(parent, name, target, owner)

    def link(self, ino: int, parent: int, name: bytes) -> Inode:
        self._refuse(ino)
        self._refuse_name(parent, name)
        return self._base.link(ino, parent, name)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        self._refuse_name(parent, name)
        self._refuse_name(new_parent, new_name)
        self._base.rename(parent, name, new_parent, new_name, flags)

    def seek_data(self, ino: int, offset: int, *, hole: bool) -> int:
        if ino < self._first_ino:
            return self._base.seek_data(ino, offset, hole=hole)
        size = self._own_size(ino)
        if not 0 <= offset < size:
            raise FsError(errno.ENXIO)
        return size if hole else offset

    def fsync(self, ino: int) -> None:
        if ino < self._first_ino:
            self._base.fsync(ino)
