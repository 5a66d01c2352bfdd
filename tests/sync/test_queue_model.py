"""The queue against a tiny model of its rules: random changes, claims, results, renames, refused transactions and crashes.

The model is a dictionary. Of a path it knows one main slot and whether a newer change waits behind it; it knows nothing of SQL,
of generations, or of threads.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule, run_state_machine_as_test

from memdir.core.clock import FakeClock
from memdir.core.sqlite import Connection, Database
from memdir.fs.path import is_within, rebase
from memdir.sync.model import Fact, Move, Row
from memdir.sync.push.moves import BACKOFF_BASE_S, BACKOFF_MAX_S
from memdir.sync.push.queue import BURST_MAX_S, Queue
from memdir.sync.push.unanswered import Sent

PATHS: Final = ("/a", "/a/x", "/a/x/k", "/a/y", "/b", "/b/x", "/c", "/ab", "/a0")
TOPS: Final = ("/a", "/b", "/c", "/a/x")
SOME: Final = Fact(kind="file", content_hash="a", mode=0o644)
DELAYS_S: Final = (0.0, 0.2, 5.0)
SCOPES: Final = ("/", "/a", "/a/x", "/b")
ERRORS: Final = ("because", "because of", "why")
IMPORT_FILES: Final = 16
IMPORT_S: Final = 10.0


@dataclass(slots=True)
class Slot:
    """One path. `state` is that of the main slot; `pending`: a newer change waits behind the one in flight."""

    due_s: float
    burst_s: float
    deep: bool
    state: str = "ready"
    pending: bool = False
    attempts: int = 0
    error: str = ""


@dataclass(slots=True)
class Rename:
    source: str
    path: str
    claimed: bool = False
    answered: bool = False
    failed: bool = False
    error: str = ""
    due_s: float = 0.0


def overlap(one: str, other: str) -> bool:
    return is_within(one, other) or is_within(other, one)


class Model:
    """The rules in words of a dictionary; insertion order is the order of arrival."""

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.slots: dict[str, Slot] = {}
        self.renames: list[Rename] = []
        self.sent: set[str] = set()
        """Paths with something sent and not answered."""
        self.held: list[str] = []
        """Paths of claims and of claimed renames."""
        self.copied: dict[bool, list[float]] = {False: [], True: []}
        """When files were sent, edits apart."""

    def add(self, path: str, delay_s: float, *, deep: bool = False) -> None:
        now_s, slot = self.clock.monotonic_s(), self.slots.get(path)
        if slot is None:
            self.slots[path] = Slot(due_s=now_s + delay_s, burst_s=now_s, deep=deep)
            return
        if not (slot.state == "ready" and slot.attempts == 0 and slot.burst_s > 0):
            slot.burst_s = now_s
        slot.due_s = min(now_s + delay_s, slot.burst_s + BURST_MAX_S)
        slot.attempts, slot.deep, slot.error = 0, slot.deep or deep, ""
        slot.pending |= slot.state == "inflight"
        slot.state = "inflight" if slot.state == "inflight" else "ready"

    def rekey(self, source: str, path: str, delay_s: float) -> None:
        for old, slot in [item for item in self.slots.items() if is_within(item[0], source)]:
            if slot.state != "inflight":
                del self.slots[old]
            self.add(rebase(old, source, path), delay_s, deep=slot.deep)

    def fold(self, path: str, delay_s: float) -> None:
        gone = [
            old for old, slot in self.slots.items()
            if old != path and is_within(old, path) and slot.state != "inflight" and old not in self.sent
        ]  # fmt: skip
        for old in gone:
            del self.slots[old]
        self.add(path, delay_s, deep=bool(gone))

    def add_move(self, source: str, path: str, delay_s: float) -> bool:
        for number in reversed(range(len(self.renames))):
            earlier = self.renames[number]
            if earlier.path == source:
                free = not earlier.claimed and not any(overlap(held, source) for held in self.held)
                if not free or (path != earlier.source and overlap(path, earlier.source)):
                    break
                earlier.path = path
                if earlier.source == path:
                    del self.renames[number]
                return True
            if any(overlap(one, end) for one in (source, path) for end in (earlier.source, earlier.path)):
                break
        self.renames.append(Rename(source, path, due_s=self.clock.monotonic_s() + delay_s))
        return False

    def eligible(self) -> list[str]:
        now_s = self.clock.monotonic_s()
        closed = [*self.held, *(end for rename in self.renames for end in (rename.source, rename.path))]
        return [
            path for path, slot in self.slots.items()
            if slot.state == "ready" and slot.due_s <= now_s and not any(overlap(path, other) for other in closed)
        ]  # fmt: skip

    def eligible_moves(self) -> list[Rename]:
        now_s, found = self.clock.monotonic_s(), []
        for number, rename in enumerate(self.renames):
            closed = [*self.held, *(end for one in self.renames[:number] for end in (one.source, one.path))]
            free = not any(overlap(end, other) for end in (rename.source, rename.path) for other in closed)
            if free and not rename.answered and rename.due_s <= now_s:
                found.append(rename)
        return found

    def crash(self) -> None:
        for slot in self.slots.values():
            slot.state = "ready" if slot.state == "inflight" else slot.state
            slot.pending, slot.due_s, slot.burst_s = False, 0.0, 0.0
        for rename in self.renames:
            rename.due_s = 0.0
        self.held.clear()
        self.copied = {False: [], True: []}

    def is_import(self, count: int, *, edits: bool) -> bool:
        now_s, sent_s = self.clock.monotonic_s(), self.copied[edits]
        many = sum(now_s - one_s < IMPORT_S for one_s in sent_s[-IMPORT_FILES:])
        sent_s += [now_s] * count
        waiting = 0 if edits else sum(slot.state != "parked" for slot in self.slots.values())
        return many + (count if edits else waiting) > IMPORT_FILES

    def waiting_under(self, scope: str) -> list[str]:
        found = [path for path, slot in self.slots.items() if is_within(path, scope) and slot.state != "parked"]
        return found + [one.path for one in self.renames if overlap(one.path, scope) or is_within(one.source, scope)]


paths, tops, delays = st.sampled_from(PATHS), st.sampled_from(TOPS), st.sampled_from(DELAYS_S)
pick = st.integers(0, 5)


class Machine(RuleBasedStateMachine):
    """Every rule does the same to the queue and to the model; the invariants compare them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.clock = FakeClock()
        self.model = Model(self.clock)
        self.claims: list[list[Row]] = []
        self.moves: list[tuple[Move, Rename]] = []

    @initialize()
    def open(self) -> None:
        self.db = Database(Path(self.folder.name) / "sync.db", migrations="memdir.sync.schema")
        self.queue = Queue(self.db, clock=self.clock, rng=random.Random(1))

    def teardown(self) -> None:
        self.db.close()
        self.folder.cleanup()

    # --- changes -------------------------------------------------------------------------------------------------

    @rule(path=paths, delay_s=delays)
    def change(self, path: str, delay_s: float) -> None:
        with self.queue.transaction() as tx:
            self.queue.add(tx, path, delay_s=delay_s)
        self.model.add(path, delay_s)

    @rule(path=tops, delay_s=delays)
    def delete_folder(self, path: str, delay_s: float) -> None:
        with self.queue.transaction() as tx:
            self.queue.fold(tx, path, delay_s=delay_s)
        self.model.fold(path, delay_s)

    @rule(source=tops, path=tops, delay_s=delays, known=st.booleans())
    def rename(self, source: str, path: str, delay_s: float, known: bool) -> None:
        if overlap(source, path):
            return
        with self.queue.transaction() as tx:
            self.queue.rekey(tx, source, path, delay_s=delay_s)
            joined = known and self.queue.add_move(tx, source, path, delay_s=delay_s)
        self.model.rekey(source, path, delay_s)
        assert joined == (known and self.model.add_move(source, path, delay_s))

    @rule(path=paths, source=tops)
    def change_in_a_transaction_that_fails(self, path: str, source: str) -> None:
        def fail() -> None:
            with self.queue.transaction() as tx:
                self.queue.rekey(tx, source, "/new", delay_s=0.0)
                self.queue.add_move(tx, source, "/new", delay_s=0.0)
                self.queue.fold(tx, "/a", delay_s=0.0)
                self.queue.add(tx, path)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()

    @rule(seconds=st.sampled_from((0.1, 0.3, 3.0, 200.0)))
    def wait(self, seconds: float) -> None:
        self.clock.advance(seconds)

    # --- claims and their ends -----------------------------------------------------------------------------------

    @rule(limit=st.sampled_from((1, 2, 64)))
    def claim(self, limit: int) -> None:
        expected = self.model.eligible()[:limit]
        rows = self.queue.claim(limit)
        assert [row.path for row in rows] == expected
        for path in expected:
            self.model.slots[path].state = "inflight"
            self.model.slots[path].pending = False
        self.model.held += expected
        if rows:
            self.claims.append(rows)

    def take(self, number: int) -> list[Row]:
        return self.claims.pop(number % len(self.claims))

    def release(self, rows: list[Row]) -> None:
        self.queue.release(rows)
        for row in rows:
            self.model.held.remove(row.path)

    def settle(self, row: Row, how: str, tx: Connection) -> None:
        queue, slot, now_s = self.queue, self.model.slots[row.path], self.clock.monotonic_s()
        error = ERRORS[len(row.path) % len(ERRORS)]
        newer, slot.pending, slot.state = slot.pending, False, "ready"
        if how == "finished":
            queue.finished(tx, row)
            if not newer:
                del self.model.slots[row.path]
            slot.attempts, slot.error = 0, ""
        elif how == "handed back":
            queue.handed_back(tx, row)
        elif how == "again":
            queue.again(tx, row, delay_s=1.0)
            slot.due_s = now_s + 1.0
        elif how == "offline":
            Sent(self.db).note(tx, row.path, SOME, on_revision=0)
            queue.again(tx, row, answered=False)
            slot.due_s = now_s
            self.model.sent.add(row.path)
        elif how == "parked":
            queue.parked(tx, row, error)
            slot.state, slot.attempts, slot.error = ("ready" if newer else "parked"), slot.attempts + 1, error
        else:
            slot.attempts, slot.error = 0 if newer else slot.attempts + 1, error
            if how == "failed":
                queue.failed(tx, row, error)
            elif how == "outdated":
                queue.outdated(tx, row, error)
            else:
                queue.behind(tx, row, error)
                self.model.slots[row.path] = self.model.slots.pop(row.path)
            if not (how == "failed" and newer):
                slot.due_s = self.delayed(row, tx, immediate=how != "failed" and row.attempts == 0)

    def delayed(self, row: Row, tx: Connection, *, immediate: bool) -> float:
        """The delay is random; the model takes it over when it is within the bounds."""
        [(due_s,)] = tx.execute("select due_at_s from queue where path = ?", (row.path.encode(),)).fetchall()
        assert isinstance(due_s, float)
        delay_s = due_s - self.clock.monotonic_s()
        ceiling_s = min(BACKOFF_MAX_S, BACKOFF_BASE_S * 2**row.attempts)
        assert delay_s == 0 if immediate else 0.049 <= delay_s <= max(ceiling_s, 0.051)
        return due_s

    @precondition(lambda self: self.claims)
    @rule(
        number=pick,
        hows=st.lists(
            st.sampled_from(("finished", "again", "offline", "handed back", "parked", "failed", "outdated", "behind")),
            min_size=8,
            max_size=8,
        ),
    )
    def end(self, number: int, hows: list[str]) -> None:
        rows = self.take(number)
        with self.queue.transaction() as tx:
            for row, how in zip(rows, cycle(hows), strict=False):
                self.settle(row, how, tx)
        self.release(rows)

    @precondition(lambda self: self.claims)
    @rule(number=pick)
    def end_that_cannot_be_written(self, number: int) -> None:
        """The rows are free again, as they were, with what came in meanwhile."""
        rows = self.take(number)

        def fail() -> None:
            with self.queue.transaction() as tx:
                for row in rows:
                    self.queue.finished(tx, row)
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        self.release(rows)
        for row in rows:
            slot = self.model.slots[row.path]
            slot.state, slot.pending = "ready", False
        self.queue.free_stranded()

    @precondition(lambda self: self.claims)
    @rule(number=pick)
    def narrow(self, number: int) -> None:
        row = self.claims[number % len(self.claims)][0]
        with self.queue.transaction() as tx:
            self.queue.narrow(tx, row)
        self.model.slots[row.path].deep = False

    # --- renames -------------------------------------------------------------------------------------------------

    @rule(limit=st.sampled_from((1, 64)))
    def claim_moves(self, limit: int) -> None:
        expected = self.model.eligible_moves()[:limit]
        moves = self.queue.claim_moves(limit)
        assert [(move.source, move.path) for move in moves] == [(one.source, one.path) for one in expected]
        for move, rename in zip(moves, expected, strict=True):
            rename.claimed = True
            self.model.held += [rename.source, rename.path]
            self.moves.append((move, rename))

    @precondition(lambda self: self.moves)
    @rule(number=pick, how=st.sampled_from(("drop", "answer", "fail")))
    def end_move(self, number: int, how: str) -> None:
        move, rename = self.moves.pop(number % len(self.moves))
        with self.queue.transaction() as tx:
            if how == "drop":
                self.queue.drop_move(tx, move)
                self.model.renames.remove(rename)
            elif how == "answer":
                self.queue.move_answered(tx, move, 7)
                rename.answered, rename.error = True, ""
            else:
                self.queue.move_failed(tx, move, "because")
        self.queue.release_moves([move])
        self.model.held.remove(rename.source)
        self.model.held.remove(rename.path)
        if how == "fail":
            [waiting] = [one for one in self.queue.moves(100) if one.id == move.id]
            rename.due_s, rename.failed, rename.error = waiting.due_at_s, True, "because"
            assert waiting.due_at_s > self.clock.monotonic_s()

    @rule()
    def feed_brings_an_answered_move(self) -> None:
        for rename in [one for one in self.model.renames if one.answered]:
            with self.queue.transaction() as tx:
                found = self.queue.find_move(tx, rename.source, rename.path)
                assert found is not None
                if not found.answered_seq:
                    continue  # an earlier one of the same names waits before it
                self.queue.drop_move(tx, found)
            self.model.renames.remove(rename)

    # --- the rest ------------------------------------------------------------------------------------------------

    @rule(scope=st.sampled_from(("/", *TOPS)))
    def hurry(self, scope: str) -> None:
        self.queue.hurry(scope)
        for path, slot in self.model.slots.items():
            if is_within(path, scope) and slot.attempts == 0:
                slot.due_s = 0.0
        for rename in self.model.renames:
            rename.due_s = rename.due_s if rename.failed else 0.0

    @rule()
    def hurry_all(self) -> None:
        self.queue.hurry_all()
        for slot in self.model.slots.values():
            slot.due_s = 0.0 if slot.state == "ready" else slot.due_s
        for rename in self.model.renames:
            rename.due_s = 0.0

    @rule(path=st.sampled_from((None, *TOPS)))
    def retry(self, path: str | None) -> None:
        chosen = [
            slot for at, slot in self.model.slots.items()
            if is_within(at, path or "/") and (slot.state == "parked" or (slot.state == "ready" and slot.attempts > 0))
        ]  # fmt: skip
        assert self.queue.retry(path) == len(chosen)
        self.given_a_new_try(chosen)

    @rule(reason=st.sampled_from(ERRORS))
    def retry_parked(self, reason: str) -> None:
        chosen = [slot for slot in self.model.slots.values() if slot.state == "parked" and slot.error.startswith(reason)]
        assert self.queue.retry_parked(reason) == len(chosen)
        self.given_a_new_try(chosen)

    def given_a_new_try(self, slots: list[Slot]) -> None:
        for slot in slots:
            slot.state, slot.attempts, slot.due_s, slot.error = "ready", 0, 0.0, ""

    @rule(count=st.sampled_from((1, 16)), edits=st.booleans())
    def send_files(self, count: int, edits: bool) -> None:
        assert self.queue.is_import(count, edits=edits) == self.model.is_import(count, edits=edits)

    @rule()
    def crash(self) -> None:
        """The process dies: what was claimed is free, what was noted is there."""
        self.db.close()
        self.claims.clear()
        self.moves.clear()
        self.open()
        self.model.crash()

    @invariant()
    def the_rows_are_those_of_the_model(self) -> None:
        found = [(row.path, row.state, row.attempts, row.deep, row.error) for row in self.queue.rows(100)]
        assert found == [(path, slot.state, slot.attempts, slot.deep, slot.error) for path, slot in self.model.slots.items()]
        parked = sum(slot.state == "parked" for slot in self.model.slots.values())
        assert self.queue.lengths() == (len(found) - parked + len(self.model.renames), parked)

    @invariant()
    def what_is_said_of_a_folder_is_true(self) -> None:
        slots = self.model.slots
        for scope in SCOPES:
            waiting = self.model.waiting_under(scope)
            assert (self.queue.waiting_under(scope, 100), self.queue.waiting_under(scope, 2)) == (waiting, waiting[:2])
            inside = [slot.state == "parked" for path, slot in slots.items() if is_within(path, scope)]
            assert self.queue.count_under(scope) == len(inside)
            assert self.queue.count_under(scope, only_parked=True) == sum(inside)
        tried = {slot.error for slot in slots.values() if slot.state == "ready" and slot.attempts}
        tried |= {rename.error for rename in self.model.renames}
        assert [self.queue.waits_with(error) for error in ERRORS] == [error in tried for error in ERRORS]

    @invariant()
    def the_renames_are_those_of_the_model(self) -> None:
        found = [(move.source, move.path, bool(move.answered_seq)) for move in self.queue.moves(100)]
        assert found == [(one.source, one.path, one.answered) for one in self.model.renames]
        for path in PATHS:
            assert self.queue.touches_move(path) == any(
                overlap(path, end) for one in self.model.renames for end in (one.source, one.path)
            )
            assert self.queue.is_inflight(path) == any(overlap(path, held) for held in self.model.held)

    @invariant()
    def the_next_row_is_due_when_the_model_says(self) -> None:
        due_s = [slot.due_s for slot in self.model.slots.values() if slot.state == "ready"]
        due_s += [rename.due_s for rename in self.model.renames if not rename.answered]
        assert self.queue.next_due_s() == (min(due_s) if due_s else None)

    @invariant()
    def a_claim_says_since_when_it_is_under_way(self) -> None:
        noted = self.db.all("select path, state, inflight_started_at_ms is not null from queue")
        assert all((state == "inflight") == bool(since) for _, state, since in noted)


