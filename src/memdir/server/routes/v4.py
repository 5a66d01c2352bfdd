"""Supermemory's `/v4` calls. Thin over `services.results`."""

from __future__ import annotations

from fastapi import APIRouter, Response

from memdir.api import v4
from memdir.server.routes.files import Calling, Hubbing, model_response
from memdir.server.routes.service import Searching
from memdir.server.services import results

router = APIRouter()


@router.post("/v4/search", response_model=v4.MemoryResults)
async def search(body: v4.SearchMemories, caller: Calling, hub: Hubbing, engine: Searching) -> Response:
    return model_response(await hub.run(results.search_memories, caller, engine, body))


@router.post("/v4/profile", response_model=v4.ProfileAnswer)
async def profile(body: v4.ProfileRequest, caller: Calling, hub: Hubbing, engine: Searching) -> Response:
    return model_response(await hub.run(results.profile, caller, engine, body))
