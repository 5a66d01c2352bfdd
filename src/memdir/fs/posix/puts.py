"""Contents from the server, put at a path at once."""

from __future__ import annotations

import errno
import stat
from collections.abc import Iterable, Iterator
from typing import Final

from memdir.core.limits import MIB
from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.posix.applied import AppliedOps, Touched
from memdir.fs.posix.place import IN_CHUNKS
from memdir.fs.posix.state import SIZE_MAX_BYTES
from memdir.fs.posix.txn import CUT, PATCH
from memdir.fs.types import ROOT_INO, Inode, LocalFact

IN_PLACE_MAX_BYTES: Final = 8 * MIB
"""Contents up to here replace those of the existing inode in one transaction, so that a process that has the file open goes
on with the new ones. Larger ones are staged in an unnamed inode that then takes over the name."""
STAGE_BYTES: Final = 1 * MIB


class PutOps(AppliedOps):
    """See `fs.tree.SyncTree.put_file`."""

    def put_file(
        self, path: str, content: Iterable[bytes], *, mode: int, mtime_ns: int, expected: LocalFact | None
    ) -> LocalFact:
        path = paths.checked(path)
        with self._lock:
            self._check(path, expected)  # early, before the contents are fetched; again when they are all here
        pieces = iter(content)
        head, tail = first_pieces(pieces, IN_PLACE_MAX_BYTES)
        if tail is None:
            return self._put_small(path, head, mode, mtime_ns, expected)
        return self._put_large(path, head, tail, pieces, mode, mtime_ns, expected)

    def _put_small(self, path: str, data: bytes, mode: int, mtime_ns: int, expected: LocalFact | None) -> LocalFact:
        with self._lock:
            self._prepare(quiet=True)
            self._check(path, expected)
            touched = Touched()
            parent = self._make_parents(path, touched)
            txn = self._begin(quiet=True)
            inode = self._find(path)
            if inode is not None and inode.is_file:
                draft = txn.edit(inode)
                draft.place, draft.target = IN_CHUNKS, None
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
            for piece in chain(head, tail, pieces):
                for start in range(0, len(piece), STAGE_BYTES):
                    offset += self._append_unnamed(staged, offset, piece[start : start + STAGE_BYTES])
            with self._lock:
                self._prepare(quiet=True)
                self._check(path, expected)
                touched = Touched()
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


def first_pieces(pieces: Iterator[bytes], limit_bytes: int) -> tuple[bytes, bytes | None]:
    """Up to `limit_bytes` in one buffer; the second part is what was read past it, None when the iterator ended before."""
    head = bytearray()
    for piece in pieces:
        if len(head) + len(piece) > limit_bytes:
            return bytes(head), piece
        head += piece
    return bytes(head), None


def chain(head: bytes, tail: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield tail
    yield from pieces
