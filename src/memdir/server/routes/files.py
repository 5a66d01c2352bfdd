"""`/v1/files`, `/v1/changes`: exact bytes with revisions, and the ordered feed. Thin over `server.services.contents.files`."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Annotated, Any, Final
from urllib.parse import unquote_to_bytes

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from memdir.api import v1
from memdir.core.limits import CHANGES_PAGE_MAX, CHANGES_WAIT_MAX_S, INT64_MAX
from memdir.server.dispatcher import Dispatcher
from memdir.server.http.access import Caller, caller_of
from memdir.server.services.contents import files, siblings
from memdir.store.contents.blobs import INLINE_MAX_BYTES
from memdir.store.errors import InvalidError
from memdir.store.jobs.queue import BULK, INTERACTIVE
from memdir.store.tree.operations import Delete, Put
from memdir.store.tree.versions import Version
from memdir.store.types import Document

router = APIRouter()
_PREFIX: Final = b"/v1/files"
ETAG: Final[dict[str, Any]] = {"ETag": {"schema": {"type": "string"}, "description": "For If-Match and If-None-Match."}}
BYTES: Final[dict[str, Any]] = {"type": "string", "format": "binary"}
NOT_MODIFIED: Final[dict[str, Any]] = {"description": "It still is what If-None-Match names.", "headers": ETAG}
PUT_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"headers": ETAG},
    201: {"model": v1.FileEntry, "description": "Nothing stood there before.", "headers": ETAG},
}
_OTHER_HISTORY: Final[dict[int | str, dict[str, Any]]] = {
    409: {"description": "The token belongs to another history: the server was restored.", "model": v1.Problem},
    410: {"description": "The history is not told back to that number any more.", "model": v1.Problem},
}
CONTENT: Final[dict[str, Any]] = {
    "description": "The exact bytes.",
    "content": {"application/octet-stream": {"schema": BYTES}},
    "headers": ETAG,
}
Calling = Annotated[Caller, Depends(caller_of)]
Tag = Annotated[str, Query(alias="containerTag")]


async def dispatcher_of(request: Request) -> Dispatcher:
    """The server's dispatcher."""
    dispatcher: Dispatcher = request.app.state.dispatcher
    return dispatcher


Dispatching = Annotated[Dispatcher, Depends(dispatcher_of)]


def path_of(request: Request) -> str:
    """The path in the container, from the raw bytes of the URL: no silent replacement of what is not Unicode."""
    raw = request.scope.get("raw_path") or request.scope["path"].encode()
    try:
        return unquote_to_bytes(raw.split(b"?", 1)[0][len(_PREFIX) :]).decode()
    except UnicodeDecodeError:
        raise InvalidError("the path is not valid UTF-8") from None


def revision_of(if_match: str | None) -> int | None:
    """The revision in an If-Match header, None without one."""
    if if_match is None:
        return None
    text = if_match.strip()
    if text.startswith('"') and text.endswith('"') and len(text) >= 2:
        text = text[1:-1]
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise InvalidError("If-Match must be a revision in quotes", hint='for example If-Match: "7"')
    return int(text)


def only_new(if_none_match: str | None) -> bool:
    """Whether If-None-Match asks that nothing stands there."""
    if if_none_match is None:
        return False
    if if_none_match.strip() != "*":
        raise InvalidError("If-None-Match can only be *")
    return True


@router.get("/v1/files", response_model=v1.FilesPage)
async def list_files(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    prefix: str = "/",
    after: str = "",
    limit: Annotated[int, Query(ge=1, le=CHANGES_PAGE_MAX)] = CHANGES_PAGE_MAX,
) -> Response:
    page = await dispatcher.run(files.listing, caller, container_tag, prefix=prefix, after=after, limit=limit)
    return model_response(page)


