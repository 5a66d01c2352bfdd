"""Is the store what it must be? Every rule that holds between rows, and between rows and contents, looked at and, where that is
possible without inventing anything, repaired.

Rows are read in one moment, so a check may run beside servers; a repair works alone. What a rule finds is told a hundred
times at most. `Rule.mend` runs in the transaction that found it again.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.errors import CorruptError, NotFoundError
from memdir.store.contents.blobs import EMPTY_HASH, ORPHAN_MS
from memdir.store.database import Transaction, fetch, first
from memdir.store.store import Store
from memdir.store.upkeep.engine import BLOB_HOLDERS, Finding, Upkeep

log = logging.getLogger(__name__)

FINDINGS_MAX: Final = 100
"""Of one rule. A repair goes on behind them."""
_HASHED_ROWS: Final = 16
_STUCK_ROUNDS_MAX: Final = 10_000

Mend = Callable[[Transaction, Sequence[Any]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What must not be there. `sql` selects it, `tell` says one row as a sentence, `mend` repairs it."""

    kind: str
    sql: str
    tell: Callable[[Sequence[Any]], str]
    mend: Mend | None
    about: frozenset[str] = frozenset()
    """Tables that not every engine has."""


def held(owner: str) -> str:
    """A query: `hash` and how many rows hold it (`held`)."""
    rows = " union all ".join(
        f"select {owner}content_hash as hash from {table} where {condition}"  # noqa: S608  constants
        for table, condition in BLOB_HOLDERS.items()
    )
    return f"select {owner}hash, count(*) as held from ({rows}) as holder group by {owner}hash"  # noqa: S608


