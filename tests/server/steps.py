"""Single documents through the steps of the pipeline."""

from __future__ import annotations

from memdir.server.engine import Engine
from memdir.server.knownfacts import KnownFacts
from memdir.server.leases import Lease
from memdir.server.pipeline import index_all
from memdir.server.remembering import remember_all
from memdir.store.store import Store


def index(store: Store, engine: Engine, lease: Lease) -> None:
    """Raises what `index_all` tells."""
    for _, error in index_all(store, engine, [lease]):
        raise error


def remember(store: Store, facts: KnownFacts, lease: Lease) -> None:
    """Raises what `remember_all` tells."""
    for _, error in remember_all(store, facts, [lease]):
        raise error
