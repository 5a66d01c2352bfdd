"""`/v1/agents`: memories of coding agents. Thin over `server.agents`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request, Response

from memdir.api import agents as wire
from memdir.core.limits import MEMORY_PROJECT_MAX_CHARS, MEMORY_TAG_MAX_CHARS
from memdir.server.agents import context as agent_context
from memdir.server.agents import projects as agent_projects
from memdir.server.agents import reading as agent_reading
from memdir.server.agents import review as agent_review
from memdir.server.agents import writing as agents
from memdir.server.agents.search import search as search_memories
from memdir.server.agents.state import AgentMemoryState
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.routes.service import Searching

router = APIRouter()

Tag = Annotated[str, Query(alias="containerTag")]


async def agent_state_of(request: Request) -> AgentMemoryState:
    """What the server keeps of agents' memories."""
    state: AgentMemoryState = request.app.state.engine.agents
    return state


AgentState = Annotated[AgentMemoryState, Depends(agent_state_of)]


@router.post("/v1/agents/memories", response_model=wire.StoreResult, status_code=201)
async def store(
    body: wire.StoreRequest, caller: Calling, dispatcher: Dispatching, state: AgentState, engine: Searching
) -> Response:
    return model_response(await dispatcher.run(agents.store, caller, state, engine, body), status=201)


@router.post("/v1/agents/project", response_model=wire.ProjectAnswer)
async def project(body: wire.ProjectRequest, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(agent_projects.resolved, caller, body))


@router.get("/v1/agents/review", response_model=wire.ReviewPage)
async def review(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT,
    project: Annotated[str | None, Query(max_length=MEMORY_PROJECT_MAX_CHARS)] = None,
    limit: Annotated[int, Query(ge=1, le=wire.AGENT_LIMIT_MAX)] = 20,
) -> Response:
    return model_response(await dispatcher.run(agent_review.questions, caller, container_tag, project=project, limit=limit))


@router.post("/v1/agents/memories/{memory_id}/confirm", response_model=wire.AgentMemory)
async def confirm(
    memory_id: str, body: wire.ConfirmRequest, caller: Calling, dispatcher: Dispatching, state: AgentState
) -> Response:
    return model_response(await dispatcher.run(agent_review.confirm, caller, state, memory_id, body))


@router.get("/v1/agents/memories/{memory_id}/history", response_model=wire.MemoryHistory)
async def history(
    memory_id: str, caller: Calling, dispatcher: Dispatching, container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT
) -> Response:
    return model_response(await dispatcher.run(agent_review.history, caller, container_tag, memory_id))


@router.post("/v1/agents/memories:import", response_model=wire.ImportOutcome)
async def bring_in(body: wire.ImportRequest, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(agents.bring_in, caller, body))


@router.get("/v1/agents/memories", response_model=wire.MemoriesPage)
async def page(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT,
    project: Annotated[str | None, Query(max_length=MEMORY_PROJECT_MAX_CHARS)] = None,
    tag: Annotated[str | None, Query(min_length=1, max_length=MEMORY_TAG_MAX_CHARS)] = None,
    after: Annotated[str | None, Query(max_length=64)] = None,
    limit: Annotated[int, Query(ge=1, le=wire.AGENT_LIMIT_MAX)] = 20,
    oldest_first: Annotated[bool, Query(alias="oldestFirst")] = False,
    personal: bool = False,
) -> Response:
    found = await dispatcher.run(
        agent_reading.page,
        caller,
        container_tag,
        project=project,
        label=tag,
        after=after,
        limit=limit,
        oldest_first=oldest_first,
        personal=personal,
    )
    return model_response(found)


@router.get("/v1/agents/memories/{memory_id}", response_model=wire.AgentMemory)
async def get(
    memory_id: str,
    caller: Calling,
    dispatcher: Dispatching,
    state: AgentState,
    container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT,
) -> Response:
    return model_response(await dispatcher.run(agent_reading.get, caller, state, container_tag, memory_id))


@router.patch("/v1/agents/memories/{memory_id}", response_model=wire.AgentMemory)
async def edit(memory_id: str, body: wire.EditRequest, caller: Calling, dispatcher: Dispatching, state: AgentState) -> Response:
    return model_response(await dispatcher.run(agents.edit, caller, state, memory_id, body))


@router.delete("/v1/agents/memories/{memory_id}", response_model=wire.DeleteResult)
async def delete(
    memory_id: str,
    caller: Calling,
    dispatcher: Dispatching,
    state: AgentState,
    container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT,
) -> Response:
    return model_response(await dispatcher.run(agents.delete, caller, state, container_tag, memory_id))


@router.post("/v1/agents/search", response_model=wire.AgentSearchResponse)
async def search(
    body: wire.AgentSearchRequest, caller: Calling, dispatcher: Dispatching, state: AgentState, engine: Searching
) -> Response:
    return model_response(await dispatcher.run(search_memories, caller, state, engine, body))


@router.post("/v1/agents/context", response_model=wire.ContextResponse)
async def context(
    body: wire.ContextRequest, caller: Calling, dispatcher: Dispatching, state: AgentState, engine: Searching
) -> Response:
    return model_response(await dispatcher.run(agent_context.context, caller, state, engine, body))


@router.get("/v1/agents/profile", response_model=wire.AgentProfile)
async def profile(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT,
    project: Annotated[str | None, Query(max_length=MEMORY_PROJECT_MAX_CHARS)] = None,
    limit: Annotated[int, Query(ge=1, le=wire.AGENT_LIMIT_MAX)] = 5,
) -> Response:
    return model_response(await dispatcher.run(agent_context.profile, caller, container_tag, project=project, limit=limit))


@router.get("/v1/agents/stats", response_model=wire.AgentStats)
async def stats(
    caller: Calling, dispatcher: Dispatching, state: AgentState, container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT
) -> Response:
    return model_response(await dispatcher.run(agent_reading.stats, caller, state, container_tag))


@router.get("/v1/agents/usage", response_model=wire.Usage)
async def usage(
    caller: Calling,
    dispatcher: Dispatching,
    state: AgentState,
    container_tag: Tag = wire.AGENT_CONTAINER_DEFAULT,
    days: Annotated[int, Query(ge=1, le=366)] = 7,
) -> Response:
    return model_response(await dispatcher.run(agent_reading.usage, caller, state, container_tag, days))
