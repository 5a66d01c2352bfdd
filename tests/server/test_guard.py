"""Host, Origin, keys, sizes: what never reaches a route."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from memdir.server.http.guard import BODY_MAX_BYTES
from tests.server.test_matrix import every_route
from tests.servers import ServerProcess, start


@pytest.mark.promise("keys.origins")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1", 200),
        ("127.0.0.1:{port}", 200),
        ("localhost:{port}", 200),
        ("LOCALHOST:1", 200),
        ("[::1]:{port}", 200),
        ("evil.example", 403),
        ("evil.example:{port}", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:{port}", 403),
        ("127.0.0.1:{port}@evil.example", 403),
        ("127.0.0.2", 403),
        ("0.0.0.0", 403),
        ("2130706433", 403),
        ("127.0.0.1:http", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/v1/capabilities"])
def test_the_host_must_be_ours(server: ServerProcess, host: str, status: int, path: str) -> None:
    port = httpx.URL(server.url).port
    with server.client(Host=host.format(port=port)) as client:
        assert client.get(path).status_code == status


@pytest.mark.promise("keys.origins")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Origin": "{url}"}, 200),
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Origin": "null"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://127.0.0.1.evil.example"}, 403),
        ({"Origin": "{url}.evil.example"}, 403),
        ({"Origin": "chrome-extension://abc"}, 403),
        ({"Origin": ""}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Origin": "{url}", "Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/healthz", "/v1/capabilities"])
def test_requests_of_other_web_pages_are_refused(
    server: ServerProcess, headers: dict[str, str], status: int, path: str
) -> None:
    with server.client(**{name: value.format(url=server.url) for name, value in headers.items()}) as client:
        answer = client.get(path)
        assert answer.status_code == status
        assert "access-control-allow-origin" not in answer.headers


def test_a_rebound_name_is_refused_even_with_the_right_key(server: ServerProcess) -> None:
    with server.client(Host="rebound.example", Origin="http://rebound.example") as client:
        assert client.get("/v3/session").status_code == 403


@pytest.mark.promise("keys.origins")
def test_every_route_refuses_a_rebound_name_and_a_foreign_page(server: ServerProcess) -> None:
    """The server's port is the only one that memdir opens; its mounts talk over Unix sockets."""
    foreign = (
        {"Host": "rebound.example"},
        {"Host": "rebound.example", "Origin": "http://rebound.example"},
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
    )
    for headers in foreign:
        with server.client(**headers) as client:
            for method, path in sorted(every_route()):
                answer = client.request(method, path.replace("{path:path}", "x"), params={"containerTag": "t"})
                assert answer.status_code == 403, (method, path, headers)


def test_further_names_and_named_proxies_are_believed(tmp_path: Path) -> None:
    arguments = ("--port", "0", "--allowed-host", "Memory.Example", "--trusted-proxy", "127.0.0.1")
    server = start(tmp_path / "home", *arguments)
    for headers, status in (
        ({"Host": "memory.example"}, 200),
        ({"Host": "memory.example:8443", "Origin": "https://memory.example:8443"}, 200),
        ({"Host": "inner:1", "X-Forwarded-Host": "memory.example", "Origin": "https://memory.example"}, 200),
        ({"Host": "127.0.0.1", "X-Forwarded-Host": "evil.example"}, 403),
        ({"Host": "other.example"}, 403),
        ({"Host": "memory.example", "Origin": "https://other.example"}, 403),
    ):
        with server.client(**headers) as client:
            assert client.get("/v1/capabilities").status_code == status, headers
    with server.client(**{"X-Forwarded-For": "203.0.113.9"}) as client:
        client.get("/v3/session")
    assert server.stop() == 0
    with sqlite3.connect(server.home / "data" / "server" / "memdir.db") as db:
        assert db.execute("select address from audit where call = 'GET /v3/session'").fetchall() == [("203.0.113.9",)]
    db.close()


