"""Requests and answers as bytes, without a kernel."""

from __future__ import annotations

import errno
import logging
import os
import random
import stat
import struct
from collections.abc import Iterator

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Init, Op
from memdir.fs.fuse.attributes import AttributeEncoder
from memdir.fs.fuse.dispatch import Dispatcher
from memdir.fs.fuse.options import FuseOptions, Profile
from memdir.fs.memory import MemoryFs
from memdir.fs.types import ROOT_INO, VIRTUAL_INO_BASE, AttrChange, Inode, Owner

KERNEL_FLAGS = 0x73FFFFFB
ALL_EXCEPT_EXT = KERNEL_FLAGS & ~Init.INIT_EXT


def request(op: int, ino: int = ROOT_INO, body: bytes = b"", unique: int = 77) -> bytes:
    return abi.IN_HEADER.pack(abi.IN_HEADER_BYTES + len(body), op, unique, ino, 1000, 1000, 4242, 0, 0) + body


class Kernel:
    """The other side: sends requests, unpacks answers."""

    def __init__(self, fs: MemoryFs, options: FuseOptions | None = None, *, init: bool = True) -> None:
        self.minors: list[int] = []
        self.dispatcher = Dispatcher(fs, options or FuseOptions(), FakeClock(), on_init=self.minors.append)
        if init:
            self.init()

    def init(self, *, major: int = 7, minor: int = 45, flags: int = KERNEL_FLAGS, flags2: int = 0) -> tuple[int, ...]:
        body = abi.INIT_IN.pack(major, minor, 131_072, flags) + struct.pack("=I44x", flags2)
        error, payload = self.ask(Op.INIT, 0, body)
        return (error, *abi.INIT_OUT.unpack(payload)) if not error else (error,)

    def raw(self, message: bytes) -> bytes | None:
        answer = self.dispatcher.answer(memoryview(message), len(message))
        if answer is None or isinstance(answer, bytes):
            return answer
        return b"".join(answer)

    def ask(self, op: int, ino: int = ROOT_INO, body: bytes = b"") -> tuple[int, bytes]:
        """(errno, payload)"""
        answer = self.raw(request(op, ino, body))
        assert answer is not None
        length, error, unique = abi.OUT_HEADER.unpack_from(answer)
        assert length == len(answer)
        assert unique == 77
        assert error <= 0
        assert not error or length == abi.OUT_HEADER_BYTES
        return -error, answer[abi.OUT_HEADER_BYTES :]


@pytest.fixture
def fs() -> MemoryFs:
    return MemoryFs(clock=FakeClock(), uid=1, gid=2)


@pytest.fixture
def kernel(fs: MemoryFs) -> Kernel:
    return Kernel(fs)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """For tests that provoke error lines."""
    with caplog.at_level(logging.CRITICAL):
        yield caplog


def test_layouts_have_the_sizes_of_the_kernels_structs() -> None:
    """sizeof() in include/uapi/linux/fuse.h."""
    sizes = {
        abi.IN_HEADER: 40, abi.OUT_HEADER: 16, abi.INIT_OUT: 64, abi.ATTR: 88, abi.ENTRY_HEAD: 40, abi.SETATTR_IN: 88,
        abi.MKNOD_IN: 16, abi.MKDIR_IN: 8, abi.RENAME2_IN: 16, abi.OPEN_OUT: 16, abi.RELEASE_IN: 24, abi.READ_IN: 40,
        abi.WRITE_IN: 40, abi.WRITE_OUT: 8, abi.STATFS_OUT: 80, abi.FALLOCATE_IN: 32, abi.LSEEK_IN: 24,
        abi.COPY_FILE_RANGE_IN: 56, abi.DIRENT: 24, abi.NOTIFY_INVAL_INODE_OUT: 24, abi.NOTIFY_INVAL_ENTRY_OUT: 16,
        abi.CREATE_IN: 16, abi.GETXATTR_IN: 8, abi.SETXATTR_IN: 8, abi.BATCH_FORGET_IN: 8, abi.FORGET_ONE: 16,
    }  # fmt: skip
    assert {layout.format: layout.size for layout in sizes} == {layout.format: size for layout, size in sizes.items()}


