"""FSYNC beside the request loop: a disk may take its time, and only who asked for it waits.

Everything written before the request was answered before it, so it is in the filesystem when this thread syncs; what comes
meanwhile does not matter to the caller. Several callers who wait at once share the work: the filesystem knows what is durable.
"""

from __future__ import annotations

import errno
import logging
import queue
import threading
from collections.abc import Callable
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.wire import HEADER_UNIQUE, OK, Handler, Header, Reply
from memdir.fs.vfs import Vfs

_log = logging.getLogger(__name__)

_QUEUE_MAX: Final = 1024
"""Callers who wait at most; further ones are served by the loop itself, which slows everybody down to the pace of the disk."""


class SyncThread:
    """`handlers` are for the request loop; the thread answers through the `reply` that it is started with."""

    def __init__(self, vfs: Vfs) -> None:
        self._vfs = vfs
        self._waiting: queue.Queue[tuple[int, int] | None] = queue.Queue(_QUEUE_MAX)
        self._thread: threading.Thread | None = None
        self._reply: Callable[[int, int], None] = _unset

    def start(self, reply: Callable[[int, int], None]) -> None:
        """`reply(unique, errno)` answers a request; 0 is success."""
        self._reply = reply
        self._thread = threading.Thread(target=self._run, name="fuse-sync", daemon=True)
        self._thread.start()

    def stop(self, *, timeout_s: float) -> bool:
        """End after the syncs under way; False when the disk does not answer within the timeout."""
        if self._thread is None:
            return True
        self._waiting.put(None)
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def handlers(self) -> dict[int, Handler]:
        return {abi.Op.FSYNC: self.fsync, abi.Op.FSYNCDIR: self.fsync, abi.Op.SYNCFS: self.fsync}

    def fsync(self, ino: int, body: memoryview, header: Header) -> Reply:
        """No answer yet; or, without the thread or with too many in front, the answer."""
        if self._thread is not None:
            try:
                self._waiting.put_nowait((header[HEADER_UNIQUE], ino))
            except queue.Full:
                _log.warning("more than %d callers wait for the disk", _QUEUE_MAX)
            else:
                return None
        self._vfs.fsync(ino)
        return OK

    def _run(self) -> None:
        while (asked := self._waiting.get()) is not None:
            unique, ino = asked
            self._reply(unique, self._sync(ino))

    def _sync(self, ino: int) -> int:
        try:
            self._vfs.fsync(ino)
        except FsError as error:
            return error.errno
        except Exception:  # noqa: BLE001 - a defect must not leave the caller waiting
            _log.exception("a sync of inode %d failed", ino)
            return errno.EIO
        return 0


def _unset(*_: object) -> None:
    raise RuntimeError("start() was not called")
