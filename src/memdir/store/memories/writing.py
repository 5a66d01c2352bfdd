"""Writing facts: the changes that `memory.reconcile` decided, as said by a document or by a call of the API.

Everything here runs inside a transaction that `memories` holds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from memdir.core.ids import new_id
from memdir.store.database import Row, Transaction, first
from memdir.store.protocols import MemoryChange
from memdir.store.text.passage_text import storable
from memdir.store.types import Document, MemoryCandidate

_STRONGER: Final = 0.02
"""What a further source adds to a fact's confidence, up to 0.99."""
_CONFIDENCE_MAX: Final = 0.99
_CHAIN_MAX: Final = 1000
"""Versions that are looked back over for the place of an earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Who says something: a document at a revision, or the API key `caller`."""

    container_id: int
    document_id: str | None = None
    revision: int = 0
    caller: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Of the memories that are added."""
    forget_after_ms: int | None = None
    forget_reason: str | None = None

    @staticmethod
    def of(document: Document) -> Origin:
        return Origin(container_id=document.container_id, document_id=document.id, revision=document.revision)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What a change did: the memory that says it now, and whether anybody would notice."""

    memory_id: str | None
    changed: bool


def write(transaction: Transaction, origin: Origin, change: MemoryChange, now_ms: int) -> Written:
    """Carry out one change."""
    return _ACTIONS[change.action](transaction, origin, change, now_ms)


def _add(transaction: Transaction, origin: Origin, change: MemoryChange, now_ms: int) -> Written:
    memory_id = new_id()
    _insert(transaction, origin, _candidate_of(change), now_ms, memory_id=memory_id, root_id=memory_id, version=1)
    return Written(memory_id=memory_id, changed=True)


def _supersede(transaction: Transaction, origin: Origin, change: MemoryChange, now_ms: int) -> Written:
    """The earlier one stays, no longer the latest; in this document it does not stand any more."""
    row = _superseded(transaction, change.memory_id)
    if row is None:
        return _add(transaction, origin, change, now_ms)
    if origin.document_id is not None:
        transaction.execute(
            "update memory_source set stands = 0 where memory_id = ? and document_id = ?",
            (change.memory_id, origin.document_id),
        )
    memory_id = new_id()
    _insert(
        transaction,
        origin,
        _candidate_of(change),
        now_ms,
        memory_id=memory_id,
        root_id=row[1],
        version=row[2] + 1,
        parent_id=row[0],
        relation=change.relation or "updates",
    )
    transaction.execute(
        "update memory set ended_by = ? where ended_by = ? "
        "and not exists (select 1 from memory_source s where s.memory_id = ? and s.stands = 1)",
        (memory_id, row[0], row[0]),
    )
    _end(transaction, [row[0], *change.also_ended], memory_id, now_ms)
    return Written(memory_id=memory_id, changed=True)


def _end(transaction: Transaction, memory_ids: Iterable[str], by_id: str, now_ms: int) -> None:
    """These hold no more, by what another memory says."""
    for memory_id in memory_ids:
        transaction.execute(
            "update memory set is_latest = 0, ended_by = ?, updated_at_ms = ? where id = ?", (by_id, now_ms, memory_id)
        )


def _precede(transaction: Transaction, origin: Origin, change: MemoryChange, now_ms: int) -> Written:
    """It was so before another fact: a version of that one which holds no more, between those of earlier and later days."""
    later = first(transaction, "select id, root_id, parent_id from memory where id = ?", (change.memory_id,))
    if later is None:
        return _add(transaction, origin, change, now_ms)
    candidate = _candidate_of(change)
    for _ in range(_CHAIN_MAX):
        before = first(
            transaction,
            "select id, root_id, parent_id from memory where id = ? and said_at_ms > ?",
            (later[2], candidate.said_ms or now_ms),
        )
        if before is None:
            break
        later = before
    parent_id = later[2]
    memory_id = new_id()
    row = first(transaction, "select max(version) from memory where root_id = ?", (later[1],))
    assert row is not None
    _insert(
        transaction, origin, candidate, now_ms, memory_id=memory_id, root_id=later[1], version=row[0] + 1,
        parent_id=parent_id, relation=None if parent_id is None else change.relation, ended_by=later[0],
    )  # fmt: skip
    transaction.execute(
        "update memory set parent_id = ?, relation = coalesce(relation, ?), updated_at_ms = ? where id = ?",
        (memory_id, change.relation, now_ms, later[0]),
    )
    transaction.execute("update memory set ended_by = ? where id = ? and ended_by = ?", (memory_id, parent_id, later[0]))
    _end(transaction, change.also_ended, memory_id, now_ms)
    return Written(memory_id=memory_id, changed=True)


def _superseded(transaction: Transaction, memory_id: str | None) -> Row | None:
    """Id, root and version of the fact that goes; of one that a call revised meanwhile, the revision."""
    row = first(transaction, "select id, root_id, version, is_latest from memory where id = ?", (memory_id,))
    if row is None or row[3]:
        return row
    revised = first(
        transaction,
        "select m.id, m.root_id, m.version from memory m where m.root_id = ? and m.is_latest = 1 "
        "and exists (select 1 from memory_source s where s.memory_id = m.id and s.caller is not null) "
        "order by m.version desc limit 1",
        (row[1],),
    )
    return revised or row


def _remove(transaction: Transaction, origin: Origin, change: MemoryChange, now_ms: int) -> Written:
    """This document no longer says it. Triggers delete the memory when nobody else does."""
    del now_ms
    transaction.execute(
        "delete from memory_source where memory_id = ? and document_id = ?", (change.memory_id, origin.document_id)
    )
    return Written(memory_id=None, changed=bool(transaction.changes()))


def _strengthen(transaction: Transaction, origin: Origin, change: MemoryChange, now_ms: int) -> Written:
    """Said again: at a new place in the same document, or by a further one, or by a call."""
    candidate = _candidate_of(change)
    source = first(
        transaction,
        "select id from memory_source where memory_id = ? and (document_id = ? or caller = ?)",
        (change.memory_id, origin.document_id, origin.caller),
    )
    span = (candidate.start_byte, candidate.end_byte, candidate.start_line, candidate.end_line)
    if source is not None:
        transaction.execute(
            "update memory_source set revision = ?, stands = 1, start_byte = ?, end_byte = ?, start_line = ?, end_line = ? "
            "where id = ?",
            (origin.revision, *span, source[0]),
        )
        transaction.execute(
            "update memory set kind = ?, updated_at_ms = ? where id = ? and kind <> ?",
            (candidate.kind, now_ms, change.memory_id, candidate.kind),
        )
        return Written(memory_id=change.memory_id, changed=bool(transaction.changes()))
    known = first(transaction, "select confidence from memory where id = ?", (change.memory_id,))
    if known is None:
        return _add(transaction, origin, change, now_ms)
    _insert_source(transaction, origin, candidate, str(change.memory_id))
    said_ms = now_ms if candidate.said_ms is None else candidate.said_ms
    transaction.execute(
        "update memory set confidence = ?, updated_at_ms = ?, said_at_ms = case when said_at_ms < ? then ? else said_at_ms end "
        "where id = ?",
        (
            min(_CONFIDENCE_MAX, max(known[0], candidate.confidence) + _STRONGER),
            now_ms,
            said_ms,
            said_ms,
            change.memory_id,
        ),
    )
    return Written(memory_id=change.memory_id, changed=True)


_ACTIONS: Final[dict[str, Callable[[Transaction, Origin, MemoryChange, int], Written]]] = {
    "add": _add,
    "supersede": _supersede,
    "precede": _precede,
    "remove": _remove,
    "strengthen": _strengthen,
}


def _candidate_of(change: MemoryChange) -> MemoryCandidate:
    if change.candidate is None:
        raise ValueError(f"a memory change '{change.action}' needs a candidate")
    return change.candidate


def _insert(
    transaction: Transaction,
    origin: Origin,
    candidate: MemoryCandidate,
    now_ms: int,
    *,
    memory_id: str,
    root_id: str,
    version: int,
    parent_id: str | None = None,
    relation: str | None = None,
    ended_by: str | None = None,
) -> None:
    transaction.execute(
        "insert into memory (id, container_id, root_id, parent_id, relation, version, kind, subject, text, confidence, "
        "metadata, forget_after_ms, forget_reason, created_at_ms, updated_at_ms, said_at_ms, valid_from_ms, is_latest, "
        "ended_by) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            memory_id,
            origin.container_id,
            root_id,
            parent_id,
            relation,
            version,
            candidate.kind,
            storable(candidate.subject),
            storable(candidate.text),
            candidate.confidence,
            json.dumps(dict(origin.metadata), ensure_ascii=False),
            origin.forget_after_ms,
            origin.forget_reason and storable(origin.forget_reason),
            now_ms,
            now_ms,
            now_ms if candidate.said_ms is None else candidate.said_ms,
            now_ms if candidate.valid_from_ms is None else candidate.valid_from_ms,
            int(ended_by is None),
            ended_by,
        ),
    )
    _insert_source(transaction, origin, candidate, memory_id)


def _insert_source(transaction: Transaction, origin: Origin, candidate: MemoryCandidate, memory_id: str) -> None:
    transaction.execute(
        "insert into memory_source (memory_id, document_id, caller, revision, confidence, start_byte, end_byte, start_line, "
        "end_line) values (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            memory_id,
            origin.document_id,
            origin.caller,
            origin.revision,
            candidate.confidence,
            candidate.start_byte,
            candidate.end_byte,
            candidate.start_line,
            candidate.end_line,
        ),
    )
