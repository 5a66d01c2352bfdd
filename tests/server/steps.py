"""Single documents through the steps of the pipeline."""

from __future__ import annotations

from memdir.server.engine import Engine
from memdir.server.indexing.known_facts import KnownFacts
from memdir.server.indexing.leases import Lease
from memdir.server.indexing.memory_step import remember_all
from memdir.server.indexing.pipeline import index_all
from memdir.store.store import Store


def index(store: Store, engine: Engine, lease: Lease) -> None:
    """Raises what `index_all` tells."""
    for _, error in index_all(store, engine, [lease]):
        raise error


def remember(store: Store, facts: KnownFacts, lease: Lease) -> None:
    """Raises what `remember_all` tells."""
    for _, error in remember_all(store, facts, [lease]):
        raise error
