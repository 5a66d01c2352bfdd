"""Documents as `/v3` knows them, over the same tree as `/v1/files`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memdir.api import v3
from memdir.core.errors import MemdirError, NotFoundError
from memdir.server.errors import text_of
from memdir.server.http.access import Caller
from memdir.server.http.etags import required, tag_of
from memdir.server.http.idempotency import made_id
from memdir.server.http.pages import Place, Walker, cursor_of, place_of
from memdir.server.indexing.extraction import read_text
from memdir.server.indexing.pipeline import decoded
from memdir.server.services.contents.views import SUMMARY_LOOK_BYTES, lead, pagination, view
from memdir.server.services.search.filters import condition_of
from memdir.store.contents.blobs import StagedBlob, Upload
from memdir.store.errors import InvalidError
from memdir.store.jobs.queue import INTERACTIVE
from memdir.store.paths import checked_path
from memdir.store.tree.documents import Listing, Unfinished
from memdir.store.tree.operations import Move, Operation, Put, Remove, Require
from memdir.store.types import Container, Document

CONTAINER_DEFAULT: Final = "default"
_PAGE: Final = 500
URL_MAX_CHARS: Final = 2048
STUCK_MS: Final = 4 * 3600 * 1000
"""A document in the pipeline that nothing happened to for this long is called stuck, and is not `active` any more."""
PROCESSING_MAX: Final = 1000
_ADDRESS: Final = re.compile(r"https?://[^\s/?#]+[^\s]*", re.IGNORECASE)


def text_content(caller: Caller, document: Document) -> str | None:
    """The document's text, None when it is not text."""
    try:
        text = decoded(caller.store, document)
    except NotFoundError:  # replaced while we looked
        return None
    if text is None:
        return None
    return text.text if document.transcription is None else read_text(text.text)


def address_in(content: str) -> str | None:
    """The address that is all of a content, None for other contents."""
    text = content.strip()
    return text if len(text) <= URL_MAX_CHARS and _ADDRESS.fullmatch(text) else None


def add(
    caller: Caller, request: v3.AddDocument, *, priority: int = INTERACTIVE, number: int = 0, only_new: bool = False
) -> v3.Added:
    """Take a text in; the same custom id or path again replaces. Of an address the page is fetched when the document is read,
    where that is on. `number` is the place among several of one request. PreconditionError with `only_new` when there is one
    already."""
    with caller.store.blobs.upload() as upload:
        upload.write(request.content.encode())
        return add_blob(caller, request, upload.finish(), priority=priority, number=number, only_new=only_new)


def add_blob(
    caller: Caller,
    request: v3.AddDocument,
    blob: StagedBlob,
    *,
    priority: int = INTERACTIVE,
    number: int = 0,
    only_new: bool = False,
) -> v3.Added:
    """Take bytes in, under the names of `request` (its content is looked at for an address only)."""
    wanted = prepared(caller, request, blob, priority=priority, number=number, only_new=only_new)
    document = write(caller, wanted.container, wanted.existing, wanted.put)
    return v3.Added(id=document.id, status=refetch_page(caller, document))  # type: ignore[arg-type]


