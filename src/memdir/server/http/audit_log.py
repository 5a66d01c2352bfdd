"""The audit log, written behind the requests: reads cost a queue entry, changes are on record before they are answered.

A change of a container's tree is recorded in its own transaction (`store.accounts.audit.Recording`). Every other change (keys,
settings, memories) waits for its row: a process killed between the two commits has made a change that nobody was told of and
that the log does not name. Reads are recorded within FLUSH_S, so that a killed process loses those of its last second. When
the database refuses (a full disk), nothing waits: events are kept, up to QUEUE_MAX, and a count of what was lost is logged.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import Final

from memdir.store.accounts.audit import AuditEvent
from memdir.store.store import Store

log = logging.getLogger(__name__)

QUEUE_MAX: Final = 10_000
BATCH_MAX: Final = 1_000
FLUSH_S: Final = 0.5
WAIT_MAX_S: Final = 2.0
"""How long the answer to a change waits for its record; behind a writer that is stuck it goes out without."""
USED_EVERY_MS: Final = 5 * 60_000
SWEEP_EVERY_S: Final = 600.0
_RETRY_S: Final = 1.0
WRITTEN: Final = -1
"""Id of an event that a change wrote in its own transaction."""


@dataclass(frozen=True, slots=True)
class _Waiter:
    loop: asyncio.AbstractEventLoop
    done: asyncio.Future[None]

    def release(self) -> None:
        if not self.loop.is_closed():
            self.loop.call_soon_threadsafe(lambda: None if self.done.done() else self.done.set_result(None))


class Auditor:
    """One writing thread. `note` and `record` are called on the event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = threading.Condition()
        self._queue: deque[tuple[AuditEvent, _Waiter | None]] = deque()
        self._hurry = False
        self._stopping = False
        self._lost = 0
        self._used: dict[str, int] = {}
        self._thread = threading.Thread(target=self._work, name="memdir-audit", daemon=True)

    def start(self) -> None:
        """Begin writing."""
        self._thread.start()

    def stop(self, *, timeout_s: float = 5.0) -> bool:
        """Write what is left. Returns whether all was written in time."""
        with self._changed:
            self._stopping = True
            self._changed.notify()
        self._thread.join(timeout_s)
        return not self._thread.is_alive() and not self._queue

    def note(self, event: AuditEvent) -> None:
        """Record soon."""
        self._put(event, None)

    def written(self, event: AuditEvent) -> None:
        """It is on record already; note that the key was used."""
        self._put(replace(event, id=WRITTEN), None)

    async def record(self, event: AuditEvent) -> None:
        """Record now; returns when it is committed, at the latest after WAIT_MAX_S."""
        loop = asyncio.get_running_loop()
        waiter = _Waiter(loop, loop.create_future())
        self._put(event, waiter)
        try:
            async with asyncio.timeout(WAIT_MAX_S):
                await waiter.done
        except TimeoutError:
            log.warning("the audit log is behind: a change was answered before it was on record")

    def _put(self, event: AuditEvent, waiter: _Waiter | None) -> None:
        with self._changed:
            if len(self._queue) >= QUEUE_MAX:
                self._lost += 1
                if waiter is not None:
                    waiter.release()
                return
            self._queue.append((event, waiter))
            if waiter is not None or len(self._queue) >= BATCH_MAX:
                self._hurry = True
                self._changed.notify()

    def _work(self) -> None:
        sweep_at_s = time.monotonic()
        while True:
            with self._changed:
                if not self._hurry and not self._stopping:
                    self._changed.wait(FLUSH_S)
                self._hurry = False
                batch = [self._queue.popleft() for _ in range(min(BATCH_MAX, len(self._queue)))]
                self._hurry = bool(self._queue)
                ending = self._stopping
            written = self._write(batch)
            if time.monotonic() >= sweep_at_s and not ending:
                self._sweep()
                sweep_at_s = time.monotonic() + SWEEP_EVERY_S
            if ending and (not written or not self._queue):
                return

    def _write(self, batch: list[tuple[AuditEvent, _Waiter | None]]) -> bool:
        """Write a batch, or put it back for later. Waiters are released either way."""
        written = True
        try:
            if batch:
                if fresh := [event for event, _ in batch if event.id != WRITTEN]:
                    self._store.audit.add(fresh)
                self._note_use([event for event, _ in batch])
        except Exception:
            written = False
            log.exception("%d entries of the audit log could not be written; they are kept for a while", len(batch))
            with self._changed:
                self._queue.extendleft((event, None) for event, _ in reversed(batch))
        for _, waiter in batch:
            if waiter is not None:
                waiter.release()
        with self._changed:
            lost, self._lost = self._lost, 0
            if not written and not self._stopping:
                self._hurry = False
                self._changed.wait(_RETRY_S)
        if lost:
            log.error("the audit log lost %d entries: the queue was full", lost)
        return written

    def _note_use(self, events: list[AuditEvent]) -> None:
        """`last_used_at_ms`, to USED_EVERY_MS. Bounded by the number of keys; begun anew when that is very large."""
        due = {
            event.key_id: event.at_ms
            for event in events
            if event.at_ms - self._used.get(event.key_id, -USED_EVERY_MS) >= USED_EVERY_MS
        }
        if not due:
            return
        if len(self._used) > QUEUE_MAX:
            self._used.clear()
        self._used |= due
        self._store.keys.used(due)

    def _sweep(self) -> None:
        try:
            self._store.audit.sweep()
        except Exception:
            log.exception("old entries of the audit log could not be removed")
