"""Memories from a file to a server: looked at whole, then sent."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

from memdir.agents.portable.item import BadItemError, Item, PortableError
from memdir.agents.service import IMPORT_ITEMS, AgentMemories, Imported
from memdir.client.light import LightCallError

BATCH_CHARS: Final = 2_000_000
"""Of contents in one request."""
BAD_SHOWN: Final = 20
_TIMEOUT_S: Final = 120.0
_PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Between tries of a request that the server has no time for."""
_ITEM: Final = re.compile(r"item (\d{1,4}): ")
_LATER: Final = frozenset({429, 503})


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """What is in a file: memories, and entries that are none, of which the first `BAD_SHOWN` are kept."""

    items: int
    bad: int
    first_bad: tuple[str, ...]


@dataclass(slots=True, kw_only=True)
class Taken:
    """What became of an import so far."""

    sent: int = 0
    created: int = 0
    duplicates: int = 0
    refused: list[str] = field(default_factory=list)
    """At most 100 of each request."""


def looked_at(found: Iterable[Item | BadItemError], told: Callable[[int], None]) -> Looked:
    """Read to the end, so that a file is known to be sound before anything of it is sent."""
    items = bad = 0
    first: list[str] = []
    for one in found:
        if isinstance(one, BadItemError):
            bad += 1
            if len(first) < BAD_SHOWN:
                first.append(one.message)
        else:
            items += 1
            told(items)
    return Looked(items=items, bad=bad, first_bad=tuple(first))


def imported(
    memories: AgentMemories,
    found: Iterable[Item | BadItemError],
    *,
    project: str | None,
    secrets: str,
    told: Callable[[Taken], None],
) -> Taken:
    """Send memories in requests of at most `IMPORT_ITEMS`. `project` is of those that name none. PortableError says how far it
    came; doing it again passes over what is there."""
    taken = Taken()
    patient = replace(memories, timeout_s=_TIMEOUT_S)
    for batch in _batches(found):
        items = [item.wire() | ({"project": project} if item.project is None and project is not None else {}) for item in batch]
        try:
            answer = _sent(patient, items, secrets)
        except LightCallError as error:
            raise PortableError(
                f"after {taken.sent:,} memories: {error.message}",
                hint="do it again when that is mended: what is there already is passed over",
            ) from error
        taken.sent += len(batch)
        taken.created += answer["created"]
        taken.duplicates += answer["duplicates"]
        taken.refused += [_placed(why, batch) for why in answer["refused"]]
        told(taken)
    return taken


def _batches(found: Iterable[Item | BadItemError]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in found:
        if isinstance(item, BadItemError):
            continue
        if batch and (len(batch) == IMPORT_ITEMS or size + len(item.content) > BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item.content)
    if batch:
        yield batch


def _placed(why: str, batch: list[Item]) -> str:
    """What the server says of item N of a request, said of its place in the file."""
    found = _ITEM.match(why)
    if found is None or int(found[1]) >= len(batch):
        return why
    return f"{batch[int(found[1])].where}: {why[found.end() :]}"


def _sent(memories: AgentMemories, items: list[dict[str, Any]], secrets: str) -> Imported:
    for pause_s in (*_PAUSES_S, None):
        try:
            return memories.bring_in(items, secrets=secrets)
        except LightCallError as error:
            if error.status not in _LATER or pause_s is None:
                raise
            time.sleep(pause_s)
    raise AssertionError
