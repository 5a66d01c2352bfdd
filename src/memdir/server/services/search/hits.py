"""Hits of the searcher with the documents they stand in."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memdir.api.search import Reranking
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.search.reranking import reranked
from memdir.store.jobs.queue import LONG_BYTES
from memdir.store.passages.reading import IN_MAX
from memdir.store.types import Document

SPARE_HITS: Final = 10
"""Further hits asked for, in place of those whose document was edited and is not indexed again yet."""
FRESH_WAIT_S: Final = 0.03
"""How long a search waits for what was saved before it, so that who saves and then asks finds it: indexing takes some 10 ms."""
_LOOK_S: Final = 0.001
Found = tuple[Hit, Document]


def wait_for_edits(caller: Caller, engine: Engine, container_ids: Sequence[int]) -> None:
    """Until edits that were answered before now are found by words, at most FRESH_WAIT_S. Imports are not waited for, and rest
    meanwhile."""
    now_ms, deadline = caller.store.now_ms(), time.monotonic() + FRESH_WAIT_S
    with engine.in_flight.search():
        while caller.store.jobs.edits_asked(container_ids[:IN_MAX], until_ms=now_ms) and time.monotonic() < deadline:
            time.sleep(_LOOK_S)


def current_hits(caller: Caller, engine: Engine, query: SearchQuery) -> tuple[list[tuple[Hit, Document]], SearchOutcome]:
    """Hits with their documents, without those whose text is not the document's any more."""
    searcher = engine.searcher
    with engine.in_flight.search():
        outcome = searcher.search(query)
        documents = caller.store.documents.indexed([hit.document_id for hit in outcome.hits])
    hits = [(hit, documents[hit.document_id]) for hit in outcome.hits if hit.document_id in documents]
    # An edit may have been indexed since the searcher read its passage, which is gone then.
    changed = [hit.stored.id for hit, document in hits if hit.stored.revision != document.revision]
    gone = set(changed).difference(engine.chunks.origins(changed)) if changed else set()
    hits = [(hit, document) for hit, document in hits if hit.stored.id not in gone]
    unread = {document.id for _, document in hits if document.status == "embedding" and document.size_bytes < LONG_BYTES}
    if unread:
        engine.shown.extend(unread)
        caller.store.notify(query.scope.container_id)
    return hits, outcome


def reranked_hits(engine: Engine, text: str, found: list[Found]) -> tuple[list[Found], Reranking]:
    """Hits in the order of the reranker, which reads whole passages."""
    ordered = reranked(engine, text, [(item, item[0].score) for item in found], lambda item: item[0].stored.chunk.text)
    return [(replace(hit, score=score), document) for (hit, document), score in ordered.items], ordered.said
