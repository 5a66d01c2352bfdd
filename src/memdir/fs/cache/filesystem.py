"""`SqliteFs`: the filesystem of a mount, kept in one folder."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

import apsw

from memdir.core.clock import Clock, SystemClock
from memdir.core.errors import BusyError, CorruptError, MemdirError
from memdir.core.limits import MIB
from memdir.core.paths import ensure_dir
from memdir.core.processes import lock_holders
from memdir.core.sqlite import opening_error
from memdir.fs.cache import record
from memdir.fs.cache.flusher import BATCH_BYTES, Flusher
from memdir.fs.cache.journal import Journal, Torn, replay, segment_paths, sync_folder
from memdir.fs.cache.large import LargeContents
from memdir.fs.cache.mark import LOCK_NAME, Left, clear_mark, read_mark, set_mark
from memdir.fs.cache.tables import DATABASE_NAME, Meta, Tables
from memdir.fs.errors import FsError
from memdir.fs.posix.notes import is_synced_type
from memdir.fs.posix.txn import Txn
from memdir.fs.types import ROOT_INO, FsStats, IntentKind

DIRTY_MAX_BYTES: Final = 128 * MIB
"""Journal bytes and changed chunks that SQLite does not hold yet; a writer waits for the flusher past it."""
_REPLAY_BATCH_BYTES: Final = 32 * MIB
_INODES: Final = 1 << 39
_STEP_ITEMS: Final = 256
"""What the flusher does at once while it holds the lock: about 0.1 ms."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class SqliteFs(LargeContents):
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
        self._applied_lsn = meta.applied_lsn
        self._flusher = Flusher(self)
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
        _make_durable(folder)
        clock = clock or SystemClock()
        uid = os.getuid() if uid is None else uid
        gid = os.getgid() if gid is None else gid
        lock_fd = lock_folder(folder)
        with contextlib.ExitStack() as undo:
            undo.callback(os.close, lock_fd)
            try:
                tables = Tables(folder, uid=uid, gid=gid, now_ns=clock.now_ns())
                undo.callback(tables.close)
                fs = cls(folder, tables, lock_fd, clock=clock, uid=uid, gid=gid, read_only=read_only, sync=sync)
                fs._recover()
                set_mark(lock_fd)
            except (FsError, apsw.Error) as error:
                raise _not_opened(folder, error) from error
            undo.pop_all()
        fs._flusher.start()
        return fs

    # ---- start

    def _replay(self, meta: Meta) -> int:
        """Apply what the journal holds and SQLite does not; returns the next lsn."""
        last = meta.applied_lsn

        def apply(lsn: int, body: bytes) -> None:
            nonlocal last
            txn = record.decode(body)
            try:
                for ino in txn.inodes:
                    self._bring(ino)
                self._apply(txn)
            except FsError as error:
                raise CorruptError(f"record {lsn} does not fit the tables: {error.message}") from error
            self._note(txn)
            last = lsn
            self._batch.lsn = lsn
            self._batch.size_bytes += len(body)
            if self._pending_bytes() > _REPLAY_BATCH_BYTES:
                self._write_now()
                self._evict_inodes(self._evictable())

        torn = replay(self._folder, fs_id=meta.fs_id, applied_lsn=meta.applied_lsn, apply=apply)
        if torn is not None:
            self._judge(torn)
        return last + 1

    def _bring(self, ino: int) -> None:
        """Bring a stored inode into memory, so that its new attributes do not look like those of a new inode."""
        if ino not in self._inodes:
            found = self._fetch_inode(ino)
            if found is not None:
                self._inodes[ino], self._links[ino] = found

    def _judge(self, torn: Torn) -> None:
        if torn.damaged:
            raise CorruptError(
                f"{torn.path} is damaged at byte {torn.offset}: {torn.reason}; operations behind it would be lost",
                hint="run memdir fsck --repair to go on without them",
            )
        _log.warning("%s ends in an unfinished write at byte %d (%s)", torn.path, torn.offset, torn.reason)

    def _recover(self) -> None:
        """Finish what the last process could not: write the replayed state, drop its segments, delete nameless inodes."""
        if self._batch:
            self._write_now()
        segments = segment_paths(self._folder)
        if segments:
            self._tables.sync()  # what the last process committed may not be on the disk yet, and the segments vouch for it
        changed = self._recover_blobs(Left.KILLED if segments and self._left is Left.CLOSED else self._left)
        for path in segments:
            path.unlink()
        txn = self._begin(quiet=True)
        txn.gone = [ino for ino in self._tables.unlinked() if not self._inode(ino).nlink]
        if txn.gone:
            self._commit(txn)
        self._rules_stale = False
        self._refresh_rules_silently()
        self._note_changed(changed)
        if self._was_unsynced and self._records_intents:
            self._name_everything()
        if self._batch:
            self._write_now()
        self._absent_files, self._absent_bytes = self._tables.absent_totals()

    def _refresh_rules_silently(self) -> None:
        """The ignore file as found at open is what was in force before: nothing to catch up with."""
        records, self._records_intents = self._records_intents, False
        self._refresh_rules()
        self._records_intents = records

    def _name_everything(self) -> None:
        """Changes were made without intents: PUT for every path."""
        txn = self._begin()
        for path, inode in self._walk(self._inode(ROOT_INO), "/"):
            if path != "/" and is_synced_type(inode.mode) and not self._rules.matches(path, is_dir=inode.is_dir):
                self._stage_note(txn, IntentKind.PUT, path)
        self._changed_unsynced = False
        self._commit(txn)

    def _write_now(self) -> None:
        """Write the collected batch in this thread; at open, before the flusher runs."""
        batch = self._take_batch()
        self._tables.write(batch, durable=True)
        self._flushed(batch)
        self._mark_clean(batch.chunks.items())
        self._give_back(batch)
        self._promised_ino = self._next_ino

    # ---- hooks

    def _see_to(self, *, quiet: bool) -> None:
        if self._closed:
            raise FsError(errno.ESHUTDOWN, "the filesystem is closed")
        if self._read_only and not quiet:
            raise FsError(errno.EROFS)
        self._wait_for_room()
        super()._see_to(quiet=quiet)
        self._hindered = self._read_only or self._closed

    def _wait_for_room(self) -> None:
        while self._pending_bytes() > DIRTY_MAX_BYTES:
            if self._refused is not None:
                raise FsError(self._refused.errno, self._refused.message)
            self._flusher.wake()
            self._room.wait()

    def _pending_bytes(self) -> int:
        return self._batch.size_bytes + self._batch.chunk_bytes + self._flushing_bytes

    def _log(self, txn: Txn) -> None:
        if self._closed:
            raise FsError(errno.ESHUTDOWN, "the filesystem is closed")
        journal, batch = self._journal, self._batch
        batch.size_bytes += journal.append(record.encode(txn))
        batch.lsn = journal.next_lsn - 1
        batch_bytes = batch.size_bytes + batch.chunk_bytes
        if batch_bytes + self._flushing_bytes > DIRTY_MAX_BYTES:
            self._hindered = True
        if batch_bytes >= BATCH_BYTES or not self._flusher.knows:
            self._flusher.note(batch_bytes)
        if not self._records_intents and not txn.quiet:
            self._changed_unsynced = True

    @property
    def last_lsn(self) -> int:
        """The last record of the journal: grows with every change."""
        return self._journal.last_lsn

    def _unsynced(self) -> bool:
        return self._changed_unsynced

    def _ask_for_eviction(self) -> None:
        self._flusher.wake()

    # ---- flush, called by the flusher

    def take_batch(self) -> tuple[bool, bool]:
        """Freeze the collected rows unless a refused batch still waits. (something to write, must be durable)"""
        with self._lock:
            if self._flushing is None and self._batch:
                self._take_batch()
            batch = self._flushing
            return batch is not None, self._journal.needs_release() or (batch is not None and self._needs_durability(batch))

    def write_batch(self, *, durable: bool) -> None:
        """Write the frozen batch, without the lock. FsError: it stays frozen and is tried again."""
        batch = self._flushing
        assert batch is not None
        if durable:
            with self._lock:
                self._promised_ino = max(self._promised_ino, batch.next_ino)
        try:
            self._tables.write(batch, durable=durable)
        except FsError as error:
            self.refuse(error)
            raise
        if durable:
            self._give_back(batch)
        with self._lock:
            self._refused = None
            self._flushed(batch)
            self._room.notify_all()
            if self._batch:  # what collected behind a batch that was refused before is not noted a second time
                self._flusher.note(self._batch.size_bytes)
        if durable:
            self._journal.release(batch.lsn)
        self._in_steps(self._mark_clean, list(batch.chunks.items()))

    def thin_out(self) -> None:
        """Let go of inodes when memory is crowded."""
        with self._lock:
            candidates = self._evictable()
        if candidates:
            self._in_steps(self._evict_inodes, candidates)
            with self._lock:
                self._evicted()

    def _in_steps(self, work: Callable[[list[T]], None], items: list[T]) -> None:
        """Do something under the lock for many items, so that a request waits for a step of it only."""
        for start in range(0, len(items), _STEP_ITEMS):
            with self._lock:
                work(items[start : start + _STEP_ITEMS])
            time.sleep(0)  # gives way: without it this thread would have the lock again before another one is awake

    def needs_checkpoint(self) -> bool:
        """Whether SQLite's log is worth moving into its file."""
        return self._tables.needs_checkpoint()

    def checkpoint(self) -> None:
        """Move SQLite's log into its file, without the lock. FsError."""
        self._tables.checkpoint()

    def refuse(self, error: FsError) -> None:
        """Nothing can be written for now: tell the writers that wait for room."""
        with self._lock:
            self._refused = error
            self._refusals += 1
            self._room.notify_all()

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

    def statfs(self) -> FsStats:
        """The truth of the filesystem that holds the folder: what removed files are about to give back counts as free, what is
        kept for the journal does not."""
        found = os.statvfs(self._folder)
        with self._lock:
            used = self._next_ino
        leaving = sum(self._leaving.copy().values()) // found.f_frsize
        reserve = self._large.reserve_bytes(found) // found.f_frsize
        return FsStats(
            block_size=found.f_frsize, blocks=found.f_blocks, blocks_free=found.f_bfree + leaving,
            blocks_available=max(found.f_bavail + leaving - reserve, 0),
            inodes=_INODES, inodes_free=_INODES - used,
        )  # fmt: skip

    def fsync(self, ino: int) -> None:
        with self._lock:
            inode = self._inode(ino)
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

    def _reclaim(self) -> bool:
        if not self._leaving:
            return False
        self.flush()
        return True

    def close(self) -> None:
        """Write everything to SQLite and release the folder. When the disk refuses, the journal is kept and nothing is lost."""
        with self._lock:
            if self._closed:
                return
            self._closed = self._hindered = True
        self._flusher.stop()
        durable_lsn = -1
        try:
            for _ in range(2):  # the batch that the disk refused before, and the one that collected behind it
                if self.take_batch()[0]:
                    self.write_batch(durable=True)
            self._tables.sync()
            self._large.sync_all()
            self._large.sync_names()
            durable_lsn = self._journal.last_lsn
        finally:
            self._journal.close(durable_lsn=durable_lsn)
            self._large.close()
            if durable_lsn >= 0:
                clear_mark(self._lock_fd)
            try:
                self._tables.close()
            finally:
                os.close(self._lock_fd)

    def __enter__(self) -> SqliteFs:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_durable(folder: Path) -> None:
    """Make the folder and see that its name survives a power cut, which a sync of what is in it does not promise."""
    if (folder / DATABASE_NAME).exists():
        return
    missing = [folder, *(above for above in folder.parents if not above.exists())]
    ensure_dir(folder)
    for made in missing:
        sync_folder(made.parent)


def _not_opened(folder: Path, error: FsError | apsw.Error) -> MemdirError:
    """In a person's words, when it was SQLite that refused; a full disk stays what it is."""
    cause = error.__cause__ if isinstance(error, FsError) else error
    if isinstance(cause, apsw.Error) and not isinstance(cause, apsw.FullError):
        return opening_error(folder / DATABASE_NAME, cause)
    if isinstance(error, FsError):
        return error
    return FsError(errno.ENOSPC, f"the disk with {folder} is full")


def lock_folder(folder: Path) -> int:
    """Take the folder for this process; the descriptor holds it. BusyError."""
    fd = os.open(folder / LOCK_NAME, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(fd)
        holders = ", ".join(map(str, lock_holders(folder / LOCK_NAME))) or "another process"
        raise BusyError(
            f"{folder} is in use by {holders}", hint="unmount it there first; `memdir recover` tells what hangs"
        ) from error
    return fd


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder for a block."""
    fd = lock_folder(folder)
    try:
        yield
    finally:
        os.close(fd)
