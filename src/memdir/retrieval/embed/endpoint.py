"""An embedding model behind an address that speaks OpenAI's `/v1/embeddings`.

Sent: `{"model", "input": [text]}`; taken: `{"data": [{"index", "embedding"}]}`. While it fails, the server searches with words
and static vectors, and passages wait.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import numpy as np

from memdir.core.errors import BusyError
from memdir.core.limits import MIB
from memdir.retrieval.embed.port import CosineScale, ModelUnavailableError
from memdir.retrieval.endpoint import AnswerError, Endpoint, EndpointError
from memdir.store.types import Matrix

QUERY_TIMEOUT_S: Final = 2.0
PASSAGES_TIMEOUT_S: Final = 30.0
BATCH: Final = 32
ANSWER_MAX_BYTES: Final = 16 * MIB
DIM_MAX: Final = 4096
_TEXT_MAX_CHARS: Final = 8000
_PAIRS: Final = (
    ("how often is the boiler serviced", "The heating is looked after by a plumber every October."),
    ("when does the night train leave", "The sleeper to Rome departs at 19:18."),
    ("who approves travel expenses", "Trips are paid for once the head of the department has signed."),
    ("what does the certificate cover", "The TLS certificate is valid for the shop and its mail server."),
    ("how is flour turned into bread", "Knead rye and water, let it rise, bake it at 230 degrees."),
    ("interest on the house loan", "The mortgage is fixed at 1.9 percent until 2031."),
)
"""Questions with their answers; each with the others' answers is a pair that has nothing to do with each other."""


class EndpointEmbedder:
    """Asks once when it is made, for the number of dimensions and for what its cosines mean. Any thread may call."""

    def __init__(self, url: str, *, model: str, key: str = "") -> None:
        """BusyError when it cannot be reached, ModelUnavailableError when it answers something else than vectors."""
        self._model = model
        self._endpoint = Endpoint(url, name="the embedding endpoint", key=key)
        self._dim: int | None = None
        texts = [text for pair in _PAIRS for text in pair]
        vectors = self._asked(texts, PASSAGES_TIMEOUT_S)
        self._dim = vectors.shape[1]
        self._scale = _scale(vectors[::2] @ vectors[1::2].T)
        self._name = f"endpoint-{hashlib.sha256(f'{url} {model}'.encode()).hexdigest()[:12]}-{self._dim}"

    @property
    def name(self) -> str:
        return self._name

    @property
    def dim(self) -> int:
        assert self._dim is not None
        return self._dim

    @property
    def scale(self) -> CosineScale:
        """Measured on a few questions with and without their answers."""
        return self._scale

    def embed_query(self, text: str) -> Matrix:
        """BusyError when it does not answer within QUERY_TIMEOUT_S."""
        vector: Matrix = self._asked([text], QUERY_TIMEOUT_S)[0]
        return vector

    def embed_passages(self, texts: list[str]) -> Matrix:
        """In batches of BATCH. BusyError when one fails: nothing of it counts."""
        parts = [self._asked(texts[at : at + BATCH], PASSAGES_TIMEOUT_S) for at in range(0, len(texts), BATCH)]
        return np.concatenate(parts) if parts else np.zeros((0, self.dim), dtype=np.float32)

    def _asked(self, texts: list[str], timeout_s: float) -> Matrix:
        """Normalised vectors."""
        cut = [text[:_TEXT_MAX_CHARS].encode("utf-8", "replace").decode() or " " for text in texts]
        body = {"model": self._model, "input": cut}
        try:
            answer = self._endpoint.asked(body, timeout_s=timeout_s, max_bytes=ANSWER_MAX_BYTES)
        except EndpointError as error:
            raise BusyError(error.message) from None
        except AnswerError as error:
            raise ModelUnavailableError(error.message) from None
        try:
            rows = _rows(answer, len(texts))
        except (ValueError, TypeError, KeyError):
            raise ModelUnavailableError("the embedding endpoint's answer does not hold a vector for each text") from None
        if self._dim is not None and rows.shape[1] != self._dim:
            raise ModelUnavailableError(f"the embedding endpoint gave {rows.shape[1]} dimensions, before {self._dim}")
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
        unit: Matrix = (rows / np.where(norms > 0, norms, 1.0)).astype(np.float32)
        return unit


def _rows(answer: Any, count: int) -> Matrix:
    """ValueError, TypeError or KeyError for another shape."""
    items = sorted(answer["data"], key=lambda item: int(item["index"]))
    rows = np.array([item["embedding"] for item in items], dtype=np.float32)
    if [item["index"] for item in items] != list(range(count)) or rows.ndim != 2 or not 1 <= rows.shape[1] <= DIM_MAX:
        raise ValueError(count)
    if not np.isfinite(rows).all():
        raise ValueError(count)
    return rows


def _scale(cosines: Matrix) -> CosineScale:
    """From questions (rows) with answers (columns): the diagonal belongs together."""
    related = np.diag(cosines)
    others = cosines[~np.eye(len(cosines), dtype=bool)]
    low, high = float(others.mean()), float(related.mean())
    gap = max(high - low, 0.05)
    return CosineScale(unrelated=low, close=low + 1.2 * gap, middle=low + 0.65 * gap, slope=9.0 / gap)
