"""A real server process with a key: one for each engine and worker of a run, for all tests that do not stop it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from memdir.core.background import read_ready
from tests.postgres import Postgres

START_S = 180.0
ON_BOTH = pytest.mark.parametrize("server", ["sqlite", "postgres"], indirect=True)
"""For tests of a whole server: over both engines."""
ON_SQLITE = pytest.mark.parametrize("server", ["sqlite", pytest.param("postgres", marks=pytest.mark.long)], indirect=True)
"""For rules that stand above the store: over the other engine in the long lane."""


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
    with until_the_end(start(tmp_path_factory.mktemp("home"), "--port", "0")) as running:
        yield running


@pytest.fixture(scope="session")
def postgres_server(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    home = tmp_path_factory.mktemp("home")
    with postgres.database() as url, until_the_end(start(home, "--port", "0", database_url=url)) as running:
        yield running


@contextmanager
def until_the_end(running: ServerProcess) -> Iterator[ServerProcess]:
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
