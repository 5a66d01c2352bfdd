"""What a view is made of, and the snapshots that are handed out of it.

A virtual file has no contents until somebody looks it up. The lookup renders it and freezes the bytes as a snapshot with an
inode number of its own, so the size that the kernel was told and the bytes it reads always belong together, a reader in
the middle of a file is not disturbed by a change, and no cached page can ever be stale: new contents are a new inode.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from memdir.fs.types import VIRTUAL_INO_BASE, Inode

_FILE_MODE: Final = stat.S_IFREG | 0o444
_DIR_MODE: Final = stat.S_IFDIR | 0o555
_KEPT_MAX: Final = 4096
"""Snapshots kept although the kernel holds no reference to them; the oldest go first."""

Place: TypeAlias = tuple[bytes, ...]
"""The names that lead from the root to a virtual node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualFile:
    """`render` runs at every lookup in the request loop: it must be quick and must never touch the mount."""

    render: Callable[[], bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualDir:
    """`children` runs at every lookup and listing, under the same rules as `VirtualFile.render`."""

    children: Callable[[], Mapping[bytes, VirtualNode]]


VirtualNode: TypeAlias = VirtualFile | VirtualDir


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """One state of one node."""

    place: Place
    node: VirtualNode
    inode: Inode
    data: bytes
    """Of a file."""
    names: tuple[bytes, ...]
    """Of a folder, sorted: position plus one is the cookie."""


class SnapshotTable:
    """The snapshots in use. Not locked: `ViewVfs` does that."""

    def __init__(self) -> None:
        self._by_ino: dict[int, Snapshot] = {}
        self._latest: dict[Place, Snapshot] = {}
        self._next_ino = VIRTUAL_INO_BASE

    def take(self, place: Place, node: VirtualNode, *, parent: int, uid: int, gid: int, now_ns: int) -> Snapshot:
        """The node as it is now: the previous snapshot when nothing changed, a new one otherwise."""
        data = node.render() if isinstance(node, VirtualFile) else b""
        names = tuple(sorted(node.children())) if isinstance(node, VirtualDir) else ()
        previous = self._latest.pop(place, None)
        if previous is not None and _is_same(previous, node, data, names, parent, uid, gid):
            self._latest[place] = previous  # at the end: most recently used
            return previous
        if previous is not None and not previous.inode.lookups:
            del self._by_ino[previous.inode.ino]
        snapshot = Snapshot(
            place=place, node=node, data=data, names=names, inode=self._inode(node, len(data), parent, uid, gid, now_ns)
        )
        self._by_ino[snapshot.inode.ino] = snapshot
        self._latest[place] = snapshot
        self._trim()
        return snapshot

    def get(self, ino: int) -> Snapshot | None:
        return self._by_ino.get(ino)

    def forget(self, ino: int, count: int) -> None:
        """Give references back; a snapshot that is not the latest of its place goes with its last one."""
        snapshot = self._by_ino.get(ino)
        if snapshot is None:
            return
        snapshot.inode.lookups = max(snapshot.inode.lookups - count, 0)
        if not snapshot.inode.lookups and self._latest.get(snapshot.place) is not snapshot:
            del self._by_ino[ino]

    def __len__(self) -> int:
        return len(self._by_ino)

    def _inode(self, node: VirtualNode, size: int, parent: int, uid: int, gid: int, now_ns: int) -> Inode:
        self._next_ino += 1
        is_file = isinstance(node, VirtualFile)
        return Inode(
            ino=self._next_ino, mode=_FILE_MODE if is_file else _DIR_MODE, uid=uid, gid=gid, nlink=1 if is_file else 2,
            size=size, atime_ns=now_ns, mtime_ns=now_ns, ctime_ns=now_ns, parent=parent,
        )  # fmt: skip

    def _trim(self) -> None:
        while len(self._latest) > _KEPT_MAX:
            oldest = self._latest.pop(next(iter(self._latest)))
            if not oldest.inode.lookups:
                del self._by_ino[oldest.inode.ino]


def _is_same(old: Snapshot, node: VirtualNode, data: bytes, names: tuple[bytes, ...], parent: int, uid: int, gid: int) -> bool:
    """Whether `old` still tells the truth. Folders compare by names: their children are rendered when they are looked up."""
    inode = old.inode
    return (
        type(old.node) is type(node)
        and old.data == data
        and old.names == names
        and (inode.parent, inode.uid, inode.gid) == (parent, uid, gid)
    )
