"""The client: every status is the error its callers act on; keys stay secret."""

from __future__ import annotations

import logging
from collections.abc import Callable

import httpx
import pytest

from memdir.api import v1
from memdir.client.errors import (
    SERVER_FULL,
    AuthError,
    ClientError,
    ConflictError,
    CursorGoneError,
    ForbiddenError,
    NotFoundError,
    OfflineError,
    PreconditionFailedError,
    RateLimitedError,
    RejectedError,
    ServerError,
    ServerFullError,
    TooLargeError,
    retry_after_seconds,
)
from memdir.client.http import Client
from memdir.client.remote import Expect

KEY = "md_" + "k" * 43


def client(handler: Callable[[httpx.Request], httpx.Response]) -> Client:
    return Client("http://fake", KEY, transport=httpx.MockTransport(handler))


ENTRY = {
    "path": "/a", "kind": "file", "contentHash": "0" * 64, "sizeBytes": 1, "mode": 420, "mtimeNs": 5, "revision": 7,
    "documentId": "d", "status": "done",
}  # fmt: skip


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (400, RejectedError),
        (401, AuthError),
        (403, ForbiddenError),
        (404, NotFoundError),
        (408, ServerError),
        (409, ConflictError),
        (410, CursorGoneError),
        (412, PreconditionFailedError),
        (413, TooLargeError),
        (415, RejectedError),
        (422, RejectedError),
        (425, ServerError),
        (429, RateLimitedError),
        (500, ServerError),
        (502, ServerError),
        (503, ServerError),
        (302, RejectedError),
    ],
)
def test_a_status_is_an_error_with_the_servers_words(status: int, expected: type[ClientError]) -> None:
    with (
        client(lambda _: httpx.Response(status, json={"error": "the reason"})) as one,
        pytest.raises(expected, match="the reason") as caught,
    ):
        one.capabilities()
    assert type(caught.value) is expected


def test_a_server_without_room_is_always_told_in_the_same_words() -> None:
    with client(lambda _: httpx.Response(507, json={"error": "quota"})) as one, pytest.raises(ServerFullError) as caught:
        one.capabilities()
    assert caught.value.message == SERVER_FULL
    assert caught.value.hint


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b"\xff", b'{"error": 5}'])
def test_an_error_page_that_is_not_json_is_still_its_status(body: bytes) -> None:
    with client(lambda _: httpx.Response(503, content=body)) as one, pytest.raises(ServerError):
        one.capabilities()


def test_a_precondition_error_carries_what_stands_there() -> None:
    body = {"error": "no", "current": ENTRY}
    with client(lambda _: httpx.Response(412, json=body)) as one, pytest.raises(PreconditionFailedError) as caught:
        one.put_file("c", "/a", b"x", expect=Expect(revision=3))
    assert caught.value.current is not None
    assert caught.value.current.revision == 7


@pytest.mark.parametrize("answer", [b"", b"null", b"{}", b'{"version": 1}', b"<html>"])
def test_an_answer_of_another_shape_is_the_servers_error(answer: bytes) -> None:
    with client(lambda _: httpx.Response(200, content=answer)) as one, pytest.raises(ServerError):
        one.capabilities()


@pytest.mark.parametrize("error", [httpx.ConnectError("no"), httpx.ReadTimeout("slow"), httpx.RemoteProtocolError("bad")])
def test_every_broken_connection_is_offline(error: httpx.HTTPError) -> None:
    def broken(_: httpx.Request) -> httpx.Response:
        raise error

    with client(broken) as one, pytest.raises(OfflineError):
        one.health()


def test_a_closed_client_is_offline() -> None:
    one = client(lambda _: httpx.Response(200))
    one.close()
    with pytest.raises(OfflineError):
        one.health()


def test_odd_paths_are_quoted_byte_for_byte() -> None:
    seen: list[bytes] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.url.raw_path.split(b"?")[0])
        return httpx.Response(200, json=ENTRY)

    with client(answer) as one:
        one.put_file("c", "/a b/%41/ü?#&.md", b"")
    assert seen == [b"/v1/files/a%20b/%2541/%C3%BC%3F%23%26.md"]


def test_conditions_and_keys_are_headers_and_bytes_are_exact() -> None:
    seen: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        request.read()
        seen.append(request)
        return httpx.Response(200, json=ENTRY)

    with client(answer) as one:
        one.put_file("c", "/a", b"\0\xff", mode=0o755, mtime_ns=9, expect=Expect(revision=3), idempotency_key="k1")
        one.put_file("c", "/a", iter([b"x", b"y"]), expect=Expect(revision=None))
    first, second = seen
    assert first.headers["If-Match"] == '"3"'
    assert first.headers["Idempotency-Key"] == "k1"
    assert first.headers["Authorization"] == f"Bearer {KEY}"
    assert first.content == b"\0\xff"
    assert dict(first.url.params) == {"containerTag": "c", "kind": "file", "mode": "493", "mtimeNs": "9"}
    assert second.headers["If-None-Match"] == "*"
    assert second.content == b"xy"


def test_a_file_is_streamed_with_its_revision() -> None:
    with (
        client(lambda _: httpx.Response(200, content=b"bytes", headers={"ETag": '"12"'})) as one,
        one.open_file("c", "/a") as (revision, pieces),
    ):
        assert (revision, b"".join(pieces)) == (12, b"bytes")


def test_a_file_without_a_revision_is_refused() -> None:
    with client(lambda _: httpx.Response(200, content=b"x")) as one, pytest.raises(ServerError, match="revision"):
        one.read_file("c", "/a")


def test_a_batch_with_missing_results_is_refused() -> None:
    operation = v1.BatchOperation(op="delete", path="/a")
    with client(lambda _: httpx.Response(200, json={"results": []})) as one, pytest.raises(ServerError, match="0 results"):
        one.batch("c", [operation])


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), (None, 5.0), ("soon", 5.0), ("-3", 0.0), ("1e9", 3600.0), ("nan", 5.0)]
)
def test_retry_after_is_bounded_whatever_it_says(value: str | None, seconds: float) -> None:
    assert retry_after_seconds(value) == seconds


def test_the_key_is_in_no_error_and_no_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with client(lambda _: httpx.Response(401, json={"error": "no such key"})) as one, pytest.raises(AuthError) as caught:
        one.capabilities()
    assert KEY not in caplog.text
    assert KEY not in f"{caught.value!r} {caught.value} {caught.value.hint} {one!r}"
