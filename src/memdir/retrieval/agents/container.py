"""The index of one container: in memory, read from the records when first needed, and in step with them by their events."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from memdir.core.errors import BusyError
from memdir.retrieval.agents.postings import Table
from memdir.retrieval.agents.ranking import AgentQuery, Ranked, search, unmatched
from memdir.retrieval.agents.terms import counted
from memdir.store.agents.feed import AgentFeed

SIMILAR_MAX: Final = 8
SIMILAR_WORDS: Final = 12
SIMILAR_ROWS: Final = 20_000
LARGE_MIN: Final = 2_000
"""Memories of a container that is read in the background; fewer are read in a fifth of a second."""
LOAD_WAIT_S: Final = 20.0
"""How long a search waits for memories that are being read."""
_STEP_EVENTS: Final = 1_000


class UnreadError(BusyError):
    """The memories of a container are still being read."""


class AgentIndex:
    """Any thread may call; one at a time works with the table."""

    def __init__(
        self, container_id: int, feed: AgentFeed, *, waiting: threading.Semaphore, ask_load: Callable[[int], None]
    ) -> None:
        """`waiting` are places for searches that wait until a large container is read, which `ask_load` begins."""
        self._container_id = container_id
        self._feed = feed
        self._waiting = waiting
        self._ask_load = ask_load
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._loaded = threading.Event()
        self._table = Table()
        self._event = -1

    def search(self, query: AgentQuery, *, wait_s: float = LOAD_WAIT_S) -> list[Ranked]:
        """As of every commit before this call. UnreadError when a large container is not read within `wait_s`."""
        with self._current(wait_s) as table:
            return search(table, query)

    def unmatched(self, number: int, query: AgentQuery) -> Ranked:
        """The signals of a memory that was found without any of its words."""
        with self._current() as table:
            return unmatched(table, number, query)

    def touch(self, numbers: Sequence[int]) -> None:
        """Count an access of each memory at once; the store hears of it later."""
        with self._lock:
            self._table.touch(numbers)

    def similar(self, content: str) -> list[int]:
        """Numbers of memories that share the most of the text's rarest words, at most SIMILAR_MAX: what may say the same. The
        cost is bounded by SIMILAR_WORDS words of at most SIMILAR_ROWS memories each."""
        stems, _ = counted(content, ())
        with self._current() as table:
            found = sorted((rows for rows, _ in map(table.postings, sorted(stems)) if 0 < len(rows) <= SIMILAR_ROWS), key=len)[
                :SIMILAR_WORDS
            ]
            if not found:
                return []
            rows, shared = np.unique(np.concatenate(found), return_counts=True)
            there = table.alive.values[rows]
            rows, shared = rows[there], shared[there]
            best = np.lexsort((rows, -shared))[:SIMILAR_MAX]
            numbers: list[int] = table.numbers.values[rows[best]].tolist()
            return numbers

    def tags(self) -> list[tuple[str, int, int]]:
        """Keys of tags, how many memories have them and the number of the first of these; the commonest first."""
        found: list[tuple[str, int, int]] = []
        with self._current() as table:
            for key in table.tags:
                rows = table.tagged(key)
                rows = rows[table.alive.values[rows]]
                if len(rows):
                    found.append((key, len(rows), int(table.numbers.values[rows[0]])))
        return sorted(found, key=lambda one: (-one[1], one[0]))

    def size_bytes(self) -> int:
        """What the index holds, about."""
        with self._current() as table:
            return table.size_bytes

    # In step with the store.

    @contextmanager
    def _current(self, wait_s: float = LOAD_WAIT_S) -> Iterator[Table]:
        """The table as of every commit before this call, for this thread alone."""
        while True:
            self._await(wait_s)
            with self._lock:
                if self._follow():
                    yield self._table
                    return

    def _await(self, wait_s: float) -> None:
        """Until the container is read."""
        if self._event >= 0:
            return
        if self._feed.count_up_to(self._container_id, LARGE_MIN) < LARGE_MIN:
            self.load(lambda: None)
            return
        self._ask_load(self._container_id)
        if not self._waiting.acquire(blocking=False):
            raise UnreadError("the memories of this container are being read", hint="try again in some seconds")
        try:
            if not self._loaded.wait(wait_s):
                raise UnreadError("the memories of this container are still being read", hint="try again in some seconds")
        finally:
            self._waiting.release()

    def _follow(self, *, most: int | None = None) -> bool:
        """Up to the newest event, or `most` of the events on the way. False: all has to be read again. Holds the lock."""
        last = self._feed.last_event(self._container_id)
        if last > self._event >= 0 and self._known_since(self._event):
            until = last if most is None else min(last, self._event + most)
            self._apply(self._table, self._event, until)
            self._event = until
        elif last != self._event:
            self._event = -1
            self._loaded.clear()
        return self._event >= 0

    def _known_since(self, event: int) -> bool:
        """Whether the store still tells of all that came behind an event."""
        return self._feed.first_event(self._container_id) <= max(1, event)

    def _apply(self, table: Table, after: int, until: int) -> None:
        numbers = self._feed.events(self._container_id, after=after, until=until)
        for low in range(0, len(numbers), _STEP_EVENTS):
            some = numbers[low : low + _STEP_EVENTS]
            memories = self._feed.indexed(self._container_id, some)
            for number in some:
                table.remove(number)
            table.add(memories)

    def follow(self) -> None:
        """In steps, searches between them: what came since. Nothing for an index that is not read."""
        done = -1
        while done != self._event:
            done = self._event
            with self._lock:
                if done < 0 or not self._follow(most=_STEP_EVENTS):
                    return

    def load(self, checkpoint: Callable[[], None]) -> None:
        """All from the store, unless that is done; `checkpoint` is called now and then and may raise."""
        with self._reading:
            if self._event < 0:
                self._read(checkpoint)

    @property
    def is_mostly_gone(self) -> bool:
        """Whether most rows are of memories that went: they take room, and searches pass them by."""
        with self._lock:
            return self._event >= 0 and len(self._table.dead) > self._table.live + LARGE_MIN

    def reload(self, checkpoint: Callable[[], None]) -> None:
        """All anew, without what went; what is here answers meanwhile."""
        with self._reading:
            self._read(checkpoint)

    def _read(self, checkpoint: Callable[[], None]) -> None:
        """What changes meanwhile is told by events, and applied before searches wait for it."""
        event = self._feed.last_event(self._container_id)
        table = Table()
        after = -1
        while page := self._feed.listing(self._container_id, after=after):
            after = page[-1].number
            table.add(page)
            checkpoint()
        last = self._feed.last_event(self._container_id)
        if event < last and self._known_since(event):
            self._apply(table, event, last)
            event = last
        with self._lock:
            table.take_accesses(self._table)
            self._table, self._event = table, event
        self._loaded.set()
