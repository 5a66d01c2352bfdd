"""Does the second file of a question that needs two come up? With connections followed and without, in the same run.

Measured is the share of questions whose second file is among the first ten files, and of those whose both are; the gain with
a 95 % interval of the paired differences. Kinds of the half `fit` were looked at while it was built, those of `held` were not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from memdir.retrieval.embed import Embedder
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import SearchQuery
from memdir_bench.figures import Figure
from memdir_bench.retrieval.collections import Text
from memdir_bench.retrieval.fixtures import SHORT, Fixture, filled
from memdir_bench.retrieval.hops_corpus import HALVES, KINDS, TwoHop, distractors, pairs
from memdir_bench.retrieval.metrics import Values, difference, interval

AT: Final = 10
PER_KIND: Final = 24
DISTRACTORS: Final = 240
SEED: Final = 5
GAIN_MIN: Final = 0.01
"""More than nothing: so the promise says."""


def run(dense: Embedder | None, say: Callable[[str], None]) -> list[Figure]:
    """Make the memory, index it as a server does, ask every question both ways."""
    files, questions = pairs(KINDS, seed=SEED, per_kind=PER_KIND)
    texts = [Text(path=path, text=text) for path, text in (files | distractors(DISTRACTORS)).items()]
    say(f"hops: indexing {len(texts)} files …")
    with filled(texts, dense, say) as fixture:
        say(f"hops: asking {len(questions)} questions …")
        return figures(fixture, questions)


def figures(fixture: Fixture, questions: Sequence[TwoHop]) -> list[Figure]:
    """Of each half and of each kind."""
    searcher = fixture.searcher()
    found = {
        hops: [_first_files(fixture, searcher, question.text, hops=hops) for question in questions] for hops in (False, True)
    }
    made: list[Figure] = []
    for half in HALVES:
        places = [place for place, question in enumerate(questions) if question.half == half]
        second = {hops: np.array([float(questions[at].second in found[hops][at]) for at in places]) for hops in found}
        both = {hops: np.array([float(_needed(questions[at]) <= set(found[hops][at])) for at in places]) for hops in found}
        for way, hops in (("plain", False), ("followed", True)):
            made.append(_figure(f"{half}.{way}.second_10", second[hops]))
            made.append(_figure(f"{half}.{way}.both_10", both[hops]))
        gain, spread = difference(second[True], second[False])
        made.append(
            Figure(name=f"hops.{half}.gain", value=gain, unit="share", samples=len(places), better="higher", spread=spread)
        )
        made.append(
            Figure(
                name=f"hops.{half}.gain_low",
                value=spread[0],
                unit="share",
                samples=len(places),
                goal=GAIN_MIN,
                better="higher",
                note="the lower end of the interval",
            )
        )
        for kind in dict.fromkeys(questions[at].kind for at in places):
            chosen = np.array([questions[at].kind == kind for at in places])
            made.append(_figure(f"{half}.{kind}.second_10", second[True][chosen]))
    return made


def _needed(question: TwoHop) -> set[str]:
    return {question.first, question.second}


def _figure(name: str, values: Values) -> Figure:
    return Figure(
        name=f"hops.{name}",
        value=float(values.mean()),
        unit="share",
        samples=len(values),
        better="higher",
        spread=interval(values),
    )


def _first_files(fixture: Fixture, searcher: Searcher, question: str, *, hops: bool) -> list[str]:
    query = SearchQuery(text=question, scope=fixture.scope, limit=SHORT, lines=False, hops=hops)
    return list(dict.fromkeys(hit.path or "" for hit in searcher.search(query).hits))[:AT]
