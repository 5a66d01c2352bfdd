"""PostgreSQL as an engine: placeholders, lost connections, deadlocks, what its errors mean, and notices between processes."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from memdir.core.clock import SystemClock
from memdir.core.errors import BusyError, MemdirError, StorageError
from memdir.core.paths import under_home
from memdir.server.storage import StorageOptions, opened_store
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import ATTEMPTS_MAX, Transaction, repeated
from memdir.store.errors import ContentionError, DiskFullError, InvalidError
from memdir.store.postgres.database import PostgresDatabase
from memdir.store.postgres.dialect import explained, translated
from memdir.store.postgres.store import PostgresStore
from memdir.store.store import EVERY_CONTAINER
from memdir.store.tree.operations import Put
from tests.server.conftest import AnyStore, Putting

WAIT_S = 20.0


@pytest.fixture
def db(database_url: str) -> Iterator[PostgresDatabase]:
    """Two connections at most, so that tests know which they get."""
    opened = PostgresDatabase(database_url, default_acting=SYSTEM, pool_max=2)
    yield opened
    opened.close()


def end_connections(url: str) -> None:
    """What a restart of the database server does to its clients."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "select pg_terminate_backend(pid, 10000) from pg_stat_activity "
            "where datname = current_database() and pid <> pg_backend_pid()"
        )


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("select ? + :a_1", "select %s + %(a_1)s"),
        ("select '?' || \"?\" || ':x' || ?", "select '?' || \"?\" || ':x' || %s"),
        ("select 'it''s ?', ?", "select 'it''s ?', %s"),
        ("select x::text, ?::int, :y::int", "select x::text, %s::int, %(y)s::int"),
        ("select 5 % 2 where x like '50%' and y = ?", "select 5 %% 2 where x like '50%%' and y = %s"),
        ("select 1 -- what? :this\n where ?", "select 1 -- what? :this\n where %s"),
        ("select /* ? :no */ ?", "select /* ? :no */ %s"),
        ("where x in () and y in ( ) and z in (?)", "where x in (null) and y in (null) and z in (%s)"),
    ],
)
def test_placeholders_are_translated_outside_of_quotes_and_comments_only(written: str, read: str) -> None:
    assert translated(written) == read


def test_values_come_back_as_they_went_in(db: PostgresDatabase) -> None:
    ((number, text, raw, truth, nothing, real),) = db.all(
        "select cast(? as bigint), cast(? as text), cast(? as bytea), cast(? as boolean), cast(? as text), cast(? as float8)",
        (-(1 << 63), "ü%?:x\\'", bytes(range(256)), True, None, 0.1),
    )
    assert (number, text, raw, truth, nothing, real) == (-(1 << 63), "ü%?:x\\'", bytes(range(256)), True, None, 0.1)
    assert type(raw) is bytes
    assert db.all("select sum(x), avg(x) from (values (1), (2)) as v (x)") == [(3, 1.5)]
    assert db.one("select 1 where 1 in ()") is None


def test_paths_are_ordered_by_bytes_whatever_the_locale(store: AnyStore, put: Putting) -> None:
    names = ["/a", "/B", "/a/b", "/a0", "/ä", "/a b", "/A/z", "/é"]
    container = store.containers.ensure("local", "notes")
    for name in names:
        if name not in ("/a", "/A"):
            put(name)
    entries = store.documents.files(container.id, prefix="/", after="", limit=100).entries
    assert [entry.path for entry in entries] == sorted((n for n in names if n != "/a"), key=str.encode)


def test_a_restart_of_the_database_is_not_noticed_by_the_next_calls(db: PostgresDatabase, database_url: str) -> None:
    for _ in range(3):
        assert db.all("select 1") == [(1,)]
        end_connections(database_url)
        assert db.all("select 2") == [(2,)]
        end_connections(database_url)
        with db.write() as connection:
            assert connection.execute("select 3") == [(3,)]
        with db.snapshot() as connection:
            assert connection.execute("select 4") == [(4,)]


def test_a_connection_lost_in_the_middle_of_a_transaction_is_an_error_that_passes(
    db: PostgresDatabase, database_url: str
) -> None:
    def work() -> None:
        with db.write() as connection:
            connection.execute("insert into org (id, name, created_at_ms) values ('x', 'x', 0)")
            end_connections(database_url)
            connection.execute("select 1")

    with pytest.raises(BusyError, match="cannot be reached"):
        work()
    assert db.all("select id from org where id = 'x'") == []


