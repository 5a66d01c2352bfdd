"""The table `blob_trash`: places of contents that are going away, or that are not wanted for sure yet.

A row is `pending` from before the bytes are sent until the transaction that refers to them takes it out, so that an upload
whose process died is found again; `due` from the transaction that took the last reference away; `deleting` once a collector
has claimed it. A transaction takes a place out of the trash only from `pending` or `due`, a collector deletes bytes only
after it has committed `deleting`: whichever of the two commits first, the row lock makes the other see it. Places are
never used twice, so a delete that is repeated, or comes late, cannot meet another content.

A `blob_hold` makes collectors wait: a backup that reads one moment of the tables must still find its contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.core.errors import BusyError
from memdir.core.ids import new_id
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, Transaction, fetch, first

PENDING_MS: Final = 3600 * 1000
"""How long an upload may take from its last byte here to the commit that refers to it."""
LEASE_MS: Final = 300 * 1000
"""A collector that died is followed by another after this time, and so is one whose deletes were refused."""
HOLD_MS: Final = 600 * 1000
"""A hold that is not renewed ends by itself."""
COLLECT_MAX: Final = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class TrashCount:
    """What is in the trash."""

    pending: int
    due: int
    overdue: int
    """Tried several times without success."""


class BlobTrash:
    """The tables `blob_trash` and `blob_hold`."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000

    def expect(self, place: str, *, content_hash: str, size_bytes: int) -> None:
        """Bytes are about to be put at `place`."""
        with self._db.write() as connection:
            _insert(connection, place, content_hash, size_bytes, "pending", self._now_ms() + PENDING_MS)

    def take(self, connection: Transaction, place: str) -> None:
        """The caller's transaction refers to what was expected at `place`. BusyError when that took too long."""
        connection.execute("delete from blob_trash where place = ? and state = 'pending'", (place,))
        if not connection.changes():
            raise BusyError("the upload took too long and was cleared away", hint="send the content again")

    def bring_back(self, connection: Transaction, content_hash: str) -> tuple[str, int] | None:
        """Place and size of such a content that lost its last reference and is still there; it is the caller's then."""
        row = first(
            connection,
            "delete from blob_trash where state = 'due' and place in "
            "(select place from blob_trash where hash = ? and state = 'due' limit 1) returning place, size_bytes",
            (content_hash,),
        )
        return None if row is None else (row[0], row[1])

    def throw(self, connection: Transaction, place: str, *, content_hash: str, size_bytes: int) -> None:
        """Nothing refers to `place` any more once the caller's transaction has committed."""
        _insert(connection, place, content_hash, size_bytes, "due", 0)

    def give_up(self, place: str) -> bool:
        """The bytes expected at `place` are not wanted. False when a transaction took them meanwhile."""
        if self._db.one("select 1 from blob_trash where place = ? and state = 'pending'", (place,)) is None:
            return False
        with self._db.write() as connection:
            connection.execute(
                "update blob_trash set state = 'due', not_before_ms = 0 where place = ? and state = 'pending'", (place,)
            )
            return bool(connection.changes())

    @acting_as(SYSTEM)
    def give_up_all(self) -> None:
        """Nobody else is there: no upload is under way, and no collector works."""
        with self._db.write() as connection:
            connection.execute("update blob_trash set state = 'due', not_before_ms = 0 where state = 'pending'")
            connection.execute("update blob_trash set not_before_ms = 0 where state = 'deleting'")

    @acting_as(SYSTEM)
    def claim(self, *, limit: int = COLLECT_MAX, places: Sequence[str] | None = None) -> list[str]:
        """Places (of `places`, or any) whose bytes the caller has to delete now; nobody refers to them, and nobody will. Safe
        on the disk when this returns: a power cut afterwards cannot bring back a row whose bytes are gone."""
        now_ms = self._now_ms()
        limit = min(limit, COLLECT_MAX)
        among, named = "", tuple(places or ())[:limit]
        if places is not None:
            if not named:
                return []
            among = f"and place in ({','.join('?' * len(named))}) "
        condition = f"not_before_ms <= ? {among}and not exists (select 1 from blob_hold where until_ms > ?)"  # noqa: S608
        bindings = (now_ms, *named, now_ms)
        if self._db.one(f"select 1 from blob_trash where {condition} limit 1", bindings) is None:  # noqa: S608
            return []
        with self._db.write(durable=True) as connection:
            rows = fetch(
                connection,
                "update blob_trash set state = 'deleting', attempts = attempts + 1, not_before_ms = ? "  # noqa: S608
                f"where not_before_ms <= ? and place in (select place from blob_trash where {condition} "
                "order by not_before_ms limit ?) returning place",
                (now_ms + LEASE_MS, now_ms, *bindings, limit),
            )
        return [row[0] for row in rows]

    @acting_as(SYSTEM)
    def forget(self, places: Sequence[str]) -> None:
        """The bytes at these places are gone."""
        with self._db.write() as connection:
            for place in places:
                connection.execute("delete from blob_trash where place = ? and state = 'deleting'", (place,))

    @acting_as(SYSTEM)
    def knows(self, place: str) -> bool:
        """Whether the place is in the trash."""
        return self._db.one("select 1 from blob_trash where place = ?", (place,)) is not None

    @acting_as(SYSTEM)
    def count(self) -> TrashCount:
        """What is there now."""
        row = self._db.one(
            "select coalesce(sum(case when state = 'pending' then 1 else 0 end), 0), "
            "coalesce(sum(case when state <> 'pending' then 1 else 0 end), 0), "
            "coalesce(sum(case when state = 'deleting' and attempts > 3 then 1 else 0 end), 0) from blob_trash"
        )
        assert row is not None
        return TrashCount(pending=int(row[0]), due=int(row[1]), overdue=int(row[2]))

    @acting_as(SYSTEM)
    def hold(self, hold_id: str | None = None) -> str:
        """Make collectors wait, or go on waiting, for HOLD_MS. Returns the hold's id."""
        named = hold_id or new_id()
        until_ms = self._now_ms() + HOLD_MS
        with self._db.write() as connection:
            connection.execute("delete from blob_hold where until_ms <= ?", (self._now_ms(),))
            connection.execute(
                "insert into blob_hold (id, until_ms) values (?, ?) "
                "on conflict (id) do update set until_ms = excluded.until_ms",
                (named, until_ms),
            )
        return named

    @acting_as(SYSTEM)
    def let_go(self, hold_id: str) -> None:
        """End a hold."""
        with self._db.write() as connection:
            connection.execute("delete from blob_hold where id = ?", (hold_id,))


def _insert(connection: Transaction, place: str, content_hash: str, size_bytes: int, state: str, not_before_ms: int) -> None:
    connection.execute(
        "insert into blob_trash (place, hash, size_bytes, state, not_before_ms) values (?, ?, ?, ?, ?)",
        (place, content_hash, size_bytes, state, not_before_ms),
    )
