"""Ending with the host: a server on standard input and output must not outlive the process that started it.

A host that ends in order closes our standard input, and serving ends by that. One that is killed may leave the pipe open in
some other process, so its pid is watched as well (pidfd_open(2)), in a thread that needs no event loop.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import Final

from memdir.core.descriptors import wait_readable

log = logging.getLogger(__name__)

GRACE_S: Final = 0.5
"""What calls under way get to end, when the host is gone. The memory server does what it was sent anyway."""


def end_with_parent() -> None:
    """From now on this process ends when its parent does. In a thread of its own; nothing when there is no parent to watch."""
    parent = os.getppid()
    if parent == 0:  # the first process of a container
        return
    try:
        handle = os.pidfd_open(parent)
    except OSError as error:  # ended already, or it belongs to another namespace
        log.info("the parent process cannot be watched: %s", error)
        if os.getppid() != parent:
            end_soon()
        return
    if os.getppid() != parent:  # it ended, and its pid may be another process's by now
        os.close(handle)
        end_soon()
        return
    threading.Thread(target=_watch, args=(handle,), name="parent", daemon=True).start()


def end_soon() -> None:
    """End the process after `GRACE_S`, whatever threads still wait for something."""
    timer = threading.Timer(GRACE_S, os._exit, args=(0,))
    timer.daemon = True
    timer.start()


def _watch(handle: int) -> None:
    wait_readable(handle)
    end_soon()
