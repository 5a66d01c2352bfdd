"""The stored two of the three facts: what the server holds (`remote`) and what was agreed on (`base`).

`remote` changes only by the feed, in order, so it is always one consistent state of the server: the one at `watermark`. Our
own writes are known earlier, from their answers; they stand in `base` with a revision that the feed has not reached, and
count as the remote fact until it has. This is what keeps a slow feed from bringing back what was just overwritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, cast

from memdir.api.v1 import FileEntry
from memdir.core.limits import INT64_MAX
from memdir.core.sqlite import Connection, Database
from memdir.fs.path import decode, encode
from memdir.sync.model import Below, ConflictRecord, Fact, Stamp

_TOMBSTONE: Final = ""
_PAGE: Final = 1000
SAME_LIFE: Final = 1
OTHER_LIFE: Final = 2
"""Why a path is held back: see `hold`."""


def below(path: str) -> tuple[bytes, bytes]:
    """The half-open range of keys of everything strictly below `path`."""
    raw = b"" if path == "/" else encode(path)
    return raw + b"/", raw + b"0"


class Facts:
    """Reads see every committed write. Writes take the open transaction `tx` of the caller."""

    def __init__(self, db: Database) -> None:
        self._db = db

    # --- single values -------------------------------------------------------------------------------------------

    def text(self, key: str, default: str = "") -> str:
        row = self._db.one("select value from meta where key = ?", (key,))
        return default if row is None else str(row[0])

    def number(self, key: str) -> int:
        return int(self.text(key, "0"))

    def set_value(self, tx: Connection, key: str, value: str | int) -> None:
        tx.execute(
            "insert into meta (key, value) values (?, ?) on conflict (key) do update set value = excluded.value",
            (key, str(value)),
        )

    @property
    def watermark(self) -> int:
        return self.number("watermark")

    # --- one path ------------------------------------------------------------------------------------------------

    def base(self, path: str) -> Fact | None:
        """What was agreed on, None for nothing (a tombstone included)."""
        row = self._db.one("select kind, content_hash, mode, revision from base where path = ?", (encode(path),))
        return None if row is None or row[0] == _TOMBSTONE else _fact(row)

    def base_stamp(self, path: str) -> tuple[Stamp, str] | None:
        """Which local contents the agreed hash was computed from, and that hash."""
        row = self._db.one("select ino, version, content_hash from base where path = ? and ino != 0", (encode(path),))
        return None if row is None else (Stamp(ino=row[0], version=row[1]), row[2])

    def remote(self, path: str) -> Fact | None:
        """What the server holds as far as is known: the feed's state, or our own later write."""
        return self.remote_and_base(path)[0]

    def remote_and_base(self, path: str) -> tuple[Fact | None, Fact | None]:
        """Both at one moment, by one statement: the feed may be applied between two."""
        row = self._db.one(
            "select r.kind, r.content_hash, r.mode, r.revision, b.kind, b.content_hash, b.mode, b.revision,"
            " (select cast(value as integer) from meta where key = 'watermark')"
            " from (select ? as path) as asked"
            " left join remote r on r.path = asked.path left join base b on b.path = asked.path",
            (encode(path),),
        )
        assert row is not None
        known = None if row[0] is None else _fact(row[:4])
        ours = None if row[4] in (None, _TOMBSTONE) else _fact(row[4:8])
        if row[4] is None or row[7] <= (row[8] or 0) or (known is not None and known.revision >= row[7]):
            return known, ours
        return ours, ours

    def remote_times(self, path: str) -> tuple[int, int]:
        """Size in bytes and mtime in ns of the feed's state; (0, 0) when it has none."""
        row = self._db.one("select size_bytes, mtime_ns from remote where path = ?", (encode(path),))
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def remote_between(self, after: str | None, until: str | None, *, limit: int) -> dict[str, Fact]:
        """The feed's state of the first `limit` paths behind `after`, up to `until` and with it; None is no bound."""
        rows = self._db.all(
            "select path, kind, content_hash, mode, revision from remote"
            " where path > ?1 and (?2 is null or path <= ?2) order by path limit ?3",
            (encode(after or ""), None if until is None else encode(until), limit),
        )
        return {decode(row[0]): _fact(row[1:]) for row in rows}

    def remote_file(self, path: str, fact: Fact) -> tuple[int, int] | None:
        """Size in bytes and mtime in ns of exactly `fact` at `path`; None when the feed has another state there."""
        row = self._db.one(
            "select size_bytes, mtime_ns from remote where path = ? and revision = ? and content_hash = ?",
            (encode(path), fact.revision, fact.content_hash),
        )
        return None if row is None else (int(row[0]), int(row[1]))

    def is_agreed(self, path: str) -> bool:
        """Whether the server has, or had, something at `path`."""
        return self._db.one(
            "select 1 from (select path from base union all select path from remote) where path = ? limit 1", (encode(path),)
        ) is not None  # fmt: skip

    def is_known(self, path: str) -> bool:
        """Whether something is or was agreed on at `path`, or something waits there."""
        return self._db.one(
            "select 1 from (select path from base union all select path from queue) where path = ? limit 1", (encode(path),)
        ) is not None  # fmt: skip

    def paths_with(self, content_hash: str, limit: int) -> list[str]:
        """Paths of files that have these contents at the server: by the feed, or by our own later write."""
        rows = self._db.all(
            "select path from remote where kind = 'file' and content_hash = ?1"
            " union select path from base where kind = 'file' and content_hash = ?1 limit ?2",
            (content_hash, limit),
        )
        return [decode(row[0]) for row in rows]

    def set_base(
        self, tx: Connection, path: str, fact: Fact | None, stamp: Stamp | None = None, *, since_intent: int = 0
    ) -> None:
        """Note an agreement; None forgets the path. `since_intent`: the newest intent of the filesystem when it came here."""
        if fact is None:
            tx.execute("delete from base where path = ?", (encode(path),))
            return
        tx.execute(
            "insert or replace into base (path, kind, content_hash, mode, revision, ino, version, since_intent)"
            " values (?,?,?,?,?,?,?,?)",
            (
                encode(path), fact.kind, fact.content_hash, fact.mode, fact.revision,
                stamp.ino if stamp else 0, stamp.version if stamp else 0, since_intent,
            ),
        )  # fmt: skip

    def set_tombstone(self, tx: Connection, path: str, revision: int) -> None:
        """Note that both sides agreed on nothing at `revision`."""
        tx.execute(
            "insert or replace into base (path, kind, content_hash, mode, revision) values (?, '', '', 0, ?)",
            (encode(path), revision),
        )

    # --- the feed ------------------------------------------------------------------------------------------------

    def set_remote(self, tx: Connection, path: str, entry: FileEntry) -> bool:
        """The feed or a listing says what stands at `path`. False when something newer is known already."""
        tx.execute(
            "insert into remote (path, kind, content_hash, mode, revision, size_bytes, mtime_ns) values (?,?,?,?,?,?,?)"
            " on conflict (path) do update set kind = excluded.kind, content_hash = excluded.content_hash,"
            " mode = excluded.mode, revision = excluded.revision, size_bytes = excluded.size_bytes,"
            " mtime_ns = excluded.mtime_ns where excluded.revision > remote.revision",
            (
                encode(path), entry.kind, entry.content_hash, entry.mode & 0o7777, entry.revision, entry.size_bytes,
                entry.mtime_ns,
            ),
        )  # fmt: skip
        return tx.changes() > 0

    def delete_remote(self, tx: Connection, path: str, seq: int) -> list[str]:
        """The feed says that `path` and all below it went at `seq`. The paths that went, deepest first."""
        low, high = below(path)
        rows = tx.execute(
            "delete from remote where (path = ?1 or (path >= ?2 and path < ?3)) and revision < ?4 returning path",
            (encode(path), low, high, seq),
        ).fetchall()
        return sorted((decode(cast(bytes, row[0])) for row in rows), reverse=True)

    def move_remote(self, tx: Connection, source: str, path: str, seq: int) -> list[tuple[str, str]]:
        """The feed says that `source` and all below it stands at `path` since `seq`. Pairs of old and new paths."""
        return _rekey(tx, "remote", "kind, content_hash, mode, size_bytes, mtime_ns", source, path, seq)

    def move_base(self, tx: Connection, source: str, path: str, seq: int) -> None:
        """Both sides moved: so does the agreement, at the revision `seq`. What was agreed on later than that stays: it came to
        the old place after the move."""
        _rekey(tx, "base", "kind, content_hash, mode, ino, version", source, path, seq)

    def agreed_under(self, tx: Connection, path: str) -> list[tuple[str, Fact]]:
        """What was agreed on at and below `path`."""
        low, high = below(path)
        rows = tx.execute(
            "select path, kind, content_hash, mode, revision from base"
            " where (path = ?1 or (path >= ?2 and path < ?3)) and kind != ?4",
            (encode(path), low, high, _TOMBSTONE),
        ).fetchall()
        return [(decode(cast("bytes", row[0])), _fact(row[1:])) for row in rows]

    def agree_on_sent(self, tx: Connection, path: str, seq: int) -> None:
        """A rename brought things to `path` at `seq`: those that were noted as sent are our own doing."""
        low, high = below(path)
        given = (encode(path), low, high, seq)
        tx.execute(
            "insert into base (path, kind, content_hash, mode, revision)"
            " select path, kind, content_hash, mode, revision from remote r"
            " where (path = ?1 or (path >= ?2 and path < ?3)) and revision = ?4"
            " and exists (select 1 from sent s where s.path = r.path and s.kind = r.kind"
            "   and s.content_hash = r.content_hash and s.mode = r.mode and s.on_revision < ?4)"
            " on conflict (path) do update set (kind, content_hash, mode, revision, ino, version) ="
            "   (excluded.kind, excluded.content_hash, excluded.mode, excluded.revision, 0, 0)"
            " where excluded.revision > base.revision",
            given,
        )
        tx.execute("delete from sent where (path = ?1 or (path >= ?2 and path < ?3)) and on_revision < ?4", given)

    def is_tombstone(self, path: str, revision: int) -> bool:
        """Whether it was agreed that nothing stands at `path` since `revision`: the deletion was our own."""
        row = self._db.one("select kind, revision from base where path = ?", (encode(path),))
        return row is not None and row[0] == _TOMBSTONE and row[1] == revision

    def set_tombstones_below(self, tx: Connection, path: str, revision: int) -> None:
        """The same for everything strictly below `path`, deleted in one step."""
        low, high = below(path)
        tx.execute(
            "update base set kind = '', content_hash = '', mode = 0, ino = 0, version = 0, revision = ?3"
            " where path >= ?1 and path < ?2",
            (low, high, revision),
        )
        tx.execute("delete from conflict where path >= ? and path < ?", (low, high))

    def drop_tombstones(self, tx: Connection, watermark: int) -> None:
        """Forget those that the feed has passed."""
        tx.execute("delete from base where kind = '' and revision <= ?", (watermark,))

    # --- subtrees ------------------------------------------------------------------------------------------------

    def known_under(self, path: str) -> Iterator[str]:
        """Every path at or below `path` that either table knows, in key order, read in pages."""
        low, high = below(path)
        after = b""
        while True:
            rows = self._db.all(
                "select path from (select path from base where kind != '' union select path from remote)"
                " where (path = ?1 or (path >= ?2 and path < ?3)) and path > ?4 order by path limit ?5",
                (encode(path), low, high, after, _PAGE),
            )
            for row in rows:
                yield decode(row[0])
            if len(rows) < _PAGE:
                return
            after = rows[-1][0]

    def below(self, path: str) -> Below:
        """What the server holds strictly below `path`, where nothing stands in the mount: what was agreed on is to go, all
        else stays. Our own writes count before the feed brings them, as in `remote`."""
        low, high = below(path)
        row = self._db.one(
            "with mark as (select coalesce((select cast(value as integer) from meta where key = 'watermark'), 0) as seen)"
            " select exists (select 1 from remote r left join base b on b.path = r.path, mark"
            "  where r.path >= ?1 and r.path < ?2"
            "  and not coalesce(b.revision > seen and b.revision > r.revision, 0)"
            "  and not coalesce(b.kind = r.kind and b.content_hash = r.content_hash"
            "   and (r.kind = 'symlink' or b.mode = r.mode), 0)),"
            " exists (select 1 from base b, mark where b.path >= ?1 and b.path < ?2 and b.kind != ''"
            "  and (b.revision > seen or exists (select 1 from remote r where r.path = b.path)))",
            (low, high),
        )
        assert row is not None
        return Below(stays=bool(row[0]), goes=bool(row[1]))

    def has_base(self, path: str, *, before_intent: int = INT64_MAX) -> bool:
        """Whether something was agreed on at or below `path`, and stood there before that intent of the filesystem."""
        low, high = below(path)
        return self._db.one(
            "select 1 from base where (path = ?1 or (path >= ?2 and path < ?3)) and kind != '' and since_intent < ?4 limit 1",
            (encode(path), low, high, before_intent),
        ) is not None  # fmt: skip

    def is_free(self, path: str) -> bool:
        """Whether nothing at or below `path` is agreed on or at the server. Our deletions count before the feed has them."""
        low, high = below(path)
        return self._db.one(
            "with mark as (select coalesce((select cast(value as integer) from meta where key = 'watermark'), 0) as seen)"
            " select 1 where exists (select 1 from base where (path = ?1 or (path >= ?2 and path < ?3)) and kind != '')"
            " or exists (select 1 from remote r left join base b on b.path = r.path, mark"
            "  where (r.path = ?1 or (r.path >= ?2 and r.path < ?3))"
            "  and not coalesce(b.revision > seen and b.revision > r.revision, 0))",
            (encode(path), low, high),
        ) is None  # fmt: skip

    def differing(self, tx: Connection, path: str) -> list[str]:
        """Paths at and below `path` where the feed's state is not the agreed one, as the open transaction sees it."""
        low, high = below(path)
        rows = tx.execute(
            "select b.path from base b left join remote r on r.path = b.path"
            " where (b.path = ?1 or (b.path >= ?2 and b.path < ?3)) and b.kind != '' and (r.path is null"
            "  or r.kind != b.kind or r.content_hash != b.content_hash or (r.mode != b.mode and r.kind != 'symlink'))"
            " union all select r.path from remote r left join base b on b.path = r.path and b.kind != ''"
            " where (r.path = ?1 or (r.path >= ?2 and r.path < ?3)) and b.path is null",
            (encode(path), low, high),
        ).fetchall()
        return [decode(cast(bytes, row[0])) for row in rows]

    # --- what is held back ---------------------------------------------------------------------------------------

    def hold(self, tx: Connection, paths: Iterable[str], life: int) -> None:
        """Keep what is missing at the server; `life` is SAME_LIFE or OTHER_LIFE. Nothing there is newer than these."""
        tx.executemany("update base set held = ?, revision = 0 where path = ?", [(life, encode(path)) for path in paths])

    def is_held(self, path: str) -> bool:
        """Whether `path` must not be deleted although the server has it not."""
        return self._db.one("select 1 from base where path = ? and held != 0", (encode(path),)) is not None

    def held_count(self) -> int:
        row = self._db.one("select count(*) from base where held != 0")
        return int(row[0]) if row else 0

    def release_held(self, tx: Connection, *, forget: bool) -> list[str]:
        """Hold nothing back any more; with `forget` it was never agreed on. The paths, deepest first."""
        rows = tx.execute("select path from base where held != 0 order by path desc").fetchall()
        if forget:
            tx.execute("delete from base where held != 0")
        else:
            tx.execute("update base set held = 0 where held != 0")
        return [decode(cast(bytes, row[0])) for row in rows]

    def meet_strangers(self, tx: Connection, path: str) -> None:
        """Something came to `path` (and below it) at a server that had lost what was agreed on there: they know nothing of each
        other, so neither may take the other's place."""
        low, high = below(path)
        tx.execute(
            "delete from base where held = ?1 and (path = ?2 or (path >= ?3 and path < ?4))",
            (OTHER_LIFE, encode(path), low, high),
        )

    def base_count(self) -> int:
        row = self._db.one("select count(*) from base where kind != ''")
        return int(row[0]) if row else 0

    # --- conflicts -----------------------------------------------------------------------------------------------

    def add_conflict(self, tx: Connection, record: ConflictRecord) -> None:
        """Note a copy that is made here."""
        tx.execute(
            "insert or replace into conflict (path, original, at_ms, base_revision, remote_revision) values (?, ?, ?, ?, ?)",
            (encode(record.path), encode(record.original), record.at_ms, record.base_revision, record.remote_revision),
        )

    def settle_conflict(self, tx: Connection, path: str, original: str, at_ms: int) -> None:
        """The copy at `path` is one no longer; also when another machine made it."""
        tx.execute(
            "insert into conflict (path, original, at_ms, settled) values (?, ?, ?, 1)"
            " on conflict (path) do update set settled = 1",
            (encode(path), encode(original), at_ms),
        )

    def conflicts(self, limit: int) -> list[ConflictRecord]:
        """Copies made or settled here, newest first."""
        rows = self._db.all(
            "select path, original, at_ms, base_revision, remote_revision, settled from conflict order by at_ms desc limit ?",
            (limit,),
        )
        return [
            ConflictRecord(
                path=decode(row[0]), original=decode(row[1]), at_ms=row[2], base_revision=row[3], remote_revision=row[4],
                settled=bool(row[5]),
            )
            for row in rows
        ]  # fmt: skip

    def paths_named_as_copies(self, limit: int) -> list[str]:
        """Agreed paths whose names may be those of conflict copies. There is an index of them."""
        rows = self._db.all(
            "select path from base where instr(path, X'2028636f6e666c69637420') > 0 and kind != '' limit ?", (limit,)
        )
        return [decode(row[0]) for row in rows]

    def forget_conflict(self, tx: Connection, path: str) -> None:
        """The copy is gone: somebody settled it."""
        tx.execute("delete from conflict where path = ?", (encode(path),))


