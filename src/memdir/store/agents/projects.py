"""Which folder below `/memory/` holds the memories of a project, by what the project is known by.

A key is `remote:HOST/PATH` of its git remote, `root:COMMIT` (its first commit), `folder:DIGEST` (where it lies on one machine)
or `name:NAME` (what a `.memdir.toml` calls it); `memdir.agents.project` makes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from memdir.store.database import Database, Transaction, marks_for, repeated

KEYS_MAX: Final = 8
"""Of one project in one call."""
_KEYS_KEPT_MAX: Final = 1_000
"""Of one project: folders without git come and go."""


class AgentProjectStore:
    """The table agent_project. Any thread may call."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def known(self, container_id: int, keys: Sequence[str]) -> dict[str, str]:
        """The folders of those of at most KEYS_MAX keys that are known."""
        some = list(keys)[:KEYS_MAX]
        rows = self._db.all(
            f"select key, project from agent_project where container_id = ? and key in ({marks_for(some)})",  # noqa: S608
            (container_id, *some),
        )
        return {row[0]: row[1] for row in rows}

    def keys(self, container_id: int, project: str) -> list[str]:
        """What the project of a folder is known by."""
        rows = self._db.all(
            "select key from agent_project where container_id = ? and project = ? order by key", (container_id, project)
        )
        return [row[0] for row in rows]

    def remember(self, container_id: int, project: str, keys: Mapping[str, bool]) -> None:
        """From now on the project of a folder is known by these, too. Each with whether it may be taken from another project,
        which then is what was there before it."""

        def work(connection: Transaction) -> None:
            for key, takes in keys.items():
                then = "update set project = excluded.project" if takes else "nothing"
                connection.execute(
                    "insert into agent_project (container_id, key, project) select id, ?, ? from container where id = ? "  # noqa: S608
                    f"and (select count(*) from agent_project where container_id = ? and project = ?) < ? "
                    f"on conflict (container_id, key) do {then}",
                    (key, project, container_id, container_id, project, _KEYS_KEPT_MAX),
                )

        if keys:
            repeated(self._db, work)


def moved(connection: Transaction, container_id: int, former: str, project: str) -> None:
    """The folder of a project has another name, inside the caller's transaction."""
    connection.execute(
        "update agent_project set project = ? where container_id = ? and project = ?", (project, container_id, former)
    )
