"""Memories written, revised, forgotten and listed by a call: what `/v4/memories` does.

What a call says has no document behind it; its source is the API key. It goes through the same reconciliation as what is read
in documents, and the same guard: neither secrets nor orders to a model become memories.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from memdir.api import v4
from memdir.core.clock import iso_ms
from memdir.core.errors import NotFoundError
from memdir.memory.guard import is_instruction, is_secret
from memdir.memory.reconcile import Change, reconcile, same_text
from memdir.server.http.access import Caller
from memdir.server.services.contents.documents import CONTAINER_DEFAULT, containers
from memdir.server.services.contents.views import pagination
from memdir.store.errors import ConflictError, InvalidError, SupersededError
from memdir.store.memories.memories import MemoryListing
from memdir.store.memories.writing import Origin
from memdir.store.types import Container, Memory, MemoryCandidate

CONFIDENCE: Final = 0.95
"""Of what somebody said on purpose."""
_KNOWN_MAX: Final = 1000
TRIES_MAX: Final = 5
"""Of writing to a container whose memories change at the same moment."""
TEMPORAL_KEY: Final = "temporalContext"


def create(caller: Caller, request: v4.CreateMemories) -> v4.CreatedMemories:
    """Remember statements as they are. One that is known already is not doubled, one that contradicts supersedes."""
    for number, statement in enumerate(request.memories):
        _check(statement.content, f"memories[{number}]")
    for _ in range(TRIES_MAX):
        container = caller.ensured(request.tag or CONTAINER_DEFAULT, "write")
        statements, last = _statements(caller, container, request)
        try:
            ids = caller.store.memories.say(container.id, statements, version=container.profile_version)
            break
        except SupersededError:  # other memories came meanwhile: decide again
            continue
    else:
        raise ConflictError("others write memories of this container at the same time", hint="send it again")
    caller.store.notify(container.id)
    refs = []
    for statement in request.memories:
        memory = _existing(caller, ids[last[same_text(statement.content)]])
        refs.append(
            v4.MemoryRef(
                id=memory.id,
                memory=memory.candidate.text,
                is_static=memory.candidate.kind == "static",
                metadata=dict(memory.metadata),
                forget_after=_iso(memory.forget_after_ms),
                forget_reason=memory.forget_reason,
                created_at=iso_ms(memory.created_at_ms),
            )
        )
    return v4.CreatedMemories(memories=refs)


def _statements(
    caller: Caller, container: Container, request: v4.CreateMemories
) -> tuple[list[tuple[Origin, Change]], dict[str, int]]:
    """What becomes of each statement, given what is known; and the place of each text among them (the same twice in one call is
    one statement)."""
    known = list(caller.store.memories.latest(container.id, limit=_KNOWN_MAX))
    statements: list[tuple[Origin, Change]] = []
    last: dict[str, int] = {}
    for statement in request.memories:
        text = same_text(statement.content)
        if text in last:
            continue
        last[text] = len(statements)
        origin = Origin(
            container_id=container.id,
            caller=caller.key.id,
            metadata=_with_temporal(statement.metadata or {}, statement.temporal_context),
            forget_after_ms=_moment_ms(statement.forget_after),
            forget_reason=statement.forget_reason,
        )
        (decided,) = reconcile([_candidate(statement.content, static=statement.is_static)], own=(), others=known)
        statements.append((origin, decided))
        known = [memory for memory in known if memory.id != decided.memory_id or decided.action == "strengthen"]
    return statements, last


def change(caller: Caller, request: v4.ChangeMemory) -> v4.ChangedMemory:
    """A new version; the one before stays in the history. A forgotten memory is remembered again with its new text."""
    _check(request.new_content, "newContent")
    container, memory = _named(caller, request)
    memory = _latest(caller, memory)
    sent = request.model_fields_set
    metadata = _with_temporal(memory.metadata if request.metadata is None else request.metadata, request.temporal_context)
    if request.metadata is not None and TEMPORAL_KEY in memory.metadata:
        metadata = {TEMPORAL_KEY: memory.metadata[TEMPORAL_KEY], **metadata}
    forget_after_ms = _moment_ms(request.forget_after) if "forget_after" in sent else memory.forget_after_ms
    origin = Origin(
        container_id=container.id,
        caller=caller.key.id,
        metadata=metadata,
        forget_after_ms=forget_after_ms,
        forget_reason=None if forget_after_ms is None else request.forget_reason or memory.forget_reason,
    )
    candidate = _candidate(request.new_content, static=memory.candidate.kind == "static", subject=memory.candidate.subject)
    (new_id,) = caller.store.memories.say(
        container.id, [(origin, Change(action="supersede", candidate=candidate, memory_id=memory.id, relation="updates"))]
    )
    caller.store.notify(container.id)
    new = _existing(caller, new_id)
    return v4.ChangedMemory(
        id=new.id,
        memory=new.candidate.text,
        version=new.version,
        parent_memory_id=new.parent_id,
        root_memory_id=new.root_id,
        metadata=dict(new.metadata),
        forget_after=_iso(new.forget_after_ms),
        forget_reason=new.forget_reason,
        created_at=iso_ms(new.created_at_ms),
    )


def forget(caller: Caller, request: v4.ForgetMemory) -> v4.ForgottenMemory:
    """Out of profile and search. Documents that say it stay as they are, and reading them again does not bring it back."""
    container, memory = _named(caller, request)
    memory = _latest(caller, memory)
    caller.store.memories.forget(memory, reason=request.reason)
    caller.store.notify(container.id)
    return v4.ForgottenMemory(id=memory.id, forgotten=True)


def page(caller: Caller, request: v4.ListMemories) -> v4.MemoryPage:
    """The latest versions, forgotten ones included, each with those before it."""
    found = containers(caller, request.tags)
    for container in found:
        caller.allow("read", container.tag)
    if not found:
        return v4.MemoryPage(memory_entries=[], pagination=pagination(request.page, request.limit, 0))
    tags = {container.id: container.tag for container in found}
    listing = MemoryListing(
        container_ids=tuple(tags),
        sort="updated_at_ms" if request.sort == "updatedAt" else "created_at_ms",
        descending=request.order == "desc",
    )
    store = caller.store.memories
    latest = store.page(listing, limit=request.limit, offset=(request.page - 1) * request.limit)
    earlier: dict[str, list[Memory]] = {}
    superseded = [memory.root_id for memory in latest if memory.version > 1]
    for memory in store.versions(superseded) if superseded else ():
        earlier.setdefault(memory.root_id, []).insert(0, memory)
    entries = [
        v4.MemoryEntry(
            **_fields(memory),
            container_tag=tags[memory.container_id],
            history=[v4.MemoryView(**_fields(old)) for old in earlier.get(memory.root_id, ()) if old.id != memory.id],
        )
        for memory in latest
    ]
    return v4.MemoryPage(memory_entries=entries, pagination=pagination(request.page, request.limit, store.count(listing)))


def _fields(memory: Memory) -> dict[str, Any]:
    return {
        "id": memory.id,
        "memory": memory.candidate.text,
        "metadata": dict(memory.metadata),
        "version": memory.version,
        "is_latest": memory.is_latest,
        "is_forgotten": memory.is_forgotten,
        "is_static": memory.candidate.kind == "static",
        "is_inference": memory.relation == "derives",
        "parent_memory_id": memory.parent_id,
        "root_memory_id": memory.root_id,
        "source_count": memory.source_count,
        "forget_after": _iso(memory.forget_after_ms),
        "forget_reason": memory.forget_reason,
        "created_at": iso_ms(memory.created_at_ms),
        "updated_at": iso_ms(memory.updated_at_ms),
    }


def _named(caller: Caller, request: v4.NamedMemory) -> tuple[Container, Memory]:
    """The memory that a call names by id, or by its exact text."""
    if request.tag is None:
        raise InvalidError("containerTag must name where the memory is")
    if (request.id is None) == (request.content is None):
        raise InvalidError("name the memory by id or by content")
    container = caller.container(request.tag, "write")
    if request.id is not None:
        memory = caller.store.memories.get(request.id)
    else:
        memory = caller.store.memories.saying(container.id, _one_line(str(request.content)))
    if memory is None or memory.container_id != container.id:
        raise NotFoundError("there is no such memory in this container")
    return container, memory


def _latest(caller: Caller, memory: Memory) -> Memory:
    """The version that holds now, whichever one was named."""
    if memory.is_latest:
        return memory
    store = caller.store.memories
    later = next((later for later in reversed(store.versions([memory.root_id])) if later.is_latest), None)
    return later or store.get(memory.ended_by or "") or memory


def _existing(caller: Caller, memory_id: str) -> Memory:
    memory = caller.store.memories.get(memory_id)
    if memory is None:
        raise NotFoundError("the memory was taken back meanwhile")
    return memory


def _check(text: str, where: str) -> None:
    if not text.strip():
        raise InvalidError(f"{where} is empty")
    if is_secret(text):
        raise InvalidError(f"{where} looks like a secret", hint="memories are shown to agents; keep secrets elsewhere")
    if is_instruction(text):
        raise InvalidError(f"{where} gives orders to a model", hint="state a fact: 'prefers short answers'")


def _candidate(text: str, *, static: bool, subject: str = "user") -> MemoryCandidate:
    return MemoryCandidate(
        kind="static" if static else "dynamic",
        subject=subject,
        text=_one_line(text),
        confidence=CONFIDENCE,
        start_line=0,
        end_line=0,
        start_byte=0,
        end_byte=0,
    )


def _one_line(text: str) -> str:
    """A fact is one line, in the profile and everywhere."""
    return re.sub(r"\s+", " ", text).strip()


def _with_temporal(metadata: Mapping[str, Any], temporal: v4.TemporalContext | None) -> dict[str, Any]:
    if temporal is None:
        return dict(metadata)
    return {**metadata, TEMPORAL_KEY: temporal.model_dump(by_alias=True, exclude_none=True)}


def _moment_ms(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)


def _iso(moment_ms: int | None) -> str | None:
    return None if moment_ms is None else iso_ms(moment_ms)
