"""Passages in PostgreSQL: rows, words and vectors, all searched in the database. Nothing of them is held in the process."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from memdir.store.database import Database, Guard, Transaction, fetch, first, repeated
from memdir.store.passages.entity_links import EntityLinks, tied
from memdir.store.passages.reading import PassageReader, place_condition
from memdir.store.postgres.entity_links import PostgresEntityLinks
from memdir.store.postgres.nearest import counted, nearest
from memdir.store.postgres.rows import chosen_condition, kept_text, shown_text, vector_text
from memdir.store.postgres.words import counted_terms, lexical
from memdir.store.protocols import Cut
from memdir.store.text.passage_text import text_hash
from memdir.store.text.words import path_shares, stem
from memdir.store.types import Chunk, Document, Matrix, Nearest, Scope

_ROWS_MAX: Final = 200
"""Passages written with one statement."""
_SAME_TEXT_MAX: Final = 100
"""Passages with the same text of which one is looked for that has its vector."""
_NAMED_DOCUMENTS_MAX: Final = 2_000
"""Files with a word of the query in their path that are compared for how many they have."""


class PostgresChunkStore(PassageReader):
    """`store.protocols.ChunkStore` over the tables of schema/0001_schema.sql."""

    def __init__(self, db: Database) -> None:
        super().__init__(db)
        self.entity_links: EntityLinks = PostgresEntityLinks(db)

    def replace_chunks(
        self, document: Document, chunks: Sequence[Chunk], *, model: str, vectors: Matrix, guard: Guard | None = None
    ) -> Sequence[int]:
        """Put `chunks` in place of the document's earlier ones.

        A passage whose embedded text did not change keeps its id, its words and all its vectors; only its position
        is written anew. A new passage takes over vectors that any model already made of the same text in the same
        organisation. Returns the ids in order, () when the document is gone or has other content by now, or `guard` says
        no. Two that come at once with the same document wait for each other.
        """
        if len(vectors) != len(chunks):
            raise ValueError(f"{len(chunks)} chunks but {len(vectors)} vectors")
        model_id = self._model_id(model)
        mentioned = tied(chunks)

        def replace(transaction: Transaction) -> Sequence[int]:
            container_id = _locked_if_current(transaction, document)
            if container_id is None or (guard is not None and not guard(transaction)):
                return ()
            ids = _replace(transaction, document, container_id, chunks, model_id, vectors)
            _insert_ties(transaction, ids, mentioned)
            return ids

        return repeated(self._db, replace)

    def replace_all(self, cuts: Sequence[Cut], *, model: str) -> list[Sequence[int]]:
        """One transaction each: no two that lock several documents wait for each other in a ring."""
        return [
            self.replace_chunks(cut.document, cut.chunks, model=model, vectors=cut.vectors, guard=cut.guard) for cut in cuts
        ]

    def add_vectors(
        self, chunk_ids: Sequence[int], *, model: str, vectors: Matrix, lines: Sequence[bytes] | None = None
    ) -> int:
        """Vectors of a further model, with those of the lines if the model makes them; chunks that are gone meanwhile are
        passed over."""
        if len(vectors) != len(chunk_ids) or (lines is not None and len(lines) != len(chunk_ids)):
            raise ValueError(f"{len(chunk_ids)} chunks but {len(vectors)} vectors")
        model_id = self._model_id(model)

        def add(transaction: Transaction) -> int:
            # Locked in the order of ids, as `_replace` deletes them: none goes away under our hands, no two wait in a ring.
            rows = fetch(
                transaction, "select id from chunk where id = any(?) order by id for key share", (_integers(chunk_ids),)
            )
            alive = {int(row[0]) for row in rows}
            places = [place for place, chunk_id in enumerate(chunk_ids) if int(chunk_id) in alive]
            return _insert_vectors(
                transaction,
                model_id,
                [int(chunk_ids[place]) for place in places],
                vectors[places],
                None if lines is None else [lines[place] for place in places],
            )

        return repeated(self._db, add)

    def vectors_by_text(self, text_hashes: Sequence[bytes], *, model: str) -> dict[bytes, bytes]:
        """Vectors (float32, little endian) already computed for the same embedded text."""
        rows = self._db.all(
            "select k.hash, (select cast(v.vector as real[]) from (select id from chunk where text_hash = k.hash limit ?) c "
            "join chunk_vector v on v.chunk_id = c.id and v.model_id = (select id from vector_model where name = ?) limit 1) "
            "from unnest(cast(? as bytea[])) k (hash)",
            (_SAME_TEXT_MAX, model, list(text_hashes)),
        )
        return {bytes(digest): np.array(vector, dtype="<f4").tobytes() for digest, vector in rows if vector is not None}

    def lexical(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Chunk ids and BM25 (higher is better) for any of `phrases`, best first, ties by id."""
        return lexical(self._db, scope, phrases, limit)

    def nearest(self, scope: Scope, query: Matrix, *, model: str, limit: int) -> Nearest:
        """The passages in scope that are closest to `query`: all of a small scope are compared, of a large one those that
        lie near in the graph."""
        return nearest(self._db, scope, query, model_id=self._known_model(model) or 0, limit=limit)

    def counted(self, scope: Scope, *, model: str) -> int | None:
        """How many passages in scope have a vector of `model`, None for more than COUNTED_MAX."""
        return counted(self._db, scope, model_id=self._known_model(model) or 0)

    def cosines(self, container_id: int, chunk_ids: Sequence[int], query: Matrix, *, model: str) -> Matrix:
        """The cosine of each chunk, NaN for one without a vector of `model`."""
        rows = self._db.all(
            "select chunk_id, -(vector <#> cast(? as halfvec)) from chunk_vector "
            "where model_id = ? and container_id = ? and chunk_id = any(?)",
            (vector_text(query), self._known_model(model) or 0, container_id, _integers(chunk_ids)),
        )
        found = {int(chunk_id): float(cosine) for chunk_id, cosine in rows}
        return np.array([found.get(int(chunk_id), np.nan) for chunk_id in chunk_ids], dtype=np.float32)

    def named(self, scope: Scope, words: Collection[str], *, model: str, limit: int) -> list[tuple[int, float]]:
        """The first passages of files whose path holds any of `words`. The index finds the files, with a stem of its own; what
        each counts is told from the path as in every store."""
        del model  # what has passages has vectors of it
        inside, bindings = _documents_inside(scope)
        rows = self._db.all(
            "select f.document_id, f.path from (select d.id as document_id, d.path, ("  # noqa: S608
            "select count(*) from unnest(w.words) word where word = any(k.keys)) as held "
            "from (select array_agg(word_key(?, word)) as keys from unnest(cast(? as text[])) word) k "
            "join document_words w on w.words && k.keys join document d on d.id = w.document_id "
            f"where d.container_id = ? and {inside}) f order by f.held desc, f.path limit ?",
            (scope.container_id, list(words), scope.container_id, *bindings, _NAMED_DOCUMENTS_MAX),
        )
        stems = {stem(word) for word in words}
        sums = {
            document_id: (-sum(share for word, share in path_shares(path) if word in stems), path) for document_id, path in rows
        }
        best = sorted((total, path, document_id) for document_id, (total, path) in sums.items() if total < 0)[:limit]
        passages = self._db.all(
            "select c.document_id, c.id from chunk c where c.document_id = any(?) and c.container_id = ? "
            "and c.ordinal < ? order by c.ordinal",
            ([document_id for _, _, document_id in best], scope.container_id, limit),
        )
        of_document: dict[str, list[int]] = {}
        for document_id, chunk_id in passages:
            of_document.setdefault(document_id, []).append(int(chunk_id))
        found = [(chunk_id, -total) for total, _, document_id in best for chunk_id in of_document.get(document_id, ())]
        return found[:limit]

    def _text(self, kept: str) -> str:
        return shown_text(kept)

    def _model_id(self, name: str) -> int:
        """The number of a model, made when it is new, in a transaction of its own: nobody waits long for it."""
        known = self._known_model(name)
        if known is None:
            with self._db.write() as transaction:
                transaction.execute("insert into vector_model (name) values (?) on conflict (name) do nothing", (name,))
            known = self._known_model(name)
            assert known is not None
        return known


