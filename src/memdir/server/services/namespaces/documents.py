"""Documents as `/ns` knows them: the services of `/v3` under other names. A document is known by the caller's own id first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pydantic import ValidationError

from memdir.api import ns, v3
from memdir.core.clock import iso_ms
from memdir.core.errors import MemdirError, NotFoundError
from memdir.server.errors import text_of
from memdir.server.http.access import Caller
from memdir.server.http.etags import tag_of
from memdir.server.services.contents import documents
from memdir.server.services.contents.views import pagination
from memdir.server.services.namespaces.filters import filters_of
from memdir.server.services.search.filters import condition_of
from memdir.store.contents.blobs import StagedBlob
from memdir.store.errors import ConflictError, InvalidError, PreconditionError
from memdir.store.jobs.queue import BULK, INTERACTIVE
from memdir.store.passages.scanning import Passage, PassageListing
from memdir.store.tree.operations import Put
from memdir.store.types import Container, Document

TRIES_MAX = 20
"""Of appending to a document that others change at the same moment."""
CHUNKS_MAX = 1000
"""Passages shown inside one document."""
Sort = Literal["createdAt", "updatedAt", "position"]
Order = Literal["asc", "desc"]
_SEPARATOR = "\n\n"


def found(caller: Caller, namespace: str) -> Container | None:
    """The namespace's container, narrowed to what the key opens; None when there is none."""
    return caller.found(namespace, "read", at=caller.narrowed("/"))


def named(caller: Caller, namespace: str, name: str) -> Document:
    """A document of the namespace by the caller's own id, else by ours. NotFoundError."""
    container = found(caller, namespace)
    document = None
    if container is not None:
        store = caller.store.documents
        document = store.by_custom_id(container.id, name) or store.get(name)
    if container is None or document is None or document.container_id != container.id or not caller.sees(document):
        raise NotFoundError(f"there is no document {name[:100]!r} in namespace {namespace!r}")
    return document


def public_id(document: Document | v3.DocumentView) -> str:
    """The caller's own id when the document has one."""
    return document.custom_id or document.id


