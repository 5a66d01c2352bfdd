"""A server without `/v1` as the engine wants it: a `client.remote.Remote`."""

from __future__ import annotations

import base64
import binascii
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from memdir.api import v1
from memdir.client.errors import (
    AuthError,
    ClientError,
    ConflictError,
    CursorGoneError,
    NotFoundError,
    OfflineError,
    PreconditionFailedError,
    RateLimitedError,
    RejectedError,
    ServerError,
    TooLargeError,
)
from memdir.client.http import Client
from memdir.client.remote import Expect, InPipeline, Profile
from memdir.core.clock import Clock, SystemClock
from memdir.core.ids import new_id
from memdir.core.limits import CHANGES_PAGE_MAX
from memdir.sync.plain.contents import Contents
from memdir.sync.plain.reader import Reader
from memdir.sync.plain.records import Records
from memdir.sync.plain.searching import LocalText, search
from memdir.sync.plain.wire import Documents
from memdir.sync.plain.writer import Writer
from memdir.sync.push.max_delete import MaxDelete

POLL_S: Final = 5.0
"""How often an idle mount asks what changed."""
POLL_BUSY_S: Final = 1.5
"""The same while the server works on documents."""
_STATUS: Final[tuple[tuple[type[ClientError], int], ...]] = (
    (PreconditionFailedError, 412), (ConflictError, 409), (NotFoundError, 404), (TooLargeError, 413), (RejectedError, 422),
    (ServerError, 425),
)  # fmt: skip


