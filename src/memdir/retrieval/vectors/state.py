"""One model in one container as it is searched: the files, and in memory what happened since they were made."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from memdir.retrieval.vectors.files import DamagedError, read_manifest
from memdir.retrieval.vectors.segment import EXACT_MAX, Near, Segment
from memdir.retrieval.vectors.tail import Tail
from memdir.store.passages.vectors import NOTHING_NEAR, Halves, closest
from memdir.store.sqlite.vectors import VectorReader, VectorRow
from memdir.store.types import Matrix, Nearest, Scope

log = logging.getLogger(__name__)

_SAMPLED: Final = 32
"""Vectors that are compared with the store when files are opened."""
_BLOCK_ROWS: Final = 4_096


class State:
    """Not thread-safe. Built by `opened`; from then on `follow` keeps it up to date."""

    def __init__(self, container_id: int, number: int, *, exact_max: int = EXACT_MAX) -> None:
        self.container_id = container_id
        self.number = number
        self.event_id = 0
        self.segment: Segment | None = None
        self.tail: Tail | None = None
        self.dead_since_s: float | None = None
        self._exact_max = exact_max

    def __len__(self) -> int:
        return (0 if self.segment is None else len(self.segment)) + (0 if self.tail is None else len(self.tail))

    @property
    def behind(self) -> int:
        """Rows by which the files differ from what is there."""
        return (0 if self.segment is None else self.segment.dead) + (0 if self.tail is None else len(self.tail))

    @property
    def size_bytes(self) -> int:
        """Memory beside mapped files, about."""
        return (0 if self.tail is None else self.tail.size_bytes) + (0 if self.segment is None else len(self.segment.alive))

    def chunk_ids(self) -> set[int]:
        """Every chunk that is here."""
        have = set() if self.segment is None else set(self.segment.ids[self.segment.alive].tolist())
        return have if self.tail is None else have | set(self.tail.ids())

    def use(self, segment: Segment) -> None:
        """Go on from these files."""
        self.segment, self.tail, self.event_id = segment, None, segment.manifest.event_id
        self.dead_since_s = None

    def load(self, reader: VectorReader) -> None:
        """Everything into memory."""
        for row in reader.by_path(self.container_id, self.number):
            self._add(row)
        self.event_id = reader.bounds()[1]

    def can_follow(self, reader: VectorReader) -> bool:
        """Whether the log reaches back to where this is."""
        first, last = reader.bounds()
        return self.event_id == last or (self.event_id < last and 0 < first <= self.event_id + 1)

    def follow(self, reader: VectorReader) -> None:
        """Do what the log says. Costs as much as happened."""
        added: dict[int, None] = {}
        dropped: dict[int, None] = {}
        moved: dict[str, None] = {}
        last = reader.bounds()[1]
        if last == self.event_id:
            return
        for event in reader.events(self.container_id, self.event_id):
            if event.kind == "add" and event.model_id == self.number and event.chunk_id is not None:
                added[event.chunk_id] = None
            elif event.kind == "drop" and event.chunk_id is not None:
                added.pop(event.chunk_id, None)
                dropped[event.chunk_id] = None
            elif event.kind == "path" and event.document_id is not None:
                moved[event.document_id] = None
        self._drop(list(dropped))
        self._move(reader.paths(list(moved)))
        self._load(reader, list(added))
        self.event_id = last

    def compare(self, reader: VectorReader) -> None:
        """Look at everything that the store has: the log does not reach back. About 4 s for a million passages."""
        segment = self.segment
        assert segment is not None
        seen = np.zeros(len(segment.ids), dtype=np.bool_)
        missing: list[int] = []
        moved: dict[str, str] = {}
        block: list[tuple[int, str, str]] = []

        def look() -> None:
            rows = segment.rows_of(np.array([chunk_id for chunk_id, _, _ in block], dtype=np.int64))
            seen[rows[rows >= 0]] = True
            last = None
            for (chunk_id, path, document_id), row in zip(block, rows.tolist(), strict=True):
                if row < 0:
                    missing.append(chunk_id)
                elif document_id != last:
                    last = document_id
                    if segment.path_of(row) != path:
                        moved[document_id] = path
            block.clear()

        for identity in reader.identities(self.container_id, self.number):
            block.append(identity)
            if len(block) == _BLOCK_ROWS:
                look()
        look()
        for row in np.flatnonzero(segment.alive & ~seen).tolist():
            self._drop_row(segment, row)
        self._move(moved)
        self._load(reader, missing)
        self.event_id = reader.bounds()[1]

    def _drop(self, chunk_ids: Sequence[int]) -> None:
        if self.tail is not None:
            for chunk_id in chunk_ids:
                self.tail.drop(chunk_id)
        if self.segment is not None and chunk_ids:
            rows = self.segment.rows_of(np.array(chunk_ids, dtype=np.int64))
            for row in rows[rows >= 0].tolist():
                self._drop_row(self.segment, row)

    def _drop_row(self, segment: Segment, row: int) -> None:
        segment.drop(row, erased=True)
        if self.dead_since_s is None:
            self.dead_since_s = time.monotonic()

    def _move(self, paths: dict[str, str]) -> None:
        """What moved leaves the order of the files and is compared in memory until they are made again."""
        for document_id, path in paths.items():
            if self.tail is not None:
                self.tail.move(document_id, path)
            if self.segment is None:
                continue
            for row in self.segment.rows_of_document(document_id).tolist():
                chunk_id, vector = int(self.segment.ids[row]), np.array(self.segment.vectors[row])
                self.segment.drop(row, erased=False)
                self._tail(self.segment.manifest.dim).add(chunk_id, vector, path, document_id)

    def _load(self, reader: VectorReader, chunk_ids: list[int]) -> None:
        if self.segment is not None and chunk_ids:
            wanted = np.array(chunk_ids, dtype=np.int64)
            chunk_ids = wanted[self.segment.rows_of(wanted) < 0].tolist()
        for row in reader.rows(chunk_ids, self.number, self.container_id):
            if self.tail is None or row.chunk_id not in self.tail:
                self._add(row)

    def _add(self, row: VectorRow) -> None:
        vector: Halves = np.frombuffer(row.vector, dtype="<f2")
        self._tail(len(vector)).add(row.chunk_id, vector, row.path, row.document_id)

    def _tail(self, dim: int) -> Tail:
        if self.tail is None:
            self.tail = Tail(dim)
        return self.tail

    def nearest(self, scope: Scope, query: Matrix, limit: int) -> Nearest:
        """The `limit` closest passages in scope."""
        near = None if self.segment is None else self.segment.nearest(scope, query, limit, exact_max=self._exact_max)
        parts = [] if near is None else [near]
        if self.tail is not None:
            ids, cosines = self.tail.compared(scope, query)
            if len(ids):
                parts.append(Near(ids=ids, cosines=cosines, size=len(ids)))
        if not parts:
            return NOTHING_NEAR
        size = sum(part.size for part in parts)
        if near is not None and len(parts) == 1:
            return Nearest(ids=near.ids, cosines=near.cosines, counted=size)
        best, scores = closest(
            np.concatenate([part.ids for part in parts]), np.concatenate([part.cosines for part in parts]), limit
        )
        return Nearest(ids=best, cosines=scores, counted=size)

    def counted(self, scope: Scope) -> int:
        """How many passages are in scope."""
        return (0 if self.segment is None else self.segment.counted(scope)) + (
            0 if self.tail is None else self.tail.counted(scope)
        )

    def cosines(self, chunk_ids: Sequence[int], query: Matrix) -> Matrix:
        """Cosine of each chunk, NaN for one that is not here."""
        wanted = np.asarray(chunk_ids, dtype=np.int64)
        found = np.full(len(wanted), np.nan, dtype=np.float32)
        for part in (self.segment, self.tail):
            lacking = np.flatnonzero(np.isnan(found))
            if part is not None and len(lacking):
                found[lacking] = part.cosines(wanted[lacking], query)
        return found

    def named(self, scope: Scope, stems: Collection[str], limit: int) -> list[tuple[int, float]]:
        """The first passages of files whose path holds any of `stems`."""
        found: dict[tuple[float, str], list[int]] = {}
        taken = 0
        for total, path, ids in () if self.segment is None else self.segment.named(scope, stems):
            found.setdefault((-total, path), []).extend(ids)
            taken += len(ids)
            if taken >= limit:
                break
        if self.tail is not None:
            best = sorted((-total, path) for path, total in self.tail.named(scope, stems).items())[:limit]
            for key in best:
                found.setdefault(key, []).extend(self.tail.chunks_at(key[1], scope))
        passages = [(chunk_id, -key[0]) for key in sorted(found) for chunk_id in sorted(found[key])]
        return passages[:limit]


def opened(reader: VectorReader, folder: Path, container_id: int, model: str, *, exact_max: int = EXACT_MAX) -> State | None:
    """The state over the files of a model, up to date; None when there are no files. DamagedError when there are others than
    the manifest says, or of another state of the store."""
    number = reader.model_id(model)
    manifest = None if number is None else read_manifest(folder, number)
    if number is None or manifest is None:
        return None
    if manifest.model != model or manifest.epoch != reader.epoch(container_id) or manifest.event_id > reader.bounds()[1]:
        raise DamagedError(f"the vectors in {folder} are of another state of the store")
    state = State(container_id, number, exact_max=exact_max)
    segment = Segment(folder, number, manifest)
    state.use(segment)
    if wrong_vectors(reader, state, rows=_SAMPLED):
        raise DamagedError(f"the vectors in {segment.place} are not those of the store")
    if state.can_follow(reader):
        state.follow(reader)
    else:
        state.compare(reader)
    return state


def wrong_vectors(reader: VectorReader, state: State, *, rows: int | None) -> int:
    """How many of the files' vectors are not the store's, of that many at equal distances or (None) of all."""
    segment = state.segment
    assert segment is not None
    count = len(segment.ids)
    places = np.arange(count if rows is None else min(rows, count), dtype=np.int64)
    if rows is not None and rows < count:
        places = places * count // rows
    places = places[segment.alive[places]]
    wrong = 0
    for first in range(0, len(places), _BLOCK_ROWS):
        part = places[first : first + _BLOCK_ROWS]
        row_of = dict(zip(segment.ids[part].tolist(), part.tolist(), strict=True))
        for row in reader.rows(list(row_of), state.number, state.container_id):
            wrong += segment.vectors[row_of[row.chunk_id]].tobytes() != row.vector
    return wrong
