"""The history of a container: rows in commit order, numbered without gaps."""

from __future__ import annotations

from dataclasses import dataclass

from memdir.store.database import Database, Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeEntry:
    """What a put put: the entry as it was then. `status` is today's as long as the document is still at that revision."""

    kind: str
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    document_id: str
    status: str
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One step of history."""

    seq: int
    kind: str
    path: str
    from_path: str | None
    entry: ChangeEntry | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeed:
    """A page of history with the container's counters from the same snapshot."""

    epoch: str
    last_seq: int
    profile_version: int
    rows: list[ChangeRow]


class ChangeStore:
    """The change table."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def since(self, container_id: int, seq: int, *, limit: int) -> ChangeFeed | None:
        """At most `limit` changes after `seq`, oldest first; None when the container is gone."""
        rows = self._db.all(
            "select k.epoch, k.last_seq, k.profile_version, c.seq, c.kind, c.path, c.from_path, c.document_id, "
            "c.entry_kind, c.content_hash, c.size_bytes, c.mode, c.mtime_ns, d.status, d.error "
            "from container k left join change c on c.container_id = k.id and c.seq > ? "
            "left join document d on d.id = c.document_id and d.revision = c.seq "
            "where k.id = ? order by c.seq limit ?",
            (seq, container_id, limit),
        )
        if not rows:
            return None
        epoch, last_seq, profile_version = rows[0][:3]
        changes = []
        for _, _, _, number, kind, path, from_path, document_id, entry_kind, digest, size, mode, mtime, status, error in rows:
            if number is None:
                continue
            entry = None
            if kind == "put":
                entry = ChangeEntry(
                    kind=entry_kind,
                    content_hash=digest,
                    size_bytes=size,
                    mode=mode,
                    mtime_ns=mtime,
                    document_id=document_id,
                    status=status or ("queued" if entry_kind == "file" else "done"),
                    error=error,
                )
            changes.append(ChangeRow(seq=number, kind=kind, path=path, from_path=from_path, entry=entry))
        return ChangeFeed(epoch=epoch, last_seq=last_seq, profile_version=profile_version, rows=changes)


def add_put(
    connection: Transaction,
    *,
    container_id: int,
    seq: int,
    path: str,
    document_id: str,
    kind: str,
    content_hash: str,
    size_bytes: int,
    mode: int,
    mtime_ns: int,
    at_ms: int,
) -> None:
    """Record a put, inside the caller's transaction."""
    connection.execute(
        "insert into change (container_id, seq, kind, path, document_id, entry_kind, content_hash, size_bytes, mode, mtime_ns, "
        "at_ms) values (?, ?, 'put', ?, ?, ?, ?, ?, ?, ?, ?)",
        (container_id, seq, path, document_id, kind, content_hash, size_bytes, mode, mtime_ns, at_ms),
    )


def add_move(connection: Transaction, *, container_id: int, seq: int, path: str, from_path: str, at_ms: int) -> None:
    """Record a move, inside the caller's transaction."""
    connection.execute(
        "insert into change (container_id, seq, kind, path, from_path, at_ms) values (?, ?, 'move', ?, ?, ?)",
        (container_id, seq, path, from_path, at_ms),
    )


def add_delete(connection: Transaction, *, container_id: int, seq: int, path: str, at_ms: int) -> None:
    """Record a delete, inside the caller's transaction."""
    connection.execute(
        "insert into change (container_id, seq, kind, path, at_ms) values (?, ?, 'delete', ?, ?)",
        (container_id, seq, path, at_ms),
    )