class Check:
    """One look at a store. Use once."""

    def __init__(self, store: Store, *, progress: Callable[[str, int], None] | None = None) -> None:
        self._store = store
        self._upkeep: Upkeep = store.upkeep()
        self._progress = progress or (lambda _what, _done: None)

    def findings(self, *, deep: bool = False) -> Iterator[Finding]:
        """Everything that is wrong. `deep` reads every content and compares its hash."""
        self._progress("database", 0)
        yield from self._upkeep.damage()
        with self._upkeep.reading() as reader:
            for rule in self._rules():
                self._progress(rule.kind, 0)
                for row in fetch(reader, f"{rule.sql} limit {FINDINGS_MAX}"):
                    yield Finding(kind=rule.kind, detail=rule.tell(row))
        for document_id in self._store.dead_letters.stuck(limit=FINDINGS_MAX):
            yield Finding(kind="stuck", detail=f"document {document_id} waits for work that nobody was asked for")
        yield from self._contents()
        if deep:
            yield from self._hashes()

    def repair(self, *, deep: bool = False) -> list[Finding]:
        """Repair what can be. Returns what was found, each with whether it is in order now. Nobody else may be at work on
        SQLite; PostgreSQL lets other writers wait."""
        found = []
        for finding in self._upkeep.damage():
            finding.repaired = self._upkeep.mend(finding)
            found.append(finding)
        for rule in self._rules():
            with self._upkeep.alone() as connection:
                found += self._mended(connection, rule)
        rounds = 0
        while (stuck := self._store.dead_letters.unstick()) and rounds < _STUCK_ROUNDS_MAX:
            found.append(Finding(kind="stuck", detail=f"{stuck} documents waited for work nobody was asked for", repaired=True))
            rounds += 1
        for finding in self._contents():
            if finding.kind == "contents-unknown":
                finding.repaired = self._store.blobs.is_own
            found.append(finding)
        if self._store.blobs.is_own and any(finding.kind == "contents-unknown" for finding in found):
            self._store.blobs.sweep()
        if deep:
            found += self._hashes()
        return found

    def _mended(self, connection: Transaction, rule: Rule) -> list[Finding]:
        rows = fetch(connection, rule.sql)
        found = [Finding(kind=rule.kind, detail=rule.tell(row)) for row in rows[:FINDINGS_MAX]]
        for number, row in enumerate(rows):
            done = rule.mend is not None and rule.mend(connection, row)
            if number < FINDINGS_MAX:
                found[number].repaired = done
        return found

    # contents

    def _contents(self) -> Iterator[Finding]:
        """Large contents against their rows, both ways. Memory: about 200 bytes for each large content."""
        there = {}
        for stored in self._store.blobs.contents.all():
            there[stored.place] = stored.size_bytes
            self._progress("contents", len(there))
        with self._upkeep.reading() as reader:
            rows = fetch(reader, "select hash, place, size_bytes from blob where place is not null")
        for content_hash, place, size_bytes in rows:
            found = there.pop(place, None)
            if found is None and not self._still(content_hash, place):
                continue
            if found is None:
                found = self._store.blobs.contents.size(place)
            if found is None:
                yield Finding(kind="contents-missing", detail=f"the bytes of {self._names(content_hash)} are missing")
            elif found != size_bytes:
                detail = f"the bytes of {self._names(content_hash)} are {found} and must be {size_bytes}"
                yield Finding(kind="contents-size", detail=detail)
        if there:
            for place in self._store.blobs.orphans(older_ms=ORPHAN_MS):
                yield Finding(kind="contents-unknown", detail=f"nobody knows the bytes at {place}")
        if self._store.blobs.trash.count().overdue:
            count = self._store.blobs.trash.count().overdue
            yield Finding(kind="contents-undeleted", detail=f"{count} contents could not be deleted, several times")

    def _still(self, content_hash: str, place: str) -> bool:
        """Whether a row that was read a while ago is still there: a delete beside us is no damage."""
        with self._upkeep.reading() as reader:
            return first(reader, "select 1 from blob where hash = ? and place = ?", (content_hash, place)) is not None

    def _hashes(self) -> Iterator[Finding]:
        """Every content, read to its end."""
        keys = ["hash", *_columns(self._upkeep.blob_owner)]
        last, done = ("",) * len(keys), 0
        while True:
            with self._upkeep.reading() as reader:
                rows = fetch(
                    reader,
                    f"select size_bytes, data, place, {', '.join(keys)} from blob where ({', '.join(keys)}) > "  # noqa: S608
                    f"({', '.join('?' * len(keys))}) order by {', '.join(keys)} limit {_HASHED_ROWS}",
                    last,
                )
            if not rows:
                return
            for size_bytes, data, place, content_hash, *_ in rows:
                done += 1
                self._progress("hashes", done)
                if data is not None:
                    right = hashlib.sha256(data).hexdigest() == content_hash and len(data) == size_bytes
                else:
                    right = self._reads_well(content_hash, place)
                if not right:
                    yield Finding(kind="contents-hash", detail=f"the bytes of {self._names(content_hash)} were changed")
            last = tuple(rows[-1][3:])

    def _reads_well(self, content_hash: str, place: str | None) -> bool:
        if place is None:
            return True  # told as a wrong size
        try:
            for _ in self._store.blobs.checked(content_hash, place):
                pass
        except NotFoundError:
            return True  # gone meanwhile, or told as missing
        except CorruptError as error:
            log.info("%s", error)
            return False
        return True

    def _names(self, content_hash: str) -> str:
        """Which documents a content belongs to, for a person."""
        with self._upkeep.reading() as reader:
            rows = fetch(
                reader,
                "select k.tag, coalesce(d.path, d.id) from document d join container k on k.id = d.container_id "
                "where d.content_hash = ? order by 1, 2 limit 4",
                (content_hash,),
            )
        names = ", ".join(f"{tag}:{path}" for tag, path in rows[:3]) + (", …" if len(rows) > 3 else "")
        return f"{names or 'a former version'} ({content_hash[:12]}…)"

    # rules

    def _rules(self) -> list[Rule]:
        owner = self._upkeep.blob_owner
        same = " and ".join(["h.hash = b.hash", *(f"h.{column} = b.{column}" for column in _columns(owner))])
        there = {table.name for table in self._upkeep.tables()}
        return [*self._rules_of_blobs(owner, same), *(rule for rule in _RULES if rule.about <= there)]

    def _rules_of_blobs(self, owner: str, same: str) -> list[Rule]:
        keys = _columns(owner)
        mine = ", ".join(f"b.{key}" for key in keys) + (", " if keys else "")
        theirs = ", ".join(f"h.{key}" for key in keys) + (", " if keys else "")
        where = " and ".join(["hash = ?", *(f"{key} = ?" for key in keys)])

        def recount(connection: Transaction, row: Sequence[Any]) -> bool:
            content_hash, held_now, place, size_bytes, *owners = row
            with self._upkeep.owning(connection, owners):
                if held_now:
                    connection.execute(f"update blob set ref_count = ? where {where}", (held_now, content_hash, *owners))  # noqa: S608
                    return True
                connection.execute(f"delete from blob where {where}", (content_hash, *owners))  # noqa: S608
            if place is not None:
                self._store.blobs.trash.throw(connection, place, content_hash=content_hash, size_bytes=size_bytes)
            return True

        def make_empty(connection: Transaction, row: Sequence[Any]) -> bool:
            content_hash, held_now, *owners = row
            if content_hash != EMPTY_HASH:
                return False
            columns = ", ".join(["hash", "size_bytes", "ref_count", "data", *keys])
            marks = ", ".join("?" * (4 + len(keys)))
            with self._upkeep.owning(connection, owners):
                connection.execute(
                    f"insert into blob ({columns}) values ({marks})",  # noqa: S608  constants
                    (content_hash, 0, held_now, b"", *owners),
                )
            return True

        return [
            Rule(
                kind="blob-count",
                sql=f"select b.hash, coalesce(h.held, 0), b.place, b.size_bytes{''.join(f', b.{key}' for key in keys)} "  # noqa: S608
                f"from blob b left join ({held(owner)}) h on {same} where b.ref_count <> coalesce(h.held, 0) "
                f"order by {mine}b.hash",
                tell=lambda row: f"content {row[0][:12]}… is counted wrong: {row[1]} documents or versions hold it",
                mend=recount,
            ),
            Rule(
                kind="blob-missing",
                sql=f"select h.hash, h.held{''.join(f', h.{key}' for key in keys)} from ({held(owner)}) h "  # noqa: S608
                f"left join blob b on {same} where b.hash is null order by {theirs}h.hash",
                tell=lambda row: f"{row[1]} documents or versions hold content {row[0][:12]}…, which is not there",
                mend=make_empty,
            ),
            Rule(
                kind="blob-size",
                sql="select hash, size_bytes, length(data) from blob where (data is not null and length(data) <> size_bytes) "
                "or (data is null and place is null) order by hash",
                tell=lambda row: f"content {row[0][:12]}… has {row[2] or 0} bytes and must have {row[1]}",
                mend=None,
            ),
        ]


