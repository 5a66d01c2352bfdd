"""Every route, asked by everybody who may not have what it gives: the status is written down here, contents never show.

A route without a row fails: whoever adds one says here what strangers get.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from fastapi.routing import APIRoute

from memdir.api.examples import EXAMPLES
from memdir.core.ids import new_id, new_secret
from memdir.server.app import routed
from memdir.server.dispatcher import Dispatcher
from memdir.server.engine import Engine
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import Store
from tests.server.conftest import until
from tests.servers import ServerProcess

CANARY = "canary-7be1e5"
OPEN = {("GET", "/healthz"), ("GET", "/openapi.json")}
REFUSED = {401}


def every_route() -> set[tuple[str, str]]:
    """Method and path of each route of the application, also of those that the OpenAPI document does not show."""
    dispatcher = Dispatcher()
    try:
        app = routed(cast(Store, SqliteStore.__new__(SqliteStore)), dispatcher, cast(Engine, None))
        return {
            (method, route.path)
            for router in app.router.routes
            for route in getattr(getattr(router, "original_router", None), "routes", [router])
            if isinstance(route, APIRoute)
            for method in route.methods
        }
    finally:
        dispatcher.shutdown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What each stranger gets: `org`, a key for everything in another organisation; `container`, a key for another container;
    `folder`, one for another folder of the container; `reader`, one that may only read, None where it may."""

    org: set[int]
    container: set[int]
    folder: set[int]
    reader: set[int] | None = None
    params: dict[str, str] | None = None
    body: dict[str, Any] | None = None
    content: bytes | None = None
    """Sent as it is, in place of JSON."""


