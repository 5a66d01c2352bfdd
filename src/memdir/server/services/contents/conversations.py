"""Conversations: a document without a place, named by the conversation, that grows turn by turn.

A turn is written `role: text` (`role (name): text`), turns apart by an empty line; rules draw memories from what the user says.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from memdir.api import v4
from memdir.server.http.access import Caller
from memdir.server.services.contents.documents import CONTAINER_DEFAULT, text_content, write
from memdir.server.services.contents.files import check_size
from memdir.store.errors import ConflictError, PreconditionError
from memdir.store.tree.operations import Put
from memdir.store.types import Container, Document

TRIES_MAX: Final = 5
"""Of adding to a conversation that others add to at the same moment."""
_APART: Final = "\n\n"
_TOOL_MAX_CHARS: Final = 2000


def add(caller: Caller, request: v4.Conversation) -> v4.ConversationAdded:
    """Take a conversation in: what is new of `messages` is appended, whether they are all or only the last ones. Messages that
    the conversation ends with already are not doubled, so a repeated call changes nothing."""
    container = caller.ensured(request.tag or CONTAINER_DEFAULT, "write")
    turns = [turn for turn in map(written, request.messages) if turn]
    for _ in range(TRIES_MAX):
        existing = caller.store.documents.by_custom_id(container.id, request.conversation_id)
        before = "" if existing is None else (text_content(caller, existing) or "")
        text = continued(before, turns)
        if existing is not None and text == before and request.metadata is None:
            return _answer(request, existing)
        try:
            return _answer(request, _put(caller, container, existing, request, text))
        except PreconditionError:  # somebody else added to it first
            continue
    raise ConflictError("others add to this conversation at the same time", hint="send it again")


def _put(caller: Caller, container: Container, existing: Document | None, request: v4.Conversation, text: str) -> Document:
    raw = text.encode()
    check_size(len(raw))
    with caller.store.blobs.upload() as upload:
        upload.write(raw)
        put = Put(
            path=None,
            blob=upload.finish(),
            custom_id=request.conversation_id,
            metadata=request.metadata,
            if_match=None if existing is None else existing.revision,
            if_none_match=existing is None,
        )
        return write(caller, container, existing, put)


def _answer(request: v4.Conversation, document: Document) -> v4.ConversationAdded:
    return v4.ConversationAdded(
        id=document.id,
        conversation_id=request.conversation_id,
        status=document.status,  # type: ignore[arg-type]
    )


def written(message: v4.Message) -> str:
    """A message as the document holds it; '' when nothing was said."""
    parts = [message.content] if isinstance(message.content, str) else [_part(part) for part in message.content or ()]
    parts += [_tool_call(call) for call in message.tool_calls or ()]
    said = "\n".join(part.strip() for part in parts if part and part.strip())
    who = message.role if message.name is None else f"{message.role} ({' '.join(message.name.split())})"
    return f"{' '.join(who.split())}: {said}" if said else ""


def _part(part: v4.MessagePart) -> str:
    if part.text is not None:
        return part.text
    address = part.image_url.get("url") if isinstance(part.image_url, dict) else part.image_url
    if not isinstance(address, str) or address.startswith("data:"):
        return f"[{part.type}]"
    return f"[{part.type}: {address[:_TOOL_MAX_CHARS]}]"


def _tool_call(call: object) -> str:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return ""
    arguments = function.get("arguments")
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[calls {str(function.get('name'))[:256]}({text[:_TOOL_MAX_CHARS]})]"


def continued(before: str, turns: Sequence[str]) -> str:
    """`before` with what is new of `turns`: they may be the whole conversation so far, overlap its end, or only go on."""
    whole = _APART.join(turns)
    if not before:
        return whole
    for known in range(len(turns), 0, -1):
        overlap = _APART.join(turns[:known])
        if before == overlap or before.endswith(_APART + overlap):
            return _APART.join([before, *turns[known:]])
    if len(turns) > 1 and len(whole) >= len(before) and before.startswith(turns[0] + _APART):
        return whole  # the whole conversation, with a turn that was edited
    return _APART.join([before, *turns])
