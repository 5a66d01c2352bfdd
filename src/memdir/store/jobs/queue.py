"""Work on documents, kept in the database: at most one row a document and kind, the newest revision wins.

A claim is a lease with a number that grows (`claims`): whoever holds an older one may neither end the row nor write results,
so that a worker that was taken for dead and comes back changes nothing. Leases are renewed while a step runs and end by
themselves. Success ends the row only when no newer revision asked for the work meanwhile. Failure counts, and delays with full
jitter. What failed `ATTEMPTS_MAX` times, or took `DEATHS_MAX` workers along, is given up: the row stays with its reason (see
`deadletters`) and is not claimed again.

Containers take turns inside a class (kind and priority): work gets the turn after its container's last waiting one, or the
turn that the class has reached, whichever is later, and is claimed in order of turns. So an import of 100,000 documents holds
up another container's document by one document for each container that has work, and claiming stays one index lookup.
(Start-time fair queueing, Goyal, Vin, Cheng 1996, with one document as the unit.)
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from memdir.core.clock import Clock
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Database, Guard, Row, Transaction, fetch, marks_for, repeated

INTERACTIVE: Final = 0
BULK: Final = 1
LONG_BYTES: Final = 128 << 10
"""Documents from this size on are read like imports, whoever saved them: it takes seconds."""
VERY_LONG_BYTES: Final = 1 << 20
"""Documents from this size on are an import by themselves: it takes a minute."""
ATTEMPTS_MAX: Final = 5
DEATHS_MAX: Final = 3
LEASE_MS: Final = 20_000
"""A killed worker's work goes on after this, at most; a living one renews long before (`server/leases.py`)."""
BACKOFF_FIRST_MS: Final = 500
BACKOFF_MAX_MS: Final = 60_000
_DUE_AMONG: Final = 256
"""Of the work that waits, so much, next in turn, is asked when it is due."""
REASON_MAX_CHARS: Final = 500
NO_SIZE: Final = 1 << 62
"""More bytes than there are."""

HELD: Final = (
    "exists (select 1 from job where document_id = ? and kind = ? and generation = ? and claims = ? and failed_at_ms is null)"
)
"""Condition, with document, kind, generation and claims of a `Job`: this claim is the newest, for the newest revision."""

_TURN: Final = (
    "coalesce((select max(turn) from (select turn from job_clock where kind = :kind and priority = :priority union all "
    "select * from (select turn + 1 from job where container_id = :container and kind = :kind and priority = :priority "
    "and failed_at_ms is null order by turn desc limit 1) as last) as reached), 0)"
)

_ASK: Final = "insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms, turn)"
_ASKED: Final = (
    "on conflict (document_id, kind) do update set generation = job.generation + 1, attempts = 0, deaths = 0, "
    "not_before_ms = 0, failed_at_ms = null, reason = null, "
    "turn = case when excluded.priority < job.priority or job.failed_at_ms is not null then excluded.turn "
    "else job.turn end, "
    "priority = case when excluded.priority < job.priority or job.failed_at_ms is not null then excluded.priority "
    "else job.priority end"
)

_IN_CLASS: Final = "from job where kind = ? and priority = ? and failed_at_ms is null"
_DUE: Final = (
    f"select cast(? as text), cast(? as integer), coalesce((select 0 {_IN_CLASS} and not_before_ms <= ? "  # noqa: S608
    "and leased_until_ms <= ? order by turn, created_at_ms limit 1), "
    "(select min(case when not_before_ms > leased_until_ms then not_before_ms else leased_until_ms end) from ("
    f"select not_before_ms, leased_until_ms {_IN_CLASS} order by turn, created_at_ms limit ?) first))"
)
"""A class and when its next job can be claimed: 0 for now, null when there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Claimed work."""

    document_id: str
    kind: str
    container_id: int
    org_id: str
    """Whose document it is: the work on its content is done as this organisation."""
    priority: int
    generation: int
    attempts: int
    claims: int
    deaths: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """What is looked for in the table: jobs of one priority."""

    kind: str
    priority: int
    limit: int
    size_max_bytes: int


