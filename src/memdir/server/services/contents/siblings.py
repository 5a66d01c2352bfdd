"""The texts beside files, for those who show them."""

from __future__ import annotations

from typing import Final

from memdir.api import v1
from memdir.core.errors import NotFoundError
from memdir.core.siblings import ERROR
from memdir.server.http.access import Caller
from memdir.server.indexing.extraction import error_text
from memdir.store.contents.extractions import SiblingRow
from memdir.store.paths import is_within

PAGE_MAX: Final = 200
INLINE_MAX_BYTES: Final = 32 << 10
"""Texts up to this size come with the page: at most some 6 MiB of them."""


def page(caller: Caller, tag: str, since: int, limit: int) -> v1.SiblingsPage:
    """What came, changed or went behind `since`."""
    folder = caller.narrowed("/")
    container = caller.container(tag, "read", at=folder)
    rows = caller.store.extractions.beside(container.id, since=since, limit=limit)
    return v1.SiblingsPage(
        siblings=[_entry(caller, row) for row in rows if is_within(row.path, folder)],
        last_version=rows[-1].sibling_version if rows else since,
        has_more=len(rows) >= limit,
    )


def text(caller: Caller, tag: str, content_hash: str) -> bytes:
    """The text of contents that a file has which the key opens. NotFoundError."""
    folder = caller.narrowed("/")
    container = caller.container(tag, "read", at=folder)
    if not caller.store.extractions.is_beside(container.id, content_hash, folder):
        raise NotFoundError("no file with these contents has a text beside it")
    found = caller.store.extractions.text(content_hash)
    if found is None:
        raise NotFoundError("these contents could not be read")
    return found.encode()


def _entry(caller: Caller, row: SiblingRow) -> v1.SiblingEntry:
    kind, extracted, body = row.transcription, row.extracted, None
    if extracted is None:  # not read yet after a restore
        kind = None
    elif kind == ERROR:
        body = error_text(extracted)
    elif kind is not None and extracted.size_bytes <= INLINE_MAX_BYTES:
        body = caller.store.extractions.text(row.content_hash)
    size_bytes = len(body.encode()) if body is not None else 0 if extracted is None else extracted.size_bytes
    return v1.SiblingEntry(
        version=row.sibling_version,
        path=row.path,
        content_hash=row.content_hash,
        kind=kind,
        text_version=0 if extracted is None else extracted.at_ms,
        size_bytes=size_bytes,
        text=body,
    )
