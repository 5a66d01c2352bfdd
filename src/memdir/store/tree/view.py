"""What stands where in a container, seen from inside a transaction."""

from __future__ import annotations

from typing import Any

from memdir.core.errors import NotFoundError
from memdir.store.database import Transaction, fetch, marks_for
from memdir.store.errors import ConflictError
from memdir.store.paths import ancestors, below
from memdir.store.tree.documents import SELECT_DOCUMENT, document_of
from memdir.store.types import Document


class TreeView:
    """One container through the connection of a transaction."""

    def __init__(self, connection: Transaction, container_id: int) -> None:
        self._connection = connection
        self._container_id = container_id

    def at(self, path: str) -> Document | None:
        """What was put at `path`."""
        return self.first("d.container_id = ? and d.path = ?", (self._container_id, path))

    def by_id(self, document_id: str) -> Document | None:
        """In any container."""
        return self.first("d.id = ?", (document_id,))

    def first(self, condition: str, bindings: tuple[Any, ...]) -> Document | None:
        """The first document that fits an SQL condition."""
        rows = fetch(self._connection, f"{SELECT_DOCUMENT} where {condition}", bindings)
        return document_of(rows[0]) if rows else None

    def indexed_hash(self, document_id: str) -> str | None:
        """Content hash that its chunks were made from."""
        rows = fetch(self._connection, "select indexed_hash from document where id = ?", (document_id,))
        return rows[0][0] if rows else None

    def has_children(self, path: str) -> bool:
        """Whether anything stands below `path`."""
        first, end = below(path)
        query = "select 1 from document where container_id = ? and path >= ? and path < ? limit 1"
        return bool(fetch(self._connection, query, (self._container_id, first, end)))

    def first_changed(self, path: str, since: int) -> Document | None:
        """The first document at or below `path` that was put or moved there behind `since`."""
        first, end = below(path)
        return self.first(
            "d.container_id = ? and (d.path = ? or (d.path >= ? and d.path < ?)) and d.revision > ? order by d.path limit 1",
            (self._container_id, path, first, end, since),
        )

    def last_seq(self) -> int:
        """Number of the last change; NotFoundError when the container is gone."""
        rows = fetch(self._connection, "select last_seq from container where id = ?", (self._container_id,))
        if not rows:
            raise NotFoundError("the container is gone")
        seq: int = rows[0][0]
        return seq

    def check_ancestors(self, path: str) -> None:
        """ConflictError when a file or symlink stands where `path` needs a folder."""
        above = ancestors(path)
        if not above:
            return
        marks = marks_for(above)
        rows = fetch(
            self._connection,
            f"select path from document where container_id = ? and kind <> 'dir' and path in ({marks})",  # noqa: S608
            (self._container_id, *above),
        )
        if rows:
            raise ConflictError(f"{rows[0][0]} is a file, so nothing can stand below it", hint="delete or move it first")
