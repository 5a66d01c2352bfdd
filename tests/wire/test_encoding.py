"""Compressed requests and answers, and the bounds on what a request may be."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import random
import socket
import time
import zlib
from pathlib import Path

import httpx
import pytest
from starlette.types import Message

from memdir.core.errors import MemdirError
from memdir.core.limits import HEAD_MAX_BYTES, HEADERS_MAX, JSON_DEPTH_MAX, JSON_VALUES_MAX, MIB, URL_MAX_BYTES
from memdir.server.http.encoding import COMPRESS_MIN_BYTES, Encoding, check_shape, takes_gzip
from memdir.server.http.guard import BODY_MAX_BYTES
from tests.servers import ServerProcess

GZIP = {"Content-Encoding": "gzip", "Content-Type": "application/json"}


def resident_bytes(server: ServerProcess) -> int:
    """What the server's process holds in memory."""
    return int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1]) * 4096


def unfolded(body: bytes, *, cut: int, path: str = "/v3/documents") -> bytes:
    """What the application sees of a gzipped body that comes in pieces of `cut` bytes."""
    pieces = [body[at : at + cut] for at in range(0, len(body), cut)] or [b""]
    waiting = [
        {"type": "http.request", "body": piece, "more_body": number < len(pieces) - 1} for number, piece in enumerate(pieces)
    ]
    seen: list[bytes] = []

    async def application(scope: object, receive: object, send: object) -> None:
        more = True
        while more:
            message = await receive()  # type: ignore[operator]
            seen.append(message["body"])
            more = message["more_body"]

    async def receive() -> Message:
        return waiting.pop(0)

    async def send(message: Message) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "path": path, "headers": [(b"content-encoding", b"gzip"), (b"content-length", b"1")]}
    asyncio.run(Encoding(application)(scope, receive, send))
    return b"".join(seen)


@pytest.mark.promise("api.gzip")
@pytest.mark.parametrize("cut", [1, 7, 1000, 65_536, 10 * MIB])
def test_a_folded_body_arrives_as_it_was_however_it_is_cut(cut: int) -> None:
    noise = random.Random(1).randbytes(5_000)
    for body in (b"", b"x", noise, noise * 3, b"0" * 1_000_000):
        assert unfolded(gzip.compress(body), cut=cut) == body


@pytest.mark.parametrize("cut", [1, 7, 10 * MIB])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no gzip",
        gzip.compress(b"x" * 1000, mtime=0)[:-3],
        gzip.compress(b"x", mtime=0) + b"more",
        gzip.compress(b"x", mtime=0) * 2,
    ],
    ids=["empty", "plain", "cut short", "followed", "two members"],
)
def test_what_is_not_one_whole_gzip_is_refused(body: bytes, cut: int) -> None:
    with pytest.raises(MemdirError, match="gzip"):
        unfolded(body, cut=cut)


@pytest.mark.promise("api.gzip")
def test_requests_of_every_kind_may_be_folded(client: httpx.Client, tag: str) -> None:
    text = "the ropes were mended " * 100
    body = gzip.compress(json.dumps({"content": text, "containerTag": tag, "customId": f"{tag}-1"}).encode())
    assert client.post("/v3/documents", content=body, headers=GZIP).status_code == 200
    assert client.get(f"/v3/documents/{tag}-1").json()["content"] == text
    for content in (b"", b"small", os.urandom(2 * MIB)):
        params = {"containerTag": tag}
        put = client.put("/v1/files/a.bin", params=params, content=gzip.compress(content), headers={"Content-Encoding": "gzip"})
        assert put.status_code in (200, 201), put.text
        assert put.json()["sizeBytes"] == len(content)
        assert client.get("/v1/files/a.bin", params=params).content == content


@pytest.mark.promise("api.gzip")
def test_a_bomb_is_a_413_long_before_it_is_unfolded(server: ServerProcess, client: httpx.Client) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    packed = packer.compress(b"0" * MIB) + packer.flush(zlib.Z_FULL_FLUSH)
    megabyte = packer.compress(b"0" * MIB) + packer.flush(zlib.Z_FULL_FLUSH)  # the same bytes each time: packed once
    bomb = packed + megabyte * 2000
    assert len(bomb) < BODY_MAX_BYTES
    began = time.perf_counter()
    answer = client.post("/v3/documents", content=bomb, headers=GZIP)
    assert (answer.status_code, "larger" in answer.json()["error"]) == (413, True)
    assert time.perf_counter() - began < 10
    for name in ("/v1/files/b.bin", "/v3/documents/file"):
        method = "PUT" if name.startswith("/v1") else "POST"
        answer = client.request(
            method, name, params={"containerTag": "bombs"}, content=bomb, headers={"Content-Encoding": "gzip"}
        )
        assert answer.status_code in (400, 413), answer.text
    assert resident_bytes(server) < 1024 * MIB


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "compress"])
def test_another_encoding_is_a_415_that_says_what_is_taken(client: httpx.Client, encoding: str) -> None:
    answer = client.post("/v3/documents", content=b"{}", headers={"Content-Encoding": encoding})
    assert (answer.status_code, "gzip" in answer.json()["error"]) == (415, True)


def test_a_body_that_is_no_json_is_a_415(client: httpx.Client) -> None:
    for kind in ("text/plain", "application/xml", "multipart/form-data; boundary=x"):
        answer = client.post("/v3/documents", content=b'{"content":"x"}', headers={"Content-Type": kind})
        assert (answer.status_code, "JSON" in answer.json()["error"]) == (415, True), kind


