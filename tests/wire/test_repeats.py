"""Idempotency keys on every call that changes something."""

from __future__ import annotations

import hashlib
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import httpx
import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.server.http.idempotency import Repeats
from memdir.store.accounts import saved_responses as answers
from memdir.store.accounts.saved_responses import UNDER_WAY_MS, Answer
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.idempotency import KEEP_MS
from tests.servers import ServerProcess, start, until_the_end

REQUEST = hashlib.sha256(b"request").digest()
NAMES = {"org_id": "local", "caller": "key", "key": "k"}


def count(client: httpx.Client, tag: str) -> int:
    answer = client.post("/v3/documents/list", json={"containerTags": [tag]}).json()
    total: int = answer["pagination"]["totalItems"]
    return total


def calls(tag: str) -> list[tuple[str, str, dict[str, Any]]]:
    return [
        ("POST", "/v3/documents", {"content": "x", "containerTag": tag}),
        ("POST", "/v3/documents/batch", {"contents": ["a", "b"], "containerTag": tag}),
        ("POST", "/v1/files:batch", {"containerTag": tag, "operations": [
            {"op": "put", "path": "/batch.md", "contentBase64": "eA==", "ifNoneMatch": True}
        ]}),
        ("PATCH", f"/v3/container-tags/{tag}", {"a": 1}),
        ("PUT", f"/v1/files/a.md?containerTag={tag}", {"raw": 1}),
        ("POST", "/v1/files:move", {"containerTag": tag, "fromPath": "/a.md", "toPath": "/b.md"}),
        ("DELETE", f"/v1/files/b.md?containerTag={tag}", {}),
        ("DELETE", "/v3/documents/bulk", {"containerTags": [tag]}),
        ("DELETE", f"/v3/container-tags/{tag}", {}),
    ]  # fmt: skip


@pytest.mark.promise("api.idempotency")
def test_a_repeated_call_gets_the_first_answer_and_happens_once(client: httpx.Client, tag: str) -> None:
    for number, (method, url, body) in enumerate(calls(tag)):
        headers = {"Idempotency-Key": f"{tag}-{number}"}
        first = client.request(method, url, json=body, headers=headers)
        assert first.status_code < 300, (url, first.text)
        before = count(client, tag) if number < 8 else None
        again = client.request(method, url, json=body, headers=headers)
        assert (again.status_code, again.content) == (first.status_code, first.content), url
        assert before is None or count(client, tag) == before
        other = client.request(method, url, json={**body, "toPath": "/other", "content": "y"}, headers=headers)
        if not (method == "DELETE" and "/v1/files/" in url):
            assert other.status_code in (400, 422), (url, other.status_code)


@pytest.mark.promise("api.idempotency")
def test_of_many_at_once_one_is_carried_out(server: ServerProcess, client: httpx.Client, tag: str) -> None:
    ready = threading.Barrier(8)

    def send(_: int) -> httpx.Response:
        with server.client() as own:
            ready.wait(30)
            return own.post(
                "/v3/documents", json={"content": "once", "containerTag": tag}, headers={"Idempotency-Key": f"{tag}-k"}
            )

    with ThreadPoolExecutor(8) as pool:
        got = list(pool.map(send, range(8)))
    assert {answer.status_code for answer in got} <= {200, 409}
    assert len({answer.json()["id"] for answer in got if answer.status_code == 200}) == 1
    assert all(answer.headers["retry-after"] == "1" for answer in got if answer.status_code == 409)
    assert count(client, tag) == 1


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_is_kept_or_dropped_before_the_last_of_it_is_sent(status: int) -> None:
    """Who has it may repeat the call at once, and is not told that it is still being carried out."""
    told: list[str] = []

    class Answers:
        def begin(self, **names: Any) -> None:
            told.append("begin")

        def finish(self, **names: Any) -> None:
            told.append("kept")

        def drop(self, **names: Any) -> None:
            told.append("dropped")

    class Calls:
        async def run(self, call: Any, **names: Any) -> Any:
            return call(**names)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
        await send({"type": "http.response.body", "body": b"}"})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"{}", "more_body": False}

    async def send(message: Any) -> None:
        told.append("start" if message["type"] == "http.response.start" else message["body"].decode())

    scope = {
        "type": "http", "method": "POST", "path": "/v3/documents", "raw_path": b"/v3/documents", "query_string": b"",
        "headers": [(b"idempotency-key", b"k")], "state": {"key": SimpleNamespace(org_id="local", id="key")},
    }  # fmt: skip
    repeats = Repeats(app, answers=Answers(), dispatcher=Calls())  # type: ignore[arg-type]
    anyio.run(repeats, scope, receive, send)
    assert told == ["begin", "start", "{", "kept" if status == 200 else "dropped", "}"]


