"""The namespace API of Supermemory's 5.x clients. Thin over `services.ns…`, which are thin over those of `/v3` and `/v4`."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request, Response
from starlette.datastructures import UploadFile

from memdir.api import ns
from memdir.api.v3 import LIST_LIMIT_MAX, PAGE_MAX
from memdir.server.routes.files import BYTES, Calling, Dispatching, model_response
from memdir.server.routes.service import Searching
from memdir.server.routes.v3 import FORM_FIELD_MAX_BYTES, take
from memdir.server.services.namespaces import documents as namespace_documents
from memdir.server.services.namespaces import memories as namespace_memories
from memdir.server.services.namespaces import namespaces
from memdir.store.errors import InvalidError

router = APIRouter()
Page = Annotated[int, Query(ge=1, le=PAGE_MAX)]
Limit = Annotated[int, Query(ge=1, le=LIST_LIMIT_MAX)]
Include = Annotated[list[str] | None, Query()]
_LIMIT_DEFAULT: Final = 50
_TEXTS: Final = ("metadata", "group", "date", "taskType", "supportingContext", "dreaming", "fileType", "mimeType")
_PROPERTIES: Final[dict[str, Any]] = {"file": BYTES, **{name: {"type": "string"} for name in _TEXTS}}


def _form(*required: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": _PROPERTIES, "required": list(required)}
    return {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}


def _included(include: list[str] | None, allowed: tuple[str, ...]) -> list[str]:
    """Names apart by commas, or several times."""
    names = [name for part in include or () for name in part.split(",") if name]
    wrong = next((name for name in names if name not in allowed), None)
    if wrong is not None:
        raise InvalidError(f"{wrong[:40]!r} cannot be included", hint=" or ".join(allowed))
    return names


# namespaces


@router.get("/ns", response_model=ns.NamespaceList)
async def list_namespaces(
    caller: Calling, dispatcher: Dispatching, page: Page = 1, limit: Limit = _LIMIT_DEFAULT, q: str | None = None
) -> Response:
    return model_response(await dispatcher.run(namespaces.page, caller, number=page, limit=limit, text=q))


@router.get("/ns/{namespace}", response_model=ns.NamespaceDetails)
async def get_namespace(namespace: str, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespaces.get, caller, namespace))


@router.patch("/ns/{namespace}", response_model=ns.NamespaceDetails)
async def change_namespace(namespace: str, body: ns.ChangeNamespace, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespaces.change, caller, namespace, body))


@router.delete("/ns/{namespace}", response_model=ns.NamespaceDeleted)
async def delete_namespace(
    namespace: str, caller: Calling, dispatcher: Dispatching, move_to: Annotated[str | None, Query(alias="moveTo")] = None
) -> Response:
    return model_response(await dispatcher.run(namespaces.delete, caller, namespace, move_to))


# documents


@router.post("/ns/{namespace}/document", response_model=ns.DocumentRef)
async def add(namespace: str, body: ns.AddDocument, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_documents.add, caller, namespace, body))


@router.delete("/ns/{namespace}/document", response_model=ns.DocumentsDeleted)
async def delete(namespace: str, body: ns.DeleteDocuments, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_documents.delete, caller, namespace, body.ids))


@router.post("/ns/{namespace}/document/batch", response_model=ns.BatchAdded)
async def add_many(namespace: str, body: ns.AddDocuments, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_documents.add_many, caller, namespace, body))


@router.post("/ns/{namespace}/document/file", response_model=ns.DocumentRef, openapi_extra=_form("file"))
async def upload(namespace: str, request: Request, caller: Calling, dispatcher: Dispatching) -> Response:
    async with request.form(max_files=1, max_fields=20, max_part_size=FORM_FIELD_MAX_BYTES) as form:
        fields = namespace_documents.file_fields({name: value for name, value in form.items() if isinstance(value, str)})
        sent, blob = await take(dispatcher, caller.store.blobs, _file(form.get("file")))
        with sent:
            return model_response(await dispatcher.run(namespace_documents.upload, caller, namespace, fields, blob))


def _file(part: object) -> UploadFile:
    if not isinstance(part, UploadFile):
        raise InvalidError("the form has no file", hint="send multipart/form-data with a part named file")
    return part


@router.post("/ns/{namespace}/document/file/{name}", response_model=ns.DocumentRef, openapi_extra=_form("file"))
async def replace_with_file(namespace: str, name: str, request: Request, caller: Calling, dispatcher: Dispatching) -> Response:
    async with request.form(max_files=1, max_fields=20, max_part_size=FORM_FIELD_MAX_BYTES) as form:
        fields = namespace_documents.file_fields({key: value for key, value in form.items() if isinstance(value, str)})
        sent, blob = await take(dispatcher, caller.store.blobs, _file(form.get("file")))
        with sent:
            call = namespace_documents.replace_file
            return model_response(await dispatcher.run(call, caller, namespace, name, fields, blob, keep=False))


@router.patch("/ns/{namespace}/document/file/{name}", response_model=ns.DocumentRef, openapi_extra=_form())
async def update_file(namespace: str, name: str, request: Request, caller: Calling, dispatcher: Dispatching) -> Response:
    """Without a file only what stands beside it is changed."""
    async with request.form(max_files=1, max_fields=20, max_part_size=FORM_FIELD_MAX_BYTES) as form:
        fields = namespace_documents.file_fields({key: value for key, value in form.items() if isinstance(value, str)})
        file = form.get("file")
        if not isinstance(file, UploadFile):
            return model_response(await dispatcher.run(namespace_documents.change, caller, namespace, name, fields))
        sent, blob = await take(dispatcher, caller.store.blobs, file)
        with sent:
            call = namespace_documents.replace_file
            return model_response(await dispatcher.run(call, caller, namespace, name, fields, blob, keep=True))


@router.get("/ns/{namespace}/document/{name}", response_model=ns.Document)
async def get(namespace: str, name: str, caller: Calling, dispatcher: Dispatching, include: Include = None) -> Response:
    wanted = _included(include, ("chunks", "memories"))
    return model_response(await dispatcher.run(namespace_documents.get, caller, namespace, name, wanted), sparse=True)


@router.patch("/ns/{namespace}/document/{name}", response_model=ns.DocumentRef)
async def change(namespace: str, name: str, body: ns.ChangeDocument, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_documents.change, caller, namespace, name, body))


@router.delete("/ns/{namespace}/document/{name}", response_model=ns.DocumentsDeleted)
async def delete_one(namespace: str, name: str, caller: Calling, dispatcher: Dispatching) -> Response:
    """404 when there is none, unlike the call for several."""
    await dispatcher.run(namespace_documents.named, caller, namespace, name)
    return model_response(await dispatcher.run(namespace_documents.delete, caller, namespace, [name]))


# lists


async def _place(
    page: Page = 1,
    limit: Limit = _LIMIT_DEFAULT,
    sort: namespace_documents.Sort = "createdAt",
    order: namespace_documents.Order = "desc",
) -> dict[str, Any]:
    """Which page of a list is asked for. A coroutine, because FastAPI sends plain functions to a thread."""
    return {"number": page, "limit": limit, "sort": sort, "order": order}


Placing = Annotated[dict[str, Any], Depends(_place)]


@router.post("/ns/{namespace}/list/documents/memory-counts", response_model=ns.MemoryCounts)
async def memory_counts(namespace: str, body: ns.CountMemories, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_documents.memory_counts, caller, namespace, body.ids))


@router.post("/ns/{namespace}/list/documents", response_model=ns.Listed)
async def list_documents(
    namespace: str, caller: Calling, dispatcher: Dispatching, place: Placing, body: ns.ListRequest | None = None
) -> Response:
    return await _listed(dispatcher, namespace_documents.page, caller, namespace, body, place)


@router.post("/ns/{namespace}/list/chunks", response_model=ns.Listed)
async def list_chunks(
    namespace: str, caller: Calling, dispatcher: Dispatching, place: Placing, body: ns.ListRequest | None = None
) -> Response:
    return await _listed(dispatcher, namespace_documents.chunks, caller, namespace, body, place)


@router.post("/ns/{namespace}/list/memories", response_model=ns.Listed)
async def list_memories(
    namespace: str, caller: Calling, dispatcher: Dispatching, place: Placing, body: ns.ListRequest | None = None
) -> Response:
    return await _listed(dispatcher, namespace_memories.page, caller, namespace, body, place)


async def _listed(
    dispatcher: Any, call: Any, caller: Any, namespace: str, body: ns.ListRequest | None, place: dict[str, Any]
) -> Response:
    return model_response(await dispatcher.run(call, caller, namespace, body or ns.ListRequest(), **place))


# search, profile, memories


@router.post("/ns/{namespace}/search", response_model=ns.SearchResults)
async def search(namespace: str, body: ns.Search, caller: Calling, dispatcher: Dispatching, engine: Searching) -> Response:
    return model_response(await dispatcher.run(namespace_memories.search, caller, engine, namespace, body), sparse=True)


@router.post("/ns/{namespace}/profile", response_model=ns.Profile)
async def profile(
    namespace: str, caller: Calling, dispatcher: Dispatching, engine: Searching, body: ns.ProfileRequest | None = None
) -> Response:
    return model_response(
        await dispatcher.run(namespace_memories.profile, caller, engine, namespace, body or ns.ProfileRequest())
    )


@router.get("/ns/{namespace}/profile/buckets", response_model=ns.Buckets)
async def get_buckets(namespace: str, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_memories.buckets, caller, namespace))


@router.put("/ns/{namespace}/profile/buckets", response_model=ns.Buckets)
async def set_buckets(namespace: str, body: ns.Buckets, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_memories.change_buckets, caller, namespace, put=body.buckets))


@router.delete("/ns/{namespace}/profile/buckets", response_model=ns.Buckets)
async def delete_buckets(namespace: str, body: ns.DeleteBuckets, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_memories.change_buckets, caller, namespace, drop=body.buckets))


@router.delete("/ns/{namespace}/memories", response_model=ns.Forgotten)
async def forget(namespace: str, body: ns.ForgetMemories, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespace_memories.forget, caller, namespace, body.ids))


@router.delete("/ns/{namespace}/memories/semantic", response_model=ns.Forgotten)
async def forget_matching(
    namespace: str, body: ns.ForgetMatching, caller: Calling, dispatcher: Dispatching, engine: Searching
) -> Response:
    return model_response(await dispatcher.run(namespace_memories.forget_matching, caller, engine, namespace, body))


@router.get("/ns/{namespace}/memories/{name}", response_model=ns.MemoryDetails)
async def get_memory(
    namespace: str,
    name: str,
    caller: Calling,
    dispatcher: Dispatching,
    include: Include = None,
    related_limit: Annotated[int, Query(alias="relatedLimit", ge=1, le=ns.RELATED_MAX)] = ns.RELATED_MAX,
) -> Response:
    wanted = _included(include, ("related", "documents"))
    return model_response(
        await dispatcher.run(namespace_memories.get, caller, namespace, name, wanted, related_limit), sparse=True
    )


@router.get("/organization", response_model=ns.Organization)
async def organization(caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(namespaces.organization, caller))
