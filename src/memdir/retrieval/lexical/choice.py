"""Which index of words a store is searched with."""

from __future__ import annotations

from collections.abc import Sequence

from memdir.retrieval.derived_index import DerivedIndex
from memdir.retrieval.lexical.index import WordIndexes
from memdir.retrieval.lexical.port import LexicalIndex
from memdir.store.protocols import ChunkStore, WordSearch
from memdir.store.store import Store
from memdir.store.types import Scope


class EngineIndex:
    """The database's own index of words, which changes with the passages themselves. A process that only indexes has none."""

    def __init__(self, chunks: ChunkStore) -> None:
        self._chunks = chunks

    def search(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        if not isinstance(self._chunks, WordSearch):
            raise TypeError(f"{type(self._chunks).__name__} has no index of words, and none was opened beside it")
        return self._chunks.lexical(scope, phrases, limit)

    def follow(self, container_id: int) -> None:
        """Nothing is behind."""

    def settle(self, container_id: int) -> None:
        """Nothing is behind."""

    def close(self) -> None:
        """Nothing is held."""


def word_indexes(store: Store) -> WordIndexes | None:
    """For a store that one process owns and that tells what changed; None where the database has its own. To be closed before
    the store."""
    feed = store.passage_log()
    return None if feed is None else WordIndexes(feed, store.folder)


def words_among(indexes: Sequence[DerivedIndex], chunks: ChunkStore) -> LexicalIndex:
    """The index of words among the derived ones, or the database's own."""
    found = [index for index in indexes if isinstance(index, WordIndexes)]
    return found[0] if found else EngineIndex(chunks)
