"""`memdir grep --container` against a small HTTP server that answers what a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

Run = Callable[..., tuple[int, str, str]]

HIT = {
    "path": "/a.md", "documentId": "D1", "kind": "chunk", "startLine": 3, "endLine": 4, "startByte": 0, "endByte": 9,
    "text": "two\nlines", "score": 0.75, "title": None, "signals": {"lexical": 1.0},
}  # fmt: skip


class FakeServer:
    """Answers (method, path) from `answers`, remembers the requests."""

    def __init__(self) -> None:
        self.answers: dict[tuple[str, str], tuple[int, Any]] = {
            ("GET", "/v3/container-tags/notes"): (200, {"containerTag": "notes"}),
            ("GET", "/v1/files"): (200, {"entries": [{"path": "/a.md"}], "lastSeq": 17, "nextAfter": None, "epoch": "e"}),
            ("POST", "/v1/search"): (200, {"results": [HIT], "total": 1, "pending": [], "timingMs": 1.0}),
        }
        self.requests: list[tuple[str, str, dict[str, list[str]], Any, str | None]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def _serve(self) -> None:
                size = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(size)) if size else None
                parts = urlsplit(self.path)
                outer.requests.append(
                    (self.command, parts.path, parse_qs(parts.query), body, self.headers.get("Authorization"))
                )
                status, answer = outer.answers.get((self.command, parts.path), (404, {"error": "not here"}))
                raw = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

            do_GET = _serve
            do_POST = _serve

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002  the base class names it so
                """Quiet."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self._thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self._thread.join(10)
        self.http.server_close()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeServer]:
    made = FakeServer()
    monkeypatch.setenv("MEMDIR_SERVER_URL", made.url)
    monkeypatch.setenv("MEMDIR_API_KEY", "md_testkey")
    yield made
    made.close()


def test_a_container_is_searched_without_a_mount(run: Run, server: FakeServer) -> None:
    assert run("grep", "--container", "notes", "a question") == (0, "/a.md:3-4:two lines\n", "")
    method, path, _, body, key = server.requests[-1]
    assert (method, path, key) == ("POST", "/v1/search", "Bearer md_testkey")
    assert body == {
        "containerTag": "notes", "q": "a question", "filepath": "/", "limit": 10, "mode": "semantic",
        "waitSeq": 17, "waitMs": 150, "nearest": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "waits_ms"),
    [
        ({"results": [], "pending": ["/a.md"]}, [150, 2350]),
        ({"results": [HIT], "pending": ["/a.md"]}, [150, 2350]),
        ({"results": [HIT | {"weak": True}], "pending": ["/b.md"]}, [150, 2350]),
        ({"results": [HIT], "pending": ["/b.md"]}, [150]),
        ({"results": [], "pending": [f"/{number}" for number in range(17)]}, [150]),
        ({"results": [], "pending": []}, [150]),
        ({"results": [], "pending": [], "halfRead": 1}, [150, 2350]),
        ({"results": [], "pending": [f"/{number}" for number in range(17)], "halfRead": 1}, [150, 2350]),
        ({"results": [], "pending": [], "halfRead": 17}, [150]),
    ],
    ids=[
        "nothing", "only of a file that is read", "only weak", "sure", "an import", "nothing is read",
        "read by words only", "an edit beside an import", "many edits",
    ],
)  # fmt: skip
def test_a_few_files_are_waited_for_before_an_answer_that_has_nothing_sure(
    run: Run, server: FakeServer, answer: dict[str, Any], waits_ms: list[int]
) -> None:
    server.answers["POST", "/v1/search"] = (200, answer | {"total": 1, "timingMs": 1.0})
    run("grep", "--container", "notes", "a question")
    assert [body["waitMs"] for method, _, _, body, _ in server.requests if method == "POST"] == waits_ms


def test_json_has_the_same_fields_as_in_a_mount(run: Run, server: FakeServer) -> None:
    assert json.loads(run("grep", "--container", "notes", "--json", "q")[1]) == [
        {
            "path": "/a.md",
            "start_line": 3,
            "end_line": 4,
            "text": "two\nlines",
            "score": 0.75,
            "kind": "chunk",
            "document_id": "D1",
        }
    ]


