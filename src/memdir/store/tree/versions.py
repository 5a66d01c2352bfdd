"""Former contents: what a put replaced and what a delete took away, kept for a while so that it can be read and restored.

A version takes over the reference that the document had to its bytes, so keeping one copies nothing. Versions belong to a
document and follow it when it moves; those of a deleted document are found by the path where it stood last. The numbers grow
with every version of the store and are never used again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.clock import Clock
from memdir.core.errors import NotFoundError
from memdir.core.limits import INT64_MAX
from memdir.store.acting import narrowed_to
from memdir.store.contents.blobs import BlobStore, StagedBlob
from memdir.store.database import Database, Row, Transaction, fetch
from memdir.store.paths import below
from memdir.store.tree.operations import Put, Restore
from memdir.store.types import Container, Document

DAY_MS: Final = 24 * 3600 * 1000
PRUNE_ROWS: Final = 64
"""Aged versions that one write takes away at most: the table shrinks faster than it grows, and no write pays for all."""
_ALL: Final = 1 << 31
_COLUMNS: Final = (
    "v.id, v.container_id, v.document_id, v.path, v.kind, v.custom_id, v.metadata, v.content_hash, v.size_bytes, v.mode, "
    "v.mtime_ns, v.revision, v.reason, v.ended_at_ms, v.began_at_ms"
)
_SELECT: Final = f"select {_COLUMNS} from document_version v "  # noqa: S608
_CROWDED: Final = (
    "select document_id from document_version where container_id = ? group by document_id having count(*) > ? limit 1"
)
_GONE: Final = "not exists (select 1 from document d where d.id = v.document_id)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A former content. `path` is where the document stood then (None: nowhere), `revision` the one that had this content."""

    id: int
    container_id: int
    document_id: str
    path: str | None
    kind: str
    custom_id: str | None
    metadata: Mapping[str, Any]
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    revision: int
    reason: str
    """`replaced` or `deleted`."""
    ended_at_ms: int
    began_at_ms: int
    """0: not known."""


def _version(row: Row) -> Version:
    return Version(
        id=row[0],
        container_id=row[1],
        document_id=row[2],
        path=row[3],
        kind=row[4],
        custom_id=row[5],
        metadata=json.loads(row[6]),
        content_hash=row[7],
        size_bytes=row[8],
        mode=row[9],
        mtime_ns=row[10],
        revision=row[11],
        reason=row[12],
        ended_at_ms=row[13],
        began_at_ms=row[14],
    )


