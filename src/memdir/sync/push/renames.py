"""Renames as one operation: repeated on the server, and repeated here when the server reports one.

A rename is repeated when the server has the same kind of thing at the old name, and at the new one nothing, or only what is to
go. What others changed below meanwhile moves along, and is compared with what stands here once the feed brings the rename. In
every other case it falls apart into its paths, which are planned one by one: always right, it only costs the uploads.
"""

from __future__ import annotations

import logging
from enum import Enum

from memdir.api.v1 import BatchOperation, MoveRequest
from memdir.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PreconditionFailedError,
    RejectedError,
    ServerError,
)
from memdir.client.http import item_error
from memdir.core.sqlite import Connection
from memdir.fs.errors import FsError
from memdir.fs.path import rebase
from memdir.fs.tree import LocalChangedError
from memdir.sync.context import Context, is_wire_name
from memdir.sync.model import Move
from memdir.sync.pull.scanner import RESCAN_KEY
from memdir.sync.push.intake import walk

log = logging.getLogger(__name__)


class Way(Enum):
    """How a rename can be repeated at the server."""

    MOVE = "move"
    CLEARING = "clearing"
    """After a deletion of the folder that stands at the new name."""
    PATHS = "paths"
    """Not at all: each path for itself."""


class Renames:
    """Thread-safe as the queue is: a claimed rename has its paths for itself."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def work_once(self) -> bool:
        """Work on the renames that are due; False when there is none."""
        ctx = self._ctx
        if not ctx.link.is_open() or not ctx.has_met() or ctx.facts.text(RESCAN_KEY):
            return False
        moves = ctx.queue.claim_moves()
        try:
            for move in moves:
                self._work(move)
        finally:
            ctx.queue.release_moves(moves)
        return bool(moves)

    def fall_apart(self, tx: Connection, move: Move) -> None:
        """Plan every path of the rename for itself. When it may have been done, its answer lost, what it brings to the new name
        is ours, whatever stands there by then."""
        ctx = self._ctx
        if move.is_sent:
            for path, fact in ctx.facts.agreed_under(tx, move.source):
                ctx.sent.note(tx, rebase(path, move.source, move.path), fact, on_revision=fact.revision)
        ctx.queue.add_all(tx, ctx.facts.known_under(move.source))
        ctx.queue.add_all(tx, walk(ctx, move.path))
        if not ctx.is_excluded(move.path):
            ctx.queue.add(tx, move.path)
        ctx.queue.drop_move(tx, move)

    def _work(self, move: Move) -> None:
        ctx = self._ctx
        seen_seq = ctx.facts.watermark
        way = self._way(move)
        # Looked at after the number was read: had the feed brought this very rename by then, what stands at the new name now
        # would pass for what is to go.
        if way is Way.PATHS or not ctx.queue.is_waiting(move):
            with ctx.queue.transaction() as tx:
                self.fall_apart(tx, move)
            return
        try:
            if way is Way.CLEARING:
                self._clear(move, seen_seq)
            seq = self._moved(move)
        except (PreconditionFailedError, ConflictError, NotFoundError, RejectedError, ForbiddenError) as error:
            log.info("the server does not rename %s: %s", move.source, error.message)
            with ctx.queue.transaction() as tx:
                self.fall_apart(tx, move)
            return
        except ClientError as error:
            with ctx.queue.transaction() as tx:
                ctx.queue.move_failed(tx, move, error.message)
            return
        ctx.counters.pushed += 1
        ctx.counters.last_synced_ms = ctx.now_ms()
        ctx.counters.last_pushed_seq = max(ctx.counters.last_pushed_seq, seq)
        with ctx.queue.transaction() as tx:
            if seq <= ctx.facts.watermark:
                # The recorded answer of an earlier try, which the feed has passed: what was agreed on moved then.
                ctx.facts.move_base(tx, move.source, move.path, seq)
                self.fall_apart(tx, move)
            else:
                ctx.queue.move_answered(tx, move, seq)

    def _way(self, move: Move) -> Way:
        ctx, facts = self._ctx, self._ctx.facts
        if any(not is_wire_name(path) or ctx.is_excluded(path) for path in (move.source, move.path)):
            return Way.PATHS
        remote, base = facts.remote_and_base(move.source)
        kinds = {None if fact is None else fact.kind for fact in (remote, base)}
        if not facts.has_base(move.source) or (len(kinds) > 1 and not kinds <= {"dir", None}):
            return Way.PATHS
        if "file" in kinds and ctx.tree.fact(move.path) is None and not ctx.queue.is_led_on(move):
            return Way.PATHS  # put aside for a moment, as editors save: what stands at the old name is its next version
        if facts.is_free(move.path):
            return Way.MOVE
        there, agreed = facts.remote_and_base(move.path)
        is_folder = kinds <= {"dir", None} and (there is None or there.kind == "dir")
        stays = facts.below(move.path).stays or (there is not None and not there.same(agreed))
        # Contents that only the folder in the way has would have to be fetched first.
        return Way.PATHS if stays or not is_folder or ctx.tree.absent_totals().files else Way.CLEARING

    def _moved(self, move: Move) -> int:
        """Rename; the number the server gave it. ClientError."""
        ctx = self._ctx
        remote = ctx.facts.remote(move.source)
        request = MoveRequest(
            container_tag=ctx.container,
            from_path=move.source,
            to_path=move.path,
            if_match=remote.revision if remote is not None and remote.kind != "dir" else None,
            replace=False,
            idempotency_key=f"{move.key_seed}-move",
        )
        return ctx.link.call(lambda client: client.move(request)).seq

    def _clear(self, move: Move, seen_seq: int) -> None:
        """A folder was deleted or moved away here, and another took its name: delete it at the server. ClientError."""
        ctx = self._ctx
        deletion = BatchOperation(
            op="delete", path=move.path, recursive=True, if_unchanged_since=seen_seq,
            idempotency_key=f"{move.key_seed}-clear-{seen_seq}",
        )  # fmt: skip
        [result] = ctx.link.call(lambda client: client.batch(ctx.container, [deletion]))
        failure = item_error(result)
        if failure is not None:
            raise failure
        if result.seq is None:
            raise ServerError("the server did not say at which number it deleted")
        with ctx.queue.transaction() as tx:
            ctx.facts.set_tombstones_below(tx, move.path, result.seq)
            ctx.facts.set_tombstone(tx, move.path, result.seq)

    def repeat_here(self, tx: Connection, source: str, path: str, seq: int) -> bool:
        """The server renamed: do the same in the mount when nothing of it is being worked on. The tree compares before it
        moves; what was edited here meanwhile moves along, and is noticed because every moved path is looked at again."""
        ctx = self._ctx
        busy = ctx.queue.is_inflight(source) or ctx.queue.is_inflight(path)
        if busy or ctx.queue.touches_move(source) or ctx.queue.touches_move(path):
            return False
        entry = ctx.tree.fact(source)
        if entry is None or ctx.tree.fact(path) is not None or not ctx.facts.has_base(source):
            return False
        try:
            ctx.tree.move(source, path, expected=entry)
        except (LocalChangedError, FsError) as error:
            log.info("%s is not renamed here: %s", source, error.message)
            return False
        ctx.facts.move_base(tx, source, path, seq)
        ctx.queue.rekey(tx, source, path, delay_s=0.0)
        ctx.queue.add_all(tx, ctx.facts.known_under(source))  # what we put there after the server's rename moved along here
        for moved in walk(ctx, path):
            # A folder that nobody put, and that is there only for what stands in it, stays nobody's.
            if ctx.facts.base(moved) is not None or not self._is_used_folder(moved):
                ctx.queue.add(tx, moved)
        return True

    def _is_used_folder(self, path: str) -> bool:
        entry = self._ctx.tree.fact(path)
        return entry is not None and entry.kind == "dir" and bool(self._ctx.tree.children(path))
