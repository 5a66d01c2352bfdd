"""What an index of vectors reads of a SQLite store: every vector of a container in the order of paths, and what changed since.

The rows of `vector_event` say what was added, dropped and moved. Whoever is further behind than the log reaches compares
everything with `identities`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import apsw

from memdir.core.sqlite import Row
from memdir.store.database import fetch, first, marks_for
from memdir.store.passages.reading import IN_MAX
from memdir.store.sqlite.database import SqliteDatabase

EVENTS_KEPT: Final = 200_000
"""Events older than this many are dropped: some 10 MB of log."""
_PRUNE_EVERY: Final = 5_000
_LAST: Final = "select seq from sqlite_sequence where name = 'vector_event'"

_IN_ORDER: Final = (
    "from document d cross join chunk c on c.document_id = d.id "
    "cross join chunk_vector v on v.model_id = ? and v.chunk_id = c.id where d.container_id = ? order by d.path"
)
"""`cross join` keeps the order of the tables: paths come from their index, nothing is sorted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorRow:
    """One vector (float16, little endian). `path` is '' for a document without a place."""

    chunk_id: int
    vector: bytes
    path: str
    document_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorEvent:
    """`kind` is `add` (of `model_id`), `drop` or `path` (`document_id` stands elsewhere)."""

    kind: str
    chunk_id: int | None
    model_id: int | None
    document_id: str | None


class VectorReader:
    """Reads of one moment."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def bounds(self) -> tuple[int, int]:
        """The oldest event that is kept (0: none), and the last there ever was."""
        rows: list[Row] = fetch(
            self._connection,
            f"select coalesce(min(id), 0), coalesce(({_LAST}), 0) from vector_event",  # noqa: S608
        )
        return int(rows[0][0]), int(rows[0][1])

    def epoch(self, container_id: int) -> str | None:
        """The container's epoch, another one after a restore; None when it is gone."""
        row = first(self._connection, "select epoch from container where id = ?", (container_id,))
        return None if row is None else str(row[0])

    def models(self, container_id: int) -> list[str]:
        """Models with vectors in the container, in the order they came to the store."""
        rows = fetch(
            self._connection,
            "select m.name from vector_model m where exists (select 1 from chunk c cross join chunk_vector v "
            "on v.model_id = m.id and v.chunk_id = c.id where c.container_id = ?) order by m.id",
            (container_id,),
        )
        return [str(row[0]) for row in rows]

    def model_id(self, name: str) -> int | None:
        """The number of a model, None for one that no vector was stored of."""
        row = first(self._connection, "select id from vector_model where name = ?", (name,))
        return None if row is None else int(row[0])

    def count(self, container_id: int, model_id: int, *, most: int = -1) -> int:
        """Vectors of the model in the container, some 0.6 us each; with `most` no more than that are counted."""
        row = first(
            self._connection,
            "select count(*) from (select 1 from chunk c cross join chunk_vector v on v.model_id = ? and v.chunk_id = c.id "
            "where c.container_id = ? limit ?)",
            (model_id, container_id, most),
        )
        return 0 if row is None else int(row[0])

    def passages(self, container_id: int) -> int:
        """Passages of the container, with and without vectors; a tenth of the time of `count`."""
        row = first(self._connection, "select count(*) from chunk where container_id = ?", (container_id,))
        return 0 if row is None else int(row[0])

    def events(self, container_id: int, after: int) -> Iterator[VectorEvent]:
        """What happened in the container since event `after`, in order."""
        rows = self._connection.execute(
            "select kind, chunk_id, model_id, document_id from vector_event where id > ? and container_id = ? order by id",
            (after, container_id),
        )
        for kind, chunk_id, model_id, document_id in rows:
            yield VectorEvent(kind=kind, chunk_id=chunk_id, model_id=model_id, document_id=document_id)

    def by_path(self, container_id: int, model_id: int) -> Iterator[VectorRow]:
        """Every vector, by the bytes of the path and the place in the document; documents without a path come first."""
        rows = self._connection.execute(
            f"select c.id, v.vector, coalesce(d.path, ''), d.id {_IN_ORDER}",
            (model_id, container_id),
        )
        for row in rows:
            yield _vector_row(row)

    def identities(self, container_id: int, model_id: int) -> Iterator[tuple[int, str, str]]:
        """Chunk, path and document of every vector, in the order of `by_path`."""
        yield from self._connection.execute(
            f"select c.id, coalesce(d.path, ''), d.id {_IN_ORDER}",
            (model_id, container_id),
        )

    def rows(self, chunk_ids: Sequence[int], model_id: int, container_id: int) -> Iterator[VectorRow]:
        """The vectors of those chunks that still exist in the container and have one, in no order."""
        for start in range(0, len(chunk_ids), IN_MAX):
            part = [int(chunk_id) for chunk_id in chunk_ids[start : start + IN_MAX]]
            rows = fetch(
                self._connection,
                "select c.id, v.vector, coalesce(d.path, ''), d.id from chunk c join document d on d.id = c.document_id "  # noqa: S608
                "join chunk_vector v on v.chunk_id = c.id and v.model_id = ? "
                f"where c.container_id = ? and c.id in ({marks_for(part)})",
                (model_id, container_id, *part),
            )
            yield from map(_vector_row, rows)

    def paths(self, document_ids: Sequence[str]) -> dict[str, str]:
        """Where documents stand now, '' for no place; without those that are gone."""
        found: dict[str, str] = {}
        for start in range(0, len(document_ids), IN_MAX):
            part = list(document_ids[start : start + IN_MAX])
            rows = fetch(
                self._connection,
                f"select id, coalesce(path, '') from document where id in ({marks_for(part)})",  # noqa: S608
                part,
            )
            found.update((row[0], row[1]) for row in rows)
        return found


class VectorFeed:
    """The way to a `VectorReader`. Any thread may call; each has its own connection."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    @contextmanager
    def reading(self) -> Iterator[VectorReader]:
        """Everything as of every commit before this call, until the block ends. Blocks do not nest."""
        with self._db.snapshot() as connection:
            yield VectorReader(connection)

    def last(self) -> int:
        """The last event of every commit before this call: a quarter of the time of `reading` and `bounds`."""
        row = self._db.one(_LAST)
        return 0 if row is None else int(row[0])

    def containers(self) -> list[int]:
        """Containers that there are, in order."""
        return [int(row[0]) for row in self._db.all("select id from container order by id")]


class EventLog:
    """Keeps `vector_event` short."""

    def __init__(self) -> None:
        self._pruned_at = 0

    def prune(self, connection: apsw.Connection) -> None:
        """Inside a write transaction: drop old events now and then."""
        row = first(connection, "select coalesce(max(id), 0) from vector_event")
        last = 0 if row is None else int(row[0])
        if last - self._pruned_at >= _PRUNE_EVERY:
            connection.execute("delete from vector_event where id <= ?", (last - EVENTS_KEPT,))
            self._pruned_at = last


def _vector_row(row: Row) -> VectorRow:
    return VectorRow(chunk_id=row[0], vector=row[1], path=row[2], document_id=row[3])
