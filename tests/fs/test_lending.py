"""Blobs that somebody else writes to: what was done there is recorded, synced, and found again after a kill."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.fs.cache import large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.posix.place import IN_CHUNKS
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, ROOT_INO, AttrChange, Inode

from .conftest import Factory, crashed_copy
from .contract import CHUNK, make, text

BIG = 3 * CHUNK


@pytest.fixture
def fs(opened: Factory, monkeypatch: pytest.MonkeyPatch) -> SqliteFs:
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 2 * CHUNK)
    return opened()


@pytest.fixture
def inode(fs: SqliteFs) -> Inode:
    return make(fs, b"a", b"1" * BIG)


@pytest.fixture
def fd(fs: SqliteFs, inode: Inode) -> Iterator[int]:
    """What the kernel would write to."""
    fd = fs.lend(inode.ino, writable=True, is_new=False)
    assert fd is not None
    yield fd
    os.close(fd)


def test_what_was_written_there_is_the_file_from_then_on(fs: SqliteFs, inode: Inode, fd: int) -> None:
    last, version = fs.intents(0, 10)[-1].seq, inode.version
    os.pwrite(fd, b"2" * CHUNK, BIG)
    fs.refresh(inode.ino)
    assert inode.size == BIG + CHUNK
    assert inode.version > version
    assert inode.mtime_ns == os.fstat(fd).st_mtime_ns
    assert [intent.path for intent in fs.intents(last, 10)] == ["/a"]
    assert text(fs, inode.ino) == b"1" * BIG + b"2" * CHUNK
    fs.take_back(inode.ino)
    assert text(fs, inode.ino) == b"1" * BIG + b"2" * CHUNK


def test_operations_of_ours_see_what_was_written(fs: SqliteFs, inode: Inode, fd: int) -> None:
    """None of them may cut off what the tables do not know yet."""
    os.pwrite(fd, b"2" * CHUNK, BIG)
    fs.write(inode.ino, BIG + CHUNK, b"3")
    assert text(fs, inode.ino) == b"1" * BIG + b"2" * CHUNK + b"3"
    os.pwrite(fd, b"4", BIG + CHUNK + 1)
    fs.fallocate(inode.ino, 0, 5, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)
    os.pwrite(fd, b"5", BIG + CHUNK + 2)
    assert fs.setattr(inode.ino, AttrChange(mode=0o600)).size == BIG + CHUNK + 3
    assert text(fs, inode.ino) == bytes(5) + b"1" * (BIG - 5) + b"2" * CHUNK + b"345"
    os.pwrite(fd, b"6" * CHUNK, BIG + 2 * CHUNK)
    fact = fs.fact("/a")
    assert fact is not None
    assert fact.size == BIG + 3 * CHUNK


def test_a_truncation_reaches_the_lent_file_at_once(fs: SqliteFs, inode: Inode, fd: int) -> None:
    fs.setattr(inode.ino, AttrChange(size=5))
    assert os.fstat(fd).st_size == 5
    fs.setattr(inode.ino, AttrChange(size=0))
    assert os.fstat(fd).st_size == 0
    os.pwrite(fd, b"after O_TRUNC", 0)
    fs.take_back(inode.ino)
    assert text(fs, inode.ino) == b"after O_TRUNC"
    assert inode.place == IN_CHUNKS  # small again


def test_a_new_file_begins_in_a_blob_and_goes_back_when_it_stays_small(fs: SqliteFs) -> None:
    for name, data in ((b"small", b"s" * 100), (b"empty", b""), (b"large", b"l" * BIG)):
        inode = make(fs, name)
        fd = fs.lend(inode.ino, writable=True, is_new=True)
        assert fd is not None
        os.pwrite(fd, data, 0)
        os.close(fd)
        fs.take_back(inode.ino)
        assert text(fs, inode.ino) == data
        assert (inode.place == IN_CHUNKS) == (len(data) < 2 * CHUNK)
    fs.flush()
    assert len(list(fs._large.folder.iterdir())) == 1


def test_contents_elsewhere_are_not_lent(fs: SqliteFs) -> None:
    assert fs.lend(make(fs, b"small", b"s").ino, writable=True, is_new=False) is None
    assert fs.lend(ROOT_INO, writable=False, is_new=True) is None
    assert not fs.is_lent(ROOT_INO)


def test_a_sync_reaches_the_lent_file(fs: SqliteFs, inode: Inode, fd: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fs.fsync(inode.ino)
    os.pwrite(fd, b"2", 0)
    synced: list[str] = []
    real = os.fdatasync

    def fdatasync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fdatasync", fdatasync)
    fs.fsync(inode.ino)
    assert str(fs._large.path(inode.ino, inode.place)) in synced
    assert "journal-" in synced[-1]  # bytes first, then the record that tells of them


def test_sync_never_takes_a_changing_file_for_a_version(fs: SqliteFs, inode: Inode, fd: int) -> None:
    fact = fs.fact("/a")
    assert fact is not None
    os.pwrite(fd, b"2", BIG)
    with pytest.raises(LocalChangedError):
        fs.read(fact, 0, 10)
    with pytest.raises(LocalChangedError):
        fs.put_file("/a", [b"remote"], mode=0o644, mtime_ns=1, expected=fact)


def test_contents_from_the_server_do_not_disturb_who_has_the_file_open(fs: SqliteFs, inode: Inode, fd: int) -> None:
    fact = fs.fact("/a")
    assert fact is not None
    with pytest.raises(FsError):
        fs.evict(fact, "0" * 64)
    now = fs.put_file("/a", [b"remote" * CHUNK], mode=0o644, mtime_ns=1, expected=fact)
    assert now.ino != inode.ino
    assert os.pread(fd, 5, 0) == b"11111"


def test_a_kill_loses_nothing_that_was_written_there(fs: SqliteFs, inode: Inode, fd: int, tmp_path: Path) -> None:
    fs.acknowledge(fs.intents(0, 10)[-1].seq)
    os.pwrite(fd, b"2" * CHUNK, BIG)
    os.pwrite(fd, b"0", 0)
    crashed = crashed_copy(fs, tmp_path / "crashed")
    assert check(crashed) == []
    with SqliteFs.open(crashed) as after:
        assert text(after, inode.ino) == b"0" + b"1" * (BIG - 1) + b"2" * CHUNK
        assert after.get(inode.ino).version > inode.version
        assert [intent.path for intent in after.intents(0, 10)] == ["/a"]
    assert check(crashed) == []


def test_closing_takes_everything_back(fs: SqliteFs, opened: Factory, inode: Inode, fd: int) -> None:
    os.pwrite(fd, b"2" * CHUNK, BIG)
    fs.close()
    after = opened()
    assert text(after, inode.ino) == b"1" * BIG + b"2" * CHUNK


def test_a_lent_file_that_is_removed_goes_with_its_last_user(fs: SqliteFs, inode: Inode, fd: int) -> None:
    fs.retain(inode.ino)
    fs.unlink(ROOT_INO, b"a")
    os.pwrite(fd, b"2", BIG)
    fs.take_back(inode.ino)
    fs.forget(inode.ino, 1)
    fs.flush()
    assert list(fs._large.folder.iterdir()) == []
