"""The database wrapper: one writer, migrations in order, nothing half-written."""

from __future__ import annotations

import os
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from memdir.core.errors import CorruptError, VersionError
from memdir.core.sqlite import Database, migration_steps


@pytest.fixture
def migrations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An importable package with one migration."""
    name = f"migrations_{abs(hash(tmp_path))}"
    package = tmp_path / name
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "0001_first.sql").write_text("create table note(id integer primary key, text text not null);")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


def test_a_new_database_is_private_and_has_the_schema(tmp_path: Path, migrations: str) -> None:
    database = Database(tmp_path / "folder" / "a.db", migrations=migrations)
    assert (tmp_path / "folder" / "a.db").stat().st_mode & 0o777 == 0o600
    assert database.one("pragma user_version") == (1,)
    assert database.one("select count(*) from note") == (0,)
    database.close()


def test_a_write_that_raises_leaves_nothing_behind(tmp_path: Path, migrations: str) -> None:
    database = Database(tmp_path / "a.db", migrations=migrations)

    def fail_halfway() -> None:
        with database.write() as connection:
            connection.execute("insert into note(text) values('half')")
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fail_halfway()
    assert database.all("select text from note") == []
    with database.write() as connection:
        connection.execute("insert into note(text) values('whole')")
    assert database.all("select text from note") == [("whole",)]
    database.close()


def test_readers_in_other_threads_see_every_committed_write(tmp_path: Path, migrations: str) -> None:
    database = Database(tmp_path / "a.db", migrations=migrations)
    seen: list[list[tuple[object, ...]]] = []
    for number in range(3):
        with database.write() as connection:
            connection.execute("insert into note(text) values(?)", (str(number),))
        reader = threading.Thread(target=lambda: seen.append(database.all("select text from note order by id")))
        reader.start()
        reader.join()
    assert [len(rows) for rows in seen] == [1, 2, 3]
    database.close()


def test_threads_that_ended_leave_no_connection_behind(tmp_path: Path, migrations: str) -> None:
    database = Database(tmp_path / "a.db", migrations=migrations)
    counts: list[object] = []
    for _ in range(200):
        thread = threading.Thread(target=lambda: counts.append(database.one("select count(*) from note")))
        thread.start()
        thread.join()
    assert counts == [(0,)] * 200
    open_files = [
        os.readlink(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")
    ]
    assert open_files.count(str(tmp_path / "a.db")) <= 3
    database.close()


def test_a_second_migration_is_applied_once_and_keeps_the_rows(tmp_path: Path, migrations: str) -> None:
    database = Database(tmp_path / "a.db", migrations=migrations)
    with database.write() as connection:
        connection.execute("insert into note(text) values('old')")
    database.close()
    (tmp_path / migrations / "0002_second.sql").write_text("alter table note add column tag text not null default 'x';")
    for _ in range(2):
        database = Database(tmp_path / "a.db", migrations=migrations)
        assert database.all("select text, tag from note") == [("old", "x")]
        database.close()


def test_a_database_from_a_newer_memdir_is_refused_and_untouched(tmp_path: Path, migrations: str) -> None:
    database = Database(tmp_path / "a.db", migrations=migrations)
    with database.write() as connection:
        connection.execute("pragma user_version=7")
    database.close()
    with pytest.raises(VersionError, match="schema 7"):
        Database(tmp_path / "a.db", migrations=migrations)


def test_a_file_that_is_no_database_is_named(tmp_path: Path, migrations: str) -> None:
    (tmp_path / "a.db").write_bytes(b"not a database at all, but long enough to be looked at" * 100)
    with pytest.raises(CorruptError, match=r"a\.db is not a SQLite database"):
        Database(tmp_path / "a.db", migrations=migrations)


def test_a_gap_in_the_migration_numbers_is_an_error(tmp_path: Path, migrations: str) -> None:
    (tmp_path / migrations / "0003_third.sql").write_text("select 1;")
    with pytest.raises(CorruptError, match="expected migration 0002"):
        migration_steps(migrations)


def test_what_a_write_that_failed_left_in_the_log_is_given_back_and_the_commits_before_it_stay(
    tmp_path: Path, migrations: str
) -> None:
    with closing(Database(tmp_path / "a.db", migrations=migrations, cache_mib=1)) as database:
        with database.write() as connection:
            connection.execute("insert into note(text) values ('kept')")
        before = database.log_bytes()

        def fails() -> None:
            with database.write() as connection:
                for _ in range(40):  # more than the page cache holds: pages go to the log before the commit
                    connection.execute("insert into note(text) values (?)", ("x" * 100_000,))
                raise OSError("refused")

        with pytest.raises(OSError, match="refused"):
            fails()
        assert database.log_bytes() > before
        assert database.log_spare_bytes() == database.log_bytes() - before
        database.cut_log()
        assert (database.log_bytes(), database.log_spare_bytes()) == (before, 0)
        with database.write() as connection:
            connection.execute("insert into note(text) values ('later')")
        assert database.all("select text from note order by id") == [("kept",), ("later",)]
    with closing(Database(tmp_path / "a.db", migrations=migrations)) as database:
        assert database.all("select text from note order by id") == [("kept",), ("later",)]
        assert database.integrity_errors() == []
        database.checkpoint()
        assert database.log_spare_bytes() == database.log_bytes()
