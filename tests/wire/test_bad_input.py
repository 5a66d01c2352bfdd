"""Every route with what nobody should send: a 4xx that says what is wrong, and never a 5xx."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from memdir.api.examples import EXAMPLES
from memdir.server.docs import described
from memdir.server.openapi import OPEN_PATHS

DOCUMENT = described()
CALLS = sorted((method, path) for path, methods in DOCUMENT["paths"].items() for method in methods if path not in OPEN_PATHS)
JSON_CALLS = [
    (method, path)
    for method, path in CALLS
    if "application/json" in DOCUMENT["paths"][path][method].get("requestBody", {}).get("content", {})
]
JSON = {"Content-Type": "application/json"}
TAG = "bad-input"
NO_OBJECT = (b"", b"{", b"nonsense", b"[]", b"7", b'"text"', b"null", b"\xff\xfe", b'{"a":}', b"{'a': 1}")
STRANGE: tuple[object, ...] = (
    None, True, -1, 2**70, 1e308, "", "\x00", "\ud800", "x" * 70_000, [], [None], {}, {"a": {"b": [1]}}, ["\x00"], "../../etc",
)  # fmt: skip
STRANGE_TEXTS = ("", "%00", "%ff%fe", "..%2f..", "x" * 5000, "-1", "99999999999999999999", "NaN", "%ED%A0%80", "'; drop table")


def filled(path: str, value: str = "none") -> str:
    """The path with its parameters set."""
    return "".join(part if number % 2 == 0 else value for number, part in enumerate(_split(path)))


def _split(path: str) -> list[str]:
    return path.replace("}", "{").split("{")


def judged(answer: httpx.Response, what: object) -> int:
    """The status, after what is true of every answer."""
    where = f"{answer.request.method} {answer.request.url}"[:200]
    if answer.request.method != "HEAD" and answer.status_code >= 400:
        assert answer.headers["content-type"] == "application/json", (where, what)
        error = answer.json()["error"]
        assert isinstance(error, str), (where, what)
        assert error, (where, what)
        assert len(answer.content) < 5000, "a refusal repeats little of what was sent"
    assert answer.status_code < 500 or answer.status_code == 501, (where, str(what)[:200], answer.text[:500])
    return answer.status_code


@pytest.mark.promise("api.bad-input")
@pytest.mark.parametrize(("method", "path"), JSON_CALLS)
def test_a_body_that_is_no_object_is_refused(client: httpx.Client, method: str, path: str) -> None:
    optional = not DOCUMENT["paths"][path][method]["requestBody"].get("required", False)
    for body in NO_OBJECT:
        if optional and body in (b"", b"null"):  # no body at all
            continue
        answer = client.request(method, filled(path), content=body, headers=JSON)
        assert judged(answer, body) in (400, 404, 422, 501), (body, answer.status_code)


def strange_bodies(example: dict[str, Any], properties: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The example with one field at a time that is not what it should be."""
    for name in {**properties, **example}:
        for value in STRANGE:
            yield {**example, name: value}


@pytest.mark.promise("api.bad-input")
@pytest.mark.parametrize(("method", "path"), JSON_CALLS)
def test_no_field_of_a_body_can_be_what_breaks_a_route(client: httpx.Client, method: str, path: str) -> None:
    content = DOCUMENT["paths"][path][method]["requestBody"]["content"]["application/json"]
    name = content["schema"].get("$ref", "").rpartition("/")[2]
    properties = DOCUMENT["components"]["schemas"].get(name, {}).get("properties", {})
    example = {**EXAMPLES.get((method, path), {}), "waitMs": 0}
    for body in strange_bodies(example, properties):
        raw = json.dumps(body).encode()
        judged(client.request(method, filled(path, TAG), content=raw, headers=JSON), body)


@pytest.mark.promise("api.bad-input")
@pytest.mark.parametrize(("method", "path"), CALLS)
def test_no_parameter_can_be_what_breaks_a_route(client: httpx.Client, method: str, path: str) -> None:
    body = json.dumps(EXAMPLES.get((method, path), {})).encode() if (method, path) in JSON_CALLS else None
    headers = JSON if body is not None else {}
    parameters = DOCUMENT["paths"][path][method]["parameters"]
    queries = [parameter for parameter in parameters if parameter["in"] == "query"]
    needed = "&".join(f"{query['name']}={TAG}" for query in queries if query.get("required"))
    for text in STRANGE_TEXTS:
        if "{" in path:
            judged(client.request(method, f"{filled(path, text)}?{needed}", content=body, headers=headers), text)
        for query in queries:
            if query["name"] != "wait":
                judged(
                    client.request(
                        method, f"{filled(path, TAG)}?{needed}&{query['name']}={text}", content=body, headers=headers
                    ),
                    text,
                )
    for parameter in parameters:
        if parameter["in"] == "header":
            for text in ("", '"', "x" * 300, '"99999999999999999999"', 'W/"1.2.x"', "é"):
                odd = {**headers, parameter["name"]: text.encode("latin-1")}
                judged(client.request(method, f"{filled(path, TAG)}?{needed}", content=body, headers=odd), text)


@pytest.mark.promise("api.bad-input")
def test_what_must_be_there_and_is_not_is_named(client: httpx.Client) -> None:
    for method, path in CALLS:
        for parameter in DOCUMENT["paths"][path][method]["parameters"]:
            if parameter["in"] == "query" and parameter.get("required"):
                answer = client.request(method, filled(path, "1"))
                assert answer.status_code == 400, (method, path)
                assert method == "head" or "query." in answer.json()["error"], (method, path)
    for unknown in ("/v1/none", "/v3", "/v9/documents", "/ns//x", "/v1/files:none"):
        assert judged(client.get(unknown), unknown) == 404
    assert judged(client.put("/v1/capabilities"), "method") == 405
