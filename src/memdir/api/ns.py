"""The namespace API of Supermemory's 5.x clients, under `/ns`. A namespace is a container.

JSON is camelCase; unknown fields of a request are ignored. Limits are those of `/v3` and `/v4`, whose services answer.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memdir.api.v1 import DocumentStatus, Wire
from memdir.api.v3 import ENTITY_CONTEXT_MAX_CHARS, SEARCH_LIMIT_MAX, Metadata, TaskType
from memdir.api.v4 import BUCKETS_MAX, MEMORIES_MAX, Query, Threshold

BATCH_MAX = 600
IDS_MAX = 100
NAME_MAX_CHARS = 512
RELATED_MAX = 20

Context = Annotated[str, Field(max_length=ENTITY_CONTEXT_MAX_CHARS)]
Ids = Annotated[list[Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS)]], Field(min_length=1, max_length=IDS_MAX)]


class DocumentInput(Wire):
    """A text to remember. An `id` that is known already appends to that document; the content before stays as a version.

    `group` and `date` become metadata; `supportingContext` is for models, of which there are none here."""

    content: Annotated[str, Field(min_length=1)]
    id: Annotated[str, Field(min_length=1, max_length=NAME_MAX_CHARS)] | None = None
    supporting_context: Context | None = None
    metadata: Metadata | None = None
    group: Metadata | None = None
    date: Annotated[str, Field(max_length=64)] | None = None


class AddDocument(DocumentInput):
    """POST /ns/{namespace}/document"""

    task_type: TaskType | None = None
    dreaming: Literal["dynamic", "instant"] | None = None


class AddDocuments(Wire):
    """POST /ns/{namespace}/document/batch"""

    documents: Annotated[list[DocumentInput], Field(min_length=1, max_length=BATCH_MAX)]
    task_type: TaskType | None = None
    dreaming: Literal["dynamic", "instant"] | None = None


class ChangeDocument(Wire):
    """PATCH /ns/{namespace}/document/{id}: what is not sent stays."""

    content: Annotated[str, Field(min_length=1)] | None = None
    supporting_context: Context | None = None
    metadata: Metadata | None = None
    group: Metadata | None = None
    date: Annotated[str, Field(max_length=64)] | None = None
    task_type: TaskType | None = None


class DocumentRef(Wire):
    """A document taken in: the caller's own id when it has one."""

    id: str
    status: DocumentStatus


class BatchItem(Wire):
    id: str
    status: str
    error: str | None = None


class BatchAdded(Wire):
    results: list[BatchItem]
    count: int
    failed: int


class Failed(Wire):
    """An id for which something could not be done, and why."""

    id: str
    error: str


class DeleteDocuments(Wire):
    """DELETE /ns/{namespace}/document"""

    ids: Ids


class DocumentsDeleted(Wire):
    count: int
    errors: list[Failed]


class Stamps(Wire):
    created_at: str
    updated_at: str


class Processing(Stamps):
    status: DocumentStatus
    dreaming_status: Literal["dreaming", "done"]
    memory_count: int | None = None


class Chunk(Wire):
    """A passage of a document."""

    id: str
    position: int
    content: str
    type: str = "text"
    metadata: dict[str, Any]
    system: dict[str, str]
    document_id: str


class Memory(Wire):
    """A fact."""

    id: str
    memory: str
    metadata: dict[str, Any]
    is_static: bool
    is_inference: bool
    is_latest: bool
    is_forgotten: bool
    version: int
    system: Stamps


class Document(Wire):
    """A document; `chunks` and `memories` when they were asked for."""

    id: str
    title: str | None = None
    type: str
    summary: str | None = None
    content: str | None = None
    metadata: dict[str, Any]
    url: str | None = None
    system: Processing
    chunks: list[Chunk] | None = None
    memories: list[Memory] | None = None


class SearchInclude(Wire):
    documents: bool = False
    related: bool = False
    forgotten: bool = False


class Search(Wire):
    """POST /ns/{namespace}/search. `rerank` "order" is the `rerank` of `/v4/search`; "aggregate" and `rewriteQuery` change
    nothing, as there."""

    query: Query
    filter: dict[str, Any] | None = None
    search_mode: Literal["hybrid", "memories", "chunks"] = "hybrid"
    limit: Annotated[int, Field(ge=1, le=SEARCH_LIMIT_MAX)] = 10
    include: SearchInclude = SearchInclude()
    threshold: Threshold | None = None
    rerank: Literal["none", "order", "aggregate"] | None = None
    rewrite_query: bool | None = None


