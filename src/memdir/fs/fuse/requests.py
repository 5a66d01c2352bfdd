"""Reads the kernel's requests, one at a time, and busy-polls for a moment before it blocks (adaptive spinning).

A caller sleeps until its request is answered, and its processor goes idle. Waking that up again, and before it the daemon's,
takes a virtual machine some 80 us, several times as long as the answer.
"""

from __future__ import annotations

import os
import resource
import select
import time
from typing import Final

_SPIN_NS: Final = 50_000
"""How long it polls before it blocks. Callers that do one thing after the other have sent their next request by then."""
_LOOK_REQUESTS: Final = 256
_PREEMPTED_MAX: Final = 16
"""When the thread lost its processor more often than this among so many requests, others want all processors (then it is some
150 times, else 0 to 2): none is idle and slow to wake, and polling would take time from the callers …"""
_PAUSE_LOOKS: Final = 8
"""… until it was preempted less often so many times running: a thread that blocks at once is not always preempted."""


class RequestReader:
    """The connection `fd`, which becomes non-blocking. One thread's."""

    def __init__(self, fd: int) -> None:
        os.set_blocking(fd, False)
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._spin_max_ns = _SPIN_NS if len(os.sched_getaffinity(0)) > 1 else 0
        self._spin_ns = self._spin_max_ns
        self._requests = 0
        self._preempted = 0
        self._pause_looks = 0

    def read(self, buffers: list[memoryview]) -> int:
        """The next request, waited for; its length. OSError as of read(2), ENODEV after an unmount."""
        self._requests += 1
        if self._requests == _LOOK_REQUESTS:
            self._look()
        try:
            return os.readv(self._fd, buffers)
        except BlockingIOError:
            end_ns = time.monotonic_ns() + self._spin_ns
        while True:
            try:
                return os.readv(self._fd, buffers)
            except BlockingIOError:
                if time.monotonic_ns() > end_ns:
                    self._poll.poll()

    def _look(self) -> None:
        """Decide from how often the thread was preempted whether to poll."""
        preempted = resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
        is_busy = preempted - self._preempted > _PREEMPTED_MAX
        self._preempted, self._requests = preempted, 0
        self._pause_looks = _PAUSE_LOOKS if is_busy else max(0, self._pause_looks - 1)
        self._spin_ns = 0 if self._pause_looks else self._spin_max_ns
