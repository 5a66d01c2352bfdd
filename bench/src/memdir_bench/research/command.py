"""`memdir bench research`: facts found against rounds and tokens, and what the citations of the reports are worth."""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

from memdir.llm.port import Model
from memdir.research.archive import Archive
from memdir.research.checks import Checks
from memdir.research.citations import sentences
from memdir.research.evidence import is_factual, numbers, spoken_numbers
from memdir.research.outline import sections
from memdir.research.run import Means, Run
from memdir.research.state import Settings, State
from memdir.research.web import reader
from memdir.research.web.offline import Folder
from memdir.research.workspace import OUTLINE, REPORT, Workspace, slug
from memdir_bench.figures import Figure, figure_of, machine
from memdir_bench.report import reported
from memdir_bench.research.policy import Policy
from memdir_bench.research.rubric import POSTGRESQL, PYTHON, Fact, facts

GOALS: Final[Mapping[str, float]] = {"citations_resolve": 1.0, "citations_bear": 1.0, "uncited_sentences": 0.0}
figure: Final = partial(figure_of, GOALS)
_SEED: Final = 26
FACTS: Final = 40
ROUNDS: Final = (1, 2, 3, 5, 8)
_PER_ROUND: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One whole research."""

    rounds: int
    found: int
    state: State
    seconds: float
    citations: int
    resolved: int
    borne: int
    factual: int
    uncited: int
    gold: int
    """Facts found whose citation leads to the page that the fact was taken from."""


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """The same questions with more and more rounds."""
    asked = facts(8 if args.quick else FACTS, _SEED)
    rounds = (1, 3) if args.quick else ROUNDS
    model: Callable[[], Model] = partial(Policy, questions_per_round=_PER_ROUND)
    if args.model is not None:
        from memdir.llm.providers import model as provided

        model = partial(provided, args.model, url=args.model_url)
    places = [Folder(PYTHON), Folder(POSTGRESQL)]
    try:
        outcomes = [_researched(asked, places, model(), number, json_actions=args.json_actions) for number in rounds]
    finally:
        reader.close()
    return {
        "machine": machine(),
        "figures": [one.as_json() for one in _figures(outcomes, len(asked))],
        "runs": [_told(one) for one in outcomes],
        "failed": {},
    }


def _researched(asked: Sequence[Fact], places: Sequence[Folder], model: Model, rounds: int, *, json_actions: bool) -> Outcome:
    topic = "What two manuals say\n" + "\n".join(f"- {fact.question}" for fact in asked) + "\n"
    with tempfile.TemporaryDirectory(prefix="memdir-bench-research-") as name:
        workspace = Workspace(Path(name))
        began_s = time.perf_counter()
        with Run(workspace, Means(model=model, places=[*map(_Manual, places)])) as research:
            research.start(topic, Settings(rounds=rounds, json_actions=json_actions))
            state = research.go()
        seconds = time.perf_counter() - began_s
        return _measured(workspace, asked, state, rounds, seconds)


class _Manual:
    """One of two folders: its addresses say which."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.name = folder.name
        self._mark = f"folder:{'postgresql' if 'postgresql' in folder.name else 'python'}/"

    def search(self, query: str, limit: int) -> Any:
        from memdir.research.web.place import Found

        return [
            Found(url=self._mark + one.url.removeprefix("folder:"), title=one.title, snippet=one.snippet)
            for one in self._folder.search(query, limit)
        ]

    def has(self, url: str) -> bool:
        return url.startswith(self._mark)

    def fetch(self, url: str) -> Any:
        from dataclasses import replace

        return replace(self._folder.fetch("folder:" + url.removeprefix(self._mark)), url=url)


def _measured(workspace: Workspace, asked: Sequence[Fact], state: State, rounds: int, seconds: float) -> Outcome:
    archive = Archive(workspace)
    checks = Checks(workspace, archive)
    report = workspace.read(REPORT) or ""
    said = sentences(report.partition("\n## Sources")[0])
    cited = [cited for one in said for cited in one.citations]
    bad = {finding.line for finding in checks.text(REPORT, report, strict=True) if finding.check == "evidence"}
    factual = [one for one in said if is_factual(one.text)]
    by_question = {slug(section.title, 60): section for section in sections(workspace.read(OUTLINE) or "")}
    found = gold = 0
    for fact in asked:
        section = by_question.get(slug(slug(fact.question, 60), 60))
        answers = (
            [one for one in sentences(workspace.read(section.path) or "") if _says(one.text, fact.answer)] if section else []
        )
        found += bool(answers)
        pages = [archive.get(cited.path) for one in answers for cited in one.citations]
        gold += any(source is not None and source.url.endswith(fact.page) for source in pages)
    return Outcome(
        rounds=rounds,
        found=found,
        gold=gold,
        state=state,
        seconds=seconds,
        citations=len(cited),
        resolved=sum(not checks.unresolved(one) for one in cited),
        borne=sum(one.line not in bad for one in said for _cited in one.citations),
        factual=len(factual),
        uncited=sum(finding.check == "uncited" for finding in checks.text(REPORT, report, strict=True)),
    )


def _says(sentence: str, answer: str) -> bool:
    if re.fullmatch(r"[\d.,]+", answer):
        return bool(numbers(answer) & spoken_numbers(sentence))
    return re.search(rf"(?<!\w){re.escape(answer)}(?!\w)", sentence, re.I) is not None


def _figures(outcomes: Sequence[Outcome], asked: int) -> list[Figure]:
    last = outcomes[-1]
    share = partial(figure, unit="share", better="higher")
    shown = [share(f"facts_found_{one.rounds}_rounds", one.found / asked, samples=asked) for one in outcomes]
    tokens = [one.state.usage.tokens for one in outcomes]
    every = sum(one.citations for one in outcomes)
    return [
        *shown,
        share("facts_on_the_right_page", last.gold / max(last.found, 1), samples=last.found),
        share("citations_resolve", sum(one.resolved for one in outcomes) / max(every, 1), samples=every),
        share("citations_bear", sum(one.borne for one in outcomes) / max(every, 1), samples=every),
        figure(
            "uncited_sentences",
            sum(one.uncited for one in outcomes) / max(sum(one.factual for one in outcomes), 1),
            "share",
            samples=sum(one.factual for one in outcomes),
        ),
        figure("tokens_of_the_longest", tokens[-1], "tokens", note=f"{last.rounds} rounds; estimated for the rules"),
        figure("tokens_a_fact", tokens[-1] / max(last.found, 1), "tokens"),
        figure("seconds_a_report", statistics.median(one.seconds for one in outcomes), "s", samples=len(outcomes)),
    ]


def _told(one: Outcome) -> dict[str, Any]:
    return {
        "rounds": one.rounds,
        "rounds_used": sum(name.startswith("round-") for name in one.state.checklists),
        "outcome": one.state.outcome,
        "found": one.found,
        "tokens": one.state.usage.tokens,
        "usd": None if one.state.unpriced else one.state.usage.usd,
        "sources": len(one.state.fetched),
        "citations": one.citations,
        "seconds": round(one.seconds, 1),
    }
