"""The face for the sync engine: intents out, remote changes in, by path. See `fs.tree.SyncTree` for the promises."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, overload

from memdir.core.limits import MIB
from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.posix.attributes import AttributeOps
from memdir.fs.posix.contents import ContentOps, joined
from memdir.fs.posix.names import NameOps, check_name
from memdir.fs.posix.notes import is_synced_type
from memdir.fs.posix.state import SIZE_MAX_BYTES
from memdir.fs.posix.txn import CUT, PATCH, Txn
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import ROOT_INO, Inode, Intent, LocalFact, Owner, ReadResult
from memdir.fs.vfs import IntentListener, Invalidator

IN_PLACE_MAX_BYTES: Final = 8 * MIB
"""Contents up to here replace those of the existing inode in one transaction, so that a process that has the file open goes
on with the new ones. Larger ones are staged in an unnamed inode that then takes over the name."""
_STAGE_BYTES: Final = 1 * MIB
_LISTENERS_MAX: Final = 16
_CREATED_FOLDER_MODE: Final = 0o755


class SyncOps(NameOps, ContentOps, AttributeOps):
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
            return _fact(path, inode) if inode is not None else None

    def children(self, folder: str) -> Sequence[LocalFact]:
        folder = paths.checked(folder)
        with self._lock:
            inode = self._find(folder)
            if inode is None or not inode.is_dir:
                return ()
            entries = self._directory(inode.ino).entries
            found = (
                _fact(paths.join(folder, paths.decode(name)), self._inode(ino)) for name, (ino, _) in sorted(entries.items())
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
        with self._lock:
            inode = self._inodes.get(fact.ino) or self._gone_is_changed(fact)
            if inode.version != fact.version or not inode.nlink:
                raise LocalChangedError(f"{fact.path} changed while it was read")
            return joined(super().read(fact.ino, offset, size))

    def _gone_is_changed(self, fact: LocalFact) -> Inode:
        try:
            return self._inode(fact.ino)
        except FsError as error:
            raise LocalChangedError(f"{fact.path} is gone") from error

    def put_file(
        self, path: str, content: Iterable[bytes], *, mode: int, mtime_ns: int, expected: LocalFact | None
    ) -> LocalFact:
        path = paths.checked(path)
        with self._lock:
            self._check(path, expected)  # early, before the contents are fetched; again when they are all here
        pieces = iter(content)
        head, tail = _first(pieces, IN_PLACE_MAX_BYTES)
        if tail is None:
            return self._put_small(path, head, mode, mtime_ns, expected)
        return self._put_large(path, head, tail, pieces, mode, mtime_ns, expected)

    def _put_small(self, path: str, data: bytes, mode: int, mtime_ns: int, expected: LocalFact | None) -> LocalFact:
        with self._lock:
            self._prepare(quiet=True)
            self._check(path, expected)
            touched = _Touched()
            parent = self._make_parents(path, touched)
            txn = self._begin(quiet=True)
            inode = self._find(path)
            if inode is not None and inode.is_file:
                draft = txn.edit(inode)
                txn.contents.append((CUT, inode.ino, 0, 0))
                self._note_other_paths(txn, inode, path)
            else:
                draft = self._stage_at(txn, path, parent, inode, stat.S_IFREG | mode)
                touched.name(parent, path)
            if data:
                txn.contents.append((PATCH, draft.ino, 0, data))
            draft.size = len(data)
            draft.version += 1
            draft.mode = stat.S_IFREG | stat.S_IMODE(mode)
            draft.mtime_ns = mtime_ns
            draft.ctime_ns = txn.now_ns
            self._commit(txn)
            touched.inodes.append(draft.ino)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact

    def _put_large(
        self, path: str, head: bytes, tail: bytes, pieces: Iterator[bytes], mode: int, mtime_ns: int, expected: LocalFact | None
    ) -> LocalFact:
        staged = self._stage_unnamed(stat.S_IFREG | stat.S_IMODE(mode))
        try:
            offset = 0
            for piece in _chain(head, tail, pieces):
                for start in range(0, len(piece), _STAGE_BYTES):
                    offset += self._append_unnamed(staged, offset, piece[start : start + _STAGE_BYTES])
            with self._lock:
                self._prepare(quiet=True)
                self._check(path, expected)
                touched = _Touched()
                parent = self._make_parents(path, touched)
                name = paths.encode(paths.split(path)[1])
                txn = self._begin(quiet=True)
                old = self._find(path)
                if old is not None:
                    self._stage_replaced(txn, parent, old)
                draft = txn.edit(self._inode(staged))
                draft.nlink, draft.parent, draft.mtime_ns = 1, parent, mtime_ns
                self._stage_name(txn, parent, name, staged)
                self._commit(txn)
                touched.name(parent, path)
                fact = self._fact_at(path)
        finally:
            self.forget(staged, 1)  # the reference that kept it alive; deletes it when it got no name
        self._invalidate(touched)
        return fact

    def _stage_unnamed(self, mode: int) -> int:
        """A file without a name, kept by one reference; a crash leaves it to the clean-up at open."""
        with self._lock:
            self._prepare(quiet=True)
            txn = self._begin(quiet=True)
            ino, now_ns = txn.next_ino, txn.now_ns
            txn.next_ino += 1
            txn.inodes[ino] = Inode(
                ino=ino, mode=mode, uid=self.uid, gid=self.gid, nlink=0, size=0, atime_ns=now_ns, mtime_ns=now_ns,
                ctime_ns=now_ns, parent=ROOT_INO,
            )  # fmt: skip
            self._commit(txn)
            self._inodes[ino].lookups = 1
            return ino

    def _append_unnamed(self, ino: int, offset: int, piece: bytes) -> int:
        with self._lock:
            self._prepare(quiet=True)
            if offset + len(piece) > SIZE_MAX_BYTES:
                raise FsError(errno.EFBIG)
            txn = self._begin(quiet=True)
            draft = txn.edit(self._inode(ino))
            draft.size = offset + len(piece)
            draft.version += 1
            txn.contents.append((PATCH, ino, offset, piece))
            self._commit(txn)
            return len(piece)

    def put_dir(self, path: str, *, mode: int, expected: LocalFact | None) -> LocalFact:
        return self._put_node(path, stat.S_IFDIR | stat.S_IMODE(mode), None, expected)

    def put_symlink(self, path: str, target: bytes, *, expected: LocalFact | None) -> LocalFact:
        return self._put_node(path, stat.S_IFLNK | 0o777, target, expected)

    def _put_node(self, path: str, mode: int, target: bytes | None, expected: LocalFact | None) -> LocalFact:
        path = paths.checked(path)
        with self._lock:
            self._prepare(quiet=True)
            self._check(path, expected)
            touched = _Touched()
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
            touched = _Touched()
            self._change_mode(path, self._check(path, expected), mode, touched)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact

    def _change_mode(self, path: str, inode: Inode, mode: int, touched: _Touched) -> None:
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
            touched = _Touched()
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
            touched = _Touched()
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

    # ---- helpers, with the lock held

    def _check(self, path: str, expected: LocalFact | None) -> Inode:
        """Compare what stands at `path` with what the caller planned with. Returns the inode (the root when nothing stands
        there and nothing was expected)."""
        inode = self._find(path)
        if inode is None:
            if expected is not None:
                raise LocalChangedError(f"{path} is gone")
            return self._inode(ROOT_INO)
        now = _fact(path, inode)
        if expected is None or now is None:
            raise LocalChangedError(f"something stands at {path}")
        if (now.ino, now.kind, now.mode, now.version, now.target) != (
            expected.ino, expected.kind, expected.mode, expected.version, expected.target,
        ):  # fmt: skip
            raise LocalChangedError(f"{path} changed")
        return inode

    def _fact_at(self, path: str) -> LocalFact:
        inode = self._find(path)
        fact = _fact(path, inode) if inode is not None else None
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

    def _make_parents(self, path: str, touched: _Touched) -> int:
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
        self, txn: Txn, path: str, parent: int, old: Inode | None, mode: int, *, target: bytes | None = None
    ) -> Inode:
        """Stage a new inode at `path` in the place of `old`, which has another kind or nothing in common with it."""
        name = paths.encode(paths.split(path)[1])
        if old is None:
            return self._stage_new(txn, parent, name, mode, Owner(self.uid, self.gid), target=target)
        self._stage_replaced(txn, parent, old)
        return self._stage_new(txn, parent, name, mode, Owner(self.uid, self.gid), target=target, replaces=True)

    def _stage_replaced(self, txn: Txn, parent: int, old: Inode) -> None:
        if old.is_dir and self._directory(old.ino).entries:
            raise FsError(errno.ENOTEMPTY)
        self._stage_drop(txn, parent, old)

    def _invalidate(self, touched: _Touched) -> None:
        """Tell the kernel's side, with no lock held, and the listeners when other names of the same file changed, too."""
        self._announce()
        for invalidator in self._invalidators:
            for parent, name in touched.names:
                invalidator.entry_changed(parent, name)
                invalidator.inode_changed(parent)
            for ino in touched.inodes:
                invalidator.inode_changed(ino)


class _Touched:
    """What an applied change touched, for the invalidators."""

    __slots__ = ("inodes", "names")

    def __init__(self) -> None:
        self.inodes: list[int] = []
        self.names: list[tuple[int, bytes]] = []

    def name(self, parent: int, path: str) -> None:
        self.names.append((parent, paths.encode(paths.split(path)[1])))


def _fact(path: str, inode: Inode) -> LocalFact | None:
    if not is_synced_type(inode.mode):
        return None
    kind = "dir" if inode.is_dir else "symlink" if inode.is_symlink else "file"
    return LocalFact(
        path=path, ino=inode.ino, kind=kind, mode=stat.S_IMODE(inode.mode), size=inode.size, mtime_ns=inode.mtime_ns,
        version=inode.version, target=inode.target,
    )  # fmt: skip


def _first(pieces: Iterator[bytes], limit_bytes: int) -> tuple[bytes, bytes | None]:
    """Up to `limit_bytes` in one buffer; the second part is what was read past it, None when the iterator ended before."""
    head = bytearray()
    for piece in pieces:
        if len(head) + len(piece) > limit_bytes:
            return bytes(head), piece
        head += piece
    return bytes(head), None


def _chain(head: bytes, tail: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield tail
    yield from pieces
