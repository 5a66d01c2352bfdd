"""Chunks in SQLite: rows and vectors. Vectors are read and compared one by one; an index does it faster. Words are
searched in an index beside the database."""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Final

import apsw
import numpy as np

from memdir.core.sqlite import Row
from memdir.store.database import Guard, marks_for
from memdir.store.passages.entity_links import EntityLinks, tied
from memdir.store.passages.reading import IN_MAX, PassageReader, place_condition
from memdir.store.passages.vectors import COUNTED_MAX, NOTHING_NEAR, closest, half_dots
from memdir.store.protocols import Cut
from memdir.store.sqlite.database import SqliteDatabase
from memdir.store.sqlite.vectors import EventLog
from memdir.store.text.passage_text import text_hash
from memdir.store.text.words import path_shares, stem
from memdir.store.types import Chunk, Document, Matrix, Nearest, Scope

_BLOCK_ROWS: Final = 1_024
"""Vectors that are read and compared at a time."""


_Vectors = dict[bytes, dict[int, tuple[bytes, bytes | None]]]
"""Vectors and line vectors by the hash of their text and by model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Before:
    """What a transaction finds that replaces the passages of some documents."""

    passages: dict[str, dict[bytes, list[int]]]
    """Ids of a document by the hash of their text, in order; those that stay are taken out."""
    vectors: _Vectors
    """Of any passage with one of the texts, by other models."""


class SqliteChunkStore(PassageReader):
    """`store.protocols.ChunkStore` over the server's database."""

    def __init__(self, db: SqliteDatabase) -> None:
        super().__init__(db)
        self._db: SqliteDatabase = db
        self.entity_links: EntityLinks = EntityLinks(db)
        self._events = EventLog()

    def replace_chunks(
        self, document: Document, chunks: Sequence[Chunk], *, model: str, vectors: Matrix, guard: Guard | None = None
    ) -> Sequence[int]:
        """Put `chunks` in place of the document's earlier ones.

        A passage whose embedded text did not change keeps its id and all its vectors; only its position
        is written anew. A new passage takes over vectors that any model already made of the same text. Returns the ids
        in order, () when the document is gone or has other content by now, or `guard` says no.
        """
        return self.replace_all([Cut(document=document, chunks=chunks, vectors=vectors, guard=guard)], model=model)[0]

    def replace_all(self, cuts: Sequence[Cut], *, model: str) -> list[Sequence[int]]:
        """The same for several documents in one transaction."""
        mentioned = [tied(cut.chunks) for cut in cuts]
        hashes = [[text_hash(chunk) for chunk in cut.chunks] for cut in cuts]
        with self._db.write() as connection:
            model_id = self._model_id(connection, model)
            before = _Before(
                passages=_existing(connection, [cut.document.id for cut in cuts]),
                vectors=self._vectors_of(connection, list(chain.from_iterable(hashes)), except_model=model_id),
            )
            made = [
                _replace(connection, cut, digests, numbers, model_id, before)
                for cut, digests, numbers in zip(cuts, hashes, mentioned, strict=True)
            ]
            self._events.prune(connection)
        return made

    def add_vectors(
        self, chunk_ids: Sequence[int], *, model: str, vectors: Matrix, lines: Sequence[bytes] | None = None
    ) -> int:
        """Vectors of a further model, with those of the lines if the model makes them; chunks that are gone meanwhile are
        passed over."""
        if len(vectors) != len(chunk_ids) or (lines is not None and len(lines) != len(chunk_ids)):
            raise ValueError(f"{len(chunk_ids)} chunks but {len(vectors)} vectors")
        stored = 0
        with self._db.write() as connection:
            model_id = self._model_id(connection, model)
            for row, chunk_id in enumerate(chunk_ids):
                connection.execute(
                    "insert or ignore into chunk_vector select ?, id, ?, ? from chunk where id = ?",
                    (model_id, _pack(vectors[row]), lines[row] if lines is not None else None, chunk_id),
                )
                stored += connection.changes()
            self._events.prune(connection)
        return stored

    def vectors_by_text(self, text_hashes: Sequence[bytes], *, model: str) -> dict[bytes, bytes]:
        """Vectors (float32, little endian) already computed for the same embedded text."""
        model_id = self._known_model(model)
        if model_id is None:
            return {}
        reader = self._db.reader
        found = self._vectors_of(reader, text_hashes, only_model=model_id)
        return {digest: _unpack(by_model[model_id][0]).tobytes() for digest, by_model in found.items()}

    def nearest(self, scope: Scope, query: Matrix, *, model: str, limit: int) -> Nearest:
        """The passages in scope that are closest to `query`: every one is read and compared, some 5 us each."""
        where, bindings = scope_condition(scope)
        ids, cosines = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.float32)
        counted = 0
        with self._db.snapshot() as reader:
            rows = reader.execute(
                "select v.chunk_id, v.vector from chunk c "  # noqa: S608
                f"cross join chunk_vector v on v.model_id = ? and v.chunk_id = c.id {where}",
                (self._known_model(model) or 0, *bindings),
            )
            while block := list(islice(rows, _BLOCK_ROWS)):
                matrix = np.frombuffer(b"".join(row[1] for row in block), dtype="<f2").reshape(len(block), -1)
                found = half_dots(matrix, query)
                counted += len(block)
                own = np.array([row[0] for row in block], dtype=np.int64)
                ids, cosines = closest(np.concatenate((ids, own)), np.concatenate((cosines, found)), limit)
        return Nearest(ids=ids, cosines=cosines, counted=counted) if counted else NOTHING_NEAR

    def counted(self, scope: Scope, *, model: str) -> int | None:
        """How many passages in scope have a vector of `model`, None for more than COUNTED_MAX."""
        where, bindings = scope_condition(scope)
        row = self._db.one(
            "select count(*) from (select 1 from chunk c "  # noqa: S608
            f"cross join chunk_vector v on v.model_id = ? and v.chunk_id = c.id {where} limit ?)",
            (self._known_model(model) or 0, *bindings, COUNTED_MAX + 1),
        )
        return None if row is None or row[0] > COUNTED_MAX else int(row[0])

    def cosines(self, container_id: int, chunk_ids: Sequence[int], query: Matrix, *, model: str) -> Matrix:
        """The cosine of each chunk, NaN for one without a vector of `model`."""
        vectors: dict[int, bytes] = {}
        for first in range(0, len(chunk_ids), IN_MAX):
            part = [int(chunk_id) for chunk_id in chunk_ids[first : first + IN_MAX]]
            rows = self._db.all(
                "select c.id, v.vector from chunk c join chunk_vector v on v.chunk_id = c.id and v.model_id = ? "  # noqa: S608
                f"where c.container_id = ? and c.id in ({marks_for(part)})",
                (self._known_model(model) or 0, container_id, *part),
            )
            vectors.update(rows)
        found = np.full(len(chunk_ids), np.nan, dtype=np.float32)
        have = [place for place, chunk_id in enumerate(chunk_ids) if int(chunk_id) in vectors]
        if have:
            packed = b"".join(vectors[int(chunk_ids[place])] for place in have)
            found[have] = half_dots(np.frombuffer(packed, dtype="<f2").reshape(len(have), -1), query)
        return found

    def named(self, scope: Scope, words: Collection[str], *, model: str, limit: int) -> list[tuple[int, float]]:
        """The first passages of files whose path holds any of `words`: every path in scope is looked at."""
        where, bindings = scope_condition(scope)
        stems = {stem(word) for word in words}
        with self._db.snapshot() as reader:
            # By document and not by container: that would read all passages of the container for each document.
            of_document = where.replace("c.container_id", "+c.container_id")
            paths = reader.execute(
                "select o.path from document o where o.container_id = ? and o.path is not null and "  # noqa: S608
                f"exists (select 1 from chunk c {of_document} and c.document_id = o.id)",
                (scope.container_id, *bindings),
            )
            sums = ((path, sum(share for word, share in path_shares(path) if word in stems)) for (path,) in paths)
            best = heapq.nsmallest(limit, ((-total, path) for path, total in sums if total))
            found: list[tuple[int, float]] = []
            for total, path in best:
                rows = reader.execute(
                    "select c.id from document d join chunk c on c.document_id = d.id "
                    "join chunk_vector v on v.chunk_id = c.id and v.model_id = ? "
                    "where d.container_id = ? and d.path = ? order by c.id limit ?",
                    (self._known_model(model) or 0, scope.container_id, path, limit),
                )
                found += [(row[0], -total) for row in rows]
        return found[:limit]

    def _model_id(self, connection: apsw.Connection, name: str) -> int:
        """The number of a model, made when it is new; remembered only once it is committed (by a later read)."""
        known = self._models.get(name)
        if known is not None:
            return known
        connection.execute("insert or ignore into vector_model (name) values (?)", (name,))
        rows: list[Row] = connection.execute("select id from vector_model where name = ?", (name,)).fetchall()
        return int(rows[0][0])

    def _vectors_of(
        self,
        connection: apsw.Connection,
        hashes: Sequence[bytes],
        *,
        only_model: int | None = None,
        except_model: int | None = None,
    ) -> _Vectors:
        """What is stored for these texts."""
        found: _Vectors = {}
        unique = list(dict.fromkeys(hashes))
        for first in range(0, len(unique), IN_MAX):
            part = unique[first : first + IN_MAX]
            marks = marks_for(part)
            rows = connection.execute(
                "select c.text_hash, v.model_id, v.vector, v.lines from chunk c join chunk_vector v on v.chunk_id = c.id "  # noqa: S608
                f"where c.text_hash in ({marks}) and v.model_id = coalesce(?, v.model_id) and v.model_id is not ?",
                (*part, only_model, except_model),
            )
            for digest, model_id, blob, lines in rows:
                found.setdefault(digest, {}).setdefault(model_id, (blob, lines))
        return found


