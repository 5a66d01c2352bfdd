"""`/v1/profile`. Thin over `services`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Response

from memdir.api import profile as wire
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.services.contents import profile

router = APIRouter()


@router.get("/v1/profile", response_model=wire.ProfileAnswer)
async def read(
    caller: Calling, dispatcher: Dispatching, container_tag: Annotated[str, Query(alias="containerTag")]
) -> Response:
    return model_response(await dispatcher.run(profile.read, caller, container_tag))
