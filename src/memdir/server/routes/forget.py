"""`/v1/forget`. Thin over `services`."""

from __future__ import annotations

from fastapi import APIRouter, Response

from memdir.api import forget as wire
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.routes.indexes import Rebuilding
from memdir.server.services.contents import forgetting

router = APIRouter()


@router.post("/v1/forget", response_model=wire.ForgetAnswer)
async def forget(body: wire.ForgetRequest, caller: Calling, dispatcher: Dispatching, rebuilds: Rebuilding) -> Response:
    return model_response(await dispatcher.run(forgetting.forget, caller, rebuilds, body))


@router.post("/v1/forget/verify", response_model=wire.VerifyAnswer)
async def verify(body: wire.VerifyRequest, caller: Calling, dispatcher: Dispatching, rebuilds: Rebuilding) -> Response:
    return model_response(await dispatcher.run(forgetting.verify, caller, rebuilds, body))