def test_two_host_headers_are_one_too_many(server: ServerProcess) -> None:
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 0), timeout=30) as raw:
        raw.sendall(b"GET /healthz HTTP/1.1\r\nHost: evil.example\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 400")


def test_a_body_past_the_limit_is_refused_before_it_is_read(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    answer = client.post("/v3/documents", content=b"x" * (BODY_MAX_BYTES + 1), headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "larger" in answer.json()["error"]
    pieces = (b"x" * 1024 * 1024 for _ in range(BODY_MAX_BYTES // 1024 // 1024 + 2))
    answer = client.post("/v3/documents", content=pieces, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b'{"q": 1}', 400),
        (b"[" * 100_000, 400),
        (b'{"containerTag":"t","q":""}', 400),
        (b'{"containerTag":"t","q":"\\ud800"}', 400),
        (b'{"containerTag":"t","q":"x","limit":100000}', 400),
        (b'{"containerTag":"../t","q":"x"}', 400),
        (b'{"containerTag":"t","q":"x","filepath":"/../x"}', 400),
        (b'{"containerTag":"t","q":"x","waitMs":1e309}', 400),
    ],
)
def test_a_request_of_the_wrong_shape_says_what_is_wrong(client: httpx.Client, content: bytes, status: int) -> None:
    answer = client.post("/v1/search", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == status
    assert answer.json()["error"]


def test_an_unknown_route_and_method_are_json_errors(client: httpx.Client) -> None:
    assert client.get("/v9/nothing").status_code == 404
    assert "no GET /v9/nothing" in client.get("/v9/nothing").json()["error"]
    assert client.put("/healthz").status_code == 405
    assert client.get("/docs").status_code == 404


def test_no_key_is_in_the_log_or_the_state_file(server: ServerProcess, client: httpx.Client) -> None:
    client.get("/v1/capabilities", params={"api_key": server.key})
    for file in (server.home / "state").rglob("*"):
        assert not file.is_file() or server.key not in file.read_text(errors="replace")


def test_what_the_server_keeps_is_private(server: ServerProcess) -> None:
    for file in server.home.rglob("*"):
        if file.is_symlink():
            continue
        assert file.stat().st_mode & 0o077 == 0, file


def test_an_upload_that_is_broken_off_is_no_error_of_the_server(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 0), timeout=30) as raw:
        raw.sendall(
            f"PUT /v1/files/broken-off.md?containerTag={tag} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            f"Authorization: Bearer {server.key}\r\nContent-Length: 100000\r\n\r\nhalf of it".encode()
        )
        raw.shutdown(socket.SHUT_WR)
        assert raw.recv(4096) == b""
    assert client.get("/healthz").status_code == 200
    assert client.get("/v1/files/broken-off.md", params={"containerTag": tag}).status_code == 404
    logged = "".join(file.read_text(errors="replace") for file in (server.home / "state").rglob("*.log"))
    assert "listening on" in logged
    assert "broken-off" not in logged


@pytest.mark.promise("real.connections")
def test_many_unfinished_heads_keep_nobody_out(server: ServerProcess) -> None:
    """Each holds a place of the server's; the oldest of a client give way."""
    address = urlsplit(server.url)
    assert address.hostname is not None
    assert address.port is not None
    with ExitStack() as held:
        for _ in range(600):
            opened = held.enter_context(socket.create_connection((address.hostname, address.port), timeout=10))
            opened.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1")
        with server.client() as client:
            assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_over_the_limit_is_answered_and_not_reset(server: ServerProcess, announced: bool) -> None:
    size = BODY_MAX_BYTES + (8 << 20)
    pieces = (b"x" * (1 << 20) for _ in range(size >> 20))
    with server.client() as client:
        content: Any = b"x" * size if announced else pieces
        answer = client.post("/v3/documents", content=content, headers={"Content-Type": "application/json"})
    assert answer.status_code == 413
    assert "larger than" in answer.json()["error"]