def fact_of(entry: FileEntry) -> Fact:
    """What the server says of one path."""
    return Fact(kind=entry.kind, content_hash=entry.content_hash, mode=entry.mode & 0o7777, revision=entry.revision)


def _fact(row: tuple[str, str, int, int] | tuple[object, ...]) -> Fact:
    kind, content_hash, mode, revision = row
    assert isinstance(kind, str)
    assert isinstance(content_hash, str)
    assert isinstance(mode, int)
    assert isinstance(revision, int)
    return Fact(kind=kind, content_hash=content_hash, mode=mode, revision=revision)


def _rekey(tx: Connection, table: str, columns: str, source: str, path: str, seq: int) -> list[tuple[str, str]]:
    """Move rows at and below `source` to `path` with the revision `seq`. Rows that are younger than `seq` stay, and a younger
    row at the new place wins."""
    low, high = below(source)
    raw_source, raw_path = encode(source), encode(path)
    rows = tx.execute(
        f"select path, revision, {columns} from {table}"  # noqa: S608
        " where path = ?1 or (path >= ?2 and path < ?3)",
        (raw_source, low, high),
    ).fetchall()
    moved = []
    for found in rows:
        old, revision, *values = cast("tuple[bytes, int, *tuple[Any, ...]]", found)
        if revision >= seq:
            continue
        new = raw_path + old[len(raw_source) :]
        tx.execute(f"delete from {table} where path = ?", (old,))  # noqa: S608
        marks = ", ".join("?" * len(values))
        tx.execute(
            f"insert into {table} (path, revision, {columns}) values (?, ?, {marks})"  # noqa: S608
            f" on conflict (path) do update set (revision, {columns}) = (excluded.revision, "
            + ", ".join(f"excluded.{column.strip()}" for column in columns.split(","))
            + f") where excluded.revision > {table}.revision",
            (new, seq, *values),
        )
        moved.append((decode(old), decode(new)))
    return moved
