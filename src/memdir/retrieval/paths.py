"""The path as a signal: `passport-renewal.txt` says something even when its text does not."""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import Final

from memdir.retrieval.words import Query, stem, words
from memdir.store.types import Scope, VectorSnapshot

_CACHE_MAX: Final = 50_000
_PASSAGES_MAX: Final = 50
"""Passages that enter the fusion for their path alone."""
_SPLIT: Final = re.compile(r"[^\w]+|_+")


class PathSignal:
    """Share of the query's words that the file's name and folders hold; the name counts double."""

    def __init__(self) -> None:
        self._words: OrderedDict[str, tuple[frozenset[str], frozenset[str]]] = OrderedDict()

    def scores(self, snapshot: VectorSnapshot, query: Query, scope: Scope) -> dict[int, float]:
        """0 to 1 by chunk id, for the first passages of files whose path holds a word of the query."""
        wanted = query.stems
        index = snapshot.by_path
        matching = [
            (score, path)
            for path in index.paths[slice(*index.range_of(scope))]
            if (score := self._score(path, wanted, len(query.terms))) > 0
        ]
        matching.sort(key=lambda item: (-item[0], item[1]))
        found: dict[int, float] = {}
        for score, path in matching:
            for row in index.rows[path]:
                if len(found) >= _PASSAGES_MAX:
                    return found
                if snapshot.ids[row] >= 0:
                    found[int(snapshot.ids[row])] = score
        return found

    def _score(self, path: str, wanted: frozenset[str], terms: int) -> float:
        if not path:
            return 0.0
        name, folders = self._split(path)
        hits = len(wanted & name) + 0.5 * len((wanted & folders) - name)
        return min(1.0, hits / max(1, terms))

    def _split(self, path: str) -> tuple[frozenset[str], frozenset[str]]:
        known = self._words.get(path)
        if known is None:
            folders, _, name = path.rpartition("/")
            base = name.rsplit(".", 1)[0] if "." in name[1:] else name
            known = (_stems(base), _stems(folders))
            self._words[path] = known
            if len(self._words) > _CACHE_MAX:
                self._words.popitem(last=False)
        return known


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words(_SPLIT.sub(" ", text)) if len(word) > 1)
