"""The only caller of the server: typed `/v1` calls (and the few of `/v3`, `/v4` that a mount needs) over httpx.

Thread-safe. Retries are not made here: whoever calls knows whether a repetition is wanted, and has the idempotency key.
The key is sent in a header and never logged or put into an error.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from memdir.api import v1
from memdir.api.profile import ProfileAnswer
from memdir.client.batches import batch_body
from memdir.client.errors import ClientError, OfflineError, ServerError, from_status
from memdir.client.light_httpx import httpx
from memdir.client.local import ServerInfo
from memdir.client.pipeline import in_pipeline
from memdir.client.remote import Expect, InPipeline, Profile
from memdir.client.tls import context_for
from memdir.core.limits import CHANGES_PAGE_MAX, CHANGES_WAIT_MAX_S

M = TypeVar("M", bound=BaseModel)

TIMEOUT_S: Final = 30.0
CONNECT_TIMEOUT_S: Final = 5.0
ARCHIVE_TIMEOUT_S: Final = 3600.0
"""Silence while the server reads an archive that it was sent, or holds a large container."""
_CONNECTIONS_MAX: Final = 16
_ERROR_TEXT_MAX: Final = 2000
_PIECE_BYTES: Final = 1 << 20
_PAGE_ENTRIES: Final = 250
"""Of a listing or the feed: parsing one is a single step for the interpreter, about a millisecond for so many."""


class Client:
    """Calls to one server with one key."""

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        tls: ssl.SSLContext | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._http = httpx.Client(
            base_url=self.base_url,
            headers={"Authorization": f"Bearer {api_key}", "User-Agent": "memdir"},
            timeout=httpx.Timeout(timeout_s, connect=CONNECT_TIMEOUT_S),
            limits=httpx.Limits(max_connections=_CONNECTIONS_MAX, max_keepalive_connections=_CONNECTIONS_MAX),
            transport=transport or _transport(self.base_url, tls),
            trust_env=False,
            follow_redirects=False,
        )

    @classmethod
    def to(cls, server: ServerInfo, *, timeout_s: float = TIMEOUT_S) -> Client:
        """A client of a server, with the certificates that are believed for it."""
        tls = None
        if server.url.startswith("https:"):
            tls = context_for(ca_file=server.ca_file, pinned_file=server.pinned_file)
        return cls(server.url, server.api_key, timeout_s=timeout_s, tls=tls)

    def close(self) -> None:
        """Close the connections; calls under way fail with OfflineError."""
        self._http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # --- files ---------------------------------------------------------------------------------------------------

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
        """PUT the exact bytes. An iterable is streamed and never held whole. `bulk`: as one of many, read after edits."""
        params = {"containerTag": container, "kind": kind, "mode": str(mode), "mtimeNs": str(mtime_ns)}
        if bulk:
            params["bulk"] = "true"
        headers = {"Content-Type": "application/octet-stream", **_conditions(expect, idempotency_key)}
        return self._call(v1.FileEntry, "PUT", _file_url(path), params=params, headers=headers, content=content)

    @contextmanager
    def open_file(self, container: str, path: str, *, stall_s: float | None = None) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The revision and the bytes of a file, streamed in pieces. OfflineError when nothing comes for `stall_s`."""
        with self._stream(_file_url(path), {"containerTag": container}, stall_s=stall_s) as response:
            yield _revision(response), _pieces(response)

    @contextmanager
    def _stream(
        self, url: str, params: dict[str, str], *, stall_s: float | None = None, keyed: bool = True
    ) -> Iterator[httpx.Response]:
        timeout = httpx.Timeout(stall_s or TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        try:
            request = self._http.build_request("GET", url, params=params or None, timeout=timeout)
            if not keyed:
                del request.headers["Authorization"]
            response = self._http.send(request, stream=True)
            try:
                if response.status_code >= 300:
                    response.read()
                    raise _error(response)
                yield response
            finally:
                response.close()
        except httpx.HTTPError as error:
            raise _offline(error) from error
        except RuntimeError as error:
            if not self._http.is_closed:
                raise
            raise OfflineError(f"the connection was closed: {error}") from error

    def gives_back(self, container: str, path: str, content_hash: str) -> bool:  # noqa: ARG002
        """It keeps every byte: what it says of a path is so."""
        return True

    def read_file(self, container: str, path: str) -> bytes:
        """All bytes of a file."""
        with self.open_file(container, path) as (_, pieces):
            return b"".join(pieces)

    def read_files(self, container: str, paths: Sequence[str]) -> list[bytes | None]:
        """Several small files in one call; None for one that cannot be had so (`Remote`)."""
        found = self._call(v1.ReadResult, "POST", "/v1/files:read", json={"containerTag": container, "paths": [*paths]}).files
        return [None if one.content_base64 is None else base64.b64decode(one.content_base64) for one in found]

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
        params = {"containerTag": container, "recursive": "true" if recursive else "false"}
        headers = _conditions(expect, idempotency_key)
        return self._call(v1.DeleteResult, "DELETE", _file_url(path), params=params, headers=headers)

    def list_files(
        self, container: str, *, prefix: str = "/", after: str | None = None, limit: int = _PAGE_ENTRIES
    ) -> v1.FilesPage:
        """One page of entries in path order."""
        params = {"containerTag": container, "prefix": prefix, "limit": str(limit)}
        if after is not None:
            params["after"] = after
        return self._call(v1.FilesPage, "GET", "/v1/files", params=params)

    def move(self, request: v1.MoveRequest) -> v1.MoveResult:
        """Rename a file or a subtree."""
        return self._call(v1.MoveResult, "POST", "/v1/files:move", json=_body(request))

    def batch(self, container: str, operations: Sequence[v1.BatchOperation], *, bulk: bool = False) -> list[v1.BatchItemResult]:
        """Several operations in order; each result stands for itself. `bulk`: of many files, read after edits."""
        body = batch_body(container, operations, bulk=bulk)
        headers = {"Content-Type": "application/json"}
        results = self._call(v1.BatchResult, "POST", "/v1/files:batch", headers=headers, content=body).results
        if len(results) != len(operations):
            raise ServerError(f"the server answered {len(results)} results for {len(operations)} operations")
        return results

    # --- versions --------------------------------------------------------------------------------------------------

    def versions(
        self, container: str, path: str, *, before: int | None = None, limit: int = CHANGES_PAGE_MAX
    ) -> v1.VersionsPage:
        """Former contents of what stands, or stood last, at `path`, newest first."""
        params = {"containerTag": container, "path": path, "limit": str(limit)}
        return self._page_before(v1.VersionsPage, "/v1/versions", params, before)

    def deleted_versions(
        self, container: str, prefix: str = "/", *, before: int | None = None, limit: int = CHANGES_PAGE_MAX
    ) -> v1.VersionsPage:
        """The last content of each file that was deleted at or below `prefix`, latest deletion first."""
        params = {"containerTag": container, "prefix": prefix, "limit": str(limit)}
        return self._page_before(v1.VersionsPage, "/v1/versions:deleted", params, before)

    def _page_before(self, model: type[M], url: str, params: dict[str, str], before: int | None) -> M:
        return self._call(model, "GET", url, params=params if before is None else params | {"before": str(before)})

    def standing_at(self, container: str, prefix: str, at: str) -> Iterator[v1.PastPage]:
        """What stood at and below `prefix` at a moment (ISO 8601), page by page."""
        after: str | None = ""
        while after is not None:
            params = {"containerTag": container, "prefix": prefix, "at": at} | ({"after": after} if after else {})
            page = self._call(v1.PastPage, "GET", "/v1/versions:at", params=params)
            yield page
            after = page.next_after

    def history(
        self, container: str, prefix: str, *, before: int | None = None, limit: int = CHANGES_PAGE_MAX
    ) -> v1.HistoryPage:
        """Changes at and below a folder, newest first."""
        params = {"containerTag": container, "prefix": prefix, "limit": str(limit)}
        return self._page_before(v1.HistoryPage, "/v1/versions:changes", params, before)

    @contextmanager
    def open_version(self, container: str, version: int) -> Iterator[Iterator[bytes]]:
        """The exact bytes of a version, streamed in pieces."""
        with self._stream(f"/v1/versions/{version}", {"containerTag": container}) as response:
            yield _pieces(response)

    def restore_version(self, request: v1.RestoreRequest) -> v1.FileEntry:
        """Make a version the newest content."""
        return self._call(v1.FileEntry, "POST", "/v1/versions:restore", json=_body(request))

    # --- archives --------------------------------------------------------------------------------------------------

    @contextmanager
    def export(self, container: str, *, form: v1.ArchiveFormat, prefix: str = "/") -> Iterator[Iterator[bytes]]:
        """A container (what is at and below `prefix`) as an archive, streamed in pieces. OfflineError when it breaks off."""
        params = {"containerTag": container, "format": form, "prefix": prefix}
        with self._stream("/v1/export", params, stall_s=ARCHIVE_TIMEOUT_S) as response:
            yield _pieces(response)

    def take_over(
        self, container: str, archive: Iterable[bytes], *, merge: v1.MergePolicy = "fail", all_links: bool = False
    ) -> v1.ImportResult:
        """Send an archive and wait until the server has taken it over."""
        params = {"containerTag": container, "merge": merge, "links": "all" if all_links else "inside"}
        headers = {"Content-Type": "application/octet-stream"}
        timeout = httpx.Timeout(ARCHIVE_TIMEOUT_S, connect=CONNECT_TIMEOUT_S)
        return self._call(
            v1.ImportResult, "POST", "/v1/import", params=params, headers=headers, content=archive, timeout=timeout
        )

    # --- feed, search, profile -----------------------------------------------------------------------------------

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
        """Changes behind `since`; with `wait_s` the call may take that long."""
        wait_s = min(wait_s, CHANGES_WAIT_MAX_S)
        params = {"containerTag": container, "since": str(since), "wait": f"{wait_s:g}", "limit": str(_PAGE_ENTRIES)}
        optional = {"token": token or None, "profileSince": profile_since, "siblingsSince": siblings_since}
        params |= {name: str(value) for name, value in optional.items() if value is not None}
        timeout = httpx.Timeout(wait_s + 15.0, connect=CONNECT_TIMEOUT_S)
        return self._call(v1.ChangesPage, "GET", "/v1/changes", params=params, timeout=timeout)

    def search(self, request: v1.SearchRequest) -> v1.SearchResponse:
        """Ranked lines."""
        timeout = httpx.Timeout(request.wait_ms / 1000 + 15.0, connect=CONNECT_TIMEOUT_S)
        return self._call(v1.SearchResponse, "POST", "/v1/search", json=_body(request), timeout=timeout)

    def siblings(self, container: str, *, since: int) -> v1.SiblingsPage:
        """Texts beside files that came, changed or went behind number `since`."""
        return self._call(v1.SiblingsPage, "GET", "/v1/siblings", params={"containerTag": container, "since": str(since)})

    def sibling_text(self, container: str, content_hash: str) -> bytes:
        """The text beside files with these contents, without its first lines."""
        params = {"containerTag": container, "contentHash": content_hash}
        return self._request("GET", "/v1/siblings/text", params=params).content

    def processing_count(self, container: str) -> int:
        """How many documents of the container are neither done nor failed."""
        answer = self._json("GET", "/v3/documents/processing", params={"containerTag": container})
        count = answer.get("totalCount")
        if not isinstance(count, int):
            raise ServerError("the server's answer about processing documents has no totalCount")
        return count

    def in_pipeline(self, container: str) -> InPipeline:
        """All documents that are still processed or failed, by one question (at most 1,000 of them)."""
        answer = self._json("GET", "/v3/documents/processing", params={"containerTag": container, "view": "all"})
        return in_pipeline(answer)

    def retry_document(self, container: str, document_id: str) -> int:
        """Put the work on a document back that was given up."""
        body = {"documentId": document_id, "containerTag": container}
        return self._call(v1.RetryResult, "POST", "/v1/jobs:retry", json=body).requeued

    def profile(self, container: str) -> Profile:
        """The facts of the container's profile."""
        known = self._call(ProfileAnswer, "GET", "/v1/profile", params={"containerTag": container})
        pages = {page.name: page.text for page in known.pages}
        return Profile(static=tuple(known.static), dynamic=tuple(known.dynamic), pages=pages)

    def plain_profile(self, container: str) -> Profile:
        """The same of a server that has no /v1."""
        return Profile.of_v4(self._json("POST", "/v4/profile", json={"containerTag": container}))

    def container_settings(self, container: str) -> dict[str, Any]:
        """The settings of a container; NotFoundError when there is none (most other calls make it by being asked)."""
        return self._json("GET", f"/v3/container-tags/{quote(container, safe='')}")

    def change_settings(self, container: str, changes: dict[str, Any]) -> dict[str, Any]:
        """Merge `changes` into the settings of a container, which is made if need be; all settings as they are then."""
        return self._json("PATCH", f"/v3/container-tags/{quote(container, safe='')}", json=changes)

    def delete_container(self, container: str) -> None:
        """Delete a container with everything in it, for good."""
        self._request("DELETE", f"/v3/container-tags/{quote(container, safe='')}")

    def capabilities(self) -> v1.Capabilities:
        """What the server can do."""
        return self._call(v1.Capabilities, "GET", "/v1/capabilities")

    def health(self) -> v1.Health:
        """Whether the server lives; needs no key."""
        return self._call(v1.Health, "GET", "/healthz")

    # --- calls of other families -----------------------------------------------------------------------------------

    def ask(self, method: str, url: str, **arguments: Any) -> dict[str, Any]:
        """Any call that answers with an object; `arguments` are httpx's."""
        return self._json(method, url, **arguments)

    def send(self, method: str, url: str, **arguments: Any) -> None:
        """Any call whose answer says nothing but that it was done."""
        self._request(method, url, **arguments)

    @contextmanager
    def download(self, address: str, *, keyed: bool, stall_s: float | None = None) -> Iterator[Iterator[bytes]]:
        """The bytes at an address, which may be another host's: the key goes along only when `keyed`."""
        with self._stream(address, {}, stall_s=stall_s, keyed=keyed) as response:
            yield _pieces(response)

    # --- plumbing ------------------------------------------------------------------------------------------------

    def _call(self, model: type[M], method: str, url: str, **arguments: Any) -> M:
        response = self._request(method, url, **arguments)
        try:
            return model.model_validate_json(response.content)
        except ValidationError as error:
            raise ServerError(f"the server's answer to {method} {url} has another shape than expected") from error

    def _json(self, method: str, url: str, **arguments: Any) -> dict[str, Any]:
        try:
            answer = self._request(method, url, **arguments).json()
        except ValueError as error:
            raise ServerError(f"the server's answer to {method} {url} is not JSON") from error
        if not isinstance(answer, dict):
            raise ServerError(f"the server's answer to {method} {url} is not an object")
        return answer

    def _request(self, method: str, url: str, **arguments: Any) -> httpx.Response:
        try:
            response = self._http.request(method, url, **arguments)
            response.stream = httpx.ByteStream(b"")  # theirs refers to the response: both would stay until a full collection
        except httpx.HTTPError as error:
            raise _offline(error) from error
        except RuntimeError as error:  # httpx: the client was closed under us
            raise OfflineError(f"the connection was closed: {error}") from error
        if response.status_code >= 300:
            raise _error(response)
        return response


def _transport(base_url: str, tls: ssl.SSLContext | None) -> httpx.HTTPTransport:
    verify = tls or (context_for() if base_url.startswith("https:") else False)
    return httpx.HTTPTransport(limits=httpx.Limits(max_connections=_CONNECTIONS_MAX), verify=verify)


def inline(content: bytes) -> str:
    """Contents as a batch operation carries them."""
    return base64.b64encode(content).decode("ascii")


def item_error(result: v1.BatchItemResult) -> ClientError | None:
    """The error of one batch item, None when it succeeded."""
    if result.status < 300:
        return None
    return from_status(result.status, result.error or "refused", current=result.entry)


def _file_url(path: str) -> str:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} is not absolute")
    return "/v1/files" + quote(path, safe="/")


