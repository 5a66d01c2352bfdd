"""What an engine says of itself, for `memdir status`."""

from __future__ import annotations

from dataclasses import dataclass

from memdir.client.errors import SERVER_FULL
from memdir.fs.types import AbsentTotals
from memdir.sync.conflicts.copies import unsettled
from memdir.sync.context import Context
from memdir.sync.link import LinkState
from memdir.sync.model import api_of
from memdir.sync.pull.scanner import OTHER_LIFE_KEY
from memdir.sync.push.intake import unread_count
from memdir.sync.push.processing import Progress


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """For `memdir status`."""

    queue_length: int
    parked: int
    conflicts: int
    progress: Progress
    """Of the files that the server has taken and cannot search in full yet."""
    failed: int
    """Files that it could not read; `.memdir/errors/` says why."""
    merged: int
    """Files in this run that both sides had changed, and that were merged."""
    link: LinkState
    last_synced_ms: int
    profile_version: int
    held_deletions: int
    """Missing at the server and kept here until somebody decides."""
    other_life: bool
    """The server was wiped or restored once under this mount."""
    caught_up: bool
    trouble: str | None
    """What keeps the engine from its work: this machine's disk, or the server's. A server that is away is in `link`."""
    absent: AbsentTotals
    """Files whose contents are at the server only."""
    prefetching: bool
    api: str | None
    """What the server speaks: `v1`, our own, or `v3`; None before the first connection."""
    lost: int
    """Files given up in this run: the server deleted their contents before they were fetched."""


def status_of(ctx: Context, *, caught_up: bool, trouble: str | None, prefetching: bool) -> EngineStatus:
    """What the records say now; cheap."""
    queue_length, parked = ctx.queue.lengths()
    _, failed = ctx.inflight.counts()
    link = ctx.link.state()
    progress = ctx.inflight.progress()
    if trouble is None and link.online and (progress.disk_full or ctx.queue.waits_with(SERVER_FULL)):
        trouble = f"{SERVER_FULL}; what waits goes on when there is room"
    return EngineStatus(
        queue_length=queue_length + unread_count(ctx),
        parked=parked,
        conflicts=len(unsettled(ctx)),
        progress=progress,
        failed=failed,
        merged=ctx.counters.merged,
        link=link,
        last_synced_ms=ctx.counters.last_synced_ms,
        profile_version=ctx.facts.number("profile_version"),
        held_deletions=ctx.facts.held_count(),
        other_life=bool(ctx.facts.number(OTHER_LIFE_KEY)),
        caught_up=caught_up,
        trouble=trouble,
        absent=ctx.tree.absent_totals(),
        prefetching=prefetching,
        api=api_of(ctx.facts.text("epoch")),
        lost=ctx.counters.lost,
    )
