"""Storing, changing and deleting the memories of agents: file, record and index in one transaction."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memdir.api import agents as wire
from memdir.core.clock import iso_ms
from memdir.core.errors import MemdirError, NotFoundError
from memdir.retrieval.agents.relevance import is_filler
from memdir.retrieval.agents.similar import NEAR_MIN, similarity
from memdir.server.agents.state import AgentMemoryState
from memdir.server.errors import QuotaError, RefusedSecretError
from memdir.server.http.access import Caller
from memdir.store.accounts.saved_responses import ANSWER_MAX_BYTES, Answer
from memdir.store.agents import files as agent_files
from memdir.store.agents import memories as agent_memories
from memdir.store.agents.files import Draft
from memdir.store.agents.memories import AgentRecord
from memdir.store.contents.blobs import Upload
from memdir.store.database import Transaction
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.jobs.queue import BULK, INTERACTIVE
from memdir.store.tree.idempotency import KEY_MAX_CHARS, request_hash
from memdir.store.tree.operations import Delete, Move, Operation, Outcome, Put
from memdir.store.types import Container

MEMORIES_MAX: Final = 5_000_000
"""In one container."""
REFUSED_MAX: Final = 100


def memory_of(record: AgentRecord) -> wire.AgentMemory:
    """A record as the wire says it."""
    return wire.AgentMemory(
        id=record.id,
        path=record.path,
        content=record.content,
        tags=list(record.tags),
        project=record.project,
        created_at=iso_ms(record.created_at_ms),
        updated_at=iso_ms(record.updated_at_ms),
        access_count=record.access_count,
        metadata=dict(record.metadata),
    )


def folder_of(project: str | None) -> str:
    """Where the memories of a project stand."""
    return agent_memories.FOLDER if project is None else f"{agent_memories.FOLDER}/{project}"


def store(caller: Caller, state: AgentMemoryState, request: wire.StoreRequest) -> wire.StoreResult:
    """Remember. Pieces that say what is there already are not stored again. With an idempotency key: once, and the same answer
    for a day."""
    if request.idempotency_key is None:
        return _store(caller, state, request)
    if not 0 < len(request.idempotency_key) <= KEY_MAX_CHARS:
        raise InvalidError(f"an idempotency key has 1 to {KEY_MAX_CHARS} characters")
    caller.allow("write")
    names = {"org_id": caller.org_id, "caller": caller.key.id, "key": f"agents {request.idempotency_key}"}
    known = caller.store.answers.begin(**names, request=request_hash("agents", request.model_dump(mode="json")))
    if known is not None:
        return wire.StoreResult.model_validate_json(known.body)
    try:
        result = _store(caller, state, request)
    except BaseException:
        caller.store.answers.drop(**names)
        raise
    body = result.model_dump_json(by_alias=True).encode()
    if len(body) <= ANSWER_MAX_BYTES:
        caller.store.answers.finish(**names, answer=Answer(status=201, content_type="application/json", body=body))
    else:
        caller.store.answers.drop(**names)
    return result


def _store(caller: Caller, state: AgentMemoryState, request: wire.StoreRequest) -> wire.StoreResult:
    project = agent_files.project_folder(request.project)
    container = caller.ensured(request.container_tag, "write", at=folder_of(project))
    now_ms = caller.store.now_ms()
    draft = Draft(
        content=request.content, tags=tuple(request.tags), project=project, metadata=request.metadata,
        created_at_ms=now_ms, updated_at_ms=now_ms,
    )  # fmt: skip
    said, redactions = _safe(draft, request.secrets)
    if is_filler(said.content):
        raise InvalidError(
            "this says nothing that a later session could use, and was not stored",
            hint="say what was decided, found or is preferred, and about what",
        )
    pieces = said.cut()
    state.take(container.id, len(pieces))
    _check_room(caller, container, len(pieces))
    answers: list[AgentRecord | Draft] = []
    duplicates: list[wire.Duplicate] = []
    for piece in pieces:
        known = _standing(caller, state, container, piece)
        if known is None:
            answers.append(piece)
        else:
            record, similar = known
            duplicates.append(wire.Duplicate(id=record.id, similarity=round(similar, 4)))
            answers.append(_with_tags(caller, container, record, said.tags, now_ms))
    made = _write(caller, container, [one for one in answers if isinstance(one, Draft)], INTERACTIVE)
    fresh = iter(made)
    memories = [memory_of(next(fresh) if isinstance(one, Draft) else one) for one in answers]
    if made:
        state.stored(container.id, len(made))
    return wire.StoreResult(memories=memories, duplicates=duplicates, redacted=redactions)


def bring_in(caller: Caller, request: wire.ImportRequest) -> wire.ImportOutcome:
    """Many at once, with their times. What is there with the same words is passed over."""
    container = caller.ensured(request.container_tag, "write", at=agent_memories.FOLDER)
    _check_room(caller, container, len(request.items))
    now_ms = caller.store.now_ms()
    drafts: dict[tuple[str | None, int], Draft] = {}
    refused: list[str] = []
    known = 0
    for at, item in enumerate(request.items):
        created_ms = agent_files.moment_ms(item.created_at, now_ms)
        draft = Draft(
            content=item.content, tags=tuple(item.tags), metadata=item.metadata,
            project=agent_files.project_folder(item.project), created_at_ms=created_ms,
            updated_at_ms=agent_files.moment_ms(item.updated_at, created_ms), access_count=item.access_count,
        )  # fmt: skip
        try:
            said, _ = _safe(draft, request.secrets)
        except MemdirError as error:
            refused.append(f"item {at}: {error.message}")
            continue
        for piece in said.cut():
            key = (piece.project, agent_memories.folded_hash(piece.content))
            if key in drafts or caller.store.agents.saying(container.id, piece.content, piece.project) is not None:
                known += 1
            else:
                drafts[key] = piece
    made = _write(caller, container, list(drafts.values()), BULK)
    return wire.ImportOutcome(created=len(made), duplicates=known, refused=refused[:REFUSED_MAX])


def edit(caller: Caller, state: AgentMemoryState, memory_id: str, request: wire.EditRequest) -> wire.AgentMemory:
    """Change text, tags or project. The file keeps its name, and what it said before its history."""
    container, record = found(caller, request.container_tag, memory_id, "write")
    _only_piece(caller, record, "changed")
    project = record.project if request.project is None else agent_files.project_folder(request.project)
    draft = replace(
        record.draft(),
        content=record.content if request.content is None else request.content,
        tags=record.tags if request.tags is None else tuple(request.tags),
        project=project,
        updated_at_ms=caller.store.now_ms(),
    )
    draft, _ = _safe(draft, request.secrets)
    if project != record.project:
        caller.allow_path(folder_of(project))
    state.take(container.id, 1)
    changed = _rewrite(caller, container, record, draft)
    state.used(container.id, [record.id])
    return memory_of(changed)


def delete(caller: Caller, state: AgentMemoryState, tag: str, memory_id: str) -> wire.DeleteResult:
    """The file, with all its pieces, its record and the index entry, for good."""
    container, record = found(caller, tag, memory_id, "write", frees=True)
    if record.ordinal:
        _only_piece(caller, record, "deleted")
    caller.store.files.apply(container, Delete(path=record.path, purge=True))
    state.used(container.id, [record.id])
    return wire.DeleteResult(id=memory_id)


def found(caller: Caller, tag: str, memory_id: str, action: str, *, frees: bool = False) -> tuple[Container, AgentRecord]:
    """A memory that the caller may see."""
    folder = caller.narrowed(agent_memories.FOLDER)
    container = caller.found(tag, action, at=folder, frees=frees)
    record = None if container is None else caller.store.agents.get(container.id, memory_id)
    if container is None or record is None or not caller.key.covers(record.path):
        raise NotFoundError(f"there is no memory {memory_id[:100]!r} in {tag!r}", hint="`memdir memory list` shows the ids")
    return container, record


def _only_piece(caller: Caller, record: AgentRecord, done: str) -> None:
    count = len(caller.store.agents.of_document(record.document_id))
    if count > 1:
        raise ConflictError(
            f"this is piece {record.ordinal + 1} of {count} of {record.path} and cannot be {done} by itself",
            hint=f"change the file, or delete {record.document_id}",
        )


def _safe(draft: Draft, secrets: str) -> tuple[Draft, list[str]]:
    """A memory as it is kept, without secrets: refused, or redacted. Their kinds are told, never themselves."""
    draft = draft.clean()
    if not draft.content:
        raise InvalidError("a memory needs some text")
    if len(draft.metadata_text().encode("utf-8", "replace")) > wire.METADATA_MAX_BYTES:
        raise InvalidError(f"metadata can have at most {wire.METADATA_MAX_BYTES} bytes")
    rules = draft.secrets()
    if rules and secrets == "refuse":
        raise RefusedSecretError(
            f"this holds a secret ({', '.join(rules)}) and was not stored",
            hint="take it out, or let it be replaced: secrets=redact, `--redact`",
        )
    return (draft.redacted() if rules else draft), rules


def _check_room(caller: Caller, container: Container, count: int) -> None:
    if caller.store.agent_feed.count_up_to(container.id, MEMORIES_MAX) + count > MEMORIES_MAX:
        raise QuotaError(f"a container holds at most {MEMORIES_MAX:,} memories", hint="delete some, or use another container")


def _standing(caller: Caller, state: AgentMemoryState, container: Container, piece: Draft) -> tuple[AgentRecord, float] | None:
    """The memory of the same project that says the same, and how alike they are."""
    known = caller.store.agents.saying(container.id, piece.content, piece.project)
    if known is not None:
        return known, 1.0
    numbers = state.index(container.id).similar(piece.content)
    records = caller.store.agents.many(container.id, numbers)
    best: tuple[AgentRecord, float] | None = None
    for number in sorted(records):
        record = records[number]
        similar = similarity(piece.content, record.content) if record.project == piece.project else 0.0
        if similar >= NEAR_MIN and (best is None or similar > best[1]):
            best = record, similar
    return best


def _with_tags(caller: Caller, container: Container, record: AgentRecord, tags: Sequence[str], now_ms: int) -> AgentRecord:
    """The memory with further tags. One piece of several keeps its own: they stand in the file of all."""
    merged = agent_files.clean_tags((*record.tags, *tags))
    if merged == record.tags or len(caller.store.agents.of_document(record.document_id)) > 1:
        return record
    return _rewrite(caller, container, record, replace(record.draft(), tags=merged, updated_at_ms=now_ms))


def _path_of(draft: Draft, salt: str = "") -> str:
    digest = hashlib.sha256(f"{draft.content}{salt}".encode("utf-8", "replace")).hexdigest()
    return f"{folder_of(draft.project)}/{agent_files.slug(draft.content, digest)}{agent_memories.SUFFIX}"


def _write(caller: Caller, container: Container, drafts: Sequence[Draft], priority: int) -> list[AgentRecord]:
    """New files and their records, all or none of them."""
    if not drafts:
        return []
    uploads: list[Upload] = []
    try:
        operations: list[Operation] = []
        taken: set[str] = set()
        for draft in drafts:
            path = _path_of(draft)
            tries = 0
            while path in taken or caller.store.documents.at(container.id, path) is not None:
                tries += 1
                path = _path_of(draft, f" {tries}")
            taken.add(path)
            uploads.append(caller.store.blobs.upload())
            uploads[-1].write(agent_files.rendered(draft))
            staged = uploads[-1].finish()
            operations.append(
                Put(path=path, blob=staged, mtime_ns=draft.updated_at_ms * 1_000_000, if_none_match=True, priority=priority)
            )
        documents = _applied(caller, container, operations, list(drafts))
    finally:
        for upload in uploads:
            upload.__exit__(None, None, None)
    return caller.store.agents.first_pieces(container.id, documents)


def _rewrite(caller: Caller, container: Container, record: AgentRecord, draft: Draft) -> AgentRecord:
    """The file of a record with another text, and at the place of another project when that changed."""
    operations: list[Operation] = []
    path = record.path
    if draft.project != record.project:
        path = f"{folder_of(draft.project)}/{record.path.rpartition('/')[2]}"
        operations.append(Move(from_path=record.path, path=path, replace=False))
    with caller.store.blobs.upload() as upload:
        upload.write(agent_files.rendered(draft))
        operations.append(Put(path=path, blob=upload.finish(), mtime_ns=draft.updated_at_ms * 1_000_000))
        documents = _applied(caller, container, operations, [draft])
    return caller.store.agents.first_pieces(container.id, documents)[0]


def _applied(caller: Caller, container: Container, operations: Sequence[Operation], drafts: Sequence[Draft]) -> list[str]:
    """Carry out operations whose puts are of `drafts`, with their records. Returns the documents."""
    documents: list[str] = []

    def derive(connection: Transaction, results: Sequence[Outcome | MemdirError]) -> None:
        documents.clear()
        puts = [one for one, operation in zip(results, operations, strict=True) if isinstance(operation, Put)]
        for result, draft in zip(puts, drafts, strict=True):
            assert isinstance(result, Outcome)
            document = result.document
            assert document is not None
            assert document.path is not None
            agent_memories.replace(connection, container.id, document.id, document.content_hash, document.path, draft.cut())
            documents.append(document.id)

    caller.store.files.apply_all(container, operations, together=True, derive=derive)
    return documents
