"""Contents by reference count: none that is referred to is lost, none that is not stays, whoever dies when."""

from __future__ import annotations

import contextlib
import os
import random
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.core.errors import BusyError, NotFoundError, StorageError
from memdir.store.acting import SYSTEM
from memdir.store.contents import blobs as blobs_module
from memdir.store.contents.backends import Contents, DiskContents
from memdir.store.contents.blob_trash import HOLD_MS, LEASE_MS, PENDING_MS
from memdir.store.contents.blobs import BlobStore, StagedBlob
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import Store
from memdir.store.tree.operations import Delete, Put
from memdir.store.types import Container
from tests.server.conftest import AnyStore
from tests.server.contents import Died, Life, MortalContents, MortalDatabase, new_bucket, s3_server

LARGE = 64


@pytest.fixture(autouse=True)
def _small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Contents above a few bytes go to the store of contents, so that the tests stay quick."""
    monkeypatch.setattr(blobs_module, "INLINE_MAX_BYTES", LARGE - 1)


def unversioned(store: Store) -> Container:
    """A container that keeps no former contents, so that the last reference goes with the document."""
    made = store.containers.ensure("local", "t")
    store.containers.change_settings(made.id, {"versionsMaxCount": 0})
    return store.containers.get("local", "t")


@pytest.fixture
def container(store: Store) -> Container:
    return unversioned(store)


def large(letter: str) -> bytes:
    return letter.encode() * LARGE


def put(store: Store, container: Container, path: str, content: bytes) -> None:
    with store.blobs.upload() as upload:
        upload.write(content)
        store.files.apply(container, Put(path=path, blob=upload.finish()))


def delete(store: Store, container: Container, path: str) -> None:
    store.files.apply(container, Delete(path=path))


def is_whole(store: AnyStore) -> None:
    """Every document has its bytes, and there are no others, neither rows nor contents."""
    hashes = [row[0] for row in store.db.all("select content_hash from document where kind <> 'dir'")]
    for content_hash in hashes:
        store.blobs.content(content_hash)
    counted = {content_hash: hashes.count(content_hash) for content_hash in hashes}
    assert dict(store.db.all("select hash, ref_count from blob")) == counted
    places = {row[0] for row in store.db.all("select place from blob where place is not null")}
    assert {stored.place for stored in store.blobs.contents.all()} == places
    assert store.db.all("select * from blob_trash") == []


def settle(store: SqliteStore, clock: FakeClock) -> None:
    """What the collectors of processes that live do, once every lease has ended."""
    clock.advance(max(PENDING_MS, LEASE_MS, HOLD_MS) / 1000 + 1)
    while store.blobs.collect():
        pass


def workload(store: Store, container: Container) -> None:
    """Every way in which a large content comes and goes."""
    put(store, container, "/a", large("a"))
    put(store, container, "/b", large("a"))
    put(store, container, "/a", large("c"))
    put(store, container, "/b", b"small")
    put(store, container, "/b", large("a"))
    delete(store, container, "/a")
    put(store, container, "/d/e", large("e"))
    put(store, container, "/d/f", large("f"))
    with pytest.raises(Exception, match="folder"):
        put(store, container, "/d", large("g"))
    store.files.apply(container, Delete(path="/d", recursive=True))


def mortal(folder: Path, clock: FakeClock, life: Life) -> tuple[SqliteStore, Store, Container]:
    """A store whose process dies at a moment of `life`; the sound one below it closes the files."""
    sound = SqliteStore.open(folder, clock=clock)
    container = unversioned(sound)
    dying = SqliteStore.__new__(SqliteStore)
    db = MortalDatabase(sound.db, life)
    blobs = BlobStore(db, folder, contents=MortalContents(sound.blobs.contents, life), clock=clock)
    Store.__init__(dying, db, blobs, clock)
    return sound, dying, container


def test_a_process_may_die_at_any_moment(tmp_path: Path) -> None:
    moments = 0
    while True:
        clock, life = FakeClock(), Life(moments)
        sound, dying, container = mortal(tmp_path / str(moments), clock, life)
        with contextlib.suppress(Died):
            workload(dying, container)
        sound.close()
        again = SqliteStore.open(tmp_path / str(moments), clock=clock)
        settle(again, clock)
        is_whole(again)
        put(again, again.containers.get("local", "t"), "/new", large("a"))
        again.close()
        if not life.dead:
            break
        moments += 1
    assert moments > 100


def test_the_only_process_clears_up_at_its_start(tmp_path: Path) -> None:
    for moments in range(0, 100, 7):
        clock, life = FakeClock(), Life(moments)
        sound, dying, container = mortal(tmp_path / str(moments), clock, life)
        with contextlib.suppress(Died):
            workload(dying, container)
        assert life.dead
        sound.close()
        again = SqliteStore.open(tmp_path / str(moments), clock=clock)
        again.recover()
        is_whole(again)
        assert not list((again.folder / "tmp").iterdir())
        again.close()


@pytest.mark.parametrize("kind", ["disk", "s3", "postgres"])
def test_many_processes_add_drop_and_collect_the_same_contents_at_once(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Four writers and two collectors, each with connections of its own as another process would have, over three contents."""
    with _contents(kind, monkeypatch) as url:
        database = request.getfixturevalue("database_url") if kind == "postgres" else None
        opened = [_open(tmp_path, url, database) for _ in range(6)]
        container = unversioned(opened[0])
        ended = threading.Event()

        def write(store: AnyStore, seed: int) -> int:
            chance, refused = random.Random(seed), 0
            for _ in range(15 if kind == "s3" else 60):
                path = f"/{chance.randrange(3)}"
                try:
                    if chance.random() < 0.5:
                        put(store, container, path, large(chance.choice("xyz")))
                    else:
                        delete(store, container, path)
                except NotFoundError:
                    pass
                except BusyError:
                    refused += 1
            return refused

        def collect(store: AnyStore) -> None:
            while not ended.is_set():
                if not store.blobs.collect():
                    ended.wait(0.001)

        with ThreadPoolExecutor(6) as pool:
            collectors = [pool.submit(collect, store) for store in opened[4:]]
            writers = [pool.submit(write, store, seed) for seed, store in enumerate(opened[:4])]
            try:
                refused = sum(writer.result(timeout=150) for writer in writers)
            finally:
                ended.set()
            for collector in collectors:
                collector.result(timeout=30)
        while opened[0].blobs.collect():
            pass
        is_whole(opened[0])
        assert refused < 60
        for store in opened:
            store.close()


