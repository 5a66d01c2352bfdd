"""The engine of one mount: small machines with a step each, driven by threads in production and by the caller in tests.

Threads: one takes in intents, one follows the feed, WORKERS work on the queue. They sleep on a condition until something
happened or something becomes due.
"""

from __future__ import annotations

import logging
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from memdir.client.errors import ClientError
from memdir.client.remote import Remote
from memdir.core.clock import Clock, SystemClock
from memdir.core.sqlite import Database
from memdir.fs.tree import SyncTree
from memdir.sync.artifacts import Artifacts
from memdir.sync.contents.fetcher import Fetcher
from memdir.sync.contents.retention import Keeper, KeepingPolicy
from memdir.sync.context import Context, host_label, is_view
from memdir.sync.engine_status import EngineStatus, status_of
from memdir.sync.facts import Facts
from memdir.sync.link import Link
from memdir.sync.local_view import LocalView
from memdir.sync.model import Row
from memdir.sync.pull.epochs import Marks
from memdir.sync.pull.puller import Puller
from memdir.sync.pull.repair import Repair
from memdir.sync.pull.scanner import Scanner
from memdir.sync.pull.siblings import Show, Siblings
from memdir.sync.push.intake import agree_on_cut_short, find_unseen, take_in_all, walk
from memdir.sync.push.max_delete import MaxDelete
from memdir.sync.push.processing import Inflight
from memdir.sync.push.pusher import FORBIDDEN_REASON, Pusher
from memdir.sync.push.queue import Queue
from memdir.sync.push.renames import Renames
from memdir.sync.push.unanswered import Sent
from memdir.sync.records import open_records
from memdir.sync.trouble import Troubles
from memdir.sync.unfinished import Left

log = logging.getLogger(__name__)

WORKERS: Final = 8
"""Paths, or batches of small ones, that are pushed at the same time. Threads that wait for the network cost nothing."""
FEED_WAIT_S: Final = 25.0
_GATHER_S: Final = 0.03
"""After an intent, wait this long for its successors: many writes to one path become one row …"""
_GATHER_MANY_S: Final = 0.1
"""… and this long while they come in crowds: a transaction each time would take the interpreter from the filesystem."""
_CROWD: Final = 100
_IDLE_WAIT_S: Final = 5.0
_BUSY_WAIT_S: Final = 0.05
_STEPS_MAX: Final = 100_000
_FLUSH_LOOK_S: Final = 0.25
_TROUBLE_WAIT_S: Final = 1.0
_JOIN_S: Final = 10.0
_CUT_JOIN_S: Final = 1.0
"""Somebody ended the wait: what is on its way then is looked up at the next mount."""
_FEED_JOIN_S: Final = 0.5
_FIRST_TRY_S: Final = 2.0
"""While the server is away, a flush waits this long for one more try to reach it."""


