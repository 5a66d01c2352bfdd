"""Keeping the trigram indexes of all containers up to date, on one thread of the server process.

What has to be indexed is the difference between the files there are and the contents the index knows, so nothing is lost
with a process. A search asks `ready`, and reads everything that came after the change it names. An upload waits for nothing
here: the thread rests several times as long as it works, between the steps of an import as well.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from memdir.core.errors import BusyError, MemdirError, NotFoundError
from memdir.core.limits import MIB
from memdir.core.paths import ensure_private_dir
from memdir.retrieval.derived_index import TEMPORARY, DerivedIndex, Progress, Told, remove, replace_synced, untold
from memdir.retrieval.derived_indexes import StoppedError, derived_indexes
from memdir.retrieval.trigrams.index import BUILD_CONTENTS, TrigramIndex, View, read_files
from memdir.retrieval.trigrams.segment import Numbers, trigrams_in
from memdir.server.indexing.extraction import text_beside
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.contents.originals import Position, Text
from memdir.store.store import EVERY_CONTAINER, Store
from memdir.store.upkeep.engine import Finding

log = logging.getLogger(__name__)

FOLDER_NAME: Final = "trigrams"
CONTENT_MAX_BYTES: Final = 64 * MIB
"""Larger files are read by each search."""
BATCH_MAX_BYTES: Final = 8 * MIB
"""Bytes of contents in one new segment: some 20 times as much in memory while it is made, were every trigram another."""
SETTLE_S: Final = 1.0
"""How long changes are collected: every change scanned exactly until then."""
REST: Final = 4.0
"""The thread rests this many times as long as its last step took."""
LARGE: Final = 50_000
"""Contents of a container from which changes are collected longer, since finding what is missing reads all hashes: until there
are CHANGES_MAX, or for COLLECT_S. Searches read them exactly until then."""
CHANGES_MAX: Final = 500
COLLECT_S: Final = 600.0
_REST_MAX_S: Final = 60.0
_LOOKS: Final = 5
"""How often a check looks again at files that change while it reads them."""
STOP_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """The index of a container for all files and the texts beside them as of `position`, but for those in `unread`."""

    view: View
    position: Position
    texts: Mapping[str, str]
    """By the digest of a text: the hash of the contents it was read out of."""
    unread: frozenset[str]
    made_s: float
    """When, on the monotonic clock."""
    is_whole: bool
    """Whether only what is too large is unread; else the rest is on its way."""


class TrigramIndexes:
    """One thread, from `start` to `stop`. Does nothing when another process looks after the folder. For a caretaker a
    `retrieval.derived_index.DerivedIndex`, on both engines."""

    name = "trigrams"

    def __init__(self, store: Store, folder: Path) -> None:
        self._store = store
        self._folder = folder
        self._lock = threading.Lock()
        self._wake = threading.Event()
        self._wake.set()  # what is on the disk is used at once
        self._stopping = threading.Event()
        self._changed: set[int] = {EVERY_CONTAINER}
        self._indexes: dict[int, TrigramIndex] = {}
        self._ready: dict[int, Ready] = {}
        self._building = threading.RLock()
        """Held while files of any container are written."""
        self._elsewhere = False
        """Another process writes here."""
        self._fd: int | None = None
        self._thread = threading.Thread(target=self._loop, name="memdir-trigrams", daemon=True)

    def start(self) -> None:
        """Begin."""
        ensure_private_dir(self._folder)
        fd = os.open(self._folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            self._elsewhere = True
            log.info("another process looks after %s; exact searches of this one read every file", self._folder)
            return
        self._fd = fd
        self._store.listen(self.notify)
        self._thread.start()

    def stop(self, *, timeout_s: float = STOP_S) -> bool:
        """End after the step under way. Returns whether it ended in time; what it was at is done again."""
        self._stopping.set()
        self._wake.set()
        if self._fd is None:
            return True
        self._thread.join(timeout_s)
        ended = not self._thread.is_alive()
        if ended:
            os.close(self._fd)
            self._fd = None
        return ended

    def notify(self, container_id: int) -> None:
        """Something happened in a container. Any thread."""
        with self._lock:
            self._changed.add(container_id)
        self._wake.set()

    def ready(self, container_id: int) -> Ready | None:
        """The index, None while there is none yet."""
        with self._lock:
            return self._ready.get(container_id)

    def _loop(self) -> None:
        while not self._stopping.is_set():
            self._wake.wait(_REST_MAX_S)
            self._stopping.wait(SETTLE_S)
            self._wake.clear()
            began_s = time.thread_time()  # of its work: it rests in between as well
            try:
                self.bring_up_to_date()
            except Exception:
                log.exception("the trigram index could not be brought up to date")
                self._stopping.wait(_REST_MAX_S)
                self._wake.set()
            self._stopping.wait(min(_REST_MAX_S, REST * (time.thread_time() - began_s)))

    @acting_as(SYSTEM)
    def bring_up_to_date(self) -> None:
        """Everything that has changed since the last call."""
        with self._lock:
            changed, self._changed = self._changed, set()
        later: set[int] = set()
        try:
            if EVERY_CONTAINER in changed:
                changed = set(self._store.originals.containers())
                with self._building:
                    self._sweep(changed)
            while changed and not self._stopping.is_set():
                container_id = min(changed)
                with self._building:
                    brought = self._bring(container_id)
                if not brought:
                    later.add(container_id)
                changed.discard(container_id)
        finally:
            with self._lock:
                self._changed |= changed | later

    def _sweep(self, containers: set[int]) -> None:
        for path in self._folder.iterdir():
            if path.name != "lock" and not (path.name.isdecimal() and int(path.name) in containers):
                remove(path)

    def _bring(self, container_id: int) -> bool:
        """Returns False when it is left for later."""
        folder = self._folder / str(container_id)
        position = self._store.originals.position(container_id)
        if position is None:
            self.drop(container_id)
            return True
        known = self.ready(container_id)
        if known is not None and known.is_whole:
            if known.position == position:
                return True
            if _can_wait(known, position):
                return False
        index = self._indexes.get(container_id) or TrigramIndex(folder)
        self._indexes[container_id] = index
        self._fill(container_id, index, position, untold, in_background=True)
        return True

    def _fill(
        self, container_id: int, index: TrigramIndex, position: Position, told: Told, *, in_background: bool = False
    ) -> None:
        """Everything of a container as of `position`, unless the process ends meanwhile. In the background each step is used
        by searches as soon as it is made, and is followed by a rest."""
        wanted = self._store.originals.contents(container_id)
        texts = {_digest(text): text for text in self._store.originals.texts(container_id)}
        wanted.update((digest, text.size_bytes) for digest, text in texts.items())
        sources = {digest: text.content_hash for digest, text in texts.items()}

        def use(*later: str, is_whole: bool) -> None:
            ready = Ready(
                view=index.view, position=position, texts=sources, unread=frozenset(unread.union(later)),
                made_s=time.monotonic(), is_whole=is_whole,
            )  # fmt: skip
            with self._lock:
                self._ready[container_id] = ready

        unread = {digest for digest, size in wanted.items() if size > CONTENT_MAX_BYTES}
        index.keep(lambda digest: digest.hex() in wanted)
        has = index.view.known
        missing = [digest for digest in wanted if digest not in unread and bytes.fromhex(digest) not in has]
        at = 0
        while at < len(missing) and not self._stopping.is_set():
            began_s = time.thread_time()
            taken, size = 0, 0
            while taken < BUILD_CONTENTS and at + taken < len(missing) and (not taken or size < BATCH_MAX_BYTES):
                size += wanted[missing[at + taken]]
                taken += 1
            index.add(self._read(missing[at : at + taken], sources, unread))
            at += taken
            told(Progress(done=at, total=len(missing)))
            if in_background and at < len(missing):
                use(*missing[at:], is_whole=False)
                self._stopping.wait(min(_REST_MAX_S, REST * (time.thread_time() - began_s)))
        if not self._stopping.is_set():
            use(is_whole=True)

    def _read(self, digests: list[str], sources: Mapping[str, str], unread: set[str]) -> Iterator[tuple[bytes, bytes]]:
        for digest in digests:
            try:
                yield bytes.fromhex(digest), self._content(digest, sources)
            except NotFoundError:  # deleted meanwhile
                unread.add(digest)
            except MemdirError as error:
                log.warning("a content is not in the trigram index, and is read by each search: %s", error)
                unread.add(digest)

    def _content(self, digest: str, sources: Mapping[str, str]) -> bytes:
        """The bytes of a file, or of the text beside it."""
        source = sources.get(digest)
        if source is None:
            return self._store.blobs.content(digest)
        text = text_beside(self._store, source)
        if text is None:
            raise NotFoundError("these contents have no text any more")
        return text

    # What a caretaker asks for.

    def check(self, container_id: int, *, full: bool = False) -> Sequence[Finding]:
        """See `DerivedIndex`. Every byte of the files; of the entries the first of each segment is compared with its content,
        or with `full` all. What the index does not know is read by searches, so that it is no finding."""
        folder = self._folder / str(container_id)
        for _ in range(_LOOKS):
            generation, segments, damage = read_files(folder)
            if not damage or read_files(folder)[0] == generation:
                break  # else a server writes there just now
        if damage:
            return [Finding(kind="index-damaged", detail=reason) for reason in damage]
        sources = {_digest(text): text.content_hash for text in self._store.originals.texts(container_id)}
        looked_at = (entry for one in segments for entry in one.trigrams_by_row()[: None if full else 1])
        wrong = sum(self._has_otherwise(entry, sources) for entry in looked_at)
        if not wrong:
            return []
        detail = f"container {container_id}: the index of exact text has {wrong} contents otherwise than the store"
        return [Finding(kind="index-differs", detail=detail)]

    def _has_otherwise(self, entry: tuple[bytes, Numbers | None], sources: Mapping[str, str]) -> bool:
        digest, grams = entry
        try:
            expected = trigrams_in(self._content(digest.hex(), sources))
        except MemdirError:  # deleted, or damaged, which the store's own check says
            return False
        if expected is None or grams is None:
            return expected is not grams
        return not np.array_equal(expected, grams)

    @acting_as(SYSTEM)
    def rebuild(self, container_id: int, *, told: Told = untold) -> int:
        """See `DerivedIndex`."""
        if self._elsewhere:
            raise BusyError("another server process looks after the index of exact text", hint="ask that one")
        with self._building:
            ensure_private_dir(self._folder)
            place, fresh = self._folder / str(container_id), self._folder / f"{container_id}{TEMPORARY}"
            remove(fresh)
            position = self._store.originals.position(container_id)
            if position is None:
                self.drop(container_id)
                return 0
            index = TrigramIndex(fresh)
            self._fill(container_id, index, position, told)
            if self._stopping.is_set():
                raise StoppedError("the process ends")
            remove(place)
            if fresh.exists():
                replace_synced(fresh, place)
            self._indexes[container_id] = TrigramIndex(place)
            return len(index.view.known)

    def drop(self, container_id: int) -> None:
        """See `DerivedIndex`."""
        with self._building:
            with self._lock:
                self._ready.pop(container_id, None)
            self._indexes.pop(container_id, None)
            remove(self._folder / str(container_id))

    def containers(self) -> Sequence[int]:
        """See `DerivedIndex`."""
        found = self._folder.iterdir() if self._folder.is_dir() else ()
        return sorted(int(path.name) for path in found if path.name.isdecimal())

    def close(self) -> bool:
        """See `DerivedIndex`."""
        return self.stop()


def every_index(store: Store) -> tuple[DerivedIndex, ...]:
    """All kinds that are kept in files beside a store, for a process that looks after them while no server writes there."""
    return (*derived_indexes(store), TrigramIndexes(store, store.folder / FOLDER_NAME))


def _can_wait(ready: Ready, position: Position) -> bool:
    """Whether what has come since is left to the searches for now."""
    came = max(position.seq - ready.position.seq, position.texts - ready.position.texts)
    return came < CHANGES_MAX and time.monotonic() - ready.made_s < COLLECT_S and len(ready.view.known) >= LARGE


def _digest(text: Text) -> str:
    """Names a text in the index as its hash names a content: a text that is read again is another."""
    return hashlib.sha256(f"{text.content_hash} {text.version} {text.at_ms}".encode()).hexdigest()
