"""A call that changes something, sent again with its `Idempotency-Key`, gets the first answer and happens once.

Between the guard and the routes, for every call that changes something; those on the tree of a container (`/v1/files`, but
not its batch, and `/v1/versions:restore`) look after their key themselves, inside their transaction. The answer is kept with
a digest of method, address and body; of an upload, whose body is never held whole, with its length. Refused calls are not
kept: they changed nothing. When the server dies between the change and the keeping, the repeated call is carried out again,
and a document that it would make a second time it finds by the id that `made_id` gave it the first time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from memdir.core.ids import new_id
from memdir.server.dispatcher import Dispatcher
from memdir.server.errors import status_of
from memdir.server.http.guard import body_limit, collected, is_upload, replayed, send_json
from memdir.server.openapi import writes
from memdir.store.accounts.saved_responses import ANSWER_MAX_BYTES, Answer, AnswerStore
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.tree.idempotency import KEY_MAX_CHARS

_OWN: Final = ("/v1/files/", "/v1/files:move", "/v1/versions:restore")
_SHOWN_ONCE: Final = b'{"error": "this request was carried out; its answer held a secret, which is shown once"}'
_seed: ContextVar[str | None] = ContextVar("memdir_repeat_seed", default=None)


def made_id(number: int = 0) -> str | None:
    """An id for the `number`-th thing that the current call makes: the same again when the call is repeated under its key.
    None for a call without a key."""
    seed = _seed.get()
    return None if seed is None else hashlib.sha256(f"{seed} {number}".encode()).hexdigest()[: len(new_id())].upper()


class Repeats:
    """Wraps the application, inside the guard and the encoding: what it keeps is not compressed."""

    def __init__(self, app: ASGIApp, *, answers: AnswerStore, dispatcher: Dispatcher) -> None:
        self._app = app
        self._answers = answers
        self._dispatcher = dispatcher

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        given = [value for name, value in scope.get("headers", ()) if name == b"idempotency-key"]
        if not given or scope["type"] != "http" or not writes(scope["method"], scope["path"]) or scope["path"].startswith(_OWN):
            await self._app(scope, receive, send)
            return
        key = given[0].decode("latin-1")
        if len(given) > 1 or not 0 < len(key) <= KEY_MAX_CHARS or not key.isprintable() or not key.isascii():
            raise InvalidError(f"an idempotency key has 1 to {KEY_MAX_CHARS} printable characters of ASCII")
        caller = scope["state"]["key"]
        digest = hashlib.sha256(b"%s %s?%s\n" % (scope["method"].encode(), scope["raw_path"], scope["query_string"]))
        if is_upload(scope["path"]):
            digest.update(dict(scope["headers"]).get(b"content-length", b""))
        else:
            body = await collected(receive, body_limit(scope["path"]))
            digest.update(body)
            receive = replayed(receive, body)
        names = {"org_id": caller.org_id, "caller": caller.id, "key": key}
        try:
            known = await self._dispatcher.run(self._answers.begin, **names, request=digest.digest())
        except ConflictError as error:
            await send_json(send, status_of(error), {"error": error.message}, [(b"retry-after", b"1")])
            return
        if known is not None:
            await _replay(known, send)
            return
        token = _seed.set(f"{caller.org_id} {caller.id} {key}")

        async def settle(answer: Answer | None) -> None:
            if answer is None:
                await self._dispatcher.run(self._answers.drop, **names)
            else:
                await self._dispatcher.run(self._answers.finish, **names, answer=answer)

        keeping = _Keeping(send, settle)
        try:
            await self._app(scope, receive, keeping.send)
        finally:
            _seed.reset(token)
            if not keeping.is_settled:
                await settle(None)


class _Keeping:
    """Passes an answer on, and keeps it, if it is a success of at most `ANSWER_MAX_BYTES`, before the last of it is sent: who
    has it may repeat the call at once."""

    def __init__(self, send: Send, settle: Callable[[Answer | None], Awaitable[None]]) -> None:
        self._send = send
        self._settle = settle
        self.is_settled = False
        self._status = 500
        self._content_type = ""
        self._pieces: list[bytes] = []
        self._size = 0
        self._complete = False
        self._secret = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers = dict(message["headers"])
            self._content_type = headers.get(b"content-type", b"").decode("latin-1")
            self._secret = b"no-store" in headers.get(b"cache-control", b"")
        else:
            piece = message.get("body", b"")
            self._size += len(piece)
            if self._size <= ANSWER_MAX_BYTES:
                self._pieces.append(piece)
            self._complete = not message.get("more_body", False)
            if self._complete and not self.is_settled:
                self.is_settled = True
                await self._settle(self.answer)
        await self._send(message)

    @property
    def answer(self) -> Answer | None:
        """None when there is nothing to keep."""
        if not self._complete or self._status >= 400 or self._size > ANSWER_MAX_BYTES:
            return None
        if self._secret:
            return Answer(status=409, content_type="application/json", body=_SHOWN_ONCE)
        return Answer(status=self._status, content_type=self._content_type, body=b"".join(self._pieces))


async def _replay(answer: Answer, send: Send) -> None:
    headers = [(b"idempotency-replayed", b"true"), (b"x-content-type-options", b"nosniff")]
    if answer.status != 204:
        headers.append((b"content-length", str(len(answer.body)).encode()))
    if answer.content_type:
        headers.append((b"content-type", answer.content_type.encode("latin-1")))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
