"""The ways of ranking that are compared: each signal alone, all of them, and all but one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from memdir.retrieval.fuse import Tuning
from memdir_bench.figures import Figure
from memdir_bench.retrieval.collections import Question
from memdir_bench.retrieval.fixtures import DEPTH, SHORT, Fixture
from memdir_bench.retrieval.metrics import MEASURES, Values, difference, interval, measured

GOALS: Final = {"cranfield": 0.42, "cisi": 0.44}
"""nDCG@10 of the whole search."""

Ranked = Callable[[str], Sequence[str]]

WITHOUT: Final[Mapping[str, Mapping[str, float]]] = {
    "lexical": {"lexical": 0.0},
    "static": {"static": 0.0},
    "dense": {"dense": 0.0},
    "best_line": {"best_line": 0.0},
    "feedback": {"feedback": 0.0},
    "path": {"path": 0.0},
}
"""What each ablation takes away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One way of ranking: each measure for each question."""

    stage: str
    values: dict[str, Values]


def stages(fixture: Fixture) -> dict[str, Ranked]:
    """Each way of ranking the files for a question, by name."""

    def tuned(tuning: Tuning | None, *, dense: bool = True, depth: int = DEPTH) -> Ranked:
        searcher = fixture.searcher(tuning, dense=dense)
        return lambda question: fixture.ranked(searcher, question, depth)

    ways: dict[str, Ranked] = {
        "lexical": fixture.by_words,
        "static": lambda question: fixture.by_vectors(question, fixture.engine.static),
    }
    model = fixture.engine.dense
    if model is not None:
        ways["dense"] = lambda question: fixture.by_vectors(question, model)
        ways["at_once"] = tuned(None, dense=False)
    ways["full"] = tuned(None)
    for name, less in WITHOUT.items():
        ways[f"without_{name}"] = tuned(replace(Tuning(), **less), depth=SHORT)
    return ways


def outcomes(fixture: Fixture, questions: Sequence[Question]) -> list[Outcome]:
    """Every stage over all questions."""
    gains = [question.gains for question in questions]
    return [
        Outcome(stage=stage, values=measured([ranked(question.text) for question in questions], gains))
        for stage, ranked in stages(fixture).items()
    ]


def figures(collection: str, found: Sequence[Outcome]) -> list[Figure]:
    """Every measure of every stage; of the ablations nDCG@10 alone, and what the whole search has over them."""
    full = next(outcome for outcome in found if outcome.stage == "full")
    made: list[Figure] = []
    for outcome in found:
        ablation = outcome.stage.startswith("without_")
        for measure in ("ndcg_10",) if ablation else MEASURES:
            values = outcome.values[measure]
            goal = GOALS.get(collection) if (outcome.stage, measure) == ("full", "ndcg_10") else None
            made.append(
                Figure(
                    name=f"{collection}.{outcome.stage}.{measure}",
                    value=float(values.mean()),
                    unit="share",
                    samples=len(values),
                    goal=goal,
                    better="higher",
                    spread=interval(values),
                )
            )
        if outcome is not full:
            gap, spread = difference(full.values["ndcg_10"], outcome.values["ndcg_10"])
            made.append(
                Figure(
                    name=f"{collection}.full_over_{outcome.stage}.ndcg_10",
                    value=gap,
                    unit="share",
                    samples=len(full.values["ndcg_10"]),
                    better="higher",
                    spread=spread,
                    note="question by question",
                )
            )
    return made
