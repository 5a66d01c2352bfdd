"""What stands before every route, cheapest and most suspicious first: Host, Origin, size of the body, the key, its rate.

Pure ASGI. A browser page of another site cannot reach the server even by DNS rebinding: the Host must be ours, and a request
that a foreign page caused says so in `Origin` or `Sec-Fetch-Site` (w3.org/TR/fetch-metadata).
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterable
from typing import Any, Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memdir.core.errors import MemdirError
from memdir.core.limits import BATCH_MAX_BYTES, FILE_SYNC_MAX_BYTES, IMPORT_MAX_BYTES, MIB
from memdir.server.errors import ForbiddenError, TooLargeError, headers_of, status_of, text_of
from memdir.server.http.guard_policy import GuardPolicy
from memdir.server.http.responses import Answer
from memdir.store.acting import act_as
from memdir.store.errors import InvalidError

log = logging.getLogger(__name__)

BODY_MAX_BYTES: Final = BATCH_MAX_BYTES * 2
"""Of a JSON body: a full batch in base64, with room for names."""
UPLOAD_MAX_BYTES: Final = FILE_SYNC_MAX_BYTES
UPLOAD_OVERHEAD_BYTES: Final = MIB
"""What a multipart form may hold beside the file."""
DRAINED_MAX_BYTES: Final = 1024 * MIB
DRAIN_S: Final = 20.0
"""How much, and how long, is read of a body that is refused for its size."""
LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
INTERNAL_ERROR: Final = "internal error; the server's log has the details"
_OPEN_PATHS: Final = frozenset({"/healthz", "/openapi.json"})
_UPLOAD_PATHS: Final = ("/v1/files/", "/v1/import", "/v3/documents/file")


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, policy: GuardPolicy) -> None:
        self._app = app
        self._policy = policy
        self._hosts = LOOPBACK_HOSTS | {host.lower() for host in policy.hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "websocket":
                await send({"type": "websocket.close", "code": 1008})
                return
            await self._app(scope, receive, send)
            return
        receive, send = heard_out(receive, send)
        answer = Answer(scope, send, self._policy.auditor)
        try:
            receive = await self._admit(scope, receive, answer)
            await self._app(scope, receive, answer.send)
        except MemdirError as error:
            if answer.started:
                raise
            await send_problem(answer.send, error)
        except (ClientGoneError, ClientDisconnect):
            return  # such as a mount that breaks off an upload because the file changed meanwhile
        except Exception:
            log.exception("%s %s failed (request %s)", scope["method"], answer.noted.route, answer.request_id)
            if answer.started and not answer.finished:
                raise  # the connection must break, or the client takes half an answer for a whole one
            if not answer.started:
                await send_json(answer.send, 500, {"error": INTERNAL_ERROR})

    async def _admit(self, scope: Scope, receive: Receive, answer: Answer) -> Receive:
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if sum(name == b"host" for name, _ in scope["headers"]) > 1:
            raise InvalidError("more than one Host header")
        peer = self._policy.proxies.peer(scope, headers)
        self._check_host(peer.host)
        self._check_origin(headers, peer.host)
        path = scope["path"]
        limit = body_limit(path)
        length = _check_length(headers, limit)
        if path not in _OPEN_PATHS:
            key = await self._policy.authenticator.key_of(headers.get("authorization", ""))
            answer.admit(key, peer.address, headers.get("x-request-id"))
            answer.standing = self._policy.rates.take(key)
            scope.setdefault("state", {}).update(
                key=key, noted=answer.noted, quotas=self._policy.quotas, request_id=answer.request_id
            )
            answer.noted.incoming_bytes = length
            act_as(key.org_id)  # to the end of the request, in whatever it starts
        return _counted(receive, limit) if is_upload(path) else replayed(receive, await collected(receive, limit))

    def _check_host(self, host: str) -> None:
        if _host_name(host) not in self._hosts:
            raise ForbiddenError(f"Host {host[:100]!r} is not served here", hint="call the server by the address it listens on")

    def _check_origin(self, headers: dict[str, str], host: str) -> None:
        origin = headers.get("origin")
        if origin is not None:
            scheme, separator, rest = origin.partition("://")
            own = separator and scheme in ("http", "https") and rest == host and _host_name(rest) in self._hosts
            if not own:
                raise ForbiddenError("requests from other web pages are refused")
        if headers.get("sec-fetch-site", "none").lower() not in ("none", "same-origin"):
            raise ForbiddenError("requests from other web pages are refused")


class ClientGoneError(Exception):
    """The client went away while it was sending."""


def _host_name(host: str) -> str:
    """A Host header without its port, lower case; '' when it makes no sense."""
    name, _, port = host.rpartition(":")
    if host.endswith("]") or not name:
        return host.lower()
    return name.lower() if port.isdigit() else ""


def _check_length(headers: dict[str, str], limit: int) -> int:
    """The announced length, 0 when none is."""
    length = headers.get("content-length")
    if length is None:
        return 0
    if not length.isascii() or not length.isdigit():
        raise InvalidError("Content-Length is not a number")
    if len(length) > 19 or int(length) > limit:
        raise too_large(limit)
    return int(length)


def is_upload(path: str) -> bool:
    """Whether the body of a request to `path` is a file, which is never held whole."""
    return path.startswith(_UPLOAD_PATHS)


def body_limit(path: str) -> int:
    """Bytes that the body of a request to `path` may have."""
    if path == "/v1/import":
        return IMPORT_MAX_BYTES
    return UPLOAD_MAX_BYTES + UPLOAD_OVERHEAD_BYTES if is_upload(path) else BODY_MAX_BYTES


def too_large(limit: int) -> TooLargeError:
    """The one wording of a 413."""
    return TooLargeError(f"the body is larger than {limit} bytes", hint="split the request, or leave this file out")


async def collected(receive: Receive, limit: int) -> bytes:
    """The whole body, at most `limit` bytes."""
    pieces: list[bytes] = []
    size = 0
    more = True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        piece = message.get("body", b"")
        size += len(piece)
        if size > limit:
            raise too_large(limit)
        pieces.append(piece)
        more = message.get("more_body", False)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def replayed(receive: Receive, content: bytes) -> Receive:
    """A collected body, handed on as one message."""
    body: bytes | None = content

    async def replay() -> Message:
        nonlocal body
        if body is None:
            return await receive()
        message: dict[str, Any] = {"type": "http.request", "body": body, "more_body": False}
        body = None
        return message

    return replay


def _counted(receive: Receive, limit: int) -> Receive:
    """Pass the body on as it comes, at most `limit` bytes."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > limit:
            raise too_large(limit)
        return message

    return counted


