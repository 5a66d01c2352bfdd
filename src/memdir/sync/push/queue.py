"""What must still be looked at, on disk: one row a path, latest wins; renames beside it, in order.

A row is a claim check, not an operation: whoever works on it reads the three facts and plans anew. So a row that is there too
much costs a comparison, and the only mistake that would matter, a row too few, is excluded by recording it in the same
transaction as what made it necessary. All methods are thread-safe; those with `tx` belong into the caller's transaction.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from memdir.core.clock import Clock
from memdir.core.ids import new_id
from memdir.core.sqlite import Connection, Database
from memdir.core.sqlite import Row as SqlRow
from memdir.fs.path import decode, encode, is_within, rebase
from memdir.sync.facts import below
from memdir.sync.model import Row
from memdir.sync.push.moves import CLAIM_MAX, MOVES_SCAN_MAX, Moves

QUIET_S: Final = 0.2
"""A path is left alone until it was quiet this long …"""
BURST_MAX_S: Final = 2.0
"""… but at most this long after its first change."""
_IMPORT_FILES: Final = 16
_IMPORT_S: Final = 10.0
"""More files than this, waiting or sent within this time, are an import, which the server reads after what somebody saved. What
waits says nothing alone: sending keeps up with a copy."""
_SCAN_MAX: Final = 4096
"""Rows looked at in one claim: a long run of blocked rows is left for the next one."""
_COLUMNS: Final = "path, seq, generation, state, attempts, due_at_s, first_seen_ms, error, key_seed, deep"


class Queue(Moves):
    """The queue of one mount. Claims live in memory: after a restart every row is ready and due."""

    def __init__(self, db: Database, *, clock: Clock, rng: random.Random) -> None:
        super().__init__(db, clock=clock, rng=rng)
        self._new_s: deque[float] = deque(maxlen=_IMPORT_FILES)
        """When the last files were sent that the server had not."""
        self._edits_s: deque[float] = deque(maxlen=_IMPORT_FILES)
        """When the last others were."""
        self._may_be_stranded = False
        """A transaction failed: rows may be noted as claimed that nobody works on."""
        with db.write() as tx:
            held: list[SqlRow] = tx.execute(
                "update queue set state = 'ready', inflight_started_at_ms = null where state = 'inflight' returning path"
            ).fetchall()
            self.cut_short = tuple(decode(row[0]) for row in held)
            """What the last life of the daemon was working on when it died: at most a claim for each worker."""
            tx.execute("update queue set due_at_s = 0, burst_at_s = 0")
            row = next(iter(tx.execute("select coalesce(max(seq), 0) from queue")))
            self._seq = int(row[0])

    # --- entering ------------------------------------------------------------------------------------------------

    def add(self, tx: Connection, path: str, *, delay_s: float = 0.0, deep: bool = False) -> None:
        """Look at `path` again (`deep`: and at all known below it), when it was quiet for `delay_s`. A parked row gets a new
        life."""
        with self._lock:
            self._seq += 1
            seq = self._seq
        now_s = self._clock.monotonic_s()
        tx.execute(
            "insert into queue (path, seq, generation, state, due_at_s, burst_at_s, first_seen_ms, key_seed, deep)"
            " values (?1, ?2, 1, 'ready', ?3 + ?4, ?3, ?5, ?6, ?8)"
            " on conflict (path) do update set generation = generation + 1, deep = max(deep, ?8),"
            " state = iif(state = 'inflight', state, 'ready'),"
            " burst_at_s = iif(state = 'ready' and attempts = 0 and burst_at_s > 0, burst_at_s, ?3),"
            " due_at_s = min(?3 + ?4,"
            "   iif(state = 'ready' and attempts = 0 and burst_at_s > 0, burst_at_s, ?3) + ?7),"
            " attempts = 0, error = ''",
            (encode(path), seq, now_s, delay_s, self._now_ms(), new_id(), BURST_MAX_S, deep),
        )

    def add_all(self, tx: Connection, paths: Iterable[str], *, delay_s: float = 0.0) -> None:
        for path in paths:
            self.add(tx, path, delay_s=delay_s)

    def rekey(self, tx: Connection, source: str, path: str, *, delay_s: float) -> None:
        """What was waiting at or below `source` now waits below `path`. Claimed rows, and those of paths where the server has
        or had something, stay and are noted at both places: what they wait for may be the server's."""
        low, high = below(source)
        rows: list[SqlRow] = tx.execute(
            "select path, state, deep from queue where path = ?1 or (path >= ?2 and path < ?3) order by seq",
            (encode(source), low, high),
        ).fetchall()
        for raw, state, deep in rows:
            if state != "inflight":
                tx.execute(
                    "delete from queue where path = ?1 and not exists (select 1 from remote where path = ?1)"
                    " and not exists (select 1 from base where path = ?1)",
                    (raw,),
                )
            self.add(tx, rebase(decode(raw), source, path), delay_s=delay_s, deep=bool(deep))

    def fold(self, tx: Connection, path: str, *, delay_s: float) -> None:
        """A folder was deleted: its row stands for those below it. Claimed rows stay, and those whose answer was lost."""
        low, high = below(path)
        tx.execute(
            "delete from queue where path >= ?1 and path < ?2 and state != 'inflight'"
            " and path not in (select path from sent where path >= ?1 and path < ?2)",
            (low, high),
        )
        self.add(tx, path, delay_s=delay_s, deep=tx.changes() > 0)

    def narrow(self, tx: Connection, row: Row) -> None:
        """What is below has got rows of its own."""
        tx.execute("update queue set deep = 0 where path = ?", (encode(row.path),))

    # --- claiming ------------------------------------------------------------------------------------------------

    def claim(self, limit: int = CLAIM_MAX) -> list[Row]:
        """Due rows that overlap with nothing under way and with no waiting rename, in order; they are ours until finished.

        Rows of one claim may overlap with each other: they are worked on in their order.
        """
        with self._claiming:
            if self._may_be_stranded:
                self.free_stranded()
            taken = self._choose(limit)
            if not taken:
                return []
            with self._db.write() as tx:
                tx.executemany(
                    "update queue set state = 'inflight', inflight_started_at_ms = ? where path = ?",
                    [(self._now_ms(), encode(row.path)) for row in taken],
                )
                # Since the rows were chosen, a change may have come in (what is claimed is the newest generation), and a rename
                # may have taken a row elsewhere.
                found = [_read_row(tx, row.path) for row in taken]
            taken = [row for row in found if row is not None]
            with self._lock:
                for row in taken:
                    self._inflight.add(row.path)
            return taken

    def free_stranded(self) -> None:
        """Let go of rows that are noted as claimed and that nobody works on: the end of their claim could not be written."""
        self._may_be_stranded = False
        noted = [row[0] for row in self._db.all("select path from queue where state = 'inflight'")]
        with self._lock:
            stranded = [(raw,) for raw in noted if not self._inflight.overlaps(decode(raw))]
        is_done = False
        try:
            with self._db.write() as tx:
                tx.executemany("update queue set state = 'ready', inflight_started_at_ms = null where path = ?", stranded)
            is_done = len(stranded) == len(noted)
        finally:
            self._may_be_stranded |= not is_done  # still no room: the next claim tries again

    def _choose(self, limit: int) -> list[Row]:
        statement = f"select {_COLUMNS} from queue where state = 'ready' and due_at_s <= ? order by seq limit ?"  # noqa: S608
        chosen: list[Row] = []
        due = self._db.one("select min(due_at_s) from queue where state = 'ready'")
        if due is None or due[0] is None or due[0] > self._clock.monotonic_s():
            return []  # in a burst of changes, nearly all rows still rest: do not look at each of them at every wake-up
        found = self._db.reader.execute(statement, (self._clock.monotonic_s(), _SCAN_MAX))
        with self._lock, closing(found):  # read as far as is needed: of a long queue that is little
            for columns in found:
                path = decode(columns[0])
                if self._inflight.overlaps(path) or self._moves.overlaps(path):
                    continue
                chosen.append(_row(columns))
                if len(chosen) == limit:
                    break
        return chosen

    # --- finishing -----------------------------------------------------------------------------------------------

    def finished(self, tx: Connection, row: Row) -> None:
        """The claimed generation is settled. A newer one stays and is due."""
        key = encode(row.path)
        tx.execute("delete from queue where path = ? and generation = ?", (key, row.generation))
        if tx.changes():
            return
        tx.execute(
            "update queue set state = 'ready', attempts = 0, error = '', key_seed = ?,"
            " inflight_started_at_ms = null where path = ?",
            (new_id(), key),
        )

    def again(self, tx: Connection, row: Row, *, delay_s: float = 0.0, answered: bool = True) -> None:
        """Plan the row anew: what it was planned with is outdated. `answered`: nothing is open at the server."""
        tx.execute(
            "update queue set state = 'ready', due_at_s = ?, inflight_started_at_ms = null where path = ?",
            (self._clock.monotonic_s() + delay_s, encode(row.path)),
        )
        if answered:
            tx.execute("update queue set key_seed = ? where path = ?", (new_id(), encode(row.path)))

    def handed_back(self, tx: Connection, row: Row) -> None:
        """Claimed, and nothing was done: as it was, for whoever comes next."""
        tx.execute("update queue set state = 'ready', inflight_started_at_ms = null where path = ?", (encode(row.path),))

    def outdated(self, tx: Connection, row: Row, error: str) -> None:
        """The server holds something else than planned with. Once at once, then with the delays of a failure."""
        self.failed(tx, row, error)
        delay_s = 0.0 if row.attempts == 0 else self.backoff_s(row.attempts)
        self.again(tx, row, delay_s=delay_s)

    def behind(self, tx: Connection, row: Row, error: str) -> None:
        """As `outdated`, and after everything that waits now."""
        with self._lock:
            self._seq += 1
            seq = self._seq
        self.outdated(tx, row, error)
        tx.execute("update queue set seq = ? where path = ?", (seq, encode(row.path)))

    def failed(self, tx: Connection, row: Row, error: str) -> None:
        """Try again later: capped exponential delay with full jitter. A change that came in meanwhile goes at once."""
        now_s = self._clock.monotonic_s()
        delay_s = self.backoff_s(row.attempts)
        tx.execute(
            "update queue set state = 'ready', inflight_started_at_ms = null,"
            " attempts = iif(generation = ?1, attempts + 1, 0), error = ?2,"
            " due_at_s = iif(generation = ?1, ?3, due_at_s) where path = ?4",
            (row.generation, error, now_s + delay_s, encode(row.path)),
        )

    def parked(self, tx: Connection, row: Row, reason: str) -> None:
        """Leave the row with its reason until its path changes or somebody asks for a retry."""
        tx.execute(
            "update queue set state = iif(generation = ?1, 'parked', 'ready'), error = ?2, attempts = attempts + 1,"
            " key_seed = ?3, inflight_started_at_ms = null where path = ?4",
            (row.generation, reason, new_id(), encode(row.path)),
        )

    def release(self, rows: Iterable[Row]) -> None:
        """Give the claims back, after the transaction that finished them."""
        with self._lock:
            for row in rows:
                self._inflight.discard(row.path)

    # --- looking -------------------------------------------------------------------------------------------------

    def rows(self, limit: int, *, state: str | None = None) -> list[Row]:
        """Rows in order of arrival."""
        where, bindings = ("where state = ?", (state, limit)) if state else ("", (limit,))
        return [
            _row(found)
            for found in self._db.all(f"select {_COLUMNS} from queue {where} order by seq limit ?", bindings)  # noqa: S608
        ]

    def row(self, path: str) -> Row | None:
        return _read_row(self._db.reader, path)

    def lengths(self) -> tuple[int, int]:
        """How many paths and renames wait or are under way, and how many rows are parked."""
        counted = self._db.one(
            "select (select count(*) from queue where state != 'parked') + (select count(*) from move),"
            " (select count(*) from queue where state = 'parked')"
        )
        assert counted is not None
        return int(counted[0]), int(counted[1])

    def is_import(self, file_count: int, *, edits: bool) -> bool:
        """Whether so many files, which are sent now, belong to an import. They are counted. `edits`: the server has former
        contents of them all; a copy of new files that was made just before, or waits, says nothing of them."""
        now_s, sent_s = self._clock.monotonic_s(), self._edits_s if edits else self._new_s
        many = sum(now_s - one_s < _IMPORT_S for one_s in tuple(sent_s))
        sent_s.extend([now_s] * file_count)
        if edits:
            return many + file_count > _IMPORT_FILES
        waiting = self._db.one(
            "select count(*) from (select 1 from queue where state in ('ready', 'inflight') limit ?)", (_IMPORT_FILES + 1,)
        )
        return many + (int(waiting[0]) if waiting else 0) > _IMPORT_FILES

    def waits_with(self, error: str) -> bool:
        """Whether something was tried and waits for another try because of this."""
        found = self._db.one(
            "select exists (select 1 from queue where state = 'ready' and attempts > 0 and error = ?1)"
            " or exists (select 1 from move where error = ?1)",
            (error,),
        )
        return bool(found and found[0])

    def waiting_under(self, scope: str, limit: int) -> list[str]:
        """Paths at or below `scope` that are not settled (parked ones are), renames by where they lead."""
        low, high = below(scope)
        window = (encode(scope), low, high, limit)
        found = self._db.all(
            "select path from queue where (path = ?1 or (path >= ?2 and path < ?3)) and state != 'parked'"
            " order by seq limit ?4",
            window,
        )
        paths = [decode(row[0]) for row in found]
        paths += [
            move.path
            for move in self.moves(MOVES_SCAN_MAX)
            if is_within(move.path, scope) or is_within(scope, move.path) or is_within(move.source, scope)
        ]
        return paths[:limit]

    def count_under(self, scope: str, *, only_parked: bool = False) -> int:
        """Rows at or below `scope`, parked ones too."""
        low, high = below(scope)
        found = self._db.one(
            "select count(*) from queue where (path = ?1 or (path >= ?2 and path < ?3)) and (state = 'parked' or not ?4)",
            (encode(scope), low, high, only_parked),
        )
        assert found is not None
        return int(found[0])

    def next_due_s(self) -> float | None:
        """When (monotonic) the next row or rename becomes due; None for never. Blocked ones count as due."""
        found = self._db.one(
            "select min(due) from (select min(due_at_s) as due from queue where state = 'ready'"
            " union all select min(due_at_s) from move where answered_seq = 0)"
        )
        return None if found is None or found[0] is None else float(found[0])

    # --- hurrying ------------------------------------------------------------------------------------------------

    def hurry(self, scope: str) -> None:
        """End the debounce (not the backoff) of everything at or below `scope`, and of every rename."""
        low, high = below(scope)
        with self._db.write() as tx:
            tx.execute(
                "update queue set due_at_s = 0 where (path = ?1 or (path >= ?2 and path < ?3)) and attempts = 0",
                (encode(scope), low, high),
            )
            tx.execute("update move set due_at_s = 0 where attempts = 0")

    def hurry_all(self) -> None:
        """The server is back: end every backoff."""
        with self._db.write() as tx:
            tx.execute("update queue set due_at_s = 0 where state = 'ready'")
            tx.execute("update move set due_at_s = 0")

    def retry(self, path: str | None) -> int:
        """Give parked and delayed rows a new try; how many."""
        low, high = below(path or "/")
        with self._db.write() as tx:
            tx.execute(
                "update queue set state = 'ready', attempts = 0, due_at_s = 0, error = ''"
                " where (path = ?1 or (path >= ?2 and path < ?3)) and (state = 'parked' or (state = 'ready' and attempts > 0))",
                (encode(path or "/"), low, high),
            )
            return tx.changes()

    def retry_parked(self, reason: str) -> int:
        """Give those that are parked with a reason that begins like this a new try; how many."""
        with self._db.write() as tx:
            tx.execute(
                "update queue set state = 'ready', attempts = 0, due_at_s = 0, error = ''"
                " where state = 'parked' and substr(error, 1, ?) = ?",
                (len(reason), reason),
            )
            return tx.changes()

    def settle(self) -> None:
        """Every transaction so far survives a power cut when this returns. OSError."""
        self._db.settle()

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """The transaction that facts and queue share."""
        try:
            with self._db.write() as tx:
                yield tx
        except BaseException:
            self._may_be_stranded = True
            self._load_moves()  # what was noted in memory for a rename did not happen
            raise


def _read_row(connection: Connection, path: str) -> Row | None:
    found = next(iter(connection.execute(f"select {_COLUMNS} from queue where path = ?", (encode(path),))), None)  # noqa: S608
    return None if found is None else _row(found)


def _row(found: SqlRow) -> Row:
    return Row(
        path=decode(found[0]), seq=found[1], generation=found[2], state=found[3], attempts=found[4], due_at_s=found[5],
        first_seen_ms=found[6], error=found[7], key_seed=found[8], deep=bool(found[9]),
    )  # fmt: skip
