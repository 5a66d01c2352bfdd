"""Pages that neither skip nor repeat what stood there all the time, while documents come and go.

A listing is in the order of (time, id), and a page goes on behind the last row of the page before it, whatever was added or
deleted meanwhile. Our own clients send that place back as a `cursor`. Clients that only know page numbers get the same from
`Walks`: the server remembers where the pages that it gave out ended, for whom and for which question. A page number that
nobody is walking towards (a jump to page 7, a server that was started since) counts rows from the beginning, as ever.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from memdir.store.errors import InvalidError

WALKS_MAX: Final = 10_000
"""Ends of pages that are remembered; the oldest go."""
WALK_S: Final = 600.0
"""How long one is good for."""
_NUMBER_MAX: Final = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The last row of a page: its key in the order of the listing, and how many rows were given out up to it."""

    at_ms: int
    id: str
    seen: int


def cursor_of(place: Place, order: str) -> str:
    """A place as text; `order` is what the listing is sorted by, in which alone it means anything."""
    raw = json.dumps([order, place.at_ms, place.id, place.seen], separators=(",", ":")).encode()
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def place_of(cursor: str, order: str) -> Place:
    """The place in a cursor. InvalidError when it is none of ours, or of a listing in another order."""
    try:
        made_for, at_ms, name, seen = json.loads(
            base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        )
        whole = isinstance(at_ms, int) and isinstance(name, str) and isinstance(seen, int)
    except (ValueError, TypeError, binascii.Error):
        whole = False
    if not whole or abs(at_ms) >= _NUMBER_MAX or not 0 <= seen < _NUMBER_MAX:
        raise InvalidError("this cursor was not made here", hint="send a nextCursor as it came")
    if made_for != order:
        raise InvalidError("this cursor belongs to a listing in another order", hint="begin again without a cursor")
    return Place(at_ms=at_ms, id=name, seen=seen)


class Walks:
    """Where the pages ended that were given out. Thread-safe, bounded."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ends: OrderedDict[tuple[str, str, int], tuple[float, Place]] = OrderedDict()

    def keep(self, walker: str, question: str, page: int, place: Place) -> None:
        """Page `page` of `question` ended at `place`."""
        with self._lock:
            self._ends[walker, question, page] = (self._clock(), place)
            self._ends.move_to_end((walker, question, page))
            while len(self._ends) > WALKS_MAX:
                self._ends.popitem(last=False)

    def end_of(self, walker: str, question: str, page: int) -> Place | None:
        """Where that page ended, None when it is not known or too long ago."""
        with self._lock:
            known = self._ends.get((walker, question, page))
        return None if known is None or known[0] < self._clock() - WALK_S else known[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Walker:
    """One who asks for pages: a key, and the connection that it asks on."""

    walks: Walks
    key_id: str
    connection: str

    def end_of(self, question: str, page: int) -> Place | None:
        """The end of that page as this connection saw it, else as this key last saw it."""
        return self.walks.end_of(f"{self.key_id} {self.connection}", question, page) or self.walks.end_of(
            self.key_id, question, page
        )

    def keep(self, question: str, page: int, place: Place) -> None:
        """For both."""
        self.walks.keep(f"{self.key_id} {self.connection}", question, page, place)
        self.walks.keep(self.key_id, question, page, place)
