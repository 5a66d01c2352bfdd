"""One document through one job: bytes to passages, and passages to memories. No threads, no waiting."""

from __future__ import annotations

from typing import Final

import numpy as np

from memdir.core.errors import NotFoundError
from memdir.ingest import chunker
from memdir.ingest.text import TEXT_MAX_BYTES, DecodedText, decode, media_type
from memdir.memory.extract import extract
from memdir.memory.reconcile import reconcile
from memdir.server.engine import Engine
from memdir.store.jobs import Job
from memdir.store.paths import under_memory_paths
from memdir.store.store import Store
from memdir.store.texts import embedded_text
from memdir.store.types import Document, Matrix

BINARY_NOTE: Final = "binary: kept byte for byte, nothing to search in it"
_STATIC_BATCH: Final = 512


class SupersededError(Exception):
    """The document has other content now; another turn of the job takes that."""


def index(store: Store, engine: Engine, job: Job) -> None:
    """Make passages, words and static vectors of the document's bytes and ask for what follows.

    SupersededError when the content was replaced meanwhile.
    """
    document = store.documents.get(job.document_id)
    if document is None or document.kind != "file":
        store.jobs.finish([job])
        return
    store.documents.set_status(document, "extracting")
    data = head(store, document)
    text = decode(data)
    store.documents.set_status(document, "chunking")
    name = document.path or document.custom_id or ""
    chunks = chunker.chunk(text, name) if text is not None else ()
    vectors = _static_vectors(engine, [embedded_text(chunk) for chunk in chunks])
    ids = engine.chunks.replace_chunks(document, chunks, model=engine.static.name, vectors=vectors)
    if chunks and not ids:
        raise SupersededError
    container = store.containers.by_id(document.container_id)
    follow_up = []
    if chunks and (engine.dense is not None or not engine.settled):
        follow_up.append("embed")
    if container is not None and under_memory_paths(document.path, container.memory_paths):
        follow_up.append("memory")
    store.documents.set_indexed(
        document,
        job,
        status="embedding" if "embed" in follow_up else "done",
        error=BINARY_NOTE if text is None else chunker.note(text, chunks),
        media_type=media_type(document.path, data),
        title=None if text is None else chunker.title(text, name),
        follow_up=follow_up,
    )


def remember(store: Store, engine: Engine, job: Job) -> None:
    """Bring the memories in line with what the document says, if it stands under the memory paths; else take them back."""
    document = store.documents.get(job.document_id)
    container = None if document is None else store.containers.by_id(document.container_id)
    if document is None or container is None:
        store.jobs.finish([job])
        return
    memories = engine.memories
    if not under_memory_paths(document.path, container.memory_paths):
        memories.forget_document(document)
    else:
        text = decoded(store, document)
        candidates = () if text is None else extract(text.text, document.path or "", byte_at=text.byte_at)
        own = memories.standing(document.id)
        known = {memory.id for memory in own}
        others = [memory for memory in memories.latest(container.id) if memory.id not in known]
        memories.apply(document, reconcile(candidates, own=own, others=others))
    store.jobs.finish([job])


def head(store: Store, document: Document) -> bytes:
    """The document's bytes, one more than are ever decoded at most, so that a huge file does not fill the memory."""
    pieces = []
    size = 0
    try:
        source = store.blobs.pieces(document.content_hash)
    except NotFoundError:
        now = store.documents.get(document.id)
        if now is None or now.content_hash != document.content_hash:
            raise SupersededError from None
        raise
    for piece in source:
        pieces.append(piece)
        size += len(piece)
        if size > TEXT_MAX_BYTES:
            break
    return b"".join(pieces)[: TEXT_MAX_BYTES + 1]


def decoded(store: Store, document: Document) -> DecodedText | None:
    """The document's text, None when it is not text."""
    return decode(head(store, document)) if document.kind == "file" else None


def _static_vectors(engine: Engine, texts: list[str]) -> Matrix:
    if not texts:
        return np.zeros((0, engine.static.dim), dtype=np.float32)
    batches = [texts[first : first + _STATIC_BATCH] for first in range(0, len(texts), _STATIC_BATCH)]
    return np.concatenate([engine.static.embed_passages(batch) for batch in batches])
