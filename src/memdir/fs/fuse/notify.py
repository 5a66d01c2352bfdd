"""Telling the kernel what changed behind its back.

An invalidation may wait inside the kernel for a directory's lock whose holder waits for an answer of ours, so notifications are
never written by the request loop: they queue here and a thread of their own sends them.

The queue is a set (the same file changed twice is one notification) and has a bound. Past the bound it is thrown away and
replaced by one invalidation of everything: the epoch notification, which makes the kernel look up every cached name again
(Linux 6.16 on), and an invalidation of each inode and name the tree still has. On older kernels a name that was *deleted*
remotely during such a flood may stay visible until the kernel drops it by itself; this is logged.
"""

from __future__ import annotations

import errno
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.types import ROOT_INO
from memdir.fs.vfs import Vfs

_log = logging.getLogger(__name__)

_BATCH: Final = 1024
"""Notifications taken from the queue at a time, so that stopping is prompt."""
_GONE: Final = frozenset({errno.ENODEV, errno.ECONNABORTED, errno.EBADF, errno.EPERM})
"""The connection ended. Everything else (ENOENT above all: the kernel does not know the inode or name) needs no action."""


class Notifier:
    """An `Invalidator` for one mount. `start` it with the connection's descriptor once the kernel has said hello."""

    def __init__(self, vfs: Vfs, *, queue_max: int) -> None:
        self._vfs = vfs
        self._queue_max = queue_max
        self._pending: dict[tuple[int, bytes | None], None] = {}
        self._everything = False
        self._sending = False
        self._stopped = False
        self._has_epoch = False
        self._fd = -1
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self.is_waited_for: Callable[[int], bool] = _never
        self._held_back: set[int] = set()
        """Inodes to be told when nobody waits for their contents any more; bounded by the requests that wait."""
        self.sent = 0
        self.overflows = 0

    def inode_changed(self, ino: int) -> None:
        """Forget cached attributes and contents of `ino`."""
        self._put((ino, None))

    def entry_changed(self, parent: int, name: bytes) -> None:
        """Forget the cached (positive or negative) entry."""
        self._put((parent, name))

    def _holds_back(self, ino: int) -> bool:
        """Invalidating pages waits inside the kernel for a read of them that is under way. While that read waits for contents
        from the server, its inode's notification waits here instead, so that it does not hold up all the others."""
        with self._changed:
            if not self.is_waited_for(ino):
                return False
            self._held_back.add(ino)
            return True

    def waited(self, ino: int) -> None:
        """A read of `ino` no longer waits."""
        with self._changed:
            if ino not in self._held_back:
                return
            self._held_back.discard(ino)
        self.inode_changed(ino)

    def start(self, fd: int, *, minor: int) -> None:
        """Begin to send; what was queued before goes out first."""
        self._fd = fd
        self._has_epoch = minor >= abi.MINOR_NOTIFY_EPOCH
        self._thread = threading.Thread(target=self._run, name="fuse-notify", daemon=True)
        self._thread.start()

    def stop(self, *, timeout_s: float) -> bool:
        """End the thread; False when it still waits inside the kernel after `timeout_s`. Later notifications are dropped."""
        with self._changed:
            self._stopped = True
            self._pending.clear()
            self._changed.notify_all()
        if self._thread is None:
            return True
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until everything queued so far has reached the kernel."""
        with self._changed:
            return self._changed.wait_for(
                lambda: self._stopped or not (self._pending or self._everything or self._sending), timeout_s
            )

    def _put(self, key: tuple[int, bytes | None]) -> None:
        with self._changed:
            if self._stopped or self._everything:
                return
            self._pending[key] = None
            if len(self._pending) > self._queue_max:
                self._pending.clear()
                self._everything = True
                self.overflows += 1
            self._changed.notify_all()

    def _take(self) -> tuple[list[tuple[int, bytes | None]], bool] | None:
        """The next batch and whether to invalidate everything; None when stopped."""
        with self._changed:
            self._sending = False
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._stopped or self._pending or self._everything)
            if self._stopped:
                return None
            self._sending = True
            everything, self._everything = self._everything, False
            batch = list(self._pending)[:_BATCH]
            for key in batch:
                del self._pending[key]
            return batch, everything

    def _run(self) -> None:
        try:
            while (work := self._take()) is not None:
                batch, everything = work
                if everything:
                    self._invalidate_everything()
                for ino, name in batch:
                    if name is not None or not self._holds_back(ino):
                        self._send(_message(ino, name))
        except OSError as error:
            if error.errno not in _GONE:
                _log.exception("notifications to the kernel ended")
        finally:
            with self._changed:
                self._stopped = True
                self._sending = False
                self._changed.notify_all()

    def _send(self, message: bytes) -> bool:
        """True when the kernel had something to forget."""
        try:
            os.write(self._fd, message)
        except OSError as error:
            if error.errno in _GONE:
                raise
            return False
        self.sent += 1
        return True

    def _invalidate_everything(self) -> None:
        started = time.monotonic()
        if not (self._has_epoch and self._send(_EPOCH)):
            _log.warning("too many remote changes at once: names deleted meanwhile may stay visible until the next mount")
        for message in _walk(self._vfs):
            if self._stopped:
                return
            self._send(message)
        _log.info("invalidated the whole tree in %.1f s", time.monotonic() - started)


def _never(_: int) -> bool:
    return False


def _message(ino: int, name: bytes | None) -> bytes:
    """INVAL_INODE for the whole file, or INVAL_ENTRY for a name."""
    if name is None:
        body = abi.NOTIFY_INVAL_INODE_OUT.pack(ino, 0, 0)
        code = abi.Notify.INVAL_INODE
    else:
        body = abi.NOTIFY_INVAL_ENTRY_OUT.pack(ino, len(name), 0) + name + b"\0"
        code = abi.Notify.INVAL_ENTRY
    return abi.OUT_HEADER.pack(abi.OUT_HEADER_BYTES + len(body), code, 0) + body


_EPOCH: Final = abi.OUT_HEADER.pack(abi.OUT_HEADER_BYTES, abi.Notify.INC_EPOCH, 0)


def _walk(vfs: Vfs) -> Iterator[bytes]:
    """Invalidations for every name and inode of the tree, breadth first. Bounded by the tree."""
    yield _message(ROOT_INO, None)
    folders = deque([ROOT_INO])
    while folders:
        folder = folders.popleft()
        try:
            entries = vfs.readdir(folder)
        except FsError:  # deleted since it was listed
            continue
        for entry in entries:
            yield _message(folder, entry.name)
            yield _message(entry.inode.ino, None)
            if entry.inode.is_dir:
                folders.append(entry.inode.ino)
