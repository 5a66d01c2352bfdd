"""Search by meaning: lexical and vector candidates inside the scope, convex fusion, grouping by file, exact lines.

Fusion is a convex combination of scores normalised by their theoretical minimum and observed maximum ("TM2C2", Bruch, Gai and
Ingber, "An Analysis of Fusion Functions for Hybrid Retrieval", 2023).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from memdir.retrieval import lines
from memdir.retrieval.candidates import Candidate, in_order
from memdir.retrieval.containing import ContainingSearch
from memdir.retrieval.embed.port import Doubting, Embedder, unpack_lines
from memdir.retrieval.fuse import Rows, Scales, Scores, Signals, Tuning, doubted, fed_back, fuse, raised
from memdir.retrieval.lexical.choice import words_among
from memdir.retrieval.lexical.port import LexicalIndex
from memdir.retrieval.near_duplicates import without_copies
from memdir.retrieval.question_vectors import Question, Questions
from memdir.retrieval.signals.connect import Seed
from memdir.retrieval.signals.hops import Hop, Hops
from memdir.retrieval.signals.split import joined, split
from memdir.retrieval.text_kinds import PRIOR, is_sentence, kind_of
from memdir.retrieval.threshold import threshold_beside
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery, StageTimer
from memdir.retrieval.units import units_of
from memdir.retrieval.vectors import VectorIndex
from memdir.retrieval.words import Query, prepare
from memdir.store.passages.reading import in_place
from memdir.store.passages.vectors import NOTHING_NEAR, dots
from memdir.store.protocols import ChunkStore
from memdir.store.types import Chosen, Matrix, Origin, Scope, StoredChunk

CANDIDATES_MIN: Final = 80
CANDIDATES_PER_HIT: Final = 1.5
"""Best passages of each signal that enter the fusion, for each that is asked for. On Cranfield and CISI 60, 100 and 150 put the
same answers among the first ten (nDCG@10 within .002), and 60 lose some of the first hundred."""

DOMINATING_MIN: Final = 20
"""Candidates of one document from which on it may hide others."""
NAMED_MAX: Final = 50
"""Passages that enter the fusion for their path alone."""
FETCHED_MIN: Final = 40
"""Passages that are read for ranking by file."""
FETCHED_BY_WORDS: Final = 8
"""The best by words are read as well, though many may be nearer: a near passage may be about nothing of the question."""
SURE_MIN: Final = 0.02
"""Certainty of a passage's vector from which on it is looked whether the transformer could read the passage."""

WEAK_MIN: Final = 0.1
"""Score that the nearest passages need to be shown as weak hits: below it they have nothing of the question."""

WIDER: Final = 3
"""As many more candidates by vectors for a question in a sentence: prose may stand behind code that is nearer."""

STATIC_LINE_SHARE: Final = 0.3
"""Of the static cosine beside the dense one when lines of a passage are compared."""


