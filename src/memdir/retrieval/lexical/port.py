"""Finding passages by their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from memdir.store.types import Scope


class LexicalIndex(Protocol):
    """Any thread may search."""

    def search(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Chunk ids and BM25 (higher is better) of passages that hold any of `phrases`, each a word or several words that stand
        side by side; best first. Sees every write that returned before. The scope is applied before the limit."""
        ...

    def follow(self, container_id: int) -> None:
        """Its passages have changed: what has to be made ready for the next search is begun. Returns at once."""
        ...

    def settle(self, container_id: int) -> None:
        """Make all of that ready now."""
        ...

    def close(self) -> None:
        """End what is under way."""
        ...
