"""Passages of a container in order, for reading through them. Searching them is each engine's own affair (`protocols`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from memdir.store.database import Database
from memdir.store.paths import below
from memdir.store.tree.metadata_conditions import Condition, sql_of

_ORDERS: Final = {
    "created_at_ms": "d.created_at_ms {0}, d.id {0}, c.ordinal",
    "updated_at_ms": "d.updated_at_ms {0}, d.id {0}, c.ordinal",
    "position": "c.ordinal {0}, d.id",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A passage with what its document gives it."""

    id: int
    document_id: str
    custom_id: str | None
    ordinal: int
    text: str
    created_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageListing:
    """What `PassageStore.page` is asked for: passages of documents at and below `folder` whose metadata fits."""

    container_id: int
    folder: str = "/"
    condition: Condition | None = None
    document_id: str | None = None
    sort: Literal["created_at_ms", "updated_at_ms", "position"] = "created_at_ms"
    descending: bool = True


class PassageStore:
    """The chunk table, read in pages."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def page(self, listing: PassageListing, *, limit: int, offset: int = 0) -> list[Passage]:
        """A page of passages; those of a document in order."""
        where, bindings = _where(listing)
        order = _ORDERS[listing.sort].format("desc" if listing.descending else "asc")
        rows = self._db.all(
            "select c.id, d.id, d.custom_id, c.ordinal, c.text, d.created_at_ms from document d "  # noqa: S608
            f"cross join chunk c where c.document_id = d.id and {where} order by {order} limit ? offset ?",
            (*bindings, limit, offset),
        )
        return [
            Passage(id=row[0], document_id=row[1], custom_id=row[2], ordinal=row[3], text=row[4], created_at_ms=row[5])
            for row in rows
        ]

    def count(self, listing: PassageListing) -> int:
        """How many passages `page` would give without a limit."""
        where, bindings = _where(listing)
        if listing.document_id is None and listing.folder == "/" and listing.condition is None:
            row = self._db.one("select count(*) from chunk c where c.container_id = ?", (listing.container_id,))
        else:
            row = self._db.one(f"select count(*) from chunk c join document d on d.id = c.document_id where {where}", bindings)  # noqa: S608
        return 0 if row is None else int(row[0])


def _where(listing: PassageListing) -> tuple[str, tuple[Any, ...]]:
    where, bindings = "d.container_id = ? and d.kind = 'file'", (listing.container_id,)
    values: tuple[Any, ...] = bindings
    if listing.document_id is not None:
        where += " and d.id = ?"
        values += (listing.document_id,)
    if listing.folder != "/":
        where += " and (d.path = ? or (d.path >= ? and d.path < ?))"
        values += (listing.folder, *below(listing.folder))
    if listing.condition is not None:
        sql, more = sql_of(listing.condition, (listing.container_id,))
        where += f" and {sql}"
        values += more
    return where, values
