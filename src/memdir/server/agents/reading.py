"""Finding and listing the memories of agents."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Final

from memdir.api import agents as wire
from memdir.core.clock import iso_ms
from memdir.retrieval.agents.container import LOAD_WAIT_S
from memdir.retrieval.agents.ranking import AgentQuery, Ranked, SignalWeights
from memdir.retrieval.agents.terms import tag_key
from memdir.server.agents.state import AgentMemoryState
from memdir.server.agents.writing import found, memory_of
from memdir.server.errors import ForbiddenError
from memdir.server.http.access import Caller
from memdir.store.agents import files as agent_files
from memdir.store.agents import memories as agent_memories
from memdir.store.agents.memories import AgentRecord
from memdir.store.agents.usage import AgentUse
from memdir.store.errors import InvalidError
from memdir.store.types import Container

TAGS_SHOWN: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a caller may read. `project`: this one only."""

    container: Container | None
    project: str | None


def bounds(caller: Caller, tag: str) -> Bounds:
    """A key that is bound to the folder of a project sees that project; one that is bound to a folder in it sees none of this:
    half a ranking would tell of the other half."""
    folder = caller.narrowed(agent_memories.FOLDER)
    container = caller.found(tag, "read", at=folder)
    inside = folder[len(agent_memories.FOLDER) + 1 :]
    if "/" in inside:
        raise ForbiddenError("this API key is bound to a folder inside a project and cannot search memories")
    return Bounds(container=container, project=inside or None)


def get(caller: Caller, state: AgentMemoryState, tag: str, memory_id: str) -> wire.AgentMemory:
    """One memory."""
    container, record = found(caller, tag, memory_id, "read")
    state.used(container.id, [record.id])
    return memory_of(record)


def page(
    caller: Caller,
    tag: str,
    *,
    project: str | None,
    label: str | None,
    after: str | None,
    limit: int,
    oldest_first: bool,
    personal: bool = False,
) -> wire.MemoriesPage:
    """Newest first, or the other way round. `personal`: besides a project's those of none."""
    allowed = bounds(caller, tag)
    if allowed.container is None:
        return wire.MemoriesPage(memories=[], next_after=None, total=0)
    wanted = agent_files.project_folder(project) or project
    if allowed.project is not None and wanted not in (None, allowed.project):
        raise ForbiddenError(f"this API key opens the project {allowed.project} only")
    wanted = allowed.project if wanted is None else wanted
    store = caller.store.agents
    behind = _cursor(after)
    records = store.page(
        allowed.container.id,
        project=wanted,
        tag=label,
        after=behind,
        limit=limit + 1,
        oldest_first=oldest_first,
        personal=personal and allowed.project is None,
    )
    shown = records[:limit]
    return wire.MemoriesPage(
        memories=[memory_of(record) for record in shown],
        next_after=f"{shown[-1].created_at_ms}.{shown[-1].number}" if len(records) > limit else None,
        total=store.count(allowed.container.id, project=wanted, tag=label, personal=personal and allowed.project is None),
    )


def _cursor(after: str | None) -> tuple[int, int] | None:
    if after is None:
        return None
    moment, _, number = after.partition(".")
    if not (moment.lstrip("-").isdecimal() and number.isdecimal() and len(after) < 50):
        raise InvalidError("this is no cursor of a page", hint="send the nextAfter of the page before")
    return int(moment), int(number)


def query_of(request: wire.AgentSearchRequest, allowed: Bounds, now_ms: int, usual: SignalWeights) -> AgentQuery:
    """What the index is asked."""
    given = {} if request.weights is None else request.weights.model_dump(exclude_unset=True)
    return AgentQuery(
        text=request.q,
        now_ms=now_ms,
        project=allowed.project or agent_files.project_folder(request.project),
        tags=tuple(request.tags),
        only_project=request.only_project or allowed.project is not None,
        only_tags=request.only_tags,
        limit=request.limit,
        threshold=request.threshold,
        weights=replace(usual, **given),
    )


def ranked_records(
    caller: Caller, state: AgentMemoryState, container_id: int, query: AgentQuery, *, wait_s: float = LOAD_WAIT_S
) -> list[tuple[Ranked, AgentRecord]]:
    """What the index finds, with the records; one that went meanwhile is left out. UnreadError when a large container is not
    read within `wait_s`."""
    ranked = state.index(container_id).search(query, wait_s=wait_s)
    records = caller.store.agents.many(container_id, [one.number for one in ranked])
    return [(one, records[one.number]) for one in ranked if one.number in records]


def hit_of(one: Ranked, record: AgentRecord, *, semantic: float | None = None, score: float | None = None) -> wire.AgentHit:
    """As the wire says it."""
    return wire.AgentHit(
        memory=memory_of(record),
        score=round(one.score if score is None else score, 6),
        signals=wire.Signals(
            bm25=round(one.bm25, 6),
            recency=round(one.recency, 6),
            frequency=round(one.frequency, 6),
            tags=round(one.tags, 6),
            project=one.project,
            semantic=None if semantic is None else round(semantic, 6),
        ),
        bm25_raw=round(one.bm25_raw, 6),
        matched=list(one.matched),
    )


def stats(caller: Caller, state: AgentMemoryState, tag: str) -> wire.AgentStats:
    """What a container holds. Of the whole container: not for keys that are bound to a project."""
    container = caller.found(tag, "read", at=agent_memories.FOLDER)
    if container is None:
        return wire.AgentStats(
            memories=0, tokens=0, size_bytes=0, index_bytes=0, tags=[], projects=[], oldest_at=None, newest_at=None
        )
    totals = caller.store.agents.totals(container.id)
    index = state.index(container.id)
    return wire.AgentStats(
        memories=totals.memories,
        tokens=totals.size_bytes // agent_files.TOKEN_CHARS,
        size_bytes=totals.size_bytes,
        index_bytes=index.size_bytes(),
        tags=_counted_tags(caller, container.id, index.tags()[:TAGS_SHOWN]),
        projects=[wire.ProjectCount(project=project, count=count) for project, count in totals.projects],
        oldest_at=None if totals.oldest_ms is None else iso_ms(totals.oldest_ms),
        newest_at=None if totals.newest_ms is None else iso_ms(totals.newest_ms),
    )


def _counted_tags(caller: Caller, container_id: int, counts: list[tuple[str, int, int]]) -> list[wire.TagCount]:
    """Tags as the first memory that has one writes it, which is what a list can be asked for."""
    records = caller.store.agents.many(container_id, [number for _, _, number in counts])
    written = {
        key: next((tag for tag in records[number].tags if tag_key(tag) == key), key)
        for key, _, number in counts
        if number in records
    }
    return [wire.TagCount(tag=written.get(key, key), count=count) for key, count, _ in counts]


def usage(caller: Caller, state: AgentMemoryState, tag: str, days: int) -> wire.Usage:
    """What hooks injected, and what became of it."""
    state.flush()
    container = caller.found(tag, "read", at=agent_memories.FOLDER)
    sums = AgentUse() if container is None else caller.store.agent_usage.sums(container.id, days=days)
    return wire.Usage(days=days, **asdict(sums))
