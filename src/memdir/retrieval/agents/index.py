"""The indexes of agents' memories, one for each container, in memory: read when they are needed, followed in the background."""

from __future__ import annotations

import threading
from collections import OrderedDict
from contextlib import suppress
from functools import partial
from typing import Final

from memdir.core.errors import MemdirError
from memdir.retrieval.agents.container import LARGE_MIN, AgentIndex
from memdir.retrieval.background import Worker
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.store import EVERY_CONTAINER, Store

OPEN_MAX: Final = 64
"""Containers in memory at a time; the least used goes first."""
WAITING_MAX: Final = 4
"""Searches that wait for large containers to be read; further ones are told to come again, or no thread would be left."""
_NOTICED_S: Final = 0.5
"""After a commit, until its container is looked at: commits of this time are looked at together."""


class _StoppedError(MemdirError):
    """The index was closed while it was read."""


class AgentIndexes:
    """By container. Any thread may call."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feed = store.agent_feed
        self._lock = threading.Lock()
        self._open: OrderedDict[int, AgentIndex] = OrderedDict()
        self._waiting = threading.Semaphore(WAITING_MAX)
        self._worker = Worker("memdir-agents")

    def start(self) -> None:
        """Read large containers, so that no search waits for that, and follow the store's commits."""
        self._store.listen(self.noticed)
        self._worker.ask("start", self._start)

    def of(self, container_id: int) -> AgentIndex:
        """The container's; nothing is read yet."""
        with self._lock:
            found = self._open.get(container_id)
            if found is None:
                found = AgentIndex(container_id, self._feed, waiting=self._waiting, ask_load=self._ask_load)
                self._open[container_id] = found
                if len(self._open) > OPEN_MAX:
                    self._open.popitem(last=False)
            self._open.move_to_end(container_id)
            return found

    def noticed(self, container_id: int) -> None:
        """Something was committed in a container: it is followed soon, in the background. For `Store.listen`."""
        with self._lock:
            known = [one for one in self._open if container_id in (one, EVERY_CONTAINER)]
        for one in known:
            self._worker.ask(("look", one), partial(self._look, one), after_s=_NOTICED_S)

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is to be done in the background; False when that took longer."""
        return self._worker.settle(timeout_s)

    def close(self) -> bool:
        """End the work in the background. Returns whether it ended in time."""
        ended = self._worker.close()
        with self._lock:
            self._open.clear()
        return ended

    # In the background.

    def _start(self) -> None:
        with acting_as(SYSTEM):
            for container_id in self._feed.containers():
                if self._feed.count_up_to(container_id, LARGE_MIN) >= LARGE_MIN:
                    self._ask_load(container_id)

    def _ask_load(self, container_id: int) -> None:
        self._worker.ask(("load", container_id), partial(self._load, container_id))

    def _load(self, container_id: int) -> None:
        with acting_as(SYSTEM), suppress(_StoppedError):
            self.of(container_id).load(self._checkpoint)

    def _look(self, container_id: int) -> None:
        """A container that is gone leaves nothing."""
        with acting_as(SYSTEM), suppress(_StoppedError):
            if self._store.containers.by_id(container_id) is None:
                with self._lock:
                    self._open.pop(container_id, None)
                return
            own = self.of(container_id)
            own.follow()
            if own.is_mostly_gone:
                own.reload(self._checkpoint)

    def _checkpoint(self) -> None:
        if self._worker.closed:
            raise _StoppedError("the server ends")
