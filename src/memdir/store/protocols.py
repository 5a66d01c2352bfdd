"""What each engine does in its own way: searching passages by words and by vectors.

One contract suite runs over every implementation. Writes of one call are one transaction. Reads see every write that
returned before they began. All methods may be called from any thread and block the caller.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from memdir.store.database import Guard
from memdir.store.passages.entity_links import EntityLinks
from memdir.store.types import Chunk, Document, Matrix, MemoryCandidate, Nearest, Origin, Scope, StoredChunk


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """A document cut into passages. `vectors` are those of the static model, shape len(chunks) x dim."""

    document: Document
    chunks: Sequence[Chunk]
    vectors: Matrix
    guard: Guard | None = None

    def __post_init__(self) -> None:
        if len(self.vectors) != len(self.chunks):
            raise ValueError(f"{len(self.chunks)} chunks but {len(self.vectors)} vectors")


@runtime_checkable
class WordSearch(Protocol):
    """What has an index of words of its own."""

    def lexical(self, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
        """Chunk ids and BM25 (higher is better) for any of `phrases`, each a word or several words that stand side by side;
        best first, ties by id. The scope is applied before the limit."""
        ...


class ChunkStore(Protocol):
    """Chunks and their vectors. Derived data: every row carries the document revision it came from."""

    @property
    def entity_links(self) -> EntityLinks:
        """What connects passages with others."""
        ...

    def replace_chunks(
        self, document: Document, chunks: Sequence[Chunk], *, model: str, vectors: Matrix, guard: Guard | None = None
    ) -> Sequence[int]:
        """Put `chunks` in place of the document's earlier ones, with their words and their vectors of `model`
        (shape len(chunks) x dim). Does nothing and returns () when the document has moved on to a newer revision or `guard`
        says no. Returns the chunk ids in order."""
        ...

    def replace_all(self, cuts: Sequence[Cut], *, model: str) -> list[Sequence[int]]:
        """The same for several documents, each for itself: what one of them returns () for happens to the others. An error is
        of all: any of them may then be written or not."""
        ...

    def add_vectors(
        self, chunk_ids: Sequence[int], *, model: str, vectors: Matrix, lines: Sequence[bytes] | None = None
    ) -> int:
        """Vectors of a further model, with those of the lines of each chunk when the model makes them (opaque bytes).
        Chunks that are gone meanwhile are passed over. Returns how many were stored."""
        ...

    def line_vectors(self, chunk_ids: Sequence[int], *, model: str) -> dict[int, bytes]:
        """What `add_vectors` got as `lines`, for those chunks that have it."""
        ...

    def vectors_by_text(self, text_hashes: Sequence[bytes], *, model: str) -> dict[bytes, bytes]:
        """Vectors (float32, little endian) already computed for the same embedded text, so that it is never embedded twice."""
        ...

    def missing_vectors(self, *, model: str, limit: int) -> Sequence[StoredChunk]:
        """Chunks without a vector of `model`, newest documents first."""
        ...

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

    def chunks(self, chunk_ids: Sequence[int]) -> dict[int, StoredChunk]:
        """The stored chunks that still exist."""
        ...

    def origins(self, chunk_ids: Sequence[int]) -> dict[int, Origin]:
        """The files of chunks that still exist."""
        ...

    def document_chunks(self, document_id: str) -> Sequence[StoredChunk]:
        """All chunks of a document in order."""
        ...


class MemoryChange(Protocol):
    """One decision of the reconciler."""

    @property
    def action(self) -> str:
        """`add`, `supersede`, `precede`, `remove` or `strengthen`."""
        ...

    @property
    def candidate(self) -> MemoryCandidate | None: ...

    @property
    def memory_id(self) -> str | None:
        """The existing memory that is superseded, removed or strengthened."""
        ...

    @property
    def relation(self) -> str | None: ...

    @property
    def also_ended(self) -> Sequence[str]:
        """Further existing memories that hold no more by the candidate."""
        ...
