"""Passages for `/v3` and `/v4`: several containers, filters, one document; over the same searcher as `/v1`."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from memdir.retrieval.types import SearchQuery
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.services.contents import documents
from memdir.server.services.search.filters import fits
from memdir.server.services.search.hits import SPARE_HITS, Found, current_hits, wait_for_edits
from memdir.server.services.search.v1 import scope_of
from memdir.store.tree.metadata_conditions import Condition
from memdir.store.types import Chosen, Container, Scope

Scopes = Sequence[tuple[Container, Scope]]

_NOTHING: Final[Scopes] = ()


def scopes_of(caller: Caller, tags: Sequence[str] | None, filepath: str | None) -> Scopes:
    """Where to search: the containers named (all that the key may read without), each below `filepath`."""
    path = caller.narrowed(filepath or "/")
    folder = filepath is not None and filepath.endswith("/")
    return [(c, scope_of(caller, c.id, path, folder=folder)) for c in documents.containers(caller, tags)]


def chosen_by(caller: Caller, scopes: Scopes, condition: Condition | None) -> Scopes:
    """The scopes with only those documents in them whose metadata fulfils a filter."""
    if condition is None:
        return scopes
    return [(c, replace(scope, chosen=caller.store.chooser.chosen(c.id, condition))) for c, scope in scopes]


def only_document(caller: Caller, scopes: Scopes, name: str, condition: Condition | None) -> Scopes:
    """The scopes with one document in them, by its id or its custom id (which several containers may have, one each)."""
    found = [document for document in caller.store.documents.by_any_id(caller.org_id, name) if caller.sees(document)]
    ids = {document.container_id: document.id for document in found if fits(condition, document.metadata)}
    return [(c, replace(scope, chosen=Chosen(ids=frozenset({ids[c.id]})))) for c, scope in scopes if c.id in ids] or _NOTHING


def passages(caller: Caller, engine: Engine, scopes: Scopes, text: str, *, limit: int, threshold: float | None) -> list[Found]:
    """Whole passages of several containers, best first, at most `limit`.

    Scores of different containers compare: their height tells how sure the signals are in absolute terms.
    """
    found: list[Found] = []
    wait_for_edits(caller, engine, [scope.container_id for _, scope in scopes])
    for _, scope in scopes:
        query = SearchQuery(text=text, scope=scope, limit=limit + SPARE_HITS, threshold=threshold, lines=False)
        hits, _ = current_hits(caller, engine, query)
        found += hits[:limit]
    return sorted(found, key=lambda item: (-item[0].score, item[1].path or item[1].id, item[0].start_byte))[:limit]


def timing_ms(began: float) -> float:
    """Milliseconds since `began`."""
    return round((time.perf_counter() - began) * 1000, 3)
