"""Host, Origin, keys, sizes: what never reaches a route."""

from __future__ import annotations

import hashlib
import json
import socket
import sqlite3
from collections.abc import Iterator

import httpx
import pytest
from fastapi.routing import APIRoute

from memdir.core.ids import new_secret
from memdir.server.guard import BODY_MAX_BYTES
from memdir.server.routes import files, service, v3, v4
from tests.server.conftest import ServerProcess

CANARY = "canary-5d1f0b"


def every_route() -> Iterator[tuple[str, str]]:
    for router in (files.router, service.router, v3.router, v4.router):
        for route in router.routes:
            assert isinstance(route, APIRoute)
            path = route.path.replace("{path:path}", f"{CANARY}.md").replace("{name}", CANARY).replace("{tag}", CANARY)
            for method in sorted(route.methods):
                if path != "/healthz":
                    yield method, path


ROUTES = sorted(every_route())


@pytest.fixture(scope="module")
def limited(server: ServerProcess) -> str:
    """A key of another organisation, written beside the running server."""
    secret = new_secret("md")
    with sqlite3.connect(server.home / "data" / "server" / "memdir.db") as db:
        db.execute(
            "insert into api_key (id, org_id, name, secret_hash, scopes, created_at_ms) values (?, 'other', 'x', ?, ?, 0)",
            (
                new_secret("id"),
                hashlib.sha256(secret.encode()).digest(),
                json.dumps({"containers": ["*"], "actions": ["read", "write"]}),
            ),
        )
    db.close()
    return secret


@pytest.fixture(scope="module")
def planted(server: ServerProcess) -> None:
    with server.client() as client:
        body = {"content": f"{CANARY} content", "containerTag": CANARY, "filepath": f"/{CANARY}.md", "customId": CANARY}
        assert client.post("/v3/documents", json=body).status_code == 200


def call(client: httpx.Client, method: str, path: str) -> httpx.Response:
    body = {
        "containerTag": CANARY,
        "containerTags": [CANARY],
        "q": CANARY,
        "content": "x",
        "fromPath": f"/{CANARY}.md",
        "toPath": "/x.md",
        "operations": [{"op": "delete", "path": f"/{CANARY}.md"}],
        "contents": ["x"],
    }
    content = None if method in ("GET", "HEAD") else json.dumps(body).encode()
    headers = {} if content is None else {"Content-Type": "application/json"}
    return client.request(method, path, params={"containerTag": CANARY}, content=content, headers=headers)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_no_route_answers_without_a_known_key(server: ServerProcess, planted: None, method: str, path: str) -> None:
    with httpx.Client(base_url=server.url, trust_env=False, verify=False, timeout=30.0) as client:
        for authorization in (None, "", "Bearer", "Basic eA==", "Bearer md_wrong", "Bearer " + "x" * 5000, "Bearer ä"):
            client.headers.pop("authorization", None)
            if authorization is not None:
                client.headers.update({"Authorization": authorization.encode("latin-1")})  # type: ignore[arg-type]
            answer = call(client, method, path)
            assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), authorization
            assert CANARY not in answer.text
            if method != "HEAD":
                assert "API key" in answer.json()["error"]


@pytest.mark.parametrize(
    ("method", "path"), [route for route in ROUTES if not route[1].endswith(("/session", "/capabilities"))]
)
def test_a_key_of_another_organisation_sees_and_changes_nothing(
    server: ServerProcess, planted: None, limited: str, method: str, path: str
) -> None:
    with server.client(Authorization=f"Bearer {limited}") as client:
        answer = call(client, method, path)
    assert f"{CANARY} content" not in answer.text
    with server.client() as owner:
        found = owner.get(f"/v1/files/{CANARY}.md", params={"containerTag": CANARY})
    assert found.text == f"{CANARY} content"


def test_a_key_for_one_container_is_refused_at_the_others(server: ServerProcess, planted: None) -> None:
    secret = new_secret("md")
    scopes = {"containers": ["mine"], "actions": ["read"]}
    with sqlite3.connect(server.home / "data" / "server" / "memdir.db") as db:
        db.execute(
            "insert into api_key (id, org_id, name, secret_hash, scopes, created_at_ms) values (?, 'local', 'x', ?, ?, 0)",
            (new_secret("id"), hashlib.sha256(secret.encode()).digest(), json.dumps(scopes)),
        )
    db.close()
    with server.client(Authorization=f"Bearer {secret}") as client:
        for method, path in ROUTES:
            if path.endswith(("/session", "/capabilities")):
                continue
            answer = call(client, method, path)
            listing = path in ("/v3/documents/list", "/v3/documents/batch", "/v3/container-tags/list", "/v3/connections/list")
            assert answer.status_code in (400, 403, 404, 501) or listing, (method, path, answer.status_code, answer.text)
            assert f"{CANARY} content" not in answer.text
        with server.client() as owner:
            assert owner.get("/v1/files", params={"containerTag": "mine"}).status_code == 200
        assert client.get("/v1/files", params={"containerTag": "mine"}).status_code == 200
        assert client.put("/v1/files/a", params={"containerTag": "mine"}, content=b"x").status_code == 403


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
