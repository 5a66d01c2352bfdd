"""Counts searches in flight, so that background jobs can yield to them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class SearchesInFlight:
    """Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._none = threading.Event()
        self._none.set()

    @contextmanager
    def search(self) -> Iterator[None]:
        """A search is in flight inside the block."""
        with self._lock:
            self._count += 1
            self._none.clear()
        try:
            yield
        finally:
            with self._lock:
                self._count -= 1
                if not self._count:
                    self._none.set()

    def wait(self, timeout_s: float) -> bool:
        """Wait until no search is in flight, at most `timeout_s`. Returns whether none is."""
        return self._none.wait(timeout_s)