def _documents_inside(scope: Scope) -> tuple[str, tuple[object, ...]]:
    """`scope_condition` for documents `d` of a container."""
    _, (_, *bindings) = place_condition(scope)
    place = "d.path = ?" if scope.exact else "d.path >= ? and d.path < ?" if bindings else "true"
    chosen, ids = chosen_condition(scope, "d.id")
    return f"{place} and {chosen}", (*bindings, *ids)


def _locked_if_current(transaction: Transaction, document: Document) -> int | None:
    """The container of a document that still has the content, kept as it is to the end of the transaction."""
    row = first(
        transaction,
        "select revision, content_hash, container_id from document where id = ? for no key update",
        (document.id,),
    )
    if row is None or (row[0] != document.revision and row[1] != document.content_hash):
        return None
    return int(row[2])


def _replace(
    transaction: Transaction,
    document: Document,
    container_id: int,
    chunks: Sequence[Chunk],
    model_id: int,
    vectors: Matrix,
) -> Sequence[int]:
    kept: dict[bytes, list[int]] = {}
    for digest, chunk_id in fetch(
        transaction, "select text_hash, id from chunk where document_id = ? order by ordinal", (document.id,)
    ):
        kept.setdefault(bytes(digest), []).append(int(chunk_id))
    hashes = [text_hash(chunk) for chunk in chunks]
    ids = {place: kept[digest].pop(0) for place, digest in enumerate(hashes) if kept.get(digest)}
    _reposition(transaction, document.revision, chunks, ids)
    _insert_words(transaction, container_id, _without_words(transaction, {ids[place]: chunks[place] for place in ids}))
    new = [place for place in range(len(chunks)) if place not in ids]
    for start in range(0, len(new), _ROWS_MAX):
        part = new[start : start + _ROWS_MAX]
        ids.update(_insert(transaction, document, container_id, chunks, hashes, part))
    made = [ids[place] for place in new]
    _borrow_vectors(transaction, made, except_model=model_id)
    _insert_vectors(transaction, model_id, [ids[place] for place in range(len(chunks))], vectors, None)
    gone = sorted(chunk_id for rest in kept.values() for chunk_id in rest)
    if gone:
        fetch(transaction, "select id from chunk where id = any(?) order by id for update", (gone,))
        transaction.execute("delete from chunk where id = any(?)", (gone,))
    return [ids[place] for place in range(len(chunks))]