def metadata_of(
    request: ns.DocumentInput | ns.ChangeDocument, before: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Metadata with the group and the date in it; None when nothing was sent."""
    if request.metadata is None and request.group is None and request.date is None:
        return None
    made = dict(before or {}) if request.metadata is None else dict(request.metadata)
    made |= request.group or {}
    return made if request.date is None else {"date": request.date} | made


def add(
    caller: Caller, namespace: str, request: ns.AddDocument, *, priority: int = INTERACTIVE, number: int = 0
) -> ns.DocumentRef:
    """A new document, or (its id is known) more text at the end of one."""
    for _ in range(TRIES_MAX):
        container = found(caller, namespace)
        standing = None
        if request.id is not None and container is not None:
            standing = caller.store.documents.by_custom_id(container.id, request.id)
        if standing is not None:
            try:
                return _append(caller, standing, request)
            except PreconditionError:  # somebody else appended: read again
                continue
        try:
            body = v3.AddDocument(
                content=request.content,
                container_tag=namespace,
                custom_id=request.id,
                metadata=metadata_of(request),
                task_type=request.task_type,
            )
            added = documents.add(caller, body, number=number, priority=priority, only_new=request.id is not None)
        except PreconditionError:  # somebody else made it: append to it
            continue
        return ns.DocumentRef(id=request.id or added.id, status=added.status)
    raise ConflictError("others write to this document at the same time", hint="send it again")


def _append(caller: Caller, standing: Document, request: ns.AddDocument) -> ns.DocumentRef:
    before = documents.text_content(caller, standing)
    if before is None:
        raise ConflictError("this document is not text: nothing can be appended to it", hint="replace it with a file")
    metadata = metadata_of(request)
    change = v3.ChangeDocument(
        content=before + _SEPARATOR + request.content if before else request.content,
        metadata=None if metadata is None else dict(standing.metadata) | metadata,
        task_type=request.task_type,
    )
    changed = documents.change(caller, standing.id, change, if_match=tag_of(standing))
    return ns.DocumentRef(id=public_id(standing), status=changed.status)


def add_many(caller: Caller, namespace: str, request: ns.AddDocuments) -> ns.BatchAdded:
    """Several, each for itself."""
    results = []
    failed = 0
    for number, item in enumerate(request.documents):
        fields = item.model_dump(exclude_none=True) | {"task_type": request.task_type}
        try:
            added = add(caller, namespace, ns.AddDocument(**fields), priority=BULK, number=number)
            results.append(ns.BatchItem(id=added.id, status=added.status))
        except MemdirError as error:
            failed += 1
            results.append(ns.BatchItem(id=item.id or "", status="error", error=text_of(error)))
    return ns.BatchAdded(results=results, count=len(results) - failed, failed=failed)


def change(caller: Caller, namespace: str, name: str, request: ns.ChangeDocument) -> ns.DocumentRef:
    """Change what was sent."""
    document = named(caller, namespace, name)
    body = v3.ChangeDocument(
        content=request.content, metadata=metadata_of(request, document.metadata), task_type=request.task_type
    )
    changed = documents.change(caller, document.id, body)
    return ns.DocumentRef(id=public_id(document), status=changed.status)


def delete(caller: Caller, namespace: str, names: Sequence[str]) -> ns.DocumentsDeleted:
    """Delete several for good, each for itself."""
    caller.allow("write", namespace, at=caller.narrowed("/"), frees=True)
    count = 0
    errors = []
    for name in names:
        try:
            documents.delete(caller, named(caller, namespace, name).id)
            count += 1
        except MemdirError as error:
            errors.append(ns.Failed(id=name, error=text_of(error)))
    return ns.DocumentsDeleted(count=count, errors=errors)


def file_fields(fields: Mapping[str, str]) -> ns.ChangeDocument:
    """The fields of a form beside its file."""
    try:
        return ns.ChangeDocument.model_validate(
            {
                "metadata": json.loads(fields["metadata"]) if fields.get("metadata") else None,
                "group": json.loads(fields["group"]) if fields.get("group") else None,
                "date": fields.get("date") or None,
                "taskType": fields.get("taskType") or None,
                "supportingContext": fields.get("supportingContext") or None,
            }
        )
    except (ValidationError, ValueError, RecursionError) as error:
        raise InvalidError(f"a field of the form is not what it must be: {str(error)[:300]}") from None


def upload(caller: Caller, namespace: str, fields: ns.ChangeDocument, blob: StagedBlob) -> ns.DocumentRef:
    """A new document of a file."""
    body = v3.AddDocument(content="", container_tag=namespace, metadata=metadata_of(fields), task_type=fields.task_type)
    added = documents.add_blob(caller, body, blob)
    return ns.DocumentRef(id=added.id, status=added.status)


def replace_file(
    caller: Caller, namespace: str, name: str, fields: ns.ChangeDocument, blob: StagedBlob, *, keep: bool
) -> ns.DocumentRef:
    """Another file for a document; with `keep` what was not sent beside it stays, else its metadata begins anew."""
    document = named(caller, namespace, name)
    container, document = caller.document(document.id, "write")
    metadata = metadata_of(fields, document.metadata if keep else None)
    put = Put(
        path=document.path,
        blob=blob,
        metadata=metadata if keep or metadata is not None else {},
        task_type=fields.task_type,
    )
    changed = documents.write(caller, container, document, put)
    return ns.DocumentRef(id=public_id(changed), status=changed.status)  # type: ignore[arg-type]


def shown(view: v3.DocumentView, *, memory_count: int | None = None, **more: Any) -> ns.Document:
    """A document in the words of `/ns`."""
    return ns.Document(
        id=public_id(view),
        title=view.title,
        type=view.type,
        summary=view.summary,
        content=view.content,
        metadata=view.metadata or {},
        url=view.url,
        system=ns.Processing(
            status=view.status,
            dreaming_status=view.dreaming_status,
            memory_count=memory_count,
            created_at=view.created_at,
            updated_at=view.updated_at,
        ),
        **more,
    )


def get(caller: Caller, namespace: str, name: str, include: Sequence[str]) -> ns.Document:
    """A document with its text, and what was asked for."""
    document = named(caller, namespace, name)
    view = documents.get(caller, document.id)
    more: dict[str, Any] = {}
    if "chunks" in include:
        listing = PassageListing(container_id=document.container_id, document_id=document.id, sort="position", descending=False)
        more["chunks"] = [_chunk(passage) for passage in caller.store.reading.page(listing, limit=CHUNKS_MAX)]
    if "memories" in include:
        more["memories"] = [
            ns.Memory(
                id=memory.id,
                memory=memory.memory,
                metadata=memory.metadata or {},
                is_static=memory.is_static,
                is_inference=memory.is_inference,
                is_latest=memory.is_latest,
                is_forgotten=memory.is_forgotten,
                version=memory.version,
                system=ns.Stamps(created_at=memory.created_at, updated_at=memory.updated_at),
            )
            for memory in view.memories or ()
        ]
    return shown(view, **more)


def _chunk(passage: Passage) -> ns.Chunk:
    return ns.Chunk(
        id=f"chunk_{passage.id}",
        position=passage.ordinal,
        content=passage.text,
        metadata={},
        system={"createdAt": iso_ms(passage.created_at_ms)},
        document_id=passage.custom_id or passage.document_id,
    )


def page(
    caller: Caller, namespace: str, request: ns.ListRequest, *, number: int, limit: int, sort: Sort, order: Order
) -> ns.Listed:
    """A page of documents."""
    if sort == "position":
        raise InvalidError("only chunks have a position")
    body = v3.ListDocuments(
        container_tag=namespace,
        page=number,
        limit=limit,
        sort=sort,
        order=order,
        include_content=request.include.content,
        filters=filters_of(request.filter),
    )
    answer = documents.page(caller, body)
    counts: dict[str, int] = {}
    if request.include.memory_count and answer.memories:
        counts = caller.store.memories.counts_of([view.id for view in answer.memories])
    listed = [
        shown(view, memory_count=counts.get(view.id, 0) if request.include.memory_count else None) for view in answer.memories
    ]
    return ns.Listed(documents=listed, pagination=paged(answer.pagination))


def chunks(
    caller: Caller, namespace: str, request: ns.ListRequest, *, number: int, limit: int, sort: Sort, order: Order
) -> ns.Listed:
    """A page of passages."""
    container = found(caller, namespace)
    if container is None:
        return ns.Listed(pagination=paged(pagination(number, limit, 0)))
    columns: dict[Sort, Literal["created_at_ms", "updated_at_ms", "position"]] = {
        "createdAt": "created_at_ms",
        "updatedAt": "updated_at_ms",
        "position": "position",
    }
    listing = PassageListing(
        container_id=container.id,
        folder=caller.narrowed("/"),
        condition=condition_of(filters_of(request.filter)),
        sort=columns[sort],
        descending=order == "desc",
    )
    passages = caller.store.reading.page(listing, limit=limit, offset=(number - 1) * limit)
    total = caller.store.reading.count(listing)
    return ns.Listed(chunks=[_chunk(passage) for passage in passages], pagination=paged(pagination(number, limit, total)))


def paged(given: v3.Pagination) -> ns.Pagination:
    """Where a page stands."""
    return ns.Pagination(
        current_page=given.current_page, limit=given.limit, total_items=given.total_items, total_pages=given.total_pages
    )


def memory_counts(caller: Caller, namespace: str, names: Sequence[str]) -> ns.MemoryCounts:
    """How many facts each document says; those that do not exist are left out."""
    caller.allow("read", namespace, at=caller.narrowed("/"))
    ids: dict[str, str] = {}
    for name in dict.fromkeys(names):
        try:
            ids[name] = named(caller, namespace, name).id
        except NotFoundError:
            continue
    counts = caller.store.memories.counts_of(list(ids.values())) if ids else {}
    return ns.MemoryCounts(counts=[ns.MemoryCount(id=name, memory_count=counts.get(own, 0)) for name, own in ids.items()])
