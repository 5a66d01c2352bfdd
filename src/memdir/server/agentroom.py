"""What the server keeps in memory for agents' memories: their indexes, accesses that are still to be written, rates."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

from memdir.core.errors import MemdirError
from memdir.retrieval.agents.container import AgentIndex
from memdir.retrieval.agents.index import AgentIndexes
from memdir.retrieval.agents.ranking import SignalWeights
from memdir.server.errors import RateError
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.store import Store

log = logging.getLogger(__name__)

ACCESS_FLUSH_S: Final = 1.0
"""Accesses of so long are written together; a death loses at most these."""
ACCESSES_MAX: Final = 100_000
"""Different memories whose accesses wait; further ones are not counted until the database takes some."""
STORES_PER_MINUTE: Final = 600
"""Pieces that one container takes through `store` and `edit`; an import has no such bound."""
_CONTAINERS_MAX: Final = 10_000


class AgentRoom:
    """Any thread may call."""

    def __init__(
        self, store: Store, *, weights: SignalWeights | None = None, monotonic_s: Callable[[], float] = time.monotonic
    ) -> None:
        """`weights`: for searches that name none."""
        self.weights = weights or SignalWeights()
        self._store = store
        self.indexes = AgentIndexes(store)
        self._monotonic_s = monotonic_s
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._accesses: Counter[int] = Counter()
        self._searches: Counter[int] = Counter()
        self._buckets: OrderedDict[int, tuple[float, float]] = OrderedDict()
        self._thread: threading.Thread | None = None

    def index(self, container_id: int) -> AgentIndex:
        """Of a container."""
        return self.indexes.of(container_id)

    def accessed(self, container_id: int, numbers: Sequence[int]) -> None:
        """A search answered with these. In the index at once, in the database soon."""
        self.index(container_id).touch(numbers)
        with self._lock:
            if len(self._accesses) < ACCESSES_MAX:
                self._accesses.update(numbers)
            self._searches[container_id] += 1
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="memdir-accesses", daemon=True)
                self._thread.start()
        self._wake.set()

    def take(self, container_id: int, pieces: int) -> None:
        """Count what is stored; RateError past STORES_PER_MINUTE."""
        now_s = self._monotonic_s()
        with self._lock:
            left, at_s = self._buckets.get(container_id, (float(STORES_PER_MINUTE), now_s))
            left = min(float(STORES_PER_MINUTE), left + (now_s - at_s) * STORES_PER_MINUTE / 60)
            if left < pieces:
                wait_s = 1 + int((pieces - left) * 60 / STORES_PER_MINUTE)
                raise RateError(
                    f"this container takes {STORES_PER_MINUTE} memories a minute; import takes many at once",
                    retry_after_s=wait_s,
                )
            self._buckets[container_id] = (left - pieces, now_s)
            self._buckets.move_to_end(container_id)
            if len(self._buckets) > _CONTAINERS_MAX:
                self._buckets.popitem(last=False)

    def flush(self) -> None:
        """Write accesses and searches now."""
        with self._lock:
            accesses, self._accesses = self._accesses, Counter()
            searches, self._searches = self._searches, Counter()
        try:
            with acting_as(SYSTEM):
                if accesses:
                    self._store.agents.count_accesses(accesses)
                    accesses.clear()
                for container_id, count in list(searches.items()):
                    container = self._store.containers.by_id(container_id)
                    if container is not None:
                        with acting_as(container.org_id):
                            self._store.agent_usage.count(container_id, searches=count)
                    del searches[container_id]
        except MemdirError as error:  # the database is busy or full: they are tried again with the next ones
            log.warning("accesses of memories could not be written yet: %s", error.message)
            with self._lock:
                self._accesses.update(accesses)
                self._searches.update(searches)

    def close(self) -> bool:
        """Write what waits. Before the store is closed. Returns whether all work ended in time."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()
        return self.indexes.close()

    def _work(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._closing.wait(ACCESS_FLUSH_S)
            self.flush()
