"""Supermemory's `/v4` calls. Thin over `services`."""

from __future__ import annotations

from fastapi import APIRouter, Response

from memdir.api import v4
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.routes.service import Searching
from memdir.server.services.contents import conversations, memories
from memdir.server.services.search import v4 as recall

router = APIRouter()


@router.post("/v4/search", response_model=v4.MemoryResults, response_model_exclude_none=True)
async def search(body: v4.SearchMemories, caller: Calling, dispatcher: Dispatching, engine: Searching) -> Response:
    return model_response(await dispatcher.run(recall.search_memories, caller, engine, body), sparse=True)


@router.post("/v4/profile", response_model=v4.ProfileAnswer, response_model_exclude_none=True)
async def profile(body: v4.ProfileRequest, caller: Calling, dispatcher: Dispatching, engine: Searching) -> Response:
    return model_response(await dispatcher.run(recall.profile, caller, engine, body), sparse=True)


@router.post("/v4/memories", response_model=v4.CreatedMemories, status_code=201)
async def create(body: v4.CreateMemories, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(memories.create, caller, body), status=201)


@router.patch("/v4/memories", response_model=v4.ChangedMemory)
async def change(body: v4.ChangeMemory, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(memories.change, caller, body))


@router.delete("/v4/memories", response_model=v4.ForgottenMemory)
async def forget(body: v4.ForgetMemory, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(memories.forget, caller, body))


@router.post("/v4/memories/list", response_model=v4.MemoryPage)
async def page(body: v4.ListMemories, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(memories.page, caller, body))


@router.post("/v4/conversations", response_model=v4.ConversationAdded)
async def converse(body: v4.Conversation, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(conversations.add, caller, body))
