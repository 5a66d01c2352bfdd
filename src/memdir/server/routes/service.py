"""`/healthz`, `/v1/capabilities`, `/v1/search`."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

import memdir
from memdir.api import v1
from memdir.core.limits import BATCH_MAX_BYTES, BATCH_MAX_ITEMS, FILE_SYNC_MAX_BYTES
from memdir.server.engine import Engine
from memdir.server.http.pages import Walker
from memdir.server.routes.files import Calling, Dispatching, model_response
from memdir.server.services.search import v1 as search

router = APIRouter()


async def engine_of(request: Request) -> Engine:
    """The server's engine."""
    engine: Engine = request.app.state.engine
    return engine


async def walker_of(request: Request, caller: Calling) -> Walker:
    """Who asks for pages."""
    client = request.client
    return Walker(
        walks=request.app.state.walks,
        key_id=caller.key.id,
        connection="" if client is None else f"{client.host} {client.port}",
    )


Walking = Annotated[Walker, Depends(walker_of)]
Searching = Annotated[Engine, Depends(engine_of)]


@router.get("/healthz", response_model=v1.Health)
async def health() -> Response:
    return model_response(v1.Health(status="ok", version=memdir.__version__, pid=os.getpid()))


@router.get("/v1/capabilities", response_model=v1.Capabilities)
async def capabilities() -> Response:
    return model_response(
        v1.Capabilities(
            version=memdir.__version__,
            api=["v1", "v3", "v4", "ns"],
            features=["changes", "files", "move", "batch", "search", "versions", "export", "import"],
            max_file_bytes=FILE_SYNC_MAX_BYTES,
            max_batch_bytes=BATCH_MAX_BYTES,
            max_batch_items=BATCH_MAX_ITEMS,
        )
    )


@router.post("/v1/search", response_model=v1.SearchResponse)
async def search_lines(body: v1.SearchRequest, caller: Calling, dispatcher: Dispatching, engine: Searching) -> Response:
    return model_response(await search.search(caller, dispatcher, engine, body))
