"""Vectors of memories, made in the background.

A short memory is its whole document, and its one passage: that text is embedded once. A memory that stands word for word as a
passage takes the vectors of the passage, and waits for them as long as somebody was asked to make them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from memdir.retrieval.embed.port import Embedder
from memdir.server.engine import Engine
from memdir.store.store import Store
from memdir.store.text.passage_text import plain_hash
from memdir.store.types import Matrix

MEMORIES_MAX: Final = 64
"""Memories looked at in one go."""


class MemoryVectors:
    """For one thread. Where it stopped looking is kept, so that memories that wait hold up none behind them."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine
        self._before: str | None = None

    def begin_anew(self) -> None:
        """There are new memories, which come first."""
        self._before = None

    def step(self) -> bool:
        """Vectors of some memories that have none. Returns whether there may be more to do at once; what waits for its passage
        is looked at again when that has its vectors, which wakes the caller."""
        if not (self._engine.ready and self._engine.settled):
            return False
        memories = self._store.memory_search.to_embed(MEMORIES_MAX, before=self._before)
        if not memories and self._before is not None:
            memories = self._store.memory_search.to_embed(MEMORIES_MAX)
        self._before = memories[-1].id if len(memories) == MEMORIES_MAX else None
        digests = [plain_hash(memory.text) for memory in memories]
        dense = self._engine.dense
        awaited = set() if dense is None else self._store.embedding.awaited(digests)
        chosen = [place for place, digest in enumerate(digests) if digest not in awaited]
        if not chosen:
            return False
        memories = [memories[place] for place in chosen]
        texts = {digests[place]: memory.text for place, memory in zip(chosen, memories, strict=True)}
        rows = [list(texts).index(digests[place]) for place in chosen]
        models = [self._engine.static, *([] if dense is None else [dense])]
        self._store.memory_search.add_vectors(memories, {model.name: self._vectors(model, texts)[rows] for model in models})
        return True

    def _vectors(self, model: Embedder, texts: dict[bytes, str]) -> Matrix:
        """Of distinct texts by their hashes, in order; what is stored of the same text is taken over."""
        known = self._engine.chunks.vectors_by_text(list(texts), model=model.name)
        made = iter(_made(model, [text for digest, text in texts.items() if digest not in known]))
        vectors = [np.frombuffer(known[digest], dtype="<f4") if digest in known else next(made) for digest in texts]
        return np.stack(vectors)


def _made(model: Embedder, texts: list[str]) -> Sequence[Matrix]:
    return list(model.embed_passages(texts)) if texts else []
