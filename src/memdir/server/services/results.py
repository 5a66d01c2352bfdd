"""Search results for `/v3` and `/v4`, and the profile: over the same searcher as `/v1`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from memdir.api import v3, v4
from memdir.core.clock import iso_ms
from memdir.memory.profile import profile as most_important
from memdir.retrieval.types import Hit, SearchQuery
from memdir.server.access import Caller
from memdir.server.engine import Engine
from memdir.server.services import documents
from memdir.server.services.filters import predicate
from memdir.server.services.memories import rank
from memdir.server.services.search import current_hits, scope_of
from memdir.store.types import Container, Document, Memory, Scope

FILTERED_HITS: Final = 200
"""Hits asked for when a filter or a document id will leave many out."""


def _scopes(caller: Caller, tags: Sequence[str] | None, filepath: str | None) -> list[tuple[Container, Scope]]:
    path = caller.narrowed(filepath or "/")
    folder = filepath is not None and filepath.endswith("/")
    return [(c, scope_of(caller, c.id, path, folder=folder)) for c in documents.containers(caller, tags)]


def _hits(
    caller: Caller,
    engine: Engine,
    scopes: Sequence[tuple[Container, Scope]],
    text: str,
    *,
    limit: int,
    threshold: float | None,
    filters: v3.Filters | None,
    document_id: str | None = None,
) -> list[tuple[Hit, Document]]:
    """Whole passages of several containers, best first."""
    wanted = predicate(filters)
    narrow = wanted is not None or document_id is not None
    found: list[tuple[Hit, Document]] = []
    for _, scope in scopes:
        query = SearchQuery(text=text, scope=scope, limit=FILTERED_HITS if narrow else limit, threshold=threshold, lines=False)
        hits, _ = current_hits(caller, engine, query)
        found += [
            (hit, document)
            for hit, document in hits
            if (wanted is None or wanted(document.metadata))
            and (document_id is None or document_id in (document.id, document.custom_id))
        ]
    return sorted(found, key=lambda item: (-item[0].score, item[1].path or item[1].id, item[0].start_byte))


def _timing_ms(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 3)


def search_documents(caller: Caller, engine: Engine, request: v3.SearchDocuments) -> v3.DocumentResults:
    """Documents with their passages. A document scores as its best passage."""
    began = time.perf_counter()
    tags = request.container_tags or ([request.container_tag] if request.container_tag else None)
    hits = _hits(
        caller,
        engine,
        _scopes(caller, tags, request.filepath),
        request.q,
        limit=request.limit * 5,
        threshold=request.chunk_threshold,
        filters=request.filters,
        document_id=request.doc_id,
    )
    grouped: dict[str, list[tuple[Hit, Document]]] = {}
    for hit, document in hits:
        grouped.setdefault(document.id, []).append((hit, document))
    results = [_document_result(caller, engine, group, request) for group in grouped.values()]
    passing = [r for r in results if request.document_threshold is None or r.score >= request.document_threshold]
    return v3.DocumentResults(results=passing[: request.limit], timing=_timing_ms(began), total=len(passing))


def _document_result(
    caller: Caller, engine: Engine, group: Sequence[tuple[Hit, Document]], request: v3.SearchDocuments
) -> v3.DocumentResult:
    document = group[0][1]
    chunks = [v3.ChunkResult(content=hit.stored.chunk.text, score=hit.score, is_relevant=True) for hit, _ in group]
    if not request.only_matching_chunks:
        matching = {hit.stored.id for hit, _ in group}
        chunks += [
            v3.ChunkResult(content=stored.chunk.text, score=0.0, is_relevant=False)
            for stored in engine.chunks.document_chunks(document.id)
            if stored.id not in matching
        ]
    return v3.DocumentResult(
        document_id=document.id,
        title=document.title,
        type=documents.type_of(document),
        filepath=document.path,
        score=group[0][0].score,
        chunks=chunks,
        content=documents.text_content(caller, document) if request.include_full_docs else None,
        metadata=dict(document.metadata),
        created_at=iso_ms(document.created_at_ms),
        updated_at=iso_ms(document.updated_at_ms),
    )


def search_memories(caller: Caller, engine: Engine, request: v4.SearchMemories) -> v4.MemoryResults:
    """Memories, passages, or both by similarity."""
    began = time.perf_counter()
    tags = request.container_tags or ([request.container_tag] if request.container_tag else None)
    scopes = _scopes(caller, tags, request.filepath)
    results: list[v4.MemoryResult] = []
    if request.search_mode in ("memories", "hybrid"):
        for container, scope in scopes:
            results += _memory_results(caller, engine, container, scope, request)
    if request.search_mode in ("documents", "hybrid"):
        hits = _hits(
            caller, engine, scopes, request.q, limit=request.limit, threshold=request.threshold, filters=request.filters
        )
        results += [_chunk_result(hit, document, request) for hit, document in hits]
    results.sort(key=lambda result: (-result.similarity, result.filepath or "", result.id))
    return v4.MemoryResults(results=results[: request.limit], timing=_timing_ms(began), total=len(results))


def _chunk_result(hit: Hit, document: Document, request: v4.SearchMemories) -> v4.MemoryResult:
    return v4.MemoryResult(
        id=f"chunk_{hit.stored.id}",
        chunk=hit.stored.chunk.text,
        similarity=hit.score,
        filepath=document.path,
        metadata=dict(document.metadata),
        updated_at=iso_ms(document.updated_at_ms),
        documents=[_source(document)] if request.include.documents else None,
    )


def _memory_results(
    caller: Caller, engine: Engine, container: Container, scope: Scope, request: v4.SearchMemories
) -> list[v4.MemoryResult]:
    wanted = predicate(request.filters)
    memories = engine.memories.latest(container.id)
    sources: dict[str, Document | None] = {
        document_id: caller.store.documents.get(document_id) for document_id in {m.document_id for m in memories}
    }
    inside = [m for m in memories if _fits(sources[m.document_id], scope, wanted)]
    results = []
    for memory, similarity in rank(engine.static, inside, request.q, threshold=request.threshold):
        document = sources[memory.document_id]
        assert document is not None
        results.append(_memory_result(memory, similarity, document, request))
    return results


def _fits(document: Document | None, scope: Scope, wanted: Any) -> bool:
    if document is None or document.path is None:
        return False
    if scope.exact:
        inside = document.path == scope.folder
    else:
        inside = scope.folder == "/" or document.path.startswith(scope.folder + "/")
    return inside and (wanted is None or wanted(document.metadata))


def _memory_result(memory: Memory, similarity: float, document: Document, request: v4.SearchMemories) -> v4.MemoryResult:
    return v4.MemoryResult(
        id=memory.id,
        memory=memory.candidate.text,
        similarity=similarity,
        filepath=document.path,
        metadata=dict(document.metadata),
        updated_at=iso_ms(memory.updated_at_ms),
        version=memory.version,
        root_memory_id=memory.root_id,
        documents=[_source(document)] if request.include.documents else None,
    )


def _source(document: Document) -> v4.ResultDocument:
    return v4.ResultDocument(
        id=document.id,
        title=document.title,
        type=documents.type_of(document),
        metadata=dict(document.metadata),
        created_at=iso_ms(document.created_at_ms),
        updated_at=iso_ms(document.updated_at_ms),
    )


def _visible(caller: Caller, engine: Engine, container: Container, scope: Scope) -> list[Memory]:
    """The memories that hold, of a key bound to a folder those that were read there."""
    memories = engine.memories.latest(container.id)
    if scope.folder == "/":
        return list(memories)
    sources = {document_id: caller.store.documents.get(document_id) for document_id in {m.document_id for m in memories}}
    return [memory for memory in memories if _fits(sources[memory.document_id], scope, None)]


def profile(caller: Caller, engine: Engine, request: v4.ProfileRequest) -> v4.ProfileAnswer:
    """What is known, by importance; with `q` also what fits it. A container that does not exist knows nothing."""
    scope = next(iter(_scopes(caller, [request.container_tag], None)), None)
    if scope is None:
        return v4.ProfileAnswer(profile=v4.ProfileFacts(static=[], dynamic=[]))
    known = most_important(_visible(caller, engine, *scope), now_ms=caller.store.now_ms())
    found = None
    if request.q is not None:
        query = v4.SearchMemories(
            q=request.q, container_tag=request.container_tag, search_mode="hybrid", threshold=request.threshold
        )
        found = search_memories(caller, engine, query)
    facts = v4.ProfileFacts(static=known.static_texts, dynamic=known.dynamic_texts)
    return v4.ProfileAnswer(profile=facts, search_results=found)
