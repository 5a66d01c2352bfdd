"""kill -9 of a real server while it works through an import of short documents, several of them in each of its transactions."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import httpx
import pytest

from memdir.store.sqlite.store import SqliteStore
from tests.server.conftest import until
from tests.servers import start

TAG = "import"
DOCUMENTS = 80
LEFT_AT_KILLS = (70, 30)
"""How many documents are still in the pipeline when the server is killed."""
WAIT_S = 120.0


def said(number: int) -> str:
    return f"Entry {number}: the keeper of house {number} prefers pump {number * 7} over all the others."


def left(client: httpx.Client) -> int:
    answer = client.get("/v3/documents/processing", params={"containerTag": TAG, "limit": 1})
    assert answer.status_code == 200, answer.text
    count: int = answer.json()["totalCount"]
    return count


@pytest.mark.promise("retrieved.killed", "pipeline.resumes")
def test_killed_in_the_middle_of_batches_everything_is_indexed_once_and_the_check_is_clean(tmp_path: Path) -> None:
    home = tmp_path / "home"
    server = start(home, "--port", "0")
    try:
        with server.client() as client:
            contents = [said(number) for number in range(DOCUMENTS)]
            answer = client.post("/v3/documents/batch", json={"contents": contents, "containerTag": TAG})
            assert (answer.status_code, answer.json()["success"]) == (200, DOCUMENTS)
            ids = {item["id"]: number for number, item in enumerate(answer.json()["results"])}
        for few in LEFT_AT_KILLS:
            with server.client() as client:
                until(lambda few=few, client=client: left(client) <= few)  # type: ignore[misc]
            assert server.stop(signal.SIGKILL) == -signal.SIGKILL
            server = start(home, "--port", "0")
        with server.client() as client:
            until(lambda: left(client) == 0)
            found = client.post("/v4/search", json={"q": "pump 343", "containerTag": TAG, "searchMode": "documents"}).json()
            assert "house 49 " in str(found["results"][0])
    finally:
        assert server.stop() == 0
    _indexed_once(home, ids)
    checked = subprocess.run(
        [sys.executable, "-m", "memdir.cli", "server", "check", "--deep", "--json"],
        env={**os.environ, "MEMDIR_HOME": str(home)},
        capture_output=True,
        timeout=WAIT_S,
        check=False,
    )
    assert (checked.returncode, json.loads(checked.stdout)) == (0, {"findings": [], "left": 0}), checked.stderr.decode()


def _indexed_once(home: Path, ids: dict[str, int]) -> None:
    """Each document has its one passage with a vector of each model, and its memory once."""
    store = SqliteStore.open(home / "data" / "server")
    try:
        container = store.containers.get("local", TAG)
        for document_id, number in ids.items():
            document = store.documents.get(document_id)
            assert document is not None
            assert (document.status, document.error) == ("done", None)
            (stored,) = store.chunks().document_chunks(document_id)
            assert stored.chunk.text == said(number)
        vectors = store.db.all("select model_id, count(*), count(distinct chunk_id) from chunk_vector group by model_id")
        assert [(count, passages) for _, count, passages in vectors] == [(DOCUMENTS, DOCUMENTS)] * 2
        texts = Counter(memory.candidate.text for memory in store.memories.latest(container.id))
        assert set(texts.values()) <= {1}
        assert set(texts) <= {said(number) for number in range(DOCUMENTS)}
        assert store.dead_letters.listing([container.id], failed=True, limit=10) == []
        assert store.dead_letters.stuck() == []
    finally:
        store.close()