class Searcher:
    """Stateless but for caches; any thread may call `search`."""

    def __init__(
        self,
        chunks: ChunkStore,
        static: Embedder,
        dense: Embedder | None,
        *,
        tuning: Tuning | None = None,
        words: LexicalIndex | None = None,
        vectors: VectorIndex | None = None,
        questions: Questions | None = None,
    ) -> None:
        """`dense` None: lexical and static only. A passage without a dense vector yet is judged by its static one. `words`
        None: the database's own index of words. `vectors` None: the chunk store itself compares them. `questions`: of another
        searcher with the same models."""
        self._chunks = chunks
        self._words = words or words_among((), chunks)
        self._vectors: VectorIndex = chunks if vectors is None else vectors
        self._static = static
        self._dense = dense
        self._doubting = dense if isinstance(dense, Doubting) else None
        self._tuning = tuning or Tuning()
        self._scales = Scales(static=static.scale, dense=(dense or static).scale)
        self._hops = Hops(chunks, self._vectors, static)
        self._questions = questions or Questions(static, dense)
        self._containing = ContainingSearch(
            chunks=chunks, words=self._words, vectors=self._vectors, static=static, dense=dense, questions=self._questions
        )

    @property
    def words(self) -> LexicalIndex:
        """The index of words it asks."""
        return self._words

    @property
    def models(self) -> tuple[Embedder, ...]:
        """The static one, then the transformer, if there is one."""
        return (self._static,) if self._dense is None else (self._static, self._dense)

    def over(self, chunks: ChunkStore) -> Searcher:
        """The same search over other passages."""
        return Searcher(chunks, self._static, self._dense, tuning=self._tuning, questions=self._questions)

    def search(self, query: SearchQuery) -> SearchOutcome:
        """At most `query.limit` hits, best first. An empty query or scope finds nothing. What asks for two things is searched
        for each and as a whole. What has to contain something is searched by statements: see `ContainingSearch`."""
        if query.containing:
            return self._containing.search(query)
        parts = split(query.text) if query.hops else ()
        if not parts:
            return self._search(query)
        found = [self._search(replace(query, text=part)) for part in parts]
        return joined(parts, found, self._search(query), query.limit)

    def _search(self, query: SearchQuery) -> SearchOutcome:
        timer = StageTimer()
        prepared = prepare(query.text)
        if not prepared.terms:
            return SearchOutcome(hits=(), total=0, stages_ms=timer.stages_ms)
        question = self._questions.asked(prepared.text)
        most = max(CANDIDATES_MIN, int(CANDIDATES_PER_HIT * query.limit))
        lexical = dict(self._words.search(query.scope, prepared.phrases, most))
        named = self._vectors.named(query.scope, prepared.words, model=self._static.name, limit=NAMED_MAX)
        path = {chunk_id: min(1.0, total / len(prepared.terms)) for chunk_id, total in named}
        static: dict[int, float] = {}
        self._compare(query.scope, (*lexical, *path), question.static, self._static, static)
        timer.lap("lexical")
        question.judged()
        timer.lap("embed")
        signals, counted = self._signals(
            query.scope, prepared.phrases, lexical, path, static, question, most=most, sentence=is_sentence(query.text)
        )
        timer.lap("vectors")
        best = self._best_rows(signals, query)
        packed = self._packed_lines(signals, best)
        best_lines, gists = _from_lines(signals.ids[best], packed, question.dense)
        signals = fed_back(raised(signals, best, best_lines, self._tuning), gists, self._tuning)
        signals = doubted(signals, self._doubts(question, gists, signals.semantic), self._tuning)
        candidates = self._fetched(signals, query)
        timer.lap("fetch")
        ranked = in_order(candidates, prepared, tuning=self._tuning, doubt=question.doubt)
        timer.lap("rank")
        closest = ranked[0].score if ranked else 0.0
        sure = threshold_beside(closest, counted)
        threshold = sure if query.threshold is None else query.threshold
        if query.hops:
            sure = max(threshold, sure)
            seeds = [Seed(stored=c.stored, score=c.score, covered=c.covered) for c in ranked if c.score >= sure]
            least = ranked[query.limit - 1].score if len(ranked) >= query.limit > 0 else 0.0
            hops = self._hops.reached(query.scope, prepared, seeds, least=max(threshold, least))
            ranked = _joined(ranked, hops, query.scope)
            timer.lap("hops")
        ranked = without_copies(ranked, query.limit) if query.lines else ranked
        passing = [candidate for candidate in ranked if candidate.score >= threshold]
        shown = passing[: query.limit] or [candidate for candidate in ranked if candidate.score >= WEAK_MIN][: query.nearest]
        hits = self._hits(shown, prepared, question, packed, query)
        if not passing:
            hits = [replace(hit, weak=True) for hit in hits]
        timer.lap("lines")
        return SearchOutcome(hits=hits, total=len(passing), stages_ms=timer.stages_ms, closest=closest)

    def _signals(
        self,
        scope: Scope,
        phrases: Sequence[str],
        lexical: dict[int, float],
        path: dict[int, float],
        static: dict[int, float],
        question: Question,
        *,
        most: int,
        sentence: bool,
    ) -> tuple[Signals, int]:
        """The best passages by words, by path and (`most` of them) by vectors, with all signals of each (`static`: cosines that
        are known); how many passages are in scope. Where most are of a few documents, the best of all others come in, too: a
        log of years does not hide the note that says it."""
        near = unseen = NOTHING_NEAR
        origins: dict[int, Origin] = {}
        mixed = sentence
        if self._dense is not None and question.dense is not None:
            wide = WIDER * most if sentence else most
            near = self._vectors.nearest(scope, question.dense, model=self._dense.name, limit=wide)
            mixed = sentence and any(self._priors(near.ids[:most].tolist(), origins, by_kind=True))
            if not mixed:
                near = replace(near, ids=near.ids[:most], cosines=near.cosines[:most])
        counted = near.counted
        if not counted or counted != self._vectors.counted(scope, model=self._static.name):
            # Some passages are still to be seen by the transformer: their static vectors find them meanwhile.
            unseen = self._vectors.nearest(scope, question.static, model=self._static.name, limit=most)
            counted = counted or unseen.counted
        wanted = list(dict.fromkeys((*lexical, *near.ids.tolist(), *path, *unseen.ids.tolist())))
        dense = dict(zip(near.ids.tolist(), near.cosines.tolist(), strict=True))
        dominating = frozenset() if scope.exact else self._dominating(wanted, origins)
        if dominating:
            others = replace(scope, chosen=_without(scope.chosen, dominating))
            lexical |= dict(self._words.search(others, phrases, most))
            if dense and self._dense is not None and question.dense is not None:
                near = self._vectors.nearest(others, question.dense, model=self._dense.name, limit=most)
                dense.update(zip(near.ids.tolist(), near.cosines.tolist(), strict=True))
            else:
                near = self._vectors.nearest(others, question.static, model=self._static.name, limit=most)
            wanted = list(dict.fromkeys((*wanted, *lexical, *near.ids.tolist())))
        self._compare(scope, wanted, question.static, self._static, static)
        if self._dense is not None and question.dense is not None:
            self._compare(scope, wanted, question.dense, self._dense, dense)
        signals = fuse(
            ids=np.array(wanted, dtype=np.int64),
            lexical=np.array([lexical.get(chunk_id, 0.0) for chunk_id in wanted]),
            static=np.array([static[chunk_id] for chunk_id in wanted]),
            dense=np.array([dense[chunk_id] for chunk_id in wanted]) if dense else None,
            path=np.array([path.get(chunk_id, 0.0) for chunk_id in wanted]),
            prior=self._priors(wanted, origins, by_kind=mixed),
            scales=self._scales,
            tuning=self._tuning,
        )
        return signals, counted

    def _dominating(self, ids: Sequence[int], known: dict[int, Origin]) -> frozenset[str]:
        """The documents with DOMINATING_MIN of some passages each, where these are more than half. `known` as in `_priors`."""
        self._read_origins(ids, known)
        counts = Counter(known[chunk_id].document_id for chunk_id in ids if chunk_id in known)
        most = {document: count for document, count in counts.items() if count >= DOMINATING_MIN}
        return frozenset(most) if 2 * sum(most.values()) > len(ids) else frozenset()

    def _read_origins(self, ids: Sequence[int], known: dict[int, Origin]) -> None:
        known.update(self._chunks.origins([chunk_id for chunk_id in ids if chunk_id not in known]))

    def _priors(self, ids: Sequence[int], known: dict[int, Origin], *, by_kind: bool) -> Scores:
        """What each passage loses beside others: `by_kind` of its text, and for being of a file that is searched last. Nothing
        when all are: they were asked for. `known`: origins that were read before; those that are read now are added."""
        self._read_origins(ids, known)
        last = np.array([chunk_id in known and known[chunk_id].searched_last for chunk_id in ids], dtype=bool)
        kinds = [kind_of(known[chunk_id].path) if by_kind and chunk_id in known else "prose" for chunk_id in ids]
        priors = np.array([PRIOR[kind] for kind in kinds])
        return priors if last.all() else np.where(last, PRIOR["generated"], priors)

    def _compare(self, scope: Scope, ids: Iterable[int], query: Matrix, model: Embedder, known: dict[int, float]) -> None:
        """Add to `known` the cosine of each passage that is not there; NaN for one without a vector."""
        rest = [chunk_id for chunk_id in ids if chunk_id not in known]
        if rest:
            cosines = self._vectors.cosines(scope.container_id, rest, query, model=model.name)
            known.update(zip(rest, cosines.tolist(), strict=True))

    def _best_rows(self, signals: Signals, query: SearchQuery) -> Rows:
        """The rows of the best fused scores, three times as many as are shown, and of the best by words."""
        best: Rows = np.lexsort((signals.ids, -signals.fused))
        many = max(FETCHED_MIN, 3 * query.limit)
        by_words = np.lexsort((signals.ids, -signals.lexical))[:FETCHED_BY_WORDS]
        left_out = best[many:][np.isin(best[many:], by_words[signals.lexical[by_words] > 0])]
        return np.concatenate((best[:many], left_out))

    def _packed_lines(self, signals: Signals, rows: Rows) -> dict[int, bytes]:
        if self._dense is None or signals.cosine is None:
            return {}
        return self._chunks.line_vectors(signals.ids[rows].tolist(), model=self._dense.name)

    def _doubts(self, question: Question, gists: Matrix, semantic: Scores) -> Scores:
        """How little the transformer could read of the question or, where it is sure of a passage, of that."""
        doubts = np.full(len(gists), question.doubt)
        if self._doubting is not None and question.doubt < 1:
            rows = np.flatnonzero((semantic >= SURE_MIN) & ~np.isnan(gists[:, 0]))
            doubts[rows] = np.maximum(doubts[rows], self._doubting.doubts(gists[rows]))
        return doubts

    def _fetched(self, signals: Signals, query: SearchQuery) -> list[Candidate]:
        """The passages themselves."""
        stored = self._chunks.chunks(signals.ids.tolist())
        return [
            Candidate(
                stored=stored[int(signals.ids[row])],
                lexical=float(signals.lexical[row]),
                static=float(signals.static[row]),
                dense=None if signals.dense is None else float(signals.dense[row]),
                path=float(signals.path[row]),
                semantic=float(signals.semantic[row]),
                score=float(signals.fused[row]),
            )
            for row in range(len(signals.ids))
            if int(signals.ids[row]) in stored and _inside(stored[int(signals.ids[row])], query.scope)
        ]

    def _hits(
        self,
        shown: Sequence[Candidate],
        prepared: Query,
        question: Question,
        packed: dict[int, bytes],
        query: SearchQuery,
    ) -> list[Hit]:
        """The best lines of each passage; all lines of all passages go through the static model at once."""
        units = [units_of(candidate.stored.chunk.text) if query.lines else [] for candidate in shown]
        texts = [
            candidate.stored.chunk.text[unit.start : unit.end]
            for candidate, own in zip(shown, units, strict=True)
            for unit in own
            if len(own) > 1
        ]
        cosines = dots(self._static.embed_passages(texts), question.static)
        hits = []
        first = 0
        for candidate, own in zip(shown, units, strict=True):
            text = candidate.stored.chunk.text
            start, end = (own[0].start, own[0].end) if own else (0, len(text))
            if len(own) > 1:
                part = _with_lines(question, cosines[first : first + len(own)], packed.get(candidate.stored.id))
                first += len(own)
                low, high = lines.choose(text, own, prepared, part)
                start, end = own[low].start, own[high].end
            signals = _signals_of(candidate) if query.explain else None
            hits.append(
                lines.hit_at(
                    candidate.stored, start, end, score=candidate.score, signals=signals, why=candidate.why,
                    alike=candidate.alike,
                )
            )  # fmt: skip
        return hits


