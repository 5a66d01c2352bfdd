"""What a search asks of vectors, whoever answers: `store.protocols.ChunkStore` has the same methods."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from memdir.store.types import Matrix, Nearest, Scope


class VectorIndex(Protocol):
    """Any thread may call. Answers hold every write that returned before the call."""

    def nearest(self, scope: Scope, query: Matrix, *, model: str, limit: int) -> Nearest:
        """The passages in scope that are closest to `query` (normalised). The scope is applied before the limit."""
        ...

    def counted(self, scope: Scope, *, model: str) -> int | None:
        """How many passages in scope have a vector of `model`; None when counting them would cost as much as a search."""
        ...

    def cosines(self, container_id: int, chunk_ids: Sequence[int], query: Matrix, *, model: str) -> Matrix:
        """The cosine of each chunk with `query`, NaN for one without a vector of `model` and for one of another container."""
        ...

    def named(self, scope: Scope, words: Collection[str], *, model: str, limit: int) -> list[tuple[int, float]]:
        """The first passages of files whose path holds any of the folded `words` in any form, at most `limit`: chunk ids, and
        what the words count together (`store.text.words.path_shares`), best first, ties by path. `model`: the one that all
        passages have vectors of."""
        ...
