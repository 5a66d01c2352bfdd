"""Ranking memories for a query. They are short and at most 1,000, so every one is compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from memdir.retrieval.words import prepare
from memdir.store.text.words import stem, words

if TYPE_CHECKING:
    from memdir.retrieval.embed import Embedder
    from memdir.store.types import Matrix, Memory

THRESHOLD: Final = 0.35
_LEXICAL_WEIGHT: Final = 0.4
_VECTORS_MAX: Final = 8192


def rank(static: Embedder, memories: Sequence[Memory], text: str, *, threshold: float | None) -> list[tuple[Memory, float]]:
    """Memories with a similarity of at least `threshold`, best first: cosine of static vectors, and the share of the query's
    words that the memory holds. Ties by id."""
    query = prepare(text)
    if not memories or not query.terms:
        return []
    wanted = static.embed_query(query.text)
    terms = {stem(term) for term in query.terms}
    ranked = []
    for memory in memories:
        cosine = max(0.0, float(_vector(static, memory.candidate.text) @ wanted))  # type: ignore[arg-type]
        have = {stem(word) for word in words(memory.candidate.text)}
        similarity = (1 - _LEXICAL_WEIGHT) * cosine + _LEXICAL_WEIGHT * len(terms & have) / len(terms)
        ranked.append((memory, round(min(1.0, max(cosine, similarity)), 4)))
    least = THRESHOLD if threshold is None else threshold
    return sorted((item for item in ranked if item[1] >= least), key=lambda item: (-item[1], item[0].id))


@lru_cache(maxsize=_VECTORS_MAX)
def _vector(static: Embedder, text: str) -> Matrix:
    return static.embed_query(text)
