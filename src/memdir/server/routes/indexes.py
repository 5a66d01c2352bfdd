"""`/v1/indexes`: derived data built anew. Thin over `server.services.admin.indexes`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from memdir.api import indexes as wire
from memdir.retrieval.derived_indexes import Rebuilds
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.services.admin import indexes

router = APIRouter()


async def rebuilds_of(request: Request) -> Rebuilds:
    """Of this server."""
    found: Rebuilds = request.app.state.engine.rebuilds
    return found


Rebuilding = Annotated[Rebuilds, Depends(rebuilds_of)]


@router.post("/v1/indexes:rebuild", response_model=wire.IndexesView, status_code=202)
async def rebuild(body: wire.RebuildRequest, caller: Calling, dispatcher: Dispatching, rebuilds: Rebuilding) -> Response:
    return model_response(await dispatcher.run(indexes.rebuild, caller, rebuilds, body), status=202)


@router.get("/v1/indexes", response_model=wire.IndexesView)
async def view(caller: Calling, dispatcher: Dispatching, rebuilds: Rebuilding) -> Response:
    return model_response(await dispatcher.run(indexes.view, caller, rebuilds))
