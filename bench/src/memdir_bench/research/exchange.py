"""`memdir bench research export` and `score`: reports out to other benchmarks, what their judges said back in."""

from __future__ import annotations

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memdir.core.errors import UsageError
from memdir.research.archive import Archive
from memdir.research.journal import entries
from memdir.research.state import folded
from memdir.research.workspace import REPORT, Workspace
from memdir_bench.research.judges import deepconsult, deepresearch_bench, fact, mean_race, race, with_addresses

if TYPE_CHECKING:
    from memdir.cli.output import Output


def export(args: argparse.Namespace, out: Output) -> int:
    """Write the reports of workspaces in another benchmark's form. 0, or 1 when a workspace has no report."""
    found = [one for one in (_report(Path(given), out) for given in args.dirs) if one is not None]
    if args.format == "deepconsult":
        if args.baseline is None:
            raise UsageError(
                "DeepConsult compares with a baseline", hint="--baseline FILE.csv with question and baseline_answer"
            )
        with open(args.baseline, newline="", encoding="utf-8") as file:
            baseline = {row["question"].strip(): row["baseline_answer"] for row in csv.DictReader(file)}
        missing = [topic for topic, _report in found if topic.strip() not in baseline]
        if missing:
            raise UsageError(
                f"the baseline has no answer to {missing[0][:100]!r}", hint="a topic is the question, word by word"
            )
        text = deepconsult([(topic, baseline[topic.strip()], report) for topic, report in found])
    else:
        text = deepresearch_bench(
            [(number, topic, report) for number, (topic, report) in enumerate(found, start=args.first_id)]
        )
    if args.output is None:
        sys.stdout.write(text)
    else:
        args.output.write_text(text, encoding="utf-8")
    return 0 if len(found) == len(args.dirs) else 1


def _report(root: Path, out: Output) -> tuple[str, str] | None:
    workspace = Workspace(root)
    topic, report = folded(entries(workspace.root)).topic, workspace.read(REPORT)
    if not topic or report is None:
        out.note(f"{root}: no report")
        return None
    return topic, with_addresses(report, {source.path: source.url for source in Archive(workspace).all()})


def score(args: argparse.Namespace, out: Output) -> int:
    """What judges said, as the benchmark's own figures."""
    judged = list(_lines(args.judged))
    if args.criteria is not None:
        criteria = {one["id"]: one for one in _lines(args.criteria)}
        lost = [one["id"] for one in judged if one["id"] not in criteria]
        if lost:
            raise UsageError(f"there are no criteria for task {lost[0]!r}", hint="give the benchmark's criteria.jsonl")
        mean = mean_race([race(one, criteria[one["id"]]) for one in judged])
        shown: dict[str, Any] = {"tasks": len(judged), "overall": mean.overall, **mean.dimensions}
    else:
        counted = fact([one["citations"] for one in judged])
        shown = {
            "tasks": counted.tasks,
            "citation_accuracy": counted.accuracy,
            "effective_citations": counted.effective,
            "citations": counted.citations,
        }
    if out.json:
        out.document(shown)
    else:
        for name, value in shown.items():
            out.line(f"{name:<24} {value:.4f}" if isinstance(value, float) else f"{name:<24} {value}")
    return 0 if judged else 1


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            try:
                found = json.loads(line)
            except ValueError:
                found = None
            if not isinstance(found, dict) or "id" not in found:
                raise UsageError(f"{path}:{number} is no task", hint='a JSON object with "id" a line')
            yield found
