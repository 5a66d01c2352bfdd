"""Remote changes come in as compare-and-set, leave no intent, and tell the kernel's side."""

from __future__ import annotations

import errno
from collections.abc import Iterator

import pytest

from memdir.core.limits import MIB
from memdir.fs.tree import LocalChangedError, SyncTree
from memdir.fs.types import ROOT_INO, AttrChange, LocalFact
from memdir.fs.vfs import Vfs

from .conftest import AnyFs, Factory
from .contract import ME, make, refuses, text


class Heard:
    def __init__(self) -> None:
        self.inodes: list[int] = []
        self.entries: list[tuple[int, bytes]] = []

    def inode_changed(self, ino: int) -> None:
        self.inodes.append(ino)

    def entry_changed(self, parent: int, name: bytes) -> None:
        self.entries.append((parent, name))


@pytest.fixture
def heard(fs: AnyFs) -> Heard:
    heard = Heard()
    fs.connect(heard)
    return heard


def put(fs: AnyFs, path: str, data: bytes, expected: LocalFact | None = None, mode: int = 0o644) -> LocalFact:
    return fs.put_file(path, [data], mode=mode, mtime_ns=123, expected=expected)


def fact(fs: AnyFs, path: str) -> LocalFact:
    found = fs.fact(path)
    assert found is not None
    return found


def test_both_faces_are_kept(fs: AnyFs) -> None:
    vfs: Vfs = fs
    tree: SyncTree = fs
    assert vfs.get(ROOT_INO).is_dir
    assert tree.fact("/") is not None


def test_a_file_arrives_with_its_parents(fs: AnyFs, heard: Heard) -> None:
    arrived = put(fs, "/d/e/ü.md", b"remote", mode=0o600)
    assert arrived == fs.fact("/d/e/ü.md")
    assert (arrived.kind, arrived.mode, arrived.size, arrived.mtime_ns) == ("file", 0o600, 6, 123)
    assert fs.read(arrived, 0, 100) == b"remote"
    assert fs.intents(0, 10) == []
    assert heard.entries[0] == (ROOT_INO, b"d")
    assert (fact(fs, "/d/e").ino, "ü.md".encode()) in heard.entries
    inode = fs.get(arrived.ino)
    assert (inode.uid, inode.gid) == (1000, 1000)


def test_new_contents_replace_the_old_in_the_same_inode(fs: AnyFs, heard: Heard) -> None:
    inode = make(fs, b"a", b"long old text")
    old = fact(fs, "/a")
    new = put(fs, "/a", b"new", old)
    assert new.ino == inode.ino
    assert new.version > old.version
    assert text(fs, inode.ino) == b"new"
    assert inode.ino in heard.inodes
    with pytest.raises(LocalChangedError):
        fs.read(old, 0, 10)


def test_an_unsynced_edit_is_never_overwritten(fs: AnyFs) -> None:
    inode = make(fs, b"a", b"1")
    for edit in (
        lambda: fs.write(inode.ino, 0, b"2"),
        lambda: fs.setattr(inode.ino, AttrChange(mode=0o600)),
        lambda: fs.setattr(inode.ino, AttrChange(size=0)),
    ):
        old = fact(fs, "/a")
        edit()
        now = text(fs, inode.ino)
        for apply in (
            lambda old=old: put(fs, "/a", b"remote", old),
            lambda: put(fs, "/a", b"remote", None),
            lambda old=old: fs.delete("/a", expected=old),
            lambda old=old: fs.move("/a", "/b", expected=old),
            lambda old=old: fs.set_mode("/a", mode=0o777, expected=old),
            lambda old=old: fs.put_dir("/a", mode=0o755, expected=old),
            lambda old=old: fs.put_symlink("/a", b"x", expected=old),
        ):
            with pytest.raises(LocalChangedError):
                apply()
        assert text(fs, inode.ino) == now
        assert fs.fact("/b") is None


def test_an_edit_while_the_contents_arrive_wins(fs: AnyFs) -> None:
    inode = make(fs, b"a", b"1")

    def pieces() -> Iterator[bytes]:
        yield b"remote"
        fs.write(inode.ino, 0, b"local")

    with pytest.raises(LocalChangedError):
        fs.put_file("/a", pieces(), mode=0o644, mtime_ns=1, expected=fact(fs, "/a"))
    assert text(fs, inode.ino) == b"local"


def test_large_contents_appear_at_once(fs: AnyFs) -> None:
    make(fs, b"big", b"old")
    piece = bytes(range(256)) * 4096

    def pieces() -> Iterator[bytes]:
        for _ in range(20):
            assert text(fs, fs.lookup(ROOT_INO, b"big").ino) == b"old"
            yield piece

    new = fs.put_file("/big", pieces(), mode=0o644, mtime_ns=5, expected=fact(fs, "/big"))
    assert (new.size, new.mtime_ns) == (20 * MIB, 5)
    assert fs.read(new, 19 * MIB, 2 * MIB) == piece
    assert fs.get(new.ino).lookups == 0


def test_a_broken_download_leaves_nothing(fs: AnyFs) -> None:
    make(fs, b"big", b"old")
    before = len(fs._inodes)

    def pieces() -> Iterator[bytes]:
        for _ in range(10):
            yield bytes(MIB)
        raise ConnectionError

    with pytest.raises(ConnectionError):
        fs.put_file("/big", pieces(), mode=0o644, mtime_ns=5, expected=fact(fs, "/big"))
    assert text(fs, fs.lookup(ROOT_INO, b"big").ino) == b"old"
    assert len(fs._inodes) == before


