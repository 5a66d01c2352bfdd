"""A mount in this process whose operations become events, at a time of its own: months go by in seconds."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from memdir.core.clock import SystemClock
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.fuse.session import FuseOptions, FuseSession, Profile
from memdir.fs.fuse.tracing import Tracer
from memdir.fs.operations import Operation
from memdir.traces.collect import Collector
from memdir.traces.events import Event

BEGINS_MS: Final = 1_700_000_000_000


@dataclass(slots=True)
class Recorder:
    """Operations of one session after the other. `session` names whose they are; nothing is recorded while it is empty."""

    place: Path
    now_ms: int = BEGINS_MS
    session: str = ""
    operations: list[Operation] = field(default_factory=list)

    def who(self, _pid: int, /) -> tuple[str, str] | None:
        return ("user", self.session) if self.session else None

    def keeps_contents(self, _actor: str, _session_key: str, /) -> bool:
        return True

    def take(self, operation: Operation) -> None:
        self.now_ms += 1  # no two at once
        self.operations.append(replace(operation, at_ms=self.now_ms, pid=1, fields={}))

    def searched(self, query: str, path: str) -> None:
        self.now_ms += 1
        self.operations.append(
            Operation(
                kind="search", at_ms=self.now_ms, pid=1, actor="memdir grep", session_key=self.session,
                path=path, raw="memdir grep", fields={"search_type": "semantic", "query": query},
            )
        )  # fmt: skip

    def settle(self) -> None:
        """Wait until the mount has heard of everything: the kernel tells of a close after it has answered it."""
        os.statvfs(self.place)

    def tick(self, ms: int) -> None:
        self.settle()
        self.now_ms += ms

    def events(self) -> list[Event]:
        """What the operations were; the root of an event is the name of its session."""
        found = []
        for name, operations in groupby(self.operations, key=lambda one: one.session_key):
            collector = Collector(name)
            for one in operations:
                collector.take(one)
                found += collector.settled(one.at_ms)
            found += collector.settled(0, everything=True)
        return found


@contextmanager
def traced_mount() -> Iterator[tuple[Path, Recorder]]:
    """A folder to work in, and what records it. MountError where nothing can be mounted."""
    with TemporaryDirectory(prefix="memdir-bench-traces-") as folder:
        place, data = Path(folder, "mount"), Path(folder, "data")
        recorder = Recorder(place)
        place.mkdir()
        data.mkdir()
        fs = SqliteFs.open(data)
        tracer = Tracer(fs, fs.paths_of, recorder, SystemClock())
        session = FuseSession(fs, place, FuseOptions(profile=Profile.OBSERVED, tracer=tracer))
        session.mount()
        loop = threading.Thread(target=session.run, name="bench-fuse", daemon=True)
        loop.start()
        try:
            yield place, recorder
        finally:
            session.unmount(lazy=True)
            loop.join(10)
            fs.close()
            subprocess.run(["umount", "-l", str(place)], check=False, capture_output=True, timeout=20)
