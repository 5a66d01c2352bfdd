"""plain.db: which document is shown where, and the feed made of what changed. Every number comes from here, gap-free.

Kept for the life of a mount, while connections come and go. Reads see every committed write; writes take the transaction.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from memdir.api.v1 import Change, FileEntry
from memdir.core.ids import new_id
from memdir.core.sqlite import Connection, Database
from memdir.fs.path import decode, encode
from memdir.sync.facts import below
from memdir.sync.model import EMPTY_HASH, PLAIN_EPOCH
from memdir.sync.plain.marks import Face
from memdir.sync.plain.touched import Touched

PLAIN_FILE: Final = "plain.db"
"""In a mount's folder."""
SENT_MAX: Final = 20_000
"""Creations without a last word that are remembered."""
_COLUMNS: Final = (
    "id, filepath, path, kind, content_hash, size_bytes, mode, mtime_ns, revision, custom_id, write_key, replaces, created_us,"
    " updated_us, status, note"
)
_UNSETTLED: Final = "status not in ('done', 'failed', 'dropped')"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A document as the records have it: what it shows (`face`, None as long as that is not known) and where (`path`)."""

    id: str
    filepath: str | None
    path: str | None
    face: Face | None
    revision: int
    custom_id: str | None
    write_key: str
    replaces: str
    created_us: int
    updated_us: int
    status: str
    note: str = ""

    @property
    def order(self) -> tuple[int, str]:
        """As `wire.Document.order`."""
        return self.created_us, self.id

    def entry(self) -> FileEntry:
        """As the engine sees it. Only of what is shown."""
        assert self.path is not None
        assert self.face is not None
        face = self.face
        return FileEntry(
            path=self.path, kind=face.kind, content_hash=face.content_hash, size_bytes=face.size_bytes, mode=face.mode,  # type: ignore[arg-type]
            mtime_ns=face.mtime_ns, revision=self.revision, document_id=self.id, status="done",
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder that somebody made here."""

    path: str
    mode: int
    mtime_ns: int
    revision: int

    def entry(self) -> FileEntry:
        return FileEntry(
            path=self.path, kind="dir", content_hash=EMPTY_HASH, size_bytes=0, mode=self.mode, mtime_ns=self.mtime_ns,
            revision=self.revision, document_id="", status="done",
        )  # fmt: skip


