"""The mounted memory as a place of pages for research: earlier notes, and with --memory everything in it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

from memdir.cli.targets import control
from memdir.core.errors import FetchError, MemdirError
from memdir.core.secrets import masked
from memdir.core.web import PAGE_MAX_BYTES, too_large
from memdir.research.web import reader
from memdir.research.web.place import Found

if TYPE_CHECKING:
    from memdir.daemon.registry import MountRecord
    from memdir.research.archive import Page

SCHEME: Final = "memory:"
_ANSWER_TIMEOUT_S: Final = 60.0
_WAIT_MS: Final = 2000


class MemoryPlace:
    """See `memdir.research.web.place.Place`. Searched by meaning, as `memdir grep` does; secrets are masked."""

    def __init__(self, record: MountRecord, scope: str, workspace: str) -> None:
        """`scope` and `workspace` are paths in the mount; what the running research wrote is not found."""
        self._record = record
        self._scope = scope.rstrip("/") or "/"
        self._workspace = workspace

    @property
    def name(self) -> str:
        return f"memory {self._record.name}{'' if self._scope == '/' else ' ' + self._scope}"

    def search(self, query: str, limit: int) -> list[Found]:
        try:
            answer = control(self._record).call(
                "grep",
                _ANSWER_TIMEOUT_S,
                q=query,
                paths=[self._scope],
                limit=min(2 * limit, 50),
                wait_ms=_WAIT_MS,
            )
        except MemdirError as error:
            raise FetchError(error.message, hint=error.hint) from error
        found: dict[str, Found] = {}
        for hit in answer["hits"]:
            path = str(hit["path"])
            if not self._is_own(path) and path not in found:
                found[path] = Found(url=SCHEME + quote(path), title=path.rpartition("/")[2], snippet=masked(str(hit["text"])))
        return list(found.values())[:limit]

    def _is_own(self, path: str) -> bool:
        return bool(self._workspace) and (path == self._workspace or path.startswith(self._workspace.rstrip("/") + "/"))

    def has(self, url: str) -> bool:
        return url.startswith(f"{SCHEME}/")

    def fetch(self, url: str) -> Page:
        path = unquote(url.removeprefix(SCHEME).partition("#")[0])
        inside = self._scope == "/" or path == self._scope or path.startswith(self._scope + "/")
        if not inside or "/../" in f"{path}/" or self._is_own(path):
            raise FetchError(f"{url}: is not in {self.name}")
        at = self._record.path.rstrip("/") + path
        try:
            with open(at, "rb") as file:
                data = file.read(PAGE_MAX_BYTES + 1)
        except OSError as error:
            raise FetchError(f"{url}: {error.strerror}") from error
        if len(data) > PAGE_MAX_BYTES:
            raise too_large(url)
        page = reader.page(url, path.rpartition("/")[2], data)
        return replace(page, text=masked(page.text))
