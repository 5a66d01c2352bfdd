"""The options of `memdir bench research`, `research export` and `research score`."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.cli.command import Command, Parser, bounded_int
from memdir_bench.commands import add_model, add_output, configure_quick, runs

if TYPE_CHECKING:
    from memdir.cli.output import Output


def _configure_research(parser: Parser) -> None:
    configure_quick(parser)
    add_model(parser, "a real model instead of the rules")
    parser.add_argument("--json-actions", action="store_true", help="for models that call no tools")


RESEARCH = Command(
    name="bench research",
    usage="[OPTIONS]",
    description=(
        "Forty questions with known answers out of two manuals (Debian's python3.11-doc and postgresql-doc-15), researched in\n"
        "1, 2, 3, 5 and 8 rounds by fixed rules, or by a model that you name: facts found, tokens, and whether the citations\n"
        "of the reports lead to lines that hold what is said."
    ),
    examples=[
        ("memdir bench research", "a minute"),
        (
            "memdir bench research --quick --model openai:qwen --model-url http://127.0.0.1:8080/v1 --json-actions",
            "a model here",
        ),
    ],
    exit_codes=[(0, "measured; each goal says whether it was met"), (2, "it could not be measured")],
    configure=_configure_research,
    run=runs("research"),
)


def _exchanges(name: str) -> Callable[[argparse.Namespace, Output], int]:
    def run(args: argparse.Namespace, out: Output) -> int:
        done: Callable[..., int] = getattr(importlib.import_module("memdir_bench.research.exchange"), name)
        return done(args, out)

    return run


def _configure_research_export(parser: Parser) -> None:
    parser.add_argument("dirs", metavar="DIR", nargs="+", help="workspaces of finished researches, in the order of the tasks")
    parser.add_argument(
        "--format", metavar="FORMAT", choices=("deepresearch-bench", "deepconsult"), default="deepresearch-bench"
    )
    parser.add_argument("--first-id", metavar="N", type=bounded_int(0, 10**6), default=1, help="of the tasks (default: 1)")
    parser.add_argument("--baseline", metavar="FILE", type=Path, help="for deepconsult: CSV with question and baseline_answer")
    add_output(parser)


RESEARCH_EXPORT = Command(
    name="bench research export",
    usage="DIR… [--format deepresearch-bench|deepconsult] [--output FILE]",
    description=(
        "Write reports as other benchmarks read them: JSON lines of id, prompt, article for DeepResearch Bench, a CSV beside\n"
        "a baseline's answers for DeepConsult. Citations become links to the pages' own addresses."
    ),
    examples=[("memdir bench research export ws/1 ws/2 --output memdir.jsonl", "for data/test_data/raw_data")],
    exit_codes=[(0, "written"), (1, "some have no report; the others are written")],
    configure=_configure_research_export,
    run=_exchanges("export"),
)


def _configure_research_score(parser: Parser) -> None:
    parser.add_argument("judged", metavar="FILE", type=Path, help="JSON lines: what a judge said of each task")
    parser.add_argument(
        "--criteria", metavar="FILE", type=Path, help="the benchmark's criteria.jsonl: then it is RACE, else FACT"
    )


RESEARCH_SCORE = Command(
    name="bench research score",
    usage="FILE [--criteria FILE]",
    description=(
        "The arithmetic of DeepResearch Bench over what a judge model said. RACE: an object a task with its id and, for each\n"
        "dimension, criterion, article_1_score (ours) and article_2_score (the reference's). FACT: id and citations, a list\n"
        "of supported, unsupported and unknown."
    ),
    examples=[
        ("memdir bench research score race.jsonl --criteria criteria.jsonl", "shares of ours in ours plus the reference's")
    ],
    exit_codes=[(0, "scored"), (1, "there is nothing in the file")],
    configure=_configure_research_score,
    run=_exchanges("score"),
)
