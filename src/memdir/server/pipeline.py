"""One document through one job: bytes to passages, and passages to memories. No threads, no waiting.

Every step may be killed anywhere and repeated: what it writes is one transaction that the newest claim alone may commit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from memdir.core.errors import NotFoundError
from memdir.core.secrets import redacted
from memdir.ingest import chunker
from memdir.ingest.text import TEXT_MAX_BYTES, DecodedText, decode, media_type
from memdir.memory.extract import extract
from memdir.memory.reconcile import reconcile
from memdir.server.engine import Engine
from memdir.server.knownfacts import KnownFacts
from memdir.server.leases import Lease, PermanentError
from memdir.store import agentfiles
from memdir.store.agentmemories import NewRecord, is_agent_path
from memdir.store.errors import SupersededError
from memdir.store.paths import is_memory_source
from memdir.store.store import Store
from memdir.store.texts import embedded_text, storable
from memdir.store.types import Document, Matrix

BINARY_NOTE: Final = "binary: kept byte for byte, nothing to search in it"
_STATIC_BATCH: Final = 512
AGENT_FILE_MAX_CHARS: Final = 1_000_000
"""Of one file that are read as memories of agents."""


def index(store: Store, engine: Engine, lease: Lease) -> None:
    """Make passages, words and static vectors of the document's bytes and ask for what follows.

    SupersededError when the content was replaced meanwhile, PermanentError when there is no point in trying again.
    """
    job = lease.job
    document = store.documents.get(job.document_id)
    if document is None or document.kind != "file":
        store.jobs.finish([job])
        return
    _advance(store, document, lease, "extracting")
    data = _content(store, document)
    text = lease.compute(lambda: decode(data))
    reread_agent_memory(store, document, None if text is None else text.text)
    _advance(store, document, lease, "chunking")
    name = document.path or document.custom_id or ""
    chunks = lease.compute(lambda: chunker.chunk(text, name)) if text is not None else ()
    title = lease.compute(lambda: chunker.title(text, name)) if text is not None else None
    vectors = _static_vectors(engine, [embedded_text(chunk) for chunk in chunks], lease.check)
    ids = engine.chunks.replace_chunks(document, chunks, model=engine.static.name, vectors=vectors, guard=store.jobs.guard(job))
    if chunks and not ids:
        raise SupersededError
    engine.words.follow(document.container_id)
    container = store.containers.by_id(document.container_id)
    follow_up = []
    if chunks and (engine.dense is not None or not engine.settled):
        follow_up.append("embed")
    if container is not None and is_memory_source(document.path, document.task_type, container.memory_paths):
        follow_up.append("memory")
    indexed = store.documents.set_indexed(
        document,
        job,
        status="embedding" if "embed" in follow_up else "done",
        error=BINARY_NOTE if text is None else chunker.note(text, chunks),
        media_type=media_type(document.path, data),
        title=title,
        follow_up=follow_up,
    )
    if not indexed:
        raise SupersededError


def reread_agent_memory(store: Store, document: Document, text: str | None) -> None:
    """A file under `/memory/` is a memory of agents, whoever wrote it: its record follows what it says. Secrets that a person
    wrote down stay in the file alone."""
    known = store.agents.of_document(document.id)
    if not known and not is_agent_path(document.path):
        return
    records = []
    if text is not None and is_agent_path(document.path):
        said = agentfiles.parsed(text[:AGENT_FILE_MAX_CHARS])
        created_ms = document.created_at_ms if said.created_at_ms is None else said.created_at_ms
        records = [
            NewRecord(
                content=piece,
                tags=said.tags,
                metadata=said.metadata,
                created_at_ms=created_ms,
                updated_at_ms=document.updated_at_ms if said.updated_at_ms is None else said.updated_at_ms,
            )
            for piece in agentfiles.pieces(storable(redacted(said.content)))
            if piece
        ]
    store.agents.reread(document.container_id, document.id, document.content_hash, records)


def remember(store: Store, engine: Engine, lease: Lease, facts: KnownFacts | None = None) -> None:
    """Bring the memories in line with what the document says, if it stands under the memory paths; else take them back. `facts`
    of the calling thread spare it from reading all that is known for each document.

    SupersededError when the content was replaced meanwhile, or another document's facts came between.
    """
    job = lease.job
    document = store.documents.get(job.document_id)
    container = None if document is None else store.containers.by_id(document.container_id)
    if document is None or container is None:
        store.jobs.finish([job])
        return
    memories = engine.memories
    guard = store.jobs.guard(job)
    if not is_memory_source(document.path, document.task_type, container.memory_paths):
        memories.forget_document(document, guard=guard)
    else:
        path, data = document.path or "", _content(store, document) if document.kind == "file" else None
        text = None if data is None else lease.compute(lambda: decode(data))
        candidates = () if text is None else lease.compute(lambda: extract(text.text, path, byte_at=text.byte_at))
        own = memories.standing(document.id)
        facts = facts or KnownFacts(store)
        others = facts.concerned(container, candidates, own)
        changes = lease.compute(lambda: reconcile(candidates, own=own, others=others))
        changed = memories.apply(document, changes, version=container.profile_version, guard=guard)
        facts.applied(container, document, changes, changed=changed)
    store.jobs.finish([job])


def head(store: Store, document: Document) -> bytes:
    """The document's bytes, one more than are ever decoded at most, so that a huge file does not fill the memory. NotFoundError
    when the content is gone."""
    pieces = []
    size = 0
    for piece in store.blobs.pieces(document.content_hash):
        pieces.append(piece)
        size += len(piece)
        if size > TEXT_MAX_BYTES:
            break
    return b"".join(pieces)[: TEXT_MAX_BYTES + 1]


def decoded(store: Store, document: Document) -> DecodedText | None:
    """The document's text, None when it is not text."""
    return decode(head(store, document)) if document.kind == "file" else None


def _content(store: Store, document: Document) -> bytes:
    """`head`, where content that is gone means that the document has other content now, or that there is no point in trying."""
    try:
        return head(store, document)
    except NotFoundError as error:
        now = store.documents.get(document.id)
        if now is None or now.content_hash != document.content_hash:
            raise SupersededError from None
        raise PermanentError(error.message, hint=error.hint) from error


def _advance(store: Store, document: Document, lease: Lease, status: str) -> None:
    if not store.documents.advance(document, lease.job, status):
        raise SupersededError


def _static_vectors(engine: Engine, texts: Sequence[str], checkpoint: Callable[[], None]) -> Matrix:
    made = []
    for first in range(0, len(texts), _STATIC_BATCH):
        checkpoint()
        made.append(engine.static.embed_passages(list(texts[first : first + _STATIC_BATCH])))
    return np.concatenate(made) if made else np.zeros((0, engine.static.dim), dtype=np.float32)
