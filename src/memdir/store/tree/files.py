"""Changing a container's tree: put, move, delete. One call is one transaction: rows, blobs, history, jobs, counters.

Folders are implicit: `/a/b.md` needs no entry `/a`. What stands at a path is a row, or a folder because something stands
below it. Preconditions are judged inside the transaction. See `schema/0001_schema.sql` for the tables.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memdir.core.clock import Clock
from memdir.core.errors import MemdirError, NotFoundError
from memdir.store.accounts.audit import Recording, insert_events, unwritten
from memdir.store.acting import narrowed_to
from memdir.store.contents.blobs import BlobStore
from memdir.store.database import Database, Transaction, fetch, repeated
from memdir.store.jobs import queue as jobs
from memdir.store.paths import is_memory_source
from memdir.store.tree.idempotency import IdempotencyStore
from memdir.store.tree.metadata_conditions import record
from memdir.store.tree.operations import Operation, Outcome, Require, check_required
from memdir.store.tree.step import Step
from memdir.store.tree.view import TreeView
from memdir.store.types import Container

Derive = Callable[[Transaction, Sequence[Outcome | MemdirError]], None]
"""Writes what is derived from operations, in their transaction and given their results."""


class FileTree:
    """The one place where the tree changes."""

    def __init__(self, db: Database, clock: Clock, blobs: BlobStore, notify: Callable[[int], None]) -> None:
        """`notify` gets the container's id after every commit that changed something."""
        self._db = db
        self._clock = clock
        self._blobs = blobs
        self._notify = notify
        self._idempotency = IdempotencyStore()

    def apply(self, container: Container, operation: Operation) -> Outcome:
        """One operation in a transaction of its own. Raises what `apply_all` returns."""
        result = self.apply_all(container, [operation])[0]
        if isinstance(result, MemdirError):
            raise result
        return result

    def apply_all(
        self,
        container: Container,
        operations: Sequence[Operation],
        *,
        together: bool = False,
        derive: Derive | None = None,
    ) -> list[Outcome | MemdirError]:
        """The operations in order, each for itself: one that is refused changes nothing and stops none of the others. All
        that succeed are committed together. An unexpected error, and with `together` any refusal, rolls everything back and
        is raised. `derive` gets the results in the same transaction, for records that are to be seen with the files."""
        entry = unwritten()
        try:
            with narrowed_to(container.org_id):
                step, results = repeated(
                    self._db,
                    lambda connection: self._carried_out(connection, container, operations, entry, derive, together=together),
                )
        except _RefusedError as refused:
            return [refused.error]
        if entry is not None and step.changed:
            entry.done = True
        self._blobs.tidy(step.orphans)
        if step.changed:
            self._notify(container.id)
        return results

    def _carried_out(
        self,
        connection: Transaction,
        container: Container,
        operations: Sequence[Operation],
        entry: Recording | None,
        derive: Derive | None,
        *,
        together: bool,
    ) -> tuple[Step, list[Outcome | MemdirError]]:
        """Inside the transaction. The container's row is locked first: preconditions are judged on a tree that nobody else
        changes, and numbers are taken in the order of the commits."""
        fetch(connection, f"select 1 from container where id = ?{self._db.row_lock}", (container.id,))  # noqa: S608
        step = Step(connection, container, self._clock.now_ns() // 1_000_000, self._blobs, self._idempotency)
        results: list[Outcome | MemdirError] = []
        if len(operations) == 1 and not together and derive is None:  # the transaction itself is all that has to be undone
            try:
                results.append(step.run(operations[0]))
            except MemdirError as error:
                raise _RefusedError(error) from error
            _write_entry(connection, entry, step, results)
            return step, results
        for operation in operations:
            try:
                with _savepoint(connection):
                    results.append(step.run(operation))
            except MemdirError as error:
                if together:
                    raise
                results.append(error)
        if derive is not None:
            derive(connection, results)
        _write_entry(connection, entry, step, results)
        return step, results

    def set_metadata(
        self, container: Container, document_id: str, metadata: dict[str, Any], *, require: Require | None = None
    ) -> None:
        """Replace a document's metadata; its bytes, revision and history stay. Its time always grows: revision and time
        together name one version."""
        now_ms = self._clock.now_ns() // 1_000_000
        with self._db.write() as connection:
            fetch(connection, f"select 1 from container where id = ?{self._db.row_lock}", (container.id,))  # noqa: S608
            if require is not None:
                check_required(require, TreeView(connection, container.id).by_id(document_id))
            connection.execute(
                "update document set metadata = ?, "
                "updated_at_ms = case when updated_at_ms < ? then ? else updated_at_ms + 1 end where id = ?",
                (json.dumps(metadata, ensure_ascii=False), now_ms, now_ms, document_id),
            )
            if not connection.changes():
                raise NotFoundError("the document is gone")
            record(connection, document_id=document_id, container_id=container.id, metadata=metadata)

    def reread_memories(self, container: Container, before: tuple[str, ...]) -> int:
        """The memory paths changed from `before` to those of `container`: ask for the documents concerned. Returns how many."""
        now_ms = self._clock.now_ns() // 1_000_000
        count = 0
        with self._db.write() as connection:
            rows = fetch(
                connection,
                "select id, path, task_type from document where container_id = ? and kind = 'file' "
                "and status in ('embedding', 'indexing', 'done')",
                (container.id,),
            )
            for document_id, path, task_type in rows:
                if is_memory_source(path, task_type, before) != is_memory_source(path, task_type, container.memory_paths):
                    jobs.enqueue(
                        connection,
                        document_id=document_id,
                        container_id=container.id,
                        kind="memory",
                        priority=jobs.BULK,
                        now_ms=now_ms,
                    )
                    count += 1
        self._notify(container.id)
        return count

    def delete_container(self, container: Container) -> None:
        """The container with all that is in it, versions included; its tag can begin a new life."""
        with narrowed_to(container.org_id), self._db.write() as connection:
            fetch(connection, f"select 1 from container where id = ?{self._db.row_lock}", (container.id,))  # noqa: S608
            rows = fetch(
                connection,
                "select content_hash from document where container_id = ? and kind <> 'dir' "
                "union all select content_hash from document_version where container_id = ?",
                (container.id, container.id),
            )
            orphans = self._blobs.release(connection, [row[0] for row in rows])
            connection.execute("delete from container where id = ?", (container.id,))
        self._blobs.tidy(orphans)
        self._notify(container.id)


class _RefusedError(Exception):
    """The only operation of a transaction was refused: nothing is committed, and its error is its result."""

    def __init__(self, error: MemdirError) -> None:
        super().__init__(error)
        self.error = error


def _write_entry(
    connection: Transaction, entry: Recording | None, step: Step, results: Sequence[Outcome | MemdirError]
) -> None:
    """The call's row of the audit log, in the transaction of its first change."""
    if entry is not None and step.changed:
        created = any(isinstance(result, Outcome) and result.created for result in results)
        insert_events(connection, [entry.make(created)])


@contextmanager
def _savepoint(connection: Transaction) -> Iterator[None]:
    connection.execute("savepoint operation")
    try:
        yield
    except BaseException:
        connection.execute("rollback to operation")
        connection.execute("release operation")
        raise
    connection.execute("release operation")
