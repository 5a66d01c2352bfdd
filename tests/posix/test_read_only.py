"""Read-only mounts: every change is EROFS, whatever kind of read-only, and what can be read stays readable."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from tests.fuse.harness import MountProcess
from tests.fuse.test_names import refused

pytestmark = [pytest.mark.mount, pytest.mark.promise("posix.read-only")]

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_NOATIME = 1, 2, 4, 32, 1024
_libc = ctypes.CDLL(None, use_errno=True)


def fill(place: Path) -> None:
    (place / "f").write_text("hello")
    (place / "d").mkdir()
    (place / "d" / "g").touch()
    os.symlink("f", place / "s")
    os.setxattr(place / "f", "user.a", b"1")


CHANGES: dict[str, Callable[[], object]] = {
    "chmod": lambda: os.chmod("f", 0o600),
    "chown": lambda: os.chown("f", 0, 0),
    "lchown": lambda: os.lchown("s", 0, 0),
    "link": lambda: os.link("f", "new"),
    "mkdir": lambda: os.mkdir("new"),
    "mknod": lambda: os.mknod("new", stat.S_IFSOCK | 0o600),
    "mkfifo": lambda: os.mkfifo("new"),
    "create": lambda: os.open("new", os.O_CREAT | os.O_WRONLY),
    "create for reading": lambda: os.open("new", os.O_CREAT | os.O_RDONLY),
    "open for writing": lambda: os.open("f", os.O_WRONLY),
    "open for both": lambda: os.open("f", os.O_RDWR),
    "open and truncate": lambda: os.open("f", os.O_RDONLY | os.O_TRUNC),
    "rename": lambda: os.rename("f", "new"),
    "rename over": lambda: os.rename("f", "d/g"),
    "rmdir": lambda: os.rmdir("d"),
    "symlink": lambda: os.symlink("x", "new"),
    "truncate": lambda: os.truncate("f", 1),
    "unlink": lambda: os.unlink("f"),
    "utimensat": lambda: os.utime("f", ns=(1, 1)),
    "utimensat of a symlink": lambda: os.utime("s", ns=(1, 1), follow_symlinks=False),
    "setxattr": lambda: os.setxattr("f", "user.b", b"1"),
    "removexattr": lambda: os.removexattr("f", "user.a"),
}


def outcome(change: Callable[[], object]) -> str:
    try:
        change()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "done"


@pytest.fixture(params=["option", "remount"])
def read_only(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A filled mount that was mounted read-only, or was made read-only while it was mounted (`mount -o remount,ro`)."""
    mountpoint, data = tmp_path / "mnt", tmp_path / "data"
    mountpoint.mkdir()
    data.mkdir()
    if request.param == "remount":
        if os.geteuid() != 0:
            pytest.skip("remounting needs root")
        with MountProcess(mountpoint, kind="sqlite", folder=data):
            fill(mountpoint)
            assert remount(mountpoint, MS_RDONLY) == 0
            yield mountpoint
            assert remount(mountpoint, 0) == 0
            (mountpoint / "again").touch()
    else:
        with MountProcess(mountpoint, kind="sqlite", folder=data):
            fill(mountpoint)
        with MountProcess(mountpoint, kind="sqlite", folder=data, options={"read_only": True}):
            yield mountpoint
    assert check(data) == []


def remount(mountpoint: Path, flags: int) -> int:
    flags |= MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOATIME
    result: int = _libc.mount(None, os.fsencode(mountpoint), None, ctypes.c_ulong(flags), None)
    return result


def test_every_change_is_refused_and_reading_works(read_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(read_only)
    assert {name: outcome(change) for name, change in CHANGES.items()} == dict.fromkeys(CHANGES, "EROFS")
    assert Path("f").read_text() == "hello"
    assert os.readlink("s") == "f"
    assert sorted(os.listdir(".")) == ["d", "f", "s"]
    assert os.getxattr("f", "user.a") == b"1"
    assert os.statvfs(".").f_flag & os.ST_RDONLY
    assert not os.access("f", os.W_OK)
    with refused(errno.EEXIST):
        os.mkdir("d")
    os.close(os.open("f", os.O_CREAT | os.O_RDONLY))
    monkeypatch.undo()


def test_a_file_that_is_open_for_writing_keeps_a_mount_writable(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("remounting needs root")
    mountpoint = tmp_path / "mnt"
    mountpoint.mkdir()
    with MountProcess(mountpoint, kind="memory"):
        with (mountpoint / "f").open("w") as handle:
            assert remount(mountpoint, MS_RDONLY) == -1
            assert ctypes.get_errno() == errno.EBUSY
            handle.write("x")
        assert remount(mountpoint, MS_RDONLY) == 0
