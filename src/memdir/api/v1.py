"""Our own calls, `/v1`: exact bytes with revisions, an ordered changes feed, search that answers with lines.

Paths on the wire are absolute in the container (`/work/a.md`). A revision is the sequence number of the change that made
it: it grows with every put or move of that path, and `ETag` is the revision in quotes. JSON is camelCase.

`PUT /v1/files/{path}?containerTag=&kind=file&mode=420&mtimeNs=0`: the body is the exact bytes (of a symlink: its target; of
a folder: nothing); headers `If-Match: "REVISION"` or `If-None-Match: *`, and `Idempotency-Key`; answers a FileEntry. `GET`
answers the bytes with `ETag`; `DELETE …?containerTag=&recursive=false&ifUnchangedSince=SEQ` a DeleteResult.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from memdir.api.search import FileCount, LineRange, SearchHit, SearchLeftOut, SearchRequest, SearchResponse
from memdir.api.wire import Wire
from memdir.core.limits import BATCH_MAX_ITEMS, CHANGES_PAGE_MAX, INT64_MAX, READ_MAX_ITEMS

__all__ = [
    "FileCount",
    "LineRange",
    "SearchHit",
    "SearchLeftOut",
    "SearchRequest",
    "SearchResponse",
    "Wire",
]  # defined elsewhere

EntryKind = Literal["file", "dir", "symlink"]
DocumentStatus = Literal["queued", "extracting", "chunking", "embedding", "indexing", "done", "failed"]
SEARCHABLE: frozenset[str] = frozenset({"embedding", "indexing", "done"})
"""From `embedding` on, a document is found by words and by static vectors; `done` adds the transformer's."""


class Capabilities(Wire):
    """GET /v1/capabilities"""

    version: str
    api: list[str]
    features: list[str]
    """Among `changes`, `files`, `move`, `batch`, `search`, `versions`, `export`, `import`."""
    max_file_bytes: int
    max_batch_bytes: int
    max_batch_items: int


class FileEntry(Wire):
    """What the server holds at one path."""

    path: str
    kind: EntryKind
    content_hash: str
    """SHA-256 of the bytes (of the target for a symlink, of nothing for a folder), lower-case hex."""
    size_bytes: int
    mode: int
    """Permission bits, e.g. 0o644 as 420."""
    mtime_ns: int
    revision: int
    document_id: str
    status: DocumentStatus
    error: str | None = None


class Change(Wire):
    """One step of a container's history, in commit order."""

    seq: int
    kind: Literal["put", "move", "delete"]
    path: str
    """Of a move: where it stands now. A move or delete of a folder covers everything below it, in one change."""
    from_path: str | None = None
    entry: FileEntry | None = None
    """Of a put: the entry as it was at that revision."""


class ChangesPage(Wire):
    """GET /v1/changes?containerTag=&since=SEQ&token=TOKEN&wait=SECONDS&limit=N

    Answers at once when there is a change behind `since` or the profile is newer than `profileSince`; otherwise waits up to
    `wait` seconds. `epoch` names this life of the container: another epoch, or a `lastSeq` below what the client has seen,
    means that the server was wiped or restored, and the client must compare everything again. With the `token` of the page that
    brought it to `since`, a client is told so (409) also when the history was replaced and has grown beyond `since` meanwhile.
    """

    container_tag: str
    epoch: str
    changes: list[Change]
    last_seq: int
    has_more: bool
    profile_version: int
    siblings_version: int = 0
    """Number of the last change of any text beside a file: see `SiblingsPage`."""
    token: str = ""
    """Drawn for the change to go on from: the last one of `changes` when there is more, else number `lastSeq`."""


class SiblingEntry(Wire):
    """The text that stands beside a file, or why there is none."""

    version: int
    path: str
    """Of the file."""
    content_hash: str
    """Of the file's contents: the text is the same wherever they are."""
    kind: str | None
    """As in the sibling's name: pdf, office, web, mail, image, audio, video, archive; error; null: there is none any more."""
    text_version: int
    """Another one for another text of the same contents; 0 without a text."""
    size_bytes: int
    """Of the text, in UTF-8."""
    text: str | None = None
    """When it is short; else GET /v1/siblings/text."""


