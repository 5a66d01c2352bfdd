"""A store with any number of memories, in minutes.

The first `IMPORTED_MAX` come through the import route of a real server, as a user brings memories over: rate and bytes are
measured there. The others are written straight into the tables, rows of documents and memories without their files: what search
and hook work on, in a hundredth of the time. Work that waits on files is taken away, so that searches are measured and not the
pipeline beside them.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import httpx

from memdir_bench.agents.accuracy import BATCH, asked_of
from memdir_bench.agents.goals import figure
from memdir_bench.agents.haystack import Haystack
from memdir_bench.agents.queries import CONTAINER
from memdir_bench.figures import Figure
from memdir_bench.server.fixtures import Fixture
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

IMPORTED_MAX: Final = 2_000
_DOCUMENT: Final = (
    "insert into document (id, container_id, path, kind, title, media_type, status, content_hash, size_bytes, mode, mtime_ns, "
    "revision, indexed_hash, created_at_ms, updated_at_ms) "
    "values (?, ?, ?, 'file', null, 'text/markdown', 'done', ?, ?, 420, ?, ?, ?, ?, ?)"
)
_MEMORY: Final = (
    "insert into agent_memory (content_hash, content, folded, tags, project, metadata, created_at_ms, updated_at_ms, "
    "document_id, ordinal, id, container_id, access_count) values (?, ?, ?, ?, ?, '{}', ?, ?, ?, 0, ?, ?, ?)"
)


def imported(one: Fixture, client: httpx.Client, haystack: Haystack, now: datetime) -> Iterator[Figure]:
    """The first memories, through the server."""
    count = haystack.count
    items = [item for _, item in _items(haystack, now, 0, min(count, IMPORTED_MAX))]
    began, began_cpu = time.monotonic(), one.cpu_s()
    for at in range(0, len(items), BATCH):
        outcome = asked_of(client, "/v1/agents/memories:import", {"containerTag": CONTAINER, "items": items[at : at + BATCH]})
        if outcome["created"] != len(items[at : at + BATCH]):
            raise BenchError(f"of {len(items[at : at + BATCH])} memories {outcome['created']} were taken")
        progress(f"{count}: {at + BATCH:,} imported in {time.monotonic() - began:.0f} s")
    took_s = time.monotonic() - began
    cost_ms = (one.cpu_s() - began_cpu) * 1000 / len(items)
    note = f"by import, {len(items):,} memories in {took_s:.0f} s"
    yield figure(f"{count}.build_rate", len(items) / took_s, "1/s", samples=len(items), better="higher", note=note)
    yield figure(f"{count}.build_cpu", cost_ms, "ms", samples=len(items), note="of the server for each, its worker included")


def completed(data: Path, haystack: Haystack, now: datetime) -> Iterator[Figure]:
    """The others, into the store in `data`, which no server has open; and no work is left."""
    from memdir.server.in_process import KEY
    from memdir.store.acting import acting_as
    from memdir.store.database import fetch
    from memdir.store.sqlite.store import SqliteStore

    count = haystack.count
    with acting_as(KEY.org_id):
        store = SqliteStore.open(data)
        try:
            container = store.containers.ensure(KEY.org_id, CONTAINER)
            began, rows = time.monotonic(), []
            for place, item in _items(haystack, now, IMPORTED_MAX, count):
                rows.append((place, item))
                if len(rows) == 10_000 or place == count - 1:
                    _written(store, container.id, rows)
                    progress(f"{count}: {place + 1:,} memories after {time.monotonic() - began:.0f} s")
                    rows = []
            with store.upkeep().alone() as connection:
                connection.execute("delete from job where container_id = ?", (container.id,))
                connection.execute(
                    "update document set status = 'done', indexed_hash = content_hash where container_id = ? and kind = 'file'",
                    (container.id,),
                )
                ((found,),) = fetch(connection, "select count(*) from agent_memory where container_id = ?", (container.id,))
        finally:
            store.close()
    if found != count:
        raise BenchError(f"the container has {found} memories and must have {count}")
    if count > IMPORTED_MAX:
        rate = (count - IMPORTED_MAX) / (time.monotonic() - began)
        yield figure(f"{count}.fill_rate", rate, "1/s", better="higher", note="straight into the tables, without files")


def _written(store: Any, container_id: int, rows: list[tuple[int, dict[str, Any]]]) -> None:
    from memdir.store.agents.memories import folded_hash

    documents, memories = [], []
    for place, item in rows:
        name, content, tags = f"bench{place:017d}", item["content"], json.dumps(item["tags"])
        made_ms = int(datetime.fromisoformat(item["createdAt"]).timestamp() * 1000)
        hashed = f"{place:064x}"
        path = f"/memory/{item['project']}/{name}.md"
        documents.append(
            (name, container_id, path, hashed, len(content), made_ms * 1_000_000, place + 1_000_000, hashed, made_ms, made_ms)
        )
        memories.append(
            (hashed, content, folded_hash(content), tags, item["project"], made_ms, made_ms, name, name, container_id,
             item["accessCount"])
        )  # fmt: skip
    with store.upkeep().alone() as connection:
        connection.executemany(_DOCUMENT, documents)
        connection.executemany(_MEMORY, memories)


def _items(haystack: Haystack, now: datetime, first: int, last: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Place and `ImportItem` of the memories from `first` up to `last`."""
    for block in haystack.blocks():
        if block.first >= last:
            return
        if block.first + len(block.words) > first:
            for place, item in enumerate(haystack.items(block, now.astimezone(UTC)), start=block.first):
                if first <= place < last:
                    yield place, item
