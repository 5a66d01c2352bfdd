"""Memories of agents, as commands, hooks and tools ask the server for them: one JSON call each, standard library alone.

The answers are the dictionaries of the wire (`api.agents`), with their camelCase names; the types here say what is in them
without importing pydantic. LightCallError when the server refuses or is not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict, cast
from urllib.parse import quote

from memdir.client.light import call
from memdir.client.local import ServerInfo

if TYPE_CHECKING:
    from memdir.agents.project import Project

ENV_CONTAINER: Final = "MEMDIR_AGENT_CONTAINER"
CONTAINER_DEFAULT: Final = "agents"
TIMEOUT_S: Final = 30.0
BY_USER: Final = "user"
_HOST_MARKS: Final = (
    ("CLAUDECODE", "claude-code"), ("CODEX_SANDBOX", "codex"), ("CODEX_THREAD_ID", "codex"), ("GEMINI_CLI", "gemini"),
    ("CURSOR_AGENT", "cursor"), ("OPENCODE", "opencode"),
)  # fmt: skip
"""What hosts set for the commands that their agents run."""
IMPORT_ITEMS: Final = 500
"""Of one call, as the wire bounds it."""
PAGE_ITEMS: Final = 100


class Memory(TypedDict):
    """`api.agents.AgentMemory`."""

    id: str
    path: str
    content: str
    tags: list[str]
    project: str | None
    createdAt: str
    updatedAt: str
    accessCount: int
    storedBy: str
    isTrusted: bool
    confirmedAt: str | None
    seen: int
    mayReplace: str | None
    isProposed: bool
    metadata: dict[str, Any]


class Duplicate(TypedDict):
    """`api.agents.Duplicate`."""

    id: str
    similarity: float


class Superseded(TypedDict):
    """`api.agents.Superseded`."""

    id: str
    content: str
    why: str


class Stored(TypedDict):
    """`api.agents.StoreResult`."""

    memories: list[Memory]
    duplicates: list[Duplicate]
    superseded: list[Superseded]
    redacted: list[str]


class Page(TypedDict):
    """`api.agents.MemoriesPage`."""

    memories: list[Memory]
    nextAfter: str | None
    total: int


class Hit(TypedDict):
    """`api.agents.AgentHit`; `signals` by their names."""

    memory: Memory
    score: float
    signals: dict[str, float | None]
    bm25Raw: float
    matched: list[str]


class Found(TypedDict):
    """`api.agents.AgentSearchResponse`."""

    results: list[Hit]
    closest: list[Hit]
    terms: list[str]
    tookMs: float


class Told(TypedDict):
    """`api.agents.ContextResponse`."""

    context: str
    memoryIds: list[str]
    paths: list[str]
    leftOut: int


class Question(TypedDict):
    """`api.agents.ReviewQuestion`."""

    kind: str
    memory: Memory
    other: Memory | None


class Imported(TypedDict):
    """`api.agents.ImportOutcome`."""

    created: int
    duplicates: int
    kept: int
    refused: list[str]


def stored_by() -> str:
    """Who runs a command: `agent HOST` below a host that says so in the environment, else `user`."""
    found = next((host for name, host in _HOST_MARKS if os.environ.get(name, "").strip() not in ("", "0")), None)
    return BY_USER if found is None else f"agent {found}"


def agent_container(chosen: str | None = None) -> str:
    """The container of agents' memories: the one chosen, MEMDIR_AGENT_CONTAINER, or `agents`."""
    return chosen or os.environ.get(ENV_CONTAINER, "").strip() or CONTAINER_DEFAULT


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentMemories:
    """The memories of one container on one server."""

    server: ServerInfo
    container: str = CONTAINER_DEFAULT
    timeout_s: float = TIMEOUT_S
    """Bounds each wait for data."""

    def store(
        self,
        content: str,
        *,
        tags: Sequence[str] = (),
        project: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        stored_by: str = BY_USER,
        trusted: bool = True,
        supersedes: Sequence[str] = (),
        secrets: str = "refuse",
        idempotency_key: str | None = None,
    ) -> Stored:
        """Remember. `trusted`: not learnt from what others wrote. `supersedes`: ids of what it replaces. `secrets`:
        `refuse` or `redact`. The same key with the same content happens once."""
        body = {
            "content": content,
            "tags": list(tags),
            "project": project,
            "metadata": dict(metadata or {}),
            "storedBy": stored_by,
            "trusted": trusted,
            "supersedes": list(supersedes),
            "secrets": secrets,
            "idempotencyKey": idempotency_key,
        }
        return cast("Stored", self._post("/v1/agents/memories", body))

    def search(
        self,
        query: str,
        *,
        project: str | None = None,
        tags: Sequence[str] = (),
        only_project: bool = False,
        only_tags: bool = False,
        limit: int = 5,
        threshold: float | None = None,
        semantic: bool = True,
        weights: Mapping[str, float] | None = None,
        record: bool = True,
    ) -> Found:
        """Ranked. `weights` by the names of `api.agents.Weights`."""
        body = {
            "q": query,
            "project": project,
            "tags": list(tags),
            "onlyProject": only_project,
            "onlyTags": only_tags,
            "limit": limit,
            "threshold": threshold,
            "semantic": semantic,
            "weights": None if weights is None else dict(weights),
            "record": record,
        }
        return cast("Found", self._post("/v1/agents/search", body))

    def context(self, **request: Any) -> Told:
        """The block for a hook; the names are those of `api.agents.ContextRequest` in camelCase."""
        return cast("Told", self._post("/v1/agents/context", request))

    def get(self, memory_id: str) -> Memory:
        """One memory by its id."""
        return cast("Memory", self._get(self._of(memory_id)))

    def edit(
        self,
        memory_id: str,
        *,
        content: str | None = None,
        tags: Sequence[str] | None = None,
        project: str | None = None,
        stored_by: str = BY_USER,
        secrets: str = "refuse",
    ) -> Memory:
        """Change what is not None."""
        body = {
            "containerTag": self.container,
            "content": content,
            "tags": None if tags is None else list(tags),
            "project": project,
            "storedBy": stored_by,
            "secrets": secrets,
        }
        return cast("Memory", self._call("PATCH", self._of(memory_id), body=body))

    def confirm(self, memory_id: str, *, stored_by: str = BY_USER) -> Memory:
        """It holds."""
        body = {"storedBy": stored_by}
        return cast("Memory", self._post(f"{self._of(memory_id)}/confirm", body))

    def review(self, *, project: str | None = None, limit: int = 20) -> tuple[list[Question], int]:
        """What is to be decided, oldest first, and how much of that there is."""
        page = self._get("/v1/agents/review", project=project, limit=str(limit))
        return page["questions"], page["total"]

    def history(self, memory_id: str) -> dict[str, Any]:
        """`api.agents.MemoryHistory`."""
        return self._get(f"{self._of(memory_id)}/history")

    def folder_of(self, project: Project | None, *, remember: bool = False) -> str | None:
        """What the server calls a project: the name of its folder. With `remember` that stays so."""
        if project is None or not project.keys:
            return None if project is None else project.name
        body = {"name": project.name, "keys": list(project.keys), "remember": remember}
        return cast("str | None", self._post("/v1/agents/project", body)["project"])

    def profile(self, *, project: str | None, limit: int = 5) -> dict[str, Any]:
        """`api.agents.AgentProfile`."""
        return self._get("/v1/agents/profile", project=project, limit=str(limit))

    def delete(self, memory_id: str) -> None:
        """For good."""
        self._call("DELETE", self._of(memory_id), params={"containerTag": self.container})

    def page(
        self,
        *,
        project: str | None = None,
        tag: str | None = None,
        after: str | None = None,
        limit: int = 20,
        oldest_first: bool = False,
        personal: bool = False,
    ) -> Page:
        """Newest first, or the other way round. `personal`: besides a project's those of none."""
        found = self._get(
            "/v1/agents/memories", project=project, tag=tag, after=after, limit=str(limit),
            oldestFirst="true" if oldest_first else None, personal="true" if personal else None,
        )  # fmt: skip
        return cast("Page", found)

    def all(self, *, project: str | None = None, tag: str | None = None, oldest_first: bool = False) -> Iterator[Memory]:
        """Every memory, page by page."""
        after: str | None = None
        while True:
            page = self.page(project=project, tag=tag, after=after, limit=PAGE_ITEMS, oldest_first=oldest_first)
            yield from page["memories"]
            after = page["nextAfter"]
            if after is None:
                return

    def bring_in(self, items: Sequence[Mapping[str, Any]], *, propose: bool = False, secrets: str = "redact") -> Imported:
        """Import at most IMPORT_ITEMS items, as `api.agents.ImportItem` says them. `propose`: into the inbox."""
        body = {"items": [dict(item) for item in items], "propose": propose, "secrets": secrets}
        return cast("Imported", self._post("/v1/agents/memories:import", body))

    def stats(self) -> dict[str, Any]:
        """`api.agents.AgentStats`."""
        return self._get("/v1/agents/stats")

    def usage(self, *, days: int = 7) -> dict[str, Any]:
        """`api.agents.Usage`."""
        return self._get("/v1/agents/usage", days=str(days))

    def _of(self, memory_id: str) -> str:
        return f"/v1/agents/memories/{quote(memory_id, safe='')}"

    def _get(self, path: str, **given: str | None) -> dict[str, Any]:
        params = {name: value for name, value in given.items() if value is not None}
        return self._call("GET", path, params={"containerTag": self.container, **params})

    def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._call("POST", path, body={"containerTag": self.container, **body})

    def _call(
        self, method: str, path: str, *, params: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        return call(self.server, method, path, params=params, body=body, timeout_s=self.timeout_s)
