"""Finding, starting and stopping the local server."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from memdir.client.local import ServerInfo, ServerStartError, ensure_server, running_server, stop_server
from memdir.core.background import read_ready
from memdir.core.errors import UsageError
from memdir.core.paths import AppPaths, app_paths, write_private


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AppPaths:
    monkeypatch.setenv("MEMDIR_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MEMDIR_SERVER_URL", raising=False)
    monkeypatch.delenv("MEMDIR_API_KEY", raising=False)
    return app_paths()


class _Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = json.dumps({"status": "ok", "version": "0.0.1", "pid": 4242}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


@pytest.fixture
def health_url() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Health)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join(timeout=10.0)
    server.server_close()


def state(paths: AppPaths, url: str, pid: int) -> None:
    write_private(paths.server_state_file, json.dumps({"url": url, "pid": pid, "data_dir": "/d"}).encode())
    write_private(paths.credentials_file, json.dumps({"url": url, "api_key": "md_key"}).encode())


def test_no_server_is_found_where_none_ran(paths: AppPaths) -> None:
    assert running_server(paths) is None
    assert stop_server(paths) is False


def test_a_running_server_is_found_by_its_file(paths: AppPaths, health_url: str) -> None:
    state(paths, health_url, 4242)
    assert running_server(paths) == ServerInfo(url=health_url, pid=4242, data_dir="/d", version="0.0.1", api_key="md_key")


def test_a_file_of_a_dead_server_is_not_believed(paths: AppPaths, health_url: str) -> None:
    state(paths, health_url, 4243)
    assert running_server(paths) is None, "somebody else answers there now"
    state(paths, "http://127.0.0.1:1", 4242)
    assert running_server(paths) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": 5}', '{"url": "ftp://x", "pid": 1}', '{"url": "http://", "pid": 1}'])
def test_a_damaged_file_is_no_server(paths: AppPaths, text: str) -> None:
    write_private(paths.server_state_file, text.encode())
    assert running_server(paths) is None


def test_the_environment_names_another_server_and_nothing_is_started(paths: AppPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_SERVER_URL", "https://memory.example/")
    with pytest.raises(UsageError, match="MEMDIR_API_KEY"):
        ensure_server(paths)
    monkeypatch.setenv("MEMDIR_API_KEY", "md_other")
    found = ensure_server(paths)
    assert (found.url, found.api_key, found.is_local) == ("https://memory.example", "md_other", False)
    assert not paths.server_dir.exists()
    with pytest.raises(UsageError, match="not ours to stop"):
        stop_server(paths)
    monkeypatch.setenv("MEMDIR_SERVER_URL", "memory.example")
    with pytest.raises(UsageError, match="http"):
        running_server(paths)


def test_a_key_is_not_in_the_text_of_the_info() -> None:
    info = ServerInfo(url="http://x", pid=1, data_dir="", version="", api_key="md_secret")
    assert "md_secret" not in f"{info!r} {info}"


def test_ten_starters_at_once_bring_up_one_server_that_stops_when_asked(paths: AppPaths) -> None:
    found: list[ServerInfo] = []
    threads = [threading.Thread(target=lambda: found.append(ensure_server(paths, timeout_s=90.0))) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=120.0)
    try:
        assert len(found) == 10
        assert len({(info.url, info.pid) for info in found}) == 1
        assert found[0].api_key
    finally:
        assert stop_server(paths, timeout_s=60.0) is True
    assert running_server(paths) is None


def test_a_server_that_cannot_start_says_why(paths: AppPaths) -> None:
    paths.data_dir.mkdir(parents=True)
    paths.server_dir.write_text("a file where the folder should be")
    with pytest.raises(ServerStartError, match="did not start") as caught:
        ensure_server(paths, timeout_s=60.0)
    assert caught.value.hint


def test_a_ready_pipe_gives_the_first_report_an_error_text_or_nothing() -> None:
    import time

    for sent, closed, expected in ((b"ready\n", False, "ready"), (b"no\nhint\n", True, "no\nhint"), (b"", True, "")):
        reading, writing = os.pipe()
        os.write(writing, sent)
        if closed:
            os.close(writing)
        assert read_ready(reading, time.monotonic() + 5.0) == expected
        os.close(reading)
        if not closed:
            os.close(writing)
    reading, writing = os.pipe()
    assert read_ready(reading, time.monotonic() + 0.05) is None
    os.close(reading)
    os.close(writing)


def test_a_folder_that_cannot_be_written_is_said_plainly(paths: AppPaths) -> None:
    paths.state_dir.parent.mkdir(parents=True)
    paths.state_dir.write_bytes(b"a file where a folder belongs")
    with pytest.raises(ServerStartError, match=r"cannot be started: .*state"):
        ensure_server(paths)
