"""Which opens the kernel is given a file for, without a kernel."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.fs.fuse.backing import Backings, check_passthrough

RO, RW = os.O_RDONLY, os.O_RDWR


class FakeLender:
    """Lends one file for every inode but 9, which has its contents elsewhere."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.told: list[tuple[str, int]] = []
        self.refuses = 0

    def lend(self, ino: int, *, writable: bool, is_new: bool) -> int | None:
        if self.refuses:
            raise FsError(self.refuses)
        self.told.append(("lend for writing" if writable else "lend", ino))
        return None if ino == 9 else os.open(self.file, os.O_RDWR)

    def lend_for_writing(self, ino: int) -> None:
        self.told.append(("for writing", ino))

    def refresh(self, ino: int) -> None:
        self.told.append(("refresh", ino))

    def take_back(self, ino: int) -> None:
        self.told.append(("take back", ino))

    def is_lent(self, ino: int) -> bool:
        return False


@pytest.fixture
def lender(tmp_path: Path) -> FakeLender:
    (tmp_path / "file").touch()
    return FakeLender(tmp_path / "file")


@pytest.fixture
def ids(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Numbers the kernel gave out and not taken back."""
    held: list[int] = []

    def ioctl(fd: int, request: int, argument: bytearray | bytes) -> int:
        if isinstance(argument, bytearray):
            held.append(len(held) + 1)
            return held[-1]
        held.remove(int.from_bytes(argument, "little"))
        return 0

    monkeypatch.setattr(fcntl, "ioctl", ioctl)
    yield held
    assert held == []


@pytest.fixture
def backings(lender: FakeLender) -> Backings:
    backings = Backings(lender)
    backings.connect(99)
    return backings


def test_all_opens_of_a_file_share_one_backing_file(backings: Backings, lender: FakeLender, ids: list[int]) -> None:
    assert backings.opened(5, RO, is_new=False) == (1, True)
    assert backings.opened(5, RW, is_new=False) == (1, True)
    assert ids == [1]
    backings.closed(5)
    backings.closed(5)
    assert lender.told == [("lend", 5), ("for writing", 5), ("refresh", 5), ("refresh", 5), ("take back", 5)]


def test_a_file_opened_through_the_daemon_stays_so_until_it_is_closed(
    backings: Backings, lender: FakeLender, ids: list[int]
) -> None:
    assert backings.opened(9, RW, is_new=False) == (0, True)
    assert backings.opened(9, RO, is_new=False) == (0, True)
    assert lender.told == [("lend for writing", 9)]
    backings.closed(9)
    backings.closed(9)
    assert lender.told == [("lend for writing", 9)]


def test_the_page_cache_is_dropped_once_after_writes_past_it(
    backings: Backings, lender: FakeLender, ids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    backings.opened(5, RW, is_new=True)
    backings.closed(5)
    monkeypatch.setattr(lender, "lend", lambda ino, **_: None)  # small by now, and in the tables
    assert backings.opened(5, RO, is_new=False) == (0, False)
    backings.closed(5)
    assert backings.opened(5, RO, is_new=False) == (0, True)


def test_without_the_kernel_or_without_room_the_daemon_serves_the_file(lender: FakeLender, ids: list[int]) -> None:
    backings = Backings(lender)
    assert backings.opened(5, RW, is_new=False) == (0, True)
    backings.closed(5)
    backings.connect(99)
    lender.refuses = errno.ENOSPC
    assert backings.opened(5, RW, is_new=True) == (0, True)
    backings.closed(5)
    lender.refuses = errno.EIO
    with pytest.raises(FsError):
        backings.opened(5, RW, is_new=False)


def test_a_kernel_that_refuses_is_not_asked_again(
    backings: Backings, lender: FakeLender, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []

    def refuse(*_: object) -> int:
        asked.append(1)
        raise OSError(errno.EPERM, "no")

    monkeypatch.setattr(fcntl, "ioctl", refuse)
    for ino in (5, 6):
        assert backings.opened(ino, RW, is_new=False) == (0, True)
        backings.closed(ino)
    assert asked == [1]
    assert lender.told == [("lend for writing", 5), ("take back", 5)]


def test_who_cannot_have_it_is_told_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(UsageError, match="root"):
        check_passthrough()
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    for release, works in (("6.8.0-generic", False), ("5.10", False), ("6.9.1", True), ("6.18.44-fc", True), ("7.0", True)):
        uname = os.uname_result(("Linux", "host", release, "#1", "x86_64"))
        monkeypatch.setattr(os, "uname", lambda uname=uname: uname)
        if works:
            check_passthrough()
        else:
            with pytest.raises(UsageError, match=r"6\.9"):
                check_passthrough()
