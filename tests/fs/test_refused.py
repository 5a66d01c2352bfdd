"""Caches that cannot be opened: made by a newer memdir, locked, not writable. What is said, and that nothing is touched."""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

import memdir.core.sqlite as core_sqlite
from memdir.core.errors import BusyError, CorruptError, MemdirError, StorageError, VersionError
from memdir.fs.cache import journal
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check, repair
from memdir.fs.types import ROOT_INO

from .conftest import Factory, crashed_copy
from .contract import make

Touch = Callable[[Path], None]


@pytest.fixture
def crashed(opened: Factory, tmp_path: Path) -> Path:
    """A cache whose journal waits."""
    fs = opened()
    make(fs, b"a", b"acknowledged")
    folder = tmp_path / "crashed"
    crashed_copy(fs, folder)
    assert journal.segment_paths(folder)
    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute("pragma wal_checkpoint(truncate)")  # whoever closes it last does that: it changes the file, not the rows
    connection.close()
    return folder


def newer_schema(folder: Path) -> None:
    connection = apsw.Connection(str(folder / "cache.db"))
    connection.execute("pragma user_version=99")
    connection.close()


def newer_segment(folder: Path) -> None:
    [path] = journal.segment_paths(folder)
    path.write_bytes(b"memdirJ2" + path.read_bytes()[8:])


def newer_item(folder: Path) -> None:
    """A record with a good checksum behind the others, with a kind of item that nobody knows yet."""
    [path] = journal.segment_paths(folder)
    data = path.read_bytes()
    at, lsn = journal._HEAD.size, 0
    while (found := journal._record_at(data, at)) is not None:
        lsn = found[0]
        at += journal._RECORD.size + len(found[2])
    checked = struct.pack("<QQ", lsn + 1, 0) + struct.pack("<QQB", 9, 99, 77)
    path.write_bytes(data + struct.pack("<II", len(checked) - 16, zlib.crc32(checked)) + checked)


def fingerprint(folder: Path) -> dict[str, str]:
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.iterdir())
        if path.name == "cache.db" or path.name.startswith("journal-")
    }


@pytest.mark.promise("refused.newer")
@pytest.mark.parametrize("change", [newer_schema, newer_segment, newer_item])
def test_what_a_newer_memdir_wrote_is_refused_and_not_touched(crashed: Path, change: Touch) -> None:
    SqliteFs.open(crashed).close() if change is newer_schema else None
    change(crashed)
    before = fingerprint(crashed)
    for attempt in (SqliteFs.open, check, repair):
        with pytest.raises(VersionError, match="made by a newer memdir") as caught:
            attempt(crashed)
        assert caught.value.hint.startswith("upgrade memdir")
    assert fingerprint(crashed) == before


@pytest.mark.promise("refused.locked")
def test_a_database_that_another_program_locks_is_waited_for_and_then_names_it(
    crashed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core_sqlite, "BUSY_TIMEOUT_MS", 300)
    code = (
        "import sqlite3, sys; db = sqlite3.connect(sys.argv[1], isolation_level=None);"
        "db.execute('begin immediate'); print('ready', flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(crashed / "cache.db")], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(BusyError, match=rf"cache.db is locked by .*, pid {holder.pid}, for") as caught:
            SqliteFs.open(crashed)
        holder.communicate("\n", timeout=20)
    assert "close it there" in caught.value.hint
    fs = SqliteFs.open(crashed)
    assert fs.lookup(ROOT_INO, b"a").size == len(b"acknowledged")
    fs.close()
    assert check(crashed) == []


@pytest.mark.promise("refused.locked")
def test_a_folder_that_another_process_has_open_names_it(opened: Factory, folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from memdir.fs.cache.filesystem import SqliteFs;"
        "fs = SqliteFs.open(Path(sys.argv[1])); print('ready', flush=True); input(); fs.close()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        with pytest.raises(BusyError, match=f"is in use by .*, pid {holder.pid}"):
            SqliteFs.open(folder)
        holder.communicate("\n", timeout=20)
    opened()


@pytest.mark.parametrize(
    "damage", [b"\0" * 100, b"garbage" * 1000, pytest.param(None, id="cut off")], ids=["header zeroed", "garbage", None]
)
def test_a_damaged_database_is_told_from_everything_else(crashed: Path, damage: bytes | None) -> None:
    SqliteFs.open(crashed).close()
    database = crashed / "cache.db"
    whole = database.read_bytes()
    database.write_bytes(whole[:20_000] if damage is None else damage + whole[len(damage) :])
    with pytest.raises(CorruptError, match=r"cache\.db") as caught:
        SqliteFs.open(crashed)
    assert "memdir fsck --repair" in caught.value.hint
    assert [finding.kind for finding in check(crashed)] == ["database"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file immutable to itself")
def test_a_database_that_nobody_may_write_is_said_to_be_that(crashed: Path) -> None:
    SqliteFs.open(crashed).close()
    code = (
        "import os, sys; from pathlib import Path; from memdir.core.errors import MemdirError;"
        "from memdir.fs.cache.filesystem import SqliteFs\nos.setgid(65534); os.setuid(65534)\n"
        "try: SqliteFs.open(Path(sys.argv[1]))\n"
        "except MemdirError as error: print(type(error).__name__, error, '|', error.hint)"
    )
    for name, mode in (("cache.db", 0o444), (".", 0o555)):
        for path in (crashed, *crashed.iterdir()):
            path.chmod(0o777)
        (crashed / name).chmod(mode)
        open_to_all(crashed)
        said = subprocess.run([sys.executable, "-c", code, str(crashed)], capture_output=True, text=True, check=False)
        if "PermissionError" in said.stderr:
            pytest.skip("another user may not even start this Python")
        assert said.stdout.startswith("StorageError"), said
        assert str(crashed) in said.stdout
        assert "MEMDIR_HOME" in said.stdout
    crashed.chmod(0o700)


def open_to_all(path: Path) -> None:
    """Let another user reach the folder: pytest's own are 0700."""
    for parent in path.parents:
        if parent.stat().st_uid == os.getuid() and parent != Path("/"):
            parent.chmod(parent.stat().st_mode | 0o011)


def test_each_refusal_is_an_error_with_a_hint() -> None:
    path = Path("/x/cache.db")
    kinds = {
        apsw.NotADBError: CorruptError, apsw.CorruptError: CorruptError, apsw.BusyError: BusyError,
        apsw.LockedError: BusyError, apsw.ReadOnlyError: StorageError, apsw.CantOpenError: StorageError,
        apsw.IOError: StorageError,
    }  # fmt: skip
    for kind, expected in kinds.items():
        error = core_sqlite.opening_error(path, kind("why"))
        assert type(error) is expected
        assert isinstance(error, MemdirError)
        assert str(path) in error.message
        assert error.hint
