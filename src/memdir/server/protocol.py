"""HTTP/1.1 on a connection, with bounds on what comes before the body: the parser itself would keep any amount of it.

A request line or head beyond its bound is answered (414, 431) and the connection closed, as is what is no HTTP at all (400).
"""

from __future__ import annotations

import json
from typing import Final, NoReturn

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from memdir.core.limits import HEAD_MAX_BYTES, HEADERS_MAX, URL_MAX_BYTES

_TEXTS: Final = {
    400: "this is not HTTP",
    414: f"the URL is longer than {URL_MAX_BYTES} bytes",
    431: f"the headers are more than {HEADERS_MAX}, or larger than {HEAD_MAX_BYTES} bytes",
}


class _RefusedError(Exception):
    """Ends the parsing; the parser hands it on as an error of its own."""


class BoundedProtocol(HttpToolsProtocol):
    """Uvicorn's protocol that refuses endless heads."""

    _status = 400
    _in_head = False
    _head_bytes = 0
    """Of the request whose head is coming in: what its complete headers have, and whole packets of an incomplete one."""

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
