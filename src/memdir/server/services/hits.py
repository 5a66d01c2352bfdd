"""Hits of the searcher with the documents they stand in."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from memdir.api.search import Reranking
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery
from memdir.server.access import Caller
from memdir.server.engine import Engine
from memdir.server.services.reranking import reranked
from memdir.store.types import Document

SPARE_HITS: Final = 10
"""Further hits asked for, in place of those whose document was edited and is not indexed again yet."""
Found = tuple[Hit, Document]


def current_hits(caller: Caller, engine: Engine, query: SearchQuery) -> tuple[list[tuple[Hit, Document]], SearchOutcome]:
    """Hits with their documents, without those whose text is not the document's any more."""
    searcher = engine.searcher
    with engine.quiet.asking():
        outcome = searcher.search(query)
        documents = caller.store.documents.indexed([hit.document_id for hit in outcome.hits])
    hits = [(hit, documents[hit.document_id]) for hit in outcome.hits if hit.document_id in documents]
    return hits, outcome


def reranked_hits(engine: Engine, text: str, found: list[Found]) -> tuple[list[Found], Reranking]:
    """Hits in the order of the reranker, which reads whole passages."""
    ordered = reranked(engine, text, [(item, item[0].score) for item in found], lambda item: item[0].stored.chunk.text)
    return [(replace(hit, score=score), document) for (hit, document), score in ordered.items], ordered.said