def _conditions(expect: Expect | None, idempotency_key: str | None) -> dict[str, str]:
    headers = {}
    if expect is not None:
        if expect.revision is None:
            headers["If-None-Match"] = "*"
        else:
            headers["If-Match"] = f'"{expect.revision}"'
    if idempotency_key is not None:
        headers["Idempotency-Key"] = idempotency_key
    return headers


def _body(model: BaseModel) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _revision(response: httpx.Response) -> int:
    try:
        return int(response.headers.get("ETag", "").removeprefix("W/").strip('"'))
    except ValueError as error:
        raise ServerError("the server sent a file without its revision") from error


def _pieces(response: httpx.Response) -> Iterator[bytes]:
    yield from response.iter_bytes(_PIECE_BYTES)


def _offline(error: httpx.HTTPError) -> OfflineError:
    reason = str(error) or type(error).__name__
    return OfflineError(f"the server does not answer: {reason}", hint="`memdir server status` shows the local server")


def _error(response: httpx.Response) -> ClientError:
    message, current = "", None
    try:
        body = response.json()
    except ValueError:
        body = None
    if isinstance(body, dict):
        message = str(body.get("error") or "")[:_ERROR_TEXT_MAX]
        if response.status_code == 412 and isinstance(body.get("current"), dict):
            try:
                current = v1.FileEntry.model_validate(body["current"])
            except ValidationError as error:
                return ServerError(f"the server sent a 412 that cannot be read: {error.error_count()} fields")
    message = message or response.reason_phrase or "the server refused"
    return from_status(response.status_code, message, current=current, retry_after=response.headers.get("Retry-After"))
