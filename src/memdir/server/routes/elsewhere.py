"""Calls of the hosted service that this server does not offer: each says so, and why. Nothing is pretended."""

from __future__ import annotations

from typing import Final, NoReturn

from fastapi import APIRouter

from memdir.server.errors import NotImplementedHereError
from memdir.server.routes.files import Calling

router = APIRouter(include_in_schema=False)
_CONNECTIONS: Final = "connections to other services do not exist here"
_ADD_INSTEAD: Final = "add documents over the API, or as files in a mount"


def _refuse(message: str, hint: str) -> NoReturn:
    raise NotImplementedHereError(message, hint=hint)


@router.get("/v3/settings")
@router.patch("/v3/settings")
async def settings(caller: Calling) -> None:
    caller.allow("read")
    _refuse(
        "there are no settings of an organisation here, only of containers",
        "use GET and PATCH /v3/container-tags/{containerTag}",
    )


@router.post("/v3/connections/list")
async def connections(caller: Calling) -> list[dict[str, str]]:
    """There are none."""
    caller.allow("read")
    return []


@router.get("/v3/connections/{name}")
@router.post("/v3/connections/{name}")
@router.delete("/v3/connections/{name}")
@router.get("/v3/connections/{name}/resources")
@router.post("/v3/connections/{name}/configure")
@router.post("/v3/connections/{name}/connection")
@router.post("/v3/connections/{name}/documents")
@router.post("/v3/connections/{name}/import")
async def connection(caller: Calling, name: str) -> None:
    caller.allow("read")
    del name
    _refuse(_CONNECTIONS, _ADD_INSTEAD)


@router.post("/v3/container-tags/merge")
@router.get("/v3/container-tags/merge/{name}")
async def merge(caller: Calling) -> None:
    caller.allow("read")
    _refuse("containers cannot be merged here", "move documents by adding them to one and deleting them from the other")


@router.post("/v4/memories/forget-matching")
async def forget_matching(caller: Calling) -> None:
    caller.allow("read")
    _refuse(
        "what a prompt is about is not judged by a model here",
        "search with POST /v4/search and forget what it finds by id with DELETE /v4/memories",
    )


@router.get("/connectors")
@router.get("/ns/{namespace}/connectors")
@router.post("/ns/{namespace}/connectors")
@router.get("/ns/{namespace}/connectors/{name}")
@router.patch("/ns/{namespace}/connectors/{name}")
@router.delete("/ns/{namespace}/connectors/{name}")
@router.post("/ns/{namespace}/connectors/{name}/sync")
async def connectors(caller: Calling) -> None:
    caller.allow("read")
    _refuse("connectors to other services do not exist here", _ADD_INSTEAD)


@router.patch("/organization")
async def organization(caller: Calling) -> None:
    caller.allow("write")
    _refuse("a background for all namespaces is not kept here", "set the supportingContext of a namespace")


@router.post("/feedback")
async def feedback(caller: Calling) -> None:
    caller.allow("read")
    _refuse("feedback is not collected here", "tell whoever runs this server")
