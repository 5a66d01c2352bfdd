"""The index of agents' memories: read once, followed by events, read again when it cannot be followed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.retrieval.agents import container as container_module
from memdir.retrieval.agents import index as index_module
from memdir.retrieval.agents.container import UnreadError
from memdir.retrieval.agents.index import AgentIndexes
from memdir.retrieval.agents.ranking import AgentQuery
from memdir.store.agents import feed as agent_feed
from memdir.store.agents.feed import AgentFeed
from memdir.store.sqlite.store import SqliteStore
from tests.retrieval.agent_world import CONTAINER, NOW_MS, answers, filled, forget, told

DEADLINE_S = 60.0


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """30 memories, which are many here."""
    monkeypatch.setattr(container_module, "LARGE_MIN", 5)
    monkeypatch.setattr(index_module, "LARGE_MIN", 5)
    monkeypatch.setattr(index_module, "_NOTICED_S", 0.0)
    opened = filled(tmp_path / "store")
    yield opened
    opened.close()


def fresh(store: SqliteStore) -> list[list[tuple[int, float]]]:
    """What an index says that has only just read everything."""
    indexes = AgentIndexes(store)
    try:
        return answers(indexes.of(CONTAINER))
    finally:
        indexes.close()


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many memories are read from now on, by call."""
    read: list[int] = []
    for name in ("listing", "indexed"):
        original = getattr(AgentFeed, name)

        def counted(feed: AgentFeed, *args: object, original: Callable[..., list[object]] = original, **more: object) -> object:
            found = original(feed, *args, **more)
            read.append(len(found))
            return found

        monkeypatch.setattr(AgentFeed, name, counted)
    return read


@pytest.mark.promise("agent.index")
def test_a_large_container_is_read_at_the_start_and_then_only_what_changed(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counting(monkeypatch)
    indexes = AgentIndexes(store)
    indexes.start()
    assert indexes.settle(DEADLINE_S)
    assert sum(read) == 30
    told(store, 50, "Gate 50 of the okapi house is opened by nobody")
    told(store, 4, "Gate 4 of the numbat house", tags=("moved",), project="q")
    forget(store, 5)
    found = answers(indexes.of(CONTAINER))
    assert sum(read) == 32
    assert [one[:2] for one in indexes.of(CONTAINER).tags()] == [("zoo", 29), ("moved", 1)]
    assert found == fresh(store)
    indexes.close()


@pytest.mark.promise("agent.index")
def test_an_index_of_which_most_went_is_read_again_and_keeps_its_accesses(store: SqliteStore) -> None:
    indexes = AgentIndexes(store)
    own = indexes.of(CONTAINER)
    answers(own)
    own.touch([9])
    for number in range(20):
        if number != 8:
            forget(store, number)
    indexes.noticed(CONTAINER)
    assert indexes.settle(DEADLINE_S)
    assert own._table.size == own._table.live == 11
    assert own._table.accesses.values[own._table.row_of[9]] == 1, "of which the store has not heard"
    own._table.accesses[own._table.row_of[9]] = 0
    own._table.access_logs[own._table.row_of[9]] = 0.0
    own._table.accesses_max = 0
    assert answers(own) == fresh(store)
    indexes.close()


def test_a_container_that_went_leaves_no_index(store: SqliteStore) -> None:
    indexes = AgentIndexes(store)
    answers(indexes.of(CONTAINER))
    with store.upkeep().alone() as connection:
        connection.execute("delete from container where id = ?", (CONTAINER,))
    indexes.noticed(CONTAINER)
    assert indexes.settle(DEADLINE_S)
    assert not indexes._open
    indexes.close()


def test_trimmed_events_cost_a_container_that_saw_them_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    indexes = AgentIndexes(store)
    answers(indexes.of(CONTAINER))
    store.containers.ensure("local", "busy")
    monkeypatch.setattr(agent_feed, "EVENTS_KEPT", 0)
    assert store.agent_feed.trim_events() == 29
    read = counting(monkeypatch)
    answers(indexes.of(CONTAINER))
    assert sum(read) == 0
    for number in range(3):
        told(store, 90 + number, f"Gate {number} opens at seven")
    store.agent_feed.trim_events()
    assert answers(indexes.of(CONTAINER)) == fresh(store), "what it did not see is read again"
    indexes.close()


def test_while_a_large_container_is_read_others_are_searched_and_few_wait(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = store.containers.ensure("local", "small")
    begun, go_on, full = threading.Event(), threading.Event(), threading.Event()

    class Places(threading.Semaphore):
        def acquire(self, blocking: bool = True, timeout: float | None = None) -> bool:
            got = super().acquire(blocking, timeout)
            if not self._value:
                full.set()
            return got

    original = AgentFeed.listing

    def slow(feed: AgentFeed, container_id: int, *, after: int, limit: int = agent_feed.PAGE_ROWS) -> object:
        if container_id == CONTAINER:
            begun.set()
            assert go_on.wait(DEADLINE_S)
        return original(feed, container_id, after=after, limit=limit)

    monkeypatch.setattr(AgentFeed, "listing", slow)
    indexes = AgentIndexes(store)
    indexes._waiting = Places(index_module.WAITING_MAX)
    query = AgentQuery(text="okapi gate", now_ms=NOW_MS)
    with pytest.raises(UnreadError, match="still being read"):
        indexes.of(CONTAINER).search(query, wait_s=0.0)
    assert begun.wait(DEADLINE_S)
    assert indexes.of(small.id).search(query) == []
    waiting = [threading.Thread(target=indexes.of(CONTAINER).search, args=(query,)) for _ in range(index_module.WAITING_MAX)]
    for thread in waiting:
        thread.start()
    assert full.wait(DEADLINE_S)
    with pytest.raises(UnreadError, match="being read"):
        indexes.of(CONTAINER).search(query)
    go_on.set()
    for thread in waiting:
        thread.join(DEADLINE_S)
    assert indexes.of(CONTAINER).search(query)
    indexes.close()
