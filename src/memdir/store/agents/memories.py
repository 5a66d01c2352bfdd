"""The records of agents' memories: derived from the Markdown files under `/memory/`, changed in one transaction with them.

A file under `/memory/<project>/` is of that project, one directly in `/memory/` of none; one in an `inbox` folder of
either only waits to be kept. A short file is one record, a long one several pieces. Who changes records holds the
container's row, so that events come in the order of the commits.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.clock import Clock
from memdir.store.agents import projects
from memdir.store.agents.feed import IN_MAX, tags_of
from memdir.store.agents.files import Draft, Provenance
from memdir.store.database import Database, Row, Transaction, fetch, first, marks_for, repeated, run_many
from memdir.store.paths import AGENT_FOLDER, INBOX, below, is_inbox, is_within
from memdir.store.text.words import fold

FOLDER: Final = AGENT_FOLDER
SUFFIX: Final = ".md"
_COLUMNS: Final = (
    "m.number, m.id, m.container_id, m.document_id, m.ordinal, d.path, m.content, m.tags, m.project, m.metadata, "
    "m.access_count, m.created_at_ms, m.updated_at_ms, m.provenance, m.is_proposed"
)
_SELECT: Final = f"select {_COLUMNS} from agent_memory m join document d on d.id = m.document_id "  # noqa: S608


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRecord:
    """One memory, as it stands in its file (or a piece of it). `number` orders ties."""

    number: int
    id: str
    container_id: int
    document_id: str
    ordinal: int
    path: str
    content: str
    tags: tuple[str, ...]
    project: str | None
    metadata: Mapping[str, Any]
    access_count: int
    created_at_ms: int
    updated_at_ms: int
    provenance: Provenance
    is_proposed: bool

    def draft(self) -> Draft:
        """What it takes to write its file anew."""
        return Draft(
            content=self.content, tags=self.tags, project=self.project, metadata=self.metadata,
            created_at_ms=self.created_at_ms, updated_at_ms=self.updated_at_ms, access_count=self.access_count,
            provenance=self.provenance,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Of a container. `size_bytes` of the texts."""

    memories: int
    size_bytes: int
    projects: tuple[tuple[str | None, int], ...]
    oldest_ms: int | None
    newest_ms: int | None


def is_agent_path(path: str | None) -> bool:
    """Whether a file there is a memory of agents."""
    return path is not None and path.endswith(SUFFIX) and is_within(path, FOLDER) and path != FOLDER


def project_of(path: str) -> str | None:
    """The project that a path under `/memory/` belongs to; None for none."""
    project, slash, _ = path[len(FOLDER) + 1 :].partition("/")
    return project if slash and project != INBOX else None


def folded_hash(content: str) -> int:
    """What two texts share that differ in case, accents and white space only. 63 bits."""
    text = " ".join(fold(content).split())
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") >> 1


def record_id(document_id: str, ordinal: int) -> str:
    """Of a piece of a file."""
    return document_id if ordinal == 0 else f"{document_id}-{ordinal + 1}"