class Engine:
    """Sync of one mount. `start` once, then `stop`; without `start`, `run_until_idle` does it all in the caller's thread."""

    def __init__(
        self,
        *,
        folder: Path,
        container: str,
        tree: SyncTree,
        factory: Callable[[], Remote],
        clock: Clock | None = None,
        rng: random.Random | None = None,
        host: str | None = None,
        is_virtual: Callable[[str], bool] | None = None,
        on_profile: Callable[[int], None] = lambda _: None,
        on_siblings: Callable[[], None] = lambda: None,
        keeping: KeepingPolicy | None = None,
        max_delete: MaxDelete | None = None,
        credentials_stamp: Callable[[], object] | None = None,
        database: Database | None = None,
    ) -> None:
        """Open the records in `folder`/sync.db, or take over the open `database`. Nothing is sent before `start`. With
        `keeping` files arrive without their contents, which are fetched as it says and when they are read; without,
        everything is fetched at once."""
        clock = clock or SystemClock()
        rng = rng or random.SystemRandom()
        self._db = database or open_records(folder)
        facts = Facts(self._db)
        link = Link(factory, clock=clock, rng=rng, stamp=credentials_stamp)
        self.inflight = Inflight(self._db, link, container, clock)
        self._ctx = Context(
            container=container,
            host=host_label(host if host is not None else socket.gethostname()),
            tree=tree,
            facts=facts,
            queue=Queue(self._db, clock=clock, rng=rng),
            sent=Sent(self._db),
            link=link,
            inflight=self.inflight,
            local=LocalView(tree, facts),
            artifacts=Artifacts(self._db, tree, clock),
            clock=clock,
            is_virtual=is_virtual or is_view,
            lazy=keeping is not None,
        )
        self.left = Left(self._ctx)
        self._renames = Renames(self._ctx)
        marks = Marks(self._db)
        self._scanner = Scanner(self._ctx, marks, max_delete or MaxDelete())
        self._puller = Puller(self._ctx, self._renames, self._scanner, marks, on_profile, on_siblings)
        self._repair = Repair(self._ctx, self._puller, rng)
        self.fetcher = Fetcher(self._ctx, self._puller.read_all)
        self.keeper = Keeper(self._ctx, self.fetcher, keeping or KeepingPolicy(prefetch_bytes=None))
        self._pusher = Pusher(self._ctx, self._puller.read_all, self.fetcher, self._announce)
        self._changed = threading.Condition()
        self._events = 0
        """Counts what happened; whoever waits compares it with what it saw last."""
        self._intents, self._hurried = threading.Event(), threading.Event()
        self._stopping = threading.Event()
        self._feed: threading.Thread | None = None
        self._feed_tries = 0
        self._troubles = Troubles()
        self._probing = threading.Lock()
        self._taking_in = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._ctx.link.on_open = self._link_opened
        find_unseen(self._ctx)
        agree_on_cut_short(self._ctx)
        self._scanner.agree_on_arrived()

    # --- life ----------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to sync in the background."""
        self._ctx.tree.listen(self._intents.set)
        self._intents.set()
        self._start_feed()
        loops: list[tuple[str, Callable[[], None]]] = [("intake", self._intake_loop)]
        loops += [(f"worker-{number}", self._worker_loop) for number in range(WORKERS)]
        self._threads = [threading.Thread(target=loop, name=f"sync-{name}", daemon=True) for name, loop in loops]
        for thread in self._threads:
            thread.start()
        self.fetcher.start()
        self.keeper.start()

    def stop(self, *, drain_timeout_s: float = 0.0) -> int:
        """Push what waits for at most `drain_timeout_s`, then end all threads and close. How much is left."""
        self.drain(drain_timeout_s)
        deadline_s = time.monotonic() + (_CUT_JOIN_S if self._stopping.is_set() else _JOIN_S)
        self._stopping.set()
        self._intents.set()
        self._ctx.link.close()
        self._announce()
        self.fetcher.stop()
        self.keeper.stop()
        for thread in self._threads:  # one that sits in a call to a server that hangs touches nothing afterwards
            thread.join(max(0.0, deadline_s - time.monotonic()))
        if self._feed is not None:
            # It may sit in a long poll that nothing can interrupt; it touches nothing after `close`.
            self._feed.join(timeout=_FEED_JOIN_S)
        self._puller.close()
        self._take_in_all()
        left, _ = self._ctx.queue.lengths()
        self._db.close()
        return left

    def drain(self, timeout_s: float) -> int:
        """Hurry, and wait until nothing waits, the server is away, or `timeout_s` is over. How much is left."""
        if timeout_s > 0:
            self.flush("/", timeout_s)
        else:
            self._take_in_all()
        return self._ctx.queue.lengths()[0]

    def reach(self) -> None:
        """Try to reach a server that is away, at once and in the caller's thread; `link.state()` tells how it ended."""
        with self._probing:
            self._ctx.link.hurry()
            self._probe_once()
        self._announce()

    def end_drain(self) -> None:
        """Let a `flush` or `drain` under way return at once."""
        self._stopping.set()
        self._announce()

    def wait_caught_up(self, timeout_s: float) -> bool:
        """Whether all that the server had is known here, waited for at most `timeout_s`; not while the server is away."""
        return self._puller.wait_caught_up(timeout_s, lambda: self._feed_tries > 0 and not self._ctx.link.state().online)

    # --- questions -----------------------------------------------------------------------------------------------

    def status(self) -> EngineStatus:
        return status_of(
            self._ctx, caught_up=self._puller.caught_up.is_set(), trouble=self._troubles.text(),
            prefetching=self.keeper.is_prefetching,
        )  # fmt: skip

    def queue_rows(self, limit: int) -> list[Row]:
        """What waits or is parked, in order of arrival."""
        return self._ctx.queue.rows(limit)

    def parked_rows(self, limit: int) -> list[Row]:
        return self._ctx.queue.rows(limit, state="parked")

    def renames(self, limit: int) -> Sequence[tuple[str, str]]:
        """Renames that wait: old and new path."""
        return [(move.source, move.path) for move in self._ctx.queue.moves(limit)]

    @property
    def seen_seq(self) -> int:
        """The number of the last change that was read from the server's feed."""
        return self._ctx.facts.watermark

    @property
    def last_pushed_seq(self) -> int:
        """The server's number of our newest write in this run."""
        return self._ctx.counters.last_pushed_seq

    @property
    def artifacts(self) -> Artifacts:
        """Folders that stay on this machine."""
        return self._ctx.artifacts

    def take_back_released(self) -> int:
        """Push what is in folders that stayed here and do not any more; how many folders that are."""
        freed = self._ctx.artifacts.released()
        for folder in freed:
            with self._ctx.queue.transaction() as tx:
                self._ctx.queue.add_all(tx, list(walk(self._ctx, folder)))
        if freed:
            self._announce()
        return len(freed)

    def on_their_way(self) -> int:
        """Files that are not pushed, or that the server has not read in full. Counts two small tables."""
        return self._ctx.queue.lengths()[0] + self.inflight.progress().files

    @property
    def link(self) -> Link:
        """The connection, for calls beside the sync (search, profile)."""
        return self._ctx.link

    # --- requests ------------------------------------------------------------------------------------------------

    def flush(self, scope: str, timeout_s: float, *, limit: int = 1000) -> list[str]:
        """Push everything at and below `scope` now, wait at most `timeout_s`; what still waits (at most `limit` paths).

        Returns at once with what waits while the server is away.
        """
        clock, link = self._ctx.clock, self._ctx.link
        begun_s, tries = clock.monotonic_s(), self._feed_tries
        self._hurried.set()
        try:
            self._take_in_all()
            if not link.state().online:
                link.hurry()
            while True:
                self._ctx.queue.hurry(scope)
                seen = self._announce()
                waiting = self._ctx.queue.waiting_under(scope, limit)
                now_s = clock.monotonic_s()
                tried = self._feed_tries > tries or now_s - begun_s > _FIRST_TRY_S
                away = tried and not link.state().online
                left_s = begun_s + timeout_s - now_s
                if not waiting or left_s <= 0 or away or self._stopping.is_set():
                    return waiting
                self._pause(min(left_s, _FLUSH_LOOK_S), seen)
        finally:
            self._hurried.clear()

    def retry(self, path: str | None) -> int:
        """Give parked and delayed paths at and below `path` (None: all) a new try, and what the server failed at; how many."""
        self._ctx.link.hurry()
        count = self._ctx.queue.retry(path) + self.inflight.retry(path)
        self._announce()
        return count

    def confirm_deletions(self) -> int:
        """Delete here what is missing at the server and was held back; how many paths that are."""
        count = self._scanner.confirm_deletions()
        self._announce()
        return count

    def upload_again(self) -> int:
        """Put at the server again what is missing there and was held back; how many paths that are."""
        count = self._scanner.upload_again()
        self._announce()
        return count

    def repair(self) -> int:
        """Compare what is known of the server with its listing, and heal what differs; how many paths did. ClientError."""
        found = self._repair.run()
        self._announce()
        return found

    # --- loops ---------------------------------------------------------------------------------------------------

    def run_until_idle(self) -> None:
        """Everything that can be done now, in this thread, in a fixed order. For tests and the simulator."""
        for _ in range(_STEPS_MAX):
            busy = self._take_in_all() > 0
            try:
                self._puller.read_all()
            except ClientError as error:
                log.debug("feed: %s", error.message)
            busy = self._renames.work_once() or busy
            busy = self._pusher.work_once() or busy
            if not busy:
                return
        raise RuntimeError(f"the engine is not idle after {_STEPS_MAX} steps")

    def close(self) -> None:
        """Close the records of an engine that was never started."""
        self._ctx.link.close()
        self._puller.close()
        self._db.close()

    def _take_in_all(self) -> int:
        with self._taking_in:
            return take_in_all(self._ctx)

    def _intake_loop(self) -> None:
        gather_s = _GATHER_S
        while not self._stopping.is_set():
            self._intents.wait(_IDLE_WAIT_S)
            if not self._hurried.is_set():
                self._stopping.wait(gather_s)
            self._intents.clear()
            try:
                with self._ctx.link.turn.taken():
                    count = self._take_in_all()
                gather_s = _GATHER_MANY_S if count >= _CROWD else _GATHER_S
                if count:
                    self._announce()
                self._troubles.end("intake")
            except Exception as error:  # noqa: BLE001  noted, and tried again
                self._troubles.begin("intake", "changes cannot be noted for the sync", error)
                self._stopping.wait(_TROUBLE_WAIT_S)
                self._intents.set()

    def _start_feed(self) -> None:
        self._feed = threading.Thread(target=self._feed_loop, name="sync-feed", daemon=True)
        self._feed.start()

    def _feed_loop(self) -> None:
        ctx, more = self._ctx, False
        while not self._stopping.is_set() and self._feed is threading.current_thread():
            wait_s = ctx.link.wait_s()
            if wait_s > 0:
                self._pause(wait_s)
                continue
            try:
                wait_s = FEED_WAIT_S if self._puller.caught_up.is_set() and not more else 0.0
                more = False
                with ctx.link.turn.taken():
                    more = self._puller.read_page(wait_s=wait_s) or self._repair.step_if_due()
            except ClientError as error:
                ctx.link.fail(error)
            except Exception as error:  # noqa: BLE001  noted, and tried again
                self._troubles.begin("feed", "the server's changes cannot be applied", error)
                self._stopping.wait(_TROUBLE_WAIT_S)
            else:
                self._troubles.end("feed")
            self._feed_tries += 1
            self._announce()

    def _probe(self) -> None:
        """Try to reach a server that was away. Not left to the feed alone: its thread may still sit in a long poll on a
        connection to a server that died without closing it."""
        if self._probing.acquire(blocking=False):
            try:
                self._probe_once()
            finally:
                self._probing.release()

    def _probe_once(self) -> None:
        self._ctx.link.look_at_credentials_if_due()
        if self._ctx.link.state().online or self._ctx.link.wait_s() > 0:
            return
        try:
            self._puller.read_page(wait_s=0.0)
        except ClientError as error:
            self._ctx.link.fail(error)
        finally:
            self._feed_tries += 1

    def _worker_loop(self) -> None:
        while not self._stopping.is_set():
            seen = self._events
            try:
                self._probe()
                with self._ctx.link.turn.taken():
                    busy = self._renames.work_once()
                    busy = self._pusher.work_once() or busy
                self.inflight.poll_if_due()
            except Exception as error:  # noqa: BLE001  noted, and tried again
                self._troubles.begin("worker", "changes cannot be pushed", error)
                self._stopping.wait(_TROUBLE_WAIT_S)
                continue
            if busy:
                self._troubles.end("worker")
                self._announce()
            else:
                self._pause(self._idle_s(), seen)

    def _idle_s(self) -> float:
        """Until the next row is due; a row that is due and blocked is woken by the end of what blocks it."""
        if not self._ctx.link.is_open():
            return min(max(self._ctx.link.wait_s(), _BUSY_WAIT_S), _IDLE_WAIT_S)
        due_s, poll_s = self._ctx.queue.next_due_s(), self.inflight.wait_s()
        idle_s = _IDLE_WAIT_S if poll_s is None else poll_s
        if due_s is not None:
            idle_s = min(idle_s, due_s - self._ctx.clock.monotonic_s())
        return min(max(idle_s, _BUSY_WAIT_S), _IDLE_WAIT_S)

    def _pause(self, seconds: float, seen: int | None = None) -> None:
        with self._changed:
            known = self._events if seen is None else seen
            self._changed.wait_for(lambda: self._events != known or self._stopping.is_set(), timeout=seconds)

    def _announce(self) -> int:
        """Wake everybody who waits; the number of this event."""
        with self._changed:
            self._events += 1
            self._changed.notify_all()
            return self._events

    def siblings(self, show: Show) -> Siblings:
        """What keeps the texts beside files, and tells `show` of them."""
        return Siblings(self._ctx, self._db, show)

    def _link_opened(self) -> None:
        self.keeper.poke()
        self._ctx.queue.hurry_all()
        self._ctx.queue.retry_parked(FORBIDDEN_REASON)
        feed = self._feed
        if feed is not None and feed is not threading.current_thread() and not self._stopping.is_set():
            self._start_feed()  # the old thread ends with its call
        self._announce()
