"""Memories of a container, searched as passages are: the same words, models, fusion and certainty, so that scores compare.

They are one line each, so what is held of them is small: their words as lists of rows, their vectors as float16, and the signs
of these as bits. Up to EXACT_MAX memories every vector is compared; of more, those whose signs agree most with the query's are
(Charikar, "Similarity Estimation Techniques from Rounding Algorithms", 2002). The store is the truth: a container is read at
its first search and then kept up to date by its profile version.
"""

from __future__ import annotations

import threading
from array import array
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

import numpy as np
import numpy.typing as npt

from memdir.retrieval.embed.port import Embedder
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import SearchQuery
from memdir.store.memories.search_view import VECTOR_DTYPE, MemorySearchView, Standing
from memdir.store.passages.vectors import NOTHING_NEAR, dots
from memdir.store.protocols import ChunkStore
from memdir.store.text.words import stem, words
from memdir.store.types import Chunk, Matrix, Nearest, Origin, Scope, StoredChunk

EXACT_MAX: Final = 4096
SHORTLIST: Final = 1024
"""Memories whose vectors are compared when there are more than EXACT_MAX."""
STATIC_NOW_MAX: Final = 256
"""New memories that get a vector during a search, before the worker comes to them."""
CONTAINERS_MAX: Final = 32
BYTES_MAX: Final = 512 << 20
"""Of all containers held; the least used go first."""
FIRST_ID: Final = 1 << 60
"""Numbers of memories begin here: they never are those of passages."""
_K1: Final = 1.2
_B: Final = 0.75
_IDF_MIN: Final = 1e-6

Rows = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


