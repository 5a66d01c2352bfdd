"""Answers of HTTP calls under the idempotency keys of their callers, kept a day.

`idempotency` keeps the outcome of an operation on a container's tree in the transaction that carries it out. This table is for
all other calls, whatever they change: a row is made before the call (so that of two at once one waits) and gets the answer
after it. A process that dies between the two leaves a row without an answer, which stands in nobody's way for long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.store.database import Database, Transaction, fetch
from memdir.store.errors import ConflictError, IdempotencyError
from memdir.store.tree.idempotency import KEEP_MS

UNDER_WAY_MS: Final = 60_000
"""How long a call without an answer counts as being carried out."""
ROWS_MAX: Final = 100_000
ANSWER_MAX_BYTES: Final = 1 << 20
_SWEEP_ROWS: Final = 64
_COUNT_EVERY: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a call was answered."""

    status: int
    content_type: str
    body: bytes


class AnswerStore:
    """The answer table."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock
        self._until_count = 0

    def begin(self, *, org_id: str, caller: str, key: str, request: bytes) -> Answer | None:
        """The answer that was given, or None: then the call is this one's, until `finish` or `drop`. IdempotencyError when the
        key was used for something else, ConflictError while the same call is being carried out."""
        now_ms = self._clock.now_ns() // 1_000_000
        with self._db.write() as connection:
            rows = fetch(
                connection,
                "insert into answer (org_id, caller, key, request_hash, at_ms) values (?, ?, ?, ?, ?) "
                "on conflict (org_id, caller, key) do update set request_hash = excluded.request_hash, status = null, "
                "content_type = null, body = null, at_ms = excluded.at_ms "
                "where answer.at_ms <= ? or (answer.status is null and answer.at_ms <= ?) returning 1",
                (org_id, caller, key, request, now_ms, now_ms - KEEP_MS, now_ms - UNDER_WAY_MS),
            )
            if rows:
                self._sweep(connection, now_ms)
                return None
            ((known, status, content_type, body),) = fetch(
                connection,
                "select request_hash, status, content_type, body from answer where org_id = ? and caller = ? and key = ?",
                (org_id, caller, key),
            )
        if bytes(known) != request:
            raise IdempotencyError("this idempotency key was used for another request", hint="use a fresh key for each request")
        if status is None:
            raise ConflictError("the same request is still being carried out", hint="ask again in a moment")
        return Answer(status=status, content_type=content_type, body=bytes(body))

    def finish(self, *, org_id: str, caller: str, key: str, answer: Answer) -> None:
        """The call was carried out, with this answer."""
        with self._db.write() as connection:
            connection.execute(
                "update answer set status = ?, content_type = ?, body = ? where org_id = ? and caller = ? and key = ?",
                (answer.status, answer.content_type, answer.body, org_id, caller, key),
            )

    def drop(self, *, org_id: str, caller: str, key: str) -> None:
        """The call changed nothing, or its answer is not kept: a repetition is judged anew."""
        with self._db.write() as connection:
            connection.execute(
                "delete from answer where org_id = ? and caller = ? and key = ? and status is null", (org_id, caller, key)
            )

    def release_all(self) -> None:
        """Forget calls without an answer: the process that carried them out is gone."""
        with self._db.write() as connection:
            connection.execute("delete from answer where status is null")

    def _sweep(self, connection: Transaction, now_ms: int) -> None:
        _delete_oldest(connection, "where at_ms <= ?", (now_ms - KEEP_MS,), _SWEEP_ROWS)
        self._until_count -= 1
        if self._until_count <= 0:
            self._until_count = _COUNT_EVERY
            ((count,),) = fetch(connection, "select count(*) from answer")
            _delete_oldest(connection, "", (), max(0, count - ROWS_MAX))


def _delete_oldest(connection: Transaction, condition: str, bindings: tuple[int, ...], limit: int) -> None:
    connection.execute(
        "delete from answer where (org_id, caller, key) in "  # noqa: S608
        f"(select org_id, caller, key from answer {condition} order by at_ms limit ?)",
        (*bindings, limit),
    )
