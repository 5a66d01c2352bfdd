"""The history of a container: rows in commit order, numbered without gaps."""

from __future__ import annotations

import secrets
from dataclasses import dataclass, replace
from typing import Final

from memdir.store.database import Database, Row, Transaction, fetch, marks_for
from memdir.store.errors import HistoryForkedError, HistoryGoneError
from memdir.store.paths import ancestors, below, is_within


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
    token: str = ""
    """Drawn when it was recorded: another history has another one under the same number. Empty for a row older than tokens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFeed:
    """A page of history with the container's counters from the same snapshot."""

    epoch: str
    last_seq: int
    profile_version: int
    rows: list[ChangeRow]
    siblings_version: int = 0
    last_row_seq: int | None = None
    """Where to go on when the page was full; None: the feed ends here."""
    last_token: str = ""
    """The token of `last_seq`."""


PRUNE_ROWS: Final = 5000
"""Changes that one step of pruning takes away at most, so that it holds the writer for milliseconds."""


class ChangeStore:
    """The change table."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def since(self, container_id: int, seq: int, *, limit: int, token: str = "") -> ChangeFeed | None:
        """At most `limit` changes after `seq`, oldest first; None when the container is gone. HistoryGoneError when changes
        after `seq` were pruned: everything has to be compared again. HistoryForkedError when `token` is not that of `seq`."""
        rows = self._db.all(
            _SINCE + "where k.id = ? order by c.seq limit ?",
            (seq, seq, container_id, limit),
        )
        feed = _feed(rows, seq, token)
        full = feed is not None and len(feed.rows) >= limit
        return replace(feed, last_row_seq=feed.rows[-1].seq) if feed is not None and full else feed

    def prune(self, container_id: int, *, before_ms: int) -> int:
        """Let go of at most PRUNE_ROWS changes of a container that are older. Returns how many went."""
        with self._db.write() as connection:
            # Times may go back, numbers do not: what goes is a beginning of the history, up to the first row that is younger.
            # The last row always stays: by its token a client that has read everything is known.
            rows = fetch(
                connection,
                "select coalesce(min(case when at_ms >= ? then seq end), max(seq) + 1) from "
                "(select seq, at_ms from change where container_id = ? and "
                "seq <= (select last_seq - 1 from container where id = ?) order by seq limit ?) as oldest",
                (before_ms, container_id, container_id, PRUNE_ROWS),
            )
            first_seq = rows[0][0]
            if first_seq is None:
                return 0
            connection.execute(
                "update container set first_seq = ? where id = ? and first_seq < ?", (first_seq, container_id, first_seq)
            )
            connection.execute("delete from change where container_id = ? and seq < ?", (container_id, first_seq))
            return connection.changes()

    def since_below(self, container_id: int, seq: int, *, limit: int, folder: str, token: str = "") -> ChangeFeed | None:
        """`since` as somebody sees it who sees `folder` and what is below it only. Numbers stay the container's, so theirs have
        gaps. What was moved out was deleted for them, what was moved in was put. HistoryGoneError when more came in by one move
        than a page may hold."""
        condition, bindings = _touching(folder)
        query = _SINCE.replace(" c.seq > ?", f" c.seq > ? and ({condition})") + "where k.id = ? order by c.seq limit ?"
        with self._db.snapshot() as reader:
            while True:  # ends: each round begins behind the last row of the one before
                feed = _feed(fetch(reader, query, (seq, seq, *bindings, container_id, limit)), seq, token)
                if feed is None:
                    return None
                rows = [shown for row in feed.rows for shown in _seen(reader, container_id, row, folder)]
                if rows or len(feed.rows) < limit:
                    break
                seq, token = feed.rows[-1].seq, feed.rows[-1].token
        return replace(feed, rows=rows, last_row_seq=feed.rows[-1].seq if len(feed.rows) >= limit else None)


_SINCE: Final = (
    "select k.epoch, k.last_seq, k.profile_version, k.first_seq, k.siblings_version, "
    "(select p.token from change p where p.container_id = k.id and p.seq = ?), "
    "(select p.token from change p where p.container_id = k.id and p.seq = k.last_seq), c.token, "
    "c.seq, c.kind, c.path, c.from_path, c.document_id, "
    "c.entry_kind, c.content_hash, c.size_bytes, c.mode, c.mtime_ns, d.status, d.error "
    "from container k left join change c on c.container_id = k.id and c.seq > ? "
    "left join document d on d.id = c.document_id and d.revision = c.seq "
)
CAME_IN_MAX: Final = 1000


def _feed(rows: list[Row], since: int, since_token: str) -> ChangeFeed | None:
    if not rows:
        return None
    epoch, last_seq, profile_version, first_seq, siblings_version, known_token, last_token = rows[0][:7]
    if since_token and since > 0:
        _check_token(since, since_token, known_token, last_seq)
    if since + 1 < first_seq and since < last_seq:
        raise HistoryGoneError(f"changes are told from number {first_seq} on", hint="compare everything again")
    changes = []
    for row in rows:
        token, number, kind, path, from_path, document_id, entry_kind, digest, size, mode, mtime, status, error = row[7:]
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
        changes.append(ChangeRow(seq=number, kind=kind, path=path, from_path=from_path, entry=entry, token=token))
    return ChangeFeed(
        epoch=epoch,
        last_seq=last_seq,
        profile_version=profile_version,
        rows=changes,
        last_token=last_token or "",
        siblings_version=siblings_version,
    )


def _check_token(since: int, token: str, known: str | None, last_seq: int) -> None:
    """Whether whoever saw `token` under the number `since` saw this history. HistoryForkedError, HistoryGoneError."""
    if since > last_seq or (known is not None and known != token):
        raise HistoryForkedError(f"change {since} of this history is another one", hint="compare everything again")
    if known is None:
        raise HistoryGoneError(f"change {since} is not told any more", hint="compare everything again")


def _touching(folder: str) -> tuple[str, tuple[str, ...]]:
    """Rows that are about `folder`, something below it, or a folder above it that went or came as a whole."""
    first, end = below(folder)
    above = ancestors(folder)
    marks = marks_for(above)
    condition = "c.path = ? or (c.path >= ? and c.path < ?) or c.from_path = ? or (c.from_path >= ? and c.from_path < ?)"
    bindings: tuple[str, ...] = (folder, first, end) * 2
    if above:
        condition += f" or (c.kind <> 'put' and (c.path in ({marks}) or c.from_path in ({marks})))"
        bindings += (*above, *above)
    return condition, bindings


def _seen(reader: Transaction, container_id: int, row: ChangeRow, folder: str) -> list[ChangeRow]:
    """One row of history as those see it who see `folder` only."""
    if row.kind == "put":
        return [row]
    if row.kind == "delete":
        return [row if is_within(row.path, folder) else replace(row, path=folder)]
    assert row.from_path is not None
    shown = []
    if is_within(row.path, folder) and is_within(row.from_path, folder):
        shown.append(row)
    elif is_within(row.from_path, folder):
        shown.append(replace(row, kind="delete", path=row.from_path, from_path=None))
    elif is_within(folder, row.from_path):
        shown.append(replace(row, kind="delete", path=folder, from_path=None))
    if is_within(row.path, folder) or is_within(folder, row.path):
        shown += _came_in(reader, container_id, row, folder)
    return shown


def _came_in(reader: Transaction, container_id: int, moved: ChangeRow, folder: str) -> list[ChangeRow]:
    """What `moved` brought below `folder`, as puts. What has changed again since is told by later rows."""
    rows = fetch(
        reader,
        "select d.path, d.kind, d.content_hash, d.size_bytes, d.mode, d.mtime_ns, d.id, d.status, d.error from document d "
        "where d.container_id = ? and d.revision = ? and (d.path = ? or (d.path >= ? and d.path < ?)) order by d.path limit ?",
        (container_id, moved.seq, folder, *below(folder), CAME_IN_MAX + 1),
    )
    if len(rows) > CAME_IN_MAX:
        raise HistoryGoneError(f"more than {CAME_IN_MAX} files were moved at once", hint="compare everything again")
    return [
        ChangeRow(
            seq=moved.seq,
            token=moved.token,
            kind="put",
            path=row[0],
            from_path=None,
            entry=ChangeEntry(
                kind=row[1], content_hash=row[2], size_bytes=row[3], mode=row[4], mtime_ns=row[5],
                document_id=row[6], status=row[7], error=row[8],
            ),
        )
        for row in rows
    ]  # fmt: skip


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
        "at_ms, token) values (?, ?, 'put', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (container_id, seq, path, document_id, kind, content_hash, size_bytes, mode, mtime_ns, at_ms, _new_token()),
    )


def add_move(connection: Transaction, *, container_id: int, seq: int, path: str, from_path: str, at_ms: int) -> None:
    """Record a move, inside the caller's transaction."""
    connection.execute(
        "insert into change (container_id, seq, kind, path, from_path, at_ms, token) values (?, ?, 'move', ?, ?, ?, ?)",
        (container_id, seq, path, from_path, at_ms, _new_token()),
    )


def add_delete(connection: Transaction, *, container_id: int, seq: int, path: str, at_ms: int) -> None:
    """Record a delete, inside the caller's transaction."""
    connection.execute(
        "insert into change (container_id, seq, kind, path, at_ms, token) values (?, ?, 'delete', ?, ?, ?)",
        (container_id, seq, path, at_ms, _new_token()),
    )


def _new_token() -> str:
    return secrets.token_hex(8)
