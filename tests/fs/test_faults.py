"""A disk that refuses: the right errno, nothing half done, nothing answered is lost, and it goes on afterwards."""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memdir.fs.cache import filesystem, flusher, flushing, journal, overlay
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.errors import FsError
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, RENAME_EXCHANGE, ROOT_INO, AttrChange

from . import snapshot, workload
from .conftest import Factory, crashed_copy
from .contract import CHUNK, FILE, ME, make, refuses, text


class FaultyWrites:
    """Stands for the `os` module in the journal: takes `room_bytes` more, then writes what fits and refuses the rest."""

    def __init__(self, number: int, room_bytes: int) -> None:
        self._number = number
        self._room_bytes = room_bytes

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def write(self, fd: int, data: bytes) -> int:
        if not self._room_bytes:
            raise OSError(self._number, os.strerror(self._number))
        written = os.write(fd, memoryview(data)[: self._room_bytes])
        self._room_bytes -= written
        return written

    def writev(self, fd: int, pieces: list[bytes]) -> int:
        return self.write(fd, b"".join(pieces))


OPERATIONS: dict[str, Callable[[SqliteFs], object]] = {
    "create": lambda fs: fs.create(ROOT_INO, b"new", FILE, ME),
    "mkdir": lambda fs: fs.mkdir(ROOT_INO, b"new", 0o755, ME),
    "symlink": lambda fs: fs.symlink(ROOT_INO, b"new", b"t", ME),
    "link": lambda fs: fs.link(2, ROOT_INO, b"new"),
    "write": lambda fs: fs.write(2, 1, b"zz"),
    "big write": lambda fs: fs.write(2, 1, b"z" * 3 * CHUNK),
    "truncate": lambda fs: fs.setattr(2, AttrChange(size=1)),
    "chmod": lambda fs: fs.setattr(2, AttrChange(mode=0o600)),
    "punch": lambda fs: fs.fallocate(2, 0, 2, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE),
    "unlink": lambda fs: fs.unlink(ROOT_INO, b"a"),
    "rmdir": lambda fs: fs.rmdir(ROOT_INO, b"empty"),
    "rename": lambda fs: fs.rename(ROOT_INO, b"a", ROOT_INO, b"b"),
    "exchange": lambda fs: fs.rename(ROOT_INO, b"a", ROOT_INO, b"empty", RENAME_EXCHANGE),
    "setxattr": lambda fs: fs.setxattr(2, b"user.k", b"2"),
    "removexattr": lambda fs: fs.removexattr(2, b"user.k"),
    "put": lambda fs: fs.put_file("/c", [b"remote"], mode=0o644, mtime_ns=1, expected=None),
    "delete": lambda fs: fs.delete("/a", expected=fs.fact("/a")),  # type: ignore[arg-type]
    "move": lambda fs: fs.move("/a", "/c", expected=fs.fact("/a")),  # type: ignore[arg-type]
}


@pytest.fixture
def fs(opened: Factory) -> SqliteFs:
    fs = opened()
    make(fs, b"a", b"text")
    make(fs, b"b", b"other")
    fs.mkdir(ROOT_INO, b"empty", 0o755, ME)
    fs.setxattr(2, b"user.k", b"1")
    return fs


