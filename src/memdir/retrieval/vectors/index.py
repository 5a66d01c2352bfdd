"""The index of vectors beside a SQLite store: every container and model, files made and given up in the background.

A container of up to SEGMENT_MIN passages is held in memory and compared. A larger one has files; what changed since they were
made is held in memory, and when that is much (`_due`) they are made anew while searches go on. Without files, or with damaged
ones, a large container is answered by the store itself, exactly and slowly, until they are there; one of more than COMPARED_MAX
passages not at all, unless the scope is small: its passages are then found by their words, and their vectors judge them.

The bytes of deleted vectors are overwritten in the files within a second or two of the commit (`noticed`), the names of deleted
files go with the next build, which is at most FORGET_S away while the server runs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError
from memdir.retrieval.background import Worker
from memdir.retrieval.derived_index import Progress, Told, containers_in, folder_of, remove, sweep, untold
from memdir.retrieval.vectors.build import build
from memdir.retrieval.vectors.files import DamagedError, manifest_file, tidy
from memdir.retrieval.vectors.port import VectorIndex
from memdir.retrieval.vectors.segment import EXACT_MAX, Segment
from memdir.retrieval.vectors.state import State, opened, wrong_vectors
from memdir.store.passages.reading import is_whole
from memdir.store.passages.vectors import NOTHING_NEAR, Rows
from memdir.store.sqlite.vectors import VectorFeed, VectorReader, VectorRow
from memdir.store.store import Store
from memdir.store.text.words import stem
from memdir.store.types import Matrix, Nearest, Scope
from memdir.store.upkeep.engine import Finding

log = logging.getLogger(__name__)

SEGMENT_MIN: Final = 10_000
"""Passages up to which a container has no files."""
COMPARED_MAX: Final = 30_000
"""Passages of a container without files up to which the store compares them all: .15 s for each model on a quiet machine, and
many times that beside the build of the files."""
FORGET_S: Final = 3_600.0
"""A deleted file's name stays in the files at most this long."""
_BEHIND_MAX: Final = 30_000
"""Rows in memory beside files: 10 ms of a search, 40 MB."""
_MEMORY_MAX_BYTES: Final = 256 << 20
_STATES_MAX: Final = 256
_NOTICED_S: Final = 1.0
"""After a commit, until its container is looked at: commits of one second are looked at together."""
_REST_PER_BUILD: Final = 2.0
"""Builds of one container take at most a third of the time."""
_RETRY_S: Final = 60.0
_CHECKED: Final = 256

Key = tuple[int, str]


