"""How much the kernel has to ask. A request costs its caller a switch to the daemon and back, so these counts are the speed of
the mount on any machine, however busy. Cold is a new mount of the same folder: the kernel knows nothing of it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from tests.fuse.harness import MountProcess

pytestmark = pytest.mark.mount

FOLDERS = 10
FILES = 1000
DATA = b"some text\n" * 100


class Counted:
    """A mount of one folder that can be mounted anew, and a way to count requests."""

    def __init__(self, mountpoint: Path, folder: Path) -> None:
        self._mountpoint = mountpoint
        self._folder = folder
        self.mount = self._mounted()
        self.paths = [mountpoint / f"d{number % FOLDERS}" / f"file-{number:04d}.md" for number in range(FILES)]

    def _mounted(self) -> MountProcess:
        mount = MountProcess(self._mountpoint, kind="sqlite", folder=self._folder)
        assert mount.start() == {"ready": True}
        return mount

    def make_cold(self) -> None:
        self.mount.stop()
        self.mount = self._mounted()

    def during(self, work: Callable[[], object]) -> dict[str, int]:
        """Requests by kind while `work` runs."""
        before = self.mount.call("stats")["requests"]
        work()
        after = self.mount.call("stats")["requests"]
        return {kind: count - before.get(kind, 0) for kind, count in after.items() if count != before.get(kind, 0)}

    def least(self, work: Callable[[], object]) -> dict[str, int]:
        """The same, the best of four: other tests make the whole machine drop its caches, also in the middle of this one."""
        return min((self.during(work) for _ in range(4)), key=lambda asked: sum(asked.values()))

    def create(self) -> None:
        for path in self.paths:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(fd, DATA)
            os.close(fd)

    def stat(self) -> None:
        for path in self.paths:
            assert os.stat(path).st_size == len(DATA)

    def read(self) -> None:
        """System calls, since Python's `open` asks each file whether it is a terminal, and the kernel hands that ioctl on."""
        for path in self.paths:
            fd = os.open(path, os.O_RDONLY)
            assert os.read(fd, 65536) == DATA
            os.close(fd)


@pytest.fixture
def empty(mountpoint: Path, tmp_path: Path) -> Iterator[Counted]:
    (tmp_path / "data").mkdir()
    counted = Counted(mountpoint, tmp_path / "data")
    for number in range(FOLDERS):
        (mountpoint / f"d{number}").mkdir()
    try:
        yield counted
    finally:
        counted.mount.stop()
    assert check(tmp_path / "data") == []


@pytest.fixture
def filled(empty: Counted) -> Counted:
    empty.create()
    return empty


def run(*command: str, codes: tuple[int, ...] = (0,)) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in codes, done.stderr
    return done.stdout


@pytest.mark.promise("speed.requests-create")
def test_a_new_file_with_contents_costs_what_the_kernel_cannot_be_talked_out_of(empty: Counted) -> None:
    """The file's own three, and two that come from checks: the folder's attributes after each change of it, and whether the
    file has capabilities that its first write would have to take away."""
    asked = empty.during(empty.create)
    for kind in ("LOOKUP", "MKNOD", "WRITE"):
        assert FILES <= asked.pop(kind) <= FILES * 1.02, kind
    for kind in ("GETXATTR", "GETATTR"):
        assert asked.pop(kind, 0) <= FILES * 1.02, kind
    assert sum(asked.values()) <= 3, asked  # the very first open and close, which tell the kernel not to ask again


@pytest.mark.promise("speed.requests-warm")
def test_a_repeated_stat_asks_nothing(filled: Counted) -> None:
    filled.stat()
    assert filled.least(filled.stat) == {}


@pytest.mark.promise("speed.requests-warm")
def test_a_repeated_read_asks_nothing(filled: Counted) -> None:
    filled.read()
    assert filled.least(filled.read) == {}


@pytest.mark.promise("speed.requests-grep")
def test_a_cold_grep_asks_hardly_more_than_once_a_file(filled: Counted) -> None:
    filled.make_cold()
    asked = filled.during(lambda: run("grep", "-r", "not there", str(filled.mount.path), codes=(1,)))
    assert sum(asked.values()) / FILES <= 1.1, asked
    assert sum(asked.values()) >= FILES, asked


@pytest.mark.promise("speed.requests-ripgrep")
@pytest.mark.skipif(shutil.which("rg") is None, reason="ripgrep is not installed")
def test_a_warm_ripgrep_asks_hardly_anything(filled: Counted) -> None:
    def search() -> None:
        run("rg", "not there", str(filled.mount.path), codes=(1,))

    search()
    asked = filled.least(search)
    assert sum(asked.values()) / FILES <= 0.05, asked


@pytest.mark.promise("speed.requests-listing")
def test_a_cold_listing_with_attributes_asks_for_many_files_at_once(filled: Counted) -> None:
    filled.make_cold()
    listed: list[str] = []
    asked = filled.during(lambda: listed.append(run("ls", "-lR", str(filled.mount.path))))
    assert listed[0].count(".md\n") == FILES
    assert sum(asked.values()) / FILES <= 0.1, asked


@pytest.mark.promise("speed.requests-lookup")
def test_a_cold_stat_is_one_lookup(filled: Counted) -> None:
    filled.make_cold()
    asked = filled.during(filled.stat)
    assert asked.pop("LOOKUP") == FILES + FOLDERS
    assert sum(asked.values()) <= 2, asked  # of the mount itself: INIT when it is that quick, GETATTR of the root
