"""An event that a signal can set, whichever thread the kernel hands the signal to.

Python runs signal handlers in the main thread, once that executes something; but a signal sent while the process was halted
(SIGSTOP) goes to any of its threads when it goes on, and a main thread asleep in `Event.wait` would never notice. The wake-up
descriptor (signal.set_wakeup_fd) is written by the thread that got it, and the main thread sleeps on its other end.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from types import FrameType
from typing import Final

from memdir.core.descriptors import wait_readable

_READ_BYTES: Final = 4096


class StopEvent:
    """Like threading.Event. `listen` and `wait_for_signals` belong to the main thread."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._reading, self._writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def listen(self, handler: Callable[[int, FrameType | None], None], *numbers: signal.Signals) -> None:
        """Run `handler` for these signals."""
        for number in numbers:
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)

    def set(self) -> None:
        self._event.set()
        with suppress(BlockingIOError):  # full of earlier wake-ups: it wakes anyway
            os.write(self._writing, b"\0")

    def is_set(self) -> bool:
        return self._event.is_set()

    def wait(self, timeout_s: float) -> bool:
        """For other threads."""
        return self._event.wait(timeout_s)

    def wait_for_signals(self) -> None:
        """Sleep until it is set; handlers run meanwhile."""
        while not self._event.is_set():
            wait_readable(self._reading)
            os.read(self._reading, _READ_BYTES)
