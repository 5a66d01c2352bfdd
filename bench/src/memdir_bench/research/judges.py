"""The arithmetic of DeepResearch Bench (RACE and FACT; Du et al. 2025, arXiv:2506.11763) and the input formats of it and of
DeepConsult. A judge is a model that the user has: what it answers is read here, nothing is asked."""

from __future__ import annotations

import csv
import io
import json
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

DIMENSIONS: Final = ("comprehensiveness", "insight", "instruction_following", "readability")


@dataclass(frozen=True, slots=True, kw_only=True)
class Race:
    """Shares of the target in target plus reference: 0.5 is as good as the reference."""

    overall: float
    dimensions: Mapping[str, float]


def race(judged: Mapping[str, Sequence[Mapping[str, Any]]], criteria: Mapping[str, Any]) -> Race:
    """One task. `judged`: dimension to [{"criterion", "article_1_score", "article_2_score"}], scores 0 to 10, article 1 the
    target. `criteria`: {"dimension_weight": {dimension: weight}, "criterions": {dimension: [{"criterion", "weight"}]}}.

    A dimension's score is the mean of its criteria by their weights, the total that of the dimensions by theirs. Criteria that
    the judge left out do not count. ValueError when nothing was judged."""
    totals = [0.0, 0.0]
    shares: dict[str, float] = {}
    for dimension in DIMENSIONS:
        weights = {str(one["criterion"]): float(one["weight"]) for one in criteria["criterions"].get(dimension, [])}
        rows = [one for one in judged.get(dimension, []) if str(one["criterion"]) in weights]
        weight = sum(weights[str(one["criterion"])] for one in rows)
        if weight <= 0:
            continue
        means = [
            sum(weights[str(one["criterion"])] * float(one[key]) for one in rows) / weight
            for key in ("article_1_score", "article_2_score")
        ]
        shares[dimension] = _share(*means)
        for at, mean in enumerate(means):
            totals[at] += float(criteria["dimension_weight"].get(dimension, 0.0)) * mean
    if not shares:
        raise ValueError("no criterion of the task was judged")
    return Race(overall=_share(*totals), dimensions=shares)


def _share(target: float, reference: float) -> float:
    return target / (target + reference) if target + reference > 0 else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """`accuracy`: supported of all judged citations. `effective`: supported ones a task."""

    accuracy: float
    effective: float
    citations: float
    tasks: int


def fact(tasks: Iterable[Sequence[str]]) -> Fact:
    """For each task the verdicts on its deduplicated pairs of statement and address: supported, unsupported, unknown. Unknown
    ones (the page could not be read) count nowhere; tasks without citations do not count as tasks."""
    judged = [[verdict for verdict in task if verdict != "unknown"] for task in tasks if task]
    total = sum(map(len, judged))
    supported = sum(task.count("supported") for task in judged)
    count = len(judged)
    return Fact(
        accuracy=supported / total if total else 0.0,
        effective=supported / count if count else 0.0,
        citations=total / count if count else 0.0,
        tasks=count,
    )


def mean_race(tasks: Iterable[Race]) -> Race:
    """Over tasks, each counting the same."""
    found = list(tasks)
    return Race(
        overall=statistics.fmean(one.overall for one in found),
        dimensions={
            name: statistics.fmean(one.dimensions[name] for one in found if name in one.dimensions)
            for name in DIMENSIONS
            if any(name in one.dimensions for one in found)
        },
    )


def deepresearch_bench(reports: Iterable[tuple[str | int, str, str]]) -> str:
    """(id, prompt, article) as `data/test_data/raw_data/MODEL.jsonl`. Articles cite by address, as FACT reads them."""
    return "".join(
        json.dumps({"id": number, "prompt": prompt, "article": article}, ensure_ascii=False) + "\n"
        for number, prompt, article in reports
    )


def deepconsult(reports: Iterable[tuple[str, str, str]]) -> str:
    """(question, baseline's answer, ours) as the CSV that its pairwise judge reads."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow(["question", "baseline_answer", "candidate_answer"])
    writer.writerows(reports)
    return written.getvalue()


def with_addresses(report: str, addresses: Mapping[str, str]) -> str:
    """A report whose citations are links to the pages' own addresses: what a judge without the workspace can follow."""
    from memdir.research.citations import PATTERN, found
    from memdir.research.outline import without_part

    numbers: dict[str, int] = {}

    def link(match: Any) -> str:
        path = found(match).path
        number = numbers.setdefault(path, len(numbers) + 1)
        return f"[{number}]({addresses.get(path, path)})"

    body = PATTERN.sub(link, without_part(report, "Sources")).rstrip()
    listed = "\n".join(f"[{number}] {addresses.get(path, path)}" for path, number in numbers.items())
    return f"{body}\n\n## References\n\n{listed}\n" if listed else body + "\n"
