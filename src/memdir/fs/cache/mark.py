"""How the last process left a cache folder: the file that locks it holds the machine's boot id while it is open."""

from __future__ import annotations

import logging
import os
from enum import Enum
from pathlib import Path
from typing import Final

LOCK_NAME: Final = "cache.lock"
_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_UNKNOWN: Final = "this boot has no id"
_MARK_MAX_BYTES: Final = 256

_log = logging.getLogger(__name__)


class Left(Enum):
    """What happened to the last process that had the folder open."""

    CLOSED = "closed"
    KILLED = "killed"
    """It ended without closing; the kernel kept everything that it had written."""
    POWER_CUT = "power cut"
    """The machine ended under it; what was not synced may be gone."""


def boot_id() -> str:
    """Another one after every start of the machine."""
    try:
        return _BOOT_ID.read_text("ascii").strip() or _UNKNOWN
    except OSError:
        return _UNKNOWN


def read_mark(lock_fd: int) -> Left:
    """How the folder was left; `lock_fd` is its open lock file."""
    mark = os.pread(lock_fd, _MARK_MAX_BYTES, 0)
    if not mark:
        return Left.CLOSED
    return Left.KILLED if mark == boot_id().encode("ascii") else Left.POWER_CUT


def left_by(folder: Path) -> Left:
    """The same for a folder that nobody has open."""
    try:
        fd = os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Left.CLOSED
    try:
        return read_mark(fd)
    finally:
        os.close(fd)


def set_mark(lock_fd: int) -> None:
    """The folder is open from now on, what came before is seen to. Synced, because after a power cut it must tell. On a full
    disk the segments have to do: a folder with segments in it was not closed."""
    try:
        mark = boot_id().encode("ascii")
        os.pwrite(lock_fd, mark, 0)  # over an old one: at no time the folder looks closed
        os.ftruncate(lock_fd, len(mark))
        os.fdatasync(lock_fd)
    except OSError as error:
        _log.warning("the cache cannot be marked as open: %s", error)


def clear_mark(lock_fd: int) -> None:
    """Everything is written and synced. Not synced itself: if that is lost, the next open looks more closely than it had to."""
    os.ftruncate(lock_fd, 0)
