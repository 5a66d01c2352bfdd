"""The index of one container: in memory, in step with the records, and kept in a file over restarts.

The file holds what a table held when it was written. Who opens it compares numbers and texts with the store and follows the
events since, which also tell of new tags, projects and times; what does not agree is read anew, so that no file is believed
that the store does not bear out. Deleted memories leave the file when it is written anew, at most FORGET_S later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import numpy as np

from memdir.core.errors import BusyError, CorruptError
from memdir.core.paths import ensure_private_dir
from memdir.retrieval.agents import snapshot
from memdir.retrieval.agents.arrays import FileSink, MemorySink, read_arrays
from memdir.retrieval.agents.postings import Table
from memdir.retrieval.agents.ranking import AgentQuery, Ranked, search, unmatched
from memdir.retrieval.agents.snapshot import Moment
from memdir.retrieval.agents.terms import counted
from memdir.retrieval.derived_index import Progress, Told, remove, sweep, untold
from memdir.store.agents.feed import AgentFeed

log = logging.getLogger(__name__)

FILE: Final = "table"
SIMILAR_MAX: Final = 8
SIMILAR_WORDS: Final = 12
SIMILAR_ROWS: Final = 20_000
KEPT_MIN: Final = 2_000
"""Memories of a container that has a file, and is read in the background; fewer are read in a fifth of a second."""
BEHIND_MIN: Final = 5_000
"""Changes since the file was written that are followed at the next start, rather than written when the server ends."""
BEHIND_SHARE: Final = 0.125
FORGET_S: Final = 600.0
LOAD_WAIT_S: Final = 20.0
"""How long a search waits for memories that are being read."""
_STEP_EVENTS: Final = 1_000


class UnreadError(BusyError):
    """The memories of a container are still being read."""


class AgentIndex:
    """Any thread may call; one at a time works with the table."""

    def __init__(
        self,
        container_id: int,
        feed: AgentFeed,
        folder: Path | None,
        *,
        waiting: threading.Semaphore,
        ask_load: Callable[[int], None],
    ) -> None:
        """`folder` None: it is kept in memory only. `waiting` are places for searches that wait until a large container is
        read, which `ask_load` begins."""
        self._container_id = container_id
        self._feed = feed
        self._folder = folder
        self._waiting = waiting
        self._ask_load = ask_load
        self._lock = threading.Lock()
        self._reading = threading.Lock()
        self._loaded = threading.Event()
        self._table = Table()
        self._event = -1
        self._filed_rows = -1
        """Of the table that the file holds, -1: there is no file."""
        self._dead_since_s: float | None = None

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

    def live(self) -> int:
        """How many memories it has."""
        with self._current() as table:
            return table.live

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
        if self._feed.count_up_to(self._container_id, KEPT_MIN) < KEPT_MIN:
            self.load()
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
            if self._dead_since_s is None and len(self._table.dead):
                self._dead_since_s = time.monotonic()
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

    def load(self, checkpoint: Callable[[], None] = lambda: None) -> None:
        """From the file, or all from the store, unless that is done; `checkpoint` is called now and then and may raise."""
        with self._reading:
            if self._event >= 0:
                return
            self._filed_rows = -1
            self._install(*(self._opened() or self._read(untold, checkpoint)))

    def _install(self, table: Table, event: int) -> None:
        """What was read, brought near to the store before searches wait for it."""
        last = self._feed.last_event(self._container_id)
        if event < last and self._known_since(event):
            self._apply(table, event, last)
            event = last
        with self._lock:
            self._table, self._event = table, event
            self._dead_since_s = time.monotonic() if len(table.dead) else None
        self._loaded.set()

    def _read(self, told: Told, checkpoint: Callable[[], None]) -> tuple[Table, int]:
        """All from the store; what changes meanwhile is told by events behind the one that is returned, and applied again."""
        event = self._feed.last_event(self._container_id)
        total = self._feed.count(self._container_id)
        table = Table()
        after = -1
        while page := self._feed.listing(self._container_id, after=after):
            after = page[-1].number
            table.add(page)
            checkpoint()
            told(Progress(done=table.size, total=max(total, table.size)))
        return table, event

    # Files.

    def _opened(self) -> tuple[Table, int] | None:
        """What the file holds, when the store bears it out."""
        if self._folder is None:
            return None
        sweep(self._folder)
        try:
            found = self.from_file()
        except CorruptError as error:
            log.warning("%s; its memories are read again", error.message)
            remove(self._folder)
            return None
        if found is None:
            return None
        table, event = found
        last = self._feed.last_event(self._container_id)
        if last < event or not self._known_since(event):
            return None
        if len(self._feed.events(self._container_id, after=event, until=last)) > max(BEHIND_MIN, table.live):
            return None
        rows = table.size
        self._apply(table, event, last)
        if difference := self.difference(table, last):
            log.warning("the index of agents' memories of container %d %s; it is made anew", self._container_id, difference)
            return None
        self._filed_rows = rows
        return table, last

    def from_file(self) -> tuple[Table, int] | None:
        """The table of the file and its event; None when there is none. CorruptError when it is not what was written."""
        path = None if self._folder is None else self._folder / FILE
        if path is None or not path.exists():
            return None
        return snapshot.opened(read_arrays(path, verify=True), str(path))

    def difference(self, table: Table, event: int) -> str:
        """What a table that was followed up to an event has otherwise than the store, in words; empty: nothing. Takes the
        access counts from the store, of which events do not tell."""
        pages = [np.zeros((0, 3), dtype=np.int64)]
        after = -1
        while page := self._feed.standing(self._container_id, after=after):
            after = page[-1][0]
            pages.append(np.array(page, dtype=np.int64))
        numbers, folded, accesses = np.concatenate(pages).T
        live = np.flatnonzero(table.alive.values)
        live = live[np.argsort(table.numbers.values[live])]
        mine = table.numbers.values[live]
        at = np.minimum(mine.searchsorted(numbers), max(0, len(mine) - 1))
        same = mine[at] == numbers if len(mine) else np.zeros(len(numbers), dtype=bool)
        same[same] = table.folded.values[live[at[same]]] == folded[same]
        counts = table.accesses.values.copy()
        counts[table.dead] = 0
        counts[live[at[same]]] = accesses[same]
        table.count_accesses(counts)
        since = self._feed.events(self._container_id, after=event, until=self._feed.last_event(self._container_id))
        missing, gone = set(numbers[~same].tolist()) - {*since}, set(mine.tolist()) - set(numbers.tolist()) - {*since}
        return f"lacks {len(missing)} memories and holds {len(gone)} that are gone" if missing or gone else ""

    def due(self, *, closing: bool = False) -> bool:
        """Whether `keep` has something to do."""
        with self._lock:
            table, filed = self._table, self._filed_rows
            if self._event < 0:
                return False
            dead = len(table.dead)
            if self._folder is None or (table.live < KEPT_MIN and filed < 0):
                return dead > table.live + KEPT_MIN
            behind = table.size - filed + dead
            most = BEHIND_MIN if closing else max(BEHIND_MIN, BEHIND_SHARE * table.live)
            forget = self._dead_since_s is not None and time.monotonic() - self._dead_since_s >= FORGET_S
            return filed < 0 or behind > most or (forget and not closing)

    def keep(self, checkpoint: Callable[[], None] = lambda: None) -> None:
        """Write the file, and go on with a table over it, without the memories that went. Searches go on meanwhile;
        `checkpoint` is called now and then and may raise."""
        with self._reading:
            with self._lock:
                if self._event < 0:
                    return
                old = self._table
                moment = Moment.of(old, self._event)
            table = self._written(moment, checkpoint)
            rows = table.size
            event = self._event
            self._apply(table, moment.event, event)
            with self._lock:
                if self._event < 0:
                    return
                self._apply(table, event, self._event)
                counts = table.accesses.values.copy()
                counts[:rows] = old.accesses.values[moment.live]
                counts[table.dead] = 0
                table.count_accesses(counts)
                self._table, self._filed_rows = table, rows
                self._dead_since_s = time.monotonic() if len(table.dead) else None

    def _written(self, moment: Moment, checkpoint: Callable[[], None]) -> Table:
        if self._folder is None:
            arrays = snapshot.written(moment, MemorySink(), quiet=self._lock, checkpoint=checkpoint)
        else:
            ensure_private_dir(self._folder)
            with FileSink(self._folder / FILE) as sink:
                arrays = snapshot.written(moment, sink, quiet=self._lock, checkpoint=checkpoint)
        return snapshot.opened(arrays, FILE)[0]

    @property
    def is_forgetting(self) -> bool:
        """Whether the file holds memories that went."""
        return self._filed_rows >= 0 and self._dead_since_s is not None

    def checked(self, *, full: bool) -> str:
        """What the file has otherwise than the store, in words; empty: nothing, or no file. With `full` every memory is taken
        apart again and compared. CorruptError when the file is not what was written."""
        found = self.from_file()
        if found is None:
            return ""
        table, event = found
        last = self._feed.last_event(self._container_id)
        if self._known_since(event):
            self._apply(table, event, last)
        difference = self.difference(table, last)
        if full and not difference:
            fresh = self._read(untold, lambda: None)[0]
            wrong = {*snapshot.marks(table).items()} ^ {*snapshot.marks(fresh).items()}
            difference = f"has {len({number for number, _ in wrong})} memories otherwise" if wrong else ""
        return difference

    def rebuild(self, told: Told, checkpoint: Callable[[], None]) -> None:
        """All anew from the store, and the file; what is here answers meanwhile."""
        with self._reading:
            made = self._read(told, checkpoint)
            self._filed_rows = -1
            self._install(*made)
        if self.due():
            self.keep(checkpoint)
        elif self._folder is not None:
            remove(self._folder)

    def drop(self) -> None:
        """Forget all, the file too."""
        with self._reading, self._lock:
            self._table, self._event, self._filed_rows = Table(), -1, -1
            self._loaded.clear()
            if self._folder is not None:
                remove(self._folder)
