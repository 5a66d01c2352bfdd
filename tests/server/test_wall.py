"""The second wall: what a connection to PostgreSQL sees when a query forgets whose rows it may read."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from pathlib import Path

import psycopg
import pytest

from memdir.store.acting import NOBODY, SYSTEM, acting_as
from memdir.store.postgres.store import PostgresStore
from memdir.store.tree.operations import Put

OPEN_TABLES = {"schema_version", "blob_hold", "job_clock", "vector_model", "chunk_words", "document_words"}
"""They hold nothing of any organisation, or (words) hashes that are found through an index which no wall can stand before."""
CANARY = "CANARY-of-the-other"


@pytest.fixture
def walled(database_url: str, tmp_path: Path) -> Iterator[PostgresStore]:
    """Two organisations, `a` and `b`, each with a document; nobody acts unless the test says so."""
    store = PostgresStore.open(database_url, tmp_path)
    for org in ("a", "b"):
        with acting_as(SYSTEM):
            with store.db.write() as connection:
                connection.execute("insert into org (id, name, created_at_ms) values (?, ?, 0)", (org, f"{CANARY}-{org}"))
            store.keys.create(org_id=org, name=f"{CANARY}-{org}")
            store.orgs.add_user(org, f"{CANARY}-{org}")
        with acting_as(org):
            container = store.containers.ensure(org, f"{CANARY}-{org}")
            for content in (f"{CANARY}-{org}".encode(), b"the same for both"):
                with store.blobs.upload() as upload:
                    upload.write(content)
                    put = Put(
                        path=f"/{CANARY}-{org}",
                        blob=upload.finish(),
                        custom_id=f"{CANARY}-{org}",
                        idempotency_key=f"{CANARY}-{org}-{len(content)}",
                    )
                    store.files.apply(container, put)
    yield store
    store.close()


def everything(store: PostgresStore) -> str:
    """All rows of all tables, with no condition."""
    tables = store.db.all("select relname from pg_class where relnamespace = 'memdir'::regnamespace and relkind in ('r', 'p')")
    assert len(tables) > 8
    return repr([store.db.all(f"select * from {name}") for (name,) in tables])


@pytest.mark.promise("keys.second-wall")
def test_without_any_condition_an_organisation_sees_its_own_rows_only(walled: PostgresStore) -> None:
    with acting_as("a"):
        seen = everything(walled)
    assert f"{CANARY}-a" in seen
    assert f"{CANARY}-b" not in seen
    with acting_as(SYSTEM):
        assert f"{CANARY}-b" in everything(walled)


@pytest.mark.promise("keys.second-wall")
@pytest.mark.parametrize("who", [NOBODY, None, "c"])
def test_whoever_does_not_say_for_whom_he_works_sees_nothing(walled: PostgresStore, who: str | None) -> None:
    if who is None:
        seen = everything(walled)
    else:
        with acting_as(who):
            seen = everything(walled)
    assert CANARY not in seen


@pytest.mark.promise("keys.second-wall")
def test_an_organisation_cannot_change_or_delete_rows_of_another(walled: PostgresStore) -> None:
    with acting_as("a"), walled.db.write() as connection:
        for table in ("document", "container", "blob", "api_key", "change", "document_version", "job"):
            connection.execute(f"update {table} set org_id = org_id")
            own = connection.changes()
            connection.execute(f"select count(*) from {table}")
            assert own > 0
        connection.execute("delete from document")
        connection.execute("delete from api_key")
    with acting_as("b"):
        assert walled.db.all("select path from document") == [(f"/{CANARY}-b",)]
        assert walled.db.all("select count(*) from api_key") == [(1,)]


@pytest.mark.promise("keys.second-wall")
def test_no_row_can_be_put_on_the_other_side(walled: PostgresStore) -> None:
    with acting_as("b"):
        ((other,),) = walled.db.all("select id from container")
    columns = "container_id, seq, kind, path, at_ms"
    with acting_as("a"), pytest.raises(psycopg.errors.InsufficientPrivilege), walled.db.write() as connection:
        connection.execute(f"insert into change (org_id, {columns}) values ('b', ?, 99, 'delete', '/x', 0)", (other,))
    with acting_as("a"), pytest.raises(psycopg.errors.ForeignKeyViolation), walled.db.write() as connection:
        connection.execute(f"insert into change ({columns}) values (?, 99, 'delete', '/x', 0)", (other,))
    with acting_as("a"), pytest.raises(psycopg.errors.InsufficientPrivilege), walled.db.write() as connection:
        connection.execute("update document set org_id = 'b'")


def test_the_same_content_is_counted_for_each_organisation_by_itself(walled: PostgresStore) -> None:
    with acting_as(SYSTEM):
        before = walled.db.all("select org_id, ref_count from blob where size_bytes = 17 order by org_id")
    assert before == [("a", 1), ("b", 1)]
    with acting_as("a"):
        walled.files.delete_container(walled.containers.get("a", f"{CANARY}-a"))
    with acting_as(SYSTEM):
        assert walled.db.all("select org_id, ref_count from blob where size_bytes = 17") == [("b", 1)]


def test_the_system_finds_keys_and_work_of_everybody_but_counts_no_references(walled: PostgresStore) -> None:
    assert {job.org_id for job in walled.jobs.claim("index", limit=10)} == {"a", "b"}
    with acting_as(SYSTEM), walled.db.write() as connection:
        connection.execute("update blob set ref_count = 0")
        assert connection.changes() == 0


def test_every_table_stands_behind_the_wall_or_is_known_to_hold_nothing(walled: PostgresStore) -> None:
    with acting_as(SYSTEM):
        rows = walled.db.all(
            "select relname, relrowsecurity and relforcerowsecurity, exists (select from pg_policy where polrelid = c.oid) "
            "from pg_class c where relnamespace = 'memdir'::regnamespace and relkind in ('r', 'p')"
        )
    assert {name for name, forced, policy in rows if not (forced and policy)} == OPEN_TABLES & {row[0] for row in rows}


def test_connections_work_as_a_role_without_rights_of_its_own(walled: PostgresStore) -> None:
    ((role, is_super, bypasses, owns),) = walled.db.all(
        "select rolname, rolsuper, rolbypassrls, exists (select from pg_class where relowner = r.oid) "
        "from pg_roles r where rolname = current_user"
    )
    assert (role, is_super, bypasses, owns) == ("memdir_app", False, False, False)
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        walled.db.all("create table memdir.other (id integer)")


def test_whom_a_connection_works_for_changes_with_its_caller(walled: PostgresStore) -> None:
    def seen(org: str) -> list[object]:
        with acting_as(org):
            return [row[0] for _ in range(20) for row in walled.db.all("select distinct org_id from document")]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda org: copy_context().run(seen, org), ["a", "b"] * 8))
    assert found == [[org] * 20 for org in ["a", "b"] * 8]


def test_a_refused_transaction_does_not_leave_its_connection_with_someone_else(walled: PostgresStore) -> None:
    for _ in range(30):
        with acting_as("a"), suppress(RuntimeError), walled.db.write() as connection:
            connection.execute("delete from document")
            raise RuntimeError
        with acting_as("b"):
            assert walled.db.all("select distinct org_id from document") == [("b",)]
        assert walled.db.all("select 1 from document") == []


def test_every_column_says_what_it_is_for(walled: PostgresStore) -> None:
    rows = walled.db.all(
        "select c.relname, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 "
        "and not a.attisdropped where c.relnamespace = 'memdir'::regnamespace and c.relkind in ('r', 'p') "
        "and (col_description(c.oid, a.attnum) is null or obj_description(c.oid, 'pg_class') is null)"
    )
    assert rows == []
