"""Work that was given up: kept with its reason, listed, tried again when somebody asks. And documents that nobody works on.

Lock order here as everywhere: container, document, job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, fetch, marks_for
from memdir.store.jobs import queue as jobs

LIST_MAX: Final = 10_000
_LIVE: Final = (
    "not exists (select 1 from job j where j.document_id = d.id and j.failed_at_ms is null and j.kind in ("
    "'index', case when d.status in ('embedding', 'indexing') then 'embed' else 'index' end))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedJob:
    """A row of the job table as a person may want to see it."""

    document_id: str
    kind: str
    container_tag: str
    path: str | None
    state: str
    """`waiting`, `running` or `failed`."""
    priority: int
    attempts: int
    reason: str | None
    at_ms: int
    """When it was given up; for the others when it was asked for."""


class DeadLetters:
    """The job table as a person works with it."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def listing(self, container_ids: Sequence[int], *, failed: bool, limit: int) -> list[QueuedJob]:
        """Work of some containers: what was given up, newest first, or (not `failed`) also what waits and runs, oldest first.
        At most `limit` rows."""
        if not container_ids:
            return []
        marks = marks_for(container_ids)
        only, order = ("and j.failed_at_ms is not null", "j.failed_at_ms desc") if failed else ("", "j.created_at_ms")
        now_ms = self._clock.now_ns() // 1_000_000
        rows = self._db.all(
            "select j.document_id, j.kind, k.tag, d.path, case when j.failed_at_ms is not null then 'failed' "  # noqa: S608
            "when j.leased_until_ms > ? then 'running' else 'waiting' end, j.priority, j.attempts, j.reason, "
            "coalesce(j.failed_at_ms, j.created_at_ms) from job j join document d on d.id = j.document_id "
            f"join container k on k.id = j.container_id where j.container_id in ({marks}) {only} "
            f"order by {order}, j.document_id, j.kind limit ?",
            (now_ms, *container_ids, min(limit, LIST_MAX)),
        )
        return [
            QueuedJob(
                document_id=row[0],
                kind=row[1],
                container_tag=row[2],
                path=row[3],
                state=row[4],
                priority=row[5],
                attempts=row[6],
                reason=row[7],
                at_ms=row[8],
            )
            for row in rows
        ]

    def retry(self, container_ids: Sequence[int], *, document_id: str | None = None) -> int:
        """Put work that was given up back into the queue: all of some containers, or of one document in them. A document that
        failed is queued again. Returns how many jobs that were."""
        if not container_ids:
            return 0
        now_ms = self._clock.now_ns() // 1_000_000
        marks = marks_for(container_ids)
        with self._db.write() as connection:
            rows = fetch(
                connection,
                "select j.document_id, j.kind, j.container_id, j.priority from job j "  # noqa: S608
                f"where j.failed_at_ms is not null and j.container_id in ({marks}) "
                "and j.document_id = coalesce(?, j.document_id) "
                "order by j.failed_at_ms, j.document_id, j.kind",
                (*container_ids, document_id),
            )
            for found_id, kind, container_id, priority in rows:
                connection.execute(
                    "update document set status = case when ? = 'index' then 'queued' else status end, error = null "
                    "where id = ?",
                    (kind, found_id),
                )
                jobs.enqueue(
                    connection, document_id=found_id, container_id=container_id, kind=kind, priority=priority, now_ms=now_ms
                )
        return len(rows)

    @acting_as(SYSTEM)
    def stuck(self, *, limit: int = LIST_MAX) -> list[str]:
        """Ids of documents whose status says that work goes on while there is none to finish it: always none, `memdir server
        check` looks."""
        return [
            row[0]
            for row in self._db.all(
                f"select d.id from document d where d.status not in ('done', 'failed') and {_LIVE} order by d.id limit ?",  # noqa: S608
                (limit,),
            )
        ]

    @acting_as(SYSTEM)
    def unstick(self, *, limit: int = LIST_MAX) -> int:
        """Ask for the work that those documents wait for. Returns how many there were; more than `limit` need another call."""
        now_ms = self._clock.now_ns() // 1_000_000
        with self._db.write() as connection:
            rows = fetch(
                connection,
                "select d.id, d.container_id, d.status from document d "  # noqa: S608
                f"where d.status not in ('done', 'failed') and {_LIVE} order by d.id limit ?",
                (limit,),
            )
            for document_id, container_id, status in rows:
                kind = "embed" if status in ("embedding", "indexing") else "index"
                jobs.enqueue(
                    connection, document_id=document_id, container_id=container_id, kind=kind, priority=jobs.BULK, now_ms=now_ms
                )
        return len(rows)
