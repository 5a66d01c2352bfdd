"""Models in the place of the transformer: the multilingual one, and an endpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from memdir.core.errors import BusyError, UsageError
from memdir.retrieval.embed import MiniLmEmbedder, StaticEmbedder
from memdir.retrieval.embed.choice import embedder_from_environment
from memdir.retrieval.embed.e5 import MultilingualEmbedder
from memdir.retrieval.embed.endpoint import EndpointEmbedder
from memdir.retrieval.embed.port import ModelUnavailableError
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import SearchQuery
from memdir.store.types import Scope
from memdir_bench.retrieval.languages import PAIRS, figures
from tests.retrieval.conftest import World


@dataclass(slots=True)
class Double:
    """What the endpoint was asked, and how it answers."""

    url: str = ""
    status: int = 200
    dim: int = 384
    asked: list[tuple[str | None, dict[str, Any]]] = field(default_factory=list)


@pytest.fixture
def endpoint(minilm: MiniLmEmbedder) -> Iterator[Double]:
    """A server with the protocol of OpenAI, and a real model behind it."""
    double = Double()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            double.asked.append((self.headers.get("authorization"), body))
            rows = minilm.embed_passages(body["input"])[:, : double.dim]
            items = [{"object": "embedding", "index": at, "embedding": row.tolist()} for at, row in enumerate(rows)]
            data = json.dumps({"object": "list", "data": items[::-1]}).encode()
            self.send_response(double.status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        double.url = f"http://127.0.0.1:{server.server_port}/v1/embeddings"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield double
        server.shutdown()
        thread.join()


@pytest.mark.promise("retrieval.multilingual")
def test_a_question_in_one_language_finds_the_answer_in_another(
    models_dir: Path, sqlite_world: World, static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_EMBEDDER", "multilingual")
    model = embedder_from_environment(models_dir)
    assert isinstance(model, MultilingualEmbedder)
    for number, (_, texts) in enumerate(PAIRS[:6]):
        sqlite_world.put(f"/{number}.txt", texts[number] + "\n", static)
    sqlite_world.embed(model)
    searcher = Searcher(sqlite_world.chunks, static, model, words=sqlite_world.words)
    for number, (question, texts) in enumerate(PAIRS[:6]):
        hit = searcher.search(SearchQuery(text=question, scope=Scope(container_id=1))).hits[0]
        assert (hit.path, hit.text) == (f"/{number}.txt", texts[number])


@pytest.mark.long
def test_nine_of_ten_answers_in_other_languages_come_first(models_dir: Path) -> None:
    assert figures(MultilingualEmbedder(models_dir))[-1].value >= 0.9


@pytest.mark.promise("retrieval.endpoint")
def test_an_endpoint_takes_the_place_of_the_model_and_search_goes_on_without_it(
    endpoint: Double, sqlite_world: World, static: StaticEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_EMBEDDER", endpoint.url)
    monkeypatch.setenv("MEMDIR_EMBEDDER_MODEL", "small")
    monkeypatch.setenv("MEMDIR_EMBEDDER_KEY", "s3cret")
    model = embedder_from_environment(tmp_path)
    assert model.dim == 384
    assert model.scale.unrelated < model.scale.middle < model.scale.close
    documents = {"/cat.txt": "Miso is afraid of the vacuum cleaner.", "/loan.txt": "The mortgage is fixed until 2031."}
    for path, text in documents.items():
        sqlite_world.put(path, text + "\n", static)
    missing = sqlite_world.chunks.missing_vectors(model=model.name, limit=10)
    vectors = model.embed_passages([stored.chunk.text for stored in missing])
    sqlite_world.chunks.add_vectors([stored.id for stored in missing], model=model.name, vectors=vectors)
    searcher = Searcher(sqlite_world.chunks, static, model, words=sqlite_world.words)

    def found(question: str) -> str | None:
        hits = searcher.search(SearchQuery(text=question, scope=Scope(container_id=1), explain=True)).hits
        return hits[0].path if hits else None

    assert found("what is our pet scared of") == "/cat.txt"
    assert {(key, body["model"]) for key, body in endpoint.asked} == {("Bearer s3cret", "small")}
    endpoint.status = 503
    with pytest.raises(BusyError, match="answered 503"):
        model.embed_query("anything")
    assert found("fixed mortgage") == "/loan.txt", "words still find it"


def test_an_endpoint_that_changes_its_dimensions_is_refused(endpoint: Double) -> None:
    model = EndpointEmbedder(endpoint.url, model="small")
    assert np.allclose(np.linalg.norm(model.embed_passages(["one", "two"]), axis=1), 1.0, atol=1e-5)
    endpoint.dim = 256
    with pytest.raises(ModelUnavailableError, match="256 dimensions, before 384"):
        model.embed_query("three")


@pytest.mark.parametrize(
    "setting", ["http://example.org/v1/embeddings", "ftp://127.0.0.1/x", "german", "https://u:p@example.org/v1"]
)
def test_an_embedder_that_cannot_be_one_is_refused_before_anything_is_sent(
    setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMDIR_EMBEDDER", setting)
    with pytest.raises(UsageError, match="MEMDIR_EMBEDDER"):
        embedder_from_environment(tmp_path)
