"""Vectors in memory, compared one by one: all of a small container, and what a large one got since its files were made."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Collection
from typing import Final

import numpy as np

from memdir.store.passages.reading import in_place, is_everywhere, is_whole
from memdir.store.passages.vectors import Halves, Rows, half_dots
from memdir.store.paths import below
from memdir.store.text.words import path_shares
from memdir.store.types import Matrix, Scope

_SPARE_MIN: Final = 64
_ENTRY_BYTES: Final = 500
"""What Python keeps of one row beside its vector, about."""


class Tail:
    """Not thread-safe. Changing one file costs as much as the file has, not the container."""

    def __init__(self, dim: int) -> None:
        self._matrix: Halves = np.zeros((0, dim), dtype=np.float16)
        self._ids: Rows = np.zeros(0, dtype=np.int64)
        self._paths: list[str] = []
        self._documents: list[str] = []
        self._row_of: dict[int, int] = {}
        self._rows_of_document: dict[str, set[int]] = {}
        self._rows_of_path: dict[str, set[int]] = {}
        self._sorted: list[str] = []
        self._words: dict[str, dict[str, float]] = {}
        self.dead = 0

    def __len__(self) -> int:
        """Vectors that are there."""
        return len(self._row_of)

    def __contains__(self, chunk_id: int) -> bool:
        return chunk_id in self._row_of

    @property
    def size_bytes(self) -> int:
        """What it takes of memory, about."""
        return int(self._matrix.nbytes) + _ENTRY_BYTES * len(self._paths)

    def add(self, chunk_id: int, vector: Halves, path: str, document_id: str) -> None:
        """A vector that is not there yet."""
        row = len(self._paths)
        if row == len(self._matrix):
            self._grow()
        self._matrix[row] = vector
        self._ids[row] = chunk_id
        self._paths.append(path)
        self._documents.append(document_id)
        self._row_of[chunk_id] = row
        self._rows_of_document.setdefault(document_id, set()).add(row)
        self._place(row, path)

    def drop(self, chunk_id: int) -> bool:
        """Forget a vector; its bytes are overwritten. False when it was not there."""
        row = self._row_of.pop(chunk_id, None)
        if row is None:
            return False
        self._ids[row] = -1
        self._matrix[row] = 0
        self._displace(row)
        rows = self._rows_of_document[self._documents[row]]
        rows.discard(row)
        if not rows:
            del self._rows_of_document[self._documents[row]]
        self.dead += 1
        if self.dead > max(_SPARE_MIN, len(self._row_of)):
            self._compact()
        return True

    def move(self, document_id: str, path: str) -> None:
        """The document stands at `path` now."""
        for row in self._rows_of_document.get(document_id, ()):
            self._displace(row)
            self._paths[row] = path
            self._place(row, path)

    def ids(self) -> list[int]:
        """Every chunk here."""
        return list(self._row_of)

    def compared(self, scope: Scope, query: Matrix) -> tuple[Rows, Matrix]:
        """Every chunk in scope with its cosine."""
        rows = self._rows_in(scope)
        used = slice(0, len(self._paths))
        ids = self._ids[used] if rows is None else self._ids[rows]
        cosines = half_dots(self._matrix[used], query, rows)
        if rows is None and self.dead:
            alive = ids >= 0
            ids, cosines = ids[alive], cosines[alive]
        return ids, cosines

    def counted(self, scope: Scope) -> int:
        """How many chunks are in scope."""
        rows = self._rows_in(scope)
        return len(self) if rows is None else len(rows)

    def cosines(self, chunk_ids: Rows, query: Matrix) -> Matrix:
        """Cosine of each chunk, NaN for one that is not here."""
        found = np.full(len(chunk_ids), np.nan, dtype=np.float32)
        rows = np.array([self._row_of.get(chunk_id, -1) for chunk_id in chunk_ids.tolist()], dtype=np.int64)
        here = np.flatnonzero(rows >= 0)
        if len(here):
            found[here] = half_dots(self._matrix, query, rows[here])
        return found

    def named(self, scope: Scope, stems: Collection[str]) -> dict[str, float]:
        """Paths in the place of `scope` that hold any of `stems`, with what they count."""
        sums: dict[str, float] = {}
        for stem in sorted(stems):
            for path, share in self._words.get(stem, {}).items():
                sums[path] = sums.get(path, 0.0) + share
        return {path: total for path, total in sums.items() if in_place(path, scope)}

    def chunks_at(self, path: str, scope: Scope) -> list[int]:
        """Chunks at `path` of documents that `scope` takes."""
        return [
            int(self._ids[row])
            for row in self._rows_of_path.get(path, ())
            if scope.chosen is None or self._documents[row] in scope.chosen
        ]

    def _rows_in(self, scope: Scope) -> Rows | None:
        """Rows in scope in no order, None for all there are."""
        if is_whole(scope):
            return None
        paths = self._sorted if is_everywhere(scope) else self._sorted[slice(*_range_of(self._sorted, scope))]
        chosen = scope.chosen
        rows = [
            row
            for path in paths
            for row in self._rows_of_path[path]
            if chosen is None or self._documents[row] in chosen
        ]  # fmt: skip
        return np.array(rows, dtype=np.int64)

    def _place(self, row: int, path: str) -> None:
        rows = self._rows_of_path.get(path)
        if rows is None:
            rows = self._rows_of_path[path] = set()
            insort(self._sorted, path)
            for word, share in path_shares(path):
                self._words.setdefault(word, {})[path] = share
        rows.add(row)

    def _displace(self, row: int) -> None:
        path = self._paths[row]
        rows = self._rows_of_path[path]
        rows.discard(row)
        if rows:
            return
        del self._rows_of_path[path]
        del self._sorted[bisect_left(self._sorted, path)]
        for word, _ in path_shares(path):
            paths = self._words[word]
            del paths[path]
            if not paths:
                del self._words[word]

    def _grow(self) -> None:
        spare = max(_SPARE_MIN, len(self._matrix) // 2)
        self._matrix = np.concatenate((self._matrix, np.zeros((spare, self._matrix.shape[1]), dtype=np.float16)))
        self._ids = np.concatenate((self._ids, np.full(spare, -1, dtype=np.int64)))

    def _compact(self) -> None:
        """Close the gaps; paths and words stay as they are."""
        old = np.fromiter(sorted(self._row_of.values()), dtype=np.int64, count=len(self._row_of))
        new_of = {row: place for place, row in enumerate(old.tolist())}
        self._matrix = self._matrix[old]
        self._ids = self._ids[old]
        self._paths = [self._paths[row] for row in old.tolist()]
        self._documents = [self._documents[row] for row in old.tolist()]
        self._row_of = {chunk_id: new_of[row] for chunk_id, row in self._row_of.items()}
        self._rows_of_document = {key: {new_of[row] for row in rows} for key, rows in self._rows_of_document.items()}
        self._rows_of_path = {key: {new_of[row] for row in rows} for key, rows in self._rows_of_path.items()}
        self.dead = 0


def _range_of(paths: list[str], scope: Scope) -> tuple[int, int]:
    """First and end position of what stands in the place of `scope`, of sorted paths."""
    if scope.exact:
        first = bisect_left(paths, scope.folder)
        return first, first + (first < len(paths) and paths[first] == scope.folder)
    low, high = below(scope.folder.rstrip("/"))
    return bisect_left(paths, low), bisect_left(paths, high)