class VersionStore:
    """The document_version table, read and pruned."""

    def __init__(self, db: Database, clock: Clock, blobs: BlobStore) -> None:
        self._db = db
        self._clock = clock
        self._blobs = blobs

    def of_document(self, document: Document, *, before: int = INT64_MAX, limit: int) -> list[Version]:
        """Versions of a document, newest first, and those of deleted documents that stood last where it stands now."""
        condition = "v.document_id = ?"
        bindings: tuple[Any, ...] = (document.container_id, document.id)
        if document.path is not None:
            condition = f"({condition} or (v.path = ? and {_GONE}))"
            bindings += (document.path,)
        return self._newest(condition, bindings, before, limit)

    def of_path(self, container_id: int, path: str, *, before: int = INT64_MAX, limit: int) -> list[Version]:
        """Versions of deleted documents that stood last at `path`, newest first."""
        return self._newest(f"v.path = ? and {_GONE}", (container_id, path), before, limit)

    def _newest(self, condition: str, bindings: tuple[Any, ...], before: int, limit: int) -> list[Version]:
        rows = self._db.all(
            f"{_SELECT} where v.container_id = ? and {condition} and v.id < ? order by v.id desc limit ?",
            (*bindings, before, limit),
        )
        return [_version(row) for row in rows]

    def deleted(self, container_id: int, *, prefix: str, before: int = INT64_MAX, limit: int) -> list[Version]:
        """The last content of each document that was deleted at or below `prefix`, latest deletion first."""
        first, end = below(prefix)
        return self._newest(
            f"(v.path = ? or (v.path >= ? and v.path < ?)) and v.reason = 'deleted' and {_GONE} "  # noqa: S608
            "and not exists (select 1 from document_version n where n.document_id = v.document_id and n.id > v.id "
            "and n.reason = 'deleted')",
            (container_id, prefix, first, end),
            before,
            limit,
        )

    def get(self, container_id: int, version: int) -> Version:
        """One version, or NotFoundError."""
        row = self._db.one(f"{_SELECT} where v.container_id = ? and v.id = ?", (container_id, version))
        if row is None:
            raise NotFoundError(f"there is no version {version}", hint="it may have been pruned; list the versions again")
        return _version(row)

    def content_since_ms(self, document: Document) -> int:
        """Since when a document has the content and mode that it has."""
        row = self._db.one("select content_at_ms from document where id = ?", (document.id,))
        return document.created_at_ms if row is None or not row[0] else int(row[0])

    def usage(self, container_id: int) -> tuple[int, int]:
        """How many versions a container keeps, and the sum of their sizes (equal contents are stored once, counted each)."""
        row = self._db.one(
            "select count(*), coalesce(sum(size_bytes), 0) from document_version where container_id = ?", (container_id,)
        )
        assert row is not None
        return int(row[0]), int(row[1])

    def containers(self, *, after: int, limit: int) -> list[int]:
        """Containers that keep versions, by id, from the one after `after` on."""
        rows = self._db.all(
            "select k.id from container k where k.id > ? and exists (select 1 from document_version v "
            "where v.container_id = k.id) order by k.id limit ?",
            (after, limit),
        )
        return [row[0] for row in rows]

    def prune(self, container: Container, *, limit: int = PRUNE_ROWS) -> int:
        """Let versions go that are older than the container keeps them, and those of a document past the number that it keeps
        (the number was lowered since), at most `limit`. Returns how many went."""
        now_ms = self._clock.now_ns() // 1_000_000
        oldest = self._db.one("select min(ended_at_ms) from document_version where container_id = ?", (container.id,))
        if oldest is None or oldest[0] is None:
            return 0
        if oldest[0] > now_ms - container.versions_days * DAY_MS and self._db.one(_CROWDED, _crowded(container)) is None:
            return 0
        with narrowed_to(container.org_id), self._db.write() as connection:
            keeper = VersionKeeper(connection, container, now_ms, self._blobs)
            count, orphans = keeper.prune_aged(limit)
            if count < limit:
                crowded, more = keeper.prune_crowded(limit - count)
                count, orphans = count + crowded, orphans + more
        self._blobs.tidy(orphans)
        return count

    def purge(self, container: Container, *, document_id: str | None, path: str) -> int:
        """Delete the versions of a document and those of deleted documents at or below `path`. Returns how many."""
        with narrowed_to(container.org_id), self._db.write() as connection:
            count, orphans = purge(connection, self._blobs, container.id, document_id=document_id, path=path)
        self._blobs.tidy(orphans)
        return count


