"""Mounts of `tests.sync` at a server without `/v1`: the double, or ours when everything below `/v1` is hidden."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.client.http import Client
from memdir.sync.contents.retention import KeepingPolicy
from memdir.sync.engine import Engine
from memdir.sync.plain.records import Records
from memdir.sync.plain.remote import PlainRemote
from tests.plain.double import PlainServer
from tests.sync.conftest import Mount


class PlainMount(Mount):
    """Its records live as long as the process would."""

    def __init__(
        self, folder: Path, client: Callable[[], Client], *, host: str = "laptop", seed: int = 1, container: str = "c",
        keeping: KeepingPolicy | None = None,
    ) -> None:  # fmt: skip
        self.make_client, self.container = client, container
        self.records = Records(folder)
        super().__init__(folder, None, host=host, seed=seed, keeping=keeping)  # type: ignore[arg-type]

    def _open(self) -> Engine:
        return Engine(
            folder=self.folder, container=self.container, tree=self.fs, factory=self.remote, clock=self.clock,
            rng=random.Random(self.seed), host=self.host, on_profile=self.profiles.append, keeping=self.keeping,
        )  # fmt: skip

    def remote(self) -> PlainRemote:
        return PlainRemote(self.make_client(), self.records, container=self.container, clock=self.clock, local_text=self._text)

    def _text(self, path: str) -> bytes | None:
        entry = self.fs.fact(path)
        return None if entry is None or entry.kind != "file" else self.read(path)

    def restart(self) -> None:
        self.records.close()
        self.records = Records(self.folder)
        super().restart()

    def close(self) -> None:
        self.engine.close()
        self.records.close()

    def reopen(self) -> None:
        """After `close`."""
        self.records = Records(self.folder)
        self.engine = self._open()

    def files_at_server(self) -> dict[str, bytes]:
        """Without those that the server is known to have dropped."""
        known = {path: self.records.at(path) for path in self.files()}
        return {
            path: content for path, content in self.files().items() if (one := known[path]) is None or one.status != "dropped"
        }

    def files(self) -> dict[str, bytes]:
        return {path: content for path, (kind, content) in self.tree().items() if kind != "dir"}


def settled(*mounts: PlainMount, rounds: int = 12) -> None:
    """Every mount has what the others have, and nothing waits. Time passes for the server's own work and for scans. A document
    that vanished while the server worked on it stays on the mount that saw that last: nobody's file goes because of it."""
    for _ in range(rounds):
        for mount in mounts:
            mount.clock.advance(40.0)
            mount.sync(rounds=80)
        trees = [mount.files_at_server() for mount in mounts]
        quiet = not any(mount.engine.status().queue_length for mount in mounts)
        if quiet and all(tree == trees[0] for tree in trees) and not any(mount.records.without_place() for mount in mounts):
            return
    shown = [{path: (len(content), content[:40]) for path, content in mount.files().items()} for mount in mounts]
    rows = [(row.path, row.state, row.error) for mount in mounts for row in mount.engine.queue_rows(9)]
    waiting = [(known.filepath, known.note) for mount in mounts for known in mount.records.without_place()]
    raise AssertionError(f"not settled: {shown} {rows} {waiting}")


@pytest.fixture
def server() -> PlainServer:
    return PlainServer()


@pytest.fixture
def mount(tmp_path: Path, server: PlainServer) -> Iterator[PlainMount]:
    one = PlainMount(tmp_path / "one", server.client)
    yield one
    one.close()


@pytest.fixture
def other(tmp_path: Path, server: PlainServer) -> Iterator[PlainMount]:
    two = PlainMount(tmp_path / "two", server.client, host="desktop", seed=2)
    yield two
    two.close()
