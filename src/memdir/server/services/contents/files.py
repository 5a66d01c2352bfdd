"""Files with revisions: what `/v1/files` does."""

from __future__ import annotations

import base64
import binascii
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from typing import Final

from memdir.api import v1
from memdir.core.errors import MemdirError, NotFoundError
from memdir.core.limits import BATCH_MAX_BYTES, FILE_SYNC_MAX_BYTES, READ_MAX_BYTES
from memdir.server.dispatcher import Dispatcher
from memdir.server.errors import status_of, text_of
from memdir.server.http.access import Caller
from memdir.server.http.guard import too_large
from memdir.store.contents.blobs import INLINE_MAX_BYTES, PIECE_BYTES, BlobStore, StagedBlob, Upload
from memdir.store.errors import ConflictError, InvalidError, PreconditionError
from memdir.store.jobs.queue import BULK, INTERACTIVE
from memdir.store.paths import checked_path
from memdir.store.tree.changes import ChangeRow
from memdir.store.tree.operations import Delete, Move, Operation, Outcome, Put
from memdir.store.types import Container, Document

INTERACTIVE_OPERATIONS_MAX: Final = 8
"""A batch with more operations is an import, and lets edits overtake it."""


def entry_of(document: Document) -> v1.FileEntry:
    """A document with a path, as the wire says it."""
    return v1.FileEntry.model_construct(
        path=document.path or "",
        kind=document.kind,
        content_hash=document.content_hash,
        size_bytes=document.size_bytes,
        mode=document.mode,
        mtime_ns=document.mtime_ns,
        revision=document.revision,
        document_id=document.id,
        status=document.status,
        error=document.error,
    )


def find(caller: Caller, tag: str, path: str) -> Document:
    """What stands at `path`, or NotFoundError."""
    path = checked_path(path)
    container = caller.container(tag, "read", at=path)
    document = caller.store.documents.at(container.id, path)
    if document is None:
        raise NotFoundError(f"there is nothing at {path}")
    return document


def listing(caller: Caller, tag: str, *, prefix: str, after: str, limit: int) -> v1.FilesPage:
    """One page of entries. The container comes into being, so that it has an epoch."""
    folder = caller.narrowed(prefix)
    container = caller.ensured(tag, "read", at=folder)
    page = caller.store.documents.files(container.id, prefix=folder, after=after, limit=limit)
    entries = [entry_of(document) for document in page.entries]
    return v1.FilesPage(
        entries=entries,
        next_after=entries[-1].path if page.has_more and entries else None,
        last_seq=page.last_seq,
        epoch=page.epoch,
        token=page.token,
    )


def move(caller: Caller, request: v1.MoveRequest) -> v1.MoveResult:
    """Rename a file or a subtree."""
    container = caller.container(request.container_tag, "write", at=checked_path(request.from_path))
    caller.allow_path(request.to_path)
    outcome = caller.store.files.apply(
        container,
        Move(
            from_path=request.from_path,
            path=request.to_path,
            if_match=request.if_match,
            replace=request.replace,
            idempotency_key=request.idempotency_key,
        ),
    )
    entry = None if outcome.document is None else entry_of(outcome.document)
    return v1.MoveResult(seq=outcome.seq, moved_count=outcome.count, entry=entry)


def delete(caller: Caller, tag: str, operation: Delete) -> v1.DeleteResult:
    """Delete a file or a subtree."""
    container = caller.container(tag, "write", at=checked_path(operation.path), frees=True)
    outcome = caller.store.files.apply(container, operation)
    return v1.DeleteResult(seq=outcome.seq, deleted_count=outcome.count)


def put(caller: Caller, tag: str, wanted: Put, blob: StagedBlob) -> Outcome:
    """Put a file, folder or symlink whose bytes have come in."""
    if wanted.kind == "dir":
        if blob.size_bytes:
            raise InvalidError("a folder has no content")
        operation = wanted
    else:
        operation = replace(wanted, blob=blob)
    return caller.store.files.apply(ensured_for(caller, tag, wanted), operation)


def ensured_for(caller: Caller, tag: str, wanted: Put) -> Container:
    """The container for a put."""
    assert wanted.path is not None
    return caller.ensured(tag, "write", at=checked_path(wanted.path))


