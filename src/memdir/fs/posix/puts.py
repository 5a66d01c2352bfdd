"""Contents from the server, put at a path at once."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from memdir.core.limits import MIB
from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.posix.applied import AppliedOps, Touched
from memdir.fs.posix.place import IN_CHUNKS
from memdir.fs.posix.state import SIZE_MAX_BYTES
from memdir.fs.posix.txn import CUT, PATCH, Txn
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import Inode, LocalFact

IN_PLACE_MAX_BYTES: Final = 8 * MIB
"""Contents up to here replace those of the existing inode in one transaction, so that a process that has the file open goes
on with the new ones. Larger ones get a new inode that takes over the name: a process in the middle of reading goes on with the
old ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staged:
    """Contents that are here and belong to no file yet: `data`, or a durable blob of the inode `ino`."""

    size_bytes: int
    data: bytes = b""
    ino: int = 0
    blob: int = IN_CHUNKS


class PutOps(AppliedOps):
    """See `fs.tree.SyncTree.put_file`."""

    def put_file(
        self, path: str, content: Iterable[bytes], *, mode: int, mtime_ns: int, expected: LocalFact | None
    ) -> LocalFact:
        path = paths.checked(path)
        with self._lock:
            self._prepare(quiet=True)
            old = self._check(path, expected)  # early, before the contents are fetched; again when they are all here
            keep_ino = old.ino if self._takes_contents(old) else 0
        staged = self._stage(content, keep_ino=keep_ino)
        try:
            return self._put_staged(path, staged, mode, mtime_ns, expected)
        except BaseException:
            self._unstage(staged)
            raise

    def _takes_contents(self, inode: Inode) -> bool:
        """Whether contents from the server may replace those of `inode` itself. Not where it has other names: at the server
        these are files of their own, and what stands there stays."""
        return inode.is_file and inode.nlink == 1 and inode.ino not in self._lent

    def _stage(self, content: Iterable[bytes], *, keep_ino: int, keep_max_bytes: int = IN_PLACE_MAX_BYTES) -> Staged:
        """Take in contents, without the lock. Large ones go into a blob: of the inode `keep_ino`, or of a new one when there is
        none or they are larger than `keep_max_bytes`."""
        head = bytearray()
        pieces = iter(content)
        for piece in pieces:
            head += piece
            if self._blobs is not None and len(head) >= self._blob_min_bytes:
                break
        else:
            return Staged(size_bytes=len(head), data=bytes(head))
        staged = self._blobs.staged()
        try:
            staged.append(head)
            for piece in pieces:
                _check_size(staged.size_bytes + len(piece))
                staged.append(piece)
            kept = keep_ino if staged.size_bytes <= keep_max_bytes else 0
            ino = kept or self._reserve_ino()
            return Staged(size_bytes=staged.size_bytes, ino=ino, blob=staged.finish(ino))
        except BaseException:
            staged.abandon()
            raise

    def _reserve_ino(self) -> int:
        with self._lock:
            ino = self._next_ino
            self._next_ino = ino + 1
            return ino

    def _unstage(self, staged: Staged) -> None:
        """The contents are not wanted after all. Nothing happens to a blob that a file has taken."""
        if staged.blob == IN_CHUNKS or self._blobs is None:
            return
        with self._lock:
            try:
                is_taken = self._inode(staged.ino).place == staged.blob
            except FsError as error:
                if error.errno != errno.ENOENT:
                    raise
                is_taken = False
            if not is_taken:
                self._blobs.discard(staged.ino, staged.blob)

    def _stage_contents(self, txn: Txn, inode: Inode | None, draft: Inode, staged: Staged) -> None:
        """`draft`, until now `inode`, holds the staged contents and nothing else."""
        if inode is not None and inode.place == IN_CHUNKS:
            txn.contents.append((CUT, inode.ino, 0, 0))
        draft.place, draft.target = staged.blob, None
        draft.size = staged.size_bytes
        if staged.data:
            txn.contents.append((PATCH, draft.ino, 0, staged.data))
        self._touch_rules(draft.ino)

    def _put_staged(self, path: str, staged: Staged, mode: int, mtime_ns: int, expected: LocalFact | None) -> LocalFact:
        with self._lock:
            self._prepare(quiet=True)
            self._check(path, expected)
            touched = Touched()
            parent = self._make_parents(path, touched)
            txn = self._begin(quiet=True)
            inode = self._find(path)
            if inode is not None and inode.ino == staged.ino and not self._takes_contents(inode):
                raise LocalChangedError(f"{path} was opened or linked while its contents came")
            if inode is not None and self._takes_contents(inode) and staged.size_bytes <= IN_PLACE_MAX_BYTES:
                draft = txn.edit(inode)
                self._stage_contents(txn, inode, draft, staged)
            else:
                draft = self._stage_at(txn, path, parent, inode, stat.S_IFREG | mode, ino=staged.ino)
                self._stage_contents(txn, None, draft, staged)
                touched.name(parent, path)
            draft.version += 1
            draft.mode = stat.S_IFREG | stat.S_IMODE(mode)
            draft.mtime_ns = mtime_ns
            draft.ctime_ns = txn.now_ns
            self._commit(txn)
            touched.inodes.append(draft.ino)
            fact = self._fact_at(path)
        self._invalidate(touched)
        return fact


def _check_size(size_bytes: int) -> None:
    if size_bytes > SIZE_MAX_BYTES:
        raise FsError(errno.EFBIG)
