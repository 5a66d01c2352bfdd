"""Deletes contents that nothing refers to any more, on a thread of the server process, so that no request waits for it.

What has to go is in the database (`store.contents.blob_trash`): when a collector dies, the next one, of this process
or of any other on the same store, goes on.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

from memdir.core.errors import MemdirError
from memdir.store.store import Store

log = logging.getLogger(__name__)

IDLE_S: Final = 60.0
"""Between two looks for what others left behind; commits of this process wake it at once."""
TROUBLE_S: Final = 30.0
"""Between two attempts while the store of contents or the database refuses."""
STOP_S: Final = 5.0


class BlobCollector:
    """One thread, from `start` to `stop`."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="memdir-blobs", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._store.blobs.collect_with(self._wake.set)
        self._thread.start()

    def stop(self, *, timeout_s: float = STOP_S) -> bool:
        """End after the step under way. Returns whether it ended in time; what it was at is done again by the next one."""
        self._stopping.set()
        self._wake.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            pause_s = IDLE_S
            try:
                while not self._stopping.is_set() and self._store.blobs.collect():
                    pass
            except MemdirError as error:
                log.warning("contents that are not needed could not be deleted yet: %s", error)
                pause_s = TROUBLE_S
            except Exception:
                log.exception("contents that are not needed could not be deleted yet")
                pause_s = TROUBLE_S
            if pause_s == TROUBLE_S:
                self._stopping.wait(pause_s)
            else:
                self._wake.wait(pause_s)
