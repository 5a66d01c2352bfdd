"""What a mount asks of its server, whatever speaks behind it: our own `/v1`, another API translated into it, or a simulation.

`http.Client` is the first of them. Every method raises `ClientError` and its kinds (`client.errors`) as that one does; all are
called from several threads at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from memdir.api import v1
from memdir.client.errors import ServerError


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """The precondition of a write: at this revision, or nothing there (`revision` None)."""

    revision: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What is known of a container's owner: lasting facts and recent ones."""

    static: tuple[str, ...]
    dynamic: tuple[str, ...]
    pages: Mapping[str, str] = field(default_factory=dict)
    """Longer texts by file name, where the server makes them: the folder `profile/`."""

    @staticmethod
    def of_v4(answer: Mapping[str, Any]) -> Profile:
        """Of an answer of `/v4/profile`. ServerError when it has none."""
        profile = answer.get("profile")
        if not isinstance(profile, dict):
            raise ServerError("the server's answer has no profile")
        return Profile(static=_texts(profile.get("static")), dynamic=_texts(profile.get("dynamic")))


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class InPipeline:
    """Documents of a container that are not done, by id."""

    pending: frozenset[str]
    failed: Mapping[str, str]
    """With the reason."""
    complete: bool
    """Whether these are all; else there are more than one answer holds."""
    total: int = 0
    """How many there are."""
    passages_left: int | None = None
    """Passages of them that the transformer has not read yet; None where the server does not say."""
    disk_full: bool = False
    """Whether the server reads none of them until its disk has room."""


class Remote(Protocol):
    """One container-keeping server. The words are those of `memdir.api.v1`."""

    @property
    def base_url(self) -> str: ...

    def close(self) -> None:
        """End; calls under way fail with OfflineError."""
        ...

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
        """Changes behind `since` in their order; waits up to `wait_s` for the first. CursorGoneError when it reaches not so
        far back; ConflictError when `token` (of the page that led to `since`) belongs to another history."""
        ...

    def siblings(self, container: str, *, since: int) -> v1.SiblingsPage:
        """Texts beside files that came, changed or went behind number `since`."""
        ...

    def sibling_text(self, container: str, content_hash: str) -> bytes:
        """The text beside files with these contents, without its first lines. NotFoundError."""
        ...

    def list_files(self, container: str, *, prefix: str = "/", after: str | None = None, limit: int = ...) -> v1.FilesPage:
        """One page of entries in path order."""
        ...

    def open_file(
        self, container: str, path: str, *, stall_s: float | None = None
    ) -> AbstractContextManager[tuple[int, Iterator[bytes]]]:
        """The revision and the bytes of a file, in pieces. OfflineError when nothing comes for `stall_s`."""
        ...

    def read_files(self, container: str, paths: Sequence[str]) -> list[bytes | None]:
        """The bytes of several small files in one call; None for one that cannot be had so: a folder, none, or too large.
        At most READ_MAX_ITEMS paths."""
        ...

    def gives_back(self, container: str, path: str, content_hash: str) -> bool:
        """Whether exactly these bytes can be had again from the server's `path`; asked before the only other copy goes."""
        ...

    # --- changes -------------------------------------------------------------------------------------------------

    def batch(self, container: str, operations: Sequence[v1.BatchOperation], *, bulk: bool = False) -> list[v1.BatchItemResult]:
        """Several operations in order; each result stands for itself. `bulk`: of many files, read after edits."""
        ...

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
        bulk: bool = False,
    ) -> v1.FileEntry:
        """Put the exact bytes; an iterable is streamed."""
        ...

    def delete_file(
        self,
        container: str,
        path: str,
        *,
        recursive: bool = False,
        expect: Expect | None = None,
        idempotency_key: str | None = None,
    ) -> v1.DeleteResult:
        """Delete what stands at `path`; a folder with something in it only when `recursive`."""
        ...

    def move(self, request: v1.MoveRequest) -> v1.MoveResult:
        """Rename a file or a subtree in one step."""
        ...

    # --- former contents -----------------------------------------------------------------------------------------

    def versions(self, container: str, path: str, *, before: int | None = None, limit: int = ...) -> v1.VersionsPage:
        """Former contents of what stands, or stood last, at `path`, newest first."""
        ...

    def open_version(self, container: str, version: int) -> AbstractContextManager[Iterator[bytes]]:
        """The exact bytes of a version, in pieces."""
        ...

    # --- beside the sync -----------------------------------------------------------------------------------------

    def search(self, request: v1.SearchRequest) -> v1.SearchResponse:
        """Ranked lines."""
        ...

    def processing_count(self, container: str) -> int:
        """How many documents of the container are neither done nor failed."""
        ...

    def in_pipeline(self, container: str) -> InPipeline:
        """All documents that are still processed or failed, by one question."""
        ...

    def retry_document(self, container: str, document_id: str) -> int:
        """Let the server try a document again that failed; how many pieces of work that are."""
        ...

    def profile(self, container: str) -> Profile:
        """The facts of the container's profile."""
        ...

    def container_settings(self, container: str) -> dict[str, Any]:
        """The settings of a container, by the names of the v3 API."""
        ...

    def change_settings(self, container: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Merge `changes` into the settings of a container, which is made if need be; all settings as they are then."""
        ...
