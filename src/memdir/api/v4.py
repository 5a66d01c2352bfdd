"""Supermemory's `/v4`: search over memories and documents, the profile, memories themselves, conversations."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field

from memdir.api.search import Reranking
from memdir.api.v1 import DocumentStatus, Wire
from memdir.api.v3 import (
    LIST_LIMIT_MAX,
    PAGE_MAX,
    SEARCH_LIMIT_MAX,
    Filtering,
    MemoryOfDocument,
    Metadata,
    Pagination,
    Path,
    Tagged,
)
from memdir.core.limits import QUERY_MAX_CHARS

MEMORIES_MAX = 100
MEMORY_MAX_CHARS = 10_000
REASON_MAX_CHARS = 1000
MESSAGES_MAX = 1000
CONVERSATION_ID_MAX_CHARS = 255
BUCKETS_MAX = 50

Text = Annotated[str, Field(min_length=1, max_length=MEMORY_MAX_CHARS)]
Query = Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
Threshold = Annotated[float, Field(ge=0, le=1)]


class Include(Wire):
    """What to send beside each result."""

    documents: bool = False
    related_memories: bool = False
    summaries: bool = False
    chunks: bool = False
    """Passages of the documents that a memory was read in, inside the memory's result."""
    forgotten_memories: bool = False


class SearchMemories(Tagged):
    """POST /v4/search. Memories, passages of documents, or both in one list. `threshold` (without it the server's own) judges
    the similarity before a reranker's. `rerank` puts the best 50 results in the order of the reranker that the server was
    given. `rewriteQuery` and `aggregate` change nothing: no model rewords a query or makes up an answer."""

    q: Query
    search_mode: Literal["memories", "documents", "hybrid"] = "memories"
    filepath: Path | None = None
    limit: Annotated[int, Field(ge=1, le=SEARCH_LIMIT_MAX)] = 10
    threshold: Threshold | None = None
    rerank: bool = False
    rewrite_query: bool = False
    aggregate: bool = False
    include: Include = Include()
    filters: Filtering = None


class ResultDocument(Wire):
    """A document that a result came from."""

    id: str
    title: str | None = None
    type: str | None = None
    metadata: dict[str, Any] | None = None
    summary: str | None = None
    created_at: str
    updated_at: str


class ResultChunk(Wire):
    """A passage beside a memory."""

    content: str
    document_id: str
    position: int


class Relative(Wire):
    """A memory that stands in a relation to a result; `version` counts from the result: -1 is its parent."""

    id: str
    memory: str
    relation: Literal["updates", "extends", "derives"]
    version: int | None = None
    metadata: dict[str, Any] | None = None
    updated_at: str


class Context(Wire):
    """Earlier and later versions, and what extends it or was derived from it."""

    parents: list[Relative]
    children: list[Relative]
    related: list[Relative]


class MemoryResult(Wire):
    """One hit: `memory` or `chunk` is set."""

    id: str
    memory: str | None = None
    chunk: str | None = None
    similarity: float
    filepath: str | None = None
    metadata: dict[str, Any] | None
    updated_at: str
    version: int | None = None
    root_memory_id: str | None = None
    is_forgotten: bool | None = None
    """Among results with forgotten memories."""
    context: Context | None = None
    documents: list[ResultDocument] | None = None
    chunks: list[ResultChunk] | None = None


class MemoryResults(Wire):
    results: list[MemoryResult]
    timing: float
    total: int
    reranking: Reranking | None = None
    """With `rerank`. Not in Supermemory's answers."""


class ProfileRequest(Tagged):
    """POST /v4/profile"""

    q: Query | None = None
    threshold: Threshold | None = None
    filters: Filtering = None
    include: list[Literal["static", "dynamic", "buckets"]] | None = None
    buckets: Annotated[list[str], Field(max_length=BUCKETS_MAX)] | None = None


class ProfileFacts(Wire):
    """The sections asked for."""

    static: list[str] | None = None
    dynamic: list[str] | None = None
    buckets: dict[str, list[str]] | None = None


