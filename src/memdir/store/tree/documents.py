"""Reading documents, and the steps of their processing. What changes the tree is in `files`."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memdir.core.clock import Clock
from memdir.core.errors import NotFoundError
from memdir.core.limits import INT64_MAX, SEARCH_PENDING_MAX
from memdir.store.database import Database, Row, Transaction, fetch, marks_for
from memdir.store.jobs.queue import INTERACTIVE
from memdir.store.paths import below
from memdir.store.tree.metadata_conditions import Condition, sql_of
from memdir.store.types import Document, Scope

DOCUMENT_COLUMNS: Final = (
    "d.id, d.container_id, k.tag, d.custom_id, d.path, d.kind, d.title, d.media_type, d.status, d.error, d.content_hash, "
    "d.size_bytes, d.mode, d.mtime_ns, d.revision, d.metadata, d.created_at_ms, d.updated_at_ms, d.task_type, d.url, "
    "d.transcription"
)
SELECT_DOCUMENT: Final = f"select {DOCUMENT_COLUMNS} from document d join container k on k.id = d.container_id "  # noqa: S608
STATUSES: Final = ("queued", "extracting", "chunking", "embedding", "indexing", "done")
"""In the order that a revision goes through them; or `failed`, from any."""
MANY_MAX: Final = 500
NAMESAKES_MAX: Final = 1000


def document_of(row: Row) -> Document:
    """A row of `DOCUMENT_COLUMNS`."""
    return Document(
        id=row[0],
        container_id=row[1],
        container_tag=row[2],
        custom_id=row[3],
        path=row[4],
        kind=row[5],
        title=row[6],
        media_type=row[7],
        status=row[8],
        error=row[9],
        content_hash=row[10],
        size_bytes=row[11],
        mode=row[12],
        mtime_ns=row[13],
        revision=row[14],
        metadata=json.loads(row[15]),
        created_at_ms=row[16],
        updated_at_ms=row[17],
        task_type=row[18],
        url=row[19],
        transcription=row[20],
    )


def hold(db: Database, connection: Transaction, document_ids: Sequence[str]) -> None:
    """Nobody else changes these rows until the transaction ends. A document's row is held before its jobs', in order of ids."""
    if db.row_lock:
        ordered = f"id in ({marks_for(document_ids)}) order by id"
        fetch(connection, f"select 1 from document where {ordered}{db.row_lock}", document_ids)  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class FilesSnapshot:
    """A page of entries in path order, and the container's counters from the same moment."""

    entries: list[Document]
    has_more: bool
    last_seq: int
    epoch: str
    token: str
    """Of change `last_seq`; empty when that is not told any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What `DocumentStore.listing` is asked for. `path` with a trailing slash is a prefix, else exact."""

    container_ids: tuple[int, ...]
    path: str | None = None
    sort: Literal["created_at_ms", "updated_at_ms"] = "created_at_ms"
    descending: bool = True
    files_only: bool = True
    after: tuple[int, str] | None = None
    """Only what comes behind this row (its time and id) in the order of the listing."""
    condition: Condition | None = None
    """On the metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unfinished:
    """Documents still in the pipeline; changed since a moment; or also those that failed."""

    container_ids: tuple[int, ...]
    folder: str = "/"
    since_ms: int = 0
    failed: bool = False


class DocumentStore:
    """The document table, read."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def get(self, document_id: str) -> Document | None:
        """By id, in any container."""
        return self._first("where d.id = ?", (document_id,))

    def at(self, container_id: int, path: str) -> Document | None:
        """What was put at `path`."""
        return self._first("where d.container_id = ? and d.path = ?", (container_id, path))

    def by_custom_id(self, container_id: int, custom_id: str) -> Document | None:
        """By the client's own name."""
        if "\0" in custom_id:  # nothing has such a name, and PostgreSQL cannot even be asked
            return None
        return self._first("where d.container_id = ? and d.custom_id = ?", (container_id, custom_id))

    def by_any_id(self, org_id: str, name: str) -> list[Document]:
        """By id; else those with the custom id, in the containers of the organisation: several when several containers use it
        (at most NAMESAKES_MAX, the oldest first)."""
        if "\0" in name:
            return []
        found = self._db.all(f"{SELECT_DOCUMENT} where d.id = ? and k.org_id = ?", (name, org_id)) or self._db.all(
            f"{SELECT_DOCUMENT} where d.custom_id = ? and k.org_id = ? order by d.created_at_ms, d.id limit ?",
            (name, org_id, NAMESAKES_MAX),
        )
        return [document_of(row) for row in found]

    def loose(self, container_id: int, content_hash: str) -> bool:
        """Whether a document without a place and without a custom id has this content."""
        row = self._db.one(
            "select 1 from document where container_id = ? and content_hash = ? and path is null and custom_id is null limit 1",
            (container_id, content_hash),
        )
        return row is not None

    def has_children(self, container_id: int, path: str) -> bool:
        """Whether anything stands below `path`."""
        first, end = below(path)
        row = self._db.one(
            "select 1 from document where container_id = ? and path > ? and path < ? limit 1", (container_id, first, end)
        )
        return row is not None

    def _first(self, condition: str, bindings: tuple[Any, ...]) -> Document | None:
        row = self._db.one(f"{SELECT_DOCUMENT} {condition} limit 1", bindings)
        return None if row is None else document_of(row)

    def files(self, container_id: int, *, prefix: str, after: str, limit: int) -> FilesSnapshot:
        """Entries at and below `prefix` whose path is greater than `after`. NotFoundError when the container is gone."""
        first, end = below(prefix)
        with self._db.snapshot() as reader:
            counters = fetch(
                reader,
                "select k.last_seq, k.epoch, coalesce(c.token, '') from container k "
                "left join change c on c.container_id = k.id and c.seq = k.last_seq where k.id = ?",
                (container_id,),
            )
            if not counters:
                raise NotFoundError("the container is gone")
            rows = []
            if prefix != "/" and after < prefix:
                rows = fetch(reader, f"{SELECT_DOCUMENT} where d.container_id = ? and d.path = ?", (container_id, prefix))
            rows += fetch(
                reader,
                f"{SELECT_DOCUMENT} where d.container_id = ? and d.path > ? and d.path < ? order by d.path limit ?",
                (container_id, max(after, first), end, limit + 1 - len(rows)),
            )
        entries = [document_of(row) for row in rows[:limit]]
        last_seq, epoch, token = counters[0]
        return FilesSnapshot(entries=entries, has_more=len(rows) > limit, last_seq=last_seq, epoch=epoch, token=token)

    def listing(self, query: Listing, *, limit: int, offset: int = 0) -> list[Document]:
        """Documents of some containers, sorted; ties by id, so that pages do not overlap."""
        condition, bindings = _listing_condition(query)
        direction = "desc" if query.descending else "asc"
        order = f"order by d.{query.sort} {direction}, d.id {direction}"
        # The inner statement walks an index that holds all it needs; rows are looked up for the page alone.
        rows = self._db.all(
            f"{SELECT_DOCUMENT} where d.id in "  # noqa: S608
            f"(select d.id from document d where {condition} {order} limit ? offset ?) {order}",
            (*bindings, limit, offset),
        )
        return [document_of(row) for row in rows]

    def count(self, query: Listing) -> int:
        """How many documents `listing` would give without a limit."""
        condition, bindings = _listing_condition(query)
        row = self._db.one(f"select count(*) from document d where {condition}", bindings)  # noqa: S608
        assert row is not None
        total: int = row[0]
        return total

    def unfinished(self, query: Unfinished, *, limit: int = 1000, offset: int = 0) -> list[Document]:
        """Documents still in the pipeline, oldest change first."""
        condition, bindings = _unfinished_condition(query)
        rows = self._db.all(
            f"{SELECT_DOCUMENT} where {condition} order by d.updated_at_ms, d.id limit ? offset ?", (*bindings, limit, offset)
        )
        return [document_of(row) for row in rows]

    def unfinished_count(self, query: Unfinished) -> int:
        """How many documents `unfinished` would give without a limit."""
        condition, bindings = _unfinished_condition(query)
        row = self._db.one(f"select count(*) from document d where {condition}", bindings)  # noqa: S608
        assert row is not None
        total: int = row[0]
        return total

    def many(self, document_ids: Collection[str]) -> dict[str, Document]:
        """Those of the documents that exist."""
        found: dict[str, Document] = {}
        ids = list(dict.fromkeys(document_ids))
        for begin in range(0, len(ids), MANY_MAX):
            some = ids[begin : begin + MANY_MAX]
            rows = self._db.all(f"{SELECT_DOCUMENT} where d.id in ({','.join('?' * len(some))})", some)
            found.update((row[0], document_of(row)) for row in rows)
        return found

    def being_remembered(self, document_ids: Sequence[str]) -> set[str]:
        """Those of the documents that memories are still to be drawn from."""
        marks = marks_for(document_ids)
        rows = self._db.all(f"select document_id from job where document_id in ({marks}) and kind = 'memory'", document_ids)  # noqa: S608
        return {row[0] for row in rows}

    def counts(self, container_ids: Sequence[int]) -> dict[int, int]:
        """How many files each of the containers holds."""
        marks = marks_for(container_ids)
        rows = self._db.all(
            f"select container_id, count(*) from document where container_id in ({marks}) and kind = 'file' "  # noqa: S608
            "group by container_id",
            container_ids,
        )
        return {row[0]: row[1] for row in rows}

    def not_searchable(
        self,
        scope: Scope,
        *,
        up_to_revision: int | None = None,
        limit: int = SEARCH_PENDING_MAX,
        unfinished: bool = False,
        size_max_bytes: int = INT64_MAX,
        edits_only: bool = False,
    ) -> list[str]:
        """Paths in scope that no search can find yet, in path order (documents without a path as their id), of contents up to
        `size_max_bytes`. With `unfinished` also those that are found, but not yet as well as they will be; with `edits_only` no
        imports."""
        first, end = below(scope.folder)
        states = "not in ('done', 'failed')" if unfinished else "in ('queued', 'extracting', 'chunking')"
        condition = " and d.path = :path" if scope.exact else "" if scope.folder == "/" else _BELOW
        rows = self._db.all(
            f"select {_OF_EDITS if edits_only else _OF_ALL} d.container_id = :container "
            f"and d.status {states} and d.revision <= :revision and d.size_bytes <= :size{condition} "
            "order by d.path limit :limit",
            {
                "container": scope.container_id,
                "revision": (1 << 62) if up_to_revision is None else up_to_revision,
                "size": size_max_bytes,
                "path": scope.folder,
                "first": first,
                "end": end,
                "limit": limit,
                **({"edit": INTERACTIVE} if edits_only else {}),
            },
        )
        return [row[0] for row in rows]

    def indexed(self, document_ids: Sequence[str]) -> dict[str, Document]:
        """Those of the documents whose chunks were made from the content that they have now."""
        unique = list(dict.fromkeys(document_ids))
        marks = marks_for(unique)
        rows = self._db.all(f"{SELECT_DOCUMENT} where d.id in ({marks}) and d.indexed_hash = d.content_hash", unique)
        return {row[0]: document_of(row) for row in rows}

    def indexed_hash(self, document_id: str) -> str | None:
        """Content hash that the document's chunks were made from."""
        row = self._db.one("select indexed_hash from document where id = ?", (document_id,))
        return None if row is None else row[0]


