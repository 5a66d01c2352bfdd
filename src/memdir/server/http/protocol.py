"""HTTP/1.1 on a connection, with bounds on what comes before the body: the parser itself would keep any amount of it.

A request line or head beyond its bound is answered (414, 431) and the connection closed, as is what is no HTTP at all (400). So
is one whose head does not come to its end (408): after a while, or when too many of the same client's wait for theirs.
"""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from typing import Final, NoReturn

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from memdir.core.limits import HEAD_MAX_BYTES, HEADERS_MAX, URL_MAX_BYTES

HEAD_S: Final = 10.0
"""How long a request's head may take."""
PENDING_HEADS_MAX: Final = 64
"""Heads of one client that may be on their way at a time; the oldest gives way to a new one, so that who only opens connections
keeps nobody out."""
_TEXTS: Final = {
    408: f"the request's head did not come within {HEAD_S:g} s",
    400: "this is not HTTP",
    414: f"the URL is longer than {URL_MAX_BYTES} bytes",
    431: f"the headers are more than {HEADERS_MAX}, or larger than {HEAD_MAX_BYTES} bytes",
}


_HEADS: Final[dict[str, OrderedDict[BoundedProtocol, None]]] = {}
"""By the client's address. On the event loop's thread only."""


class _RefusedError(Exception):
    """Ends the parsing; the parser hands it on as an error of its own."""


class BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol that refuses endless heads."""

    _status = 400
    _in_head = False
    _head_bytes = 0
    """Of the request whose head is coming in: what its complete headers have, and whole packets of an incomplete one."""

    _late: asyncio.TimerHandle | None = None
    _heads: OrderedDict[BoundedProtocol, None] | None = None
    """Of the same client, those whose head is on its way, the oldest first."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        client = self.client[0] if self.client else ""
        self._heads = _HEADS.setdefault(client, OrderedDict())
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._head_came()
        super().connection_lost(exc)
        client = self.client[0] if self.client else ""
        if not _HEADS.get(client, True):
            del _HEADS[client]

    def _expect_head(self) -> None:
        self._head_came()
        assert self._heads is not None
        self._heads[self] = None
        self._late = self.loop.call_later(HEAD_S, self._give_up)
        while len(self._heads) > PENDING_HEADS_MAX:
            next(iter(self._heads))._give_up()

    def _head_came(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
        if self._heads is not None:
            self._heads.pop(self, None)

    def _give_up(self) -> None:
        self._head_came()
        self._status = 408
        self.send_400_response("")

    def data_received(self, data: bytes) -> None:
        if self._in_head:  # the parser collects a header until its end: its pieces are counted here
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_MAX_BYTES:
                self._status = 414 if not self.headers and len(self.url) > URL_MAX_BYTES else 431
                self.send_400_response("")
                return
        super().data_received(data)

    def on_message_begin(self) -> None:
        self._in_head = True
        self._head_bytes = 0
        self._expect_head()
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > URL_MAX_BYTES:
            self._refuse(414)

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        if len(self.headers) > HEADERS_MAX or sum(len(name) + len(value) for name, value in self.headers) > HEAD_MAX_BYTES:
            self._refuse(431)

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._head_came()
        super().on_headers_complete()

    def _refuse(self, status: int) -> NoReturn:
        self._status = status
        raise _RefusedError

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        """In JSON, like every other error."""
        if self.transport.is_closing():
            return
        body = json.dumps({"error": _TEXTS[self._status]}).encode()
        head = (
            b"content-type: application/json\r\nx-content-type-options: nosniff\r\nconnection: close\r\n"
            b"content-length: " + str(len(body)).encode() + b"\r\n\r\n"
        )
        self.transport.write(STATUS_LINE[self._status] + head + body)
        self.transport.close()
