"""Memories that fit a query, with the documents that say them: filters and scope first, then the ranking that passages have."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from memdir.memory.profile import replaced_by_due_plans
from memdir.retrieval.types import Hit, SearchQuery
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.search.filters import fits
from memdir.server.services.search.hits import Found
from memdir.store.passages.reading import in_place, is_everywhere
from memdir.store.paths import below
from memdir.store.tree.metadata_conditions import Condition
from memdir.store.types import Document, Memory, Scope

SPARE: Final = 20
"""Further memories asked for, in place of those that are shown at another place than the one they were found in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """A memory, how sure it is, and the document that says it; None: a call said it."""

    memory: Memory
    score: float
    source: Document | None


def recalled(
    caller: Caller,
    engine: Engine,
    scope: Scope,
    text: str,
    *,
    limit: int,
    threshold: float | None,
    condition: Condition | None = None,
    forgotten: bool = False,
) -> list[Recalled]:
    """The memories of a container that fit, said inside `scope`, best first, at most `limit`. Superseded ones never; forgotten
    and expired ones when they are asked for."""
    query = SearchQuery(
        text=text, scope=Scope(container_id=scope.container_id), limit=limit + SPARE, threshold=threshold, lines=False
    )
    searcher = engine.searcher
    with engine.in_flight.search():
        found = engine.memory_index.search(
            scope.container_id,
            query,
            searcher,
            now_ms=caller.store.now_ms(),
            only=_allowed(caller, scope, condition),
            forgotten=forgotten,
        )
    memories = caller.store.memories.many([one.id for one in found])
    sources = caller.store.documents.many({m.document_id for m in memories.values() if m.document_id is not None})
    made = []
    for one in found:
        memory = memories.get(one.id)
        if memory is None or not memory.is_latest or (memory.is_forgotten and not forgotten):
            continue  # changed since the index was asked
        source = sources.get(memory.document_id or "")
        if is_inside(source, scope) and fits(condition, metadata_of(memory, source)):
            made.append(Recalled(memory=memory, score=one.score, source=source))
    former = replaced_by_due_plans((one.memory for one in made), now_ms=caller.store.now_ms())
    return [one for one in made if one.memory.id not in former][:limit]


def _allowed(caller: Caller, scope: Scope, condition: Condition | None) -> Collection[str] | None:
    """The memories that may be found; None for all. What is shown of them is checked again."""
    store = caller.store
    allowed: set[str] | None = None
    if not is_everywhere(scope):
        # No path goes on with U+0000, so nothing lies between a path and the end given for it.
        first, end = (scope.folder, scope.folder + "\1") if scope.exact else below(scope.folder)
        allowed = set(store.memory_search.said_at(scope.container_id, first, end))
    if scope.chosen is not None:
        said = store.memory_search.own_metadata(scope.container_id)
        chosen_ones = {memory_id for memory_id, _, document_id in said if document_id in scope.chosen}
        allowed = chosen_ones if allowed is None else allowed & chosen_ones
    if condition is None:
        return allowed
    chosen = store.chooser.chosen(scope.container_id, condition)
    bare = fits(condition, {})
    fitting = set()
    metadata: Mapping[str, Any]
    own = []
    for memory_id, text, document_id in store.memory_search.own_metadata(scope.container_id):
        if text != "{}":
            own.append((memory_id, json.loads(text), document_id))
        elif bare if document_id is None else document_id in chosen:
            fitting.add(memory_id)
    sources = store.documents.many({document_id for _, _, document_id in own if document_id is not None})
    for memory_id, metadata, document_id in own:
        source = sources.get(document_id or "")
        if fits(condition, {**(source.metadata if source is not None else {}), **metadata}):
            fitting.add(memory_id)
    return fitting if allowed is None else fitting & allowed


def is_inside(source: Document | None, scope: Scope) -> bool:
    """What has no place is in the whole container only."""
    return in_place(None if source is None else source.path, scope)


def metadata_of(memory: Memory, source: Document | None) -> Mapping[str, Any]:
    """A memory's own metadata, over that of the document that says it."""
    return {**(source.metadata if source is not None else {}), **memory.metadata}


def once(memories: Sequence[Recalled], found: Sequence[Found]) -> tuple[list[Recalled], list[Found], dict[str, Found]]:
    """A memory and the passage it was read in are one: the passage goes, and the best memory read in it takes over its score if
    that is higher. Third, the passage that each such memory stands for, by the memory's id."""
    stands_for: dict[str, Found] = {}
    scores = {one.memory.id: one.score for one in memories}
    left = []
    for hit, document in found:
        inside = [one for one in memories if was_read_in(one.memory, hit, document)]
        if not inside:
            left.append((hit, document))
            continue
        best = min(inside, key=lambda one: (-one.score, one.memory.id))
        scores[best.memory.id] = max(scores[best.memory.id], hit.score)
        for one in inside:
            stands_for.setdefault(one.memory.id, (hit, document))
    raised = [replace(one, score=scores[one.memory.id]) for one in memories]
    return sorted(raised, key=lambda one: (-one.score, one.memory.id)), left, stands_for


def was_read_in(memory: Memory, hit: Hit, document: Document) -> bool:
    """Whether a memory comes from the lines of a hit."""
    place = memory.candidate
    return memory.document_id == document.id and place.start_byte < hit.end_byte and hit.start_byte < place.end_byte
