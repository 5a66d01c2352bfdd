"""Names on a real mount: what POSIX and Linux say about making, moving, linking and removing them."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from pathlib import Path

import pytest

from memdir.fs.types import RENAME_EXCHANGE, RENAME_NOREPLACE

pytestmark = pytest.mark.mount

_libc = ctypes.CDLL(None, use_errno=True)
_AT_FDCWD = -100


def refused(number: int) -> pytest.RaisesExc[OSError]:
    """The block must fail with exactly this errno."""
    return pytest.raises(OSError, check=lambda error: error.errno == number)


def renameat2(source: Path, target: Path, flags: int) -> None:
    if _libc.renameat2(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def test_a_rename_replaces_a_file_and_its_open_reader_keeps_the_old_one(place: Path) -> None:
    (place / "old").write_text("old")
    (place / "new").write_text("new")
    with (place / "old").open() as reader:
        (place / "new").rename(place / "old")
        assert reader.read() == "old"
        assert os.fstat(reader.fileno()).st_nlink == 0
    assert (place / "old").read_text() == "new"
    assert os.listdir(place) == ["old"]


def test_a_rename_across_folders_moves_a_subtree(place: Path) -> None:
    (place / "a" / "deep").mkdir(parents=True)
    (place / "a" / "deep" / "f").write_text("x")
    (place / "b").mkdir()
    (place / "a" / "deep").rename(place / "b" / "moved")
    assert (place / "b" / "moved" / "f").read_text() == "x"
    assert not (place / "a" / "deep").exists()
    assert os.stat(place / "a").st_nlink == 2
    assert os.stat(place / "b").st_nlink == 3
    assert os.stat(place / "b" / "moved" / "..").st_ino == os.stat(place / "b").st_ino


def test_a_folder_replaces_only_an_empty_folder(place: Path) -> None:
    for name in ("source", "empty", "full"):
        (place / name).mkdir()
    (place / "full" / "f").touch()
    (place / "file").touch()
    with refused(errno.ENOTEMPTY):
        os.rename(place / "source", place / "full")
    with refused(errno.ENOTDIR):
        os.rename(place / "source", place / "file")
    with refused(errno.EISDIR):
        os.rename(place / "file", place / "empty")
    os.rename(place / "source", place / "empty")
    assert sorted(os.listdir(place)) == ["empty", "file", "full"]


def test_a_folder_cannot_move_into_itself(place: Path) -> None:
    (place / "a" / "b").mkdir(parents=True)
    with refused(errno.EINVAL):
        os.rename(place / "a", place / "a" / "b" / "c")
    with refused(errno.ENOTEMPTY):
        os.rename(place / "a" / "b", place / "a")


def test_noreplace_and_exchange_work(place: Path) -> None:
    (place / "a").write_text("a")
    (place / "d").mkdir()
    (place / "d" / "inner").write_text("i")
    with refused(errno.EEXIST):
        renameat2(place / "a", place / "d", RENAME_NOREPLACE)
    renameat2(place / "a", place / "d", RENAME_EXCHANGE)
    assert (place / "d").read_text() == "a"
    assert (place / "a" / "inner").read_text() == "i"
    renameat2(place / "d", place / "free", RENAME_NOREPLACE)
    assert (place / "free").read_text() == "a"
    with refused(errno.ENOENT):
        renameat2(place / "free", place / "nothing", RENAME_EXCHANGE)


def test_two_names_of_one_file_renamed_over_each_other_both_stay(place: Path) -> None:
    (place / "a").write_text("x")
    os.link(place / "a", place / "b")
    os.rename(place / "a", place / "b")
    assert sorted(os.listdir(place)) == ["a", "b"]


def test_an_unlinked_file_can_be_read_and_written_until_it_is_closed(place: Path) -> None:
    with (place / "f").open("w+b") as handle:
        handle.write(b"before")
        handle.flush()
        (place / "f").unlink()
        assert not (place / "f").exists()
        handle.write(b" after")
        handle.flush()
        handle.seek(0)
        assert handle.read() == b"before after"
        assert os.fstat(handle.fileno()).st_nlink == 0
        (place / "f").write_text("another")
        handle.seek(0)
        assert handle.read() == b"before after"
    assert (place / "f").read_text() == "another"


def test_hard_links_share_contents_and_count(place: Path) -> None:
    (place / "a").write_text("one")
    os.link(place / "a", place / "b")
    (place / "b").write_text("two")
    assert (place / "a").read_text() == "two"
    assert os.stat(place / "a").st_nlink == 2
    assert os.stat(place / "a").st_ino == os.stat(place / "b").st_ino
    (place / "a").unlink()
    assert os.stat(place / "b").st_nlink == 1
    assert (place / "b").read_text() == "two"
    (place / "d").mkdir()
    with refused(errno.EPERM):
        os.link(place / "d", place / "e")
    with refused(errno.EEXIST):
        os.link(place / "b", place / "d")


def test_symlinks_keep_any_target(place: Path) -> None:
    long = "x" * 4000
    os.symlink(long, place / "long")
    assert os.readlink(place / "long") == long
    os.symlink("nowhere/…", place / "dangling")
    assert os.readlink(place / "dangling") == "nowhere/…"
    assert not (place / "dangling").exists()
    assert (place / "dangling").is_symlink()
    (place / "f").write_text("x")
    os.symlink("f", place / "good")
    assert (place / "good").read_text() == "x"
    assert os.lstat(place / "good").st_size == 1
    with refused(errno.EINVAL):
        os.readlink(place / "f")
    os.symlink("loop", place / "loop")
    with refused(errno.ELOOP):
        os.stat(place / "loop")


@pytest.mark.parametrize(
    "name",
    [
        "ä" * 127, "n" * 255, " leading", "trailing ", "new\nline", "tab\t", "quote'\"", "back\\slash", "-rf", "*", "%2F",
        "…", "𝕌𝕟𝕚", "e\u0301", "\u00e9", "emoji 🎉", ":", "con.txt", "~", "#x", "\udcff\udcfe", "a" * 254 + "\udcff",
    ],
)  # fmt: skip
def test_any_name_comes_back_as_it_was(place: Path, name: str) -> None:
    (place / name).write_text(name, "utf-8", "surrogateescape")
    assert os.listdir(os.fsencode(place)) == [os.fsencode(name)]
    assert (place / name).read_text("utf-8", "surrogateescape") == name
    (place / name).rename(place / "plain")
    (place / "plain").rename(place / name)
    (place / name).unlink()
    assert os.listdir(place) == []


def test_names_that_differ_in_normal_form_or_case_are_different(place: Path) -> None:
    for name in ("é", "e\u0301", "É", "e", "E"):
        (place / name).write_text(name)
    assert sorted(os.listdir(place)) == sorted(["é", "e\u0301", "É", "e", "E"])
    assert (place / "é").read_text() == "é"


def test_a_name_of_256_bytes_is_too_long_everywhere(place: Path) -> None:
    long = place / ("n" * 256)
    (place / "f").touch()
    for call in (
        long.touch,
        long.mkdir,
        lambda: os.stat(long),
        lambda: os.symlink("x", long),
        lambda: os.link(place / "f", long),
        lambda: os.rename(place / "f", long),
        lambda: os.unlink(long),
    ):
        with refused(errno.ENAMETOOLONG):
            call()
    assert os.listdir(place) == ["f"]


def test_removing_says_what_is_wrong(place: Path) -> None:
    (place / "d").mkdir()
    (place / "d" / "f").touch()
    with refused(errno.ENOTEMPTY):
        os.rmdir(place / "d")
    with refused(errno.ENOTDIR):
        os.rmdir(place / "d" / "f")
    with refused(errno.EISDIR):
        os.unlink(place / "d")
    with refused(errno.ENOENT):
        os.unlink(place / "none")
    with refused(errno.EEXIST):
        os.mkdir(place / "d")
    with refused(errno.EEXIST):
        os.close(os.open(place / "d" / "f", os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    (place / "d" / "f").unlink()
    (place / "d").rmdir()
    assert os.listdir(place) == []


def test_nothing_can_be_made_in_a_removed_folder(place: Path) -> None:
    (place / "d").mkdir()
    fd = os.open(place / "d", os.O_RDONLY | os.O_DIRECTORY)
    try:
        (place / "d").rmdir()
        with refused(errno.ENOENT):
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        assert os.listdir(fd) == []
        assert os.fstat(fd).st_nlink == 0
    finally:
        os.close(fd)


def test_a_missing_name_appears_as_soon_as_it_is_made(place: Path) -> None:
    for _ in range(3):
        assert not (place / "f").exists()
        (place / "f").touch()
        assert (place / "f").exists()
        (place / "f").unlink()
    with refused(errno.ENOENT):
        os.stat(place / "f")


def test_special_files_are_kept(place: Path) -> None:
    os.mknod(place / "socket", stat.S_IFSOCK | 0o600)
    assert stat.S_ISSOCK(os.stat(place / "socket").st_mode)


def test_what_goes_into_a_fifo_comes_out_of_it(place: Path) -> None:
    os.mkfifo(place / "fifo")
    assert stat.S_ISFIFO(os.stat(place / "fifo").st_mode)
    reading = os.open(place / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    writing = os.open(place / "fifo", os.O_WRONLY)
    try:
        os.write(writing, b"through the kernel")
        assert os.read(reading, 100) == b"through the kernel"
    finally:
        os.close(writing)
        os.close(reading)
    (place / "fifo").rename(place / "other")
    os.unlink(place / "other")
    assert os.listdir(place) == []


def test_changing_a_folder_moves_its_times(place: Path) -> None:
    os.utime(place, ns=(1, 1))
    (place / "f").touch()
    first = os.stat(place)
    assert first.st_mtime_ns > 1
    assert first.st_ctime_ns >= first.st_mtime_ns
    os.utime(place, ns=(1, 1))
    (place / "f").unlink()
    assert os.stat(place).st_mtime_ns > 1


def test_an_unnamed_temporary_file_is_refused_in_the_usual_way(place: Path) -> None:
    """Programs (and Python's tempfile) then make a named one."""
    with refused(errno.EOPNOTSUPP):
        os.close(os.open(place, os.O_TMPFILE | os.O_RDWR))
