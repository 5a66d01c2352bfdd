"""From the best hits on to what they are connected with, and questions that ask for two things."""

from __future__ import annotations

from memdir.store.stopwords import ENGLISH
from memdir.store.words import stem, words


def stems(text: str) -> list[str]:
    """Stems of all words but English stop words, as `Query.stems` are."""
    return [stem(word) for word in words(text) if word not in ENGLISH]
