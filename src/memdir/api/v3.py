"""Supermemory's `/v3`: documents, container tags, search over documents. Shapes follow its published clients.

JSON is camelCase; unknown fields of a request are ignored, so that newer clients keep working.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field
from pydantic.alias_generators import to_camel

from memdir.api.search import Reranking
from memdir.api.v1 import DocumentStatus, Wire
from memdir.core.limits import BATCH_MAX_ITEMS, PATH_MAX_BYTES, QUERY_MAX_CHARS

LIST_LIMIT_MAX = 200
SEARCH_LIMIT_MAX = 100
TAGS_MAX = 100
PAGE_MAX = 1_000_000
METADATA_MAX_BYTES = 64 * 1024
ENTITY_CONTEXT_MAX_CHARS = 1500


def _finite(value: dict[str, Any]) -> dict[str, Any]:
    """JSON knows no NaN, though Python reads it."""
    if len(json.dumps(value, allow_nan=False)) > METADATA_MAX_BYTES:
        raise ValueError(f"metadata can have at most {METADATA_MAX_BYTES} bytes")
    return value


Metadata = Annotated[dict[str, Any], AfterValidator(_finite)]
Tags = Annotated[list[str], Field(max_length=TAGS_MAX)]
Path = Annotated[str, Field(min_length=1, max_length=PATH_MAX_BYTES)]


TaskType = Literal["memory", "superrag"]


class Filters(Wire):
    """A tree of conditions on metadata: leaves `{key, value, filterType, negate, ignoreCase, numericOperator}` under `AND` or
    `OR`, which may nest."""

    AND: list[Any] | None = None
    OR: list[Any] | None = None


def _filters(value: object) -> object:
    """Filters may come as JSON text; one condition alone stands for itself. What is no filter must not pass as none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise ValueError("filters must be an object with AND or OR, or that as JSON text") from None
    if not isinstance(value, dict) or not value or "AND" in value or "OR" in value:
        return value
    if "key" in value:
        return {"AND": [value]}
    raise ValueError("filters must be an object with AND or OR")


Filtering = Annotated[Filters | None, BeforeValidator(_filters)]


class Tagged(Wire):
    """Either spelling of the container."""

    container_tag: str | None = None
    container_tags: Tags | None = None

    @property
    def tag(self) -> str | None:
        """The container asked for, where there can be one only."""
        return self.container_tag or (self.container_tags[0] if self.container_tags else None)

    @property
    def tags(self) -> list[str] | None:
        """The containers asked for; None for all."""
        return self.container_tags or ([self.container_tag] if self.container_tag else None)


class AddDocument(Tagged):
    """POST /v3/documents. The same `customId` or `filepath` again replaces what it holds."""

    content: str
    filepath: Path | None = None
    custom_id: str | None = None
    metadata: Metadata | None = None
    task_type: TaskType | None = None
    """`memory` (the default): memories may be drawn from it; `superrag`: for search only."""


class AddDocuments(Tagged):
    """POST /v3/documents/batch: `documents`, or `contents` for texts alone. What stands beside them is the default of each."""

    documents: Annotated[list[AddDocument | str], Field(max_length=BATCH_MAX_ITEMS)] | None = None
    contents: Annotated[list[str], Field(max_length=BATCH_MAX_ITEMS)] | None = None
    metadata: Metadata | None = None
    task_type: TaskType | None = None


class Added(Wire):
    """One document taken in."""

    id: str
    status: DocumentStatus


class AddedItem(Wire):
    """One item of a batch: an id, or the reason why there is none (the id is empty then)."""

    id: str
    status: Literal["queued", "done", "error"]
    error: str | None = None
    details: str | None = None


class AddedBatch(Wire):
    results: list[AddedItem]
    success: int
    failed: int


class ChangeDocument(Tagged):
    """PATCH /v3/documents/{id}: what is not sent stays. The container cannot change."""

    content: str | None = None
    filepath: Path | None = None
    custom_id: str | None = None
    metadata: Metadata | None = None
    task_type: TaskType | None = None


class MemoryOfDocument(Wire):
    """A memory drawn from a document."""

    id: str
    memory: str
    metadata: dict[str, Any] | None
    version: int
    is_latest: bool
    is_forgotten: bool
    is_static: bool
    is_inference: bool
    parent_memory_id: str | None
    root_memory_id: str | None
    source_count: int
    created_at: str
    updated_at: str


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
    task_type: TaskType = "memory"
    source: str | None = None
    url: str | None = None
    og_image: str | None = None
    raw: Any = None
    dreaming_status: Literal["dreaming", "done"] = "done"
    """Whether memories are still being drawn from it."""
    latest_revision: int
    container_tags: list[str]
    metadata: dict[str, Any] | None
    memories: list[MemoryOfDocument] | None = None
    """Of one document asked for by itself."""
    error_message: str | None = None
    """Of a document that failed."""
    stuck: bool | None = None
    """Among those in the pipeline: nothing happened to it for four hours."""
    created_at: str
    updated_at: str


class ListDocuments(Tagged):
    """POST /v3/documents/list. `filepath` with a trailing slash is a prefix, else exact."""

    filepath: Path | None = None
    limit: Annotated[int, Field(ge=1, le=LIST_LIMIT_MAX)] = 50
    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1
    cursor: Annotated[str, Field(max_length=500)] | None = None
    """The `nextCursor` of the page before, instead of a page number: exact whatever was added or deleted meanwhile."""
    include_content: bool = False
    sort: Literal["createdAt", "updatedAt"] = "createdAt"
    order: Literal["asc", "desc"] = "desc"
    filters: Filtering = None


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
    passages_left: int | None = None
    """Passages of these documents that the transformer has not read yet. Only counted for `view=all`."""
    disk_full: bool = False
    """Whether the server reads none of them until its disk has room."""
    pagination: Pagination | None = None


class DeleteDocuments(Tagged):
    """DELETE /v3/documents/bulk: by ids (or custom ids), or all of some containers (below `filepath`)."""

    ids: Annotated[list[str], Field(max_length=1000)] | None = None
    filepath: Path | None = None


class Deleted(Wire):
    success: bool
    deleted_count: int
    container_tags: list[str] | None = None
    errors: list[dict[str, str]] | None = None


class ContainerSettings(Wire):
    """GET, PATCH /v3/container-tags/{tag}: ours by name, and whatever else a client keeps there."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, frozen=True, extra="allow")

    container_tag: str
    memory_filesystem_paths: list[str]
    created_at: str
    updated_at: str


class ContainerTag(Wire):
    """One of GET /v3/container-tags/list"""

    id: str
    name: str
    container_tag: str
    document_count: int
    memory_count: int
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


class SearchDocuments(Tagged):
    """POST /v3/search. A document scores as its best passage. `chunkThreshold` (without it the server's own) says which
    passages count, `documentThreshold` which documents; both judge the scores before a reranker's. `rerank` puts the best 50
    passages in the order of the reranker that the server was given. `rewriteQuery` changes nothing: no model rewords a query.
    """

    q: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
    filepath: Path | None = None
    limit: Annotated[int, Field(ge=1, le=SEARCH_LIMIT_MAX)] = 10
    document_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    chunk_threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    only_matching_chunks: bool = True
    """Without: also the chunk before and after each match."""
    include_full_docs: bool = False
    include_summary: bool = False
    rerank: bool = False
    rewrite_query: bool = False
    filters: Filtering = None
    doc_id: str | None = None


class ChunkResult(Wire):
    content: str
    score: float
    is_relevant: bool
    position: int
    """In the document, from 0."""


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
    reranking: Reranking | None = None
    """With `rerank`. Not in Supermemory's answers."""
