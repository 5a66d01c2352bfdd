"""Directories: many names, deep paths, listings that change while they run, and inotify."""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import subprocess
from pathlib import Path

import pytest

from tests.fuse.test_names import refused
from tests.posix.forked import forked

pytestmark = pytest.mark.mount

_libc = ctypes.CDLL(None, use_errno=True)
_libc.opendir.restype = ctypes.c_void_p
_libc.readdir.restype = ctypes.c_void_p
_libc.telldir.restype = ctypes.c_long
_libc.seekdir.argtypes = [ctypes.c_void_p, ctypes.c_long]
for _function in (_libc.readdir, _libc.telldir, _libc.rewinddir, _libc.closedir):
    _function.argtypes = [ctypes.c_void_p]
_D_NAME = 19
"""Offset of d_name in struct dirent of 64-bit Linux."""


def next_name(stream: int) -> bytes | None:
    entry = _libc.readdir(stream)
    return ctypes.string_at(entry + _D_NAME) if entry else None


def test_telldir_and_seekdir_find_their_place_again(place: Path) -> None:
    for number in range(500):
        (place / f"n{number}").touch()
    stream = _libc.opendir(os.fsencode(place))
    names, positions = [], []
    while True:
        positions.append(_libc.telldir(stream))
        name = next_name(stream)
        if name is None:
            break
        names.append(name)
    assert len(set(names)) == len(names) == 502
    for index in (400, 3, 250, 0, 501, 100):
        _libc.seekdir(stream, positions[index])
        assert next_name(stream) == names[index]
    gone = next(index for index in range(5, 20) if names[index] not in (b".", b".."))
    os.unlink(place / os.fsdecode(names[gone]))
    _libc.seekdir(stream, positions[300])
    assert next_name(stream) == names[300]
    _libc.rewinddir(stream)
    assert sum(1 for _ in iter(lambda: next_name(stream), None)) == 501
    _libc.closedir(stream)


def test_names_made_while_a_folder_is_listed_end_the_listing_all_the_same(place: Path) -> None:
    for number in range(1000):
        (place / f"n{number}").touch()
    seen = []
    with os.scandir(place) as entries:
        for count, entry in enumerate(entries):
            seen.append(entry.name)
            if count < 1500:
                (place / f"m{count}").touch()
    assert {f"n{number}" for number in range(1000)} <= set(seen)
    assert len(seen) == len(set(seen))


@pytest.mark.parametrize("how", ["there and back", "save by rename"])
def test_a_program_that_renames_what_it_lists_comes_to_an_end(place: Path, how: str) -> None:
    """generic/736 of xfstests; and what every formatter does to a folder."""
    count = 1500
    for number in range(count):
        (place / str(number)).write_text("old")
    seen: list[str] = []
    with os.scandir(place) as entries:
        for entry in entries:
            seen.append(entry.name)
            assert len(seen) <= 2 * count, "the listing does not end"
            if how == "there and back":
                os.rename(entry.path, place / "other")
                os.rename(place / "other", entry.path)
            elif entry.name.isdigit():
                (place / "new").write_text("new")
                os.rename(place / "new", entry.path)
    names = [name for name in seen if name.isdigit()]
    assert len(names) == len(set(names)) == count
    assert sorted(os.listdir(place)) == sorted(map(str, range(count)))


def test_a_tree_can_be_removed_while_others_fill_it(place: Path) -> None:
    """`rm -rf` and a writer at once: both end, with errors that say why, and the mount agrees with itself."""

    def fill() -> None:
        for number in range(400):
            try:
                os.makedirs(place / "t" / str(number % 7), exist_ok=True)
                (place / "t" / str(number % 7) / str(number)).write_text("x")
            except (FileNotFoundError, NotADirectoryError, FileExistsError):  # the last: gone when makedirs looks again
                continue

    waits = [forked(fill), forked(fill)]
    for _ in range(20):
        subprocess.run(["rm", "-rf", place / "t"], check=False, capture_output=True, timeout=60)
    for wait in waits:
        wait()
    subprocess.run(["rm", "-rf", place / "t"], check=True, timeout=60)
    assert os.listdir(place) == []
    assert os.stat(place).st_nlink == 2