@pytest.mark.promise("api.gzip")
def test_long_answers_are_folded_for_those_who_take_it_and_short_ones_are_not(client: httpx.Client, tag: str) -> None:
    for number in range(30):
        client.put(f"/v1/files/notes/{number}.md", params={"containerTag": tag}, content=b"text")
    plain = client.get("/v1/files", params={"containerTag": tag}, headers={"Accept-Encoding": "identity"})
    folded = client.get("/v1/files", params={"containerTag": tag}, headers={"Accept-Encoding": "gzip"})
    assert "content-encoding" not in plain.headers
    assert (folded.headers["content-encoding"], folded.headers["vary"]) == ("gzip", "Accept-Encoding")
    assert [entry["path"] for entry in folded.json()["entries"]] == [entry["path"] for entry in plain.json()["entries"]]
    assert int(folded.headers["content-length"]) < len(plain.content) / 3
    short = client.get("/v1/capabilities", headers={"Accept-Encoding": "gzip"})
    assert len(short.content) < COMPRESS_MIN_BYTES
    assert "content-encoding" not in short.headers
    client.put("/v1/files/long.txt", params={"containerTag": tag}, content=b"x" * 10_000)
    raw = client.get("/v1/files/long.txt", params={"containerTag": tag}, headers={"Accept-Encoding": "gzip"})
    assert (raw.headers.get("content-encoding"), len(raw.content)) == (None, 10_000)


@pytest.mark.parametrize(
    ("header", "taken"),
    [
        (b"", False), (b"gzip", True), (b"GZIP", True), (b"deflate, gzip", True), (b"gzip;q=0", False), (b"gzip; q=0.0", False),
        (b"gzip;q=0.5", True), (b"*", True), (b"*;q=0", False), (b"*, gzip;q=0", False), (b"br", False), (b"identity", False),
    ],
)  # fmt: skip
def test_accept_encoding_is_read_as_it_is_meant(header: bytes, taken: bool) -> None:
    assert takes_gzip(header) is taken


@pytest.mark.promise("api.limits")
def test_json_that_is_too_deep_or_too_wide_is_a_400(client: httpx.Client) -> None:
    deep = b'{"content":"x","metadata":{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    wide = b'{"content":"x","metadata":{"a":[' + b"0," * JSON_VALUES_MAX + b"0,0]}}"
    for method, path in (
        ("POST", "/v3/documents"),
        ("POST", "/v4/search"),
        ("PATCH", "/v3/container-tags/t"),
        ("POST", "/v1/search"),
    ):
        for body in (deep, wide, b"[" * 5_000_000, b'{"a":' * 100_000):
            answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
            assert answer.status_code == 400, (path, body[:20])
            assert "JSON" in answer.json()["error"]


def test_brackets_inside_texts_do_not_count() -> None:
    check_shape(json.dumps({"content": '"[[[{{{' * 1000 + "\\"}).encode())
    check_shape(b"[" * JSON_DEPTH_MAX + b"]" * JSON_DEPTH_MAX)
    check_shape(json.dumps([[] for _ in range(1000)]).encode())
    with pytest.raises(MemdirError, match="deep"):
        check_shape(b"[" * (JSON_DEPTH_MAX + 1))


def raw_answer(server: ServerProcess, pieces: list[bytes]) -> bytes:
    """What the server says to raw bytes, until it closes."""
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 0), timeout=30) as connection:
        answer = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
            while more := connection.recv(65_536):
                answer += more
        except (ConnectionResetError, BrokenPipeError):  # it closed before it had read everything
            while more := connection.recv(65_536):
                answer += more
        return answer


@pytest.mark.promise("api.limits")
@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /" + b"a" * (URL_MAX_BYTES + 10) + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * (HEAD_MAX_BYTES + 10) + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * (HEADERS_MAX + 1) + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: localhost\r\nBad\x00Header: x\r\n\r\n", 400),
        (b"\x16\x03\x01 this is TLS\r\n\r\n", 400),
        (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", 400),
    ],
)
@pytest.mark.parametrize("cut", [10**9, 1000])
def test_a_head_beyond_its_bounds_is_refused_in_json(
    server: ServerProcess, request_bytes: bytes, status: int, cut: int
) -> None:
    answer = raw_answer(server, [request_bytes[at : at + cut] for at in range(0, len(request_bytes), cut)])
    assert answer.startswith(b"HTTP/1.1 %d " % status), answer[:200]
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/json" in head
    assert json.loads(body)["error"]


@pytest.mark.promise("api.limits")
def test_a_header_without_an_end_does_not_fill_the_memory(server: ServerProcess) -> None:
    before = resident_bytes(server)
    url = httpx.URL(server.url)
    with socket.create_connection((url.host, url.port or 0), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(b"a" * (64 * MIB))
    assert resident_bytes(server) - before < 32 * MIB


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (rb'"\ud83d\ude00"', True), (rb'"\uD83D\uDE00\ud83d\ude00"', True), (rb'"\\ud83d"', True), (rb'"\\\\ud800 \n"', True),
        (rb'"\ud83d"', False), (rb'"\ude00"', False), (rb'"\ud83d\ud83d\ude00"', False), (rb'"\\\ud800"', False),
        (rb'"\ud83d\\ude00"', False),
    ],
)  # fmt: skip
def test_half_a_character_is_refused_and_a_whole_one_is_not(text: bytes, whole: bool) -> None:
    if whole:
        check_shape(text)
        json.loads(text).encode()
    else:
        with pytest.raises(MemdirError, match="surrogate"):
            check_shape(text)
