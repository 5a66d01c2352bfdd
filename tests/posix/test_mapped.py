"""Memory maps of files in a mount."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
from pathlib import Path

import pytest

from memdir.fs.cache.fsck import check
from tests.fuse.harness import MountProcess
from tests.fuse.test_names import refused
from tests.posix.forked import forked

pytestmark = [pytest.mark.mount, pytest.mark.promise("posix.mmap")]

PAGE = mmap.PAGESIZE
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
_libc.msync.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def drop_cache(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)


def test_two_processes_share_a_mapping_and_read_sees_it(place: Path) -> None:
    path = place / "f"
    path.write_bytes(bytes(1 << 20))
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, 1 << 20) as view:

        def child() -> None:
            own = os.open(path, os.O_RDWR)
            with mmap.mmap(own, 1 << 20) as other:
                other[500_000:500_005] = b"child"

        forked(child)()
        assert view[500_000:500_005] == b"child"
        assert os.pread(fd, 5, 500_000) == b"child"
        os.pwrite(fd, b"written", 600_000)
        assert view[600_000:600_007] == b"written"
    os.close(fd)


def test_a_mapping_moves_the_times_when_it_is_synced_or_closed(place: Path) -> None:
    path = place / "f"
    path.write_bytes(b"a" * 2 * PAGE)
    fd = os.open(path, os.O_RDWR)
    view = mmap.mmap(fd, 2 * PAGE)
    os.utime(path, ns=(5, 5))
    view[0:1] = b"X"
    view.flush()
    assert path.stat().st_mtime_ns != 5
    os.utime(path, ns=(5, 5))
    view[PAGE : PAGE + 1] = b"X"
    view.close()
    os.close(fd)
    assert path.stat().st_mtime_ns != 5
    assert path.read_bytes() == b"X" + b"a" * (PAGE - 1) + b"X" + b"a" * (PAGE - 1)


def test_a_page_behind_a_truncation_is_a_bus_error(place: Path) -> None:
    path = place / "f"
    path.write_bytes(b"a" * 2 * PAGE)
    pid = os.fork()
    if pid == 0:
        view = mmap.mmap(os.open(path, os.O_RDWR), 2 * PAGE)
        view[PAGE]
        os.truncate(path, 100)
        try:
            view[PAGE]
        finally:
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGBUS


def test_what_is_stored_past_the_end_never_shows(place: Path) -> None:
    """generic/029 and 030 of xfstests: the rest of the last page is zeros once the file grows."""
    path = place / "f"
    path.write_bytes(b"a" * 100)
    fd = os.open(path, os.O_RDWR)
    address = _libc.mmap(None, PAGE, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_SHARED, fd, 0)
    ctypes.memset(address + 90, ord("Z"), 1000)
    assert _libc.msync(address, PAGE, 4) == 0
    assert os.fstat(fd).st_size == 100
    os.ftruncate(fd, PAGE)
    expected = b"a" * 90 + b"Z" * 10 + bytes(PAGE - 100)
    assert os.pread(fd, PAGE, 0) == expected
    assert ctypes.string_at(address, PAGE) == expected
    _libc.munmap(address, PAGE)
    os.close(fd)
    drop_cache(path)
    assert path.read_bytes() == expected


def test_a_file_that_grows_is_mapped_anew(place: Path) -> None:
    path = place / "f"
    path.write_bytes(b"a" * 100)
    fd = os.open(path, os.O_RDWR)
    with mmap.mmap(fd, 100) as small:
        os.ftruncate(fd, 300_000)
        with mmap.mmap(fd, 300_000) as large:
            assert large[:100] == b"a" * 100
            assert large[100:] == bytes(299_900)
            large[299_999:] = b"Z"
            large[0:1] = b"Y"
            assert small[0:1] == b"Y"
    assert os.pread(fd, 1, 299_999) == b"Z"
    os.close(fd)


def test_a_mapping_outlives_its_name_and_its_descriptor(place: Path) -> None:
    fd = os.open(place / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 20)
    view = mmap.mmap(fd, 1 << 20)
    os.unlink(place / "f")
    os.close(fd)
    view[0:5] = b"hello"
    view.flush()
    assert view[0:5] == b"hello"
    assert view[1 << 19] == 0
    view.close()


def test_a_hole_can_be_mapped_and_filled(place: Path) -> None:
    fd = os.open(place / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 2 << 20)
    with mmap.mmap(fd, 2 << 20) as view:
        for offset in range(0, 2 << 20, 65_536):
            view[offset : offset + 4] = b"data"
    os.close(fd)
    drop_cache(place / "f")
    assert (place / "f").read_bytes() == (b"data" + bytes(65_532)) * 32


def test_a_read_only_descriptor_cannot_be_mapped_for_writing(place: Path) -> None:
    (place / "f").write_bytes(b"abc")
    fd = os.open(place / "f", os.O_RDONLY)
    with refused(errno.EACCES):
        mmap.mmap(fd, 3, mmap.MAP_SHARED, mmap.PROT_WRITE)
    os.close(fd)


def test_what_was_mapped_survives_a_remount(tmp_path: Path, base: Path) -> None:
    mountpoint, data = tmp_path / "mnt", tmp_path / "data"
    mountpoint.mkdir()
    data.mkdir()
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        (mountpoint / "f").write_bytes(bytes(3 << 20))
        fd = os.open(mountpoint / "f", os.O_RDWR)
        with mmap.mmap(fd, 3 << 20) as view:
            for offset in range(0, 3 << 20, 100_003):
                view[offset : offset + 1] = b"m"
            view.flush()
            view[1:2] = b"n"  # left to the kernel, which writes it before the file is closed
        os.close(fd)
    with MountProcess(mountpoint, kind="sqlite", folder=data):
        found = (mountpoint / "f").read_bytes()
    expected = bytearray(3 << 20)
    expected[::100_003] = b"m" * len(expected[::100_003])
    expected[1:2] = b"n"
    assert found == expected
    assert check(data) == []
