"""The contract of `fs.vfs.Vfs`, as tests that any implementation runs: subclass `VfsContract` where a fixture `fs` gives a new
filesystem and `clock` the `FakeClock` it reads."""

from __future__ import annotations

import errno
import stat
from collections.abc import Callable

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.errors import FsError
from memdir.fs.types import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    FALLOC_ZERO_RANGE,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    ROOT_INO,
    XATTR_CREATE,
    XATTR_REPLACE,
    AttrChange,
    Inode,
    Owner,
    joined,
)
from memdir.fs.vfs import Vfs

ME = Owner(1000, 1000)
FILE = stat.S_IFREG | 0o644


def refuses(number: int, call: Callable[[], object]) -> None:
    with pytest.raises(FsError) as caught:
        call()
    assert errno.errorcode[caught.value.errno] == errno.errorcode[number]


def make(fs: Vfs, name: bytes, data: bytes = b"", parent: int = ROOT_INO) -> Inode:
    inode = fs.create(parent, name, FILE, ME)
    if data:
        assert fs.write(inode.ino, 0, data) == len(data)
    return inode


def text(fs: Vfs, ino: int) -> bytes:
    return joined(fs.read(ino, 0, 1 << 30))


def names(fs: Vfs, ino: int = ROOT_INO) -> list[bytes]:
    return [entry.name for entry in fs.readdir(ino)]


def refused_everywhere(fs: Vfs, name: bytes, number: int) -> None:
    """A name that no call takes."""
    make(fs, b"a")
    refuses(number, lambda: fs.lookup(ROOT_INO, name))
    refuses(number, lambda: fs.create(ROOT_INO, name, FILE, ME))
    refuses(number, lambda: fs.mkdir(ROOT_INO, name, 0o755, ME))
    refuses(number, lambda: fs.symlink(ROOT_INO, name, b"to", ME))
    refuses(number, lambda: fs.link(fs.lookup(ROOT_INO, b"a").ino, ROOT_INO, name))
    refuses(number, lambda: fs.unlink(ROOT_INO, name))
    refuses(number, lambda: fs.rmdir(ROOT_INO, name))
    refuses(number, lambda: fs.rename(ROOT_INO, b"a", ROOT_INO, name))
    refuses(number, lambda: fs.rename(ROOT_INO, name, ROOT_INO, b"b"))
    assert names(fs) == [b"a"]


