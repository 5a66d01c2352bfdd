"""A reranker behind an address: the `/rerank` of Cohere, Jina, Voyage and vLLM, or that of Text Embeddings Inference.

Sent with a model's name: `{"model", "query", "documents": [text], "top_n", "return_documents": false}`; without, as TEI has one
model only: `{"query", "texts": [text], "truncate": true}`. Taken: `{"results": [{"index", "relevance_score"}]}` or
`[{"index", "score"}]`.
The key goes as `Authorization: Bearer`. No redirect is followed, no proxy of the environment is used, the answer is bounded.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from typing import Any, Final

import httpx

from memdir.core.limits import MIB
from memdir.retrieval.rerank.port import RERANK_TIMEOUT_S, TEXT_MAX_CHARS, RerankError

ANSWER_MAX_BYTES: Final = MIB


class EndpointReranker:
    """Keeps its connection open; any thread may call."""

    def __init__(self, url: str, *, model: str = "", key: str = "") -> None:
        self._url = url
        self._model = model
        headers = {"authorization": f"Bearer {key}"} if key else {}
        self._client = httpx.Client(headers=headers, follow_redirects=False, trust_env=False)

    def scores(self, query: str, texts: Sequence[str], *, timeout_s: float = RERANK_TIMEOUT_S) -> list[float]:
        """What the endpoint says, cut to 0 to 1; a text that it does not name has 0."""
        cut = [text[:TEXT_MAX_CHARS].encode("utf-8", "replace").decode() for text in texts]
        body: dict[str, Any] = {"query": query, "texts": cut, "truncate": True}
        if self._model:
            body = {"model": self._model, "query": query, "documents": cut, "top_n": len(cut), "return_documents": False}
        return _relevance(self._asked(body, timeout_s), len(texts))

    def _asked(self, body: dict[str, Any], timeout_s: float) -> Any:
        """The endpoint's answer. Neither the address nor the key is in an error's text."""
        deadline = time.monotonic() + timeout_s
        data = bytearray()
        try:
            with self._client.stream("POST", self._url, json=body, timeout=timeout_s) as answer:
                if answer.status_code != 200:
                    raise RerankError(f"the reranker answered {answer.status_code}")
                for piece in answer.iter_bytes():
                    data += piece
                    if len(data) > ANSWER_MAX_BYTES:
                        raise RerankError(f"the reranker's answer has more than {ANSWER_MAX_BYTES} bytes")
                    if time.monotonic() > deadline:
                        raise RerankError("the reranker took too long")
        except httpx.TimeoutException:
            raise RerankError("the reranker took too long") from None
        except httpx.HTTPError as error:
            raise RerankError(f"the reranker cannot be reached: {type(error).__name__}") from None
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise RerankError("the reranker's answer is not JSON") from None


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
