"""Migrating from every released schema, vacuum, deletes that leave nothing, and the commands beside a running server."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import pytest

from memdir.core import sqlite
from memdir.core.clock import FakeClock
from memdir.core.errors import BusyError, VersionError
from memdir.core.sqlite import migration_steps, schema_version
from memdir.store.agents.files import Draft, Provenance
from memdir.store.contents.blobs import INLINE_MAX_BYTES
from memdir.store.postgres.store import PostgresStore
from memdir.store.postgres.upkeep import PostgresUpkeep
from memdir.store.sqlite.store import DATABASE_NAME, MIGRATIONS, SqliteStore
from memdir.store.store import Store
from memdir.store.tree.operations import Delete, Put
from memdir.store.types import Chunk, Container
from memdir.store.upkeep.check import Check
from memdir.store.upkeep.vacuum import vacuum
from tests.server.conftest import AnyStore, Putting
from tests.server.test_files_http import put as put_http
from tests.servers import start

LARGE = b"L" * (INLINE_MAX_BYTES + 1)
STEPS = migration_steps(MIGRATIONS)
NEXT_STEP = """
create table later (id integer primary key, path text) strict;
insert into later (path) select path from document;
alter table blob add column later text;
update blob set later = hash;
"""


# migration


DOWNGRADES = {
    2: """
drop index document_by_sibling;
alter table document drop column transcription;
alter table document drop column sibling_version;
alter table container drop column siblings_version;
drop table extraction;
delete from job_clock where kind = 'extract'
""",
    3: """
drop table agent_project;
drop trigger agent_memory_changed;
drop index agent_memory_proposed;
alter table agent_memory drop column is_proposed;
alter table agent_memory drop column provenance;
create trigger agent_memory_changed after update of content, tags, project, created_at_ms, container_id on agent_memory begin
    insert into agent_event (container_id, number) values (new.container_id, new.number);
    insert into agent_event (container_id, number)
    select id, old.number from container where id = old.container_id and id <> new.container_id;
end
""",
    4: "alter table memory drop column valid_from_ms; alter table memory drop column said_at_ms",
    5: "drop index document_with_text",
    6: """
drop trigger memory_gone;
drop index memory_ended_by;
alter table memory drop column ended_by;
create trigger memory_gone after delete on memory begin
    update memory set is_latest = 1
    where id = old.parent_id and old.is_latest = 1 and old.relation in ('updates', 'contradicts')
      and exists (select 1 from memory_source s where s.memory_id = old.parent_id and s.stands = 1);
    update memory set parent_id = old.parent_id where parent_id = old.id;
    update container set profile_version = profile_version + 1 where id = old.container_id;
end
""",
}
"""How the steps are taken back: today's code cannot write with the columns that they bring."""


def old_store(folder: Path, released: int) -> None:
    """A store of the released schema: a container with a small and a large file."""
    store = SqliteStore.open(folder)
    container = store.containers.ensure("local", "t")
    for path, content in (("/small", b"ok"), ("/large", LARGE)):
        with store.blobs.upload() as upload:
            upload.write(content)
            store.files.apply(container, Put(path=path, blob=upload.finish(), metadata={"a": [1, "x"]}))
    with store.blobs.upload() as upload:
        upload.write(b"Deploys run on Fridays.")
        memory = store.files.apply(container, Put(path="/memory/api/deploys.md", blob=upload.finish())).document
    assert memory is not None
    said = Draft(content="Deploys run on Fridays.", tags=("deploy",), created_at_ms=1, updated_at_ms=2)
    assert store.agents.reread(container.id, memory.id, memory.content_hash, [said])
    with store.db.write() as connection:
        for step in range(len(STEPS), released, -1):
            connection.execute(DOWNGRADES[step])
        connection.execute(f"pragma user_version={released}")
    store.close()