@router.put(
    "/v1/files/{path:path}",
    response_model=v1.FileEntry,
    responses=PUT_ANSWERS,
    openapi_extra={"requestBody": {"content": {"application/octet-stream": {"schema": BYTES}}}},
)
async def put_file(
    request: Request,
    container_tag: Tag,
    kind: v1.EntryKind = "file",
    mode: Annotated[int, Query(ge=0, le=0o7777)] = 0o644,
    mtime_ns: Annotated[int, Query(alias="mtimeNs", ge=-INT64_MAX, le=INT64_MAX)] = 0,
    bulk: Annotated[bool, Query(description="One of many files: read after those that somebody just saved.")] = False,
    if_match: Annotated[str | None, Header()] = None,
    if_none_match: Annotated[str | None, Header()] = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    caller, dispatcher = (
        await caller_of(request),
        await dispatcher_of(request),
    )  # as dependencies, they would cost more than the work
    wanted = Put(
        path=path_of(request),
        kind=kind,
        mode=mode,
        mtime_ns=mtime_ns,
        if_match=revision_of(if_match),
        if_none_match=only_new(if_none_match),
        idempotency_key=idempotency_key,
        priority=BULK if bulk else INTERACTIVE,
    )
    if int(request.headers.get("content-length", INLINE_MAX_BYTES + 1)) <= INLINE_MAX_BYTES:
        body = await request.body()
        outcome = await dispatcher.run(files.put_bytes, caller, container_tag, wanted, body)
    else:
        await dispatcher.run(files.ensured_for, caller, container_tag, wanted)
        upload, blob = await files.receive(dispatcher, caller.store.blobs, request.stream())
        with upload:
            outcome = await dispatcher.run(files.put, caller, container_tag, wanted, blob)
    assert outcome.document is not None
    answer = model_response(files.entry_of(outcome.document), status=201 if outcome.created else 200)
    answer.headers["etag"] = f'"{outcome.document.revision}"'
    return answer


@router.get("/v1/files/{path:path}", response_class=Response, responses={200: CONTENT, 304: NOT_MODIFIED})
async def get_file(
    request: Request,
    container_tag: Tag,
    if_none_match: Annotated[str | None, Header()] = None,
) -> Response:
    caller, dispatcher = await caller_of(request), await dispatcher_of(request)
    document, found = await dispatcher.run(files.content, caller, container_tag, path_of(request))
    headers = content_headers(document)
    if if_none_match is not None and headers["etag"] in [tag.strip() for tag in if_none_match.split(",")]:
        return Response(status_code=304, headers={"etag": headers["etag"]})
    if isinstance(found, bytes):
        return Response(found, headers=headers, media_type="application/octet-stream")
    return StreamingResponse(streamed(dispatcher, found), headers=headers, media_type="application/octet-stream")


@router.head("/v1/files/{path:path}", response_class=Response, responses={200: {"headers": ETAG}})
async def head_file(request: Request, caller: Calling, dispatcher: Dispatching, container_tag: Tag) -> Response:
    document = await dispatcher.run(files.find, caller, container_tag, path_of(request))
    return Response(headers=content_headers(document), media_type="application/octet-stream")


@router.delete("/v1/files/{path:path}", response_model=v1.DeleteResult)
async def delete_file(
    request: Request,
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    recursive: bool = False,
    purge: bool = False,
    if_unchanged_since: Annotated[int | None, Query(alias="ifUnchangedSince", ge=0, le=INT64_MAX)] = None,
    if_match: Annotated[str | None, Header()] = None,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    operation = Delete(
        path=path_of(request),
        recursive=recursive,
        purge=purge,
        if_match=revision_of(if_match),
        if_unchanged_since=if_unchanged_since,
        idempotency_key=idempotency_key,
    )
    return model_response(await dispatcher.run(files.delete, caller, container_tag, operation))


@router.post("/v1/files:move", response_model=v1.MoveResult)
async def move_file(
    body: v1.MoveRequest,
    caller: Calling,
    dispatcher: Dispatching,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    if body.idempotency_key is None and idempotency_key is not None:
        body = body.model_copy(update={"idempotency_key": idempotency_key})
    return model_response(await dispatcher.run(files.move, caller, body))


@router.post("/v1/files:batch", response_model=v1.BatchResult)
async def batch(body: v1.BatchRequest, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(files.batch, caller, body))


@router.post("/v1/files:read", response_model=v1.ReadResult)
async def read(body: v1.ReadRequest, caller: Calling, dispatcher: Dispatching) -> Response:
    return model_response(await dispatcher.run(files.read, caller, body))


@router.get("/v1/changes", response_model=v1.ChangesPage, responses=_OTHER_HISTORY)
async def changes(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    since: Annotated[int, Query(ge=0, le=INT64_MAX)] = 0,
    wait: Annotated[float, Query(ge=0, le=CHANGES_WAIT_MAX_S, allow_inf_nan=False)] = 0.0,
    limit: Annotated[int, Query(ge=1, le=CHANGES_PAGE_MAX)] = CHANGES_PAGE_MAX,
    profile_since: Annotated[int | None, Query(alias="profileSince", ge=0, le=INT64_MAX)] = None,
    siblings_since: Annotated[int | None, Query(alias="siblingsSince", ge=0, le=INT64_MAX)] = None,
    token: Annotated[str, Query(max_length=64)] = "",
) -> Response:
    """Wakes on an event. Answers at once, too, when `since` lies ahead of the container: it was restored."""
    container = await dispatcher.run(caller.ensured, container_tag, "read", at=caller.narrowed("/"))
    deadline = time.monotonic() + wait
    with dispatcher.watch(container.id) as watch:
        while True:
            page = await dispatcher.run(files.changes_page, caller, container, since=since, limit=limit, token=token)
            news = page.changes or page.last_seq < since
            news = news or (profile_since is not None and page.profile_version > profile_since)
            news = news or (siblings_since is not None and page.siblings_version > siblings_since)
            left_s = deadline - time.monotonic()
            if news or left_s <= 0 or dispatcher.closing:
                return model_response(page)
            await watch.wait(left_s)


@router.get("/v1/siblings", response_model=v1.SiblingsPage)
async def siblings_page(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    since: Annotated[int, Query(ge=0, le=INT64_MAX)] = 0,
    limit: Annotated[int, Query(ge=1, le=siblings.PAGE_MAX)] = siblings.PAGE_MAX,
) -> Response:
    """The texts beside files that came, changed or went behind `since`; short ones whole."""
    return model_response(await dispatcher.run(siblings.page, caller, container_tag, since, limit))


@router.get("/v1/siblings/text", response_class=Response, responses={200: {"content": {"text/markdown": {"schema": BYTES}}}})
async def sibling_text(
    caller: Calling,
    dispatcher: Dispatching,
    container_tag: Tag,
    content_hash: Annotated[str, Query(alias="contentHash", pattern="^[0-9a-f]{64}$")],
) -> Response:
    """The text beside files with these contents, without its first lines, which name the file."""
    text = await dispatcher.run(siblings.text, caller, container_tag, content_hash)
    headers = {"content-security-policy": "sandbox; default-src 'none'", "content-disposition": "attachment"}
    return Response(text, headers=headers, media_type="text/markdown; charset=utf-8")


def model_response(model: v1.Wire, *, status: int = 200, sparse: bool = False) -> Response:
    """A model as JSON, rendered once; `sparse`: without the fields that are null."""
    text = model.model_dump_json(by_alias=True, exclude_none=sparse)
    return Response(text, status_code=status, media_type="application/json")


def content_headers(document: Document | Version) -> dict[str, str]:
    """The bytes are data for whoever reads them, never a page of this origin."""
    return {
        "etag": f'"{document.revision}"',
        "content-length": str(document.size_bytes),
        "content-disposition": "attachment",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-memdir-kind": document.kind,
        "x-memdir-content-hash": document.content_hash,
        "x-memdir-mode": str(document.mode),
        "x-memdir-mtime-ns": str(document.mtime_ns),
    }


async def streamed(dispatcher: Dispatcher, pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Pieces read on threads; the file is closed also when the client goes away."""
    source: Iterator[bytes] = iter(pieces)
    try:
        while (piece := await dispatcher.run(next, source, b"")) != b"":
            yield piece
    finally:
        close = getattr(source, "close", None)
        if close is not None:
            close()
