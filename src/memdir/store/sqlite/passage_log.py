"""`store.passages.log.PassageLog` over the server's SQLite database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.store.database import marks_for
from memdir.store.passages.log import IndexedPassage, ListedPassage, PassageEvent
from memdir.store.passages.reading import IN_MAX
from memdir.store.sqlite.database import SqliteDatabase

_WHOLE: Final = (
    "c.id, c.document_id, d.path, c.text, c.context, c.text_hash from chunk c join document d on d.id = c.document_id"
)
_LISTED: Final = "c.id, c.document_id, d.path, c.text_hash from chunk c join document d on d.id = c.document_id"


class SqlitePassageLog:
    """Reads `vector_event`, which has an `add` for each vector of a passage; the first one comes with the passage itself."""

    def __init__(self, db: SqliteDatabase) -> None:
        self._db = db

    def bounds(self) -> tuple[int, int]:
        row = self._db.one(
            "select (select min(id) from vector_event), "
            "coalesce((select seq from sqlite_sequence where name = 'vector_event'), 0)"
        )
        assert row is not None
        first, last = row
        return (last + 1 if first is None else first), last

    def events(self, container_id: int, *, after: int, until: int) -> Sequence[PassageEvent]:
        rows = self._db.all(
            "select kind, chunk_id, document_id from vector_event where id > ? and id <= ? and container_id = ? order by id",
            (after, until, container_id),
        )
        return [PassageEvent(kind=kind, chunk_id=chunk_id, document_id=document_id) for kind, chunk_id, document_id in rows]

    def count(self, container_id: int, *, most: int = -1) -> int:
        row = self._db.one("select count(*) from (select 1 from chunk where container_id = ? limit ?)", (container_id, most))
        assert row is not None
        return int(row[0])

    def passages(self, container_id: int, chunk_ids: Sequence[int]) -> Sequence[IndexedPassage]:
        found: list[IndexedPassage] = []
        for first in range(0, len(chunk_ids), IN_MAX):
            part = chunk_ids[first : first + IN_MAX]
            sql = f"select {_WHOLE} where c.id in ({marks_for(part)}) and c.container_id = ?"
            found += map(_passage, self._db.all(sql, (*part, container_id)))
        return found

    def listing(self, container_id: int, *, after: int, limit: int) -> Sequence[ListedPassage]:
        sql = f"select {_LISTED} where c.container_id = ? and c.id > ? order by c.id limit ?"
        return [
            ListedPassage(chunk_id=row[0], document_id=row[1], path=row[2], digest=_digest(row[3]))
            for row in self._db.all(sql, (container_id, after, limit))
        ]

    def paths(self, document_ids: Sequence[str]) -> dict[str, str | None]:
        found: dict[str, str | None] = {}
        for first in range(0, len(document_ids), IN_MAX):
            part = document_ids[first : first + IN_MAX]
            found.update(self._db.all(f"select id, path from document where id in ({marks_for(part)})", part))  # noqa: S608
        return found


def _passage(row: tuple[int, str, str | None, str, str, bytes]) -> IndexedPassage:
    return IndexedPassage(chunk_id=row[0], document_id=row[1], path=row[2], text=row[3], context=row[4], digest=_digest(row[5]))


def _digest(text_hash: bytes) -> int:
    return int.from_bytes(text_hash[:8], "little")
