"""Which passages still lack a vector, document by document: the worker embeds in the order of the jobs.

Reads the tables of `chunks`; the vectors themselves are written through the chunk store.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, fetch, marks_for
from memdir.store.jobs import queue as jobs
from memdir.store.jobs.queue import Job
from memdir.store.passages.reading import IN_MAX
from memdir.store.tree.documents import hold

_LACKS: Final = (
    "not exists (select 1 from chunk_vector v where v.chunk_id = c.id "
    "and v.model_id = (select id from vector_model where name = ?))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Passages to embed in one go."""

    chunk_ids: tuple[int, ...]
    served: tuple[Job, ...]
    """Whose documents they are of."""
    completed: tuple[Job, ...]
    """Those that lack nothing with them."""


class EmbeddingQueue:
    """Jobs of the kind `embed` and the passages behind them."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    @acting_as(SYSTEM)
    def missing(self, claimed: Sequence[Job], *, model: str, limit: int, shortest_first: bool = True) -> Batch:
        """At most `limit` passages without a vector of `model`: of the most urgent documents first, among equals of those that
        lack least (a long log must not keep the notes beside it waiting for minutes), or of those whose turn it is (so that the
        log gets on, too). Inside a document in the order of the text."""
        lacking: list[tuple[Job, list[int]]] = []
        for job in claimed:
            rows = self._db.all(
                f"select c.id from chunk c where c.document_id = ? and {_LACKS} order by c.ordinal limit ?",  # noqa: S608
                (job.document_id, model, limit),
            )
            lacking.append((job, [int(row[0]) for row in rows]))
        if shortest_first:
            lacking.sort(key=lambda one: (one[0].priority, len(one[1])))
        chunk_ids: list[int] = []
        served, completed = [], []
        for job, ids in lacking:
            taken = ids[: limit - len(chunk_ids)]
            chunk_ids += taken
            if taken:
                served.append(job)
                if len(taken) == len(ids) < limit:
                    completed.append(job)
        return Batch(chunk_ids=tuple(chunk_ids), served=tuple(served), completed=tuple(completed))

    @acting_as(SYSTEM)
    def awaited(self, text_hashes: Sequence[bytes]) -> set[bytes]:
        """Those of the texts (`texts.text_hash`) that are passages whose vectors somebody was asked for."""
        found: set[bytes] = set()
        for first in range(0, len(text_hashes), IN_MAX):
            part = text_hashes[first : first + IN_MAX]
            rows = self._db.all(
                "select distinct c.text_hash from chunk c join job j on j.document_id = c.document_id and j.kind = 'embed' "  # noqa: S608
                f"and j.failed_at_ms is null where c.text_hash in ({marks_for(part)})",
                part,
            )
            found.update(bytes(row[0]) for row in rows)
        return found

    def left(self, container_ids: Sequence[int]) -> int:
        """About how many passages of these containers wait: those of the documents that wait, so that a long one counts whole
        until its end."""
        row = self._db.one(
            "select count(*) from job j join chunk c on c.document_id = j.document_id where j.kind = 'embed' "  # noqa: S608
            f"and j.failed_at_ms is null and j.container_id in ({marks_for(container_ids)})",
            container_ids,
        )
        return 0 if row is None else int(row[0])

    @acting_as(SYSTEM)
    def announce(self, batch: Batch) -> None:
        """The vectors of the last passages of some documents are about to go into the index."""
        if not batch.completed:
            return
        newest, claims = jobs.newest_of(batch.completed)
        with self._db.write() as connection:
            hold(self._db, connection, [job.document_id for job in batch.completed])
            connection.execute(
                "update document set status = 'indexing' where status = 'embedding' "  # noqa: S608
                f"and id in (select document_id from job where {newest})",
                claims,
            )

    @acting_as(SYSTEM)
    def settle(self, claimed: Sequence[Job], batch: Batch, *, model: str) -> list[Job]:
        """End the jobs whose documents lack nothing any more and call those documents done; of the others, those that `batch`
        served wait for their next turn, the rest keeps it. Returns the jobs that ended. A claim that is not the newest changes
        nothing."""
        served = {job.document_id for job in batch.served}
        ids = [job.document_id for job in claimed]
        with self._db.write() as connection:
            hold(self._db, connection, ids)
            rows = fetch(
                connection,
                f"select d.id from document d where d.id in ({marks_for(ids)}) "  # noqa: S608
                f"and exists (select 1 from chunk c where c.document_id = d.id and {_LACKS})",
                (*ids, model),
            )
            lacking = {row[0] for row in rows}
            for job in claimed:
                if job.document_id in lacking & served:
                    jobs.put_back(connection, job)
                elif job.document_id in lacking:
                    jobs.free(connection, job)
            ended = jobs.finish(connection, [job for job in claimed if job.document_id not in lacking])
            connection.execute(
                f"update document set status = 'done' where id in ({marks_for(ended)}) "  # noqa: S608
                "and status in ('embedding', 'indexing')",
                sorted(ended),
            )
        return [job for job in claimed if job.document_id in ended]

    @acting_as(SYSTEM)
    def backfill(self, *, model: str) -> int:
        """Ask for vectors of `model` wherever they lack and nobody asked yet (another model). What was given up stays so.
        Returns how many documents that concerns."""
        with self._db.write() as connection:
            connection.execute(
                "insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms, turn) "  # noqa: S608
                "select document_id, 'embed', container_id, :bulk, 0, :now, coalesce((select turn from job_clock "
                "where kind = 'embed' and priority = :bulk), 0) "
                "+ row_number() over (partition by container_id order by document_id) "
                "from (select distinct c.document_id, c.container_id from chunk c join document d on d.id = c.document_id "
                f"where d.searched_last is null and {_LACKS.replace('?', ':model')}) as lacking "
                "where true on conflict (document_id, kind) do nothing",
                {"bulk": jobs.BULK, "now": self._clock.now_ns() // 1_000_000, "model": model},
            )
            return connection.changes()

    @acting_as(SYSTEM)
    def abandon(self) -> None:
        """There is no transformer here: what nobody else works on goes, and what waited for it is done as it is. `backfill`
        brings the work back."""
        with self._db.write() as connection:
            connection.execute(
                "update document set status = 'done' where status in ('embedding', 'indexing') and not exists ("
                "select 1 from job j where j.document_id = document.id and j.kind = 'embed' and j.leased_until_ms > 0)"
            )
            connection.execute("delete from job where kind = 'embed' and leased_until_ms = 0 and failed_at_ms is null")
