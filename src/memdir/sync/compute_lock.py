"""One thread of the engine computes at a time, so that the filesystem's request loop competes with one for the interpreter.

Each thread that wants the interpreter is one more in front of a lookup: with three that compute, a caller waits three times as
long as with one, and they are no faster for it. Who waits for the server lets the next one compute.

A courtesy and no lock: nobody waits for his turn longer than PATIENCE_S, so it protects nothing and can block nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

PATIENCE_S: Final = 0.05


class ComputeLock:
    """Shared by the threads of one engine."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Compute inside the block."""
        if getattr(self._own, "has", False):
            yield
            return
        self._own.has = self._lock.acquire(timeout=PATIENCE_S)
        try:
            yield
        finally:
            if self._own.has:
                self._own.has = False
                self._lock.release()

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Wait for something else inside the block; whoever has no turn just goes on."""
        if not getattr(self._own, "has", False):
            yield
            return
        self._own.has = False
        self._lock.release()
        try:
            yield
        finally:
            self._own.has = self._lock.acquire(timeout=PATIENCE_S)
