"""The OpenAPI document: served, complete, and true of the routes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi.routing import APIRoute

from memdir.api.examples import EXAMPLES, TAG
from memdir.core.clock import SystemClock
from memdir.server import openapi
from memdir.server.app import routed
from memdir.server.dispatcher import Dispatcher
from memdir.server.docs import render
from memdir.server.engine import Engine
from memdir.store.sqlite.store import SqliteStore
from tests.servers import ServerProcess, start

DOCS = Path(__file__).parent.parent.parent / "docs"
NAMING = (":restore", "/v1/users", "{memory_id}", "{memory_id}/confirm")
"""Ends of calls whose example names something that a fresh server does not have."""


@pytest.fixture(scope="module")
def described(server: ServerProcess) -> dict[str, Any]:
    """The document as it is served, to somebody without a key."""
    answer = httpx.get(f"{server.url}/openapi.json", trust_env=False, timeout=60.0)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    document: dict[str, Any] = answer.json()
    return document


def operations(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, operation) for path, found in document["paths"].items() for method, operation in found.items()]


@pytest.mark.promise("api.openapi")
def test_every_route_is_in_the_document_and_nothing_else(described: dict[str, Any], tmp_path: Path) -> None:
    store = SqliteStore.open(tmp_path, clock=SystemClock())
    dispatcher = Dispatcher()
    try:
        app = routed(store, dispatcher, Engine(store, tmp_path))
        document = openapi.document(app)
        routes = {
            (method.lower(), re.sub(r":path}", "}", route.path))
            for router in app.router.routes
            for route in getattr(getattr(router, "original_router", None), "routes", [router])
            if isinstance(route, APIRoute)
            for method in route.methods
            if route.include_in_schema  # not those that only say what this server does not offer
        }
    finally:
        dispatcher.shutdown()
        store.close()
    assert len(routes) > 25
    assert {(method, path) for method, path, _ in operations(described)} == routes
    assert json.loads(json.dumps(document)) == described


@pytest.mark.promise("api.openapi")
def test_every_operation_says_what_it_takes_and_what_it_answers(described: dict[str, Any]) -> None:
    for method, path, operation in operations(described):
        where = f"{method} {path}"
        answers = operation["responses"]
        assert "HTTPValidationError" not in json.dumps(operation), where
        assert any(status < "400" for status in answers), where
        for status, answer in answers.items():
            assert answer["description"], (where, status)
            if status >= "400" and method != "head":
                assert "application/json" in answer["content"], (where, status)
            elif status in ("200", "201", "202") and method != "head":
                schemas = [content["schema"] for content in answer["content"].values()]
                assert schemas, where
                assert all(schemas), where
        named = {parameter["name"] for parameter in operation["parameters"] if parameter["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path)), where
        if openapi.writes(method, path):
            assert "Idempotency-Key" in {parameter["name"] for parameter in operation["parameters"]}, where
            assert {"409", "422", "507"} <= set(answers), where
        assert operation.get("security", described["security"]) == ([] if path in openapi.OPEN_PATHS else [{"key": []}])
    schemas = described["components"]["schemas"]
    pointers = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))
    assert pointers <= set(schemas)
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[ServerProcess]:
    """A server that nobody has made a key or a user in."""
    running = start(tmp_path / "fresh", "--port", "0")
    yield running
    assert running.stop() == 0


def test_every_json_request_has_an_example_and_the_server_takes_it(described: dict[str, Any], fresh: ServerProcess) -> None:
    wanted = {
        (method, path)
        for method, path, operation in operations(described)
        if "application/json" in operation.get("requestBody", {}).get("content", {})
    }
    assert wanted == set(EXAMPLES)
    with fresh.client() as client:
        made = client.post("/v3/documents", json={"content": "x", "containerTag": TAG, "filepath": "/work/plan.md"}).json()
        for (method, path), body in EXAMPLES.items():
            url = (
                path.replace("{name}", made["id"])
                .replace("{tag}", TAG)
                .replace("{namespace}", TAG)
                .replace("{key}", "build%20server")
            )
            answer = client.request(method, url, json=body)
            found = answer.status_code < 300 or (path.endswith(NAMING) and answer.status_code in (404, 409))
            assert found, (method, url, answer.status_code, answer.text)
            if path.endswith("files:move"):
                client.post(
                    "/v1/files:move", json={"containerTag": TAG, "fromPath": body["toPath"], "toPath": body["fromPath"]}
                )


@pytest.mark.promise("api.openapi")
def test_the_page_of_all_calls_is_what_the_document_says() -> None:
    page = DOCS / "api.md"
    assert page.read_text(encoding="utf-8") == render(), "run `make docs`"