def _open(folder: Path, url: str | None, database: str | None) -> AnyStore:
    from memdir.store.contents.choice import open_contents

    contents = open_contents(url, folder / "server" / "blobs")
    if database is None:
        store: AnyStore = SqliteStore.open(folder / "server", contents=contents)
    else:
        store = PostgresStore.open(database, folder / "server", contents=contents, acting=SYSTEM)
    store.blobs.collect_with(lambda: None)
    return store


class _contents:
    """The URL of an empty store of contents while the block lasts."""

    def __init__(self, kind: str, patch: pytest.MonkeyPatch) -> None:
        self._server = s3_server() if kind == "s3" else None
        self._patch = patch

    def __enter__(self) -> str | None:
        if self._server is None:
            return None
        new_bucket(self._server.__enter__(), "trash", self._patch)
        return "s3://trash/memdir"

    def __exit__(self, *trouble: object) -> None:
        if self._server is not None:
            self._server.__exit__(None, None, None)


def staged(store: SqliteStore, content: bytes) -> StagedBlob:
    upload = store.blobs.upload()
    upload.write(content)
    return upload.finish()


def test_the_last_reference_may_go_between_the_upload_and_its_commit(
    store: SqliteStore, container: Container, clock: FakeClock
) -> None:
    put(store, container, "/a", large("a"))
    waiting = staged(store, large("a"))
    assert waiting.place is None, "the bytes are known, nothing had to be sent"
    delete(store, container, "/a")
    with pytest.raises(BusyError, match="deleted while it was sent"):
        store.files.apply(container, Put(path="/b", blob=waiting))
    put(store, container, "/b", large("a"))
    is_whole(store)


def test_a_content_that_loses_its_last_reference_in_the_same_transaction_is_brought_back(
    store: SqliteStore, container: Container
) -> None:
    put(store, container, "/a", large("a"))
    again = staged(store, large("a"))
    store.files.apply_all(container, [Delete(path="/a"), Put(path="/b", blob=again)], together=True)
    is_whole(store)
    assert len(list(store.blobs.contents.all())) == 1


def test_an_upload_that_was_cleared_away_is_refused_and_can_be_sent_again(
    store: SqliteStore, container: Container, clock: FakeClock
) -> None:
    late = staged(store, large("a"))
    assert store.blobs.collect() == 0
    clock.advance(PENDING_MS / 1000 + 1)
    assert store.blobs.collect() == 1
    with pytest.raises(BusyError, match="too long"):
        store.files.apply(container, Put(path="/a", blob=late))
    assert store.documents.at(container.id, "/a") is None
    put(store, container, "/a", large("a"))
    is_whole(store)


