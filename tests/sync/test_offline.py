"""Days without a server: what waits stays bounded by the number of paths, and everything is right when the server comes."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from memdir.core.limits import KIB
from tests.sync.conftest import Mount
from tests.sync.fake_server import FakeServer

CHANGES = 3000
DAYS = 5
DAY_S = 86_400.0
FOLDERS = 12


class User:
    """Changes of all kinds; knows what must stand there."""

    def __init__(self, mount: Mount, seed: int) -> None:
        self.mount, self.rng = mount, random.Random(f"offline {seed}")
        self.files: dict[str, bytes] = {}
        self.modes: dict[str, int] = {}
        self.folders: set[str] = set()
        self.paths: set[str] = set()
        """Every path that ever stood there."""
        self.count = 0

    def change(self) -> None:
        self.count += 1
        folders = sorted(self.folders)
        dice = self.rng.random()
        if len(folders) < FOLDERS or dice < 0.03:
            self.mkdir(self.rng.choice(["", *folders]))
        elif dice < 0.70 or not self.files:
            self.write(f"{self.rng.choice(folders)}/f{self.rng.randrange(20)}")
        elif dice < 0.80:
            path = self.rng.choice(sorted(self.files))
            self.mount.chmod(path, mode := self.rng.choice([0o600, 0o644, 0o755]))
            self.modes[path] = mode
        elif dice < 0.90:
            self.rename_file(self.rng.choice(sorted(self.files)), f"{self.rng.choice(folders)}/f{self.rng.randrange(20)}")
        elif dice < 0.97:
            self.rename_folder(self.rng.choice(folders))
        else:
            self.rm_r(self.rng.choice(folders))

    def mkdir(self, above: str) -> None:
        if above.count("/") < 3:
            self.mount.mkdir(path := f"{above}/d{self.count}")
            self.folders.add(path)
            self.paths.add(path)

    def write(self, path: str) -> None:
        content = b"%d " % self.count * self.rng.choice([0, 1, 40])
        self.mount.write(path, content)
        self.files[path] = content
        self.modes.setdefault(path, 0o644)
        self.paths.add(path)

    def rename_file(self, source: str, path: str) -> None:
        self.mount.mv(source, path)
        if source != path:
            self.files[path], self.modes[path] = self.files.pop(source), self.modes.pop(source)
            self.paths.add(path)

    def rename_folder(self, source: str) -> None:
        path = f"{source.rpartition('/')[0]}/r{self.count}"
        self.mount.mv(source, path)
        for old in self.below(source):
            new = path + old[len(source) :]
            self.paths.add(new)
            if old in self.folders:
                self.folders.remove(old)
                self.folders.add(new)
            else:
                self.files[new], self.modes[new] = self.files.pop(old), self.modes.pop(old)

    def rm_r(self, folder: str) -> None:
        for path in sorted(self.below(folder), reverse=True):
            if path in self.folders:
                self.mount.rmdir(path)
                self.folders.remove(path)
            else:
                self.mount.rm(path)
                del self.files[path], self.modes[path]

    def below(self, folder: str) -> list[str]:
        return [path for path in [*self.files, *self.folders] if path == folder or path.startswith(folder + "/")]

    def tree(self) -> dict[str, tuple[str, bytes]]:
        return {path: ("file", content) for path, content in self.files.items()} | dict.fromkeys(self.folders, ("dir", b""))


@pytest.mark.promise("sync.offline")
@pytest.mark.parametrize("known", [False, True], ids=["never saw a server", "was synced before"])
def test_thousands_of_changes_in_days_without_a_server_wait_once_a_path_and_all_arrive(
    tmp_path: Path, server: FakeServer, known: bool
) -> None:
    mount = Mount(tmp_path / "one", server)
    user = User(mount, seed=known)
    server.write("/theirs.md", b"old")
    server.write("/gone.md", b"old")
    server.down = not known
    for number in range(1, CHANGES + 1):
        if known and number == CHANGES // 10:
            mount.sync()
            server.down = True
        user.change()
        if number % 100 == 0:
            mount.clock.advance(DAYS * DAY_S / (CHANGES / 100))
            mount.engine.run_until_idle()
        if number % 500 == 0:
            mount.restart()
        if number % 1000 == 0:
            mount.engine.run_until_idle()
            status = mount.engine.status()
            assert not status.link.online
            assert 0 < status.queue_length <= len(user.paths), "one row a path, however often it changed"
            assert status.queue_length < number / 2
            assert status.parked == 0
    server.write("/theirs.md", b"changed meanwhile")
    server.write("/new.md", b"theirs")
    server.remove("/gone.md")
    assert len(server.requests) < 200 or known, "a dead server is asked once in a while, not by every change"
    server.requests.clear()
    server.down = False
    mount.clock.advance(60)
    waited = mount.engine.status().queue_length
    mount.sync()
    wanted = user.tree() | {"/theirs.md": ("file", b"changed meanwhile"), "/new.md": ("file", b"theirs")}
    assert mount.tree() == wanted
    assert server.tree() == wanted
    assert {path: server.entries[path].mode for path in user.modes} == user.modes
    assert {path: mount.mode(path) for path in user.modes} == user.modes
    status = mount.engine.status()
    assert (status.conflicts, status.parked, status.queue_length, status.held_deletions) == (0, 0, 0, 0)
    sent = [request for request in server.requests if not request.startswith("GET")]
    assert len(sent) < waited / 4, "what waited went in batches"
    mount.engine.close()
    assert sum(file.stat().st_size for file in (tmp_path / "one").glob("sync.db*")) < (len(user.paths) + 200) * 4 * KIB
