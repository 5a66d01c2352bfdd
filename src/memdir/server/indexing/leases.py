"""The claims that this process works on: kept alive while a step runs, ended early when the work is not wanted any more.

One thread renews the leases of steps that take long and looks whether a newer revision came, the document went, or another
worker has the work. A step learns of that at its next checkpoint, and in the middle of a long computation at once.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

from memdir.core.errors import BusyError, MemdirError
from memdir.core.ids import new_id
from memdir.server.indexing.interrupt import Interruptible
from memdir.store.errors import SupersededError
from memdir.store.jobs.queue import LEASE_MS, Job
from memdir.store.store import Store

log = logging.getLogger(__name__)

T = TypeVar("T")

TICK_S: Final = 1.0
"""How often steps under way are looked at: bounds how long a cancelled computation goes on."""
RENEW_S: Final = LEASE_MS / 1000 / 4
COMPUTE_S: Final = 120.0
"""Time limit of one computation over one document. Cutting the longest text that is read (32 MiB) takes a quarter of it."""


class PermanentError(MemdirError):
    """Trying the same document again would end the same way."""


class StepTimeoutError(PermanentError):
    """A computation over a document took longer than it may."""


class StoppingError(BusyError):
    """The worker is ending; the work goes on after the next start."""


class Lease:
    """A claimed job while it is worked on."""

    def __init__(self, store: Store, job: Job, *, limit_s: float = COMPUTE_S) -> None:
        self.job = job
        self._store = store
        self._limit_s = limit_s
        self._renewed_s = time.monotonic()
        self._deadline_s = 0.0
        self._computing: Interruptible | None = None
        self._refused: Exception | None = None

    def check(self) -> None:
        """A checkpoint between two parts of a step. SupersededError when the work is not wanted any more."""
        self.check_refused()
        if not self._store.jobs.holds(self.job):
            raise SupersededError

    def compute(self, work: Callable[[], T]) -> T:
        """Run plain Python over the document's content, which holds no lock and writes nothing. It ends at once when the work
        is not wanted any more (SupersededError), takes too long (StepTimeoutError) or the worker stops (StoppingError): what
        `watch` notices, so that a short one asks the database nothing."""
        self.check_refused()
        computing = Interruptible()
        self._deadline_s = time.monotonic() + self._limit_s
        self._computing = computing
        try:
            return computing.run(work)
        finally:
            self._computing = None

    def check_refused(self) -> None:
        """What `watch` has noticed, if anything: a checkpoint that asks the database nothing."""
        if self._refused is not None:
            raise self._refused

    def refuse(self, error: Exception) -> None:
        """End the step: now if it computes, else at its next checkpoint. Any thread."""
        self._refused = self._refused or error
        computing = self._computing
        if computing is not None:
            computing.stop(error)

    def watch(self, now_s: float) -> None:
        """Called every `TICK_S`: renew, notice what has changed, keep the time limit."""
        if self._computing is not None and now_s >= self._deadline_s:
            self.refuse(StepTimeoutError(f"reading the document took more than {self._limit_s:g} s"))
            return
        if now_s - self._renewed_s >= RENEW_S:
            wanted = self._store.jobs.renew(self.job)
            self._renewed_s = now_s
        else:
            wanted = self._store.jobs.holds(self.job)
        if not wanted:
            self.refuse(SupersededError())


def owner_of(pid: int) -> str:
    """How the names begin in which a process of this machine claims jobs."""
    return f"{socket.gethostname()}:{pid}:"


class Leases:
    """All claims of one worker."""

    def __init__(self, store: Store, *, limit_s: float = COMPUTE_S) -> None:
        self.owner = f"{owner_of(os.getpid())}{new_id()}"[:200]
        self._store = store
        self._limit_s = limit_s
        self._lock = threading.Lock()
        self._held: dict[Lease, float] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="memdir-leases", daemon=True)

    def start(self) -> None:
        """Begin to watch."""
        self._thread.start()

    @contextmanager
    def hold(self, jobs: Iterable[Job], *, limit_s: float = COMPUTE_S) -> Iterator[list[Lease]]:
        """Watch over claimed jobs inside the block. Ending or releasing them is the caller's. `limit_s` makes the time limit of
        a computation shorter than it is anyway."""
        leases = [Lease(self._store, job, limit_s=min(limit_s, self._limit_s)) for job in jobs]
        began_s = time.monotonic()
        with self._lock:
            self._held.update(dict.fromkeys(leases, began_s))
        try:
            yield leases
        finally:
            with self._lock:
                for lease in leases:
                    del self._held[lease]

    def stop(self) -> None:
        """End long computations; the threads that work must have been told to stop before."""
        for lease in self._all():
            lease.refuse(StoppingError("the worker is stopping"))

    def close(self) -> None:
        """Stop watching and give back what is still held: no process works on it any more, or none may."""
        self._ended.set()
        left = [lease.job for lease in self._all()]
        if left:
            self._store.jobs.release(left)
        if self._thread.is_alive():
            self._thread.join()

    def _all(self) -> Sequence[Lease]:
        with self._lock:
            return list(self._held)

    def _watch(self) -> None:
        while not self._ended.wait(TICK_S):
            now_s = time.monotonic()
            with self._lock:
                long = [lease for lease, began_s in self._held.items() if now_s - began_s >= TICK_S]
            for lease in long:
                try:
                    lease.watch(now_s)
                except Exception:
                    # The database is away: leases end by themselves then, and whoever comes too late is refused.
                    log.exception("the lease of document %s could not be renewed", lease.job.document_id)