def _columns(owner: str) -> list[str]:
    return [column.strip() for column in owner.split(",") if column.strip()]


def _begin_again(connection: Transaction, row: Sequence[Any]) -> bool:
    """History cannot be invented: it begins anew behind what there is, in a new epoch, and every mount compares everything."""
    container_id = row[0]
    connection.execute(
        "update container set epoch = ?, last_seq = (select max(n) from (select last_seq as n from container where id = ? "
        "union all select seq from change where container_id = ? "
        "union all select revision from document where container_id = ? and path is not null) as numbers) where id = ?",
        (secrets.token_hex(16), container_id, container_id, container_id, container_id),
    )
    connection.execute("delete from change where container_id = ?", (container_id,))
    connection.execute("update container set first_seq = last_seq + 1 where id = ?", (container_id,))
    return True


def _index_again(connection: Transaction, row: Sequence[Any]) -> bool:
    """The status says what is true; the work is asked for with the other documents that wait for some."""
    connection.execute("update document set status = 'queued', error = null, indexed_hash = null where id = ?", (row[0],))
    return True


def _run(*statements: str) -> Mend:
    """Statements that take the first column of the finding."""

    def mend(connection: Transaction, row: Sequence[Any]) -> bool:
        for statement in statements:
            connection.execute(statement, (row[0],))
        return True

    return mend