def _with_lines(question: Question, cosines: Matrix, packed: bytes | None) -> Matrix:
    """Static cosines of lines joined by the dense ones, when the passage has its line vectors."""
    if packed is None or question.dense is None:
        return cosines
    states = unpack_lines(packed, dim=len(question.dense))
    if len(states) != len(cosines):
        return cosines
    joined: Matrix = STATIC_LINE_SHARE * cosines + dots(states, question.dense)
    return joined


def _signals_of(candidate: Candidate) -> dict[str, float]:
    signals = {
        "lexical": round(candidate.lexical, 4),
        "static": round(candidate.static, 4),
        "path": round(candidate.path, 4),
        "coverage": round(candidate.coverage, 4),
    }
    return signals if candidate.dense is None else signals | {"dense": round(candidate.dense, 4)}


def _joined(ranked: list[Candidate], hops: Sequence[Hop], scope: Scope) -> list[Candidate]:
    """`ranked` with what it led to; a passage that was there already keeps the better of its scores."""
    known = {candidate.stored.id: candidate for candidate in ranked}
    for hop in hops:
        candidate = known.get(hop.stored.id)
        if candidate is None and _inside(hop.stored, scope):
            candidate = Candidate(stored=hop.stored, lexical=0.0, static=0.0, dense=None, path=0.0, semantic=0.0, score=0.0)
            ranked.append(candidate)
        if candidate is not None and hop.score > candidate.score:
            candidate.score, candidate.why = hop.score, hop.why
    return sorted(ranked, key=Candidate.order)