class VersionKeeper:
    """Keeps versions inside a transaction. Methods return places that `BlobStore.tidy` may look at after the commit."""

    def __init__(self, connection: Transaction, container: Container, now_ms: int, blobs: BlobStore) -> None:
        self._connection = connection
        self._container = container
        self._now_ms = now_ms
        self._blobs = blobs

    def keep(self, document: Document, reason: str) -> list[str]:
        """Before a document's row changes or goes: its content becomes a version, which takes over its reference."""
        if document.kind == "dir":
            return []
        return self._keep_where("id = ?", (document.id,), reason)

    def keep_below(self, path: str) -> list[str]:
        """Before everything at and below `path` is deleted."""
        first, end = below(path)
        where = "container_id = ? and (path = ? or (path >= ? and path < ?))"
        return self._keep_where(where, (self._container.id, path, first, end), "deleted")

    def _keep_where(self, where: str, bindings: tuple[Any, ...], reason: str) -> list[str]:
        if self._container.versions_max == 0 or self._container.versions_days == 0:
            rows = fetch(self._connection, f"select content_hash from document where kind <> 'dir' and {where}", bindings)  # noqa: S608
            return self._blobs.release(self._connection, [row[0] for row in rows])
        kept = fetch(
            self._connection,
            "insert into document_version (container_id, document_id, path, kind, custom_id, metadata, content_hash, "  # noqa: S608
            "size_bytes, mode, mtime_ns, revision, reason, ended_at_ms, began_at_ms, ended_seq) select container_id, id, "
            "path, kind, custom_id, metadata, content_hash, size_bytes, mode, mtime_ns, revision, cast(? as text), "
            "cast(? as bigint), content_at_ms, (select last_seq from container where container.id = document.container_id) "
            f"from document where kind <> 'dir' and {where} returning document_id",
            (reason, self._now_ms, *bindings),
        )
        pruned: list[Row] = []
        for (document_id,) in kept:
            pruned += fetch(
                self._connection,
                "delete from document_version where id in (select id from document_version where document_id = ? "  # noqa: S608
                f"order by id desc limit {_ALL} offset ?) returning content_hash",
                (document_id, self._container.versions_max),
            )
        orphans = self._blobs.release(self._connection, [row[0] for row in pruned])
        return orphans + self.prune_aged(PRUNE_ROWS)[1]

    def prune_crowded(self, limit: int) -> tuple[int, list[str]]:
        """Let at most `limit` versions go that are one too many of their document, oldest first. Returns how many went, too."""
        rows = fetch(
            self._connection,
            "delete from document_version where id in (select id from (select id, row_number() over "
            "(partition by document_id order by id desc) as place from document_version where container_id = ?) as counted "
            "where place > ? order by id limit ?) returning content_hash",
            (self._container.id, self._container.versions_max, limit),
        )
        return len(rows), self._blobs.release(self._connection, [row[0] for row in rows])

    def prune_aged(self, limit: int) -> tuple[int, list[str]]:
        """Let at most `limit` versions go that are older than the container keeps them. Returns how many went, too. What a
        memory said before goes with the memory: it answers what was believed when."""
        rows = fetch(
            self._connection,
            "delete from document_version where id in (select v.id from document_version v where container_id = ? "
            "and ended_at_ms <= ? and not exists (select 1 from agent_memory m where m.document_id = v.document_id) "
            "order by ended_at_ms limit ?) returning content_hash",
            (self._container.id, self._now_ms - self._container.versions_days * DAY_MS, limit),
        )
        return len(rows), self._blobs.release(self._connection, [row[0] for row in rows])

    def adopt(self, former_id: str, document_id: str) -> None:
        """Another document took the place of a former one (a save by rename): the history goes on."""
        self._connection.execute(
            "update document_version set document_id = ? where container_id = ? and document_id = ?",
            (document_id, self._container.id, former_id),
        )

    def get(self, version: int) -> Version:
        """One version, or NotFoundError."""
        rows = fetch(self._connection, f"{_SELECT} where v.container_id = ? and v.id = ?", (self._container.id, version))
        if not rows:
            raise NotFoundError(f"there is no version {version}", hint="it may have been pruned; list the versions again")
        return _version(rows[0])


def _crowded(container: Container) -> tuple[int, int]:
    return container.id, container.versions_max


def restoring(version: Version, standing: Document | None, request: Restore, *, now_ms: int) -> Put:
    """The put that makes a version the newest content. `standing` is its document, when that is still there."""
    path = request.path or (version.path if standing is None else standing.path)
    return Put(
        path=path,
        kind=version.kind,
        blob=StagedBlob(hash=version.content_hash, size_bytes=version.size_bytes, data=None, place=None),
        mode=version.mode,
        mtime_ns=now_ms * 1_000_000,
        if_match=request.if_match,
        if_none_match=request.if_none_match,
        priority=request.priority,
        document_id=version.document_id if path is None and standing is not None else None,
    )


def purge(
    connection: Transaction, blobs: BlobStore, container_id: int, *, document_id: str | None, path: str | None
) -> tuple[int, list[str]]:
    """Delete the versions of a document, and those of deleted documents at or below `path`, inside the caller's transaction.
    Returns how many, and places for `BlobStore.tidy`."""
    rows: list[Row] = []
    if document_id is not None:
        rows += fetch(
            connection,
            "delete from document_version where container_id = ? and document_id = ? returning content_hash",
            (container_id, document_id),
        )
    if path is not None:
        first, end = below(path)
        rows += fetch(
            connection,
            "delete from document_version where id in (select v.id from document_version v where v.container_id = ? "  # noqa: S608
            f"and (v.path = ? or (v.path >= ? and v.path < ?)) and {_GONE}) returning content_hash",
            (container_id, path, first, end),
        )
    return len(rows), blobs.release(connection, [row[0] for row in rows])