def test_a_path_deeper_than_path_max_works_step_by_step(place: Path) -> None:
    name, depth = "d" * 40, 150  # 6,150 bytes
    fd = os.open(place, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=fd)
        inner = os.open(name, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    handle = os.open("f", os.O_CREAT | os.O_RDWR, dir_fd=fd)
    assert os.write(handle, b"deep") == 4
    os.close(handle)
    os.rename("f", "g", src_dir_fd=fd, dst_dir_fd=fd)
    assert os.listdir(fd) == ["g"]
    os.close(fd)
    with refused(errno.ENAMETOOLONG):
        os.stat(place / "/".join([name] * depth))
    subprocess.run(["rm", "-rf", place / name], check=True, timeout=60)
    assert os.listdir(place) == []


def test_the_current_folder_may_be_renamed_and_removed(place: Path) -> None:
    def child() -> None:
        os.mkdir(place / "a")
        os.mkdir(place / "b")
        os.chdir(place / "a")
        os.rename(place / "a", place / "b" / "c")
        Path("f").write_text("x")
        assert os.getcwd() == str(place / "b" / "c")
        assert os.listdir(place / "b" / "c") == ["f"]
        os.unlink("f")
        os.rmdir(place / "b" / "c")
        assert os.listdir(".") == []
        with refused(errno.ENOENT):
            os.getcwd()
        with refused(errno.ENOENT):
            os.mkdir("d")
        os.chdir("..")
        assert os.getcwd() == str(place / "b")

    forked(child)()


_EVENTS = {
    0x2: "modify", 0x4: "attrib", 0x8: "close_write", 0x10: "close_nowrite", 0x20: "open", 0x40: "moved_from", 0x80: "moved_to",
    0x100: "create", 0x200: "delete",
}  # fmt: skip


def _events(fd: int) -> list[tuple[str, str]]:
    data = os.read(fd, 65_536)
    found, offset = [], 0
    while offset < len(data):
        _, mask, _, length = struct.unpack_from("iIII", data, offset)
        name = data[offset + 16 : offset + 16 + length].rstrip(b"\0").decode()
        found.append((_EVENTS.get(mask & 0xFFF, hex(mask)), name))
        offset += 16 + length
    return found


@pytest.mark.promise("posix.inotify")
def test_inotify_tells_of_every_change_made_through_the_mount(place: Path) -> None:
    fd = _libc.inotify_init1(os.O_NONBLOCK)
    assert _libc.inotify_add_watch(fd, os.fsencode(place), 0xFFF & ~0x11) >= 0
    (place / "f").write_text("x")
    os.rename(place / "f", place / "g")
    os.chmod(place / "g", 0o600)
    os.truncate(place / "g", 0)
    (place / "d").mkdir()
    os.symlink("x", place / "s")
    os.link(place / "g", place / "h")
    os.unlink(place / "g")
    (place / "d").rmdir()
    assert _events(fd) == [
        ("create", "f"), ("open", "f"), ("modify", "f"), ("close_write", "f"), ("moved_from", "f"), ("moved_to", "g"),
        ("attrib", "g"), ("modify", "g"), ("create", "d"), ("create", "s"), ("create", "h"), ("delete", "g"), ("delete", "d"),
    ]  # fmt: skip
    os.close(fd)


@pytest.mark.promise("posix.many-names")
@pytest.mark.parametrize("count", [5_000, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.timeout(900)])])
def test_a_folder_with_many_names_is_listed_looked_up_and_emptied(place: Path, count: int) -> None:
    for number in range(count):
        os.close(os.open(place / f"name-{number}", os.O_CREAT | os.O_WRONLY))
    names = os.listdir(place)
    assert len(names) == count
    assert set(names) == {f"name-{number}" for number in range(count)}
    assert sum(1 for entry in os.scandir(place) if entry.stat().st_size == 0) == count
    for number in range(0, count, 97):
        os.stat(place / f"name-{number}")
    with refused(errno.ENOENT):
        os.stat(place / f"name-{count}")
    for entry in os.scandir(place):
        os.unlink(entry.path)
    assert os.listdir(place) == []
    os.rmdir(place)
