"""`memdir server reindex` beside a running server, after a kill, and without one."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir.core.clock import FakeClock
from memdir.retrieval.derived_indexes import derived_indexes
from memdir.retrieval.embed import StaticEmbedder
from memdir.store.sqlite.store import SqliteStore
from tests.retrieval.conftest import World
from tests.server.test_search_http import done
from tests.servers import ServerProcess, start

WAIT_S = 60.0
NOTES = 12


def reindex(home: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    ran = subprocess.run(
        [sys.executable, "-m", "memdir.cli", "server", "reindex", *arguments, "--json"],
        env={**os.environ, "MEMDIR_HOME": str(home)},
        capture_output=True,
        text=True,
        timeout=WAIT_S,
        check=False,
    )
    return ran.returncode, json.loads(ran.stdout or "{}"), ran.stderr


def found(client: httpx.Client, tag: str) -> list[str]:
    answer = client.post("/v1/search", json={"containerTag": tag, "q": "boiler valve", "limit": 5})
    assert answer.status_code == 200, answer.text
    return [f"{hit['path']}:{hit['startLine']}" for hit in answer.json()["results"]]


def put_notes(client: httpx.Client, tag: str) -> None:
    for number in range(NOTES):
        text = f"# Note {number}\n\nThe boiler number {number} has a new valve.\n"
        answer = client.put(f"/v1/files/memory/n{number}.md", params={"containerTag": tag}, content=text)
        assert answer.status_code < 300


@pytest.mark.long
def test_passages_that_lost_their_vectors_get_them_again_while_searches_are_answered(tmp_path: Path) -> None:
    server: ServerProcess = start(tmp_path / "home", "--port", "0")
    try:
        with server.client() as client:
            put_notes(client, "t")
            done(client, "t")
            before = found(client, "t")
            assert before
        assert server.stop() == 0
        folder = server.home / "data" / "server"
        store = SqliteStore.open(folder)
        with store.db.write() as connection:
            connection.execute("delete from chunk_vector where chunk_id % 2 = 0")
        store.close()
        server = start(server.home, "--port", "0")
        with server.client() as client:
            asked = client.post(
                "/v1/indexes:rebuild",
                json={"containerTag": "t", "what": ["lexical", "vectors", "trigrams", "chunks", "memories"]},
            )
            assert asked.status_code == 202, asked.text
            assert found(client, "t"), "answered from what is there"
        server.stop(signal.SIGKILL)
        server = start(server.home, "--port", "0")
        code, answer, said = reindex(server.home, "--container", "t", "--what", "chunks")
        assert (code, answer["documents_left"], answer["failed"]) == (0, 0, []), said
        with server.client() as client:
            assert found(client, "t") == before
            refused = client.post("/v1/indexes:rebuild", json={"containerTag": "no such", "what": ["chunks"]})
            assert refused.status_code in (400, 404)
            key = client.post("/v1/keys", json={"name": "reader", "actions": ["read", "write"]}).json()["key"]
        with server.client(Authorization=f"Bearer {key}") as other:
            assert other.get("/v1/indexes").status_code == 403
            assert other.post("/v1/indexes:rebuild", json={"what": ["chunks"]}).status_code == 403
        assert server.stop() == 0
        store = SqliteStore.open(folder)
        counts = store.db.all("select model_id, count(*) from chunk_vector group by model_id")
        chunks = store.db.all("select count(*) from chunk")[0][0]
        store.close()
        assert [count for _, count in counts] == [chunks, chunks]
        code, answer, said = reindex(server.home)
        assert (code, answer["builds"], answer["builds_done"]) == (0, answer["builds_done"], answer["builds"]), said
    finally:
        server.stop(signal.SIGKILL)


@pytest.mark.promise("retrieval.reindex")
def test_files_are_made_anew_beside_a_running_server_and_every_search_meanwhile_is_answered(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    put_notes(client, tag)
    log = "\n".join(" ".join(str(number) for number in range(10, 50)) for _ in range(300))
    assert client.put("/v1/files/log.txt", params={"containerTag": tag}, content=log).status_code < 300
    done(client, tag)
    before = found(client, tag)
    assert before
    folder = server.home / "data" / "server"
    with closing(sqlite3.connect(f"file:{folder / 'memdir.db'}?mode=ro", uri=True)) as database:
        ((container,),) = database.execute("select id from container where tag = ?", (tag,)).fetchall()
    files: list[set[str]] = []
    for _ in range(2):
        with ThreadPoolExecutor(1) as beside:
            run = beside.submit(reindex, server.home, "--container", tag)
            while wait([run], timeout=0.2).not_done:
                assert found(client, tag) == before
        code, answer, said = run.result()
        assert (code, answer["builds"], answer["failed"]) == (0, answer["builds_done"], []), said
        assert answer["builds"] > 0
        files.append({file.name for file in (folder / "indexes" / str(container) / "lexical").glob("*.idx")})
    assert files[0], "12,000 words are kept in a file"
    assert not files[0] & files[1]
    assert found(client, tag) == before


@pytest.mark.parametrize(
    ("arguments", "code"), [(["--what", "everything"], 2), (["--no-wait"], 2), (["--container", "nobody's"], 2)]
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: list[str], code: int) -> None:
    store = SqliteStore.open(tmp_path / "data" / "server")
    store.close()
    got, answer, _ = reindex(tmp_path, *arguments)
    assert got == code
    assert "error" in answer


@pytest.mark.promise("retrieval.index-check")
def test_the_check_finds_an_index_that_disagrees_and_a_repair_takes_it_away(tmp_path: Path) -> None:
    static = StaticEmbedder()
    store = SqliteStore.open(tmp_path / "data" / "server")
    world = World(store, FakeClock())
    for number in range(40):
        world.put(f"/n{number}.md", f"The boiler number {number} has a new valve.", static)
    with store.db.write() as connection:
        connection.execute("delete from document where container_id = 2")
    for index in derived_indexes(store):
        index.rebuild(1)
        index.close()
    store.close()
    files = sorted((tmp_path / "data" / "server" / "indexes" / "1" / "lexical").iterdir(), key=lambda file: file.stat().st_size)
    os.truncate(files[-1], files[-1].stat().st_size // 2)

    def kinds(*arguments: str) -> tuple[int, set[str]]:
        ran = subprocess.run(
            [sys.executable, "-m", "memdir.cli", "server", "check", *arguments, "--json"],
            env={**os.environ, "MEMDIR_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        found = json.loads(ran.stdout)["findings"]
        return ran.returncode, {finding["kind"] for finding in found if finding["kind"].startswith("index-")}

    assert kinds("--deep")[1] == {"index-damaged"}
    assert kinds("--repair", "--deep")[1] == {"index-damaged"}
    assert kinds("--deep")[1] == set()
