"""The thread that brings the journal's contents into SQLite, in batches, behind the caller's back."""

from __future__ import annotations

import errno
import logging
import threading
from typing import Final, Protocol

from memdir.core.limits import MIB
from memdir.fs.cache.disk_space import is_no_space
from memdir.fs.cache.tables import KEPT_PAGES
from memdir.fs.errors import FsError

QUIET_S: Final = 0.25
"""A batch is written once nothing was changed for this long: the journal holds it anyway, a file written and deleted at once
never reaches SQLite, and a busy request loop need not share the interpreter with this thread."""
DELAY_MAX_S: Final = 4.0
"""A batch is written after this long even when changes never pause."""
BATCH_BYTES: Final = 32 * MIB
"""Journal bytes and changed chunks after which a batch is written without waiting longer."""
RETRY_S: Final = 1.0
"""Pause after SQLite refused a batch (disk full)."""

IDLE_S: Final = 1.0
"""SQLite's log is moved into its file after this long without changes: while somebody writes, that would take the disk and half
of the memory bandwidth from them."""

_log = logging.getLogger(__name__)


class Flushable(Protocol):
    """What the flusher needs of a filesystem. `fs.cache.flushing` says what each call does."""

    @property
    def last_lsn(self) -> int: ...

    @property
    def is_short(self) -> bool: ...

    def take_batch(self) -> tuple[bool, bool]: ...

    def write_batch(self, *, durable: bool) -> bool: ...

    def make_room(self, *, keep_pages: int = 0, reason: FsError | None = None) -> None: ...

    def is_tight(self) -> bool: ...

    def thin_out(self) -> None: ...

    def is_untidy(self) -> bool: ...

    def tidy(self) -> bool: ...

    def refuse(self, error: FsError) -> None: ...


class Flusher:
    """One thread. `note` and `wake` are cheap and never block."""

    def __init__(self, fs: Flushable) -> None:
        self._fs = fs
        self._dirty = threading.Event()
        self._now = threading.Event()
        self._stopping = False
        self._wants_room = False
        self._idle_s: float | None = None
        """How long nothing may happen until there is something to tidy up."""
        self._trouble = ""
        self._untidy = ""
        """What the log was told last."""
        self.knows = False
        """Whether a note more would say nothing new; a plain attribute, because every change asks."""
        self._thread = threading.Thread(target=self._run, name="cache-flusher", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def note(self, size_bytes: int) -> None:
        """Something was appended; the collected batch holds `size_bytes`."""
        self.knows = True
        self._dirty.set()
        if size_bytes >= BATCH_BYTES and not self._now.is_set():
            self._now.set()

    def wake(self) -> None:
        """Write what there is without waiting."""
        self._now.set()
        self._dirty.set()

    def stop(self) -> None:
        """Let the batch in work finish, then end the thread."""
        self._stopping = True
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()

    def make_room(self) -> None:
        """The disk is full: write what there is without waiting and give back what can be given back."""
        self._wants_room = True
        self.wake()

    def _run(self) -> None:
        while True:
            if not self._dirty.wait(self._idle_s):
                self._tidy()
                continue
            self._collect()
            self._dirty.clear()
            self._now.clear()
            self.knows = False  # after `clear`, so that no note is lost; what came until now is in the batch taken next
            if self._stopping:
                return
            self._write()

    def _collect(self) -> None:
        """Wait for a pause in the changes, a full batch or the longest delay."""
        for _ in range(int(DELAY_MAX_S / QUIET_S)):
            seen = self._fs.last_lsn
            if self._stopping or self._now.wait(QUIET_S) or self._fs.last_lsn == seen:
                return

    def _write(self) -> None:
        try:
            self._write_batch()
        except FsError as error:
            self._report(error.message)
            self._pause()
        except Exception as error:  # noqa: BLE001 - a bug must not leave writers waiting for room that never comes
            _log.exception("the cache's flusher failed")
            self._fs.refuse(FsError(errno.EIO, f"the cache's flusher failed: {error}"))
            self._pause()
        else:
            self._report("")

    def _write_batch(self) -> None:
        wants_room, self._wants_room = self._wants_room, False
        try:
            ready, durable = self._fs.take_batch()
            if ready:
                wants_room = not self._fs.write_batch(durable=durable) or wants_room
            if wants_room:
                self._fs.make_room()
            elif self._fs.is_tight():
                self._fs.make_room(keep_pages=KEPT_PAGES)
        except FsError as error:
            if not is_no_space(error):
                raise
            self._fs.make_room(reason=error)
        self._fs.thin_out()
        self._idle_s = IDLE_S if self._fs.is_untidy() else None

    def _report(self, trouble: str) -> None:
        """A line of the log when the trouble is a new one, and when it is over; not at every try."""
        if trouble and trouble != self._trouble:
            _log.error("the cache cannot be written, will try again: %s", trouble)
        elif self._trouble and not trouble:
            _log.info("the cache is written again")
        self._trouble = trouble

    def _tidy(self) -> None:
        """A failure costs space and nothing else; the next batch, or the next shortage, tries again."""
        self._idle_s = None
        try:
            more = self._fs.tidy()
        except FsError as error:
            if error.message != self._untidy:
                _log.warning("%s", error.message)
            self._untidy = error.message
            more = self._fs.is_short
        else:
            self._untidy = ""
        if more:
            self._idle_s = IDLE_S if self._fs.is_short else IDLE_S / 10

    def _pause(self) -> None:
        """Before the next try; woken early by `stop`."""
        self._dirty.set()
        self._now.wait(RETRY_S)