def _reposition(transaction: Transaction, revision: int, chunks: Sequence[Chunk], ids: dict[int, int]) -> None:
    """Say where the passages that stayed the same stand now."""
    if ids:
        transaction.execute(
            "update chunk c set revision = ?, ordinal = n.ordinal, start_byte = n.start_byte, end_byte = n.end_byte, "
            "start_line = n.start_line, end_line = n.end_line from unnest(cast(? as bigint[]), cast(? as integer[]), "
            "cast(? as bigint[]), cast(? as bigint[]), cast(? as integer[]), cast(? as integer[])) "
            "as n (id, ordinal, start_byte, end_byte, start_line, end_line) where c.id = n.id",
            (revision, list(ids.values()), *_places(chunks, list(ids))),
        )


def _places(chunks: Sequence[Chunk], numbers: Sequence[int]) -> tuple[list[int], ...]:
    """Ordinal, bytes and lines of some of the passages, as columns."""
    return (
        list(numbers),
        [chunks[number].start_byte for number in numbers],
        [chunks[number].end_byte for number in numbers],
        [chunks[number].start_line for number in numbers],
        [chunks[number].end_line for number in numbers],
    )


def _insert(
    transaction: Transaction,
    document: Document,
    container_id: int,
    chunks: Sequence[Chunk],
    hashes: Sequence[bytes],
    numbers: Sequence[int],
) -> dict[int, int]:
    """New passages with their words; returns their ids by number."""
    rows = fetch(
        transaction,
        "insert into chunk (document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, end_line, text, "
        "context, text_hash) select cast(? as text), cast(? as bigint), cast(? as bigint), n.* from unnest("
        "cast(? as integer[]), cast(? as bigint[]), cast(? as bigint[]), cast(? as integer[]), cast(? as integer[]), "
        "cast(? as text[]), cast(? as text[]), cast(? as bytea[])) n returning ordinal, id",
        (
            document.id,
            container_id,
            document.revision,
            *_places(chunks, numbers),
            [kept_text(chunks[number].text) for number in numbers],
            [kept_text(chunks[number].context) for number in numbers],
            [hashes[number] for number in numbers],
        ),
    )
    ids = {int(ordinal): int(chunk_id) for ordinal, chunk_id in rows}
    _insert_words(transaction, container_id, {ids[number]: chunks[number] for number in numbers})
    return ids


