"""The queue on disk: latest wins, claims never overlap, nothing is lost by a crash."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.core.clock import FakeClock
from memdir.core.sqlite import Database, DiskFullError
from memdir.sync.model import Row
from memdir.sync.path_index import PathIndex
from memdir.sync.push.moves import BACKOFF_MAX_S
from memdir.sync.push.queue import BURST_MAX_S, QUIET_S, Queue


class Fixture:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = FakeClock()
        self.open()

    def open(self) -> None:
        self.db = Database(self.folder / "sync.db", migrations="memdir.sync.schema")
        self.queue = Queue(self.db, clock=self.clock, rng=random.Random(1))

    def crash(self) -> None:
        self.db.close()
        self.open()

    def add(self, *paths: str, delay_s: float = 0.0) -> None:
        with self.queue.transaction() as tx:
            self.queue.add_all(tx, paths, delay_s=delay_s)

    def move(self, source: str, path: str) -> None:
        with self.queue.transaction() as tx:
            self.queue.add_move(tx, source, path, delay_s=0.0)

    def claim(self, limit: int = 64) -> list[str]:
        return [row.path for row in self.queue.claim(limit)]


@pytest.fixture
def fixture(tmp_path: Path) -> Iterator[Fixture]:
    one = Fixture(tmp_path)
    yield one
    one.db.close()


def test_a_path_is_there_once_however_often_it_changes(fixture: Fixture) -> None:
    fixture.add("/a", "/a", "/b", "/a")
    assert fixture.claim() == ["/a", "/b"]


def test_a_change_during_a_claim_keeps_the_row_and_a_settled_claim_without_one_removes_it(fixture: Fixture) -> None:
    fixture.add("/a", "/b")
    rows = fixture.queue.claim()
    fixture.add("/a")
    with fixture.queue.transaction() as tx:
        for row in rows:
            fixture.queue.finished(tx, row)
    assert fixture.claim() == [], "released only after the transaction"
    fixture.queue.release(rows)
    assert fixture.claim() == ["/a"]


def test_a_claim_of_a_dead_process_is_free_again(fixture: Fixture) -> None:
    fixture.add("/a", delay_s=100.0)
    fixture.queue.hurry("/")
    assert fixture.claim() == ["/a"]
    fixture.crash()
    assert fixture.claim() == ["/a"]


def test_a_claim_whose_end_could_not_be_written_is_free_again_and_one_under_way_is_not(fixture: Fixture) -> None:
    fixture.add("/a", "/b")
    (stranded,) = fixture.queue.claim(1)
    (under_way,) = fixture.queue.claim(1)

    def end_on_a_full_disk() -> None:
        with fixture.queue.transaction() as tx:
            fixture.queue.finished(tx, stranded)
            raise DiskFullError("no room")

    with pytest.raises(DiskFullError):
        end_on_a_full_disk()
    fixture.queue.release([stranded])
    assert fixture.claim() == ["/a"]
    fixture.queue.release([under_way])
    assert fixture.claim() == ["/b"], "released without an end that was written"


def test_ancestors_and_descendants_are_never_claimed_apart(fixture: Fixture) -> None:
    fixture.add("/d/e", "/x")
    first = fixture.queue.claim()
    fixture.add("/d", "/d/e/f", "/d2", "/x/y")
    assert fixture.claim() == ["/d2"]
    with fixture.queue.transaction() as tx:
        for row in first:
            fixture.queue.finished(tx, row)
    fixture.queue.release(first)
    assert fixture.claim() == ["/d", "/d/e/f", "/x/y"]


def test_a_waiting_rename_closes_its_paths_and_renames_keep_their_order(fixture: Fixture) -> None:
    fixture.add("/a/x", "/b", "/c")
    fixture.move("/a", "/b")
    fixture.move("/b/k", "/z")
    fixture.move("/q", "/r")
    assert fixture.claim() == ["/c"]
    moves = fixture.queue.claim_moves()
    assert [(move.source, move.path) for move in moves] == [("/a", "/b"), ("/q", "/r")]
    with fixture.queue.transaction() as tx:
        for move in moves:
            fixture.queue.drop_move(tx, move)
    fixture.queue.release_moves(moves)
    assert fixture.claim() == ["/a/x"]
    assert [(move.source, move.path) for move in fixture.queue.claim_moves()] == [("/b/k", "/z")]


def test_renames_survive_a_crash_and_still_close_their_paths(fixture: Fixture) -> None:
    fixture.move("/a", "/b")
    fixture.add("/a")
    fixture.queue.claim_moves()
    fixture.crash()
    assert fixture.claim() == []
    assert len(fixture.queue.claim_moves()) == 1


def test_a_rolled_back_transaction_leaves_no_rename_in_memory(fixture: Fixture) -> None:
    fixture.add("/a")

    def fail() -> None:
        with fixture.queue.transaction() as tx:
            fixture.queue.add_move(tx, "/a", "/b", delay_s=0.0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert fixture.claim() == ["/a"]


def test_what_waited_below_a_renamed_folder_waits_at_the_new_place(fixture: Fixture) -> None:
    fixture.add("/d", "/d/x", "/d/y", "/dz")
    with fixture.queue.transaction() as tx:
        fixture.queue.rekey(tx, "/d", "/e", delay_s=0.0)
    assert sorted(fixture.claim()) == ["/dz", "/e", "/e/x", "/e/y"]


def test_a_row_that_a_rename_takes_away_while_it_is_claimed_is_claimed_at_its_new_place(
    fixture: Fixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixture.add("/a/x", "/b")
    choose = fixture.queue._choose

    def rename_meanwhile(limit: int) -> list[Row]:
        chosen = choose(limit)
        if chosen:
            monkeypatch.undo()
            with fixture.queue.transaction() as tx:
                fixture.queue.rekey(tx, "/a", "/c", delay_s=0.0)
        return chosen

    monkeypatch.setattr(fixture.queue, "_choose", rename_meanwhile)
    assert fixture.claim() == ["/b"]
    assert fixture.claim() == ["/c/x"]


def test_the_debounce_ends_with_quiet_or_after_two_seconds(fixture: Fixture) -> None:
    fixture.add("/a", delay_s=QUIET_S)
    assert fixture.claim() == []
    waited_s = 0.0
    while not fixture.queue.claim(1):
        fixture.clock.advance(0.1)
        waited_s += 0.1
        fixture.add("/a", delay_s=QUIET_S)
        assert waited_s < 2 * BURST_MAX_S
    assert waited_s == pytest.approx(BURST_MAX_S, abs=0.15)


def test_a_failed_row_waits_longer_and_longer_but_never_too_long_and_an_edit_ends_the_wait(fixture: Fixture) -> None:
    fixture.add("/a")
    for _ in range(40):
        [row] = fixture.queue.claim()
        with fixture.queue.transaction() as tx:
            fixture.queue.failed(tx, row, "no")
        fixture.queue.release([row])
        assert fixture.claim() == []
        fixture.clock.advance(BACKOFF_MAX_S)
    [row] = fixture.queue.claim()
    with fixture.queue.transaction() as tx:
        fixture.queue.failed(tx, row, "no")
    fixture.queue.release([row])
    fixture.add("/a")
    assert fixture.claim() == ["/a"]


def test_a_parked_row_stays_over_a_restart_and_comes_back_by_retry(fixture: Fixture) -> None:
    fixture.add("/a")
    [row] = fixture.queue.claim()
    with fixture.queue.transaction() as tx:
        fixture.queue.parked(tx, row, "because")
    fixture.queue.release([row])
    fixture.crash()
    assert fixture.claim() == []
    assert [row.error for row in fixture.queue.rows(10, state="parked")] == ["because"]
    assert fixture.queue.lengths() == (0, 1)
    assert fixture.queue.retry("/a") == 1
    assert fixture.claim() == ["/a"]


def test_a_change_while_a_row_is_being_parked_is_not_parked(fixture: Fixture) -> None:
    fixture.add("/a")
    [row] = fixture.queue.claim()
    fixture.add("/a")
    with fixture.queue.transaction() as tx:
        fixture.queue.parked(tx, row, "because")
    fixture.queue.release([row])
    assert fixture.claim() == ["/a"]


def test_hurry_reaches_the_scope_and_nothing_else(fixture: Fixture) -> None:
    fixture.add("/d/a", "/d2", "/d", delay_s=100.0)
    fixture.queue.hurry("/d")
    assert fixture.claim() == ["/d/a", "/d"]


def test_threads_that_claim_at_once_never_get_the_same_row(fixture: Fixture) -> None:
    fixture.add(*(f"/{number}" for number in range(300)))
    claimed: list[str] = []

    def work() -> None:
        while found := fixture.claim(7):
            claimed.extend(found)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60.0)
    assert sorted(claimed) == sorted(f"/{number}" for number in range(300))


paths = st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


@given(st.lists(paths, max_size=12), st.lists(paths, max_size=6), paths)
def test_overlap_is_equal_above_or_below(added: list[str], removed: list[str], asked: str) -> None:
    index, model = PathIndex(), list(added)
    for path in added:
        index.add(path)
    for path in removed:
        if path in model:
            model.remove(path)
            index.discard(path)
        else:
            with pytest.raises(KeyError):
                index.discard(path)
    expected = any(p == asked or p.startswith(asked + "/") or asked.startswith(p + "/") for p in model)
    assert index.overlaps(asked) == expected
    assert len(index) == len(model)
