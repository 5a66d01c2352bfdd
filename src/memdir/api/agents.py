"""`/v1/agents`: the memories of coding agents, ranked by words alone.

A memory is a Markdown file with front matter under `/memory/<project>/` of its container, a record in the index, and what a
tool of an agent is answered, at once. Search is that of the zero-AI design: BM25 and four more signals, no model; see
docs/agent-memory.md. JSON is camelCase; times are ISO 8601 in UTC.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from memdir.api.wire import Wire
from memdir.core.limits import (
    ACCESSES_MAX,
    MEMORY_MAX_CHARS,
    MEMORY_PROJECT_MAX_CHARS,
    MEMORY_TAG_MAX_CHARS,
    MEMORY_TAGS_MAX,
    QUERY_MAX_CHARS,
)  # fmt: skip

AGENT_CONTAINER_DEFAULT = "agents"
AGENT_LIMIT_MAX = 100
METADATA_MAX_BYTES = 8_192
CONTEXT_MAX_CHARS = 8_000
IMPORT_MAX_ITEMS = 500

Tag = Annotated[str, Field(min_length=1, max_length=MEMORY_TAG_MAX_CHARS)]
Tags = Annotated[list[Tag], Field(max_length=MEMORY_TAGS_MAX)]
Project = Annotated[str, Field(min_length=1, max_length=MEMORY_PROJECT_MAX_CHARS)]
Keys = Annotated[list[Annotated[str, Field(pattern=r"^(?:remote|root|folder|name):\S.{0,499}$")]], Field(max_length=8)]
StoredBy = Annotated[str, Field(pattern=r"^(?:user|(?:agent|import|capture) [\w.:/@-]{1,80})$")]
Content = Annotated[str, Field(min_length=1, max_length=MEMORY_MAX_CHARS)]


class AgentMemory(Wire):
    """One memory."""

    id: str
    path: str
    """Where its file stands in the container."""
    content: str
    tags: list[str]
    project: str | None
    """The seed's `source`; null for one that belongs to no project."""
    created_at: str
    updated_at: str
    access_count: int
    """How often a search or a hook answered with it."""
    stored_by: str = "user"
    """`user`, `agent HOST`, `import SOURCE` or `capture HOST`."""
    is_trusted: bool = True
    """Untrusted is what was learnt from web pages, issues or files of others, or reads like an instruction to a model: no hook
    gives it before a person confirmed it."""
    confirmed_at: str | None = None
    seen: int = 1
    """How often it was said."""
    may_replace: str | None = None
    """The older memory that it may contradict: a question for a review."""
    is_proposed: bool = False
    """It waits in an inbox, and is found by no search."""
    metadata: dict[str, Any] = Field(default_factory=dict)


class ProjectRequest(Wire):
    """POST /v1/agents/project: the folder below `/memory/` of a project. `keys`, strongest first: `remote:github.com/acme/api`,
    `root:COMMIT`, `folder:DIGEST`, `name:NAME`."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    name: Project | None = None
    keys: Keys = Field(default_factory=list)
    remember: bool = False
    """The folder is this project's from now on, by these keys."""


class ProjectAnswer(Wire):
    project: str | None


class StoreRequest(Wire):
    """POST /v1/agents/memories: remember `content`. What is long is cut into pieces of 512 tokens that overlap by 64."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    content: Content
    tags: Tags = Field(default_factory=list)
    project: Project | None = None
    stored_by: StoredBy = "user"
    trusted: bool = True
    """False: learnt from what others wrote. What an agent stores and reads like an instruction to a model is untrusted
    anyway."""
    supersedes: Annotated[list[str], Field(max_length=20)] = Field(default_factory=list)
    """Ids of memories that this one replaces: the first one says it from now on, with the former text in its history."""
    metadata: dict[str, Any] = Field(default_factory=dict)
    secrets: Literal["refuse", "redact"] = "refuse"
    """What happens to content that holds a secret: 422 with its kind, or the secret is replaced."""
    idempotency_key: str | None = None


class Duplicate(Wire):
    """A piece that (nearly) says what a memory says already: that one was kept, with the tags of both."""

    id: str
    similarity: float
    """0 to 1; 1 is the same words."""


class Superseded(Wire):
    """A memory that was replaced. The text stays in the history of its file."""

    id: str
    content: str
    why: str


class StoreResult(Wire):
    memories: list[AgentMemory]
    """In the order of the text; where a piece was a duplicate, the memory that was there before."""
    duplicates: list[Duplicate]
    superseded: list[Superseded]
    """What memories said before, that say this now."""
    redacted: list[str]
    """Kinds of the secrets that were replaced."""


class EditRequest(Wire):
    """PATCH /v1/agents/memories/{id}: what is null stays. The former text stays in the file's history."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    content: Content | None = None
    tags: Tags | None = None
    project: Annotated[str, Field(max_length=MEMORY_PROJECT_MAX_CHARS)] | None = None
    """An empty one: it belongs to no project from now on."""
    stored_by: StoredBy = "user"
    trusted: bool = True
    """Of the new content, as in `StoreRequest`."""
    secrets: Literal["refuse", "redact"] = "refuse"