def test_a_hold_keeps_the_bytes_until_it_ends(store: SqliteStore, container: Container, clock: FakeClock) -> None:
    put(store, container, "/a", large("a"))
    content_hash = store.db.all("select hash from blob")[0][0]
    hold = store.blobs.trash.hold()
    delete(store, container, "/a")
    assert len(list(store.blobs.contents.all())) == 1
    clock.advance(HOLD_MS / 1000 - 1)
    store.blobs.trash.hold(hold)
    clock.advance(2)
    assert store.blobs.collect() == 0
    store.blobs.trash.let_go(hold)
    assert store.blobs.collect() == 1
    is_whole(store)
    with pytest.raises(NotFoundError):
        store.blobs.content(content_hash)


def test_a_hold_of_a_process_that_died_ends_by_itself(store: SqliteStore, container: Container, clock: FakeClock) -> None:
    put(store, container, "/a", large("a"))
    store.blobs.trash.hold()
    delete(store, container, "/a")
    assert store.blobs.collect() == 0
    clock.advance(HOLD_MS / 1000 + 1)
    assert store.blobs.collect() == 1


class Refusing(DiskContents):
    """A store of contents that is away for a while."""

    away = True

    def delete(self, places: Sequence[str]) -> None:
        if self.away:
            raise StorageError("the store is away")
        super().delete(places)

    def put(self, place: str, file: Path) -> None:
        if self.away:
            raise StorageError("the store is away")
        super().put(place, file)


@pytest.fixture
def refusing(tmp_path: Path, clock: FakeClock) -> Iterator[tuple[SqliteStore, Refusing]]:
    contents = Refusing(tmp_path / "away")
    store = SqliteStore.open(tmp_path / "server", clock=clock, contents=contents)
    yield store, contents
    store.close()


def test_a_store_of_contents_that_is_away_refuses_puts_and_delays_deletes_only(
    refusing: tuple[SqliteStore, Refusing], clock: FakeClock
) -> None:
    store, contents = refusing
    container = unversioned(store)
    with pytest.raises(StorageError):
        put(store, container, "/a", large("a"))
    assert store.documents.at(container.id, "/a") is None
    contents.away = False
    put(store, container, "/a", large("a"))
    contents.away = True
    delete(store, container, "/a")
    assert store.documents.at(container.id, "/a") is None
    assert store.blobs.trash.count().due > 0
    clock.advance(LEASE_MS / 1000 + 1)
    with pytest.raises(StorageError):
        store.blobs.collect()
    contents.away = False
    settle(store, clock)
    is_whole(store)


def test_bytes_that_nobody_knows_are_swept_once_they_are_old(store: SqliteStore, container: Container) -> None:
    put(store, container, "/a", large("a"))
    contents: Contents = store.blobs.contents
    lost = store.folder / "lost"
    lost.write_bytes(large("z"))
    place = "ab/" + "ab" * 32 + ".lost"
    contents.put(place, lost)
    assert store.blobs.sweep() == 0
    assert contents.size(place) == LARGE
    assert list(store.blobs.orphans(older_ms=-60_000)) == [place]
    assert store.blobs.sweep(older_ms=-60_000) == 1
    is_whole(store)


def test_contents_of_another_server_in_the_same_place_are_left_alone(tmp_path: Path) -> None:
    """Two servers that were given one folder by mistake: neither start, nor check, nor vacuum of one takes from the other."""
    from memdir.store.upkeep.check import Check
    from memdir.store.upkeep.vacuum import vacuum

    shared = tmp_path / "shared"
    mine, theirs = (SqliteStore.open(tmp_path / name, contents=DiskContents(shared)) for name in ("mine", "theirs"))
    put(theirs, theirs.containers.ensure("local", "t"), "/a", large("a"))
    (file,) = [found for found in shared.rglob("*") if found.is_file()]
    os.utime(file, (1, 1))
    mine.recover()
    Check(mine).repair()
    vacuum(mine, full=False)
    assert list(Check(theirs).findings(deep=True)) == []
    assert [finding.kind for finding in Check(mine).findings()] == ["contents-unknown"]
    assert vacuum(mine, full=False, orphans=True).contents == 1
    mine.close()
    theirs.close()
