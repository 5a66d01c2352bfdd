"""Workers over both stores, in real time, with models that answer at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.core.clock import SystemClock
from memdir.server.indexing.leases import Lease
from memdir.server.indexing.worker import Worker
from memdir.store.acting import SYSTEM
from memdir.store.jobs import queue as jobs
from memdir.store.jobs.queue import Job
from memdir.store.postgres.store import PostgresStore
from memdir.store.store import Store
from memdir.store.types import Container, Document
from tests.server.fakes import FakeEngine
from tests.server.steps import index

WAIT_S = 30.0
Working = Callable[[FakeEngine], None]


@pytest.fixture(autouse=True)
def _tried_again_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "BACKOFF_FIRST_MS", 1)


@pytest.fixture
def clock() -> SystemClock:
    """The worker waits in real time."""
    return SystemClock()


class Events:
    """Waits on commits instead of sleeping."""

    def __init__(self, store: Store) -> None:
        self._condition = threading.Condition()
        store.listen(self._heard)

    def _heard(self, _: int) -> None:
        with self._condition:
            self._condition.notify_all()

    def until(self, true: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_S
        with self._condition:
            while not true():
                left_s = deadline - time.monotonic()
                assert left_s > 0, "it did not happen in time"
                self._condition.wait(min(left_s, 1.0))


@pytest.fixture
def events(store: Store) -> Events:
    return Events(store)


@pytest.fixture
def working(store: Store) -> Iterator[Working]:
    """Start a worker on an engine; it stops with the test."""
    workers: list[Worker] = []

    def start(engine: FakeEngine) -> None:
        worker = Worker(store, engine)  # type: ignore[arg-type]
        workers.append(worker)
        worker.start()

    yield start
    for worker in workers:
        assert worker.stop()


def status(store: Store, container: Container, path: str) -> str:
    return document_at(store, container, path).status


def document_at(store: Store, container: Container, path: str) -> Document:
    document = store.documents.at(container.id, path)
    assert document is not None
    return document


def drained(store: Store) -> Callable[[], bool]:
    return lambda: store.jobs.count() == 0


def indexed(store: Store, engine: FakeEngine, job: Job) -> None:
    """Take a claimed job through indexing, on this thread."""
    index(store, engine, Lease(store, job))  # type: ignore[arg-type]


def texts(engine: FakeEngine, document: Document) -> list[str]:
    return [stored.chunk.text for stored in engine.chunks.document_chunks(document.id)]


@pytest.fixture
def postgres_store(tmp_path: Path, database_url: str) -> Iterator[PostgresStore]:
    """A look into the database that servers and workers share."""
    opened = PostgresStore.open(database_url, tmp_path / "look", acting=SYSTEM)
    yield opened
    opened.close()
