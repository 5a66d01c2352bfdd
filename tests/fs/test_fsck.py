"""Every class of damage is found, and mended without losing bytes."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import apsw
import pytest

from memdir.core.errors import BusyError, CorruptError, NotFoundError
from memdir.fs.cache import disk_space, flusher, journal
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check, repair
from memdir.fs.types import ROOT_INO, AttrChange, Inode

from .conftest import Factory, crashed_copy
from .contract import CHUNK, ME, make, refuses, text
from .disk import Disk

# /d (2) with a (3), /d/e (4) with b (5), symlink s (6), file big of two chunks (7) with an xattr and two names
D, A, E, B, S, BIG = range(2, 8)


@pytest.fixture
def filled(opened: Factory, folder: Path) -> Path:
    fs = opened()
    d = fs.mkdir(ROOT_INO, b"d", 0o755, ME)
    make(fs, b"a", b"aaa", d.ino)
    e = fs.mkdir(d.ino, b"e", 0o755, ME)
    make(fs, b"b", b"bbb", e.ino)
    fs.symlink(ROOT_INO, b"s", b"d/a", ME)
    big = make(fs, b"big", b"x" * (CHUNK + 5))
    fs.setxattr(big.ino, b"user.k", b"v")
    fs.link(big.ino, e.ino, b"big2")
    assert [fs.lookup(ROOT_INO, b"d").ino, e.ino, big.ino] == [D, E, BIG]
    fs.close()
    return folder


DAMAGE = {
    "nlink of a file": ("nlink", f"update inode set nlink = 7 where ino = {A}"),
    "nlink of a folder": ("nlink", f"update inode set nlink = 9 where ino = {D}"),
    "nlink of the root": ("nlink", "update inode set nlink = 2 where ino = 1"),
    "nlink zero with a name": ("nlink", f"update inode set nlink = 0 where ino = {A}"),
    "a file without a name": ("orphan", f"delete from dentry where ino = {A}"),
    "a folder without a name": ("orphan", f"delete from dentry where ino = {D}"),
    "a name without an inode": ("dangling-name", f"delete from inode where ino = {B}"),
    "a name in a file": ("dangling-folder", f"update dentry set parent = {A} where ino = {B}"),
    "a name in nothing": ("dangling-folder", f"update dentry set parent = 999 where ino = {B}"),
    "a ring of folders": ("orphan", f"update dentry set parent = {E} where ino = {D}"),
    "a folder in itself": ("orphan", f"update dentry set parent = {E} where ino = {E}"),
    "a folder with two names": ("folder-names", f"insert into dentry values (1, x'7a', {E}, 9000)"),
    "the root has a name": ("root-name", f"insert into dentry values ({E}, x'7a', 1, 9000)"),
    "a wrong parent pointer": ("parent", f"update inode set parent = 1 where ino = {E}"),
    "a wrong parent of the root": ("parent", f"update inode set parent = {E} where ino = 1"),
    "two entries at one place": ("cookie", f"update dentry set cookie = (select max(cookie) from dentry) where ino = {A}"),
    "a chunk behind the end": ("chunk-end", f"insert into chunk values ({A} << 24 | 9, x'ff')"),
    "a chunk over the end": ("chunk-end", f"update inode set size = 2 where ino = {A}"),
    "a chunk of nothing": ("chunk-owner", "insert into chunk values (999 << 24, x'ff')"),
    "a chunk of a folder": ("chunk-owner", f"insert into chunk values ({D} << 24, x'ff')"),
    "an attribute of nothing": ("xattr-owner", "insert into xattr values (999, x'61', x'62')"),
    "a symlink without target": ("target", f"update inode set target = null where ino = {S}"),
    "a symlink of a wrong size": ("target", f"update inode set size = 99 where ino = {S}"),
    "a file with a target": ("target", f"update inode set target = x'61' where ino = {A}"),
    "an inode without type": ("type", f"update inode set mode = 420 where ino = {A}"),
    "a place of a folder's contents": ("place", f"update inode set place = -1 where ino = {D}"),
    "an impossible size": ("size", f"update inode set size = 1 << 60 where ino = {A}"),
    "a name with a slash": ("name", f"update dentry set name = x'612f62' where ino = {A}"),
    "a name that is dots": ("name", f"update dentry set name = x'2e2e' where ino = {A}"),
    "inode numbers that come again": ("next-ino", "update meta set next_ino = 3"),
    "cookies that come again": ("next-cookie", "update meta set next_cookie = 17"),
    "intent numbers that come again": ("next-seq", "update meta set next_seq = 1"),
    "an intent without a path": ("intent", "insert into intent values (9999, 'put', x'61', null)"),
    "a move from nowhere": ("intent", "insert into intent values (9999, 'move', x'2f61', null)"),
    "no root": ("root", "delete from inode where ino = 1"),
    "a root that is a file": ("root", "update inode set mode = 33188 where ino = 1"),
    "no counters": ("meta", "delete from meta"),
}


def damage(folder: Path, sql: str) -> None:
    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute(sql)
    connection.close()


def test_an_undamaged_cache_has_no_findings(filled: Path) -> None:
    assert check(filled) == []
    assert repair(filled) == []


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found_and_mended(filled: Path, opened: Factory, name: str) -> None:
    kind, sql = DAMAGE[name]
    damage(filled, sql)
    assert kind in {finding.kind for finding in check(filled)}
    findings = repair(filled)
    assert findings
    assert all(finding.repaired for finding in findings), findings
    assert check(filled) == []
    fs = opened()
    everything = b"".join(text(fs, inode.ino) for inode in tree(fs))
    lost = b"bbb" if "without an inode" in name else b"a" if "over the end" in name else b""
    for part in (b"aaa", b"bbb", b"x" * (CHUNK + 5)):
        assert part in everything or lost in part, f"{part[:5]!r} is lost"
    make(fs, b"new", b"works")
    assert text(fs, fs.lookup(ROOT_INO, b"new").ino) == b"works"


def tree(fs: SqliteFs) -> list[Inode]:
    """Every file that a path leads to."""
    found, stack, seen = [], [ROOT_INO], 0
    while stack:
        for entry in fs.readdir(stack.pop()):
            seen += 1
            assert seen < 1000, "a ring"
            if entry.inode.is_dir:
                stack.append(entry.inode.ino)
            elif entry.inode.is_file and entry.inode.size < 1 << 30:
                found.append(entry.inode)
            elif entry.inode.is_file:
                fs.setattr(entry.inode.ino, AttrChange(size=3))
                found.append(entry.inode)
    return found


def test_a_lost_file_is_found_in_lost_and_found(filled: Path, opened: Factory) -> None:
    damage(filled, DAMAGE["a file without a name"][1])
    repair(filled)
    fs = opened()
    home = fs.lookup(ROOT_INO, b"lost+found")
    assert text(fs, fs.lookup(home.ino, b"#%d" % A).ino) == b"aaa"


def test_a_folder_in_use_is_not_checked(opened: Factory, folder: Path) -> None:
    opened()
    with pytest.raises(BusyError):
        check(folder)
    with pytest.raises(BusyError):
        repair(folder)
    with pytest.raises(BusyError):
        SqliteFs.open(folder)


def test_no_cache_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        check(tmp_path)


def test_a_file_that_is_no_database_is_a_finding(filled: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "cache.db").write_bytes(b"garbage" * 1000)
    assert [finding.kind for finding in check(other)] == ["database"]
    findings = repair(other)
    assert [(finding.kind, finding.repaired) for finding in findings] == [("database", False), ("lost", False)]
    assert (other / "cache.db").read_bytes() == b"garbage" * 1000


@pytest.fixture
def hot_journal(opened: Factory, tmp_path: Path) -> Path:
    """A crashed folder with many records in one segment, the first part synced."""
    fs = opened(tmp_path / "hot")
    for number in range(20):
        make(fs, b"f%02d" % number, b"%d" % number)
        if number == 10:
            fs.fsync(ROOT_INO)
    crashed = tmp_path / "crashed"
    crashed_copy(fs, crashed)
    return crashed


def segment(folder: Path) -> Path:
    (path,) = journal.segment_paths(folder)
    return path


def flip(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 0xFF
    path.write_bytes(bytes(data))


def record_offsets(path: Path) -> list[int]:
    data = path.read_bytes()
    offsets, at = [], journal._HEAD.size
    while (found := journal._record_at(data, at)) is not None:
        offsets.append(at)
        at += journal._RECORD.size + len(found[2])
    assert at == len(data)
    return offsets


def test_damage_in_what_was_synced_is_not_passed_over(hot_journal: Path) -> None:
    path = segment(hot_journal)
    flip(path, record_offsets(path)[5] + 40)
    assert [finding.kind for finding in check(hot_journal)] == ["journal"]
    with pytest.raises(CorruptError, match="damaged at byte"):
        SqliteFs.open(hot_journal)
    findings = repair(hot_journal)
    assert [finding.repaired for finding in findings] == [True]
    assert (hot_journal / f"damaged-{path.name}").exists()
    fs = SqliteFs.open(hot_journal)
    kept = [entry.name for entry in fs.readdir(ROOT_INO)]
    fs.close()
    assert kept == [b"f00", b"f01", b"f02"]  # 5 records: 2 a file
    assert check(hot_journal) == []


def test_a_repair_that_is_killed_loses_nothing_that_it_would_have_kept(
    hot_journal: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher.Flusher, "start", lambda self: None)
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 4096)
    name = segment(hot_journal).name
    flip(segment(hot_journal), record_offsets(segment(hot_journal))[5] + 40)
    whole = segment(hot_journal).read_bytes()
    start = {"cache": None, **{f"cache/{path.name}": path.read_bytes() for path in hot_journal.iterdir() if path.is_file()}}
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk")
    disk.adopt(start)
    disk.write_image(start, tmp_path / "disk")
    with disk.recording():
        repair(tmp_path / "disk" / "cache")
    rng = random.Random(1)
    for end in range(disk.adopted, len(disk.events) + 1):
        for cut in (None, rng):
            image = tmp_path / f"image-{end}-{cut is None}"
            image.mkdir()
            disk.write_image(disk.image(end, cut), image)
            repair(image / "cache")
            with SqliteFs.open(image / "cache") as fs:
                assert [entry.name for entry in fs.readdir(ROOT_INO)] == [b"f00", b"f01", b"f02"]
            assert check(image / "cache") == []
            assert (image / "cache" / f"damaged-{name}").read_bytes() == whole


@pytest.mark.parametrize("field", [0, 4, 8, 16, 30])
def test_a_damaged_header_of_a_record_is_seen_too(hot_journal: Path, field: int) -> None:
    path = segment(hot_journal)
    flip(path, record_offsets(path)[5] + field)
    assert [finding.kind for finding in check(hot_journal)] == ["journal"]


@pytest.mark.parametrize("cut", [1, 7, 23, 24, 60])
def test_a_torn_tail_is_an_unfinished_write(hot_journal: Path, cut: int) -> None:
    path = segment(hot_journal)
    last = record_offsets(path)[-1]
    os.truncate(path, last + cut)
    assert check(hot_journal) == []
    fs = SqliteFs.open(hot_journal)
    assert [entry.name for entry in fs.readdir(ROOT_INO)] == [b"f%02d" % number for number in range(20)]
    assert text(fs, fs.lookup(ROOT_INO, b"f19").ino) == b""
    fs.close()
    assert check(hot_journal) == []


def test_a_missing_segment_is_damage_when_it_was_synced(
    opened: Factory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", 400)
    fs = opened()
    for number in range(10):
        make(fs, b"f%d" % number)
        fs.fsync(ROOT_INO)
    crashed = tmp_path / "crashed"
    crashed_copy(fs, crashed)
    segments = journal.segment_paths(crashed)
    assert len(segments) > 3
    segments[1].unlink()
    with pytest.raises(CorruptError, match="missing"):
        SqliteFs.open(crashed)
    repair(crashed)
    assert check(crashed) == []


def test_a_segment_of_another_filesystem_is_refused(hot_journal: Path, filled: Path, opened: Factory) -> None:
    path = segment(hot_journal)
    (filled / "journal-0000000000000100").write_bytes(path.read_bytes())
    with pytest.raises(CorruptError):
        SqliteFs.open(filled)
    (filled / "journal-0000000000000100").unlink()


def test_a_closed_filesystem_says_so(opened: Factory) -> None:
    fs = opened()
    inode = make(fs, b"open", b"text")
    fs.retain(inode.ino)
    fs.unlink(ROOT_INO, b"open")
    fs.close()
    fs.close()
    refuses(errno.ESHUTDOWN, lambda: make(fs, b"a"))
    refuses(errno.ESHUTDOWN, lambda: fs.getxattr(999, b"user.x"))
    fs.forget(inode.ino, 1)
    assert journal.segment_paths(fs._folder) == []
