"""Do two texts say the same? Conservative: what is dropped as a duplicate is lost.

The similarity is the Jaccard coefficient of the shingles (pairs of neighbours) of the texts' stems without stop words, as in
Broder, "On the resemblance and containment of documents" (1997). Besides, nearly all words must be the same, and all numbers
and all words that turn a sentence around: "port 8080" and "port 8081" are two facts.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from memdir.retrieval.agents.stems import stem
from memdir.retrieval.agents.terms import is_stop_word, words

NEAR_MIN: Final = 0.85
_OTHER_WORDS_MAX: Final = 0.04
"""Share of the words of both that may stand in one only: none below 25 words."""
_TURNING: Final = frozenset(
    ("not", "no", "never", "without", "cannot", "don", "doesn", "isn", "won", "instead", "unless", "except", "only", "before",
     "after", "on", "off")
)  # fmt: skip


def similarity(first: str, second: str) -> float:
    """1: the same words in the same order; 0: two different statements, however alike they are."""
    listed = [words(first), words(second)]
    if listed[0] == listed[1]:
        return 1.0
    telling = [{word for word in one if word in _TURNING or any(map(str.isdigit, word))} for one in listed]
    if telling[0] != telling[1]:
        return 0.0
    stems = [[stem(word) for word in one if not is_stop_word(word)] for one in listed]
    apart, together = set(stems[0]) ^ set(stems[1]), set(stems[0]) | set(stems[1])
    if not together or len(apart) > _OTHER_WORDS_MAX * len(together):
        return 0.0
    shingles = [set(pairwise(one)) or {(one[0], "")} for one in stems if one]
    if len(shingles) < 2:
        return 0.0
    return len(shingles[0] & shingles[1]) / len(shingles[0] | shingles[1])
