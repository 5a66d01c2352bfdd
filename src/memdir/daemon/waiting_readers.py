"""Contents for readers that come before the sync engine is there: they wait for its start, and not in the request loop."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from memdir.fs.errors import FsError

if TYPE_CHECKING:
    from memdir.fs.source import Brought, ContentSource

_EARLY_MAX: Final = 4096
NO_SOURCE: Final = "the contents are on the server only, and this mount does not sync"


class LateContents:
    """`fs.source.ContentSource`: the one that `find` gives once `open` was called, EIO when it gives none."""

    def __init__(self, find: Callable[[], ContentSource | None]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self._is_open = False
        self._early: list[tuple[int, Brought]] = []

    def open(self) -> None:
        """From now on `find` says what there is."""
        with self._lock:
            self._is_open = True
            early, self._early = self._early, []
        for ino, brought in early:
            self.bring(ino, brought)

    def bring(self, ino: int, brought: Brought) -> None:
        """See `fs.source.ContentSource`."""
        with self._lock:
            if not self._is_open and len(self._early) < _EARLY_MAX:
                self._early.append((ino, brought))
                return
        source = self._find()
        if source is None:
            brought(FsError(errno.EIO, NO_SOURCE))
        else:
            source.bring(ino, brought)

    def arrived_bytes(self, ino: int) -> int:
        """See `fs.source.ContentSource`."""
        source = self._find()
        return 0 if source is None else source.arrived_bytes(ino)
