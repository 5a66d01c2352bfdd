"""Storing, changing and deleting the memories of agents: file, record and index in one transaction."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from memdir.api import agents as wire
from memdir.core.clock import iso_ms
from memdir.core.errors import MemdirError, NotFoundError
from memdir.memory.guard import is_instruction
from memdir.retrieval.agents.relevance import is_filler
from memdir.retrieval.agents.updates import Relation
from memdir.server.agents.standing import standing
from memdir.server.agents.state import AgentMemoryState
from memdir.server.engine import Engine
from memdir.server.errors import ForbiddenError, QuotaError, RefusedSecretError
from memdir.server.http.access import Caller
from memdir.store.accounts.saved_responses import ANSWER_MAX_BYTES, Answer
from memdir.store.agents import files as agent_files
from memdir.store.agents import memories as agent_memories
from memdir.store.agents.files import BY_USER, Draft, Provenance
from memdir.store.agents.memories import AgentRecord
from memdir.store.contents.blobs import Upload
from memdir.store.database import Transaction
from memdir.store.errors import ConflictError, InvalidError
from memdir.store.jobs.queue import BULK, INTERACTIVE
from memdir.store.paths import INBOX
from memdir.store.tree.idempotency import KEY_MAX_CHARS, request_hash
from memdir.store.tree.operations import Delete, Move, Operation, Outcome, Put
from memdir.store.types import Container

MEMORIES_MAX: Final = 5_000_000
"""In one container."""
REFUSED_MAX: Final = 100
_TRIES: Final = 10
"""Of a change while others change the same memory."""
_OWN_NAME: Final = re.compile(r"-[0-9a-f]{6}\.md$")
"""Of a file that was named here, and not by a person."""


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
        stored_by=record.provenance.stored_by,
        is_trusted=record.provenance.is_trusted,
        confirmed_at=None if record.provenance.confirmed_at_ms is None else iso_ms(record.provenance.confirmed_at_ms),
        seen=record.provenance.seen,
        may_replace=record.provenance.may_replace,
        is_proposed=record.is_proposed,
        metadata=dict(record.metadata),
    )


def folder_of(project: str | None) -> str:
    """Where the memories of a project stand."""
    return agent_memories.FOLDER if project is None else f"{agent_memories.FOLDER}/{project}"


def store(caller: Caller, state: AgentMemoryState, engine: Engine | None, request: wire.StoreRequest) -> wire.StoreResult:
    """Remember. Pieces that say what is there already are not stored again; what updates a memory takes its place. With an
    idempotency key: once, and the same answer for a day."""
    if request.idempotency_key is None:
        return _store(caller, state, engine, request)
    if not 0 < len(request.idempotency_key) <= KEY_MAX_CHARS:
        raise InvalidError(f"an idempotency key has 1 to {KEY_MAX_CHARS} characters")
    caller.allow("write")
    names = {"org_id": caller.org_id, "caller": caller.key.id, "key": f"agents {request.idempotency_key}"}
    known = caller.store.answers.begin(**names, request=request_hash("agents", request.model_dump(mode="json")))
    if known is not None:
        return wire.StoreResult.model_validate_json(known.body)
    try:
        result = _store(caller, state, engine, request)
    except BaseException:
        caller.store.answers.drop(**names)
        raise
    body = result.model_dump_json(by_alias=True).encode()
    if len(body) <= ANSWER_MAX_BYTES:
        caller.store.answers.finish(**names, answer=Answer(status=201, content_type="application/json", body=body))
    else:
        caller.store.answers.drop(**names)
    return result


def _store(caller: Caller, state: AgentMemoryState, engine: Engine | None, request: wire.StoreRequest) -> wire.StoreResult:
    project = agent_files.project_folder(request.project)
    container = caller.ensured(request.container_tag, "write", at=folder_of(project))
    now_ms = caller.store.now_ms()
    draft = Draft(
        content=request.content, tags=tuple(request.tags), project=project, metadata=request.metadata,
        created_at_ms=now_ms, updated_at_ms=now_ms,
        provenance=Provenance(
            stored_by=request.stored_by, is_trusted=request.trusted and not is_suspect(request.content, request.stored_by)
        ),
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
    if request.supersedes:
        return _replacing(caller, state, container, pieces, request.supersedes, redactions)
    answers: list[AgentRecord | Draft] = []
    duplicates: list[wire.Duplicate] = []
    superseded: list[wire.Superseded] = []
    for piece in pieces:
        there = standing(caller, state, engine, container, piece)
        if there is None:
            answers.append(piece)
        elif there.relation is Relation.SAME:
            duplicates.append(wire.Duplicate(id=there.record.id, similarity=round(there.similarity, 4)))
            answers.append(_said_again(caller, container, there.record, piece))
        elif there.relation is Relation.UPDATES and len(pieces) == 1:
            superseded.append(wire.Superseded(id=there.record.id, content=there.record.content, why=there.why))
            answers.append(rewrite(caller, container, there.record, _newer(there.record, piece)))
        else:
            answers.append(replace(piece, provenance=replace(piece.provenance, may_replace=there.record.id)))
    made = _write(caller, container, [one for one in answers if isinstance(one, Draft)], INTERACTIVE)
    fresh = iter(made)
    memories = [memory_of(next(fresh) if isinstance(one, Draft) else one) for one in answers]
    if made:
        state.stored(container.id, len(made))
    return wire.StoreResult(memories=memories, duplicates=duplicates, superseded=superseded, redacted=redactions)


def is_suspect(content: str, stored_by: str) -> bool:
    """Whether what others than the user store reads like an instruction to a model: it may come from a page that the agent
    read."""
    return stored_by != BY_USER and is_instruction(content)


def _newer(record: AgentRecord, piece: Draft) -> Draft:
    """What a memory says from now on: the new text with its own provenance; tags and metadata of both."""
    return replace(
        piece,
        tags=(*piece.tags, *record.tags),
        metadata={**record.metadata, **piece.metadata},
        access_count=record.access_count,
    ).clean()


def _replacing(
    caller: Caller,
    state: AgentMemoryState,
    container: Container,
    pieces: Sequence[Draft],
    memory_ids: Sequence[str],
    redactions: list[str],
) -> wire.StoreResult:
    """What was told to take the place of memories: the first of them says it from now on, the others go. Their texts stay
    in the histories of their files."""
    if len(pieces) > 1:
        raise InvalidError(
            "a text of several pieces cannot replace a memory", hint="store it, and delete the memory that it replaces"
        )
    piece = pieces[0]
    records = [found(caller, container.tag, one, "write")[1] for one in dict.fromkeys(memory_ids)]
    for record in records:
        _only_piece(caller, record, "replaced")
        if record.provenance.is_trusted and not piece.provenance.is_trusted:
            raise ForbiddenError(f"what is not trusted cannot replace {record.id}, which is", hint="a person confirms it first")
    changed = rewrite(caller, container, records[0], _newer(records[0], piece))
    for record in records[1:]:
        caller.store.files.apply(container, Delete(path=record.path))
    state.used(container.id, [record.id for record in records])
    return wire.StoreResult(
        memories=[memory_of(changed)],
        duplicates=[],
        superseded=[wire.Superseded(id=one.id, content=one.content, why="as asked for") for one in records],
        redacted=redactions,
    )


def bring_in(caller: Caller, request: wire.ImportRequest) -> wire.ImportOutcome:
    """Many at once, with their times. What is there with the same words is passed over."""
    container = caller.ensured(request.container_tag, "write", at=agent_memories.FOLDER)
    _check_room(caller, container, len(request.items))
    now_ms = caller.store.now_ms()
    drafts: dict[tuple[str | None, int], Draft] = {}
    refused: list[str] = []
    known = kept = 0
    for at, item in enumerate(request.items):
        created_ms = agent_files.moment_ms(item.created_at, now_ms)
        draft = Draft(
            content=item.content, tags=tuple(item.tags), metadata=item.metadata,
            project=agent_files.project_folder(item.project), created_at_ms=created_ms,
            updated_at_ms=agent_files.moment_ms(item.updated_at, created_ms), access_count=item.access_count,
            provenance=Provenance(
                stored_by=item.stored_by or BY_USER,
                is_trusted=item.trusted and not is_suspect(item.content, item.stored_by or BY_USER),
            ),
        )  # fmt: skip
        try:
            said, _ = _safe(draft, request.secrets)
        except MemdirError as error:
            refused.append(f"item {at}: {error.message}")
            continue
        for piece in said.cut():
            key = (piece.project, agent_memories.folded_hash(piece.content))
            there = caller.store.agents.saying(container.id, piece.content, piece.project)
            if there is not None and request.propose and there.is_proposed and _is_another(piece, there):
                _said_again(caller, container, there, piece)
                kept += 1
            elif key in drafts or there is not None:
                known += 1
            else:
                drafts[key] = piece
    made = _write(caller, container, list(drafts.values()), BULK, propose=request.propose)
    return wire.ImportOutcome(created=len(made), duplicates=known, kept=kept, refused=refused[:REFUSED_MAX])


def _is_another(piece: Draft, there: AgentRecord) -> bool:
    """Whether what proposes it again is something else than what proposed it: another session, another commit."""
    return piece.metadata.get("from") != there.metadata.get("from")


def edit(caller: Caller, state: AgentMemoryState, memory_id: str, request: wire.EditRequest) -> wire.AgentMemory:
    """Change text, tags or project. What it said before stays in the history of its file."""
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
    if request.content is not None:
        may_trust = record.provenance.is_trusted or request.stored_by == BY_USER
        trusted = request.trusted and may_trust and not is_suspect(request.content, request.stored_by)
        draft = replace(
            draft, provenance=Provenance(stored_by=request.stored_by, is_trusted=trusted, seen=record.provenance.seen)
        )
    draft, _ = _safe(draft, request.secrets)
    if project != record.project:
        caller.allow_path(folder_of(project))
    state.take(container.id, 1)
    changed = rewrite(caller, container, record, draft)
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


def _said_again(caller: Caller, container: Container, record: AgentRecord, piece: Draft) -> AgentRecord:
    """The memory, said once more, with the tags of both; what was proposed before is kept. One piece of several stays as it is:
    these stand in the file of all."""
    if len(caller.store.agents.of_document(record.document_id)) > 1:
        return record
    known = record.provenance
    by_user = piece.provenance.stored_by == BY_USER and piece.provenance.is_trusted
    provenance = replace(
        known, seen=known.seen + 1, is_trusted=known.is_trusted or by_user,
        confirmed_at_ms=piece.created_at_ms if piece.provenance.is_trusted and (known.is_trusted or by_user) else None,
    )  # fmt: skip
    draft = replace(
        record.draft(), tags=agent_files.clean_tags((*record.tags, *piece.tags)), provenance=provenance,
        updated_at_ms=record.updated_at_ms,
    )  # fmt: skip
    return rewrite(caller, container, record, draft)


def _path_of(draft: Draft, salt: str = "", *, propose: bool = False) -> str:
    digest = hashlib.sha256(f"{draft.content}{salt}".encode("utf-8", "replace")).hexdigest()
    inbox = f"/{INBOX}" if propose else ""
    return f"{folder_of(draft.project)}{inbox}/{agent_files.slug(draft.content, digest)}{agent_memories.SUFFIX}"


def _write(
    caller: Caller, container: Container, drafts: Sequence[Draft], priority: int, *, propose: bool = False
) -> list[AgentRecord]:
    """New files and their records, all or none of them."""
    if not drafts:
        return []
    uploads: list[Upload] = []
    try:
        operations: list[Operation] = []
        taken: set[str] = set()
        for draft in drafts:
            path = _free_path(caller, container, draft, taken, propose=propose)
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


def _free_path(
    caller: Caller, container: Container, draft: Draft, taken: Collection[str] = (), *, propose: bool = False
) -> str:
    """Where a new file goes."""
    path = _path_of(draft, propose=propose)
    tries = 0
    while path in taken or caller.store.documents.at(container.id, path) is not None:
        tries += 1
        path = _path_of(draft, f" {tries}", propose=propose)
    return path


def rewrite(caller: Caller, container: Container, record: AgentRecord, draft: Draft) -> AgentRecord:
    """The file of a record with another text: a memory, also when it was only proposed. At the place of another project
    when that changed; a name that was made of the former text is made anew: who looks into the folder goes by the names."""
    for _ in range(_TRIES):
        try:
            return _rewritten(caller, container, record, draft)
        except NotFoundError:  # another writer gave it another name meanwhile
            moved = caller.store.agents.get(container.id, record.id)
            if moved is None:
                raise
            record = moved
    return _rewritten(caller, container, record, draft)


def _rewritten(caller: Caller, container: Container, record: AgentRecord, draft: Draft) -> AgentRecord:
    operations: list[Operation] = []
    path = record.path
    if draft.content != record.content and _OWN_NAME.search(record.path):
        path = _free_path(caller, container, draft)
    elif draft.project != record.project or record.is_proposed:
        path = f"{folder_of(draft.project)}/{record.path.rpartition('/')[2]}"
        if caller.store.documents.at(container.id, path) is not None:
            path = _free_path(caller, container, draft)
    if path != record.path:
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
