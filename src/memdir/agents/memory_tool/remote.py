"""The memory tool on the server's files: `/memory` of a container, the same files that a mount shows, without one.

A change names the revision it was made of and is made again when somebody else was faster, so no write is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from memdir.agents.memory_tool.files import ENTRIES_MAX, FILE_MAX_BYTES, Entry, Kind, MemoryToolError, Names, is_hidden
from memdir.agents.memory_tool.paths import shown
from memdir.api import v1
from memdir.client.errors import ClientError, ConflictError, NotFoundError, PreconditionFailedError
from memdir.client.http import Client
from memdir.client.local import ensure_server
from memdir.client.remote import Expect
from memdir.core.ids import new_id
from memdir.core.paths import app_paths

FOLDER: Final = "/memory"
_TRIES_MAX: Final = 20
_PAGES_MAX: Final = 20
"""Of a listing: below a folder with very many files, the first ones are shown."""


class ServerFiles:
    """Files below `/memory` of a container."""

    def __init__(self, client: Client, container: str) -> None:
        self._client = client
        self._container = container

    @classmethod
    def found(cls, container: str) -> ServerFiles:
        """On the server that this user uses, started when it does not run."""
        return cls(Client.to(ensure_server(app_paths())), container)

    def kind(self, names: Names) -> Kind | None:
        if not names:
            return "dir"
        with _told(names):
            return _kind_of(self._entry(names))

    def read(self, names: Names) -> bytes | None:
        with _told(names):
            entry = self._entry(names) if names else None
            return None if entry is None or entry.kind != "file" else self._content(names)[1]

    def create(self, names: Names, content: bytes) -> bool:
        with _told(names):
            try:
                self._put(names, content, Expect(revision=None))
            except (PreconditionFailedError, ConflictError):
                return False
            return True

    def change(self, names: Names, edit: Callable[[bytes], bytes]) -> bool:
        with _told(names):
            for _ in range(_TRIES_MAX):
                entry = self._entry(names) if names else None
                if entry is None or entry.kind != "file":
                    return False
                revision, before = self._content(names)
                try:
                    self._put(names, edit(before), Expect(revision=revision), mode=entry.mode)
                except PreconditionFailedError:
                    continue  # somebody was faster: what they wrote is edited now
                return True
        raise MemoryToolError(f"Error: {shown(names)} is being changed all the time by others; try again")

    def delete(self, names: Names) -> bool:
        with _told(names):
            if _kind_of(self._entry(names)) is None:
                return False
            self._client.delete_file(self._container, _path(names), recursive=True, idempotency_key=new_id())
            return True

    def rename(self, old: Names, new: Names) -> bool:
        with _told(old):
            if self._entry(new) is not None:
                return False
            request = v1.MoveRequest(
                container_tag=self._container, from_path=_path(old), to_path=_path(new), replace=False, idempotency_key=new_id()
            )
            try:
                self._client.move(request)
            except (PreconditionFailedError, ConflictError):
                return False
            return True

    def below(self, names: Names, *, levels: int) -> list[Entry]:
        found: dict[Names, Entry] = {}
        with _told(names):
            for entry in self._listed(names):
                inner = tuple(entry.path.removeprefix(FOLDER + "/").split("/"))
                if len(inner) <= len(names) or any(map(is_hidden, inner[len(names) :])):
                    continue
                for depth in range(len(names) + 1, min(len(inner), len(names) + levels + 1)):  # folders need no entry
                    found.setdefault(inner[:depth], Entry(names=inner[:depth], kind="dir", size_bytes=0))
                kind = _kind_of(entry) if len(inner) <= len(names) + levels else None
                if kind is not None:
                    found[inner] = Entry(names=inner, kind=kind, size_bytes=entry.size_bytes if kind == "file" else 0)
                if len(found) > ENTRIES_MAX:
                    break
        return [found[deep] for deep in sorted(found)]

    def _entry(self, names: Names) -> v1.FileEntry | None:
        """What stands at a path; of a folder that only its contents tell of, one of these."""
        path = _path(names)
        page = self._client.list_files(self._container, prefix=path, limit=1)
        if not page.entries:
            return None
        found = page.entries[0]
        return found if found.path == path else found.model_copy(update={"path": path, "kind": "dir"})

    def _listed(self, names: Names) -> Iterator[v1.FileEntry]:
        after: str | None = None
        for _ in range(_PAGES_MAX):
            page = self._client.list_files(self._container, prefix=_path(names), after=after)
            yield from page.entries
            after = page.next_after
            if after is None:
                return

    def _content(self, names: Names) -> tuple[int, bytes]:
        pieces, size_bytes = [], 0
        with self._client.open_file(self._container, _path(names)) as (revision, content):
            for piece in content:
                pieces.append(piece)
                size_bytes += len(piece)
                if size_bytes > FILE_MAX_BYTES:
                    raise MemoryToolError(f"Error: The file {shown(names)} is larger than {FILE_MAX_BYTES:,} bytes")
        return revision, b"".join(pieces)

    def _put(self, names: Names, content: bytes, expect: Expect, *, mode: int = 0o644) -> None:
        self._client.put_file(
            self._container, _path(names), content, mode=mode, mtime_ns=_now_ns(), expect=expect, idempotency_key=new_id()
        )


def _now_ns() -> int:
    from memdir.core.clock import SystemClock

    return SystemClock().now_ns()


def _path(names: Names) -> str:
    return "/".join((FOLDER, *names))


def _kind_of(entry: v1.FileEntry | None) -> Kind | None:
    if entry is None or entry.kind == "symlink":
        return None
    return entry.kind


@contextmanager
def _told(names: Names) -> Iterator[None]:
    """What the server refuses, in words; the key and the address are not among them."""
    try:
        yield
    except NotFoundError as error:
        raise MemoryToolError(f"Error: The path {shown(names)} does not exist") from error
    except ClientError as error:
        raise MemoryToolError(f"Error: {shown(names)}: {error.message}") from error
