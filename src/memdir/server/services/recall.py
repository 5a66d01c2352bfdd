"""Search over memories and passages, and the profile, as `/v4` answers them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Final

from memdir.api import v4
from memdir.core.clock import iso_ms
from memdir.memory.profile import profile as most_important
from memdir.server.access import Caller
from memdir.server.engine import Engine
from memdir.server.services.filters import condition_of, fits
from memdir.server.services.passages import Scopes, chosen_by, passages, scopes_of, timing_ms
from memdir.server.services.ranking import rank
from memdir.server.services.relatives import contexts
from memdir.server.services.reranking import reranked
from memdir.server.services.search import Found
from memdir.server.services.views import summary_of, type_of
from memdir.store.conditions import Condition
from memdir.store.containers import BUCKETS_KEY
from memdir.store.errors import InvalidError
from memdir.store.types import Container, Document, Memory, Scope

MEMORY_CHUNKS_MAX: Final = 3
"""Passages shown beside one memory."""
BUCKET_THRESHOLD: Final = 0.25
_SECTIONS: Final = ("static", "dynamic", "buckets")


def search_memories(caller: Caller, engine: Engine, request: v4.SearchMemories) -> v4.MemoryResults:
    """Memories, passages, or both by similarity."""
    began = time.perf_counter()
    scopes = scopes_of(caller, request.tags, request.filepath)
    condition = condition_of(request.filters)
    with_passages = request.search_mode in ("documents", "hybrid")
    memories = [] if request.search_mode == "documents" else _memories(caller, engine, scopes, request, condition)
    found: list[Found] = []
    if with_passages or (memories and request.include.chunks):
        chosen = chosen_by(caller, scopes, condition)
        found = passages(caller, engine, chosen, request.q, limit=request.limit, threshold=request.threshold)
    results: list[tuple[v4.MemoryResult, Memory | None, Document | None]] = []
    for memory, similarity, source in memories:
        results.append((_memory_result(memory, similarity, source), memory, source))
    if with_passages:
        results += [(_chunk_result(*item), None, item[1]) for item in found]
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
    caller: Caller, engine: Engine, scopes: Scopes, request: v4.SearchMemories, condition: Condition | None
) -> list[tuple[Memory, float, Document | None]]:
    ranked: list[tuple[Memory, float, Document | None]] = []
    for container, scope in scopes:
        memories = engine.memories.latest(container.id, forgotten=request.include.forgotten_memories)
        sources = {memory.id: source for memory, source in _fitting(caller, memories, scope, condition)}
        inside = [memory for memory in memories if memory.id in sources]
        for memory, similarity in rank(engine.static, inside, request.q, threshold=request.threshold):
            ranked.append((memory, similarity, sources[memory.id]))
    return ranked


def _fitting(
    caller: Caller, memories: Sequence[Memory], scope: Scope, condition: Condition | None
) -> list[tuple[Memory, Document | None]]:
    """The memories said inside a scope whose metadata fits, with the documents that say them."""
    sources = caller.store.documents.many({m.document_id for m in memories if m.document_id is not None})
    found = [(memory, sources.get(memory.document_id or "")) for memory in memories]
    return [(m, source) for m, source in found if _inside(source, scope) and fits(condition, metadata_of(m, source))]


def _inside(source: Document | None, scope: Scope) -> bool:
    """What has no place is in the whole container only."""
    whole = scope.folder == "/" and not scope.exact
    if source is None or source.path is None:
        return whole
    if scope.exact:
        return source.path == scope.folder
    return whole or source.path.startswith(scope.folder + "/")


def metadata_of(memory: Memory, source: Document | None) -> Mapping[str, Any]:
    """A memory's own metadata, over that of the document that says it."""
    return {**(source.metadata if source is not None else {}), **memory.metadata}


def _memory_result(memory: Memory, similarity: float, source: Document | None) -> v4.MemoryResult:
    return v4.MemoryResult(
        id=memory.id,
        memory=memory.candidate.text,
        similarity=similarity,
        filepath=None if source is None else source.path,
        metadata=dict(metadata_of(memory, source)),
        updated_at=iso_ms(memory.updated_at_ms),
        version=memory.version,
        root_memory_id=memory.root_id,
        is_forgotten=True if memory.is_forgotten else None,
    )


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
                v4.ResultChunk(content=hit.stored.chunk.text, document_id=document.id, position=hit.stored.chunk.ordinal)
                for hit, document in found
                if source is not None and document.id == source.id
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
