"""Which paths are taken, so that work on a path, its ancestors and its descendants never overlaps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator


class PathIndex:
    """A multiset of paths with an overlap question that costs the depth of the path."""

    def __init__(self) -> None:
        self._exact: Counter[str] = Counter()
        self._below: Counter[str] = Counter()
        """For every proper ancestor: how many members stand below it."""

    def __len__(self) -> int:
        return self._exact.total()

    def add(self, path: str) -> None:
        self._exact[path] += 1
        for ancestor in ancestors(path):
            self._below[ancestor] += 1

    def discard(self, path: str) -> None:
        """Take one member out; KeyError when it is none."""
        if self._exact[path] <= 0:
            raise KeyError(path)
        _decrease(self._exact, path)
        for ancestor in ancestors(path):
            _decrease(self._below, ancestor)

    def overlaps(self, path: str) -> bool:
        """Whether a member is `path`, above it or below it."""
        return path in self._exact or path in self._below or any(above in self._exact for above in ancestors(path))


def ancestors(path: str) -> Iterator[str]:
    """Every proper ancestor of an absolute path, nearest first, the root last."""
    while path != "/":
        path = path.rpartition("/")[0] or "/"
        yield path


def _decrease(counter: Counter[str], key: str) -> None:
    counter[key] -= 1
    if counter[key] <= 0:
        del counter[key]
