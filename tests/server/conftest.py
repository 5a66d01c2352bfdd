"""A store in a folder, and a real server process with a key."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir.core.background import read_ready
from memdir.core.clock import Clock, FakeClock
from memdir.store.acting import SYSTEM
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import Store
from memdir.store.tree.operations import Outcome, Put
from memdir.store.types import Container
from tests.postgres import Postgres

START_S = 180.0
ON_BOTH = pytest.mark.parametrize("server", ["sqlite", "postgres"], indirect=True)
"""For tests of a whole server: over both engines."""
Putting = Callable[..., Outcome]
AnyStore = SqliteStore | PostgresStore
OpenStore = Callable[[Clock], AnyStore]


def until(true: Callable[[], object], limit_s: float = 120.0, *, every_s: float = 0.02) -> None:
    """Wait for what another process does."""
    deadline, pause = time.monotonic() + limit_s, threading.Event()
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(every_s)


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


@dataclass(slots=True, kw_only=True)
class ServerProcess:
    """`python -m memdir.server` on a home of its own."""

    home: Path
    process: subprocess.Popen[bytes]
    url: str
    key: str

    def client(self, **headers: str) -> httpx.Client:
        """A client with the key; further headers replace."""
        return httpx.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.key}", **headers},
            timeout=60.0,
            trust_env=False,
            verify=False,
        )

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, wait for the end, give the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=30)


def launch(home: Path, *arguments: str, database_url: str | None = None) -> tuple[subprocess.Popen[bytes], str]:
    """Start a server process and wait for what it reports: `ready`, or an error text."""
    home.mkdir(mode=0o700, parents=True, exist_ok=True)
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "memdir.server", "--ready-fd", str(writing), *arguments],
            pass_fds=(writing,),
            env={**os.environ, "MEMDIR_HOME": str(home), "MEMDIR_DATABASE_URL": database_url or ""},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(writing)
        said = read_ready(reading, time.monotonic() + START_S)
        assert said is not None, "the server said nothing"
    finally:
        os.close(reading)
    return process, said


def start(home: Path, *arguments: str, database_url: str | None = None) -> ServerProcess:
    """A running server."""
    process, said = launch(home, *arguments, database_url=database_url)
    assert said == "ready", said
    url = json.loads((home / "state" / "server.json").read_text())["url"]
    key = json.loads((home / "config" / "credentials.json").read_text())["api_key"]
    return ServerProcess(home=home, process=process, url=url, key=key)


@pytest.fixture(scope="session")
def sqlite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with _until_the_end(start(tmp_path_factory.mktemp("home"), "--port", "0")) as running:
        yield running


@pytest.fixture(scope="session")
def postgres_server(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("home")
    with postgres.database() as url, _until_the_end(start(home, "--port", "0", database_url=url)) as running:
        yield running


@contextmanager
def _until_the_end(running: ServerProcess) -> Iterator[ServerProcess]:
    try:
        yield running
        assert running.stop() == 0
    finally:
        running.stop(signal.SIGKILL)


@pytest.fixture(scope="session")
def server(request: pytest.FixtureRequest) -> ServerProcess:
    """One server for all tests of a run; each test uses a container of its own (fixture `tag`). On SQLite, unless the module
    says `pytestmark = ON_BOTH`, or MEMDIR_TEST_ENGINE=postgres asks for the other one."""
    engine = getattr(request, "param", os.environ.get("MEMDIR_TEST_ENGINE", "sqlite"))
    running: ServerProcess = request.getfixturevalue(f"{engine}_server")
    return running


@pytest.fixture
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with server.client() as opened:
        yield opened


@pytest.fixture
def tag(request: pytest.FixtureRequest) -> str:
    """A container name that no other test uses."""
    name = "".join(char if char.isalnum() else "-" for char in request.node.name)
    return f"{name[:60]}-{os.getpid()}-{time.monotonic_ns()}"
