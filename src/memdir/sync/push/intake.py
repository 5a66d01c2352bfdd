"""From the filesystem's intents to rows of the queue, in durable steps.

The intents are read, written into the queue together with the number of the last one, and only then acknowledged: once that
survives a power cut, too, because the filesystem may make the acknowledgement durable at any time. A crash between any two of
these steps repeats work and loses none: intents up to the noted number are skipped.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from memdir.core.sqlite import Connection
from memdir.fs.errors import FsError
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import Intent, IntentKind, LocalFact
from memdir.sync.context import Context
from memdir.sync.local_view import stamp_of
from memdir.sync.push.queue import QUIET_S
from memdir.sync.untracked_changes import UNSEEN_KEY

log = logging.getLogger(__name__)

_PAGE: Final = 1000
_INTENTS_KEY: Final = "intents_seq"
_WAITING_MAX: Final = 1000
_SMALL_BYTES: Final = 1 << 20


def take_in_all(ctx: Context) -> int:
    """Take in every intent that is there now; how many. One that comes meanwhile waits for the next time: while they come all
    the time, taking each by itself would never end."""
    count = 0
    while True:
        taken = take_in(ctx)
        count += taken
        if taken < _PAGE:
            return count


def take_in(ctx: Context) -> int:
    """Read one page of intents; how many there were."""
    done = ctx.facts.number(_INTENTS_KEY)
    intents = ctx.tree.intents(done, _PAGE)
    if not intents:
        return 0
    with ctx.queue.transaction() as tx:
        for intent in intents:
            _record(ctx, tx, intent)
        ctx.facts.set_value(tx, _INTENTS_KEY, intents[-1].seq)
    ctx.queue.settle()
    ctx.tree.acknowledge(intents[-1].seq)
    return len(intents)


def unread_count(ctx: Context) -> int:
    """How many intents were not taken in yet."""
    return ctx.tree.intents_left(ctx.facts.number(_INTENTS_KEY))


def noted_fact(ctx: Context, path: str) -> LocalFact | None:
    """What stands at `path`. LocalChangedError when nothing does and intents are unread: one of them may be its rename."""
    entry = ctx.tree.fact(path)
    if entry is None and unread_count(ctx):
        raise LocalChangedError(f"{path} is gone, and what took it away was not read yet")
    return entry


def find_unseen(ctx: Context) -> None:
    """After a mount without sync: look at every path that was agreed on and is gone."""
    if not ctx.facts.text(UNSEEN_KEY):
        return
    gone = [path for path in ctx.facts.known_under("/") if not ctx.is_excluded(path) and ctx.tree.fact(path) is None]
    with ctx.queue.transaction() as tx:
        ctx.queue.add_all(tx, gone)
        ctx.facts.set_value(tx, UNSEEN_KEY, "")


def agree_on_cut_short(ctx: Context) -> None:
    """After the death of the daemon, before anybody changes it: agree on what was put here just then and not noted any more.
    Once it is edited, or the server has moved on, it would pass for another's. Reads what one claim for each worker names, and
    small files that wait first: a power cut takes the claims, too."""
    agreed = []
    waiting = [row.path for row in ctx.queue.rows(_WAITING_MAX)]
    for path in dict.fromkeys((*ctx.queue.cut_short, *waiting)):
        remote, base = ctx.facts.remote_and_base(path)
        entry = ctx.tree.fact(path)
        if remote is None or entry is None or remote == base or entry.kind != remote.kind or ctx.is_excluded(path):
            continue
        if entry.kind == "file" and entry.size != ctx.facts.remote_times(path)[0]:
            continue
        if entry.size > _SMALL_BYTES and path not in ctx.queue.cut_short:
            continue
        try:
            if ctx.local.fact_of(entry).same(remote):
                agreed.append((path, remote, stamp_of(entry)))
        except (LocalChangedError, FsError) as error:
            log.info("%s was being worked on when the daemon died, and cannot be compared: %s", path, error.message)
    if agreed:
        with ctx.queue.transaction() as tx:
            for path, remote, stamp in agreed:
                ctx.facts.set_base(tx, path, remote, stamp)


def _record(ctx: Context, tx: Connection, intent: Intent) -> None:
    if intent.kind is IntentKind.MOVE and intent.source is not None:
        _record_move(ctx, tx, intent)
    elif ctx.is_excluded(intent.path):
        return
    elif intent.kind is IntentKind.DELETE:
        ctx.queue.fold(tx, intent.path, delay_s=QUIET_S)
    else:
        ctx.queue.add(tx, intent.path, delay_s=QUIET_S)


def _record_move(ctx: Context, tx: Connection, intent: Intent) -> None:
    """Rows that wait below the old name wait below the new one. The rename itself is for the server only when it knows
    something at the old name that stood there then, or will: by an earlier rename, or by what is on its way just now. What
    stands at the old name again is looked at: its row may have gone with the others."""
    source, path = intent.source, intent.path
    assert source is not None
    ctx.queue.rekey(tx, source, path, delay_s=QUIET_S)
    ctx.queue.add_all(tx, walk(ctx, source))
    if ctx.artifacts.was_in(source):
        ctx.queue.add_all(tx, list(walk(ctx, path)))  # none of it was pushed where it stood
    if not ctx.is_excluded(path):
        ctx.queue.add(tx, path, delay_s=QUIET_S)
    if not (
        ctx.facts.has_base(source, before_intent=intent.seq) or ctx.queue.is_inflight(source) or ctx.queue.touches_move(source)
    ):
        return
    moved = ctx.tree.fact(path)
    # Contents that only the server has, under the old name, may be replaced there while the rename waits.
    is_absent = moved is not None and moved.absent_hash is not None
    if ctx.queue.add_move(tx, source, path, delay_s=0.0 if is_absent else QUIET_S):
        ctx.queue.add_all(tx, ctx.facts.known_under(source))  # what stood there before the rename that was led on


def walk(ctx: Context, folder: str, *, local_too: bool = False) -> Iterator[str]:
    """Every local path at and below `folder` that is synced, parents first; with `local_too` also what stays on this machine.
    Depth is bounded by the path limit."""
    entry = ctx.tree.fact(folder)
    if entry is None:
        return
    pending = [entry]
    while pending:
        entry = pending.pop()
        if entry.path != "/":
            if ctx.is_excluded(entry.path) or (not local_too and ctx.tree.is_local_only(entry.path)):
                continue
            yield entry.path
        if entry.kind == "dir":
            pending.extend(reversed(ctx.tree.children(entry.path)))
