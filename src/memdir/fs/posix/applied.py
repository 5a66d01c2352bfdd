"""What every change from the server needs: compare-and-set by path, missing folders, telling the kernel's side."""

from __future__ import annotations

import errno
import stat
from typing import Final

from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.posix.attributes import AttributeOps
from memdir.fs.posix.contents import ContentOps
from memdir.fs.posix.names import NameOps, check_name
from memdir.fs.posix.notes import is_synced_type
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.txn import Txn
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import ROOT_INO, Inode, LocalFact, Owner

_CREATED_FOLDER_MODE: Final = 0o755


class AppliedOps(NameOps, ContentOps, AttributeOps):
    """Helpers; the lock is held, except where a method says otherwise."""

    def _check(self, path: str, expected: LocalFact | None) -> Inode:
        """Compare what stands at `path` with what the caller planned with. Returns the inode (the root when nothing stands
        there and nothing was expected)."""
        inode = self._find(path)
        if inode is None:
            if expected is not None:
                raise LocalChangedError(f"{path} is gone")
            return self._inode(ROOT_INO)
        now = fact_of(path, inode)
        if expected is None or now is None:
            raise LocalChangedError(f"something stands at {path}")
        if (now.ino, now.kind, now.mode, now.version, now.target) != (
            expected.ino, expected.kind, expected.mode, expected.version, expected.target,
        ):  # fmt: skip
            raise LocalChangedError(f"{path} changed")
        return inode

    def _fact_at(self, path: str) -> LocalFact:
        inode = self._find(path)
        fact = fact_of(path, inode) if inode is not None else None
        if fact is None:
            raise LocalChangedError(f"{path} is gone")
        return fact

    def _place(self, path: str) -> tuple[int, bytes]:
        """Parent and name of an existing path."""
        folder, name = paths.split(path)
        above = self._find(folder)
        if above is None:
            raise FsError(errno.ENOENT)
        return above.ino, paths.encode(name)

    def _make_parents(self, path: str, touched: Touched) -> int:
        """The folder `path` goes into, with missing ones made; ENOTDIR when something else stands in the way."""
        if path == "/":
            raise FsError(errno.EBUSY, "the root of a mount stays")
        *folders, name = path.split("/")[1:]
        check_name(paths.encode(name))
        above, where = ROOT_INO, "/"
        for folder in folders:
            where = paths.join(where, folder)
            entry = self._directory(above).entries.get(paths.encode(folder))
            if entry is None:
                txn = self._begin(quiet=True)
                made = self._stage_new(
                    txn, above, paths.encode(folder), stat.S_IFDIR | _CREATED_FOLDER_MODE, Owner(self.uid, self.gid)
                )
                self._commit(txn)
                touched.name(above, where)
                above = made.ino
            else:
                above = entry[0]
        self._directory(above)  # ENOTDIR
        return above

    def _stage_at(
        self, txn: Txn, path: str, parent: int, old: Inode | None, mode: int, *, target: bytes | None = None, ino: int = 0
    ) -> Inode:
        """Stage a new inode at `path` in the place of `old`, which has another kind or nothing in common with it."""
        name, owner = paths.encode(paths.split(path)[1]), Owner(self.uid, self.gid)
        if old is not None:
            self._stage_replaced(txn, parent, old)
        return self._stage_new(txn, parent, name, mode, owner, target=target, replaces=old is not None, ino=ino)

    def _stage_replaced(self, txn: Txn, parent: int, old: Inode) -> None:
        if old.is_dir and self._directory(old.ino).entries:
            raise FsError(errno.ENOTEMPTY)
        self._stage_drop(txn, parent, old)

    def _invalidate(self, touched: Touched) -> None:
        """Tell the kernel's side, with no lock held, and the listeners when other names of the same file changed, too."""
        self._announce()
        for invalidator in self._invalidators:
            for parent, name in touched.names:
                invalidator.entry_changed(parent, name)
                invalidator.inode_changed(parent)
            for ino in touched.inodes:
                invalidator.inode_changed(ino)


class Touched:
    """What an applied change touched, for the invalidators."""

    __slots__ = ("inodes", "names")

    def __init__(self) -> None:
        self.inodes: list[int] = []
        self.names: list[tuple[int, bytes]] = []

    def name(self, parent: int, path: str) -> None:
        self.names.append((parent, paths.encode(paths.split(path)[1])))


def fact_of(path: str, inode: Inode) -> LocalFact | None:
    if not is_synced_type(inode.mode):
        return None
    kind = "dir" if inode.is_dir else "symlink" if inode.is_symlink else "file"
    absent_hash = inode.target.hex() if inode.place == ABSENT and inode.target is not None else None
    return LocalFact(
        path=path, ino=inode.ino, kind=kind, mode=stat.S_IMODE(inode.mode), size=inode.size, mtime_ns=inode.mtime_ns,
        version=inode.version, target=inode.target if kind == "symlink" else None, absent_hash=absent_hash,
    )  # fmt: skip