def archive() -> bytes:
    """A folder with a file that stands in the container."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as files:
        files.writestr("work/plan.md", "overwritten")
    return made.getvalue()


def row(org: int | set[int], container: int, folder: int, reader: int | None = None, **request: Any) -> Row:
    strangers = {org} if isinstance(org, int) else org
    reading = None if reader is None else {reader}
    return Row(org=strangers, container={container}, folder={folder}, reader=reading, **request)


AT = {"containerTag": "notes"}
OWN = {200, 404}
"""A stranger of another organisation may have a container of the same name there, and gets that."""
ADMIN = row(403, 403, 403, 403)
NOBODY = row(501, 501, 501)
"""Not offered to anybody."""
ROWS: dict[tuple[str, str], Row] = {
    ("GET", "/v1/capabilities"): row(200, 200, 200),
    ("GET", "/v3/session"): row(200, 200, 200),
    # files
    ("GET", "/v1/files"): row(200, 403, 200, params=AT),
    ("GET", "/v1/files/{path:path}"): row(404, 403, 403, params=AT),
    ("HEAD", "/v1/files/{path:path}"): row(404, 403, 403, params=AT),
    ("PUT", "/v1/files/{path:path}"): row({200, 201}, 403, 403, 403, params=AT),
    ("DELETE", "/v1/files/{path:path}"): row(404, 403, 403, 403, params=AT),
    ("POST", "/v1/files:move"): row(404, 403, 403, 403),
    ("POST", "/v1/files:batch"): row(200, 403, 200, 403),  # each operation has a status of its own, see below
    ("POST", "/v1/files:read"): row(OWN, 403, 200),  # each file has a status of its own, see below
    ("GET", "/v1/changes"): row(200, 403, 200, params=AT),
    ("GET", "/v1/siblings"): row(OWN, 403, 200, params=AT),
    ("GET", "/v1/siblings/text"): row(404, 403, 404, params=AT | {"contentHash": "0" * 64}),
    ("POST", "/v1/search"): row(200, 403, 403),
    ("GET", "/v1/export"): row(OWN, 403, 200, params=AT),
    ("POST", "/v1/import"): row({200, 409}, 403, 403, 403, params=AT | {"merge": "replace"}, content=archive()),
    ("GET", "/v1/versions"): row(404, 403, 403, params=AT | {"path": "/work/plan.md"}),
    ("DELETE", "/v1/versions"): row(404, 403, 403, 403, params=AT | {"path": "/work/plan.md"}),
    ("GET", "/v1/versions:deleted"): row(OWN, 403, 200, params=AT),
    ("GET", "/v1/versions:at"): row(OWN, 403, 200, params=AT | {"at": "2026-11-22T10:00:00Z"}),
    ("GET", "/v1/versions:changes"): row(OWN, 403, 200, params=AT),
    ("POST", "/v1/versions:restore"): row(404, 403, 403, 403),
    ("GET", "/v1/versions/{version}"): row(404, 403, 404, params=AT),
    ("GET", "/v1/jobs"): row(200, 403, 403, params=AT),
    ("POST", "/v1/jobs:retry"): row(OWN, 403, 403, 403),
    ("GET", "/v1/indexes"): row(200, 403, 403, 403),
    ("POST", "/v1/indexes:rebuild"): row(202, 403, 403, 403),
    # documents
    ("POST", "/v3/documents"): row(200, 403, 403, 403),
    ("POST", "/v3/documents/batch"): row(200, 200, 200, 200),  # each item has a status of its own, see below
    ("POST", "/v3/documents/file"): row(400, 400, 400, 400),  # without a file; the service is that of POST /v3/documents
    ("POST", "/v3/documents/list"): row(200, 403, 403),
    ("GET", "/v3/documents/processing"): row(200, 403, 200, params=AT),
    ("DELETE", "/v3/documents/bulk"): row(200, 403, 403, 403),
    ("GET", "/v3/documents/{name}"): row(404, 404, 404),
    ("PATCH", "/v3/documents/{name}"): row(404, 404, 404, 403),
    ("DELETE", "/v3/documents/{name}"): row(404, 404, 404, 403),
    ("GET", "/v3/container-tags/list"): row(200, 200, 200),
    ("GET", "/v3/container-tags/{tag}"): row(OWN, 403, 200),
    ("PATCH", "/v3/container-tags/{tag}"): row(200, 403, 403, 403),
    ("DELETE", "/v3/container-tags/{tag}"): row({204, 404}, 403, 403, 403),
    ("POST", "/v3/search"): row(200, 403, 200),
    # memories
    ("POST", "/v1/forget"): row(200, 403, 403),
    ("POST", "/v1/forget/verify"): row(200, 403, 403),
    ("GET", "/v1/profile"): row(200, 403, 403, params=AT),
    ("GET", "/v1/facts"): row(200, 403, 403, params=AT | {"words": "x"}),
    ("GET", "/v1/facts/graph"): row(200, 403, 403, params=AT | {"subject": "x"}),
    ("POST", "/v4/search"): row(200, 403, 200),
    ("POST", "/v4/profile"): row(200, 403, 200),
    ("POST", "/v4/memories"): row(201, 403, 403, 403),
    ("PATCH", "/v4/memories"): row(404, 403, 403, 403),
    ("DELETE", "/v4/memories"): row(404, 403, 403, 403),
    ("POST", "/v4/memories/list"): row(200, 403, 403),
    ("POST", "/v4/conversations"): row(200, 403, 403, 403),
    # memories of agents
    ("POST", "/v1/agents/memories"): row(201, 403, 403, 403),
    ("POST", "/v1/agents/memories:import"): row(200, 403, 403, 403),
    ("GET", "/v1/agents/memories"): row(200, 403, 403, params=AT),
    ("GET", "/v1/agents/memories/{memory_id}"): row(404, 403, 403, params=AT),
    ("PATCH", "/v1/agents/memories/{memory_id}"): row(404, 403, 403, 403),
    ("DELETE", "/v1/agents/memories/{memory_id}"): row(404, 403, 403, 403, params=AT),
    ("POST", "/v1/agents/memories/{memory_id}/confirm"): row(404, 403, 403, 403),
    ("GET", "/v1/agents/memories/{memory_id}/history"): row(404, 403, 403, params=AT),
    ("POST", "/v1/agents/project"): row(200, 403, 403),
    ("GET", "/v1/agents/review"): row(200, 403, 403, params=AT),
    ("GET", "/v1/agents/profile"): row(200, 403, 403, params=AT),
    ("POST", "/v1/agents/search"): row(200, 403, 403),
    ("POST", "/v1/agents/context"): row(200, 403, 403),
    ("GET", "/v1/agents/stats"): row(200, 403, 403, params=AT),
    ("GET", "/v1/agents/usage"): row(200, 403, 403, params=AT),
    # managing: a key of another organisation manages that one
    ("GET", "/v1/keys"): row(200, 403, 403, 403),
    ("POST", "/v1/keys"): row(404, 403, 403, 403),  # its example names a user of ours
    ("DELETE", "/v1/keys/{key}"): row(404, 403, 403, 403),
    ("POST", "/v1/keys/{key}/rotate"): row(404, 403, 403, 403),
    ("GET", "/v1/users"): row(200, 403, 403, 403),
    ("POST", "/v1/users"): row(201, 403, 403, 403),
    ("DELETE", "/v1/users/{user}"): row(404, 403, 403, 403),
    ("GET", "/v1/orgs"): ADMIN,
    ("POST", "/v1/orgs"): ADMIN,
    ("DELETE", "/v1/orgs/{owner}"): ADMIN,
    ("GET", "/v1/audit"): row(200, 403, 403, 403),
    ("GET", "/organization"): row(200, 200, 200),
    # what the hosted service has and this one has not
    ("POST", "/v3/connections/list"): row(200, 200, 200),
}


def is_elsewhere(path: str) -> bool:
    from memdir.server.routes import elsewhere

    return any(path == route.path for route in elsewhere.router.routes if isinstance(route, APIRoute))


ROUTES = sorted(every_route() - OPEN)


BY_ITEM = {("DELETE", "/document"), ("DELETE", "/memories/semantic"), ("POST", "/document/batch")}
"""Of a namespace: each item is refused for itself."""


def namespace_row(method: str, path: str) -> Row:
    """The calls of the 5.x clients are thin over the services of the calls above, which have the exact rows; here: nobody gets
    in, nobody sees or changes anything."""
    done, refused = {200, 201, 202, 204}, {400, 403, 404}
    if path == "/ns":
        return Row(org=done, container=done, folder=done)
    reads = method == "GET" or path.endswith(("/search", "/profile")) or "/list/" in path
    if (method, path.removeprefix("/ns/{namespace}")) in BY_ITEM:
        refused |= {200}
    empty = {200} if reads else set()
    return Row(org=done | refused, container=refused, folder=refused | empty, reader=None if reads else refused)


def row_of(method: str, path: str) -> Row:
    found = ROWS.get((method, path)) or (NOBODY if is_elsewhere(path) else None)
    if found is None and path.startswith("/ns"):
        found = namespace_row(method, path)
    assert found is not None, f"{method} {path} has no row in tests/server/test_matrix.py: say there what strangers get"
    return found


def test_every_row_is_of_a_route() -> None:
    assert set(ROWS) - every_route() == set()


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A container with contents that nobody else may see, and the keys of strangers."""

    server: ServerProcess
    tag: str
    document_id: str
    version: str
    memory_id: str
    victim: str
    user: str
    secrets: dict[str, str]
    files: dict[str, str]

    def ask(self, who: str, method: str, path: str, row: Row) -> httpx.Response:
        secret = self.secrets[who]
        return self._send(method, path, row, {} if secret == "" else {"Authorization": f"Bearer {secret}"})

    def _send(self, method: str, path: str, row: Row, headers: dict[str, str]) -> httpx.Response:
        replaced = {
            "{path:path}": "work/plan.md", "{name}": self.document_id, "{tag}": self.tag, "{namespace}": self.tag,
            "{version}": self.version, "{memory_id}": self.memory_id,
            "{key}": self.victim, "{user}": self.user, "{owner}": "local",
        }  # fmt: skip
        url = re.sub(r"{[^}]+}", lambda found: replaced.get(found[0], "x"), path)
        body = EXAMPLES.get((method.lower(), path.replace(":path}", "}"))) if row.body is None else row.body
        text = json.dumps(body).replace('"notes"', json.dumps(self.tag)).replace('"DOCUMENT"', json.dumps(self.document_id))
        params = {name: value.replace("notes", self.tag) for name, value in (row.params or {}).items()}
        content: bytes | None = None if body is None else text.encode()
        if method == "PUT":
            content = b"overwritten"
        content = content if row.content is None else row.content
        if body is not None:
            headers = headers | {"Content-Type": "application/json"}
        with httpx.Client(base_url=self.server.url, trust_env=False, verify=False, timeout=60.0) as client:
            return client.request(method, url, params=params, content=content, headers=headers)


