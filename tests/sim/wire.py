"""The network between one machine and the server: `client.remote.Remote` by plain calls, with a hook before and behind each."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from memdir.api import v1
from memdir.client.errors import ConflictError, NotFoundError, RejectedError
from memdir.client.remote import Expect, Profile
from tests.sim.server import SimServer

Reach = Callable[[str, Callable[[], object]], object]
"""Carries out one exchange: gets the name of the call and what the server does for it."""


class SimRemote:
    """`reach` decides whether the request arrives, how often, and whether its answer does."""

    base_url = "sim://server"

    def __init__(self, server: SimServer, reach: Reach) -> None:
        self._server = server
        self._reach = reach

    def close(self) -> None:
        """There is no connection."""

    # --- facts ---------------------------------------------------------------------------------------------------

    def changes(
        self,
        container: str,
        *,
        since: int,
        token: str = "",
        wait_s: float = 0.0,
        profile_since: int | None = None,
        siblings_since: int | None = None,
    ) -> v1.ChangesPage:
        del container, wait_s, profile_since, siblings_since
        page = self._reach("changes", lambda: self._server.feed(since, token))
        assert isinstance(page, v1.ChangesPage)
        return page

    def siblings(self, container: str, *, since: int) -> v1.SiblingsPage:
        del container
        return v1.SiblingsPage(siblings=[], last_version=since, has_more=False)

    def sibling_text(self, container: str, content_hash: str) -> bytes:
        raise AssertionError(f"{container} has no text beside {content_hash}")

    def list_files(self, container: str, *, prefix: str = "/", after: str | None = None, limit: int = 0) -> v1.FilesPage:
        del container, limit
        page = self._reach("list", lambda: self._server.listing(prefix, after))
        assert isinstance(page, v1.FilesPage)
        return page

    @contextmanager
    def open_file(self, container: str, path: str, *, stall_s: float | None = None) -> Iterator[tuple[int, Iterator[bytes]]]:
        del container, stall_s
        found = self._reach("open", lambda: self._server.content(path))
        assert isinstance(found, tuple)
        revision, content = found
        yield revision, self._pieces(content)

    def read_files(self, container: str, paths: Sequence[str]) -> list[bytes | None]:
        del container
        found = self._reach("read", lambda: [self._read(path) for path in paths])
        assert isinstance(found, list)
        return found

    def _read(self, path: str) -> bytes | None:
        try:
            return self._server.content(path)[1]
        except (NotFoundError, ConflictError):
            return None

    def _pieces(self, content: bytes) -> Iterator[bytes]:
        if content:
            half = len(content) // 2
            if half:
                yield content[:half]
            self._reach("piece", bytes)
            yield content[half:]

    def gives_back(self, container: str, path: str, content_hash: str) -> bool:
        del container
        found = self._server.life.entries.get(path)
        return bool(self._reach("gives", lambda: found is not None and found.content_hash == content_hash))

    # --- changes -------------------------------------------------------------------------------------------------

    def batch(self, container: str, operations: Sequence[v1.BatchOperation], *, bulk: bool = False) -> list[v1.BatchItemResult]:
        del container, bulk
        results = self._reach("batch", lambda: self._server.batch(operations, _inline))
        assert isinstance(results, list)
        return results

    def put_file(
        self, container: str, path: str, content: bytes | Iterable[bytes], *, kind: v1.EntryKind = "file", mode: int = 0o644,
        mtime_ns: int = 0, expect: Expect | None = None, idempotency_key: str | None = None, bulk: bool = False,
    ) -> v1.FileEntry:  # fmt: skip
        del container
        whole = content if isinstance(content, bytes) else b"".join(content)
        answer = self._reach(
            "put",
            lambda: self._server.put(
                path, whole, kind=kind, mode=mode, mtime_ns=mtime_ns, if_match=expect.revision if expect else None,
                if_none_match=expect is not None and expect.revision is None, key=idempotency_key,
            ),
        )  # fmt: skip
        assert isinstance(answer, tuple)
        entry: v1.FileEntry = answer[0]
        return entry

    def delete_file(
        self, container: str, path: str, *, recursive: bool = False, expect: Expect | None = None,
        idempotency_key: str | None = None,
    ) -> v1.DeleteResult:  # fmt: skip
        del container
        revision = expect.revision if expect else None
        answer = self._reach(
            "delete", lambda: self._server.delete(path, recursive=recursive, if_match=revision, key=idempotency_key)
        )
        assert isinstance(answer, tuple)
        return v1.DeleteResult(seq=answer[0], deleted_count=answer[1])

    def move(self, request: v1.MoveRequest) -> v1.MoveResult:
        answer = self._reach(
            "move",
            lambda: self._server.move(
                request.from_path, request.to_path, if_match=request.if_match, replace=request.replace,
                key=request.idempotency_key,
            ),
        )  # fmt: skip
        assert isinstance(answer, tuple)
        return v1.MoveResult(seq=answer[0], moved_count=answer[1], entry=answer[2])

    # --- former contents -----------------------------------------------------------------------------------------

    def versions(self, container: str, path: str, *, before: int | None = None, limit: int = 0) -> v1.VersionsPage:
        del container
        page = self._reach("versions", lambda: self._versions(path, before, limit))
        assert isinstance(page, v1.VersionsPage)
        return page

    def _versions(self, path: str, before: int | None, limit: int) -> v1.VersionsPage:
        life = self._server.life
        current = life.entries.get(path)
        found = [
            version
            for version in reversed(life.versions)
            if (before is None or version.number < before)
            and (version.entry.path == path or (current is not None and version.entry.document_id == current.document_id))
        ]
        page = found[: limit or None]
        return v1.VersionsPage(
            current=current,
            versions=[
                v1.VersionEntry(
                    version=version.number, document_id=version.entry.document_id, path=version.entry.path,
                    kind=version.entry.kind, content_hash=version.entry.content_hash, size_bytes=version.entry.size_bytes,
                    mode=version.entry.mode, mtime_ns=version.entry.mtime_ns, revision=version.entry.revision,
                    reason=version.reason, ended_at="2026-01-01T00:00:00.000Z",  # type: ignore[arg-type]
                )
                for version in page
            ],
            next_before=page[-1].number if len(page) < len(found) else None,
        )  # fmt: skip

    @contextmanager
    def open_version(self, container: str, version: int) -> Iterator[Iterator[bytes]]:
        del container
        content = self._reach("version", lambda: self._version(version))
        assert isinstance(content, bytes)
        yield self._pieces(content)

    def _version(self, number: int) -> bytes:
        life = self._server.life
        if not 0 < number <= len(life.versions):
            raise NotFoundError(f"there is no version {number}")
        return life.contents[life.versions[number - 1].entry.content_hash]

    # --- beside the sync -----------------------------------------------------------------------------------------

    def search(self, request: v1.SearchRequest) -> v1.SearchResponse:
        raise RejectedError(f"the simulated server does not search: {request.q}")

    def processing_count(self, container: str) -> int:
        del container
        return 0

    def profile(self, container: str) -> Profile:
        del container
        return Profile(static=(), dynamic=())

    def container_settings(self, container: str) -> dict[str, Any]:
        del container
        return {}

    def change_settings(self, container: str, changes: dict[str, Any]) -> dict[str, Any]:
        raise RejectedError(f"the simulated server keeps no settings: {container} {sorted(changes)}")


def _inline(operation: v1.BatchOperation) -> bytes:
    return base64.b64decode(operation.content_base64 or "")
