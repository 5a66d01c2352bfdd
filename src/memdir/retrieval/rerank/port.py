"""What a reranker answers: how relevant each text is to a question, read together and not as two vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from memdir.core.errors import MemdirError

RERANK_MAX: Final = 50
"""Best hits that are ordered anew; those behind them stay behind them."""
RERANK_TIMEOUT_S: Final = 2.0
TEXT_MAX_CHARS: Final = 4000
"""Of one text; what is longer is cut."""


class RerankError(MemdirError):
    """The reranker did not answer, or not with what it should: the order stays as it was."""


class Reranker(Protocol):
    """Any thread may call."""

    def scores(self, query: str, texts: Sequence[str], *, timeout_s: float = RERANK_TIMEOUT_S) -> list[float]:
        """The relevance of each of `texts` (at most RERANK_MAX), 0 to 1. RerankError when there is none within `timeout_s`."""
        ...
