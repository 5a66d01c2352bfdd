"""`rerank` in a search: the order of the user's own reranker, or the one there was, and why."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir.retrieval.rerank import ENV_RERANKER
from memdir.server.services.search.reranking import NONE_SET
from tests.retrieval.test_rerank import endpoint
from tests.server.test_files_http import put
from tests.server.test_recall_http import post
from tests.server.test_search_http import done, search
from tests.servers import start


@pytest.mark.promise("retrieval.rerank")
def test_a_reranker_orders_anew_and_when_it_fails_the_order_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = 200

    def answer(body: dict[str, Any]) -> tuple[int, bytes]:
        liked = [{"index": at, "score": 0.9 if "gravel" in text else 0.1} for at, text in enumerate(body["texts"])]
        return status, json.dumps(liked).encode()

    with endpoint(answer) as (url, asked):
        monkeypatch.setenv(ENV_RERANKER, url)
        running = start(tmp_path / "home", "--port", "0")
        try:
            with running.client() as client:
                put(client, "t", "/first.md", b"The walnut tree stands in the walnut garden.\n")
                put(client, "t", "/second.md", b"A walnut tree stands on gravel.\n")
                done(client, "t")
                plain = search(client, "t", "walnut tree garden", threshold=0.0)
                assert [hit["path"] for hit in plain["results"]] == ["/first.md", "/second.md"]
                assert (plain["reranking"], asked) == (None, [])
                anew = search(client, "t", "walnut tree garden", rerank=True, explain=True)
                assert [(hit["path"], hit["score"]) for hit in anew["results"]] == [("/second.md", 0.9), ("/first.md", 0.1)]
                assert anew["reranking"] == {"applied": True, "reason": None}
                assert anew["stagesMs"]["rerank"] > 0
                calls = ("/v3/search", {}), ("/v4/search", {"searchMode": "documents"})
                for path, more in calls:
                    found = post(client, path, q="walnut tree garden", containerTag="t", rerank=True, **more)
                    assert [result["filepath"] for result in found["results"]] == ["/second.md", "/first.md"]
                    assert found["reranking"]["applied"] is True
                status = 503
                kept = search(client, "t", "walnut tree garden", rerank=True)
                assert [hit["path"] for hit in kept["results"]] == ["/first.md", "/second.md"]
                assert kept["reranking"] == {"applied": False, "reason": "the reranker answered 503"}
        finally:
            running.stop(signal.SIGKILL)


def test_without_a_reranker_the_answer_says_so(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a.md", b"The walnut tree.\n")
    found = search(client, tag, "walnut", rerank=True)
    assert [hit["path"] for hit in found["results"]] == ["/a.md"]
    assert found["reranking"] == {"applied": False, "reason": NONE_SET}
