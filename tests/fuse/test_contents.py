"""Contents and attributes on a real mount."""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import random
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuse.test_names import refused

pytestmark = pytest.mark.mount

_MIB = 1024 * 1024


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 131_071, 131_072, 131_073, 3 * _MIB + 17])
def test_bytes_come_back_as_they_were(place: Path, size: int) -> None:
    data = random.Random(size).randbytes(size)
    (place / "f").write_bytes(data)
    assert os.stat(place / "f").st_size == size
    os.posix_fadvise(fd := os.open(place / "f", os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    assert (place / "f").read_bytes() == data


def test_random_writes_and_truncations_match_a_byte_array(place: Path) -> None:
    rng = random.Random(7)
    model = bytearray()
    with (place / "f").open("w+b", buffering=0) as handle:
        for _ in range(400):
            offset = rng.randrange(600_000)
            if rng.random() < 0.2:
                handle.truncate(offset)
                model[:] = model[:offset].ljust(offset, b"\0")
            else:
                data = rng.randbytes(rng.choice([1, 100, 5000, 140_000]))
                handle.seek(offset)
                assert handle.write(data) == len(data)
                model[:] = model.ljust(offset, b"\0")
                model[offset : offset + len(data)] = data
            if rng.random() < 0.1:
                os.posix_fadvise(handle.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            start = rng.randrange(600_000)
            assert os.pread(handle.fileno(), 70_000, start) == bytes(model[start : start + 70_000])
    assert (place / "f").read_bytes() == bytes(model)


def test_two_processes_append_without_losing_a_line(place: Path) -> None:
    script = (
        "import os,sys\n"
        "fd=os.open(sys.argv[1],os.O_WRONLY|os.O_APPEND|os.O_CREAT,0o644)\n"
        "for n in range(300): os.write(fd,f'{sys.argv[2]}-{n:04d}\\n'.encode())\n"
    )
    workers = [subprocess.Popen([sys.executable, "-c", script, str(place / "log"), name]) for name in "ab"]
    assert [worker.wait(60) for worker in workers] == [0, 0]
    lines = (place / "log").read_text().splitlines()
    assert sorted(lines) == sorted(f"{name}-{number:04d}" for name in "ab" for number in range(300))


def test_a_shared_mapping_writes_through(place: Path) -> None:
    (place / "f").write_bytes(b"a" * 10_000)
    with (place / "f").open("r+b") as handle, mmap.mmap(handle.fileno(), 0) as view:
        view[0:5] = b"HELLO"
        view[8191:8194] = b"XYZ"
        view.flush()
        assert os.pread(handle.fileno(), 5, 0) == b"HELLO"
        view[9999:10_000] = b"!"
    data = (place / "f").read_bytes()
    assert data[:5] == b"HELLO"
    assert data[8191:8194] == b"XYZ"
    assert data[-1:] == b"!"
    assert len(data) == 10_000


def test_a_private_mapping_changes_nothing(place: Path) -> None:
    (place / "f").write_bytes(b"abc")
    with (place / "f").open("rb") as handle, mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_COPY) as view:
        view[0:1] = b"X"
    assert (place / "f").read_bytes() == b"abc"


def test_a_mapping_sees_a_later_write(place: Path) -> None:
    (place / "f").write_bytes(b"a" * 4096)
    with (place / "f").open("r+b") as handle, mmap.mmap(handle.fileno(), 0) as view:
        assert view[0:1] == b"a"
        os.pwrite(handle.fileno(), b"b", 0)
        assert view[0:1] == b"b"


def test_holes_read_as_zeros_and_can_be_found(place: Path) -> None:
    with (place / "f").open("w+b", buffering=0) as handle:
        os.pwrite(handle.fileno(), b"end", 5 * _MIB)
        assert os.pread(handle.fileno(), 10, _MIB) == bytes(10)
        assert os.fstat(handle.fileno()).st_size == 5 * _MIB + 3
        data = os.lseek(handle.fileno(), 0, os.SEEK_DATA)
        assert 0 < data <= 5 * _MIB
        assert os.lseek(handle.fileno(), 0, os.SEEK_HOLE) == 0
        assert os.lseek(handle.fileno(), 5 * _MIB, os.SEEK_HOLE) == 5 * _MIB + 3
        with refused(errno.ENXIO):
            os.lseek(handle.fileno(), 6 * _MIB, os.SEEK_DATA)


def test_fallocate_grows_and_punches(place: Path) -> None:
    keep_size, punch = 1, 2
    with (place / "f").open("w+b", buffering=0) as handle:
        handle.write(b"x" * 300_000)
        os.posix_fallocate(handle.fileno(), 0, 400_000)
        assert os.fstat(handle.fileno()).st_size == 400_000
        _fallocate(handle.fileno(), keep_size | punch, 1000, 200_000)
        expected = b"x" * 1000 + bytes(200_000) + b"x" * 99_000 + bytes(100_000)
        assert os.pread(handle.fileno(), 500_000, 0) == expected
        _fallocate(handle.fileno(), keep_size, 0, 900_000)
        assert os.fstat(handle.fileno()).st_size == 400_000
        with refused(errno.EOPNOTSUPP):
            _fallocate(handle.fileno(), 8, 0, 4096)  # FALLOC_FL_COLLAPSE_RANGE


def _fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
    if libc.fallocate(fd, mode, offset, length) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def test_copy_file_range_copies_inside_the_mount(place: Path) -> None:
    data = random.Random(3).randbytes(11 * _MIB)
    (place / "a").write_bytes(data)
    source = os.open(place / "a", os.O_RDONLY)
    target = os.open(place / "b", os.O_RDWR | os.O_CREAT)
    try:
        done = 0
        while copied := os.copy_file_range(source, target, len(data) - done, done, done + 5):
            done += copied
        assert done == len(data)
        assert os.pread(target, 20, 0) == bytes(5) + data[:15]
        # within one file, not overlapping
        assert os.copy_file_range(target, target, 100, 5, 200) == 100
        assert os.pread(target, 100, 200) == data[:100]
    finally:
        os.close(source)
        os.close(target)
    assert (place / "b").stat().st_size == len(data) + 5


def test_a_file_has_a_largest_size(place: Path) -> None:
    with (place / "f").open("wb", buffering=0) as handle:
        with refused(errno.EFBIG):
            os.ftruncate(handle.fileno(), 1 << 62)
        assert os.fstat(handle.fileno()).st_size == 0


def test_open_with_truncation_empties(place: Path) -> None:
    (place / "f").write_text("long contents")
    (place / "f").open("w").close()
    assert (place / "f").read_bytes() == b""


def test_times_are_kept_to_the_nanosecond(place: Path) -> None:
    (place / "f").touch()
    for moment in (0, 1_234_567_890_123_456_789, -1_500_000_001, 4_102_444_800_999_999_999):
        os.utime(place / "f", ns=(moment, moment + 7))
        info = os.stat(place / "f")
        assert (info.st_atime_ns, info.st_mtime_ns) == (moment, moment + 7)
    before = os.stat(place / "f").st_ctime_ns
    os.utime(place / "f")
    info = os.stat(place / "f")
    assert info.st_mtime_ns > 1_600_000_000_000_000_000
    assert info.st_ctime_ns >= before


def test_writing_moves_the_time_and_reading_does_not(place: Path) -> None:
    (place / "f").write_text("x")
    os.utime(place / "f", ns=(5, 5))
    assert (place / "f").read_text() == "x"
    assert os.stat(place / "f").st_mtime_ns == 5
    with (place / "f").open("a") as handle:
        handle.write("y")
    assert os.stat(place / "f").st_mtime_ns > 5


def test_modes_and_owners_are_kept(place: Path) -> None:
    fd = os.open(place / "f", os.O_CREAT | os.O_WRONLY, 0o751)
    os.close(fd)
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE(os.stat(place / "f").st_mode) == 0o751 & ~umask
    os.chmod(place / "f", 0o7000)
    assert stat.S_IMODE(os.stat(place / "f").st_mode) == 0o7000
    os.chown(place / "f", 1234, 4321)
    info = os.stat(place / "f")
    assert (info.st_uid, info.st_gid) == (1234, 4321)
    assert not info.st_mode & stat.S_ISUID


def test_a_setgid_folder_passes_its_group_on(place: Path) -> None:
    (place / "d").mkdir()
    os.chown(place / "d", 0, 555)
    os.chmod(place / "d", 0o2755)
    (place / "d" / "f").touch()
    (place / "d" / "sub").mkdir()
    assert os.stat(place / "d" / "f").st_gid == 555
    assert os.stat(place / "d" / "sub").st_gid == 555
    assert os.stat(place / "d" / "sub").st_mode & stat.S_ISGID


def test_another_user_is_held_to_the_modes(place: Path) -> None:
    """A root mount lets other users in; the kernel checks modes for them, the sticky bit and setuid clearing included."""
    (place / "secret").write_text("x")
    os.chmod(place / "secret", 0o600)
    (place / "open").write_text("x")
    os.chmod(place / "open", 0o6777)
    (place / "sticky").mkdir()
    os.chmod(place / "sticky", 0o1777)
    (place / "sticky" / "roots").touch()
    script = (
        "import os,sys,errno\n"
        "os.setgroups([]); os.setresgid(65534,65534,65534); os.setresuid(65534,65534,65534)\n"
        "os.chdir(sys.argv[1])\n"
        "def no(number, call, *args):\n"
        "    try: call(*args)\n"
        "    except OSError as e: assert e.errno == number, e\n"
        "    else: raise AssertionError(call)\n"
        "no(errno.EACCES, open, 'secret')\n"
        "no(errno.EPERM, os.unlink, 'sticky/roots')\n"
        "no(errno.EPERM, os.chmod, 'open', 0o777)\n"
        "no(errno.EPERM, os.chown, 'open', 1, 1)\n"
        "no(errno.EACCES, os.mkdir, 'x')\n"
        "fd = os.open('open', os.O_WRONLY); os.write(fd, b'y'); os.close(fd)\n"
        "open('sticky/mine', 'w').close(); assert os.stat('sticky/mine').st_uid == 65534\n"
    )
    fd = os.open(place, os.O_RDONLY)
    try:
        done = subprocess.run(
            ["/usr/bin/env", "python3", "-c", script, f"/proc/self/fd/{fd}"],
            pass_fds=[fd], capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
    finally:
        os.close(fd)
    assert done.returncode == 0, done.stderr
    assert not os.stat(place / "open").st_mode & (stat.S_ISUID | stat.S_ISGID)


def test_extended_attributes_work(place: Path) -> None:
    (place / "f").touch()
    path = place / "f"
    assert os.listxattr(path) == []
    os.setxattr(path, "user.a", b"one")
    os.setxattr(path, "user.empty", b"")
    os.setxattr(path, "user.big", b"x" * 60_000)
    assert os.getxattr(path, "user.a") == b"one"
    assert os.getxattr(path, "user.empty") == b""
    assert os.getxattr(path, "user.big") == b"x" * 60_000
    assert sorted(os.listxattr(path)) == ["user.a", "user.big", "user.empty"]
    with refused(errno.EEXIST):
        os.setxattr(path, "user.a", b"two", os.XATTR_CREATE)
    with refused(errno.ENODATA):
        os.setxattr(path, "user.none", b"two", os.XATTR_REPLACE)
    os.setxattr(path, "user.a", b"three", os.XATTR_REPLACE)
    assert os.getxattr(path, "user.a") == b"three"
    os.removexattr(path, "user.a")
    for call in (lambda: os.getxattr(path, "user.a"), lambda: os.removexattr(path, "user.a")):
        with refused(errno.ENODATA):
            call()
    with refused(errno.EOPNOTSUPP):
        os.setxattr(path, "system.posix_acl_access", b"\2\0\0\0")
    os.setxattr(place, "user.on-a-folder", b"yes")
    assert os.getxattr(place, "user.on-a-folder") == b"yes"


def test_locks_exclude_each_other(place: Path) -> None:
    (place / "f").write_text("x")
    with (place / "f").open("r+") as one, (place / "f").open("r+") as other:
        fcntl.flock(one, fcntl.LOCK_EX)
        with refused(errno.EAGAIN):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(one, fcntl.LOCK_UN)
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.lockf(one, fcntl.LOCK_EX | fcntl.LOCK_NB)


def test_fsync_works_on_files_and_folders(place: Path) -> None:
    with (place / "f").open("w") as handle:
        handle.write("x")
        handle.flush()
        os.fsync(handle.fileno())
        os.fdatasync(handle.fileno())
    fd = os.open(place, os.O_RDONLY)
    os.fsync(fd)
    os.close(fd)
    os.sync()


def test_statvfs_tells_sizes(place: Path) -> None:
    info = os.statvfs(place)
    assert info.f_namemax == 255
    assert info.f_blocks >= info.f_bfree > 0
    assert info.f_frsize in (512, 1024, 4096, 65536)