def test_init_takes_only_what_is_offered_and_wanted(fs: MemoryFs) -> None:
    kernel = Kernel(fs, init=False)
    error, major, minor, readahead, flags, background, _, max_write, granularity, pages, _, flags2, depth = kernel.init(
        flags2=0xFFFFFFFF
    )
    assert (error, major, minor) == (0, 7, 45)
    assert readahead == 1 << 20
    assert max_write == 1 << 20
    assert pages == 256
    assert granularity == 1
    assert background > 0
    wanted = Init.DO_READDIRPLUS | Init.EXPLICIT_INVAL_DATA | Init.NO_OPEN_SUPPORT | Init.INIT_EXT | Init.HANDLE_KILLPRIV_V2
    assert flags & wanted == wanted
    writeback, posix_acl, posix_locks = 1 << 16, 1 << 20, 1 << 1
    assert not flags & (writeback | posix_acl | posix_locks)
    assert (flags2, depth) == (0, 0)
    assert kernel.minors == [45]


def test_init_with_an_older_kernel_uses_its_minor_and_no_second_flag_word(fs: MemoryFs) -> None:
    kernel = Kernel(fs, init=False)
    body = abi.INIT_IN.pack(7, 32, 131_072, ALL_EXCEPT_EXT)  # Linux 5.10 sends 16 bytes
    error, payload = kernel.ask(Op.INIT, 0, body)
    assert error == 0
    answer = abi.INIT_OUT.unpack(payload)
    assert answer[:2] == (7, 32)
    assert not answer[3] & ~ALL_EXCEPT_EXT
    assert kernel.minors == [32]


def test_init_refuses_a_kernel_that_is_too_old_and_asks_a_newer_one_again(fs: MemoryFs, quiet: object) -> None:
    kernel = Kernel(fs, init=False)
    assert kernel.init(minor=20) == (errno.EPROTO,)
    assert kernel.init(major=8)[:3] == (0, 7, 45)
    assert kernel.minors == []
    assert kernel.ask(Op.GETATTR, ROOT_INO, bytes(16))[0] == errno.EIO
    assert kernel.init()[0] == 0
    assert kernel.ask(Op.GETATTR, ROOT_INO, bytes(16))[0] == 0


def test_a_lookup_answers_an_entry_and_takes_one_reference(kernel: Kernel, fs: MemoryFs) -> None:
    inode = fs.create(ROOT_INO, b"f", stat.S_IFREG | 0o640, Owner(5, 6))
    error, payload = kernel.ask(Op.LOOKUP, ROOT_INO, b"f\0")
    assert error == 0
    nodeid, generation, entry_valid, attr_valid, _, _ = abi.ENTRY_HEAD.unpack_from(payload)
    attr = abi.ATTR.unpack_from(payload, abi.ENTRY_HEAD.size)
    assert (nodeid, generation, entry_valid, attr_valid) == (inode.ino, 0, 1_000_000, 1_000_000)
    assert (attr[0], attr[9], attr[10], attr[11], attr[12]) == (inode.ino, stat.S_IFREG | 0o640, 1, 5, 6)
    assert inode.lookups == 1
    assert kernel.raw(request(Op.FORGET, inode.ino, abi.FORGET_IN.pack(1))) is None
    assert inode.lookups == 0


def test_references_are_counted_for_every_entry_but_the_dots(kernel: Kernel, fs: MemoryFs) -> None:
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, Owner(0, 0))
    files = [fs.create(folder.ino, f"{number}".encode(), stat.S_IFREG, Owner(0, 0)) for number in range(3)]
    _, payload = kernel.ask(Op.READDIRPLUS, folder.ino, abi.READ_IN.pack(0, 0, 4096, 0, 0, 0, 0))
    assert len(payload) == 5 * (128 + 24 + 8)
    assert [inode.lookups for inode in files] == [1, 1, 1]
    assert folder.lookups == 0
    body = abi.BATCH_FORGET_IN.pack(3, 0) + b"".join(abi.FORGET_ONE.pack(inode.ino, 1) for inode in files)
    assert kernel.raw(request(Op.BATCH_FORGET, 0, body)) is None
    assert [inode.lookups for inode in files] == [0, 0, 0]
    kernel.ask(Op.READDIR, folder.ino, abi.READ_IN.pack(0, 0, 4096, 0, 0, 0, 0))
    assert [inode.lookups for inode in files] == [0, 0, 0]


