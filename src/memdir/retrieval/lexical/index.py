"""Indexes of words: one for each container, made when it is first needed and looked after in the background."""

from __future__ import annotations

import logging
import threading
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from memdir.core.errors import CorruptError
from memdir.retrieval import derived_index as index
from memdir.retrieval.derived_index import Told, untold
from memdir.retrieval.hashes import key_of
from memdir.retrieval.lexical import files
from memdir.retrieval.lexical.container import LISTED, Changes, ContainerWords, Snapshot, compared, with_other_words
from memdir.retrieval.lexical.search import found_in
from memdir.store.passages.log import PassageLog
from memdir.store.types import Scope
from memdir.store.upkeep.engine import Finding

log = logging.getLogger(__name__)

NAME: Final = "lexical"
LOADED_AT_ONCE: Final = 2_000
"""Up to so many passages that are new since the last start are read by the first search; more in the background, and searches
see what is there."""
COMPARED_AT_ONCE: Final = 50_000
"""After a start, files of so many passages are compared with the store (7 us each) by the first search."""
OPEN_MAX: Final = 64
"""Containers held open at a time; the least used is closed first."""
_PHRASES_MAX: Final = 128
_COMMIT_EVERY_S: Final = 1.0
"""The background rests between two rounds: a commit costs some 10 ms whatever is in it, and many small ones have to be merged.
Searches add what came meanwhile by themselves."""
_REST_S: Final = 5.0
"""Without a change for so long, what writing needs is let go."""
_IDLE_S: Final = 60.0


class WordIndexes:
    """`LexicalIndex` and `DerivedIndex`."""

    name = NAME

    def __init__(self, feed: PassageLog, data_folder: Path | None) -> None:
        """`data_folder` None: nothing is kept in files."""
        self._feed = feed
        self._folder = data_folder
        self._lock = threading.Lock()
        self._open: OrderedDict[int, ContainerWords] = OrderedDict()
        self._wake = threading.Condition()
        self._wanted: OrderedDict[int, None] = OrderedDict()
        self._closing = False
        self._thread: threading.Thread | None = None

    def search(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Best first, ties by id."""
        own = self._container(scope.container_id)
        if not own.is_ready and not self._takes_long(own, scope.container_id):
            try:
                own.compare()
            except (OSError, ValueError):
                # A full disk, say (tantivy raises ValueError): what is there is searched, and the background tries again.
                log.exception("the index of words of container %d could not be brought up to date", scope.container_id)
        if own.is_due:
            self.follow(scope.container_id)
        if limit <= 0:
            return []
        return found_in(own.current(), own.schema, scope, phrases[:_PHRASES_MAX], limit)

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
        """Bring the index of a container up to date and its files in order, now."""
        own = self._container(container_id)
        while own.step():
            pass
        while own.tidy():
            pass
        own.rest()

    def close(self) -> None:
        """End the work in the background and let the files go."""
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
        restless: set[int] = set()
        while True:
            with self._wake:
                if not self._wanted and not self._closing:
                    self._wake.wait(_REST_S if restless else _IDLE_S)
                if self._closing:
                    return
                wanted, self._wanted = list(self._wanted), OrderedDict()
            try:
                for container_id in wanted:
                    restless.add(container_id)
                    self._bring_up_to_date(container_id)
                if not wanted:
                    self._rest(restless)
            except Exception:
                log.exception("the index of words of one of the containers %s could not be brought up to date", wanted)
            with self._wake:
                self._wake.wait_for(lambda: self._closing, _COMMIT_EVERY_S)

    def _bring_up_to_date(self, container_id: int) -> None:
        own = self._container(container_id)
        while not self._closing and (own.step() or own.tidy()):
            pass

    def _rest(self, restless: set[int]) -> None:
        while restless:
            with self._lock:
                own = self._open.get(restless.pop())
            if own is not None:
                own.rest()

    def _takes_long(self, own: ContainerWords, container_id: int) -> bool:
        """Whether a search would wait long for an index that was not compared with the store yet."""
        passages = self._feed.count(container_id, most=COMPARED_AT_ONCE + 1)
        return passages > COMPARED_AT_ONCE or passages - own.held > LOADED_AT_ONCE

    def _container(self, container_id: int) -> ContainerWords:
        with self._lock:
            own = self._open.get(container_id)
            if own is None:
                own = self._open[container_id] = ContainerWords(container_id, self._feed, self._folder_of(container_id))
                if len(self._open) > OPEN_MAX:
                    self._open.popitem(last=False)[1].close()
            self._open.move_to_end(container_id)
            return own

    def _folder_of(self, container_id: int) -> Path | None:
        return None if self._folder is None else index.folder_of(self._folder, container_id, NAME)

    # What a caretaker asks for.

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        """See `retrieval.derived_index.DerivedIndex`. With `full` every passage is taken apart again and compared. Writes
        nothing: a server may be at work with the files."""
        folder = self._folder_of(container_id)
        with self._lock:
            known = self._open.get(container_id)
        try:
            if folder is not None:
                files.verify(folder)
        except CorruptError as error:
            return [Finding(kind="index-damaged", detail=error.message)]
        snapshot = known.snapshot if known is not None else _on_disk(folder)
        if snapshot is None:
            return []
        first, last = self._feed.bounds()
        told = Changes.of(self._feed.events(container_id, after=first - 1, until=last))
        difference = compared(self._feed, container_id, snapshot)
        moved = difference.moved.keys() - set(map(key_of, told.moved))
        missing, gone = set(difference.missing) - told.added, set(difference.gone) - told.dropped
        wrong: list[int] = []
        after = -1
        while page := self._feed.listing(container_id, after=after, limit=LISTED):
            after = page[-1].chunk_id
            ids = [one.chunk_id for one in (page if full else page[:1])]
            wrong += with_other_words(self._feed, container_id, snapshot, ids)
        if not (gone or missing or moved or wrong):
            return []
        detail = (
            f"container {container_id}: the index of words lacks {len(missing)} passages, holds {len(gone)} that are gone, "
            f"{len(wrong)} with other words, and {len(moved)} documents at another place"
        )
        return [Finding(kind="index-differs", detail=detail)]

    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        """See `retrieval.derived_index.DerivedIndex`."""
        own = self._container(container_id)
        own.rebuild(told)
        own.rest()
        return own.held

    def drop(self, container_id: int) -> None:
        """See `retrieval.derived_index.DerivedIndex`."""
        own = self._container(container_id)
        with self._lock:
            self._open.pop(container_id, None)
        own.reset()

    def containers(self) -> Sequence[int]:
        """See `retrieval.derived_index.DerivedIndex`."""
        return [] if self._folder is None else index.containers_in(self._folder, NAME)


def _on_disk(folder: Path | None) -> Snapshot | None:
    opened = None if folder is None else files.reading(folder)
    if opened is None:
        return None
    opened.config_reader("manual")
    opened.reload()
    return Snapshot(searcher=opened.searcher())