class PlainRemote:
    """One connection. `records` outlive it; `local_text` reads a file of the mount, to find the lines of search results; up to
    `max_delete` documents may go from the server unasked."""

    def __init__(
        self, client: Client, records: Records, *, container: str, clock: Clock | None = None,
        local_text: LocalText | None = None, max_delete: MaxDelete | None = None,
    ) -> None:  # fmt: skip
        self._client = client
        self._records = records
        self._container = container
        self._clock = clock or SystemClock()
        self._local_text = local_text or _nothing
        documents = Documents(client, container)
        self._reader = Reader(container, documents, records, self._clock, max_delete or MaxDelete())
        self._writer = Writer(documents, records, self._reader, self._clock)
        self._contents = Contents(documents, records, self._reader.observer)
        self._closed = threading.Event()

    @property
    def base_url(self) -> str:
        return self._client.base_url

    def close(self) -> None:
        self._closed.set()
        self._client.close()
        self._records.wake()

    # --- facts ---------------------------------------------------------------------------------------------------

    def changes(
        self,
        container: str,
        *,
        since: int,
        token: str = "",  # noqa: ARG002  the epoch says it: our numbers begin anew with every life of the container
        wait_s: float = 0.0,
        profile_since: int | None = None,
        siblings_since: int | None = None,  # noqa: ARG002  such a server puts texts beside files as files
    ) -> v1.ChangesPage:
        """The feed made of readings of the server; waits between them."""
        self._check(container)
        records, until_s = self._records, self._clock.monotonic_s() + wait_s
        while True:
            self._reader.refresh()
            page = self._page(since)
            left_s = until_s - self._clock.monotonic_s()
            newer_profile = page.profile_version > (page.profile_version if profile_since is None else profile_since)
            if page.changes or page.last_seq != since or newer_profile or left_s <= 0:
                return page
            records.wait(min(left_s, POLL_BUSY_S if records.unsettled(1) else POLL_S))
            if self._closed.is_set():
                raise OfflineError("the connection was closed")

    def siblings(self, container: str, *, since: int) -> v1.SiblingsPage:
        """None: such a server puts texts beside files as files."""
        self._check(container)
        return v1.SiblingsPage(siblings=[], last_version=since, has_more=False)

    def sibling_text(self, container: str, content_hash: str) -> bytes:
        """NotFoundError."""
        self._check(container)
        raise NotFoundError(f"no text is kept of {content_hash}")

    def _page(self, since: int) -> v1.ChangesPage:
        records = self._records
        if since < records.number("feed_from"):
            raise CursorGoneError("the changes do not reach back that far (HTTP 410)")
        records.forget_changes(since)
        epoch = records.epoch
        changes, last = records.changes(since, CHANGES_PAGE_MAX)
        has_more = bool(changes) and changes[-1].seq < last
        profile = 0 if records.unsettled(1) else last
        return v1.ChangesPage(
            container_tag=self._container,
            epoch=epoch,
            changes=changes,
            last_seq=last,
            has_more=has_more,
            profile_version=profile,
        )

    def list_files(
        self, container: str, *, prefix: str = "/", after: str | None = None, limit: int = CHANGES_PAGE_MAX
    ) -> v1.FilesPage:
        self._check(container)
        if after is None:
            self._reader.refresh()
        epoch = self._records.epoch
        entries, last = self._records.entries(prefix, after, limit)
        following = entries[-1].path if len(entries) == limit else None
        return v1.FilesPage(entries=entries, next_after=following, last_seq=last, epoch=epoch)

    def open_file(
        self, container: str, path: str, *, stall_s: float | None = None
    ) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        self._check(container)
        return self._contents.open(path, stall_s=stall_s)

    def read_files(self, container: str, paths: Sequence[str]) -> list[bytes | None]:
        """None of them: such a server has no words for it."""
        self._check(container)
        return [None] * len(paths)

    def gives_back(self, container: str, path: str, content_hash: str) -> bool:
        """Tried out: such a server may keep a text changed, or no original at all."""
        self._check(container)
        return self._contents.gives_back(path, content_hash)

    # --- changes -------------------------------------------------------------------------------------------------

    def batch(self, container: str, operations: Sequence[v1.BatchOperation], *, bulk: bool = False) -> list[v1.BatchItemResult]:
        """One after the other. What the server works on is 425, to be asked for again. It knows no order of reading."""
        del bulk
        self._check(container)
        results = [self._one(operation) for operation in operations]
        if any(result.status == 425 for result in results):
            self._reader.refresh()
            results = [
                self._again(operation, result) for operation, result in zip(operations, results, strict=True)
            ]  # fmt: skip
        return results

    def _one(self, operation: v1.BatchOperation) -> v1.BatchItemResult:
        expect = None
        if operation.if_none_match:
            expect = Expect(revision=None)
        elif operation.if_match is not None:
            expect = Expect(revision=operation.if_match)
        try:
            if operation.op == "put" and operation.content_hash is not None:
                kept = self._writer.keep(
                    operation.path, operation.content_hash, mode=operation.mode, mtime_ns=operation.mtime_ns, expect=expect,
                    key=operation.idempotency_key or new_id(),
                )  # fmt: skip
                return v1.BatchItemResult(status=200, entry=kept.entry(), seq=kept.revision)
            if operation.op == "put":
                entry = self._put(
                    operation.path, _inline(operation), kind=operation.kind, mode=operation.mode, mtime_ns=operation.mtime_ns,
                    expect=expect, key=operation.idempotency_key,
                )  # fmt: skip
                return v1.BatchItemResult(status=200, entry=entry, seq=entry.revision)
            if operation.op == "delete":
                since = operation.if_unchanged_since
                seq, _ = self._writer.delete(
                    operation.path, recursive=operation.recursive, expect=expect, unchanged_since=since
                )  # fmt: skip
                return v1.BatchItemResult(status=200, seq=seq)
            source = operation.from_path or operation.path
            key = operation.idempotency_key or new_id()
            seq, _, there = self._writer.move(source, operation.path, expect=expect, replace=True, key=key)
            return v1.BatchItemResult(status=200, entry=there.entry(), seq=seq)
        except (OfflineError, RateLimitedError, AuthError):
            raise  # of the connection, not of this operation; what was done before is found done when it is repeated
        except ClientError as error:
            current = error.current if isinstance(error, PreconditionFailedError) else None
            status = next((status for kind, status in _STATUS if isinstance(error, kind)), 425)
            return v1.BatchItemResult(status=status, entry=current, error=error.message)

    def _again(self, operation: v1.BatchOperation, result: v1.BatchItemResult) -> v1.BatchItemResult:
        """A fast server is done with it by now."""
        known = self._records.at(operation.path) if result.status == 425 and operation.op == "put" else None
        if known is None or known.status != "done" or known.write_key != operation.idempotency_key:
            return result
        return self._one(operation)

    def _put(
        self, path: str, content: bytes | Iterable[bytes], *, kind: v1.EntryKind, mode: int, mtime_ns: int,
        expect: Expect | None, key: str | None,
    ) -> v1.FileEntry:  # fmt: skip
        there = self._writer.put(path, content, kind=kind, mode=mode, mtime_ns=mtime_ns, expect=expect, key=key or new_id())
        return there.entry()

    def put_file(
        self,
        container: str,
        path: str,
        content: bytes | Iterable[bytes],
        *,
        kind: v1.EntryKind = "file",
        mode: int = 0o644,
        mtime_ns: int = 0,
        expect: Expect | None = None,
        idempotency_key: str | None = None,
        bulk: bool = False,  # noqa: ARG002  nobody can say it in these words
    ) -> v1.FileEntry:
        self._check(container)
        return self._put(path, content, kind=kind, mode=mode, mtime_ns=mtime_ns, expect=expect, key=idempotency_key)

    def delete_file(
        self,
        container: str,
        path: str,
        *,
        recursive: bool = False,
        expect: Expect | None = None,
        idempotency_key: str | None = None,  # noqa: ARG002  deleting twice is deleting once
    ) -> v1.DeleteResult:
        self._check(container)
        seq, count = self._writer.delete(path, recursive=recursive, expect=expect)
        return v1.DeleteResult(seq=seq, deleted_count=count)

    def move(self, request: v1.MoveRequest) -> v1.MoveResult:
        self._check(request.container_tag)
        expect = None if request.if_match is None else Expect(revision=request.if_match)
        key = request.idempotency_key or new_id()
        seq, count, there = self._writer.move(
            request.from_path, request.to_path, expect=expect, replace=request.replace, key=key
        )
        return v1.MoveResult(seq=seq, moved_count=count, entry=there.entry())

    # --- former contents -----------------------------------------------------------------------------------------

    def versions(
        self,
        container: str,
        path: str,
        *,
        before: int | None = None,  # noqa: ARG002
        limit: int = CHANGES_PAGE_MAX,  # noqa: ARG002
    ) -> v1.VersionsPage:
        """None: such a server keeps no former contents."""
        self._check(container)
        known = self._records.at(path)
        return v1.VersionsPage(current=None if known is None else known.entry(), versions=[])

    def open_version(self, container: str, version: int) -> AbstractContextManager[Iterator[bytes]]:
        raise NotFoundError(f"this server keeps no version {version} of {container} (HTTP 404)")

    # --- beside the sync -----------------------------------------------------------------------------------------

    def search(self, request: v1.SearchRequest) -> v1.SearchResponse:
        self._check(request.container_tag)
        return search(self._client, self._records, request, self._local_text)

    def processing_count(self, container: str) -> int:
        return Documents(self._client, container).processing()[1]

    def in_pipeline(self, container: str) -> InPipeline:
        """Why one failed is told by the document itself, which the feed brings."""
        pending, total = Documents(self._client, container).processing()
        return InPipeline(pending=frozenset(pending), failed={}, complete=total <= len(pending))

    def retry_document(self, container: str, document_id: str) -> int:  # noqa: ARG002
        """Such a server has no word for it; a change of the file makes it try again."""
        return 0

    def profile(self, container: str) -> Profile:
        return self._client.plain_profile(container)

    def container_settings(self, container: str) -> dict[str, Any]:
        return self._client.container_settings(container)

    def change_settings(self, container: str, changes: dict[str, Any]) -> dict[str, Any]:
        return self._client.change_settings(container, changes)

    def _check(self, container: str) -> None:
        if container != self._container:
            raise ValueError(f"the records are of {self._container!r}, not of {container!r}")


def _inline(operation: v1.BatchOperation) -> bytes:
    if operation.content_hash is not None:  # planned for another server: this one is compared with first
        raise PreconditionFailedError(f"this server takes {operation.path} with its contents only", current=None)
    try:
        return base64.b64decode(operation.content_base64 or "", validate=True)
    except binascii.Error as error:
        raise RejectedError(f"the contents of {operation.path} are not base64") from error


def _nothing(_path: str) -> bytes | None:
    return None
