"""A segment with what has changed since it was made, as one search sees it; and the rows of a scope in it."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from memdir.retrieval.lexical.arrays import Array
from memdir.retrieval.lexical.segment import Rows, Segment, key_of, scope_bounds
from memdir.store.passages.reading import is_everywhere
from memdir.store.types import Chosen, Scope

Mask = npt.NDArray[np.bool_]

_FEW: Final = 8
"""Rows that are fewer than one in that many are looked up one by one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """Never changes. `live` and `length` are of the rows that count."""

    segment: Segment
    alive: Mask | None = None
    """None: all rows count."""
    moved: Mapping[int, bytes] = field(default_factory=dict)
    """The path of each row whose document stands elsewhere now; rows that count only."""

    @cached_property
    def live(self) -> int:
        """Rows that count."""
        return self.segment.size if self.alive is None else int(np.count_nonzero(self.alive))

    @cached_property
    def length(self) -> int:
        """Words in them."""
        lengths = self.segment.lengths if self.alive is None else self.segment.lengths[self.alive]
        return int(lengths.sum(dtype=np.int64))

    @cached_property
    def in_place(self) -> Mask | None:
        """Rows that count and stand where they stood; None: all."""
        if not self.moved:
            return self.alive
        mask = np.ones(self.segment.size, dtype=bool) if self.alive is None else self.alive.copy()
        mask[np.fromiter(self.moved, dtype=np.int64, count=len(self.moved))] = False
        return mask

    @cached_property
    def moved_order(self) -> tuple[list[bytes], Rows]:
        """Moved rows in the order of their paths."""
        pairs = sorted((path, row) for row, path in self.moved.items())
        return [path for path, _ in pairs], np.array([row for _, row in pairs], dtype=np.int64)

    def alive_rows(self, rows: Rows) -> Rows:
        """Those of the rows that count."""
        return rows if self.alive is None else rows[self.alive[rows]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Rows of a view among which is searched: a range, of which `mask` (by row) says which; or `rows`, ascending."""

    view: View
    low: int = 0
    high: int = 0
    mask: Mask | None = None
    rows: Rows | None = None

    @property
    def size(self) -> int:
        """Places for rows."""
        return self.high - self.low if self.rows is None else len(self.rows)

    def row(self, places: Rows) -> Rows:
        """The rows that stand at places."""
        return places + self.low if self.rows is None else self.rows[places]

    def postings(self, rows: Array, values: Array) -> tuple[Rows, Array]:
        """Places of the postings that are in this part, and their values. `rows` is ascending."""
        if self.rows is not None:
            if not len(rows):
                return np.zeros(0, dtype=np.int64), values[:0]
            at = np.minimum(np.searchsorted(rows, self.rows.astype(rows.dtype)), len(rows) - 1)
            hit = np.flatnonzero(rows[at] == self.rows)
            return hit, values[at[hit]]
        if self.low > 0 or self.high < self.view.segment.size:
            first, end = np.searchsorted(rows, np.array((self.low, self.high), dtype=rows.dtype))
            rows, values = rows[first:end], values[first:end]
        places = rows.astype(np.int64)
        if self.mask is not None:
            kept = self.mask[places]
            places, values = places[kept], values[kept]
        return (places - self.low if self.low else places), values


class Parts:
    """The parts of views that belong to a scope. Remembers what was made of a choice of documents for as long as the choice
    is in use. Any thread may call."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: WeakKeyDictionary[Chosen, Array] = WeakKeyDictionary()
        self._documents: WeakKeyDictionary[Chosen, WeakKeyDictionary[Segment, Mask]] = WeakKeyDictionary()

    def of(self, view: View, scope: Scope) -> list[Part]:
        """At most two: rows where they stood, and moved ones. In both places are in the order of rows."""
        if is_everywhere(scope):
            parts = [Part(view=view, low=0, high=view.segment.size, mask=view.alive)]
        else:
            low, high = view.segment.range_of(scope)
            parts = [Part(view=view, low=low, high=high, mask=view.in_place)]
            if view.moved:
                paths, rows = view.moved_order
                first, end = (bisect_left(paths, bound) for bound in scope_bounds(scope))
                parts.append(Part(view=view, rows=np.sort(rows[first:end])))
        if scope.chosen is not None:
            parts = [self._chosen(part, scope.chosen) for part in parts]
        return [part for part in parts if part.size]

    def _chosen(self, part: Part, chosen: Chosen) -> Part:
        """The part without what was not chosen; as a list of rows when they are few."""
        segment = part.view.segment
        documents = self._mask(segment, chosen)
        if part.rows is not None:
            return Part(view=part.view, rows=part.rows[documents[segment.document_of(part.rows)]])
        first, end = np.searchsorted(segment.doc_starts, (part.low, part.high), side="right") - 1
        kept = np.flatnonzero(documents[first : end + 1]) + first
        count = segment.doc_starts[kept + 1].astype(np.int64) - segment.doc_starts[kept]
        rows = np.repeat(segment.doc_starts[kept] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        rows = rows[(rows >= part.low) & (rows < part.high)]
        if part.mask is not None:
            rows = rows[part.mask[rows]]
        if len(rows) * _FEW < part.size:
            return Part(view=part.view, rows=rows)
        mask = np.zeros(segment.size, dtype=bool)
        mask[rows] = True
        return Part(view=part.view, low=part.low, high=part.high, mask=mask)

    def _mask(self, segment: Segment, chosen: Chosen) -> Mask:
        """Which documents of a segment were chosen."""
        with self._lock:
            known = self._documents.setdefault(chosen, WeakKeyDictionary()).get(segment)
            keys = self._keys.get(chosen)
        if known is not None:
            return known
        if keys is None:
            keys = np.unique(np.fromiter(map(key_of, chosen.ids), dtype=np.uint64, count=len(chosen.ids)))
        made: Mask = np.isin(segment.doc_keys, keys) != chosen.but
        with self._lock:
            self._keys[chosen] = keys
            self._documents.setdefault(chosen, WeakKeyDictionary())[segment] = made
        return made
