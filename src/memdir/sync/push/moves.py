"""Renames that the server should repeat, in order, and what both they and the rows of the queue need: who works on which path.

A waiting rename closes its two places for everything else. One that was never sent is led on by the next rename from where it
leads, so that a folder renamed ten times offline is renamed once.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterable, Sequence
from typing import Final

from memdir.core.clock import Clock
from memdir.core.ids import new_id
from memdir.core.sqlite import Connection, Database
from memdir.core.sqlite import Row as SqlRow
from memdir.fs.path import decode, encode, is_within
from memdir.sync.model import Move
from memdir.sync.path_index import PathIndex

CLAIM_MAX: Final = 64
BACKOFF_BASE_S: Final = 0.5
BACKOFF_MAX_S: Final = 120.0
MOVES_SCAN_MAX: Final = 1024
_JOIN_SCAN_MAX: Final = 64
"""A rename is joined with one of the last so many."""


class Moves:
    """The half of `queue.Queue` that knows renames; thread-safe as the whole."""

    def __init__(self, db: Database, *, clock: Clock, rng: random.Random) -> None:
        self._db = db
        self._clock = clock
        self._rng = rng
        self._claiming = threading.Lock()
        """Held around a whole claim, and taken before any transaction; `_lock` is the innermost one."""
        self._lock = threading.Lock()
        self._inflight = PathIndex()
        self._moves = PathIndex()
        self._moves_inflight: set[int] = set()
        with db.write() as tx:
            tx.execute("update move set due_at_s = 0")
        self._load_moves()

    def _load_moves(self) -> None:
        index = PathIndex()
        for source, path in self._db.all("select source, path from move"):
            index.add(decode(source))
            index.add(decode(path))
        with self._lock:
            self._moves = index

    def add_move(self, tx: Connection, source: str, path: str, *, delay_s: float) -> bool:
        """Repeat a rename on the server in `delay_s`, after everything that is on its way there. A waiting rename that led to
        `source` and was never sent is led on to `path` instead, or dropped when that is where it began; True then."""
        earlier = self._joinable(tx, source, path)
        if earlier is None:
            tx.execute(
                "insert into move (source, path, due_at_s, key_seed, first_seen_ms) values (?, ?, ?, ?, ?)",
                (encode(source), encode(path), self._clock.monotonic_s() + delay_s, new_id(), self._now_ms()),
            )
        elif earlier[1] == path:
            tx.execute("delete from move where id = ?", (earlier[0],))
        else:
            tx.execute("update move set path = ?, key_seed = ? where id = ?", (encode(path), new_id(), earlier[0]))
        with self._lock:
            if earlier is None:
                self._moves.add(source)
                self._moves.add(path)
                return False
            self._moves.discard(source)
            if earlier[1] == path:
                self._moves.discard(path)
            else:
                self._moves.add(path)
        return True

    def _joinable(self, tx: Connection, source: str, path: str) -> tuple[int, str] | None:
        """Number and source of the rename that a rename of `source` to `path` goes on from, when nothing came between."""
        known: list[SqlRow] = tx.execute(
            "select id, source, path, claimed from move order by id desc limit ?", (_JOIN_SCAN_MAX,)
        ).fetchall()
        for number, raw_source, raw_path, claimed in known:
            ends = (decode(raw_source), decode(raw_path))
            if ends[1] == source:
                with self._lock:
                    free = number not in self._moves_inflight and not self._inflight.overlaps(source)
                nested = path != ends[0] and (is_within(path, ends[0]) or is_within(ends[0], path))
                return (number, ends[0]) if free and not claimed and not nested else None
            if any(is_within(one, end) or is_within(end, one) for end in ends for one in (source, path)):
                return None
        return None

    def touches_move(self, path: str) -> bool:
        """Whether a waiting rename begins or ends at, above or below `path`."""
        with self._lock:
            return self._moves.overlaps(path)

    def is_inflight(self, path: str) -> bool:
        """Whether something at, above or below `path` is being worked on."""
        with self._lock:
            return self._inflight.overlaps(path)

    def claim_moves(self, limit: int = CLAIM_MAX) -> list[Move]:
        """Due renames that overlap with nothing under way, with no earlier rename, and not with each other."""
        with self._claiming:
            with self._lock:
                if not self._moves:
                    return []
            waiting = self.moves(MOVES_SCAN_MAX)
            with self._lock:
                chosen = self._choose_moves(waiting, self._clock.monotonic_s(), limit)
                self._moves_inflight.update(move.id for move in chosen)  # from here on, none of them is joined with another
            taken: list[Move] = []
            try:
                if chosen:
                    taken = self._mark_claimed(chosen)
            finally:
                with self._lock:
                    self._moves_inflight.difference_update({move.id for move in chosen} - {move.id for move in taken})
                    for move in taken:
                        self._inflight.add(move.source)
                        self._inflight.add(move.path)
            return taken

    def _mark_claimed(self, chosen: Sequence[Move]) -> list[Move]:
        """Those of `chosen` that are still as they were chosen; the others were led elsewhere or settled meanwhile."""
        with self._db.write() as tx:
            return [move for move in chosen if self._mark_one(tx, move)]

    def _mark_one(self, tx: Connection, move: Move) -> bool:
        tx.execute(
            "update move set claimed = 1 where id = ? and source = ? and path = ?",
            (move.id, encode(move.source), encode(move.path)),
        )
        return tx.changes() > 0

    def _choose_moves(self, waiting: Sequence[Move], now_s: float, limit: int) -> list[Move]:
        earlier = PathIndex()
        taken: list[Move] = []
        for move in waiting:
            ends = (move.source, move.path)
            free = not any(index.overlaps(path) for index in (self._inflight, earlier) for path in ends)
            for path in ends:
                earlier.add(path)
            if free and not move.answered_seq and move.due_at_s <= now_s and move.id not in self._moves_inflight:
                taken.append(move)
                if len(taken) == limit:
                    break
        return taken

    def move_answered(self, tx: Connection, move: Move, seq: int) -> None:
        """The server did it at `seq`; its paths stay closed until the feed brings it."""
        tx.execute("update move set answered_seq = ?, error = '' where id = ?", (seq, move.id))

    def move_failed(self, tx: Connection, move: Move, error: str) -> None:
        due_at_s = self._clock.monotonic_s() + self.backoff_s(move.attempts)
        tx.execute("update move set attempts = attempts + 1, due_at_s = ?, error = ? where id = ?", (due_at_s, error, move.id))

    def drop_move(self, tx: Connection, move: Move) -> None:
        """The rename is settled."""
        tx.execute("delete from move where id = ?", (move.id,))
        if tx.changes():
            with self._lock:
                self._moves.discard(move.source)
                self._moves.discard(move.path)

    def release_moves(self, moves: Iterable[Move]) -> None:
        with self._lock:
            for move in moves:
                self._moves_inflight.discard(move.id)
                self._inflight.discard(move.source)
                self._inflight.discard(move.path)

    def moves(self, limit: int) -> list[Move]:
        """Waiting renames in order."""
        rows = self._db.all(
            "select id, source, path, attempts, due_at_s, answered_seq, key_seed, error, first_seen_ms, claimed"
            " from move order by id limit ?",
            (limit,),
        )
        return [
            Move(
                id=row[0], source=decode(row[1]), path=decode(row[2]), attempts=row[3], due_at_s=row[4],
                answered_seq=row[5], key_seed=row[6], error=row[7], first_seen_ms=row[8], is_sent=bool(row[9]),
            )
            for row in rows
        ]  # fmt: skip

    def is_waiting(self, move: Move) -> bool:
        """Whether the rename is neither settled nor led elsewhere."""
        return self._db.one(
            "select 1 from move where id = ? and source = ? and path = ?", (move.id, encode(move.source), encode(move.path))
        ) is not None  # fmt: skip

    def is_led_on(self, move: Move) -> bool:
        """Whether a later rename waits for what this one leads to, or for a folder above it."""
        return any(later.id > move.id and is_within(move.path, later.source) for later in self.moves(MOVES_SCAN_MAX))

    def find_move(self, tx: Connection, source: str, path: str) -> Move | None:
        """The first waiting rename of `source` to `path`, as this transaction sees it."""
        found = tx.execute(
            "select id from move where source = ? and path = ? order by id limit 1", (encode(source), encode(path))
        ).fetchall()
        return next((move for move in self.moves(MOVES_SCAN_MAX) if found and move.id == found[0][0]), None)

    def backoff_s(self, attempts: int) -> float:
        """Full jitter (aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter), never under 50 ms."""
        ceiling = min(BACKOFF_MAX_S, BACKOFF_BASE_S * 2.0 ** min(attempts, 20))
        return max(0.05, self._rng.uniform(0.0, ceiling))

    def _now_ms(self) -> int:
        return self._clock.now_ns() // 1_000_000