class SourceDocument(Wire):
    id: str
    title: str | None = None
    type: str | None = None
    metadata: dict[str, Any]
    summary: str | None = None
    system: Stamps


class RelatedMemory(Wire):
    id: str
    relation: Literal["updates", "extends", "derives"]
    version: int | None
    memory: str
    metadata: dict[str, Any]
    system: dict[str, str]
    document: SourceDocument | None = None


class Related(Wire):
    parents: list[RelatedMemory]
    children: list[RelatedMemory]
    siblings: list[RelatedMemory]


class Included(Wire):
    related: Related | None = None
    document: SourceDocument | None = None


class SearchResult(Wire):
    """`memory` or `chunk` is set."""

    id: str
    memory: str | None = None
    chunk: str | None = None
    metadata: dict[str, Any]
    similarity: float
    is_latest: bool
    is_inference: bool
    system: dict[str, str]
    included: Included | None = None


class SearchResults(Wire):
    results: list[SearchResult]
    search_time: float


class ProfileRequest(Wire):
    """POST /ns/{namespace}/profile"""

    filter: dict[str, Any] | None = None
    buckets: Annotated[list[str], Field(max_length=BUCKETS_MAX)] | None = None


class ProfileFact(Wire):
    id: str
    memory: str


class ProfileSections(Wire):
    static: list[ProfileFact]
    dynamic: list[ProfileFact]
    buckets: dict[str, list[ProfileFact]]


class Profile(Wire):
    profile: ProfileSections


class Buckets(Wire):
    """GET, PUT /ns/{namespace}/profile/buckets: name to description. PUT adds and changes, and leaves the others."""

    buckets: Annotated[dict[str, str], Field(max_length=BUCKETS_MAX)]


class DeleteBuckets(Wire):
    """DELETE /ns/{namespace}/profile/buckets"""

    buckets: Annotated[list[str], Field(max_length=BUCKETS_MAX)]


class ForgetMemories(Wire):
    """DELETE /ns/{namespace}/memories"""

    ids: Annotated[list[str], Field(min_length=1, max_length=MEMORIES_MAX)]


class ForgetMatching(Wire):
    """DELETE /ns/{namespace}/memories/semantic: what search finds close to a query; only told, unless `dryRun` is false."""

    query: Query
    dry_run: bool = True


class ForgetMatch(Wire):
    id: str
    memory: str


class Forgotten(Wire):
    count: int
    errors: list[Failed]
    matches: list[ForgetMatch]


class MemoryDetails(Memory):
    """GET /ns/{namespace}/memories/{id}"""

    included: Included | None = None


class ListInclude(Wire):
    content: bool = False
    memory_count: bool = False
    forgotten: bool = False


class ListRequest(Wire):
    """POST /ns/{namespace}/list/{documents,chunks,memories}; the page is in the query."""

    filter: dict[str, Any] | None = None
    include: ListInclude = ListInclude()


class Pagination(Wire):
    current_page: int
    limit: int
    total_items: int
    total_pages: int


class Listed(Wire):
    """What was not asked for is empty."""

    documents: list[Document] = Field(default_factory=list)
    chunks: list[Chunk] = Field(default_factory=list)
    memories: list[Memory] = Field(default_factory=list)
    pagination: Pagination


class CountMemories(Wire):
    """POST /ns/{namespace}/list/documents/memory-counts"""

    ids: Ids


class MemoryCount(Wire):
    id: str
    memory_count: int


class MemoryCounts(Wire):
    """Documents that do not exist are left out."""

    counts: list[MemoryCount]


class Namespace(Wire):
    id: str
    namespace: str
    document_count: int
    memory_count: int
    description: str | None
    system: Stamps


class NamespaceList(Wire):
    """GET /ns, newest first."""

    namespaces: list[Namespace]
    pagination: Pagination


class NamespaceDetails(Wire):
    namespace: str
    supporting_context: str | None
    system: Stamps


class ChangeNamespace(Wire):
    """PATCH /ns/{namespace}; null takes the context away."""

    supporting_context: Context | None = None


class NamespaceDeleted(Wire):
    status: Literal["deleted"] = "deleted"
    namespace: str
    deleted_documents_count: int
    deleted_memories_count: int


class Organization(Wire):
    """GET /organization"""

    organizational_context: str | None
    namespace_count: int
