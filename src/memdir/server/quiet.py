"""Whether somebody waits for an answer: what nobody waits for rests meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Quiet:
    """Counts the searches under way. Any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._asking = 0
        self._quiet = threading.Event()
        self._quiet.set()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Inside the block somebody waits for an answer."""
        with self._lock:
            self._asking += 1
            self._quiet.clear()
        try:
            yield
        finally:
            with self._lock:
                self._asking -= 1
                if not self._asking:
                    self._quiet.set()

    def wait(self, timeout_s: float) -> bool:
        """Until nobody waits for an answer, at most `timeout_s`. Returns whether nobody does."""
        return self._quiet.wait(timeout_s)
