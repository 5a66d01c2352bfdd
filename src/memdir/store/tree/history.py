"""What stood at a moment: contents that are, or were, in the tree then, and where.

A content has a life: from the change that brought it to the one that replaced or deleted it. Those of today are rows of
`document`, the others of `document_version`. Renames since then are taken back one by one, newest first: everything at or below
the place where a rename went came with it, because nothing may stand there before. Renames that the changes feed has forgotten
cannot be taken back; then the place is where the content stood at the end of its life.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.store.database import Database, Row
from memdir.store.errors import InvalidError
from memdir.store.paths import below, is_within

MOVES_MAX: Final = 5000
"""Renames that are taken back at most for one question."""
SCAN_ROWS: Final = 50_000
"""Changes of a container that one page of a folder's history looks through at most."""
DOCUMENTS: Final = "d"
VERSIONS: Final = "v"


@dataclass(frozen=True, slots=True, kw_only=True)
class Renamed:
    """One rename of the feed."""

    seq: int
    path: str
    from_path: str
    at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A content, and where it stood at the moment asked for. `version` is None while it is the content today: of what stands
    at `stands_at` now."""

    path: str
    kind: str
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    document_id: str
    version: int | None
    stands_at: str | None
    began_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Happened:
    """A change as people read it."""

    seq: int
    kind: str
    path: str
    from_path: str | None
    entry_kind: str | None
    content_hash: str | None
    size_bytes: int | None
    mode: int | None
    at_ms: int


class HistoryStore:
    """Questions about the past. Reads only."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def renames(self, container_id: int, *, after_ms: int) -> list[Renamed]:
        """Renames after a moment, newest first. InvalidError when they are more than MOVES_MAX."""
        rows = self._db.all(
            "select seq, path, from_path, at_ms from change where container_id = ? and kind = 'move' and at_ms > ? "
            "order by seq desc limit ?",
            (container_id, after_ms, MOVES_MAX + 1),
        )
        if len(rows) > MOVES_MAX:
            raise InvalidError(f"more than {MOVES_MAX} renames happened since then", hint="choose a later moment")
        return [Renamed(seq=row[0], path=row[1], from_path=row[2], at_ms=row[3]) for row in rows]

    def told_since_ms(self, container_id: int) -> int:
        """Since when the feed tells every rename; 0: since the beginning."""
        row = self._db.one(
            "select c.at_ms from container k join change c on c.container_id = k.id and c.seq = k.first_seq "
            "where k.id = ? and k.first_seq > 1",
            (container_id,),
        )
        return 0 if row is None else int(row[0])

    def at(
        self, container_id: int, *, prefix: str, at_ms: int, cursor: tuple[str, str], limit: int, renames: Sequence[Renamed]
    ) -> tuple[list[Life], tuple[str, str] | None]:
        """Lives at and below `prefix` at a moment, in no order, and where to go on. `cursor` begins as (DOCUMENTS, '')."""
        table, after = cursor
        first, end = below(prefix)
        # What stood here then may stand anywhere now, if a rename touched this folder or one above it.
        far = any(
            is_within(place, prefix) or is_within(prefix, place) for move in renames for place in (move.path, move.from_path)
        )
        where, bindings = ("", ()) if far else (" and (path = ? or (path >= ? and path < ?))", (prefix, first, end))
        if table == DOCUMENTS:
            rows = self._documents(container_id, where, bindings, at_ms, after, limit)
        else:
            rows = self._versions(container_id, where, bindings, at_ms, int(after or 0), limit)
        found = []
        for row in rows:
            path = row[1] if not renames else path_then(row[1], _that_concern(row, renames) if table == VERSIONS else renames)
            if is_within(path, prefix):
                found.append(_life(row, path, today=table == DOCUMENTS))
        if len(rows) == limit:
            return found, (table, str(rows[-1][0]))
        return found, (VERSIONS, "") if table == DOCUMENTS else None

    def _documents(
        self, container_id: int, where: str, bindings: tuple[str, ...], at_ms: int, after: str, limit: int
    ) -> list[Row]:
        return self._db.all(
            "select id, path, kind, content_hash, size_bytes, mode, mtime_ns, id, content_at_ms, created_at_ms from document d "  # noqa: S608
            "where container_id = ? and kind <> 'dir' and path is not null and id > ? "
            f"and (case when content_at_ms = 0 then created_at_ms else content_at_ms end) <= ?{where} "
            "and (content_at_ms > 0 or not exists (select 1 from document_version v where v.document_id = d.id "
            "and v.ended_at_ms > ?)) order by id limit ?",
            (container_id, after, at_ms, *bindings, at_ms, limit),
        )

    def _versions(
        self, container_id: int, where: str, bindings: tuple[str, ...], at_ms: int, after: int, limit: int
    ) -> list[Row]:
        return self._db.all(
            "select id, path, kind, content_hash, size_bytes, mode, mtime_ns, document_id, began_at_ms, revision, "  # noqa: S608
            "ended_at_ms, ended_seq from document_version v where container_id = ? and path is not null and id > ? "
            f"and ended_at_ms > ? and began_at_ms <= ?{where} and (began_at_ms > 0 or not exists (select 1 from "
            "document_version p where p.document_id = v.document_id and p.id < v.id and p.ended_at_ms > ?)) "
            "order by id limit ?",
            (container_id, after, at_ms, at_ms, *bindings, at_ms, limit),
        )

    def renames_of(self, container_id: int, path: str, *, since_ms: int, limit: int) -> list[Renamed]:
        """The renames that brought a document to `path`, newest first, back to the moment when it was made."""
        found = []
        rows = self._db.all(
            "select seq, path, from_path, at_ms from change where container_id = ? and kind = 'move' and at_ms >= ? "
            "order by seq desc limit ?",
            (container_id, since_ms, MOVES_MAX),
        )
        for seq, to, source, at_ms in rows:
            if is_within(path, to):
                before = source + path[len(to) :]
                found.append(Renamed(seq=seq, path=path, from_path=before, at_ms=at_ms))
                path = before
        return found[:limit]

    def happened(self, container_id: int, *, prefix: str, before: int, limit: int) -> tuple[list[Happened], int | None]:
        """Changes at and below `prefix`, newest first, and the number to go on before. A page may be short, and there be more:
        it looks through SCAN_ROWS changes only."""
        first, end = below(prefix)
        newest = self._db.one("select last_seq, first_seq from container where id = ?", (container_id,))
        if newest is None:
            return [], None
        upper = min(before, int(newest[0]) + 1)
        lower = max(upper - SCAN_ROWS, int(newest[1]))
        rows = self._db.all(
            "select seq, kind, path, from_path, entry_kind, content_hash, size_bytes, mode, at_ms from change "
            "where container_id = ? and seq >= ? and seq < ? and (path = ? or (path >= ? and path < ?) "
            "or from_path = ? or (from_path >= ? and from_path < ?)) order by seq desc limit ?",
            (container_id, lower, upper, prefix, first, end, prefix, first, end, limit + 1),
        )
        found = [_happened(row) for row in rows[:limit]]
        if len(rows) > limit:
            return found, found[-1].seq
        return found, lower if lower > int(newest[1]) else None


def _that_concern(row: Row, renames: Sequence[Renamed]) -> list[Renamed]:
    """The renames of a version's life. Times do not tell those of one batch apart, numbers do."""
    ended_at_ms, ended_seq = row[10], row[11]
    return [move for move in renames if (move.seq <= ended_seq if ended_seq else move.at_ms <= ended_at_ms)]


def path_then(path: str, renames: Sequence[Renamed]) -> str:
    """Where a content stood before `renames` (newest first), all of which happened while it stood."""
    for move in renames:
        if is_within(path, move.path):
            path = move.from_path + path[len(move.path) :]
    return path


def _life(row: Row, path: str, *, today: bool) -> Life:
    return Life(
        path=path,
        kind=row[2],
        content_hash=row[3],
        size_bytes=row[4],
        mode=row[5],
        mtime_ns=row[6],
        document_id=row[7],
        version=None if today else row[0],
        stands_at=row[1] if today else None,
        began_at_ms=row[8],
    )


def _happened(row: Row) -> Happened:
    names = ("seq", "kind", "path", "from_path", "entry_kind", "content_hash", "size_bytes", "mode", "at_ms")
    values: dict[str, Any] = dict(zip(names, row, strict=True))
    return Happened(**values)
