"""The repair pass at a real server: what it lists and what its feed tells are the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memdir.client.http import Client
from memdir.sync.engine import Engine
from tests.servers import ServerProcess, server
from tests.sync.conftest import Mount

__all__ = ["server"]


class RealMount(Mount):
    """At a server process."""

    def __init__(self, folder: Path, process: ServerProcess, container: str, *, host: str, seed: int) -> None:
        self.process, self.container = process, container
        super().__init__(folder, None, host=host, seed=seed)  # type: ignore[arg-type]

    def _open(self) -> Engine:
        return Engine(
            folder=self.folder, container=self.container, tree=self.fs, clock=self.clock, rng=random.Random(self.seed),
            host=self.host, factory=lambda: Client(self.process.url, self.process.key),
        )  # fmt: skip


@pytest.mark.promise("sync.scan")
def test_at_a_real_server_a_pass_finds_nothing_but_what_was_missed(tmp_path: Path, server: ServerProcess, tag: str) -> None:
    one = RealMount(tmp_path / "one", server, tag, host="laptop", seed=1)
    two = RealMount(tmp_path / "two", server, tag, host="desktop", seed=2)
    for folder in ("/a", "/a/b", "/old", "/old/deep"):
        one.mkdir(folder)
    for path in ("/a-b", "/a!", "/a/b/c", "/ä", "/\uffee", "/\U0001d11e", "/old/1", "/old/deep/2", "/x", "/y"):
        one.write(path, path.encode())
    one.symlink("/link", b"a/b/c")
    one.sync()
    two.sync()
    two.mv("/old", "/new")
    two.chmod("/x", 0o755)
    two.write("/y", b"other")
    two.rm("/a!")
    for mount in (two, one, two):
        mount.step()
        mount.sync()
        mount.engine.run_until_idle()
        assert mount.engine.repair() == 0
    with one.engine._db.write() as tx:
        tx.execute("delete from remote where path >= cast('/new' as blob)")
    assert one.engine.repair() > 0
    one.sync()
    assert one.engine.repair() == 0
    assert one.tree() == two.tree()
    for mount in (one, two):
        mount.engine.close()
