"""Passages for `/v3` and `/v4`: several containers, filters, one document; over the same searcher as `/v1`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from memdir.retrieval.types import Hit, SearchQuery
from memdir.server.access import Caller
from memdir.server.engine import Engine
from memdir.server.services import documents
from memdir.server.services.filters import fits
from memdir.server.services.search import current_hits, scope_of
from memdir.store.conditions import Condition
from memdir.store.types import Container, Document, Scope

FILTERED_HITS: Final = (200, 2000, 10_000)
"""Hits asked for, one after the other, until a filter lets enough of them pass."""

Found = tuple[Hit, Document]
Scopes = Sequence[tuple[Container, Scope]]


def scopes_of(caller: Caller, tags: Sequence[str] | None, filepath: str | None) -> Scopes:
    """Where to search: the containers named (all that the key may read without), each below `filepath`."""
    path = caller.narrowed(filepath or "/")
    folder = filepath is not None and filepath.endswith("/")
    return [(c, scope_of(caller, c.id, path, folder=folder)) for c in documents.containers(caller, tags)]


def passages(
    caller: Caller,
    engine: Engine,
    scopes: Scopes,
    text: str,
    *,
    limit: int,
    threshold: float | None,
    condition: Condition | None,
    document_id: str | None = None,
) -> list[Found]:
    """Whole passages of several containers, best first."""
    found: list[Found] = []
    for _, scope in scopes:
        found += _in_scope(caller, engine, scope, text, limit, threshold, condition, document_id)
    return sorted(found, key=lambda item: (-item[0].score, item[1].path or item[1].id, item[0].start_byte))


def _in_scope(
    caller: Caller,
    engine: Engine,
    scope: Scope,
    text: str,
    limit: int,
    threshold: float | None,
    condition: Condition | None,
    document_id: str | None,
) -> list[Found]:
    narrow = condition is not None or document_id is not None
    passing: list[Found] = []
    for asked in FILTERED_HITS if narrow else (limit,):
        query = SearchQuery(text=text, scope=scope, limit=asked, threshold=threshold, lines=False)
        hits, outcome = current_hits(caller, engine, query)
        passing = [
            (hit, document)
            for hit, document in hits
            if fits(condition, document.metadata) and (document_id is None or document_id in (document.id, document.custom_id))
        ]
        if len(passing) >= limit or len(outcome.hits) < asked:
            break
    return passing


def timing_ms(began: float) -> float:
    """Milliseconds since `began`."""
    return round((time.perf_counter() - began) * 1000, 3)
