"""Supermemory's `/v3`: documents, container tags, search over documents. Shapes follow its published clients.

JSON is camelCase; unknown fields of a request are ignored, so that newer clients keep working.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from memdir.api.v1 import DocumentStatus, Wire
from memdir.core.limits import BATCH_MAX_ITEMS, PATH_MAX_BYTES, QUERY_MAX_CHARS

LIST_LIMIT_MAX = 200
SEARCH_LIMIT_MAX = 100
TAGS_MAX = 100
PAGE_MAX = 1_000_000
METADATA_MAX_BYTES = 64 * 1024


def _finite(value: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN, though Python reads it."""
    if len(json.dumps(value, allow_nan=False)) > METADATA_MAX_BYTES:
        raise ValueError(f"metadata can have at most {METADATA_MAX_BYTES} bytes")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_finite)]
Tags = Annotated[list[str], Field(max_length=TAGS_MAX)]
Path = Annotated[str, Field(min_length=1, max_length=PATH_MAX_BYTES)]


class Filters(Wire):
    """A tree of conditions on metadata: leaves under `AND` or `OR`, which may nest."""

    AND: list[Any] | None = None
    OR: list[Any] | None = None


class AddDocument(Wire):
    """POST /v3/documents. The same `customId` or `filepath` again replaces what it holds."""

    content: str
    container_tag: str | None = None
    container_tags: Tags | None = None
    filepath: Path | None = None
    custom_id: str | None = None
    metadata: Metadata | None = None

    @property
    def tag(self) -> str | None:
        """The container asked for."""
        return self.container_tag or (self.container_tags[0] if self.container_tags else None)


class AddDocuments(Wire):
    """POST /v3/documents/batch: `documents`, or `contents` for texts alone."""

    documents: Annotated[list[AddDocument | str], Field(max_length=BATCH_MAX_ITEMS)] | None = None
    contents: Annotated[list[str], Field(max_length=BATCH_MAX_ITEMS)] | None = None
    container_tag: str | None = None
    container_tags: Tags | None = None
    metadata: Metadata | None = None


class Added(Wire):
    """One document taken in."""

    id: str
    status: DocumentStatus


class AddedItem(Wire):
    """One item of a batch: an id, or the reason why there is none."""

    id: str | None
    status: Literal["queued", "done", "error"]
    error: str | None = None
    details: str | None = None


class AddedBatch(Wire):
    results: list[AddedItem]
    success: int
    failed: int


class ChangeDocument(Wire):
    """PATCH /v3/documents/{id}: what is not sent stays."""

    content: str | None = None
    filepath: Path | None = None
    custom_id: str | None = None
    metadata: Metadata | None = None


class DocumentView(Wire):
    """A document as clients see it."""

    id: str
    custom_id: str | None
    connection_id: str | None = None
    filepath: str | None
    title: str | None
    summary: str | None = None
    content: str | None = None
    status: DocumentStatus
    error: str | None = None
    type: str
    task_type: Literal["memory", "superrag"] = "memory"
    source: str | None = None
    url: str | None = None
    og_image: str | None = None
    raw: Any = None
    dreaming_status: str | None = None
    latest_revision: int
    container_tags: list[str]
    metadata: dict[str, Any] | None
    memories: list[dict[str, Any]] | None = None
    created_at: str
    updated_at: str


class ListDocuments(Wire):
    """POST /v3/documents/list. `filepath` with a trailing slash is a prefix, else exact."""

    container_tags: Tags | None = None
    filepath: Path | None = None
    limit: Annotated[int, Field(ge=1, le=LIST_LIMIT_MAX)] = 50
    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1
    cursor: Annotated[str, Field(max_length=500)] | None = None
    """The `nextCursor` of the page before, instead of a page number: exact whatever was added or deleted meanwhile."""
    include_content: bool = False
    sort: Literal["createdAt", "updatedAt"] = "createdAt"
    order: Literal["asc", "desc"] = "desc"
    filters: Filters | None = None


class Pagination(Wire):
    current_page: int
    limit: int
    total_items: int
    total_pages: int
    next_cursor: str | None = None
    """Of the next page; null on the last one. Not in Supermemory's answers."""


class DocumentPage(Wire):
    memories: list[DocumentView]
    pagination: Pagination


class Processing(Wire):
    """GET /v3/documents/processing"""

    documents: list[DocumentView]
    total_count: int


class DeleteDocuments(Wire):
    """DELETE /v3/documents/bulk: by ids, or all of some containers (below `filepath`)."""

    ids: Annotated[list[str], Field(max_length=1000)] | None = None
    container_tags: Tags | None = None
    filepath: Path | None = None


class Deleted(Wire):
    success: bool
    deleted_count: int
    errors: list[dict[str, str]] | None = None


class ContainerSettings(Wire):
    """GET, PATCH /v3/container-tags/{tag}: ours by name, and whatever else a client keeps there."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="allow")

    container_tag: str
    memory_filesystem_paths: list[str]
    created_at: str
    updated_at: str


class Organisation(Wire):
    id: str
    name: str


class User(Wire):
    id: str
    name: str
    email: str


class SessionKey(Wire):
    """The key that asks, without its secret."""

    id: str
    name: str
    containers: list[str]
    """Tags; one that ends in `*` stands for all that begin so."""
    actions: list[str]
    prefix: str
    """The folder that it opens; `/` is everything."""
    expires_at: str | None


class Session(Wire):
    """GET /v3/session"""

    org: Organisation
    user: User
    plan: str
    key: SessionKey


class SearchDocuments(Wire):
    """POST /v3/search"""

    q: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
    container_tags: Tags | None = None
    container_tag: str | None = None
    filepath: Path | None = None
    limit: Annotated[int, Field(ge=1, le=SEARCH_LIMIT_MAX)] = 10
    document_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    chunk_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    only_matching_chunks: bool = True
    include_full_docs: bool = False
    include_summary: bool = False
    rerank: bool = False
    rewrite_query: bool = False
    filters: Filters | None = None
    doc_id: str | None = None


class ChunkResult(Wire):
    content: str
    score: float
    is_relevant: bool


class DocumentResult(Wire):
    document_id: str
    title: str | None
    type: str | None
    filepath: str | None
    score: float
    chunks: list[ChunkResult]
    content: str | None = None
    summary: str | None = None
    metadata: dict[str, Any] | None
    created_at: str
    updated_at: str


class DocumentResults(Wire):
    results: list[DocumentResult]
    timing: float
    total: int