class _StoppedError(MemdirError):
    """The index was closed during a build."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Slot:
    """A container and model; whoever works on the state holds the lock."""

    lock: threading.Lock
    state: State | None = None
    counted: int = 0
    """Without a state: passages in the container, all of COMPARED_MAX or fewer have a vector."""
    rests_until_s: float = 0.0


class VectorIndexes:
    """`VectorIndex` and `retrieval.derived_index.DerivedIndex` over a SQLite store. Any thread may call."""

    def __init__(
        self,
        feed: VectorFeed,
        truth: VectorIndex,
        data_folder: Path,
        *,
        named_by: str,
        segment_min: int = SEGMENT_MIN,
        exact_max: int = EXACT_MAX,
        memory_max_bytes: int = _MEMORY_MAX_BYTES,
    ) -> None:
        """`truth` answers what there are no files for (the chunk store). `named_by` is the model that all passages have vectors
        of: its files also hold the words of paths."""
        self._feed = feed
        self._truth = truth
        self._data_folder = data_folder
        self._named_by = named_by
        self._segment_min = segment_min
        self._exact_max = exact_max
        self._memory_max_bytes = memory_max_bytes
        self._lock = threading.Lock()
        self._slots: OrderedDict[Key, _Slot] = OrderedDict()
        self._building = threading.Lock()
        self._worker = Worker("memdir-vectors")

    def start(self, store: Store) -> None:
        """Follow the store's commits, and clear up after processes that ended during a build. Without it an index answers and
        builds, but does nothing by itself."""
        store.listen(self.noticed)
        for container_id in self.containers():
            self._worker.ask(("tidy", container_id), partial(self._tidy, container_id))
            self._worker.ask(("look", container_id), partial(self._look, container_id), after_s=_NOTICED_S)

    @property
    def name(self) -> str:
        """Of its folders."""
        return "vectors"

    def close(self) -> bool:
        """End the background work, a build included, and let the files go. Returns whether it ended in time."""
        ended = self._worker.close()
        with self._lock:
            self._slots.clear()
        return ended

    def settle(self, timeout_s: float) -> bool:
        """Wait until nothing waits to be done in the background; False when that took longer."""
        return self._worker.settle(timeout_s)

    def nearest(self, scope: Scope, query: Matrix, *, model: str, limit: int) -> Nearest:
        """The passages in scope that are closest to `query`: exact up to EXACT_MAX in scope."""
        slot = self._slot(scope.container_id, model)
        with slot.lock:
            state = self._current(slot, scope.container_id, model)
            if state is not None:
                return state.nearest(scope, query, limit) if len(state) else NOTHING_NEAR
        if slot.counted > COMPARED_MAX and self._truth.counted(scope, model=model) is None:
            return replace(NOTHING_NEAR, counted=slot.counted)
        return self._truth.nearest(scope, query, model=model, limit=limit)

    def counted(self, scope: Scope, *, model: str) -> int | None:
        """How many passages in scope have a vector of `model`; the same as `nearest` says."""
        slot = self._slot(scope.container_id, model)
        with slot.lock:
            state = self._current(slot, scope.container_id, model)
            if state is not None:
                return state.counted(scope)
        few = self._truth.counted(scope, model=model)
        return slot.counted if few is None and (is_whole(scope) or slot.counted > COMPARED_MAX) else few

    def cosines(self, container_id: int, chunk_ids: Sequence[int], query: Matrix, *, model: str) -> Matrix:
        """The cosine of each chunk, NaN for one without a vector of `model`."""
        slot = self._slot(container_id, model)
        with slot.lock:
            state = self._current(slot, container_id, model)
            if state is not None:
                return state.cosines(chunk_ids, query)
        return self._truth.cosines(container_id, chunk_ids, query, model=model)

    def named(self, scope: Scope, words: Collection[str], *, model: str, limit: int) -> list[tuple[int, float]]:
        """The first passages of files whose path holds any of `words`."""
        slot = self._slot(scope.container_id, model)
        with slot.lock:
            state = self._current(slot, scope.container_id, model)
            if state is not None and (state.segment is None or state.segment.has_words):
                return state.named(scope, {stem(word) for word in words}, limit)
        if state is None and slot.counted > COMPARED_MAX:
            return []
        return self._truth.named(scope, words, model=model, limit=limit)

    def noticed(self, container_id: int) -> None:
        """Something was committed in a container: soon its index follows, and what was deleted is overwritten, also when nobody
        searches. For `Store.listen`."""
        with self._lock:
            known = any(key[0] == container_id for key in self._slots)
        if known or folder_of(self._data_folder, container_id, self.name).is_dir():
            self._worker.ask(("look", container_id), partial(self._look, container_id), after_s=_NOTICED_S)

    def _slot(self, container_id: int, model: str) -> _Slot:
        """The least used go first when there are too many, or too much is held."""
        key = (container_id, model)
        with self._lock:
            slot = self._slots.get(key)
            if slot is None:
                slot = self._slots[key] = _Slot(lock=threading.Lock())
            self._slots.move_to_end(key)
            held = sum(one.state.size_bytes for one in self._slots.values() if one.state is not None)
            while len(self._slots) > 1 and (held > self._memory_max_bytes or len(self._slots) > _STATES_MAX):
                _, oldest = self._slots.popitem(last=False)
                held -= 0 if oldest.state is None else oldest.state.size_bytes
            return slot

    def _current(self, slot: _Slot, container_id: int, model: str) -> State | None:
        """The state as of every commit before this call, None while there is none and the store must answer. Holds the lock."""
        state = slot.state
        if state is None or state.event_id != self._feed.last():
            with self._feed.reading() as reader:
                if state is not None and state.can_follow(reader):
                    state.follow(reader)
                else:
                    state = slot.state = self._open(reader, slot, container_id, model)
        if state is None:
            return None
        self._ask_erase(state)
        if self._due(state):
            self._ask_build(slot, container_id, model)
        return state

    def _open(self, reader: VectorReader, slot: _Slot, container_id: int, model: str) -> State | None:
        folder = folder_of(self._data_folder, container_id, self.name)
        try:
            state = opened(reader, folder, container_id, model, exact_max=self._exact_max)
        except DamagedError as error:
            log.warning("an index of vectors is made anew: %s", error)
            remove(manifest_file(folder, reader.model_id(model) or 0))
            state = None
        if state is not None:
            return state
        if self._worker.asked(("build", container_id, model)) and slot.counted:
            return None
        number = reader.model_id(model)
        slot.counted = 0 if number is None else reader.count(container_id, number, most=COMPARED_MAX + 1)
        if slot.counted > COMPARED_MAX:
            slot.counted = max(slot.counted, reader.passages(container_id))
        if slot.counted > 2 * self._segment_min:
            self._ask_build(slot, container_id, model)
            return None
        state = State(container_id, number or 0, exact_max=self._exact_max)
        if number is None:
            state.event_id = -1  # reads again with the next write, when the model may have a number
        else:
            state.load(reader)
        return state

    def _due(self, state: State) -> bool:
        """Whether files are to be made (again)."""
        if state.segment is None:
            return len(state) > self._segment_min
        if state.behind > max(self._segment_min, min(len(state) // 8, _BEHIND_MAX)):
            return True
        return state.dead_since_s is not None and time.monotonic() - state.dead_since_s > FORGET_S

    def _ask_erase(self, state: State) -> None:
        segment = state.segment
        rows = None if segment is None else segment.take_dropped()
        if segment is not None and rows is not None and len(rows):
            self._worker.ask(("erase", str(segment.place), int(rows[0]), len(rows)), partial(_erase, segment, rows))

    def _ask_build(self, slot: _Slot, container_id: int, model: str) -> None:
        after_s = max(0.0, slot.rests_until_s - time.monotonic())
        self._worker.ask(("build", container_id, model), partial(self._build_behind, container_id, model), after_s=after_s)

    def _look(self, container_id: int) -> None:
        """In the background: follow what was committed; a container that is gone leaves nothing."""
        folder = folder_of(self._data_folder, container_id, self.name)
        with self._feed.reading() as reader:
            gone = reader.epoch(container_id) is None
            models = () if gone else reader.models(container_id)
        if gone:
            self.drop(container_id)
            return
        for model in models:
            slot = self._slots.get((container_id, model))
            if slot is None and folder.is_dir():
                slot = self._slot(container_id, model)
            if slot is not None:
                with slot.lock:
                    self._current(slot, container_id, model)

    def _tidy(self, container_id: int) -> None:
        """What processes left that ended during a build."""
        with self._building:
            tidy(folder_of(self._data_folder, container_id, self.name))

    def _build_behind(self, container_id: int, model: str) -> None:
        slot = self._slot(container_id, model)
        began_s = time.monotonic()
        try:
            self._build(container_id, model, untold)
        except _StoppedError:
            return
        except (MemdirError, OSError):
            log.exception("the index of vectors of container %d cannot be made; searches go on without it", container_id)
            slot.rests_until_s = time.monotonic() + _RETRY_S
            return
        slot.rests_until_s = time.monotonic() + _REST_PER_BUILD * (time.monotonic() - began_s)

    def _build(self, container_id: int, model: str, told: Told) -> int:
        """Files of what there is now, then go on from them. Returns how many rows there are."""
        folder = folder_of(self._data_folder, container_id, self.name)
        slot = self._slot(container_id, model)
        with self._building:
            with self._feed.reading() as reader:
                number = reader.model_id(model)
                total = 0 if number is None else reader.count(container_id, number)
            if number is None or total <= self._segment_min:
                remove(manifest_file(folder, number or 0))
                tidy(folder)
                with slot.lock:
                    slot.state = None
                return total

            def checkpoint(done: int) -> None:
                if self._worker.closed:
                    raise _StoppedError("the index of vectors is closed")
                told(Progress(done=done, total=max(done, total)))

            rows = _Rows(self._feed, container_id, number)
            with closing(rows.read()) as reading:
                manifest = build(
                    reading, folder, number=number, model=model, stamp=rows.stamp, checkpoint=checkpoint,
                    with_words=model == self._named_by,
                )  # fmt: skip
            if manifest is not None:
                segment = Segment(folder, number, manifest)
                with slot.lock, self._feed.reading() as reader:
                    state = State(container_id, number, exact_max=self._exact_max)
                    state.use(segment)
                    if state.can_follow(reader):
                        state.follow(reader)
                    else:
                        state.compare(reader)
                    slot.state = state
            tidy(folder)
            return 0 if manifest is None else manifest.rows

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        """Files that are not what their manifest says; entries and vectors that are not the store's."""
        folder = folder_of(self._data_folder, container_id, self.name)
        findings: list[Finding] = []
        with self._feed.reading() as reader:
            for model in reader.models(container_id):
                try:
                    state = opened(reader, folder, container_id, model)
                except DamagedError as error:
                    findings.append(Finding(kind="index-damaged", detail=error.message))
                    continue
                if state is not None and state.segment is not None:
                    findings += _differences(reader, state, model, full=full)
        return findings

    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        """Files of every model anew; those of a small container go."""
        with self._feed.reading() as reader:
            models = reader.models(container_id)
        rows = sum(self._build(container_id, model, told) for model in models)
        if not models:
            self.drop(container_id)
        return rows

    def drop(self, container_id: int) -> None:
        """Take the files and the memory of a container away."""
        with self._building:
            with self._lock:
                slots = [slot for key, slot in self._slots.items() if key[0] == container_id]
            for slot in slots:
                with slot.lock:
                    slot.state = None
            folder = folder_of(self._data_folder, container_id, self.name)
            remove(folder)
            sweep(folder.parent)

    def containers(self) -> Sequence[int]:
        """Containers with files."""
        return containers_in(self._data_folder, self.name)


