"""`/v1/files` and `/v1/changes` over a real socket."""

from __future__ import annotations

import base64
import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import httpx
import pytest

import memdir
from memdir.core.limits import BATCH_MAX_BYTES, BATCH_MAX_ITEMS, FILE_SYNC_MAX_BYTES, READ_MAX_BYTES, READ_MAX_ITEMS
from tests.servers import ON_BOTH, ServerProcess

pytestmark = ON_BOTH


def put(client: httpx.Client, tag: str, path: str, content: bytes = b"text", **headers: str) -> httpx.Response:
    return client.put(f"/v1/files{quote(path)}", params={"containerTag": tag}, content=content, headers=headers)


def test_bytes_attributes_and_revision_come_back(client: httpx.Client, tag: str) -> None:
    content = bytes(range(256)) * 3
    answer = client.put(
        "/v1/files/a/%C3%BC%20%25%23%3F.bin",
        params={"containerTag": tag, "mode": 0o600, "mtimeNs": 1_700_000_000_123_456_789},
        content=content,
    )
    assert (answer.status_code, answer.headers["etag"]) == (201, '"1"')
    entry = answer.json()
    assert entry["path"] == "/a/ü %#?.bin"
    assert entry["contentHash"] == hashlib.sha256(content).hexdigest()
    assert (entry["mode"], entry["mtimeNs"], entry["sizeBytes"]) == (0o600, 1_700_000_000_123_456_789, 768)
    got = client.get("/v1/files/a/%C3%BC%20%25%23%3F.bin", params={"containerTag": tag})
    assert (got.content, got.headers["etag"]) == (content, '"1"')
    assert got.headers["content-disposition"] == "attachment"
    head = client.head("/v1/files/a/%C3%BC%20%25%23%3F.bin", params={"containerTag": tag})
    assert (head.status_code, head.headers["content-length"], head.content) == (200, "768", b"")
    assert put(client, tag, "/a/ü %#?.bin").status_code == 200


