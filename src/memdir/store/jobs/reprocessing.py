"""Asking for work again on documents that are there: passages, vectors and memories are made anew from the contents.

What is searched stays until the new is there, passage by passage; the job table keeps what is left over a death.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.core.clock import Clock
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, fetch
from memdir.store.jobs import queue as jobs

DOCUMENTS_MAX: Final = 500
_PAGE: Final = 500
"""Documents in one transaction: others may write in between."""


class Reprocessing:
    """Jobs for documents that nothing is wrong with."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    @acting_as(SYSTEM)
    def ask(self, container_ids: Sequence[int], kind: str, *, transcribed: bool = False) -> int:
        """Ask for `index` or `memory` of every file of some containers, behind everything that is more urgent; `transcribed`:
        of those that have a text, or an error, beside them, and what could not be read is forgotten. Returns how many files
        those are."""
        count = 0
        only = "and transcription is not null " if transcribed else ""
        now_ms = self._clock.now_ns() // 1_000_000
        for container_id in container_ids:
            after = ""
            while True:
                with self._db.write() as connection:
                    rows = fetch(
                        connection,
                        f"select id, content_hash from document where container_id = ? and kind = 'file' {only}"  # noqa: S608
                        "and id > ? order by id limit ?",
                        (container_id, after, _PAGE),
                    )
                    for document_id, content_hash in rows:
                        if transcribed:
                            connection.execute(
                                "delete from extraction where content_hash = ? and error is not null", (content_hash,)
                            )
                        jobs.enqueue(
                            connection, document_id=document_id, container_id=container_id, kind=kind, priority=jobs.BULK,
                            now_ms=now_ms,
                        )  # fmt: skip
                count += len(rows)
                if len(rows) < _PAGE:
                    break
                after = rows[-1][0]
        return count

    @acting_as(SYSTEM)
    def ask_for(self, container_id: int, document_ids: Sequence[str], kind: str) -> None:
        """The same for some of its documents, at most DOCUMENTS_MAX."""
        some = document_ids[:DOCUMENTS_MAX]
        if not some:
            return
        with self._db.write() as connection:
            jobs.enqueue_all(
                connection, some, container_id=container_id, kind=kind, priority=jobs.BULK,
                now_ms=self._clock.now_ns() // 1_000_000,
            )  # fmt: skip

    def fetch_again(self, content_hash: str) -> bool:
        """Ask for the page of an address that was fetched before, for every document that is this address. False when it was
        not: then the document's own job fetches it."""
        with self._db.write() as connection:
            if not fetch(connection, "select 1 from extraction where content_hash = ?", (content_hash,)):
                return False
            connection.execute("update extraction set version = 0 where content_hash = ?", (content_hash,))
            rows = fetch(
                connection,
                "select id, container_id from document where content_hash = ? and kind = 'file' and url is not null limit ?",
                (content_hash, _PAGE),
            )
            for document_id, container_id in rows:
                connection.execute("update document set status = 'queued', error = null where id = ?", (document_id,))
                jobs.enqueue(
                    connection, document_id=document_id, container_id=container_id, kind="index", priority=jobs.INTERACTIVE,
                    now_ms=self._clock.now_ns() // 1_000_000,
                )  # fmt: skip
        return True

    @acting_as(SYSTEM)
    def left(self, container_ids: Sequence[int], kinds: Sequence[str]) -> int:
        """Work of those kinds that waits or runs there."""
        total = 0
        for container_id in container_ids:
            for kind in kinds:
                row = self._db.one(
                    "select count(*) from job where container_id = ? and kind = ? and failed_at_ms is null",
                    (container_id, kind),
                )
                total += 0 if row is None else int(row[0])
        return total
