"""Supermemory's `/v3` calls. Thin over `services`."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Body, Header, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.datastructures import UploadFile

from memdir.api import v1, v3
from memdir.server.dispatcher import Dispatcher
from memdir.server.http.etags import is_known
from memdir.server.routes.files import BYTES, ETAG, NOT_MODIFIED, Calling, Dispatching, model_response
from memdir.server.routes.service import Searching, Walking
from memdir.server.services.admin import containers, sessions
from memdir.server.services.contents import batches as many
from memdir.server.services.contents import documents
from memdir.server.services.contents.files import check_size
from memdir.server.services.search import v3 as results
from memdir.store.contents.blobs import PIECE_BYTES, BlobStore, StagedBlob, Upload
from memdir.store.errors import InvalidError

router = APIRouter()
IfMatch = Annotated[str | None, Header()]
IfNoneMatch = Annotated[str | None, Header()]
Within = Annotated[str | None, Query(alias="containerTag")]
AMBIGUOUS: dict[int | str, dict[str, Any]] = {
    409: {"description": "Several containers have a document with this custom id.", "model": v1.Problem}
}
TAGGED: dict[int | str, dict[str, Any]] = {200: {"headers": ETAG}, 304: NOT_MODIFIED}
FORM_FIELD_MAX_BYTES = 256 * 1024
_FORM: dict[str, Any] = {
    "type": "object",
    "required": ["file"],
    "properties": {
        "file": BYTES,
        "containerTag": {"type": "string"},
        "containerTags": {"type": "string", "description": "One name, or a JSON list of names."},
        "filepath": {"type": "string"},
        "customId": {"type": "string"},
        "metadata": {"type": "string", "description": "A JSON object."},
    },
}


@router.get("/v3/session", response_model=v3.Session)
async def session(caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(sessions.session, caller))


@router.post("/v3/documents", response_model=v3.Added)
async def add(body: v3.AddDocument, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(documents.add, caller, body))


@router.post("/v3/documents/batch", response_model=v3.AddedBatch)
async def add_many(body: v3.AddDocuments, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(many.add_many, caller, body))


@router.post(
    "/v3/documents/file",
    response_model=v3.Added,
    openapi_extra={"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": _FORM}}}},
)
async def add_file(request: Request, caller: Calling, dispatcher: Dispatching) -> Response:
    """Multipart: `file`, `containerTag`, `filepath`, `metadata` (JSON text), `customId`."""
    async with request.form(max_files=1, max_fields=20, max_part_size=FORM_FIELD_MAX_BYTES) as form:
        file = form.get("file")
        if not isinstance(file, UploadFile):
            raise InvalidError("the form has no file", hint="send multipart/form-data with a part named file")
        fields = {name: value for name, value in form.items() if isinstance(value, str)}
        body = _file_request(fields)
        upload, blob = await take(dispatcher, caller.store.blobs, file)
        with upload:
            return model_response(await dispatcher.run(documents.add_blob, caller, body, blob))


async def take(dispatcher: Dispatcher, blobs: BlobStore, file: UploadFile) -> tuple[Upload, StagedBlob]:
    upload = blobs.upload()
    try:
        while piece := await file.read(PIECE_BYTES):
            check_size(upload.size_bytes + len(piece))
            await dispatcher.run(upload.write, piece)
        return upload, await dispatcher.run(upload.finish)
    except BaseException:
        upload.__exit__(None, None, None)
        raise


def _file_request(fields: dict[str, str]) -> v3.AddDocument:
    tags = fields.get("containerTags")
    try:
        return v3.AddDocument.model_validate(
            {
                "content": "",
                "containerTag": fields.get("containerTag") or None,
                "containerTags": None if not tags else (json.loads(tags) if tags.startswith("[") else [tags]),
                "filepath": fields.get("filepath") or None,
                "customId": fields.get("customId") or None,
                "metadata": json.loads(fields["metadata"]) if fields.get("metadata") else None,
                "taskType": fields.get("taskType") or None,
            }
        )
    except (ValidationError, ValueError, RecursionError) as error:
        raise InvalidError(f"a field of the form is not what it must be: {str(error)[:300]}") from None


@router.post("/v3/documents/list", response_model=v3.DocumentPage)
async def page(body: v3.ListDocuments, caller: Calling, dispatcher: Dispatching, walker: Walking) -> Response:
    return model_response(await dispatcher.run(documents.page, caller, body, walker))


@router.get("/v3/documents/processing", response_model=v3.Processing)
async def processing(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Annotated[str | None, Query(alias="containerTag")] = None,
    container_tags: Annotated[str | None, Query(alias="containerTags")] = None,
    view: Literal["active", "pending", "all"] = "pending",
    limit: Annotated[int, Query(ge=1, le=documents.PROCESSING_MAX)] = documents.PROCESSING_MAX,
    page: Annotated[int, Query(ge=1, le=v3.PAGE_MAX)] = 1,
) -> Response:
    """`containerTags` are several, apart by commas."""
    tags = [tag for tag in (container_tags or "").split(",") if tag] or ([container_tag] if container_tag else None)
    call = documents.processing
    return model_response(
        await dispatcher.run(call, caller, tags, which=view, limit=limit, current=page if view == "all" else 1)
    )


@router.delete("/v3/documents/bulk", response_model=v3.Deleted)
async def delete_many(body: v3.DeleteDocuments, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(documents.delete_many, caller, body))


@router.get("/v3/documents/{name}", response_model=v3.DocumentView, responses=TAGGED | AMBIGUOUS)
async def get(
    name: str, caller: Calling, dispatcher: Dispatching, within: Within = None, if_none_match: IfNoneMatch = None
) -> Response:
    """By id or custom id; `containerTag` says where, when several containers use the custom id."""
    found, tag = await dispatcher.run(documents.get_tagged, caller, name, tag=within)
    if is_known(if_none_match, tag):
        return Response(status_code=304, headers={"etag": tag})
    answer = model_response(found)
    answer.headers["etag"] = tag
    return answer


@router.patch("/v3/documents/{name}", response_model=v3.Added)
async def change(
    name: str,
    body: v3.ChangeDocument,
    caller: Calling,
    dispatcher: Dispatching,
    within: Within = None,
    if_match: IfMatch = None,
) -> Response:
    return model_response(await dispatcher.run(documents.change, caller, name, body, tag=within, if_match=if_match))


@router.delete("/v3/documents/{name}", status_code=204, response_class=Response)
async def delete(
    name: str, caller: Calling, dispatcher: Dispatching, within: Within = None, if_match: IfMatch = None
) -> Response:
    await dispatcher.run(documents.delete, caller, name, tag=within, if_match=if_match)
    return Response(status_code=204)


@router.get("/v3/container-tags/list", response_model=list[v3.ContainerTag])
async def list_containers(caller: Calling, dispatcher: Dispatching) -> list[v3.ContainerTag]:
    """The containers that the key may read. One that is called `list` is found by its other calls only."""
    return await dispatcher.run(containers.listing, caller)


@router.get("/v3/container-tags/{tag}", response_model=v3.ContainerSettings, responses=TAGGED)
async def settings(tag: str, caller: Calling, dispatcher: Dispatching, if_none_match: IfNoneMatch = None) -> Response:
    found = await dispatcher.run(containers.settings, caller, tag)
    version = containers.settings_tag(found)
    if is_known(if_none_match, version):
        return Response(status_code=304, headers={"etag": version})
    return JSONResponse(found, headers={"etag": version})


@router.patch("/v3/container-tags/{tag}", response_model=v3.ContainerSettings, responses={200: {"headers": ETAG}})
async def change_settings(
    tag: str, body: Annotated[dict[str, Any], Body()], caller: Calling, dispatcher: Dispatching, if_match: IfMatch = None
) -> Response:
    changed = await dispatcher.run(containers.change_settings, caller, tag, body, if_match=if_match)
    return JSONResponse(changed, headers={"etag": containers.settings_tag(changed)})


@router.delete("/v3/container-tags/{tag}", status_code=204, response_class=Response)
async def delete_container(tag: str, caller: Calling, dispatcher: Dispatching) -> Response:
    await dispatcher.run(containers.delete, caller, tag)
    return Response(status_code=204)


@router.post("/v3/search", response_model=v3.DocumentResults)
async def search(body: v3.SearchDocuments, caller: Calling, dispatcher: Dispatching, engine: Searching) -> Response:
    return model_response(await dispatcher.run(results.search_documents, caller, engine, body))
