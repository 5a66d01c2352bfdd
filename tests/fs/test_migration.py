"""A cache of every earlier schema opens, and so it does when the power fails at any moment of the migration."""

from __future__ import annotations

import random
import shutil
from importlib import resources
from pathlib import Path

import apsw
import pytest

from memdir.core.clock import FakeClock
from memdir.core.sqlite import migration_steps
from memdir.fs.cache import disk_space, flusher
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check
from memdir.fs.cache.tables import PAGE_BYTES, SCHEMA
from memdir.fs.types import ROOT_INO

from .conftest import GID, UID
from .contract import make, text
from .disk import Disk

VERSIONS = range(1, len(migration_steps(SCHEMA)))


def old_cache(folder: Path, version: int) -> None:
    """A cache as that version of the schema had it: one file of four bytes in a folder, an intent for each."""
    folder.mkdir(parents=True)
    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute(f"pragma page_size={PAGE_BYTES}; pragma journal_mode=wal")
    for step in migration_steps(SCHEMA)[:version]:
        connection.execute(step)
    connection.execute(f"pragma user_version={version}")
    connection.execute(
        "insert into meta (id, fs_id, applied_lsn, next_ino, next_cookie, next_seq) values (1, ?, 7, 4, 18, 3)", (b"i" * 16,)
    )
    columns = "ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, parent, version"
    for row in (
        (1, 0o040755, UID, GID, 3, 0, 1, 1, 1, 1, 0),
        (2, 0o040755, UID, GID, 2, 0, 1, 1, 1, 1, 0),
        (3, 0o100644, UID, GID, 1, 4, 1, 1, 1, 2, 1),
    ):
        connection.execute(f"insert into inode ({columns}) values (?,?,?,?,?,?,?,?,?,?,?)", row)
    connection.execute("insert into dentry values (1, ?, 2, 16), (2, ?, 3, 17)", (b"d", b"f"))
    connection.execute("insert into chunk values (3 << 24, ?)", (b"text",))
    connection.execute("insert into intent values (1, 'put', ?, null), (2, 'put', ?, null)", (b"/d", b"/d/f"))
    connection.close()


def is_whole(folder: Path) -> None:
    assert check(folder) == []
    with SqliteFs.open(folder, clock=FakeClock(), uid=UID, gid=GID) as fs:
        d = fs.lookup(ROOT_INO, b"d")
        assert text(fs, fs.lookup(d.ino, b"f").ino) == b"text"
        assert [intent.path for intent in fs.intents(0, 9)] == ["/d", "/d/f"]
        make(fs, b"new", b"works")
    assert check(folder) == []


def test_there_is_an_earlier_schema() -> None:
    assert len(VERSIONS) == len([entry for entry in resources.files(SCHEMA).iterdir() if entry.name.endswith(".sql")]) - 1


@pytest.mark.promise("survives.migration")
@pytest.mark.parametrize("version", VERSIONS)
def test_an_earlier_schema_opens_whenever_the_power_fails(
    version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flusher.Flusher, "start", lambda self: None)
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", 4096)
    old_cache(tmp_path / "old" / "cache", version)
    start = {"cache": None, "cache/cache.db": (tmp_path / "old" / "cache" / "cache.db").read_bytes()}
    (tmp_path / "disk").mkdir()
    disk = Disk(tmp_path / "disk")
    disk.adopt(start)
    disk.write_image(start, tmp_path / "disk")
    with disk.recording():
        is_whole(tmp_path / "disk" / "cache")
    rng = random.Random(version)
    # Up to the first new file: behind it the folder is one of today.
    last = next(n for n, event in enumerate(disk.events) if getattr(event, "name", "").startswith("journal-"))
    for end in range(disk.adopted, last):
        for cut in (None, rng):
            where = tmp_path / "image"
            where.mkdir()
            disk.write_image(disk.image(end, cut), where)
            is_whole(where / "cache")
            shutil.rmtree(where)
