"""Links between passages in PostgreSQL: as `store.passages.entity_links`, with one round trip for all that is asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memdir.store.database import Row
from memdir.store.passages.entity_links import PASSAGE_AT, SAME_NAME_MAX, SHARED_MAX, SUBJECT_MAX, EntityLinks


class PostgresEntityLinks(EntityLinks):
    """`EntityLinks` where each statement is a round trip."""

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

    def _about(self, container_id: int, subjects: Sequence[str]) -> Iterable[Row]:
        return self._db.all(
            "select a.subject, t.id from unnest(cast(? as text[])) a (subject) cross join lateral ("
            "select id from memory where container_id = ? and subject = a.subject limit ?) t",
            (list(subjects), container_id, SUBJECT_MAX + 1),
        )

    def _sources(self, memory_ids: Sequence[str]) -> Iterable[Row]:
        return self._db.all(
            f"select a.id, s.document_id, {PASSAGE_AT} from unnest(cast(? as text[])) a (id) cross join lateral ("  # noqa: S608
            "select document_id, start_byte from memory_source where memory_id = a.id and stands = 1 limit ?) s",
            (list(memory_ids), SUBJECT_MAX + 1),
        )
