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
from memdir.store.text.mentions import numbers
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
"""Facts about the same subject, or documents that say the same fact, before it connects nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactLink:
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


class EntityLinks:
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

    def facts(self, container_id: int, document_ids: Sequence[str]) -> list[FactLink]:
        """Passages of other documents that are connected by facts: the same fact said elsewhere, one that updates, extends,
        contradicts or is derived from it, one about the same subject. Forgotten facts connect nothing, and neither does what
        more than SUBJECT_MAX have in common; so no more rows are read than that, however many facts a container has."""
        asked = list(dict.fromkeys(document_ids))[:FILES_MAX]
        own = self._db.all(_OWN_FACTS.format(marks=marks_for(asked)), asked) if asked else []
        if not own:
            return []
        related = {*self._versions(own), *self._of_subjects(container_id, own)}
        related |= {(source_id, memory_id, "says", subject) for source_id, memory_id, _, _, subject in own}
        said = self._said_at(list(dict.fromkeys(memory_id for _, memory_id, _, _ in sorted(related))))
        found = {
            (source_id, chunk_id, relation, subject)
            for source_id, memory_id, relation, subject in related
            for document_id, chunk_id in said.get(memory_id, ())
            if document_id != source_id
        }
        ties = [
            FactLink(source_id=source, chunk_id=at, relation=how, subject=about) for source, at, how, about in sorted(found)
        ]
        return ties[: 4 * MEMORIES_MAX]

    def _versions(self, own: Sequence[Row]) -> set[_Related]:
        """Facts that follow from facts of the documents, or that those follow from."""
        by_id: dict[str, list[Row]] = {}
        by_parent: dict[str, list[Row]] = {}
        for row in own:
            by_id.setdefault(row[1], []).append(row)
            if row[2] is not None:
                by_parent.setdefault(row[2], []).append(row)
        later = self._db.all(_LATER_FACTS.format(marks=marks_for(by_id)), (*by_id, MEMORIES_MAX))
        earlier = self._db.all(_FACTS_BY_ID.format(marks=marks_for(by_parent)), tuple(by_parent))
        found: set[_Related] = set()
        for memory_id, parent_id, relation, subject in later:
            found |= {(row[0], memory_id, relation or "says", subject) for row in by_id[parent_id]}
        for memory_id, subject in earlier:
            found |= {(row[0], memory_id, row[3] or "says", subject) for row in by_parent[memory_id]}
        return found

    def _of_subjects(self, container_id: int, own: Sequence[Row]) -> set[_Related]:
        """Facts about the subjects of the documents' facts; of a subject that more than SUBJECT_MAX are about none."""
        sources: dict[str, set[str]] = {}
        for source_id, _, _, _, subject in own:
            if subject:
                sources.setdefault(subject, set()).add(source_id)
        found: dict[str, list[str]] = {}
        for subject, memory_id in self._about(container_id, list(sources)):
            found.setdefault(subject, []).append(memory_id)
        few = {subject: ids for subject, ids in found.items() if len(ids) <= SUBJECT_MAX}
        holding = self._db.all(
            _LATEST_BY_ID.format(marks=marks_for([one for ids in few.values() for one in ids])),
            [one for ids in few.values() for one in ids],
        )
        return {
            (source_id, memory_id, "about", subject) for memory_id, subject in holding for source_id in sources[subject]
        } - {(source_id, memory_id, "about", subject) for source_id, memory_id, _, _, subject in own}

    def _about(self, container_id: int, subjects: Sequence[str]) -> Iterable[Row]:
        """Subject and fact; of each subject SUBJECT_MAX + 1 at most."""
        rows = self._db.all(_ABOUT, (container_id, SUBJECT_MAX + 1, json.dumps(subjects)))
        return [(subject, memory_id) for subject, ids in rows for memory_id in (ids or "").split(",") if memory_id]

    def _said_at(self, memory_ids: Sequence[str]) -> dict[str, list[tuple[str, int]]]:
        """Documents that say each fact, and the passages where; of what more than SUBJECT_MAX say none."""
        found: dict[str, list[tuple[str, int | None]]] = {}
        for memory_id, document_id, chunk_id in self._sources(memory_ids):
            found.setdefault(memory_id, []).append((document_id, chunk_id))
        return {
            memory_id: [(document_id, chunk_id) for document_id, chunk_id in said if chunk_id is not None]
            for memory_id, said in found.items()
            if len(said) <= SUBJECT_MAX
        }

    def _sources(self, memory_ids: Sequence[str]) -> Iterable[Row]:
        """Fact, document, passage; of each fact SUBJECT_MAX + 1 at most."""
        return self._db.all(_SOURCES, (json.dumps(memory_ids), SUBJECT_MAX + 1))


_Related = tuple[str, str, str, str]
"""A document, a fact that one of its facts is connected with, how, and that fact's subject."""

_SHARING: Final = (
    "select k.value, (select group_concat(chunk_id) from (select chunk_id from chunk_tie "
    "where container_id = ? and number = k.value order by chunk_id limit ?)) from json_each(?) k"
)
_OWN_FACTS: Final = (
    "select s.document_id, m.id, m.parent_id, m.relation, m.subject from memory_source s join memory m on m.id = s.memory_id "  # noqa: S608
    "where s.document_id in ({marks}) and s.stands = 1 and m.is_forgotten = 0 "
    f"order by s.document_id, s.start_byte limit {MEMORIES_MAX}"
)
_LATER_FACTS: Final = (
    "select id, parent_id, relation, subject from memory where parent_id in ({marks}) and is_forgotten = 0 limit ?"
)
_FACTS_BY_ID: Final = "select id, subject from memory where id in ({marks}) and is_forgotten = 0"
_LATEST_BY_ID: Final = _FACTS_BY_ID + " and is_latest = 1"
_ABOUT: Final = (
    "select k.value, (select group_concat(id) from (select id from memory "
    "where container_id = ? and subject = k.value limit ?)) from json_each(?) k"
)
PASSAGE_AT: Final = (
    "(select c.id from chunk c where c.document_id = s.document_id and c.start_byte <= s.start_byte "
    "order by c.start_byte desc limit 1)"
)
_SOURCES: Final = (
    f"select k.value, s.document_id, {PASSAGE_AT} from json_each(?) k cross join memory_source s on s.id in ("  # noqa: S608
    "select x.id from memory_source x where x.memory_id = k.value and x.stands = 1 limit ?)"
)