@pytest.mark.parametrize("room_bytes", [0, 1, 23, 24, 100])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_refused_operation_changes_nothing(
    fs: SqliteFs, opened: Factory, name: str, number: int, room_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, told = snapshot.of_vfs(fs), list(fs.intents(0, 100))
    with monkeypatch.context() as patch:
        patch.setattr(journal, "os", FaultyWrites(number, room_bytes))
        refuses(number, lambda: OPERATIONS[name](fs))
        assert snapshot.of_vfs(fs) == before
        assert list(fs.intents(0, 100)) == told
    OPERATIONS[name](fs)
    after = snapshot.of_vfs(fs)
    assert after != before
    fs.close()
    assert snapshot.of_vfs(opened()) == after


def test_a_write_that_was_refused_is_told_when_it_works(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    last = fs.intents(0, 100)[-1].seq
    with monkeypatch.context() as patch:
        patch.setattr(journal, "os", FaultyWrites(errno.ENOSPC, 10))
        refuses(errno.ENOSPC, lambda: fs.write(2, 0, b"x"))
    fs.write(2, 0, b"x")
    assert [intent.path for intent in fs.intents(last, 100)] == ["/a"]


class TestFullDatabase:
    """SQLite has no room (a real SQLITE_FULL), the journal still has."""

    @pytest.fixture
    def full(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteFs]:
        monkeypatch.setattr(flusher, "RETRY_S", 0.01)
        monkeypatch.setattr(flusher, "QUIET_S", 0.01)
        fs.flush()
        self.limit(fs, 1)
        yield fs
        if not fs._closed:
            self.limit(fs, 1 << 30)

    @staticmethod
    def limit(fs: SqliteFs, pages: int) -> None:
        with fs._tables.database._lock:
            fs._tables.database._writer.execute(f"pragma max_page_count={pages}").fetchall()

    def test_writers_are_told_instead_of_waiting_for_ever(self, full: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(flushing, "DIRTY_MAX_BYTES", 3 * CHUNK)
        monkeypatch.setattr(filesystem, "DIRTY_MAX_BYTES", 3 * CHUNK)

        def fill() -> None:
            for number in range(100):
                full.write(2, number * CHUNK, b"x" * CHUNK)

        refuses(errno.ENOSPC, fill)
        assert text(full, 2)[:CHUNK] == b"x" * CHUNK  # reading works all the while
        refuses(errno.ENOSPC, lambda: full.flush(timeout_s=10))
        self.limit(full, 1 << 30)
        self.until_flushed(full)
        with full._lock:
            assert full._room.wait_for(lambda: not full.is_short, 10)
        full.write(2, 0, b"works")
        assert text(full, 2)[:5] == b"works"

    @staticmethod
    def until_flushed(fs: SqliteFs) -> None:
        for _ in range(10):  # an attempt that began before the room came may still fail
            try:
                fs.flush(timeout_s=10)
            except FsError:
                continue
            return
        pytest.fail("the flusher does not recover")

    def test_what_was_changed_while_it_was_full_follows_by_itself(self, full: SqliteFs) -> None:
        full.write(2, 0, b"x" * 5 * CHUNK)
        refuses(errno.ENOSPC, lambda: full.flush(timeout_s=10))  # a batch is refused and waits
        refuses(errno.ENOSPC, lambda: full.write(2, 0, b"second"))  # until there is room for what waits
        full.unlink(ROOT_INO, b"b")
        last_lsn = full.last_lsn
        self.limit(full, 1 << 30)
        with full._lock:  # nobody wakes the flusher but itself
            assert full._room.wait_for(lambda: full._applied_lsn >= last_lsn and not full.is_short, 10)
        assert full.trouble is None
        full.write(2, 0, b"second")

    def test_closing_keeps_the_journal(self, full: SqliteFs, opened: Factory, folder: Path) -> None:
        full.write(2, 0, b"y" * 5 * CHUNK)
        before = snapshot.of_vfs(full)
        refuses(errno.ENOSPC, full.close)
        assert journal.segment_paths(folder)
        assert snapshot.of_vfs(opened()) == before


def test_a_failed_sync_is_never_taken_for_done(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(fd: int) -> None:
        raise OSError(errno.EIO, "injected")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        refuses(errno.EIO, lambda: fs.fsync(2))
    refuses(errno.EIO, lambda: fs.fsync(2))  # the kernel may have dropped the pages
    fs.write(2, 0, b"more")
    fs.flush()  # SQLite holds it durably now
    fs.fsync(2)


def test_a_chunk_that_cannot_be_read_is_an_error_and_not_zeros(fs: SqliteFs, opened: Factory, folder: Path) -> None:
    fs.close()
    fs = opened()
    fs._contents(2)
    with fs._tables.database.write() as connection:
        saved = connection.execute("select data from chunk where key = ?", (2 << 24,)).fetchall()[0][0]
        connection.execute("delete from chunk where key = ?", (2 << 24,))
    refuses(errno.EIO, lambda: fs.read(2, 0, 10))
    refuses(errno.EIO, lambda: fs.write(2, 1, b"x"))
    with fs._tables.database.write() as connection:
        connection.execute("insert into chunk values (?, ?)", (2 << 24, saved))
    assert text(fs, 2) == b"text"


@pytest.mark.parametrize("seed", range(16))
def test_a_power_cut_loses_nothing_that_was_synced(opened: Factory, tmp_path: Path, seed: int) -> None:
    """What was not synced may be cut off, or be zeros, at any byte; SQLite's last durable state is the one at the start."""
    rng = random.Random(seed)
    kind = rng.choice(workload.KINDS)
    fs = opened()
    start = crashed_copy(fs, tmp_path / "start")
    history, operations = [], workload.operations(fs, kind, seed)
    wanted, synced, synced_bytes = rng.randrange(1, 20), 0, 0
    for number in range(40):
        next(operations)
        history.append(snapshot.visible(fs))
        if number == wanted:
            fs.fsync(ROOT_INO)
        if fs._journal._segments[-1].synced_bytes > synced_bytes:  # `save` syncs by itself, too
            synced, synced_bytes = number, fs._journal._segments[-1].synced_bytes
    (segment,) = journal.segment_paths(fs._folder)
    data = bytearray(segment.read_bytes())
    cut = rng.randrange(synced_bytes, len(data) + 1)
    if rng.random() < 0.5:
        data[cut:] = b""
    else:
        end = min(len(data), cut + rng.randrange(1, 5000))
        data[cut:end] = bytes(end - cut)
    (start / segment.name).write_bytes(data)
    assert check(start) == []
    with SqliteFs.open(start) as after:
        assert snapshot.visible(after) in history[synced:]
    assert check(start) == []


def test_a_file_unlinked_while_open_is_removed_after_a_crash(opened: Factory, tmp_path: Path) -> None:
    fs = opened()
    inode = make(fs, b"a", b"x" * 3 * CHUNK)
    fs.setxattr(inode.ino, b"user.k", b"v")
    fs.retain(inode.ino)
    fs.flush()
    fs.unlink(ROOT_INO, b"a")
    crashed = crashed_copy(fs, tmp_path / "crashed")
    with SqliteFs.open(crashed) as after:
        refuses(errno.ENOENT, lambda: after.get(inode.ino))
    connection = apsw.Connection(str(crashed / "cache.db"))
    for table in ("chunk", "xattr", "dentry"):
        assert list(connection.execute(f"select * from {table}")) == []
    connection.close()
    assert text(fs, inode.ino) == b"x" * 3 * CHUNK
    fs.forget(inode.ino, 1)


def thinned(fs: SqliteFs, inodes_max: int) -> None:
    """Evict down to the bound. The flusher may be in the middle of a round of its own, which ends with another limit."""
    for _ in range(200):
        fs._crowd_at = 64
        fs.thin_out()
        if len(fs._inodes) <= inodes_max:
            return
    raise AssertionError(f"{len(fs._inodes)} inodes stay in memory")


def test_memory_stays_bounded_over_a_large_tree(opened: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "INODES_MAX", 64)
    monkeypatch.setattr(overlay, "CLEAN_MAX_BYTES", 4 * CHUNK)
    fs = opened()
    fs._crowd_at = 64
    for number in range(20):
        folder = fs.mkdir(ROOT_INO, b"d%02d" % number, 0o755, ME).ino
        for name in range(20):
            make(fs, b"f%02d" % name, b"%d" % number * 1000, folder)
    big = make(fs, b"big", bytes(range(256)) * 8192)
    fs.flush()
    thinned(fs, 80)
    assert fs._clean_bytes <= 5 * CHUNK
    for number in range(20):
        folder = fs.lookup(ROOT_INO, b"d%02d" % number).ino
        assert len(fs.readdir(folder)) == 20
        assert text(fs, fs.lookup(folder, b"f07").ino) == b"%d" % number * 1000
    assert text(fs, big.ino) == bytes(range(256)) * 8192
    held = fs.lookup(ROOT_INO, b"d00")
    fs.retain(held.ino)
    held = fs.get(held.ino)  # the flusher may have evicted it between the two
    thinned(fs, 80)
    assert fs.get(held.ino) is held  # the kernel refers to it
    fs.forget(held.ino, 1)


def test_what_the_kernel_gives_back_leaves_memory(opened: Factory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overlay, "INODES_MAX", 64)
    fs = opened()
    fs._crowd_at = 64
    inodes = [make(fs, b"f%03d" % number, b"x").ino for number in range(200)]
    for ino in inodes:
        fs.retain(ino)
    fs.flush()
    fs.thin_out()
    assert len(fs._inodes) > 200
    for ino in inodes:
        fs.forget(ino, 1)
    thinned(fs, 64)
    assert [fs.lookup(ROOT_INO, b"f%03d" % number).ino for number in range(200)] == inodes


def test_a_newer_schema_is_refused(fs: SqliteFs, folder: Path, opened: Factory) -> None:
    from memdir.core.errors import VersionError

    fs.close()
    connection = apsw.Connection(str(folder / "cache.db"))
    (version,) = next(iter(connection.execute("pragma user_version")))
    connection.execute("pragma user_version=999")
    with pytest.raises(VersionError):
        SqliteFs.open(folder)
    connection.execute(f"pragma user_version={version}")
    connection.close()
    assert text(opened(), 2) == b"text"
