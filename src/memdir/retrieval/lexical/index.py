"""Our own index of words: one for each container, made when it is first needed and looked after in the background."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from memdir.core.errors import CorruptError
from memdir.retrieval import derived_index as index
from memdir.retrieval.derived_index import Told, untold
from memdir.retrieval.lexical.build import segment_of
from memdir.retrieval.lexical.changes import Difference
from memdir.retrieval.lexical.container import PAGE, ContainerIndex, memory_bytes
from memdir.retrieval.lexical.files import Files
from memdir.retrieval.lexical.search import search
from memdir.retrieval.lexical.segment import Rows, Segment
from memdir.retrieval.lexical.terms import wanted
from memdir.retrieval.lexical.view import Parts, View
from memdir.store.passages.log import PassageLog
from memdir.store.types import Scope
from memdir.store.upkeep.engine import Finding

log = logging.getLogger(__name__)

NAME: Final = "lexical"
AT_ONCE_PASSAGES: Final = 50
"""Up to so many passages that are new are read by the search that needs them (.4 ms each); more in the background, and the
store answers for them meanwhile."""
LOADED_AT_ONCE: Final = 2_000
"""The same for the first search after a start."""
COMPARED_AT_ONCE: Final = 50_000
"""After a start, files of so many passages are compared with the store (7 us each) by the first search."""
OPEN_MAX: Final = 256
"""Containers held open at a time; the least used is closed first."""
MEMORY_MAX_BYTES: Final = 256 << 20
"""Of all containers in memory; files that are mapped do not count."""
_PHRASES_MAX: Final = 128
_IDLE_S: Final = 60.0

Ranked = list[tuple[int, float]]
Fallback = Callable[[Scope, Sequence[str], int], Ranked]
Newer = Callable[[Scope, Sequence[str], int, int], Ranked]
"""The same of passages with an id above the last argument."""


class SegmentedIndex:
    """`LexicalIndex` and `DerivedIndex`. Until the index of a large container is whole, `fallback` answers."""

    name = NAME

    def __init__(
        self, feed: PassageLog, data_folder: Path | None, *, fallback: Fallback | None = None, newer: Newer | None = None
    ) -> None:
        """`data_folder` None: nothing is kept in files. Without a `fallback` a search waits until the index is whole, without
        `newer` until it has all that was written."""
        self._newer = newer
        self._feed = feed
        self._folder = data_folder
        self._fallback = fallback
        self._parts = Parts()
        self._lock = threading.Lock()
        self._open: OrderedDict[int, ContainerIndex] = OrderedDict()
        self._wake = threading.Condition()
        self._wanted: OrderedDict[int, None] = OrderedDict()
        self._closing = False
        self._thread: threading.Thread | None = None

    def search(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Best first, ties by path."""
        asked = wanted(phrases[:_PHRASES_MAX])
        if not asked:
            return []
        own = self._container(scope.container_id)
        if own.is_ready:
            if self._newer is not None and own.lacks(AT_ONCE_PASSAGES):
                self.follow(scope.container_id)
                views, newest = own.state.views, own.newest
                found = search(views, self._parts, scope, asked, limit) + self._newer(scope, phrases, limit, newest)
                return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]
        elif self._fallback is not None and self._takes_long(own, scope.container_id):
            self.follow(scope.container_id)
            return self._fallback(scope, phrases, limit)
        views = own.current()
        if own.is_due:
            self.follow(scope.container_id)
        return search(views, self._parts, scope, asked, limit)

    def follow(self, container_id: int) -> None:
        """A container has changed: bring its index up to date in the background. Returns at once."""
        with self._wake:
            if self._closing:
                return
            self._wanted[container_id] = None
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="memdir-words", daemon=True)
                self._thread.start()
            self._wake.notify_all()

    def settle(self, container_id: int) -> None:
        """Bring the index of a container up to date and its segments in order, now."""
        own = self._container(container_id)
        own.current()
        while own.maintain():
            pass

    def close(self) -> None:
        """End the work in the background and write what is worth it."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            for own in self._open.values():
                own.close()
            self._open.clear()

    def _work(self) -> None:
        while True:
            with self._wake:
                while not self._wanted and not self._closing:
                    self._wake.wait(_IDLE_S)
                if self._closing:
                    return
                container_id, _ = self._wanted.popitem(last=False)
            try:
                self._step(container_id)
            except Exception:
                # A full disk, say: searches go on from memory and the store; the next change tries again.
                log.exception("the index of words of container %d could not be brought up to date", container_id)

    def _step(self, container_id: int) -> None:
        own = self._container(container_id)
        own.current()
        while not self._closing and own.maintain():
            pass

    def _takes_long(self, own: ContainerIndex, container_id: int) -> bool:
        """Whether a search would wait long for an index that was not compared with the store yet."""
        passages = self._feed.count(container_id)
        return passages > COMPARED_AT_ONCE or passages - own.held > LOADED_AT_ONCE

    def _container(self, container_id: int) -> ContainerIndex:
        with self._lock:
            own = self._open.get(container_id)
            if own is None:
                own = self._open[container_id] = ContainerIndex(container_id, self._feed, self._files(container_id))
                self._shrink()
            self._open.move_to_end(container_id)
            return own

    def _shrink(self) -> None:
        """Forget the least used containers. What they had in memory only is read from the store again."""
        total = sum(map(memory_bytes, self._open.values()))
        while len(self._open) > 1 and (len(self._open) > OPEN_MAX or total > MEMORY_MAX_BYTES):
            _, oldest = self._open.popitem(last=False)
            total -= memory_bytes(oldest)

    def _files(self, container_id: int) -> Files | None:
        return None if self._folder is None else Files(index.folder_of(self._folder, container_id, NAME))

    # What a caretaker asks for.

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        """See `retrieval.derived_index.DerivedIndex`. With `full` every passage is taken apart again and compared."""
        with self._lock:
            known = self._open.get(container_id)
        files = self._files(container_id)
        try:
            if known is not None:
                known.verify()
            elif files is not None:
                files.read(verify=True)
        except CorruptError as error:
            return [Finding(kind="index-damaged", detail=error.message)]
        own = self._container(container_id)
        views = own.current()
        difference = Difference(views)
        after = -1
        wrong: list[int] = []
        while page := self._feed.listing(container_id, after=after, limit=PAGE):
            after = page[-1].chunk_id
            difference.see(page)
            sample = [one.chunk_id for one in (page if full else page[:1])]
            wrong += _differing(views, segment_of(self._feed.passages(container_id, sample)))
        changed = set(own.current()) != set(views)
        gone = sum(view.live for view in views) - sum(view.live for view in difference.left())
        if changed or not (gone or difference.missing or difference.paths or wrong):
            return []
        detail = (
            f"container {container_id}: the index of words lacks {len(difference.missing)} passages, holds {gone} that are "
            f"gone, {len(wrong)} with other words, and {len(difference.paths)} documents at another place"
        )
        return [Finding(kind="index-differs", detail=detail)]

    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        """See `retrieval.derived_index.DerivedIndex`."""
        own = self._container(container_id)
        own.rebuild(told)
        return sum(view.live for view in own.current())

    def drop(self, container_id: int) -> None:
        """See `retrieval.derived_index.DerivedIndex`."""
        self._container(container_id).reset()
        with self._lock:
            self._open.pop(container_id, None)

    def containers(self) -> Sequence[int]:
        """See `retrieval.derived_index.DerivedIndex`."""
        return [] if self._folder is None else index.containers_in(self._folder, NAME)


def _differing(views: Iterable[View], fresh: Segment) -> list[int]:
    """Passages of a fresh segment whose words a view has otherwise."""
    wrong = []
    for view in views:
        rows = view.segment.rows_of(fresh.chunk_ids)
        if view.alive is not None:
            rows[rows >= 0] = np.where(view.alive[rows[rows >= 0]], rows[rows >= 0], -1)
        wanted_of, found_of = _contents(fresh, np.flatnonzero(rows >= 0)), _contents(view.segment, rows[rows >= 0])
        pairs = zip(fresh.chunk_ids[rows >= 0].tolist(), wanted_of, found_of, strict=True)
        wrong += [chunk_id for chunk_id, one, other in pairs if one != other]
    return wrong


def _contents(segment: Segment, rows: Rows) -> list[tuple[int, int, int]]:
    """Of each row its length, how many words it has, and a sum over words and frequencies that every change shows in."""
    inside = np.isin(segment.rows, rows)
    word = np.repeat(segment.keys, np.diff(segment.starts))[inside]
    place = segment.rows[inside]
    mixed = word * (np.uint64(2) * segment.code_tf[segment.codes[inside]].astype(np.uint64) + np.uint64(1))
    sums = np.zeros(segment.size, dtype=np.uint64)
    np.add.at(sums, place, mixed)
    many = np.bincount(place, minlength=segment.size)
    return [(int(segment.lengths[row]), int(many[row]), int(sums[row])) for row in rows.tolist()]
