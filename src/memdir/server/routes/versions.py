"""`/v1/versions`: former contents of documents. Thin over `server.services.contents.versions`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Header, Path, Query, Response
from fastapi.responses import StreamingResponse

from memdir.api import v1
from memdir.core.limits import CHANGES_PAGE_MAX, INT64_MAX
from memdir.server.routes.files import (
    CONTENT,
    PUT_ANSWERS,
    Calling,
    Dispatching,
    Tag,
    content_headers,
    model_response,
    streamed,
)
from memdir.server.services.contents import versions
from memdir.server.services.contents.files import entry_of

router = APIRouter()
Number = Annotated[int, Path(ge=1, le=INT64_MAX)]
Before = Annotated[int | None, Query(ge=1, le=INT64_MAX)]
Limit = Annotated[int, Query(ge=1, le=CHANGES_PAGE_MAX)]


@router.get("/v1/versions", response_model=v1.VersionsPage)
async def history(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    path: str | None = None,
    name: Annotated[str | None, Query(alias="id")] = None,
    before: Before = None,
    limit: Limit = CHANGES_PAGE_MAX,
) -> Response:
    page = await dispatcher.run(versions.history, caller, container_tag, path=path, name=name, before=before, limit=limit)
    return model_response(page)


@router.get("/v1/versions:deleted", response_model=v1.VersionsPage)
async def deleted(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    prefix: str = "/",
    before: Before = None,
    limit: Limit = CHANGES_PAGE_MAX,
) -> Response:
    return model_response(
        await dispatcher.run(versions.deleted, caller, container_tag, prefix=prefix, before=before, limit=limit)
    )


@router.get("/v1/versions:at", response_model=v1.PastPage)
async def at(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    moment: Annotated[datetime, Query(alias="at")],
    prefix: str = "/",
    after: str | None = None,
    limit: Limit = CHANGES_PAGE_MAX,
) -> Response:
    """A time without a zone is UTC."""
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    page = await dispatcher.run(versions.past, caller, container_tag, prefix=prefix, at=moment, after=after, limit=limit)
    return model_response(page)


@router.get("/v1/versions:changes", response_model=v1.HistoryPage)
async def happened(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    prefix: str = "/",
    before: Before = None,
    limit: Limit = CHANGES_PAGE_MAX,
) -> Response:
    return model_response(
        await dispatcher.run(versions.happened, caller, container_tag, prefix=prefix, before=before, limit=limit)
    )


@router.post("/v1/versions:restore", response_model=v1.FileEntry, responses=PUT_ANSWERS)
async def restore(
    body: v1.RestoreRequest, caller: Calling, dispatcher: Dispatching, idempotency_key: Annotated[str | None, Header()] = None
) -> Response:
    """201 when a deleted document came back."""
    if body.idempotency_key is None and idempotency_key is not None:
        body = body.model_copy(update={"idempotency_key": idempotency_key})
    outcome = await dispatcher.run(versions.restore, caller, body)
    assert outcome.document is not None
    answer = model_response(entry_of(outcome.document), status=201 if outcome.created else 200)
    answer.headers["etag"] = f'"{outcome.document.revision}"'
    return answer


@router.delete("/v1/versions", response_model=v1.PurgeResult)
async def purge(caller: Calling, dispatcher: Dispatching, container_tag: Tag, path: str) -> Response:
    return model_response(await dispatcher.run(versions.purge, caller, container_tag, path))


@router.get("/v1/versions/{version}", response_class=Response, responses={200: CONTENT})
async def content(version: Number, caller: Calling, dispatcher: Dispatching, container_tag: Tag) -> Response:
    found, pieces = await dispatcher.run(versions.content, caller, container_tag, version)
    return StreamingResponse(
        streamed(dispatcher, pieces), headers=content_headers(found), media_type="application/octet-stream"
    )
