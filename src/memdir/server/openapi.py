"""The OpenAPI document: what the framework derives from routes and models, completed by what all routes have in common.

A route brings its models, its own further statuses (`responses=`) and, when it reads the body itself, `openapi_extra`. Here
come the key, the parameters of paths that a route reads raw, the errors that the guard and the layers before the routes
answer with, and the headers. `tests/server/test_openapi.py` compares the result with the routes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from fastapi import FastAPI, Response

from memdir.api.examples import EXAMPLES
from memdir.api.v1 import PreconditionFailed, Problem
from memdir.server.dispatcher import Dispatcher

METHODS: Final = ("get", "put", "post", "delete", "patch", "head")
OPEN_PATHS: Final = frozenset({"/healthz", "/openapi.json"})
"""Answered without a key."""
_ERRORS: Final = {
    400: "The request has the wrong shape, or cannot be carried out whatever the server holds.",
    401: "No key, or one that this server does not know.",
    403: "The key may not do this, or the request comes from a page of another site.",
    404: "There is no such thing, or none that the key may see.",
    409: "The request does not fit what stands there, or the same request is still being carried out.",
    412: "`If-Match` or `If-None-Match` did not hold; `current` is what stands there now.",
    413: "The body is larger than the server takes, folded or unfolded; or the quota of the key or organisation is used up.",
    414: "The URL is too long.",
    415: "The body is in a form that the server does not read.",
    422: "The idempotency key was used before, for another request.",
    429: "The key asks too often; `Retry-After` says when to come back.",
    431: "The headers are too many or too large.",
    503: "The server is busy or still loading; `Retry-After` says when to come back.",
    507: "The server's disk is full; nothing was changed.",
}
_EVERYWHERE: Final = (400, 401, 403, 414, 429, 431, 503)
_WRITING: Final = (409, 412, 413, 415, 422, 507)
_WITH_BODY: Final = (413, 415)
_RETRY: Final = {"Retry-After": {"schema": {"type": "string"}, "description": "Seconds to wait."}}
_PARAMETER: Final = re.compile(r"{(\w+)}")
_KEY_PARAMETER: Final = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[\\x21-\\x7e]+$"},
    "description": "The same key with the same request gets the first answer again for a day; the change happens once.",
}


def document(app: FastAPI) -> dict[str, Any]:
    """The document of an application with all its routes."""
    made = app.openapi()
    made["info"]["description"] = (
        "Memory as a directory, the server. `/v3`, `/v4` and `/ns` speak the API of Supermemory's published clients; `/v1` is "
        "our own: exact bytes with revisions and an ordered feed of changes. Times are ISO 8601 UTC."
    )
    components = made.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    schemas.pop("HTTPValidationError", None)
    schemas.pop("ValidationError", None)
    for model in (Problem, PreconditionFailed):
        schema = model.model_json_schema(ref_template="#/components/schemas/{model}")
        schemas.update(schema.pop("$defs", {}))
        schemas[model.__name__] = schema
    components["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer", "description": "An API key of this server."}}
    made["security"] = [{"key": []}]
    for path, operations in made["paths"].items():
        for method in METHODS:
            if method in operations:
                _complete(operations[method], method, path)
    return made


def route(app: FastAPI, dispatcher: Dispatcher) -> Callable[[], Awaitable[Response]]:
    """What answers GET /openapi.json. The document is made by the first who asks, so that the server starts without it."""
    made: list[bytes] = []

    def make() -> bytes:
        if not made:
            made.append(json.dumps(document(app), ensure_ascii=False).encode())
        return made[0]

    async def described() -> Response:
        return Response(await dispatcher.run(make), media_type="application/json")

    return described


def writes(method: str, path: str) -> bool:
    """Whether a call changes something."""
    if method.lower() in ("get", "head"):
        return False
    if method.lower() != "post":
        return True
    before, _, last = path.rstrip("/").rpartition("/")
    return not (last in ("search", "profile", "list") or before.endswith(("/list", "/profile", "/list/documents")))


def _complete(operation: dict[str, Any], method: str, path: str) -> None:
    operation.setdefault("tags", [path.split("/", 2)[1].split(".", 1)[0]])
    responses = operation["responses"]
    responses.pop("422", None)
    if path in OPEN_PATHS:
        operation["security"] = []
        statuses: tuple[int, ...] = (400, 403, 414, 431, 503)
    else:
        statuses = _EVERYWHERE
    parameters = operation.setdefault("parameters", [])
    known = {parameter["name"].lower() for parameter in parameters}
    for name in _PARAMETER.findall(path):
        if name.lower() not in known:
            parameters.append({"name": name, "in": "path", "required": True, "schema": {"type": "string"}})
    if any(parameter["in"] in ("path", "query") for parameter in parameters) or "requestBody" in operation:
        statuses += (404,)
    if writes(method, path):
        statuses += _WRITING
        if "idempotency-key" not in known:
            parameters.append(_KEY_PARAMETER)
        else:
            parameters[:] = [_KEY_PARAMETER if p["name"].lower() == "idempotency-key" else p for p in parameters]
    elif "requestBody" in operation:
        statuses += _WITH_BODY
    for status in statuses:
        responses.setdefault(str(status), _error(status, method))
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is not None and (example := EXAMPLES.get((method, path))) is not None:
        content["example"] = example


def _error(status: int, method: str) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": _ERRORS[status]}
    if method != "head":
        name = "PreconditionFailed" if status == 412 else "Problem"
        answer["content"] = {"application/json": {"schema": {"$ref": f"#/components/schemas/{name}"}}}
    if status in (429, 503):
        answer["headers"] = _RETRY
    return answer
