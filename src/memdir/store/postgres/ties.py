"""What connects passages, in PostgreSQL: the same answers as `store.ties`, with one round trip for all that is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memdir.store.database import Row
from memdir.store.ties import SAME_NAME_MAX, SHARED_MAX, TieStore


class PostgresTieStore(TieStore):
    """`TieStore` where each statement is a journey."""

    def _mentioning(self, container_id: int, asked: Sequence[int]) -> Iterable[Row]:
        return self._db.all(
            "select a.number, t.chunk_id from unnest(cast(? as bigint[])) with ordinality a (number, place) "
            "cross join lateral (select chunk_id from chunk_tie "
            "where container_id = ? and number = a.number order by chunk_id limit ?) t "
            "order by a.place, t.chunk_id",
            (list(asked), container_id, SHARED_MAX + 1),
        )

    def _named(self, container_id: int, asked: Sequence[str]) -> Iterable[Row]:
        return self._db.all(
            "select n.name, d.path, d.id from unnest(cast(? as text[])) a (name) cross join lateral ("
            "select document_id, name from document_name where container_id = ? and name = a.name limit ?) n "
            "join document d on d.id = n.document_id",
            (list(asked), container_id, SAME_NAME_MAX + 1),
        )
