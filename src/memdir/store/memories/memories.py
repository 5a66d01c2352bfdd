"""Memories: facts, their versions, and where each was read or who said it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from memdir.core.clock import Clock, SystemClock
from memdir.store.database import Database, Guard, Row, Transaction, first, marks_for
from memdir.store.errors import SupersededError
from memdir.store.memories.writing import Origin, write
from memdir.store.passages.reading import IN_MAX
from memdir.store.protocols import MemoryChange
from memdir.store.text.passage_text import storable
from memdir.store.types import Document, Memory, MemoryCandidate

_COLUMNS: Final = (
    "select m.id, m.container_id, s.document_id, s.revision, m.root_id, m.parent_id, m.relation, m.version, m.is_latest, "
    "m.is_forgotten, m.kind, m.subject, m.text, m.confidence, s.start_line, s.end_line, s.start_byte, s.end_byte, "
    "m.created_at_ms, m.updated_at_ms, s.caller, m.metadata, m.forget_after_ms, m.forget_reason, "
    "(select count(*) from memory_source c where c.memory_id = m.id), m.said_at_ms, m.valid_from_ms, m.ended_by"
)
_SELECT: Final = (
    # A left join, and a condition that follows from the other one: else PostgreSQL reads the sources of all memories.
    f"{_COLUMNS} from memory m left join memory_source s on s.memory_id = m.id and s.id = ("  # noqa: S608
    "select x.id from memory_source x where x.memory_id = m.id order by x.stands desc, x.id limit 1) "
)
_HISTORY: Final = (
    "select v.id from memory r join memory v on v.root_id = r.root_id where r.id = ? union "
    "select e.id from memory r join memory v on v.root_id = r.root_id join memory e on e.ended_by = v.id where r.id = ?"
)
"""All versions of a fact, and what each of them ended."""
_REMEMBERED: Final = "m.is_latest = 1 and m.is_forgotten = 0 and (m.forget_after_ms is null or m.forget_after_ms > ?)"
VERSIONS_MAX: Final = 1000
"""Versions of facts that one reading of histories gives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryListing:
    """What `MemoryStore.page` is asked for: the latest versions in some containers, forgotten ones included."""

    container_ids: tuple[int, ...]
    sort: Literal["created_at_ms", "updated_at_ms"] = "created_at_ms"
    descending: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a fact is said. `path` None: an API key said it, or the document lies nowhere."""

    path: str | None
    start_line: int
    end_line: int
    stands: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """What `memory.reconcile` decided about a document."""

    document: Document
    changes: Sequence[MemoryChange]
    guard: Guard | None = None


class MemoryStore:
    """The memory and memory_source tables."""

    def __init__(self, db: Database, clock: Clock | None = None) -> None:
        self._db = db
        self._clock = clock or SystemClock()

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000

    def latest(self, container_id: int, *, limit: int = 1000, forgotten: bool = False) -> Sequence[Memory]:
        """Memories that hold now, most important first (static before dynamic, newer first); with `forgotten` also those
        that were forgotten and not superseded."""
        condition, bindings = ("m.is_latest = 1", ()) if forgotten else (_REMEMBERED, (self._now_ms(),))
        return self._all(
            f"where m.container_id = ? and {condition} order by m.kind desc, m.updated_at_ms desc, m.id limit ?",
            (container_id, *bindings, limit),
        )

    def of_document(self, document_id: str) -> Sequence[Memory]:
        """The latest memories drawn from a document."""
        return [memory for memory in self.standing(document_id) if memory.is_latest]

    def standing(self, document_id: str) -> Sequence[Memory]:
        """Every memory that the document said when it was last read, superseded ones included: the `own` of `reconcile`."""
        return self.standing_in([document_id])[document_id]

    def standing_in(self, document_ids: Sequence[str]) -> dict[str, list[Memory]]:
        """The same for several documents."""
        found: dict[str, list[Memory]] = {document_id: [] for document_id in document_ids}
        for begin in range(0, len(document_ids), IN_MAX):
            some = document_ids[begin : begin + IN_MAX]
            rows = self._db.all(
                f"{_COLUMNS} from memory_source s join memory m on m.id = s.memory_id "
                f"where s.document_id in ({marks_for(some)}) and s.stands = 1 order by s.start_byte, m.id",
                some,
            )
            for row in rows:
                found[row[2]].append(self._memory(row))
        return found

    def sources(self, memory_id: str) -> list[Source]:
        """Where a fact is said, what stands first."""
        rows = self._db.all(
            "select d.path, s.start_line, s.end_line, s.stands from memory_source s "
            "left join document d on d.id = s.document_id where s.memory_id = ? order by s.stands desc, s.id",
            (memory_id,),
        )
        return [Source(path=row[0], start_line=row[1], end_line=row[2], stands=bool(row[3])) for row in rows]

    def spans(self, memory_id: str) -> list[tuple[str, int, int]]:
        """Documents that say any version of a fact now, and where: bytes, half open."""
        rows = self._db.all(
            "select s.document_id, s.start_byte, s.end_byte from memory_source s join memory m on m.id = s.memory_id "
            "where m.root_id = (select r.root_id from memory r where r.id = ?) and s.stands = 1 and s.document_id is not null",
            (memory_id,),
        )
        return [(row[0], row[1], row[2]) for row in rows]

    def history(self, memory_id: str) -> Sequence[Memory]:
        """All versions of a fact, and what else they ended, oldest first."""
        return self._all(
            f"where m.id in ({_HISTORY}) order by m.is_latest, m.said_at_ms, m.version, m.id", (memory_id, memory_id)
        )

    def held_at(self, container_id: int, at_ms: int, *, limit: int) -> Sequence[Memory]:
        """What was so at a moment, as it is known now: it began to be so by then, or nobody knows when (it was written down
        only after it had ended), and what took its place began later."""
        return self._all(
            "left join memory n on n.id = m.ended_by where m.container_id = ? and m.is_forgotten = 0 "
            "and (n.id is null or n.valid_from_ms > ?) "
            "and (m.valid_from_ms <= ? or m.parent_id is null and n.valid_from_ms < m.valid_from_ms) "
            "order by m.kind desc, m.valid_from_ms desc, m.id limit ?",
            (container_id, at_ms, at_ms, limit),
        )

    def versions(self, root_ids: Sequence[str]) -> Sequence[Memory]:
        """All versions of some facts, oldest first, at most VERSIONS_MAX."""
        roots = list(dict.fromkeys(root_ids))
        marks = ",".join("?" * len(roots))
        return self._all(
            f"where m.root_id in ({marks}) order by m.root_id, m.version, m.id limit ?",
            (*roots, VERSIONS_MAX),
        )

    def ended(self, by_ids: Sequence[str]) -> Sequence[Memory]:
        """What some facts ended, at most VERSIONS_MAX."""
        return self._all(f"where m.ended_by in ({marks_for(by_ids)}) order by m.id limit ?", (*by_ids, VERSIONS_MAX))

    def get(self, memory_id: str) -> Memory | None:
        """One memory by id."""
        found = self._all("where m.id = ?", (memory_id,))
        return found[0] if found else None

    def many(self, memory_ids: Sequence[str]) -> dict[str, Memory]:
        """Those of the memories that exist, by id."""
        found: dict[str, Memory] = {}
        for begin in range(0, len(memory_ids), IN_MAX):
            some = memory_ids[begin : begin + IN_MAX]
            found.update((memory.id, memory) for memory in self._all(f"where m.id in ({marks_for(some)})", some))
        return found

    def saying(self, container_id: int, text: str) -> Memory | None:
        """The latest memory of a container with exactly this text; one that is not forgotten goes first."""
        found = self._all(
            "where m.container_id = ? and m.is_latest = 1 and substr(m.text, 1, 64) = substr(?, 1, 64) and m.text = ? "
            "order by m.is_forgotten, m.updated_at_ms desc, m.id "
            "limit 1",
            (container_id, storable(text), storable(text)),
        )
        return found[0] if found else None

    def page(self, listing: MemoryListing, *, limit: int, offset: int = 0) -> Sequence[Memory]:
        """A page of the latest versions."""
        marks = ",".join("?" * len(listing.container_ids))
        place = "= ?" if len(listing.container_ids) == 1 else f"in ({marks})"  # or SQLite sorts all there are
        direction = "desc" if listing.descending else "asc"
        return self._all(
            f"where m.container_id {place} and m.is_latest = 1 "
            f"order by m.{listing.sort} {direction}, m.id {direction} limit ? offset ?",
            (*listing.container_ids, limit, offset),
        )

    def count(self, listing: MemoryListing) -> int:
        """How many memories `page` would give without a limit."""
        marks = ",".join("?" * len(listing.container_ids))
        row = self._db.one(
            f"select count(*) from memory where container_id in ({marks}) and is_latest = 1",  # noqa: S608
            listing.container_ids,
        )
        return 0 if row is None else int(row[0])

    def counts(self, container_ids: Sequence[int]) -> dict[int, int]:
        """How many facts each of the containers remembers now."""
        marks = ",".join("?" * len(container_ids))
        rows = self._db.all(
            f"select m.container_id, count(*) from memory m where m.container_id in ({marks}) and {_REMEMBERED} "  # noqa: S608
            "group by m.container_id",
            (*container_ids, self._now_ms()),
        )
        return {row[0]: row[1] for row in rows}

    def counts_of(self, document_ids: Sequence[str]) -> dict[str, int]:
        """How many facts that are remembered now each of the documents says."""
        unique = list(dict.fromkeys(document_ids))
        marks = ",".join("?" * len(unique))
        rows = self._db.all(
            "select s.document_id, count(*) from memory_source s join memory m on m.id = s.memory_id "  # noqa: S608
            f"where s.document_id in ({marks}) and s.stands = 1 and {_REMEMBERED} group by s.document_id",
            (*unique, self._now_ms()),
        )
        return {row[0]: row[1] for row in rows}

    def _all(self, condition: str, bindings: Sequence[Any]) -> list[Memory]:
        return [self._memory(row) for row in self._db.all(_SELECT + condition, bindings)]

    def forget_document(self, document: Document, *, guard: Guard | None = None) -> bool:
        """Take back what was drawn from a document that left the memory paths. Returns whether anything changed.
        SupersededError when `guard` says no."""
        with self._db.write() as connection:
            _lock(connection, document.container_id, None, guard)
            connection.execute("delete from memory_source where document_id = ?", (document.id,))
            return bool(connection.changes())

    def apply(
        self,
        document: Document,
        changes: Sequence[MemoryChange],
        *,
        version: int | None = None,
        guard: Guard | None = None,
    ) -> bool:
        """`apply_all` for one document. SupersededError when `guard` says no."""
        decided = Decided(document=document, changes=changes, guard=guard)
        (changed,) = self.apply_all(document.container_id, [decided], version=version)
        if changed is None:
            raise SupersededError
        return changed

    def apply_all(self, container_id: int, decisions: Sequence[Decided], *, version: int | None = None) -> list[bool | None]:
        """Apply what was decided about documents of one container, in one transaction, and grow the container's profile
        version when anything changed. Returns for each whether anything did, None when its guard said no; nothing is done
        about a document that has other content by now.

        A fact that only moved within its document gets its new span without counting as a change. `version` is the container's
        profile version before the memories were read for the decisions: SupersededError when it is another now (the same fact
        would be added twice).
        """
        now_ms = self._now_ms()
        with self._db.write() as connection:
            _lock(connection, container_id, version, None)
            changed = [_applied(connection, decided, now_ms) for decided in decisions]
            if any(changed):
                connection.execute("update container set profile_version = profile_version + 1 where id = ?", (container_id,))
        return changed

    def say(
        self, container_id: int, statements: Sequence[tuple[Origin, MemoryChange]], *, version: int | None = None
    ) -> list[str]:
        """Apply changes that a call asked for, in one transaction. Returns, for each, the memory that says it now. `version` as
        in `apply`."""
        now_ms = self._now_ms()
        ids: list[str] = []
        with self._db.write() as connection:
            _lock(connection, container_id, version, None)
            for origin, change in statements:
                written = write(connection, origin, change, now_ms)
                assert written.memory_id is not None
                ids.append(written.memory_id)
            connection.execute("update container set profile_version = profile_version + 1 where id = ?", (container_id,))
        return ids

    def forget(self, memory: Memory, *, reason: str | None = None) -> bool:
        """Out of profile and search, unless they are asked for forgotten ones. Returns whether it was remembered before."""
        with self._db.write() as connection:
            _lock(connection, memory.container_id, None, None)
            connection.execute(
                "update memory set is_forgotten = 1, forget_reason = coalesce(?, forget_reason), updated_at_ms = ? "
                "where id = ? and is_forgotten = 0",
                (reason and storable(reason), self._now_ms(), memory.id),
            )
            changed = bool(connection.changes())
            if changed:
                connection.execute(
                    "update container set profile_version = profile_version + 1 where id = ?", (memory.container_id,)
                )
        return changed

    def _memory(self, row: Row) -> Memory:
        expired = row[22] is not None and row[22] <= self._now_ms()
        return Memory(
            id=row[0],
            container_id=row[1],
            document_id=row[2],
            revision=row[3],
            root_id=row[4],
            parent_id=row[5],
            relation=row[6],
            version=row[7],
            is_latest=bool(row[8]),
            is_forgotten=bool(row[9]) or expired,
            candidate=MemoryCandidate(
                kind=row[10],
                subject=row[11],
                text=row[12],
                confidence=row[13],
                start_line=row[14],
                end_line=row[15],
                start_byte=row[16],
                end_byte=row[17],
                said_ms=row[25],
                valid_from_ms=row[26],
            ),
            ended_by=row[27],
            created_at_ms=row[18],
            updated_at_ms=row[19],
            caller=row[20],
            metadata=json.loads(row[21]),
            forget_after_ms=row[22],
            forget_reason=row[23],
            source_count=row[24],
        )


def _applied(connection: Transaction, decided: Decided, now_ms: int) -> bool | None:
    if decided.guard is not None and not decided.guard(connection):
        return None
    document = decided.document
    row = first(connection, "select content_hash from document where id = ?", (document.id,))
    if row is None or row[0] != document.content_hash:
        return False
    origin = Origin.of(document)
    written = [write(connection, origin, change, now_ms).changed for change in decided.changes]
    return any(written)


def _lock(connection: Transaction, container_id: int, version: int | None, guard: Guard | None) -> None:
    """One writer of memories in a container at a time."""
    connection.execute(
        "update container set profile_version = profile_version "
        "where id = ? and profile_version = coalesce(?, profile_version)",
        (container_id, version),
    )
    if not connection.changes():
        raise SupersededError("the memories of the container changed meanwhile")
    if guard is not None and not guard(connection):
        raise SupersededError
