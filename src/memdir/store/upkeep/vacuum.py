"""Giving space back: what nobody refers to, what is older than it is kept, what the engine has set aside."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from memdir.store.database import fetch
from memdir.store.store import Store
from memdir.store.tree.idempotency import KEEP_MS

DAY_MS: Final = 24 * 3600 * 1000
HISTORY_DAYS: Final = 90
"""A client that was away for longer compares everything once."""
_ANSWERS: Final = ("idempotency", "answer")
_ROUNDS_MAX: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Vacuumed:
    """What went."""

    before_bytes: int
    after_bytes: int
    contents: int
    changes: int
    versions: int
    audit: int
    answers: int
    nothing_kept: bool
    """Nobody who still reads keeps what was deleted: see `Upkeep.compact`."""


def vacuum(
    store: Store,
    *,
    history_days: int = HISTORY_DAYS,
    full: bool,
    orphans: bool = False,
    progress: Callable[[str, int], None] | None = None,
) -> Vacuumed:
    """Give space back. Any number of processes may be at work; with `full` they wait while the database is written anew. With
    `orphans` also contents that nobody knows are deleted where another server could have put them."""
    told = progress or (lambda _what, _done: None)
    upkeep = store.upkeep()
    before_bytes = upkeep.size_bytes()
    changes = versions = 0
    before_ms = store.now_ms() - history_days * DAY_MS
    with upkeep.reading() as reader:
        ids = [row[0] for row in fetch(reader, "select id from container order by id")]
    for container_id in ids:
        told("history", changes)
        changes += _repeat(partial(store.changes.prune, container_id, before_ms=before_ms))
        container = store.containers.by_id(container_id)
        if container is not None:
            versions += _repeat(partial(store.versions.prune, container))
    audit = _repeat(store.audit.sweep)
    with upkeep.alone() as connection:
        answers = 0
        for table in _ANSWERS:
            connection.execute(f"delete from {table} where at_ms <= ?", (store.now_ms() - KEEP_MS,))  # noqa: S608  constants
            answers += connection.changes()
    contents = _repeat(store.blobs.collect)
    if store.blobs.is_own or orphans:
        contents += store.blobs.sweep()
    told("database", 0)
    nothing_kept = upkeep.compact(full=full)
    return Vacuumed(
        before_bytes=before_bytes,
        after_bytes=upkeep.size_bytes(),
        contents=contents,
        changes=changes,
        versions=versions,
        audit=audit,
        answers=answers,
        nothing_kept=nothing_kept,
    )


def _repeat(step: Callable[[], int]) -> int:
    """Run a step that does a bounded part until nothing is left."""
    total = 0
    for _ in range(_ROUNDS_MAX):
        done = step()
        if not done:
            break
        total += done
    return total
