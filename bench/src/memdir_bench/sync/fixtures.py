"""What is measured: a private server and mounts of it, with the real commands, and how much processor and memory they take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from memdir.client.credentials import ENV_KEY, ENV_URL
from memdir.client.http import Client
from memdir.client.local import running_server
from memdir.daemon.control import ControlClient
from memdir.daemon.registry import MountRegistry
from memdir_bench.posix.clocks import cpu_s, resident_mib
from memdir_bench.session import BenchError, BenchSession, open_session, uninterrupted

LIMIT_S: Final = 1800.0
_POLL_S: Final = 0.05
_STATUS_LIMIT_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Mounted:
    """One mount."""

    root: Path
    pid: int
    control: ControlClient

    def status(self) -> dict[str, Any]:
        return self.control.call("status", _STATUS_LIMIT_S)

    def waiting(self) -> int:
        """How many changes the server has not got yet."""
        return int(self.status()["queue_length"])

    def resident_mib(self, *, peak: bool = False) -> float:
        return resident_mib(self.pid, peak=peak)

    def settle(self) -> None:
        """Until the server has everything."""
        until(lambda: self.waiting() == 0, f"everything of {self.root.name} is at the server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Processor seconds so far."""

    daemons_s: float
    server_s: float

    def __sub__(self, other: Cost) -> Cost:
        return Cost(daemons_s=self.daemons_s - other.daemons_s, server_s=self.server_s - other.server_s)


class Fixture:
    """A server and its mounts."""

    def __init__(self, session: BenchSession) -> None:
        session.memdir("server", "start")
        info = running_server(session.paths())
        if info is None:
            raise BenchError("the server of the benchmark does not run")
        self.session = session
        self.info = info

    def mount(self, container: str, side: str, *options: str, through: str | None = None) -> Mounted:
        """Mount at `CONTAINER-SIDE`, to the server at `through` when that is given."""
        session, place = self.session, self.session.folder / f"{container}-{side}"
        if through is not None:
            session = replace(session, env={**session.env, ENV_URL: through, ENV_KEY: self.info.api_key})
        with uninterrupted():
            session.memdir("mount", container, "--path", str(place), *options)
            session.mounts.append(str(place))  # two of one name are told apart by their paths
        record = next(one for one in MountRegistry(session.paths()).all() if one.path == str(place))
        return Mounted(root=place, pid=record.pid or 0, control=ControlClient(record.socket_file))

    def unmount(self, mounted: Mounted) -> None:
        self.session.unmount(str(mounted.root))

    def client(self) -> Client:
        return Client.to(self.info)

    def cost(self, *mounts: Mounted) -> Cost:
        return Cost(daemons_s=sum(cpu_s(one.pid) for one in mounts), server_s=cpu_s(self.info.pid))

    def server_mib(self, *, peak: bool = False) -> float:
        return resident_mib(self.info.pid, peak=peak)


@contextmanager
def fixture(folder: Path | None = None) -> Iterator[Fixture]:
    """A stand in a temporary folder (below `folder`) that ends with the block."""
    with open_session(folder) as session:
        yield Fixture(session)


def until(reached: Callable[[], bool], what: str, *, poll_s: float = _POLL_S, limit_s: float = LIMIT_S) -> float:
    """Look every `poll_s` until it is so; how long that took. BenchError after `limit_s`."""
    started_s = time.perf_counter()
    while not reached():
        if time.perf_counter() - started_s > limit_s:
            raise BenchError(f"after {limit_s:.0f} s it is still not so that {what}")
        time.sleep(poll_s)
    return time.perf_counter() - started_s
