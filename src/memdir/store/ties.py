"""What connects passages: the same rare thing mentioned, a file referred to, a fact that both are sources of.

Mentions are kept as numbers, one row for each thing a passage mentions. References are resolved by path when they are asked, so
that it does not matter which of two files came first, and a move keeps them right. Everything goes with its passage. Each
answer is bounded: what too many share connects nothing.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.store.database import Database, Row, marks_for
from memdir.store.mentions import numbers
from memdir.store.types import Chunk

SHARED_MAX: Final = 48
"""Passages of a container that may mention a thing before it connects nothing."""
KEYS_MAX: Final = 64
"""Things asked for at once."""
FILES_MAX: Final = 48
"""Files that references are resolved to at once."""
SAME_NAME_MAX: Final = 6
"""Files of the same name that a bare name may mean."""
PASSAGES_MAX: Final = 6
"""First passages of a file that is referred to."""
MEMORIES_MAX: Final = 64
"""Facts that connect the documents asked about with others."""
SUBJECT_MAX: Final = 12
"""Facts about the same subject before it connects nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactTie:
    """A passage that a fact was drawn from which is connected with a fact drawn from document `source_id`."""

    source_id: str
    chunk_id: int
    relation: str
    """`updates`, `extends`, `derives`, `contradicts`, `says` (the same fact) or `about` (the same subject)."""
    subject: str


def tied(chunks: Sequence[Chunk]) -> list[list[int]]:
    """The numbers of each chunk; computed before the transaction, which others wait for. A chunk's text never changes: what
    was written once stays right."""
    return [numbers(chunk.text) for chunk in chunks]


class TieStore:
    """The reading side, as SQLite is asked. Any thread may call; every method blocks its caller."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def sharing(self, container_id: int, keys: Collection[int]) -> dict[int, list[int]]:
        """Passages that mention each of at most KEYS_MAX things, in order of id. More than SHARED_MAX of them: none, and no
        more than SHARED_MAX + 1 rows are read."""
        found: dict[int, list[int]] = {}
        for number, chunk_id in self._mentioning(container_id, list(dict.fromkeys(keys))[:KEYS_MAX]):
            found.setdefault(int(number), []).append(int(chunk_id))
        return {number: ids for number, ids in found.items() if len(ids) <= SHARED_MAX}

    def _mentioning(self, container_id: int, asked: Sequence[int]) -> Iterable[Row]:
        """Number and passage; of each number the first SHARED_MAX + 1. One statement: a row for each number."""
        rows = self._db.all(_SHARING, (container_id, SHARED_MAX + 1, json.dumps(asked)))
        return [(number, chunk_id) for number, ids in rows if ids is not None for chunk_id in ids.split(",")]

    def at(self, container_id: int, paths: Sequence[str]) -> dict[str, str]:
        """Documents by path, of at most FILES_MAX paths."""
        asked = list(dict.fromkeys(paths))[:FILES_MAX]
        rows = self._db.all(
            f"select d.path, d.id from document d where d.container_id = ? and d.path in ({marks_for(asked)}) "  # noqa: S608
            "and d.kind = 'file' order by d.path",
            (container_id, *asked),
        )
        return dict(rows)

    def called(self, container_id: int, names: Sequence[str]) -> dict[str, list[tuple[str, str]]]:
        """Paths and documents by the last component of the path, of at most FILES_MAX names; a name that more than
        SAME_NAME_MAX files have means none of them."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, path, document_id in self._named(container_id, list(dict.fromkeys(names))[:FILES_MAX]):
            found.setdefault(name, []).append((path, document_id))
        return {name: sorted(files) for name, files in found.items() if len(files) <= SAME_NAME_MAX}

    def _named(self, container_id: int, asked: Sequence[str]) -> Iterable[Row]:
        """Name, path and document; of each name SAME_NAME_MAX + 1 at most."""
        for name in asked:
            yield from self._db.all(
                "select n.name, d.path, d.id from document_name n join document d on d.id = n.document_id "
                "where n.container_id = ? and n.name = ? limit ?",
                (container_id, name, SAME_NAME_MAX + 1),
            )

    def beginnings(self, document_ids: Sequence[str]) -> dict[str, list[int]]:
        """The first PASSAGES_MAX passages of documents."""
        asked = list(dict.fromkeys(document_ids))[:FILES_MAX]
        found: dict[str, list[int]] = {}
        rows = self._db.all(
            f"select document_id, id from chunk where document_id in ({marks_for(asked)}) "  # noqa: S608
            f"and ordinal < {PASSAGES_MAX} order by document_id, ordinal",
            asked,
        )
        for document_id, chunk_id in rows:
            found.setdefault(document_id, []).append(int(chunk_id))
        return found

    def facts(self, container_id: int, document_ids: Sequence[str]) -> list[FactTie]:
        """Passages of other documents that are connected by facts: the same fact said elsewhere, one that updates, extends,
        contradicts or is derived from it, one about the same subject. Forgotten facts connect nothing."""
        asked = list(dict.fromkeys(document_ids))[:FILES_MAX]
        if not asked or self._db.one("select 1 from memory where container_id = ? limit 1", (container_id,)) is None:
            return []
        rows = self._db.all(_FACTS.format(marks=marks_for(asked)), (*asked, container_id, container_id))
        return [
            FactTie(source_id=source_id, chunk_id=int(chunk_id), relation=relation, subject=subject)
            for source_id, chunk_id, relation, subject, document_id in rows
            if document_id != source_id
        ]


_SHARING: Final = (
    "select k.value, (select group_concat(chunk_id) from (select chunk_id from chunk_tie "
    "where container_id = ? and number = k.value order by chunk_id limit ?)) from json_each(?) k"
)
_FACTS: Final = (
    "with own as (select s.document_id as source_id, m.id, m.root_id, m.parent_id, m.relation, m.subject, m.container_id "  # noqa: S608
    "from memory_source s join memory m on m.id = s.memory_id "
    f"where s.document_id in ({{marks}}) and s.stands = 1 and m.container_id = ? and m.is_forgotten = 0 "
    f"order by s.document_id, s.start_byte limit {MEMORIES_MAX}), "
    "other as ("
    "select o.source_id, o.id as memory_id, 'says' as relation, o.subject from own o "
    "union select o.source_id, m.id, coalesce(m.relation, 'says'), m.subject from own o join memory m on m.parent_id = o.id "
    "where m.is_forgotten = 0 "
    "union select o.source_id, m.id, coalesce(o.relation, 'says'), m.subject from own o join memory m on m.id = o.parent_id "
    "where m.is_forgotten = 0 "
    "union select o.source_id, m.id, 'about', m.subject from own o join memory m on m.container_id = o.container_id "
    "and m.subject = o.subject and m.id <> o.id where m.is_forgotten = 0 and m.is_latest = 1 and o.subject <> '' and "
    "(select count(*) from (select 1 from memory n where n.container_id = o.container_id and n.subject = o.subject "
    f"limit {SUBJECT_MAX + 1}) few) <= {SUBJECT_MAX}) "
    "select r.source_id, c.id, r.relation, r.subject, s.document_id from other r "
    "join memory_source s on s.memory_id = r.memory_id and s.stands = 1 and s.document_id <> r.source_id "
    "join chunk c on c.document_id = s.document_id and c.container_id = ? "
    "and c.start_byte <= s.start_byte and c.end_byte > s.start_byte "
    f"order by r.source_id, c.id, r.relation limit {4 * MEMORIES_MAX}"
)