class DeleteResult(Wire):
    """DELETE /v1/agents/memories/{id}?containerTag=: the file, the record and the index entry are gone."""

    id: str


class ConfirmRequest(Wire):
    """POST /v1/agents/memories/{id}/confirm: it holds. Kept when it was proposed; trusted when `storedBy` is the user, who
    alone may confirm what is not."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    stored_by: StoredBy = "user"


class ReviewQuestion(Wire):
    """`proposed`: keep it? `untrusted`: may it be given unasked? `may_replace`: does it take the place of `other`?"""

    kind: Literal["proposed", "untrusted", "may_replace"]
    memory: AgentMemory
    other: AgentMemory | None
    """Null when it went meanwhile."""


class ReviewPage(Wire):
    """GET /v1/agents/review?containerTag=&project=&limit=N: oldest first. An answer is a confirmation, a deletion, an edit,
    or a store that supersedes."""

    questions: list[ReviewQuestion]
    total: int


class MemoryVersion(Wire):
    content: str
    stored_by: str
    since: str
    until: str | None
    """Null: it says this now."""


class MemoryHistory(Wire):
    """GET /v1/agents/memories/{id}/history?containerTag=: newest first, at most 100."""

    id: str
    versions: list[MemoryVersion]


class MemoriesPage(Wire):
    """GET /v1/agents/memories?containerTag=&project=&tag=&after=CURSOR&limit=N&oldestFirst=&personal=: newest first; project=
    chooses those of none, personal=true adds those to a project's."""

    memories: list[AgentMemory]
    next_after: str | None
    total: int


class Weights(Wire):
    """Of the five signals, and the decay of recency a day. Defaults are the seed's."""

    bm25: Annotated[float, Field(ge=0, le=1)] = 0.55
    recency: Annotated[float, Field(ge=0, le=1)] = 0.15
    frequency: Annotated[float, Field(ge=0, le=1)] = 0.05
    tags: Annotated[float, Field(ge=0, le=1)] = 0.15
    project: Annotated[float, Field(ge=0, le=1)] = 0.10
    decay_per_day: Annotated[float, Field(ge=0, le=10)] = 0.01


class AgentSearchRequest(Wire):
    """POST /v1/agents/search."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    q: Annotated[str, Field(min_length=1, max_length=QUERY_MAX_CHARS)]
    project: Project | None = None
    """The current one: its memories rank higher, others are not left out."""
    tags: Tags = Field(default_factory=list)
    """Of the query, compared with those of a memory (Jaccard)."""
    only_project: bool = False
    only_tags: bool = False
    """Leave out what is of another project, or has none of the tags."""
    limit: Annotated[int, Field(ge=1, le=AGENT_LIMIT_MAX)] = 5
    threshold: Annotated[float, Field(ge=0, le=1)] | None = None
    """Hits with a lower score are left out; None: the server's own threshold."""
    semantic: bool = True
    """Let meaning join in, where the server's model is there and can read the question."""
    weights: Weights | None = None
    """Those that are left out are the server's (`MEMDIR_AGENT_WEIGHTS`), else the seed's."""
    record: bool = True
    """Count the answer as an access of its memories."""


class Signals(Wire):
    """Each 0 to 1."""

    bm25: float
    recency: float
    frequency: float
    tags: float
    project: float
    semantic: float | None = None


class AgentHit(Wire):
    memory: AgentMemory
    score: float
    signals: Signals
    bm25_raw: float
    """Before it is divided by that of the best hit."""
    matched: list[str]
    """Words of the query, and of its abbreviations, that stand in it."""


