"""The nouns of the store. Times are milliseconds since the epoch unless the name says otherwise."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One memory: a tree of documents, its changes feed, its memories."""

    id: int
    org_id: str
    tag: str
    epoch: str
    last_seq: int
    profile_version: int
    memory_paths: tuple[str, ...]
    """Trailing slash: the folder and all below; without: that file. Empty: no memories."""
    created_at_ms: int
    updated_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """A file, folder or symlink of a container at its current revision. `path` is None for a document without a place."""

    id: str
    container_id: int
    container_tag: str
    custom_id: str | None
    path: str | None
    kind: str
    title: str | None
    media_type: str
    status: str
    error: str | None
    content_hash: str
    size_bytes: int
    mode: int
    mtime_ns: int
    revision: int
    metadata: Mapping[str, Any]
    created_at_ms: int
    updated_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A passage of a document's text, before it is stored. Bytes are half open, lines counted from 1, both inclusive."""

    ordinal: int
    start_byte: int
    end_byte: int
    start_line: int
    end_line: int
    text: str
    """Exactly the bytes of the span, decoded."""
    context: str
    """Title and headings above it: embedded and indexed with the text, never shown as it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredChunk:
    """A chunk as it is found again."""

    id: int
    document_id: str
    path: str | None
    revision: int
    updated_at_ms: int
    chunk: Chunk


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryCandidate:
    """A fact that a rule (or a model) read in a document, before it is reconciled with what is known."""

    kind: str
    """`static` (durable) or `dynamic` (recent context)."""
    subject: str
    text: str
    confidence: float
    start_line: int
    end_line: int
    start_byte: int
    end_byte: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A fact with its provenance. Superseded facts stay, with `is_latest` false."""

    id: str
    container_id: int
    document_id: str
    revision: int
    root_id: str
    parent_id: str | None
    relation: str | None
    """To the parent: `updates`, `extends`, `derives`, `contradicts`."""
    version: int
    is_latest: bool
    is_forgotten: bool
    candidate: MemoryCandidate
    created_at_ms: int
    updated_at_ms: int


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
        if scope.folder == "/" and not scope.exact:
            return None
        index = self.by_path
        paths = index.paths[slice(*index.range_of(scope))]
        return np.array([row for path in paths for row in index.rows[path]], dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Where to search: `folder` '/' is everything; `exact` names one file."""

    container_id: int
    folder: str = "/"
    exact: bool = False
