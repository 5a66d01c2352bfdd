"""What keeps the loops from their work: for `memdir status`, and once (not at every try) for the log."""

from __future__ import annotations

import errno
import logging
import threading
from typing import Final

from memdir.core.sqlite import DiskFullError
from memdir.fs.errors import FsError

log = logging.getLogger(__name__)

DISK_FULL: Final = "the disk with memdir's data is full; sync goes on when there is room"


class Troubles:
    """Thread-safe: every loop notes its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, str] = {}

    def begin(self, loop: str, what: str, error: Exception) -> None:
        """`loop` cannot do `what`, and will try again."""
        full = isinstance(error, DiskFullError) or (isinstance(error, (OSError, FsError)) and error.errno == errno.ENOSPC)
        text = DISK_FULL if full else f"{what}: {error!r}"
        with self._lock:
            is_new = text not in self._known.values()
            self._known[loop] = text
        if is_new and full:
            log.error("%s: %s", what, text)
        elif is_new:
            log.error("%s", what, exc_info=error)

    def end(self, loop: str) -> None:
        """`loop` did its work."""
        with self._lock:
            ended = self._known.pop(loop, None)
            is_last = ended is not None and ended not in self._known.values()
        if is_last:
            log.info("over: %s", ended)

    def text(self) -> str | None:
        """One of them, None when all is well."""
        with self._lock:
            return next(iter(self._known.values()), None)
