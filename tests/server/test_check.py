"""Every kind of damage that a store can have is planted, found, and repaired where that invents nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import MemdirError
from memdir.store.contents.blobs import INLINE_MAX_BYTES
from memdir.store.errors import HistoryForkedError, HistoryGoneError
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Delete, Move
from memdir.store.types import Container
from memdir.store.upkeep.check import Check
from memdir.store.upkeep.engine import BLOB_HOLDERS
from tests.server.conftest import AnyStore, Putting

LARGE = b"L" * (INLINE_MAX_BYTES + 1)
Damage = Callable[[AnyStore], None]


@pytest.fixture
def filled(store: AnyStore, container: Container, put: Putting) -> AnyStore:
    """A store with one of everything, all work done."""
    for number in range(5):
        put(f"/d/{number}.md", b"note %d" % number)
    put("/large", LARGE)
    put("/copy", LARGE)
    put("/empty", b"")
    put(None, b"without a place")
    put("/d/0.md", b"changed")
    store.files.apply(container, Move(from_path="/d", path="/e"))
    store.files.apply(container, Delete(path="/e/4.md"))
    with store.db.write() as connection:
        connection.execute("delete from job")
        connection.execute("update document set status = 'done', indexed_hash = content_hash")
    if isinstance(store, SqliteStore):
        run(
            store,
            "insert into chunk (document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, end_line, "
            "text, context, text_hash) select id, container_id, revision, 0, 0, 4, 1, 1, 'note', '', x'00' "
            "from document where path = '/e/1.md'",
            "insert into vector_model values (1, 'one'), (2, 'other')",
            "insert into chunk_vector (model_id, chunk_id, vector) select 1, id, x'0000' from chunk",
        )
    assert list(Check(store).findings(deep=True)) == []
    return store


def run(store: AnyStore, *statements: str) -> None:
    """Damage: statements that no code of ours would run, with nothing that keeps the rules."""
    if isinstance(store, PostgresStore):
        with psycopg.connect(store._url, autocommit=True) as superuser:
            superuser.execute(
                "set session_replication_role = replica; set search_path = memdir, public; set row_security = off"
            )
            for statement in statements:
                superuser.execute(statement.encode())
        return
    with store.db._lock:
        store.db._writer.execute("pragma foreign_keys=off")
        for statement in statements:
            store.db._writer.execute(statement)
        store.db._writer.execute("pragma foreign_keys=on")


def sql(*statements: str) -> Damage:
    return lambda store: run(store, *statements)


def file_of(store: AnyStore) -> Path:
    (file,) = [file for file in (store.folder / "blobs").rglob("*") if file.is_file()]
    return file


def unlink(store: AnyStore) -> None:
    file_of(store).unlink()


def shorten(store: AnyStore) -> None:
    os.truncate(file_of(store), 7)


def flip(store: AnyStore) -> None:
    with file_of(store).open("r+b") as file:
        file.write(b"X")


def leave(store: AnyStore) -> None:
    file = store.folder / "blobs" / "ab" / ("ab" * 32 + ".left")
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(LARGE)
    os.utime(file, (1, 1))


ONE = "(select content_hash from document where path = '/e/1.md')"
JOB = "insert into job (document_id, kind, container_id, priority, not_before_ms, created_at_ms) values "
MEMORY = (
    "insert into memory (id, container_id, root_id, parent_id, relation, version, kind, subject, text, confidence, "
    "created_at_ms, updated_at_ms, ended_by) values "
)
DAMAGE: tuple[tuple[str, Damage, bool], ...] = (
    ("blob-count", sql(f"update blob set ref_count = 7 where hash = {ONE}"), True),
    ("blob-count", sql("update blob set ref_count = 1 where place is not null"), True),
    ("blob-missing", sql(f"delete from blob where hash = {ONE}"), False),
    ("blob-missing", sql("delete from blob where size_bytes = 0"), True),
    ("blob-size", sql("update blob set place = null where place is not null"), False),
    ("contents-missing", unlink, False),
    ("contents-size", shorten, False),
    ("contents-hash", flip, False),
    ("contents-unknown", leave, True),
    ("stuck", sql("update document set status = 'embedding' where path = '/e/1.md'"), True),
    ("stuck", sql("update document set status = 'queued' where path is null"), True),
    ("unindexed", sql("update document set indexed_hash = null where path = '/e/1.md'"), True),
    ("unindexed", sql("update document set indexed_hash = 'other' where path = '/e/1.md'"), True),
    ("history", sql("delete from change where seq = 3"), True),
    ("history", sql("delete from change where seq = 1"), True),
    ("history", sql("delete from change where seq = (select max(seq) from change)"), True),
    ("history", sql("update container set last_seq = last_seq + 1"), True),
    ("revision", sql("update document set revision = 99 where path = '/large'"), True),
    ("tree", sql("update document set path = '/large/below' where path = '/copy'"), False),
    ("reference", sql("delete from container"), True),
)
SQLITE_DAMAGE: tuple[tuple[str, Damage, bool], ...] = (
    ("blob-count", sql("insert into blob (hash, size_bytes, ref_count, data) values ('nobody', 1, 1, x'00')"), True),
    ("blob-size", sql(f"update blob set data = x'00' where hash = {ONE}"), False),
    ("contents-hash", sql(f"update blob set data = zeroblob(length(data)) where hash = {ONE}"), False),
    ("contents-undeleted", sql("insert into blob_trash values ('ab/x', 'x', 1, 'deleting', 1, 9)"), False),
    ("passage", sql("update chunk set document_id = 'gone'"), True),
    ("passage-place", sql("drop trigger chunk_follows_document", "update chunk set container_id = 99"), True),
    (
        "memory",
        sql(
            MEMORY + "('m1', 1, 'm1', null, null, 1, 'static', 's', 't', 1, 0, 0, 'm2')",
            MEMORY + "('m2', 1, 'm1', 'm1', 'updates', 2, 'static', 's', 't', 1, 0, 0, null)",
        ),
        True,
    ),
    ("reference", sql("insert into chunk_vector (model_id, chunk_id, vector) values (1, 99, x'00')"), True),
    ("passage-vector", sql("delete from chunk_vector"), True),
    (
        "passage-lacks",
        sql(
            "insert into chunk (document_id, container_id, revision, ordinal, start_byte, end_byte, start_line, end_line, "
            "text, context, text_hash) "
            "select document_id, container_id, revision, 1, 4, 4, 1, 1, 'more', '', x'01' from chunk",
            "insert into chunk_vector (model_id, chunk_id, vector) select 1, max(id), x'0000' from chunk",
            "insert into chunk_vector (model_id, chunk_id, vector) select 2, min(id), x'0000' from chunk",
        ),
        True,
    ),
    ("job", sql(JOB + "('gone', 'index', 1, 0, 0, 0)"), True),
)
"""Said in SQLite's words, or of tables that are SQLite's own."""


def is_found_and_repaired(store: AnyStore, kind: str, damage: Damage, repairable: bool) -> None:
    damage(store)
    found = list(Check(store).findings(deep=True))
    assert kind in {finding.kind for finding in found}
    assert all(finding.detail for finding in found)
    mended = Check(store).repair(deep=True)
    known = {finding.repaired for finding in mended if finding.kind == kind}
    assert known == {repairable} or (known == set() and mended[0].kind == "reference" and repairable)
    left = list(Check(store).findings(deep=True))
    assert (left == []) is repairable, left


@pytest.mark.promise("store.check")
@pytest.mark.parametrize(("kind", "damage", "repairable"), DAMAGE, ids=[f"{kind}-{n}" for n, (kind, _, _) in enumerate(DAMAGE)])
def test_each_kind_of_damage_is_found_and_repaired_where_nothing_must_be_invented(
    filled: AnyStore, kind: str, damage: Damage, repairable: bool
) -> None:
    is_found_and_repaired(filled, kind, damage, repairable)


@pytest.mark.promise("store.check")
@pytest.mark.parametrize("open_store", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    ("kind", "damage", "repairable"), SQLITE_DAMAGE, ids=[f"{kind}-{n}" for n, (kind, _, _) in enumerate(SQLITE_DAMAGE)]
)
def test_so_is_damage_that_only_sqlite_can_have(filled: AnyStore, kind: str, damage: Damage, repairable: bool) -> None:
    is_found_and_repaired(filled, kind, damage, repairable)


def test_a_repair_of_the_history_begins_a_new_epoch_and_the_feed_says_so(filled: AnyStore, container: Container) -> None:
    before = filled.containers.get("local", "notes")
    run(filled, "delete from change where seq = 3")
    Check(filled).repair()
    after = filled.containers.get("local", "notes")
    assert after.epoch != before.epoch
    assert after.last_seq == before.last_seq
    with pytest.raises(MemdirError, match="told from number"):
        filled.changes.since(container.id, 2, limit=10)
    feed = filled.changes.since(container.id, after.last_seq, limit=10)
    assert feed is not None
    assert (feed.epoch, feed.rows) == (after.epoch, [])


def test_history_is_pruned_by_age_from_its_beginning(
    store: AnyStore, container: Container, put: Putting, clock: FakeClock
) -> None:
    put("/a")
    put("/b")
    clock.advance(100)
    put("/c")
    now_ms = clock.now_ns() // 1_000_000
    assert store.changes.prune(container.id, before_ms=now_ms - 50_000) == 2
    assert store.changes.prune(container.id, before_ms=now_ms - 50_000) == 0
    for since in (0, 1):
        if since + 1 < 3:
            with pytest.raises(MemdirError, match="told from number 3"):
                store.changes.since(container.id, since, limit=10)
    feed = store.changes.since(container.id, 2, limit=10)
    assert feed is not None
    assert [row.path for row in feed.rows] == ["/c"]
    assert [finding for finding in Check(store).findings() if finding.kind == "history"] == []
    assert store.changes.prune(container.id, before_ms=now_ms + 1) == 0, "the last change stays, its token is what clients know"
    with pytest.raises(HistoryForkedError, match="another one"):
        store.changes.since(container.id, 3, limit=10, token="from another life")
    with pytest.raises(HistoryGoneError, match="not told any more"):
        store.changes.since(container.id, 2, limit=10, token=feed.last_token)
    known = store.changes.since(container.id, 3, limit=10, token=feed.last_token)
    assert known is not None
    assert known.rows == []


def test_a_delete_while_contents_are_listed_is_no_damage(
    filled: AnyStore, container: Container, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The listing is read first, rows come and go meanwhile."""
    everything = filled.blobs.contents.all

    def listed_and_deleted() -> object:
        stored = list(everything())
        for path in ("/large", "/copy"):
            filled.files.apply(container, Delete(path=path))
        return iter(stored)

    monkeypatch.setattr(filled.blobs.contents, "all", listed_and_deleted)
    assert list(Check(filled)._contents()) == []


def test_every_table_that_names_a_content_is_known_to_hold_it_or_not_to(store: AnyStore) -> None:
    naming = {table.name for table in store.upkeep().tables() if "content_hash" in table.columns}
    assert naming == {*BLOB_HOLDERS, "change", "agent_memory", "extraction"}, "the latter say what was read, and keep nothing"


def test_tables_come_after_those_they_refer_to(store: AnyStore) -> None:
    names = [table.name for table in store.upkeep().tables()]
    assert names.index("container") < names.index("document") < names.index("job")
    by_name = {table.name: table for table in store.upkeep().tables()}
    assert by_name["container"].numbered == "id"
    assert by_name["change"].key == ("container_id", "seq")
    assert by_name["api_key"].bytes_columns == {"secret_hash"}
