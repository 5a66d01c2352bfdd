"""profile.md and .memdir: on a mount, and as a filesystem."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.errors import FsError
from memdir.fs.memory import MemoryFs
from memdir.fs.types import ROOT_INO, VIRTUAL_INO_BASE, AttrChange, Owner
from memdir.fs.views import (
    ProfileFolder,
    ProfileView,
    StatusView,
    ViewVfs,
    is_virtual,
    read_pages,
    render_profile,
    stored_pages,
)
from memdir.fs.views.status import error_name
from tests.fuse.harness import MountProcess, in_shell
from tests.fuse.test_names import refused

EMPTY = (
    "# Memory Profile\n# This file is auto-generated from\n# your memories. It is not editable.\n"
    "# To update, modify the source files\n# that contain this information.\n## Core Knowledge\n## Recent Context\n"
)
ME = Owner(1000, 1000)


# Rendering


def test_an_empty_profile_has_its_header_and_both_sections() -> None:
    assert render_profile([], []) == EMPTY


def test_facts_are_one_line_each_whatever_they_contain() -> None:
    text = render_profile(["Likes tea", "# a title\n- and a second fact"], ["Moved\tto  Oslo "])
    assert text.splitlines()[5:] == [
        "## Core Knowledge", "- Likes tea", "- # a title - and a second fact", "## Recent Context", "- Moved to Oslo",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "virtual"),
    [
        ("/profile.md", True), ("/.memdir", True), ("/.memdir/status.json", True), ("/.memdirignore", False),
        ("/a/profile.md", False), ("/profile.md/x", False), ("/profile.mdx", False), ("/", False), ("/a/.memdir", False),
    ],
)  # fmt: skip
def test_which_paths_are_virtual(path: str, virtual: bool) -> None:
    assert is_virtual(path) is virtual


def test_a_parked_path_gets_a_file_name_of_its_own() -> None:
    assert error_name("/a/b.bin") == b"a%2Fb.bin.txt"
    assert error_name("/a%2Fb.bin") == b"a%252Fb.bin.txt"
    long = [error_name("/" + "ü" * 300 + end) for end in "ab"]
    assert all(len(name) <= 255 for name in long)
    assert long[0] != long[1]
    assert all(name.decode().endswith(".txt") for name in long)


# As a filesystem


class Recorder:
    def __init__(self) -> None:
        self.entries: list[tuple[int, bytes]] = []

    def inode_changed(self, ino: int) -> None:
        assert ino == self.entries[-1][0], "the folder, whose listing may be known where the name is not"

    def entry_changed(self, parent: int, name: bytes) -> None:
        self.entries.append((parent, name))


@pytest.fixture
def base() -> MemoryFs:
    return MemoryFs(uid=7, gid=8)


@pytest.fixture
def profile() -> ProfileView:
    return ProfileView()


@pytest.fixture
def vfs(base: MemoryFs, profile: ProfileView) -> ViewVfs:
    counter = iter(range(1_000_000))
    status = StatusView(status=lambda: {"n": next(counter)}, queue=list, errors=lambda: {"/x/y": "too large"})
    return ViewVfs(base, [profile, status], clock=FakeClock())


def test_a_snapshot_keeps_its_size_and_bytes_while_the_view_moves_on(vfs: ViewVfs) -> None:
    folder = vfs.lookup(ROOT_INO, b".memdir")
    first = vfs.lookup(folder.ino, b"status.json")
    vfs.retain(first.ino)
    second = vfs.lookup(folder.ino, b"status.json")
    assert first.ino != second.ino
    data = bytes(vfs.read(first.ino, 0, 1000))  # type: ignore[arg-type]
    assert len(data) == first.size
    assert json.loads(data) == {"n": 0}
    vfs.forget(first.ino, 1)
    with pytest.raises(FsError) as caught:
        vfs.get(first.ino)
    assert caught.value.errno == errno.ENOENT


def test_the_same_contents_keep_their_inode(vfs: ViewVfs, profile: ProfileView) -> None:
    first = vfs.lookup(ROOT_INO, b"profile.md")
    assert first.ino >= VIRTUAL_INO_BASE
    assert vfs.lookup(ROOT_INO, b"profile.md") is first
    profile.set_text("new\n")
    second = vfs.lookup(ROOT_INO, b"profile.md")
    assert second.ino != first.ino
    assert (second.size, second.mode, second.uid, second.gid) == (4, stat.S_IFREG | 0o444, 7, 8)


def test_unreferenced_snapshots_do_not_pile_up(vfs: ViewVfs) -> None:
    folder = vfs.lookup(ROOT_INO, b".memdir")
    for _ in range(100):
        vfs.lookup(folder.ino, b"status.json")
    assert len(vfs._table) == 2


def test_a_new_profile_is_announced_once(vfs: ViewVfs, profile: ProfileView) -> None:
    recorder = Recorder()
    vfs.connect(recorder)
    profile.set_text("a\n")
    profile.set_text("a\n")
    assert recorder.entries == [(ROOT_INO, b"profile.md")]
    assert profile.text == "a\n"


def test_the_pages_of_the_profile_give_way_to_a_folder_that_somebody_made(base: MemoryFs) -> None:
    pages = ProfileFolder()
    vfs = ViewVfs(base, [pages], clock=FakeClock())
    recorder = Recorder()
    vfs.connect(recorder)
    assert vfs.find(ROOT_INO, b"profile") is None
    pages.set_pages({"core.md": "# Core\n"})
    assert recorder.entries == [(ROOT_INO, b"profile")]
    folder = vfs.lookup(ROOT_INO, b"profile")
    assert [entry.name for entry in vfs.readdir(folder.ino)] == [b"core.md"]
    assert list(vfs.readdir(ROOT_INO)) == []
    with pytest.raises(FsError) as caught:
        vfs.create(folder.ino, b"x", 0o644, Owner(1, 1))
    assert caught.value.errno == errno.EROFS
    base.put_file("/profile/mine.md", [b"real"], mode=0o644, mtime_ns=0, expected=None)
    assert vfs.lookup(ROOT_INO, b"profile").ino < VIRTUAL_INO_BASE
    assert [entry.name for entry in vfs.readdir(ROOT_INO)] == [b"profile"]
    vfs.rename(ROOT_INO, b"profile", ROOT_INO, b"kept")
    assert vfs.lookup(ROOT_INO, b"profile").ino >= VIRTUAL_INO_BASE


def test_stored_pages_are_read_again_and_damage_is_nothing() -> None:
    pages = {"core.md": "ü\n", "x": ""}
    assert read_pages(stored_pages(pages)) == pages
    assert read_pages(b"[1]") == read_pages(b"{") == {}


def test_a_real_file_with_a_views_name_is_shadowed_and_not_lost(base: MemoryFs, vfs: ViewVfs) -> None:
    base.put_file("/profile.md", [b"real"], mode=0o644, mtime_ns=0, expected=None)
    base.put_file("/.memdir/x", [b"real"], mode=0o644, mtime_ns=0, expected=None)
    base.put_file("/other", [b"x"], mode=0o644, mtime_ns=0, expected=None)
    assert [entry.name for entry in vfs.readdir(ROOT_INO)] == [b"other", b"profile.md"]
    assert vfs.lookup(ROOT_INO, b"profile.md").ino >= VIRTUAL_INO_BASE
    for change in (
        lambda: vfs.unlink(ROOT_INO, b"profile.md"),
        lambda: vfs.rename(ROOT_INO, b"other", ROOT_INO, b"profile.md"),
        lambda: vfs.rmdir(ROOT_INO, b".memdir"),
    ):
        with pytest.raises(FsError) as caught:
            change()
        assert caught.value.errno == errno.EROFS
    fact = base.fact("/profile.md")
    assert fact is not None
    assert base.read(fact, 0, 10) == b"real"


def test_every_change_of_a_view_is_refused(base: MemoryFs, vfs: ViewVfs) -> None:
    file = base.create(ROOT_INO, b"real", stat.S_IFREG | 0o644, ME)
    ino = vfs.lookup(ROOT_INO, b"profile.md").ino
    folder = vfs.lookup(ROOT_INO, b".memdir").ino
    changes: list[Callable[[], object]] = [
        lambda: vfs.write(ino, 0, b"x"),
        lambda: vfs.setattr(ino, AttrChange(size=0)),
        lambda: vfs.setattr(ino, AttrChange(mode=0o777)),
        lambda: vfs.setattr(folder, AttrChange(uid=5)),
        lambda: vfs.fallocate(ino, 0, 10, 0),
        lambda: vfs.setxattr(ino, b"user.a", b"x"),
        lambda: vfs.removexattr(ino, b"user.a"),
        lambda: vfs.link(ino, ROOT_INO, b"hard"),
        lambda: vfs.link(file.ino, folder, b"hard"),
        lambda: vfs.unlink(ROOT_INO, b"profile.md"),
        lambda: vfs.unlink(folder, b"status.json"),
        lambda: vfs.rmdir(ROOT_INO, b".memdir"),
        lambda: vfs.rename(ROOT_INO, b"profile.md", ROOT_INO, b"x"),
        lambda: vfs.rename(ROOT_INO, b"real", ROOT_INO, b"profile.md"),
        lambda: vfs.rename(ROOT_INO, b"real", ROOT_INO, b"profile.md", 2),
        lambda: vfs.rename(ROOT_INO, b"real", folder, b"x"),
        lambda: vfs.create(ROOT_INO, b"profile.md", stat.S_IFREG | 0o644, ME),
        lambda: vfs.create(folder, b"x", stat.S_IFREG | 0o644, ME),
        lambda: vfs.mkdir(ROOT_INO, b".memdir", 0o755, ME),
        lambda: vfs.symlink(ROOT_INO, b"profile.md", b"x", ME),
    ]
    before = vfs.read(ino, 0, 10_000)
    for number, change in enumerate(changes):
        with pytest.raises(FsError) as caught:
            change()
        assert caught.value.errno == errno.EROFS, number
    assert vfs.read(ino, 0, 10_000) == before
    assert [entry.name for entry in vfs.readdir(ROOT_INO)] == [b"real", b"profile.md"]


def test_virtual_files_are_read_like_others(vfs: ViewVfs) -> None:
    inode = vfs.lookup(ROOT_INO, b"profile.md")
    assert vfs.read(inode.ino, 2, 6) == b"Memory"
    assert vfs.read(inode.ino, 10_000, 6) == b""
    assert vfs.seek_data(inode.ino, 3, hole=False) == 3
    assert vfs.seek_data(inode.ino, 3, hole=True) == inode.size
    assert vfs.listxattr(inode.ino) == ()
    vfs.fsync(inode.ino)
    for number, call in (
        (errno.ENXIO, lambda: vfs.seek_data(inode.ino, inode.size, hole=False)),
        (errno.ENODATA, lambda: vfs.getxattr(inode.ino, b"user.a")),
        (errno.EINVAL, lambda: vfs.readlink(inode.ino)),
        (errno.ENOTDIR, lambda: vfs.readdir(inode.ino)),
        (errno.ENOTDIR, lambda: vfs.lookup(inode.ino, b"x")),
        (errno.ENOENT, lambda: vfs.lookup(vfs.lookup(ROOT_INO, b".memdir").ino, b"none")),
        (errno.EISDIR, lambda: vfs.read(vfs.lookup(ROOT_INO, b".memdir").ino, 0, 1)),
        (errno.ENOENT, lambda: vfs.get(VIRTUAL_INO_BASE + 10**9)),
    ):
        with pytest.raises(FsError) as caught:
            call()
        assert caught.value.errno == number


def test_the_way_up_from_a_virtual_folder_leads_to_the_root(vfs: ViewVfs) -> None:
    folder = vfs.lookup(ROOT_INO, b".memdir")
    errors = vfs.lookup(folder.ino, b"errors")
    assert vfs.lookup(errors.ino, b"..") is folder
    assert vfs.lookup(folder.ino, b"..").ino == ROOT_INO
    assert vfs.lookup(folder.ino, b".") is folder


def test_a_listing_of_the_root_can_be_continued_anywhere(base: MemoryFs, vfs: ViewVfs) -> None:
    for number in range(5):
        base.create(ROOT_INO, str(number).encode(), stat.S_IFREG | 0o644, ME)
    names, cookie = [], 0
    while entries := vfs.readdir(ROOT_INO, cookie):
        names.append(entries[0].name)
        cookie = entries[0].cookie
    assert names == [b"0", b"1", b"2", b"3", b"4", b"profile.md"]


# On a mount


@pytest.mark.promise("profile.first-second")
@pytest.mark.mount
def test_profile_is_there_from_the_first_second(own_mount: MountProcess) -> None:
    assert os.listdir(own_mount.path) == ["profile.md"]
    assert (own_mount.path / "profile.md").read_text() == EMPTY
    info = os.stat(own_mount.path / "profile.md")
    assert stat.S_IMODE(info.st_mode) == 0o444
    assert info.st_size == len(EMPTY)


@pytest.mark.mount
def test_profile_grows_and_shrinks_for_every_reader(own_mount: MountProcess) -> None:
    path = own_mount.path / "profile.md"
    with path.open() as reader:
        assert reader.read(10) == EMPTY[:10]
        for text in ("long " * 5000, "x\n", "", "medium\n" * 50):
            own_mount.call("profile", text=text)
            assert path.read_text() == text
            assert os.stat(path).st_size == len(text)
        assert reader.read() == EMPTY[10:]
        assert in_shell("cat profile.md | head -1", own_mount.path) == "medium\n"


@pytest.mark.promise("profile.read-only")
@pytest.mark.mount
def test_nothing_changes_the_profile_not_even_root(own_mount: MountProcess) -> None:
    path = own_mount.path / "profile.md"
    (own_mount.path / "real").write_text("x")
    changes: list[Callable[[], object]] = [
        lambda: path.write_text("x"),
        path.unlink,
        lambda: path.rename(own_mount.path / "y"),
        lambda: (own_mount.path / "real").rename(path),
        lambda: path.chmod(0o777),
        lambda: os.chown(path, 1, 1),
        lambda: os.truncate(path, 3),
        lambda: os.utime(path),
        lambda: os.setxattr(path, "user.a", b"x"),
        lambda: os.link(path, own_mount.path / "hard"),
    ]
    for change in changes:
        with refused(errno.EROFS):
            change()
    fd = os.open(path, os.O_WRONLY | os.O_APPEND)
    with refused(errno.EROFS):
        os.write(fd, b"x")
    os.close(fd)
    with refused(errno.EEXIST):
        path.mkdir()
    assert path.read_text() == EMPTY
    assert sorted(os.listdir(own_mount.path)) == ["profile.md", "real"]


@pytest.mark.mount
def test_memdir_is_hidden_and_fresh(own_mount: MountProcess) -> None:
    folder = own_mount.path / ".memdir"
    assert ".memdir" not in os.listdir(own_mount.path)
    assert sorted(os.listdir(folder)) == ["errors", "queue.json", "status.json"]
    assert json.loads((folder / "status.json").read_text()) == {"state": "fresh"}
    assert json.loads((folder / "queue.json").read_text()) == []
    for value in ({"state": "busy"}, {"state": "idle"}, {"state": "x" * 10_000}):
        own_mount.call("set_status", value=value)
        assert json.loads((folder / "status.json").read_text()) == value
    assert os.listdir(folder / "errors") == []
    own_mount.call("set_errors", value={"/a/b.bin": "larger than 512 MiB", "/c": "no"})
    assert sorted(os.listdir(folder / "errors")) == ["a%2Fb.bin.txt", "c.txt"]
    assert (folder / "errors" / "a%2Fb.bin.txt").read_text() == "/a/b.bin\n\nlarger than 512 MiB\n"
    own_mount.call("set_errors", value={})
    assert os.listdir(folder / "errors") == []
    assert not (folder / "errors" / "c.txt").exists()
    for change in ((folder / "x").mkdir, (folder / "status.json").unlink, folder.rmdir):
        with refused(errno.EROFS):
            change()
    with refused(errno.EEXIST):
        folder.mkdir()


@pytest.mark.mount
def test_a_copy_of_the_mount_has_the_profile_and_not_memdir(own_mount: MountProcess, tmp_path: Path) -> None:
    (own_mount.path / "f").write_text("x")
    in_shell(f"cp -r {own_mount.path} {tmp_path}/copy", tmp_path)
    assert sorted(os.listdir(tmp_path / "copy")) == ["f", "profile.md"]
    assert (tmp_path / "copy" / "profile.md").read_text() == EMPTY
