"""Renames as one operation: repeated on the server, and repeated here when the server reports one.

A rename is worth repeating only when both sides agree on everything below the old name and nothing stands at the new one. In
every other case it falls apart into its paths, which are planned one by one: always right, it only costs the uploads.
"""

from __future__ import annotations

import logging

from memdir.api.v1 import MoveRequest
from memdir.client.errors import (
    ClientError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    PreconditionFailedError,
    RejectedError,
)
from memdir.core.sqlite import Connection
from memdir.fs.errors import FsError
from memdir.fs.path import rebase
from memdir.fs.tree import LocalChangedError
from memdir.sync.context import Context, is_wire_name
from memdir.sync.intake import walk
from memdir.sync.model import Move
from memdir.sync.scanner import RESCAN_KEY

log = logging.getLogger(__name__)


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
        """Plan every path of the rename for itself."""
        ctx = self._ctx
        ctx.queue.add_all(tx, ctx.facts.known_under(move.source))
        ctx.queue.add_all(tx, walk(ctx, move.path))
        if not ctx.is_excluded(move.path):
            ctx.queue.add(tx, move.path)
        ctx.queue.drop_move(tx, move)

    def _work(self, move: Move) -> None:
        ctx = self._ctx
        if not self._can_repeat(move):
            with ctx.queue.transaction() as tx:
                self.fall_apart(tx, move)
            return
        base = ctx.facts.base(move.source)
        request = MoveRequest(
            container_tag=ctx.container,
            from_path=move.source,
            to_path=move.path,
            if_match=base.revision if base is not None and base.kind != "dir" else None,
            replace=False,
            idempotency_key=f"{move.key_seed}-move",
        )
        try:
            result = ctx.link.call(lambda client: client.move(request))
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
        ctx.counters.last_pushed_seq = max(ctx.counters.last_pushed_seq, result.seq)
        with ctx.queue.transaction() as tx:
            if result.seq <= ctx.facts.watermark:
                self.fall_apart(tx, move)  # the recorded answer of an earlier try, which the feed has passed
            else:
                ctx.queue.move_answered(tx, move, result.seq)

    def _can_repeat(self, move: Move) -> bool:
        ctx = self._ctx
        return (
            is_wire_name(move.source)
            and is_wire_name(move.path)
            and not ctx.is_excluded(move.source)
            and not ctx.is_excluded(move.path)
            and ctx.facts.has_base(move.source)
            and ctx.facts.is_free(move.path)
            and ctx.facts.in_agreement(move.source)
        )

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
        for moved in walk(ctx, path):
            # A folder that nobody put, and that is there only for what stands in it, stays nobody's.
            if ctx.facts.base(rebase(moved, path, source)) is not None or not self._is_used_folder(moved):
                ctx.queue.add(tx, moved)
        return True

    def _is_used_folder(self, path: str) -> bool:
        entry = self._ctx.tree.fact(path)
        return entry is not None and entry.kind == "dir" and bool(self._ctx.tree.children(path))
