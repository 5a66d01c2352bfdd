"""`/v1/export` and `/v1/import`: a container as a plain archive. Thin over `services.transfer`."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from memdir.api import v1
from memdir.core.errors import BusyError
from memdir.server.archive.members import MEDIA_TYPES, PIECE_BYTES
from memdir.server.dispatcher import Dispatcher
from memdir.server.routes.files import BYTES, Calling, Dispatching, Tag, model_response
from memdir.server.services.transfer import exporting, importing

router = APIRouter()
IMPORTS_MAX: Final = 2
"""At a time: each keeps a thread busy. Further ones are told to come back."""
_imports = asyncio.Semaphore(IMPORTS_MAX)
_ARCHIVE: Final[dict[str, Any]] = {media: {"schema": BYTES} for media in MEDIA_TYPES.values()}


@router.get(
    "/v1/export",
    response_class=Response,
    responses={200: {"description": "The archive.", "content": _ARCHIVE}},
)
async def export(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    form: Annotated[v1.ArchiveFormat, Query(alias="format")] = "tar",
    prefix: str = "/",
) -> Response:
    """One moment of a container, however long the sending takes. A connection that breaks off before its end was no archive."""
    stream = await dispatcher.run(exporting.export, caller, container_tag, form, prefix)
    name = "".join(char if char.isascii() and (char.isalnum() or char in "-_.") else "_" for char in container_tag)
    headers = {"content-disposition": f'attachment; filename="{name}.{form}"'}
    return StreamingResponse(_sent(dispatcher, stream), headers=headers, media_type=MEDIA_TYPES[form])


async def _sent(dispatcher: Dispatcher, stream: exporting.ExportStream) -> AsyncIterator[bytes]:
    try:
        while (piece := await dispatcher.run(next, stream, b"")) != b"":
            yield piece
    finally:
        # On a thread also when the client is gone: the call is handed over before this is cancelled again.
        await dispatcher.run(stream.close)


@router.post(
    "/v1/import",
    response_model=v1.ImportResult,
    openapi_extra={"requestBody": {"content": _ARCHIVE, "required": True}},
)
async def take_over(
    request: Request,
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    merge: v1.MergePolicy = "fail",
    links: Literal["inside", "all"] = "inside",
) -> Response:
    """A tar, tar.gz or zip, told apart by its first bytes. `links=all` also takes symlinks that lead out of the archive."""
    await dispatcher.run(caller.allow, "write", container_tag, at=caller.narrowed("/"))
    if _imports.locked():
        raise BusyError(f"{IMPORTS_MAX} imports are under way", hint="try again later")
    async with _imports:
        with tempfile.TemporaryFile() as file:
            waiting: list[bytes] = []
            size = 0
            async for piece in request.stream():
                waiting.append(piece)
                size += len(piece)
                if size >= PIECE_BYTES:
                    await dispatcher.run(file.write, b"".join(waiting))
                    waiting.clear()
                    size = 0
            await dispatcher.run(file.write, b"".join(waiting))
            result = await dispatcher.run(importing.take_over, caller, container_tag, file, merge=merge, links=links)
    return model_response(result)