class JobStore:
    """The job table, across organisations: its methods act as the system, `enqueue` and `finish` as their caller."""

    def __init__(self, db: Database, clock: Clock, *, skip_locked: str = "") -> None:
        """`skip_locked` is the engine's clause for passing over rows that another transaction holds, with a space before."""
        self._db = db
        self._clock = clock
        self._skip_locked = skip_locked

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000

    @acting_as(SYSTEM)
    def claim(
        self,
        kind: str,
        *,
        owner: str = "",
        limit: int = 1,
        priority_max: int = BULK,
        priority_min: int = INTERACTIVE,
        bulk_first: bool = False,
        size_max_bytes: int = NO_SIZE,
    ) -> list[Job]:
        """At most `limit` jobs that are due and free, no less urgent than `priority_max` and no more than `priority_min`;
        interactive first unless `bulk_first`, then by turns. All are of one priority: an edit does not wait for the imports
        claimed with it. At least one, and no more than have `size_max_bytes` of content between them but for the last.

        Work whose earlier worker vanished is suspected of having killed it, and comes alone; after `DEATHS_MAX` times it is
        given up.
        """
        now_ms = self._now_ms()
        classes = [(kind, priority) for priority in range(priority_min, priority_max + 1)]
        if 0 not in self.due_s(classes).values():  # asked first, because it needs no lock
            return []
        with self._db.write() as connection:
            jobs: list[Job] = []
            for priority in (BULK, INTERACTIVE) if bulk_first else (INTERACTIVE, BULK):
                if priority_min <= priority <= priority_max and not jobs:
                    wanted = _Wanted(kind=kind, priority=priority, limit=limit, size_max_bytes=size_max_bytes)
                    jobs = self._take(connection, wanted, owner=owner, now_ms=now_ms)
            suspect = next((job for job in jobs if job.deaths), None)
            if suspect is not None:
                for job in jobs:
                    if job is not suspect:
                        free(connection, job)
                jobs = [suspect]
        if suspect is not None and suspect.deaths >= DEATHS_MAX:
            self.fail(suspect, f"the worker ended {suspect.deaths} times while it worked on this document", permanent=True)
            return []
        return jobs

    @acting_as(SYSTEM)
    def edits_asked(self, container_ids: Sequence[int], *, until_ms: int) -> bool:
        """Whether edits in these containers that were asked for by then are still to be indexed and have not failed yet."""
        row = self._db.one(
            f"select 1 from job where container_id in ({marks_for(container_ids)}) and kind = 'index' and priority = ? "  # noqa: S608
            "and failed_at_ms is null and attempts = 0 and created_at_ms <= ? limit 1",
            (*container_ids, INTERACTIVE, until_ms),
        )
        return row is not None

    def _take(self, connection: Transaction, wanted: _Wanted, *, owner: str, now_ms: int) -> list[Job]:
        rows = fetch(
            connection,
            "with free as materialized (select document_id as due_id, kind as due_kind, turn as due_turn, "  # noqa: S608
            "created_at_ms as due_since_ms from job where kind = :kind "
            "and priority = :priority and failed_at_ms is null and not_before_ms <= :now and leased_until_ms <= :now "
            f"order by turn, created_at_ms, document_id limit :limit{self._skip_locked}), "
            "due as materialized (select due_id, due_kind from (select due_id, due_kind, sum(d.size_bytes) over ("
            "order by due_turn, due_since_ms, due_id rows between unbounded preceding and 1 preceding) as size_before "
            "from free join document d on d.id = due_id) sized where size_before is null or size_before < :size_max) "
            "update job set claims = claims + 1, owner = :owner, leased_until_ms = :until, "
            "deaths = deaths + case when leased_until_ms > 0 then 1 else 0 end "
            "from due where document_id = due_id and kind = due_kind "
            "returning turn, created_at_ms, document_id, kind, container_id, "
            "(select k.org_id from container k where k.id = job.container_id), priority, generation, attempts, claims, deaths",
            {
                "kind": wanted.kind,
                "priority": wanted.priority,
                "owner": owner,
                "limit": wanted.limit,
                "size_max": wanted.size_max_bytes,
                "now": now_ms,
                "until": now_ms + LEASE_MS,
            },
        )
        rows.sort()
        if rows:
            connection.execute(
                "update job_clock set turn = :turn where kind = :kind and priority = :priority and turn < :turn",
                {"turn": rows[-1][0], "kind": wanted.kind, "priority": wanted.priority},
            )
        return [_job_of(row[2:]) for row in rows]

    def guard(self, job: Job) -> Guard:
        """A guard that holds the job's row and answers whether this claim is still the newest, for the revision it was made
        for."""
        return lambda connection: _hold(connection, job, self._now_ms())

    @acting_as(SYSTEM)
    def renew(self, job: Job) -> bool:
        """Keep the lease a further `LEASE_MS`. False when the work is no longer wanted from this claim: a newer revision, a
        deleted document, another worker."""
        with self._db.write() as connection:
            # A row that is locked is being written by the very step that holds the lease: nobody can take it meanwhile.
            rows = fetch(
                connection,
                f"select 1 from job where document_id = ? and kind = ? and generation = ? and claims = ?{self._skip_locked}",  # noqa: S608
                (job.document_id, job.kind, job.generation, job.claims),
            )
            if rows:
                return _hold(connection, job, self._now_ms())
        return self.holds(job)

    @acting_as(SYSTEM)
    def holds(self, job: Job) -> bool:
        """Whether the claim is still the newest, for the revision it was made for."""
        claim = (job.document_id, job.kind, job.generation, job.claims)
        return self._db.one(f"select 1 where {HELD}", claim) is not None

    @acting_as(SYSTEM)
    def finish(self, jobs: Sequence[Job]) -> None:
        """The work is done; a row that grew meanwhile becomes free at once instead."""

        repeated(self._db, lambda connection: finish(connection, jobs))

    @acting_as(SYSTEM)
    def fail(self, job: Job, reason: str, *, permanent: bool = False, counted: bool = True) -> bool:
        """The work failed: try again later, or give up (at once when it is `permanent`). What is not `counted` was not the
        document's fault and only waits. Returns whether it was given up; nothing happens to a claim that is not the newest."""
        now_ms = self._now_ms()
        attempts = job.attempts + counted
        give_up = permanent or attempts >= ATTEMPTS_MAX

        def work(connection: Transaction) -> bool:
            if give_up:  # the document's row before the job's, as everywhere
                connection.execute("update document set status = status where id = ?", (job.document_id,))
            if not _hold(connection, job, now_ms):
                free(connection, job)
                return False
            if give_up:
                _bury(connection, job, attempts, reason, now_ms)
                return True
            connection.execute(
                "update job set attempts = ?, leased_until_ms = 0, owner = '', not_before_ms = ? "
                "where document_id = ? and kind = ? and claims = ?",
                (attempts, now_ms + _delay_ms(job.attempts), job.document_id, job.kind, job.claims),
            )
            return False

        return repeated(self._db, work)

    @acting_as(SYSTEM)
    def release(self, jobs: Sequence[Job]) -> None:
        """Give claims back untouched (the worker is stopping)."""

        def work(connection: Transaction) -> None:
            for job in jobs:
                free(connection, job)

        repeated(self._db, work)

    @acting_as(SYSTEM)
    def hasten(self, kind: str, document_ids: Sequence[str]) -> int:
        """Let an import's work of this kind on these documents, which nobody does yet, come with the edits: somebody asks for
        them. Returns how many those are."""
        ids = list(dict.fromkeys(document_ids))
        with self._db.write() as connection:
            connection.execute(
                "update job set priority = ?, turn = coalesce((select c.turn from job_clock c where c.kind = job.kind "  # noqa: S608
                f"and c.priority = ?), 0) where document_id in ({marks_for(ids)}) and kind = ? and priority = ? "
                "and leased_until_ms = 0 and failed_at_ms is null",
                (INTERACTIVE, INTERACTIVE, *ids, kind, BULK),
            )
            return connection.changes()

    @acting_as(SYSTEM)
    def release_all(self, owner: str = "") -> int:
        """Free the leases of a process that is gone, those whose owner's name begins with `owner`; it died over them. Returns
        how many there were."""
        with self._db.write() as connection:
            connection.execute(
                "update job set leased_until_ms = 0, owner = '', deaths = deaths + 1 "
                "where leased_until_ms > 0 and substr(owner, 1, cast(? as integer)) = ?",
                (len(owner), owner),
            )
            return connection.changes()

    @acting_as(SYSTEM)
    def imports(self, *, at_least: int) -> bool:
        """Whether an import is to be read: `at_least` jobs of imports, or one of them over a document of VERY_LONG_BYTES. What
        is read in a process apart anyway does not count."""
        row = self._db.one(
            "select count(*), coalesce(max(size_bytes), 0) from (select d.size_bytes from job j "
            "join document d on d.id = j.document_id where j.priority = ? and j.kind <> 'extract' "
            "and j.failed_at_ms is null limit ?) few",
            (BULK, at_least),
        )
        return row is not None and (row[0] >= at_least or row[1] >= VERY_LONG_BYTES)

    @acting_as(SYSTEM)
    def due_s(self, classes: Sequence[tuple[str, int]]) -> dict[tuple[str, int], float]:
        """Of each class, a kind and a priority, the seconds until the next job can be claimed (0 when one can now); classes
        without jobs are left out. Where none is free, of more than _DUE_AMONG jobs only those that are next in turn count."""
        if not classes:
            return {}
        now_ms = self._now_ms()
        rows = self._db.all(
            " union all ".join([_DUE] * len(classes)),
            [value for one in classes for value in (*one, *one, now_ms, now_ms, *one, _DUE_AMONG)],
        )
        return {(kind, priority): max(0.0, (due_ms - now_ms) / 1000) for kind, priority, due_ms in rows if due_ms is not None}

    @acting_as(SYSTEM)
    def waiting(self, document_ids: Sequence[str]) -> set[str]:
        """Those of at most 500 documents that are not indexed or not embedded yet; not what was given up."""
        rows = self._db.all(
            f"select document_id from job where document_id in ({marks_for(document_ids)}) "  # noqa: S608
            "and kind in ('index', 'extract', 'embed') and failed_at_ms is null",
            document_ids,
        )
        return {row[0] for row in rows}

    @acting_as(SYSTEM)
    def count(self, kind: str | None = None) -> int:
        """Jobs waiting or running; not those that were given up."""
        row = self._db.one("select count(*) from job where kind = coalesce(?, kind) and failed_at_ms is null", (kind,))
        assert row is not None
        count: int = row[0]
        return count


