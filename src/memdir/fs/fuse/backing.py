"""Kernel passthrough: large files that the kernel reads and writes by itself while they are open (Linux 6.9 on, root only).

An OPEN may be answered with a backing file, registered before with an ioctl on the connection (fs/fuse/passthrough.c in the
kernel). READ, WRITE and mapped pages then go straight to that file; everything else is still asked here. The kernel insists
that all opens of an inode agree, caching or passthrough, and answers EIO otherwise; so what the first open was, the others
become until the last one is closed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import logging
import os
import re
import struct
from dataclasses import dataclass
from typing import Final

from memdir.core.errors import UsageError
from memdir.fs.errors import FsError
from memdir.fs.vfs import Lender

_BACKING_MAP: Final = struct.Struct("=iIQ")
"""struct fuse_backing_map: fd, flags, padding"""
_BACKING_OPEN: Final = 1 << 30 | _BACKING_MAP.size << 16 | 229 << 8 | 1
"""_IOW(FUSE_DEV_IOC_MAGIC, 1, struct fuse_backing_map): the answer is the id"""
_BACKING_CLOSE: Final = 1 << 30 | 4 << 16 | 229 << 8 | 2

_NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE})
_LINUX_OLDEST: Final = (6, 9)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Opens:
    """The opens of one inode. `backing_id` 0: through the page cache and this daemon."""

    count: int
    backing_id: int


def check_passthrough() -> None:
    """UsageError when passing files through cannot work here."""
    if os.geteuid() != 0:
        raise UsageError("--passthrough needs root", hint="the kernel takes files from nobody else; mount without it")
    release = os.uname().release
    version = tuple(int(part) for part in re.findall(r"\d+", release)[:2])
    if version < _LINUX_OLDEST:
        raise UsageError(f"--passthrough needs Linux 6.9 or newer; this is {release}", hint="mount without it")


class Backings:
    """Which inodes are open, how, and the backing files behind them. Used by the request loop alone."""

    def __init__(self, lender: Lender) -> None:
        self._lender = lender
        self._fd = -1
        self._opens: dict[int, _Opens] = {}
        self._stale: set[int] = set()
        """Inodes that were written past the kernel's page cache: it must be dropped when they are opened through it."""

    def connect(self, fd: int) -> None:
        """The kernel has agreed; `fd` is the connection. Before, every open goes through the daemon."""
        self._fd = fd

    def opened(self, ino: int, flags: int, *, is_new: bool) -> tuple[int, bool]:
        """Count an open. (backing id or 0, whether what the page cache holds is still true)"""
        writable = flags & os.O_ACCMODE != os.O_RDONLY
        opens = self._opens.get(ino)
        if opens is None:
            opens = self._opens[ino] = _Opens(0, self._register(ino, writable=writable, is_new=is_new))
        elif opens.backing_id and writable:
            self._lender.lend_for_writing(ino)
        opens.count += 1
        if opens.backing_id:
            self._stale.add(ino)
            return opens.backing_id, True
        is_true = ino not in self._stale
        self._stale.discard(ino)
        return 0, is_true

    def closed(self, ino: int) -> None:
        """Take an open back; after the last one the file is the daemon's again."""
        opens = self._opens.get(ino)
        if opens is None:
            return
        opens.count -= 1
        if opens.backing_id:
            self._lender.refresh(ino)
        if opens.count:
            return
        del self._opens[ino]
        if opens.backing_id:
            with contextlib.suppress(OSError):  # the connection is gone, and its backing files with it
                fcntl.ioctl(self._fd, _BACKING_CLOSE, struct.pack("=I", opens.backing_id))
            self._lender.take_back(ino)

    def _register(self, ino: int, *, writable: bool, is_new: bool) -> int:
        """The id of a backing file; 0 when there is none to be had, which is no error: the daemon serves the file then."""
        if self._fd < 0:
            return 0
        try:
            fd = self._lender.lend(ino, writable=writable, is_new=is_new)
        except FsError as error:
            if error.errno not in _NO_ROOM:
                raise
            return 0
        if fd is None:
            return 0
        try:
            buffer = bytearray(_BACKING_MAP.pack(fd, 0, 0))  # mutable: Python then hands the kernel this very buffer
            return int(fcntl.ioctl(self._fd, _BACKING_OPEN, buffer))
        except OSError as error:
            self._lender.take_back(ino)
            if error.errno in (errno.EPERM, errno.EOPNOTSUPP, errno.ENOTTY, errno.ELOOP):
                _log.warning("files are not passed through to the kernel: %s", error.strerror)
                self._fd = -1
                return 0
            raise FsError(error.errno or errno.EIO) from error
        finally:
            os.close(fd)
