"""What an index of agents' memories follows: the memories by number, and events that tell which came, changed or went. What
is only proposed is no memory yet."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memdir.store.database import Database, Row, marks_for

EVENTS_KEPT: Final = 100_000
"""Of all containers: an index that is further behind reads all again."""
PAGE_ROWS: Final = 2_000
IN_MAX: Final = 500
"""Memories that are asked for by name or number at a time."""
_TAGS_KNOWN: Final = 4_096
_KEPT: Final = "is_proposed = 0"
_COLUMNS: Final = "number, content, tags, project, access_count, created_at_ms"
_SELECT: Final = f"select {_COLUMNS} from agent_memory where {_KEPT} and"  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What an index needs of a memory."""

    number: int
    content: str
    tags: tuple[str, ...]
    project: str | None
    access_count: int
    created_at_ms: int


class AgentFeed:
    """Over agent_memory and agent_event. Any thread may call."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def last_event(self, container_id: int) -> int:
        """Number of the container's newest event that is known, 0 when there is none."""
        row = self._db.one("select max(id) from agent_event where container_id = ?", (container_id,))
        return 0 if row is None or row[0] is None else int(row[0])

    def first_event(self, container_id: int) -> int:
        """The container's oldest event that is known, 0 when there is none. Of what came before it nothing is known; the newest
        event of a container is always known."""
        row = self._db.one("select min(id) from agent_event where container_id = ?", (container_id,))
        return 0 if row is None or row[0] is None else int(row[0])

    def events(self, container_id: int, *, after: int, until: int) -> list[int]:
        """Numbers of the memories that came, changed or went, once each, ascending."""
        rows = self._db.all(
            "select distinct number from agent_event where container_id = ? and id > ? and id <= ? order by number",
            (container_id, after, until),
        )
        return [row[0] for row in rows]

    def indexed(self, container_id: int, numbers: Sequence[int]) -> list[Indexed]:
        """Those of the memories that are there."""
        found: list[Indexed] = []
        for at in range(0, len(numbers), IN_MAX):
            some = numbers[at : at + IN_MAX]
            rows = self._db.all(
                f"{_SELECT} number in ({marks_for(some)}) and +container_id = ? order by number",
                (*some, container_id),
            )
            found += map(_indexed, rows)
        return found

    def listing(self, container_id: int, *, after: int, limit: int = PAGE_ROWS) -> list[Indexed]:
        """Memories with a number above `after`, in order."""
        rows = self._db.all(f"{_SELECT} container_id = ? and number > ? order by number limit ?", (container_id, after, limit))
        return [_indexed(row) for row in rows]

    def count(self, container_id: int) -> int:
        """How many memories there are."""
        row = self._db.one(
            "select (select count(*) from agent_memory where container_id = ?) - "
            "(select count(*) from agent_memory where container_id = ? and is_proposed = 1)",
            (container_id, container_id),
        )
        return 0 if row is None else int(row[0])

    def count_up_to(self, container_id: int, most: int) -> int:
        """How many there are, about and cheaply: the span of their numbers while that is below `most`, else exactly."""
        row = self._db.one(
            "select (select min(number) from agent_memory where container_id = ?), "
            "(select max(number) from agent_memory where container_id = ?)",
            (container_id, container_id),
        )
        if row is None or row[0] is None:
            return 0
        span: int = row[1] - row[0] + 1
        return span if span < most else self.count(container_id)

    def containers(self) -> list[int]:
        """Containers that have memories."""
        rows = self._db.all(
            "select id from container k where exists (select 1 from agent_memory m where m.container_id = k.id) order by id"
        )
        return [row[0] for row in rows]

    def trim_events(self) -> int:
        """Let old events go, but for the newest of each container: who has seen that has seen all. Returns how many went."""
        with self._db.write() as connection:
            connection.execute(
                "delete from agent_event where id <= (select max(id) from agent_event) - cast(? as bigint) "
                "and id <> (select max(o.id) from agent_event o where o.container_id = agent_event.container_id)",
                (EVENTS_KEPT,),
            )
            return connection.changes()


@lru_cache(maxsize=_TAGS_KNOWN)
def tags_of(text: str) -> tuple[str, ...]:
    """Of a JSON array. Few lists of tags stand in many memories."""
    return tuple(json.loads(text))


def _indexed(row: Row) -> Indexed:
    return Indexed(
        number=row[0],
        content=row[1],
        tags=tags_of(row[2]),
        project=row[3],
        access_count=row[4],
        created_at_ms=row[5],
    )
