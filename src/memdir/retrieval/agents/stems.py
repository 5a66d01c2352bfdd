"""Stems of words by Porter's algorithm of 1980, kept for each thread."""

from __future__ import annotations

import threading
from typing import Final

import Stemmer

_STEMS_MAX: Final = 200_000
_local = threading.local()


class _Stems(dict[str, str]):
    """Stems of the words seen last. One for each thread: a stemmer may not be shared."""

    def __init__(self) -> None:
        super().__init__()
        self._stemmer = Stemmer.Stemmer("porter")

    def __missing__(self, word: str) -> str:
        if len(self) >= _STEMS_MAX:
            self.clear()
        found: str = self._stemmer.stemWord(word)
        self[word] = found
        return found


def known_stems() -> _Stems:
    try:
        known: _Stems = _local.stems
    except AttributeError:
        known = _local.stems = _Stems()
    return known


def stem(word: str) -> str:
    """Of a folded word."""
    return known_stems()[word]
