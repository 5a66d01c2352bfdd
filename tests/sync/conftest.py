"""A mount's filesystem in memory, an engine on it, and a server: all real but the disk of the one and the wire of the other."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.errors import FsError
from memdir.fs.memory import MemoryFs
from memdir.fs.path import encode, split
from memdir.fs.types import ROOT_INO, AttrChange, Owner, joined
from memdir.sync.contents.retention import KeepingPolicy
from memdir.sync.engine import Engine
from memdir.sync.push.max_delete import MaxDelete
from tests.sync.fake_server import FakeServer

ME = Owner(os.getuid(), os.getgid())


class Mount:
    """One machine: what a user does to the filesystem, and an engine that can crash."""

    def __init__(
        self,
        folder: Path,
        server: FakeServer,
        *,
        host: str = "laptop",
        seed: int = 1,
        keeping: KeepingPolicy | None = None,
        max_delete: MaxDelete | None = None,
    ) -> None:
        self.folder, self.server, self.host, self.seed, self.keeping = folder, server, host, seed, keeping
        self.max_delete = max_delete
        self.clock = FakeClock()
        self.fs = MemoryFs(clock=self.clock, uid=ME.uid, gid=ME.gid)
        self.profiles: list[int] = []
        self.engine = self._open()

    def _open(self) -> Engine:
        return Engine(
            folder=self.folder, container="c", tree=self.fs, factory=self.server.client, clock=self.clock,
            rng=random.Random(self.seed), host=self.host, on_profile=self.profiles.append,
            keeping=self.keeping, max_delete=self.max_delete,
        )  # fmt: skip

    def restart(self) -> None:
        """The process dies and comes back: everything that is not on disk is gone."""
        self.engine.close()
        self.engine = self._open()

    def sync(self, *, rounds: int = 40) -> None:
        """Let time pass and the engine work until nothing waits but parked rows."""
        for _ in range(rounds):
            self.engine.run_until_idle()
            if self.engine.status().queue_length == 0 and not self.fs.intents(0, 1):
                return
            self.clock.advance(3.0)
        raise AssertionError(f"not settled: {self.engine.queue_rows(20)} {self.engine.renames(20)}")

    def step(self) -> None:
        """Take in what the user did, let the debounce pass, and do what is due."""
        self.engine.run_until_idle()
        self.clock.advance(3.0)
        self.engine.run_until_idle()

    # --- a user --------------------------------------------------------------------------------------------------

    def ino(self, path: str) -> int:
        ino = ROOT_INO
        for part in path.split("/")[1:]:
            if part:
                ino = self.fs.lookup(ino, encode(part)).ino
        return ino

    def place(self, path: str) -> tuple[int, bytes]:
        folder, name = split(path)
        return self.ino(folder), encode(name)

    def write(self, path: str, content: bytes, mode: int = 0o644) -> None:
        parent, name = self.place(path)
        try:
            ino = self.fs.lookup(parent, name).ino
            self.fs.setattr(ino, AttrChange(size=0))
        except FsError:
            ino = self.fs.create(parent, name, 0o100000 | mode, ME).ino
        if content:
            self.fs.write(ino, 0, content)

    def mkdir(self, path: str) -> None:
        self.fs.mkdir(*self.place(path), 0o755, ME)

    def symlink(self, path: str, target: bytes) -> None:
        self.fs.symlink(*self.place(path), target, ME)

    def rm(self, path: str) -> None:
        self.fs.unlink(*self.place(path))

    def rmdir(self, path: str) -> None:
        self.fs.rmdir(*self.place(path))

    def mv(self, source: str, path: str) -> None:
        self.fs.rename(*self.place(source), *self.place(path))

    def chmod(self, path: str, mode: int) -> None:
        self.fs.setattr(self.ino(path), AttrChange(mode=mode))

    def read(self, path: str) -> bytes:
        """As a program reads: what is absent is fetched first."""
        ino = self.ino(path)
        self.engine.fetcher.fetch(ino)
        return joined(self.fs.read(ino, 0, 1 << 30))

    def tree(self) -> dict[str, tuple[str, bytes]]:
        found: dict[str, tuple[str, bytes]] = {}
        pending = list(self.fs.children("/"))
        while pending:
            entry = pending.pop()
            if entry.kind == "dir":
                pending.extend(self.fs.children(entry.path))
            if entry.absent_hash is not None:
                self.engine.fetcher.fetch(entry.ino)
            content = self.fs.read(entry, 0, entry.size) if entry.kind == "file" else entry.target or b""
            found[entry.path] = (entry.kind, bytes(content))
        return found

    def mode(self, path: str) -> int:
        entry = self.fs.fact(path)
        assert entry is not None
        return entry.mode


@pytest.fixture
def server() -> FakeServer:
    return FakeServer()


@pytest.fixture
def mount(tmp_path: Path, server: FakeServer) -> Iterator[Mount]:
    one = Mount(tmp_path / "one", server)
    yield one
    one.engine.close()


@pytest.fixture
def other(tmp_path: Path, server: FakeServer) -> Iterator[Mount]:
    two = Mount(tmp_path / "two", server, host="desktop", seed=2)
    yield two
    two.engine.close()