def index_beside(store: Store, *, named_by: str) -> VectorIndexes | None:
    """The index beside a store; None for an engine that searches vectors itself. `close` it before the store."""
    from memdir.store.sqlite.store import SqliteStore

    if not isinstance(store, SqliteStore):
        return None
    return VectorIndexes(VectorFeed(store.db), store.chunks(), store.folder, named_by=named_by)


class _Rows:
    """The rows of a build, of one moment, and what moment that was."""

    def __init__(self, feed: VectorFeed, container_id: int, number: int) -> None:
        self._feed = feed
        self._container_id = container_id
        self._number = number
        self._stamp = ("", 0)

    def read(self) -> Generator[VectorRow, None, None]:
        with self._feed.reading() as reader:
            self._stamp = (reader.epoch(self._container_id) or "", reader.bounds()[1])
            yield from reader.by_path(self._container_id, self._number)

    def stamp(self) -> tuple[str, int]:
        return self._stamp


def _erase(segment: Segment, rows: Rows) -> None:
    try:
        segment.erase(rows)
    except FileNotFoundError:
        log.debug("%s is gone, and with it what was to be overwritten", segment.place)


def _differences(reader: VectorReader, state: State, model: str, *, full: bool) -> list[Finding]:
    """What the files and the log since make of a container, against the store."""
    have = state.chunk_ids()
    lacking, foreign = 0, len(have)
    for chunk_id, _, _ in reader.identities(state.container_id, state.number):
        if chunk_id in have:
            foreign -= 1
        else:
            lacking += 1
    found = []
    if lacking or foreign:
        detail = f"the index of {model} lacks {lacking} passages and has {foreign} that are gone"
        found.append(Finding(kind="index-differs", detail=detail))
    wrong = {"vectors": wrong_vectors(reader, state, rows=None if full else _CHECKED)}
    if full and state.segment is not None:
        wrong["codes"] = state.segment.wrong_codes()
    found += [
        Finding(kind="index-differs", detail=f"{count} {what} in the index of {model} are not the store's")
        for what, count in wrong.items()
        if count
    ]
    return found
