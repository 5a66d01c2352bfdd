"""Which words of a passage are counted, and what of a query is looked up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from memdir.retrieval.lexical.search import Wanted
from memdir.retrieval.lexical.segment import key_of
from memdir.store.text.analysis import ANALYSIS_VERSION, index_terms, query_terms

TERMS_VERSION: Final = 1000 + ANALYSIS_VERSION
"""Of what is counted here and there: an index with another number is made anew."""
_KEYS_MAX: Final = 500_000


class _Keys(dict[str, int]):
    """Keys of the terms seen last: looked up a million times a build."""

    def __missing__(self, term: str) -> int:
        if len(self) >= _KEYS_MAX:
            self.clear()
        key = self[term] = key_of(term)
        return key


_KEYS: Final = _Keys()


def keys_of(terms: Sequence[str]) -> Iterable[int]:
    """What stands for terms in the index."""
    return map(_KEYS.__getitem__, terms)


def field_terms(text: str, context: str) -> tuple[list[str], list[str]]:
    """The terms of a passage's text and of its context, as `segment.TENTHS` weighs them."""
    return index_terms(text), index_terms(context) if context else []


def wanted(phrases: Sequence[str]) -> list[Wanted]:
    """Words, each in any of its forms; several words in one string must stand side by side. What is one word to a person may be
    several to the index (a name in parts, a run of Chinese): any of them will do."""
    found: dict[tuple[tuple[int, ...], ...], None] = {}
    for phrase in phrases:
        words = [tuple(keys_of(forms)) for forms in query_terms(phrase)]
        if " " in phrase.strip() and words:
            found[tuple(words)] = None
        else:
            found.update(((word,), None) for word in words)
    return [Wanted(words=words) for words in found]