class AgentMemoryStore:
    """The table agent_memory. Any thread may call."""

    def __init__(self, db: Database, clock: Clock) -> None:
        self._db = db
        self._clock = clock

    # reading

    def get(self, container_id: int, memory_id: str) -> AgentRecord | None:
        """One memory by its id."""
        row = self._db.one(f"{_SELECT} where +m.container_id = ? and m.id = ?", (container_id, memory_id))
        return None if row is None else _record(row)

    def many(self, container_id: int, numbers: Sequence[int]) -> dict[int, AgentRecord]:
        """Those of the memories that are there, by number. `+`: or SQLite reads the whole container's index."""
        found: dict[int, AgentRecord] = {}
        for at in range(0, len(numbers), IN_MAX):
            some = numbers[at : at + IN_MAX]
            rows = self._db.all(
                f"{_SELECT} where m.number in ({marks_for(some)}) and +m.container_id = ?", (*some, container_id)
            )
            found.update((row[0], _record(row)) for row in rows)
        return found

    def by_ids(self, container_id: int, memory_ids: Sequence[str]) -> list[AgentRecord]:
        """Those of the memories that are there, at most 500, in the order of `memory_ids`."""
        some = list(memory_ids)[:IN_MAX]
        rows = self._db.all(f"{_SELECT} where m.id in ({marks_for(some)}) and +m.container_id = ?", (*some, container_id))
        found = {row[1]: _record(row) for row in rows}
        return [found[one] for one in some if one in found]

    def of_document(self, document_id: str) -> list[AgentRecord]:
        """The pieces of a file in order."""
        return [_record(row) for row in self._db.all(f"{_SELECT} where m.document_id = ? order by m.ordinal", (document_id,))]

    def of_documents(self, document_ids: Sequence[str]) -> dict[str, list[AgentRecord]]:
        """The pieces of each of at most 500 files, in order."""
        found: dict[str, list[AgentRecord]] = {}
        rows = self._db.all(f"{_SELECT} where m.document_id in ({marks_for(document_ids)}) order by m.ordinal", document_ids)
        for row in rows:
            found.setdefault(row[3], []).append(_record(row))
        return found

    def among(self, document_ids: Sequence[str]) -> set[str]:
        """Those of at most 500 documents that are memories of agents."""
        rows = self._db.all(
            f"select document_id from agent_memory where document_id in ({marks_for(document_ids)})",  # noqa: S608
            document_ids,
        )
        return {row[0] for row in rows}

    def page(
        self,
        container_id: int,
        *,
        project: str | None = None,
        tag: str | None = None,
        after: tuple[int, int] | None,
        limit: int,
        oldest_first: bool = False,
        personal: bool = False,
        proposed: bool = False,
    ) -> list[AgentRecord]:
        """Newest first, behind `after` (created_at_ms, number); of one project ('': of none; with `personal` of none, too), or
        with one tag. `proposed`: what waits to be kept instead of what is."""
        condition, bindings = _those(container_id, project, tag, personal=personal, proposed=proposed)
        turn, beyond = ("asc", ">") if oldest_first else ("desc", "<")
        if after is not None:
            condition += f" and (m.created_at_ms, m.number) {beyond} (?, ?)"
            bindings += after
        rows = self._db.all(
            f"{_SELECT} where {condition} order by m.created_at_ms {turn}, m.number {turn} limit ?", (*bindings, limit)
        )
        return [_record(row) for row in rows]

    def count(
        self,
        container_id: int,
        *,
        project: str | None = None,
        tag: str | None = None,
        personal: bool = False,
        proposed: bool = False,
    ) -> int:
        """How many there are, chosen as in `page`."""
        condition, bindings = _those(container_id, project, tag, personal=personal, proposed=proposed)
        row = self._db.one(f"select count(*) from agent_memory m where {condition}", bindings)  # noqa: S608
        return 0 if row is None else int(row[0])

    def open_questions(
        self, container_id: int, *, projects: Sequence[str | None] | None, limit: int
    ) -> tuple[list[AgentRecord], int]:
        """What is proposed, not trusted, or may replace something, oldest first, and how much of that there is. `projects`: of
        these only (None: of no project)."""
        condition = (
            "m.container_id = ? and (m.is_proposed = 1 or (m.provenance <> '{}' and "
            "(m.provenance like '%\"trust\"%' or m.provenance like '%\"may_replace\"%')))"
        )
        bindings: list[Any] = [container_id]
        if projects is not None:
            condition += (
                " and (" + " or ".join("m.project is null" if one is None else "m.project = ?" for one in projects) + ")"
            )
            bindings += [one for one in projects if one is not None]
        row = self._db.one(f"select count(*) from agent_memory m where {condition}", bindings)  # noqa: S608
        rows = self._db.all(f"{_SELECT} where {condition} order by m.created_at_ms, m.number limit ?", (*bindings, limit))
        return [_record(row) for row in rows], 0 if row is None else int(row[0])

    def first_pieces(self, container_id: int, document_ids: Sequence[str]) -> list[AgentRecord]:
        """The first piece of each document, in the order of `document_ids`."""
        return [
            record
            for at in range(0, len(document_ids), IN_MAX)
            for record in self.by_ids(container_id, document_ids[at : at + IN_MAX])
        ]

    def saying(self, container_id: int, content: str, project: str | None) -> AgentRecord | None:
        """The oldest memory of the project with the same words after folding."""
        rows = self._db.all(
            f"{_SELECT} where m.container_id = ? and m.folded = ? order by m.number", (container_id, folded_hash(content))
        )
        return next((one for one in map(_record, rows) if one.project == project), None)

    def totals(self, container_id: int) -> Totals:
        """For statistics."""
        rows = self._db.all(
            "select project, count(*), sum(octet_length(content)), min(created_at_ms), max(created_at_ms) from agent_memory "
            "where container_id = ? and is_proposed = 0 group by project order by 2 desc, project",
            (container_id,),
        )
        return Totals(
            memories=sum(row[1] for row in rows),
            size_bytes=sum(int(row[2]) for row in rows),
            projects=tuple((row[0], int(row[1])) for row in rows),
            oldest_ms=min((row[3] for row in rows), default=None),
            newest_ms=max((row[4] for row in rows), default=None),
        )

    # changing

    def reread(self, container_id: int, document_id: str, content_hash: str, records: Sequence[Draft]) -> bool:
        """A file says this now: what a person wrote there becomes its records. False when it was changed again meanwhile, or
        its records are of these bytes already."""

        def work(connection: Transaction) -> bool:
            self._lock(connection, container_id)
            row = first(
                connection,
                "select d.path, (select m.content_hash from agent_memory m where m.document_id = d.id and m.ordinal = 0) "
                "from document d where d.id = ? and d.container_id = ? and d.content_hash = ?",
                (document_id, container_id, content_hash),
            )
            if row is None or (row[1] == content_hash and is_agent_path(row[0])):
                return False
            wanted = records if is_agent_path(row[0]) else ()
            replace(connection, container_id, document_id, content_hash, row[0], wanted)
            return True

        return repeated(self._db, work)

    def count_accesses(self, counts: Mapping[int, int]) -> None:
        """Add to the access counts of memories, by number."""
        with self._db.write() as connection:
            run_many(
                connection,
                "update agent_memory set access_count = access_count + ? where number = ?",
                [(counts[number], number) for number in sorted(counts)],
            )

    def _lock(self, connection: Transaction, container_id: int) -> None:
        fetch(connection, f"select 1 from container where id = ?{self._db.row_lock}", (container_id,))  # noqa: S608