def test_an_entry_that_does_not_fit_is_not_retained_and_comes_next_time(kernel: Kernel, fs: MemoryFs) -> None:
    folder = fs.mkdir(ROOT_INO, b"d", 0o755, Owner(0, 0))
    files = [fs.create(folder.ino, b"n" * 200 + str(number).encode(), stat.S_IFREG, Owner(0, 0)) for number in range(9)]
    position, seen = 0, 0
    while True:
        _, payload = kernel.ask(Op.READDIRPLUS, folder.ino, abi.READ_IN.pack(0, position, 800, 0, 0, 0, 0))
        assert len(payload) <= 800
        if not payload:
            break
        while payload:
            _, position, length, _ = abi.DIRENT.unpack_from(payload, 128)
            payload = payload[128 + 24 + (length + 7 & ~7) :]
            seen += 1
    assert seen == 11
    assert [inode.lookups for inode in files] == [1] * 9


def test_an_absent_name_may_be_remembered_but_not_in_a_virtual_folder(kernel: Kernel) -> None:
    error, payload = kernel.ask(Op.LOOKUP, ROOT_INO, b"none\0")
    assert error == 0
    assert abi.ENTRY_HEAD.unpack_from(payload)[:4] == (0, 0, 1_000_000, 0)
    assert kernel.ask(Op.LOOKUP, ROOT_INO, b"n" * 256 + b"\0")[0] == errno.ENAMETOOLONG
    assert kernel.ask(Op.LOOKUP, VIRTUAL_INO_BASE + 5, b"none\0")[0] == errno.ENOENT


def test_the_fast_profile_sends_no_opens_and_the_observed_one_tells_of_them(fs: MemoryFs) -> None:
    told: list[tuple[object, ...]] = []

    class Observer:
        def opened(self, ino: int, pid: int, flags: int) -> None:
            told.append(("opened", ino, pid, flags))

        def closed(self, ino: int) -> None:
            told.append(("closed", ino))

    fast = Kernel(fs)
    assert fast.ask(Op.OPEN, ROOT_INO, abi.OPEN_IN.pack(0, 0))[0] == errno.ENOSYS
    assert fast.ask(Op.CREATE, ROOT_INO, abi.CREATE_IN.pack(0, 0o644, 0, 0) + b"f\0")[0] == errno.ENOSYS
    observed = Kernel(fs, FuseOptions(profile=Profile.OBSERVED, observer=Observer()))
    error, payload = observed.ask(Op.CREATE, ROOT_INO, abi.CREATE_IN.pack(os.O_RDWR, 0o644, 0, 0) + b"f\0")
    assert (error, len(payload)) == (0, 128 + 16)
    ino = fs.lookup(ROOT_INO, b"f").ino
    assert observed.ask(Op.OPEN, ino, abi.OPEN_IN.pack(os.O_RDONLY, 0))[0] == 0
    assert observed.ask(Op.RELEASE, ino, abi.RELEASE_IN.pack(1, 0, 0, 0))[0] == 0
    assert told == [("opened", ino, 4242, os.O_RDWR), ("opened", ino, 4242, os.O_RDONLY), ("closed", ino)]
    # The name appeared behind the kernel's back: O_EXCL refuses it, a plain create opens and truncates it.
    fs.write(ino, 0, b"contents")
    again = abi.CREATE_IN.pack(os.O_RDWR | os.O_TRUNC, 0o644, 0, 0) + b"f\0"
    assert observed.ask(Op.CREATE, ROOT_INO, abi.CREATE_IN.pack(os.O_EXCL, 0o644, 0, 0) + b"f\0")[0] == errno.EEXIST
    assert observed.ask(Op.CREATE, ROOT_INO, again)[0] == 0
    assert fs.get(ino).size == 0


