"""A disk that is really full: ENOSPC in the program, nothing half-written, deleting works and gives space back."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.core.limits import KIB, MIB
from memdir.fs.cache import flusher
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.types import ROOT_INO, AttrChange

from . import snapshot
from .contract import FILE, ME, make, refuses, text

WAIT_S = 30.0
pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small filesystem needs root"),
    pytest.mark.promise("survives.full-disk"),
]


@pytest.fixture(params=["ext4", "tmpfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A filesystem of 48 MiB."""
    where = tmp_path / "disk"
    where.mkdir()
    if request.param == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", "size=48m", "none", str(where)]
    else:
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("mkfs.ext4 is not installed")
        image = tmp_path / "image"
        image.touch()
        os.truncate(image, 48 * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", str(image)], check=True)
        command = ["mount", "-o", "loop", str(image), str(where)]
    mounted = subprocess.run(command, check=False, capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"no {request.param} can be mounted here: {mounted.stderr.strip()}")
    yield where
    subprocess.run(["umount", "-l", str(where)], check=True)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "QUIET_S", 0.02)
    monkeypatch.setattr(flusher, "RETRY_S", 0.05)
    monkeypatch.setattr(flusher, "IDLE_S", 0.05)


def free_bytes(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize


def comes_true(fs: SqliteFs, holds: Callable[[], bool], limit_s: float) -> bool:
    """Poll with the flusher's own condition, which it notifies when something became possible."""
    with fs._lock:
        for _ in range(int(limit_s / 0.05)):
            if holds():
                return True
            fs._room.wait(0.05)
    return False


def until(fs: SqliteFs, holds: Callable[[], bool], what: str) -> None:
    if not comes_true(fs, holds, WAIT_S):
        pytest.fail(f"{what}: {fs.trouble}")


def fill(fs: SqliteFs, size_bytes: int) -> list[bytes]:
    """Copy files until the disk refuses; names of those that were written whole."""
    names: list[bytes] = []
    data = os.urandom(size_bytes)

    def copy() -> None:
        for number in range(20_000):
            name = b"f%05d" % number
            ino = fs.create(ROOT_INO, name, FILE, ME).ino
            fs.write(ino, 0, name + data)
            names.append(name)

    refuses(errno.ENOSPC, copy)
    return names


def outside(disk: Path, name: str = "other") -> Path:
    """Somebody else takes what is left."""
    path = disk / name
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    for step in (MIB, 64 * KIB, KIB, 1):
        with contextlib.suppress(OSError):
            while os.write(fd, bytes(step)):
                pass
    os.close(fd)
    return path


def comes_back(fs: SqliteFs, holds: Callable[[], bool], other: Path) -> None:
    """By itself as a rule; where SQLite's log has the last byte, when somebody has freed a little."""
    if not comes_true(fs, holds, 5.0):
        os.truncate(other, max(0, other.stat().st_size - 4 * MIB))
        until(fs, holds, "the space does not come back")


def can_write(fs: SqliteFs) -> bool:
    """Whether a file can be written now. Beside a disk that is full to the last byte, SQLite may need what the shortage was
    declared over for: then the next write is refused once more, and the one after it is not."""
    try:
        make(fs, b"new%d" % fs.last_lsn, b"x" * 1000)
    except FsError as error:
        if error.errno != errno.ENOSPC:
            raise
        return False
    return True


def delete_all(fs: SqliteFs, count: int, disk: Path, other: Path) -> None:
    """Delete the files `f0` and so on. In one of ten runs or so the other program was quick enough to take the reserve as well,
    just when it was let go for writing, or SQLite needed all of it: ENOSPC then, until somebody has freed a little, once."""
    try:
        for number in range(count):
            fs.unlink(ROOT_INO, b"f%d" % number)
    except FsError as error:
        if error.errno != errno.ENOSPC:
            raise
    else:
        return
    os.truncate(other, other.stat().st_size - 4 * MIB)
    until(fs, lambda: free_bytes(disk) > MIB, "what was freed outside is gone")
    for name in [entry.name for entry in fs.readdir(ROOT_INO) if entry.name.startswith(b"f")]:
        fs.unlink(ROOT_INO, name)


@pytest.mark.parametrize("size_bytes", [2000, 300 * KIB])
def test_a_copy_gets_enospc_and_deleting_gives_the_space_back(
    disk: Path, quick: None, size_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with SqliteFs.open(disk / "cache") as fs:
        before = free_bytes(disk)
        names = fill(fs, size_bytes)
        used = sum(len(name) + size_bytes for name in names)
        assert used > 24 * MIB
        for name in names:
            assert text(fs, fs.lookup(ROOT_INO, name).ino)[:6] == name
        for name in names:
            fs.unlink(ROOT_INO, name)
        until(fs, lambda: free_bytes(disk) > before - 4 * MIB and not fs.is_short, "the space does not come back")
        make(fs, b"again", b"x" * MIB)
        assert text(fs, fs.lookup(ROOT_INO, b"again").ino) == b"x" * MIB
    assert check(disk / "cache") == []
    errors = [line for line in caplog.messages if "only deleting" in line or "cannot be written" in line]
    assert len(errors) <= 6, errors


def test_deleting_works_when_somebody_else_took_the_last_byte(disk: Path, quick: None) -> None:
    with SqliteFs.open(disk / "cache") as fs:
        for number in range(60):
            make(fs, b"f%d" % number, os.urandom(200 * KIB))
        fs.flush()
        other = outside(disk)
        before = snapshot.of_vfs(fs)
        refuses(errno.ENOSPC, lambda: [make(fs, b"g%d" % number, b"x" * KIB) for number in range(40_000)])
        now = snapshot.of_vfs(fs)
        assert all(now[path] == before[path] for path in before if path != "/")
        delete_all(fs, 60, disk, other)
        comes_back(fs, lambda: free_bytes(disk) > 6 * MIB and not fs.is_short, other)
        make(fs, b"again", b"x" * MIB)
        other.unlink()
    assert check(disk / "cache") == []


def test_it_says_what_is_wrong_and_refuses_growth_only(disk: Path, quick: None) -> None:
    with SqliteFs.open(disk / "cache") as fs:
        ino = make(fs, b"a", b"x" * 900 * KIB).ino
        make(fs, b"b", b"y" * 900 * KIB)
        fs.setxattr(ino, b"user.k", b"v")
        fs.flush()
        assert fs.trouble is None
        other = outside(disk)
        fs._space.release(FsError(errno.ENOSPC, "for the test"))
        more = outside(disk, "more")
        assert fs.trouble is not None
        assert fs.statfs().blocks_available == 0
        refuses(errno.ENOSPC, lambda: fs.write(ino, 0, b"z"))
        refuses(errno.ENOSPC, lambda: make(fs, b"c"))
        assert text(fs, ino) == b"x" * 900 * KIB
        more.unlink()
        fs.rename(ROOT_INO, b"a", ROOT_INO, b"b")
        fs.removexattr(ino, b"user.k")
        fs.setattr(ino, AttrChange(size=10))
        other.unlink()
        until(fs, lambda: not fs.is_short, "it does not go on")
        assert fs.trouble is None
        fs.write(ino, 0, b"z")
        assert text(fs, ino) == b"z" + b"x" * 9
    assert check(disk / "cache") == []


@pytest.mark.parametrize("pending", [True, False])
def test_a_killed_mount_opens_again_on_a_full_disk(disk: Path, pending: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever waits in the journal: it is there, it can be read, and deleting gives space."""
    code = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from memdir.fs.cache import flusher\n"
        "from memdir.fs.cache.filesystem import SqliteFs\n"
        "from tests.fs.contract import make\n"
        f"flusher.QUIET_S = {30 if pending else 0.01}\n"
        "fs = SqliteFs.open(Path(sys.argv[1]))\n"
        "for number in range(120): make(fs, b'f%d' % number, os.urandom(100_000))\n"
        f"{'' if pending else 'fs.flush()'}\n"
        "os.write(1, b'.')\n"
        "sys.stdin.read()\n"
    )
    folder = disk / "cache"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2],
    ) as child:  # fmt: skip
        assert child.stdout is not None
        assert child.stdout.read(1) == b"."
        other = outside(disk)
        child.kill()
    monkeypatch.setattr(flusher, "RETRY_S", 0.05)
    monkeypatch.setattr(flusher, "IDLE_S", 0.05)
    assert check(folder) == []
    with SqliteFs.open(folder) as fs:
        for number in range(120):
            assert len(text(fs, fs.lookup(ROOT_INO, b"f%d" % number).ino)) == 100_000
        delete_all(fs, 120, disk, other)
        comes_back(fs, lambda: not fs.is_short and can_write(fs), other)
    assert check(folder) == []
    other.unlink()
