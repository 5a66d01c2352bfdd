"""The face for the sync engine: intents out, remote changes in, by path. See `fs.tree.SyncTree` for the promises."""

from __future__ import annotations

import errno
import stat
from collections.abc import Sequence
from typing import Final, overload

from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.posix.applied import Touched, fact_of
from memdir.fs.posix.puts import PutOps
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import Inode, Intent, LocalFact, ReadResult, joined
from memdir.fs.vfs import IntentListener, Invalidator

_LISTENERS_MAX: Final = 16


class SyncOps(PutOps):
    """Everything that comes from the server goes through here; it is `quiet`: it leaves no intent."""

    def listen(self, listener: IntentListener) -> None:
        with self._lock:
            if len(self._listeners) >= _LISTENERS_MAX:
                raise RuntimeError(f"more than {_LISTENERS_MAX} listeners")
            self._listeners.append(listener)

    def connect(self, invalidator: Invalidator) -> None:
        with self._lock:
            if len(self._invalidators) >= _LISTENERS_MAX:
                raise RuntimeError(f"more than {_LISTENERS_MAX} invalidators")
            self._invalidators.append(invalidator)

    def intents(self, after_seq: int, limit: int) -> Sequence[Intent]:
        with self._lock:
            if self._rules_stale:
                self._refresh_rules()
            return self._intents.read(after_seq, limit)

    def newest_intent(self) -> int:
        with self._lock:
            return self._intents.next_seq - 1

    def intents_left(self, after_seq: int) -> int:
        with self._lock:
            return self._intents.left(after_seq)

    def acknowledge(self, seq: int) -> None:
        with self._lock:
            if self._intents.acknowledgeable(seq):
                txn = self._begin(quiet=True)
                txn.acknowledged = seq
                self._commit(txn)

    def fact(self, path: str) -> LocalFact | None:
        path = paths.checked(path)
        with self._lock:
            inode = self._find(path)
            return fact_of(path, inode) if inode is not None else None

    def children(self, folder: str) -> Sequence[LocalFact]:
        folder = paths.checked(folder)
        with self._lock:
            inode = self._find(folder)
            if inode is None or not inode.is_dir:
                return ()
            entries = self._directory(inode.ino).entries
            found = (
                fact_of(paths.join(folder, paths.decode(name)), self._inode(ino)) for name, (ino, _) in sorted(entries.items())
            )
            return tuple(fact for fact in found if fact is not None)

    @overload
    def read(self, ino: int, offset: int, size: int) -> ReadResult: ...
    @overload
    def read(self, fact: LocalFact, offset: int, size: int) -> bytes: ...
    def read(self, ino: int | LocalFact, offset: int, size: int) -> ReadResult:  # type: ignore[misc]
        """Two faces, one name: `Vfs.read` asks with an inode number, `SyncTree.read` with the fact that must still hold."""
        if isinstance(ino, int):
            return super().read(ino, offset, size)
        fact = ino
        self._settle(fact.ino)
        with self._lock:
            data = joined(super().read(fact.ino, offset, size)) if fact.ino in self._lent else None
            inode = self._inodes.get(fact.ino) or self._gone_is_changed(fact)
            if data is not None:
                self.refresh(fact.ino)
            if inode.version != fact.version or not inode.nlink:
                raise LocalChangedError(f"{fact.path} changed while it was read")
            return joined(super().read(fact.ino, offset, size)) if data is None else data

    def _settle(self, ino: int) -> None:
        """Contents are about to be sent: what the server is told must not be taken back by a power cut. Without the lock."""

    def _gone_is_changed(self, fact: LocalFact) -> Inode:
        try:
            return self._inode(fact.ino)
        except FsError as error:
            raise LocalChangedError(f"{fact.path} is gone") from error

    def put_dir(self, path: str, *, mode: int, expected: LocalFact | None) -> LocalFact:
        return self._put_node(path, stat.S_IFDIR | stat.S_IMODE(mode), None, expected)

    def put_symlink(self, path: str, target: bytes, *, expected: LocalFact | None) -> LocalFact:
        return self._put_node(path, stat.S_IFLNK | 0o777, target, expected)

    def _put_node(self, path: str, mode: int, target: bytes | None, expected: LocalFact | None) -> LocalFact:
        path = paths.checked(path)
        with self._lock:
            self._prepare(quiet=True)
            self._check(path, expected)
            touched = Touched()
            inode = self._find(path)
            if inode is not None and inode.is_dir and stat.S_ISDIR(mode):
                self._change_mode(path, inode, mode, touched)
            elif inode is None or inode.target is None or inode.target != target:
                parent = self._make_parents(path, touched)
                txn = self._begin(quiet=True)
                self._stage_at(txn, path, parent, inode, mode, target=target)
                self._commit(txn)
                touched.name(parent, path)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact

    def set_mode(self, path: str, *, mode: int, expected: LocalFact) -> LocalFact:
        path = paths.checked(path)
        with self._lock:
            self._prepare(quiet=True)
            touched = Touched()
            self._change_mode(path, self._check(path, expected), mode, touched)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact

    def _change_mode(self, path: str, inode: Inode, mode: int, touched: Touched) -> None:
        txn = self._begin(quiet=True)
        draft = txn.edit(inode)
        draft.mode = stat.S_IFMT(inode.mode) | stat.S_IMODE(mode)
        draft.ctime_ns = txn.now_ns
        self._note_other_paths(txn, inode, path)
        self._commit(txn)
        touched.inodes.append(inode.ino)

    def delete(self, path: str, *, expected: LocalFact) -> None:
        path = paths.checked(path)
        if path == "/":
            raise FsError(errno.EBUSY, "the root of a mount stays")
        with self._lock:
            self._prepare(quiet=True)
            inode = self._check(path, expected)
            parent, name = self._place(path)
            txn = self._begin(quiet=True)
            self._stage_replaced(txn, parent, inode)
            self._stage_name(txn, parent, name, 0)
            self._commit(txn)
            touched = Touched()
            touched.name(parent, path)
            touched.inodes.append(inode.ino)
        self._invalidate(touched)

    def move(self, source: str, path: str, *, expected: LocalFact) -> LocalFact:
        source, path = paths.checked(source), paths.checked(path)
        if "/" in (source, path):
            raise FsError(errno.EBUSY, "the root of a mount stays")
        with self._lock:
            self._prepare(quiet=True)
            inode = self._check(source, expected)
            self._check(path, None)
            if inode.is_dir and paths.is_within(path, source):
                raise FsError(errno.EINVAL, "a directory cannot move into itself")
            touched = Touched()
            parent = self._make_parents(path, touched)
            old_parent, old_name = self._place(source)
            txn = self._begin(quiet=True)
            if self._stage_rename(txn, (old_parent, old_name), (parent, paths.encode(paths.split(path)[1])), 0):
                self._commit(txn)
            touched.name(old_parent, source)
            touched.name(parent, path)
            touched.inodes.append(inode.ino)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact
