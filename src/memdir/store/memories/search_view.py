"""Memories for those who search them: what each says, whether it holds, and its vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, Transaction, fetch, first, marks_for, run_many
from memdir.store.passages.reading import IN_MAX
from memdir.store.types import Matrix

VECTOR_DTYPE: Final = np.dtype("<f2")


Standing = tuple[int, int | None]
"""Of a memory that was not superseded: 1 when it was forgotten, and when it will be (ms)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToEmbed:
    """A memory that has no vectors yet."""

    id: str
    container_id: int
    text: str


class MemorySearchView:
    """The memory and memory_vector tables, read for searching."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def version(self, container_id: int) -> int:
        """Grows with every change of the container's memories."""
        row = self._db.one("select profile_version from container where id = ?", (container_id,))
        return -1 if row is None else int(row[0])

    def standing(self, container_id: int) -> dict[str, Standing]:
        """All memories of a container that were not superseded, by id."""
        rows = self._db.all(
            "select id, is_forgotten, forget_after_ms from memory where container_id = ? and is_latest = 1 order by id",
            (container_id,),
        )
        return {row[0]: (row[1], row[2]) for row in rows}

    def texts(self, memory_ids: Sequence[str]) -> dict[str, str]:
        """What memories say."""
        return dict(self._many("select id, text from memory where id in ({})", (), memory_ids))

    def own_metadata(self, container_id: int) -> list[tuple[str, str, str | None]]:
        """Id, metadata (JSON) and the document that says it first, of every memory of a container that was not superseded."""
        rows = self._db.all(
            "select m.id, m.metadata, (select x.document_id from memory_source x where x.memory_id = m.id "
            "order by x.stands desc, x.id limit 1) from memory m where m.container_id = ? and m.is_latest = 1",
            (container_id,),
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def vectors(self, memory_ids: Sequence[str], *, model: str) -> dict[str, bytes]:
        """The vectors (float16, little endian) of those memories that have one."""
        found = self._many(
            "select memory_id, vector from memory_vector where model_id = (select id from vector_model where name = ?) "
            "and memory_id in ({})",
            (model,),
            memory_ids,
        )
        return {memory_id: bytes(vector) for memory_id, vector in found}

    def said_at(self, container_id: int, first_path: str, end_path: str) -> frozenset[str]:
        """Memories that documents say whose path is at least `first_path` and less than `end_path`."""
        rows = self._db.all(
            "select s.memory_id from document d join memory_source s on s.document_id = d.id "
            "where d.container_id = ? and d.path >= ? and d.path < ?",
            (container_id, first_path, end_path),
        )
        return frozenset(row[0] for row in rows)

    @acting_as(SYSTEM)
    def to_embed(self, limit: int, *, before: str | None = None) -> list[ToEmbed]:
        """Memories without vectors, the newest first; those that come after the one with the id `before` in that order."""
        behind, bindings = ("", ()) if before is None else ("and id < ? ", (before,))
        rows = self._db.all(
            f"select id, container_id, text from memory where is_embedded = 0 {behind}order by id desc limit ?",  # noqa: S608
            (*bindings, limit),
        )
        return [ToEmbed(id=row[0], container_id=row[1], text=row[2]) for row in rows]

    @acting_as(SYSTEM)
    def add_vectors(self, memories: Sequence[ToEmbed], by_model: Mapping[str, Matrix]) -> None:
        """Vectors of some memories by each model; memories that are gone meanwhile are passed over."""
        ids = [memory.id for memory in memories]
        with self._db.write() as transaction:
            alive = {row[0] for row in fetch(transaction, f"select id from memory where id in ({marks_for(ids)})", ids)}  # noqa: S608
            for name, vectors in by_model.items():
                model_id = _model_id(transaction, name)
                run_many(
                    transaction,
                    "insert into memory_vector (model_id, memory_id, container_id, vector) values (?, ?, ?, ?) "
                    "on conflict (model_id, memory_id) do nothing",
                    [
                        (model_id, memory.id, memory.container_id, vectors[row].astype(VECTOR_DTYPE).tobytes())
                        for row, memory in enumerate(memories)
                        if memory.id in alive
                    ],
                )
            transaction.execute(f"update memory set is_embedded = 1 where id in ({marks_for(ids)})", ids)  # noqa: S608

    @acting_as(SYSTEM)
    def ask_again(self, *, model: str) -> int:
        """Memories without a vector of `model` are embedded again. Returns how many."""
        with self._db.write() as transaction:
            transaction.execute(
                "update memory set is_embedded = 0 where is_embedded = 1 and not exists (select 1 from memory_vector v "
                "where v.memory_id = memory.id and v.model_id = (select id from vector_model where name = ?))",
                (model,),
            )
            return transaction.changes()

    def _many(self, sql: str, bindings: tuple[object, ...], ids: Sequence[str]) -> Iterator[tuple[str, Any]]:
        for begin in range(0, len(ids), IN_MAX):
            some = ids[begin : begin + IN_MAX]
            for row in self._db.all(sql.format(marks_for(some)), (*bindings, *some)):
                yield row[0], row[1]


def _model_id(transaction: Transaction, name: str) -> int:
    transaction.execute("insert into vector_model (name) values (?) on conflict (name) do nothing", (name,))
    row = first(transaction, "select id from vector_model where name = ?", (name,))
    assert row is not None
    return int(row[0])