def replace(
    connection: Transaction,
    container_id: int,
    document_id: str,
    content_hash: str,
    path: str,
    records: Sequence[Draft],
) -> None:
    """Put `records` in place of those of a document, inside the caller's transaction, which holds the container's row. Pieces
    that stay keep number and access count."""
    standing = {
        row[0]: row[1:]
        for row in fetch(
            connection, "select ordinal, created_at_ms, number from agent_memory where document_id = ?", (document_id,)
        )
    }
    project = project_of(path) if records else None
    proposed = int(bool(records) and is_inbox(path))
    for ordinal, record in enumerate(records):
        values = (
            content_hash,
            record.content,
            folded_hash(record.content),
            json.dumps(list(record.tags), ensure_ascii=False),
            project,
            record.metadata_text(),
            record.created_at_ms,
            record.updated_at_ms,
            json.dumps(record.provenance.fields(), ensure_ascii=False),
            proposed,
        )
        if ordinal in standing:
            connection.execute(
                "update agent_memory set content_hash = ?, content = ?, folded = ?, tags = ?, project = ?, metadata = ?, "
                "created_at_ms = ?, updated_at_ms = ?, provenance = ?, is_proposed = ? where document_id = ? and ordinal = ?",
                (*values, document_id, ordinal),
            )
        else:
            connection.execute(
                "insert into agent_memory (content_hash, content, folded, tags, project, metadata, created_at_ms, "
                "updated_at_ms, provenance, is_proposed, document_id, ordinal, id, container_id, access_count) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*values, document_id, ordinal, record_id(document_id, ordinal), container_id, record.access_count),
            )
    if any(ordinal >= len(records) for ordinal in standing):
        connection.execute("delete from agent_memory where document_id = ? and ordinal >= ?", (document_id, len(records)))


def moved(connection: Transaction, container_id: int, source: str, target: str) -> list[str]:
    """Files went from `source` to `target`, inside the caller's transaction: their records get the project of the new place, or
    go; a folder of a project that has another name stays that project's. Returns the documents that came under `/memory/` and
    are to be read."""
    if not any(is_within(path, FOLDER) or is_within(FOLDER, path) for path in (source, target)):
        return []
    former, project = (path[len(FOLDER) + 1 :] for path in (source, target))
    if all(is_within(path, FOLDER) for path in (source, target)) and former and project and "/" not in former + project:
        projects.moved(connection, container_id, former, project)
    low, high = below(target)
    rows = fetch(
        connection,
        "select d.id, d.path, (select count(*) from agent_memory m where m.document_id = d.id) from document d "
        "where d.container_id = ? and d.kind = 'file' and (d.path = ? or (d.path >= ? and d.path < ?)) order by d.path",
        (container_id, target, low, high),
    )
    unread: list[str] = []
    for document_id, path, known in rows:
        if not is_agent_path(path):
            if known:
                connection.execute("delete from agent_memory where document_id = ?", (document_id,))
        elif known:
            connection.execute(
                "update agent_memory set project = ?, is_proposed = ? where document_id = ?",
                (project_of(path), int(is_inbox(path)), document_id),
            )
        else:
            unread.append(document_id)
    return unread


def _those(container_id: int, project: str | None, tag: str | None, *, personal: bool, proposed: bool) -> tuple[str, list[Any]]:
    """The condition that chooses memories, and what is bound in it."""
    condition = f"m.container_id = ? and m.is_proposed = {int(proposed)}"
    bindings: list[Any] = [container_id]
    if project is not None:
        own = "(m.project = ? or m.project is null)" if personal else "m.project = ?"
        condition += f" and {own}" if project else " and m.project is null"
        bindings += [project] if project else []
    if tag is not None:
        text = json.dumps(tag, ensure_ascii=False).replace("!", "!!").replace("%", "!%").replace("_", "!_")
        condition += " and m.tags like ? escape '!'"
        bindings.append(f"%{text}%")
    return condition, bindings


def _record(row: Row) -> AgentRecord:
    return AgentRecord(
        number=row[0],
        id=row[1],
        container_id=row[2],
        document_id=row[3],
        ordinal=row[4],
        path=row[5] or "",
        content=row[6],
        tags=tags_of(row[7]),
        project=row[8],
        metadata={} if row[9] == "{}" else json.loads(row[9]),
        access_count=row[10],
        created_at_ms=row[11],
        updated_at_ms=row[12],
        provenance=Provenance() if row[13] == "{}" else Provenance.of(json.loads(row[13])),
        is_proposed=bool(row[14]),
    )