def is_whole(folder: Path) -> None:
    store = SqliteStore.open(folder)
    try:
        assert list(Check(store).findings(deep=True)) == []
        container = store.containers.get("local", "t")
        for path, content in (("/small", b"ok"), ("/large", LARGE)):
            document = store.documents.at(container.id, path)
            assert document is not None
            assert store.blobs.content(document.content_hash) == content
            assert document.metadata == {"a": [1, "x"]}
        (memory,) = store.agents.page(container.id, project="api", after=None, limit=10)
        assert (memory.content, memory.tags, memory.updated_at_ms) == ("Deploys run on Fridays.", ("deploy",), 2)
        assert (memory.provenance, memory.is_proposed) == (Provenance(), False)
        assert [one.content for one in store.agent_feed.listing(container.id, after=0)] == [memory.content]
        store.files.apply(container, Delete(path="/large"))
        assert list(Check(store).findings()) == []
    finally:
        store.close()


@pytest.mark.promise("store.migrates")
@pytest.mark.parametrize("released", range(1, len(STEPS) + 1))
def test_a_store_of_every_released_schema_opens_also_when_the_migration_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, released: int
) -> None:
    """A process dies as if by SIGKILL before a statement of the migration: the first, the last, and some between. One step more
    than there are stands for those to come."""
    chance = random.Random(released)
    made = tmp_path / "made"
    old_store(made, released)
    monkeypatch.setattr(sqlite, "migration_steps", lambda _: [*STEPS, NEXT_STEP])
    shutil.copytree(made, tmp_path / "count")
    last = dying(tmp_path / "count", 1 << 30)
    is_whole(tmp_path / "count")
    for moment in {0, last - 1, *(chance.randrange(last) for _ in range(8))}:
        folder = tmp_path / str(moment)
        shutil.copytree(made, folder)
        dying(folder, moment)
        assert released <= schema_version(folder / DATABASE_NAME) <= len(STEPS) + 1
        is_whole(folder)
        assert schema_version(folder / DATABASE_NAME) == len(STEPS) + 1


def dying(folder: Path, statements: int) -> int:
    """Open the store in a process that is gone before the statement with that number. Returns how many were run."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():  # of threads in the parent: the child takes no lock of theirs and ends by _exit
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        count = 0
        try:
            connect = sqlite.Database._connect

            def traced(self: sqlite.Database, cache_mib: int) -> apsw.Connection:
                def trace(_cursor: object, _sql: str, _bindings: object) -> bool:
                    nonlocal count
                    if count == statements:
                        os.write(writing, b"%d" % count)
                        os._exit(9)
                    count += 1
                    return True

                connection = connect(self, cache_mib)
                connection.exec_trace = trace
                return connection

            sqlite.Database._connect = traced  # type: ignore[method-assign]
            SqliteStore.open(folder)
            os.write(writing, b"%d" % count)
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        count = int(told.read() or b"-1")
    os.waitpid(child, 0)
    assert count >= 0, "the child failed before it was to die"
    return count


def test_a_store_of_a_newer_memdir_is_refused(tmp_path: Path) -> None:
    old_store(tmp_path / "s", len(STEPS))
    connection = apsw.Connection(str(tmp_path / "s" / DATABASE_NAME))
    connection.execute("pragma user_version=999")
    connection.close()
    with pytest.raises(VersionError, match="newer memdir"):
        SqliteStore.open(tmp_path / "s")


# deleting for good, and giving space back


def indexed(store: Store, document: Any, text: str) -> None:
    chunk = Chunk(ordinal=0, start_byte=0, end_byte=len(text), start_line=1, end_line=1, text=text, context=text)
    vectors = np.ones((1, 256), dtype=np.float32) / 16
    assert store.chunks().replace_chunks(document, [chunk], model="test", vectors=vectors)


def raw_bytes(store: AnyStore) -> list[tuple[str, bytes]]:
    """Every file in which the store keeps data: the folder, and PostgreSQL's files of this database (its log is not among
    them: docs/operations.md). A file that goes meanwhile keeps nothing."""
    files = [file for file in store.folder.rglob("*") if file.is_file()]
    if isinstance(store, PostgresStore):
        import psycopg

        with psycopg.connect(store._url, autocommit=True) as superuser:
            row = superuser.execute(
                "select current_setting('data_directory'), (select oid from pg_database where datname = current_database())"
            ).fetchone()
        assert row is not None
        files += list((Path(row[0]) / "base" / str(row[1])).iterdir())
    found = []
    for file in files:
        with suppress(FileNotFoundError):
            found.append((file.name, file.read_bytes()))
    return found


@pytest.fixture
def neighbour(store: AnyStore) -> Iterator[None]:
    """Somebody at work in another database of the same server, who keeps PostgreSQL's `vacuum full` from giving rows back."""
    if not isinstance(store, PostgresStore):
        yield
        return
    import psycopg

    with psycopg.connect(store._url, dbname="postgres") as other:
        other.execute("select txid_current()")
        yield