def _without(chosen: Chosen | None, documents: frozenset[str]) -> Chosen:
    if chosen is None or chosen.but:
        return Chosen(ids=documents if chosen is None else chosen.ids | documents, but=True)
    return Chosen(ids=chosen.ids - documents)


def _inside(passage: StoredChunk, scope: Scope) -> bool:
    """A document may have moved between two reads: what is shown is inside the scope now."""
    return (scope.chosen is None or passage.document_id in scope.chosen) and in_place(passage.path, scope)


def _from_lines(ids: Rows, packed: dict[int, bytes], query: Matrix | None) -> tuple[Scores, Matrix]:
    """Of each passage the cosine of its best line, and the mean of its lines' vectors, normalised: about the passage's own
    vector, without another read. NaN for one without line vectors."""
    cosines = np.full(len(ids), np.nan)
    gists = np.full((len(ids), 0 if query is None else len(query)), np.nan, dtype=np.float32)
    rows = [row for row, chunk_id in enumerate(ids.tolist()) if packed.get(chunk_id)]
    if query is None or not rows:
        return cosines, gists
    blobs = [packed[int(ids[row])] for row in rows]
    states = unpack_lines(b"".join(blobs), dim=len(query))
    starts = np.cumsum([0, *(len(blob) // len(query) for blob in blobs[:-1])])
    cosines[rows] = np.maximum.reduceat(dots(states, query), starts)
    sums = np.add.reduceat(states, starts)
    norms = np.linalg.norm(sums, axis=1, keepdims=True)
    gists[rows] = sums / np.where(norms > 0, norms, np.nan)
    return cosines, gists
