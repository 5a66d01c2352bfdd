"""Former contents of documents: what `/v1/versions` does."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final, cast

from memdir.api import v1
from memdir.core.clock import iso_ms
from memdir.core.errors import NotFoundError
from memdir.core.limits import INT64_MAX
from memdir.server.http.access import Caller
from memdir.server.services.contents.files import entry_of
from memdir.store.errors import InvalidError
from memdir.store.paths import checked_path
from memdir.store.tree.history import DOCUMENTS, VERSIONS, Happened, Life
from memdir.store.tree.operations import Outcome, Restore
from memdir.store.tree.versions import Version
from memdir.store.types import Container, Document

RENAMES_MAX: Final = 100
_NUMBER_DIGITS_MAX: Final = 19
"""Of a 64-bit number; ids of documents are shorter than four times that."""


def _entry(version: Version) -> v1.VersionEntry:
    return v1.VersionEntry.model_construct(
        version=version.id,
        document_id=version.document_id,
        path=version.path,
        kind=version.kind,
        content_hash=version.content_hash,
        size_bytes=version.size_bytes,
        mode=version.mode,
        mtime_ns=version.mtime_ns,
        revision=version.revision,
        reason=version.reason,
        ended_at=iso_ms(version.ended_at_ms),
        began_at=iso_ms(version.began_at_ms) if version.began_at_ms else None,
    )


def _page(found: list[Version], limit: int, current: Document | None = None) -> v1.VersionsPage:
    """`found` holds one more than `limit` when there are more."""
    entries = [_entry(version) for version in found[:limit]]
    return v1.VersionsPage(
        current=None if current is None else entry_of(current),
        versions=entries,
        next_before=entries[-1].version if len(found) > limit else None,
    )


def history(caller: Caller, tag: str, *, path: str | None, name: str | None, before: int | None, limit: int) -> v1.VersionsPage:
    """Versions of what stands, or stood last, at `path`; or of the document called `name` (id or custom id)."""
    bound = INT64_MAX if before is None else before
    if (path is None) == (name is None):
        raise InvalidError("either path or id must say which document")
    if name is not None:
        _, document = caller.document(name, "read", tag=tag)
    else:
        path = checked_path(path or "")
        container = caller.container(tag, "read", at=path)
        found = caller.store.documents.at(container.id, path)
        if found is None:
            gone = caller.store.versions.of_path(container.id, path, before=bound, limit=limit + 1)
            if not gone and before is None:
                raise NotFoundError(f"nothing stands at {path}, and no version of it is kept")
            return _page(gone, limit)
        document = found
    page = _page(caller.store.versions.of_document(document, before=bound, limit=limit + 1), limit, document)
    if before is not None:
        return page
    since = iso_ms(caller.store.versions.content_since_ms(document))
    return page.model_copy(update={"current_since": since, "renames": _renames(caller, document)})


def _renames(caller: Caller, document: Document) -> list[v1.Rename]:
    """Back to the first place that the key must not know."""
    found: list[v1.Rename] = []
    if document.path is None:
        return found
    renames = caller.store.history.renames_of(
        document.container_id, document.path, since_ms=document.created_at_ms, limit=RENAMES_MAX
    )
    for move in renames:
        if not caller.key.covers(move.from_path):
            break
        found.append(v1.Rename(seq=move.seq, path=move.path, from_path=move.from_path, at=iso_ms(move.at_ms)))
    return found


def past(caller: Caller, tag: str, *, prefix: str, at: datetime, after: str | None, limit: int) -> v1.PastPage:
    """What stood at and below `prefix` at a moment."""
    prefix = caller.narrowed(prefix)
    container = caller.container(tag, "read", at=prefix)
    at_ms = int(at.timestamp() * 1000)
    store = caller.store.history
    renames = store.renames(container.id, after_ms=at_ms)
    lives, more = store.at(container.id, prefix=prefix, at_ms=at_ms, cursor=_cursor(after), limit=limit, renames=renames)
    told_ms = store.told_since_ms(container.id)
    return v1.PastPage(
        entries=[_past_entry(caller, life) for life in lives],
        next_after=None if more is None else "".join(more),
        renames_since=iso_ms(told_ms) if told_ms > at_ms else None,
    )


def _cursor(after: str | None) -> tuple[str, str]:
    if after is None:
        return DOCUMENTS, ""
    table, rest = after[:1], after[1:]
    number = rest.isascii() and rest.isdigit() and len(rest) < _NUMBER_DIGITS_MAX
    if table not in (DOCUMENTS, VERSIONS) or len(rest) > _NUMBER_DIGITS_MAX * 4 or (table == VERSIONS and rest and not number):
        raise InvalidError("`after` is none that a page gave")
    return table, rest


def _past_entry(caller: Caller, life: Life) -> v1.PastEntry:
    seen = life.stands_at is None or caller.key.covers(life.stands_at)
    return v1.PastEntry(
        path=life.path,
        kind=cast("v1.EntryKind", life.kind),
        content_hash=life.content_hash,
        size_bytes=life.size_bytes,
        mode=life.mode,
        mtime_ns=life.mtime_ns,
        document_id=life.document_id,
        version=life.version,
        stands_at=life.stands_at if seen else None,
        began_at=iso_ms(life.began_at_ms) if life.began_at_ms else None,
    )


def happened(caller: Caller, tag: str, *, prefix: str, before: int | None, limit: int) -> v1.HistoryPage:
    """Changes at and below `prefix`, newest first. What came from, or went to, where the key must not look came and went."""
    prefix = caller.narrowed(prefix)
    container = caller.container(tag, "read", at=prefix)
    rows, more = caller.store.history.happened(
        container.id, prefix=prefix, before=INT64_MAX if before is None else before, limit=limit
    )
    return v1.HistoryPage(entries=[_happened_entry(caller, row) for row in rows], next_before=more)


def _happened_entry(caller: Caller, row: Happened) -> v1.HistoryEntry:
    kind, path, source = row.kind, row.path, row.from_path
    if source is not None and not caller.key.covers(source):
        kind, source = "put", None
    elif source is not None and not caller.key.covers(path):
        kind, path, source = "delete", source, None
    return v1.HistoryEntry.model_construct(
        seq=row.seq,
        kind=kind,
        path=path,
        from_path=source,
        at=iso_ms(row.at_ms),
        entry_kind=row.entry_kind,
        content_hash=row.content_hash,
        size_bytes=row.size_bytes,
        mode=row.mode,
    )


def deleted(caller: Caller, tag: str, *, prefix: str, before: int | None, limit: int) -> v1.VersionsPage:
    """The last content of each deleted document, latest deletion first."""
    prefix = caller.narrowed(prefix)
    container = caller.container(tag, "read", at=prefix)
    bound = INT64_MAX if before is None else before
    return _page(caller.store.versions.deleted(container.id, prefix=prefix, before=bound, limit=limit + 1), limit)


def content(caller: Caller, tag: str, number: int) -> tuple[Version, Iterable[bytes]]:
    """A version and its exact bytes (of a symlink: the target)."""
    container = caller.container(tag, "read", at=caller.narrowed("/"))
    version, _ = _find(caller, container, number)
    return version, caller.store.blobs.pieces(version.content_hash)


def _find(caller: Caller, container: Container, number: int) -> tuple[Version, str | None]:
    """A version that the key may see, and where its document stands or stood last: that place decides, as for the document
    itself."""
    version = caller.store.versions.get(container.id, number)
    document = caller.store.documents.get(version.document_id)
    place = version.path if document is None else document.path
    if not caller.key.covers(place):
        raise NotFoundError(f"there is no version {number}")
    return version, place


def restore(caller: Caller, request: v1.RestoreRequest) -> Outcome:
    """Make a version the newest content: an ordinary change in the feed."""
    container = caller.container(request.container_tag, "write", at=caller.narrowed(request.path or "/"))
    _, place = _find(caller, container, request.version)
    if request.path or place:
        caller.allow_path(request.path or place or "/")
    return caller.store.files.apply(
        container,
        Restore(
            version=request.version,
            path=None if request.path is None else checked_path(request.path),
            if_match=request.if_match,
            if_none_match=request.if_none_match,
            idempotency_key=request.idempotency_key,
        ),
    )


def purge(caller: Caller, tag: str, path: str) -> v1.PurgeResult:
    """Delete the versions of what stands at `path`, and those of deleted documents at and below it. What stands, stays."""
    path = checked_path(path, root=True)
    container = caller.container(tag, "write", at=path)
    document = None if path == "/" else caller.store.documents.at(container.id, path)
    count = caller.store.versions.purge(container, document_id=None if document is None else document.id, path=path)
    return v1.PurgeResult(deleted_count=count)
