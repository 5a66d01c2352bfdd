"""Searching the memories of agents by meaning while the worker embeds them."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from memdir.api import agents as wire
from memdir.server.agents.semantic import SemanticSearch
from memdir.server.agents.writing import bring_in
from memdir.server.engine import Engine
from memdir.server.http.access import Caller
from memdir.server.in_process import KEY
from memdir.server.indexing.in_flight import SearchesInFlight
from memdir.store.passages.vectors import NOTHING_NEAR
from tests.server.conftest import AnyStore

SAID = "The walrus sleeps at noon"


def test_a_memory_that_is_embedded_during_the_search_is_found(store: AnyStore) -> None:
    """Its vector comes just after the vectors were looked through, and its job is gone just before the jobs are."""
    caller = Caller(key=KEY, store=store)
    bring_in(caller, wire.ImportRequest(container_tag="agents", items=[wire.ImportItem(content=SAID)]))
    container = store.containers.get("local", "agents")
    vector = np.ones(4, dtype=np.float32) / 2

    def nearest(*_: Any, **__: Any) -> Any:
        for kind in ("index", "embed"):
            store.jobs.finish(store.jobs.claim(kind))
        return NOTHING_NEAR

    classifier = SimpleNamespace(
        embedder=SimpleNamespace(
            name="model", embed_query=lambda _: vector, embed_passages=lambda texts: np.stack([vector] * len(texts))
        ),
        can_read=lambda _: True,
        probability=lambda _, best: best,
    )
    engine = SimpleNamespace(
        prompt_classifier=lambda _: classifier,
        in_flight=SearchesInFlight(),
        vectors=SimpleNamespace(nearest=nearest),
        chunks=store.chunks(),
    )
    search = SemanticSearch.of(caller, cast(Engine, engine), container.id, None, lambda _: True, wait_s=0.0)
    assert search is not None
    found = search.nearest("when does it sleep")
    assert found is not None
    assert [(record.content, cosine) for record, cosine in found.memories] == [(SAID, 1.0)]
