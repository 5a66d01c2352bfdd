"""`ViewVfs`: a filesystem with views laid over its root."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, Protocol

from memdir.core.clock import Clock, SystemClock
from memdir.fs.errors import FsError
from memdir.fs.types import (
    ROOT_INO,
    VIRTUAL_INO_BASE,
    AttrChange,
    Data,
    DirEntry,
    FsStats,
    Inode,
    ReadResult,
)
from memdir.fs.vfs import Vfs
from memdir.fs.views.layer import Layer
from memdir.fs.views.nodes import Snapshot, SnapshotTable, VirtualDir, VirtualNode

_COOKIE_BASE: Final = 1 << 62
"""Listed views come behind every real entry of the root; real cookies stay far below."""


class View(Protocol):
    """One virtual node at the root."""

    @property
    def name(self) -> bytes: ...

    @property
    def listed(self) -> bool:
        """Whether a listing of the root shows it; it can be looked up either way."""
        ...

    @property
    def yields(self) -> bool:
        """Whether a real entry of that name is shown instead."""
        ...

    @property
    def node(self) -> VirtualNode | None:
        """None: there is nothing to show yet."""
        ...

    def connect(self, changed: Callable[[], None]) -> None:
        """Call `changed` from now on when the contents became new by themselves."""
        ...


class ViewVfs(Layer):
    """A `Vfs`: `base`, except that the views' names at the root stand for the views. Every change of a view is EROFS.

    Real inode numbers go straight through; virtual ones start at VIRTUAL_INO_BASE. A real entry with a view's name is shadowed:
    it cannot be seen or changed through this object, and nothing happens to it; only a view that `yields` gives way to it.
    """

    def __init__(self, base: Vfs, views: Sequence[View], *, clock: Clock | None = None) -> None:
        super().__init__(base, first_ino=VIRTUAL_INO_BASE)
        self._views = {view.name: view for view in views}
        self._hiding = {view.name for view in views if not view.yields}
        self._listed = [view.name for view in views if view.listed]
        self._clock = clock or SystemClock()
        self._table = SnapshotTable()
        self._lock = threading.Lock()
        for view in views:
            view.connect(partial(self._changed, view.name))

    def _changed(self, name: bytes) -> None:
        self._entry_changed(ROOT_INO, name)

    # Virtual nodes

    def _take(self, parent: int, place: tuple[bytes, ...], node: VirtualNode) -> Snapshot:
        root = self._base.get(ROOT_INO)
        return self._table.take(place, node, parent=parent, uid=root.uid, gid=root.gid, now_ns=self._clock.now_ns())

    def _snapshot(self, ino: int) -> Snapshot:
        snapshot = self._table.get(ino)
        if snapshot is None:
            raise FsError(errno.ENOENT)
        return snapshot

    def _view_inode(self, view: View) -> Inode | None:
        node = view.node
        if node is None:
            return None
        with self._lock:
            return self._take(ROOT_INO, (view.name,), node).inode

    def _shown(self, name: bytes) -> View | None:
        """The view that stands at a name of the root."""
        view = self._views.get(name)
        if view is not None and view.yields and (view.node is None or self._base.find(ROOT_INO, name) is not None):
            return None
        return view

    def _child(self, folder: Snapshot, name: bytes) -> Inode:
        """The child as it is now; ENOENT when it is gone."""
        if not isinstance(folder.node, VirtualDir):
            raise FsError(errno.ENOTDIR)
        child = folder.node.children().get(name)
        if child is None:
            raise FsError(errno.ENOENT)
        return self._take(folder.inode.ino, (*folder.place, name), child).inode

    def _virtual_lookup(self, parent: int, name: bytes) -> Inode:
        with self._lock:
            folder = self._snapshot(parent)
            if name == b"." and isinstance(folder.node, VirtualDir):
                return folder.inode
            if name != b"..":
                return self._child(folder, name)
        return self.get(folder.inode.parent)

    def _virtual_entries(self, ino: int, after_cookie: int) -> Sequence[DirEntry]:
        """The names as they were when the folder was looked up; one that has gone since is left out."""
        with self._lock:
            folder = self._snapshot(ino)
            if not isinstance(folder.node, VirtualDir):
                raise FsError(errno.ENOTDIR)
            entries = []
            for cookie, name in enumerate(folder.names, start=1):
                if cookie > after_cookie:
                    try:
                        entries.append(DirEntry(cookie, name, self._child(folder, name)))
                    except FsError as error:
                        if error.errno != errno.ENOENT:
                            raise
            return entries

    def _refuse_name(self, parent: int, name: bytes) -> None:
        if parent >= VIRTUAL_INO_BASE or (parent == ROOT_INO and self._shown(name) is not None):
            raise FsError(errno.EROFS)

    # fs.vfs.Vfs

    def get(self, ino: int) -> Inode:
        if ino < VIRTUAL_INO_BASE:
            return self._base.get(ino)
        with self._lock:
            return self._snapshot(ino).inode

    def find(self, parent: int, name: bytes) -> Inode | None:
        if ROOT_INO < parent < VIRTUAL_INO_BASE:
            return self._base.find(parent, name)
        if parent != ROOT_INO:
            return self._virtual_lookup(parent, name)
        view = self._shown(name)
        return self._base.find(parent, name) if view is None else self._view_inode(view)

    def retain(self, ino: int, count: int = 1) -> None:
        if ino < VIRTUAL_INO_BASE:
            self._base.retain(ino, count)
            return
        with self._lock:
            self._snapshot(ino).inode.lookups += count

    def forget(self, ino: int, count: int) -> None:
        if ino < VIRTUAL_INO_BASE:
            self._base.forget(ino, count)
            return
        with self._lock:
            self._table.forget(ino, count)

    def setattr(self, ino: int, change: AttrChange) -> Inode:
        self._refuse(ino)
        return self._base.setattr(ino, change)

    def readlink(self, ino: int) -> bytes:
        if ino >= VIRTUAL_INO_BASE:
            raise FsError(errno.EINVAL)
        return self._base.readlink(ino)

    def unlink(self, parent: int, name: bytes) -> None:
        self._refuse_name(parent, name)
        self._base.unlink(parent, name)

    def rmdir(self, parent: int, name: bytes) -> None:
        self._refuse_name(parent, name)
        self._base.rmdir(parent, name)

    def allocated_bytes(self, ino: int) -> int:
        return self._base.allocated_bytes(ino) if ino < VIRTUAL_INO_BASE else len(self._file_data(ino))

    def read(self, ino: int, offset: int, size: int) -> ReadResult:
        if ino < VIRTUAL_INO_BASE:
            return self._base.read(ino, offset, size)
        return self._file_data(ino)[offset : offset + size]

    def write(self, ino: int, offset: int, data: Data) -> int:
        self._refuse(ino)
        return self._base.write(ino, offset, data)

    def fallocate(self, ino: int, offset: int, length: int, mode: int) -> None:
        self._refuse(ino)
        self._base.fallocate(ino, offset, length, mode)

    def readdir(self, ino: int, after_cookie: int = 0) -> Sequence[DirEntry]:
        if ino >= VIRTUAL_INO_BASE:
            return self._virtual_entries(ino, after_cookie)
        if ino != ROOT_INO:
            return self._base.readdir(ino, after_cookie)
        entries = [] if after_cookie >= _COOKIE_BASE else list(self._base.readdir(ino, after_cookie))
        if any(self._is_shadowed(name) for name in self._hiding):
            entries = [entry for entry in entries if entry.name not in self._hiding]
        for cookie, name in enumerate(self._listed, start=_COOKIE_BASE):
            inode = self._view_inode(self._views[name]) if cookie > after_cookie else None
            if inode is not None:
                entries.append(DirEntry(cookie, name, inode))
        return entries

    def getxattr(self, ino: int, name: bytes) -> bytes:
        if ino >= VIRTUAL_INO_BASE:
            raise FsError(errno.ENODATA)
        return self._base.getxattr(ino, name)

    def setxattr(self, ino: int, name: bytes, value: bytes, flags: int = 0) -> None:
        self._refuse(ino)
        self._base.setxattr(ino, name, value, flags)

    def listxattr(self, ino: int) -> Sequence[bytes]:
        return () if ino >= VIRTUAL_INO_BASE else self._base.listxattr(ino)

    def removexattr(self, ino: int, name: bytes) -> None:
        self._refuse(ino)
        self._base.removexattr(ino, name)

    def statfs(self) -> FsStats:
        return self._base.statfs()

    def close(self) -> None:
        self._base.close()

    def _file_data(self, ino: int) -> bytes:
        with self._lock:
            snapshot = self._snapshot(ino)
        if isinstance(snapshot.node, VirtualDir):
            raise FsError(errno.EISDIR)
        return snapshot.data

    def _own_size(self, ino: int) -> int:
        return len(self._file_data(ino))

    def _is_shadowed(self, name: bytes) -> bool:
        try:
            self._base.lookup(ROOT_INO, name)
        except FsError:
            return False
        return True
