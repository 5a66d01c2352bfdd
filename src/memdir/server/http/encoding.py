"""Between the guard and the routes: bodies that come in compressed, the shape of JSON, answers that go out compressed.

gzip only (RFC 9110, 8.4.1). A compressed body counts by what it unfolds to, so that a bomb is a 413 after as many bytes as any
other body may have. JSON is measured before it is parsed: depth and number of values are bounded, whatever route it is for.

An answer is compressed when it is JSON of at least `COMPRESS_MIN_BYTES`, the client takes gzip, and nothing forbids to
store it: an answer that shows a secret says `no-store`, and a compressed secret beside text of the asker's choice could be
guessed from the length (BREACH). Contents of files are not JSON and go out as they are. A compressed answer has the same
ETag, as a weak one.
"""

from __future__ import annotations

import re
import zlib
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memdir.core.limits import JSON_DEPTH_MAX, JSON_VALUES_MAX, KIB
from memdir.server.errors import UnsupportedError
from memdir.server.http.guard import body_limit, collected, is_upload, replayed, too_large
from memdir.store.errors import InvalidError

COMPRESS_MIN_BYTES: Final = KIB
_LEVEL: Final = 1
"""Of zlib: a page of 50 documents (26 KiB) becomes 2.2 KiB in 0.36 ms; level 6 takes twice as long for a tenth less."""
_PIECE_BYTES: Final = 256 * KIB
_WBITS_GZIP: Final = 31
_TOKENS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"|[\[\]{},]', re.DOTALL)
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPES: Final = re.compile(rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F])|.)", re.DOTALL)
"""Escapes in JSON; group 1 is a surrogate without its other half."""


class Encoding:
    """Wraps the application, inside the guard."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        encoding = content_type = accepted = b""
        for name, value in scope["headers"]:
            if name == b"content-encoding":
                encoding = value.strip().lower()
            elif name == b"content-type":
                content_type = value
            elif name == b"accept-encoding":
                accepted = value
        if encoding not in (b"", b"identity"):
            if encoding not in (b"gzip", b"x-gzip"):
                shown = encoding[:40].decode("latin-1")
                raise UnsupportedError(f"Content-Encoding {shown!r} is not taken here", hint="send gzip, or nothing")
            limit = body_limit(scope["path"])
            receive = _unfolded(receive, limit)
            scope = {**scope, "headers": [pair for pair in scope["headers"] if pair[0] not in _OF_THE_FOLDED]}
        if is_json(content_type) and not is_upload(scope["path"]):
            body = await collected(receive, body_limit(scope["path"]))
            check_shape(body)
            receive = replayed(receive, body)
        if takes_gzip(accepted):
            send = _Compressing(send).send
        await self._app(scope, receive, send)


_OF_THE_FOLDED: Final = (b"content-encoding", b"content-length")


def is_json(content_type: bytes) -> bool:
    """Whether a Content-Type says JSON."""
    kind = content_type.split(b";", 1)[0].strip().lower()
    return kind == b"application/json" or (kind.startswith(b"application/") and kind.endswith(b"+json"))


def takes_gzip(accepted: bytes) -> bool:
    """Whether an Accept-Encoding allows gzip: named (or `*`), and not with `q=0`."""
    found = False
    for item in accepted.lower().split(b","):
        name, _, parameters = item.partition(b";")
        if name.strip() in (b"gzip", b"*"):
            weight = parameters.strip().removeprefix(b"q=").strip() if parameters else b"1"
            allowed = weight.strip(b"0.") != b""
            if name.strip() == b"gzip":
                return allowed
            found = allowed
    return found


def check_shape(body: bytes) -> None:
    """InvalidError for JSON that is nested too deep, has too many values, or spells half a character (a lone surrogate), which
    is no text. Whether it is JSON the parser says."""
    if _SURROGATE.search(body) is not None and any(escape[1] for escape in _ESCAPES.finditer(body)):
        raise InvalidError("the request holds text that is not valid Unicode (a lone surrogate)")
    if body.count(b"[") + body.count(b"{") <= JSON_DEPTH_MAX and body.count(b",") <= JSON_VALUES_MAX:
        return
    depth = values = 0
    for match in _TOKENS.finditer(body):
        token = match.group()
        if token in (b"[", b"{"):
            depth += 1
            if depth > JSON_DEPTH_MAX:
                raise InvalidError(f"the JSON is nested more than {JSON_DEPTH_MAX} deep")
        elif token in (b"]", b"}"):
            depth -= 1
        elif token == b",":
            values += 1
            if values > JSON_VALUES_MAX:
                raise InvalidError(f"the JSON has more than {JSON_VALUES_MAX} values")


def _unfolded(receive: Receive, limit: int) -> Receive:
    """The body unfolded, at most `limit` bytes of it, in pieces. InvalidError when it is not gzip."""
    unzip = zlib.decompressobj(_WBITS_GZIP)
    size = 0
    waiting = b""
    more = True

    async def unfolded() -> Message:
        nonlocal size, waiting, more
        while True:
            if not waiting and unzip.eof and not more:
                return await receive()
            if not waiting and more:
                message = await receive()
                if message["type"] != "http.request":
                    return message
                waiting = message.get("body", b"")
                more = message.get("more_body", False)
            try:
                piece = unzip.decompress(waiting, _PIECE_BYTES)
            except zlib.error:
                raise InvalidError("the body is not gzip, though Content-Encoding says so") from None
            waiting = unzip.unconsumed_tail
            size += len(piece)
            if size > limit:
                raise too_large(limit)
            last = not waiting and not more and (unzip.eof or not piece)
            if last and not unzip.eof:
                raise InvalidError("the gzip of the body ends too early")
            if unzip.eof and (waiting or unzip.unused_data):
                raise InvalidError("something follows the gzip of the body")
            if piece or last:
                return {"type": "http.request", "body": piece, "more_body": not last}

    return unfolded


class _Compressing:
    """Holds the start of an answer until its first body message shows whether it is whole and worth it."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._start: Message | None = None

    async def send(self, message: Message) -> None:
        """Pass a message on."""
        if message["type"] == "http.response.start" and _compressible(message):
            self._start = message
            return
        start, self._start = self._start, None
        if start is not None:
            body = message.get("body", b"")
            headers = [*start["headers"], (b"vary", b"Accept-Encoding")]
            if not message.get("more_body", False) and len(body) >= COMPRESS_MIN_BYTES:
                packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WBITS_GZIP)
                body = packer.compress(body) + packer.flush()
                headers = [_of_the_compressed(pair, len(body)) for pair in headers]
                headers.append((b"content-encoding", b"gzip"))
                message = {**message, "body": body}
            await self._send({**start, "headers": headers})
        await self._send(message)


def _compressible(start: Message) -> bool:
    json = False
    for name, value in start["headers"]:
        if name == b"content-encoding" or (name == b"cache-control" and b"no-store" in value):
            return False
        json = json or (name == b"content-type" and is_json(value))
    return json


def _of_the_compressed(pair: tuple[bytes, bytes], size: int) -> tuple[bytes, bytes]:
    name, value = pair
    if name == b"content-length":
        return name, str(size).encode()
    if name == b"etag" and not value.startswith(b"W/"):
        return name, b"W/" + value
    return pair
