"""What an engine says of itself, for `memdir status`."""

from __future__ import annotations

from dataclasses import dataclass

from memdir.fs.types import AbsentTotals
from memdir.sync.link import LinkState


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """For `memdir status`."""

    queue_length: int
    parked: int
    conflicts: int
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
    """What keeps the engine from its work on this side; the server's is in `link`."""
    absent: AbsentTotals
    """Files whose contents are at the server only."""
    prefetching: bool
    api: str | None
    """What the server speaks: `v1`, our own, or `v3`; None before the first connection."""
    lost: int
    """Files given up in this run: the server deleted their contents before they were fetched."""
