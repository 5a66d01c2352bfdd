"""Documents and memories as the wire says them: the same for every family of calls."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memdir.api import v3
from memdir.core.clock import iso_ms
from memdir.core.errors import NotFoundError
from memdir.server.http.access import Caller
from memdir.server.indexing.extraction import read_text
from memdir.store.types import Document, Memory

SUMMARY_MAX_CHARS: Final = 300
SUMMARY_LOOK_BYTES: Final = 8192
_TYPES: Final = (
    ("application/pdf", "pdf"),
    ("image/", "image"),
    ("video/", "video"),
    ("audio/", "audio"),
    ("text/html", "webpage"),
)


def view(
    document: Document,
    *,
    content: str | None = None,
    summary: str | None = None,
    memories: Sequence[Memory] | None = None,
    dreaming: bool = False,
) -> v3.DocumentView:
    """A document as the wire says it."""
    unfinished = document.status not in ("done", "failed")
    return v3.DocumentView(
        id=document.id,
        custom_id=document.custom_id,
        filepath=document.path,
        title=document.title,
        summary=summary,
        content=content,
        status=document.status,  # type: ignore[arg-type]
        error=document.error,
        error_message=document.error if document.status == "failed" else None,
        type=type_of(document),
        task_type=document.task_type,  # type: ignore[arg-type]
        url=document.url,
        dreaming_status="dreaming" if dreaming or unfinished else "done",
        latest_revision=document.revision,
        container_tags=[document.container_tag],
        metadata=dict(document.metadata),
        memories=None if memories is None else [memory_of(memory) for memory in memories],
        created_at=iso_ms(document.created_at_ms),
        updated_at=iso_ms(document.updated_at_ms),
    )


def memory_of(memory: Memory) -> v3.MemoryOfDocument:
    """A memory as its document shows it."""
    return v3.MemoryOfDocument(
        id=memory.id,
        memory=memory.candidate.text,
        metadata=dict(memory.metadata),
        version=memory.version,
        is_latest=memory.is_latest,
        is_forgotten=memory.is_forgotten,
        is_static=memory.candidate.kind == "static",
        is_inference=memory.relation == "derives",
        parent_memory_id=memory.parent_id,
        root_memory_id=memory.root_id,
        source_count=memory.source_count,
        created_at=iso_ms(memory.created_at_ms),
        updated_at=iso_ms(memory.updated_at_ms),
    )


def type_of(document: Document) -> str:
    """`text`, unless the media type says more; `webpage` for an address."""
    if document.url is not None:
        return "webpage"
    return next((name for prefix, name in _TYPES if document.media_type.startswith(prefix)), "text")


def summary_of(caller: Caller, document: Document) -> str | None:
    """The beginning of the document's prose, at most SUMMARY_MAX_CHARS: said by the document, made up by nobody. None when it
    has none."""
    if document.transcription is not None:
        text = caller.store.extractions.text(document.content_hash)
        return None if text is None else lead(read_text(text)[:SUMMARY_LOOK_BYTES])
    if document.kind != "file" or document.media_type.startswith(("image/", "audio/", "video/", "application/")):
        return None
    try:
        head = next(iter(caller.store.blobs.pieces(document.content_hash)), b"")[:SUMMARY_LOOK_BYTES]
    except NotFoundError:  # replaced while we looked
        return None
    if b"\0" in head:
        return None
    return lead(head.decode(errors="ignore"))


def lead(text: str) -> str | None:
    """The first paragraph that is no heading, list mark or front matter, in one line."""
    body = re.sub(r"\A---\r?\n.*?^---\s*$", "", text, flags=re.DOTALL | re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", body):
        lines = [line.strip() for line in paragraph.splitlines() if not line.lstrip().startswith(("#", "```", "|"))]
        said = " ".join(" ".join(lines).split())
        if len(said) > SUMMARY_MAX_CHARS:
            said = said[:SUMMARY_MAX_CHARS].rsplit(" ", 1)[0] + " …"
        if said:
            return said
    return None


def pagination(current: int, limit: int, total: int) -> v3.Pagination:
    """Where a page stands."""
    return v3.Pagination(current_page=current, limit=limit, total_items=total, total_pages=-(-total // limit))
