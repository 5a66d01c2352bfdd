"""Standard input: what is no message is answered with an error, and the end is held back until what was asked is answered.

The SDK passes over lines that are no messages, and whoever wrote one waits for ever. It breaks off calls under way when its
input ends. A script that pipes requests into `memdir mcp`, and a host that stores something as the last thing it does, want
their answers: so the end is passed on when there is none left to give, and after `DRAIN_S` in any case, because hosts kill a
server that does not end within two seconds or so.
"""

from __future__ import annotations

import contextvars
from types import TracebackType
from typing import TYPE_CHECKING, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, JSONRPCRequest, JSONRPCResponse, RequestId
from pydantic import ValidationError

if TYPE_CHECKING:
    from mcp.shared._stream_protocols import ReadStream, WriteStream

DRAIN_S: Final = 1.5

Received = SessionMessage | Exception


class Unanswered:
    """The requests that were read and not answered yet. A client that uses an id twice at once is its own concern."""

    def __init__(self) -> None:
        self._ids: set[RequestId] = set()
        self._changed = anyio.Event()

    def read(self, item: Received) -> None:
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCRequest):
            self._ids.add(item.message.id)

    def sent(self, item: SessionMessage) -> None:
        if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
            self._ids.discard(item.message.id)
            self._changed.set()
            self._changed = anyio.Event()

    async def none_left(self) -> None:
        """Wait until all are answered, at most `DRAIN_S`."""
        with anyio.move_on_after(DRAIN_S):
            while self._ids:
                await self._changed.wait()


class _Wrapped:
    """What both ends share: closing is the transport's."""

    def __init__(self, stream: ReadStream[Received] | WriteStream[SessionMessage]) -> None:
        self._closing = stream

    async def aclose(self) -> None:
        await self._closing.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


class Incoming(_Wrapped):
    """The messages of a client; their end comes late."""

    def __init__(self, stream: ReadStream[Received], outgoing: Outgoing, unanswered: Unanswered) -> None:
        super().__init__(stream)
        self._stream = stream
        self._outgoing = outgoing
        self._unanswered = unanswered

    @property
    def last_context(self) -> contextvars.Context | None:
        """The sender's context, which the SDK looks for."""
        found: contextvars.Context | None = getattr(self._stream, "last_context", None)
        return found

    def __aiter__(self) -> Incoming:
        return self

    async def __anext__(self) -> Received:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> Received:
        try:
            while isinstance(item := await self._stream.receive(), ValidationError):
                refusal = _refusal(item)
                if refusal is not None:
                    await self._outgoing.send(SessionMessage(refusal))
        except anyio.EndOfStream:
            await self._unanswered.none_left()
            raise
        self._unanswered.read(item)
        return item


def _refusal(error: ValidationError) -> JSONRPCError | None:
    """The answer to a line that is no message (JSON-RPC 2.0, section 5.1); None to an empty one."""
    first = error.errors(include_url=False, include_context=False)[0]
    line = first["input"]
    if first["type"] == "json_invalid":
        about = ErrorData(code=PARSE_ERROR, message="this line is no JSON")
        return JSONRPCError(jsonrpc="2.0", id=None, error=about) if line.strip() else None
    said = "batches are not served: send one message a line" if isinstance(line, list) else "this is no JSON-RPC 2.0 message"
    asked = line.get("id") if isinstance(line, dict) else None
    told = asked if isinstance(asked, str | int) else None
    return JSONRPCError(jsonrpc="2.0", id=told, error=ErrorData(code=INVALID_REQUEST, message=said))


class Outgoing(_Wrapped):
    """The messages to a client."""

    def __init__(self, stream: WriteStream[SessionMessage], unanswered: Unanswered) -> None:
        super().__init__(stream)
        self._stream = stream
        self._unanswered = unanswered

    async def send(self, item: SessionMessage, /) -> None:
        await self._stream.send(item)
        self._unanswered.sent(item)