def put_bytes(caller: Caller, tag: str, wanted: Put, content: bytes) -> Outcome:
    """`put` for bytes at hand."""
    with caller.store.blobs.upload() as upload:
        upload.write(content)
        return put(caller, tag, wanted, upload.finish())


def check_size(size_bytes: int) -> None:
    """TooLargeError past the largest file that the server takes."""
    if size_bytes > FILE_SYNC_MAX_BYTES:
        raise too_large(FILE_SYNC_MAX_BYTES)


async def receive(dispatcher: Dispatcher, blobs: BlobStore, stream: AsyncIterator[bytes]) -> tuple[Upload, StagedBlob]:
    """Take a body in, in pieces of about 1 MiB on a thread; the caller leaves the upload when the bytes are taken over."""
    upload = blobs.upload()
    pieces: list[bytes] = []
    waiting = 0
    try:
        async for piece in stream:
            pieces.append(piece)
            waiting += len(piece)
            check_size(upload.size_bytes + waiting)
            if waiting >= PIECE_BYTES:
                await dispatcher.run(upload.write, b"".join(pieces))
                pieces.clear()
                waiting = 0
        if pieces:
            await dispatcher.run(upload.write, b"".join(pieces))
        return upload, await dispatcher.run(upload.finish)
    except BaseException:
        upload.__exit__(None, None, None)
        raise


