"""Which passages still lack a vector, document by document: the worker embeds in the order of the jobs.

Reads the tables of `chunks`; the vectors themselves are written through the chunk store.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.core.clock import Clock
from memdir.store import jobs
from memdir.store.database import Database, fetch
from memdir.store.jobs import Job

_LACKS: Final = (
    "not exists (select 1 from chunk_vector v where v.chunk_id = c.id "
    "and v.model_id = (select id from vector_model where name = ?))"
)


class EmbeddingQueue:
    """Jobs of the kind `embed` and the passages behind them."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def missing(self, claimed: Sequence[Job], *, model: str, limit: int) -> list[tuple[int, str]]:
        """Chunk ids without a vector of `model`, with their documents: the most urgent first, among equals those that lack
        least. A long log must not keep the notes beside it waiting for minutes. Inside a document in the order of the text."""
        lacking = []
        for job in claimed:
            rows = self._db.all(
                f"select c.id, c.document_id from chunk c where c.document_id = ? and {_LACKS} order by c.ordinal limit ?",  # noqa: S608
                (job.document_id, model, limit),
            )
            lacking.append((job.priority, [(int(row[0]), str(row[1])) for row in rows]))
        lacking.sort(key=lambda one: (one[0], len(one[1])))
        return [row for _, rows in lacking for row in rows][:limit]

    def settle(self, claimed: Sequence[Job], *, model: str, note: str | None = None) -> list[Job]:
        """End the jobs whose documents lack nothing any more (with a `note`: whatever they lack) and call those documents done;
        free the others. Returns the jobs that ended."""
        ended = []
        with self._db.write() as connection:
            for job in claimed:
                lacks = fetch(
                    connection,
                    f"select 1 from chunk c where c.document_id = ? and {_LACKS} limit 1",  # noqa: S608
                    (job.document_id, model),
                )
                if lacks and note is None:
                    connection.execute(
                        "update job set leased_until_ms = 0 where document_id = ? and kind = 'embed'", (job.document_id,)
                    )
                    continue
                jobs.finish(connection, job)
                connection.execute(
                    "update document set status = 'done', error = coalesce(?, error) where id = ? "
                    "and status in ('embedding', 'indexing')",
                    (note, job.document_id),
                )
                ended.append(job)
        return ended

    def backfill(self, *, model: str) -> int:
        """Ask for vectors of `model` wherever they lack and nobody asked yet (another model, a job that was given up).
        Returns how many documents that concerns."""
        with self._db.write() as connection:
            connection.execute(
                "insert or ignore into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms) "  # noqa: S608
                f"select distinct c.document_id, 'embed', c.container_id, ?, 0, ? from chunk c where {_LACKS}",
                (jobs.BULK, self._clock.now_ns() // 1_000_000, model),
            )
            return connection.changes()

    def abandon(self) -> None:
        """There is no transformer: its jobs go, and what waited for it is done as it is. `backfill` brings them back."""
        with self._db.write() as connection:
            connection.execute("delete from job where kind = 'embed'")
            connection.execute("update document set status = 'done' where status in ('embedding', 'indexing')")
