"""Two machines, one server, one thread: random users, faults and crashes; then everything is equal and nothing is lost.

A seed gives the same history every time. The long lane runs more of them.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memdir.fs.errors import FsError
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer

NAMES = ["a", "b", "c.md", "dir", "sub"]


class History:
    """Random operations; every content is unique, so that it can be looked for afterwards."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.server = FakeServer()
        self.mounts = [Mount(folder / name, self.server, host=name, seed=seed) for name in ("laptop", "desktop")]
        self.counter = 0
        self.log: list[str] = []

    def path(self) -> str:
        depth = self.random.choice((1, 1, 2, 2, 3))
        return "/" + "/".join(self.random.choice(NAMES) for _ in range(depth))

    def operate(self, mount: Mount) -> None:
        kind = self.random.choice(("write", "write", "write", "mkdir", "rm", "rmdir", "mv", "mv", "chmod"))
        path, target = self.path(), self.path()
        try:
            if kind == "write":
                self.counter += 1
                mount.write(path, f"content {self.counter}".encode())
            elif kind == "mkdir":
                mount.mkdir(path)
            elif kind == "rm":
                mount.rm(path)
            elif kind == "rmdir":
                mount.rmdir(path)
            elif kind == "mv":
                mount.mv(path, target)
            else:
                mount.chmod(path, self.random.choice((0o644, 0o600, 0o755)))
        except FsError as error:
            self.log.append(f"{mount.host}: {kind} {path}: {error!r}")
            return
        self.log.append(f"{mount.host}: {kind} {path} {target if kind == 'mv' else ''}")

    def disturb(self) -> None:
        mount = self.random.choice(self.mounts)
        match self.random.randrange(6):
            case 0:
                mount.restart()
                self.log.append(f"{mount.host}: crash")
            case 1:
                before = self.random.random() < 0.5
                self.server.fault("POST", "/v1/files", status=self.random.choice((None, 500, 503)), before=before)
                self.log.append(f"fault before={before}")
            case 2:
                self.server.fault("GET", "/v1/", status=None)
                self.log.append("feed fault")
            case _:
                mount.clock.advance(self.random.choice((0.05, 0.3, 3.0, 60.0)))
                mount.engine.run_until_idle()
                self.log.append(f"{mount.host}: sync")

    def settle(self) -> None:
        self.server.faults.clear()
        for _ in range(30):
            before = self.server.seq
            for mount in self.mounts:
                mount.clock.advance(200)
                mount.sync(rounds=80)
            if self.server.seq == before and all(self.files(mount) == self.remote_files() for mount in self.mounts):
                return
        self.fail("not converged")

    def files(self, mount: Mount) -> dict[str, bytes]:
        return {path: content for path, (kind, content) in mount.tree().items() if kind == "file"}

    def remote_files(self) -> dict[str, bytes]:
        return {path: content for path, (kind, content) in self.server.tree().items() if kind == "file"}

    def fail(self, why: str) -> None:
        lines = "\n".join(self.log)
        trees = "\n".join(f"{mount.host}: {mount.tree()}" for mount in self.mounts)
        raise AssertionError(f"{why}\n{lines}\nserver: {self.server.tree()}\n{trees}")

    def close(self) -> None:
        for mount in self.mounts:
            mount.engine.close()


def run(seed: int, folder: Path, *, steps: int) -> History:
    history = History(seed, folder)
    for _ in range(steps):
        if history.random.random() < 0.7:
            history.operate(history.random.choice(history.mounts))
        else:
            history.disturb()
    history.settle()
    return history


@pytest.mark.parametrize("seed", range(25))
def test_two_machines_converge_after_any_history(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path, steps=60).close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1300))
def test_two_machines_converge_after_any_long_history(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path, steps=200).close()


@pytest.mark.parametrize("seed", range(100, 115))
def test_what_two_machines_wrote_at_different_paths_is_all_there(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    written: dict[str, bytes] = {}
    for number in range(40):
        mount = history.random.choice(history.mounts)
        path = f"/{mount.host}-{history.random.randrange(12)}"
        content = f"{number}".encode()
        mount.write(path, content)
        written[path] = content
        if history.random.random() < 0.4:
            history.disturb()
    history.settle()
    assert history.remote_files() == written
    history.close()


def test_the_same_seed_gives_the_same_history(tmp_path: Path) -> None:
    first, second = run(7, tmp_path / "1", steps=60), run(7, tmp_path / "2", steps=60)
    assert first.log == second.log
    assert first.server.tree() == second.server.tree()
    first.close()
    second.close()


def test_mounts_that_share_a_hosts_name_keep_all_sides_of_a_conflict(tmp_path: Path, server: FakeServer) -> None:
    mounts = [Mount(tmp_path / name, server, host="laptop", seed=seed) for seed, name in enumerate(("one", "two", "three"))]
    try:
        mounts[0].write("/a.bin", b"\0agreed")
        for mount in mounts:
            mount.sync()
        server.down = True
        for number, mount in enumerate(mounts):
            mount.write("/a.bin", b"\0side %d" % number)
            mount.step()
        server.down = False
        for _ in range(6):
            for mount in mounts:
                mount.clock.advance(60)
                mount.sync()
        trees = [mount.tree() for mount in mounts]
        assert trees[0] == trees[1] == trees[2] == server.tree()
        assert sorted(content for _, content in trees[0].values()) == [b"\0side 0", b"\0side 1", b"\0side 2"]
        assert trees[0]["/a.bin"] == ("file", b"\0side 0"), "who came first keeps the path"
    finally:
        for mount in mounts:
            mount.engine.close()
