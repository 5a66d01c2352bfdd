"""What waits in the queue, said so that a person understands it: what would be done, since when, and why it is not done yet.

Nothing is read or hashed for it: what would be done is told from versions and revisions, and is called a comparison where only
the contents themselves could tell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from memdir.sync.local_view import shared_mode, stamp_of
from memdir.sync.model import Move, Row

if TYPE_CHECKING:
    from memdir.sync.context import Context


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One path, or one rename, that is not settled."""

    path: str
    source: str | None
    """Of a rename: the old path."""
    op: str
    """`put`, `delete` and `move` change the server, `fetch` and `remove` the mount; `compare`: look which."""
    state: str
    """`ready`, `inflight` or `parked`."""
    attempts: int
    since_ms: int
    next_try_s: float | None
    """In how many seconds at the latest it is tried again; None when it is under way, is parked or only waits for its turn."""
    why: str


def waiting(ctx: Context, limit: int) -> list[Waiting]:
    """Renames first, then paths in order of arrival, at most `limit`."""
    moves = ctx.queue.moves(limit)
    rows = ctx.queue.rows(limit - len(moves)) if len(moves) < limit else []
    return [_of_move(ctx, move) for move in moves] + [_of_row(ctx, row) for row in rows]


def _of_move(ctx: Context, move: Move) -> Waiting:
    next_try_s, why = _delay(ctx, move.attempts, move.due_at_s, move.error)
    if move.answered_seq:
        next_try_s, why = None, "the server did it; its report is on its way"
    return Waiting(
        path=move.path, source=move.source, op="move", state="ready", attempts=move.attempts, since_ms=move.first_seen_ms,
        next_try_s=next_try_s, why=why,
    )  # fmt: skip


def _of_row(ctx: Context, row: Row) -> Waiting:
    next_try_s, why = _delay(ctx, row.attempts, row.due_at_s, row.error)
    if row.state == "parked":
        next_try_s, why = None, row.error
    elif row.state == "inflight":
        next_try_s, why = None, "it is being done now"
    elif next_try_s is None and ctx.queue.touches_move(row.path):
        why = "waits for a rename above, below or beside it"
    return Waiting(
        path=row.path, source=None, op=_op(ctx, row.path), state=row.state, attempts=row.attempts, since_ms=row.first_seen_ms,
        next_try_s=next_try_s, why=why,
    )  # fmt: skip


def _delay(ctx: Context, attempts: int, due_at_s: float, error: str) -> tuple[float | None, str]:
    """What keeps something that is ready: the connection, a failure, or that it changed a moment ago."""
    link = ctx.link
    wait_s = max(0.0, due_at_s - ctx.clock.monotonic_s())
    if not link.is_open():
        away = "the server asked to wait" if link.state().online else "the server is away"
        return max(wait_s, link.wait_s()), f"{away}; last: {error}" if error else away
    if attempts or error:
        return wait_s, error
    return (wait_s, "it changed a moment ago") if wait_s else (None, "it is next")


def _op(ctx: Context, path: str) -> str:
    entry = ctx.tree.fact(path)
    remote, base = ctx.facts.remote_and_base(path)
    there_as_agreed = (remote is None) == (base is None) and (remote is None or base is None or remote.same(base))
    if entry is None:
        return "compare" if remote is None else "delete" if there_as_agreed else "fetch"
    stamp = ctx.facts.base_stamp(path)
    here_as_agreed = base is not None and stamp is not None and stamp[0] == stamp_of(entry) and shared_mode(entry) == base.mode
    if there_as_agreed:
        return "compare" if here_as_agreed else "put"
    if here_as_agreed:
        return "remove" if remote is None else "fetch"
    return "put" if remote is None else "compare"
