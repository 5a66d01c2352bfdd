"""A backup of either engine, taken while it is written to, restores on either engine, as a whole or not at all."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import CorruptError, UsageError, VersionError
from memdir.store.accounts.audit import AuditEvent
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.contents.blobs import INLINE_MAX_BYTES
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Delete, Move, Put
from memdir.store.types import Container
from memdir.store.upkeep.archive import reading
from memdir.store.upkeep.backup import backup, restore
from memdir.store.upkeep.check import Check
from memdir.store.upkeep.engine import DERIVED, PASSING, RUNNING
from tests.server.conftest import AnyStore, Putting
from tests.server.contents import Died
from tests.server.test_check import file_of, run

LARGE = bytes(range(256)) * (INLINE_MAX_BYTES // 256) + b"large"
VOLATILE = {"status", "error", "indexed_hash", "epoch", "profile_version", "org_id"}


@pytest.fixture(params=["sqlite", "postgres"])
def target(request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock) -> Iterator[AnyStore]:
    """An empty store of either engine."""
    folder = tmp_path / "target"
    if request.param == "sqlite":
        store: AnyStore = SqliteStore.open(folder, clock=clock)
        yield store
        store.close()
        return
    with request.getfixturevalue("postgres").database() as url:
        store = PostgresStore.open(url, folder, clock=clock, acting=SYSTEM)
        yield store
        store.close()


@pytest.fixture
def filled(store: AnyStore, container: Container, put: Putting) -> AnyStore:
    """A store with something in every table that is backed up."""
    many = []
    for number in range(520):  # more than a page
        with store.blobs.upload() as upload:
            upload.write(b"%d" % (number % 50))
            many.append(Put(path=f"/many/{number}", blob=upload.finish()))
    store.files.apply_all(container, many)
    put("/large", LARGE)
    put("/copy", LARGE)
    put("/large", LARGE + b"2")
    put("/empty", b"")
    put(None, b"no place", custom_id="mine", metadata={"tag": "ü", "n": 1.5})
    put("/link", b"target", kind="symlink")
    store.files.apply(container, Put(path="/folder", kind="dir", mode=0o700))
    store.files.apply(container, Move(from_path="/copy", path="/moved"))
    store.files.apply(container, Delete(path="/many/7"))
    other = store.containers.ensure("other", "notes")
    with acting_as("other"), store.blobs.upload() as upload:
        upload.write(LARGE)
        store.files.apply(other, Put(path="/theirs", blob=upload.finish()))
    store.keys.create(org_id="local", name="key")
    store.audit.add(
        [
            AuditEvent(
                at_ms=1, org_id="local", user_id=None, key_id="k", action="read", call="GET /", container=None, target=None,
                status=200, request_id="r", address="::1",
            )
        ]
    )  # fmt: skip
    run(
        store,
        "insert into memory (id, container_id, root_id, version, kind, subject, text, confidence, created_at_ms, updated_at_ms"
        + (", org_id" if isinstance(store, PostgresStore) else "")
        + f") values ('m', {container.id}, 'm', 1, 'static', 's', 'likes ümlauts', 0.5, 1, 1"
        + (", 'local')" if isinstance(store, PostgresStore) else ")"),
    )
    return store


def rows_of(store: AnyStore) -> dict[str, list[dict[str, Any]]]:
    """All that a backup holds, without what a restore changes on purpose."""
    found = {}
    for table in store.upkeep().tables():
        if table.name in DERIVED | PASSING | RUNNING | {"blob"}:
            continue
        with store.upkeep().reading() as reader:
            rows = list(reader.execute(f"select {', '.join(table.columns)} from {table.name} order by {', '.join(table.key)}"))
        found[table.name] = [
            {column: value for column, value in zip(table.columns, row, strict=True) if column not in VOLATILE} for row in rows
        ]
    return found


@pytest.mark.promise("store.backup")
def test_everything_comes_back_on_either_engine(filled: AnyStore, target: AnyStore, tmp_path: Path) -> None:
    before = rows_of(filled)
    epochs = {container.tag: container.epoch for container in filled.containers.all("local")}
    done = backup(filled, tmp_path / "b.zip")
    assert (tmp_path / "b.zip").stat().st_mode & 0o777 == 0o600
    assert (done.contents, done.missing) == (2, [])
    restored = restore(target, tmp_path / "b.zip")
    assert (restored.containers, restored.documents) == (2, len(before["document"]))
    assert rows_of(target) == before
    assert list(Check(target).findings(deep=True)) == []
    for tag, epoch in epochs.items():
        assert target.containers.get("local", tag).epoch != epoch
    queued = target.upkeep().reading
    with queued() as reader:
        ((count,),) = list(reader.execute("select count(*) from job where kind = 'index'"))
    assert count == sum(row["kind"] == "file" for row in before["document"])
    notes = target.containers.get("local", "notes")
    with target.blobs.upload() as upload:
        upload.write(b"after")
        outcome = target.files.apply(notes, Put(path="/after", blob=upload.finish()))
    assert outcome.seq == notes.last_seq + 1
    fresh = target.containers.ensure("local", "fresh")
    assert fresh.id > max(row["id"] for row in before["container"])
    target.files.apply(notes, Delete(path="/large"))
    assert list(Check(target).findings()) == []


def test_a_store_that_holds_something_is_replaced_only_by_force(
    filled: AnyStore, target: AnyStore, tmp_path: Path, clock: FakeClock
) -> None:
    backup(filled, tmp_path / "b.zip")
    old = target.containers.ensure("local", "old")
    with target.blobs.upload() as upload:
        upload.write(LARGE + b"old")
        target.files.apply(old, Put(path="/old", blob=upload.finish()))
    with pytest.raises(UsageError, match="1 containers already"):
        restore(target, tmp_path / "b.zip")
    assert target.documents.at(old.id, "/old") is not None
    restore(target, tmp_path / "b.zip", force=True)
    restore(target, tmp_path / "b.zip", force=True)
    assert rows_of(target) == rows_of(filled)
    while target.blobs.collect():
        pass
    assert list(Check(target).findings(deep=True)) == []
    places = {stored.place for stored in target.blobs.contents.all()}
    with target.upkeep().reading() as reader:
        assert places == {row[0] for row in reader.execute("select place from blob where place is not null")}


@pytest.mark.promise("store.backup")
def test_a_backup_under_load_is_one_moment_with_all_that_was_acknowledged_before(
    store: AnyStore, container: Container, target: AnyStore, tmp_path: Path
) -> None:
    store.containers.change_settings(container.id, {"versionsMaxCount": 0})
    container = store.containers.get("local", "notes")
    acknowledged: list[str] = []
    ended = threading.Event()
    moving = threading.Event()

    def write(name: str) -> None:
        number = 0
        while not ended.is_set():
            path, content = f"/{name}/{number}", b"%s %d" % (name.encode(), number)
            if number % 5 == 0:
                content *= 1 + INLINE_MAX_BYTES // len(content)
            with store.blobs.upload() as upload:
                upload.write(content)
                store.files.apply(container, Put(path=path, blob=upload.finish()))
            acknowledged.append(path)
            if number % 5 == 0:  # contents come and go, while the backup reads
                with store.blobs.upload() as upload:
                    upload.write(content + b"!")
                    store.files.apply(container, Put(path=f"/{name}/passing", blob=upload.finish()))
            number += 1
            if number > 10:
                moving.set()

    def act(name: str) -> None:
        with acting_as(SYSTEM):
            write(name)

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(act, name) for name in "abc"]
        try:
            assert moving.wait(60)
            for attempt in range(3):
                before = list(acknowledged)
                done = backup(store, tmp_path / f"{attempt}.zip")
                assert done.missing == []
        finally:
            ended.set()
        for writer in writers:
            writer.result(timeout=60)
    restore(target, tmp_path / "2.zip")
    assert list(Check(target).findings(deep=True)) == []
    restored = target.containers.get("local", "notes")
    assert all(target.documents.at(restored.id, path) is not None for path in before)
    assert list(Check(store).findings(deep=True)) == []


def test_a_restore_that_is_killed_has_not_happened(store: AnyStore, container: Container, put: Putting, tmp_path: Path) -> None:
    """It dies at every moment at which it says how far it is, in the transaction and before."""
    put("/a", LARGE)
    put("/b", b"small")
    backup(store, tmp_path / "b.zip")
    put("/later", LARGE + b"later")
    before = rows_of(store)
    moment = 0
    while True:
        left = moment

        def tick(_what: str, _done: int) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Died

        try:
            restore(store, tmp_path / "b.zip", force=True, progress=tick)
            break
        except Died:
            done = store.documents.at(container.id, "/later") is None
            assert done or rows_of(store) == before
            assert list(Check(store).findings(deep=True)) == []
            moment += 1
            if done:  # committed, and killed while it cleared up
                break
    assert moment > 5
    assert store.documents.at(container.id, "/later") is None
    assert list(Check(store).findings(deep=True)) == []


def changed(file: Path, at: int) -> None:
    content = bytearray(file.read_bytes())
    content[at] ^= 0xFF
    file.write_bytes(content)


@pytest.mark.parametrize("open_store", ["sqlite"], indirect=True)
def test_an_archive_that_is_damaged_is_refused_and_changes_nothing(
    store: AnyStore, container: Container, put: Putting, tmp_path: Path
) -> None:
    put("/a", LARGE)
    for number in range(40):
        put(f"/{number}", b"%d" % number)
    backup(store, tmp_path / "good.zip")
    good = (tmp_path / "good.zip").read_bytes()
    before = rows_of(store)
    refused = 0
    for at in [*range(40, len(good), len(good) // 60), len(good) - 10]:
        file = tmp_path / "damaged.zip"
        file.write_bytes(good)
        changed(file, at)
        try:
            restore(store, file, force=True)
        except (CorruptError, VersionError):
            refused += 1
        # What was not refused is a byte that zip itself does not look at: everything that counts was right.
        assert rows_of(store) == before, at
    assert refused > 50
    (tmp_path / "cut.zip").write_bytes(good[: len(good) // 2])
    with pytest.raises(CorruptError, match="not a complete one"):
        restore(store, tmp_path / "cut.zip", force=True)
    (tmp_path / "text.zip").write_text("text")
    with pytest.raises(CorruptError):
        restore(store, tmp_path / "text.zip", force=True)
    assert list(Check(store).findings(deep=True)) == []


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_contents_that_cannot_be_read_are_named_and_the_rest_is_saved(
    store: AnyStore, container: Container, put: Putting, target: AnyStore, tmp_path: Path, damage: str
) -> None:
    put("/lost", LARGE)
    document = put("/kept", b"kept").document
    assert document is not None
    file = file_of(store)
    if damage == "missing":
        file.unlink()
    else:
        changed(file, 5)
    done = backup(store, tmp_path / "b.zip")
    assert len(done.missing) == 1
    with reading(tmp_path / "b.zip") as archive:
        assert archive.manifest.missing == done.missing
    restore(target, tmp_path / "b.zip")
    assert [finding.kind for finding in Check(target).findings()] == ["blob-missing"]
    assert target.blobs.content(document.content_hash) == b"kept"


def test_a_backup_replaces_no_file_and_leaves_no_half_one(
    store: AnyStore, container: Container, put: Putting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("/a", b"a")
    (tmp_path / "there.zip").write_bytes(b"something else")
    with pytest.raises(UsageError, match="exists"):
        backup(store, tmp_path / "there.zip")
    assert (tmp_path / "there.zip").read_bytes() == b"something else"

    def die(_what: str, _done: int) -> None:
        raise Died

    with contextlib.suppress(Died):
        backup(store, tmp_path / "new.zip", progress=die)
    assert sorted(file.name for file in tmp_path.glob("*.zip*")) == ["there.zip"]
    assert store.upkeep() is not None
    with store.upkeep().reading() as reader:
        assert list(reader.execute("select * from blob_hold")) == []
