"""Which documents this mount is changing, or changed while somebody was reading the server.

A page of a listing may have left the server before our own change reached it, and arrive after that was noted: taken for news,
it would bring the old contents back over the new ones. So what was asked before a change ended is not believed about its
document.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

_STAMPS_MAX: Final = 50_000


class BusyDocumentError(Exception):
    """Another thread of this mount is changing the document."""


class Touched:
    """Thread-safe; counts changes, never time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = self._active = 0
        self._busy: set[str] = set()
        self._ended: OrderedDict[str, int] = OrderedDict()
        self._forgotten = 0
        """The highest count of a change that is no longer remembered: it may have been of any document."""

    def now(self) -> int:
        """To be taken before asking the server."""
        with self._lock:
            return self._count

    @contextmanager
    def changing(self, document_ids: Iterable[str]) -> Iterator[None]:
        """While it lasts, and for everything asked before its end, the documents are not believed to be as read. A creation
        names none."""
        ids = set(document_ids)
        with self._lock:
            if ids & self._busy:
                raise BusyDocumentError
            self._busy |= ids
            self._active += 1
        try:
            yield
        finally:
            with self._lock:
                self._busy -= ids
                self._active -= 1
                self._count += 1
                for document_id in ids:
                    self._ended[document_id] = self._count
                    self._ended.move_to_end(document_id)
                while len(self._ended) > _STAMPS_MAX:
                    self._forgotten = max(self._forgotten, self._ended.popitem(last=False)[1])

    def is_quiet_since(self, asked_at: int) -> bool:
        """Whether nothing is being changed by us, nor was since."""
        with self._lock:
            return not self._active and self._count == asked_at

    def is_stale(self, document_id: str, asked_at: int) -> bool:
        """Whether what was asked at `asked_at` may be older than our own change of the document."""
        with self._lock:
            return document_id in self._busy or self._ended.get(document_id, self._forgotten) > asked_at