def enqueue(connection: Transaction, *, document_id: str, container_id: int, kind: str, priority: int, now_ms: int) -> None:
    """Ask for work, inside the caller's transaction. What is already asked for becomes newer, never less urgent, keeps its
    turn, and starts afresh; what was given up comes back to life."""
    connection.execute(
        f"{_ASK} values (:document, :kind, :container, :priority, 0, :now, {_TURN}) {_ASKED}",
        {"document": document_id, "kind": kind, "container": container_id, "priority": priority, "now": now_ms},
    )


def enqueue_all(
    connection: Transaction, document_ids: Sequence[str], *, container_id: int, kind: str, priority: int, now_ms: int
) -> None:
    """The same for several documents of a container; turns follow the ids."""
    marks = ",".join(f":id{number}" for number in range(len(document_ids)))
    connection.execute(
        f"{_ASK} select id, :kind, :container, :priority, 0, :now, {_TURN} + row_number() over (order by id) - 1 "  # noqa: S608
        f"from document where id in ({marks}) {_ASKED}",
        {"kind": kind, "container": container_id, "priority": priority, "now": now_ms}
        | {f"id{number}": document_id for number, document_id in enumerate(document_ids)},
    )


def finish(connection: Transaction, claimed: Sequence[Job]) -> set[str]:
    """End claimed jobs of one kind, inside the caller's transaction. Returns their documents but for those of which a newer
    revision asked for the work: their rows are free."""
    newest, bindings = newest_of(claimed)
    ended = {row[0] for row in fetch(connection, f"delete from job where {newest} returning document_id", bindings)}  # noqa: S608
    for job in claimed:
        if job.document_id not in ended:
            free(connection, job)
    return ended