@pytest.mark.parametrize(("given", "scope"), [("/work", "/work"), ("work/", "/work"), ("/", "/"), ("a//b/./c.md", "/a/b/c.md")])
def test_the_path_is_a_path_in_the_container(given: str, scope: str, run: Run, server: FakeServer) -> None:
    run("grep", "--container", "notes", "q", given)
    assert server.requests[-1][3]["filepath"] == scope


def test_a_path_that_leaves_the_container_is_refused(run: Run, server: FakeServer) -> None:
    assert run("grep", "--container", "notes", "q", "/a/../../b")[0] == 2
    assert server.requests == []


@pytest.mark.parametrize("more", [[], ["--no-wait"], ["--literal"]])
def test_a_path_where_nothing_stands_is_an_error(more: list[str], run: Run, server: FakeServer) -> None:
    server.answers["GET", "/v1/files"] = (200, {"entries": [], "lastSeq": 17})
    code, out, err = run("grep", "--container", "notes", *more, "q", "work", "/b.md")
    assert (code, out) == (2, "")
    assert err == "memdir: /work: no such file or folder in notes\nmemdir: /b.md: no such file or folder in notes\n"
    assert not any(path == "/v1/search" for _, path, *_ in server.requests)


def test_literal_and_no_wait_reach_the_server(run: Run, server: FakeServer) -> None:
    run("grep", "--container", "notes", "--literal", "--no-wait", "-k", "7", "q")
    assert [path for _, path, *_ in server.requests] == ["/v3/container-tags/notes", "/v1/search"]
    body = server.requests[-1][3]
    assert (body["mode"], body["waitMs"], body["limit"]) == ("literal", 0, 7)


def test_nothing_found_is_1_and_pending_is_said(run: Run, server: FakeServer) -> None:
    server.answers["POST", "/v1/search"] = (200, {"results": [], "total": 0, "pending": ["/a", "/b"]})
    code, out, err = run("grep", "--container", "notes", "q")
    assert (code, out) == (1, "")
    assert "2 files" in err


def test_an_unknown_container_is_an_error(run: Run, server: FakeServer) -> None:
    code, _, err = run("grep", "--container", "ntoes", "q")
    assert code == 2
    assert "no memory called ntoes" in err
    assert len(server.requests) == 1, "nothing else was asked, so nothing was made"


@pytest.mark.parametrize(
    ("status", "answer", "said"),
    [
        (401, {"error": "unknown key"}, "unknown key (HTTP 401)"),
        (500, {"error": "broken"}, "broken (HTTP 500)"),
        (502, b"<html>", "refused POST /v1/search (HTTP 502)"),
        (200, b"not json", "did not answer"),
        (200, [1, 2], "did not answer"),
    ],
)
def test_failures_are_explained_and_never_show_the_key(
    status: int, answer: Any, said: str, run: Run, server: FakeServer
) -> None:
    server.answers["POST", "/v1/search"] = (status, answer)
    code, out, err = run("grep", "--container", "notes", "q")
    assert (code, out) == (2, "")
    assert said in err
    assert "md_testkey" not in err


def test_a_server_that_is_not_there_is_explained(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_SERVER_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("MEMDIR_API_KEY", "md_testkey")
    code, _, err = run("grep", "--container", "notes", "q")
    assert code == 2
    assert "cannot be reached" in err


def test_a_server_without_a_key_is_explained(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMDIR_SERVER_URL", "http://127.0.0.1:1")
    code, _, err = run("grep", "--container", "notes", "q")
    assert code == 2
    assert "MEMDIR_API_KEY" in err


def test_server_status_shows_a_named_server_without_its_key(run: Run, server: FakeServer) -> None:
    out = run("server", "status", "--json")[1]
    assert json.loads(out)["url"] == server.url
    assert "md_testkey" not in out
    assert "chosen by environment" in run("server", "status")[1]


def test_a_named_server_is_not_ours_to_stop(run: Run, server: FakeServer) -> None:
    code, _, err = run("server", "stop")
    assert code == 2
    assert "chosen by environment" in err


def test_server_status_without_a_server(run: Run) -> None:
    code, out, _ = run("server", "status", "--json")
    answer = json.loads(out)
    assert (code, answer["running"], answer["url"], answer["pid"]) == (1, False, None, None)
    assert answer["data_dir"].endswith("/data/server")
    assert run("server", "stop") == (1, "", "memdir: the server was not running\n")