def batch(caller: Caller, request: v1.BatchRequest) -> v1.BatchResult:
    """Operations in order, each for itself."""
    container = caller.ensured(request.container_tag, "write", at=caller.narrowed("/"), frees=True)
    is_import = request.bulk or len(request.operations) > INTERACTIVE_OPERATIONS_MAX
    priority = BULK if is_import else INTERACTIVE
    if sum(len(operation.content_base64 or "") for operation in request.operations) * 3 // 4 > BATCH_MAX_BYTES + 3 * len(
        request.operations
    ):
        raise too_large(BATCH_MAX_BYTES)
    uploads: list[Upload] = []
    results: list[v1.BatchItemResult | None] = []
    operations: list[Operation] = []
    try:
        for item in request.operations:
            try:
                for path in (item.path, item.from_path):
                    if path is not None:
                        caller.allow_path(path)
                if item.op == "put":
                    caller.check_room(len(item.content_base64 or "") * 3 // 4)
                operations.append(_operation(item, priority, caller.store.blobs, uploads))
                results.append(None)
            except MemdirError as error:
                results.append(_refused(error))
        outcomes: Iterable[Outcome | MemdirError] = caller.store.files.apply_all(container, operations) if operations else ()
    finally:
        for upload in uploads:
            upload.__exit__(None, None, None)
    answers = iter(outcomes)
    return v1.BatchResult(results=[result or _item_result(next(answers)) for result in results])


def _operation(item: v1.BatchOperation, priority: int, blobs: BlobStore, uploads: list[Upload]) -> Operation:
    if item.op == "delete":
        return Delete(
            path=item.path,
            recursive=item.recursive,
            if_match=item.if_match,
            if_unchanged_since=item.if_unchanged_since,
            idempotency_key=item.idempotency_key,
        )
    if item.op == "move":
        if item.from_path is None:
            raise InvalidError("a move needs fromPath")
        return Move(
            from_path=item.from_path,
            path=item.path,
            if_match=item.if_match,
            replace=not item.if_none_match,
            idempotency_key=item.idempotency_key,
            priority=priority,
        )
    blob = None
    if item.content_hash is not None and item.content_base64 is not None:
        raise InvalidError("contentHash names contents that are there, contentBase64 gives new ones", hint="send one of them")
    if item.kind != "dir" and item.content_hash is None:
        upload = blobs.upload()
        uploads.append(upload)
        upload.write(_decoded(item.content_base64))
        blob = upload.finish()
    return Put(
        path=item.path,
        kind=item.kind,
        blob=blob,
        keeps=item.content_hash,
        mode=item.mode,
        mtime_ns=item.mtime_ns,
        if_match=item.if_match,
        if_none_match=item.if_none_match,
        idempotency_key=item.idempotency_key,
        priority=priority,
    )


def _decoded(content_base64: str | None) -> bytes:
    if content_base64 is None:
        raise InvalidError("a put of a file or symlink needs contentBase64")
    try:
        return base64.b64decode(content_base64, validate=True)
    except (binascii.Error, ValueError) as error:
        raise InvalidError(f"contentBase64 is not base64: {error}") from None


def _item_result(outcome: Outcome | MemdirError) -> v1.BatchItemResult:
    if isinstance(outcome, MemdirError):
        return _refused(outcome)
    entry = None if outcome.document is None else entry_of(outcome.document)
    return v1.BatchItemResult(status=201 if outcome.created else 200, entry=entry, seq=outcome.seq)


def _refused(error: MemdirError) -> v1.BatchItemResult:
    current = error.current if isinstance(error, PreconditionError) else None
    return v1.BatchItemResult(
        status=status_of(error), error=text_of(error), entry=None if current is None else entry_of(current)
    )


def content(caller: Caller, tag: str, path: str) -> tuple[Document, bytes | Iterable[bytes]]:
    """A file's document and its bytes, from one moment; a symlink gives its target. A small file comes whole: pieces cost a
    turn of a thread each."""
    document, pieces = _content(caller, tag, path)
    return document, b"".join(pieces) if document.size_bytes <= INLINE_MAX_BYTES else pieces


def read(caller: Caller, request: v1.ReadRequest) -> v1.ReadResult:
    """Files as they are, each for itself, as long as they fit READ_MAX_BYTES together."""
    caller.container(request.container_tag, "read", at=caller.narrowed("/"))
    found: list[v1.ReadItem] = []
    room = READ_MAX_BYTES
    for path in request.paths:
        try:
            document, pieces = _content(caller, request.container_tag, path)
        except MemdirError as error:
            found.append(v1.ReadItem(status=status_of(error)))
            continue
        if document.size_bytes > room:
            found.append(v1.ReadItem(status=413))
            continue
        room -= document.size_bytes
        found.append(v1.ReadItem(status=200, content_base64=base64.b64encode(b"".join(pieces)).decode("ascii")))
    return v1.ReadResult(files=found)


def _content(caller: Caller, tag: str, path: str) -> tuple[Document, Iterable[bytes]]:
    document = find(caller, tag, path)
    for _ in range(3):
        if document.kind == "dir":
            raise ConflictError(f"{document.path} is a folder")
        try:
            return document, caller.store.blobs.pieces(document.content_hash)
        except NotFoundError:  # replaced between the two reads
            document = find(caller, tag, path)
    return document, caller.store.blobs.pieces(document.content_hash)


def changes_page(caller: Caller, container: Container, *, since: int, limit: int, token: str = "") -> v1.ChangesPage:
    """History after `since`; NotFoundError when the container is gone, ConflictError's status when `token` is another's."""
    folder = caller.narrowed("/")
    if folder == "/":
        feed = caller.store.changes.since(container.id, since, limit=limit, token=token)
    else:
        feed = caller.store.changes.since_below(container.id, since, limit=limit, folder=folder, token=token)
    if feed is None:
        raise NotFoundError(f"the container {container.tag!r} was deleted")
    last = max(since, feed.last_seq) if feed.last_row_seq is None else feed.last_row_seq
    return v1.ChangesPage(
        container_tag=container.tag,
        epoch=feed.epoch,
        changes=[_change(row) for row in feed.rows],
        last_seq=feed.last_seq,
        has_more=last < feed.last_seq,
        profile_version=feed.profile_version,
        siblings_version=feed.siblings_version,
        token=feed.rows[-1].token if last < feed.last_seq and feed.rows else feed.last_token,
    )


def _change(row: ChangeRow) -> v1.Change:
    entry = None
    if row.entry is not None:
        entry = v1.FileEntry.model_construct(
            path=row.path,
            kind=row.entry.kind,
            content_hash=row.entry.content_hash,
            size_bytes=row.entry.size_bytes,
            mode=row.entry.mode,
            mtime_ns=row.entry.mtime_ns,
            revision=row.seq,
            document_id=row.entry.document_id,
            status=row.entry.status,
            error=row.entry.error,
        )
    return v1.Change.model_construct(seq=row.seq, kind=row.kind, path=row.path, from_path=row.from_path, entry=entry)
