"""Search by meaning: lexical and vector candidates inside the scope, convex fusion, grouping by file, exact lines.

Fusion is a convex combination of scores normalised by their theoretical minimum and observed maximum ("TM2C2", Bruch, Gai and
Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023). The order comes from the fusion, the height of the
scores from how sure the best signals are in absolute terms, so that a query about nothing in the memory scores low.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval import lines
from memdir.retrieval.embed.port import Embedder, unpack_lines
from memdir.retrieval.paths import PathSignal
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery
from memdir.retrieval.units import units_of
from memdir.retrieval.words import ABBREVIATIONS, Query, prepare, stem, words
from memdir.store.protocols import ChunkStore
from memdir.store.texts import embedded_text
from memdir.store.types import Matrix, Scope, StoredChunk, VectorSnapshot

CANDIDATES: Final = 150
"""Best passages of each signal that enter the fusion."""

WEIGHTS: Final = {"lexical": 0.35, "static": 0.10, "dense": 0.50, "path": 0.05}
WEIGHTS_WITHOUT_DENSE: Final = {"lexical": 0.35, "static": 0.60, "path": 0.05}
CERTAINTY_LOOK: Final = 12
"""Best passages whose words are counted to tell how sure the answer is."""
NEXT_IN_FILE: Final = 0.85
"""Each further passage of the same file counts this much less, so that other files are seen too."""

THRESHOLD: Final = 0.30
"""Scores below are not shown unless asked for; measured on the example memory, see tests/retrieval."""

STATIC_LINE_SHARE: Final = 0.3
"""Of the static cosine beside the dense one when lines of a passage are compared."""

_DENSE_RANGE: Final = (0.12, 0.52)
"""Cosines of MiniLM between which certainty goes from 0 to 1: unrelated passages stay below .15, paraphrases reach .5."""
_STATIC_RANGE: Final = (0.18, 0.62)

Rows = npt.NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class _Candidate:
    stored: StoredChunk
    lexical: float = 0.0
    static: float = 0.0
    dense: float | None = None
    path: float = 0.0
    coverage: float = 0.0
    certainty: float = 0.0
    score: float = 0.0

    @property
    def order(self) -> tuple[float, str, int]:
        return (-self.score, self.stored.path or self.stored.document_id, self.stored.chunk.start_byte)


class Searcher:
    """Stateless but for caches; any thread may call `search`."""

    def __init__(self, chunks: ChunkStore, static: Embedder, dense: Embedder | None) -> None:
        """`dense` None: lexical and static only. A passage without a dense vector yet is judged by its static one."""
        self._chunks = chunks
        self._static = static
        self._dense = dense
        self._paths = PathSignal()

    def search(self, query: SearchQuery) -> SearchOutcome:
        """At most `query.limit` hits, best first. An empty query or scope finds nothing."""
        timer = _Timer()
        prepared = prepare(query.text)
        if not prepared.terms:
            return SearchOutcome(hits=(), total=0, stages_ms=timer.stages_ms)
        static_query = self._static.embed_query(prepared.text)
        dense_query = self._dense.embed_query(prepared.text) if self._dense is not None else None
        timer.lap("embed")
        lexical = dict(self._chunks.lexical(query.scope, prepared.match, CANDIDATES)) if prepared.match else {}
        timer.lap("lexical")
        static = self._chunks.vectors(query.scope.container_id, model=self._static.name)
        dense = None
        if self._dense is not None:
            dense = self._chunks.vectors(query.scope.container_id, model=self._dense.name)
        static_scores = _cosines(static, static_query, query.scope)
        dense_scores = _cosines(dense, dense_query, query.scope) if dense is not None and dense_query is not None else {}
        path_scores = self._paths.scores(static, prepared, query.scope)
        timer.lap("vectors")
        wanted = _union(lexical, _top(static_scores), _top(dense_scores), path_scores)
        stored = self._chunks.chunks(wanted)
        timer.lap("fetch")
        candidates = [
            _Candidate(
                stored=passage,
                lexical=lexical.get(chunk_id, 0.0),
                static=static_scores.get(chunk_id, 0.0),
                dense=dense_scores.get(chunk_id),
                path=path_scores.get(chunk_id, 0.0),
            )
            for chunk_id, passage in stored.items()
            if _inside(passage, query.scope)
        ]
        ranked = _ranked(candidates, prepared, use_dense=bool(dense_scores))
        timer.lap("fuse")
        threshold = THRESHOLD if query.threshold is None else query.threshold
        passing = [candidate for candidate in ranked if candidate.score >= threshold]
        shown = passing[: query.limit]
        packed: dict[int, bytes] = {}
        if self._dense is not None and query.lines:
            packed = self._chunks.line_vectors([candidate.stored.id for candidate in shown], model=self._dense.name)
        vectors = _QueryVectors(static=static_query, dense=dense_query)
        hits = [self._hit(candidate, prepared, vectors, packed.get(candidate.stored.id), query) for candidate in shown]
        timer.lap("lines")
        return SearchOutcome(hits=hits, total=len(passing), stages_ms=timer.stages_ms)

    def _hit(
        self, candidate: _Candidate, prepared: Query, vectors: _QueryVectors, packed: bytes | None, query: SearchQuery
    ) -> Hit:
        chunk = candidate.stored.chunk
        start, end = 0, len(chunk.text)
        units = units_of(chunk.text) if query.lines else []
        if len(units) > 1:
            texts = [chunk.text[unit.start : unit.end] for unit in units]
            cosines = self._static.embed_passages(texts) @ vectors.static
            if packed and vectors.dense is not None:
                states = unpack_lines(packed, dim=len(vectors.dense))
                if len(states) == len(units):
                    cosines = STATIC_LINE_SHARE * cosines + states @ vectors.dense
            first, last = lines.choose(chunk.text, units, prepared, cosines)
            start, end = units[first].start, units[last].end
        elif units:
            start, end = units[0].start, units[0].end
        place = lines.extent(chunk, start, end)
        signals = None
        if query.explain:
            signals = {
                "lexical": round(candidate.lexical, 4),
                "static": round(candidate.static, 4),
                "path": round(candidate.path, 4),
                "coverage": round(candidate.coverage, 4),
            }
            if candidate.dense is not None:
                signals["dense"] = round(candidate.dense, 4)
        return Hit(
            stored=candidate.stored,
            start_line=place.start_line,
            end_line=place.end_line,
            start_byte=place.start_byte,
            end_byte=place.end_byte,
            text=place.text,
            score=round(candidate.score, 4),
            title=chunk.context.split(" › ", 1)[0] or None,
            signals=signals,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _QueryVectors:
    static: Matrix
    dense: Matrix | None


class _Timer:
    def __init__(self) -> None:
        self.stages_ms: dict[str, float] = {}
        self._last = time.perf_counter()

    def lap(self, stage: str) -> None:
        now = time.perf_counter()
        self.stages_ms[stage] = round((now - self._last) * 1000, 3)
        self._last = now


def _inside(passage: StoredChunk, scope: Scope) -> bool:
    """A document may have moved between two reads: what is shown is inside the scope now."""
    if scope.folder == "/" and not scope.exact:
        return True
    path = passage.path or ""
    return path == scope.folder if scope.exact else path.startswith(scope.folder.rstrip("/") + "/")


def _cosines(snapshot: VectorSnapshot | None, query: Matrix | None, scope: Scope) -> dict[int, float]:
    """Cosine of every passage in scope, by chunk id."""
    if snapshot is None or query is None or not len(snapshot.ids):
        return {}
    rows = snapshot.rows_in(scope)
    if rows is None:
        ids, scores = snapshot.ids, snapshot.matrix @ query
    elif not len(rows):
        return {}
    else:
        ids, scores = snapshot.ids[rows], snapshot.matrix[rows] @ query
    alive = ids >= 0
    return dict(zip(ids[alive].tolist(), scores[alive].tolist(), strict=True))


def _top(scores: dict[int, float]) -> list[int]:
    """Ids of the best CANDIDATES, ties by id."""
    if len(scores) <= CANDIDATES:
        return list(scores)
    ids = np.fromiter(scores.keys(), dtype=np.int64, count=len(scores))
    values = np.fromiter(scores.values(), dtype=np.float64, count=len(scores))
    order = np.lexsort((ids, -values))[:CANDIDATES]
    top: list[int] = ids[order].tolist()
    return top


def _union(lexical: dict[int, float], *others: Sequence[int] | dict[int, float]) -> list[int]:
    union = dict.fromkeys(lexical)
    for ids in others:
        union.update(dict.fromkeys(ids))
    return list(union)


def _ramp(value: float, bounds: tuple[float, float]) -> float:
    return min(1.0, max(0.0, (value - bounds[0]) / (bounds[1] - bounds[0])))


def _ranked(candidates: list[_Candidate], query: Query, *, use_dense: bool) -> list[_Candidate]:
    """Fused, weighed by certainty, further passages of a file lowered; best first."""
    if not candidates:
        return []
    _borrow_dense(candidates, use_dense=use_dense)
    top_lexical = max(candidate.lexical for candidate in candidates)
    top_static = max(1e-6, *(candidate.static for candidate in candidates))
    top_dense = max(1e-6, *(candidate.dense or 0.0 for candidate in candidates))
    weights = WEIGHTS if use_dense else WEIGHTS_WITHOUT_DENSE
    for candidate in candidates:
        candidate.certainty = _semantic_certainty(candidate, use_dense=use_dense)
        candidate.lexical = candidate.lexical / top_lexical if top_lexical > 0 else 0.0
        candidate.static = max(0.0, candidate.static) / top_static
        fused = weights["lexical"] * candidate.lexical + weights["static"] * candidate.static + weights["path"] * candidate.path
        if use_dense:
            candidate.dense = max(0.0, candidate.dense or 0.0) / top_dense
            fused += weights["dense"] * candidate.dense
        candidate.score = fused
    ranked = sorted(candidates, key=lambda candidate: candidate.order)
    best = ranked[0].score
    certainty = 0.0
    for candidate in ranked[:CERTAINTY_LOOK]:
        candidate.coverage = _coverage(candidate, query)
        certainty = max(certainty, _certainty(candidate))
    seen: dict[str, int] = {}
    for candidate in ranked:
        times = seen.get(candidate.stored.document_id, 0)
        seen[candidate.stored.document_id] = times + 1
        candidate.score = candidate.score / best * certainty * NEXT_IN_FILE**times if best > 0 else 0.0
    return sorted(ranked, key=lambda candidate: candidate.order)


def _borrow_dense(candidates: list[_Candidate], *, use_dense: bool) -> None:
    """A passage whose dense vector is still being made gets its static cosine, moved to the dense scale.

    The line through both ranges is used: _STATIC_RANGE is mapped to _DENSE_RANGE.
    """
    if not use_dense:
        return
    low, high = _STATIC_RANGE
    dense_low, dense_high = _DENSE_RANGE
    for candidate in candidates:
        if candidate.dense is None:
            candidate.dense = dense_low + (candidate.static - low) / (high - low) * (dense_high - dense_low)


def _coverage(candidate: _Candidate, query: Query) -> float:
    """Share of the query's terms that the passage holds, in any form."""
    have = {stem(word) for word in words(embedded_text(candidate.stored.chunk))}
    found = 0
    for term in query.terms:
        others = [term, *(other for other in ABBREVIATIONS.get(term, ()) if " " not in other)]
        found += any(stem(other) in have for other in others)
    return found / len(query.terms)


def _semantic_certainty(candidate: _Candidate, *, use_dense: bool) -> float:
    return _ramp(candidate.dense or 0.0, _DENSE_RANGE) if use_dense else _ramp(candidate.static, _STATIC_RANGE)


def _certainty(candidate: _Candidate) -> float:
    """How sure the signals are in absolute terms: a close vector, or most of the query's words, or some of both."""
    lexical = candidate.coverage**2
    semantic = candidate.certainty
    return min(1.0, max(semantic, lexical, 0.9 * candidate.path) + 0.25 * min(semantic, lexical))
