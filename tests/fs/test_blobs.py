"""Large contents in blobs: what stands where, and what a kill, a refusing disk or damage makes of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest

from memdir.fs.cache import blobs, flusher, large, mark
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check, repair
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.posix.place import IN_CHUNKS
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, ROOT_INO, AttrChange, Inode

from . import snapshot
from .conftest import Factory, crashed_copy
from .contract import CHUNK, make, refuses, text

BIG = 3 * CHUNK


@pytest.fixture(autouse=True)
def _two_chunks_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 2 * CHUNK)


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing reaches SQLite before a test says so."""
    monkeypatch.setattr(flusher.Flusher, "start", lambda self: None)


@pytest.fixture
def fs(opened: Factory) -> SqliteFs:
    return opened()


def blob_of(fs: SqliteFs, inode: Inode) -> Path:
    return fs._large.path(inode.ino, inode.place)


def write_batch(fs: SqliteFs) -> None:
    """What the flusher does once."""
    ready, durable = fs.take_batch()
    if ready:
        fs.write_batch(durable=durable)


def execute(folder: Path, sql: str) -> list[tuple[object, ...]]:
    connection = apsw.Connection(str(folder / "cache.db"))
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()


class TestWhere:
    @pytest.mark.promise("large.written-once")
    def test_small_contents_are_in_the_tables_and_large_ones_in_a_file(self, fs: SqliteFs, folder: Path) -> None:
        small, big = make(fs, b"small", b"s" * CHUNK), make(fs, b"big", b"b" * BIG)
        assert small.place == IN_CHUNKS
        assert blob_of(fs, big).read_bytes() == b"b" * BIG
        assert sum(path.stat().st_size for path in folder.glob("journal-*")) < BIG  # not written twice
        fs.flush()
        assert execute(folder, f"select count(*) from chunk where key >> 24 = {big.ino}") == [(0,)]

    def test_a_growing_file_moves_with_all_it_had(self, fs: SqliteFs, folder: Path) -> None:
        inode = make(fs, b"a", b"1" * CHUNK)
        fs.write(inode.ino, CHUNK + 7, b"2" * CHUNK)
        assert inode.place > 0
        expected = b"1" * CHUNK + bytes(7) + b"2" * CHUNK
        assert text(fs, inode.ino) == expected == blob_of(fs, inode).read_bytes()
        fs.flush()
        assert execute(folder, "select * from chunk") == []

    def test_a_move_is_no_change(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a", b"1" * CHUNK)
        fs.intents(0, 10)
        version = inode.version
        with fs._lock:
            fs._move_to_blob(inode)
        assert inode.version == version
        assert not fs.intents(fs.intents(0, 10)[-1].seq, 10)

    def test_a_file_cut_to_nothing_begins_in_the_tables_again(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        old = blob_of(fs, inode)
        fs.setattr(inode.ino, AttrChange(size=0))
        fs.write(inode.ino, 0, b"new")
        assert (inode.place, text(fs, inode.ino)) == (IN_CHUNKS, b"new")
        fs.flush()
        assert not old.exists()

    def test_a_file_too_large_to_be_moved_stays(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(fs, "_blob_min_bytes", 1 << 40)
        inode = make(fs, b"a", b"1" * 70 * CHUNK)
        monkeypatch.setattr(fs, "_blob_min_bytes", CHUNK)
        fs.write(inode.ino, 0, b"2")
        assert inode.place == IN_CHUNKS
        assert text(fs, inode.ino) == b"2" + b"1" * (70 * CHUNK - 1)

    def test_more_files_than_descriptors(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(blobs, "OPEN_MAX", 3)
        inodes = [make(fs, b"%d" % number, b"%d" % number * BIG) for number in range(9)]
        for number, inode in enumerate(inodes):
            fs.write(inode.ino, BIG, b"end")
            assert text(fs, inode.ino) == b"%d" % number * BIG + b"end"
            fs.fsync(inode.ino)
        assert len(fs._large._open) <= 3

    @pytest.mark.promise("large.reserved")
    def test_space_is_really_reserved(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a")
        fs.fallocate(inode.ino, 0, 64 * CHUNK, 0)
        assert blob_of(fs, inode).stat().st_blocks * 512 >= 64 * CHUNK
        assert inode.size == 64 * CHUNK
        fs.fallocate(inode.ino, 0, 60 * CHUNK, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)
        assert blob_of(fs, inode).stat().st_blocks * 512 < 8 * CHUNK
        fs.fallocate(inode.ino, 64 * CHUNK, CHUNK, FALLOC_KEEP_SIZE)
        assert inode.size == 64 * CHUNK

    @pytest.mark.promise("large.reserved")
    def test_the_holes_of_a_file_larger_than_the_disk_are_not_reserved(self, fs: SqliteFs, folder: Path) -> None:
        """And the disk is not filled in the attempt."""
        inode = make(fs, b"sparse", b"1" * BIG)
        disk = os.statvfs(folder)
        size = disk.f_bavail * disk.f_frsize + (1 << 30)
        fs.setattr(inode.ino, AttrChange(size=size))
        for mode in (0, FALLOC_KEEP_SIZE):
            refuses(errno.ENOSPC, lambda mode=mode: fs.fallocate(inode.ino, 0, size, mode))
        assert blob_of(fs, inode).stat().st_blocks * 512 < 2 * BIG

    @pytest.mark.promise("large.reserved")
    def test_a_sparse_file_of_10_gb_takes_no_room(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a")
        fs.setattr(inode.ino, AttrChange(size=10 << 30))
        fs.write(inode.ino, 10 << 30, b"end")
        assert blob_of(fs, inode).stat().st_blocks * 512 < 4 * CHUNK
        assert fs.seek_data(inode.ino, 5, hole=False) > 9 << 30
        assert fs.seek_data(inode.ino, 0, hole=True) == 0


class TestRemote:
    def test_contents_that_arrive_are_staged_in_a_blob_and_synced(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        monkeypatch.setattr(os, "fdatasync", synced.append)
        fact = fs.put_file("/a", [b"x" * CHUNK] * 4, mode=0o644, mtime_ns=1, expected=None)
        assert synced
        assert not fs._large.is_dirty(fs.get(fact.ino).place)
        again = fs.put_file("/a", [b"y" * CHUNK] * 4, mode=0o644, mtime_ns=2, expected=fact)
        assert again.ino == fact.ino  # in place: who has it open goes on with the new contents
        assert text(fs, fact.ino) == b"y" * 4 * CHUNK
        fs.flush()
        assert len(list(fs._large.folder.iterdir())) == 1

    def test_a_broken_download_leaves_no_file(self, fs: SqliteFs) -> None:
        def broken() -> Iterator[bytes]:
            yield b"x" * BIG
            raise ConnectionError

        with pytest.raises(ConnectionError):
            fs.put_file("/a", broken(), mode=0o644, mtime_ns=1, expected=None)
        assert list(fs._large.folder.iterdir()) == []
        assert fs.fact("/a") is None

    def test_what_is_sent_is_on_the_disk_first(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a", b"x" * BIG)
        assert fs._large.is_dirty(inode.place)
        fact = fs.fact("/a")
        assert fact is not None
        fs.read(fact, 0, 10)
        assert not fs._large.is_dirty(inode.place)


@pytest.mark.usefixtures("by_hand")
class TestKill:
    @pytest.mark.promise("large.killed")
    def test_every_state_survives(self, fs: SqliteFs, tmp_path: Path) -> None:
        """A kill after each of these operations, with and without a batch written before."""
        inode = make(fs, b"a")
        operations: list[Callable[[], object]] = [
            lambda: fs.write(inode.ino, 0, b"1" * BIG),
            lambda: fs.write(inode.ino, BIG - 5, b"2" * CHUNK),
            lambda: fs.setattr(inode.ino, AttrChange(size=CHUNK + 3)),
            lambda: fs.write(inode.ino, 2 * CHUNK, b"3"),
            lambda: fs.fallocate(inode.ino, 5, 100, FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE),
            lambda: fs.setattr(inode.ino, AttrChange(size=5 * CHUNK)),
            lambda: fs.rename(ROOT_INO, b"a", ROOT_INO, b"b"),
            lambda: fs.put_file("/c", [b"4" * BIG], mode=0o600, mtime_ns=1, expected=None),
            lambda: fs.rename(ROOT_INO, b"b", ROOT_INO, b"c"),
            lambda: fs.setattr(inode.ino, AttrChange(size=0)),
            lambda: fs.unlink(ROOT_INO, b"c"),
        ]
        for number, operation in enumerate(operations):
            operation()
            before = snapshot.of_vfs(fs)
            crashed = crashed_copy(fs, tmp_path / f"crashed-{number}")
            assert check(crashed) == []
            with SqliteFs.open(crashed) as after:
                assert snapshot.of_vfs(after) == before
                named = {after._large.path(ino, blob) for ino, blob, _ in after._tables.placed()}
                assert set(after._large.folder.iterdir()) <= named
            assert check(crashed) == []
            if number % 3 == 2:
                write_batch(fs)

    @pytest.mark.promise("large.killed")
    def test_bytes_behind_the_end_never_show_up(self, fs: SqliteFs, tmp_path: Path) -> None:
        """Killed between the write to the blob and its record."""
        inode = make(fs, b"a", b"1" * BIG)
        write_batch(fs)
        crashed = crashed_copy(fs, tmp_path / "crashed")
        with (crashed / "blobs" / blob_of(fs, inode).name).open("r+b") as file:
            file.seek(BIG)
            file.write(b"never recorded")
        with SqliteFs.open(crashed) as after:
            after.write(inode.ino, BIG + 20, b"end")
            assert text(after, inode.ino) == b"1" * BIG + bytes(20) + b"end"

    def test_bytes_that_were_cut_off_never_show_up(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        fs.setattr(inode.ino, AttrChange(size=CHUNK))
        fs.setattr(inode.ino, AttrChange(size=BIG))
        assert text(fs, inode.ino) == b"1" * CHUNK + bytes(BIG - CHUNK)

    def test_what_a_truncation_cuts_off_stays_until_that_is_on_the_disk(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        fs.fsync(inode.ino)
        fs.setattr(inode.ino, AttrChange(size=CHUNK))
        assert blob_of(fs, inode).stat().st_size == BIG
        write_batch(fs)
        assert blob_of(fs, inode).stat().st_size == CHUNK

    def test_a_removed_file_stays_until_that_is_on_the_disk(self, fs: SqliteFs) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        path = blob_of(fs, inode)
        fs.unlink(ROOT_INO, b"a")
        assert path.exists()
        assert fs._leaving
        write_batch(fs)
        assert not path.exists()
        assert not fs._leaving

    def test_contents_that_were_synced_are_synced_in_their_new_place(
        self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        promised, fresh = make(fs, b"promised", b"1" * CHUNK), None
        fs.fsync(promised.ino)
        fresh = make(fs, b"fresh", b"1" * CHUNK)
        synced: list[int] = []
        monkeypatch.setattr(blobs.Blobs, "sync", lambda self, ino, blob: synced.append(ino))
        for inode in (promised, fresh):
            fs.write(inode.ino, CHUNK, b"2" * CHUNK)
            assert inode.place > 0
        assert synced == [promised.ino]

    def test_a_file_unlinked_while_open_is_removed_after_a_crash(self, fs: SqliteFs, tmp_path: Path) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        fs.retain(inode.ino)
        fs.unlink(ROOT_INO, b"a")
        crashed = crashed_copy(fs, tmp_path / "crashed")
        with SqliteFs.open(crashed) as after:
            refuses(errno.ENOENT, lambda: after.get(inode.ino))
        assert list((crashed / "blobs").iterdir()) == []
        assert text(fs, inode.ino) == b"1" * BIG
        fs.forget(inode.ino, 1)

    def test_after_a_power_cut_sync_looks_at_blobs_written_shortly_before(
        self, fs: SqliteFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Their bytes may have reached the disk and the record that says so not."""
        inode = make(fs, b"a", b"1" * BIG)
        fs.fsync(inode.ino)
        write_batch(fs)
        fs.acknowledge(fs.intents(0, 10)[-1].seq)
        killed = crashed_copy(fs, tmp_path / "killed")
        cut = crashed_copy(fs, tmp_path / "cut")
        old = crashed_copy(fs, tmp_path / "old")
        for blob in (old / "blobs").iterdir():
            os.utime(blob, ns=(0, 10**15))
        with SqliteFs.open(killed) as after:
            assert (after.get(inode.ino).version, after.intents(0, 10)) == (inode.version, [])
        monkeypatch.setattr(mark, "boot_id", lambda: "the machine started again")
        with SqliteFs.open(cut) as after:
            assert after.get(inode.ino).version > inode.version
            assert [intent.path for intent in after.intents(0, 10)] == ["/a"]
            assert text(after, inode.ino) == b"1" * BIG
        with SqliteFs.open(old) as after:
            assert after.intents(0, 10) == []

    def test_a_blob_that_a_power_cut_took_reads_as_zeros(
        self, fs: SqliteFs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gone, short = make(fs, b"gone", b"1" * BIG), make(fs, b"short", b"2" * BIG)
        write_batch(fs)
        cut = crashed_copy(fs, tmp_path / "cut")
        (cut / "blobs" / blob_of(fs, gone).name).unlink()
        os.truncate(cut / "blobs" / blob_of(fs, short).name, CHUNK)
        monkeypatch.setattr(mark, "boot_id", lambda: "the machine started again")
        assert check(cut) == []
        with SqliteFs.open(cut) as after:
            assert text(after, gone.ino) == bytes(BIG)
            assert text(after, short.ino) == b"2" * CHUNK + bytes(BIG - CHUNK)
            after.write(gone.ino, 1, b"works")
            assert text(after, gone.ino)[:7] == b"\0works\0"
        assert check(cut) == []


class Refusing:
    """Stands for the `os` module in `blobs`: `name` fails."""

    def __init__(self, name: str, number: int) -> None:
        self._name = name
        self._number = number

    def __getattr__(self, name: str) -> object:
        return self._refuse if name == self._name else getattr(os, name)

    def _refuse(self, *_: object, **__: object) -> None:
        raise OSError(self._number, os.strerror(self._number))


class TestRefusals:
    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
    def test_a_file_that_cannot_grow_stays_as_it_was(self, fs: SqliteFs, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        before = snapshot.of_vfs(fs)
        with monkeypatch.context() as patch:
            patch.setattr(blobs, "os", Refusing("pwrite", number))
            refuses(number, lambda: fs.write(inode.ino, BIG, b"2" * BIG))
            refuses(number, lambda: make(fs, b"other", b"2" * BIG))
        assert text(fs, fs.lookup(ROOT_INO, b"other").ino) == b""
        fs.unlink(ROOT_INO, b"other")
        assert snapshot.of_vfs(fs)["/a"] == before["/a"]
        fs.write(inode.ino, BIG, b"2" * BIG)
        assert text(fs, inode.ino) == b"1" * BIG + b"2" * BIG

    def test_an_overwrite_that_failed_is_looked_at_by_sync(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        """Some of its bytes may stand there."""
        inode = make(fs, b"a", b"1" * BIG)
        last, version = fs.intents(0, 10)[-1].seq, inode.version
        with monkeypatch.context() as patch:
            patch.setattr(blobs, "os", Refusing("pwrite", errno.EIO))
            refuses(errno.EIO, lambda: fs.write(inode.ino, 5, b"2"))
        assert inode.version > version
        assert [intent.path for intent in fs.intents(last, 10)] == ["/a"]

    def test_a_failed_sync_is_never_taken_for_done(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        with monkeypatch.context() as patch:
            patch.setattr(blobs, "os", Refusing("fdatasync", errno.EIO))
            refuses(errno.EIO, lambda: fs.fsync(inode.ino))
        refuses(errno.EIO, lambda: fs.fsync(inode.ino))  # the kernel may have dropped the pages
        fs.fsync(ROOT_INO)  # and nobody else is held up
        fs.setattr(inode.ino, AttrChange(size=0))
        fs.write(inode.ino, 0, b"2" * BIG)
        fs.fsync(inode.ino)

    @pytest.mark.promise("large.full-disk")
    def test_room_is_left_for_the_journal(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        """A disk full of blobs must take the record that removes one."""
        inode = make(fs, b"a", b"1" * BIG)
        real = os.statvfs(fs._folder)
        fields = list(real)
        fields[3] = fields[4] = 16 * 1024 * 1024 // real.f_frsize

        class Full(Refusing):
            def statvfs(self, _: object) -> os.statvfs_result:
                return os.statvfs_result(fields)

        with monkeypatch.context() as patch:
            patch.setattr(blobs, "os", Full("nothing", 0))
            fs._large._unchecked_bytes = 1 << 30
            refuses(errno.ENOSPC, lambda: fs.write(inode.ino, BIG, b"2" * BIG))
            refuses(errno.ENOSPC, lambda: fs.fallocate(inode.ino, BIG, BIG, 0))
            refuses(errno.ENOSPC, lambda: fs.put_file("/b", [b"x" * BIG], mode=0o644, mtime_ns=1, expected=None))
            fs.write(inode.ino, 0, b"needs no more room")
            fs.unlink(ROOT_INO, b"a")

    def test_a_full_disk_gets_back_what_removed_files_held(self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(flusher, "QUIET_S", 30.0)  # before it has anything to do: it works only when it is asked to
        monkeypatch.setattr(flusher, "DELAY_MAX_S", 300.0)
        make(fs, b"old", b"1" * BIG)
        inode = make(fs, b"a", b"1" * BIG)
        refused: list[int] = []

        def check_room(size_bytes: int) -> None:
            if fs._leaving:
                refused.append(size_bytes)
                raise FsError(errno.ENOSPC)

        monkeypatch.setattr(fs._large, "check_room", check_room)
        fs.flush()
        fs.unlink(ROOT_INO, b"old")
        fs.write(inode.ino, BIG, b"2")
        assert refused == [1]
        assert text(fs, inode.ino) == b"1" * BIG + b"2"

    def test_what_was_given_back_just_when_the_disk_refused_is_used(
        self, fs: SqliteFs, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        inode = make(fs, b"a", b"1" * BIG)
        refused: list[int] = []

        def check_room(size_bytes: int) -> None:
            if not refused:
                refused.append(size_bytes)
                fs._given_back += 1  # as the flusher does, before the writer sees that it was refused
                raise FsError(errno.ENOSPC)

        monkeypatch.setattr(fs._large, "check_room", check_room)
        monkeypatch.setattr(fs, "_spare_bytes", lambda: 0)
        fs.write(inode.ino, BIG, b"2")
        assert text(fs, inode.ino) == b"1" * BIG + b"2"


class TestFsck:
    @pytest.fixture
    def two(self, opened: Factory, folder: Path) -> tuple[Path, Inode, Inode]:
        fs = opened()
        a, b = make(fs, b"a", b"a" * BIG), make(fs, b"b", b"b" * BIG)
        fs.close()
        return folder, a, b

    def mended(self, folder: Path, kinds: list[str]) -> None:
        assert [finding.kind for finding in check(folder)] == kinds
        findings = repair(folder)
        assert findings
        assert all(finding.repaired for finding in findings), findings
        assert check(folder) == []

    @pytest.mark.promise("large.fsck")
    def test_a_missing_blob_makes_an_absent_file(self, two: tuple[Path, Inode, Inode], opened: Factory) -> None:
        folder, a, b = two
        (folder / "blobs" / f"{a.ino:x}-{a.place:x}").unlink()
        fs = opened()
        refuses(errno.EIO, lambda: fs.read(a.ino, 0, 10))  # and not zeros
        fs.close()
        self.mended(folder, ["blob-missing"])
        fs = opened()
        with pytest.raises(ContentsAbsentError):
            fs.read(a.ino, 0, 10)
        assert text(fs, b.ino) == b"b" * BIG

    @pytest.mark.promise("large.fsck")
    def test_an_orphan_gets_a_name(self, two: tuple[Path, Inode, Inode], opened: Factory) -> None:
        folder, a, b = two
        execute(folder, f"delete from inode where ino = {a.ino}")
        execute(folder, f"delete from dentry where ino = {a.ino}")
        self.mended(folder, ["blob-orphan"])
        fs = opened()
        (entry,) = fs.readdir(fs.lookup(ROOT_INO, b"lost+found").ino)
        assert text(fs, entry.inode.ino) == b"a" * BIG
        assert text(fs, b.ino) == b"b" * BIG
        assert make(fs, b"new", b"n" * BIG).place > max(a.place, b.place)

    @pytest.mark.promise("large.fsck")
    def test_a_place_that_names_another_files_blob_never_shows_its_bytes(
        self, two: tuple[Path, Inode, Inode], opened: Factory
    ) -> None:
        folder, a, b = two
        execute(folder, f"update inode set place = {b.place} where ino = {a.ino}")
        fs = opened()
        refuses(errno.EIO, lambda: fs.read(a.ino, 0, 10))
        fs.close()
        self.mended(folder, ["blob-owner", "blob-orphan"])
        fs = opened()
        with pytest.raises(ContentsAbsentError):
            fs.read(a.ino, 0, 10)
        assert text(fs, b.ino) == b"b" * BIG
        (entry,) = fs.readdir(fs.lookup(ROOT_INO, b"lost+found").ino)
        assert text(fs, entry.inode.ino) == b"a" * BIG
