"""The second hop: what the best hits are connected with, judged by the connection and by what of the query they leave open.

A passage reached this way scores as the hit it was reached from, times the strength of the connection, times how well it fits
the rest of the query. So it never stands above that hit, and a query that finds nothing leads nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from memdir.retrieval.embed.port import Embedder
from memdir.retrieval.signals import passage_stems, stems
from memdir.retrieval.signals.connect import CONNECTIONS_MAX, Connection, Connector, CoRead, Seed, refers
from memdir.retrieval.vectors import VectorIndex
from memdir.retrieval.words import Query
from memdir.store.protocols import ChunkStore
from memdir.store.types import Matrix, Scope, StoredChunk

SEEDS_MAX: Final = 4
"""Hits that are followed, of different files."""
SEEDS_LOOK: Final = 40
"""Best files that these are chosen among."""
SAME_AGAIN: Final = 0.25
"""Of the score of a hit whose words of the query all stand in one that is followed already: many files may have what is asked
for, and only one has what it is asked about."""
READ_MAX: Final = 12
"""Connected passages that are read."""
HOPS_MAX: Final = 6
"""Passages that one search adds or raises: most of an answer is always what the query found by itself."""
SHARE: Final = 0.95
FLOOR: Final = 0.25
"""Of a passage that fits nothing of the rest."""
NEAR: Final = (0.12, 0.45)
"""Static cosines with the rest of the query between which closeness goes from 0 to 1: a rest is a few words, and passages that
say something of the kind stand some .3 from them."""
FITS: Final = 0.5
"""A passage that fits the rest so well answers it: few answers repeat the words of their question."""
WORDS_SHARE: Final = 0.5
"""Of the words in the fit; the rest is the vectors'."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hop:
    """A passage that was reached, with the score it has for that."""

    stored: StoredChunk
    score: float
    why: str


_Placed = TypeVar("_Placed", Seed, Hop)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rest:
    """What a seed leaves unanswered: the stems of the query that it does not have, and a vector of those words."""

    stems: frozenset[str]
    vector: Matrix


class Hops:
    """Follows connections. Stateless; any thread may call."""

    def __init__(self, chunks: ChunkStore, vectors: VectorIndex, static: Embedder, co_read: CoRead | None = None) -> None:
        self._chunks = chunks
        self._vectors = vectors
        self._static = static
        self._connector = Connector(chunks.entity_links, co_read)

    def reached(self, scope: Scope, query: Query, seeds: Sequence[Seed], *, least: float = 0.0) -> list[Hop]:
        """The best HOPS_MAX passages that `seeds` lead to, best first; ties by path and place. None outside the container; the
        caller looks at the rest of the scope. What cannot score `least` is not looked at. Bounds: SEEDS_MAX seeds,
        CONNECTIONS_MAX connections, READ_MAX passages."""
        followed = [seed for seed in _seeds(query, seeds) if SHARE * seed.score >= least]
        if not followed:
            return []
        connections = self._connector.connections(scope, query, followed, least=least / SHARE)
        if not connections:
            return []
        rests = self._rests(query, followed)
        near = self._near(scope, connections, rests)
        scores = [seed.score for seed in followed]
        promises = [
            -scores[seed] * strength * (FLOOR + (1 - FLOOR) * near.get((seed, chunk_id), 0.0))
            for chunk_id, seed, strength, _, _ in connections
        ]
        promising = [connection for _, connection in sorted(zip(promises, connections, strict=True))]
        stored = self._chunks.chunks(list(dict.fromkeys(connection.chunk_id for connection in promising))[:READ_MAX])
        best: dict[int, Hop] = {}
        have: dict[int, frozenset[str]] = {}
        for connection in promising:
            passage = stored.get(connection.chunk_id)
            if passage is None or (connection.refers_to is not None and not refers(passage, connection.refers_to)):
                continue
            if passage.id not in have:
                have[passage.id] = _stems_of(passage)
            score = _score(connection, followed, rests, near, have[passage.id])
            if passage.id not in best or score > best[passage.id].score:
                best[passage.id] = Hop(stored=passage, score=score, why=connection.why)
        ranked = sorted(best.values(), key=lambda hop: (-hop.score, hop.stored.path or "", hop.stored.chunk.start_byte))
        return _of_different_files(ranked, HOPS_MAX)

    def _rests(self, query: Query, seeds: Sequence[Seed]) -> list[_Rest]:
        """What each seed leaves; seeds that leave the same share it."""
        made: dict[tuple[str, ...], _Rest] = {}
        rests = []
        for seed in seeds:
            have = _stems_of(seed.stored)
            left = tuple(term for term in query.terms if not set(stems(term)) <= have)
            if left not in made:
                made[left] = _Rest(
                    stems=frozenset(word for term in left for word in stems(term)),
                    vector=self._static.embed_query(" ".join(left)),
                )
            rests.append(made[left])
        return rests

    def _near(self, scope: Scope, connections: Sequence[Connection], rests: Sequence[_Rest]) -> dict[tuple[int, int], float]:
        """How close each connected passage is to the rest that its seed leaves, 0 to 1; by seed and passage."""
        found: dict[tuple[int, int], float] = {}
        for rest in {id(rest): rest for rest in rests if rest.stems}.values():
            places = list(dict.fromkeys((c.seed, c.chunk_id) for c in connections if rests[c.seed] is rest))
            if places:
                ids = [chunk_id for _, chunk_id in places]
                cosines = self._vectors.cosines(scope.container_id, ids, rest.vector, model=self._static.name)
                above = np.nan_to_num(cosines.astype(np.float64), nan=0.0) - NEAR[0]
                close = np.clip(above / (NEAR[1] - NEAR[0]), 0.0, 1.0)
                found.update(zip(places, close.tolist(), strict=True))
        return found


def _stems_of(passage: StoredChunk) -> frozenset[str]:
    return passage_stems(passage.chunk.context, passage.chunk.text)


def _seeds(query: Query, hits: Sequence[Seed]) -> list[Seed]:
    """The best hit, then by turns the one that is good and has other words of the query than those before (maximal marginal
    relevance: Carbonell and Goldstein, 1998, with words of the query for similarity). Ties go to the better hit."""
    left = _of_different_files(hits, SEEDS_LOOK)
    chosen: list[Seed] = []
    covered: frozenset[str] = frozenset()
    while left and len(chosen) < SEEDS_MAX:
        news = [len(seed.covered - covered) / len(query.terms) for seed in left]
        worth = [seed.score * (SAME_AGAIN + (1 - SAME_AGAIN) * new) for seed, new in zip(left, news, strict=True)]
        best = left.pop(0 if not chosen else worth.index(max(worth)))
        covered |= best.covered
        chosen.append(best)
    return chosen


def _of_different_files(items: Sequence[_Placed], limit: int) -> list[_Placed]:
    """The first of each file, at most `limit`."""
    first: dict[str, _Placed] = {}
    for item in items:
        first.setdefault(item.stored.document_id, item)
    return list(first.values())[:limit]


def _score(
    connection: Connection,
    seeds: Sequence[Seed],
    rests: Sequence[_Rest],
    near: dict[tuple[int, int], float],
    have: frozenset[str],
) -> float:
    rest = rests[connection.seed].stems
    words = len(rest & have) / len(rest) if rest else 0.0
    fit = WORDS_SHARE * words + (1 - WORDS_SHARE) * near.get((connection.seed, connection.chunk_id), 0.0)
    return seeds[connection.seed].score * SHARE * connection.strength * (FLOOR + (1 - FLOOR) * min(1.0, fit / FITS))


assert READ_MAX <= CONNECTIONS_MAX
