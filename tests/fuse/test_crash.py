"""kill -9 of the serving process while somebody works in the mount: what was answered is there afterwards."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from memdir.fs.fuse.mounting import clear_dead_mount
from memdir.fs.fuse.mountpoint import is_mountpoint
from tests.fuse.harness import MountProcess
from tests.fuse.test_names import refused

pytestmark = pytest.mark.mount

_WORK = """
import hashlib, os, sys
root = sys.argv[1]
for n in range(100000):
    data = hashlib.sha256(str(n).encode()).digest() * (1 + n % 7 * 700)
    folder = f"{root}/d{n % 5}"
    os.makedirs(folder, exist_ok=True)
    temporary, path = f"{folder}/.new{n}", f"{folder}/f{n}"
    fd = os.open(temporary, os.O_CREAT | os.O_WRONLY, 0o644)
    assert os.write(fd, data) == len(data)
    os.close(fd)
    os.rename(temporary, path)
    if n % 3 == 2:
        os.unlink(f"{root}/d{(n - 1) % 5}/f{n - 1}")
    print(n, flush=True)
"""


def _contents(number: int) -> bytes:
    return hashlib.sha256(str(number).encode()).digest() * (1 + number % 7 * 700)


def _attributes(path: Path) -> tuple[int, ...]:
    """All but the device number, which belongs to the mount and not to the filesystem."""
    info = os.lstat(path)
    times = (info.st_atime_ns, info.st_mtime_ns, info.st_ctime_ns)
    return info.st_ino, info.st_mode, info.st_nlink, info.st_uid, info.st_gid, info.st_size, *times


@pytest.mark.promise("files.acknowledged")
@pytest.mark.parametrize("acknowledged_before_the_kill", [1, 7, 40, 150])
def test_every_answered_operation_survives_a_kill(tmp_path: Path, mountpoint: Path, acknowledged_before_the_kill: int) -> None:
    data = tmp_path / "data"
    data.mkdir()
    mount = MountProcess(mountpoint, kind="sqlite", folder=data)
    mount.start()
    worker = subprocess.Popen([sys.executable, "-c", _WORK, str(mountpoint)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    with worker:
        assert worker.stdout is not None
        for _ in range(acknowledged_before_the_kill):
            last = int(worker.stdout.readline())
        mount.kill()
        for line in worker.stdout:  # answered before the kill, read by us after it
            last = int(line)
        assert worker.wait(60) != 0
    assert clear_dead_mount(mountpoint)
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        for number in range(last + 1):
            path = mountpoint / f"d{number % 5}" / f"f{number}"
            deleted = number % 3 == 1 and number + 1 <= last
            if deleted:
                assert not path.exists(), number
            elif path.exists() or number % 3 != 1 or number != last:  # the deletion after the last answer may have happened
                assert path.read_bytes() == _contents(number), number
        (mountpoint / "after").write_text("goes on")
    assert check(data) == []


@pytest.mark.promise("files.survive-remount")
def test_contents_and_attributes_survive_unmounting_and_mounting_again(tmp_path: Path, mountpoint: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        (mountpoint / "d").mkdir(mode=0o750)
        (mountpoint / "d" / "f").write_bytes(b"x" * 300_000)
        os.link(mountpoint / "d" / "f", mountpoint / "hard")
        os.symlink("d/f", mountpoint / "link")
        os.setxattr(mountpoint / "hard", "user.a", b"v")
        os.utime(mountpoint / "hard", ns=(1, 2))
        paths = ("d", "d/f", "hard", "link")
        before = {path: _attributes(mountpoint / path) for path in paths}
    assert not is_mountpoint(mountpoint)
    assert check(data) == []
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        assert sorted(os.listdir(mountpoint)) == ["d", "hard", "link"]
        assert {path: _attributes(mountpoint / path) for path in paths} == before
        assert os.getxattr(mountpoint / "d" / "f", "user.a") == b"v"
        assert (mountpoint / "link").read_bytes() == b"x" * 300_000


def test_an_unlinked_open_file_is_gone_after_a_kill(tmp_path: Path, mountpoint: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    mount = MountProcess(mountpoint, kind="sqlite", folder=data)
    mount.start()
    fd = os.open(mountpoint / "f", os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"x" * 100_000)
    (mountpoint / "f").unlink()
    os.write(fd, b"y")
    mount.kill()
    with refused(errno.ENOTCONN):
        os.write(fd, b"z")
    with contextlib.suppress(OSError):  # closing asks for a last flush, which nobody answers
        os.close(fd)
    assert clear_dead_mount(mountpoint)
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        assert os.listdir(mountpoint) == []
    assert check(data) == []


def test_many_writers_and_remote_changes_at_once_neither_hang_nor_mix_up(own_mount: MountProcess) -> None:
    """Eight threads in the mount, the server's changes beside them; each file ends with its own contents."""
    root = own_mount.path
    failures: list[BaseException] = []

    def work(name: str) -> None:
        try:
            (root / name).mkdir()
            for number in range(40):
                path = root / name / str(number)
                path.write_text(f"{name} {number} " * 200)
                path.rename(root / name / f"moved {number}")
                assert len(os.listdir(root / name)) == number + 1
                assert not (root / "shared" / str(number)).is_dir()
        except BaseException as error:  # noqa: BLE001  handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=work, args=[f"w{number}"]) for number in range(8)]
    for thread in threads:
        thread.start()
    for number in range(20):
        own_mount.call("put_many", folder="/shared", count=10, text=f"round {number}")
        own_mount.call("delete_many", folder="/shared", count=5)
    for thread in threads:
        thread.join(120)
        assert not thread.is_alive()
    assert failures == []
    for name in (f"w{number}" for number in range(8)):
        for number in range(40):
            assert (root / name / f"moved {number}").read_text() == f"{name} {number} " * 200
    assert sorted(os.listdir(root / "shared")) == ["5", "6", "7", "8", "9"]
    assert {(root / "shared" / str(number)).read_text() for number in range(5, 10)} == {"round 19"}
