"""Who did what, when, with which key. Rows hold names and numbers: no contents, no secrets, no query texts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.clock import Clock
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, Transaction, fetch, run_many

KEEP_MS: Final = 90 * 86_400_000
ROWS_MAX: Final = 1_000_000
PAGE_MAX: Final = 1000
TEXT_MAX_CHARS: Final = 500
_SWEEP_ROWS: Final = 10_000
"""Old rows that one sweep takes away at most, so that it holds the writer for milliseconds."""
_COLUMNS: Final = "at_ms, org_id, user_id, key_id, action, call, container, target, status, request_id, address"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEvent:
    """One call."""

    id: int = 0
    """Grows; 0 before it is stored."""
    at_ms: int
    org_id: str
    user_id: str | None
    key_id: str
    action: str
    call: str
    container: str | None
    target: str | None
    status: int
    request_id: str
    address: str


@dataclass(slots=True)
class Recording:
    """The entry of a call that may change a tree: it is written in the transaction of the call's first change. Travels with the
    context of the call, into threads that get a copy of it."""

    make: Callable[[bool], AuditEvent]
    """The entry; the argument says whether something came into being."""
    done: bool = False
    """Set after the commit."""


_recording: ContextVar[Recording | None] = ContextVar("memdir_recording", default=None)


def record_with_change(recording: Recording) -> None:
    """From here on, to the end of the current context: the first change of a tree writes this entry."""
    _recording.set(recording)


def unwritten() -> Recording | None:
    """The entry that the next change has to write, if there is one."""
    found = _recording.get()
    return None if found is None or found.done else found


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuery:
    """What to look for, newest first; `before` is the id where the earlier page ended."""

    org_id: str
    since_ms: int = 0
    before: int | None = None
    key_id: str | None = None
    user_id: str | None = None
    action: str | None = None
    container: str | None = None


class AuditStore:
    """The audit table. Acts as the system, like `OrgStore`: the rows of many organisations are stored in one go."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    @acting_as(SYSTEM)
    def add(self, events: Sequence[AuditEvent]) -> None:
        """Store events in one transaction."""
        with self._db.write() as connection:
            insert_events(connection, events)

    @acting_as(SYSTEM)
    def find(self, query: AuditQuery, *, limit: int = 100) -> list[AuditEvent]:
        """At most `limit` (PAGE_MAX) events, newest first."""
        conditions, bindings = ["org_id = ?", "at_ms >= ?"], [query.org_id, query.since_ms]
        exact: dict[str, Any] = {"key_id": query.key_id, "user_id": query.user_id, "action": query.action}
        for column, value in exact.items():
            if value is not None:
                conditions.append(f"{column} = ?")
                bindings.append(value)
        if query.before is not None:
            conditions.append("id < ?")
            bindings.append(query.before)
        if query.container is not None:
            conditions.append("(',' || container || ',') like ? escape '!'")
            bindings.append("%," + "".join("!" + c if c in "!%_" else c for c in query.container) + ",%")
        rows = self._db.all(
            f"select id, {_COLUMNS} from audit where {' and '.join(conditions)} order by id desc limit ?",  # noqa: S608
            (*bindings, min(limit, PAGE_MAX)),
        )
        return [
            AuditEvent(
                id=row[0], at_ms=row[1], org_id=row[2], user_id=row[3], key_id=row[4], action=row[5], call=row[6],
                container=row[7], target=row[8], status=row[9], request_id=row[10], address=row[11],
            )
            for row in rows
        ]  # fmt: skip

    @acting_as(SYSTEM)
    def sweep(self) -> int:
        """Let the oldest rows go, those over KEEP_MS and over ROWS_MAX, some thousands at a time. Returns how many went."""
        oldest_ms = self._clock.now_ns() // 1_000_000 - KEEP_MS
        with self._db.write() as connection:
            rows = fetch(connection, "select max(id) from audit")
            if not rows or rows[0][0] is None:
                return 0
            gone = 0
            for condition, bound in (("id <= ? order by id", rows[0][0] - ROWS_MAX), ("at_ms < ? order by at_ms", oldest_ms)):
                connection.execute(
                    f"delete from audit where id in (select id from audit where {condition} limit ?)",  # noqa: S608
                    (bound, _SWEEP_ROWS - gone),
                )
                gone += connection.changes()
            return gone


def insert_events(connection: Transaction, events: Sequence[AuditEvent]) -> None:
    """Store events inside the caller's transaction."""
    run_many(
        connection,
        f"insert into audit ({_COLUMNS}) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608
        [
            (
                event.at_ms, event.org_id, event.user_id, event.key_id, event.action, event.call[:TEXT_MAX_CHARS],
                _clipped(event.container), _clipped(event.target), event.status, event.request_id, event.address,
            )
            for event in events
        ],
    )  # fmt: skip


def _clipped(text: str | None) -> str | None:
    return None if text is None else text[:TEXT_MAX_CHARS]