def test_a_read_only_mount_refuses_every_change(fs: MemoryFs) -> None:
    kernel = Kernel(fs, FuseOptions(read_only=True))
    for op, body in (
        (Op.MKDIR, abi.MKDIR_IN.pack(0o755, 0) + b"d\0"),
        (Op.UNLINK, b"f\0"),
        (Op.WRITE, abi.WRITE_IN.pack(0, 0, 1, 0, 0, 0, 0) + b"x"),
        (Op.SETXATTR, abi.SETXATTR_IN.pack(1, 0) + b"user.a\0x"),
    ):
        assert kernel.ask(op, ROOT_INO, body)[0] == errno.EROFS
    assert fs.readdir(ROOT_INO) == ()


def test_attribute_lists_are_probed_sized_and_refused(kernel: Kernel, fs: MemoryFs) -> None:
    fs.setxattr(ROOT_INO, b"user.a", b"12345")

    def get(size: int, name: bytes = b"user.a") -> tuple[int, bytes]:
        return kernel.ask(Op.GETXATTR, ROOT_INO, abi.GETXATTR_IN.pack(size, 0) + name + b"\0")

    assert get(0) == (0, abi.GETXATTR_OUT.pack(5, 0))
    assert get(5) == (0, b"12345")
    assert get(4) == (errno.ERANGE, b"")
    assert get(100, b"security.capability") == (errno.ENODATA, b"")
    assert get(100, b"system.posix_acl_access") == (errno.EOPNOTSUPP, b"")
    assert get(100, b"security.selinux") == (errno.EOPNOTSUPP, b"")
    assert kernel.ask(Op.LISTXATTR, ROOT_INO, abi.GETXATTR_IN.pack(0, 0)) == (0, abi.GETXATTR_OUT.pack(7, 0))
    assert kernel.ask(Op.LISTXATTR, ROOT_INO, abi.GETXATTR_IN.pack(7, 0)) == (0, b"user.a\0")
    assert kernel.ask(Op.LISTXATTR, ROOT_INO, abi.GETXATTR_IN.pack(6, 0)) == (errno.ERANGE, b"")


def test_encoded_attributes_are_kept_until_something_changes(fs: MemoryFs) -> None:
    inode = fs.create(ROOT_INO, b"f", stat.S_IFREG | 0o644, Owner(0, 0))
    encoder = AttributeEncoder(100, MemoryFs().allocated_bytes)
    first = encoder.entry(inode)
    assert encoder.entry(inode) is first
    fs.write(inode.ino, 0, b"12345")
    assert abi.ATTR.unpack_from(encoder.entry(inode), abi.ENTRY_HEAD.size)[1] == 5


def test_an_encoding_that_was_overtaken_by_a_change_is_not_kept() -> None:
    """Another thread changes the inode between our reading of it and our keeping of the result."""

    class Racing(Inode):
        __slots__ = ("raced",)
        raced: bool

        @property
        def uid(self) -> int:  # type: ignore[override]
            if not self.raced:
                self.raced = True
                self.size, self.ctime_ns = 99, self.ctime_ns + 1
                self.encoded = None
            return 0

        @uid.setter
        def uid(self, value: int) -> None:
            self.raced = False

    inode = Racing(ino=5, mode=0o100644, uid=0, gid=0, nlink=1, size=1, atime_ns=0, mtime_ns=0, ctime_ns=0)
    encoder = AttributeEncoder(100, MemoryFs().allocated_bytes)
    encoder.entry(inode)
    assert inode.encoded is None
    assert abi.ATTR.unpack_from(encoder.entry(inode), abi.ENTRY_HEAD.size)[1] == 99


