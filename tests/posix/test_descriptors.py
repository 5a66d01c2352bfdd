"""Open files: appending, locking, copying in the kernel, direct I/O, files without names, large offsets."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import random
import select
import socket
import struct
from pathlib import Path

import pytest

from tests.exercise.test_edges import until
from tests.fuse.harness import in_shell
from tests.fuse.test_names import refused
from tests.posix.calls import AT_FDCWD
from tests.posix.calls import check as check_call
from tests.posix.forked import forked

pytestmark = pytest.mark.mount

MIB = 1 << 20
AT_SYMLINK_FOLLOW = 0x400
libc = ctypes.CDLL(None, use_errno=True)
F_OFD_SETLK = 37


@pytest.mark.promise("posix.append")
def test_eight_processes_append_and_no_record_is_lost_or_torn(place: Path) -> None:
    def writer(name: int) -> None:
        fd = os.open(place / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        for number in range(150):
            os.write(fd, f"{name}-{number:04d}-{'z' * (number * 37 % 3000)}\n".encode())
        os.close(fd)

    for wait in [forked(lambda name=name: writer(name)) for name in range(8)]:  # type: ignore[misc]
        wait()
    lines = (place / "log").read_text().splitlines()
    expected = [f"{name}-{number:04d}-{'z' * (number * 37 % 3000)}" for name in range(8) for number in range(150)]
    assert sorted(lines) == sorted(expected)
    for name in range(8):
        own = [line for line in lines if line.startswith(f"{name}-")]
        assert own == sorted(own)


@pytest.mark.promise("posix.locks")
def test_flock_excludes_other_processes_until_it_is_given_back(place: Path) -> None:
    (place / "f").write_text("x")
    fd = os.open(place / "f", os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)

    def contender() -> None:
        own = os.open(place / "f", os.O_RDWR)
        with refused(errno.EAGAIN):
            fcntl.flock(own, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with refused(errno.EAGAIN):
            fcntl.flock(own, fcntl.LOCK_SH | fcntl.LOCK_NB)

    forked(contender)()
    ready, told = os.pipe()

    def waiter() -> None:
        os.close(fd)  # the lock belongs to the open file, which a fork shares
        own = os.open(place / "f", os.O_RDWR)
        os.write(told, b"1")
        fcntl.flock(own, fcntl.LOCK_EX)
        os.write(told, b"2")

    wait = forked(waiter)
    assert os.read(ready, 1) == b"1"
    assert select.select([ready], [], [], 0.05)[0] == []
    os.close(fd)  # the last descriptor of the lock
    assert select.select([ready], [], [], 30)[0] == [ready]
    assert os.read(ready, 1) == b"2"
    wait()
    os.close(ready)
    os.close(told)


@pytest.mark.promise("posix.locks")
def test_record_locks_exclude_overlapping_ranges_of_other_processes(place: Path) -> None:
    (place / "f").write_text("x" * 100)
    fd = os.open(place / "f", os.O_RDWR)
    fcntl.lockf(fd, fcntl.LOCK_EX, 10, 0)

    def contender() -> None:
        own = os.open(place / "f", os.O_RDWR)
        with refused(errno.EAGAIN):
            fcntl.lockf(own, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 5)
        with refused(errno.EAGAIN):
            fcntl.lockf(own, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 9)
        fcntl.lockf(own, fcntl.LOCK_EX | fcntl.LOCK_NB, 10, 10)

    forked(contender)()
    os.close(os.open(place / "f", os.O_RDONLY))  # POSIX: closing any descriptor of the file gives the process's locks back

    def successor() -> None:
        fcntl.lockf(os.open(place / "f", os.O_RDWR), fcntl.LOCK_EX | fcntl.LOCK_NB)

    forked(successor)()
    os.close(fd)


@pytest.mark.promise("posix.locks")
def test_open_file_description_locks_belong_to_the_description(place: Path) -> None:
    (place / "f").write_text("x")
    one, other = (os.open(place / "f", os.O_RDWR) for _ in range(2))
    whole = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    fcntl.fcntl(one, F_OFD_SETLK, whole)
    with refused(errno.EAGAIN):
        fcntl.fcntl(other, F_OFD_SETLK, whole)
    os.close(os.open(place / "f", os.O_RDONLY))
    with refused(errno.EAGAIN):
        fcntl.fcntl(other, F_OFD_SETLK, whole)
    os.close(one)
    fcntl.fcntl(other, F_OFD_SETLK, whole)
    os.close(other)


def test_sendfile_and_splice_move_bytes_in_and_out(place: Path) -> None:
    data = random.Random(1).randbytes(3 * MIB + 5)
    (place / "f").write_bytes(data)
    source, target = os.open(place / "f", os.O_RDONLY), os.open(place / "g", os.O_RDWR | os.O_CREAT)
    done = 0
    while done < len(data):
        done += os.sendfile(target, source, done, len(data) - done)
    assert (place / "g").read_bytes() == data
    reader, writer = os.pipe()
    moved = os.splice(source, writer, 65_536, offset_src=100)
    assert os.read(reader, moved) == data[100 : 100 + moved]
    os.write(writer, b"into")
    assert os.splice(reader, target, 4, offset_dst=7) == 4
    assert os.pread(target, 4, 7) == b"into"
    for fd in (source, target, reader, writer):
        os.close(fd)


def test_copy_file_range_says_what_it_cannot_do(place: Path) -> None:
    data = random.Random(2).randbytes(10 * MIB)
    (place / "f").write_bytes(data)
    (place / "g").write_bytes(b"y" * 100)
    os.utime(place / "g", ns=(1, 1))
    source, target = os.open(place / "f", os.O_RDWR), os.open(place / "g", os.O_RDWR)
    with refused(errno.EINVAL):  # the ranges overlap
        os.copy_file_range(source, source, 100, 0, 50)
    appending = os.open(place / "g", os.O_WRONLY | os.O_APPEND)
    with refused(errno.EBADF):
        os.copy_file_range(source, appending, 100, 0, 0)
    folder = os.open(place, os.O_RDONLY)
    with refused(errno.EISDIR):
        os.copy_file_range(folder, target, 10)
    assert os.copy_file_range(source, target, 100, len(data) + 5, 0) == 0
    assert os.copy_file_range(source, target, 50, 10, 200) == 50
    assert os.stat(place / "g").st_mtime_ns != 1
    assert (place / "g").read_bytes() == b"y" * 100 + bytes(100) + data[10:60]
    for fd in (source, target, appending, folder):
        os.close(fd)


def test_direct_and_buffered_access_see_the_same_bytes(place: Path) -> None:
    direct = os.open(place / "f", os.O_RDWR | os.O_CREAT | os.O_DIRECT)
    data = random.Random(3).randbytes(MIB)
    with mmap.mmap(-1, MIB) as out, mmap.mmap(-1, MIB) as back:
        out.write(data)
        assert os.pwritev(direct, [out], 0) == MIB
        assert os.preadv(direct, [back], 0) == MIB
        assert back[:] == data
        buffered = os.open(place / "f", os.O_RDWR)
        assert os.pread(buffered, MIB, 0) == data
        os.pwrite(buffered, b"buffered", 100)
        os.preadv(direct, [memoryview(back)[:4096]], 0)
        assert back[100:108] == b"buffered"
        os.pwritev(direct, [memoryview(out)[:4096]], 0)
        assert os.pread(buffered, 8, 100) == data[100:108]
    os.close(direct)
    os.close(buffered)


def test_thousands_of_open_files_without_names_keep_their_bytes(place: Path) -> None:
    fds = [os.open(place / str(number), os.O_CREAT | os.O_RDWR) for number in range(900)]
    for number, fd in enumerate(fds):
        os.write(fd, b"%d" % number)
        os.unlink(place / str(number))
    assert os.listdir(place) == []
    for number, fd in enumerate(fds):
        assert os.pread(fd, 10, 0) == b"%d" % number
        os.close(fd)


def test_a_file_without_a_name_can_be_linked_no_more(place: Path) -> None:
    def link(name: str) -> None:
        source, target = f"/proc/self/fd/{handle.fileno()}".encode(), os.fsencode(place / name)
        check_call(libc.linkat(AT_FDCWD, source, AT_FDCWD, target, AT_SYMLINK_FOLLOW))

    with (place / "f").open("w+b") as handle:
        link("g")
        assert os.fstat(handle.fileno()).st_nlink == 2
        os.unlink(place / "f")
        os.unlink(place / "g")
        with refused(errno.ENOENT):
            link("h")


def _found_by(handle: ctypes.Array[ctypes.c_char], folder: int) -> bool:
    Path("/proc/sys/vm/drop_caches").write_text("2")
    fd = libc.open_by_handle_at(folder, handle, os.O_RDONLY)
    if fd >= 0:
        os.close(fd)
    else:
        assert ctypes.get_errno() == errno.ESTALE
    return fd >= 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs CAP_DAC_READ_SEARCH")
def test_a_file_is_found_by_its_handle_until_it_is_gone(place: Path) -> None:
    """What an NFS server exports files with, also when the kernel has forgotten them."""
    (place / "f").write_text("hello")
    handle, mount_id = ctypes.create_string_buffer(136), ctypes.c_int()
    struct.pack_into("I", handle, 0, 128)
    check_call(libc.name_to_handle_at(AT_FDCWD, os.fsencode(place / "f"), handle, ctypes.byref(mount_id), 0))
    folder = os.open(place, os.O_RDONLY)
    Path("/proc/sys/vm/drop_caches").write_text("2")
    fd = check_call(libc.open_by_handle_at(folder, handle, os.O_RDONLY))
    assert os.read(fd, 10) == b"hello"
    os.close(fd)
    os.unlink(place / "f")
    # A file is there until its last close, which the kernel sends when it likes.
    until(lambda: not _found_by(handle, folder), "the handle is stale")
    os.close(folder)


def test_a_file_with_thousands_of_names_is_made_and_removed_soon(place: Path) -> None:
    (place / "f").touch()
    for number in range(2000):
        os.link(place / "f", place / str(number))
    assert (place / "f").stat().st_nlink == 2001
    for number in range(1999, -1, -1):
        os.unlink(place / str(number))
    assert (place / "f").stat().st_nlink == 1


def test_attributes_can_be_listed_however_many_there_are(place: Path) -> None:
    (place / "f").touch()
    fitting = 65_536 // len("user.attribute-number-0000.")
    for number in range(fitting):
        os.setxattr(place / "f", f"user.attribute-number-{number:04d}", b"v")
    with refused(errno.ENOSPC):
        os.setxattr(place / "f", "user.attribute-number-xxxx", b"v")
    assert len(os.listxattr(place / "f")) == fitting


@pytest.mark.promise("posix.large")
def test_a_sparse_file_of_ten_gigabytes_reads_as_it_was_written(place: Path) -> None:
    fd = os.open(place / "f", os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 10 << 30)
    marks = [0, (1 << 32) - 2, 1 << 32, 5 << 30, (10 << 30) - 4]
    for number, offset in enumerate(marks):
        assert os.pwrite(fd, b"%04d" % number, offset) == 4
    assert os.fstat(fd).st_size == 10 << 30
    assert os.pread(fd, 4, marks[-1]) == b"0004"
    assert os.pread(fd, 6, (1 << 32) - 2) == b"000002"[:2] + b"0002"[:4]
    assert os.pread(fd, 4096, 3 << 30) == bytes(4096)
    assert os.lseek(fd, (5 << 30) + 2 * MIB, os.SEEK_DATA) >= (10 << 30) - MIB
    with refused(errno.EFBIG):
        os.pwrite(fd, b"x", (1 << 63) - 2)
    with refused(errno.EFBIG):
        os.ftruncate(fd, (1 << 63) - 1)
    os.close(fd)
    os.unlink(place / "f")


@pytest.mark.promise("posix.sparse")
def test_blocks_tell_what_a_large_file_takes(place: Path) -> None:
    """`du`, and `cp` and `tar` when they decide whether to look for holes."""
    with (place / "f").open("w+b", buffering=0) as handle:
        handle.truncate(10 << 30)
        assert os.fstat(handle.fileno()).st_blocks * 512 < MIB
        os.pwrite(handle.fileno(), b"x" * 4 * MIB, 5 << 30)
        assert 4 * MIB <= os.fstat(handle.fileno()).st_blocks * 512 < 5 * MIB
        os.posix_fallocate(handle.fileno(), 0, 8 * MIB)
        assert 12 * MIB <= os.fstat(handle.fileno()).st_blocks * 512 < 13 * MIB
        os.copy_file_range(handle.fileno(), handle.fileno(), 5 << 30, 6 << 30, MIB)
    (place / "dense").write_bytes(random.Random(5).randbytes(3 * MIB))
    assert 3 * MIB <= (place / "dense").stat().st_blocks * 512 < 4 * MIB
    in_shell("truncate -s 5G s; printf x | dd of=s bs=1 seek=4G conv=notrunc status=none; cp s t", place)
    assert (place / "t").stat().st_size == 5 << 30
    assert (place / "t").stat().st_blocks * 512 < MIB
    with (place / "t").open("rb") as handle:
        assert os.pread(handle.fileno(), 3, (4 << 30) - 1) == b"\0x\0"


def test_sockets_in_a_mount_connect_processes(place: Path) -> None:
    previous = os.getcwd()
    os.chdir(place)  # a socket's address has at most 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind("socket")
            server.listen()
            client.connect("socket")
            connection, _ = server.accept()
            client.send(b"hello")
            assert connection.recv(10) == b"hello"
            connection.close()
    finally:
        os.chdir(previous)


@pytest.mark.promise("posix.statfs")
def test_free_space_falls_with_what_is_written(place: Path) -> None:
    """Others use the same disk: what they free meanwhile may hide what was written, so one of a few tries must show it."""
    size, fallen = 32 * MIB, 0
    for number in range(6):
        before = os.statvfs(place)
        with (place / str(number)).open("wb") as handle:
            handle.write(random.Random(number).randbytes(size))
            os.fsync(handle.fileno())
        after = os.statvfs(place)
        fallen = (before.f_bavail - after.f_bavail) * after.f_frsize
        if fallen > size // 2:
            break
    assert fallen > size // 2
    assert after.f_bavail <= after.f_bfree <= after.f_blocks
    assert 0 < after.f_ffree <= after.f_files
