"""Which index of words a store is searched with."""

from __future__ import annotations

from collections.abc import Sequence

from memdir.retrieval.derived_index import DerivedIndex
from memdir.retrieval.lexical.index import SegmentedIndex
from memdir.retrieval.lexical.port import LexicalIndex
from memdir.store.protocols import ChunkStore
from memdir.store.store import Store
from memdir.store.types import Scope


class EngineIndex:
    """The database's own index of words, which changes with the passages themselves."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks

    def search(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        return self._chunks.lexical(scope, phrases, limit)

    def follow(self, container_id: int) -> None:
        """Nothing is behind."""

    def settle(self, container_id: int) -> None:
        """Nothing is behind."""

    def close(self) -> None:
        """Nothing is held."""


def segmented_index(store: Store) -> SegmentedIndex | None:
    """For a store that one process owns and that tells what changed; None where the database has its own. To be closed before
    the store."""
    feed = store.passage_log()
    if feed is None:
        return None
    chunks = store.chunks()
    return SegmentedIndex(feed, store.folder, fallback=chunks.lexical, newer=chunks.lexical_above)


def words_among(indexes: Sequence[DerivedIndex], chunks: ChunkStore) -> LexicalIndex:
    """The index of words among the derived ones, or the database's own."""
    found = [index for index in indexes if isinstance(index, SegmentedIndex)]
    return found[0] if found else EngineIndex(chunks)
