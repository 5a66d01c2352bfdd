"""Memories from a server into a file, and from a file to a server."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from memdir.agents.portable.item import BadItemError, Item, PortableError
from memdir.client.light import LightCallError, call
from memdir.client.local import ServerInfo

PAGE: Final = 100
BATCH_ITEMS: Final = 500
BATCH_CHARS: Final = 2_000_000
"""Of contents in one request."""
BAD_SHOWN: Final = 20
_TIMEOUT_S: Final = 120.0
_PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Between tries of a request that the server has no time for."""
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


def exported(server: ServerInfo, params: dict[str, str]) -> Iterator[dict[str, Any]]:
    """Every memory of a container, newest first, a page at a time. `params` as GET /v1/agents/memories takes them."""
    after: str | None = None
    while True:
        more = {"after": after} if after else {}
        page = call(server, "GET", "/v1/agents/memories", params={**params, **more, "limit": str(PAGE)}, timeout_s=_TIMEOUT_S)
        yield from page["memories"]
        after = page.get("nextAfter")
        if not after:
            return


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
    server: ServerInfo,
    found: Iterable[Item | BadItemError],
    *,
    container: str,
    project: str | None,
    secrets: str,
    told: Callable[[Taken], None],
) -> Taken:
    """Send memories in requests of at most `BATCH_ITEMS`. `project` is of those that name none. PortableError says how far it
    came; doing it again passes over what is there."""
    taken = Taken()
    for batch in _batches(found):
        items = [item.wire() | ({"project": project} if item.project is None and project is not None else {}) for item in batch]
        try:
            answer = _posted(server, {"containerTag": container, "items": items, "secrets": secrets})
        except LightCallError as error:
            raise PortableError(
                f"after {taken.sent:,} memories: {error.message}",
                hint="do it again when that is mended: what is there already is passed over",
            ) from error
        taken.sent += len(batch)
        taken.created += int(answer["created"])
        taken.duplicates += int(answer["duplicates"])
        taken.refused += [str(why) for why in answer["refused"]]
        told(taken)
    return taken


def _batches(found: Iterable[Item | BadItemError]) -> Iterator[list[Item]]:
    batch: list[Item] = []
    size = 0
    for item in found:
        if isinstance(item, BadItemError):
            continue
        if batch and (len(batch) == BATCH_ITEMS or size + len(item.content) > BATCH_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += len(item.content)
    if batch:
        yield batch


def _posted(server: ServerInfo, body: dict[str, Any]) -> dict[str, Any]:
    for pause_s in (*_PAUSES_S, None):
        try:
            return call(server, "POST", "/v1/agents/memories:import", body=body, timeout_s=_TIMEOUT_S)
        except LightCallError as error:
            if error.status not in _LATER or pause_s is None:
                raise
            time.sleep(pause_s)
    raise AssertionError
