"""Documents through the step from bytes to passages. No threads, no waiting.

Every step may be killed anywhere and repeated: what it writes is one transaction that the newest claim alone may commit.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

import numpy as np

from memdir.core.errors import NotFoundError
from memdir.ingest import chunker
from memdir.ingest.text import TEXT_MAX_BYTES, DecodedText, decode, media_type
from memdir.retrieval.text_kinds import is_generated
from memdir.server.engine import Engine
from memdir.server.indexing.extraction import format_of, front_chars, is_current, text_of, transcription_of
from memdir.server.indexing.leases import Lease, PermanentError
from memdir.store.agents import files as agent_files
from memdir.store.agents.memories import is_agent_path
from memdir.store.contents.extractions import Extracted
from memdir.store.errors import SupersededError
from memdir.store.jobs.progress import Indexed
from memdir.store.passages.ignored_files import GENERATED, IGNORED
from memdir.store.paths import is_memory_source
from memdir.store.protocols import Cut
from memdir.store.store import Store
from memdir.store.text.passage_text import embedded_text
from memdir.store.types import Chunk, Container, Document, Matrix

BINARY_NOTE: Final = "binary: kept byte for byte, nothing to search in it"
LAST_NOTES: Final = {
    GENERATED: "a tool's (a lock file, minified or generated code, an editor's state or trash): found by words, not by meaning",
    IGNORED: "left out by an ignore file of its folder: found by words, not by meaning, and behind everything else",
}
_STATIC_BATCH: Final = 512
TOLD_FROM_BYTES: Final = 64 << 10
"""Documents longer than this are called `extracting` and `chunking` meanwhile."""
AGENT_FILE_MAX_CHARS: Final = 1_000_000
"""Of one file that are read as memories of agents."""


@dataclass(slots=True, kw_only=True)
class Work:
    """A document in a step."""

    lease: Lease
    document: Document


@dataclass(slots=True, kw_only=True)
class _Cutting(Work):
    """A document on its way to passages."""

    data: bytes = b""
    text: DecodedText | None = None
    is_text: bool = True
    extracted: Extracted | None = None
    """What is kept of a file that is no text."""
    title: str | None = None
    chunks: Sequence[Chunk] = ()

    @property
    def name(self) -> str:
        return self.document.path or self.document.custom_id or ""


W = TypeVar("W", bound=Work)
Failed = list[tuple[Lease, Exception]]
Small = Mapping[str, bytes]
"""Bytes by their hash."""


def index_all(store: Store, engine: Engine, leases: Sequence[Lease]) -> Failed:
    """Make passages, words and static vectors of the bytes of documents of one organisation, and ask for what follows, with a
    few transactions for all of them.

    Returns those that failed and why, the others go on without them: SupersededError when the content was replaced meanwhile,
    PermanentError when there is no point in trying again. What goes wrong with a transaction is raised; everything may then be
    repeated.
    """
    failed: Failed = []
    documents = store.documents.many([lease.job.document_id for lease in leases])
    works = []
    for lease in leases:
        document = documents.get(lease.job.document_id)
        if document is None or document.kind != "file":
            store.jobs.finish([lease.job])
        else:
            works.append(_Cutting(lease=lease, document=document))
    works = _advanced(store, works, "extracting", failed)
    agents = store.agents.among([work.document.id for work in works])
    works = each(works, partial(_read, store, small_contents(store, works)), failed)
    works = _extracted(store, works, failed)
    works = each(works, partial(_reread, store, agents), failed)
    works = _advanced(store, works, "chunking", failed)
    works = each(works, _cut, failed)
    if not works:
        return failed
    made = engine.chunks.replace_all(_cuts(store, engine, works), model=engine.static.name)
    failed += [(work.lease, SupersededError()) for work, ids in zip(works, made, strict=True) if work.chunks and not ids]
    works = [work for work, ids in zip(works, made, strict=True) if ids or not work.chunks]
    containers = {work.document.container_id: store.containers.by_id(work.document.container_id) for work in works}
    for container_id in containers:
        engine.words.follow(container_id)
    for work in works:
        store.ignored.reconsider(work.document)
    ignored = _ignored(store, works)
    done = store.progress.indexed([_indexed(engine, work, containers[work.document.container_id], ignored) for work in works])
    return failed + [(work.lease, SupersededError()) for work in works if work.document.id not in done]


def each(works: Sequence[W], step: Callable[[W], None], failed: Failed) -> list[W]:
    """Those that the step went well with."""
    well = []
    for work in works:
        try:
            step(work)
        except Exception as error:  # noqa: BLE001  the caller's, with the document it is about
            failed.append((work.lease, error))
        else:
            well.append(work)
    return well


def _advanced(store: Store, works: Sequence[_Cutting], status: str, failed: Failed) -> list[_Cutting]:
    """Those whose claims are still the newest, as far as was looked: short ones are through before anybody could see a
    status, and the commit of their passages looks."""
    told = {work.document.id: work for work in works if work.document.size_bytes > TOLD_FROM_BYTES}
    held = store.progress.advance([work.lease.job for work in told.values()], status) if told else set()
    failed += [(work.lease, SupersededError()) for document_id, work in told.items() if document_id not in held]
    return [work for work in works if work.document.id in held or work.document.id not in told]


def _read(store: Store, small: Small, work: _Cutting) -> None:
    document = work.document
    work.data = content(store, small, document)
    work.is_text = format_of(document, work.data) is None
    if work.is_text:
        work.text = work.lease.compute(lambda: decode(work.data))


def _reread(store: Store, agents: Collection[str], work: _Cutting) -> None:
    if work.document.id in agents or is_agent_path(work.document.path):
        reread_agent_memory(store, work.document, None if work.text is None else work.text.text)


def _extracted(store: Store, works: Sequence[_Cutting], failed: Failed) -> list[_Cutting]:
    """Those that can be indexed now. Files that are no text get what was read of them in a process apart; what was not read
    yet is asked to be."""
    apart = [work for work in works if not work.is_text]
    if not apart:
        return list(works)
    known = store.extractions.known([work.document.content_hash for work in apart])
    unread = {work.document.id: work for work in apart if not is_current(known.get(work.document.content_hash))}
    if unread:
        done = store.progress.hand_on([work.lease.job for work in unread.values()], "extract")
        failed += [(work.lease, SupersededError()) for document_id, work in unread.items() if document_id not in done]
    ready = [work for work in works if work.document.id not in unread]
    for work in ready:
        if not work.is_text:
            work.extracted = known[work.document.content_hash]
            work.text = text_of(store, work.document.content_hash)
    return ready


def _cut(work: _Cutting) -> None:
    text = work.text
    if text is not None:
        if work.extracted is None:
            work.chunks, work.title = work.lease.compute(lambda: chunker.cut(text, work.name))
            return
        front = front_chars(text.text)
        title = work.extracted.title
        work.chunks, _ = work.lease.compute(lambda: chunker.cut(text, f"{work.name}.md", front_chars=front, title=title))
        work.title = title or None


def _cuts(store: Store, engine: Engine, works: Sequence[_Cutting]) -> list[Cut]:
    """With static vectors, which are made for all together; of one long document a claim that is lost ends it in between."""
    texts = [embedded_text(chunk) for work in works for chunk in work.chunks]
    vectors = _static_vectors(engine, texts, works[0].lease.check)
    cuts = []
    for work in works:
        own, vectors = vectors[: len(work.chunks)], vectors[len(work.chunks) :]
        guard = store.jobs.guard(work.lease.job)
        cuts.append(Cut(document=work.document, chunks=work.chunks, vectors=own, guard=guard))
    return cuts


def _ignored(store: Store, works: Sequence[_Cutting]) -> set[str]:
    """The documents that ignore files leave out."""
    ids: set[str] = set()
    for container_id in {work.document.container_id for work in works}:
        placed = {work.document.path: work.document.id for work in works if work.document.container_id == container_id}
        ids.update(placed[path] for path in store.ignored.among(container_id, [path for path in placed if path]))
    return ids


def _indexed(engine: Engine, work: _Cutting, container: Container | None, ignored: Collection[str]) -> Indexed:
    document, chunks = work.document, work.chunks
    follow_up = []
    last = None
    if work.text is not None:
        generated = work.extracted is None and is_generated(document.path, work.text.text)
        last = IGNORED if document.id in ignored else GENERATED if generated else None
    if chunks and last is None and (engine.dense is not None or not engine.settled):
        follow_up.append("embed")
    if container is not None and is_memory_source(document.path, document.task_type, container.memory_paths):
        follow_up.append("memory")
    known = work.extracted
    note = BINARY_NOTE if work.text is None else LAST_NOTES.get(last or "") or chunker.note(work.text, chunks)
    if known is not None and known.error is not None:
        note = known.error
    # What an engine that is not installed could read has not failed.
    is_failed = known is not None and known.error is not None and not known.needs
    return Indexed(
        document=document,
        job=work.lease.job,
        status="failed" if is_failed else "embedding" if "embed" in follow_up else "done",
        error=note,
        media_type=media_type(document.path, work.data) if known is None else known.media_type,
        transcription=None if known is None else transcription_of(known),
        title=work.title,
        searched_last=last,
        follow_up=follow_up,
    )


def reread_agent_memory(store: Store, document: Document, text: str | None) -> None:
    """A file under `/memory/` is a memory of agents, whoever wrote it: its record follows what it says. Secrets that a person
    wrote down stay in the file alone."""
    records = []
    if text is not None and is_agent_path(document.path):
        said = agent_files.parsed(
            text[:AGENT_FILE_MAX_CHARS], created_at_ms=document.created_at_ms, updated_at_ms=document.updated_at_ms
        )
        records = said.redacted().cut()
    store.agents.reread(document.container_id, document.id, document.content_hash, records)


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
    """The document's text, or the one beside it; None when there is none."""
    if document.kind != "file":
        return None
    if document.transcription is not None:
        return text_of(store, document.content_hash)
    return decode(head(store, document))


def small_contents(store: Store, works: Sequence[Work]) -> Small:
    """The contents of short files, read together."""
    return store.blobs.small([work.document.content_hash for work in works if work.document.kind == "file"])


def content(store: Store, small: Small, document: Document) -> bytes:
    """`head`, where content that is gone means that the document has other content now, or that there is no point in trying."""
    try:
        return small.get(document.content_hash) or head(store, document)
    except NotFoundError as error:
        now = store.documents.get(document.id)
        if now is None or now.content_hash != document.content_hash:
            raise SupersededError from None
        raise PermanentError(error.message, hint=error.hint) from error


def _static_vectors(engine: Engine, texts: Sequence[str], checkpoint: Callable[[], None]) -> Matrix:
    made = []
    for first in range(0, len(texts), _STATIC_BATCH):
        checkpoint()
        made.append(engine.static.embed_passages(list(texts[first : first + _STATIC_BATCH])))
    return np.concatenate(made) if made else np.zeros((0, engine.static.dim), dtype=np.float32)
