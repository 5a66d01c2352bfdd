"""The file of the index of agents' memories: read in place of the memories, believed only as far as the store bears it out."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.retrieval.agents import container as container_module
from memdir.retrieval.agents import index as index_module
from memdir.retrieval.agents.container import FILE, UnreadError
from memdir.retrieval.agents.index import NAME, AgentIndexes
from memdir.retrieval.agents.ranking import AgentQuery
from memdir.retrieval.derived_index import folder_of
from memdir.store.agents import feed as agent_feed
from memdir.store.agents.feed import AgentFeed
from memdir.store.sqlite.store import SqliteStore
from tests.retrieval.agent_files_killed import DIED
from tests.retrieval.agent_world import CONTAINER, NOW_MS, answers, filled, forget, told

ROOT = Path(__file__).parent.parent.parent
DEADLINE_S = 60.0


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    """30 memories, which are many here."""
    monkeypatch.setattr(container_module, "KEPT_MIN", 5)
    monkeypatch.setattr(index_module, "KEPT_MIN", 5)
    opened = filled(tmp_path / "store")
    yield opened
    opened.close()


def plain(store: SqliteStore) -> list[list[tuple[int, float]]]:
    """What an index says that has only just read everything."""
    own = AgentIndexes(store).of(CONTAINER)
    own._folder = None
    own.load()
    return answers(own)


def kept(store: SqliteStore) -> Path:
    """The file, written by one process that ends."""
    indexes = AgentIndexes(store)
    answers(indexes.of(CONTAINER))
    assert indexes.settle(DEADLINE_S)
    assert indexes.close()
    path = folder_of(store.folder, CONTAINER, NAME) / FILE
    assert path.is_file()
    return path


def reads(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> tuple[AgentIndexes, list[int]]:
    """Indexes of the next process, and how many memories it reads."""
    read: list[int] = []
    for name in ("listing", "indexed"):
        original = getattr(AgentFeed, name)

        def counting(
            feed: AgentFeed, *args: object, original: Callable[..., list[object]] = original, **more: object
        ) -> object:
            found = original(feed, *args, **more)
            read.append(len(found))
            return found

        monkeypatch.setattr(AgentFeed, name, counting)
    return AgentIndexes(store), read


@pytest.mark.promise("agent.index-files")
def test_after_a_restart_only_what_came_since_is_read(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(store)
    told(store, 50, "Gate 50 of the okapi house is opened by nobody")
    told(store, 4, "Gate 4 of the numbat house", tags=("moved",), project="q")
    forget(store, 5)
    store.agents.count_accesses({8: 40})
    wanted = plain(store)
    indexes, read = reads(store, monkeypatch)
    assert answers(indexes.of(CONTAINER)) == wanted
    assert sum(read) == 2
    assert [one[:2] for one in indexes.of(CONTAINER).tags()] == [("zoo", 29), ("moved", 1)]
    assert indexes.check(CONTAINER, full=True) == []
    indexes.close()


@pytest.mark.promise("agent.index-files")
def test_what_was_brought_in_is_in_a_file_before_anybody_searches(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_module, "_NOTICED_S", 0.0)
    monkeypatch.setattr(index_module, "_QUIET_S", 0.0)
    indexes = AgentIndexes(store)
    indexes.noticed(CONTAINER)
    assert indexes.settle(DEADLINE_S)
    assert (folder_of(store.folder, CONTAINER, NAME) / "table").exists()
    wanted = plain(store)
    assert indexes.close()
    indexes, read = reads(store, monkeypatch)
    assert answers(indexes.of(CONTAINER)) == wanted
    assert sum(read) == 0
    indexes.close()


@pytest.mark.promise("agent.index-files")
def test_a_death_at_any_step_leaves_an_index_that_answers_right(tmp_path: Path, store: SqliteStore) -> None:
    store.close()
    run = subprocess.run(
        [sys.executable, "-m", "tests.retrieval.agent_files_killed", str(tmp_path / "store"), str(tmp_path)],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=DEADLINE_S,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    codes = [int(line.split()[1]) for line in run.stdout.splitlines()]
    assert codes == [*[DIED] * (len(codes) - 1), 0]
    assert len(codes) > 6
    for allowed in range(len(codes)):
        survivor = SqliteStore.open(tmp_path / str(allowed))
        indexes = AgentIndexes(survivor)
        assert indexes.check(CONTAINER, full=True) == [], allowed
        assert answers(indexes.of(CONTAINER)) == plain(survivor), allowed
        assert indexes.close()
        assert not list(folder_of(survivor.folder, CONTAINER, NAME).glob("*.tmp"))
        survivor.close()


def flipped(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[9000] ^= 0xFF
    path.write_bytes(data)


def shortened(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def older(path: Path) -> None:
    from memdir.retrieval.agents.arrays import FileSink, read_arrays

    arrays = dict(read_arrays(path, verify=True))
    arrays["about"] = arrays["about"] + 1
    with FileSink(path) as sink:
        for name, values in arrays.items():
            sink.reserve(name, values.dtype.str, values.size)
            sink.append(name, values)
        sink.finish()


@pytest.mark.promise("agent.index-files")
@pytest.mark.parametrize("damage", [flipped, shortened, emptied, older])
def test_a_damaged_file_is_found_and_made_again(store: SqliteStore, damage: Callable[[Path], None]) -> None:
    path = kept(store)
    damage(path)
    indexes = AgentIndexes(store)
    assert [finding.kind for finding in indexes.check(CONTAINER)] == ["index-damaged"]
    assert answers(indexes.of(CONTAINER)) == plain(store)
    assert indexes.settle(DEADLINE_S)
    assert indexes.check(CONTAINER, full=True) == []
    indexes.close()


@pytest.mark.promise("agent.index-files")
def test_a_deleted_file_comes_back_and_a_container_that_went_leaves_none(store: SqliteStore) -> None:
    path = kept(store)
    shutil.rmtree(store.folder / "indexes")
    assert kept(store) == path
    with store.upkeep().alone() as connection:
        connection.execute("delete from container where id = ?", (CONTAINER,))
    indexes = AgentIndexes(store)
    indexes.start()
    assert indexes.settle(DEADLINE_S)
    assert not path.exists()
    indexes.close()


def test_a_store_that_went_back_in_time_is_believed(store: SqliteStore, tmp_path: Path) -> None:
    """Its files were put back: the same numbers and events stand for other texts."""
    told(store, 70, "The okapi wing is closed")
    path = kept(store)
    other = filled(tmp_path / "other")
    told(other, 70, "The tapir wing is closed")
    told(other, 71, "The tapir tower is closed")
    target = folder_of(other.folder, CONTAINER, NAME)
    shutil.copytree(path.parent, target)
    indexes = AgentIndexes(other)
    assert [finding.kind for finding in indexes.check(CONTAINER)] == ["index-differs"]
    assert answers(indexes.of(CONTAINER)) == plain(other)
    assert indexes.settle(DEADLINE_S)
    assert indexes.check(CONTAINER, full=True) == []
    indexes.close()
    other.close()


@pytest.mark.promise("agent.index-files")
def test_deleted_memories_leave_the_file(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """And what changed meanwhile, and accesses, are still there afterwards."""
    kept(store)
    monkeypatch.setattr(container_module, "FORGET_S", 0.0)
    monkeypatch.setattr(container_module, "BEHIND_MIN", 3)
    told(store, 60, "Gate 60 of the okapi house is opened by nobody")
    indexes = AgentIndexes(store)
    own = indexes.of(CONTAINER)
    before = len(answers(own)[1])
    assert not own.due()
    for number in range(61, 65):
        told(store, number, "Gate of the okapi house")
    own.follow()
    assert own.due(closing=True), "five since the file was written, one of them before this process"
    for number in range(61, 65):
        forget(store, number)
    own.touch([9])
    forget(store, 1)
    own.follow()
    assert own.is_forgetting
    assert own.due()
    own.keep()
    assert not own.is_forgetting
    assert not own.due()
    (table, _) = own.from_file() or pytest.fail("no file")
    assert 2 not in table.numbers.values.tolist()
    assert table.size == table.live == 30
    assert len(answers(own)[1]) <= before
    assert own._table.accesses.values[own._table.row_of[9]] == 1
    indexes.close()


def test_trimmed_events_cost_a_container_that_saw_them_nothing(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(store)
    store.containers.ensure("local", "busy")
    monkeypatch.setattr(agent_feed, "EVENTS_KEPT", 0)
    assert store.agent_feed.trim_events() == 29
    indexes, read = reads(store, monkeypatch)
    assert answers(indexes.of(CONTAINER)) == answers(indexes.of(CONTAINER))
    assert sum(read) == 0
    for number in range(3):
        told(store, 90 + number, f"Gate {number} opens at seven")
    store.agent_feed.trim_events()
    assert answers(indexes.of(CONTAINER)) == plain(store), "what it did not see is read again"
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
