"""One mount: the connection to the kernel, the loop that answers its requests, and the end of both.

    session = FuseSession(vfs, Path("/home/me/notes"))
    session.mount()                                   # the directory is a mount now; calls into it wait
    threading.Thread(target=session.run).start()      # and are answered from here on
    session.unmount()                                 # run() returns

The loop is one thread: with the GIL a second one gains nothing (measured), and the order of changes is the order of requests.
No thread of this process may touch the mount while holding the GIL (ordinary os calls release it; page faults of an mmap do
not), and the loop's own thread never may.
"""

from __future__ import annotations

import errno
import gc
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.clock import Clock, SystemClock
from memdir.fs.fuse import abi
from memdir.fs.fuse.dispatch import Answer, Dispatcher, refusal, success
from memdir.fs.fuse.errors import MountBusyError, MountError
from memdir.fs.fuse.mounting import clear_dead_mount, mount_path, unmount_path
from memdir.fs.fuse.mountpoint import check_mountable, is_mountpoint
from memdir.fs.fuse.notify import Notifier
from memdir.fs.fuse.options import FuseOptions, OpenObserver, Profile
from memdir.fs.fuse.requests import RequestReader
from memdir.fs.fuse.syncs import SyncThread
from memdir.fs.fuse.waiting import WaitingRequests
from memdir.fs.vfs import Invalidator, Vfs

__all__ = [
    "FuseOptions",
    "FuseSession",
    "FuseStats",
    "MountBusyError",
    "MountError",
    "OpenObserver",
    "Profile",
    "clear_dead_mount",
    "is_mountpoint",
]

_log = logging.getLogger(__name__)

_ENDED: Final = frozenset({errno.ENODEV, errno.ECONNABORTED})
"""read(2) on the connection after an unmount, or after an abort through /sys/fs/fuse/connections."""
_AGAIN: Final = frozenset({errno.EINTR, errno.ENOENT})
"""ENOENT: the request was interrupted before we could read it."""
_NOTIFIER_STOP_S: Final = 5.0
_SYNC_STOP_S: Final = 60.0
"""A slow disk may need this long for what was asked for before the end."""
_GC_YOUNG_OBJECTS: Final = 50_000
_GC_GENERATION_RUNS: Final = 50
"""The tables of a filesystem are millions of objects without cycles: look for cycles 70 times less often than Python does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FuseStats:
    """What the loop did so far."""

    requests: Mapping[str, int]
    """By name of the opcode, only those that occurred."""
    failures: int
    """Malformed requests and defects, answered EIO and logged."""
    notifications: int
    overflows: int
    """How often the notification queue was replaced by an invalidation of everything."""
    cpu_s: float
    """Processor time of the loop's thread."""


