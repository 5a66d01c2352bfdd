"""Rerankers of the user's own: a model as a file, an endpoint, and what happens when neither answers."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from memdir.core.errors import UsageError
from memdir.retrieval.rerank import ENV_RERANKER, ENV_RERANKER_KEY, ENV_RERANKER_MODEL, reranker_from_environment
from memdir.retrieval.rerank.crossencoder import CrossEncoder
from memdir.retrieval.rerank.endpoint import ANSWER_MAX_BYTES, EndpointReranker
from memdir.retrieval.rerank.port import RerankError

WEIGHTS = {"[UNK]": 0.0, "question": 0.0, "walnut": 2.0, "gravel": -3.0}
PATIENT_S = 60.0
"""A busy machine is no failure."""
TEXTS = ["gravel gravel", "nothing", "walnut", "walnut gravel walnut walnut"]


def write_model(folder: Path, *, outputs: int = 1) -> None:
    """A cross-encoder whose number is the sum of the weights of its words."""
    vocabulary = {"[PAD]": 0} | {word: at for at, word in enumerate(WEIGHTS, start=1)}
    tokenizer = Tokenizer(WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    table = np.zeros((len(vocabulary), outputs), dtype=np.float32)
    table[1:, -1] = list(WEIGHTS.values())
    shape = ["texts", "tokens"]
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["looked_up"]),
            helper.make_node("ReduceSum", ["looked_up", "axis"], ["logits"], keepdims=0),
        ],
        "words",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, shape)],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["texts", outputs])],
        [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([1], dtype=np.int64), "axis")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, str(folder / "model.onnx"))


Answer = Callable[[dict[str, Any]], tuple[int, bytes]]


@contextmanager
def endpoint(answer: Answer) -> Iterator[tuple[str, list[tuple[dict[str, str], dict[str, Any]]]]]:
    """An address that answers so, and what it was asked."""
    asked: list[tuple[dict[str, str], dict[str, Any]]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append((dict(self.headers), body))
            status, data = answer(body)
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *arguments: Any) -> None:
            del arguments

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/rerank", asked
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.promise("retrieval.rerank")
@pytest.mark.parametrize("outputs", [1, 2])
def test_a_model_in_a_folder_scores_texts_whatever_stands_beside_them(tmp_path: Path, outputs: int) -> None:
    write_model(tmp_path, outputs=outputs)
    model = CrossEncoder(tmp_path)
    scores = model.scores("question", TEXTS, timeout_s=PATIENT_S)
    assert scores == pytest.approx([1 / (1 + np.exp(-x)) for x in (-6.0, 0.0, 2.0, 3.0)])
    alone = [model.scores("question", [text], timeout_s=PATIENT_S)[0] for text in TEXTS]
    assert scores == alone
    many = TEXTS * 12
    assert model.scores("question", many, timeout_s=PATIENT_S) == scores * 12
    assert model.scores("question", [], timeout_s=PATIENT_S) == []
    assert model.scores("lone \ud800 surrogate", ["\ud800 walnut"], timeout_s=PATIENT_S) == pytest.approx(scores[2:3])


def test_a_model_that_takes_too_long_or_is_none_is_an_error_and_no_order(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"model\.onnx is missing"):
        CrossEncoder(tmp_path)
    write_model(tmp_path, outputs=3)
    with pytest.raises(RerankError, match="shape"):
        CrossEncoder(tmp_path).scores("question", TEXTS, timeout_s=PATIENT_S)
    with pytest.raises(RerankError, match="too long"):
        CrossEncoder(tmp_path).scores("question", TEXTS, timeout_s=0.0)
    (tmp_path / "model.onnx").write_bytes(b"no model")
    with pytest.raises(RerankError, match="cannot be used"):
        CrossEncoder(tmp_path).scores("question", TEXTS, timeout_s=PATIENT_S)


@pytest.mark.promise("retrieval.rerank")
def test_an_endpoint_is_asked_in_its_own_words() -> None:
    def cohere(body: dict[str, Any]) -> tuple[int, bytes]:
        assert body["return_documents"] is False
        results = [{"index": at, "relevance_score": float("walnut" in text)} for at, text in enumerate(body["documents"])]
        return 200, json.dumps({"results": results[::-1]}).encode()

    with endpoint(cohere) as (url, asked):
        assert EndpointReranker(url, model="m", key="secret").scores("q", TEXTS, timeout_s=PATIENT_S) == [0.0, 0.0, 1.0, 1.0]
    headers, body = asked[0]
    assert {name.lower(): value for name, value in headers.items()}["authorization"] == "Bearer secret"
    assert (body["model"], body["query"], body["documents"]) == ("m", "q", TEXTS)

    with endpoint(lambda _: (200, b'[{"index": 2, "score": 0.5}, {"index": 0, "score": 7}]')) as (url, asked):
        assert EndpointReranker(url).scores("q", TEXTS, timeout_s=PATIENT_S) == [1.0, 0.0, 0.5, 0.0]
    headers, body = asked[0]
    assert body == {"query": "q", "texts": TEXTS, "truncate": True}
    assert "authorization" not in {name.lower() for name in headers}


@pytest.mark.parametrize(
    ("status", "answer", "message"),
    [
        (500, b"{}", "answered 500"),
        (302, b"{}", "answered 302"),
        (200, b"no json", "not JSON"),
        (200, b"[" * 100_000, "not JSON"),
        (200, b'{"scores": []}', "no results"),
        (200, b'[{"index": 9, "score": 1}]', "index and score"),
        (200, b'[{"index": 0, "score": NaN}]', "index and score"),
        (200, b'[{"index": true, "score": 1}]', "index and score"),
        (200, b" " * (ANSWER_MAX_BYTES + 1), "more than"),
    ],
)
def test_an_endpoint_that_answers_wrongly_is_an_error_and_no_order(status: int, answer: bytes, message: str) -> None:
    with endpoint(lambda _: (status, answer)) as (url, _), pytest.raises(RerankError, match=message):
        EndpointReranker(url).scores("q", TEXTS, timeout_s=PATIENT_S)


def test_an_endpoint_that_hangs_is_given_up() -> None:
    release = threading.Event()

    def hang(_: dict[str, Any]) -> tuple[int, bytes]:
        release.wait(30)
        return 200, b"[]"

    with endpoint(hang) as (url, _):
        try:
            with pytest.raises(RerankError, match="too long"):
                EndpointReranker(url).scores("q", TEXTS, timeout_s=0.2)
        finally:
            release.set()
    with pytest.raises(RerankError, match="cannot be reached"):
        EndpointReranker(url).scores("q", TEXTS, timeout_s=PATIENT_S)


@pytest.mark.promise("retrieval.rerank")
def test_no_reranker_is_asked_unless_one_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (ENV_RERANKER, ENV_RERANKER_KEY, ENV_RERANKER_MODEL):
        monkeypatch.delenv(name, raising=False)
    assert reranker_from_environment() is None
    for refused in (
        "http://example.com/rerank",
        "ftp://127.0.0.1/",
        "https://",
        "https://u:p@example.com/rerank",
        str(tmp_path),
    ):
        monkeypatch.setenv(ENV_RERANKER, refused)
        with pytest.raises(UsageError):
            reranker_from_environment()
    write_model(tmp_path)
    monkeypatch.setenv(ENV_RERANKER, str(tmp_path))
    assert isinstance(reranker_from_environment(), CrossEncoder)
    for taken in ("https://example.com/v1/rerank", "http://127.0.0.1:8080/rerank", "http://[::1]:1/rerank"):
        monkeypatch.setenv(ENV_RERANKER, taken)
        assert isinstance(reranker_from_environment(), EndpointReranker)
