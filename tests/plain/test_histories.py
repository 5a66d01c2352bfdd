"""Two mounts and a server without `/v1`: after any history of users, faults and crashes both have the same, nothing is lost."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memdir.fs.errors import FsError
from tests.plain.conftest import PlainMount, settled
from tests.plain.double import PlainServer
from tests.sync.test_convergence import NAMES


class History:
    """Every content is unique, so that it can be looked for afterwards."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.random = random.Random(seed)
        self.server = PlainServer(
            slow=self.random.choice((0, 1, 3, 12)), when_busy=self.random.choice(("refuse", "forget")),
            same_times=self.random.choice((1, 3, 1000)), seed=seed,
        )  # fmt: skip
        self.mounts = [PlainMount(folder / name, self.server.client, host=name, seed=seed) for name in ("laptop", "desktop")]
        self.counter = 0
        self.log: list[str] = []

    def path(self) -> str:
        depth = self.random.choice((1, 1, 2, 2, 3))
        return "/" + "/".join(self.random.choice(NAMES) for _ in range(depth))

    def content(self) -> bytes:
        self.counter += 1
        raw = f"content {self.counter}".encode()
        return self.random.choice((raw, raw + b"\n", b"\xff" + raw, raw + b"\r\nend\r\n"))

    def operate(self, mount: PlainMount) -> None:
        kind = self.random.choice(("write", "write", "write", "mkdir", "rm", "rmdir", "mv", "mv", "chmod"))
        path, target = self.path(), self.path()
        try:
            if kind == "write":
                mount.write(path, self.content())
            elif kind == "mv":
                mount.mv(path, target)
            elif kind == "chmod":
                mount.chmod(path, self.random.choice((0o644, 0o600)))
            else:
                getattr(mount, kind)(path)
        except FsError as error:
            self.log.append(f"{mount.host}: {kind} {path}: {error!r}")
            return
        self.log.append(f"{mount.host}: {kind} {path} {target if kind == 'mv' else self.counter}")

    def disturb(self) -> None:
        mount = self.random.choice(self.mounts)
        match self.random.randrange(8):
            case 0:
                mount.restart()
                self.log.append(f"{mount.host}: crash")
            case 1:
                self.server.trouble = self.random.choice((0.0, 0.1, 0.4))
                self.log.append(f"trouble {self.server.trouble}")
            case 2:
                rival = self.random.choice([other for other in self.mounts if other is not mount])
                path, content = self.path(), self.content()
                self.log.append(f"between: {rival.host} writes {path} {self.counter}")
                self.server.between = lambda *_: self.race(rival, path, content)
            case _:
                mount.clock.advance(self.random.choice((0.05, 0.3, 3.0, 60.0)))
                mount.engine.run_until_idle()
                self.log.append(f"{mount.host}: sync")

    def race(self, rival: PlainMount, path: str, content: bytes) -> None:
        """Somebody else is faster, in the middle of our request."""
        try:
            rival.write(path, content)
        except FsError:
            return
        rival.clock.advance(3.0)
        rival.engine.run_until_idle()

    def run(self, steps: int) -> None:
        for _ in range(steps):
            if self.random.random() < 0.6:
                self.operate(self.random.choice(self.mounts))
            else:
                self.disturb()
        self.server.trouble, self.server.between = 0.0, None
        try:
            settled(*self.mounts, rounds=30)
        except AssertionError as error:
            raise AssertionError("\n".join(self.log[-80:]) + f"\n{error}\n{self.server.paths()}") from error

    def close(self) -> None:
        for mount in self.mounts:
            mount.close()


@pytest.mark.promise("sync.plain")
@pytest.mark.parametrize("seed", range(6))
def test_two_mounts_converge_after_any_history(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    try:
        history.run(50)
        files = history.mounts[0].files()
        history.server.settle()
        assert sorted(history.server.paths()) == sorted(files)
    finally:
        history.close()


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_two_mounts_converge_after_any_long_history(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    try:
        history.run(150)
    finally:
        history.close()


@pytest.mark.promise("sync.plain")
@pytest.mark.parametrize("seed", range(100, 103))
def test_what_two_mounts_wrote_at_different_paths_is_all_there(seed: int, tmp_path: Path) -> None:
    history = History(seed, tmp_path)
    written: dict[str, bytes] = {}
    try:
        for _ in range(30):
            mount = history.random.choice(history.mounts)
            path, content = f"/{mount.host}-{history.random.randrange(9)}", history.content()
            mount.write(path, content)
            written[path] = content
            if history.random.random() < 0.4:
                mount.engine.run_until_idle()
                history.server.trouble = history.random.choice((0.0, 0.2))
        history.run(0)
        assert history.mounts[0].files() == written
    finally:
        history.close()