def test_an_open_file_goes_on_with_the_new_contents(fs: AnyFs) -> None:
    inode = make(fs, b"a", b"old")
    fs.retain(inode.ino)
    put(fs, "/a", b"new", fact(fs, "/a"))
    assert text(fs, inode.ino) == b"new"
    fs.forget(inode.ino, 1)


def test_kinds_change_into_each_other(fs: AnyFs) -> None:
    put(fs, "/x", b"1")
    as_dir = fs.put_dir("/x", mode=0o700, expected=fact(fs, "/x"))
    assert (as_dir.kind, as_dir.mode) == ("dir", 0o700)
    as_link = fs.put_symlink("/x", b"target", expected=as_dir)
    assert (as_link.kind, as_link.target) == ("symlink", b"target")
    assert fs.put_symlink("/x", b"target", expected=as_link) == as_link
    as_file = put(fs, "/x", b"2", as_link)
    assert fs.read(as_file, 0, 9) == b"2"
    assert fs.get(ROOT_INO).nlink == 2


def test_a_full_folder_is_not_deleted_or_replaced(fs: AnyFs) -> None:
    put(fs, "/d/a", b"1")
    folder = fact(fs, "/d")
    refuses(errno.ENOTEMPTY, lambda: fs.delete("/d", expected=folder))
    refuses(errno.ENOTEMPTY, lambda: put(fs, "/d", b"1", folder))
    refuses(errno.ENOTDIR, lambda: put(fs, "/d/a/b", b"1"))
    fs.delete("/d/a", expected=fact(fs, "/d/a"))
    fs.delete("/d", expected=folder)
    assert fs.children("/") == ()


def test_deleting_keeps_what_a_process_has_open(fs: AnyFs, heard: Heard) -> None:
    inode = make(fs, b"a", b"1")
    fs.retain(inode.ino)
    fs.delete("/a", expected=fact(fs, "/a"))
    assert text(fs, inode.ino) == b"1"
    assert (ROOT_INO, b"a") in heard.entries
    fs.forget(inode.ino, 1)
    refuses(errno.ENOENT, lambda: fs.get(inode.ino))


def test_moves_make_parents_and_replace_nothing(fs: AnyFs, heard: Heard) -> None:
    put(fs, "/d/a", b"1")
    put(fs, "/taken", b"2")
    moved = fs.move("/d", "/n/e", expected=fact(fs, "/d"))
    assert moved.path == "/n/e"
    assert [child.path for child in fs.children("/n/e")] == ["/n/e/a"]
    with pytest.raises(LocalChangedError):
        fs.move("/n/e/a", "/taken", expected=fact(fs, "/n/e/a"))
    refuses(errno.EINVAL, lambda: fs.move("/n", "/n/x/y", expected=fact(fs, "/n")))
    refuses(errno.EBUSY, lambda: fs.delete("/", expected=fact(fs, "/")))
    assert fs.fact("/n/x") is None
    assert fs.intents(0, 10) == []
    assert (ROOT_INO, b"d") in heard.entries


def test_children_are_sorted_and_leave_special_files_out(fs: AnyFs) -> None:
    import stat

    for name in (b"b", b"a", b"\xff"):
        make(fs, name)
    fs.create(ROOT_INO, b"socket", stat.S_IFSOCK | 0o600, ME)
    assert [child.path for child in fs.children("/")] == ["/a", "/b", "/\udcff"]
    assert fs.fact("/socket") is None
    with pytest.raises(LocalChangedError):
        put(fs, "/socket", b"1")
    assert fs.children("/a") == ()
    assert fs.fact("/a/b") is None
    assert fs.fact("/nothing") is None
    refuses(errno.EINVAL, lambda: fs.fact("/../x"))


def test_a_local_write_after_a_quiet_move_is_told_under_the_new_path(fs: AnyFs) -> None:
    inode = make(fs, b"a", b"1")
    fs.write(inode.ino, 0, b"2")
    fs.move("/a", "/b", expected=fact(fs, "/a"))
    fs.write(inode.ino, 0, b"3")
    assert "/b" in {intent.path for intent in fs.intents(0, 10)}


def test_contents_from_the_server_are_for_one_name(fs: AnyFs) -> None:
    """Two names of one file are two files at the server: what stands at the other one stays what it was."""
    inode = make(fs, b"a", b"1")
    fs.link(inode.ino, ROOT_INO, b"b")
    seq = fs.intents(0, 10)[-1].seq
    arrived = put(fs, "/a", b"remote", fact(fs, "/a"))
    assert (text(fs, arrived.ino), text(fs, inode.ino)) == (b"remote", b"1")
    assert fact(fs, "/b").ino == inode.ino
    assert fs.intents(seq, 10) == []


def test_other_names_of_a_changed_mode_are_told(fs: AnyFs) -> None:
    inode = make(fs, b"a", b"1")
    fs.link(inode.ino, ROOT_INO, b"b")
    fs.link(inode.ino, ROOT_INO, b"c~")
    seq = fs.intents(0, 10)[-1].seq
    heard: list[int] = []
    fs.listen(lambda: heard.append(1))
    fs.set_mode("/b", mode=0o600, expected=fact(fs, "/b"))
    assert [intent.path for intent in fs.intents(seq, 10)] == ["/a"]
    assert len(heard) == 1


def test_a_read_only_mount_takes_remote_changes_only(opened: Factory) -> None:
    fs = opened(read_only=True)
    refuses(errno.EROFS, lambda: make(fs, b"a"))
    arrived = put(fs, "/d/a", b"remote")
    refuses(errno.EROFS, lambda: fs.write(arrived.ino, 0, b"x"))
    refuses(errno.EROFS, lambda: fs.unlink(ROOT_INO, b"d"))
    assert text(fs, arrived.ino) == b"remote"