@pytest.mark.parametrize("size", [0, 262_144, 262_145, 5_000_000])
def test_streams_of_any_size_are_kept_exactly(client: httpx.Client, tag: str, size: int) -> None:
    content = (b"\x00123456789abcdef" * (size // 16 + 1))[:size]
    pieces = (content[at : at + 70_001] for at in range(0, size, 70_001))
    answer = client.put("/v1/files/big", params={"containerTag": tag}, content=pieces)
    assert (answer.status_code, answer.json()["sizeBytes"]) == (201, size)
    assert client.get("/v1/files/big", params={"containerTag": tag}).content == content


def test_preconditions_answer_412_with_what_stands_there(client: httpx.Client, tag: str) -> None:
    missing = put(client, tag, "/a", **{"If-Match": '"1"'})
    assert (missing.status_code, missing.json()["current"]) == (412, None)
    put(client, tag, "/a", b"one")
    again = put(client, tag, "/a", b"two", **{"If-None-Match": "*"})
    assert (again.status_code, again.json()["current"]["revision"]) == (412, 1)
    stale = put(client, tag, "/a", b"two", **{"If-Match": '"7"'})
    assert (stale.status_code, stale.json()["current"]["sizeBytes"]) == (412, 3)
    assert put(client, tag, "/a", b"two", **{"If-Match": '"1"'}).status_code == 200
    gone = client.delete("/v1/files/a", params={"containerTag": tag}, headers={"If-Match": '"1"'})
    assert gone.status_code == 412
    done = client.delete("/v1/files/a", params={"containerTag": tag}, headers={"If-Match": '"2"'})
    assert (done.status_code, done.json()) == (200, {"seq": 3, "deletedCount": 1})


@pytest.mark.parametrize(
    "headers",
    [{"If-Match": "x"}, {"If-Match": '"-1"'}, {"If-Match": "*"}, {"If-None-Match": '"1"'}, {"If-Match": '"' + "9" * 40 + '"'}],
)
def test_a_precondition_that_means_nothing_is_refused(client: httpx.Client, tag: str, headers: dict[str, str]) -> None:
    assert put(client, tag, "/a", **headers).status_code == 400


@pytest.mark.parametrize(
    "raw",
    [
        "/v1/files/",
        "/v1/files//a",
        "/v1/files/a//b",
        "/v1/files/%2e%2e/a",
        "/v1/files/a/%2E%2E/b",
        "/v1/files/..%2fetc%2fpasswd",
        "/v1/files/a/%2e",
        "/v1/files/a%00b",
        "/v1/files/%ff",
        "/v1/files/%ed%a0%80",
        "/v1/files/%c0%ae%c0%ae/a",
        "/v1/files/" + "n" * 256,
        "/v1/files/" + "/".join(["d" * 200] * 21),
    ],
)
def test_hostile_paths_are_refused_on_every_call(client: httpx.Client, tag: str, raw: str) -> None:
    for method in ("PUT", "GET", "HEAD", "DELETE"):
        url = httpx.URL(str(client.base_url)).copy_with(raw_path=f"{raw}?containerTag={tag}".encode())
        answer = client.request(method, url, content=b"x" if method == "PUT" else None)
        # Without a container, or with a path that the client's own rules changed, nothing is found; nothing is ever made.
        assert answer.status_code in (400, 404), (method, raw, answer.status_code)
    body = {"containerTag": tag, "fromPath": "/x", "toPath": "/../y"}
    put(client, tag, "/x")
    assert client.post("/v1/files:move", json=body).status_code == 400
    listing = client.get("/v1/files", params={"containerTag": tag}).json()
    assert [entry["path"] for entry in listing["entries"]] == ["/x"]


def test_a_folder_a_symlink_and_what_is_not_there(client: httpx.Client, tag: str) -> None:
    params = {"containerTag": tag}
    assert client.put("/v1/files/d", params={**params, "kind": "dir", "mode": 0o755}).status_code == 201
    assert client.put("/v1/files/e", params={**params, "kind": "dir"}, content=b"x").status_code == 400
    assert client.put("/v1/files/l", params={**params, "kind": "symlink"}, content=b"../t").status_code == 201
    assert client.get("/v1/files/l", params=params).content == b"../t"
    assert client.get("/v1/files/d", params=params).status_code == 409
    assert client.get("/v1/files/nothing", params=params).status_code == 404
    assert client.get("/v1/files/x", params={"containerTag": f"{tag}-none"}).status_code == 404
    assert client.put("/v1/files/x", params={**params, "kind": "socket"}).status_code == 400
    assert client.put("/v1/files/x", params={**params, "mtimeNs": 1 << 70}).status_code == 400
    assert client.put("/v1/files/x").status_code == 400


def test_the_same_idempotency_key_gives_the_same_answer(client: httpx.Client, tag: str) -> None:
    first = put(client, tag, "/a", b"1", **{"Idempotency-Key": "k"})
    again = put(client, tag, "/a", b"1", **{"Idempotency-Key": "k"})
    assert (first.status_code, first.json()) == (again.status_code, again.json())
    other = put(client, tag, "/a", b"2", **{"Idempotency-Key": "k"})
    assert other.status_code == 422
    body = {"containerTag": tag, "fromPath": "/a", "toPath": "/b", "idempotencyKey": "m"}
    assert client.post("/v1/files:move", json=body).json() == client.post("/v1/files:move", json=body).json()
    assert client.get("/v1/changes", params={"containerTag": tag}).json()["lastSeq"] == 2


KEPT = [200, 412, 412, 400, 400]


def test_a_batch_answers_each_operation_as_the_single_call_would(client: httpx.Client, tag: str) -> None:
    text = base64.b64encode(b"text").decode()
    operations = [
        {"op": "put", "path": "/a", "contentBase64": text},
        {"op": "put", "path": "/a", "contentBase64": text},
        {"op": "put", "path": "/a", "contentBase64": text, "ifNoneMatch": True},
        {"op": "put", "path": "/a/b", "contentBase64": text},
        {"op": "put", "path": "/c", "contentBase64": "not base64!"},
        {"op": "put", "path": "/c"},
        {"op": "put", "path": "/../c", "contentBase64": text},
        {"op": "put", "path": "/d", "kind": "dir"},
        {"op": "move", "path": "/d/a", "fromPath": "/a", "ifMatch": 2},
        {"op": "move", "path": "/x"},
        {"op": "delete", "path": "/d"},
        {"op": "delete", "path": "/d", "recursive": True},
        {"op": "delete", "path": "/d"},
        {"op": "put", "path": "/e/f", "contentBase64": text},
        {"op": "delete", "path": "/e", "recursive": True, "ifUnchangedSince": 5},
        {"op": "put", "path": "/e/f", "contentHash": hashlib.sha256(b"text").hexdigest(), "mode": 0o600},
        {"op": "put", "path": "/e/f", "contentHash": hashlib.sha256(b"other").hexdigest()},
        {"op": "put", "path": "/e/g", "contentHash": hashlib.sha256(b"text").hexdigest()},
        {"op": "put", "path": "/e/f", "contentHash": hashlib.sha256(b"text").hexdigest(), "contentBase64": text},
        {"op": "put", "path": "/h", "kind": "dir", "contentHash": hashlib.sha256(b"").hexdigest()},
    ]
    answer = client.post("/v1/files:batch", json={"containerTag": tag, "operations": operations})
    results = answer.json()["results"]
    assert [r["status"] for r in results] == [201, 200, 412, 409, 400, 400, 400, 201, 201, 400, 409, 200, 404, 201, 412, *KEPT]
    assert results[2]["entry"]["revision"] == 2
    assert all((r["error"] is None) == (r["status"] < 300) for r in results)
    feed = client.get("/v1/changes", params={"containerTag": tag}).json()
    assert [c["kind"] for c in feed["changes"]] == ["put", "put", "put", "move", "delete", "put", "put"]
    assert results[15]["entry"]["mode"] == 0o600
    assert client.get("/v1/files/e/f", params={"containerTag": tag}).content == b"text"
    params = {"containerTag": tag, "recursive": True}
    assert client.delete("/v1/files/e", params=params | {"ifUnchangedSince": 5}).status_code == 412
    assert client.delete("/v1/files/e", params=params | {"ifUnchangedSince": 7}).status_code == 200


@pytest.mark.promise("api.move")
def test_a_folder_is_moved_with_all_below_it_as_one_change(client: httpx.Client, tag: str) -> None:
    below = ["/old/a", "/old/deep/b", "/old/deep/er/ü c"]
    for path in below:
        put(client, tag, path, path.encode())
    since = client.get("/v1/changes", params={"containerTag": tag}).json()["lastSeq"]
    moved = client.post("/v1/files:move", json={"containerTag": tag, "fromPath": "/old", "toPath": "/new/place"}).json()
    assert moved["movedCount"] >= len(below)
    feed = client.get("/v1/changes", params={"containerTag": tag, "since": since}).json()["changes"]
    assert [(one["kind"], one["path"]) for one in feed] == [("move", "/new/place")]
    for path in below:
        there = path.replace("/old", "/new/place")
        assert client.get(f"/v1/files{quote(there)}", params={"containerTag": tag}).content == path.encode()
        assert client.get(f"/v1/files{quote(path)}", params={"containerTag": tag}).status_code == 404


@pytest.mark.promise("api.capabilities")
def test_what_the_server_says_that_it_can_do_it_does(client: httpx.Client, tag: str) -> None:
    said = client.get("/v1/capabilities").json()
    assert said["version"] == memdir.__version__
    paths = client.get("/openapi.json").json()["paths"]
    under = {"move": "files:move", "batch": "files:batch"}
    for feature in said["features"]:
        assert f"/v1/{under.get(feature, feature)}" in paths, feature
    for api in said["api"]:
        assert any(path.startswith(f"/{api}/") for path in paths), api
    missing = [{"op": "delete", "path": f"/{n}"} for n in range(said["maxBatchItems"])]
    asked = {"containerTag": tag, "operations": missing}
    assert client.post("/v1/files:batch", json=asked).status_code == 200
    asked["operations"] = [*missing, {"op": "delete", "path": "/one more"}]
    assert client.post("/v1/files:batch", json=asked).status_code == 400
    assert said["maxFileBytes"] == FILE_SYNC_MAX_BYTES


def test_a_batch_past_its_bounds_is_refused_whole(client: httpx.Client, tag: str) -> None:
    text = base64.b64encode(b"\x00" * (BATCH_MAX_BYTES // 2 + 1000)).decode()
    big = [{"op": "put", "path": f"/{n}", "contentBase64": text} for n in range(2)]
    assert client.post("/v1/files:batch", json={"containerTag": tag, "operations": big}).status_code == 413
    many = [{"op": "delete", "path": f"/{n}"} for n in range(BATCH_MAX_ITEMS + 1)]
    assert client.post("/v1/files:batch", json={"containerTag": tag, "operations": many}).status_code == 400
    assert client.post("/v1/files:batch", json={"containerTag": tag, "operations": []}).status_code == 400
    large = base64.b64encode(b"\x00" * (BATCH_MAX_BYTES - 10)).decode()
    one = client.post(
        "/v1/files:batch", json={"containerTag": tag, "operations": [{"op": "put", "path": "/l", "contentBase64": large}]}
    )
    assert one.json()["results"][0]["status"] == 201


def test_pages_of_files_and_changes_fit_together(client: httpx.Client, tag: str) -> None:
    for number in range(7):
        put(client, tag, f"/d/{number}")
    seen, after = [], ""
    for _ in range(9):
        page = client.get("/v1/files", params={"containerTag": tag, "prefix": "/d/", "after": after, "limit": 3}).json()
        seen += [entry["path"] for entry in page["entries"]]
        assert page["lastSeq"] == 7
        if page["nextAfter"] is None:
            break
        after = page["nextAfter"]
    assert seen == [f"/d/{number}" for number in range(7)]
    changes = client.get("/v1/changes", params={"containerTag": tag, "since": 2, "limit": 3}).json()
    assert ([c["seq"] for c in changes["changes"]], changes["hasMore"]) == ([3, 4, 5], True)
    assert changes["epoch"] == page["epoch"]
    rest = client.get("/v1/changes", params={"containerTag": tag, "since": 5}).json()
    assert ([c["seq"] for c in rest["changes"]], rest["hasMore"]) == ([6, 7], False)


def test_a_long_poll_wakes_when_something_is_put(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a")
    with ThreadPoolExecutor(1) as pool, server.client() as other:
        waiting = pool.submit(other.get, "/v1/changes", params={"containerTag": tag, "since": 1, "wait": 30})
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        began = time.monotonic()
        put(client, tag, "/b")
        page = waiting.result(timeout=20).json()
        assert time.monotonic() - began < 10
    assert [c["path"] for c in page["changes"]] == ["/b"]


def test_a_long_poll_ends_with_nothing_when_its_time_is_over(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a")
    began = time.monotonic()
    page = client.get("/v1/changes", params={"containerTag": tag, "since": 1, "wait": 0.2}).json()
    assert page["changes"] == []
    assert time.monotonic() - began >= 0.2


def test_a_client_ahead_of_the_server_hears_at_once(client: httpx.Client, tag: str) -> None:
    put(client, tag, "/a")
    page = client.get("/v1/changes", params={"containerTag": tag, "since": 99, "wait": 30}).json()
    assert (page["lastSeq"], page["changes"]) == (1, [])


def test_the_token_of_a_page_is_known_again_and_another_history_is_told_apart(client: httpx.Client, tag: str) -> None:
    for name in "abc":
        put(client, tag, f"/{name}")

    def changes(since: int, token: str, limit: int = 100) -> httpx.Response:
        return client.get("/v1/changes", params={"containerTag": tag, "since": since, "token": token, "limit": limit})

    second = changes(0, "", limit=2).json()
    last = changes(2, second["token"]).json()
    assert [change["seq"] for change in last["changes"]] == [3]
    assert second["token"] != last["token"]
    assert client.get("/v1/files", params={"containerTag": tag}).json()["token"] == last["token"]
    assert changes(3, last["token"]).json()["token"] == last["token"]
    assert changes(2, last["token"]).status_code == 409
    assert changes(7, last["token"]).status_code == 409


def test_a_deleted_container_ends_the_long_poll_and_is_another_life(
    server: ServerProcess, client: httpx.Client, tag: str
) -> None:
    put(client, tag, "/a")
    epoch = client.get("/v1/changes", params={"containerTag": tag}).json()["epoch"]
    with ThreadPoolExecutor(1) as pool, server.client() as other:
        waiting = pool.submit(other.get, "/v1/changes", params={"containerTag": tag, "since": 1, "wait": 30})
        with pytest.raises(TimeoutError):
            waiting.result(timeout=0.3)
        assert client.delete(f"/v3/container-tags/{tag}").status_code == 204
        assert waiting.result(timeout=20).status_code == 404
    page = client.get("/v1/changes", params={"containerTag": tag}).json()
    assert (page["epoch"] != epoch, page["lastSeq"]) == (True, 0)


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "inf", "x"])
def test_a_wait_out_of_bounds_is_refused(client: httpx.Client, tag: str, wait: str) -> None:
    assert client.get("/v1/changes", params={"containerTag": tag, "wait": wait}).status_code == 400


def test_many_clients_at_once_lose_nothing(server: ServerProcess, tag: str) -> None:
    failures: list[int] = []

    def write(worker: int) -> None:
        with server.client() as client:
            failures.extend(
                status for number in range(20) if (status := put(client, tag, f"/{worker}/{number}").status_code) != 201
            )

    threads = [threading.Thread(target=write, args=(worker,)) for worker in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    with server.client() as client:
        page = client.get("/v1/changes", params={"containerTag": tag}).json()
    assert [c["seq"] for c in page["changes"]] == list(range(1, 161))


def test_several_files_are_read_in_one_call_each_for_itself(client: httpx.Client, tag: str) -> None:
    large = bytes(READ_MAX_BYTES - 3)
    for path, content in (("/a", b"\x00one"), ("/dir/b", b""), ("/large", large), ("/ü", b"four")):
        assert put(client, tag, path, content).status_code == 201
    paths = ["/a", "/none", "/dir/b", "/dir", "/ü", "/large", "relative"]
    answer = client.post("/v1/files:read", json={"containerTag": tag, "paths": paths})
    assert answer.status_code == 200
    files = answer.json()["files"]
    assert [one["status"] for one in files] == [200, 404, 200, 404, 200, 413, 400]
    given = [None if one["contentBase64"] is None else base64.b64decode(one["contentBase64"]) for one in files]
    assert given == [b"\x00one", None, b"", None, b"four", None, None]
    alone = client.post("/v1/files:read", json={"containerTag": tag, "paths": ["/large"]}).json()["files"]
    assert base64.b64decode(alone[0]["contentBase64"]) == large
    for wrong in ([], ["/a"] * (READ_MAX_ITEMS + 1)):
        assert client.post("/v1/files:read", json={"containerTag": tag, "paths": wrong}).status_code == 400