class SiblingsPage(Wire):
    """GET /v1/siblings?containerTag=&since=VERSION: files whose text was read, in the order in which that happened."""

    siblings: list[SiblingEntry]
    last_version: int
    """Where to go on."""
    has_more: bool


class FilesPage(Wire):
    """GET /v1/files?containerTag=&prefix=/&after=PATH&limit=N: entries in path order, one consistent snapshot per page."""

    entries: list[FileEntry]
    next_after: str | None
    last_seq: int
    epoch: str
    token: str = ""
    """That of change `lastSeq`, see `ChangesPage`."""


class MoveRequest(Wire):
    """POST /v1/files:move. `to` may be an existing file when `replace`; moving a folder moves all below it."""

    container_tag: str
    from_path: str
    to_path: str
    if_match: int | None = None
    replace: bool = True
    idempotency_key: str | None = None


class MoveResult(Wire):
    seq: int
    moved_count: int
    entry: FileEntry | None = None
    """Null for a folder that has no entry of its own and stands only for what is in it."""


class DeleteResult(Wire):
    seq: int
    deleted_count: int


class BatchOperation(Wire):
    """One item of POST /v1/files:batch, the same as the single call of that name."""

    op: Literal["put", "delete", "move"]
    path: str
    from_path: str | None = None
    kind: EntryKind = "file"
    content_base64: str | None = None
    content_hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = None
    """Of a put of a file, instead of contentBase64: the file at the path has these contents already and keeps them, or 412."""
    mode: int = 0o644
    mtime_ns: int = 0
    if_match: int | None = None
    if_none_match: bool = False
    """True: only if nothing stands there."""
    recursive: bool = False
    if_unchanged_since: Annotated[int, Field(ge=0, le=INT64_MAX)] | None = None
    """Of a delete: 412 when the path, or anything below it, was put or moved there behind this sequence number."""
    idempotency_key: str | None = None


class BatchRequest(Wire):
    container_tag: str
    operations: Annotated[list[BatchOperation], Field(min_length=1, max_length=BATCH_MAX_ITEMS)]
    bulk: bool = False
    """Some of many files: read after those that somebody just saved. Larger batches always are."""


class ReadRequest(Wire):
    """Of POST /v1/files:read."""

    container_tag: str
    paths: Annotated[list[str], Field(min_length=1, max_length=READ_MAX_ITEMS)]


class ReadItem(Wire):
    """`status` as the single call would have answered, or 413 for what does not fit into one answer: ask for it alone."""

    status: int
    content_base64: str | None = None


class ReadResult(Wire):
    """In the order of the paths; each file stands for itself."""

    files: list[ReadItem]


class BatchItemResult(Wire):
    """`status` as the single call would have answered: 200, 201, 404, 409, 412, 413, 422 …"""

    status: int
    entry: FileEntry | None = None
    """After a success: the new entry. With 412: what stands there now, or null for nothing."""
    seq: int | None = None
    error: str | None = None


class BatchResult(Wire):
    """Results in the order of the operations; each operation stands for itself, a failed one stops none of the others."""

    results: list[BatchItemResult]


class PreconditionFailed(Wire):
    """Body of a 412."""

    error: str
    current: FileEntry | None


class VersionEntry(Wire):
    """A former content of a document."""

    version: int
    """Its number in the store; grows, is never used again."""
    document_id: str
    path: str | None
    """Where the document stood then; null for one without a place."""
    kind: EntryKind
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    revision: int
    """Of the document when it had this content."""
    reason: Literal["replaced", "deleted"]
    ended_at: str
    """When it ceased to be the content."""
    began_at: str | None = None
    """When it became the content; null for what is older than this field."""


class Rename(Wire):
    """A rename of a document, or of a folder that it stood in."""

    seq: int
    path: str
    from_path: str
    at: str


class VersionsPage(Wire):
    """GET /v1/versions?containerTag=&path=|id=&before=VERSION&limit=N, and GET /v1/versions:deleted?containerTag=&prefix=

    Newest first. `current` is what stands at the path now, null for nothing. `nextBefore` asks for the next page.
    """

    current: FileEntry | None = None
    current_since: str | None = None
    """Since when that is the content."""
    versions: list[VersionEntry]
    next_before: int | None = None
    renames: list[Rename] = Field(default_factory=list)
    """Of what stands at the path now, newest first, with the first page: at most 100."""


