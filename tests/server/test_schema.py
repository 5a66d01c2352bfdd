"""PostgreSQL's schema: the same tables as SQLite's, made by many processes at once, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from memdir.core.errors import StorageError, VersionError
from memdir.store.postgres import migrations
from memdir.store.sqlite.store import SqliteStore
from tests.postgres import Postgres

OF_ONE_ENGINE = {
    "sqlite": ("sqlite_", "chunk", "vector_", "memory"),
    "postgres": ("schema_version", "chunk", "vector_", "memory", "document_words"),
}
"""How words and vectors are kept is each engine's own; the tests of searching compare what comes of it."""


def shared(engine: str, rows: list[tuple[str, str]]) -> set[str]:
    """`table.column` of what both engines have to have."""
    return {f"{table}.{column}" for table, column in rows if not table.startswith(OF_ONE_ENGINE[engine]) and column != "org_id"}


@pytest.fixture
def empty_url(postgres: Postgres) -> Iterator[str]:
    with postgres.database(empty=True) as url:
        yield url


def tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where schemaname = 'memdir' order by 1").fetchall()
    return [row[0] for row in rows]


def test_both_engines_have_the_same_tables_and_columns(tmp_path: Path, database_url: str) -> None:
    store = SqliteStore.open(tmp_path)
    of_sqlite = shared(
        "sqlite",
        store.db.all(
            "select t.name, c.name from pragma_table_list t join pragma_table_info(t.name) c where t.schema = 'main' "
            "and t.type = 'table'"
        ),
    )
    store.close()
    with psycopg.connect(database_url) as connection:
        of_postgres = shared(
            "postgres",
            connection.execute(
                "select table_name::text, column_name::text from information_schema.columns where table_schema = 'memdir'"
            ).fetchall(),
        )
    assert len(of_sqlite) > 80
    assert of_sqlite ^ of_postgres == set(), "a column is missing in store/sqlite/schema or in store/postgres/schema"


INDEXES_OF_ONE_ENGINE = {
    "chunk_of_container", "chunk_sample", "chunk_vector_of_container", "chunk_words_by_word", "document_words_by_word",
}  # fmt: skip


def test_both_engines_have_the_same_indexes(tmp_path: Path, database_url: str) -> None:
    """What a statement reads is counted on PostgreSQL (`test_query_reads`). SQLite's plan does not tell a walk through an index
    that a limit ends soon from one that a condition makes long."""
    store = SqliteStore.open(tmp_path)
    of_sqlite = {row[0] for row in store.db.all("select name from sqlite_schema where type = 'index' and sql is not null")}
    store.close()
    with psycopg.connect(database_url) as connection:
        rows = connection.execute(
            "select c.relname::text from pg_index i join pg_class c on c.oid = i.indexrelid join pg_namespace n "
            "on n.oid = c.relnamespace left join pg_constraint k on k.conindid = c.oid "
            "where n.nspname = 'memdir' and k.oid is null"
        ).fetchall()
    of_postgres = {row[0] for row in rows if not row[0].startswith("chunk_vector_near_")}
    assert len(of_sqlite) > 40
    assert (of_sqlite ^ of_postgres) - INDEXES_OF_ONE_ENGINE == set(), "an index is missing in the schema of one engine"


def test_processes_that_start_together_make_the_schema_once(empty_url: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: migrations.migrate(empty_url), range(8)))
    versions = {after for _, after in found}
    assert len(versions) == 1
    assert sorted(before for before, _ in found) == [0] + sorted(versions) * 7
    with psycopg.connect(empty_url) as connection:
        applied = connection.execute("select version from memdir.schema_version order by 1").fetchall()
    assert applied == [(number,) for number in range(1, max(versions) + 1)]


def test_a_schema_of_a_newer_memdir_is_left_alone(database_url: str) -> None:
    with psycopg.connect(database_url) as connection:
        connection.execute("insert into memdir.schema_version (version) values (999)")
    with pytest.raises(VersionError, match="newer memdir"):
        migrations.migrate(database_url)


def test_a_migration_that_fails_in_its_middle_leaves_nothing(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = migrations.migration_steps(migrations.MIGRATIONS)
    monkeypatch.setattr(migrations, "migration_steps", lambda _: [steps[0] + "\nselect 1 / 0;", *steps[1:]])
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrations.migrate(empty_url)
    assert tables(empty_url) == []
    monkeypatch.setattr(migrations, "migration_steps", lambda _: steps)
    assert migrations.migrate(empty_url) == (0, len(steps))


def test_a_migration_whose_process_is_killed_leaves_nothing_and_is_made_by_the_next(
    empty_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server ends the connection in the middle, as it does when a client vanishes."""
    steps = migrations.migration_steps(migrations.MIGRATIONS)
    killed = "\nselect pg_terminate_backend(pg_backend_pid());\nselect 1;"
    monkeypatch.setattr(migrations, "migration_steps", lambda _: [steps[0] + killed, *steps[1:]])
    with pytest.raises(StorageError, match="cannot be reached"):
        migrations.migrate(empty_url)
    assert tables(empty_url) == []
    monkeypatch.setattr(migrations, "migration_steps", lambda _: steps)
    assert migrations.migrate(empty_url) == (0, len(steps))


def test_an_owner_that_may_not_make_roles_still_stands_behind_the_wall(postgres: Postgres, empty_url: str) -> None:
    """A managed database: the login owns the tables and nothing else."""
    name = psycopg.conninfo.conninfo_to_dict(empty_url)["dbname"]
    login = f"login_{name}"
    postgres.run("create role {} login", login)
    try:
        postgres.run("alter database {} owner to {}", str(name), login)
        url = empty_url.replace("postgres@", f"{login}@")
        with psycopg.connect(empty_url, autocommit=True) as connection:
            connection.execute("create extension if not exists vector")
        migrations.migrate(url)
        with psycopg.connect(url) as connection:
            connection.execute("set search_path = memdir, public")
            connection.execute("select set_config('memdir.org', 'a', false)")
            connection.execute(
                "insert into container (org_id, tag, epoch, created_at_ms, updated_at_ms) values ('a', 't', '', 0, 0)"
            )
            connection.execute("select set_config('memdir.org', 'b', false)")
            assert connection.execute("select * from container").fetchall() == []
    finally:
        postgres.run("drop database {} with (force)", str(name))
        postgres.run("create database {} template template0", str(name))
        postgres.run("drop role {}", login)