def test_times_before_1970_survive_the_encoding(fs: MemoryFs, kernel: Kernel) -> None:
    inode = fs.create(ROOT_INO, b"f", stat.S_IFREG, Owner(0, 0))
    valid = abi.FATTR_ATIME | abi.FATTR_MTIME
    body = abi.SETATTR_IN.pack(valid, 0, 0, 0, 0, -2, -1, 0, 500_000_000, 999_999_999, 0, 0, 0, 0, 0, 0)
    _, payload = kernel.ask(Op.SETATTR, inode.ino, body)
    assert (inode.atime_ns, inode.mtime_ns) == (-1_500_000_000, -1)
    attr = abi.ATTR.unpack_from(payload, 16)
    assert (attr[3], attr[4], attr[6], attr[7]) == (-2, -1, 500_000_000, 999_999_999)


# Whatever comes


def test_unknown_requests_are_not_implemented_and_forgets_are_silent(kernel: Kernel) -> None:
    for op in (
        Op.STATX,
        Op.TMPFILE,
        Op.POLL,
        Op.BMAP,
        Op.ACCESS,
        Op.FLUSH,
        Op.GETLK,
        Op.SETLKW,
        Op.OPENDIR,
        48,
        63,
        64,
        4096,
        2**31,
    ):
        assert kernel.ask(op) == (errno.ENOSYS, b"")
    assert kernel.ask(Op.IOCTL) == (errno.ENOTTY, b"")
    assert kernel.ask(Op.RELEASEDIR) == (0, b"")
    assert kernel.raw(request(Op.INTERRUPT, 0, bytes(8))) is None
    assert kernel.raw(request(Op.NOTIFY_REPLY, 0, bytes(8))) is None
    assert kernel.raw(request(Op.FORGET, 10**9, abi.FORGET_IN.pack(5))) is None


def test_a_message_without_a_whole_header_has_no_answer(kernel: Kernel, quiet: object) -> None:
    for length in range(abi.IN_HEADER_BYTES):
        assert kernel.dispatcher.answer(memoryview(bytes(64)), length) is None
    assert kernel.dispatcher.failures == abi.IN_HEADER_BYTES


@pytest.mark.parametrize(
    ("op", "body"),
    [
        (Op.LOOKUP, b""), (Op.LOOKUP, b"no end"), (Op.LOOKUP, b"a\0b\0"), (Op.MKDIR, b"\0"), (Op.MKNOD, bytes(16)),
        (Op.SYMLINK, b"name\0target"), (Op.SYMLINK, b"name\0"), (Op.RENAME, bytes(7)), (Op.RENAME2, bytes(16) + b"a\0"),
        (Op.SETATTR, bytes(87)), (Op.READ, bytes(39)), (Op.SETXATTR, abi.SETXATTR_IN.pack(9, 0) + b"user.a\0x"),
        (Op.WRITE, abi.WRITE_IN.pack(0, 0, 10, 0, 0, 0, 0) + b"nine bytes"[:9]), (Op.LINK, b""),
        (Op.COPY_FILE_RANGE, abi.COPY_FILE_RANGE_IN.pack(0, 0, 1, 0, 0, 1, 8)), (Op.FALLOCATE, b""), (Op.LSEEK, b"1"),
    ],
)  # fmt: skip
def test_a_malformed_request_is_answered_with_an_io_error(kernel: Kernel, op: int, body: bytes, quiet: object) -> None:
    assert kernel.ask(op, ROOT_INO, body) == (errno.EIO, b"")
    assert kernel.dispatcher.failures == 1
    assert kernel.ask(Op.GETATTR, ROOT_INO, bytes(16))[0] == 0


def test_a_session_is_agreed_on_once(kernel: Kernel) -> None:
    assert kernel.init() == (errno.ENOSYS,)
    assert kernel.minors == [45]


def test_a_read_is_never_larger_than_what_was_agreed_on(kernel: Kernel, fs: MemoryFs) -> None:
    inode = fs.create(ROOT_INO, b"f", stat.S_IFREG, Owner(0, 0))
    fs.setattr(inode.ino, AttrChange(size=1 << 40))
    error, payload = kernel.ask(Op.READ, inode.ino, abi.READ_IN.pack(0, 0, 2**32 - 1, 0, 0, 0, 0))
    assert (error, len(payload)) == (0, 1 << 20)