RESULTS: Final = ("finished", "finished", "again", "offline", "handed back", "parked", "failed", "failed", "outdated", "behind")


def drive(seed: int, steps: int) -> None:
    """The same rules drawn by ourselves: some twenty times as many in the same time, and longer runs, but no short example."""
    rng, machine = random.Random(seed), Machine()
    machine.open()

    def some() -> int:
        return rng.randrange(6)

    rules: list[tuple[int, Callable[[], object]]] = [
        (8, lambda: machine.change(path=rng.choice(PATHS), delay_s=rng.choice(DELAYS_S))),
        (2, lambda: machine.delete_folder(path=rng.choice(TOPS), delay_s=rng.choice(DELAYS_S))),
        (3, lambda: machine.rename(
            source=rng.choice(TOPS), path=rng.choice(TOPS), delay_s=rng.choice(DELAYS_S), known=rng.random() < 0.6
        )),
        (1, lambda: machine.change_in_a_transaction_that_fails(path=rng.choice(PATHS), source=rng.choice(TOPS))),
        (4, lambda: machine.wait(seconds=rng.choice((0.1, 0.3, 3.0, 200.0)))),
        (6, lambda: machine.claim(limit=rng.choice((1, 2, 64)))),
        (5, lambda: machine.claims and machine.end(number=some(), hows=[rng.choice(RESULTS) for _ in range(8)])),
        (1, lambda: machine.claims and machine.end_that_cannot_be_written(number=some())),
        (1, lambda: machine.claims and machine.narrow(number=some())),
        (4, lambda: machine.claim_moves(limit=rng.choice((1, 64)))),
        (4, lambda: machine.moves and machine.end_move(number=some(), how=rng.choice(("drop", "answer", "fail")))),
        (3, machine.feed_brings_an_answered_move),
        (1, lambda: machine.hurry(scope=rng.choice(("/", *TOPS)))),
        (1, machine.hurry_all),
        (1, lambda: machine.retry(path=rng.choice((None, *TOPS)))),
        (1, lambda: machine.retry_parked(reason=rng.choice(ERRORS))),
        (2, lambda: machine.send_files(count=rng.choice((1, 16)), edits=rng.random() < 0.5)),
        (1, machine.crash),
    ]  # fmt: skip
    weights = [weight for weight, _ in rules]
    try:
        for _, rule_ in rng.choices(rules, weights, k=steps):
            rule_()
            machine.the_rows_are_those_of_the_model()
            machine.what_is_said_of_a_folder_is_true()
            machine.the_renames_are_those_of_the_model()
            machine.the_next_row_is_due_when_the_model_says()
            machine.a_claim_says_since_when_it_is_under_way()
    finally:
        machine.teardown()


@pytest.mark.promise("sync.queue")
@pytest.mark.parametrize("seed", [*range(12), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(100, 400))])
def test_long_runs_of_the_queue_do_what_a_dictionary_does(seed: int) -> None:
    drive(seed, 250)


@pytest.mark.promise("sync.queue")
@pytest.mark.parametrize(
    ("examples", "steps"), [(30, 30), pytest.param(3000, 80, marks=pytest.mark.long)], ids=["some", "many"]
)  # fmt: skip
def test_the_queue_does_what_a_dictionary_does(examples: int, steps: int) -> None:
    quiet = (HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large)
    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None, derandomize=True, suppress_health_check=quiet
        ),
    )