def scope_condition(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """Join and condition that keep chunks `c` inside `scope`."""
    where, bindings = place_condition(scope)
    if scope.chosen is None:
        return where, bindings
    member = f"{'not in' if scope.chosen.but else 'in'} (select value from json_each(?))"  # noqa: S608
    return f"{where} and c.document_id {member}", (*bindings, json.dumps(sorted(scope.chosen.ids)))


def _is_current(connection: apsw.Connection, document: Document) -> bool:
    """Derived data depends on the bytes alone: a document that only moved is still the same."""
    row = connection.execute("select revision, content_hash from document where id = ?", (document.id,)).fetchone()
    return row is not None and (row[0] == document.revision or row[1] == document.content_hash)


def _replace(
    connection: apsw.Connection,
    cut: Cut,
    hashes: Sequence[bytes],
    mentioned: Sequence[Sequence[int]],
    model_id: int,
    before: _Before,
) -> Sequence[int]:
    document = cut.document
    if not _is_current(connection, document) or (cut.guard is not None and not cut.guard(connection)):
        return ()
    kept = before.passages.get(document.id, {})
    ids: list[int] = []
    for ordinal, (chunk, digest) in enumerate(zip(cut.chunks, hashes, strict=True)):
        same = kept.get(digest)
        if same:
            chunk_id = same.pop(0)
            _reposition(connection, chunk_id, document.revision, ordinal, chunk)
        else:
            chunk_id = _insert(connection, document, ordinal, chunk, digest)
            for other_id, (blob, lines) in before.vectors.get(digest, {}).items():
                connection.execute("insert into chunk_vector values (?, ?, ?, ?)", (other_id, chunk_id, blob, lines))
        connection.execute(
            "insert or ignore into chunk_vector values (?, ?, ?, null)", (model_id, chunk_id, _pack(cut.vectors[ordinal]))
        )
        ids.append(chunk_id)
    connection.executemany(
        "insert or ignore into chunk_tie (container_id, number, chunk_id) select container_id, ?, id from chunk where id = ?",
        [(number, chunk_id) for chunk_id, numbers in zip(ids, mentioned, strict=True) for number in numbers],
    )
    for chunk_id in (left for rest in kept.values() for left in rest):
        connection.execute("delete from chunk where id = ?", (chunk_id,))
    return ids


def _existing(connection: apsw.Connection, document_ids: Sequence[str]) -> dict[str, dict[bytes, list[int]]]:
    """Passages of documents by the hash of their text, in order."""
    kept: dict[str, dict[bytes, list[int]]] = {}
    for first in range(0, len(document_ids), IN_MAX):
        part = document_ids[first : first + IN_MAX]
        rows = connection.execute(
            f"select document_id, text_hash, id from chunk where document_id in ({marks_for(part)}) "  # noqa: S608
            "order by document_id, ordinal",
            part,
        )
        for document_id, digest, chunk_id in rows:
            kept.setdefault(document_id, {}).setdefault(digest, []).append(chunk_id)
    return kept


def _insert(connection: apsw.Connection, document: Document, ordinal: int, chunk: Chunk, digest: bytes) -> int:
    connection.execute(
        "insert into chunk (document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, end_line, "
        "text, context, text_hash) select id, container_id, ?, ?, ?, ?, ?, ?, ?, ?, ? from document where id = ?",
        (
            document.revision,
            ordinal,
            chunk.start_byte,
            chunk.end_byte,
            chunk.start_line,
            chunk.end_line,
            chunk.text,
            chunk.context,
            digest,
            document.id,
        ),
    )
    return connection.last_insert_rowid()


def _reposition(connection: apsw.Connection, chunk_id: int, revision: int, ordinal: int, chunk: Chunk) -> None:
    connection.execute(
        "update chunk set revision = ?, ordinal = ?, start_byte = ?, end_byte = ?, start_line = ?, end_line = ? where id = ?",
        (revision, ordinal, chunk.start_byte, chunk.end_byte, chunk.start_line, chunk.end_line, chunk_id),
    )


def _pack(vector: Matrix) -> bytes:
    return vector.astype("<f2").tobytes()


def _unpack(blob: bytes) -> Matrix:
    return np.frombuffer(blob, dtype="<f2").astype(np.float32)