def test_a_copy_of_a_files_end_behind_itself_ends(kernel: Kernel, fs: MemoryFs) -> None:
    """Found by the fuzzer: the source grew with every byte that was copied."""
    inode = fs.create(ROOT_INO, b"f", stat.S_IFREG, Owner(0, 0))
    fs.write(inode.ino, 0, b"0123456789")
    error, payload = kernel.ask(Op.COPY_FILE_RANGE, inode.ino, abi.COPY_FILE_RANGE_IN.pack(0, 9, inode.ino, 0, 10, 1 << 20, 0))
    assert (error, abi.WRITE_OUT.unpack(payload)[0], inode.size) == (0, 1, 11)
    error, payload = kernel.ask(Op.COPY_FILE_RANGE, inode.ino, abi.COPY_FILE_RANGE_IN.pack(0, 99, inode.ino, 0, 0, 5, 0))
    assert (error, abi.WRITE_OUT.unpack(payload)[0], inode.size) == (0, 0, 11)


def test_malformed_forgets_stay_silent(kernel: Kernel, quiet: object) -> None:
    for op, body in ((Op.FORGET, b"1"), (Op.BATCH_FORGET, b""), (Op.BATCH_FORGET, abi.BATCH_FORGET_IN.pack(2**32 - 1, 0))):
        assert kernel.raw(request(op, ROOT_INO, body)) is None


class Broken(MemoryFs):
    """A filesystem with defects."""

    def find(self, parent: int, name: bytes) -> Inode | None:
        if name == b"errno":
            raise FsError(99_999)
        raise ZeroDivisionError


def test_a_defect_in_the_filesystem_is_an_io_error_and_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    kernel = Kernel(Broken())
    assert kernel.ask(Op.LOOKUP, ROOT_INO, b"f\0") == (errno.EIO, b"")
    assert "ZeroDivisionError" in caplog.text
    assert kernel.ask(Op.LOOKUP, ROOT_INO, b"errno\0") == (errno.EIO, b"")


@pytest.mark.parametrize("seed", range(4))
def test_no_bytes_make_the_dispatcher_raise(fs: MemoryFs, seed: int, quiet: object) -> None:
    """Garbage, truncated requests and requests with extreme numbers; afterwards everything still works."""
    rng = random.Random(seed)
    kernel = Kernel(fs, FuseOptions(profile=rng.choice([Profile.FAST, Profile.OBSERVED])))
    for name in (b"a", b"b"):
        fs.create(ROOT_INO, name, stat.S_IFREG | 0o644, Owner(0, 0))
    fs.mkdir(ROOT_INO, b"d", 0o755, Owner(0, 0))
    numbers = [0, 1, 2, 3, 4, 5, 255, 4096, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]
    silent = {Op.FORGET, Op.BATCH_FORGET, Op.INTERRUPT, Op.NOTIFY_REPLY}
    for _ in range(3000):
        op = rng.choice([*Op, rng.randrange(2**32)])
        if op == Op.INIT:
            continue
        if rng.random() < 0.5:
            body = rng.randbytes(rng.choice([0, 1, 7, 8, 16, 24, 40, 56, 88, 200]))
        else:
            words = [rng.choice(numbers) for _ in range(rng.randrange(12))]
            body = b"".join(word.to_bytes(8, "little") for word in words) + rng.choice([b"", b"a\0", b"a\0zz\0", b"user.x\0v"])
        message = request(op, rng.choice(numbers), body)
        message = message[: rng.choice([len(message)] * 9 + [rng.randrange(len(message) + 1)])]
        answer = kernel.raw(message)
        if answer is None:
            assert len(message) < abi.IN_HEADER_BYTES or op in silent
        else:
            length, error, unique = abi.OUT_HEADER.unpack_from(answer)
            assert (length, unique) == (len(answer), 77)
            assert -512 < error <= 0
    assert kernel.ask(Op.GETATTR, ROOT_INO, bytes(16))[0] == 0
    assert kernel.ask(Op.MKDIR, ROOT_INO, abi.MKDIR_IN.pack(0o755, 0) + b"after\0")[0] == 0
