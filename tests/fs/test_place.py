"""Where contents are, as a column, a journal item and an invariant; what an older version left behind goes on."""

from __future__ import annotations

import struct
from pathlib import Path

import apsw

from memdir.fs.cache import record
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check, repair
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.txn import Txn
from memdir.fs.types import ROOT_INO, Inode

from . import snapshot
from .conftest import Factory, crashed_copy
from .contract import make

_OLD_INODE = struct.Struct("<BQIIIIQqqqQQQH")
"""An inode in a journal record, as versions before places wrote it."""


def execute(folder: Path, sql: str) -> None:
    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute(sql)
    connection.close()


def test_the_records_of_an_older_version_are_read() -> None:
    old = _OLD_INODE.pack(1, 7, 0o100644, 1, 2, 3, 4, -5, 6, 7, 8, 9, 10, 3) + b"abc"
    txn = record.decode(struct.pack("<QQ", 11, 12) + old)
    inode = txn.inodes[7]
    assert (inode.mode, inode.uid, inode.gid, inode.nlink, inode.size) == (0o100644, 1, 2, 3, 4)
    assert (inode.atime_ns, inode.rdev, inode.parent, inode.version, inode.target, inode.place) == (-5, 8, 9, 10, b"abc", 0)


def test_an_inode_in_the_tables_is_written_as_it_always_was() -> None:
    """An inode without a place costs no more than before, and only a placed one needs the newer form."""
    txn = Txn(0, 8, 16)
    txn.inodes[7] = Inode(7, 0o100644, 1, 2, 1, 0, 0, 0, 0)
    assert len(b"".join(record.encode(txn))) == 16 + _OLD_INODE.size


def test_a_cache_of_the_first_schema_goes_on_with_its_journal(opened: Factory, tmp_path: Path) -> None:
    fs = opened()
    make(fs, b"flushed", b"in the tables")
    fs.flush()
    make(fs, b"late", b"in the journal only")
    before = snapshot.of_vfs(fs)
    old = crashed_copy(fs, tmp_path / "old")
    execute(old, "drop index inode_placed; drop index inode_absent; alter table inode drop column place")
    execute(old, "pragma user_version = 1")
    with SqliteFs.open(old) as after:
        assert snapshot.of_vfs(after) == before
    assert check(old) == []


def test_a_place_survives_flush_crash_and_reopen(opened: Factory, tmp_path: Path) -> None:
    fs = opened()
    ino = make(fs, b"a").ino
    for kept in (False, True):
        with fs._lock:
            txn = fs._begin(quiet=True)
            draft = txn.edit(fs._inode(ino))
            draft.place, draft.target, draft.size = ABSENT, bytes(32), 4
            fs._commit(txn)
        if kept:
            fs.flush()
        with SqliteFs.open(crashed_copy(fs, tmp_path / f"crashed-{kept}")) as after:
            assert after.lookup(ROOT_INO, b"a").place == ABSENT


def test_chunks_of_a_file_that_has_its_contents_elsewhere_are_found(opened: Factory, folder: Path) -> None:
    fs = opened()
    ino = make(fs, b"a", b"text").ino
    fs.close()
    execute(folder, f"update inode set place = -1, target = zeroblob(32) where ino = {ino}")
    assert [finding.kind for finding in check(folder)] == ["chunk-place"]
    assert all(finding.repaired for finding in repair(folder))
    assert check(folder) == []