class Records:
    """Thread-safe."""

    def __init__(self, folder: Path) -> None:
        self._db = Database(folder / PLAIN_FILE, migrations="memdir.sync.plain.schema")
        self.touched = Touched()
        self.deciding = threading.RLock()
        """Held from reading what is known of a document until what follows from it is noted."""
        self.refreshing = threading.RLock()
        """One reading of the server at a time."""
        self.refreshed_at_s = self.scanned_at_s = float("-inf")
        """Monotonic; when the last one ended, and the last that looked at every document."""
        self.waiting_since_s: dict[str, float] = {}
        """Documents that have no place yet, and since when that is known. Only the reading thread uses it."""
        self.seen_at_s: dict[str, float] = {}
        """Documents the server works on, and when that was last seen. Under `deciding`."""
        self._grown = threading.Condition()
        if not self.text("life"):
            with self.transaction() as tx:
                self.begin_life(tx, "")

    def close(self) -> None:
        self.wake()
        self._db.close()

    def wake(self) -> None:
        """Let who waits look again."""
        with self._grown:
            self._grown.notify_all()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All of it or nothing; wakes who waits for the feed."""
        with self._db.write() as tx:
            yield tx
        self.wake()

    def wait(self, seconds: float) -> None:
        """Until something was written, or the time is over."""
        with self._grown:
            self._grown.wait(seconds)

    # --- single values -------------------------------------------------------------------------------------------

    def text(self, key: str) -> str:
        row = self._db.one("select value from meta where key = ?", (key,))
        return "" if row is None else str(row[0])

    def number(self, key: str) -> int:
        return int(self.text(key) or 0)

    def set_value(self, tx: Connection, key: str, value: str | int) -> None:
        tx.execute(
            "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
            (key, str(value)),
        )

    @property
    def epoch(self) -> str:
        """Another one when our numbers, or the container, are others than before."""
        return f"{PLAIN_EPOCH}{self.text('marker') or 'none'}-{self.text('life')}"

    @property
    def last_seq(self) -> int:
        return self.number("seq")

    def begin_life(self, tx: Connection, marker: str) -> None:
        """Forget everything: the container is another one, or was put back to an earlier state."""
        tx.execute("delete from document; delete from folder; delete from feed; delete from sent; delete from meta")
        self.set_value(tx, "life", new_id())
        self.set_value(tx, "marker", marker)

    # --- the feed ------------------------------------------------------------------------------------------------

    def log(
        self, tx: Connection, kind: str, path: str, *, known: Known | Folder | None = None, source: str | None = None
    ) -> int:
        """Add a change; its number."""
        seq = int(_only(tx, "select coalesce((select value from meta where key = 'seq'), 0)")) + 1
        self.set_value(tx, "seq", seq)
        entry = None
        if known is not None:
            entry = known.entry().model_copy(update={"revision": seq})
        change = Change(seq=seq, kind=kind, path=path, from_path=source, entry=entry)  # type: ignore[arg-type]
        tx.execute("insert into feed (seq, change) values (?, ?)", (seq, change.model_dump_json(by_alias=True)))
        return seq

    def changes(self, since: int, limit: int) -> tuple[list[Change], int]:
        """Changes behind `since`, and the last number of all, at one moment."""
        with self._db.snapshot() as reader:
            rows = reader.execute("select change from feed where seq > ? order by seq limit ?", (since, limit)).fetchall()
            last = _only(reader, "select coalesce((select value from meta where key = 'seq'), 0)")
        return [Change.model_validate_json(str(row[0])) for row in rows], int(last)

    def forget_changes(self, up_to: int) -> None:
        """The engine has them."""
        if self._db.one("select 1 from feed where seq <= ? limit 1", (up_to,)) is not None:
            with self._db.write() as tx:
                tx.execute("delete from feed where seq <= ?", (up_to,))

    def cut_feed(self, tx: Connection) -> None:
        """Nobody reads the feed from before here: everything has to be compared."""
        seq = int(_only(tx, "select coalesce((select value from meta where key = 'seq'), 0)")) + 1
        self.set_value(tx, "seq", seq)
        self.set_value(tx, "feed_from", seq)
        tx.execute("delete from feed")

    # --- documents -----------------------------------------------------------------------------------------------

    def known(self, document_id: str) -> Known | None:
        row = self._db.one(f"select {_COLUMNS} from document where id = ?", (document_id,))
        return None if row is None else _known(row)

    def at(self, path: str) -> Known | None:
        """The document that is shown at `path`."""
        row = self._db.one(f"select {_COLUMNS} from document where path = ?", (encode(path),))
        return None if row is None else _known(row)

    def shown_below(self, path: str) -> list[Known]:
        """What is shown strictly below a folder, in path order."""
        rows = self._db.all(f"select {_COLUMNS} from document where path >= ? and path < ? order by path", below(path))
        return [_known(row) for row in rows]

    def has_below(self, path: str) -> bool:
        return self._db.one("select 1 from document where path >= ? and path < ? limit 1", below(path)) is not None

    def without_place(self) -> list[Known]:
        """Documents whose contents are known and that cannot be shown where they want to be, oldest first."""
        rows = self._db.all(
            f"select {_COLUMNS} from document where path is null and filepath is not null and kind != ''"
            " order by created_us, id limit 1000"
        )
        return [_known(row) for row in rows]

    def unsettled(self, limit: int) -> list[str]:
        """Ids of documents that the server is not done with, as far as is known."""
        rows = self._db.all(f"select id from document where {_UNSETTLED} order by updated_us limit ?", (limit,))
        return [str(row[0]) for row in rows]

    def unsettled_paths(self, scope: str, limit: int) -> list[str]:
        """Where those stand or will stand."""
        rows = self._db.all(
            f"select filepath from document where {_UNSETTLED} and filepath is not null"
            " and (?1 = '/' or filepath = ?1 or substr(filepath, 1, length(?1) + 1) = ?1 || '/') order by filepath limit ?2",
            (scope, limit),
        )
        return [str(row[0]) for row in rows]

    def ids(self) -> dict[str, int]:
        """Every document that is believed to be at the server, with its last known change. A whole container's worth."""
        return {
            str(row[0]): int(row[1]) for row in self._db.all("select id, updated_us from document where status != 'dropped'")
        }

    def count(self) -> int:
        """How many documents are believed to be at the server."""
        row = self._db.one("select count(*) from document where status != 'dropped'")
        return 0 if row is None else int(row[0])

    def put(self, tx: Connection, known: Known) -> None:
        """Note a document as it is now."""
        face = known.face or Face(kind="", content_hash="", size_bytes=0, mode=0, mtime_ns=0)
        tx.execute(
            f"insert or replace into document ({_COLUMNS}) values (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
            (
                known.id, known.filepath, None if known.path is None else encode(known.path), face.kind, face.content_hash,
                face.size_bytes, face.mode, face.mtime_ns, known.revision, known.custom_id, known.write_key, known.replaces,
                known.created_us, known.updated_us, known.status, known.note,
            ),
        )  # fmt: skip

    def forget(self, tx: Connection, document_id: str) -> None:
        tx.execute("delete from document where id = ?", (document_id,))

    # --- folders -------------------------------------------------------------------------------------------------

    def folder(self, path: str) -> Folder | None:
        row = self._db.one("select path, mode, mtime_ns, revision from folder where path = ?", (encode(path),))
        return None if row is None else _folder(row)

    def folders_below(self, path: str) -> list[Folder]:
        """Strictly below, in path order."""
        rows = self._db.all(
            "select path, mode, mtime_ns, revision from folder where path >= ? and path < ? order by path", below(path)
        )
        return [_folder(row) for row in rows]

    def put_folder(self, tx: Connection, folder: Folder) -> None:
        tx.execute(
            "insert or replace into folder (path, mode, mtime_ns, revision) values (?,?,?,?)",
            (encode(folder.path), folder.mode, folder.mtime_ns, folder.revision),
        )

    def forget_folder(self, tx: Connection, path: str) -> None:
        tx.execute("delete from folder where path = ?", (encode(path),))

    def entries(self, prefix: str, after: str | None, limit: int) -> tuple[list[FileEntry], int]:
        """What is shown at and below `prefix`, in path order, and the last number; at one moment."""
        low, high = below(prefix)
        behind = b"" if after is None else encode(after)
        with self._db.snapshot() as reader:
            documents = reader.execute(
                f"select {_COLUMNS} from document where (path = ?1 or (path >= ?2 and path < ?3)) and path > ?4"
                " order by path limit ?5",
                (encode(prefix), low, high, behind, limit),
            ).fetchall()
            folders = reader.execute(
                "select path, mode, mtime_ns, revision from folder"
                " where (path = ?1 or (path >= ?2 and path < ?3)) and path > ?4 order by path limit ?5",
                (encode(prefix), low, high, behind, limit),
            ).fetchall()
            last = _only(reader, "select coalesce((select value from meta where key = 'seq'), 0)")
        found = [_known(row).entry() for row in documents] + [_folder(row).entry() for row in folders]
        return sorted(found, key=lambda entry: encode(entry.path))[:limit], int(last)

    # --- creations -----------------------------------------------------------------------------------------------

    def sent(self, key: str) -> str | None:
        """The document that a creation with this key made ('' while that is not known); None when there was none."""
        row = self._db.one("select document_id from sent where write_key = ?", (key,))
        return None if row is None else str(row[0])

    def note_sent(self, tx: Connection, key: str, document_id: str) -> None:
        """Remember it; the oldest are forgotten."""
        number = int(_only(tx, "select coalesce(max(number), 0) from sent")) + 1
        tx.execute("insert or replace into sent (write_key, document_id, number) values (?, ?, ?)", (key, document_id, number))
        tx.execute("delete from sent where number <= ?", (number - SENT_MAX,))

    def forget_sent(self, tx: Connection, keys: Iterable[str]) -> None:
        for key in keys:
            tx.execute("delete from sent where write_key = ?", (key,))


def _only(connection: Connection, sql: str) -> Any:
    row = connection.execute(sql).fetchone()
    assert row is not None
    return row[0]


def _known(row: tuple[Any, ...]) -> Known:
    kind = str(row[3])
    face = Face(kind=kind, content_hash=row[4], size_bytes=row[5], mode=row[6], mtime_ns=row[7]) if kind else None
    return Known(
        id=row[0], filepath=row[1], path=None if row[2] is None else decode(row[2]), face=face, revision=row[8],
        custom_id=row[9], write_key=row[10], replaces=row[11], created_us=row[12], updated_us=row[13], status=row[14],
        note=row[15],
    )  # fmt: skip


def _folder(row: tuple[Any, ...]) -> Folder:
    return Folder(path=decode(row[0]), mode=row[1], mtime_ns=row[2], revision=row[3])
