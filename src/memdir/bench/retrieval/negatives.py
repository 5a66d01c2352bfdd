"""Questions that have no answer in a memory, and whether the search says so; and whether it still shows what is there.

Three kinds: the questions of another collection, everyday questions made from parts, and words that are none. Made the same
way every time. The curve from cosines to scores was fitted on half of the questions of the collections; here the other halves
are asked. The threshold was set by hand with both halves in view, so that it is no held-out figure.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

from memdir.bench.figures import Figure
from memdir.bench.retrieval.collections import Question
from memdir.bench.retrieval.metrics import wilson
from memdir.bench.retrieval.stand import Stand
from memdir.retrieval.types import SearchQuery

GOAL: Final = 0.05
"""Of the questions without an answer."""
MADE: Final = 100
_SEED: Final = 11

_ASKED: Final = (
    "how do I {verb} a {thing}", "what is the best way to {verb} a {thing}", "where can I buy a {thing} to {verb}",
    "why did the {person} {verb} my {thing}", "when should the {person} {verb} the {thing}", "{thing} {person} {verb}",
)  # fmt: skip
_VERBS: Final = ("knit", "bake", "paint", "pickle", "prune", "tune", "iron", "feed", "braid", "polish", "sew", "roast")
_THINGS: Final = (
    "sweater", "lasagne", "violin", "rabbit", "rose bush", "wedding cake", "sofa cover", "goldfish", "birthday card", "saddle",
    "teapot", "scarf", "guitar string", "duck", "pumpkin", "ballet shoe",
)  # fmt: skip
_PEOPLE: Final = ("midwife", "gardener", "bride", "grandmother", "baker", "singer", "neighbour", "shepherd")
_LETTERS: Final = ("bcdfgklmnprstvwz", "aeiouy")


def everyday(count: int = MADE) -> list[str]:
    """Questions about home and garden."""
    made = random.Random(_SEED)  # noqa: S311  no secret
    return [
        made.choice(_ASKED).format(verb=made.choice(_VERBS), thing=made.choice(_THINGS), person=made.choice(_PEOPLE))
        for _ in range(count)
    ]


def nonsense(count: int = MADE) -> list[str]:
    """Words that no language has."""
    made = random.Random(_SEED)  # noqa: S311  no secret

    def word() -> str:
        return "".join(made.choice(_LETTERS[place % 2]) for place in range(made.randint(5, 9)))

    return [" ".join(word() for _ in range(made.randint(2, 5))) for _ in range(count)]


def held_out(questions: Sequence[Question]) -> list[str]:
    """The half that the curve was not fitted on."""
    return [question.text for question in questions[1::2]]


def figures(name: str, stand: Stand, unrelated: Sequence[tuple[str, Sequence[str]]], related: Sequence[str]) -> list[Figure]:
    """The share of each kind of question that shows anything at the default threshold, all kinds alike, and the related."""
    made: list[Figure] = []
    shares: list[float] = []
    asked = 0
    for kind, questions in unrelated:
        figure = _shown(f"{name}.shown_for_{kind}", stand, questions)
        shares.append(figure.value)
        asked += figure.samples
        made.append(figure)
    found = round(sum(shares) / len(shares) * asked)
    made.append(
        Figure(
            name=f"{name}.shown_for_unrelated",
            value=sum(shares) / len(shares),
            unit="share",
            samples=asked,
            goal=GOAL,
            better="lower",
            spread=wilson(found, asked),
            note="mean of the kinds",
        )
    )
    if related:
        made.append(_shown(f"{name}.shown_for_related", stand, related, better="higher"))
    return made


def _shown(name: str, stand: Stand, questions: Sequence[str], *, better: str = "lower") -> Figure:
    searcher = stand.searcher()
    queries = [SearchQuery(text=question, scope=stand.scope, limit=1, lines=False) for question in questions]
    count = sum(bool(searcher.search(query).hits) for query in queries)
    return Figure(
        name=name,
        value=count / len(questions),
        unit="share",
        samples=len(questions),
        better="higher" if better == "higher" else "lower",
        spread=wilson(count, len(questions)),
    )