@dataclass(slots=True)
class _Vectors:
    """Of one model: rows of `matrix` that `there` says, and their signs, 64 to a word, word by word."""

    matrix: npt.NDArray[np.float16]
    there: Mask
    signs: npt.NDArray[np.uint64]

    @classmethod
    def empty(cls, rows: int, dim: int) -> _Vectors:
        signs = np.zeros((-(-dim // 64), rows), dtype=np.uint64)
        return cls(np.zeros((rows, dim), dtype=VECTOR_DTYPE), np.zeros(rows, dtype=np.bool_), signs)

    def put(self, row: int, vector: npt.NDArray[Any]) -> None:
        self.matrix[row] = vector
        self.there[row] = True
        self.signs[:, row] = _signs(vector)

    def grown(self, rows: int) -> _Vectors:
        made = _Vectors.empty(rows, self.matrix.shape[1])
        count = len(self.there)
        made.matrix[:count], made.there[:count], made.signs[:, :count] = self.matrix, self.there, self.signs
        return made


def _signs(vector: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    bits = np.zeros(-(-len(vector) // 64) * 64, dtype=np.uint8)
    bits[: len(vector)] = vector > 0
    return np.packbits(bits).view(np.uint64)


@dataclass(slots=True)
class _Held:
    """One container. Rows are only added; one that does not hold any more is dead until the container is read anew."""

    version: int
    ids: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    row_of: dict[str, int] = field(default_factory=dict)
    postings: dict[str, array[int]] = field(default_factory=dict)
    lengths: array[int] = field(default_factory=lambda: array("i"))
    alive: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    forgotten: Mask = field(default_factory=lambda: np.zeros(0, dtype=np.bool_))
    until_ms: Rows = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    vectors: dict[str, _Vectors] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def size_bytes(self) -> int:
        return 400 * len(self.ids) + sum(one.matrix.nbytes + one.signs.nbytes for one in self.vectors.values())

    def add(self, memory_id: str, text: str) -> None:
        row = len(self.ids)
        self.ids.append(memory_id)
        self.texts.append(text)
        self.row_of[memory_id] = row
        found = {stem(word) for word in words(text)}
        self.lengths.append(len(found))
        for term in found:
            self.postings.setdefault(term, array("i")).append(row)

    def mark(self, standing: Mapping[str, Standing]) -> None:
        """Which rows hold now."""
        count = len(self.ids)
        self.alive = np.zeros(count, dtype=np.bool_)
        self.forgotten = np.zeros(count, dtype=np.bool_)
        self.until_ms = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
        rows = [self.row_of[memory_id] for memory_id in standing]
        self.alive[rows] = True
        self.forgotten[rows] = [forgotten for forgotten, _ in standing.values()]
        for row, (_, until_ms) in zip(rows, standing.values(), strict=True):
            if until_ms is not None:
                self.until_ms[row] = until_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundMemory:
    """A memory's id and how sure it is that it is about the query, 0 to 1, as for a passage."""

    id: str
    score: float


class MemoryIndex:
    """Memories of the containers searched last. Any thread may call."""

    def __init__(self, store: MemorySearchView, chunks: ChunkStore) -> None:
        self._store = store
        self._chunks = chunks
        self._lock = threading.Lock()
        self._held: OrderedDict[int, _Held] = OrderedDict()

    def search(
        self,
        container_id: int,
        query: SearchQuery,
        searcher: Searcher,
        *,
        now_ms: int,
        only: Collection[str] | None = None,
        forgotten: bool = False,
    ) -> list[FoundMemory]:
        """The memories that fit `query` (whose scope is of no concern), best first: those of `only`, and without `forgotten`
        none that was forgotten, or is by `now_ms`."""
        held = self._got(container_id)
        with held.lock:
            self._refresh(container_id, held, searcher)
            allowed = held.alive.copy()
            if not forgotten:
                allowed &= ~held.forgotten & (held.until_ms > now_ms)
            if only is not None:
                inside = np.zeros_like(allowed)
                inside[[row for memory_id in only if (row := held.row_of.get(memory_id)) is not None]] = True
                allowed &= inside
            if not allowed.any():
                return []
            # Under the lock to the end: another search would bring what is held up to date below this one. Without hops: those
            # are of passages, whose numbers say nothing here.
            view = _View(held, allowed, self._chunks)
            outcome = searcher.over(cast(ChunkStore, view)).search(replace(query, hops=False))
        return [FoundMemory(id=hit.document_id, score=hit.score) for hit in outcome.hits]

    def search_among(self, texts: Mapping[str, str], query: SearchQuery, searcher: Searcher) -> list[FoundMemory]:
        """Those of some memories that fit `query`, best first; they may be superseded, and are read for this search alone."""
        held = _Held(-1)
        for memory_id, text in texts.items():
            held.add(memory_id, text)
        held.mark(dict.fromkeys(texts, (0, None)))
        if not texts:
            return []
        for model in searcher.models:
            self._fill(held, model, make_missing=True)
        view = _View(held, held.alive, self._chunks)
        outcome = searcher.over(cast(ChunkStore, view)).search(replace(query, hops=False))
        return [FoundMemory(id=hit.document_id, score=hit.score) for hit in outcome.hits]

    def _got(self, container_id: int) -> _Held:
        with self._lock:
            held = self._held.setdefault(container_id, _Held(-2))
            self._held.move_to_end(container_id)
            total = sum(one.size_bytes for one in self._held.values())
            while len(self._held) > 1 and (len(self._held) > CONTAINERS_MAX or total > BYTES_MAX):
                _, oldest = self._held.popitem(last=False)
                total -= oldest.size_bytes
            return held

    def _refresh(self, container_id: int, held: _Held, searcher: Searcher) -> None:
        version = self._store.version(container_id)
        if version != held.version:
            standing = self._store.standing(container_id)
            if len(held.ids) > 64 and len(standing) * 4 < len(held.ids) * 3:
                fresh = _Held(version)
                held.ids, held.texts, held.row_of, held.postings = fresh.ids, fresh.texts, fresh.row_of, fresh.postings
                held.lengths, held.vectors = fresh.lengths, fresh.vectors
            new = [memory_id for memory_id in standing if memory_id not in held.row_of]
            texts = self._store.texts(new)
            for memory_id in new:
                if memory_id in texts:
                    held.add(memory_id, texts[memory_id])
            held.mark({memory_id: now for memory_id, now in standing.items() if memory_id in held.row_of})
            held.version = version
        for place, model in enumerate(searcher.models):
            self._fill(held, model, make_missing=place == 0)

    def _fill(self, held: _Held, model: Embedder, *, make_missing: bool) -> None:
        """Vectors that came since; with `make_missing` also for some that have none yet."""
        vectors = held.vectors.get(model.name)
        if vectors is None:
            vectors = _Vectors.empty(len(held.ids), model.dim)
        elif len(vectors.there) < len(held.ids):
            vectors = vectors.grown(len(held.ids))
        held.vectors[model.name] = vectors
        missing = np.flatnonzero(held.alive & ~vectors.there).tolist()
        stored = self._store.vectors([held.ids[row] for row in missing], model=model.name) if missing else {}
        for row in missing:
            blob = stored.get(held.ids[row])
            if blob is not None:
                vectors.put(row, np.frombuffer(blob, dtype=VECTOR_DTYPE))
        if make_missing:
            left = [row for row in missing if not vectors.there[row]][:STATIC_NOW_MAX]
            made = model.embed_passages([held.texts[row] for row in left]) if left else ()
            for row, vector in zip(left, made, strict=True):
                vectors.put(row, vector)


class _View:
    """Some memories of a container as a store of passages, for one search. Reads only."""

    def __init__(self, held: _Held, allowed: Mask, chunks: ChunkStore) -> None:
        self._held = held
        self._allowed = allowed
        self.entity_links = chunks.entity_links

    def lexical(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """BM25 (every word of a memory counts once); of a phrase all words must be there."""
        del scope
        held, count = self._held, len(self._held.ids)
        lengths = np.array(held.lengths, dtype=np.int64)
        size = int(self._allowed.sum())
        mean = max(1.0, float(lengths[self._allowed].mean()))
        scores = np.zeros(count)
        for terms in dict.fromkeys(tuple(stem(word) for word in words(phrase)) for phrase in phrases):
            rows = self._holding(terms)
            matches = len(rows)
            idf = max(_IDF_MIN, float(np.log((size - matches + 0.5) / (matches + 0.5)))) if matches else 0.0
            scores[rows] += idf * (_K1 + 1) / (1 + _K1 * (1 - _B + _B * lengths[rows] / mean))
        found = np.flatnonzero(scores > 0)
        best = found[np.lexsort((found, -scores[found]))][:limit]
        return [(FIRST_ID + int(row), float(scores[row])) for row in best]

    def _holding(self, terms: Iterable[str]) -> Rows:
        """Rows that hold all of some words."""
        rows: Rows | None = None
        for term in terms:
            posted = self._held.postings.get(term)
            own = np.array(() if posted is None else posted, dtype=np.int64)
            rows = own if rows is None else np.intersect1d(rows, own, assume_unique=True)
        if rows is None:
            return np.zeros(0, dtype=np.int64)
        return rows[self._allowed[rows]]

    def nearest(self, scope: Scope, query: Matrix, *, model: str, limit: int) -> Nearest:
        del scope
        vectors = self._held.vectors[model]
        rows = np.flatnonzero(self._allowed & vectors.there)
        if not len(rows):
            return NOTHING_NEAR
        counted = len(rows)
        if len(rows) > EXACT_MAX:
            asked = _signs(query)
            apart = np.zeros(len(self._allowed), dtype=np.uint16)
            for word, own in zip(vectors.signs, asked, strict=True):
                apart += np.bitwise_count(word ^ own)
            rows = rows[np.argsort(apart[rows], kind="stable")[:SHORTLIST]]
        cosines = dots(vectors.matrix[rows].astype(np.float32), query)
        best = np.lexsort((rows, -cosines))[:limit]
        return Nearest(ids=rows[best] + FIRST_ID, cosines=cosines[best], counted=counted)

    def counted(self, scope: Scope, *, model: str) -> int | None:
        del scope
        return int(np.count_nonzero(self._allowed & self._held.vectors[model].there))

    def cosines(self, container_id: int, chunk_ids: Sequence[int], query: Matrix, *, model: str) -> Matrix:
        del container_id
        vectors = self._held.vectors[model]
        rows = np.asarray(chunk_ids, dtype=np.int64) - FIRST_ID
        found = np.full(len(rows), np.nan, dtype=np.float32)
        have = vectors.there[rows] if len(rows) else np.zeros(0, dtype=np.bool_)
        if have.any():
            found[have] = dots(vectors.matrix[rows[have]].astype(np.float32), query)
        return found

    def named(self, *_: object, **__: object) -> list[tuple[int, float]]:
        return []

    def origins(self, *_: object) -> dict[int, Origin]:
        """A memory is prose, wherever it was read."""
        return {}

    def line_vectors(self, *_: object, **__: object) -> dict[int, bytes]:
        return {}

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, StoredChunk]:
        found: dict[int, StoredChunk] = {}
        for chunk_id in chunk_ids:
            row = int(chunk_id) - FIRST_ID
            if 0 <= row < len(self._held.ids):
                text = self._held.texts[row]
                chunk = Chunk(ordinal=0, start_byte=0, end_byte=len(text), start_line=1, end_line=1, text=text, context="")
                found[int(chunk_id)] = StoredChunk(
                    id=int(chunk_id), document_id=self._held.ids[row], path=None, revision=0, updated_at_ms=0, chunk=chunk
                )
        return found

    def document_chunks(self, document_id: str) -> Sequence[StoredChunk]:
        return list(self.chunks([FIRST_ID + self._held.row_of[document_id]]).values())
