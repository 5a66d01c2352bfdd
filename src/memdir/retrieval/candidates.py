"""From candidates to a ranking: the words of the query that each passage holds, how sure the best is, further passages of a
file behind other files.

The order comes from the fusion, the height of the scores from how sure the best signals are in absolute terms, so that a query
about nothing in the memory scores low.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.retrieval.fuse import Tuning
from memdir.retrieval.signals import passage_stems
from memdir.retrieval.words import ABBREVIATIONS, Query, telling
from memdir.store.text.words import stem
from memdir.store.types import StoredChunk

CERTAINTY_LOOK: Final = 12
"""Best passages whose words are counted to tell how sure the answer is."""

OWN_SHARE: Final = 0.5
"""Of a passage's own certainty in its score; the rest is its place behind the best, times how sure the best is."""
COVERAGE_CERTAIN: Final = (4.0, 0.5)
"""Powers of the share of the query's words. Where the transformer can read the question all of them are an answer, half of them
are not; where it cannot, words are all there is, and one of five (or pairs of characters) is better than nothing."""
TELLING_FROM: Final = 0.5
"""Doubt about a question from which on words that are a stop word in any language are none of its words."""


@dataclass(slots=True, kw_only=True)
class Candidate:
    """One passage. `lexical`, `static`, `dense` and `path` are as they enter the fusion, 0 to 1."""

    stored: StoredChunk
    lexical: float
    static: float
    dense: float | None
    path: float
    semantic: float
    """Certainty of the vectors, see `Signals.semantic`."""
    score: float
    coverage: float = 0.0
    covered: frozenset[str] = frozenset()
    """Terms of the query that the passage has; looked at when it has any."""
    why: str | None = None
    alike: int = 0
    """Other files that say the same, and are not shown for it."""

    def order(self) -> tuple[float, str, int]:
        """Best first, ties by path and place."""
        return (-self.score, self.stored.path or self.stored.document_id, self.stored.chunk.start_byte)


def in_order(candidates: list[Candidate], query: Query, *, tuning: Tuning, doubt: float) -> list[Candidate]:
    """Half the fused score relative to the best, times how sure the best is; half how sure this very passage is. Further
    passages of a file are lowered; best first."""
    if not candidates:
        return []
    terms = telling(query.terms) if doubt >= TELLING_FROM else query.terms
    for candidate in candidates:
        if candidate.lexical > 0:
            candidate.covered = _covered(candidate, terms)
            candidate.coverage = len(candidate.covered) / len(terms)
    ranked = sorted(candidates, key=Candidate.order)
    best = ranked[0].score
    power = COVERAGE_CERTAIN[0] * (COVERAGE_CERTAIN[1] / COVERAGE_CERTAIN[0]) ** doubt
    certainty = max(_certainty(candidate, power) for candidate in ranked[:CERTAINTY_LOOK])
    for candidate in ranked:
        relative = candidate.score / best * certainty if best > 0 else 0.0
        candidate.score = (1 - OWN_SHARE) * relative + OWN_SHARE * _certainty(candidate, power)
    ranked.sort(key=Candidate.order)
    seen: dict[str, int] = {}
    for candidate in ranked:
        times = seen.get(candidate.stored.document_id, 0)
        seen[candidate.stored.document_id] = times + 1
        candidate.score *= tuning.next_in_file**times
    return sorted(ranked, key=Candidate.order)


def _covered(candidate: Candidate, terms: Sequence[str]) -> frozenset[str]:
    """Those of the query's `terms` that the passage holds, in any form."""
    have = passage_stems(candidate.stored.chunk.context, candidate.stored.chunk.text)
    found = []
    for term in terms:
        others = [term, *(other for other in ABBREVIATIONS.get(term, ()) if " " not in other)]
        if any(stem(other) in have for other in others):
            found.append(term)
    return frozenset(found)


def _certainty(candidate: Candidate, power: float) -> float:
    """How sure the signals are in absolute terms, like a probability: a close vector, most of the query's words, or the file's
    name, or some of each."""
    lexical = math.pow(candidate.coverage, power)
    named = 0.9 * candidate.path**2
    return 1.0 - (1.0 - candidate.semantic) * (1.0 - lexical) * (1.0 - named)
