"""Whether a memory answers what was asked, or only shares a word with it.

A score divided by the best one's says nothing about whether the best is any good. So it is asked how much of the question a
memory's words cover, each weighed by the square root of its rarity: a word that no memory has outweighs one that many have, and
not two of them. Everyday words weigh EVERYDAY_WEIGHT of that, words of any work on software WORK_WEIGHT. A long question is
covered when one of its sentences is, and that one counts as if it had SENTENCE_WORDS telling words at least: of a dozen
sentences some one shares a word with something.

COVERED_MIN, the weights and SENTENCE_WORDS are fitted on one half of the questions of `memdir bench agents`, see ADR 29.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence
from typing import Final

from memdir.retrieval.agents.terms import LONG_WORDS, Asked, asked, words

COVERED_MIN: Final = 0.47
EVERYDAY_WEIGHT: Final = 0.2
WORK_WEIGHT: Final = 0.4
SENTENCE_WORDS: Final = 2.0
_FILLERS: Final = frozenset(
    ("ok", "okay", "yes", "no", "fine", "good", "great", "thanks", "done", "ready", "success", "lgtm", "green", "fixed", "fix",
     "works", "work", "worked", "working", "pass", "passes", "passed", "updated", "changed", "added", "removed", "finished",
     "completed", "bug", "issue", "problem", "test", "tests", "build", "file", "code", "looks", "now", "again")
)  # fmt: skip
_FILLER_WORDS_MAX: Final = 6
_WEIGHTIEST: Final = 8
"""Of a sentence as many words count."""


def is_telling(asked: Sequence[Asked]) -> bool:
    """Whether there is anything to look for but everyday words: "thanks, that looks good" is about nothing."""
    return any(not one.is_everyday for one in asked)


def is_filler(content: str) -> bool:
    """Whether a memory would say nothing by itself: "ok", "fixed it", "all tests pass"."""
    if len(words(content)) > _FILLER_WORDS_MAX:
        return False
    return all(one.word in _FILLERS for one in asked(content))


def coverage(asked: Sequence[Asked], rarities: Sequence[float], held: Container[int], *, rarest: float) -> float:
    """The share of a question that a memory covers, 0 to 1. `rarities`: inverse document frequency of each word; `held`: places
    of words that it holds; `rarest`: the frequency of a word which no memory has."""
    weights = [math.sqrt(rarity) * _telling(one) for one, rarity in zip(asked, rarities, strict=True)]
    sentences = sorted({number for one in asked for number in one.sentences})
    if len(asked) <= LONG_WORDS or len(sentences) < 2:
        return _covered(weights, held, range(len(asked)), least=0.0)
    least = SENTENCE_WORDS * math.sqrt(rarest)
    return max(
        _covered(weights, held, [at for at, one in enumerate(asked) if number in one.sentences], least=least)
        for number in sentences
    )


def _telling(one: Asked) -> float:
    if one.is_everyday:
        return EVERYDAY_WEIGHT
    return WORK_WEIGHT if one.is_of_work else 1.0


def _covered(weights: Sequence[float], held: Container[int], places: Sequence[int], *, least: float) -> float:
    most = sum(sorted((weights[at] for at in places), reverse=True)[:_WEIGHTIEST])
    return min(1.0, sum(weights[at] for at in places if at in held) / max(most, least))