def test_a_refused_call_is_judged_anew(client: httpx.Client, tag: str) -> None:
    headers = {"Idempotency-Key": f"{tag}-k"}
    url = f"/v3/documents/{tag}"
    assert client.patch(url, json={"content": "new"}, headers=headers).status_code == 404
    client.post("/v3/documents", json={"content": "old", "containerTag": tag, "customId": tag})
    assert client.patch(url, json={"content": "new"}, headers=headers).status_code == 200
    assert client.get(url).json()["content"] == "new"


@pytest.mark.parametrize("key", ["", "x" * 201, "tab\tinside"])
def test_a_key_that_is_none_is_a_400(client: httpx.Client, tag: str, key: str) -> None:
    answer = client.post("/v3/documents", json={"content": "x", "containerTag": tag}, headers={"Idempotency-Key": key})
    assert (answer.status_code, "idempotency key" in answer.text) == (400, True)


@pytest.mark.promise("api.idempotency")
def test_answers_survive_a_kill_and_a_call_that_was_cut_off_is_carried_out_once(tmp_path: Path) -> None:
    body = {"content": "x", "containerTag": "t"}
    running = start(tmp_path / "home", "--port", "0")
    with running.client() as client:
        first = client.post("/v3/documents", json=body, headers={"Idempotency-Key": "kept"}).json()
        lost = client.post("/v3/documents", json=body, headers={"Idempotency-Key": "lost"}).json()
    running.stop(signal.SIGKILL)
    store = SqliteStore.open(tmp_path / "home" / "data" / "server")
    with store.db.write() as connection:  # as if it had died before the answer was kept
        connection.execute("update answer set status = null, body = null where key = 'lost'")
    store.close()
    running = start(tmp_path / "home", "--port", "0")
    with running.client() as client:
        again = client.post("/v3/documents", json=body, headers={"Idempotency-Key": "kept"})
        assert (again.json(), again.headers["idempotency-replayed"]) == (first, "true")
        redone = client.post("/v3/documents", json=body, headers={"Idempotency-Key": "lost"})
        assert (redone.status_code, redone.json()["id"]) == (200, lost["id"])
        assert count(client, "t") == 2
    running.stop()


def test_a_key_that_is_used_again_for_something_else_makes_something_else(tmp_path: Path) -> None:
    """Documents are made under ids that follow from the key, and the answer is gone."""
    headers = {"Idempotency-Key": "1"}
    with until_the_end(start(tmp_path / "home", "--port", "0")) as running, running.client() as client:
        first = client.post("/ns/a/document/batch", json={"documents": [{"content": "x"}]}, headers=headers).json()
    store = SqliteStore.open(tmp_path / "home" / "data" / "server")
    with store.db.write() as connection:
        connection.execute("delete from answer")
    store.close()
    with until_the_end(start(tmp_path / "home", "--port", "0")) as running, running.client() as client:
        body = {"documents": [{"content": "y", "id": "own"}]}
        second = client.post("/ns/b/document/batch", json=body, headers=headers)
        assert (second.status_code, second.json()["failed"]) == (200, 0)
        got = [client.get(f"/v3/documents/{one}").json()["content"] for one in (first["results"][0]["id"], "own")]
    assert got == ["x", "y"]


def test_a_call_without_an_answer_stands_in_nobodys_way_for_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "ROWS_MAX", 10)
    monkeypatch.setattr(answers, "_COUNT_EVERY", 1)
    clock = FakeClock()
    store = SqliteStore.open(tmp_path, clock=clock)
    kept = store.answers
    answer = Answer(status=200, content_type="application/json", body=b"{}")
    assert kept.begin(**NAMES, request=REQUEST) is None
    with pytest.raises(MemdirError, match="still being carried out"):
        kept.begin(**NAMES, request=REQUEST)
    clock.advance(UNDER_WAY_MS / 1000)
    assert kept.begin(**NAMES, request=REQUEST) is None
    kept.finish(**NAMES, answer=answer)
    clock.advance(UNDER_WAY_MS / 1000 + 1)
    assert kept.begin(**NAMES, request=REQUEST) == answer
    assert kept.begin(**{**NAMES, "caller": "other"}, request=REQUEST) is None
    assert kept.begin(**{**NAMES, "org_id": "other"}, request=REQUEST) is None
    with pytest.raises(MemdirError, match="another request"):
        kept.begin(**NAMES, request=hashlib.sha256(b"other").digest())
    clock.advance(KEEP_MS / 1000)
    assert kept.begin(**NAMES, request=hashlib.sha256(b"other").digest()) is None
    for number in range(50):
        clock.advance(1)
        kept.begin(**{**NAMES, "key": f"n{number}"}, request=REQUEST)
    row = store.db.one("select count(*) from answer")
    assert row is not None
    assert row[0] <= 11
    store.close()