class PastEntry(Wire):
    """What stood at a path at a moment."""

    path: str
    kind: EntryKind
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    document_id: str
    version: int | None
    """Its number; null while it is the content of the document today."""
    stands_at: str | None
    """With `version` null: where the document stands now."""
    began_at: str | None = None


class PastPage(Wire):
    """GET /v1/versions:at?containerTag=&at=TIME&prefix=/&after=CURSOR&limit=N: what stood at and below `prefix` at a moment.

    In no order; `next_after` asks for the next page, also behind an empty one. Renames since then are taken back, as far as the
    changes feed tells them: from `renames_since` on, null when it tells all.
    """

    entries: list[PastEntry]
    next_after: str | None
    renames_since: str | None = None


class HistoryEntry(Wire):
    """A change as people read it; the fields of an entry are those of a put."""

    seq: int
    kind: Literal["put", "move", "delete"]
    path: str
    from_path: str | None = None
    at: str
    entry_kind: EntryKind | None = None
    content_hash: str | None = None
    size_bytes: int | None = None
    mode: int | None = None


class HistoryPage(Wire):
    """GET /v1/versions:changes?containerTag=&prefix=/&before=SEQ&limit=N: changes at and below a folder, newest first.

    `next_before` asks for the next page; one looks through 50,000 changes of the container, so it may be short, or empty, and
    not the last.
    """

    entries: list[HistoryEntry]
    next_before: int | None = None


class RestoreRequest(Wire):
    """POST /v1/versions:restore. Without `path` the version goes where its document stands, or stood last."""

    container_tag: str
    version: Annotated[int, Field(ge=1, le=INT64_MAX)]
    path: str | None = None
    if_match: int | None = None
    if_none_match: bool = False
    """True: only if nothing stands there."""
    idempotency_key: str | None = None


class PurgeResult(Wire):
    """DELETE /v1/versions?containerTag=&path=: how many versions went."""

    deleted_count: int


ArchiveFormat = Literal["tar", "tar.gz", "zip"]
MergePolicy = Literal["fail", "skip", "replace"]
"""When something stands at the path of an archive's entry: refuse the whole archive, leave what stands, or replace it."""


class ImportProblem(Wire):
    """An entry that could not be taken over, and why."""

    path: str
    error: str


class ImportResult(Wire):
    """POST /v1/import?containerTag=&merge=fail&links=inside, the body a tar, tar.gz or zip.

    The whole archive is looked at before anything is written; then it is taken over in steps, so that an import that was broken
    off goes on when it is repeated with `merge=skip` or `replace`: what is there already is `unchanged`.
    """

    container_tag: str
    created: int
    replaced: int
    unchanged: int
    skipped: int
    failed_count: int
    failed: list[ImportProblem]
    """At most 100 of them."""
    memories: int
    last_seq: int


class JobEntry(Wire):
    """A piece of work on a document."""

    document_id: str
    kind: Literal["index", "extract", "embed", "memory"]
    container_tag: str
    path: str | None
    state: Literal["waiting", "running", "failed"]
    priority: Literal["interactive", "bulk"]
    attempts: int
    reason: str | None
    """Why it was given up."""
    at: str
    """When it was given up; for the others when it was asked for."""


class JobsPage(Wire):
    """GET /v1/jobs?containerTag=&failed=&limit=: what was given up, newest first; without `failed` also what waits and runs,
    oldest first."""

    jobs: list[JobEntry]
    has_more: bool


class RetryRequest(Wire):
    """POST /v1/jobs:retry: put work that was given up back into the queue: of one document, of one container, or all."""

    document_id: Annotated[str | None, Field(min_length=1, max_length=200)] = None
    container_tag: str | None = None


class RetryResult(Wire):
    requeued: int


class Health(Wire):
    """GET /healthz, without a key."""

    status: Literal["ok"]
    version: str
    pid: int


class Problem(Wire):
    """Every error answer."""

    error: str
    details: object | None = None


CHANGES_LIMIT_DEFAULT = CHANGES_PAGE_MAX