@pytest.fixture(scope="module")
def world(server: ServerProcess) -> Iterator[World]:
    tag = f"matrix-{new_id()}"
    files = {
        "/work/plan.md": f"{CANARY} is the plan of plans. I work at {CANARY}.\n",
        "/work/old/a.md": f"{CANARY} of old\n",
        "/work/old.md": f"{CANARY}\n",
        f"/hidden-{CANARY}/x.md": "x\n",
        "/memory/me.md": f"- I work at {CANARY}.\n",
    }
    with server.client() as owner:
        at = {"containerTag": tag}
        for path, text in files.items():
            assert owner.put(f"/v1/files{path}", params=at, content=text.encode()).status_code == 201
        owner.put("/v1/files/work/plan.md", params=at, content=f"{CANARY} before\n".encode())
        owner.put("/v1/files/work/plan.md", params=at, content=files["/work/plan.md"].encode())
        owner.put("/v1/files/gone.md", params=at, content=CANARY.encode())
        owner.delete("/v1/files/gone.md", params=at)
        listed = owner.post("/v3/documents/list", json={"containerTags": [tag], "filepath": "/work/plan.md"}).json()
        document_id = listed["memories"][0]["id"]
        noted = owner.post("/v3/documents/list", json={"containerTags": [tag], "filepath": "/memory/me.md"}).json()
        memory_id = noted["memories"][0]["id"]
        owner.patch(f"/v3/documents/{document_id}", json={"metadata": {"note": CANARY}})
        versions = owner.get("/v1/versions", params=at | {"path": "/work/plan.md"}).json()["versions"]
        other = owner.post("/v1/orgs", json={"name": f"stranger {tag}"}).json()["id"]
        user = owner.post("/v1/users", json={"name": f"u {tag}"}).json()["id"]
        whole = ["read", "write", "admin"]

        def made(org: str = "local", **fields: Any) -> dict[str, Any]:
            answer = owner.post("/v1/keys", params={"org": org}, json={"name": new_id(), **fields})
            assert answer.status_code == 201, answer.text
            found: dict[str, Any] = answer.json()
            return found

        victim, revoked, brief = made(name=f"victim {CANARY}"), made(), made(expiresInS=1)
        owner.delete(f"/v1/keys/{revoked['id']}")
        secrets = {
            "nobody": "", "wrong": new_secret("md"), "revoked": revoked["key"], "expired": brief["key"],
            "org": made(other, actions=whole)["key"],
            "container": made(containers=[f"{tag}-other"], actions=whole)["key"],
            "folder": made(containers=[tag], prefix="/elsewhere", actions=whole)["key"],
            "reader": made(containers=[tag], actions=["read"])["key"],
        }  # fmt: skip
        with server.client(Authorization=f"Bearer {brief['key']}") as holder:
            until(lambda: holder.get("/v3/session").status_code == 401, 30.0)
        made_world = World(
            server=server, tag=tag, document_id=document_id, version=str(versions[-1]["version"]), memory_id=memory_id,
            victim=victim["id"], user=user, secrets=secrets, files=files,
        )  # fmt: skip
        yield made_world
        for path, text in files.items():
            assert owner.get(f"/v1/files{path}", params=at).text == text, "nobody changed anything"
        assert [item["state"] for item in owner.get("/v1/keys").json()["keys"] if item["id"] == victim["id"]] == ["active"]


