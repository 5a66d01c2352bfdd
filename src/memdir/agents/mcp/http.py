"""`memdir mcp --http`: Streamable HTTP on the loopback address, for hosts that cannot start a process.

Before the protocol sees a request: the Host must be ours (a page that rebinds its name to 127.0.0.1 is refused), so must the
Origin when a browser sends one, and the bearer token must be right. Every request stands alone (no sessions, in both eras), so
nothing grows with clients that vanish; there is no stream from server to client, and GET is answered 405, as the specification
allows (modelcontextprotocol.io/specification/2026-07-28/basic/transports).
"""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from memdir.agents.mcp.parent import end_soon
from memdir.agents.mcp.session import make_server
from memdir.agents.mcp.tools import Around
from memdir.core.errors import BusyError, UsageError
from memdir.core.ids import new_secret
from memdir.core.limits import MIB
from memdir.core.paths import AppPaths, write_private

PATH: Final = "/mcp"
ENV_TOKEN: Final = "MEMDIR_MCP_TOKEN"  # noqa: S105  a name of a variable
_TOKEN_FILE: Final = "mcp-token"  # noqa: S105  a name of a file
_TOKEN_MIN_CHARS: Final = 16
_TOKEN_MAX_BYTES: Final = 4096
_BODY_MAX_BYTES: Final = MIB
_REQUESTS_MAX: Final = 64
_STOP_WAIT_S: Final = 3
_HOST: Final = "127.0.0.1"


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = frozenset(f"{name}:{port}" for name in (_HOST, "localhost"))
        self._token = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "http":
            refused = self._refused(scope)
            if refused is None:
                await self._app(scope, receive, send)
            else:
                await _answer(send, *refused)
        else:
            await send({"type": "websocket.close", "code": 1008})

    def _refused(self, scope: Scope) -> tuple[int, str, dict[str, str]] | None:
        """Status, reason and headers of a refusal; None for a request that may pass. Cheapest and most suspicious first."""
        given: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            given.setdefault(name.lower(), []).append(value)
        hosts = given.get(b"host", [])
        if len(hosts) != 1 or hosts[0].decode("latin-1").lower() not in self._hosts:
            return 403, "this Host is not served here", {}
        for origin in given.get(b"origin", []):
            scheme, _, host = origin.decode("latin-1").lower().partition("://")
            if scheme != "http" or host not in self._hosts:
                return 403, "requests from other web pages are refused", {}
        sent = given.get(b"authorization", [])
        if len(sent) != 1 or not hmac.compare_digest(sent[0], self._token):
            return 401, "the bearer token is missing or wrong", {"www-authenticate": 'Bearer realm="memdir"'}
        if scope["path"] != PATH:
            return 404, f"only {PATH} is served here", {}
        if scope["method"] != "POST":
            return 405, "only POST is served here", {"allow": "POST"}
        return None


class _Server(uvicorn.Server):
    """Says when it answers, and ends in order on SIGINT and SIGTERM."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], None]) -> None:
        super().__init__(config)
        self._started = started

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._started()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Uvicorn would raise the signal again when it is done, which looks like a crash to whoever waits for us."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        yield

    def _stop(self) -> None:
        self.should_exit = True


def token_for(paths: AppPaths) -> tuple[str, Path | None]:
    """The token that clients must send, and the file it is kept in (0600, made at the first start); None when it comes from
    `MEMDIR_MCP_TOKEN`."""
    named = os.environ.get(ENV_TOKEN, "").strip()
    file = paths.config_dir / _TOKEN_FILE
    token = named
    if not named:
        try:
            with open(file, "rb") as handle:
                token = handle.read(_TOKEN_MAX_BYTES).decode("ascii", "replace").strip()
        except FileNotFoundError:
            token = new_secret("mdm")
            write_private(file, f"{token}\n".encode())
    if len(token) < _TOKEN_MIN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
        where = f"the environment variable {ENV_TOKEN}" if named else str(file)
        raise UsageError(
            f"{where} does not hold a token: at least {_TOKEN_MIN_CHARS} printable characters without spaces",
            hint="unset it to get one made" if named else "remove the file to get a new one",
        )
    return token, None if named else file


def serve_http(around: Around, *, port: int, token: str, announce: Callable[[str], None]) -> None:
    """Serve until SIGINT or SIGTERM. `announce` gets the address once clients can connect. BusyError for a port in use."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((_HOST, port))
        except OSError as error:
            raise BusyError(
                f"port {port} cannot be listened on: {error.strerror}", hint="choose another with --port"
            ) from error
        listener.listen(_REQUESTS_MAX)
        bound = listener.getsockname()[1]
        around.link.start()
        app = make_server(around).streamable_http_app(
            streamable_http_path=PATH, json_response=True, stateless_http=True, max_request_body_size=_BODY_MAX_BYTES
        )
        config = uvicorn.Config(
            Guard(app, port=bound, token=token), log_config=None, access_log=False, lifespan="on", server_header=False,
            limit_concurrency=_REQUESTS_MAX, timeout_graceful_shutdown=_STOP_WAIT_S,
        )  # fmt: skip
        _Server(config, lambda: announce(f"http://{_HOST}:{bound}{PATH}")).run(sockets=[listener])
        end_soon()


async def _answer(send: Send, status: int, reason: str, headers: dict[str, str]) -> None:
    """A refusal with a JSON-RPC error without an id as its body, as the specification asks."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": reason}}
    raw = json.dumps(body).encode()
    fields = {"content-type": "application/json", "content-length": str(len(raw)), **headers}
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
        }
    )
    await send({"type": "http.response.body", "body": raw})
