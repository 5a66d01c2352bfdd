"""The index of one container: segments in files, the newest ones in memory, and what has changed since they were made.

It follows the store's log of passages. A passage never changes, so what the log tells may be applied twice: passages that are
known are passed over. Where the log does not reach back far enough, and after every start, the container's list of passages is
compared with what is here, and only the difference is read; an index that is made for the first time is the same with nothing
here. So nothing that a file says is believed without the store, whatever happened to either of them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from memdir.retrieval.derived_index import Progress, Told, untold
from memdir.retrieval.lexical import changes
from memdir.retrieval.lexical.build import Part, merged, segment_of
from memdir.retrieval.lexical.changes import Difference
from memdir.retrieval.lexical.files import Files
from memdir.retrieval.lexical.segment import Segment
from memdir.retrieval.lexical.view import View
from memdir.store.passages.log import PassageLog

log = logging.getLogger(__name__)

PAGE: Final = 4_000
"""Passages that are read and put into one segment at a time."""
FLUSH_WORDS: Final = 1_000_000
"""Words in memory (about 10 bytes each) that are written to a file."""
FLUSH_AT_CLOSE_WORDS: Final = 10_000
"""Fewer are read from the store again at the next start, which takes about as long as syncing a file."""
INLINE_WORDS: Final = 30_000
"""Segments in memory of up to this many words together are merged by whoever finds too many of them, in some 10 ms."""
FANOUT: Final = 5
"""Segments of one size that are merged; a search looks into at most FANOUT - 1 of each size."""
WASTE_SHARE: Final = 0.2
WASTE_MIN: Final = 64
"""A segment with more rows than both that are gone or moved is written anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What a search sees. `event_id`: up to where the log was followed; -1: not yet compared with the store."""

    views: tuple[View, ...] = ()
    event_id: int = -1
    names: dict[int, str] = field(default_factory=dict)
    """The file of each segment that has one, by `id(segment)`."""

    def in_file(self, view: View) -> bool:
        return id(view.segment) in self.names


class ContainerIndex:
    """Any thread may call any method. One at a time follows the log, one at a time merges; searches wait for the first only."""

    def __init__(self, container_id: int, feed: PassageLog, files: Files | None) -> None:
        """`files` None: it is kept in memory only."""
        self._container_id = container_id
        self._feed = feed
        self._files = files
        self._following = threading.Lock()
        self._merging = threading.Lock()
        loaded = files.load() if files is not None else []
        self._state = State(
            views=tuple(View(segment=segment) for _, segment in loaded),
            names={id(segment): name for name, segment in loaded},
        )

    @property
    def state(self) -> State:
        """As it is, without following the log."""
        return self._state

    @property
    def is_ready(self) -> bool:
        """Whether it was compared with the store since it was opened."""
        return self._state.event_id >= 0

    @property
    def held(self) -> int:
        """How many passages are here, whether or not they were compared with the store."""
        return sum(view.live for view in self._state.views)

    @property
    def newest(self) -> int:
        """The highest id of a passage that is here; ids only grow."""
        return max((int(view.segment.chunk_ids[-1]) for view in self._state.views if view.segment.size), default=0)

    def lacks(self, most: int) -> bool:
        """Whether the log tells of so many changes that are not here that `most` passages may be missing: each comes with a
        change for every model."""
        return self._feed.bounds()[1] - self._state.event_id > 2 * most

    @property
    def is_due(self) -> bool:
        """Whether `maintain` has something to do."""
        return bool(self._due(self._state, closing=False))

    def current(self) -> tuple[View, ...]:
        """As of every commit before this call."""
        first, last = self._feed.bounds()
        if self._state.event_id >= last:
            return self._state.views
        with self._following:
            if self._state.event_id < last:
                if self._state.event_id < 0 or first > self._state.event_id + 1:
                    self._compare(untold)
                else:
                    self._follow(last)
            return self._state.views

    def compare(self, told: Told = untold) -> None:
        """Compare all with the store, and take over what differs."""
        with self._following:
            self._compare(told)

    def _follow(self, last: int) -> None:
        state = self._state
        added: set[int] = set()
        dropped: set[int] = set()
        moved: set[str] = set()
        for event in self._feed.events(self._container_id, after=state.event_id, until=last):
            if event.kind == "add" and event.chunk_id is not None:
                added.add(event.chunk_id)
            elif event.kind == "drop" and event.chunk_id is not None:
                dropped.add(event.chunk_id)
                added.discard(event.chunk_id)
            elif event.kind == "path" and event.document_id is not None:
                moved.add(event.document_id)
        views = changes.without(state.views, dropped)
        if moved:
            views = changes.placed(views, self._feed.paths(sorted(moved)))
        self._state = replace(state, views=views)
        self._add(sorted(added - changes.known(views, added)), untold, 0)
        self._state = replace(self._state, event_id=last)

    def _compare(self, told: Told) -> None:
        """As of the log's end when it begins; who follows from there applies some changes twice, which changes nothing."""
        _, last = self._feed.bounds()
        self._state = state = replace(self._state, event_id=-1)
        difference = Difference(state.views)
        after = -1
        while page := self._feed.listing(self._container_id, after=after, limit=PAGE):
            after = page[-1].chunk_id
            difference.see(page)
        self._state = replace(state, views=changes.placed(difference.left(), difference.paths))
        self._add(difference.missing, told, difference.seen - len(difference.missing))
        self._state = replace(self._state, event_id=last)

    def _add(self, chunk_ids: Sequence[int], told: Told, done: int) -> None:
        """Read passages that are not here. What is too much for memory goes to files at once."""
        total = done + len(chunk_ids)
        for at in range(0, len(chunk_ids), PAGE):
            passages = self._feed.passages(self._container_id, chunk_ids[at : at + PAGE])
            if passages:
                views = (*self._state.views, View(segment=segment_of(passages)))
                self._state = replace(self._state, views=changes.merged_small(views, self._state.names, INLINE_WORDS, FANOUT))
            if len(chunk_ids) > PAGE:
                while due := self._due(self._state, closing=False):
                    self._replace(due, self._state)
                told(Progress(done=min(total, done + at + PAGE), total=total))

    def maintain(self, *, closing: bool = False) -> bool:
        """One step of looking after the segments: write those in memory to a file, or merge some. Returns whether there was
        something to do. Searches and `current` go on meanwhile."""
        with self._merging:
            state = self._state
            due = self._due(state, closing=closing) if state.event_id >= 0 else []
            if not due:
                return False
            self._replace(due, None)
            return True

    def _due(self, state: State, *, closing: bool) -> list[View]:
        """Views that should become one now; none: all is well."""
        fresh = [view for view in state.views if not state.in_file(view)]
        if not fresh and not state.names:
            return []
        words = sum(len(view.segment.positions) for view in fresh)
        if self._files is not None and words >= (FLUSH_AT_CLOSE_WORDS if closing else FLUSH_WORDS):
            return fresh
        for group in (fresh, [view for view in state.views if state.in_file(view)]):
            for view in group:
                waste = view.segment.size - view.live + len(view.moved)
                if waste > max(WASTE_MIN, WASTE_SHARE * view.segment.size):
                    return [view]
            if same := changes.of_one_size(group, FANOUT):
                return same
        return []

    def _replace(self, old: Sequence[View], locked: State | None) -> None:
        """One segment in place of several. `locked`: the log is not followed meanwhile, by the caller's doing."""
        state = self._state
        to_file = self._files is not None and (
            any(state.in_file(view) for view in old) or sum(len(view.segment.positions) for view in old) >= FLUSH_AT_CLOSE_WORDS
        )
        name, segment = self._made([view for view in old if view.live], to_file=to_file)
        if locked is not None:
            self._install(old, name, segment)
        else:
            with self._following:
                self._install(old, name, segment)

    def _made(self, views: Sequence[View], *, to_file: bool) -> tuple[str, Segment | None]:
        """One segment of views, and the name of its file ('': in memory); None of no views."""
        parts = [Part(segment=view.segment, alive=view.alive, moved=dict(view.moved)) for view in views]
        if not parts:
            return "", None
        if not to_file or self._files is None:
            return "", merged(parts)
        name, sink = self._files.sink()
        with sink:
            return name, merged(parts, sink)

    def _install(self, old: Sequence[View], name: str, segment: Segment | None) -> None:
        state = self._state
        members = {id(view.segment): view for view in old}
        now = [view for view in state.views if id(view.segment) in members]
        kept = [view for view in state.views if id(view.segment) not in members]
        if len(now) == len(old) and segment is not None:
            kept.append(changes.caught_up(segment, [(members[id(view.segment)], view) for view in now]))
        elif len(now) != len(old):  # they were taken away meanwhile: the new one is nobody's
            kept = list(state.views)
            segment = None
            if name and self._files is not None:
                self._files.discard(name)
        names = {id(view.segment): state.names[id(view.segment)] for view in kept if state.in_file(view)}
        if segment is not None and name:
            names[id(segment)] = name
        state = replace(state, views=tuple(kept), names=names)
        if self._files is not None and names != self._state.names:
            self._files.commit([(names[id(view.segment)], view.segment) for view in kept if id(view.segment) in names])
        self._state = state

    def rebuild(self, told: Told = untold) -> None:
        """Make all anew from the store. What is here answers until the new one is whole."""
        with self._merging:
            made = ContainerIndex(self._container_id, self._feed, None)
            made.compare(told)
            with self._following:
                views = made.current()
                name, segment = self._made([view for view in views if view.live], to_file=True)
                kept = () if segment is None else (View(segment=segment),)
                names = {id(segment): name} if segment is not None and name else {}
                if self._files is not None:
                    self._files.commit([(name, segment)] if segment is not None else [])
                self._state = State(views=kept, event_id=made.state.event_id, names=names)

    def verify(self) -> None:
        """CorruptError when the files are not what was written. Nobody writes them meanwhile."""
        with self._following:
            if self._files is not None:
                Files(self._files.folder).read(verify=True)

    def reset(self) -> None:
        """Take all away, files too. The next `current` or `compare` brings it back."""
        with self._merging, self._following:
            self._state = State()
            if self._files is not None:
                self._files.clear()

    def close(self) -> None:
        """Write what is worth it."""
        while self.is_ready and self.maintain(closing=True):
            pass


def memory_bytes(index: ContainerIndex) -> int:
    """What an index holds in memory; files that are mapped are the system's to keep or not."""
    state = index.state
    own = sum(view.segment.size_bytes for view in state.views if not state.in_file(view))
    return own + sum(view.segment.size if view.alive is not None else 0 for view in state.views)
