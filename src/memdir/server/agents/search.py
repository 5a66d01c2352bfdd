"""Searching the memories of agents: by five signals, and by meaning as a sixth unless only words are asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memdir.api import agents as wire
from memdir.retrieval.agents.ranking import AgentQuery, Ranked, stems_of
from memdir.retrieval.agents.terms import tag_key
from memdir.server.agents.reading import bounds, hit_of, query_of, ranked_records
from memdir.server.agents.semantic import Neighbours, SemanticSearch
from memdir.server.agents.state import AgentMemoryState
from memdir.server.engine import SETTLE_WAIT_S, Engine
from memdir.server.http.access import Caller
from memdir.store.agents.memories import AgentRecord

WEIGHT: Final = 0.5
"""Of meaning; the five signals share the rest."""
CLOSE: Final = 0.6
"""The cosine that counts as all of it."""
_OVER_FETCH: Final = 3


def search(
    caller: Caller, state: AgentMemoryState, engine: Engine | None, request: wire.AgentSearchRequest
) -> wire.AgentSearchResponse:
    """Ranked by the five signals; by a sixth when meaning is asked for."""
    began = time.perf_counter()
    allowed = bounds(caller, request.container_tag)
    query = query_of(request, allowed, caller.store.now_ms(), state.weights)
    if allowed.container is None:
        return wire.AgentSearchResponse(results=[], terms=stems_of(query), took_ms=0.0)
    found, near = _found(caller, state, engine, allowed.container.id, query, semantic=request.semantic)
    hits = [hit for _, hit in found]
    if request.record and hits:
        state.accessed(allowed.container.id, [number for number, _ in found])
        state.used(allowed.container.id, [hit.memory.id for hit in hits])
    closest = [] if near is None else _closest(caller, state, allowed.container.id, query, near, besides=hits)
    took_ms = (time.perf_counter() - began) * 1000
    return wire.AgentSearchResponse(results=hits, closest=closest, terms=stems_of(query), took_ms=round(took_ms, 3))


def _found(
    caller: Caller, state: AgentMemoryState, engine: Engine | None, container_id: int, query: AgentQuery, *, semantic: bool
) -> tuple[list[tuple[int, wire.AgentHit]], Neighbours | None]:
    """Best first, each with the memory's number; and what is close in meaning, where that is asked for and can be told."""
    wide = replace(query, limit=query.limit * _OVER_FETCH)
    by_words = ranked_records(caller, state, container_id, wide if semantic else query)
    near = _neighbours(caller, engine, container_id, query, by_words) if semantic else None
    if near is not None:
        return _with_neighbours(state, container_id, query, by_words, near), near
    return [(record.number, hit_of(one, record)) for one, record in by_words[: query.limit]], None


def _closest(
    caller: Caller,
    state: AgentMemoryState,
    container_id: int,
    query: AgentQuery,
    near: Neighbours,
    *,
    besides: Sequence[wire.AgentHit],
) -> list[wire.AgentHit]:
    """The closest others, of the project and of none, without the rules that keep noise out; none where the caller set a
    threshold."""
    if query.threshold is not None or len(besides) >= query.limit:
        return []
    own = replace(query, threshold=0.0, only_project=query.project is not None, limit=query.limit * _OVER_FETCH)
    shown = {hit.memory.id for hit in besides}
    projects = {None, query.project}
    memories = [one for one in near.memories if query.project is None or one[0].project in projects]
    by_words = ranked_records(caller, state, container_id, own)
    ranked = _with_neighbours(state, container_id, own, by_words, replace(near, memories=memories))
    return [hit for _, hit in ranked if hit.memory.id not in shown][: query.limit - len(besides)]


def _neighbours(
    caller: Caller, engine: Engine | None, container_id: int, query: AgentQuery, by_words: Sequence[tuple[Ranked, AgentRecord]]
) -> Neighbours | None:
    """The memories closest in meaning. None where the model cannot tell."""
    tags = set(map(tag_key, query.tags))

    def chosen(record: AgentRecord) -> bool:
        return (
            not record.is_proposed
            and (not query.only_project or query.project in (None, record.project))
            and (not query.only_tags or not tags.isdisjoint(map(tag_key, record.tags)))
        )

    hits = [record for _, record in by_words]
    semantic = SemanticSearch.of(caller, engine, container_id, query.project, chosen, by_words=hits, wait_s=SETTLE_WAIT_S)
    return None if semantic is None else semantic.nearest(query.text)


def _with_neighbours(
    state: AgentMemoryState,
    container_id: int,
    query: AgentQuery,
    by_words: Sequence[tuple[Ranked, AgentRecord]],
    near: Neighbours,
) -> list[tuple[int, wire.AgentHit]]:
    """Best first, each with the memory's number. What only meaning finds has the signals of what shares no word."""
    found = {record.id: (one, record) for one, record in by_words}
    index = state.index(container_id)
    for record in near.needed if query.threshold is None else [record for record, _ in near.memories]:
        if record.id not in found:
            found[record.id] = index.unmatched(record.number, query), record
    cosines = {record.id: cosine for record, cosine in near.memories}
    least_near = min(cosines.values(), default=0.0)  # of what is farther away
    scored = []
    for one, record in found.values():
        semantic = max(0.0, min(1.0, cosines.get(record.id, least_near) / CLOSE))
        scored.append((one, record, semantic, (1 - WEIGHT) * one.score + WEIGHT * semantic))
    scored.sort(key=lambda entry: (-entry[3], entry[1].number))
    least = query.threshold or 0.0
    return [
        (record.number, hit_of(one, record, semantic=semantic, score=score))
        for one, record, semantic, score in scored[: query.limit]
        if score >= least
    ]
