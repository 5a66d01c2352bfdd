"""Conflict copies: what they are called, and which ones there are.

A copy is an ordinary file, synced like any other. So a copy that another machine made is known by its name alone; of one that
was made here, the record says more. A copy that was deleted or renamed is settled.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from memdir.core.clock import iso_ms
from memdir.core.limits import NAME_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.path import encode, join, split

if TYPE_CHECKING:
    from memdir.sync.context import Context

SHOWN_MAX: Final = 1000
"""So many are looked at; a memory with more of them is shown these."""
_NAMES_MAX: Final = 99
_NAME: Final = re.compile(
    r"(?P<stem>.+) \(conflict (?P<day>\d{4}-\d\d-\d\d) (?P<host>[\w.-]+)(?: \d+)?\)(?P<suffix>\.[^.]*)?", re.DOTALL
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One copy that waits for a decision."""

    copy: str
    original: str
    """Where the other side stands, or stood."""
    day: str
    """When it was made: a date, from its name."""
    host: str
    """Whose changes the copy holds: the machine that made it."""
    at_ms: int | None
    """The moment, when it was made here."""
    base_revision: int | None
    """The server's revision both began with, when it was made here and known."""
    remote_revision: int | None
    """The one that kept the path."""


def named(path: str) -> tuple[str, str, str] | None:
    """Original, day and host that a copy's name tells; None for another name."""
    parent, name = split(path)
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return join(parent, found["stem"] + (found["suffix"] or "")), found["day"], found["host"]


def free_name(ctx: Context, path: str, kind: str) -> str:
    """`name (conflict 2026-11-21 host).md`, numbered when that is taken, cut to what a name may hold."""
    parent, name = split(path)
    stem, dot, suffix = name.rpartition(".") if kind != "dir" else (name, "", "")
    if not stem:
        stem, dot, suffix = name, "", ""
    day = iso_ms(ctx.now_ms())[:10]
    for number in range(1, _NAMES_MAX + 1):
        count = "" if number == 1 else f" {number}"
        tail = f" (conflict {day} {ctx.host}{count}){dot}{suffix}"
        room = NAME_MAX_BYTES - len(encode(tail))
        if room < 1:
            tail, room = tail[: -len(dot + suffix)], NAME_MAX_BYTES - len(encode(tail)) + len(encode(dot + suffix))
        head = encode(stem)[:room].decode("utf-8", "ignore") or "_"
        candidate = join(parent, head + tail)
        if ctx.tree.fact(candidate) is None and ctx.facts.is_free(candidate):
            return candidate
    raise FsError(errno.EEXIST, f"{path} has {_NAMES_MAX} conflict copies of today; settle some of them")


def unsettled(ctx: Context, limit: int = SHOWN_MAX) -> list[Conflict]:
    """Copies that stand in the mount and wait for a decision, newest first, at most `limit`."""
    records = {record.path: record for record in ctx.facts.conflicts(SHOWN_MAX)}
    found = []
    for path in dict.fromkeys((*records, *ctx.facts.paths_named_as_copies(SHOWN_MAX))):
        record, told = records.get(path), named(path)
        if (record is not None and record.settled) or (record is None and told is None) or ctx.tree.fact(path) is None:
            continue
        original, day, host = told or (record.original if record else "", "", "")
        found.append(
            Conflict(
                copy=path,
                original=record.original if record else original,
                day=day,
                host=host,
                at_ms=record.at_ms if record else None,
                base_revision=record.base_revision or None if record else None,
                remote_revision=record.remote_revision or None if record else None,
            )
        )
    return sorted(found, key=lambda one: (one.day, one.at_ms or 0, one.copy), reverse=True)[:limit]


def keep_both(ctx: Context, path: str) -> bool:
    """Forget that `path` is the copy of a conflict, on this mount; False when it is none that waits."""
    known = next((one for one in unsettled(ctx) if one.copy == path), None)
    if known is not None:
        with ctx.queue.transaction() as tx:
            ctx.facts.settle_conflict(tx, path, known.original, ctx.now_ms())
    return known is not None
