"""`/v1/jobs`: the queue behind the documents. Thin over `server.services.admin.jobs`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memdir.api import v1
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.services.admin import jobs

LIST_MAX = 1000

router = APIRouter()


@router.get("/v1/jobs", response_model=v1.JobsPage)
async def listing(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Annotated[str | None, Query(alias="containerTag")] = None,
    failed: bool = False,
    limit: Annotated[int, Query(ge=1, le=LIST_MAX)] = 100,
) -> Response:
    return model_response(await dispatcher.run(jobs.page, caller, container_tag, failed=failed, limit=limit))


@router.post("/v1/jobs:retry", response_model=v1.RetryResult)
async def retry(body: v1.RetryRequest, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(jobs.retry, caller, body))
