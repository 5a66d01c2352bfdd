"""Room on the disk: how much may wait to be written, and a reserve for what gives space back when there is none.

What is answered stands on the disk up to three times for a while: in the journal, in SQLite's log, in SQLite's file. So there
is an end to taking more long before the last byte is gone, or the disk would be full of copies that need space to go away.

Deleting a file needs space too before it gives space: a record in the journal, rows in SQLite's log. So a small file holds some
blocks. When the disk refuses, it is let go, and until it can be had again only changes that free something are taken; all
others are refused with the errno of the disk (ENOSPC, EDQUOT), which is what the person at the keyboard must know anyway.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.limits import KIB, MIB
from memdir.fs.errors import FsError
from memdir.fs.posix.txn import PATCH, Txn

RESERVE_NAME: Final = "reserve"
RESERVE_BYTES: Final = 8 * MIB
"""The rows of some thousand deletions, or of a large one, as pages in SQLite's log."""
RESERVE_SHARE: Final = 32
"""On a small disk the reserve is at most one part in so many of it."""
LOW_BYTES: Final = 4 * MIB
"""With less than this free nothing is taken that grows: enough for the largest request of the kernel, written three times."""
LOW_SHARE: Final = 16
"""The same for the bytes that stay free."""
RECORD_PAGES_BYTES: Final = 48 * KIB
"""Pages of SQLite's file that one operation touches at most as a rule: of inodes, names, contents."""
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

_log = logging.getLogger(__name__)


def is_no_space(error: FsError) -> bool:
    """Whether the disk, or somebody's quota on it, is full."""
    return error.errno in NO_SPACE


def frees(txn: Txn) -> bool:
    """Whether a change may use the reserve: it takes a name away, cuts contents or finishes off an earlier change, and adds
    no bytes. A rename is one, because editors and `mv` free what they replace."""
    if txn.acknowledged or txn.gone:
        return True
    if any(kind == PATCH for kind, *_ in txn.contents) or any(value is not None for _, _, value in txn.xattrs):
        return False
    return bool(txn.contents or txn.xattrs) or any(entry is None for entry in txn.dentries.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What SQLite does not hold yet."""

    pending_bytes: int
    applied_lsn: int
    last_lsn: int
    file_bytes: int


class DiskSpace:
    """Of one folder. Guarded by the filesystem's lock; `shortage` says why only what frees space is taken."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / RESERVE_NAME
        self._folder = folder
        self.shortage: FsError | None = None
        self.limit_bytes = -1
        self.limit_lsn = 0
        self.spare_bytes = 0
        """What may wait to be brought into SQLite, and the last record that may (see `measure`)."""

    def measure(self, waiting: Waiting) -> None:
        """Set the limits for what waits, by what is free now.

        Everything that waits goes into the log, then the journal's copy goes, and the file gets blocks for the log: that must
        fit into what is free. Waiting bytes are counted twice (journal and memory, see `DIRTY_MAX_BYTES`), so a byte more
        costs one of what is free, and two of what must be. A record may touch some pages that are in the file already, and
        each of them goes through the log as a whole: that is what deleting needs space for.
        """
        found = os.statvfs(self._folder)
        kept_bytes = 0 if self.shortage is not None else low_bytes(found)
        touched_bytes = min(waiting.file_bytes, (waiting.last_lsn - waiting.applied_lsn) * RECORD_PAGES_BYTES)
        free_bytes = found.f_bavail * found.f_frsize
        spare_bytes = self.spare_bytes = free_bytes - waiting.pending_bytes - touched_bytes - kept_bytes
        if spare_bytes <= 0:
            self.limit_bytes, self.limit_lsn = -1, 0
            return
        self.limit_bytes = waiting.pending_bytes + spare_bytes // 3
        records = spare_bytes // 2 // RECORD_PAGES_BYTES if spare_bytes < 2 * waiting.file_bytes else 1 << 62
        self.limit_lsn = waiting.last_lsn + records

    def run_out(self, reason: FsError) -> None:
        """From now on only what frees space is taken."""
        if self.shortage is None:
            _log.error("%s; only deleting is possible until there is room", reason.message)
            self.shortage = FsError(reason.errno, f"{reason.message}; delete something to go on")

    def release(self, reason: FsError, *, needed_bytes: int = 0) -> bool:
        """Give the reserve back to the disk; False when there is none, or when it would not bring what is needed: then whoever
        fills the disk would get it, and nothing would be left for deleting."""
        self.run_out(reason)
        found = os.statvfs(self._folder)
        try:
            held_bytes = os.stat(self._path).st_blocks * 512
        except FileNotFoundError:
            return False
        return held_bytes + found.f_bavail * found.f_frsize >= needed_bytes and self._remove()

    def recover(self) -> None:
        """Take the reserve (again) and end the shortage, if the disk has enough."""
        found = os.statvfs(self._folder)
        size_bytes = min(RESERVE_BYTES, found.f_blocks * found.f_frsize // RESERVE_SHARE)
        free_bytes = found.f_bavail * found.f_frsize
        with contextlib.suppress(FileNotFoundError):
            free_bytes += os.stat(self._path).st_blocks * 512
        if free_bytes < size_bytes + 2 * low_bytes(found):
            self.run_out(FsError(errno.ENOSPC, f"{self._folder}: the disk is full"))
            return
        if self._allocate(size_bytes) and self.shortage is not None:
            _log.info("%s: there is room again", self._folder)
            self.shortage = None

    def _allocate(self, size_bytes: int) -> bool:
        try:
            fd = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
            try:
                os.posix_fallocate(fd, 0, max(size_bytes, 1))
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno in NO_SPACE:
                self._remove()
                self.run_out(FsError(error.errno or errno.ENOSPC, f"{self._folder}: {error.strerror}"))
                return False
            _log.info("%s: no space can be reserved here: %s", self._folder, error.strerror)
        return True

    def _remove(self) -> bool:
        """Whether the reserve was there, and is gone."""
        try:
            os.unlink(self._path)
        except FileNotFoundError:
            return False
        except OSError as error:
            _log.info("%s cannot be deleted: %s", self._path, error.strerror)
            return False
        return True

    def close(self) -> None:
        """Nobody needs the reserve while the folder is not in use, unless the next one to open it might not get it."""
        found = os.statvfs(self._folder)
        if self.shortage is None and found.f_bavail * found.f_frsize > 4 * RESERVE_BYTES:
            self._remove()


def low_bytes(found: os.statvfs_result) -> int:
    """What stays free."""
    return min(LOW_BYTES, found.f_blocks * found.f_frsize // LOW_SHARE)
