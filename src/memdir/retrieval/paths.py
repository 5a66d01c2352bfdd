"""The path as a signal: `passport-renewal.txt` says something even when its text does not."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from functools import lru_cache
from typing import Final

from memdir.retrieval.words import Query, stem, words
from memdir.store.types import PathIndex, Scope, VectorSnapshot

_INDEXES_MAX: Final = 8
"""Containers whose paths are held by word; each is made anew when a path or passage changed."""
_PASSAGES_MAX: Final = 50
"""Passages that enter the fusion for their path alone."""
_FOLDER_SHARE: Final = 0.5
"""Of a word in a folder's name beside one in the file's."""
_SPLIT: Final = re.compile(r"[^\w]+|_+")

Words = dict[str, dict[str, float]]


class PathSignal:
    """Share of the query's words that the file's name and folders hold."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[int, tuple[PathIndex, Words]] = OrderedDict()

    def scores(self, snapshot: VectorSnapshot, query: Query, scope: Scope) -> dict[int, float]:
        """0 to 1 by chunk id, for the first passages of files whose path holds a word of the query."""
        index = snapshot.by_path
        by_word = self._words(index)
        sums: dict[str, float] = {}
        for word in query.stems:
            for path, share in by_word.get(word, {}).items():
                sums[path] = sums.get(path, 0.0) + share
        if not sums:
            return {}
        first, end = index.range_of(scope)
        inside = sums if (first, end) == (0, len(index.paths)) else set(index.paths[first:end])
        terms = max(1, len(query.terms))
        matching = [(min(1.0, total / terms), path) for path, total in sums.items() if path in inside]
        matching.sort(key=lambda item: (-item[0], item[1]))
        found: dict[int, float] = {}
        for score, path in matching:
            for row in index.rows[path]:
                if len(found) >= _PASSAGES_MAX:
                    return found
                if snapshot.ids[row] >= 0:
                    found[int(snapshot.ids[row])] = score
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
            for word, share in _shares(path):
                made.setdefault(word, {})[path] = share
        with self._lock:
            self._known[id(index)] = (index, made)
            while len(self._known) > _INDEXES_MAX:
                self._known.popitem(last=False)
        return made


@lru_cache(maxsize=50_000)
def _shares(path: str) -> tuple[tuple[str, float], ...]:
    folders, _, name = path.rpartition("/")
    base = name.rsplit(".", 1)[0] if "." in name[1:] else name
    shares = dict.fromkeys(_stems(folders), _FOLDER_SHARE) | dict.fromkeys(_stems(base), 1.0)
    return tuple(sorted(shares.items()))


def _stems(text: str) -> list[str]:
    return [stem(word) for word in words(_SPLIT.sub(" ", text)) if len(word) > 1]
