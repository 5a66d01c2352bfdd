"""What the server keeps in memory for agents' memories: their indexes, what is still to be counted, rates."""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
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
"""What is counted in so long is written together; a death loses at most this."""
ACCESSES_MAX: Final = 100_000
"""Different memories whose accesses wait; further ones are not counted until the database takes some."""
STORES_PER_MINUTE: Final = 600
"""Pieces that one container takes through `store` and `edit`; an import has no such bound."""
TOLD_MAX: Final = 10_000
"""Blocks of hooks that wait to be written; who brings more waits until they are."""
_CONTAINERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    """A block that a hook was given."""

    container_id: int
    session_id: str
    host: str
    tokens_by_id: Mapping[str, int]


class AgentMemoryState:
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
        self._counts: Counter[tuple[int, str]] = Counter()
        """By container and what is counted."""
        self._told: deque[_Told] = deque()
        self._flushing = threading.Lock()
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
            self._counts[container_id, "searches"] += 1
        self._soon()

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

    def told(self, container_id: int, session_id: str, host: str, tokens_by_id: Mapping[str, int]) -> None:
        """A hook was given these memories for a session. Written soon: a prompt does not wait for the disk."""
        with self._lock:
            self._told.append(_Told(container_id=container_id, session_id=session_id, host=host, tokens_by_id=tokens_by_id))
            crowded = len(self._told) > TOLD_MAX
        if crowded:
            self.flush()
        self._soon()

    def seen(self, container_id: int, session_id: str) -> set[str]:
        """Ids of the memories that a session was told. Who is being written is in both places."""
        with self._lock:
            waiting = [one for one in self._told if (one.container_id, one.session_id) == (container_id, session_id)]
        return self._store.agent_usage.seen(container_id, session_id).union(*(one.tokens_by_id for one in waiting))

    def renewed(self, container_id: int, session_id: str) -> None:
        """A session's context was emptied."""
        self.flush()
        self._store.agent_usage.renewed(container_id, session_id)

    def used(self, container_id: int, memory_ids: Sequence[str]) -> None:
        """A tool read, found, changed or deleted these: see `AgentUsageStore.used`."""
        if self._told:
            self.flush()
        self._store.agent_usage.used(container_id, memory_ids)

    def stored(self, container_id: int, count: int) -> None:
        """A tool stored so many memories."""
        with self._lock:
            self._counts[container_id, "stored"] += count
        self._soon()

    def flush(self) -> None:
        """Write what waits now."""
        with self._flushing:
            with self._lock:
                accesses, self._accesses = self._accesses, Counter()
                counts, self._counts = self._counts, Counter()
                told = list(self._told)
            try:
                with acting_as(SYSTEM):
                    for one in told:
                        self._for_container(
                            one.container_id, self._store.agent_usage.injected, one.session_id, one.host, one.tokens_by_id
                        )
                        with self._lock:
                            self._told.popleft()
                    if accesses:
                        self._store.agents.count_accesses(accesses)
                        accesses.clear()
                    for (container_id, what), count in list(counts.items()):
                        self._for_container(container_id, self._store.agent_usage.count, **{what: count})
                        del counts[container_id, what]
            except MemdirError as error:  # the database is busy or full: they are tried again with the next ones
                log.warning("accesses of memories could not be written yet: %s", error.message)
                with self._lock:
                    self._accesses.update(accesses)
                    self._counts.update(counts)

    def _for_container(self, container_id: int, call: Callable[..., None], *args: object, **named: int) -> None:
        """Nothing for one that is gone."""
        container = self._store.containers.by_id(container_id)
        if container is not None:
            with acting_as(container.org_id):
                call(container_id, *args, **named)

    def close(self) -> bool:
        """Write what waits. Before the store is closed. Returns whether all work ended in time."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join()
        self.flush()
        return self.indexes.close()

    def _soon(self) -> None:
        """Have written what waits."""
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._work, name="memdir-accesses", daemon=True)
                self._thread.start()
        self._wake.set()

    def _work(self) -> None:
        while not self._closing.is_set():
            self._wake.wait()
            self._wake.clear()
            self._closing.wait(ACCESS_FLUSH_S)
            self.flush()
