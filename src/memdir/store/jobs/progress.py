"""How far documents are in the pipeline. Of several documents together: one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memdir.core.clock import Clock
from memdir.store.database import Database, Transaction, fetch, marks_for, repeated
from memdir.store.errors import SupersededError
from memdir.store.jobs import queue as jobs
from memdir.store.jobs.queue import HELD, Job
from memdir.store.text.passage_text import storable
from memdir.store.tree.documents import STATUSES, hold
from memdir.store.types import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """The passages of a document were made from the content that it has: what becomes of it."""

    document: Document
    job: Job
    status: str
    error: str | None
    media_type: str
    title: str | None
    searched_last: str | None = None
    """Why it is found by words only and behind everything else: see `store.passages.ignored_files`."""
    follow_up: Sequence[str]
    """Kinds of work to ask for."""
    transcription: str | None = None
    """The kind of the text beside it, or `error`."""


class ProgressStore:
    """Statuses in the document table, and the jobs that they stand for."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def advance(self, claimed: Sequence[Job], status: str) -> set[str]:
        """Move documents on in the pipeline; a status never goes back for the same revision, so a step that is repeated leaves
        it where it was. Returns the documents whose claim still is the newest: of the others nothing was changed."""
        earlier = STATUSES[: STATUSES.index(status)]
        newest, claims = jobs.newest_of(claimed)

        def work(connection: Transaction) -> set[str]:
            hold(self._db, connection, [job.document_id for job in claimed])
            held = [row[0] for row in fetch(connection, f"select document_id from job where {newest}", claims)]  # noqa: S608
            connection.execute(
                f"update document set status = ? where id in ({marks_for(held)}) and status in ({marks_for(earlier)})",  # noqa: S608
                (status, *held, *earlier),
            )
            return set(held)

        return repeated(self._db, work)

    def indexed(self, results: Sequence[Indexed]) -> set[str]:
        """Record that, end the jobs, and ask for what follows. Returns the documents that it was done for: one that has other
        content now, or whose claim is not the newest, stays as it is, and its job is freed."""

        def work(connection: Transaction) -> set[str]:
            recorded = [result for result in ordered if _record(connection, result)]
            _number_siblings(connection, recorded)
            if len(jobs.finish(connection, [result.job for result in recorded])) < len(recorded):
                raise SupersededError
            now_ms = self._clock.now_ns() // 1_000_000
            for (container_id, kind, priority), ids in _wanted(recorded).items():
                jobs.enqueue_all(connection, ids, container_id=container_id, kind=kind, priority=priority, now_ms=now_ms)
            return {result.document.id for result in recorded}

        ordered = sorted(results, key=lambda result: result.document.id)
        return repeated(self._db, work)

    def hand_on(self, claimed: Sequence[Job], kind: str) -> set[str]:
        """End jobs and ask for other work on the same documents: `extract`, to be read in a process apart, and `index`
        afterwards. What is searched of an earlier content stays. Returns the documents that it was done for."""
        earlier = STATUSES[: STATUSES.index("extracting") + 1]

        def work(connection: Transaction) -> set[str]:
            hold(self._db, connection, [job.document_id for job in claimed])
            ended = jobs.finish(connection, claimed)
            connection.execute(
                "update document set status = 'extracting', error = null "  # noqa: S608
                f"where id in ({marks_for(sorted(ended))}) and status in ({marks_for(earlier)})",
                (*sorted(ended), *earlier),
            )
            now_ms = self._clock.now_ns() // 1_000_000
            for job in claimed:
                if job.document_id in ended:
                    jobs.enqueue(
                        connection, document_id=job.document_id, container_id=job.container_id, kind=kind,
                        priority=job.priority, now_ms=now_ms,
                    )  # fmt: skip
            return ended

        return repeated(self._db, work)

    def reading(self, job: Job, note: str) -> None:
        """Say how far the reading of a long document is, as its note."""
        with self._db.write() as connection:
            connection.execute(
                f"update document set error = ? where id = ? and status = 'extracting' and {HELD}",  # noqa: S608
                (note, job.document_id, job.document_id, job.kind, job.generation, job.claims),
            )


def _record(connection: Transaction, result: Indexed) -> bool:
    document, job = result.document, result.job
    connection.execute(
        "update document set status = ?, error = ?, indexed_hash = content_hash, media_type = ?, title = ?, searched_last = ?, "  # noqa: S608
        "transcription = ? "
        f"where id = ? and content_hash = ? and {HELD}",
        (
            *(result.status, result.error, result.media_type, result.title and storable(result.title), result.searched_last),
            result.transcription,
            *(document.id, document.content_hash),
            *(job.document_id, job.kind, job.generation, job.claims),
        ),
    )
    recorded = bool(connection.changes())
    if not recorded:
        jobs.free(connection, job)
    return recorded


def _number_siblings(connection: Transaction, results: Sequence[Indexed]) -> None:
    """Documents with a text beside them get the next number of their container: clients ask from the last one they know."""
    for result in results:
        if result.transcription is None and result.document.transcription is None:
            continue
        container_id = result.document.container_id
        counted = "update container set siblings_version = siblings_version + 1 where id = ? returning siblings_version"
        ((version,),) = fetch(connection, counted, (container_id,))
        connection.execute("update document set sibling_version = ? where id = ?", (version, result.document.id))


def _wanted(results: Sequence[Indexed]) -> dict[tuple[int, str, int], list[str]]:
    """Documents by container, kind and priority of the work that follows."""
    wanted: dict[tuple[int, str, int], list[str]] = {}
    for result in results:
        for kind in result.follow_up:
            wanted.setdefault((result.document.container_id, kind, result.job.priority), []).append(result.document.id)
    return wanted