@pytest.mark.usefixtures("neighbour")
@pytest.mark.promise("store.deletes")
def test_what_is_deleted_is_in_no_file_after_a_vacuum(store: AnyStore, container: Container, put: Putting) -> None:
    """Bytes, passages, words, vectors, versions. PostgreSQL's write-ahead log is the exception that the documents name."""
    canary = "kanariengelb7f3a9c"
    for path, content in (("/small.md", canary * 3), ("/large.md", canary * (1 + INLINE_MAX_BYTES // len(canary)))):
        document = put(path, content.encode()).document
        indexed(store, document, f"{canary} sings")
        put(path, content.encode() + b" again")
    put("/stays.md", b"stays")
    assert any(canary.encode() in data for _, data in raw_bytes(store))
    for path in ("/small.md", "/large.md"):
        store.files.apply(container, Delete(path=path))
    store.containers.change_settings(container.id, {"versionsMaxDays": 0, "versionsMaxCount": 0})
    with store.upkeep().reading() as reader:
        ((versions,),) = list(reader.execute("select count(*) from document_version"))
    assert versions > 0
    done = vacuum(store, full=True)
    assert done.versions == versions
    assert done.nothing_kept
    assert [name for name, data in raw_bytes(store) if canary.encode() in data or canary[:12].encode() in data] == []
    assert list(Check(store).findings(deep=True)) == []


@pytest.mark.promise("store.deletes")
def test_a_vacuum_says_that_a_reader_keeps_what_was_deleted(
    store: AnyStore, put: Putting, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memdir.store.postgres.upkeep._OLDER_WAIT_S", 0.3)
    canary = b"kanariengelb7f3a9c"
    put("/small.md", canary)
    store.containers.change_settings(container.id, {"versionsMaxDays": 0, "versionsMaxCount": 0})
    is_sqlite = not isinstance(store, PostgresStore)
    with store.upkeep().reading() as reader, ThreadPoolExecutor(1) as another:
        list(reader.execute("select count(*) from document" if is_sqlite else "select 1"))
        store.files.apply(container, Delete(path="/small.md"))
        assert not another.submit(vacuum, store, full=True).result().nothing_kept
        assert [name for name, data in raw_bytes(store) if canary in data] != []
    assert vacuum(store, full=True).nothing_kept
    assert [name for name, data in raw_bytes(store) if canary in data] == []
    if not is_sqlite:
        monkeypatch.setattr("memdir.store.postgres.upkeep._LOCK_MS", 200)
        with store.upkeep().reading() as reader, ThreadPoolExecutor(1) as another:
            list(reader.execute("select count(*) from document"))
            with pytest.raises(BusyError, match="somebody else uses the database"):
                another.submit(vacuum, store, full=True).result()


@pytest.mark.parametrize("open_store", ["postgres"], indirect=True)
@pytest.mark.usefixtures("neighbour")
def test_a_reader_that_began_during_a_vacuum_and_ends_soon_keeps_nothing(
    store: PostgresStore, put: Putting, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Autovacuum does that, at any time."""
    put("/small.md")
    store.files.apply(container, Delete(path="/small.md"))
    asked: list[str] = []
    with ExitStack() as reader:
        older = PostgresUpkeep._are_older

        def are_older(self: PostgresUpkeep, begun: str) -> bool:
            asked.append(begun)
            if len(asked) == 2:  # behind the tables
                list(reader.enter_context(store.upkeep().reading()).execute("select 1"))
            if len(asked) == 4:
                reader.close()
            return older(self, begun)

        monkeypatch.setattr(PostgresUpkeep, "_are_older", are_older)
        assert vacuum(store, full=True).nothing_kept
    assert len(asked) > 4


@pytest.mark.usefixtures("neighbour")
@pytest.mark.promise("store.vacuum")
def test_vacuum_gives_space_back_and_prunes_what_is_older_than_it_is_kept(
    store: AnyStore, container: Container, put: Putting, clock: FakeClock
) -> None:
    store.containers.change_settings(container.id, {"versionsMaxCount": 0})
    before_bytes = 0
    for number in range(60):
        put(f"/d/{number}", os.urandom(100_000))
    before_bytes = store.upkeep().size_bytes()
    container = store.containers.get("local", "notes")
    store.files.apply(container, Delete(path="/d", recursive=True))
    clock.advance(91 * 86_400)
    put("/young", b"young")
    done = vacuum(store, full=True)
    assert done.changes == 61
    assert done.after_bytes < before_bytes - 60 * 90_000
    assert done.after_bytes == store.upkeep().size_bytes()
    feed = store.changes.since(container.id, 61, limit=10)
    assert feed is not None
    assert [row.path for row in feed.rows] == ["/young"]
    again = vacuum(store, full=False)
    assert (again.changes, again.contents) == (0, 0)
    assert list(Check(store).findings(deep=True)) == []


# the commands


def command(home: Path, *arguments: str) -> tuple[int, Any, str]:
    """Exit code, JSON answer, standard error."""
    done = subprocess.run(
        [sys.executable, "-m", "memdir.cli", "server", *arguments, "--json"],
        env={**os.environ, "MEMDIR_HOME": str(home)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else None, done.stderr


@pytest.mark.promise("store.backup")
def test_a_running_server_is_backed_up_and_comes_back_elsewhere(tmp_path: Path) -> None:
    home, other = tmp_path / "home", tmp_path / "other"
    running = start(home, "--port", "0")
    try:
        with running.client() as client:
            for number in range(20):
                assert put_http(client, "t", f"/{number}.md", b"harbour crane %d" % number).status_code == 201
            assert put_http(client, "t", "/large", LARGE).status_code == 201
            epoch = client.get("/v1/changes", params={"containerTag": "t"}).json()["epoch"]
        code, answer, _ = command(home, "backup", str(tmp_path))
        assert (code, answer["missing"], answer["rows"]["document"]) == (0, [], 21)
        file = answer["file"]
        assert command(home, "check", "--deep")[:2] == (0, {"findings": [], "left": 0})
        assert command(home, "vacuum")[0] == 0
        for refused in (["check", "--repair"], ["restore", file, "--force"], ["vacuum", "--full"]):
            code, answer, _ = command(home, *refused)
            assert code == 2, refused
            assert "server stop" in json.dumps(answer)
    finally:
        assert running.stop() == 0
    assert command(home, "restore", file)[0] == 2
    code, answer, _ = command(other, "restore", file)
    assert (code, answer["documents"], answer["findings"]) == (0, 21, [])
    assert command(other, "migrate", "--check")[1]["before"] == len(migration_steps(MIGRATIONS))
    again = start(other, "--port", "0")
    try:
        again.key = running.key  # the keys came along
        with again.client() as client:
            assert client.get("/v1/files/large", params={"containerTag": "t"}).content == LARGE
            page = client.get("/v1/changes", params={"containerTag": "t"}).json()
            assert page["lastSeq"] == 21
            assert page["epoch"] != epoch
            body = {"containerTag": "t", "q": "harbour crane", "waitSeq": 21, "waitMs": 30_000}
            found = client.post("/v1/search", json=body)
            assert found.json().get("results"), found.text
    finally:
        assert again.stop() == 0
