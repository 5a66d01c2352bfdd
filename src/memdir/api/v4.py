"""Supermemory's `/v4`: search over memories and documents, the profile."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memdir.api.v1 import Wire
from memdir.api.v3 import SEARCH_LIMIT_MAX, Filters, Path, Tags
from memdir.core.limits import QUERY_MAX_CHARS


class Include(Wire):
    """What to send beside each result."""

    documents: bool = False
    related_memories: bool = False
    summaries: bool = False
    chunks: bool = False
    forgotten_memories: bool = False


class SearchMemories(Wire):
    """POST /v4/search"""

    q: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
    container_tag: str | None = None
    container_tags: Tags | None = None
    search_mode: Literal["memories", "documents", "hybrid"] = "memories"
    filepath: Path | None = None
    limit: Annotated[int, Field(ge=1, le=SEARCH_LIMIT_MAX)] = 10
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    rerank: bool = False
    rewrite_query: bool = False
    include: Include = Include()
    filters: Filters | None = None


class ResultDocument(Wire):
    """A document that a result came from."""

    id: str
    title: str | None
    type: str | None
    metadata: dict[str, Any] | None
    created_at: str
    updated_at: str


class MemoryResult(Wire):
    """One hit: `memory` or `chunk` is set."""

    id: str
    memory: str | None = None
    chunk: str | None = None
    similarity: float
    filepath: str | None
    metadata: dict[str, Any] | None
    updated_at: str
    version: int | None = None
    root_memory_id: str | None = None
    documents: list[ResultDocument] | None = None


class MemoryResults(Wire):
    results: list[MemoryResult]
    timing: float
    total: int


class ProfileRequest(Wire):
    """POST /v4/profile"""

    container_tag: str
    q: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)] | None = None
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None


class ProfileFacts(Wire):
    static: list[str]
    dynamic: list[str]


class ProfileAnswer(Wire):
    profile: ProfileFacts
    search_results: MemoryResults | None = None