def refetch_page(caller: Caller, document: Document) -> str:
    """Of a document that was just posted: when it is an address that was fetched before, ask for its page again. Returns the
    status that the document has then."""
    if document.url is not None and caller.store.reprocessing.fetch_again(document.content_hash):
        caller.store.notify(document.container_id)
        return "queued"
    return document.status


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A text that is to be taken in, and what stands where it goes."""

    container: Container
    existing: Document | None
    put: Put

    @property
    def moves(self) -> bool:
        """Whether what stands there must be moved first."""
        here = None if self.existing is None else self.existing.path
        return self.put.path is not None and here is not None and self.put.path != here


def prepared(
    caller: Caller,
    request: v3.AddDocument,
    blob: StagedBlob,
    *,
    priority: int = INTERACTIVE,
    number: int = 0,
    only_new: bool = False,
) -> Wanted:
    """What `add_blob` will do. Errors as there."""
    container = caller.ensured(request.tag or CONTAINER_DEFAULT, "write", at=caller.narrowed(request.filepath or "/"))
    path = None if request.filepath is None else checked_path(request.filepath)
    existing = None
    if request.custom_id is not None:
        existing = caller.store.documents.by_custom_id(container.id, request.custom_id)
    elif path is not None:
        existing = caller.store.documents.at(container.id, path)
    caller.place(path, existing)
    put = Put(
        path=path,
        blob=blob,
        custom_id=request.custom_id,
        metadata=request.metadata,
        task_type=request.task_type,
        url=address_in(request.content),
        priority=priority,
        new_id=made_id(number),
        if_none_match=only_new,
    )
    return Wanted(container=container, existing=existing, put=put)


def write(
    caller: Caller, container: Container, existing: Document | None, put: Put, *, require: Require | None = None
) -> Document:
    """Put over `existing` (moved to the put's path first, when that is another), or as a new document."""
    operations: list[Operation] = [] if require is None else [require]
    wanted = Wanted(container=container, existing=existing, put=put)
    if wanted.moves:
        assert existing is not None
        operations.append(Move(from_path=existing.path or "", path=put.path or "", replace=False))
    operations.append(over(caller, wanted))
    document = None
    for result in caller.store.files.apply_all(container, operations, together=True):
        if isinstance(result, MemdirError):
            raise result
        document = result.document
    assert document is not None
    return document


def over(caller: Caller, wanted: Wanted) -> Put:
    """The put, with what it takes over from the document that stands there."""
    existing = wanted.existing
    here = None if existing is None else existing.path
    return replace(
        wanted.put,
        path=wanted.put.path or here,
        mode=0o644 if existing is None else existing.mode,
        mtime_ns=caller.store.now_ms() * 1_000_000,
        document_id=existing.id if existing is not None and here is None else None,
    )


def change(
    caller: Caller, name: str, request: v3.ChangeDocument, *, tag: str | None = None, if_match: str | None = None
) -> v3.Added:
    """Change what was sent, keep the rest; PreconditionError unless the document is the version that If-Match names."""
    container, document = caller.document(name, "write", tag=tag)
    if request.tag not in (None, document.container_tag):
        raise InvalidError(
            f"the document is in container {document.container_tag!r} and stays there",
            hint="add it to the other container and delete it here",
        )
    require = required(if_match, document.id)
    path = caller.place(request.filepath, document)
    moved = path is not None and path != document.path
    if document.kind != "file" and (request.content is not None or moved):
        raise InvalidError(f"{document.path} is not a file", hint="use /v1/files")
    if request.content is None and not moved and request.custom_id is None and request.task_type is None:
        if request.metadata is not None:
            caller.store.files.set_metadata(container, document.id, request.metadata, require=require)
        return v3.Added(id=document.id, status=document.status)  # type: ignore[arg-type]
    with caller.store.blobs.upload() as upload:
        if request.content is None:
            _copy(caller, document, upload)
        else:
            upload.write(request.content.encode())
        put = Put(
            path=path,
            blob=upload.finish(),
            custom_id=request.custom_id,
            metadata=request.metadata,
            task_type=request.task_type,
            url=document.url if request.content is None else address_in(request.content),
        )
        changed = write(caller, container, document, put, require=require)
    return v3.Added(id=changed.id, status=changed.status)  # type: ignore[arg-type]


def _copy(caller: Caller, document: Document, upload: Upload) -> None:
    for piece in caller.store.blobs.pieces(document.content_hash):
        upload.write(piece)


def get(caller: Caller, name: str, *, tag: str | None = None) -> v3.DocumentView:
    """A document with its text, its beginning as a summary, and the memories drawn from it."""
    return get_tagged(caller, name, tag=tag)[0]


def get_tagged(caller: Caller, name: str, *, tag: str | None = None) -> tuple[v3.DocumentView, str]:
    """As `get`, and the ETag of the document with its memories."""
    container, document = caller.document(name, "read", tag=tag)
    text = text_content(caller, document)
    shown = view(
        document,
        content=text,
        summary=None if text is None else lead(text[:SUMMARY_LOOK_BYTES]),
        memories=caller.store.memories.standing(document.id) or None,
        dreaming=bool(caller.store.documents.being_remembered([document.id])),
    )
    return shown, tag_of(document, container.profile_version)


def delete(caller: Caller, name: str, *, tag: str | None = None, if_match: str | None = None) -> None:
    """Delete one document, by id or custom id; PreconditionError unless it is the version that If-Match names."""
    container, document = caller.document(name, "write", tag=tag, frees=True)
    require = required(if_match, document.id)
    removal = Remove(document_id=document.id)
    operations: list[Operation] = [removal] if require is None else [require, removal]
    caller.store.files.apply_all(container, operations, together=True)


def delete_many(caller: Caller, request: v3.DeleteDocuments) -> v3.Deleted:
    """Delete by ids, or all below a path of some containers."""
    if request.ids:
        count, errors = 0, []
        for name in request.ids:
            try:
                delete(caller, name)
                count += 1
            except NotFoundError as error:
                errors.append({"id": name, "error": text_of(error)})
        return v3.Deleted(success=not errors, deleted_count=count, errors=errors or None)
    if not request.tags:
        raise InvalidError("ids or containerTags must name what to delete")
    count = 0
    for tag in request.tags:
        path = narrowed_listing(caller, request.filepath)
        container = caller.found(tag, "write", at=path or "/", frees=True)
        if container is not None:
            count += _delete_below(caller, container, path)
    return v3.Deleted(success=True, deleted_count=count, container_tags=request.tags)


def _delete_below(caller: Caller, container: Container, path: str | None) -> int:
    query = Listing(container_ids=(container.id,), path=path, files_only=False)
    count = 0
    while documents := caller.store.documents.listing(query, limit=_PAGE):
        results = caller.store.files.apply_all(container, [Remove(document_id=document.id) for document in documents])
        gone = sum(not isinstance(result, MemdirError) for result in results)
        count += gone
        if not gone:  # others deleted them first
            break
    return count


def listing_path(filepath: str | None) -> str | None:
    """A path filter as the store takes it: a trailing slash is kept."""
    if filepath is None:
        return None
    if filepath == "/":
        return "/"
    return checked_path(filepath) + ("/" if filepath.endswith("/") else "")


def narrowed_listing(caller: Caller, filepath: str | None) -> str | None:
    """`listing_path`, narrowed to what the key opens."""
    path = listing_path(filepath)
    narrowed = caller.narrowed("/" if path is None else path)
    return path if path is None and narrowed == "/" else path if narrowed == (path or "/").rstrip("/") else narrowed + "/"


def containers(caller: Caller, tags: Sequence[str] | None) -> list[Container]:
    """The containers named, those that exist; without names all that the key may read. What is read of them must be narrowed
    (`Caller.narrowed`)."""
    if tags:
        found = (caller.found(tag, "read", at=caller.narrowed("/")) for tag in dict.fromkeys(tags))
        return [container for container in found if container is not None]
    return caller.readable()


def page(caller: Caller, request: v3.ListDocuments, walker: Walker | None = None) -> v3.DocumentPage:
    """A page of documents, behind a cursor or by its number; with a walker, pages one after the other neither skip nor repeat
    what stood there all the time. Totals are those of the walk then: what was given out, and what is still to come."""
    order = f"{request.sort} {request.order}"
    question = request.model_dump_json(exclude={"page", "cursor", "include_content"})
    before, offset = None, (request.page - 1) * request.limit
    if request.cursor is not None:
        before = place_of(request.cursor, order)
    elif walker is not None and request.page > 1:
        before = walker.end_of(question, request.page - 1)
    query = Listing(
        container_ids=tuple(container.id for container in containers(caller, request.tags)),
        path=narrowed_listing(caller, request.filepath),
        sort="updated_at_ms" if request.sort == "updatedAt" else "created_at_ms",
        descending=request.order == "desc",
        after=None if before is None else (before.at_ms, before.id),
        condition=condition_of(request.filters),
    )
    seen, skip = (offset, offset) if before is None else (before.seen, 0)
    documents: list[Document] = []
    there = 0
    if query.container_ids:
        documents = caller.store.documents.listing(query, limit=request.limit, offset=skip)
        there = caller.store.documents.count(query)
    total = there if before is None else seen + there
    number = request.page if request.cursor is None else seen // request.limit + 1
    following = None
    if documents:
        last = documents[-1]
        at_ms = last.updated_at_ms if request.sort == "updatedAt" else last.created_at_ms
        place = Place(at_ms=at_ms, id=last.id, seen=seen + len(documents))
        following = cursor_of(place, order) if place.seen < total else None
        if walker is not None:
            walker.keep(question, number, place)
    dreaming = caller.store.documents.being_remembered([d.id for d in documents]) if documents else set()
    views = [
        view(d, content=text_content(caller, d) if request.include_content else None, dreaming=d.id in dreaming)
        for d in documents
    ]
    return v3.DocumentPage(
        memories=views,
        pagination=pagination(number, request.limit, total).model_copy(update={"next_cursor": following}),
    )


def processing(
    caller: Caller, tags: Sequence[str] | None, *, which: str = "pending", limit: int = PROCESSING_MAX, current: int = 1
) -> v3.Processing:
    """What is still in the pipeline: `pending`; of that what changed in the last hours (`active`); or also what failed (`all`,
    in pages). The count is exact."""
    now_ms = caller.store.now_ms()
    query = Unfinished(
        container_ids=tuple(container.id for container in containers(caller, tags)),
        folder=caller.narrowed("/"),
        since_ms=now_ms - STUCK_MS if which == "active" else 0,
        failed=which == "all",
    )
    found: list[Document] = []
    total = 0
    if query.container_ids:
        found = caller.store.documents.unfinished(query, limit=limit, offset=(current - 1) * limit)
        total = caller.store.documents.unfinished_count(query)
    views = []
    for document in found:
        stuck = document.status not in ("done", "failed") and document.updated_at_ms < now_ms - STUCK_MS
        views.append(view(document).model_copy(update={"stuck": stuck}))
    every = which == "all" and bool(query.container_ids)
    return v3.Processing(
        documents=views,
        total_count=total,
        passages_left=caller.store.embedding.left(query.container_ids) if every else None,
        disk_full=not caller.store.blobs.has_room(),
        pagination=pagination(current, limit, total) if which == "all" else None,
    )
