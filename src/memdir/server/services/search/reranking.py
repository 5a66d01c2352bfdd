"""`rerank` in a search: the best hits in the order of the user's own reranker, or the order that they had, and why."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from memdir.api.search import Reranking
from memdir.retrieval.rerank.port import RERANK_MAX, RerankError
from memdir.server.engine import Engine

log = logging.getLogger(__name__)

T = TypeVar("T")
NONE_SET: Final = "no reranker is set up (MEMDIR_RERANKER in the server's environment names one)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reranked(Generic[T]):
    """Items with their scores, best first."""

    items: list[tuple[T, float]]
    said: Reranking


def reranked(engine: Engine, query: str, items: Sequence[tuple[T, float]], text_of: Callable[[T], str]) -> Reranked[T]:
    """The first RERANK_MAX of `items` in the reranker's order and with its scores, the others behind them. Items come with the
    scores they have, best first; they keep order and scores when there is no reranker, or when it fails. Ties keep their
    order."""
    reranker = engine.reranker
    if reranker is None:
        return Reranked(items=list(items), said=Reranking(applied=False, reason=NONE_SET))
    head = items[:RERANK_MAX]
    if not head:
        return Reranked(items=[], said=Reranking(applied=True))
    try:
        scores = reranker.scores(query, [text_of(item) for item, _ in head])
    except RerankError as error:
        log.warning("not reranked: %s", error.message)
        return Reranked(items=list(items), said=Reranking(applied=False, reason=error.message))
    order = sorted(range(len(head)), key=lambda at: (-scores[at], at))
    made = [(head[at][0], round(scores[at], 4)) for at in order]
    least = made[-1][1]
    made += [(item, min(score, least)) for item, score in items[RERANK_MAX:]]
    return Reranked(items=made, said=Reranking(applied=True))