def test_no_free_connection_is_said_and_not_waited_for_without_end(
    db: PostgresDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(db._pool, "timeout", 0.05)
    with db.write(), db.write(), pytest.raises(BusyError, match="free in time"):
        db.all("select 1")
    assert db.all("select 1") == [(1,)]


def test_a_deadlock_is_run_again_until_both_are_through(db: PostgresDatabase) -> None:
    with db.write() as connection:
        for name in ("left", "right"):
            connection.execute("insert into org (id, name, created_at_ms) values (?, ?, 0)", (name, name))
    both = threading.Barrier(2)
    runs: list[str] = []

    def take(first: str, second: str) -> None:
        met = False

        def work(transaction: Transaction) -> None:
            nonlocal met
            runs.append(first)
            step = "update org set created_at_ms = created_at_ms + 1 where id = ?"
            transaction.execute(step, (first,))
            if not met:
                met = True
                both.wait(WAIT_S)
            transaction.execute(step, (second,))

        repeated(db, work)

    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(take, "left", "right"), pool.submit(take, "right", "left")]:
            done.result(timeout=WAIT_S)
    assert db.all("select created_at_ms from org where id in ('left', 'right')") == [(2,), (2,)]
    assert 3 <= len(runs) <= 2 * ATTEMPTS_MAX  # one of the two was run again, once at least


def test_a_deadlock_that_comes_again_and_again_is_given_up(db: PostgresDatabase) -> None:
    def work(_: Transaction) -> None:
        raise psycopg.errors.DeadlockDetected("deadlock detected")

    with pytest.raises(ContentionError):
        repeated(db, work)


@pytest.mark.parametrize(
    ("error", "meaning"),
    [
        (psycopg.errors.DiskFull("could not extend file"), DiskFullError),
        (psycopg.errors.TooManyConnections("sorry"), BusyError),
        (psycopg.errors.ReadOnlySqlTransaction("cannot execute INSERT"), StorageError),
        (psycopg.errors.QueryCanceled("canceling statement due to statement timeout"), BusyError),
        (psycopg.errors.SerializationFailure("could not serialize"), ContentionError),
        (psycopg.errors.AdminShutdown("terminating connection"), BusyError),
        (psycopg.OperationalError("server closed the connection unexpectedly"), BusyError),
    ],
)
def test_a_refusal_of_the_database_is_said_in_the_stores_own_words(
    db: PostgresDatabase, error: psycopg.Error, meaning: type[MemdirError]
) -> None:
    with pytest.raises(meaning), db.write():
        raise error


def test_a_mistake_of_ours_stays_what_it_is(db: PostgresDatabase) -> None:
    error = psycopg.errors.UndefinedTable("no such table")
    assert explained(error) is error
    with pytest.raises(psycopg.errors.SyntaxError):
        db.all("selec 1")
    assert db.all("select 1") == [(1,)]


def test_what_is_held_is_waited_for(db: PostgresDatabase) -> None:
    order: list[str] = []
    held = threading.Event()

    def first() -> None:
        with db.write() as connection:
            db.hold(connection, "a file")
            held.set()
            waiting.wait(WAIT_S)
            order.append("first")

    def second() -> None:
        assert held.wait(WAIT_S)
        with db.write() as connection:
            waiting.set()
            db.hold(connection, "a file")
            order.append("second")

    waiting = threading.Event()
    with ThreadPoolExecutor(2) as pool:
        for done in [pool.submit(first), pool.submit(second)]:
            done.result(timeout=WAIT_S)
    assert order == ["first", "second"]


def test_text_with_a_zero_character_is_refused_or_kept_the_same_way_by_both_engines(store: AnyStore, put: Putting) -> None:
    container = store.containers.ensure("local", "notes")
    with pytest.raises(InvalidError, match=r"U\+0000"):
        put("/a.md", b"x", custom_id="a\0b")
    with pytest.raises(InvalidError, match="NUL"):
        put("/a\0b", b"x")
    document = put("/a.md", b"x\0y", metadata={"key\0": "value\0"}).document
    assert document is not None
    assert document.metadata == {"key\0": "value\0"}
    assert store.blobs.content(document.content_hash) == b"x\0y"
    assert store.documents.by_any_id("local", "a\0b") == []
    assert store.documents.by_custom_id(container.id, "a\0b") is None