_RULES: Final = (
    Rule(
        kind="history",
        sql="select k.id, k.tag, k.first_seq, k.last_seq, count(c.seq) from container k "
        "left join change c on c.container_id = k.id group by k.id, k.tag, k.first_seq, k.last_seq "
        "having count(c.seq) <> k.last_seq - k.first_seq + 1 or coalesce(max(c.seq), k.last_seq) <> k.last_seq "
        "or coalesce(min(c.seq), k.first_seq) <> k.first_seq order by k.id",
        tell=lambda row: f"the history of {row[1]} has {row[4]} changes and must have those from {row[2]} to {row[3]}",
        mend=_begin_again,
    ),
    Rule(
        kind="revision",
        sql="select d.container_id, k.tag, d.path, d.revision, k.last_seq from document d "
        "join container k on k.id = d.container_id where d.path is not null and d.revision > k.last_seq "
        "order by d.container_id, d.path",
        tell=lambda row: f"{row[1]}:{row[2]} has revision {row[3]}, ahead of its container's last change {row[4]}",
        mend=_begin_again,
    ),
    Rule(
        kind="tree",
        sql="select d.id, k.tag, d.path, p.path from document p join document d on d.container_id = p.container_id "
        "and d.path >= p.path || '/' and d.path < p.path || '0' join container k on k.id = d.container_id "
        "where p.kind <> 'dir' order by k.tag, d.path",
        tell=lambda row: f"{row[1]}:{row[2]} stands below {row[3]}, which is no folder",
        mend=None,
    ),
    Rule(
        kind="unindexed",
        sql="select d.id, k.tag, coalesce(d.path, d.id) from document d join container k on k.id = d.container_id "
        "where d.kind = 'file' and d.status in ('embedding', 'indexing', 'done') "
        "and coalesce(d.indexed_hash, '') <> d.content_hash order by d.id",
        tell=lambda row: f"{row[1]}:{row[2]} is said to be searchable and is not",
        mend=_index_again,
    ),
    Rule(
        kind="passage",
        sql="select c.id, c.document_id from chunk c left join document d on d.id = c.document_id where d.id is null "
        "order by c.id",
        tell=lambda row: f"passage {row[0]} belongs to the document {row[1]}, which is gone",
        mend=_run("delete from chunk where id = ?"),
        about=frozenset({"chunk"}),
    ),
    Rule(
        kind="passage-place",
        sql="select c.document_id, count(*) from chunk c join document d on d.id = c.document_id "
        "where c.container_id <> d.container_id group by c.document_id order by c.document_id",
        tell=lambda row: f"{row[1]} passages of document {row[0]} are filed under another container",
        mend=_run(
            "delete from chunk where document_id = ?",
            "update document set status = 'queued', indexed_hash = null where id = ?",
        ),
        about=frozenset({"chunk"}),
    ),
    Rule(
        kind="passage-vector",
        sql="select c.document_id, count(*) from chunk c join document d on d.id = c.document_id and d.status = 'done' "
        "where not exists (select 1 from chunk_vector v where v.chunk_id = c.id) group by c.document_id order by c.document_id",
        tell=lambda row: f"{row[1]} passages of document {row[0]} have no vector",
        mend=_run("update document set status = 'queued', indexed_hash = null where id = ?"),
        about=frozenset({"chunk", "chunk_vector"}),
    ),
    Rule(
        kind="passage-lacks",
        sql="select c.document_id, count(*), m.name from chunk c join vector_model m on exists "
        "(select 1 from chunk s join chunk_vector w on w.chunk_id = s.id and w.model_id = m.id "
        "where s.document_id = c.document_id) join document d on d.id = c.document_id and d.status = 'done' "
        "where not exists (select 1 from chunk_vector v where v.chunk_id = c.id and v.model_id = m.id) "
        "and exists (select 1 from chunk_vector v where v.chunk_id = c.id) "
        "and not exists (select 1 from job j where j.document_id = c.document_id and j.kind = 'embed') "
        "group by c.document_id, m.name order by c.document_id, m.name",
        tell=lambda row: f"{row[1]} passages of document {row[0]} have no vector of {row[2]}, and others of it do",
        mend=_run("update document set status = 'embedding' where id = ?"),
        about=frozenset({"chunk", "chunk_vector"}),
    ),
    Rule(
        kind="job",
        sql="select j.document_id, j.kind from job j left join document d on d.id = j.document_id "
        "where d.id is null or d.container_id <> j.container_id order by j.document_id, j.kind",
        tell=lambda row: f"there is {row[1]} work for document {row[0]}, which is not there",
        mend=_run("delete from job where document_id = ?"),
    ),
    Rule(
        kind="memory",
        sql="select m.id, n.id from memory m join memory n on n.id = m.ended_by where m.is_latest = 1 order by m.id",
        tell=lambda row: f"memory {row[0]} holds, although {row[1]} took its place",
        mend=_run("update memory set is_latest = 0 where id = ?"),
        about=frozenset({"memory"}),
    ),
)
