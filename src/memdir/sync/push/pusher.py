"""The worker: claims what waits, plans each path from its three facts, and does it. Pushes go together in batches.

Any number of threads may run `work_once`; the queue gives out only work that does not overlap. Every outcome of every call
ends in exactly one of: settled, plan again, try later, parked with a reason.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Sequence
from typing import Final

from memdir.api.v1 import BatchOperation, FileEntry
from memdir.client.errors import (
    AuthError,
    ClientError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    OfflineError,
    PreconditionFailedError,
    RateLimitedError,
    RejectedError,
)
from memdir.core.limits import FILE_SYNC_MAX_BYTES, KIB, MIB
from memdir.core.sqlite import Connection, DiskFullError
from memdir.fs.errors import FsError
from memdir.fs.tree import LocalChangedError
from memdir.sync.conflicts.merger import Merger
from memdir.sync.contents.fetcher import ContentsGoneError, Fetcher
from memdir.sync.context import Context, is_wire_name
from memdir.sync.folders import Folders
from memdir.sync.local_view import stamp_of
from memdir.sync.model import PLAIN_EPOCH, Fact, Row, Step
from memdir.sync.planner import plan_in_tree
from memdir.sync.pull.applier import Applier, OutdatedError
from memdir.sync.pull.scanner import OTHER_LIFE_KEY, RESCAN_KEY
from memdir.sync.push.intake import noted_fact
from memdir.sync.push.moves import CLAIM_MAX
from memdir.sync.push.operations import (
    Push,
    first_error,
    keeps_contents,
    operation_count,
    operations,
    put_large,
)
from memdir.sync.push.queue import QUIET_S

log = logging.getLogger(__name__)

INLINE_MAX_BYTES: Final = 64 * KIB
"""A larger file is sent in a call of its own: as it is, where a batch has base64, and that is a single step for the
interpreter, in which no other thread is served."""
_BATCH_BYTES: Final = MIB
GONE_REASON: Final = (
    "its contents were only at the server, which was wiped or restored and does not have them; delete the file, or restore them"
)
FORBIDDEN_REASON: Final = "the key may not change this"
"""Such rows get another try with every new connection, which may be one with another key."""
NAME_REASON: Final = "the name is not UTF-8; the server cannot store it. Rename the file"


class Pusher:
    """`read_feed` brings the knowledge of the server up to date, before an outdated plan is made anew; `on_free` tells other
    workers that there is something for them."""

    def __init__(self, ctx: Context, read_feed: Callable[[], object], fetcher: Fetcher, on_free: Callable[[], object]) -> None:
        self._ctx = ctx
        self._fetcher = fetcher
        self._applier = Applier(ctx)
        self._folders = Folders(ctx)
        self._merger = Merger(ctx)
        self._read_feed = read_feed
        self._on_free = on_free

    def work_once(self, limit: int = CLAIM_MAX) -> bool:
        """Do one claim of at most `limit` rows; False when nothing can be done now."""
        ctx = self._ctx
        if not ctx.link.is_open() or not ctx.has_met() or ctx.facts.text(RESCAN_KEY):
            return False
        rows = ctx.queue.claim(limit)
        if not rows:
            return False
        open_rows = {row.path: row for row in rows}
        try:
            if self._work(rows, open_rows):
                # The filesystem has a journal of its own: after a power cut it may hold what nothing here says is agreed on,
                # and what was done to that since would be in conflict with it.
                ctx.queue.settle()
        except DiskFullError:
            raise  # nothing can be noted of any row; the queue frees them
        except Exception as error:
            log.exception("the sync worker failed")
            with ctx.queue.transaction() as tx:
                for row in open_rows.values():
                    ctx.queue.failed(tx, row, f"internal error: {error!r}")
        finally:
            ctx.queue.release(rows)
        return True

    def _work(self, rows: list[Row], open_rows: dict[str, Row]) -> bool:
        """Whether something was decided here, without the server."""
        batch: list[tuple[Push, bytes | None]] = []
        size_bytes = 0
        is_decided = False
        for number, row in enumerate(rows, start=1):
            push = self._guarded(row)
            if push is None:
                is_decided = True
                del open_rows[row.path]
                continue
            if self._can_keep(push):
                batch.append((push, None))
                continue
            if push.entry is not None and push.entry.kind == "file" and push.entry.size > INLINE_MAX_BYTES:
                if batch:
                    self._push_batch(batch, open_rows)
                self._hand_back(rows, number, open_rows)
                self._guard(row, lambda push=push: self._push_large(push))  # type: ignore[misc]
                del open_rows[row.path]
                return is_decided
            content = self._content(push)
            if content is None:
                del open_rows[row.path]
                continue
            batch.append((push, content))
            size_bytes += len(content)
            if size_bytes + INLINE_MAX_BYTES > _BATCH_BYTES:
                self._push_batch(batch, open_rows)
                batch, size_bytes = [], 0
        if batch:
            self._push_batch(batch, open_rows)
        return is_decided

    def _hand_back(self, rows: list[Row], first: int, open_rows: dict[str, Row]) -> None:
        """A large file takes its time: what was claimed behind it is for other workers."""
        rest = rows[first:]
        if not rest:
            return
        with self._ctx.queue.transaction() as tx:
            for row in rest:
                self._ctx.queue.handed_back(tx, row)
        del rows[first:]
        for row in rest:
            del open_rows[row.path]
        self._ctx.queue.release(rest)
        self._on_free()

    # --- planning ------------------------------------------------------------------------------------------------

    def _guarded(self, row: Row) -> Push | None:
        found: list[Push] = []

        def plan_row() -> None:
            push = self._plan(row)
            if push is not None:
                found.append(push)

        self._guard(row, plan_row)
        return found[0] if found else None

    def _guard(self, row: Row, action: Callable[[], None]) -> None:
        """Run `action` for a row; every expected failure becomes the row's next state."""
        ctx = self._ctx
        try:
            action()
        except LocalChangedError as error:
            with ctx.queue.transaction() as tx:
                ctx.queue.failed(tx, row, error.message)
                ctx.queue.again(tx, row, delay_s=QUIET_S)
        except OutdatedError as error:
            self._outdated(row, str(error))
        except FsError as error:
            with ctx.queue.transaction() as tx:
                ctx.queue.failed(tx, row, f"the mount refused it: {error.message}")
        except ClientError as error:
            self._settle_error(row, error)

    def _plan(self, row: Row) -> Push | None:
        """Do the local part of a plan. A Push when the server's part is to be done, else None and the row is settled."""
        ctx, path = self._ctx, row.path
        if ctx.is_excluded(path) or ctx.stays_here(path):
            self._finish(row)
            return None
        since_intent = ctx.tree.newest_intent()  # read first: the entry shows what all of them did
        entry = noted_fact(ctx, path)
        if not is_wire_name(path):
            if entry is None:
                self._finish(row)
            else:
                self._park(row, NAME_REASON)
            return None
        if entry is not None and entry.kind == "file" and entry.size > FILE_SYNC_MAX_BYTES:
            self._park(row, f"larger than {FILE_SYNC_MAX_BYTES // MIB} MiB; it stays in this mount only")
            return None
        local = None if entry is None else ctx.local.fact_of(entry)
        seen_seq = ctx.facts.watermark  # before the facts: none of them is older than this
        remote, base = self._remote_and_base(path)
        if local is not None and remote is None and local.same(base) and ctx.facts.is_held(path):
            self._finish(row)  # missing at the server, and nobody has said yet that it is to go here
            return None
        folders = self._folders
        action = plan_in_tree(local, remote, base, here=lambda: folders.here(path), there=lambda: folders.there(path))
        if row.deep and not action.recursive:
            folders.spread(row)
        match action.step:
            case Step.PUSH | Step.DELETE_REMOTE:
                seq = seen_seq if action.recursive else None
                return self._ready_push(
                    Push(row=row, entry=entry, fact=local, remote=remote, unchanged_since=seq, since_intent=since_intent)
                )
            case Step.ADOPT | Step.NOTHING:
                self._applier.agree(row, entry, remote, since_intent)
            case Step.KEEP | Step.WAIT | Step.RELEASE:
                folders.carry_out(row, action.step)
            case Step.PULL:
                assert remote is not None
                assert action.mode is not None
                self._applier.pull(row, entry, local, remote, action.mode, since_intent)
            case Step.PULL_MODE:
                assert entry is not None
                assert remote is not None
                assert action.mode is not None
                self._applier.pull_mode(row, entry, base, remote, action.mode)
            case Step.DELETE_LOCAL:
                assert entry is not None
                self._applier.delete(row, entry)
            case Step.CONFLICT:
                assert entry is not None
                # Without an entry of its own, a folder of the server stands there: there is nothing to merge with.
                merger = self._merger
                if remote is None or not (merger.recall(row, remote, base) or merger.merge(row, entry, remote, base)):
                    self._applier.conflict(row, entry)
        return None

    def _remote_and_base(self, path: str) -> tuple[Fact | None, Fact | None]:
        """Both stored facts. When the answer to a write of ours was lost, what stands there is ours. What others replaced is
        brought first, where a file that was renamed here still needs it."""
        ctx = self._ctx
        remote, base = ctx.facts.remote_and_base(path)
        if remote is not None and (base is None or base.revision < remote.revision) and ctx.sent.is_ours(path, remote):
            base = remote
            with ctx.queue.transaction() as tx:
                ctx.facts.set_base(tx, path, remote)
                ctx.sent.decided(tx, path, remote.revision)
        if base is not None and base.kind == "file" and not base.same_content(remote):
            self._fetcher.secure(path, base, is_replaced=True)
        return remote, base

    def _ready_push(self, push: Push) -> Push | None:
        """Bring the bytes that the push needs, and those that only the contents it replaces can still give. None when what it
        would push cannot be had."""
        entry, remote = push.entry, push.remote
        if push.unchanged_since is not None and self._ctx.tree.absent_totals().files:
            for path, fact in self._folders.known_facts(push.row.path):
                if fact.kind == "file":
                    self._fetcher.secure(path, fact)
        if remote is not None and remote.kind == "file" and not remote.same_content(push.fact):
            self._fetcher.secure(push.row.path, remote)
        if entry is None or entry.absent_hash is None or self._can_keep(push):
            return push
        try:
            self._fetcher.fetch(entry.ino)
        except ContentsGoneError:
            if self._ctx.facts.number(OTHER_LIFE_KEY):
                self._park(push.row, GONE_REASON)
            else:
                self._applier.give_up(push.row, entry, remote, push.since_intent)
            return None
        now = self._ctx.tree.fact(entry.path)
        if now is None or now.version != entry.version or now.absent_hash is not None:
            raise LocalChangedError(f"{entry.path} changed while its contents were fetched")
        return dataclasses.replace(push, entry=now)

    def _finish(self, row: Row) -> None:
        with self._ctx.queue.transaction() as tx:
            self._ctx.queue.finished(tx, row)

    def _park(self, row: Row, reason: str) -> None:
        log.warning("parked %r: %s", row.path, reason)
        with self._ctx.queue.transaction() as tx:
            self._ctx.queue.parked(tx, row, reason)

    # --- pushing -------------------------------------------------------------------------------------------------

    def _can_keep(self, push: Push) -> bool:
        """A change of the mode needs no contents, but at a server without our API."""
        return keeps_contents(push) and not self._ctx.facts.text("epoch").startswith(PLAIN_EPOCH)

    def _content(self, push: Push) -> bytes | None:
        if push.entry is None:
            return b""
        held: list[bytes] = []
        entry = push.entry
        self._guard(push.row, lambda: held.append(self._ctx.local.content(entry)))
        return held[0] if held else None

    def _push_batch(self, batch: list[tuple[Push, bytes | None]], open_rows: dict[str, Row]) -> None:
        ctx = self._ctx
        batched: list[BatchOperation] = []
        slots: list[int] = []
        """For every push, the index of its last operation."""
        for push, content in batch:
            batched += operations(push, content)
            slots.append(len(batched) - 1)
        new = self._note_sent([push for push, _ in batch])
        try:
            sent = [push for push, content in batch if content is not None and push.fact is not None]
            bulk = ctx.queue.is_import(len(sent), edits=all(push.remote is not None for push in sent))
            results = ctx.link.call(lambda client: client.batch(ctx.container, batched, bulk=bulk))
        except ClientError as error:
            with ctx.queue.transaction() as tx:
                outdated = [self._settle(tx, push.row, error) for push, _ in batch]
            for push, _ in batch:
                del open_rows[push.row.path]
            if any(outdated):
                self._refresh()
            return
        is_outdated = False
        with ctx.queue.transaction() as tx:
            watermark = ctx.facts.watermark
            for (push, _), slot in zip(batch, slots, strict=True):
                failure = first_error(results, slot, operation_count(push))
                if failure is None:
                    self._accepted(tx, push, results[slot].entry, results[slot].seq, watermark)
                else:
                    is_outdated |= self._settle(tx, push.row, failure)
                    self._refused(tx, push, new, failure)
        for push, _ in batch:
            del open_rows[push.row.path]
            self._tell_agreed(push)
        if is_outdated:
            self._refresh()

    def _push_large(self, push: Push) -> None:
        ctx = self._ctx
        new = self._note_sent([push])
        try:
            answer = put_large(ctx, push)
        except ClientError as error:
            with ctx.queue.transaction() as tx:
                self._refused(tx, push, new, error)
            raise
        with ctx.queue.transaction() as tx:
            self._accepted(tx, push, answer, answer.revision, ctx.facts.watermark)
        self._tell_agreed(push)

    def _tell_agreed(self, push: Push) -> None:
        """Of contents that stood at the path before: of others nothing is known yet."""
        if push.fact is not None and push.fact.kind == "file" and push.fact.same_content(push.remote):
            self._ctx.tell_agreed(push.row.path, push.fact.content_hash)

    def _note_sent(self, pushes: Sequence[Push]) -> frozenset[str]:
        """Before sending; gives the paths to which this was not sent before. Not even a power cut may take the notes: what
        stands at the server would pass for another's then. A deletion needs none: that nothing stands there is nobody's."""
        ctx = self._ctx
        noted = [(push, push.fact) for push in pushes if push.fact is not None]
        with ctx.queue.transaction() as tx:
            new = [
                push.row.path
                for push, fact in noted
                if not ctx.sent.note(tx, push.row.path, fact, on_revision=push.on_revision)
            ]
        if noted:
            ctx.queue.settle()
        return frozenset(new)

    def _refused(self, tx: Connection, push: Push, new: frozenset[str], error: ClientError) -> None:
        """What was sent for the first time and is refused stands nowhere: the same from somebody else is not ours."""
        is_answer = isinstance(error, (PreconditionFailedError, ConflictError, NotFoundError))
        if is_answer and push.fact is not None and push.row.path in new:
            self._ctx.sent.refused(tx, push.row.path, push.fact, on_revision=push.on_revision)

    def _accepted(self, tx: Connection, push: Push, entry: FileEntry | None, seq: int | None, watermark: int) -> None:
        """The server did it: that is agreed now. `watermark` is the feed's in this transaction."""
        ctx = self._ctx
        revision = entry.revision if entry is not None else seq
        if revision is None:
            ctx.queue.outdated(tx, push.row, "the server did not say at which revision")
            return
        ctx.sent.decided(tx, push.row.path, revision)
        if push.unchanged_since is not None:
            ctx.facts.set_tombstones_below(tx, push.row.path, revision)
        if push.fact is None:
            ctx.facts.set_tombstone(tx, push.row.path, revision)
            ctx.facts.forget_conflict(tx, push.row.path)
        elif entry is not None and entry.content_hash == push.fact.content_hash:
            agreed = dataclasses.replace(push.fact, revision=revision)
            stamp = stamp_of(push.entry) if push.entry else None
            ctx.facts.set_base(tx, push.row.path, agreed, stamp, since_intent=push.since_intent)
        else:
            ctx.queue.failed(tx, push.row, "the server acknowledged other bytes than were sent")
            return
        if revision <= watermark:
            # The recorded answer of an earlier try: the feed has passed it, and what came after it counts.
            ctx.queue.again(tx, push.row)
        else:
            ctx.queue.finished(tx, push.row)
        ctx.counters.pushed += 1
        ctx.counters.last_synced_ms = ctx.now_ms()
        ctx.counters.last_pushed_seq = max(ctx.counters.last_pushed_seq, revision)

    # --- refusals ------------------------------------------------------------------------------------------------

    def _settle(self, tx: Connection, row: Row, error: ClientError) -> bool:
        """The table of sync.md: what an answer means for a row. True when the feed must be read before planning again."""
        ctx = self._ctx
        if isinstance(error, (PreconditionFailedError, ConflictError, NotFoundError)):
            ctx.queue.outdated(tx, row, error.message)
            return True
        if isinstance(error, RejectedError):
            log.warning("parked %r: %s", row.path, error.message)
            ctx.queue.parked(tx, row, error.message)
        elif isinstance(error, OfflineError):
            ctx.queue.again(tx, row, answered=False)
        elif isinstance(error, RateLimitedError):
            ctx.link.pause(error.retry_after_s)
            ctx.queue.again(tx, row)
        elif isinstance(error, ForbiddenError):
            log.warning("parked %r: %s", row.path, error.message)
            ctx.queue.parked(tx, row, f"{FORBIDDEN_REASON}: {error.message}")
        elif isinstance(error, AuthError):
            ctx.link.fail(error)
            ctx.queue.again(tx, row)
        else:
            ctx.queue.failed(tx, row, error.message)
        return False

    def _settle_error(self, row: Row, error: ClientError) -> None:
        with self._ctx.queue.transaction() as tx:
            outdated = self._settle(tx, row, error)
        if outdated:
            self._refresh()

    def _outdated(self, row: Row, reason: str) -> None:
        with self._ctx.queue.transaction() as tx:
            self._ctx.queue.outdated(tx, row, reason)
        self._refresh()

    def _refresh(self) -> None:
        try:
            self._read_feed()
        except ClientError as error:
            log.info("the feed could not be read: %s", error.message)
