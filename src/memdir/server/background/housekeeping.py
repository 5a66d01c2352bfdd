"""What has to happen now and then, whether anybody calls or not: former contents that have become too old are let go, what
exports held whose process died, and what indexes of agents' memories no longer need to follow. At the start also, once after an
update, that facts are read again.

One thread in each server process; several processes may do it at once without harm.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Final

from memdir.store.acting import SYSTEM, acting_as
from memdir.store.store import Store
from memdir.store.tree.versions import PRUNE_ROWS

log = logging.getLogger(__name__)

INTERVAL_S: Final = 3600.0
CONTAINERS_PAGE: Final = 500
STOP_S: Final = 5.0


class Housekeeper:
    """A thread that tidies up at the start and then once an hour, until `stop`."""

    def __init__(self, store: Store, at_start: Callable[[], object], *, interval_s: float = INTERVAL_S) -> None:
        """`at_start` is called once, in the thread."""
        self._store = store
        self._at_start = at_start
        self._interval_s = interval_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="memdir-housekeeping", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self, *, timeout_s: float = STOP_S) -> bool:
        """End after the step under way (at most 64 rows). Returns whether the thread ended in time."""
        self._stopping.set()
        self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def _loop(self) -> None:
        try:
            self._at_start()
        except Exception:
            log.exception("what an update asks for failed; the next start tries again")
        while not self._stopping.is_set():
            try:
                count = self.tidy()
                if count:
                    log.info("let %d former contents go, which were too old", count)
            except Exception:
                # A full disk or a busy database: the next hour tries again.
                log.exception("housekeeping failed")
            self._stopping.wait(self._interval_s)

    @acting_as(SYSTEM)
    def tidy(self) -> int:
        """One round over all containers. Returns how many versions went."""
        self._store.exports.release_stale()
        self._store.agent_feed.trim_events()
        count, after = 0, 0
        while ids := self._store.versions.containers(after=after, limit=CONTAINERS_PAGE):
            for container_id in ids:
                container = self._store.containers.by_id(container_id)
                while container is not None and not self._stopping.is_set():
                    gone = self._store.versions.prune(container)
                    count += gone
                    if gone < PRUNE_ROWS:
                        break
            after = ids[-1]
        return count
