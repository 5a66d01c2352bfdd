"""Search over memories and passages, and the profile, as `/v4` answers them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from memdir.api import v4
from memdir.core.clock import iso_ms
from memdir.memory.profile import profile as most_important
from memdir.retrieval.rerank.port import RERANK_MAX
from memdir.retrieval.types import Hit
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.contents.views import summary_of, type_of
from memdir.server.services.search.filters import condition_of, fits
from memdir.server.services.search.hits import Found
from memdir.server.services.search.memory_ranking import rank
from memdir.server.services.search.memory_relations import contexts
from memdir.server.services.search.memory_search import Recalled, is_inside, metadata_of, once, recalled
from memdir.server.services.search.passages import Scopes, chosen_by, passages, scopes_of, timing_ms
from memdir.server.services.search.reranking import reranked
from memdir.store.errors import InvalidError
from memdir.store.tree.containers import BUCKETS_KEY
from memdir.store.tree.metadata_conditions import Condition
from memdir.store.types import Container, Document, Memory, Scope

MEMORY_CHUNKS_MAX: Final = 3
"""Passages shown beside one memory."""
BUCKET_THRESHOLD: Final = 0.25
Result = tuple[v4.MemoryResult, Memory | None, Document | None]
_SECTIONS: Final = ("static", "dynamic", "buckets")


def search_memories(caller: Caller, engine: Engine, request: v4.SearchMemories) -> v4.MemoryResults:
    """Memories, passages, or both by similarity."""
    began = time.perf_counter()
    scopes = scopes_of(caller, request.tags, request.filepath)
    condition = condition_of(request.filters)
    with_passages = request.search_mode in ("documents", "hybrid")
    limit = max(request.limit, RERANK_MAX) if request.rerank else request.limit
    memories = [] if request.search_mode == "documents" else _memories(caller, engine, scopes, request, condition, limit)
    found: list[Found] = []
    if with_passages or (memories and request.include.chunks):
        chosen = chosen_by(caller, scopes, condition)
        found = passages(caller, engine, chosen, request.q, limit=limit, threshold=request.threshold)
    stands_for: dict[str, Found] = {}
    alone: Sequence[Found] = ()
    if with_passages:
        memories, alone, stands_for = once(memories, found)
    results: list[Result] = [(_memory_result(one, stands_for.get(one.memory.id)), one.memory, one.source) for one in memories]
    results += [(_chunk_result(*item), None, item[1]) for item in alone]
    results.sort(key=lambda item: (-item[0].similarity, item[0].filepath or "", item[0].id))
    total = len(results)
    reranking = None
    if request.rerank:
        ordered = reranked(
            engine,
            request.q,
            [(item, item[0].similarity) for item in results],
            lambda item: item[0].memory or item[0].chunk or "",
        )
        reranking = ordered.said
        results = [(item[0].model_copy(update={"similarity": score}), *item[1:]) for item, score in ordered.items]
    shown = _with_extras(caller, results[: request.limit], found, request.include)
    return v4.MemoryResults(results=shown, timing=timing_ms(began), total=total, reranking=reranking)


def _memories(
    caller: Caller, engine: Engine, scopes: Scopes, request: v4.SearchMemories, condition: Condition | None, limit: int
) -> list[Recalled]:
    """The memories of several containers, best first."""
    found: list[Recalled] = []
    for _, scope in scopes:
        found += recalled(
            caller,
            engine,
            scope,
            request.q,
            limit=limit,
            threshold=request.threshold,
            condition=condition,
            forgotten=request.include.forgotten_memories,
        )
    return sorted(found, key=lambda one: (-one.score, one.memory.id))[:limit]


def _fitting(
    caller: Caller, memories: Sequence[Memory], scope: Scope, condition: Condition | None
) -> list[tuple[Memory, Document | None]]:
    """The memories said inside a scope whose metadata fits, with the documents that say them."""
    sources = caller.store.documents.many({m.document_id for m in memories if m.document_id is not None})
    found = [(memory, sources.get(memory.document_id or "")) for memory in memories]
    return [(m, source) for m, source in found if is_inside(source, scope) and fits(condition, metadata_of(m, source))]


def _memory_result(one: Recalled, passage: Found | None) -> v4.MemoryResult:
    """With the passage that the memory was read in, where that was found, too."""
    memory, source = one.memory, one.source
    return v4.MemoryResult(
        id=memory.id,
        memory=memory.candidate.text,
        similarity=one.score,
        filepath=None if source is None else source.path,
        metadata=dict(metadata_of(memory, source)),
        updated_at=iso_ms(memory.updated_at_ms),
        version=memory.version,
        root_memory_id=memory.root_id,
        is_forgotten=True if memory.is_forgotten else None,
        chunks=None if passage is None else [_result_chunk(*passage)],
    )


def _result_chunk(hit: Hit, document: Document) -> v4.ResultChunk:
    return v4.ResultChunk(content=hit.stored.chunk.text, document_id=document.id, position=hit.stored.chunk.ordinal)


def _chunk_result(hit: Any, document: Document) -> v4.MemoryResult:
    return v4.MemoryResult(
        id=f"chunk_{hit.stored.id}",
        chunk=hit.stored.chunk.text,
        similarity=hit.score,
        filepath=document.path,
        metadata=dict(document.metadata),
        updated_at=iso_ms(document.updated_at_ms),
    )


def _with_extras(
    caller: Caller,
    results: Sequence[tuple[v4.MemoryResult, Memory | None, Document | None]],
    found: Sequence[Found],
    include: v4.Include,
) -> list[v4.MemoryResult]:
    """The results with what was asked for beside them."""
    related = {}
    if include.related_memories:
        related = contexts(caller.store.memories, [memory for _, memory, _ in results if memory is not None])
    shown = []
    for result, memory, source in results:
        extras: dict[str, Any] = {}
        if (include.documents or include.summaries) and source is not None:
            extras["documents"] = [_source(caller, source, include)]
        if memory is not None and include.related_memories:
            extras["context"] = related[memory.id]
        if memory is not None and include.chunks:
            extras["chunks"] = [
                _result_chunk(hit, document) for hit, document in found if source is not None and document.id == source.id
            ][:MEMORY_CHUNKS_MAX]
        shown.append(result.model_copy(update=extras))
    return shown


def _source(caller: Caller, document: Document, include: v4.Include) -> v4.ResultDocument:
    return v4.ResultDocument(
        id=document.id,
        title=document.title,
        type=type_of(document),
        metadata=dict(document.metadata),
        summary=summary_of(caller, document) if include.summaries else None,
        created_at=iso_ms(document.created_at_ms),
        updated_at=iso_ms(document.updated_at_ms),
    )


def profile(caller: Caller, engine: Engine, request: v4.ProfileRequest) -> v4.ProfileAnswer:
    """What is known, by importance; with `q` also what fits it. A container that does not exist knows nothing."""
    tag = request.tag
    if tag is None:
        raise InvalidError("containerTag must name whose profile it is")
    scope = next(iter(scopes_of(caller, [tag], None)), None)
    sections: set[str] = set(_SECTIONS if request.include is None else request.include)
    facts = _facts(caller, engine, scope, request, sections)
    found = None
    if request.q is not None and scope is not None:
        query = v4.SearchMemories(
            q=request.q, container_tag=tag, search_mode="hybrid", threshold=request.threshold, filters=request.filters
        )
        found = search_memories(caller, engine, query)
    return v4.ProfileAnswer(profile=facts, search_results=found)


def _facts(
    caller: Caller, engine: Engine, place: tuple[Container, Scope] | None, request: v4.ProfileRequest, sections: set[str]
) -> v4.ProfileFacts:
    memories: Sequence[Memory] = ()
    condition = condition_of(request.filters)
    if place is not None:
        memories = engine.memories.latest(place[0].id)
        if condition is not None or place[1].folder != "/":
            memories = [memory for memory, _ in _fitting(caller, memories, place[1], condition)]
    known = most_important(memories, now_ms=caller.store.now_ms())
    buckets = None
    if "buckets" in sections and place is not None:
        buckets = _buckets(caller, engine, place[0], [*known.static, *known.dynamic], request.buckets)
    return v4.ProfileFacts(
        static=known.static_texts if "static" in sections else None,
        dynamic=known.dynamic_texts if "dynamic" in sections else None,
        buckets=buckets,
    )


def _buckets(
    caller: Caller, engine: Engine, container: Container, memories: Sequence[Memory], only: Sequence[str] | None
) -> dict[str, list[str]] | None:
    """Each fact in the bucket of the container's settings whose description it is closest to, if to any; a fact's metadata may
    name its `bucket`. None when the container has no buckets."""
    defined = caller.store.containers.settings(container.id).get(BUCKETS_KEY)
    if not isinstance(defined, list) or not defined:
        return None
    texts = {str(entry["key"]): f"{entry['key']} {entry.get('description') or ''}" for entry in defined}
    best: dict[str, tuple[float, str]] = {}
    for key, text in texts.items():
        for memory, similarity in rank(engine.static, memories, text, threshold=BUCKET_THRESHOLD):
            best[memory.id] = max(best.get(memory.id, (0.0, key)), (similarity, key), key=lambda item: item[0])
    filled: dict[str, list[str]] = {key: [] for key in texts if only is None or key in only}
    for memory in memories:
        named = memory.metadata.get("bucket")
        key = str(named) if named in texts else best.get(memory.id, (0.0, ""))[1]
        if key in filled:
            filled[key].append(memory.candidate.text)
    return filled
