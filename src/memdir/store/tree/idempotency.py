"""Answers of calls that changed something, kept a day, so that a call whose answer was lost can be repeated safely.

Failed calls are not recorded: they changed nothing, and a repetition is judged anew.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

from memdir.store.database import Transaction, fetch
from memdir.store.errors import IdempotencyError, InvalidError

KEY_MAX_CHARS: Final = 200
KEEP_MS: Final = 24 * 3600 * 1000
ROWS_MAX: Final = 100_000
_SWEEP_ROWS: Final = 64
"""Expired rows that one call takes away at most: the table shrinks faster than it can grow, and no call pays for all."""
_COUNT_EVERY: Final = 1024
"""Calls between two counts of the table, which may therefore hold this many rows too many."""


def request_hash(*parts: object) -> bytes:
    """A digest of what a request asks for."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True, default=str).encode()).digest()


class IdempotencyStore:
    """The idempotency table. Every method works inside the caller's transaction."""

    def __init__(self) -> None:
        self._until_count = 0

    def recorded(
        self, connection: Transaction, *, container_id: int, key: str | None, request: bytes, now_ms: int
    ) -> Any | None:
        """The answer that was given under `key`, or None. IdempotencyError when the key was used for something else."""
        if key is None:
            return None
        if not 0 < len(key) <= KEY_MAX_CHARS:
            raise InvalidError(f"an idempotency key has 1 to {KEY_MAX_CHARS} characters")
        rows = fetch(
            connection,
            "select request_hash, answer from idempotency where container_id = ? and key = ? and at_ms > ?",
            (container_id, key, now_ms - KEEP_MS),
        )
        if not rows:
            return None
        if rows[0][0] != request:
            raise IdempotencyError("this idempotency key was used for another request", hint="use a fresh key for each request")
        return json.loads(rows[0][1])

    def record(self, connection: Transaction, *, container_id: int, key: str, request: bytes, answer: Any, now_ms: int) -> None:
        """Keep an answer, and let old ones go."""
        connection.execute(
            "insert into idempotency (container_id, key, request_hash, answer, at_ms) values (?, ?, ?, ?, ?) "
            "on conflict (container_id, key) do update set request_hash = excluded.request_hash, answer = excluded.answer, "
            "at_ms = excluded.at_ms",
            (container_id, key, request, json.dumps(answer), now_ms),
        )
        _delete_oldest(connection, "where at_ms <= ?", (now_ms - KEEP_MS,), _SWEEP_ROWS)
        self._until_count -= 1
        if self._until_count <= 0:
            self._until_count = _COUNT_EVERY
            (count,) = fetch(connection, "select count(*) from idempotency")[0]
            _delete_oldest(connection, "", (), max(0, count - ROWS_MAX))


def _delete_oldest(connection: Transaction, condition: str, bindings: tuple[int, ...], limit: int) -> None:
    connection.execute(
        "delete from idempotency where (container_id, key) in "  # noqa: S608
        f"(select container_id, key from idempotency {condition} order by at_ms limit ?)",
        (*bindings, limit),
    )