class AgentSearchResponse(Wire):
    results: list[AgentHit]
    closest: list[AgentHit] = Field(default_factory=list)
    """Where there are fewer results than `limit` allows and it is looked for by meaning: the closest others, of the project and
    of none, which may not be relevant. They do not count as accessed."""
    terms: list[str]
    """What was searched for: stems of the query and of what its abbreviations stand for."""
    took_ms: float


class ContextRequest(Wire):
    """POST /v1/agents/context: the block that a hook prints. With `event` `SessionStart` `prompt` may be empty: the profile and
    the project's recent memories."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    event: Literal["SessionStart", "UserPromptSubmit"] = "UserPromptSubmit"
    prompt: Annotated[str, Field(max_length=100_000)] = ""
    """Only its first 4,096 characters are searched for."""
    project: Project | None = None
    project_keys: Keys = Field(default_factory=list)
    """As in `ProjectRequest`."""
    parent: Project | None = None
    parent_keys: Keys = Field(default_factory=list)
    """Of the repository, where the project is a part of one: its memories are given, too."""
    session_id: Annotated[str, Field(max_length=200)] | None = None
    """What this session already got is not told again."""
    renewed: bool = False
    """The session's context was emptied or summed up (`/clear`, compaction): what it got before may be told again."""
    host: Annotated[str, Field(max_length=40)] = "unknown"
    tag: Literal["memdir-memory", "supermemory"] = "memdir-memory"
    limit: Annotated[int, Field(ge=1, le=50)] = 5
    max_chars: Annotated[int, Field(ge=200, le=CONTEXT_MAX_CHARS)] = CONTEXT_MAX_CHARS
    max_tokens: Annotated[int, Field(ge=50, le=CONTEXT_MAX_CHARS)] = 1_500
    within_ms: Annotated[int, Field(ge=1, le=60_000)] | None = None
    """Whoever asks is gone after so long: an answer that takes longer is empty, and counts as not told."""


class ContextResponse(Wire):
    context: str
    """Empty when there is nothing to tell."""
    memory_ids: list[str]
    paths: list[str] = Field(default_factory=list)
    """Files that the project's memories in it name, at most 20: who asks may look whether they are there."""
    left_out: int
    """Relevant ones that did not fit or that the session has."""


class ImportItem(Wire):
    """A memory as an export tells it. `id` is that of the exporting system, kept in the metadata."""

    content: Content
    tags: Tags = Field(default_factory=list)
    project: Project | None = None
    created_at: str | None = None
    updated_at: str | None = None
    access_count: Annotated[int, Field(ge=0, le=ACCESSES_MAX)] = 0
    stored_by: StoredBy | None = None
    trusted: bool = True
    metadata: dict[str, Any] = Field(default_factory=dict)


class ImportRequest(Wire):
    """POST /v1/agents/memories:import: what is there already (same words after folding) is passed over; times are kept."""

    container_tag: str = AGENT_CONTAINER_DEFAULT
    items: Annotated[list[ImportItem], Field(min_length=1, max_length=IMPORT_MAX_ITEMS)]
    propose: bool = False
    """Into the inbox: what is proposed a second time is kept."""
    secrets: Literal["refuse", "redact"] = "redact"


class ImportOutcome(Wire):
    created: int
    duplicates: int
    kept: int = 0
    """Proposals that were said once more, and are memories now."""
    refused: list[str]
    """One sentence for each that was not taken, at most 100."""


class AgentProfile(Wire):
    """GET /v1/agents/profile?containerTag=&project=&limit=5: what lasts and the newest memories, of a project and of none."""

    project: str | None
    facts: list[str]
    memories: list[AgentMemory]
    total: int
    """Memories of the project and of none."""


class TagCount(Wire):
    tag: str
    count: int


class ProjectCount(Wire):
    project: str | None
    count: int


class AgentStats(Wire):
    """GET /v1/agents/stats?containerTag="""

    memories: int
    tokens: int
    """About: a quarter of the characters."""
    size_bytes: int
    """Of the texts."""
    index_bytes: int
    tags: list[TagCount]
    """The most used 50."""
    projects: list[ProjectCount]
    oldest_at: str | None
    newest_at: str | None


class Usage(Wire):
    """GET /v1/agents/usage?containerTag=&days=7: what hooks injected, and what became of it."""

    days: int
    sessions: int
    injections: int
    """Blocks that were not empty."""
    injected_memories: int
    injected_tokens: int
    used_afterwards: int
    """Injected memories that the session then read, searched and got, edited or deleted through a tool."""
    searches: int
    stored: int