_BELOW: Final = " and d.path >= :first and d.path < :end"
_OF_ALL: Final = "coalesce(d.path, d.id) from document d where"
_OF_EDITS: Final = (
    "distinct coalesce(d.path, d.id), d.path from job j cross join document d where j.container_id = :container "
    "and j.kind in ('index', 'extract', 'embed') and j.priority = :edit and j.failed_at_ms is null and d.id = j.document_id and"
)
"""In this order: edits are few, and what is not read yet may be a hundred thousand documents."""


def _unfinished_condition(query: Unfinished) -> tuple[str, tuple[Any, ...]]:
    marks = marks_for(query.container_ids)
    condition = f"d.container_id in ({marks}) and d.status not in ('done', 'failed') and d.updated_at_ms >= ?"
    bindings: tuple[Any, ...] = (*query.container_ids, query.since_ms)
    if query.failed:
        condition = f"(({condition}) or (d.container_id in ({marks}) and d.status = 'failed'))"
        bindings += query.container_ids
    if query.folder != "/":
        condition += " and (d.path = ? or (d.path >= ? and d.path < ?))"
        bindings += (query.folder, *below(query.folder))
    return condition, bindings


def _listing_condition(query: Listing) -> tuple[str, tuple[Any, ...]]:
    marks = marks_for(query.container_ids)
    condition = "d.container_id = ?" if len(query.container_ids) == 1 else f"d.container_id in ({marks})" if marks else "false"
    bindings: tuple[Any, ...] = query.container_ids
    if query.files_only:
        condition += " and d.kind = 'file'"
    if query.after is not None:
        condition += f" and (d.{query.sort}, d.id) {'<' if query.descending else '>'} (?, ?)"
        bindings += query.after
    if query.path is not None:
        if query.path == "/":
            condition += " and d.path is not null"
        elif query.path.endswith("/"):
            condition += " and d.path >= ? and d.path < ?"
            bindings += below(query.path.rstrip("/") or "/")
        else:
            condition += " and d.path = ?"
            bindings += (query.path,)
    if query.condition is not None:
        sql, values = sql_of(query.condition, query.container_ids)
        condition += f" and {sql}"
        bindings += values
    return condition, bindings
