"""Search over documents, as `/v3` answers it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from memdir.api import v3
from memdir.core.clock import iso_ms
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.contents import documents
from memdir.server.services.contents.views import summary_of, type_of
from memdir.server.services.search.filters import condition_of
from memdir.server.services.search.hits import Found, reranked_hits
from memdir.server.services.search.passages import chosen_by, only_document, passages, scopes_of, timing_ms

PASSAGES_EACH: Final = 6
"""Passages looked at for each document that is asked for."""
PASSAGES_MIN: Final = 60
"""At least so many: the best few may be of one document."""


def search_documents(caller: Caller, engine: Engine, request: v3.SearchDocuments) -> v3.DocumentResults:
    """Documents with their passages. A document scores as its best passage."""
    began = time.perf_counter()
    condition = condition_of(request.filters)
    scopes = scopes_of(caller, request.tags, request.filepath)
    if request.doc_id is not None:
        scopes = only_document(caller, scopes, request.doc_id, condition)
    else:
        scopes = chosen_by(caller, scopes, condition)
    hits = passages(
        caller,
        engine,
        scopes,
        request.q,
        limit=max(PASSAGES_MIN, request.limit * PASSAGES_EACH),
        threshold=request.chunk_threshold,
    )
    least = request.document_threshold or 0.0
    hits = [item for group in _by_document(hits) if group[0][0].score >= least for item in group]
    reranking = None
    if request.rerank:
        hits.sort(key=lambda item: (-item[0].score, item[1].path or item[1].id, item[0].start_byte))
        hits, reranking = reranked_hits(engine, request.q, hits)
    passing = _by_document(hits)
    results = [_result(caller, engine, group, request) for group in passing[: request.limit]]
    return v3.DocumentResults(results=results, timing=timing_ms(began), total=len(passing), reranking=reranking)


def _by_document(hits: Sequence[Found]) -> list[list[Found]]:
    """The hits of each document together, documents and hits in the order they came in."""
    grouped: dict[str, list[Found]] = {}
    for hit, document in hits:
        grouped.setdefault(document.id, []).append((hit, document))
    return list(grouped.values())


def _result(caller: Caller, engine: Engine, group: Sequence[Found], request: v3.SearchDocuments) -> v3.DocumentResult:
    document = group[0][1]
    chunks = [
        v3.ChunkResult(content=hit.stored.chunk.text, score=hit.score, is_relevant=True, position=hit.stored.chunk.ordinal)
        for hit, _ in group
    ]
    if not request.only_matching_chunks:
        matching = {chunk.position for chunk in chunks}
        around = {place + step for place in matching for step in (-1, 1)} - matching
        chunks += [
            v3.ChunkResult(content=stored.chunk.text, score=0.0, is_relevant=False, position=stored.chunk.ordinal)
            for stored in engine.chunks.document_chunks(document.id)
            if stored.chunk.ordinal in around
        ]
        chunks.sort(key=lambda chunk: chunk.position)
    return v3.DocumentResult(
        document_id=document.id,
        title=document.title,
        type=type_of(document),
        filepath=document.path,
        score=group[0][0].score,
        chunks=chunks,
        content=documents.text_content(caller, document) if request.include_full_docs else None,
        summary=summary_of(caller, document) if request.include_summary else None,
        metadata=dict(document.metadata),
        created_at=iso_ms(document.created_at_ms),
        updated_at=iso_ms(document.updated_at_ms),
    )
