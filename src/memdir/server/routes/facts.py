"""`/v1/facts`. Thin over `services`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memdir.api import facts as wire
from memdir.core.limits import QUERY_MAX_CHARS
from memdir.memory.entities import HOPS_MAX
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.routes.service import Searching
from memdir.server.services.contents import facts

router = APIRouter()


@router.get("/v1/facts", response_model=wire.Facts)
async def find(
    caller: Calling, dispatcher: Dispatching, engine: Searching, query: Annotated[wire.FactsQuery, Query()]
) -> Response:
    return model_response(await dispatcher.run(facts.find, caller, engine, query))


@router.get("/v1/facts/graph", response_model=wire.Graph)
async def graph(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Annotated[str, Query(alias="containerTag")],
    subject: Annotated[str, Query(min_length=1, max_length=QUERY_MAX_CHARS)],
    hops: Annotated[int, Query(ge=1, le=HOPS_MAX)] = 2,
) -> Response:
    return model_response(await dispatcher.run(facts.graph, caller, container_tag, subject, hops))
