"""The vectors of a container as they are searched: all rows in memory, exact, the scope applied before ranking."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from memdir.store.passages import is_everywhere
from memdir.store.types import Matrix, Nearest, Scope
from memdir.store.vectors import NOTHING_NEAR, dots

Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PathIndex:
    """Distinct paths in byte order, and the rows of each."""

    paths: list[str]
    rows: Mapping[str, list[int]]

    @staticmethod
    def of(paths: Sequence[str]) -> PathIndex:
        rows: dict[str, list[int]] = {}
        for row, path in enumerate(paths):
            rows.setdefault(path, []).append(row)
        return PathIndex(paths=sorted(rows), rows=rows)

    def range_of(self, scope: Scope) -> tuple[int, int]:
        """First and end position in `paths` of what is inside `scope`; documents without a path are in '/' only."""
        if scope.exact:
            first = bisect_left(self.paths, scope.folder)
            return first, first + (first < len(self.paths) and self.paths[first] == scope.folder)
        if scope.folder == "/":
            return 0, len(self.paths)
        folder = scope.folder.rstrip("/")
        return bisect_left(self.paths, folder + "/"), bisect_left(self.paths, folder + "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorSnapshot:
    """All vectors of one model in one container: `ids[i]` is the chunk of row `i`; rows are L2-normalised float32.

    `paths[i]` is the document's path now ('' for none), so that scope is applied before ranking. A row whose chunk is gone
    meanwhile has id -1 and must be passed over.
    """

    ids: npt.NDArray[np.int64]
    matrix: Matrix
    paths: tuple[str, ...]
    documents: tuple[str, ...]
    """The document of each row."""
    _index: list[PathIndex] = field(default_factory=list, repr=False, compare=False)
    _order: list[npt.NDArray[np.int64]] = field(default_factory=list, repr=False, compare=False)

    @property
    def by_path(self) -> PathIndex:
        """Rows by path; made on first use and kept (two threads may both make it, they make the same)."""
        if not self._index:
            self._index.append(PathIndex.of(self.paths))
        return self._index[0]

    def rows_of(self, chunk_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """The row of each chunk, -1 for one that has none."""
        if not len(self.ids):
            return np.full(len(chunk_ids), -1, dtype=np.int64)
        if not self._order:
            self._order.append(np.argsort(self.ids, kind="stable"))
        order = self._order[0]
        places = np.minimum(np.searchsorted(self.ids, chunk_ids, sorter=order), len(order) - 1)
        rows = order[places]
        return np.where(self.ids[rows] == chunk_ids, rows, -1)

    def rows_in(self, scope: Scope) -> npt.NDArray[np.int64] | None:
        """Rows inside `scope`, in path order; None for all. Costs as much as the scope holds, not the container."""
        chosen = scope.chosen
        if is_everywhere(scope):
            if chosen is None:
                return None
            return np.array([row for row, document in enumerate(self.documents) if document in chosen], dtype=np.int64)
        index = self.by_path
        paths = index.paths[slice(*index.range_of(scope))]
        rows = [row for path in paths for row in index.rows[path]]
        return np.array([row for row in rows if chosen is None or self.documents[row] in chosen], dtype=np.int64)

    def nearest(self, scope: Scope, query: Matrix, limit: int) -> Nearest:
        """The `limit` passages in scope that are closest to `query`."""
        if not len(self.ids):
            return NOTHING_NEAR
        rows = self.rows_in(scope)
        ids = self.ids if rows is None else self.ids[rows]
        scores = dots(self.matrix if rows is None else self.matrix[rows], query)
        alive = ids >= 0
        counted = int(alive.sum())
        if not counted:
            return NOTHING_NEAR
        mean = float(scores[alive].mean())
        scores[~alive] = -np.inf
        if len(ids) > limit:
            part = np.argpartition(-scores, limit)[:limit]
            ids, scores, alive = ids[part], scores[part], alive[part]
        return Nearest(ids=ids[alive], cosines=scores[alive], mean=mean, counted=counted)

    def cosines(self, query: Matrix, chunk_ids: Rows) -> Matrix:
        """Cosine of each chunk, NaN for one without a vector."""
        rows = self.rows_of(chunk_ids)
        scores = np.full(len(chunk_ids), np.nan, dtype=np.float32)
        have = rows >= 0
        if have.any():
            scores[have] = dots(self.matrix[rows[have]], query)
        return scores
