"""The path as a signal: `passport-renewal.txt` says something even when its text does not."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from memdir.store.sqlite.vectors import PathIndex, VectorSnapshot
from memdir.store.types import Scope
from memdir.store.words import path_shares

_INDEXES_MAX: Final = 8
"""Containers whose paths are held by word; each is made anew when a path or passage changed."""

Words = dict[str, dict[str, float]]


class PathWords:
    """Which paths hold which words, of the containers that were asked last."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[PathIndex, Words]] = OrderedDict()

    def passages(self, snapshot: VectorSnapshot, scope: Scope, stems: Collection[str], limit: int) -> list[tuple[int, float]]:
        """The first passages of files whose path holds any of `stems`, with the sum of what the words count."""
        index = snapshot.by_path
        by_word = self._words(index)
        sums: dict[str, float] = {}
        for stem in stems:
            for path, share in by_word.get(stem, {}).items():
                sums[path] = sums.get(path, 0.0) + share
        if not sums:
            return []
        first, end = index.range_of(scope)
        inside = sums if (first, end) == (0, len(index.paths)) else set(index.paths[first:end])
        found: list[tuple[int, float]] = []
        for path, total in sorted(sums.items(), key=lambda item: (-item[1], item[0])):
            if path not in inside:
                continue
            for row in index.rows[path]:
                if len(found) >= limit:
                    return found
                if snapshot.ids[row] >= 0 and (scope.chosen is None or snapshot.documents[row] in scope.chosen):
                    found.append((int(snapshot.ids[row]), total))
        return found

    def _words(self, index: PathIndex) -> Words:
        """Paths by stem, kept as long as the snapshot they were made of is among the last used."""
        with self._lock:
            known = self._known.get(id(index))
            if known is not None and known[0] is index:
                self._known.move_to_end(id(index))
                return known[1]
        made: Words = {}
        for path in index.paths:
            for word, share in path_shares(path):
                made.setdefault(word, {})[path] = share
        with self._lock:
            self._known[id(index)] = (index, made)
            while len(self._known) > _INDEXES_MAX:
                self._known.popitem(last=False)
        return made
