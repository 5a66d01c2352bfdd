"""What hooks told sessions of agents, what became of it, and how often tools searched and stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.clock import Clock
from memdir.core.ids import new_id
from memdir.store.database import Database, Transaction, fetch, marks_for, run_many

DAY_MS: Final = 86_400_000
KEEP_DAYS: Final = 400
SEEN_MAX: Final = 1_000
"""Memories of one session that are remembered as told; of more, the newest."""
_SWEEP_ROWS: Final = 200
_IN_MAX: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentUse:
    """Sums over some days."""

    sessions: int = 0
    injections: int = 0
    injected_memories: int = 0
    injected_tokens: int = 0
    used_afterwards: int = 0
    searches: int = 0
    stored: int = 0


class AgentUsageStore:
    """The tables agent_injection and agent_usage. Any thread may call."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    def seen(self, container_id: int, session_id: str) -> set[str]:
        """Ids of the memories that a session was told."""
        rows = self._db.all(
            "select memory_id from agent_injection where container_id = ? and session_id = ? order by id desc limit ?",
            (container_id, session_id, SEEN_MAX),
        )
        return {row[0] for row in rows}

    def renewed(self, container_id: int, session_id: str) -> None:
        """A session's context was emptied: it may be told everything again, and counts as another session from now on."""
        with self._db.write() as connection:
            connection.execute(
                "update agent_injection set session_id = ? where container_id = ? and session_id = ?",
                (f"{session_id} until {new_id()}", container_id, session_id),
            )

    def injected(self, container_id: int, session_id: str, host: str, tokens_by_id: Mapping[str, int]) -> None:
        """A session was told these memories in one block, each about so many tokens long."""
        now_ms, block = self._now_ms(), new_id()
        with self._db.write() as connection:
            if not _is_there(connection, container_id):
                return
            run_many(
                connection,
                "insert into agent_injection (container_id, session_id, host, block, memory_id, tokens, at_ms) "
                "values (?, ?, ?, ?, ?, ?, ?) on conflict (container_id, session_id, memory_id) do update set "
                "block = excluded.block, tokens = excluded.tokens, at_ms = excluded.at_ms, used_at_ms = null",
                [
                    (container_id, session_id, host, block, memory_id, tokens, now_ms)
                    for memory_id, tokens in tokens_by_id.items()
                ],
            )
            connection.execute(
                "delete from agent_injection where id in (select id from agent_injection where container_id = ? "
                "and at_ms < ? order by at_ms limit ?)",
                (container_id, now_ms - KEEP_DAYS * DAY_MS, _SWEEP_ROWS),
            )

    def used(self, container_id: int, memory_ids: Sequence[str]) -> None:
        """A tool read, found, changed or deleted these: the session that was told one last, in the last day, made use of it. A
        tool's call does not say in which session it was made, and one use must not count for all that were told."""
        now_ms = self._now_ms()
        some = list(memory_ids)[:_IN_MAX]
        if not some:
            return
        last = self._db.all(
            "select id, used_at_ms from (select id, used_at_ms, row_number() over "  # noqa: S608
            "(partition by memory_id order by at_ms desc, id desc) as place from agent_injection "
            f"where container_id = ? and at_ms > ? and memory_id in ({marks_for(some)})) as told where place = 1",
            (container_id, now_ms - DAY_MS, *some),
        )
        due = [row[0] for row in last if row[1] is None]
        if due:
            with self._db.write() as connection:
                connection.execute(
                    f"update agent_injection set used_at_ms = ? where id in ({marks_for(due)})",  # noqa: S608
                    (now_ms, *due),
                )

    def count(self, container_id: int, *, searches: int = 0, stored: int = 0) -> None:
        """Add to today's numbers. A container that is gone meanwhile counts nothing."""
        day = self._now_ms() // DAY_MS
        with self._db.write() as connection:
            if not _is_there(connection, container_id):
                return
            connection.execute(
                "insert into agent_usage (container_id, day, searches, stored) values (?, ?, ?, ?) "
                "on conflict (container_id, day) do update set searches = agent_usage.searches + excluded.searches, "
                "stored = agent_usage.stored + excluded.stored",
                (container_id, day, searches, stored),
            )

    def sums(self, container_id: int, *, days: int) -> AgentUse:
        """Of the last `days` days."""
        now_ms = self._now_ms()
        told = self._db.one(
            "select count(distinct session_id), count(distinct block), count(*), coalesce(sum(tokens), 0), count(used_at_ms) "
            "from agent_injection where container_id = ? and at_ms > ?",
            (container_id, now_ms - days * DAY_MS),
        )
        did = self._db.one(
            "select coalesce(sum(searches), 0), coalesce(sum(stored), 0) from agent_usage where container_id = ? and day > ?",
            (container_id, now_ms // DAY_MS - days),
        )
        assert told is not None
        assert did is not None
        return AgentUse(
            sessions=told[0],
            injections=told[1],
            injected_memories=told[2],
            injected_tokens=int(told[3]),
            used_afterwards=told[4],
            searches=int(did[0]),
            stored=int(did[1]),
        )

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000


def _is_there(connection: Transaction, container_id: int) -> bool:
    """What is counted late may be of a container that is gone."""
    return bool(fetch(connection, "select 1 from container where id = ?", (container_id,)))