def heard_out(receive: Receive, send: Send) -> tuple[Receive, Send]:
    """Both so that a 413 ends only when the rest of the body came in, at most DRAINED_MAX_BYTES and DRAIN_S: a connection that
    is closed while the client sends is reset, and the client never reads why."""
    refused = ended = False

    async def heard() -> Message:
        nonlocal ended
        message = await receive()
        ended = message["type"] == "http.disconnect" or not message.get("more_body", False)
        return message

    async def sent(message: Message) -> None:
        nonlocal refused
        if message["type"] == "http.response.start":
            refused = message["status"] == 413
        elif refused and not message.get("more_body", False):
            await send({**message, "more_body": True})
            if not ended:
                await _drained(heard)
            message = {"type": "http.response.body", "body": b"", "more_body": False}
        await send(message)

    return heard, sent


async def _drained(receive: Receive) -> None:
    left = DRAINED_MAX_BYTES
    try:
        async with asyncio.timeout(DRAIN_S):
            while left > 0:
                message = await receive()
                left -= len(message.get("body", b""))
                if message["type"] == "http.disconnect" or not message.get("more_body", False):
                    return
    except TimeoutError:
        return


async def send_problem(send: Send, error: MemdirError) -> None:
    """Answer with an error of ours."""
    headers = [(name.lower().encode(), value.encode()) for name, value in headers_of(error).items()]
    await send_json(send, status_of(error), {"error": text_of(error)}, headers)


async def send_json(send: Send, status: int, body: object, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
    """A small JSON answer without a framework."""
    raw = json.dumps(body).encode()
    start = [
        (b"content-type", b"application/json"),
        (b"content-length", str(len(raw)).encode()),
        (b"x-content-type-options", b"nosniff"),
        *headers,
    ]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": raw})
