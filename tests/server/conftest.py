"""A store in a folder, and a real server process with a key."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from memdir.core.clock import Clock, FakeClock
from memdir.store.acting import SYSTEM
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import Store
from memdir.store.tree.operations import Outcome, Put
from memdir.store.types import Container

T = TypeVar("T")
Putting = Callable[..., Outcome]
AnyStore = SqliteStore | PostgresStore
OpenStore = Callable[[Clock], AnyStore]


def answered(ask: Callable[[], T], is_enough: Callable[[T], object], limit_s: float = 60.0, *, every_s: float = 0.02) -> T:
    """Ask another process until its answer is enough; that answer."""
    deadline, pause = time.monotonic() + limit_s, threading.Event()
    while not is_enough(answer := ask()):
        assert time.monotonic() < deadline, f"it did not happen in time: still {answer!r}"
        pause.wait(every_s)
    return answer


def until(true: Callable[[], object], limit_s: float = 120.0, *, every_s: float = 0.02) -> None:
    """Wait for what another process does."""
    answered(true, bool, limit_s, every_s=every_s)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenStore]:
    """Opens the store of this test: every test that takes it, or `store`, runs over both engines. A second call opens the same
    store once more, as after a restart (SQLite) or in a further process (PostgreSQL)."""
    url = request.getfixturevalue("database_url") if request.param == "postgres" else None
    opened: list[AnyStore] = []

    def open_(clock: Clock) -> AnyStore:
        folder = tmp_path / "server"
        if url is None:
            opened.append(SqliteStore.open(folder, clock=clock))
        else:
            opened.append(PostgresStore.open(url, folder, clock=clock, acting=SYSTEM))
        return opened[-1]

    yield open_
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore, clock: Clock) -> AnyStore:
    return open_store(clock)


@pytest.fixture
def container(store: Store) -> Container:
    return store.containers.ensure("local", "notes")


@pytest.fixture
def put(store: Store, container: Container) -> Putting:
    """Put a file: `put("/a.md", b"text", if_match=3)`."""

    def put_file(path: str | None, content: bytes = b"text", **options: Any) -> Outcome:
        with store.blobs.upload() as upload:
            upload.write(content)
            return store.files.apply(container, Put(path=path, blob=upload.finish(), **options))

    return put_file
