"""The indexes of agents' memories, one for each container: read when they are needed, kept in files, looked after in the
background."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final

from memdir.core.errors import CorruptError, MemdirError
from memdir.retrieval.agents.container import FORGET_S, KEPT_MIN, AgentIndex
from memdir.retrieval.background import Worker
from memdir.retrieval.derived_index import Told, containers_in, folder_of, untold
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.store import EVERY_CONTAINER, Store
from memdir.store.upkeep.engine import Finding

NAME: Final = "agents"
OPEN_MAX: Final = 64
"""Containers in memory at a time; the least used goes first."""
WAITING_MAX: Final = 4
"""Searches that wait for large containers to be read; further ones are told to come again, or no thread would be left."""
_NOTICED_S: Final = 0.5
"""After a commit, until its container is looked at: commits of this time are looked at together."""
_QUIET_S: Final = 5.0
"""Without a further memory, until an import is thought to be over."""
_RETRY_S: Final = 300.0


class _StoppedError(MemdirError):
    """The index was closed while it was read or written."""


class AgentIndexes:
    """By container. Any thread may call. A `retrieval.derived_index.DerivedIndex` where one process owns the store."""

    name = NAME

    def __init__(self, store: Store) -> None:
        self._store = store
        self._feed = store.agent_feed
        self._data_folder: Path | None = None if store.passage_log() is None else store.folder
        self._lock = threading.Lock()
        self._open: OrderedDict[int, AgentIndex] = OrderedDict()
        self._waiting = threading.Semaphore(WAITING_MAX)
        self._worker = Worker("memdir-agents")
        self._rests_until_s: dict[int, float] = {}
        self._grown_to: dict[int, int] = {}
        """The last event, when it was looked at, of containers that are not read."""

    @property
    def in_files(self) -> bool:
        """Whether there can be files. Several processes on one database keep theirs in memory."""
        return self._data_folder is not None

    def start(self) -> None:
        """Read large containers, so that no search waits for that, and follow the store's commits."""
        self._store.listen(self.noticed)
        self._worker.ask("start", self._start)

    def of(self, container_id: int) -> AgentIndex:
        """The container's; nothing is read yet."""
        with self._lock:
            found = self._open.get(container_id)
            if found is None:
                folder = None if self._data_folder is None else folder_of(self._data_folder, container_id, NAME)
                found = AgentIndex(container_id, self._feed, folder, waiting=self._waiting, ask_load=self._ask_load)
                self._open[container_id] = found
                if len(self._open) > OPEN_MAX:
                    self._open.popitem(last=False)
            self._open.move_to_end(container_id)
            return found

    def noticed(self, container_id: int) -> None:
        """Something was committed in a container. For `Store.listen`."""
        with self._lock:
            known = list(self._open) if container_id == EVERY_CONTAINER else [container_id]
        for one in known:
            self.look(one, after_s=_NOTICED_S)

    def look(self, container_id: int, *, after_s: float = 0.0) -> None:
        """Soon, in the background: follow what came in a container, and write its file when that is due."""
        self._worker.ask(("look", container_id), partial(self._look, container_id), after_s=after_s)

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing is to be done in the background; False when that took longer."""
        return self._worker.settle(timeout_s)

    def close(self) -> bool:
        """End the work in the background and write what is worth it. Returns whether it ended in time."""
        ended = self._worker.close()
        with self._lock:
            known = list(self._open.values())
            self._open.clear()
        for one in known if ended else ():
            if one.due(closing=True):
                one.keep()
        return ended

    # In the background.

    def _start(self) -> None:
        with acting_as(SYSTEM):
            for container_id in self._feed.containers():
                if self._feed.count_up_to(container_id, KEPT_MIN) >= KEPT_MIN:
                    self._ask_load(container_id)
            for container_id in self.containers():
                self._look(container_id)

    def _ask_load(self, container_id: int) -> None:
        self._worker.ask(("load", container_id), partial(self._load, container_id))

    def _load(self, container_id: int) -> None:
        with acting_as(SYSTEM):
            try:
                self.of(container_id).load(self._checkpoint)
            except _StoppedError:
                return
            self._look(container_id)

    def _look(self, container_id: int) -> None:
        """A container that is gone leaves nothing."""
        with acting_as(SYSTEM):
            if self._store.containers.by_id(container_id) is None:
                self.drop(container_id)
                return
            with self._lock:
                own = self._open.get(container_id)
            if own is None:
                self._look_unread(container_id)
                return
            self._grown_to.pop(container_id, None)
            own.follow()
            rests = self._rests_until_s.get(container_id, 0.0) > time.monotonic()
            if own.due() and not rests:
                self._keep(container_id, own)
            elif own.is_forgetting:
                self._worker.ask(("forget", container_id), partial(self._look, container_id), after_s=FORGET_S)

    def _look_unread(self, container_id: int) -> None:
        """A large container that was brought in and that nobody searched yet is read when nothing more comes: its first search
        finds the index, and a restart the file."""
        if not self.in_files or self._feed.count_up_to(container_id, KEPT_MIN) < KEPT_MIN:
            return
        last = self._feed.last_event(container_id)
        if self._grown_to.pop(container_id, None) == last:
            self._ask_load(container_id)
        else:
            self._grown_to[container_id] = last
            self.look(container_id, after_s=_QUIET_S)

    def _keep(self, container_id: int, own: AgentIndex) -> None:
        self._rests_until_s[container_id] = time.monotonic() + _RETRY_S
        try:
            own.keep(self._checkpoint)
        except _StoppedError:
            return
        self._rests_until_s.pop(container_id)

    def _checkpoint(self) -> None:
        if self._worker.closed:
            raise _StoppedError("the server ends")

    # What a caretaker asks for.

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        """See `retrieval.derived_index.DerivedIndex`. With `full` every memory is taken apart again and compared."""
        try:
            difference = self.of(container_id).checked(full=full)
        except CorruptError as error:
            return [Finding(kind="index-damaged", detail=error.message)]
        if not difference:
            return []
        detail = f"container {container_id}: the index of agents' memories {difference}"
        return [Finding(kind="index-differs", detail=detail)]

    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        """See `retrieval.derived_index.DerivedIndex`."""
        own = self.of(container_id)
        own.rebuild(told, self._checkpoint)
        return own.live()

    def drop(self, container_id: int) -> None:
        """See `retrieval.derived_index.DerivedIndex`."""
        self.of(container_id).drop()
        with self._lock:
            self._open.pop(container_id, None)

    def containers(self) -> Sequence[int]:
        """See `retrieval.derived_index.DerivedIndex`."""
        return [] if self._data_folder is None else containers_in(self._data_folder, NAME)