class NameContract:
    removing_the_parent = errno.ENOTEMPTY
    """What `rmdir("..")` is refused with, on Linux."""

    def test_a_created_file_is_found_with_its_owner_mode_and_times(self, fs: Vfs, clock: FakeClock) -> None:
        inode = fs.create(ROOT_INO, b"a", stat.S_IFREG | 0o640, Owner(7, 8))
        found = fs.lookup(ROOT_INO, b"a")
        assert found.ino == inode.ino
        assert (found.mode, found.uid, found.gid, found.nlink, found.size) == (stat.S_IFREG | 0o640, 7, 8, 1, 0)
        assert found.mtime_ns == found.ctime_ns == found.atime_ns == clock.now_ns()

    def test_dot_and_dot_dot_are_found(self, fs: Vfs) -> None:
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        assert fs.lookup(folder.ino, b".").ino == folder.ino
        assert fs.lookup(folder.ino, b"..").ino == ROOT_INO

    @pytest.mark.parametrize("name", [b"x" * 255, "ü—🦜".encode(), b"\xff\xfe", b"\n", b" ", b"-rf", b"a\\b", b"..."])
    def test_odd_names_are_names(self, fs: Vfs, name: bytes) -> None:
        make(fs, name, b"1")
        assert text(fs, fs.lookup(ROOT_INO, name).ino) == b"1"
        assert names(fs) == [name]
        fs.unlink(ROOT_INO, name)
        assert names(fs) == []

    @pytest.mark.parametrize("length", [256, 1025, 4000])
    def test_names_that_are_too_long_are_refused_everywhere(self, fs: Vfs, length: int) -> None:
        refused_everywhere(fs, b"x" * length, errno.ENAMETOOLONG)

    def test_an_existing_name_is_not_created_again(self, fs: Vfs) -> None:
        inode = make(fs, b"a", b"keep")
        refuses(errno.EEXIST, lambda: fs.create(ROOT_INO, b"a", FILE, ME))
        refuses(errno.EEXIST, lambda: fs.mkdir(ROOT_INO, b"a", 0o755, ME))
        refuses(errno.EEXIST, lambda: fs.symlink(ROOT_INO, b"a", b"t", ME))
        refuses(errno.EEXIST, lambda: fs.link(inode.ino, ROOT_INO, b"a"))
        refuses(errno.EEXIST, lambda: fs.mkdir(ROOT_INO, b".", 0o755, ME))
        assert text(fs, inode.ino) == b"keep"

    def test_a_file_is_no_folder(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        refuses(errno.ENOTDIR, lambda: fs.lookup(inode.ino, b"x"))
        refuses(errno.ENOTDIR, lambda: fs.create(inode.ino, b"x", FILE, ME))
        refuses(errno.ENOTDIR, lambda: fs.readdir(inode.ino))
        refuses(errno.ENOTDIR, lambda: fs.rmdir(ROOT_INO, b"a"))

    def test_folders_count_their_subfolders(self, fs: Vfs) -> None:
        one = fs.mkdir(ROOT_INO, b"one", 0o755, ME)
        assert (one.nlink, fs.get(ROOT_INO).nlink) == (2, 3)
        fs.mkdir(one.ino, b"two", 0o755, ME)
        assert fs.get(one.ino).nlink == 3
        fs.rename(one.ino, b"two", ROOT_INO, b"two")
        assert (fs.get(one.ino).nlink, fs.get(ROOT_INO).nlink) == (2, 4)
        fs.rmdir(ROOT_INO, b"two")
        assert fs.get(ROOT_INO).nlink == 3

    def test_only_an_empty_folder_is_removed(self, fs: Vfs) -> None:
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        make(fs, b"a", parent=folder.ino)
        refuses(errno.ENOTEMPTY, lambda: fs.rmdir(ROOT_INO, b"d"))
        refuses(errno.EISDIR, lambda: fs.unlink(ROOT_INO, b"d"))
        refuses(errno.EINVAL, lambda: fs.rmdir(ROOT_INO, b"."))
        refuses(self.removing_the_parent, lambda: fs.rmdir(ROOT_INO, b".."))
        fs.unlink(folder.ino, b"a")
        fs.rmdir(ROOT_INO, b"d")
        refuses(errno.ENOENT, lambda: fs.lookup(ROOT_INO, b"d"))

    def test_nothing_is_created_in_a_removed_folder(self, fs: Vfs) -> None:
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        inode = make(fs, b"a")
        fs.retain(folder.ino)
        fs.rmdir(ROOT_INO, b"d")
        refuses(errno.ENOENT, lambda: fs.create(folder.ino, b"x", FILE, ME))
        refuses(errno.ENOENT, lambda: fs.link(inode.ino, folder.ino, b"x"))
        refuses(errno.ENOENT, lambda: fs.rename(ROOT_INO, b"a", folder.ino, b"x"))
        assert list(fs.readdir(folder.ino)) == []
        fs.forget(folder.ino, 1)
        refuses(errno.ENOENT, lambda: fs.get(folder.ino))

    def test_times_of_a_folder_follow_its_names(self, fs: Vfs, clock: FakeClock) -> None:
        clock.advance(1)
        make(fs, b"a")
        assert fs.get(ROOT_INO).mtime_ns == fs.get(ROOT_INO).ctime_ns == clock.now_ns()
        clock.advance(1)
        fs.unlink(ROOT_INO, b"a")
        assert fs.get(ROOT_INO).mtime_ns == clock.now_ns()

    def test_setgid_folders_hand_their_group_down(self, fs: Vfs) -> None:
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        fs.setattr(folder.ino, AttrChange(gid=77))
        fs.setattr(folder.ino, AttrChange(mode=0o2775))
        inner = fs.mkdir(folder.ino, b"inner", 0o755, ME)
        assert (inner.gid, inner.mode & stat.S_ISGID) == (77, stat.S_ISGID)
        inode = make(fs, b"a", parent=inner.ino)
        assert (inode.gid, inode.mode & stat.S_ISGID) == (77, 0)

    def test_special_files_are_kept(self, fs: Vfs) -> None:
        assert fs.create(ROOT_INO, b"socket", stat.S_IFSOCK | 0o600, ME).mode == stat.S_IFSOCK | 0o600
        device = fs.create(ROOT_INO, b"dev", stat.S_IFCHR | 0o600, ME, rdev=0x103)
        assert device.rdev == 0x103

    def test_a_fifo_has_its_name(self, fs: Vfs) -> None:
        fifo = fs.create(ROOT_INO, b"fifo", stat.S_IFIFO | 0o600, ME)
        assert fs.lookup(ROOT_INO, b"fifo").ino == fifo.ino
        assert fs.get(fifo.ino).mode == stat.S_IFIFO | 0o600

    def test_symlinks_keep_their_target_as_given(self, fs: Vfs) -> None:
        for name, target in ((b"1", b"../x"), (b"2", b"/\xff"), (b"3", b"y" * 4095)):
            link = fs.symlink(ROOT_INO, name, target, ME)
            assert fs.readlink(link.ino) == target
            assert (link.size, stat.S_ISLNK(link.mode)) == (len(target), True)
        refuses(errno.ENAMETOOLONG, lambda: fs.symlink(ROOT_INO, b"4", b"y" * 4096, ME))
        refuses(errno.ENOENT, lambda: fs.symlink(ROOT_INO, b"5", b"", ME))
        refuses(errno.EINVAL, lambda: fs.readlink(make(fs, b"a").ino))

    def test_a_name_that_is_replaced_or_renamed_keeps_its_place_in_listings(self, fs: Vfs) -> None:
        for name in (b"a", b"b", b"c"):
            make(fs, name)
        first = fs.readdir(ROOT_INO)
        make(fs, b"new")
        fs.rename(ROOT_INO, b"new", ROOT_INO, b"a")
        fs.rename(ROOT_INO, b"b", ROOT_INO, b"d")
        fs.rename(ROOT_INO, b"a", ROOT_INO, b"c", RENAME_EXCHANGE)
        assert [entry.name for entry in fs.readdir(ROOT_INO)] == [b"a", b"d", b"c"]
        assert [entry.name for entry in fs.readdir(ROOT_INO, first[0].cookie)] == [b"d", b"c"]
        make(fs, b"last")
        assert [entry.name for entry in fs.readdir(ROOT_INO, first[2].cookie)] == [b"last"]

    def test_hard_links_are_one_file(self, fs: Vfs, clock: FakeClock) -> None:
        inode = make(fs, b"a", b"1")
        clock.advance(1)
        assert fs.link(inode.ino, ROOT_INO, b"b").ino == inode.ino
        assert (inode.nlink, inode.ctime_ns) == (2, clock.now_ns())
        fs.write(fs.lookup(ROOT_INO, b"b").ino, 0, b"2")
        fs.unlink(ROOT_INO, b"a")
        assert text(fs, fs.lookup(ROOT_INO, b"b").ino) == b"2"
        assert fs.get(inode.ino).nlink == 1
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        refuses(errno.EPERM, lambda: fs.link(folder.ino, ROOT_INO, b"e"))

    def test_an_unlinked_file_lives_while_it_is_referred_to(self, fs: Vfs) -> None:
        inode = make(fs, b"a", b"text")
        fs.retain(inode.ino, 2)
        fs.unlink(ROOT_INO, b"a")
        refuses(errno.ENOENT, lambda: fs.lookup(ROOT_INO, b"a"))
        fs.write(inode.ino, 4, b" more")
        assert text(fs, inode.ino) == b"text more"
        assert fs.get(inode.ino).nlink == 0
        refuses(errno.ENOENT, lambda: fs.link(inode.ino, ROOT_INO, b"again"))
        fs.forget(inode.ino, 1)
        assert text(fs, inode.ino) == b"text more"
        fs.forget(inode.ino, 1)
        refuses(errno.ENOENT, lambda: fs.get(inode.ino))

    def test_inode_numbers_are_never_used_again(self, fs: Vfs) -> None:
        seen = set()
        for _ in range(20):
            seen.add(make(fs, b"a").ino)
            fs.unlink(ROOT_INO, b"a")
        assert len(seen) == 20

    def test_a_listing_survives_changes_made_while_it_runs(self, fs: Vfs) -> None:
        for number in range(50):
            make(fs, b"f%02d" % number)
        first = fs.readdir(ROOT_INO)[:20]
        for entry in first[:10]:
            fs.unlink(ROOT_INO, entry.name)
        fs.unlink(ROOT_INO, b"f30")
        fs.rename(ROOT_INO, b"f31", ROOT_INO, b"renamed")
        make(fs, b"new")
        rest = [entry.name for entry in fs.readdir(ROOT_INO, first[-1].cookie)]
        stayed = [b"renamed" if number == 31 else b"f%02d" % number for number in range(20, 50) if number != 30]
        assert rest == [*stayed, b"new"]
        assert len({entry.cookie for entry in fs.readdir(ROOT_INO)}) == len(names(fs))
        assert fs.readdir(ROOT_INO, fs.readdir(ROOT_INO)[-1].cookie) in ([], ())


class RenameContract:
    moving_dot = errno.EBUSY
    """What a rename of `.` is refused with, on Linux."""

    def test_a_file_moves_and_replaces(self, fs: Vfs) -> None:
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        inode = make(fs, b"a", b"new")
        old = make(fs, b"b", b"old", folder.ino)
        fs.rename(ROOT_INO, b"a", folder.ino, b"b")
        assert fs.lookup(folder.ino, b"b").ino == inode.ino
        refuses(errno.ENOENT, lambda: fs.lookup(ROOT_INO, b"a"))
        refuses(errno.ENOENT, lambda: fs.get(old.ino))

    def test_a_folder_knows_its_new_parent(self, fs: Vfs) -> None:
        one, two = fs.mkdir(ROOT_INO, b"1", 0o755, ME), fs.mkdir(ROOT_INO, b"2", 0o755, ME)
        fs.rename(ROOT_INO, b"1", two.ino, b"1")
        assert fs.lookup(one.ino, b"..").ino == two.ino

    def test_types_must_fit(self, fs: Vfs) -> None:
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        make(fs, b"a")
        refuses(errno.EISDIR, lambda: fs.rename(ROOT_INO, b"a", ROOT_INO, b"d"))
        refuses(errno.ENOTDIR, lambda: fs.rename(ROOT_INO, b"d", ROOT_INO, b"a"))
        full = fs.mkdir(ROOT_INO, b"full", 0o755, ME)
        make(fs, b"x", parent=full.ino)
        refuses(errno.ENOTEMPTY, lambda: fs.rename(ROOT_INO, b"d", ROOT_INO, b"full"))
        fs.unlink(full.ino, b"x")
        fs.rename(ROOT_INO, b"d", ROOT_INO, b"full")
        assert fs.lookup(ROOT_INO, b"full").ino == folder.ino
        assert fs.get(ROOT_INO).nlink == 3

    def test_a_folder_does_not_move_into_itself(self, fs: Vfs) -> None:
        one = fs.mkdir(ROOT_INO, b"1", 0o755, ME)
        two = fs.mkdir(one.ino, b"2", 0o755, ME)
        refuses(errno.EINVAL, lambda: fs.rename(ROOT_INO, b"1", one.ino, b"x"))
        refuses(errno.EINVAL, lambda: fs.rename(ROOT_INO, b"1", two.ino, b"x"))
        refuses(errno.ENOTEMPTY, lambda: fs.rename(one.ino, b"2", ROOT_INO, b"1"))
        refuses(errno.EINVAL, lambda: fs.rename(ROOT_INO, b"1", one.ino, b"2", RENAME_EXCHANGE))
        refuses(errno.EINVAL, lambda: fs.rename(one.ino, b"2", ROOT_INO, b"1", RENAME_EXCHANGE))

    def test_a_file_does_not_replace_a_folder_that_it_stands_in(self, fs: Vfs) -> None:
        above = fs.mkdir(ROOT_INO, b"1", 0o755, ME)
        folder = fs.mkdir(above.ino, b"2", 0o755, ME)
        make(fs, b"file", parent=folder.ino)
        refuses(errno.ENOTEMPTY, lambda: fs.rename(folder.ino, b"file", above.ino, b"2"))
        refuses(errno.ENOTEMPTY, lambda: fs.rename(folder.ino, b"file", ROOT_INO, b"1"))
        refuses(errno.EEXIST, lambda: fs.rename(folder.ino, b"file", ROOT_INO, b"1", RENAME_NOREPLACE))
        make(fs, b"beside")
        refuses(errno.EISDIR, lambda: fs.rename(ROOT_INO, b"beside", ROOT_INO, b"1"))

    def test_flags_are_obeyed(self, fs: Vfs) -> None:
        one, two = make(fs, b"1"), fs.mkdir(ROOT_INO, b"2", 0o755, ME)
        sub = fs.mkdir(ROOT_INO, b"sub", 0o755, ME)
        refuses(errno.EEXIST, lambda: fs.rename(ROOT_INO, b"1", ROOT_INO, b"2", RENAME_NOREPLACE))
        refuses(errno.EINVAL, lambda: fs.rename(ROOT_INO, b"1", ROOT_INO, b"2", RENAME_NOREPLACE | RENAME_EXCHANGE))
        refuses(errno.EINVAL, lambda: fs.rename(ROOT_INO, b"1", ROOT_INO, b"none", 4))
        refuses(errno.ENOENT, lambda: fs.rename(ROOT_INO, b"1", ROOT_INO, b"none", RENAME_EXCHANGE))
        fs.rename(ROOT_INO, b"1", sub.ino, b"1", RENAME_NOREPLACE)
        fs.rename(sub.ino, b"1", ROOT_INO, b"2", RENAME_EXCHANGE)
        assert (fs.lookup(ROOT_INO, b"2").ino, fs.lookup(sub.ino, b"1").ino) == (one.ino, two.ino)
        assert fs.lookup(two.ino, b"..").ino == sub.ino
        assert (fs.get(ROOT_INO).nlink, fs.get(sub.ino).nlink) == (3, 3)

    def test_two_names_of_one_file_stay(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        fs.link(inode.ino, ROOT_INO, b"b")
        fs.rename(ROOT_INO, b"a", ROOT_INO, b"b")
        fs.rename(ROOT_INO, b"a", ROOT_INO, b"a")
        assert names(fs) == [b"a", b"b"]
        assert inode.nlink == 2

    def test_nothing_moves_from_or_to_nowhere(self, fs: Vfs) -> None:
        make(fs, b"a")
        refuses(errno.ENOENT, lambda: fs.rename(ROOT_INO, b"none", ROOT_INO, b"b"))
        refuses(errno.ENOENT, lambda: fs.rename(ROOT_INO, b"a", 999, b"b"))
        refuses(self.moving_dot, lambda: fs.rename(ROOT_INO, b".", ROOT_INO, b"b"))
        assert names(fs) == [b"a"]


CHUNK = 128 * 1024


class ContentContract:
    def test_what_is_written_is_read(self, fs: Vfs) -> None:
        inode = make(fs, b"a", b"hello world")
        assert joined(fs.read(inode.ino, 0, 5)) == b"hello"
        assert joined(fs.read(inode.ino, 6, 100)) == b"world"
        assert joined(fs.read(inode.ino, 11, 1)) == b""
        assert joined(fs.read(inode.ino, 1 << 40, 1)) == b""
        fs.write(inode.ino, 0, memoryview(b"J"))
        fs.write(inode.ino, 1, bytearray(b"E"))
        assert text(fs, inode.ino) == b"JEllo world"
        assert fs.write(inode.ino, 100, b"") == 0
        assert inode.size == 11

    @pytest.mark.parametrize("offset", [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK - 5])
    def test_writes_cross_chunks(self, fs: Vfs, offset: int) -> None:
        data = bytes(range(251)) * 1200
        inode = make(fs, b"a", data)
        patch = b"\xff" * (CHUNK + 77)
        fs.write(inode.ino, offset, patch)
        expected = bytearray(data)
        expected.extend(bytes(max(0, offset - len(expected))))
        expected[offset : offset + len(patch)] = patch
        assert text(fs, inode.ino) == bytes(expected)
        assert joined(fs.read(inode.ino, CHUNK - 3, 7)) == bytes(expected[CHUNK - 3 : CHUNK + 4])

    def test_a_returned_buffer_never_changes(self, fs: Vfs) -> None:
        inode = make(fs, b"a", b"x" * CHUNK + b"y" * 10)
        fs.write(inode.ino, 5, b"z")
        before = fs.read(inode.ino, 0, 2 * CHUNK)
        copy = joined(before)
        fs.write(inode.ino, 0, b"q" * (CHUNK + 10))
        fs.setattr(inode.ino, AttrChange(size=1))
        assert joined(before) == copy

    def test_holes_read_as_zeros(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        fs.write(inode.ino, 5 * CHUNK + 3, b"end")
        assert text(fs, inode.ino) == bytes(5 * CHUNK + 3) + b"end"
        assert fs.seek_data(inode.ino, 0, hole=False) == 5 * CHUNK
        assert fs.seek_data(inode.ino, 0, hole=True) == 0
        assert fs.seek_data(inode.ino, 5 * CHUNK + 1, hole=True) == inode.size
        refuses(errno.ENXIO, lambda: fs.seek_data(inode.ino, inode.size, hole=True))
        fs.setattr(inode.ino, AttrChange(size=20 * CHUNK))
        refuses(errno.ENXIO, lambda: fs.seek_data(inode.ino, 6 * CHUNK, hole=False))

    def test_data_and_holes_are_found_to_the_page(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        fs.write(inode.ino, 20_000, b"x" * 10_000)
        fs.setattr(inode.ino, AttrChange(size=300_000))
        found = [fs.seek_data(inode.ino, at, hole=False) for at in (0, 16_384, 20_000, 29_999)]
        assert found == [16_384, 16_384, 20_000, 29_999]
        assert [fs.seek_data(inode.ino, at, hole=True) for at in (0, 16_383, 20_000, 32_768)] == [0, 16_383, 32_768, 32_768]
        refuses(errno.ENXIO, lambda: fs.seek_data(inode.ino, 32_768, hole=False))
        fs.write(inode.ino, 299_990, b"end")
        assert fs.seek_data(inode.ino, 40_000, hole=False) == 299_990 // 4096 * 4096
        assert fs.seek_data(inode.ino, 299_999, hole=True) == 300_000

    def test_truncate_forgets_what_it_cuts(self, fs: Vfs, clock: FakeClock) -> None:
        inode = make(fs, b"a", b"abcdef" * CHUNK)
        clock.advance(1)
        for size in (3 * CHUNK + 2, 3 * CHUNK, 7, 0):
            fs.setattr(inode.ino, AttrChange(size=size))
            fs.setattr(inode.ino, AttrChange(size=6 * CHUNK))
            assert text(fs, inode.ino) == (b"abcdef" * CHUNK)[:size] + bytes(6 * CHUNK - size)
        assert inode.mtime_ns == inode.ctime_ns == clock.now_ns()

    def test_sizes_have_a_bound(self, fs: Vfs) -> None:
        inode = make(fs, b"a", b"1")
        limit = CHUNK << 24
        refuses(errno.EFBIG, lambda: fs.write(inode.ino, limit, b"2"))
        refuses(errno.EFBIG, lambda: fs.setattr(inode.ino, AttrChange(size=limit + 1)))
        refuses(errno.EFBIG, lambda: fs.fallocate(inode.ino, limit, 1, 0))
        fs.write(inode.ino, limit - 1, b"2")
        assert (inode.size, joined(fs.read(inode.ino, limit - 2, 9))) == (limit, b"\x002")
        fs.setattr(inode.ino, AttrChange(size=1))
        assert text(fs, inode.ino) == b"1"

    def test_folders_have_no_bytes(self, fs: Vfs) -> None:
        refuses(errno.EISDIR, lambda: fs.read(ROOT_INO, 0, 1))
        refuses(errno.EISDIR, lambda: fs.write(ROOT_INO, 0, b"x"))
        refuses(errno.EISDIR, lambda: fs.setattr(ROOT_INO, AttrChange(size=0)))

    def test_ranges_are_punched_and_zeroed(self, fs: Vfs) -> None:
        data = b"x" * (3 * CHUNK)
        inode = make(fs, b"a", data)
        fs.fallocate(inode.ino, CHUNK - 5, CHUNK + 10, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)
        expected = data[: CHUNK - 5] + bytes(CHUNK + 10) + data[2 * CHUNK + 5 :]
        assert text(fs, inode.ino) == expected
        assert fs.seek_data(inode.ino, 0, hole=True) == CHUNK
        fs.fallocate(inode.ino, 0, 3, FALLOC_ZERO_RANGE)
        assert text(fs, inode.ino) == bytes(3) + expected[3:]
        fs.fallocate(inode.ino, 3 * CHUNK - 1, 11, FALLOC_ZERO_RANGE)
        assert text(fs, inode.ino) == bytes(3) + expected[3:-1] + bytes(11)
        size = inode.size
        fs.fallocate(inode.ino, size, 100, FALLOC_KEEP_SIZE)
        fs.fallocate(inode.ino, size + 50, 100, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)
        assert inode.size == size
        fs.fallocate(inode.ino, size, 100, 0)
        assert inode.size == size + 100
        refuses(errno.EOPNOTSUPP, lambda: fs.fallocate(inode.ino, 0, 1, 0x08))
        refuses(errno.EINVAL, lambda: fs.fallocate(inode.ino, 0, 0, 0))

    def test_the_version_grows_with_every_change_of_contents(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        seen = [inode.version]
        for change in (
            lambda: fs.write(inode.ino, 0, b"abc"),
            lambda: fs.setattr(inode.ino, AttrChange(size=1)),
            lambda: fs.setattr(inode.ino, AttrChange(size=9)),
            lambda: fs.fallocate(inode.ino, 0, 1, FALLOC_ZERO_RANGE),
        ):
            change()
            seen.append(fs.get(inode.ino).version)
        assert seen == sorted(set(seen))
        fs.setattr(inode.ino, AttrChange(mode=0o600))
        assert fs.get(inode.ino).version == seen[-1]


class AttributeContract:
    def test_setattr_changes_what_it_names(self, fs: Vfs, clock: FakeClock) -> None:
        inode = make(fs, b"a")
        clock.advance(1)
        changed = fs.setattr(inode.ino, AttrChange(mode=0o600, uid=5, gid=6, atime_ns=11, mtime_ns=-12))
        assert (changed.mode, changed.uid, changed.gid) == (FILE & ~0o777 | 0o600, 5, 6)
        assert (changed.atime_ns, changed.mtime_ns, changed.ctime_ns) == (11, -12, clock.now_ns())

    def test_privileges_end_with_a_write_or_a_new_owner(self, fs: Vfs) -> None:
        inode = make(fs, b"a", b"x")
        for change in (
            lambda: fs.write(inode.ino, 0, b"y"),
            lambda: fs.setattr(inode.ino, AttrChange(uid=3)),
            lambda: fs.setattr(inode.ino, AttrChange(size=0)),
        ):
            fs.setattr(inode.ino, AttrChange(mode=0o6755))
            change()
            assert fs.get(inode.ino).mode & 0o7777 == 0o755
        fs.setattr(inode.ino, AttrChange(mode=0o2644))
        fs.write(inode.ino, 0, b"y")
        assert fs.get(inode.ino).mode & 0o7777 == 0o2644  # mandatory locking, no privilege
        folder = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
        fs.setattr(folder.ino, AttrChange(mode=0o2755))
        assert fs.setattr(folder.ino, AttrChange(gid=9)).mode & 0o7777 == 0o2755

    def test_extended_attributes(self, fs: Vfs, clock: FakeClock) -> None:
        inode = make(fs, b"a")
        clock.advance(1)
        refuses(errno.ENODATA, lambda: fs.getxattr(inode.ino, b"user.x"))
        refuses(errno.ENODATA, lambda: fs.removexattr(inode.ino, b"user.x"))
        refuses(errno.ENODATA, lambda: fs.setxattr(inode.ino, b"user.x", b"", XATTR_REPLACE))
        fs.setxattr(inode.ino, b"user.x", b"\0\xff", XATTR_CREATE)
        fs.setxattr(inode.ino, b"user.empty", b"")
        refuses(errno.EEXIST, lambda: fs.setxattr(inode.ino, b"user.x", b"", XATTR_CREATE))
        assert fs.getxattr(inode.ino, b"user.x") == b"\0\xff"
        assert sorted(fs.listxattr(inode.ino)) == [b"user.empty", b"user.x"]
        assert fs.get(inode.ino).ctime_ns == clock.now_ns()
        fs.setxattr(inode.ino, b"user.x", b"v" * 65536, XATTR_REPLACE)
        refuses(errno.E2BIG, lambda: fs.setxattr(inode.ino, b"user.x", b"v" * 65537))
        refuses(errno.ERANGE, lambda: fs.setxattr(inode.ino, b"user." + b"n" * 251, b""))
        fs.removexattr(inode.ino, b"user.empty")
        assert list(fs.listxattr(inode.ino)) == [b"user.x"]
        assert list(fs.listxattr(ROOT_INO)) == []

    def test_what_is_gone_is_gone_for_every_call(self, fs: Vfs) -> None:
        for call in (
            lambda: fs.get(999), lambda: fs.retain(999), lambda: fs.read(999, 0, 1), lambda: fs.write(999, 0, b"x"),
            lambda: fs.setattr(999, AttrChange(mode=1)), lambda: fs.readdir(999), lambda: fs.lookup(999, b"x"),
            lambda: fs.readlink(999), lambda: fs.listxattr(999), lambda: fs.fsync(999),
            lambda: fs.setxattr(999, b"user.x", b""),
        ):  # fmt: skip
            refuses(errno.ENOENT, call)
        fs.forget(999, 1)

    def test_statfs_tells_sizes(self, fs: Vfs) -> None:
        stats = fs.statfs()
        assert stats.block_size > 0
        assert stats.blocks >= stats.blocks_free >= stats.blocks_available >= 0
        assert stats.name_max == 255


class VfsContract(NameContract, RenameContract, ContentContract, AttributeContract):
    """Everything that system calls can ask: `MemoryFs`, the cache and a real mount run these very cases."""


class NumberContract:
    """What only a caller by inode number can ask. On a mount the kernel takes paths apart by itself, so such names and numbers
    never arrive through a system call (`tests/exercise` sends them as raw requests)."""

    def test_the_root_is_its_own_parent(self, fs: Vfs) -> None:
        assert fs.lookup(ROOT_INO, b"..").ino == ROOT_INO

    @pytest.mark.parametrize("name", [b"a/b", b"/", b"", b"\0", b"a\0b"])
    def test_impossible_names_are_refused_everywhere(self, fs: Vfs, name: bytes) -> None:
        refused_everywhere(fs, name, errno.EINVAL)

    def test_a_folder_is_not_created_as_a_file(self, fs: Vfs) -> None:
        refuses(errno.EINVAL, lambda: fs.create(ROOT_INO, b"bad", stat.S_IFDIR | 0o600, ME))
        refuses(errno.EINVAL, lambda: fs.create(ROOT_INO, b"bad", stat.S_IFLNK | 0o600, ME))

    def test_a_write_past_the_largest_size_changes_nothing(self, fs: Vfs) -> None:
        """Linux cuts such a write(2) short; a single request is refused as a whole."""
        inode = make(fs, b"a", b"1")
        refuses(errno.EFBIG, lambda: fs.write(inode.ino, (CHUNK << 24) - 1, b"12"))
        assert (inode.size, text(fs, inode.ino)) == (1, b"1")

    def test_a_change_time_can_be_given_and_times_are_kept_in_range(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        assert fs.setattr(inode.ino, AttrChange(ctime_ns=3)).ctime_ns == 3
        assert fs.setattr(inode.ino, AttrChange(mtime_ns=1 << 80)).mtime_ns == (1 << 63) - 1

    def test_a_change_drops_the_encoded_form(self, fs: Vfs) -> None:
        inode = make(fs, b"a")
        for change in (lambda: fs.write(inode.ino, 0, b"1"), lambda: fs.setattr(inode.ino, AttrChange(mode=0o600))):
            inode.encoded = b"wire"
            change()
            assert fs.get(inode.ino).encoded is None
        root = fs.get(ROOT_INO)
        root.encoded = b"wire"
        fs.unlink(ROOT_INO, b"a")
        assert fs.get(ROOT_INO).encoded is None
