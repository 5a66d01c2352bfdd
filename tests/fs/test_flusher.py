"""SQLite's log: left alone while somebody writes, given back when nobody does, and never a reason to stop."""

from __future__ import annotations

import contextlib
import errno
import threading
from collections.abc import Callable

import pytest

from memdir.core.limits import KIB
from memdir.fs.cache import flusher, large, tables
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.errors import FsError
from memdir.fs.types import ROOT_INO

from .conftest import Factory
from .contract import CHUNK, make, text

WAIT_S = 20.0


@pytest.fixture
def fs(opened: Factory, monkeypatch: pytest.MonkeyPatch) -> SqliteFs:
    """Batches are written at once; a log of 64 KiB counts as long; contents of any size go through it."""
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", 1 << 40)
    monkeypatch.setattr(flusher, "QUIET_S", 0.01)
    monkeypatch.setattr(tables, "LOG_IDLE_BYTES", 64 * KIB)
    return opened()


def log_bytes(fs: SqliteFs) -> int:
    return fs._tables.database.log_bytes()


def observed(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch, instead: Callable[[], None] | None = None) -> threading.Event:
    """Set after each attempt to move the log."""
    done = threading.Event()
    real = instead or fs._tables.checkpoint

    def checkpoint() -> None:
        try:
            real()
        finally:
            done.set()

    monkeypatch.setattr(fs._tables, "checkpoint", checkpoint)
    return done


def test_the_log_is_moved_when_nobody_writes(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "IDLE_S", 0.01)
    done = observed(fs, monkeypatch)
    inode = make(fs, b"big", b"x" * 10 * CHUNK)
    fs.flush()
    assert done.wait(WAIT_S)
    assert log_bytes(fs) == 0
    assert text(fs, inode.ino) == b"x" * 10 * CHUNK


def test_the_log_is_left_alone_while_somebody_writes(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "IDLE_S", WAIT_S)
    done = observed(fs, monkeypatch)
    inode = make(fs, b"big")
    for number in range(20):
        fs.write(inode.ino, number * CHUNK, b"x" * CHUNK)
        fs.flush()
    assert log_bytes(fs) > 20 * CHUNK  # far more than is moved when idle
    assert not done.is_set()


def test_a_short_log_stays(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "LOG_IDLE_BYTES", 1 << 40)
    make(fs, b"a", b"x" * CHUNK)
    fs.flush()
    assert log_bytes(fs) > CHUNK
    assert not fs.is_untidy()


def test_a_log_that_cannot_be_moved_stops_nothing(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "IDLE_S", 0.01)

    def refuse() -> None:
        raise FsError(errno.EIO, "injected")

    with monkeypatch.context() as patch:
        done = observed(fs, patch, refuse)
        make(fs, b"a", b"x" * CHUNK)
        fs.flush()
        assert done.wait(WAIT_S)
    done = observed(fs, monkeypatch)
    inode = make(fs, b"b", b"y" * CHUNK)
    fs.flush()
    assert done.wait(WAIT_S)
    assert log_bytes(fs) == 0
    assert text(fs, inode.ino) == b"y" * CHUNK


def test_a_full_disk_gets_the_space_of_the_log_back(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "IDLE_S", WAIT_S)
    monkeypatch.setattr(flusher, "RETRY_S", 0.01)
    make(fs, b"a", b"x" * 5 * CHUNK)
    fs.flush()
    before = log_bytes(fs)
    real = fs._tables.write

    def full(*_: object, **__: object) -> None:
        if log_bytes(fs) >= before:
            raise FsError(errno.ENOSPC, "injected: the log holds the space")
        monkeypatch.setattr(fs._tables, "write", real)
        raise FsError(errno.ENOSPC, "injected: once more")

    monkeypatch.setattr(fs._tables, "write", full)
    make(fs, b"b", b"y")
    for _ in range(10):
        with contextlib.suppress(FsError):  # it is told of both refusals, or of the last one, or of none
            fs.flush(timeout_s=WAIT_S)
    assert fs._tables.write == real
    assert fs._applied_lsn == fs.last_lsn
    assert text(fs, fs.lookup(ROOT_INO, b"b").ino) == b"y"


def test_deleting_a_large_file_does_not_write_it_again(fs: SqliteFs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flusher, "IDLE_S", WAIT_S)
    make(fs, b"big", b"x" * 40 * CHUNK)
    fs.flush()
    fs._tables.checkpoint()
    fs.unlink(ROOT_INO, b"big")
    fs.flush()
    assert log_bytes(fs) < 10 * CHUNK