class ProfileAnswer(Wire):
    profile: ProfileFacts
    search_results: MemoryResults | None = None


class TemporalContext(Wire):
    """When something was written down, and when it happens; kept in the memory's metadata."""

    document_date: str | None = None
    event_date: list[str] | None = None


class NewMemory(Wire):
    """One statement, as it shall be remembered."""

    content: Text
    is_static: bool = False
    metadata: Metadata | None = None
    forget_after: datetime | None = None
    forget_reason: Annotated[str, Field(max_length=REASON_MAX_CHARS)] | None = None
    temporal_context: TemporalContext | None = None


class CreateMemories(Tagged):
    """POST /v4/memories"""

    memories: Annotated[list[NewMemory], Field(min_length=1, max_length=MEMORIES_MAX)]


class MemoryRef(Wire):
    """A memory that was created."""

    id: str
    memory: str
    is_static: bool
    metadata: dict[str, Any] | None
    forget_after: str | None
    forget_reason: str | None
    created_at: str


class CreatedMemories(Wire):
    """There is no document behind them."""

    document_id: str | None = None
    memories: list[MemoryRef]


class NamedMemory(Tagged):
    """A memory by id, or by its exact text."""

    id: str | None = None
    content: Text | None = None


class ForgetMemory(NamedMemory):
    """DELETE /v4/memories"""

    reason: Annotated[str, Field(max_length=REASON_MAX_CHARS)] | None = None


class ForgottenMemory(Wire):
    id: str
    forgotten: bool


class ChangeMemory(NamedMemory):
    """PATCH /v4/memories: a new version. What is not sent is taken from the version before; null clears `forgetAfter`."""

    new_content: Text
    metadata: Metadata | None = None
    forget_after: datetime | None = None
    forget_reason: Annotated[str, Field(max_length=REASON_MAX_CHARS)] | None = None
    temporal_context: TemporalContext | None = None


class ChangedMemory(Wire):
    """The new version."""

    id: str
    memory: str
    version: int
    parent_memory_id: str | None
    root_memory_id: str | None
    metadata: dict[str, Any] | None
    forget_after: str | None
    forget_reason: str | None
    created_at: str


class ListMemories(Tagged):
    """POST /v4/memories/list"""

    limit: Annotated[int, Field(ge=1, le=LIST_LIMIT_MAX)] = 50
    page: Annotated[int, Field(ge=1, le=PAGE_MAX)] = 1
    sort: Literal["createdAt", "updatedAt"] = "createdAt"
    order: Literal["asc", "desc"] = "desc"


class MemoryView(MemoryOfDocument):
    """A memory as clients see it."""

    forget_after: str | None
    forget_reason: str | None


class MemoryEntry(MemoryView):
    """The latest version with those before it, newest first."""

    container_tag: str
    history: list[MemoryView]


class MemoryPage(Wire):
    memory_entries: list[MemoryEntry]
    pagination: Pagination


class MessagePart(Wire):
    """A piece of a message; images are named, not read."""

    type: str
    text: str | None = None
    image_url: Any = Field(default=None, alias="image_url")


class Message(Wire):
    """One turn. `tool_calls` and `tool_call_id` are spelled as their inventors spell them."""

    role: Annotated[str, Field(min_length=1, max_length=64)]
    content: str | list[MessagePart] | None = None
    name: Annotated[str, Field(max_length=256)] | None = None
    tool_calls: list[Any] | None = Field(default=None, alias="tool_calls")
    tool_call_id: str | None = Field(default=None, alias="tool_call_id")


class Conversation(Tagged):
    """POST /v4/conversations: the whole conversation so far, or what is new in it."""

    conversation_id: Annotated[str, Field(min_length=1, max_length=CONVERSATION_ID_MAX_CHARS)]
    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_MAX)]
    metadata: Metadata | None = None


class ConversationAdded(Wire):
    id: str
    conversation_id: str
    status: DocumentStatus
