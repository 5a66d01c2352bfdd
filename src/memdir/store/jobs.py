"""Work on documents, kept on disk: at most one row a document and kind, the newest revision wins.

A claim is a lease. Success ends the row only when no newer revision asked for the work meanwhile; failure counts and
delays (full jitter is not needed: one process works the queue). After `ATTEMPTS_MAX` the row goes and the caller marks the
document, so that a poisoned document cannot stop the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.store.database import Database, Transaction, fetch, run_many

INTERACTIVE: Final = 0
BULK: Final = 1
ATTEMPTS_MAX: Final = 5
LEASE_MS: Final = 10 * 60 * 1000
BACKOFF_FIRST_MS: Final = 500
BACKOFF_MAX_MS: Final = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Claimed work."""

    document_id: str
    kind: str
    container_id: int
    priority: int
    generation: int
    attempts: int


class JobStore:
    """The job table."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000

    def claim(self, kind: str, *, limit: int = 1, priority_max: int = BULK) -> list[Job]:
        """At most `limit` jobs that are due and free, no less urgent than `priority_max`; interactive first, then oldest
        first."""
        now_ms = self._now_ms()
        due = "kind = ? and not_before_ms <= ? and leased_until_ms <= ? and priority <= ?"
        bindings = (kind, now_ms, now_ms, priority_max)
        if self._db.one(f"select 1 from job where {due} limit 1", bindings) is None:  # noqa: S608
            return []
        with self._db.write() as connection:
            rows = fetch(
                connection,
                f"select document_id, container_id, priority, generation, attempts from job where {due} "  # noqa: S608
                "order by priority, created_at_ms, document_id limit ?",
                (*bindings, limit),
            )
            run_many(
                connection,
                "update job set leased_until_ms = ? where document_id = ? and kind = ?",
                [(now_ms + LEASE_MS, row[0], kind) for row in rows],
            )
        return [
            Job(document_id=row[0], kind=kind, container_id=row[1], priority=row[2], generation=row[3], attempts=row[4])
            for row in rows
        ]

    def finish(self, jobs: Sequence[Job]) -> None:
        """The work is done; a row that grew meanwhile becomes free at once instead."""
        with self._db.write() as connection:
            for job in jobs:
                finish(connection, job)

    def fail(self, job: Job) -> bool:
        """The work failed: try again later, or give up. Returns whether it was given up (the row is gone then)."""
        with self._db.write() as connection:
            attempts = job.attempts + 1
            if attempts >= ATTEMPTS_MAX:
                connection.execute(
                    "delete from job where document_id = ? and kind = ? and generation = ?",
                    (job.document_id, job.kind, job.generation),
                )
                if connection.changes():
                    return True
            delay_ms = min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** min(job.attempts, 16))
            connection.execute(
                "update job set attempts = case when generation = ? then ? else attempts end, leased_until_ms = 0, "
                "not_before_ms = case when generation = ? then ? else not_before_ms end where document_id = ? and kind = ?",
                (job.generation, attempts, job.generation, self._now_ms() + delay_ms, job.document_id, job.kind),
            )
        return False

    def release(self, jobs: Sequence[Job]) -> None:
        """Give claims back untouched (the worker is stopping)."""
        with self._db.write() as connection:
            run_many(
                connection,
                "update job set leased_until_ms = 0 where document_id = ? and kind = ?",
                [(job.document_id, job.kind) for job in jobs],
            )

    def release_all(self) -> int:
        """Free the leases of a process that is gone. Returns how many there were."""
        with self._db.write() as connection:
            connection.execute("update job set leased_until_ms = 0 where leased_until_ms > 0")
            return connection.changes()

    def next_due_s(self, kind: str, *, priority_max: int = BULK) -> float | None:
        """Seconds until the next job can be claimed (0 when one can now); None when there is none."""
        row = self._db.one(
            "select min(max(not_before_ms, leased_until_ms)) from job where kind = ? and priority <= ?", (kind, priority_max)
        )
        if row is None or row[0] is None:
            return None
        due_ms: int = row[0]
        return max(0.0, (due_ms - self._now_ms()) / 1000)

    def count(self, kind: str | None = None) -> int:
        """Jobs waiting or running."""
        row = self._db.one("select count(*) from job where kind = coalesce(?, kind)", (kind,))
        assert row is not None
        count: int = row[0]
        return count


def enqueue(connection: Transaction, *, document_id: str, container_id: int, kind: str, priority: int, now_ms: int) -> None:
    """Ask for work, inside the caller's transaction. What is already asked for becomes newer, never less urgent, and
    starts afresh."""
    connection.execute(
        "insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms) values (?, ?, ?, ?, 0, ?) "
        "on conflict (document_id, kind) do update set generation = generation + 1, attempts = 0, not_before_ms = 0, "
        "priority = min(priority, excluded.priority)",
        (document_id, kind, container_id, priority, now_ms),
    )


def finish(connection: Transaction, job: Job) -> None:
    """End a claimed job, inside the caller's transaction."""
    connection.execute(
        "delete from job where document_id = ? and kind = ? and generation = ?", (job.document_id, job.kind, job.generation)
    )
    if not connection.changes():
        connection.execute("update job set leased_until_ms = 0 where document_id = ? and kind = ?", (job.document_id, job.kind))
