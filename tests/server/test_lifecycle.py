"""One process: start, refuse a second, stop, crash, start again."""

from __future__ import annotations

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from memdir.core.clock import SystemClock
from memdir.store.sqlite.store import SqliteStore
from tests.server.test_files_http import put
from tests.servers import launch, start


def test_a_second_server_on_the_same_data_is_refused_and_the_first_goes_on(tmp_path: Path) -> None:
    first = start(tmp_path, "--port", "0")
    try:
        process, said = launch(tmp_path, "--port", "0")
        assert f"another server (pid {first.process.pid})" in said
        assert process.wait(timeout=30) == 2
        with first.client() as client:
            assert client.get("/healthz").json()["pid"] == first.process.pid
    finally:
        assert first.stop() == 0


def test_a_taken_port_is_an_error_and_no_wanted_port_takes_another(tmp_path: Path) -> None:
    first = start(tmp_path / "a")
    try:
        port = httpx.URL(first.url).port
        process, said = launch(tmp_path / "b", "--port", str(port))
        assert f"cannot listen on 127.0.0.1 port {port}" in said
        assert process.wait(timeout=30) == 2
        second = start(tmp_path / "b")
        assert second.url != first.url
        assert second.stop() == 0
    finally:
        assert first.stop() == 0


@pytest.mark.promise("parts.keys")
def test_state_and_credentials_are_private_and_the_key_survives_restarts(tmp_path: Path) -> None:
    first = start(tmp_path, "--port", "0")
    state = json.loads((tmp_path / "state" / "server.json").read_text())
    assert state["pid"] == first.process.pid
    assert set(state) == {"url", "pid", "data_dir", "version", "started_at_ms"}
    for name in ("state/server.json", "config/credentials.json", "data/server/memdir.db", "state/server.log"):
        assert (tmp_path / name).stat().st_mode & 0o777 == 0o600
    assert first.stop() == 0
    assert not (tmp_path / "state" / "server.json").exists()
    second = start(tmp_path, "--port", "0")
    assert second.key == first.key
    assert second.stop(signal.SIGINT) == 0


def test_a_stop_ends_long_polls_at_once(tmp_path: Path) -> None:
    running = start(tmp_path, "--port", "0")
    with ThreadPoolExecutor(1) as pool, running.client() as client:
        put(client, "t", "/a")
        waiting = pool.submit(client.get, "/v1/changes", params={"containerTag": "t", "since": 1, "wait": 60})
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.5)
        began = time.monotonic()
        assert running.stop() == 0
        assert waiting.result(timeout=20).json()["changes"] == []
        assert time.monotonic() - began < 20


def test_kill_nine_loses_no_acknowledged_put_and_the_work_goes_on(tmp_path: Path) -> None:
    running = start(tmp_path, "--port", "0")
    acknowledged: dict[str, bytes] = {}
    with running.client() as client:
        for number in range(120):
            path, content = f"/d/{number}.md", f"Note {number} speaks about harbour cranes.".encode()
            if number % 40 == 7:
                content *= 10_000
            assert put(client, "t", path, content).status_code == 201
            acknowledged[path] = content
        epoch = client.get("/v1/changes", params={"containerTag": "t"}).json()["epoch"]
    assert running.stop(signal.SIGKILL) == -signal.SIGKILL
    again = start(tmp_path, "--port", "0")
    try:
        with again.client() as client:
            page = client.get("/v1/changes", params={"containerTag": "t"}).json()
            assert (page["lastSeq"], page["epoch"]) == (120, epoch)
            for path, content in acknowledged.items():
                assert client.get(f"/v1/files{path}", params={"containerTag": "t"}).content == content
            body = {"containerTag": "t", "q": "harbour cranes", "waitSeq": 120, "waitMs": 30_000}
            found = client.post("/v1/search", json=body).json()
            assert found["pending"] == []
            assert found["results"]
    finally:
        assert again.stop() == 0
    with_store = SqliteStore.open(tmp_path / "data" / "server", clock=SystemClock())
    try:
        assert with_store.db.integrity_errors() == []
    finally:
        with_store.close()


def test_a_broken_database_is_an_error_and_not_a_stack_trace(tmp_path: Path) -> None:
    folder = tmp_path / "data" / "server"
    folder.mkdir(parents=True)
    (folder / "memdir.db").write_bytes(b"this is no database" * 1000)
    process, said = launch(tmp_path, "--port", "0")
    assert "is not a SQLite database" in said
    assert process.wait(timeout=30) == 2


def test_credentials_that_do_not_fit_are_made_anew(tmp_path: Path) -> None:
    (tmp_path / "config").mkdir(parents=True)
    (tmp_path / "config" / "credentials.json").write_text('{"api_key": "md_from_elsewhere"}')
    running = start(tmp_path, "--port", "0")
    assert running.key != "md_from_elsewhere"
    with running.client() as client:
        assert client.get("/v3/session").status_code == 200
    assert running.stop() == 0
