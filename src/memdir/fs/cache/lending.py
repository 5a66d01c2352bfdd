"""Blobs that the kernel reads and writes by itself: what it did there becomes a part of the filesystem.

While a blob is lent for writing, its file changes without a request. What is known of it (size, time of modification) is
compared with the file whenever anybody asks for attributes, syncs or closes; a difference is recorded like a write: new
version, new size, a note to sync. Bytes behind the recorded size are then no leftovers but data. So that the next daemon knows
when this one is killed meanwhile, a lent file carries a mark: its owner may execute it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.clock import Clock
from memdir.fs.cache.blobs import LENT_MODE, MODE
from memdir.fs.cache.large import LargeContents
from memdir.fs.cache.tables import Tables
from memdir.fs.errors import FsError
from memdir.fs.posix.place import IN_CHUNKS
from memdir.fs.posix.txn import PATCH
from memdir.fs.types import ROOT_INO, Inode

_SETTLED_NS: Final = 20_000_000
"""A file that changed less than this before it was looked at may change again with the same time of modification: the kernel's
clock for it ticks every 1 to 10 ms (before Linux 6.13)."""


@dataclass(slots=True)
class _Loan:
    blob: int
    is_writable: bool = False
    size_bytes: int = 0
    mtime_ns: int = 0
    is_settled: bool = False


class Lending(LargeContents):
    """`fs.vfs.Lender`."""

    def __init__(self, folder: Path, tables: Tables, *, clock: Clock, uid: int, gid: int) -> None:
        super().__init__(folder, tables, clock=clock, uid=uid, gid=gid)
        self._loans: dict[int, _Loan] = {}

    def lend(self, ino: int, *, writable: bool, is_new: bool) -> int | None:
        """A descriptor of the blob, for the caller to close; None when the contents are elsewhere. A new, empty file moves into
        a blob for it; it moves back when it is taken back and still small."""
        with self._lock:
            inode = self._inode(ino)
            if is_new and inode.is_file and inode.place == IN_CHUNKS and not inode.size:
                self._move_to_blob(inode)
            if inode.place <= 0:
                return None
            self._trim(inode)
            if self._large.size(ino, inode.place) < inode.size:  # after a power cut
                self._large.resize(ino, inode.place, inode.size)
            try:
                fd = os.open(self._large.path(ino, inode.place), os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                raise FsError(error.errno or errno.EIO) from error
            self._loans[ino] = _Loan(blob=inode.place)
            self._lent = self._loans.keys()
            if writable:
                self.lend_for_writing(ino)
            return fd

    def lend_for_writing(self, ino: int) -> None:
        """Somebody may write to the lent blob from now on."""
        with self._lock:
            loan, inode = self._loans[ino], self._inode(ino)
            if loan.is_writable:
                return
            path = self._large.path(ino, loan.blob)
            try:
                path.chmod(LENT_MODE)
                found = path.stat()
            except OSError as error:
                raise FsError(error.errno or errno.EIO) from error
            loan.is_writable = True
            self._remember(loan, found)
            inode.encoded = None  # attributes go out as they are then, not as they were

    def _remember(self, loan: _Loan, found: os.stat_result) -> None:
        loan.size_bytes, loan.mtime_ns = found.st_size, found.st_mtime_ns
        loan.is_settled = time.time_ns() - found.st_mtime_ns > _SETTLED_NS

    def refresh(self, ino: int) -> None:
        """Record what was done to a lent blob. Cheap for any other file."""
        with self._lock:
            loan, inode = self._loans.get(ino), self._inodes.get(ino)
            if loan is None or inode is None or not loan.is_writable or inode.place != loan.blob:
                return
            found = os.fstat(self._large.descriptor(ino, loan.blob))
            if (found.st_size, found.st_mtime_ns) == (loan.size_bytes, loan.mtime_ns) and loan.is_settled:
                return
            changed = (found.st_size, found.st_mtime_ns) != (loan.size_bytes, loan.mtime_ns)
            self._remember(loan, found)
            self._large.soil(ino, loan.blob)
            if changed or found.st_size != inode.size:
                self._record_found(inode, found)

    def _record_found(self, inode: Inode, found: os.stat_result) -> None:
        txn = self._begin()
        self._stage_written(txn, inode, found.st_size, is_new=True)
        txn.edit(inode).mtime_ns = found.st_mtime_ns
        self._commit(txn)
        self._unannounced = self._unannounced or bool(txn.intents)

    def take_back(self, ino: int) -> None:
        """Nobody has it open any more."""
        with self._lock:
            loan, inode = self._loans.get(ino), self._inodes.get(ino)
            if loan is None:
                return
            if loan.is_writable:
                if not loan.is_settled:
                    loan.mtime_ns = -1  # may have changed within one tick: better one version too many
                self.refresh(ino)
            del self._loans[ino]
            if not self._loans:
                self._lent = ()
            if inode is None or inode.place != loan.blob:
                return
            if inode.nlink and inode.size < self._blob_min_bytes:
                self._move_to_chunks(inode)
            elif loan.is_writable:
                with contextlib.suppress(OSError):  # a mark too many costs a look at the next open
                    self._large.path(ino, loan.blob).chmod(MODE)
        self._announce()

    def is_lent(self, ino: int) -> bool:
        return ino in self._loans

    def _move_to_chunks(self, inode: Inode) -> None:
        """Same bytes, another place, as for a file that was never large."""
        data = self._large.read(inode.ino, inode.place, 0, inode.size) if inode.size else b""
        txn = self._begin(quiet=True)
        txn.edit(inode).place = IN_CHUNKS
        if data:
            txn.contents.append((PATCH, inode.ino, 0, data))
        self._commit(txn)

    def _cut(self, ino: int, written: Inode | None) -> None:
        if ino not in self._loans:  # a lent one is cut at once, see `_finish_size`
            super()._cut(ino, written)

    def _note_loans(self, ino: int) -> None:
        """`ino` (with the root, everything) is about to be synced: take over what was written to lent blobs."""
        for lent in list(self._loans) if ino == ROOT_INO or ino in self._loans else ():
            self.refresh(lent)
            loan = self._loans[lent]
            if loan.is_writable and ino in (lent, ROOT_INO):
                self._large.soil(lent, loan.blob)

    def _take_all_back(self) -> None:
        for ino in list(self._loans):
            self.take_back(ino)
