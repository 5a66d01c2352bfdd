"""Memories: facts, their versions, and where each was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from memdir.core.clock import Clock, SystemClock
from memdir.core.ids import new_id
from memdir.store.database import Database, Guard, Row, Transaction, first
from memdir.store.errors import SupersededError
from memdir.store.protocols import MemoryChange
from memdir.store.types import Document, Memory, MemoryCandidate

_SELECT: Final = (
    "select m.id, m.container_id, s.document_id, s.revision, m.root_id, m.parent_id, m.relation, m.version, m.is_latest, "
    "m.is_forgotten, m.kind, m.subject, m.text, m.confidence, s.start_line, s.end_line, s.start_byte, s.end_byte, "
    "m.created_at_ms, m.updated_at_ms from memory m join memory_source s on s.id = ("
    "select x.id from memory_source x where x.memory_id = m.id order by x.stands desc, x.id limit 1) "
)
_STRONGER: Final = 0.02
"""What a further source adds to a fact's confidence, up to 0.99."""


class MemoryStore:
    """The memory and memory_source tables."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or SystemClock()

    def latest(self, container_id: int, *, limit: int = 1000) -> Sequence[Memory]:
        """Memories that hold now, most important first (static before dynamic, newer first)."""
        rows = self._db.all(
            _SELECT + "where m.container_id = ? and m.is_latest = 1 and m.is_forgotten = 0 "
            "order by m.kind desc, m.updated_at_ms desc, m.id limit ?",
            (container_id, limit),
        )
        return [_memory(row) for row in rows]

    def of_document(self, document_id: str) -> Sequence[Memory]:
        """The latest memories drawn from a document."""
        return [memory for memory in self.standing(document_id) if memory.is_latest]

    def standing(self, document_id: str) -> Sequence[Memory]:
        """Every memory that the document said when it was last read, superseded ones included: the `own` of `reconcile`."""
        rows = self._db.all(
            _SELECT.replace("x.memory_id = m.id", "x.memory_id = m.id and x.document_id = :document and x.stands = 1")
            + "order by s.start_byte, m.id",
            {"document": document_id},
        )
        return [_memory(row) for row in rows]

    def history(self, memory_id: str) -> Sequence[Memory]:
        """All versions of a fact, oldest first."""
        rows = self._db.all(
            f"{_SELECT} where m.root_id = (select r.root_id from memory r where r.id = ?) order by m.version, m.id",  # noqa: S608
            (memory_id,),
        )
        return [_memory(row) for row in rows]

    def get(self, memory_id: str) -> Memory | None:
        """One memory by id."""
        row = self._db.one(_SELECT + "where m.id = ?", (memory_id,))
        return None if row is None else _memory(row)

    def forget_document(self, document: Document, *, guard: Guard | None = None) -> bool:
        """Take back what was drawn from a document that left the memory paths. Returns whether anything changed.
        SupersededError when `guard` says no."""
        with self._db.write() as connection:
            _lock(connection, document.container_id, None, guard)
            connection.execute("delete from memory_source where document_id = ?", (document.id,))
            return bool(connection.changes())

    def apply(
        self,
        document: Document,
        changes: Sequence[MemoryChange],
        *,
        version: int | None = None,
        guard: Guard | None = None,
    ) -> bool:
        """Apply what `memory.reconcile` decided; and grow the container's profile version when
        anything changed. Returns whether anything did; does nothing when the document has other content by now.

        A fact that only moved within its document gets its new span without counting as a change. `version` is the container's
        profile version before the memories were read for the decision: SupersededError when it is another now (the same fact
        would be added twice), and when `guard` says no.
        """
        now_ms = self._clock.now_ns() // 1_000_000
        with self._db.write() as connection:
            _lock(connection, document.container_id, version, guard)
            row = first(connection, "select content_hash, container_id from document where id = ?", (document.id,))
            if row is None or row[0] != document.content_hash:
                return False
            changed = False
            for change in changes:
                changed |= _APPLY[change.action](connection, document, change, now_ms)
            if changed:
                connection.execute(
                    "update container set profile_version = profile_version + 1 where id = ?", (document.container_id,)
                )
        return changed


def _lock(connection: Transaction, container_id: int, version: int | None, guard: Guard | None) -> None:
    """One writer of memories in a container at a time."""
    connection.execute(
        "update container set profile_version = profile_version "
        "where id = ? and profile_version = coalesce(?, profile_version)",
        (container_id, version),
    )
    if not connection.changes():
        raise SupersededError("the memories of the container changed meanwhile")
    if guard is not None and not guard(connection):
        raise SupersededError


def _add(connection: Transaction, document: Document, change: MemoryChange, now_ms: int) -> bool:
    candidate = _candidate_of(change)
    memory_id = new_id()
    _insert(connection, document, candidate, now_ms, memory_id=memory_id, root_id=memory_id, version=1)
    return True


def _supersede(connection: Transaction, document: Document, change: MemoryChange, now_ms: int) -> bool:
    """The earlier one stays, no longer the latest; in this document it does not stand any more."""
    candidate = _candidate_of(change)
    row = first(connection, "select id, root_id, version from memory where id = ?", (change.memory_id,))
    if row is None:
        return _add(connection, document, change, now_ms)
    connection.execute("update memory set is_latest = 0, updated_at_ms = ? where id = ?", (now_ms, row[0]))
    connection.execute("update memory_source set stands = 0 where memory_id = ? and document_id = ?", (row[0], document.id))
    _insert(
        connection,
        document,
        candidate,
        now_ms,
        memory_id=new_id(),
        root_id=row[1],
        version=row[2] + 1,
        parent_id=row[0],
        relation=change.relation or "updates",
    )
    return True


def _remove(connection: Transaction, document: Document, change: MemoryChange, now_ms: int) -> bool:
    """This document no longer says it. Triggers delete the memory when nobody else does."""
    del now_ms
    connection.execute("delete from memory_source where memory_id = ? and document_id = ?", (change.memory_id, document.id))
    return bool(connection.changes())


def _strengthen(connection: Transaction, document: Document, change: MemoryChange, now_ms: int) -> bool:
    """Said again: at a new place in the same document, or by a further document."""
    candidate = _candidate_of(change)
    source = first(
        connection,
        "select id, stands from memory_source where memory_id = ? and document_id = ?",
        (change.memory_id, document.id),
    )
    span = (candidate.start_byte, candidate.end_byte, candidate.start_line, candidate.end_line)
    if source is not None:
        connection.execute(
            "update memory_source set revision = ?, stands = 1, start_byte = ?, end_byte = ?, start_line = ?, end_line = ? "
            "where id = ?",
            (document.revision, *span, source[0]),
        )
        connection.execute(
            "update memory set kind = ?, updated_at_ms = ? where id = ? and kind <> ?",
            (candidate.kind, now_ms, change.memory_id, candidate.kind),
        )
        return bool(connection.changes())
    known = first(connection, "select is_latest from memory where id = ?", (change.memory_id,))
    if known is None:
        return _add(connection, document, change, now_ms)
    _insert_source(connection, document, candidate, str(change.memory_id))
    connection.execute(
        "update memory set confidence = case when confidence + :more > 0.99 or :given + :more > 0.99 then 0.99 "
        "when confidence > :given then confidence + :more else :given + :more end, updated_at_ms = :now where id = :id",
        {"given": candidate.confidence, "more": _STRONGER, "now": now_ms, "id": change.memory_id},
    )
    return True


_APPLY: Final[dict[str, Callable[[Transaction, Document, MemoryChange, int], bool]]] = {
    "add": _add,
    "supersede": _supersede,
    "remove": _remove,
    "strengthen": _strengthen,
}


def _candidate_of(change: MemoryChange) -> MemoryCandidate:
    if change.candidate is None:
        raise ValueError(f"a memory change '{change.action}' needs a candidate")
    return change.candidate


def _insert(
    connection: Transaction,
    document: Document,
    candidate: MemoryCandidate,
    now_ms: int,
    *,
    memory_id: str,
    root_id: str,
    version: int,
    parent_id: str | None = None,
    relation: str | None = None,
) -> None:
    connection.execute(
        "insert into memory (id, container_id, root_id, parent_id, relation, version, kind, subject, text, confidence, "
        "created_at_ms, updated_at_ms) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            memory_id,
            document.container_id,
            root_id,
            parent_id,
            relation,
            version,
            candidate.kind,
            candidate.subject,
            candidate.text,
            candidate.confidence,
            now_ms,
            now_ms,
        ),
    )
    _insert_source(connection, document, candidate, memory_id)


def _insert_source(connection: Transaction, document: Document, candidate: MemoryCandidate, memory_id: str) -> None:
    connection.execute(
        "insert into memory_source (memory_id, document_id, revision, confidence, start_byte, end_byte, start_line, end_line) "
        "values (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            memory_id,
            document.id,
            document.revision,
            candidate.confidence,
            candidate.start_byte,
            candidate.end_byte,
            candidate.start_line,
            candidate.end_line,
        ),
    )


def _memory(row: Row) -> Memory:
    return Memory(
        id=row[0],
        container_id=row[1],
        document_id=row[2],
        revision=row[3],
        root_id=row[4],
        parent_id=row[5],
        relation=row[6],
        version=row[7],
        is_latest=bool(row[8]),
        is_forgotten=bool(row[9]),
        candidate=MemoryCandidate(
            kind=row[10],
            subject=row[11],
            text=row[12],
            confidence=row[13],
            start_line=row[14],
            end_line=row[15],
            start_byte=row[16],
            end_byte=row[17],
        ),
        created_at_ms=row[18],
        updated_at_ms=row[19],
    )
