"""A cross-encoder as a file of the user's own: `model.onnx` and `tokenizer.json` in one folder.

It reads question and text together (Nogueira and Cho, "Passage Re-ranking with BERT", 2019) and gives one number, or one for
"no" and one for "yes". Inputs are those of BERT and its kin: `input_ids`, `attention_mask`, perhaps `token_type_ids`, each of
shape (texts, tokens), int64.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer

from memdir.core.errors import UsageError
from memdir.retrieval.embed.minilm import opened
from memdir.retrieval.rerank.port import RERANK_TIMEOUT_S, TEXT_MAX_CHARS, RerankError

MODEL_NAME: Final = "model.onnx"
TOKENIZER_NAME: Final = "tokenizer.json"
TOKENS_MAX: Final = 512
"""Of question and text together; the text is cut first."""
_BATCH: Final = 8
_INPUTS: Final = ("input_ids", "attention_mask", "token_type_ids")


class CrossEncoder:
    """Loaded at the first question."""

    def __init__(self, folder: Path) -> None:
        """UsageError when the files are not there."""
        for name in (MODEL_NAME, TOKENIZER_NAME):
            if not (folder / name).is_file():
                raise UsageError(f"there is no reranker in {folder}: {name} is missing")
        self._folder = folder
        self._lock = threading.Lock()
        self._loaded: tuple[Any, Tokenizer] | None = None

    def scores(self, query: str, texts: Sequence[str], *, timeout_s: float = RERANK_TIMEOUT_S) -> list[float]:
        """The sigmoid of the model's number, or the probability of "yes"; the network is stopped at the time limit."""
        deadline = time.monotonic() + timeout_s
        try:
            session, tokenizer = self._model()
            pairs = [(_clean(query), _clean(text)) for text in texts]
            encoded = tokenizer.encode_batch(pairs)
        except Exception as error:
            raise RerankError(f"the reranker in {self._folder} cannot be used: {_first_line(error)}") from error
        # Texts of one length together: no text changes another's score, but the longest sets the cost of its batch.
        order = sorted(range(len(texts)), key=lambda at: (len(encoded[at].ids), at))
        found = [0.0] * len(texts)
        for first in range(0, len(order), _BATCH):
            places = order[first : first + _BATCH]
            values = self._run(session, [encoded[at] for at in places], deadline - time.monotonic())
            for at, value in zip(places, values, strict=True):
                found[at] = value
        return found

    def _model(self) -> tuple[Any, Tokenizer]:
        with self._lock:
            if self._loaded is None:
                tokenizer = Tokenizer.from_file(str(self._folder / TOKENIZER_NAME))
                tokenizer.enable_truncation(TOKENS_MAX, strategy="only_second")
                tokenizer.no_padding()
                # Its own words about a model that it cannot use are ours to say.
                self._loaded = opened(self._folder / MODEL_NAME, threads=2, log_level=4), tokenizer
            return self._loaded

    def _run(self, session: Any, batch: Sequence[Any], left_s: float) -> list[float]:
        import onnxruntime

        if left_s <= 0:
            raise RerankError("the reranker took too long")
        width = max(len(one.ids) for one in batch)
        columns = {name: np.zeros((len(batch), width), dtype=np.int64) for name in _INPUTS}
        for row, one in enumerate(batch):
            columns["input_ids"][row, : len(one.ids)] = one.ids
            columns["attention_mask"][row, : len(one.ids)] = 1
            columns["token_type_ids"][row, : len(one.ids)] = one.type_ids
        wanted = {entry.name for entry in session.get_inputs()}
        options = onnxruntime.RunOptions()
        stopping = threading.Timer(left_s, _stop, (options,))
        stopping.start()
        try:
            (out, *_) = session.run(None, {name: values for name, values in columns.items() if name in wanted}, options)
        except Exception as error:
            late = "the reranker took too long" if options.terminate else f"the reranker failed: {_first_line(error)}"
            raise RerankError(late) from error
        finally:
            stopping.cancel()
        return _relevance(np.asarray(out, dtype=np.float64), len(batch))


def _stop(options: Any) -> None:
    options.terminate = True


def _relevance(out: np.ndarray[Any, np.dtype[np.float64]], count: int) -> list[float]:
    """From what a network gives to numbers from 0 to 1."""
    values = out.reshape(count, -1) if out.size and out.size % count == 0 else out.reshape(0, 1)
    if values.shape[0] != count or values.shape[1] not in (1, 2) or not np.isfinite(values).all():
        raise RerankError(f"the reranker gave numbers of shape {out.shape} for {count} texts")
    logits = values[:, 0] if values.shape[1] == 1 else values[:, 1] - values[:, 0]
    found: list[float] = (1 / (1 + np.exp(-np.clip(logits, -50, 50)))).tolist()
    return found


def _clean(text: str) -> str:
    return text[:TEXT_MAX_CHARS].encode("utf-8", "replace").decode("utf-8")


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]
