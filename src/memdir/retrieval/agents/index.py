"""The indexes of agents' memories, one for each container: made when it is first needed, then kept in step with the records."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from memdir.retrieval.agents.postings import Table
from memdir.retrieval.agents.ranking import AgentQuery, Ranked, search, unmatched
from memdir.retrieval.agents.terms import counted
from memdir.store.agentmemories import PAGE_ROWS, AgentMemoryStore

SIMILAR_MAX: Final = 8
SIMILAR_WORDS: Final = 12
SIMILAR_ROWS: Final = 20_000
OPEN_MAX: Final = 64
"""Containers in memory at a time; the least used goes first."""
_DEAD_MIN: Final = 1_000


class AgentIndex:
    """Of one container. Any thread may call; one at a time works."""

    def __init__(self, container_id: int, store: AgentMemoryStore) -> None:
        self._container_id = container_id
        self._store = store
        self._lock = threading.Lock()
        self._table = Table()
        self._event = -1

    def search(self, query: AgentQuery) -> list[Ranked]:
        """As of every commit before this call."""
        with self._lock:
            self._follow()
            return search(self._table, query)

    def unmatched(self, number: int, query: AgentQuery) -> Ranked:
        """The signals of a memory that was found without any of its words."""
        with self._lock:
            self._follow()
            return unmatched(self._table, number, query)

    def touch(self, numbers: Sequence[int]) -> None:
        """Count an access of each memory at once; the store hears of it later."""
        with self._lock:
            self._table.touch(numbers)

    def load(self, *, stopping: Callable[[], bool]) -> None:
        """Read all that is there, unless it has been; `stopping` ends it between pages. Searches wait for it, as they would for
        their own reading."""
        with self._lock:
            if self._event < 0:
                self._load(self._store.last_event(self._container_id), stopping)

    def similar(self, content: str) -> list[int]:
        """Numbers of memories that share the most of the text's rarest words, at most SIMILAR_MAX: what may say the same. The
        cost is bounded by SIMILAR_WORDS words of at most SIMILAR_ROWS memories each."""
        stems, _ = counted(content, ())
        with self._lock:
            self._follow()
            found = sorted(
                (rows for rows, _ in map(self._table.postings, sorted(stems)) if 0 < len(rows) <= SIMILAR_ROWS), key=len
            )[:SIMILAR_WORDS]
            if not found:
                return []
            rows, shared = np.unique(np.concatenate(found), return_counts=True)
            best = np.lexsort((rows, -shared))[:SIMILAR_MAX]
            numbers: list[int] = self._table.numbers.values[rows[best]].tolist()
            return numbers

    def tags(self) -> list[tuple[str, int]]:
        """Keys of tags and how many memories have them, the commonest first."""
        with self._lock:
            self._follow()
            counts = [(key, len(self._table.tagged(key))) for key in self._table.tags]
        return sorted((pair for pair in counts if pair[1]), key=lambda pair: (-pair[1], pair[0]))

    def size_bytes(self) -> int:
        """What the index holds in memory, about."""
        with self._lock:
            self._follow()
            return self._table.size_bytes

    def _follow(self) -> None:
        last = self._store.last_event(self._container_id)
        if last == self._event:
            return
        gap = self._event < 0 or self._store.first_event() > self._event + 1
        if gap or self._table.size > 2 * self._table.live + _DEAD_MIN:
            self._load(last, lambda: False)
            return
        numbers = self._store.events(self._container_id, after=self._event, until=last)
        memories = self._store.indexed(self._container_id, numbers)
        for number in numbers:
            self._table.remove(number)
        self._table.add(memories)
        self._event = last

    def _load(self, last: int, stopping: Callable[[], bool]) -> None:
        """Read all; what changes meanwhile is told by events behind `last` and applied again."""
        table = Table()
        after = -1
        while page := self._store.listing(self._container_id, after=after, limit=PAGE_ROWS):
            after = page[-1].number
            table.add(page)
            if stopping():
                return
        self._table, self._event = table, last


class AgentIndexes:
    """By container. Any thread may call."""

    def __init__(self, store: AgentMemoryStore) -> None:
        self._store = store
        self._lock = threading.Lock()
        self._open: OrderedDict[int, AgentIndex] = OrderedDict()

    def of(self, container_id: int) -> AgentIndex:
        """The container's; nothing is read yet."""
        with self._lock:
            found = self._open.get(container_id)
            if found is None:
                found = self._open[container_id] = AgentIndex(container_id, self._store)
                if len(self._open) > OPEN_MAX:
                    self._open.popitem(last=False)
            self._open.move_to_end(container_id)
            return found