def _without_words(transaction: Transaction, chunks: dict[int, Chunk]) -> dict[int, Chunk]:
    """Those whose words were thrown away, since they are taken apart in another way now (migration 10)."""
    has = fetch(transaction, "select chunk_id from chunk_words where chunk_id = any(?)", (list(chunks),))
    known = {int(row[0]) for row in has}
    return {chunk_id: chunk for chunk_id, chunk in chunks.items() if chunk_id not in known}


def _insert_words(transaction: Transaction, container_id: int, chunks: dict[int, Chunk]) -> None:
    if not chunks:
        return
    lengths: list[int] = []
    owners: list[int] = []
    words: list[str] = []
    often: list[int] = []
    for chunk_id, chunk in chunks.items():
        length, counts = counted_terms(chunk)
        lengths.append(length)
        owners += [chunk_id] * len(counts)
        words += counts
        often += counts.values()
    transaction.execute(
        "insert into chunk_words (chunk_id, length, words, counts) select o.id, o.length, coalesce(k.words, '{}'), "
        "coalesce(k.counts, '{}') from unnest(cast(? as bigint[]), cast(? as integer[])) as o (id, length) left join ("
        "select s.id, array_agg(s.key) as words, array_agg(cast(least(s.often, 32767) as smallint)) as counts from ("
        "select n.id, term_key(?, n.word) as key, sum(n.often) as often "
        "from unnest(cast(? as bigint[]), cast(? as text[]), cast(? as integer[])) as n (id, word, often) group by 1, 2) s "
        "group by s.id) k on k.id = o.id",
        (list(chunks), lengths, container_id, owners, words, often),
    )


def _insert_ties(transaction: Transaction, chunk_ids: Sequence[int], mentioned: Sequence[Sequence[int]]) -> None:
    """What each passage mentions; what is known of one that stayed is kept."""
    pairs = [(chunk_id, number) for chunk_id, numbers in zip(chunk_ids, mentioned, strict=True) for number in numbers]
    if pairs:
        transaction.execute(
            "insert into chunk_tie (org_id, container_id, number, chunk_id) select c.org_id, c.container_id, n.number, c.id "
            "from unnest(cast(? as bigint[]), cast(? as bigint[])) as n (id, number) join chunk c on c.id = n.id "
            "on conflict do nothing",
            ([chunk_id for chunk_id, _ in pairs], [number for _, number in pairs]),
        )


def _borrow_vectors(transaction: Transaction, chunk_ids: Sequence[int], *, except_model: int) -> None:
    """Vectors that were made of the same text elsewhere in the organisation."""
    if chunk_ids:
        transaction.execute(
            "insert into chunk_vector (model_id, chunk_id, org_id, container_id, vector, lines) "
            "select distinct on (v.model_id, n.id) v.model_id, n.id, n.org_id, n.container_id, v.vector, v.lines "
            "from chunk n join chunk o on o.text_hash = n.text_hash and o.org_id = n.org_id and o.id <> n.id "
            "join chunk_vector v on v.chunk_id = o.id where n.id = any(?) and v.model_id <> ? "
            "order by v.model_id, n.id on conflict do nothing",
            (list(chunk_ids), except_model),
        )


def _insert_vectors(
    transaction: Transaction, model_id: int, chunk_ids: Sequence[int], vectors: Matrix, lines: Sequence[bytes] | None
) -> int:
    """Vectors of chunks that have none of the model yet; returns how many those were."""
    stored = 0
    for start in range(0, len(chunk_ids), _ROWS_MAX):
        part = slice(start, start + _ROWS_MAX)
        ids = list(chunk_ids[part])
        transaction.execute(
            "insert into chunk_vector (model_id, chunk_id, org_id, container_id, vector, lines) "
            "select cast(? as integer), c.id, c.org_id, c.container_id, cast(n.vector as halfvec), n.lines "
            "from unnest(cast(? as bigint[]), cast(? as text[]), cast(? as bytea[])) as n (id, vector, lines) "
            "join chunk c on c.id = n.id order by c.id on conflict do nothing",
            (
                model_id,
                ids,
                [vector_text(vector) for vector in vectors[part]],
                [None] * len(ids) if lines is None else list(lines[part]),
            ),
        )
        stored += transaction.changes()
    return stored


def _integers(values: Sequence[int]) -> list[int]:
    return [int(value) for value in values]
