"""Files whose contents are on the server only: putting them, filling them, emptying them again.

An absent file is an ordinary inode with `place` ABSENT and the SHA-256 of its contents as `target`. Whatever needs the bytes
raises ContentsAbsentError before it changed anything; names, links, modes and times work without. `fill` and `evict` change
neither version nor times nor leave an intent: for everybody but the disk it is the same file before and after.
"""

from __future__ import annotations

import errno
import hashlib
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.localonly import IGNORE_FILE
from memdir.fs.posix.applied import Touched, fact_of
from memdir.fs.posix.notes import is_synced_type
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.puts import Staged
from memdir.fs.posix.state import SIZE_MAX_BYTES
from memdir.fs.posix.synctree import SyncOps
from memdir.fs.posix.txn import CUT
from memdir.fs.tree import ContentsMismatchError, LocalChangedError
from memdir.fs.types import ROOT_INO, AbsentTotals, FsStats, Inode, LocalFact, Owner, RemoteFile

_BATCH: Final = 64
"""Files of one transaction: about a millisecond in which everybody else waits for the lock."""
_IGNORE_PATH: Final = "/" + IGNORE_FILE.decode()


class AbsentOps(SyncOps):
    """See `fs.tree.SyncTree` for what each method promises."""

    # ---- what a storage overrides

    def _absent_numbers(self, content_hash: bytes | None, limit: int, max_bytes: int = SIZE_MAX_BYTES) -> list[int]:
        """Inodes that may be absent (with this hash, of at most this size): small ones first, the newest first among those."""
        found = [
            inode
            for inode in self._inodes.values()
            if inode.place == ABSENT and inode.size <= max_bytes and (content_hash is None or inode.target == content_hash)
        ]
        found.sort(key=lambda inode: (inode.size > SMALL_MAX_BYTES, -inode.mtime_ns))
        return [inode.ino for inode in found[:limit]]

    def _held_numbers(self) -> list[int]:
        """Files that may have contents here, the longest unchanged first."""
        found = [inode for inode in self._inodes.values() if inode.is_file and inode.place != ABSENT and inode.size]
        return [inode.ino for inode in sorted(found, key=lambda inode: inode.mtime_ns)]

    def held_bytes(self) -> int:
        """Sizes of all files whose contents are here."""
        with self._lock:
            return sum(inode.size for inode in self._inodes.values() if inode.is_file and inode.place != ABSENT)

    def special_count(self) -> int:
        with self._lock:
            return sum(not is_synced_type(inode.mode) for inode in self._inodes.values() if inode.nlink)

    # ---- putting

    def put_absent(self, path: str, file: RemoteFile, *, expected: LocalFact | None) -> LocalFact:
        path = paths.checked(path)
        self._check_remote_file(path, file)
        with self._lock:
            self._prepare(quiet=True)
            self._check(path, expected)
            touched = Touched()
            parent = self._make_parents(path, touched)
            txn = self._begin(quiet=True)
            inode = self._find(path)
            if inode is not None and self._takes_contents(inode):
                draft = txn.edit(inode)
                txn.contents.append((CUT, inode.ino, 0, 0))
            else:
                draft = self._stage_at(txn, path, parent, inode, stat.S_IFREG | stat.S_IMODE(file.mode))
                touched.name(parent, path)
            _describe(draft, file, txn.now_ns)
            self._commit(txn)
            touched.inodes.append(draft.ino)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact

    def put_new_absent(self, files: Sequence[RemoteFile]) -> list[LocalFact | None]:
        found: list[LocalFact | None] = []
        for start in range(0, len(files), _BATCH):
            touched = Touched()
            with self._lock:
                self._prepare(quiet=True)
                found += self._put_batch(files[start : start + _BATCH], touched)
            self._invalidate(touched)
        return found

    def _put_batch(self, files: Sequence[RemoteFile], touched: Touched) -> list[LocalFact | None]:
        """Stage what has a free name and commit it as one record. Folders on the way are made first."""
        parents = [self._free_parent(file, touched) for file in files]
        txn = self._begin(quiet=True)
        drafts: list[Inode | None] = []
        for file, parent in zip(files, parents, strict=True):
            name = paths.encode(paths.split(file.path)[1])
            if parent is None or (parent, name) in txn.dentries:
                drafts.append(None)
                continue
            mode = stat.S_IFREG | stat.S_IMODE(file.mode)
            draft = self._stage_new(txn, parent, name, mode, Owner(self.uid, self.gid))
            _describe(draft, file, txn.now_ns)
            drafts.append(draft)
            touched.names.append((parent, name))
        if txn.inodes:
            self._commit(txn)
        return [
            fact_of(file.path, self._inode(draft.ino)) if draft is not None else None
            for file, draft in zip(files, drafts, strict=True)
        ]

    def _free_parent(self, file: RemoteFile, touched: Touched) -> int | None:
        """The folder a new file goes into; None when its name is taken or cannot be."""
        try:
            path = paths.checked(file.path)
            self._check_remote_file(path, file)
            if self._find(path) is not None:
                return None
            return self._make_parents(path, touched)
        except FsError as error:
            if error.errno in (errno.ENOSPC, errno.EIO, errno.EROFS, errno.ESHUTDOWN):
                raise
            return None

    def _check_remote_file(self, path: str, file: RemoteFile) -> None:
        if path == _IGNORE_PATH:
            raise FsError(errno.EINVAL, "the ignore file cannot be absent")
        if not 0 < file.size <= SIZE_MAX_BYTES:
            raise FsError(errno.EINVAL, f"a file of {file.size} bytes cannot be absent")

    # ---- filling and emptying

    def fill(self, fact: LocalFact, content: Iterable[bytes]) -> None:
        with self._lock:
            if self._absent_version(fact) is None:
                return
        digest = hashlib.sha256()
        pieces = _measured(iter(content), fact.size, digest.update)
        staged = self._stage(pieces, keep_ino=fact.ino, keep_max_bytes=SIZE_MAX_BYTES)
        try:
            if digest.hexdigest() != fact.absent_hash:
                raise ContentsMismatchError(f"{fact.path}: the bytes that came are others than those announced")
            self._install_contents(fact, staged)
        finally:
            self._unstage(staged)

    def _install_contents(self, fact: LocalFact, staged: Staged) -> None:
        with self._lock:
            self._prepare(quiet=True)
            inode = self._absent_version(fact)
            if inode is None:
                return
            txn = self._begin(quiet=True)
            self._stage_contents(txn, inode, txn.edit(inode), staged)
            self._commit(txn)

    def _absent_version(self, fact: LocalFact) -> Inode | None:
        """The inode while it still is what `fact` says and absent, None once it has contents."""
        inode = self._inodes.get(fact.ino) or self._gone_is_changed(fact)
        if inode.version != fact.version or not inode.is_file:
            raise LocalChangedError(f"{fact.path} changed")
        return inode if inode.place == ABSENT else None

    def evict(self, fact: LocalFact, content_hash: str) -> None:
        with self._lock:
            self._prepare(quiet=True)
            inode = self._inodes.get(fact.ino) or self._gone_is_changed(fact)
            if inode.version != fact.version or not inode.is_file or not inode.nlink:
                raise LocalChangedError(f"{fact.path} changed")
            if inode.place == ABSENT:
                return
            if inode.ino == self._ignore_ino or not inode.size or inode.ino in self._lent:
                raise FsError(errno.EBUSY, f"{fact.path} stays here")
            txn = self._begin(quiet=True)
            draft = txn.edit(inode)
            txn.contents.append((CUT, inode.ino, 0, 0))
            draft.place, draft.target = ABSENT, bytes.fromhex(content_hash)
            self._commit(txn)

    # ---- looking

    def absent_totals(self) -> AbsentTotals:
        with self._lock:
            return AbsentTotals(files=self._absent_files, size_bytes=self._absent_bytes)

    def fact_by_number(self, ino: int) -> LocalFact | None:
        with self._lock:
            return self._fact_by_number(ino)

    def _fact_by_number(self, ino: int) -> LocalFact | None:
        try:
            inode = self._inode(ino)
            for parent, name in self._links[ino]:
                path, is_local = self._named(parent, name, inode.mode)
                if not is_local:
                    return fact_of(paths.decode(path), inode)
            if self._links[ino]:
                parent, name = self._links[ino][0]
                return fact_of(paths.decode(self._named(parent, name, inode.mode)[0]), inode)
        except FsError as error:
            if error.errno != errno.ENOENT:
                raise
            return None
        return fact_of("/", inode) if ino == ROOT_INO or inode.is_file else None

    def paths_of(self, ino: int) -> list[str]:
        with self._lock:
            try:
                inode = self._inode(ino)
                named = [self._named(parent, name, inode.mode) for parent, name in self._links[ino]]
            except FsError as error:
                if error.errno != errno.ENOENT:
                    raise
                return []
            return sorted(paths.decode(path) for path, is_local in named if not is_local)

    def absent_with(self, content_hash: str, limit: int) -> list[LocalFact]:
        if not self._absent_files:
            return []
        with self._lock:
            numbers = self._absent_numbers(bytes.fromhex(content_hash), limit)
            facts = [self._fact_by_number(ino) for ino in numbers]
        return [fact for fact in facts if fact is not None and fact.absent_hash == content_hash]

    def absent_files(self, limit: int, *, max_bytes: int) -> list[LocalFact]:
        with self._lock:
            facts = [self._fact_by_number(ino) for ino in self._absent_numbers(None, limit, max_bytes)]
        return [fact for fact in facts if fact is not None and fact.absent_hash is not None]

    def coldest_numbers(self) -> list[int]:
        with self._lock:
            numbers = self._held_numbers()
            uses = self._uses or {}
        return sorted(numbers, key=lambda ino: uses.get(ino, 0))  # stable: unused ones keep their order

    def statfs(self) -> FsStats:
        raise TypeError("implemented by the whole filesystem")

    def free_bytes(self) -> int:
        stats = self.statfs()
        return stats.blocks_available * stats.block_size

    def watch_uses(self) -> None:
        with self._lock:
            if self._uses is None:
                self._uses = {}


SMALL_MAX_BYTES: Final = 1024 * 1024
"""Absent files up to here are worth bringing before any larger one."""


def _describe(draft: Inode, file: RemoteFile, now_ns: int) -> None:
    draft.place, draft.target = ABSENT, bytes.fromhex(file.content_hash)
    draft.size = file.size
    draft.version += 1
    draft.mode = stat.S_IFREG | stat.S_IMODE(file.mode)
    draft.mtime_ns = file.mtime_ns
    draft.ctime_ns = now_ns


def _measured(pieces: Iterator[bytes], size_bytes: int, note: Callable[[bytes], object]) -> Iterator[bytes]:
    """The pieces, as long as they are not more than was announced; what is missing at the end shows in the digest."""
    seen = 0
    for piece in pieces:
        seen += len(piece)
        if seen > size_bytes:
            raise ContentsMismatchError(f"more than the announced {size_bytes} bytes came")
        note(piece)
        yield piece
