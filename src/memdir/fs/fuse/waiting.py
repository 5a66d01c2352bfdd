"""Requests that wait for contents from the server, so that nobody else does.

The request loop meets ContentsAbsentError, hands a copy of the request over and goes on. A `ContentSource` fetches; when the
contents are here, a thread of this module runs the request again, with handlers of its own. Whatever happens, each request is
answered once: with its result, with EIO (the source failed, nothing came for too long, the mount ends), or with EINTR when its
caller was interrupted.
"""

from __future__ import annotations

import errno
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.source import ContentSource

log = logging.getLogger(__name__)

WAITING_MAX: Final = 256
"""Requests that wait at most; others are answered EIO at once. Half of `FuseOptions.max_background`: the kernel counts waiting
reads among its background requests and would hold back reads of files that are here."""
_RUNS_MAX: Final = 8
"""How often one request is run again: its file may have become a newer, absent version each time."""
_LOOK_S: Final = 1.0
FAILED_FOR_S: Final = 1.0
"""After a failure, further requests for the same inode fail at once for so long: when reading ahead fails, the kernel asks for
the page again, and the reader must not wait a second time."""


@dataclass(slots=True, eq=False)
class _Pending:
    unique: int
    ino: int
    request: bytes
    deadline_s: float
    arrived_bytes: int = 0
    runs: int = 0


class WaitingRequests:
    """`park` and `interrupt` are called by the request loop; both return at once."""

    def __init__(self, source: ContentSource, *, timeout_s: float) -> None:
        self._source = source
        self._timeout_s = timeout_s
        self._changed = threading.Condition()
        self._pending: dict[int, _Pending] = {}
        """By the kernel's number of the request."""
        self._asked: set[int] = set()
        """Inodes that the source was asked for and has not answered."""
        self._brought: dict[int, FsError | None] = {}
        self._failed: dict[int, float] = {}
        """Until when (monotonic) requests for an inode fail at once. Bounded by `WAITING_MAX`."""
        self._running: _Pending | None = None
        """What this thread runs again just now."""
        self._ended = False
        self._thread: threading.Thread | None = None
        self._rerun: Callable[[bytes], object] = _unset
        self._refuse: Callable[[int, int], None] = _unset
        self.on_done: Callable[[int], None] = lambda _: None
        """Told, without locks, that a request for an inode does not wait any more."""

    def start(self, rerun: Callable[[bytes], object], refuse: Callable[[int, int], None]) -> None:
        """`rerun(request)` runs and answers a request, or comes back here through `park`; `refuse(unique, errno)` answers it
        with an errno."""
        self._rerun, self._refuse = rerun, refuse
        self._thread = threading.Thread(target=self._run, name="fuse-waiting", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """The mount ends: answer EIO to everybody who waits, and at once from now on."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self, *, timeout_s: float) -> None:
        """`end`, and wait for the thread, because the descriptor is about to be closed."""
        self.end()
        if self._thread is not None:
            self._thread.join(timeout_s)

    def __len__(self) -> int:
        return len(self._pending)

    # --- the request loop ----------------------------------------------------------------------------------------

    def park(self, unique: int, ino: int, request: bytes) -> int | None:
        """Take over a request; an errno when that cannot be."""
        with self._changed:
            again = self._running
            if again is not None and again.unique == unique and threading.current_thread() is self._thread:
                pending = again
                if pending.runs >= _RUNS_MAX:
                    return errno.EIO
                pending.ino, pending.arrived_bytes = ino, 0
            else:
                pending = _Pending(unique, ino, request, time.monotonic() + self._timeout_s)
            if len(self._pending) >= WAITING_MAX or self._has_failed(ino):
                return errno.EIO
            self._pending[unique] = pending
            is_new = ino not in self._asked
            self._asked.add(ino)
            self._changed.notify_all()
        if is_new:
            self._source.bring(ino, lambda error: self._note(ino, error))
        return None

    def _has_failed(self, ino: int) -> bool:
        """Whether there is nothing to wait for; with the lock held."""
        until_s = self._failed.get(ino)
        if self._ended or self._thread is None:
            return True
        if until_s is None:
            return False
        if time.monotonic() < until_s:
            return True
        del self._failed[ino]
        return False

    def interrupt(self, unique: int) -> None:
        """The caller got a signal. A request that is not here was answered already, or runs again at this moment."""
        with self._changed:
            found = self._pending.pop(unique, None)
        if found is not None:
            self._refuse(unique, errno.EINTR)
            self.on_done(found.ino)

    def is_waited_for(self, ino: int) -> bool:
        """Whether a request waits for the contents of `ino`."""
        with self._changed:
            return any(one.ino == ino for one in self._pending.values())

    def _note(self, ino: int, error: FsError | None) -> None:
        with self._changed:
            self._asked.discard(ino)
            self._brought[ino] = error
            self._changed.notify_all()

    # --- the thread ----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._brought and not self._ended:
                    self._changed.wait(self._pause_s())  # woken by every request that comes: the next deadline may be its
                ended, brought, self._brought = self._ended, self._brought, {}
                ready = [one for one in self._pending.values() if ended or one.ino in brought]
                ready += [] if ended else [one for one in self._expired() if one.ino not in brought]
                for one in ready:
                    del self._pending[one.unique]
                    if ended or one.ino not in brought or brought[one.ino] is not None:
                        self._remember_failure(one.ino)
            for one in ready:
                ino = one.ino
                self._finish(one, ended=ended, was_brought=ino in brought, error=brought.get(ino))
                self.on_done(ino)
            if ended:
                return

    def _remember_failure(self, ino: int) -> None:
        while len(self._failed) >= WAITING_MAX:
            del self._failed[next(iter(self._failed))]
        self._failed[ino] = time.monotonic() + FAILED_FOR_S

    def _finish(self, one: _Pending, *, ended: bool, was_brought: bool, error: FsError | None) -> None:
        if ended or not was_brought or error is not None:
            if not ended:
                log.warning("a read of inode %d fails: %s", one.ino, error.message if error else "nothing came in time")
            self._refuse(one.unique, errno.EIO)
            return
        one.runs += 1
        self._running = one
        try:
            self._rerun(one.request)
        finally:
            self._running = None

    def _expired(self) -> list[_Pending]:
        """Requests for which nothing came during the whole timeout; with the lock held."""
        now_s = time.monotonic()
        found = []
        for one in self._pending.values():
            arrived_bytes = self._source.arrived_bytes(one.ino)
            if arrived_bytes > one.arrived_bytes:
                one.arrived_bytes, one.deadline_s = arrived_bytes, now_s + self._timeout_s
            elif now_s >= one.deadline_s:
                found.append(one)
        return found

    def _pause_s(self) -> float | None:
        """With the lock held: until the next deadline may be due, None for nobody waits."""
        if not self._pending:
            return None
        left_s = min(one.deadline_s for one in self._pending.values()) - time.monotonic()
        return min(max(left_s, 0.01), _LOOK_S)


def _unset(*_: object) -> None:
    raise RuntimeError("start() was not called")
