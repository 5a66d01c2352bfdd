"""A reranker behind an address: the `/rerank` of Cohere, Jina, Voyage and vLLM, or that of Text Embeddings Inference.

Sent with a model's name: `{"model", "query", "documents": [text], "top_n", "return_documents": false}`; without, as TEI has one
model only: `{"query", "texts": [text], "truncate": true}`. Taken: `{"results": [{"index", "relevance_score"}]}` or
`[{"index", "score"}]`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from memdir.core.limits import MIB
from memdir.retrieval.endpoint import AnswerError, Endpoint, EndpointError
from memdir.retrieval.rerank.port import RERANK_TIMEOUT_S, TEXT_MAX_CHARS, RerankError

ANSWER_MAX_BYTES: Final = MIB


class EndpointReranker:
    """Keeps its connection open; any thread may call."""

    def __init__(self, url: str, *, model: str = "", key: str = "") -> None:
        self._model = model
        self._endpoint = Endpoint(url, name="the reranker", key=key)

    def scores(self, query: str, texts: Sequence[str], *, timeout_s: float = RERANK_TIMEOUT_S) -> list[float]:
        """What the endpoint says, cut to 0 to 1; a text that it does not name has 0."""
        cut = [text[:TEXT_MAX_CHARS].encode("utf-8", "replace").decode() for text in texts]
        body: dict[str, Any] = {"query": query, "texts": cut, "truncate": True}
        if self._model:
            body = {"model": self._model, "query": query, "documents": cut, "top_n": len(cut), "return_documents": False}
        try:
            answer = self._endpoint.asked(body, timeout_s=timeout_s, max_bytes=ANSWER_MAX_BYTES)
        except (EndpointError, AnswerError) as error:
            raise RerankError(error.message) from None
        return _relevance(answer, len(texts))


def _relevance(answer: Any, count: int) -> list[float]:
    results = answer.get("results") if isinstance(answer, dict) else answer
    if not isinstance(results, list):
        raise RerankError("the reranker's answer has no results")
    found = [0.0] * count
    for result in results:
        place = result.get("index") if isinstance(result, dict) else None
        score = (result.get("relevance_score", result.get("score"))) if isinstance(result, dict) else None
        if type(place) is not int or not 0 <= place < count or not isinstance(score, int | float) or not math.isfinite(score):
            raise RerankError("a result of the reranker has no index and score")
        found[place] = min(1.0, max(0.0, float(score)))
    return found
