"""Large files on a real mount."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.fuse.mounting import clear_dead_mount
from tests.fuse.harness import MountProcess

pytestmark = pytest.mark.mount

_MIB = 1024 * 1024
_PAGE_KIB = os.sysconf("SC_PAGE_SIZE") // 1024


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


def resident_mib(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE_KIB // 1024


@pytest.mark.promise("large.bounded-memory")
def test_memory_does_not_grow_with_a_file(mountpoint: Path, data: Path) -> None:
    piece = os.urandom(_MIB)
    with MountProcess(mountpoint, kind="sqlite", folder=data) as mount:
        (mountpoint / "small").write_bytes(piece[:1000])
        before = resident_mib(mount.pid)
        with (mountpoint / "big").open("wb", buffering=0) as file:
            for _ in range(96):
                file.write(piece)
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        with (mountpoint / "big").open("rb", buffering=0) as file:
            for _ in range(96):
                assert file.read(_MIB) == piece
        assert resident_mib(mount.pid) - before < 48
        with (mountpoint / "sparse").open("wb", buffering=0) as file:
            file.truncate(10 << 30)
            file.seek(10 << 30)
            file.write(b"end")
            assert os.lseek(file.fileno(), 0, os.SEEK_DATA) > 9 << 30
        (mountpoint / "big").unlink()
        (mountpoint / "sparse").unlink()
    assert check(data) == []
    SqliteFs.open(data).close()  # what the kernel had not forgotten yet when it was unmounted goes now
    assert list((data / "blobs").iterdir()) == []
    assert check(data) == []


@pytest.mark.promise("large.killed")
def test_a_killed_daemon_loses_nothing_of_a_large_file(mountpoint: Path, data: Path) -> None:
    expected = bytearray(os.urandom(3 * _MIB))
    mount = MountProcess(mountpoint, kind="sqlite", folder=data)
    assert mount.start() == {"ready": True}
    file = os.open(mountpoint / "big", os.O_CREAT | os.O_RDWR)
    assert os.write(file, expected) == len(expected)
    os.pwrite(file, b"over", 5)
    expected[5:9] = b"over"
    os.ftruncate(file, 2 * _MIB + 3)
    os.pwrite(file, b"end", 3 * _MIB)
    expected[2 * _MIB + 3 :] = bytes(_MIB - 3) + b"end"
    mount.kill()
    with pytest.raises(OSError, match="not connected"):
        os.close(file)
    assert clear_dead_mount(mountpoint)
    assert check(data) == []
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        assert (mountpoint / "big").read_bytes() == expected
    assert check(data) == []
