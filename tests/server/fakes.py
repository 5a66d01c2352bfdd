"""Stand-ins for the models: real code, deterministic, instant."""

from __future__ import annotations

import hashlib
from collections import deque

import numpy as np

from memdir.retrieval.embed.port import CosineScale
from memdir.retrieval.lexical.choice import EngineIndex
from memdir.retrieval.memories import MemoryIndex
from memdir.server.indexing.in_flight import SearchesInFlight
from memdir.store.store import Store
from memdir.store.types import Matrix, Scope

DIM = 16


class HashEmbedder:
    """A vector from the text's hash. `poison` in a text makes the whole batch fail, as a broken model would."""

    def __init__(self, name: str, *, poison: str | None = None) -> None:
        self._name = name
        self._poison = poison
        self.seen: list[str] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def dim(self) -> int:
        return DIM

    @property
    def scale(self) -> CosineScale:
        return CosineScale(unrelated=0.0, close=1.0, middle=0.6, slope=20.0)

    def embed_query(self, text: str) -> Matrix:
        raw = np.frombuffer(hashlib.sha512(text.encode()).digest()[: DIM * 2], dtype=np.int16).astype(np.float32)
        unit: Matrix = raw / np.float32(np.linalg.norm(raw))
        return unit

    def embed_passages(self, texts: list[str]) -> Matrix:
        if self._poison is not None and any(self._poison in text for text in texts):
            raise RuntimeError("the model broke")
        self.seen += texts
        return np.stack([self.embed_query(text) for text in texts]) if texts else np.zeros((0, DIM), dtype=np.float32)


class FakeEngine:
    """What the worker needs of `server.engine.Engine`, loaded at once."""

    def __init__(self, store: Store, *, dense: HashEmbedder | None = None, poison: str | None = None) -> None:
        self.chunks = store.chunks()
        self.words = EngineIndex(self.chunks)
        self.memories = store.memories
        self.memory_index = MemoryIndex(store.memory_search, self.chunks)
        self.static = HashEmbedder("fake-static", poison=poison)
        self.dense = dense
        self.in_flight = SearchesInFlight()
        self.shown: deque[str] = deque()
        self.ready = True
        self.settled = True

    def embedded(self, container_id: int, model: str) -> list[int]:
        """Chunks of a container that have a vector of `model`."""
        query = np.zeros(DIM, dtype=np.float32)
        return sorted(self.chunks.nearest(Scope(container_id=container_id), query, model=model, limit=1000).ids.tolist())
