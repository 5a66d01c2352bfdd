"""What a client was answered survives a power cut; what only the pipeline noted need not."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from memdir.core import sqlite
from memdir.server.dispatcher import Dispatcher
from memdir.store.contents.durability import promised
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Put

Call = Callable[..., Any]


@pytest.fixture
def embedded(tmp_path: Path) -> Iterator[SqliteStore]:
    opened = SqliteStore.open(tmp_path / "server")
    yield opened
    opened.close()


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    made = Dispatcher()
    yield made
    made.shutdown()


class Syncs:
    """Counts the syncs of the log, and holds them while `free` is not set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.free = threading.Event()
        self.free.set()
        self.begun = threading.Event()
        monkeypatch.setattr(sqlite.os, "fdatasync", self._sync)

    def _sync(self, _: int) -> None:
        self.count += 1
        self.begun.set()
        assert self.free.wait(30)


def put(store: SqliteStore, number: int) -> None:
    container = store.containers.ensure("local", "t")
    with store.blobs.upload() as upload:
        upload.write(b"%d" % number)
        store.files.apply(container, Put(path=f"/{number}", blob=upload.finish()))


def test_what_a_client_asked_for_is_synced_before_it_is_answered(
    embedded: SqliteStore, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = Syncs(monkeypatch)
    container = embedded.containers.ensure("local", "t")
    calls: list[Call] = [
        lambda: put(embedded, 1),
        lambda: embedded.containers.change_settings(container.id, {"a": 1}),
        lambda: embedded.keys.create(org_id="local", name="x"),
        lambda: embedded.files.delete_container(container),
    ]
    for call in calls:
        before = syncs.count
        asyncio.run(dispatcher.run(call))
        assert syncs.count == before + 1
    assert not promised(), "a thread of the pipeline must not wait for the disk"
    before = syncs.count
    put(embedded, 2)
    assert syncs.count == before


def test_a_disk_that_refuses_to_sync_is_no_success(
    embedded: SqliteStore, dispatcher: Dispatcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(sqlite.os, "fdatasync", refuse)
    with pytest.raises(OSError, match="Input/output"):
        asyncio.run(dispatcher.run(put, embedded, 1))


def test_those_who_wait_at_the_same_time_share_a_sync(embedded: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    put(embedded, 0)
    syncs = Syncs(monkeypatch)
    syncs.free.clear()
    with ThreadPoolExecutor(9) as pool:
        first = pool.submit(embedded.db.settle)
        assert syncs.begun.wait(30)
        for number in range(1, 9):
            put(embedded, number)
        others = [pool.submit(embedded.db.settle) for _ in range(8)]
        assert not any(other.done() for other in others)
        syncs.free.set()
        for waiting in (first, *others):
            waiting.result(30)
    assert syncs.count == 2
