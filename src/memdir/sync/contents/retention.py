"""Which contents are here: a background prefetch up to a limit, and eviction when the cache is full.

It remembers nothing: what is absent and what is not says the filesystem, what was used last is a hint in memory.
Both work in one thread and in small steps; a reader who waits goes first.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import threading
from dataclasses import dataclass
from typing import Final

from memdir.client.errors import ClientError, RejectedError
from memdir.core.limits import FILE_SYNC_MAX_BYTES, MIB, READ_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import LocalFact
from memdir.sync.contents.fetcher import SMALL_MAX_BYTES, ContentsGoneError, Fetcher
from memdir.sync.context import Context
from memdir.sync.local_view import stamp_of
from memdir.sync.model import PLAIN_EPOCH

log = logging.getLogger(__name__)

_TRIM_TO: Final = 0.9
"""Eviction goes down to this share of the limit, and prefetch fills up to a lower one: they must not undo each other."""
_PREFETCH_TO: Final = 0.8
_LOOK_S: Final = 2.0
"""How often the sizes are looked at while nothing else happens."""
_COUNT_SHARE: Final = 200
"""Counting again takes half a percent of the time at most, however many files there are."""
_LEFT_FREE_BYTES: Final = 512 * MIB
"""Prefetch never takes the last of the disk."""
_FAILED_PAUSE_S: Final = 30.0
_PAGE: Final = 256
_REFUSED_MAX: Final = 1000
_EVICT_STEP: Final = 32
_SHARE_MAX_WAIT_S: Final = 1.0
_JOIN_S: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepingPolicy:
    """How much of the contents shall be here. None: no limit; a prefetch of 0: none."""

    cache_bytes: int | None = None
    prefetch_bytes: int | None = 1024 * MIB

    def prefetch_limit_bytes(self) -> float:
        """Contents here, of any origin, up to which prefetch goes on."""
        wanted = float("inf") if self.prefetch_bytes is None else float(self.prefetch_bytes)
        return wanted if self.cache_bytes is None else min(wanted, self.cache_bytes * _PREFETCH_TO)


class Keeper:
    """`start` and `stop`, or `work_once` by hand."""

    def __init__(self, ctx: Context, fetcher: Fetcher, policy: KeepingPolicy) -> None:
        self._ctx = ctx
        self._fetcher = fetcher
        self._policy = policy
        self._poked = threading.Event()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._todo: list[int] = []
        """Absent files to bring next."""
        self._cold: list[int] = []
        """Files to look at next for eviction, the coldest at the end."""
        self._refused: set[tuple[int, int]] = set()
        """Inode and version of what could not be brought; forgotten when it grows too long."""
        self._paused_until_s = 0.0
        self._held = 0
        self._count_at_s = float("-inf")
        self.is_prefetching = False
        if policy.cache_bytes is not None:
            ctx.tree.watch_uses()

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="sync-keeper", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End soon; a fetch under way ends with the link."""
        self._stopping.set()
        self._poked.set()
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def poke(self) -> None:
        """The server is back: look at once."""
        self._paused_until_s = 0.0
        self._poked.set()

    def _run(self) -> None:
        clock = self._ctx.clock
        while not self._stopping.is_set():
            started_s = clock.monotonic_s()
            try:
                busy = self.work_once()
            except Exception:
                log.exception("looking after the cache failed")
                busy = False
                self._paused_until_s = clock.monotonic_s() + _FAILED_PAUSE_S
            self.is_prefetching = busy
            if busy:  # at most half of the time, so that everybody else gets the processor and the server too
                self._stopping.wait(min(clock.monotonic_s() - started_s, _SHARE_MAX_WAIT_S))
            else:
                self._poked.wait(_LOOK_S)
                self._poked.clear()

    def work_once(self) -> bool:
        """One step: evict a few files, or bring one. False when there is nothing to do now."""
        limit = self._policy.cache_bytes
        if limit is None and not (self._policy.prefetch_limit_bytes() and self._ctx.tree.absent_totals().files):
            return False
        held = self._held_bytes()
        if limit is not None and (held > limit or (self._cold and held > limit * _TRIM_TO)):
            if self._evict_some(held - int(limit * _TRIM_TO)):
                return True
        else:
            self._cold = []
        return self._prefetch_some(held)

    def _held_bytes(self) -> int:
        """Counting reads the whole table, so between two counts only what happens here is added up."""
        clock = self._ctx.clock
        started_s = clock.monotonic_s()
        if started_s >= self._count_at_s:
            self._held = self._ctx.tree.held_bytes()
            took_s = clock.monotonic_s() - started_s
            self._count_at_s = started_s + max(_LOOK_S, took_s * _COUNT_SHARE)
        return self._held

    # --- prefetch ------------------------------------------------------------------------------------------------

    def _prefetch_some(self, held_bytes: int) -> bool:
        ctx = self._ctx
        room = self._policy.prefetch_limit_bytes() - held_bytes
        room = min(room, ctx.tree.free_bytes() - _LEFT_FREE_BYTES)
        if room <= 0 or not ctx.link.is_open() or self._fetcher.is_wanted:
            return False
        if ctx.clock.monotonic_s() < self._paused_until_s or not ctx.tree.absent_totals().files:
            return False
        entry = self._next_absent(room)
        if entry is None:
            return False
        held = self._ctx.tree.absent_totals().size_bytes
        try:
            is_small = entry.size <= SMALL_MAX_BYTES
            others = self._fetcher.take_small(self._todo, min(room, READ_MAX_BYTES) - entry.size) if is_small else []
            if not (others and self._fetcher.fetch_together([entry, *others])):
                self._fetcher.fetch(entry.ino)
        except ContentsGoneError as error:
            log.info("prefetch: %s", error.message)
            self._refuse(entry)
            self._fetcher.look_again(entry.ino)
        except RejectedError as error:  # of this file alone
            log.info("prefetch: %s", error.message)
            self._refuse(entry)
        except (FsError, ClientError) as error:  # the disk is full, or the server is away
            log.info("prefetch pauses: %s", error.message)
            self._paused_until_s = ctx.clock.monotonic_s() + _FAILED_PAUSE_S
            return False
        self._held += max(0, held - self._ctx.tree.absent_totals().size_bytes)
        return True

    def _next_absent(self, room_bytes: float) -> LocalFact | None:
        tree = self._ctx.tree
        for refill in (False, True):
            if refill:
                found = tree.absent_files(_PAGE + len(self._refused), max_bytes=int(min(room_bytes, FILE_SYNC_MAX_BYTES)))
                self._todo = [entry.ino for entry in reversed(found) if (entry.ino, entry.version) not in self._refused]
            while self._todo:
                entry = tree.fact_by_number(self._todo.pop())
                if entry is not None and entry.absent_hash is not None and entry.size <= room_bytes:
                    return entry
        return None

    def _refuse(self, entry: LocalFact) -> None:
        if len(self._refused) >= _REFUSED_MAX:
            self._refused.clear()
        self._refused.add((entry.ino, entry.version))

    # --- eviction ------------------------------------------------------------------------------------------------

    def _evict_some(self, surplus_bytes: int) -> bool:
        """Evict until the surplus is gone or a step is done; False when nothing can be evicted."""
        tree = self._ctx.tree
        fresh = not self._cold
        if fresh:
            self._cold = list(reversed(tree.coldest_numbers()))
        evicted = freed = 0
        while self._cold and freed < surplus_bytes and evicted < _EVICT_STEP and not self._stopping.is_set():
            entry = tree.fact_by_number(self._cold.pop())
            content_hash = self._clean_hash(entry) if entry is not None else None
            if entry is not None and content_hash is not None and self._evict(entry, content_hash):
                evicted += 1
                freed += entry.size
        if freed >= surplus_bytes:
            self._cold = []
        self._held -= freed
        return evicted > 0 or (not fresh and bool(self._cold))

    def _clean_hash(self, entry: LocalFact) -> str | None:
        """The hash under which the server has exactly what is here; None when it may not have it, or somebody is at it."""
        ctx = self._ctx
        if entry.kind != "file" or entry.absent_hash is not None or not entry.size or ctx.is_excluded(entry.path):
            return None
        stored = ctx.facts.base_stamp(entry.path)
        if stored is None or stored[0] != stamp_of(entry):
            return None
        remote, base = ctx.facts.remote_and_base(entry.path)
        if remote is None or base is None or not remote.same_content(base) or remote.content_hash != stored[1]:
            return None
        if ctx.queue.row(entry.path) is not None or ctx.queue.is_inflight(entry.path) or ctx.queue.touches_move(entry.path):
            return None
        return stored[1]

    def _evict(self, entry: LocalFact, content_hash: str) -> bool:
        """Evict after a last look at the bytes themselves: a hash that is wrong would lose them."""
        ctx = self._ctx
        digest = hashlib.sha256()
        try:
            for piece in ctx.local.pieces(entry):
                digest.update(piece)
            if digest.hexdigest() != content_hash:
                log.error("%s has other contents than were agreed on; it is kept and compared again", entry.path)
                with ctx.queue.transaction() as tx:
                    ctx.facts.set_base(tx, entry.path, ctx.facts.base(entry.path))
                    ctx.queue.add(tx, entry.path)
                return False
            if not self._can_come_back(entry, content_hash):
                return False
            ctx.tree.evict(entry, content_hash)
        except LocalChangedError:
            return False
        except FsError as error:
            if error.errno != errno.EBUSY:
                log.warning("%s is not evicted: %s", entry.path, error.message)
            return False
        return True

    def _can_come_back(self, entry: LocalFact, content_hash: str) -> bool:
        """A server without our API may keep less than it was given: it has to show the bytes before they go from here."""
        ctx = self._ctx
        if not ctx.facts.text("epoch").startswith(PLAIN_EPOCH):
            return True
        try:
            return ctx.link.call(lambda client: client.gives_back(ctx.container, entry.path, content_hash))
        except ClientError as error:
            log.info("%s is not evicted: %s", entry.path, error.message)
            return False