def newest_of(claimed: Sequence[Job]) -> tuple[str, list[Any]]:
    """Condition on the job table, with its values: the claims of `claimed` that are the newest, for the newest revision. The
    same as `HELD` for many."""
    if not claimed:
        return "false", []
    marks = ",".join(["(?, ?, ?, ?)"] * len(claimed))
    claims = [value for job in claimed for value in (job.document_id, job.kind, job.generation, job.claims)]
    return f"failed_at_ms is null and (document_id, kind, generation, claims) in (values {marks})", claims


def put_back(connection: Transaction, job: Job) -> None:
    """Free a job that is not finished but got on, inside the caller's transaction: others of its class have their turn first,
    and what its earlier workers died of is behind it."""
    connection.execute(
        "update job set leased_until_ms = 0, owner = '', deaths = 0, turn = 1 + coalesce((select c.turn from job_clock c "
        "where c.kind = job.kind and c.priority = job.priority), 0) where document_id = ? and kind = ? and claims = ?",
        (job.document_id, job.kind, job.claims),
    )


def _hold(connection: Transaction, job: Job, now_ms: int) -> bool:
    """Lock the row and renew the lease, if the claim is the newest and the revision is still the one."""
    connection.execute(
        "update job set leased_until_ms = ? "
        "where document_id = ? and kind = ? and generation = ? and claims = ? and failed_at_ms is null",
        (now_ms + LEASE_MS, job.document_id, job.kind, job.generation, job.claims),
    )
    return bool(connection.changes())