def shows_nothing(answer: httpx.Response) -> bool:
    return CANARY not in answer.text and all(CANARY not in value for value in answer.headers.values())


@pytest.mark.promise("keys.isolation")
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_nobody_gets_what_is_not_theirs(world: World, method: str, path: str) -> None:
    expected = row_of(method, path)
    for who in ("nobody", "wrong", "revoked", "expired"):
        answer = world.ask(who, method, path, expected)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer"), who
        assert shows_nothing(answer)
    for who in ("org", "container", "folder", "reader"):
        statuses = getattr(expected, who)
        if statuses is None:
            continue
        answer = world.ask(who, method, path, expected)
        assert answer.status_code in statuses, (who, answer.status_code, answer.text)
        assert shows_nothing(answer), (who, answer.text)
        if method != "HEAD" and answer.status_code >= 400:
            assert answer.json()["error"]


def test_each_operation_of_a_batch_is_judged_for_itself(world: World) -> None:
    """Where the route answers 200, the items are refused."""
    ops = [{"op": "delete", "path": "/work/plan.md"}, {"op": "put", "path": "/work/new.md", "contentBase64": "eA=="}]
    files = Row(org={200}, container={403}, folder={200}, body={"containerTag": "notes", "operations": ops})
    answer = world.ask("folder", "POST", "/v1/files:batch", files).json()
    assert [item["status"] for item in answer["results"]] == [403, 403]
    reads = Row(org={200}, container={403}, folder={200}, body={"containerTag": "notes", "paths": ["/work/plan.md"]})
    assert world.ask("folder", "POST", "/v1/files:read", reads).json()["files"] == [{"status": 403, "contentBase64": None}]
    documents = Row(org={200}, container={200}, folder={200}, body={"containerTag": "notes", "contents": ["x"]})
    for who in ("container", "folder", "reader"):
        answer = world.ask(who, "POST", "/v3/documents/batch", documents).json()
        assert (answer["success"], answer["failed"]) == (0, 1), who
    by_id = Row(org={200}, container={200}, folder={200}, body={"ids": ["DOCUMENT"]})
    for who in ("org", "container", "folder"):
        answer = world.ask(who, "DELETE", "/v3/documents/bulk", by_id).json()
        assert answer["deletedCount"] == 0, who
    assert world.ask("reader", "DELETE", "/v3/documents/bulk", by_id).status_code == 403


def test_a_file_by_form_is_judged_like_a_document(world: World) -> None:
    fields = {"containerTag": world.tag, "filepath": "/work/plan.md"}
    for who in ("container", "folder", "reader"):
        with world.server.client(Authorization=f"Bearer {world.secrets[who]}") as client:
            answer = client.post("/v3/documents/file", data=fields, files={"file": ("x.md", b"overwritten")})
        assert answer.status_code == 403, (who, answer.text)


def test_nothing_of_the_contents_or_keys_is_in_the_log(world: World) -> None:
    logged = "".join(file.read_text(errors="replace") for file in Path(world.server.home / "state").rglob("*.log*"))
    assert "listening on" in logged
    for word in (CANARY, world.server.key, *filter(None, world.secrets.values())):
        assert word not in logged
