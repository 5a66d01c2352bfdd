"""Searching the memories of agents: by five signals, and by meaning as a sixth when it is asked for."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Final

from memdir.api import agents as wire
from memdir.retrieval.agents.ranking import AgentQuery, stems_of
from memdir.retrieval.types import SearchQuery
from memdir.server.agents.reading import Bounds, bounds, hit_of, query_of, ranked_records
from memdir.server.agents.state import AgentMemoryState
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.store.agents import memories as agent_memories
from memdir.store.types import Scope

WEIGHT: Final = 0.2
"""Of meaning; the five signals share the rest."""
CLOSE_MIN: Final = 0.7
"""Without a threshold of the caller: what only meaning finds is at least as close. Both numbers are fitted on one half of the
questions of `memdir bench agents`, see ADR 29."""
_OVER_FETCH: Final = 3


def search(
    caller: Caller, state: AgentMemoryState, engine: Engine, request: wire.AgentSearchRequest
) -> wire.AgentSearchResponse:
    """Ranked by the five signals; by a sixth when meaning is asked for."""
    began = time.perf_counter()
    allowed = bounds(caller, request.container_tag)
    query = query_of(request, allowed, caller.store.now_ms(), state.weights)
    if allowed.container is None:
        return wire.AgentSearchResponse(results=[], terms=stems_of(query), took_ms=0.0)
    if request.semantic:
        found = _semantic_hits(caller, state, engine, allowed, query)
    else:
        ranked = ranked_records(caller, state, allowed.container.id, query)
        found = [(record.number, hit_of(one, record)) for one, record in ranked]
    hits = [hit for _, hit in found]
    if request.record and hits:
        state.accessed(allowed.container.id, [number for number, _ in found])
        state.used(allowed.container.id, [hit.memory.id for hit in hits])
    took_ms = (time.perf_counter() - began) * 1000
    return wire.AgentSearchResponse(results=hits, terms=stems_of(query), took_ms=round(took_ms, 3))


def _semantic_hits(
    caller: Caller, state: AgentMemoryState, engine: Engine, allowed: Bounds, query: AgentQuery
) -> list[tuple[int, wire.AgentHit]]:
    """Best first, each with the memory's number. What only meaning finds has the signals of what shares no word."""
    assert allowed.container is not None
    container_id = allowed.container.id
    wide = replace(query, limit=query.limit * _OVER_FETCH)
    by_words = {record.id: (one, record) for one, record in ranked_records(caller, state, container_id, wide)}
    folder = agent_memories.FOLDER
    if query.only_project and query.project is not None:
        folder = f"{folder}/{query.project}"
    searcher = engine.searcher
    with engine.in_flight.search():
        found = searcher.search(
            SearchQuery(text=query.text, scope=Scope(container_id=container_id, folder=folder), limit=wide.limit)
        )
    close: dict[str, float] = {}
    for hit in found.hits:
        close.setdefault(hit.document_id, max(0.0, min(1.0, hit.score)))
    index = state.index(container_id)
    least_close = CLOSE_MIN if query.threshold is None else 0.0
    for document_id in (one for one, score in close.items() if score >= least_close):
        for record in caller.store.agents.of_document(document_id)[:1]:
            tagged = not query.only_tags or set(query.tags) & set(record.tags)
            if record.id not in by_words and tagged and record.container_id == container_id:
                by_words[record.id] = (index.unmatched(record.number, query), record)
    scored = []
    for one, record in by_words.values():
        semantic = close.get(record.document_id, 0.0)
        scored.append((one, record, semantic, (1 - WEIGHT) * one.score + WEIGHT * semantic))
    scored.sort(key=lambda entry: (-entry[3], entry[1].number))
    least = query.threshold or 0.0
    return [
        (record.number, hit_of(one, record, semantic=semantic, score=score))
        for one, record, semantic, score in scored[: query.limit]
        if score >= least
    ]
