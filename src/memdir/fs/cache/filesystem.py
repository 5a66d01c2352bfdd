"""`SqliteFs`: the filesystem of a mount, kept in one folder."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final

import apsw

from memdir.core.clock import Clock, SystemClock
from memdir.core.errors import MemdirError
from memdir.core.limits import KIB
from memdir.core.sqlite import opening_error
from memdir.fs.cache import record
from memdir.fs.cache.disk_space import DiskSpace, frees, is_no_space, low_bytes
from memdir.fs.cache.flusher import BATCH_BYTES, Flusher
from memdir.fs.cache.flushing import DIRTY_MAX_BYTES, Flushing
from memdir.fs.cache.folder import lock_folder, make_durable
from memdir.fs.cache.journal import Journal, Torn
from memdir.fs.cache.mark import clear_mark, read_mark, set_mark
from memdir.fs.cache.tables import DATABASE_NAME, Tables
from memdir.fs.errors import FsError
from memdir.fs.posix.txn import Txn
from memdir.fs.types import ROOT_INO, Data, FsStats

_INODES: Final = 1 << 39
_LARGE_BYTES: Final = 64 * KIB
_FREEING_TRIES: Final = 4
"""How often a change that frees space is tried on a full disk."""

_log = logging.getLogger(__name__)


class SqliteFs(Flushing):
    """`fs.vfs.Vfs` and `fs.tree.SyncTree` over a redo journal and SQLite. Open it with `SqliteFs.open`."""

    def __init__(
        self, folder: Path, tables: Tables, lock_fd: int, *, clock: Clock, uid: int, gid: int, read_only: bool, sync: bool
    ) -> None:
        super().__init__(folder, tables, clock=clock, uid=uid, gid=gid)
        self._lock_fd = lock_fd
        self._left = read_mark(lock_fd)
        self._read_only = read_only
        self._records_intents = sync
        self._closed = False
        self._hindered = read_only
        meta = tables.meta()
        self._was_unsynced = meta.unsynced
        self._changed_unsynced = meta.unsynced
        self._next_ino = self._stored_next_ino = self._promised_ino = meta.next_ino
        self._next_cookie = meta.next_cookie
        self._intents.restore(tables.intents(), meta.next_seq)
        self._room = threading.Condition(self._lock)
        self._refused: FsError | None = None
        """Why the flusher cannot write, until it can."""
        self._refusals = 0
        self._rounds = 0
        """How often the flusher tried to make room."""
        self._applied_lsn = meta.applied_lsn
        self._flusher = Flusher(self)
        self._space = DiskSpace(folder)
        self._torn: Torn | None = None
        self._journal = Journal(folder, fs_id=meta.fs_id, next_lsn=self._replay(meta))

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        clock: Clock | None = None,
        uid: int | None = None,
        gid: int | None = None,
        read_only: bool = False,
        sync: bool = True,
    ) -> SqliteFs:
        """Open the filesystem in `folder` or make one; what a crash left in the journal is applied first.

        `read_only` refuses every change (EROFS) but those that come from the server. Without `sync` no intents are recorded;
        the next open with `sync` then names every path. BusyError: another process has it open; CorruptError: run fsck.
        """
        make_durable(folder)
        clock = clock or SystemClock()
        uid = os.getuid() if uid is None else uid
        gid = os.getgid() if gid is None else gid
        lock_fd = lock_folder(folder)
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, lock_fd)
            try:
                tables = _opened_tables(folder, uid=uid, gid=gid, now_ns=clock.now_ns())
                undo.callback(tables.close)
                fs = cls(folder, tables, lock_fd, clock=clock, uid=uid, gid=gid, read_only=read_only, sync=sync)
                fs._recover()
                set_mark(lock_fd)
            except (FsError, apsw.Error) as error:
                raise _not_opened(folder, error) from error
            undo.pop_all()
        fs._flusher.start()
        return fs

    # ---- hooks

    def _see_to(self, *, quiet: bool) -> None:
        if self._closed:
            raise FsError(errno.ESHUTDOWN, "the filesystem is closed")
        if self._read_only and not quiet:
            raise FsError(errno.EROFS)
        self._wait_for_room()
        super()._see_to(quiet=quiet)
        self._hindered = self._read_only or self._closed

    def _log(self, txn: Txn) -> None:
        if self._closed:
            raise FsError(errno.ESHUTDOWN, "the filesystem is closed")
        if self._space.shortage is not None and not frees(txn):
            raise FsError(self._space.shortage.errno, self._space.shortage.message)
        journal, batch = self._journal, self._batch
        parts = record.encode(txn)
        if self._space.limit_bytes < DIRTY_MAX_BYTES and len(parts[-1]) > _LARGE_BYTES:
            self._check_large(len(parts[-1]))
        try:
            batch.size_bytes += journal.append(parts)
        except FsError as error:
            batch.size_bytes += self._append_to_full_disk(txn, parts, error)
        batch.lsn = journal.next_lsn - 1
        batch_bytes = batch.size_bytes + batch.chunk_bytes
        space = self._space
        if batch_bytes + self._flushing_bytes > min(DIRTY_MAX_BYTES, space.limit_bytes) or batch.lsn > space.limit_lsn:
            self._hindered = True
        if batch_bytes >= BATCH_BYTES or not self._flusher.knows:
            self._flusher.note(batch_bytes)
        if not self._records_intents and not txn.quiet:
            self._changed_unsynced = True

    def _check_large(self, size_bytes: int) -> None:
        """A large write that would take the space that what waits already needs is refused, smaller ones may follow."""
        self._measure()
        if self._pending_bytes() + 2 * size_bytes > self._space.limit_bytes:
            raise FsError(errno.ENOSPC)

    def _append_to_full_disk(self, txn: Txn, parts: list[Data], error: FsError) -> int:
        """The journal was refused: see that space comes back, and let a change that frees some have the reserve."""
        if not is_no_space(error):
            raise error
        self._flusher.make_room()
        if not frees(txn) or not self._space.release(error):
            raise error
        return self._journal.append(parts)

    @property
    def last_lsn(self) -> int:
        """The last record of the journal: grows with every change."""
        return self._journal.last_lsn

    def _unsynced(self) -> bool:
        return self._changed_unsynced

    def _ask_for_eviction(self) -> None:
        self._flusher.wake()

    # ---- Vfs

    def forget(self, ino: int, count: int) -> None:
        """Once closed there is nothing left to forget; an unlinked file that was still open is deleted at the next open."""
        with self._lock:
            if not self._closed:
                super().forget(ino, count)
                self._count_forgotten()

    def flush(self, *, timeout_s: float = 60.0) -> None:
        """Wait until SQLite holds everything acknowledged so far. FsError: why it does not (ETIMEDOUT after `timeout_s`)."""
        with self._lock:
            target_lsn, refusals = self._journal.last_lsn, self._refusals
            self._flusher.wake()
            if not self._room.wait_for(lambda: self._applied_lsn >= target_lsn or self._refusals > refusals, timeout_s):
                raise FsError(errno.ETIMEDOUT, "the cache was not written in time")
            if self._applied_lsn < target_lsn and self._refused is not None:
                raise FsError(self._refused.errno, self._refused.message)

    def clear_free_space(self) -> None:
        """Nothing that was deleted stands in the journal, the log or free pages any more. FsError."""
        self.flush()
        self._flusher.make_room()

    def statfs(self) -> FsStats:
        """The truth of the filesystem that holds the folder: what removed files are about to give back counts as free, what is
        kept for the journal does not."""
        found = os.statvfs(self._folder)
        with self._lock:
            used = self._next_ino
        leaving = sum(self._leaving.copy().values()) // found.f_frsize
        reserve = max(self._large.reserve_bytes(found), low_bytes(found)) // found.f_frsize
        return FsStats(
            block_size=found.f_frsize, blocks=found.f_blocks, blocks_free=found.f_bfree + leaving,
            blocks_available=0 if self.is_short else max(found.f_bavail + leaving - reserve, 0),
            inodes=_INODES, inodes_free=_INODES - used,
        )  # fmt: skip

    def fsync(self, ino: int) -> None:
        with self._lock:
            inode = self._inode(ino)
            self._note_loans(ino)
            self._promised_ino = self._next_ino
        if inode.place > 0:
            self._large.sync(ino, inode.place)
        elif ino == ROOT_INO:
            self._large.sync_all()
        self._journal.sync()

    def _sync_log(self) -> None:
        self._journal.sync()

    def _settle(self, ino: int) -> None:
        inode = self._inodes.get(ino)
        if inode is not None and inode.place > 0 and self._large.is_dirty(inode.place):
            self.fsync(ino)

    def unlink(self, parent: int, name: bytes) -> None:
        self._tried_again(super().unlink, parent, name)

    def rmdir(self, parent: int, name: bytes) -> None:
        self._tried_again(super().rmdir, parent, name)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        self._tried_again(super().rename, parent, name, new_parent, new_name, flags)

    def _tried_again(self, operation: Callable[..., None], *args: object) -> None:
        """What gives space back is worth further tries on a full disk, each after the flusher gave back what it can: what it
        tried to write itself, in vain, may have stood where the record of this change fits."""
        for _ in range(_FREEING_TRIES - 1):
            try:
                operation(*args)
                return
            except FsError as error:
                if not is_no_space(error):
                    raise
            with self._lock:
                if not self._closed:
                    self._wait_for_round()
        operation(*args)

    def _reclaim(self, given_back: int) -> bool:
        with self._lock:
            if self._closed:
                return False
            before = self._spare_bytes()
            self._wait_for_round()
            return self._spare_bytes() > before or self._given_back > given_back

    def close(self) -> None:
        """Write everything to SQLite and release the folder. When the disk refuses, the journal is kept and nothing is lost."""
        with self._lock:
            if self._closed:
                return
            self._take_all_back()
            self._closed = self._hindered = True
        self._flusher.stop()
        durable_lsn = -1
        try:
            for _ in range(2):  # the batch that the disk refused before, and the one that collected behind it
                if self.take_batch()[0]:
                    self._write_at_end()
            self._tables.sync()
            self._large.sync_all()
            self._large.sync_names()
            durable_lsn = self._journal.last_lsn
        finally:
            self._journal.close(durable_lsn=durable_lsn)
            self._large.close()
            if durable_lsn >= 0 and not self._large.has_orphans:
                clear_mark(self._lock_fd)
            try:
                self._tables.close()
                self._space.close()
            finally:
                os.close(self._lock_fd)

    def _write_at_end(self) -> None:
        try:
            self.write_batch(durable=True)
        except FsError as error:
            if not is_no_space(error) or not self._space.release(error):
                raise
            self.write_batch(durable=True)

    def __enter__(self) -> SqliteFs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _opened_tables(folder: Path, *, uid: int, gid: int, now_ns: int) -> Tables:
    """Open the database. On a full disk even that may need the reserve that an earlier process left (the shared memory beside
    the log takes blocks)."""
    try:
        return Tables(folder, uid=uid, gid=gid, now_ns=now_ns)
    except FsError as error:
        if not is_no_space(error) or not DiskSpace(folder).release(error):
            raise
        return Tables(folder, uid=uid, gid=gid, now_ns=now_ns)


def _not_opened(folder: Path, error: FsError | apsw.Error) -> MemdirError:
    """In a person's words, when it was SQLite that refused; a full disk stays what it is."""
    cause = error.__cause__ if isinstance(error, FsError) else error
    if isinstance(cause, apsw.Error) and not isinstance(cause, apsw.FullError):
        return opening_error(folder / DATABASE_NAME, cause)
    if isinstance(error, FsError):
        return error
    return FsError(errno.ENOSPC, f"the disk with {folder} is full")
