"""What the flusher does to a filesystem: batches go into SQLite, and the disk gets back what stands on it twice."""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from memdir.core.limits import MIB
from memdir.fs.cache.disk_space import Waiting, is_no_space
from memdir.fs.cache.recovery import Recovery
from memdir.fs.cache.tables import KEPT_PAGES
from memdir.fs.errors import FsError

DIRTY_MAX_BYTES: Final = 128 * MIB
"""Journal bytes and changed chunks that SQLite does not hold yet; a writer waits for the flusher past it."""
_ROUND_MAX_S: Final = 30.0
"""A writer on a nearly full disk waits this long for what waits before it to be written."""
_ROUNDS: Final = 2
"""Of writing, that a writer waits for: the first may have begun before what waits now was there."""

_STEP_ITEMS: Final = 256
"""What the flusher does at once while it holds the lock: about 0.1 ms."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


class Flushing(Recovery):
    """Batches, and room for them in memory and on the disk."""

    _room: threading.Condition
    _refusals: int
    _rounds: int

    def _wait_for_room(self) -> None:
        """In memory, and on the disk."""
        while self._pending_bytes() > DIRTY_MAX_BYTES:
            if self._refused is not None:
                raise FsError(self._refused.errno, self._refused.message)
            self._flusher.wake()
            self._room.wait()
        for _ in range(_ROUNDS):
            if not self._is_over_limit():
                return
            self._wait_for_round()
        if self._is_over_limit():  # what is to come will be refused, unless it frees something
            self._space.run_out(FsError(errno.ENOSPC, f"{self._folder}: the disk is full"))

    def _wait_for_round(self) -> None:
        """Let the flusher write what waits, and give back what can be given back. With the lock, which is let go meanwhile."""
        rounds = self._rounds
        self._flusher.make_room()
        self._room.wait_for(lambda: self._rounds != rounds, _ROUND_MAX_S)

    def _is_over_limit(self) -> bool:
        """Whether the disk may not hold what waits for it, by the last measurement and by a new one."""
        space = self._space
        for _ in range(2):
            if self._pending_bytes() <= space.limit_bytes and self._journal.last_lsn <= space.limit_lsn:
                return False
            self._measure()
        return self._pending_bytes() > space.limit_bytes or self._journal.last_lsn > space.limit_lsn

    def _spare_bytes(self) -> int:
        self._measure()
        return self._space.spare_bytes

    def _measure(self) -> None:
        database = self._tables.database
        waiting = Waiting(
            pending_bytes=self._pending_bytes(), applied_lsn=self._applied_lsn, last_lsn=self._journal.last_lsn,
            file_bytes=database.file_bytes(),
        )  # fmt: skip
        self._space.measure(waiting)

    def _pending_bytes(self) -> int:
        return self._batch.size_bytes + self._batch.chunk_bytes + self._flushing_bytes

    # ---- called by the flusher

    def take_batch(self) -> tuple[bool, bool]:
        """Freeze the collected rows unless a refused batch still waits. (something to write, must be durable)"""
        with self._lock:
            if self._flushing is None and self._batch:
                self._take_batch()
            batch = self._flushing
            return batch is not None, self._journal.needs_release() or (batch is not None and self._needs_durability(batch))

    def write_batch(self, *, durable: bool) -> bool:
        """Write the frozen batch, without the lock. False: SQLite's log should be moved into its file now, while the disk has
        room for that. FsError: the batch stays frozen and is tried again."""
        batch = self._flushing
        assert batch is not None
        if durable:
            with self._lock:
                self._promised_ino = max(self._promised_ino, batch.next_ino)
        try:
            is_kept = self._tables.write(batch, durable=durable)
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
        return is_kept

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

    def make_room(self, *, keep_pages: int = 0, reason: FsError | None = None) -> None:
        """Give the disk back what is on it twice: records that SQLite holds, its log, free pages of its file but `keep_pages`.

        With `reason`, why a write was refused, the reserve goes first; it is filled again when that is possible. FsError:
        writing still fails.
        """
        try:
            if reason is not None:
                with self._lock:
                    self._take_back()
                    self._space.release(reason, needed_bytes=self._tables.needed_bytes(self._batch))
            self._release_journal()
            self._shorten_log()  # the batch may need the space of the log
            with self._lock:
                self._take_back()
            if self.take_batch()[0]:
                self._write_or_shorten()
            self._release_journal()
            self._shorten_log()
            while self._tables.vacuum(keep_pages=keep_pages):
                self._shorten_log()
            self._shorten_log()
        finally:
            with self._lock:
                self._space.recover()
                self._measure()
                self._rounds += 1
                self._hindered = True
                self._room.notify_all()

    def _write_or_shorten(self) -> None:
        """A try that failed leaves its pages in the log: they go, because a journal record may fit where they stand."""
        try:
            self.write_batch(durable=True)
        except FsError:
            self._shorten_log()
            raise

    def _release_journal(self) -> None:
        with self._lock:
            applied_lsn = self._applied_lsn
            self._journal.rotate()
        self._tables.sync()
        self._journal.release(applied_lsn)

    def _shorten_log(self) -> None:
        """SQLite's log moves into the file. That may need more room than there is: then it stays."""
        try:
            self._tables.checkpoint()
        except FsError as error:
            if not is_no_space(error):
                raise
            _log.debug("%s", error.message)

    @property
    def is_short(self) -> bool:
        """Whether the disk is full: only what frees space is taken."""
        return self._space.shortage is not None

    @property
    def trouble(self) -> str | None:
        """What is wrong with the disk, for status; None when all is well."""
        error = self._space.shortage or self._refused
        return self._journal.trouble or (None if error is None else error.message)

    def is_tight(self) -> bool:
        """Whether the disk has so little room that copies of what is in SQLite already must go at once."""
        with self._lock:
            self._measure()
            return self._space.limit_bytes < DIRTY_MAX_BYTES

    def tidy(self) -> bool:
        """In a quiet moment: move SQLite's log into its file, give back free pages, fill the reserve. FsError.

        True: there is more to do.
        """
        if self.is_short:
            self.make_room()
            return self.is_short
        more = self._tables.vacuum(keep_pages=KEPT_PAGES)
        self._tables.checkpoint()
        return more

    def is_untidy(self) -> bool:
        """Whether there is something for `tidy`."""
        return self.is_short or self._tables.is_untidy()

    def refuse(self, error: FsError) -> None:
        """Nothing can be written for now: tell the writers that wait for room."""
        with self._lock:
            self._refused = error
            self._refusals += 1
            self._room.notify_all()