class Heard:
    """What the listeners of a store were told."""

    def __init__(self, store: PostgresStore) -> None:
        self._condition = threading.Condition()
        self.ids: list[int] = []
        store.listen(self._hear)
        assert store._notices.listening.wait(WAIT_S)

    def _hear(self, container_id: int) -> None:
        with self._condition:
            self.ids.append(container_id)
            self._condition.notify_all()

    def wait_for(self, container_id: int, times: int = 1) -> None:
        with self._condition:
            assert self._condition.wait_for(lambda: self.ids.count(container_id) >= times, WAIT_S), self.ids


@pytest.fixture
def two(database_url: str, tmp_path: Path) -> Iterator[tuple[PostgresStore, PostgresStore]]:
    """The same store as two processes have it."""
    stores = [PostgresStore.open(database_url, tmp_path, acting=SYSTEM) for _ in range(2)]
    yield stores[0], stores[1]
    for store in stores:
        store.close()


def test_a_commit_is_heard_once_at_home_and_once_elsewhere(two: tuple[PostgresStore, PostgresStore]) -> None:
    here, there = two
    heard_here, heard_there = Heard(here), Heard(there)
    container = here.containers.ensure("local", "notes")
    here.files.apply(container, Put(path="/d", kind="dir"))
    heard_there.wait_for(container.id)
    there.notify(container.id + 1)
    heard_here.wait_for(container.id + 1)
    assert heard_here.ids.count(container.id) == 1
    assert heard_there.ids.count(container.id) == 1


def test_after_a_lost_connection_everybody_is_woken_and_hears_again(
    two: tuple[PostgresStore, PostgresStore], database_url: str
) -> None:
    here, there = two
    heard = Heard(there)
    here.notify(7)
    heard.wait_for(7)
    before = heard.ids.count(EVERY_CONTAINER)
    end_connections(database_url)
    heard.wait_for(EVERY_CONTAINER, before + 1)
    assert there._notices.listening.wait(WAIT_S)
    here.notify(8)
    heard.wait_for(8)


def test_more_notices_than_fit_into_a_message_wake_everybody(two: tuple[PostgresStore, PostgresStore]) -> None:
    here, there = two
    heard = Heard(there)
    before = heard.ids.count(EVERY_CONTAINER)
    with here._notices._condition:  # the speaker waits meanwhile
        for container_id in range(1, 1000):
            here._notices.say(container_id)
    heard.wait_for(EVERY_CONTAINER, before + 1)


def test_closing_a_store_ends_its_threads(database_url: str, tmp_path: Path) -> None:
    before = set(threading.enumerate())
    store = PostgresStore.open(database_url, tmp_path, acting=SYSTEM)
    Heard(store)
    store.notify(1)
    assert {thread.name for thread in set(threading.enumerate()) - before} >= {"memdir-listen", "memdir-notify"}
    store.close()
    store.close()
    assert set(threading.enumerate()) <= before


def test_without_its_package_the_way_to_it_is_said(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with (
        pytest.raises(MemdirError, match="needs the package psycopg") as raised,
        opened_store(StorageOptions(database_url=database_url), under_home(tmp_path)),
    ):
        pytest.fail("it opened")
    assert raised.value.hint == "pip install 'memdir[postgres]'"


def test_sqlite_needs_nothing_of_it(tmp_path: Path) -> None:
    """`pip install memdir` comes without psycopg."""
    import subprocess

    code = (
        "import sys; sys.modules['psycopg'] = sys.modules['psycopg_pool'] = None\n"
        "from pathlib import Path; from memdir.core.paths import under_home\n"
        "from memdir.server.storage import StorageOptions, opened_store\n"
        f"with opened_store(StorageOptions(), under_home(Path({str(tmp_path)!r}))) as store:\n"
        "    print(store.containers.ensure('local', 'notes').tag)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "notes\n", done.stderr


def test_a_container_belongs_to_whoever_acts(database_url: str, tmp_path: Path) -> None:
    store = PostgresStore.open(database_url, tmp_path, clock=SystemClock())
    with acting_as("a"):
        assert store.containers.ensure("a", "notes").org_id == "a"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            store.containers.ensure("b", "notes")
    store.close()
