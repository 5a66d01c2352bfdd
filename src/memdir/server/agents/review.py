"""What waits for somebody who knows: proposals, what is not trusted, what may contradict. And what a memory said before."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from memdir.api import agents as wire
from memdir.core.clock import iso_ms
from memdir.server.agents.reading import bounds
from memdir.server.agents.state import AgentMemoryState
from memdir.server.agents.writing import found, memory_of, rewrite
from memdir.server.errors import ForbiddenError
from memdir.server.http.access import Caller
from memdir.store.agents import files as agent_files
from memdir.store.agents.files import BY_USER
from memdir.store.agents.memories import AgentRecord
from memdir.store.errors import ConflictError

HISTORY_MAX: Final = 100
_FILE_MAX_BYTES: Final = 1 << 20


def confirm(caller: Caller, state: AgentMemoryState, memory_id: str, request: wire.ConfirmRequest) -> wire.AgentMemory:
    """It holds: kept when it was only proposed, trusted when a person says so, and no question any more."""
    container, record = found(caller, request.container_tag, memory_id, "write")
    by_user = request.stored_by == BY_USER
    if not record.provenance.is_trusted and not by_user:
        raise ForbiddenError(
            "what is not trusted is confirmed by a person", hint=f"memdir memory confirm {memory_id}, at a terminal"
        )
    if len(caller.store.agents.of_document(record.document_id)) > 1:
        raise ConflictError(
            f"this is a piece of {record.path} and cannot be confirmed by itself", hint="its file can say `trust: trusted`"
        )
    provenance = replace(
        record.provenance, is_trusted=True, confirmed_at_ms=caller.store.now_ms(), may_replace=None,
        seen=record.provenance.seen + 1,
    )  # fmt: skip
    changed = rewrite(caller, container, record, replace(record.draft(), provenance=provenance))
    state.used(container.id, [record.id])
    return memory_of(changed)


def questions(caller: Caller, tag: str, *, project: str | None, limit: int) -> wire.ReviewPage:
    """What is to be decided, oldest first: of a project and of none, or of all."""
    allowed = bounds(caller, tag)
    if allowed.container is None:
        return wire.ReviewPage(questions=[], total=0)
    store = caller.store.agents
    wanted = allowed.project or agent_files.project_folder(project)
    records, total = store.open_questions(
        allowed.container.id, projects=None if wanted is None else (wanted, None), limit=limit
    )
    others = {
        one.id: one
        for one in store.by_ids(
            allowed.container.id, [one.provenance.may_replace for one in records if one.provenance.may_replace]
        )
    }
    return wire.ReviewPage(
        questions=[_question(one, others.get(one.provenance.may_replace or "")) for one in records], total=total
    )


def _question(record: AgentRecord, other: AgentRecord | None) -> wire.ReviewQuestion:
    return wire.ReviewQuestion(
        kind="proposed" if record.is_proposed else "may_replace" if record.provenance.may_replace else "untrusted",
        memory=memory_of(record),
        other=None if other is None else memory_of(other),
    )


def history(caller: Caller, tag: str, memory_id: str) -> wire.MemoryHistory:
    """What it says and said, newest first. What only changed tags, or was confirmed, is no other text."""
    _, record = found(caller, tag, memory_id, "read")
    entries = [
        wire.MemoryVersion(
            content=record.content, stored_by=record.provenance.stored_by, since=iso_ms(record.updated_at_ms), until=None
        )
    ]
    for version in _versions(caller, record):
        if version.content == entries[-1].content:
            entries[-1] = entries[-1].model_copy(update={"since": version.since})
        else:
            entries.append(version.model_copy(update={"until": entries[-1].since}))
    return wire.MemoryHistory(id=record.id, versions=entries[:HISTORY_MAX])


def _versions(caller: Caller, record: AgentRecord) -> Iterator[wire.MemoryVersion]:
    """The former contents of its file, newest first."""
    document = caller.store.documents.get(record.document_id)
    if document is None:
        return
    for version in caller.store.versions.of_document(document, limit=HISTORY_MAX):
        if version.kind != "file" or version.size_bytes > _FILE_MAX_BYTES:
            continue
        text = caller.store.blobs.content(version.content_hash).decode("utf-8", "replace")
        said = agent_files.parsed(text, created_at_ms=version.began_at_ms, updated_at_ms=version.began_at_ms)
        pieces = said.redacted().cut()
        if record.ordinal < len(pieces):
            yield wire.MemoryVersion(
                content=pieces[record.ordinal].content,
                stored_by=said.provenance.stored_by,
                since=iso_ms(said.updated_at_ms),
                until=None,
            )