def free(connection: Transaction, job: Job) -> None:
    """Give a claim back, inside the caller's transaction."""
    connection.execute(
        "update job set leased_until_ms = 0, owner = '' where document_id = ? and kind = ? and claims = ?",
        (job.document_id, job.kind, job.claims),
    )


def _bury(connection: Transaction, job: Job, attempts: int, reason: str, now_ms: int) -> None:
    """Give a job up and let its document say so: without passages it failed; without the transformer's vectors, or without
    memories, it is as good as it gets."""
    text = reason[:REASON_MAX_CHARS].encode("utf-8", "replace").decode().replace("\0", "\ufffd")
    if job.kind in ("index", "extract"):
        change, note = "status = 'failed', error = ?", text
    elif job.kind == "embed":
        change, note = "status = 'done', error = ?", f"found by words only, the model failed: {text}"
    else:
        change, note = "error = ?", f"memories could not be read: {text}"
    connection.execute(f"update document set {change} where id = ?", (note, job.document_id))  # noqa: S608
    connection.execute(
        "update job set failed_at_ms = ?, attempts = ?, reason = ?, leased_until_ms = 0, owner = '' "
        "where document_id = ? and kind = ? and claims = ?",
        (now_ms, attempts, text, job.document_id, job.kind, job.claims),
    )


def _delay_ms(attempts: int) -> int:
    """Full jitter: anywhere up to the bound, so that what failed together does not come back together."""
    bound_ms = min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** min(attempts, 16))
    return 1 + int(random.random() * (bound_ms - 1))  # noqa: S311  no secret


def _job_of(row: Row) -> Job:
    return Job(
        document_id=row[0],
        kind=row[1],
        container_id=row[2],
        org_id=row[3],
        priority=row[4],
        generation=row[5],
        attempts=row[6],
        claims=row[7],
        deaths=row[8],
    )