class FuseSession:
    """`vfs` at `mountpoint`. The filesystem is not closed here: its owner does that after `run` has returned."""

    def __init__(self, vfs: Vfs, mountpoint: Path, options: FuseOptions | None = None, *, clock: Clock | None = None) -> None:
        self._options = options or FuseOptions()
        self._mountpoint = mountpoint
        contents = self._options.contents
        self._waiting = (
            None if contents is None else WaitingRequests(contents, timeout_s=self._options.contents_timeout_s)
        )  # fmt: skip
        self._syncs = SyncThread(vfs)
        self._dispatcher = Dispatcher(
            vfs, self._options, clock or SystemClock(), on_init=self._connected, waiting=self._waiting, syncs=self._syncs
        )  # fmt: skip
        self._notifier = Notifier(vfs, queue_max=self._options.notify_queue_max)
        self._fd = -1
        self._thread_id = 0
        self._cpu_clock: int | None = None
        self._cpu_start_s = 0.0
        self._cpu_s = 0.0

    @property
    def mountpoint(self) -> Path:
        """The real path once `mount` has returned."""
        return self._mountpoint

    @property
    def invalidator(self) -> Invalidator:
        """To be connected to the filesystem; usable before `mount` and after `run` too."""
        return self._notifier

    def wait_notified(self, timeout_s: float) -> bool:
        """Wait until every invalidation so far has reached the kernel; False when that takes longer."""
        return self._notifier.wait_idle(timeout_s)

    def mount(self) -> None:
        """Mount; calls into the mount wait until `run` answers them. MountError with a hint."""
        self._mountpoint = check_mountable(self._mountpoint)
        self._fd = mount_path(self._mountpoint, self._options)

    def run(self) -> None:
        """Answer requests until the mount is gone, whoever unmounted it; then release the connection.

        Moves all present objects out of the garbage collector's sight, since a full collection over a large cache would stop
        every caller for its duration.
        """
        if self._fd < 0:
            raise MountError("mount first", hint="call mount() before run()")
        gc.freeze()
        gc.set_threshold(_GC_YOUNG_OBJECTS, _GC_GENERATION_RUNS, _GC_GENERATION_RUNS)
        self._thread_id = threading.get_ident()
        self._cpu_start_s = time.thread_time()
        self._cpu_clock = time.pthread_getcpuclockid(self._thread_id)
        try:
            self._loop()
        finally:
            self._cpu_s = time.thread_time() - self._cpu_start_s
            self._cpu_clock = None
            self._release()

    def unmount(self, *, lazy: bool = False) -> None:
        """Unmount; `run` returns soon after, or with `lazy` when the last user of the mount is gone.

        MountBusyError while somebody uses the mount. Nothing happens when it is unmounted already. Call it from another thread
        than the one in `run`: the kernel writes back mapped files during an unmount and waits for our answers.
        """
        if threading.get_ident() == self._thread_id:
            raise MountError("the request loop cannot unmount itself", hint="call unmount() from another thread")
        if is_mountpoint(self._mountpoint):
            unmount_path(self._mountpoint, lazy=lazy)

    def close(self) -> None:
        """Give up a mount whose `run` was never called: it is taken out of the tree, and whoever waits in it gets ENOTCONN."""
        if self._thread_id == 0 and self._fd >= 0:
            try:
                self.unmount(lazy=True)
            except MountError as error:
                _log.error("%s stays behind as a dead mount: %s", self._mountpoint, error.message)
            self._release()

    def stats(self) -> FuseStats:
        """Counters; from any thread."""
        names = {op.value: op.name for op in abi.Op}
        counts = {names.get(opcode, "OTHER"): count for opcode, count in enumerate(self._dispatcher.counts) if count}
        cpu_clock = self._cpu_clock
        return FuseStats(
            requests=counts,
            failures=self._dispatcher.failures,
            notifications=self._notifier.sent,
            overflows=self._notifier.overflows,
            cpu_s=self._cpu_s if cpu_clock is None else time.clock_gettime(cpu_clock) - self._cpu_start_s,
        )

    def end_waiting(self) -> None:
        """The end is near: whoever waits for contents of the server gets EIO, now and from now on, so that nothing holds up the
        unmount."""
        if self._waiting is not None:
            self._waiting.end()

    def _connected(self, minor: int) -> None:
        self._notifier.start(self._fd, minor=minor)
        if self._dispatcher.backings is not None:
            if self._dispatcher.passes_through:
                self._dispatcher.backings.connect(self._fd)
            else:
                _log.warning("this kernel cannot pass files through (Linux 6.9 can); everything goes through the daemon")
        self._syncs.start(
            lambda unique, number: self._answer_late(refusal(unique, number) if number else success(unique), b"")
        )  # fmt: skip
        if self._waiting is not None:
            self._notifier.is_waited_for, self._waiting.on_done = self._waiting.is_waited_for, self._notifier.waited
            twin = self._dispatcher.twin()
            self._waiting.start(
                lambda request: self._answer_late(twin.answer(memoryview(request), len(request)), request),
                lambda unique, number: self._answer_late(refusal(unique, number), b""),
            )

    def _answer_late(self, reply: Answer, request: bytes) -> None:
        """An answer from another thread than the loop's; None: the request waits once more."""
        if reply is None:
            return
        try:
            if isinstance(reply, bytes):
                os.write(self._fd, reply)
            else:
                os.writev(self._fd, reply)
        except OSError as error:
            if error.errno in _ENDED or error.errno == errno.ENOENT:
                return  # the mount is gone, or nobody waits for this answer any more
            if request:
                self._refuse(memoryview(request), error)
            else:
                _log.error("the kernel refused an error answer: %s", error)

    def _loop(self) -> None:
        """Read, answer, write. The buffer holds one request at a time and is used again for the next."""
        fd = self._fd
        size = max(self._options.max_write_bytes + abi.READ_BUFFER_SLACK_BYTES, abi.READ_BUFFER_MIN_BYTES)
        buffer = memoryview(bytearray(size))
        buffers = [buffer]
        read, write, answer = RequestReader(fd).read, os.write, self._dispatcher.answer
        while True:
            try:
                length = read(buffers)
            except OSError as error:
                if error.errno in _AGAIN:
                    continue
                if error.errno in _ENDED:
                    return
                raise
            reply = answer(buffer, length)
            if reply is None:
                continue
            try:
                if isinstance(reply, bytes):
                    write(fd, reply)
                else:
                    os.writev(fd, reply)
            except OSError as error:
                if error.errno in _ENDED:
                    return
                if error.errno != errno.ENOENT:  # ENOENT: nobody waits for this answer any more
                    self._refuse(buffer, error)

    def _refuse(self, buffer: memoryview, reason: OSError) -> None:
        """The kernel did not take an answer. Its request must not wait for ever: fail it."""
        _log.error("the kernel refused an answer: %s", reason)
        try:
            os.write(self._fd, self._dispatcher.refusal(buffer))
        except OSError as error:
            if error.errno not in _ENDED and error.errno != errno.ENOENT:
                _log.error("the kernel refused an error answer too: %s", error)

    def _release(self) -> None:
        if self._waiting is not None:
            self._waiting.stop(timeout_s=_NOTIFIER_STOP_S)
        synced = self._syncs.stop(timeout_s=_SYNC_STOP_S)
        if not self._notifier.stop(timeout_s=_NOTIFIER_STOP_S) or not synced:
            _log.error(
                "a %s still waits in the kernel; its connection stays open until this process ends",
                "notification" if synced else "sync",
            )
            return
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
