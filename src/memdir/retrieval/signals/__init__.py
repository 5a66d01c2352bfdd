"""From the best hits on to what they are connected with, and questions that ask for two things."""

from __future__ import annotations

from functools import lru_cache

from memdir.store.text.stopwords import ENGLISH
from memdir.store.text.words import stem, words


def stems(text: str) -> list[str]:
    """Stems of all words but English stop words, as `Query.stems` are."""
    return [stem(word) for word in words(text) if word not in ENGLISH]


@lru_cache(maxsize=1024)
def stems_in(text: str) -> frozenset[str]:
    """The same, each once. Remembers the texts asked last: a search looks at its best hits more than once, and so does the next
    one about the same thing."""
    return frozenset(stems(text))


def passage_stems(context: str, text: str) -> frozenset[str]:
    """Stems of all words of a passage and of what stands above it, stop words included."""
    return text_stems(text) | text_stems(context) if context else text_stems(text)


@lru_cache(maxsize=2048)
def text_stems(text: str) -> frozenset[str]:
    """The same of one text; remembered for the same reason."""
    return frozenset(map(stem, words(text)))
