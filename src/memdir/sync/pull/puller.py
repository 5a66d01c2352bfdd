"""The feed: what the server reports, in its order, becomes the `remote` facts, and the touched paths are looked at.

The watermark moves in the same transaction as the facts. A page is applied only on top of the watermark it was asked for.
An unknown epoch, or a server that counts less than it did, was wiped or restored: then everything is compared again, and
nothing is deleted because of it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from memdir.api.v1 import Change, ChangesPage, FileEntry
from memdir.client.errors import ConflictError, CursorGoneError
from memdir.core.sqlite import Connection
from memdir.fs.path import is_within, rebase
from memdir.sync.context import Context
from memdir.sync.facts import fact_of
from memdir.sync.model import Fact
from memdir.sync.pull.epochs import Marks
from memdir.sync.pull.scanner import FORKED, RESCAN_KEY, Scanner
from memdir.sync.push.renames import Renames

log = logging.getLogger(__name__)

_PAGES_MAX: Final = 100_000
_LOOK_S: Final = 0.25


class Puller:
    """`on_profile` is called with the profile's version whenever it grew, `on_siblings` when new texts stand beside files."""

    def __init__(
        self,
        ctx: Context,
        renames: Renames,
        scanner: Scanner,
        marks: Marks,
        on_profile: Callable[[int], None],
        on_siblings: Callable[[], None] = lambda: None,
    ) -> None:
        self._ctx = ctx
        self._marks = marks
        self._renames = renames
        self._scanner = scanner
        self._on_profile = on_profile
        self._on_siblings = on_siblings
        self._applying = threading.RLock()
        self._closed = False
        self.caught_up = threading.Event()
        """Set once the feed was read to its end after the start."""

    def wait_caught_up(self, timeout_s: float, is_away: Callable[[], bool]) -> bool:
        """Until the feed was read to its end, at most `timeout_s`, and not while the server is away."""
        deadline_s = time.monotonic() + timeout_s
        while not self.caught_up.wait(min(_LOOK_S, max(0.0, deadline_s - time.monotonic()))):
            if is_away() or time.monotonic() >= deadline_s:
                return False
        return True

    def close(self) -> None:
        """Touch the records no more: what a call under way still brings is dropped."""
        with self._applying:
            self._closed = True

    @contextmanager
    def at_rest(self) -> Iterator[bool]:
        """Nothing of the server is applied inside the block. False: the records are closed and must not be touched."""
        with self._applying:
            yield not self._closed

    def read_all(self) -> None:
        """Bring the facts up to date with the server as it is now. ClientError."""
        for _ in range(_PAGES_MAX):
            if not self.read_page(wait_s=0.0):
                return

    def read_page(self, *, wait_s: float) -> bool:
        """Read and apply one page; True when there is more at once. ClientError."""
        ctx = self._ctx
        if self._is_closed():
            return False
        since, epoch = ctx.facts.watermark, ctx.facts.text("epoch")
        if not epoch or ctx.facts.text(RESCAN_KEY):
            self._compare_first()
            return True
        token = self._marks.token(since)
        profile_since = ctx.facts.number("profile_version")
        siblings_since = ctx.facts.number("siblings_told")
        try:
            page = ctx.link.call(
                lambda client: client.changes(
                    ctx.container,
                    since=since,
                    token=token,
                    wait_s=wait_s,
                    profile_since=profile_since,
                    siblings_since=siblings_since,
                )
            )
        except CursorGoneError:
            log.warning("the feed does not reach back to %d: comparing everything", since)
            self.compare_everything("gone")
            return True
        except ConflictError:
            log.warning("number %d of the server's history is another change than before: comparing everything", since)
            self.compare_everything(FORKED)
            return True
        with self._applying:
            if self._is_closed():
                return False
            if ctx.facts.watermark != since or ctx.facts.text("epoch") != epoch:
                return True  # another thread was first
            return self._apply(page, epoch, since)

    def _is_closed(self) -> bool:
        return self._closed

    def _compare_first(self) -> None:
        """Compare once, although several threads find at the same time that it has to be done."""
        with self._applying:
            reason = self._ctx.facts.text(RESCAN_KEY)
            if not self._ctx.facts.text("epoch") or reason:
                self._scan(reason)

    def compare_everything(self, reason: str) -> None:
        """Do it now, and be it after a restart. ClientError: it is tried again before anything is pushed."""
        with self._applying:
            if not self._closed:
                self._scan(reason)

    def _scan(self, reason: str) -> None:
        """Nothing is pushed before the comparison is through, be it after a restart."""
        if reason != self._ctx.facts.text(RESCAN_KEY):
            with self._ctx.queue.transaction() as tx:
                self._ctx.facts.set_value(tx, RESCAN_KEY, reason)
        self._scanner.compare_everything(forked=reason == FORKED)

    def _apply(self, page: ChangesPage, epoch: str, since: int) -> bool:
        ctx = self._ctx
        if page.epoch != epoch or page.last_seq < since:
            log.warning("the server's history is another than before (epoch or count): comparing everything")
            self._scan(FORKED)
            return True
        profile_grew = page.profile_version > ctx.facts.number("profile_version")
        siblings_grew = page.siblings_version > ctx.facts.number("siblings_told")
        if page.changes or profile_grew or siblings_grew or page.last_seq > since:
            with ctx.queue.transaction() as tx:
                if ctx.facts.held_count():
                    for change in page.changes:
                        if change.kind != "delete":
                            ctx.facts.meet_strangers(tx, change.path)
                for change in page.changes:
                    self._note(tx, change)
                watermark = page.changes[-1].seq if page.has_more and page.changes else max(since, page.last_seq)
                ctx.facts.set_value(tx, "watermark", watermark)
                self._marks.note(tx, watermark, page.token)
                ctx.facts.set_value(tx, "profile_version", page.profile_version)
                ctx.facts.set_value(tx, "siblings_told", page.siblings_version)
                ctx.facts.drop_tombstones(tx, watermark)
                for move in ctx.queue.moves(1000):
                    if 0 < move.answered_seq <= watermark and not _brings(page, move.source, move.path):
                        self._renames.fall_apart(tx, move)
            if any(change.kind == "move" for change in page.changes):
                ctx.queue.settle()  # what was renamed here has its new name even after a power cut
        if profile_grew:
            self._on_profile(page.profile_version)
        if siblings_grew:
            self._on_siblings()
        if not page.has_more:
            self.caught_up.set()
        return page.has_more

    def _note(self, tx: Connection, change: Change) -> None:
        ctx = self._ctx
        if change.kind == "put" and change.entry is not None:
            ctx.inflight.note(tx, change.entry)
            if ctx.facts.set_remote(tx, change.path, change.entry):
                base = ctx.facts.base(change.path)
                if base is None or base.revision != change.entry.revision:  # else it is the echo of our own write
                    self._note_ours(tx, change.path, change.entry, base)
                    ctx.queue.add(tx, change.path)
        elif change.kind == "delete":
            ctx.inflight.forget(tx, change.path)
            gone = ctx.facts.delete_remote(tx, change.path, change.seq)
            ctx.queue.add_all(tx, [path for path in gone if not ctx.facts.is_tombstone(path, change.seq)])
        elif change.kind == "move" and change.from_path is not None:
            self._note_move(tx, change.from_path, change.path, change.seq)

    def _note_ours(self, tx: Connection, path: str, entry: FileEntry, base: Fact | None) -> None:
        """Agree on a write of ours whose answer was lost, at its place in the history: what came after it counts."""
        ctx = self._ctx
        remote = fact_of(entry)
        if (base is None or base.revision < remote.revision) and ctx.sent.is_ours(path, remote):
            ctx.facts.set_base(tx, path, remote)
            ctx.sent.decided(tx, path, remote.revision)
        else:
            ctx.sent.overtaken(tx, path, remote.revision)

    def _note_move(self, tx: Connection, source: str, path: str, seq: int) -> None:
        ctx = self._ctx
        ctx.inflight.moved(tx, source, path)
        replaced = ctx.facts.delete_remote(tx, path, seq)
        pairs = ctx.facts.move_remote(tx, source, path, seq)
        ours = ctx.queue.find_move(tx, source, path)
        if ours is not None:
            ctx.facts.move_base(tx, source, path, seq)
            ctx.queue.drop_move(tx, ours)
            # What was changed here has a row of its own; what others changed before the rename is found by comparing.
            ctx.queue.add_all(tx, [source, path, *ctx.facts.differing(tx, path)])
            pairs = []
        elif any(
            is_within(source, move.source) and path == rebase(source, move.source, move.path) for move in ctx.queue.moves(1000)
        ):
            ctx.facts.move_base(tx, source, path, seq)  # a part of our own rename, where a server does it in parts
        else:
            self._renames.repeat_here(tx, source, path, seq)
        ctx.queue.add_all(tx, replaced)
        ctx.facts.agree_on_sent(tx, path, seq)
        for old, new in pairs:
            # Even after a rename that went through on both sides: comparing is cheap, and something may have got between.
            ctx.queue.add(tx, old)
            ctx.queue.add(tx, new)


def _brings(page: ChangesPage, source: str, path: str) -> bool:
    return any(change.kind == "move" and (change.from_path, change.path) == (source, path) for change in page.changes)
