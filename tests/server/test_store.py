"""Blobs, history under threads, idempotency, jobs, keys, settings."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import CorruptError, NotFoundError
from memdir.store.contents.blobs import INLINE_MAX_BYTES
from memdir.store.errors import IdempotencyError, InvalidError
from memdir.store.jobs.queue import ATTEMPTS_MAX, BULK, INTERACTIVE, LEASE_MS
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import EVERY_CONTAINER
from memdir.store.tree import idempotency
from memdir.store.tree.operations import Delete, Move, Outcome, Put
from memdir.store.types import Container, Scope
from tests.server.conftest import AnyStore, Putting

pytestmark = pytest.mark.promise("store.one-contract")

BIG = b"B" * (INLINE_MAX_BYTES + 1)


def files_of(store: AnyStore) -> list[Path]:
    return [path for name in ("blobs", "tmp") for path in (store.folder / name).rglob("*") if path.is_file()]


@pytest.mark.parametrize("size", [0, 1, INLINE_MAX_BYTES, INLINE_MAX_BYTES + 1, 3 * 1024 * 1024 + 7])
def test_bytes_come_back_exactly_whatever_their_size(store: AnyStore, put: Putting, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + bytes(range(size % 256))
    document = put("/f", content).document
    assert document is not None
    assert document.size_bytes == size
    assert store.blobs.content(document.content_hash) == content
    assert len(files_of(store)) == (1 if size > INLINE_MAX_BYTES else 0)


def test_a_large_blob_is_one_file_and_goes_with_its_last_reference(store: AnyStore, container: Container, put: Putting) -> None:
    store.containers.change_settings(container.id, {"versionsMaxCount": 0})
    container = store.containers.get("local", "notes")
    for path in ("/a", "/b", "/b"):
        put(path, BIG)
    assert len(files_of(store)) == 1
    with store.blobs.upload() as upload:
        upload.write(b"small")
        store.files.apply(container, Put(path="/a", blob=upload.finish()))
    assert len(files_of(store)) == 1
    store.files.apply(container, Delete(path="/b"))
    assert files_of(store) == []
    assert store.db.all("select size_bytes, ref_count from blob") == [(5, 1)]


def test_a_refused_upload_leaves_no_file(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a/b")
    for path in ("/a", "/../x"):
        with pytest.raises(Exception, match=r"folder|component"):
            put(path, BIG)
    assert files_of(store) == []
    assert store.db.all("select count(*) from blob") == [(1,)]


def test_a_failed_transaction_takes_its_large_file_back(
    store: AnyStore, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("memdir.store.tree.changes.add_put", full)
    with pytest.raises(OSError, match="No space"):
        put("/a", BIG)
    assert files_of(store) == []
    assert store.db.all("select count(*) from document") == [(0,)]


def test_a_reader_goes_on_while_the_file_is_deleted(store: AnyStore, container: Container, put: Putting) -> None:
    content = BIG * 8
    document = put("/a", content).document
    assert document is not None
    pieces = store.blobs.pieces(document.content_hash)
    first = next(pieces)
    store.files.apply(container, Delete(path="/a", purge=True))
    assert first + b"".join(pieces) == content
    with pytest.raises(NotFoundError):
        store.blobs.pieces(document.content_hash)


def test_a_missing_or_short_file_is_called_corrupt(store: AnyStore, put: Putting) -> None:
    document = put("/a", BIG).document
    assert document is not None
    (file,) = files_of(store)
    file.write_bytes(b"short")
    with pytest.raises(CorruptError):
        store.blobs.content(document.content_hash)
    file.unlink()
    with pytest.raises(CorruptError):
        store.blobs.content(document.content_hash)


def test_recovery_removes_what_a_crash_left_and_nothing_else(store: AnyStore, put: Putting) -> None:
    document = put("/a", BIG).document
    assert document is not None
    orphan = store.folder / "blobs" / "ff" / ("ff" + "0" * 62)
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"no row")
    (store.folder / "tmp" / "half.part").write_bytes(BIG)
    assert len(files_of(store)) == 3
    store.blobs.recover()
    (left,) = files_of(store)
    assert left.name.startswith(document.content_hash)


def test_a_deleted_document_leaves_no_byte_in_the_database_files(tmp_path: Path) -> None:
    """SQLite only: PostgreSQL keeps dead rows until it vacuums (docs/server-postgres.md)."""
    store = SqliteStore.open(tmp_path)
    canary = b"CANARY-7f3a9c-and-nothing-else"
    container = store.containers.ensure("local", "notes")
    with store.blobs.upload() as upload:
        upload.write(canary * 50)
        store.files.apply(container, Put(path="/secret.md", blob=upload.finish()))
    store.files.apply(container, Delete(path="/secret.md", purge=True))
    store.db.checkpoint()
    files = [file.read_bytes() for file in store.folder.rglob("*") if file.is_file()]
    store.close()
    assert files
    assert not any(canary in content for content in files)


def test_threads_that_write_together_make_a_feed_without_gaps(store: AnyStore, container: Container, put: Putting) -> None:
    def write(worker: int) -> None:
        for number in range(25):
            put(f"/{worker}/{number % 5}", f"{worker} {number}".encode())
            if number % 5 == 4:
                store.files.apply(container, Delete(path=f"/{worker}/{number % 5}"))

    with ThreadPoolExecutor(6) as pool:
        for done in [pool.submit(write, worker) for worker in range(6)]:
            done.result(timeout=60)
    feed = store.changes.since(container.id, 0, limit=1000)
    assert feed is not None
    assert [row.seq for row in feed.rows] == list(range(1, 6 * 30 + 1))
    assert feed.last_seq == 6 * 30


def test_the_feed_comes_in_pages_from_any_number(store: AnyStore, container: Container, put: Putting) -> None:
    for number in range(5):
        put(f"/{number}")
    feed = store.changes.since(container.id, 2, limit=2)
    assert feed is not None
    assert ([row.seq for row in feed.rows], feed.last_seq) == ([3, 4], 5)
    ahead = store.changes.since(container.id, 99, limit=2)
    assert ahead is not None
    assert (ahead.rows, ahead.last_seq) == ([], 5)


def test_a_put_in_the_feed_is_the_entry_as_it_was(store: AnyStore, container: Container, put: Putting) -> None:
    first, second = put("/a", b"1").document, put("/a", b"22").document
    assert first is not None
    assert second is not None
    feed = store.changes.since(container.id, 0, limit=10)
    assert feed is not None
    entries = [row.entry for row in feed.rows]
    assert [(e.content_hash, e.size_bytes, e.document_id) for e in entries if e] == [
        (first.content_hash, 1, first.id),
        (second.content_hash, 2, first.id),
    ]


def test_the_same_key_gives_the_recorded_answer_and_changes_nothing(
    store: AnyStore, container: Container, put: Putting
) -> None:
    first = put("/a", b"1", idempotency_key="k")
    put("/a", b"2")
    again = put("/a", b"1", idempotency_key="k")
    assert again == first
    found = store.documents.at(container.id, "/a")
    assert found is not None
    assert store.blobs.content(found.content_hash) == b"2"
    moved = store.files.apply(container, Move(from_path="/a", path="/b", idempotency_key="m"))
    assert store.files.apply(container, Move(from_path="/a", path="/b", idempotency_key="m")) == moved
    deleted = store.files.apply(container, Delete(path="/b", idempotency_key="d"))
    assert store.files.apply(container, Delete(path="/b", idempotency_key="d")) == deleted
    feed = store.changes.since(container.id, 0, limit=10)
    assert feed is not None
    assert [row.kind for row in feed.rows] == ["put", "put", "move", "delete"]


def test_a_key_of_another_request_is_refused_and_a_failure_is_not_remembered(
    store: AnyStore, container: Container, put: Putting
) -> None:
    put("/a", b"1", idempotency_key="k")
    with pytest.raises(IdempotencyError):
        put("/a", b"2", idempotency_key="k")
    with pytest.raises(NotFoundError):
        store.files.apply(container, Delete(path="/later", idempotency_key="d"))
    put("/later")
    assert store.files.apply(container, Delete(path="/later", idempotency_key="d")).count == 1
    with pytest.raises(InvalidError):
        put("/b", idempotency_key="k" * 201)


def test_a_wanted_id_that_another_document_has_changes_none_of_it(store: AnyStore, container: Container) -> None:
    """As by a key of idempotency that is used again once its answer is forgotten."""

    def add(where: Container, content: bytes, custom_id: str | None = None) -> str:
        with store.blobs.upload() as upload:
            upload.write(content)
            put = Put(path=None, blob=upload.finish(), new_id="WANTED", custom_id=custom_id)
        outcome = store.files.apply(where, put)
        assert outcome.document is not None
        assert store.blobs.content(outcome.document.content_hash) == content
        return outcome.document.id

    other = store.containers.ensure("local", "elsewhere")
    assert add(container, b"first") == "WANTED"
    assert add(container, b"put again") == "WANTED"
    ids = {add(other, b"second"), add(container, b"third", custom_id="own"), add(other, b"fourth", custom_id="own")}
    assert len(ids | {"WANTED"}) == 4
    kept = store.documents.get("WANTED")
    assert kept is not None
    assert (kept.container_id, store.blobs.content(kept.content_hash)) == (container.id, b"put again")


def test_keys_are_forgotten_after_a_day_and_when_there_are_too_many(
    store: AnyStore, put: Putting, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    put("/a", b"1", idempotency_key="old")
    clock.advance(24 * 3600 + 1)
    assert put("/a", b"1", idempotency_key="old").seq == 2
    monkeypatch.setattr(idempotency, "ROWS_MAX", 5)
    monkeypatch.setattr(idempotency, "_COUNT_EVERY", 1)
    store.files._idempotency._until_count = 0
    for number in range(20):
        clock.advance(1)
        put("/a", b"1", idempotency_key=f"k{number}")
    kept = [row[0] for row in store.db.all("select key from idempotency order by at_ms")]
    assert kept == [f"k{number}" for number in range(15, 20)]


def test_edits_overtake_imports_and_older_work_goes_first(store: AnyStore, put: Putting, clock: FakeClock) -> None:
    names: dict[str, str] = {}
    for path, priority in (("/bulk1", BULK), ("/bulk2", BULK), ("/edit1", INTERACTIVE), ("/edit2", INTERACTIVE)):
        document = put(path, priority=priority).document
        assert document is not None
        names[document.id] = path
        clock.advance(1)
    assert [names[job.document_id] for job in store.jobs.claim("index", priority_max=INTERACTIVE, limit=9)] == [
        "/edit1",
        "/edit2",
    ]
    assert [names[job.document_id] for job in store.jobs.claim("index", limit=9)] == ["/bulk1", "/bulk2"]
    assert store.jobs.claim("index") == []


def test_a_newer_revision_outlives_the_end_of_the_older_work(store: AnyStore, put: Putting) -> None:
    put("/a", b"1")
    (job,) = store.jobs.claim("index")
    put("/a", b"2")
    store.jobs.finish([job])
    (again,) = store.jobs.claim("index")
    assert again.generation == job.generation + 1
    store.jobs.finish([again])
    assert store.jobs.count() == 0


def test_failing_work_waits_longer_each_time_and_is_given_up(store: AnyStore, put: Putting, clock: FakeClock) -> None:
    put("/a")
    waits = []
    for attempt in range(ATTEMPTS_MAX):
        (job,) = store.jobs.claim("index")
        assert job.attempts == attempt
        given_up = store.jobs.fail(job, "it broke")
        assert given_up == (attempt == ATTEMPTS_MAX - 1)
        if not given_up:
            assert store.jobs.claim("index") == []
            pause_s = store.jobs.due_s([("index", INTERACTIVE), ("index", BULK)])["index", INTERACTIVE]
            waits.append(pause_s)
            clock.advance(pause_s + 0.001)  # seconds as floats may end a millisecond early
    assert all(0 < wait <= bound for wait, bound in zip(waits, (0.5, 1.0, 2.0, 4.0), strict=True))
    assert (store.jobs.count(), store.jobs.claim("index")) == (0, [])


def test_a_lease_ends_by_itself_or_when_all_are_released(store: AnyStore, put: Putting, clock: FakeClock) -> None:
    put("/a")
    assert len(store.jobs.claim("index")) == 1
    assert store.jobs.claim("index") == []
    clock.advance(LEASE_MS / 1000)
    assert len(store.jobs.claim("index")) == 1
    assert store.jobs.release_all() == 1
    assert len(store.jobs.claim("index")) == 1


def test_a_deleted_document_takes_its_work_along(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a")
    (job,) = store.jobs.claim("index")
    store.files.apply(container, Delete(path="/a"))
    assert store.jobs.count() == 0
    assert store.jobs.fail(job, "it broke") is False
    store.jobs.finish([job])


def test_what_is_not_searchable_yet_is_known_by_scope_and_revision(store: AnyStore, container: Container, put: Putting) -> None:
    for path in ("/a/1", "/a/2", "/ab", "/b"):
        put(path)
    assert store.documents.not_searchable(Scope(container_id=container.id)) == ["/a/1", "/a/2", "/ab", "/b"]
    assert store.documents.not_searchable(Scope(container_id=container.id, folder="/a")) == ["/a/1", "/a/2"]
    assert store.documents.not_searchable(Scope(container_id=container.id, folder="/a/2", exact=True)) == ["/a/2"]
    assert store.documents.not_searchable(Scope(container_id=container.id), up_to_revision=1) == ["/a/1"]


@pytest.mark.promise("parts.keys")
def test_a_key_is_known_by_its_secret_until_it_is_revoked(store: AnyStore) -> None:
    key, secret = store.keys.create(org_id="local", name="test", containers=("a",), actions=("read",))
    assert store.keys.authenticate(secret) == key
    assert store.keys.authenticate(secret[:-1]) is None
    assert store.keys.authenticate(secret + "\udcff") is None
    assert (key.allows("read", "a"), key.allows("read", "b"), key.allows("write", "a")) == (True, False, False)
    assert secret not in repr(store.db.all("select * from api_key"))
    assert store.keys.revoke(key.id)
    assert store.keys.authenticate(secret) is None
    assert not store.keys.revoke(key.id)


@pytest.mark.parametrize("tag", ["", ".", "..", "a/b", "a b", "a\0", "x" * 101, "a\n", "<b>"])
def test_a_name_that_cannot_be_a_container_is_refused(store: AnyStore, tag: str) -> None:
    with pytest.raises(InvalidError):
        store.containers.ensure("local", tag)


def test_a_container_that_comes_again_is_another_life(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a", BIG)
    store.files.delete_container(container)
    assert files_of(store) == []
    assert store.db.all(
        "select count(*) from document union all select count(*) from change union all select count(*) from job"
    ) == [
        (0,),
        (0,),
        (0,),
    ]
    reborn = store.containers.ensure("local", container.tag)
    assert (reborn.id > container.id, reborn.epoch != container.epoch, reborn.last_seq) == (True, True, 0)
    with pytest.raises(NotFoundError):
        put("/late")


def test_memory_paths_are_checked_and_kept(store: AnyStore, container: Container) -> None:
    assert container.memory_paths == ("/memory/", "/user/", "/memory.md", "/user.md")
    store.containers.change_settings(container.id, {"memoryFilesystemPaths": ["/facts/", "/facts/", "/me.md"], "color": "red"})
    changed = store.containers.get("local", container.tag)
    assert changed.memory_paths == ("/facts/", "/me.md")
    assert store.containers.settings(container.id)["color"] == "red"
    for wrong in (["relative"], ["/../x"], "text", [1], ["/a"] * 300):
        with pytest.raises(InvalidError):
            store.containers.change_settings(container.id, {"memoryFilesystemPaths": wrong})
    store.containers.change_settings(container.id, {"memoryFilesystemPaths": []})
    assert store.containers.get("local", container.tag).memory_paths == ()


def test_listeners_hear_of_commits_and_not_of_refusals(store: AnyStore, container: Container, put: Putting) -> None:
    heard: list[int] = []
    store.listen(heard.append)
    put("/a")
    with pytest.raises(NotFoundError):
        store.files.apply(container, Delete(path="/b"))
    results = store.files.apply_all(container, [Put(path="/d", kind="dir"), Delete(path="/b")])
    assert isinstance(results[0], Outcome)
    assert [container_id for container_id in heard if container_id != EVERY_CONTAINER] == [container.id, container.id]
