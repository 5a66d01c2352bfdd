"""The ASGI application: routes, errors, and the guard around them."""

from __future__ import annotations

import errno
import logging
import time

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

import memdir
from memdir.core.errors import MemdirError
from memdir.server import openapi
from memdir.server.dispatcher import Dispatcher
from memdir.server.engine import Engine
from memdir.server.errors import headers_of, status_of, text_of
from memdir.server.http.encoding import Encoding, is_json
from memdir.server.http.etags import tag_of
from memdir.server.http.guard import INTERNAL_ERROR, Guard
from memdir.server.http.guard_policy import GuardPolicy
from memdir.server.http.idempotency import Repeats
from memdir.server.http.pages import Walks
from memdir.server.routes import (
    admin,
    agents,
    elsewhere,
    facts,
    files,
    forget,
    indexes,
    jobs,
    ns,
    profile,
    service,
    transfer,
    v3,
    v4,
    versions,
)
from memdir.server.services.contents.files import entry_of
from memdir.store.errors import DiskFullError, PreconditionError
from memdir.store.store import Store

log = logging.getLogger(__name__)

_DETAILS_MAX = 20
_INPUT_MAX_CHARS = 200
_REFUSAL_TOLD_S = 600
"""How often the log has it: a full disk refuses thousands of writes, and a mount tries each of them again and again."""


def create_app(store: Store, dispatcher: Dispatcher, engine: Engine, *, policy: GuardPolicy | None = None) -> ASGIApp:
    """The application over a store, behind its guard; `policy` says who may come in."""
    policy = policy or GuardPolicy.over(store, dispatcher)
    return Guard(
        Encoding(Repeats(routed(store, dispatcher, engine, policy=policy), answers=store.answers, dispatcher=dispatcher)),
        policy,
    )


def routed(store: Store, dispatcher: Dispatcher, engine: Engine, *, policy: GuardPolicy | None = None) -> FastAPI:
    """The routes, and the errors they answer with."""
    app = FastAPI(
        title="memdir", version=memdir.__version__, docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False,
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )  # fmt: skip
    app.state.store = store
    app.state.dispatcher = dispatcher
    app.state.engine = engine
    app.state.walks = Walks()
    app.state.refusal_told_until_s = 0.0
    app.state.guard_policy = policy or GuardPolicy.over(store, dispatcher)
    app.add_exception_handler(MemdirError, _on_memdir_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(UnicodeEncodeError, _on_unicode)
    app.add_exception_handler(DiskFullError, _on_refused_write)
    app.add_exception_handler(OSError, _on_refused_write)
    app.add_exception_handler(Exception, _on_unexpected)
    # The busiest first: they are tried in turn.
    rooms = (files, v3, service, admin, versions, transfer, jobs, indexes, agents, elsewhere, v4, facts, profile, forget, ns)
    for room in rooms:
        app.include_router(room.router)
    app.add_api_route("/openapi.json", openapi.route(app, dispatcher), include_in_schema=False)
    return app


async def _on_memdir_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, MemdirError)
    body: dict[str, object] = {"error": text_of(error)}
    if isinstance(error, PreconditionError):
        current = error.current
        placed = current is not None and current.path is not None
        body["current"] = entry_of(current).model_dump(by_alias=True) if placed and current is not None else None
    headers = headers_of(error)
    if isinstance(error, PreconditionError) and error.current is not None:
        own = request.url.path.startswith("/v1/")
        headers["ETag"] = f'"{error.current.revision}"' if own else tag_of(error.current)
    return JSONResponse(body, status_code=status_of(error), headers=headers)


async def _on_invalid(request: Request, error: Exception) -> JSONResponse:
    """A request of the wrong shape: which field, and why, without repeating what was sent at length."""
    assert isinstance(error, RequestValidationError)
    if any(item["loc"] == ("body",) for item in error.errors()) and not is_json(
        request.headers.get("content-type", "").encode("latin-1")
    ):
        return JSONResponse({"error": "the body must be JSON (send Content-Type: application/json)"}, status_code=415)
    details = [
        {
            "field": ".".join(str(part) for part in item["loc"]),
            "message": str(item["msg"]).removeprefix("Value error, ")[:_INPUT_MAX_CHARS],
        }
        for item in error.errors()[:_DETAILS_MAX]
    ]
    first = f"{details[0]['field']}: {details[0]['message']}" if details else "the request has the wrong shape"
    text = first.encode("utf-8", "replace").decode()
    return JSONResponse({"error": text, "details": details}, status_code=400)


async def _on_http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    text = str(error.detail)
    if error.status_code == 404:
        text = f"there is no {request.method} {request.url.path[:200]}"
    return JSONResponse({"error": text}, status_code=error.status_code, headers=error.headers)


async def _on_refused_write(request: Request, error: Exception) -> JSONResponse:
    """A full disk is no mistake of ours: the caller is told, keeps what it has, and tries again later."""
    if isinstance(error, OSError) and error.errno not in (errno.ENOSPC, errno.EDQUOT):
        raise error
    state, now_s = request.app.state, time.monotonic()
    if now_s >= state.refusal_told_until_s:
        log.error(
            "%s %s: no room on the disk; further refusals are not logged for %d s",
            request.method,
            request.url.path[:200],
            _REFUSAL_TOLD_S,
        )
        state.refusal_told_until_s = now_s + _REFUSAL_TOLD_S
    return JSONResponse({"error": "the server's disk is full"}, status_code=507)


async def _on_unexpected(_: Request, __: Exception) -> JSONResponse:
    """A mistake of ours; the guard logs it. Nothing of it goes to the caller."""
    return JSONResponse({"error": INTERNAL_ERROR}, status_code=500)


async def _on_unicode(_: Request, __: Exception) -> JSONResponse:
    """JSON can spell half a character (a lone surrogate), which is no text and cannot be stored."""
    return JSONResponse({"error": "the request holds text that is not valid Unicode (a lone surrogate)"}, status_code=400)
