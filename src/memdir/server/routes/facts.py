"""`/v1/facts`. Thin over `services`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memdir.api import facts as wire
from memdir.core.limits import QUERY_MAX_CHARS
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.services.contents import facts

router = APIRouter()


@router.get("/v1/facts/why", response_model=wire.FactsWhy)
async def why(
    caller: Calling,
    dispatcher: Dispatching,
    q: Annotated[str, Query(min_length=1, max_length=QUERY_MAX_CHARS)],
    container_tag: Annotated[str, Query(alias="containerTag")],
) -> Response:
    return model_response(await dispatcher.run(facts.why, caller, container_tag, q))
