"""A run as JSON and as tables. Times are medians over rounds; ratios are taken round by round, and their median; spreads are
from the smallest to the largest."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from memdir_bench.figures import Figure, machine, rounded
from memdir_bench.posix import growth
from memdir_bench.posix.goals import COMPILED, GOALS, UNITS, Goal
from memdir_bench.posix.measure import Sample
from memdir_bench.posix.run import Outcome, Plan
from memdir_bench.posix.suites import WORKLOADS

SCHEMA: Final = 1
_ENOUGH_ROUNDS: Final = 5


class Results:
    """The samples of a run, asked for by workload and target."""

    def __init__(self, samples: Sequence[Sample]) -> None:
        self._samples: dict[tuple[str, str], dict[int, Sample]] = {}
        for sample in samples:
            self._samples.setdefault((sample.workload, sample.target), {})[sample.round] = sample

    def of(self, workload: str, target: str) -> list[Sample]:
        return list(self._samples.get((workload, target), {}).values())

    def median(self, workload: str, target: str, value: Callable[[Sample], float | None]) -> float | None:
        found = [one for sample in self.of(workload, target) if (one := value(sample)) is not None]
        return statistics.median(found) if found else None

    def ratios(self, workload: str, slower: str, faster: str) -> list[float]:
        """Time on `slower` over time on `faster`, for each round that has both."""
        left, right = self._samples.get((workload, slower), {}), self._samples.get((workload, faster), {})
        return [left[number].wall_s / right[number].wall_s for number in left if number in right]

    def cpu_ratios(self, workload: str, target: str) -> list[float]:
        """Processor time on the native folder over that of `target`, daemon included: depends little on other work."""
        native, other = self._samples.get((workload, "native"), {}), self._samples.get((workload, target), {})
        spent = {number: sample.client_cpu_s + (sample.cpu_s or 0.0) for number, sample in other.items()}
        return [native[number].client_cpu_s / spent[number] for number in native if spent.get(number, 0.0) > 0]

    def fastest(self, workload: str, targets: Sequence[str]) -> str | None:
        times = {target: self.median(workload, target, wall_us) for target in targets}
        known = {target: time for target, time in times.items() if time is not None}
        return min(known, key=known.__getitem__) if known else None

    def value(self, goal: Goal) -> float | None:
        """The measured value a goal is about; None when it was not measured."""
        if goal.measure == "ratio_native":
            ratios = self.ratios(goal.subject, "native", goal.target)
            return statistics.median(ratios) if ratios else None
        if goal.measure == "ratio_compiled":
            rival = self.fastest(goal.subject, COMPILED)
            ratios = [] if rival is None else self.ratios(goal.subject, rival, goal.target)
            return statistics.median(ratios) if ratios else None
        reader = {"requests_per_op": requests_per_op, "cpu_us_per_op": cpu_us, "mb_per_s": mb_per_s}.get(goal.measure)
        return None if reader is None else self.median(goal.subject, goal.target, reader)


def wall_us(sample: Sample) -> float:
    return sample.wall_s / sample.ops * 1e6


def cpu_us(sample: Sample) -> float | None:
    return None if sample.cpu_s is None else sample.cpu_s / sample.ops * 1e6


def mb_per_s(sample: Sample) -> float | None:
    return sample.size_bytes / 1e6 / sample.wall_s if sample.size_bytes else None


def requests_per_op(sample: Sample) -> float | None:
    return None if sample.requests is None else sum(sample.requests.values()) / sample.ops


def client_cpu_us(sample: Sample) -> float:
    return sample.client_cpu_s / sample.ops * 1e6


_READERS: Final[tuple[tuple[str, Callable[[Sample], float | None]], ...]] = (
    ("mb_per_s", mb_per_s),
    ("client_cpu_us_per_op", client_cpu_us),
    ("cpu_us_per_op", cpu_us),
    ("requests_per_op", requests_per_op),
)


def as_json(plan: Plan, outcome: Outcome) -> dict[str, Any]:
    """Everything, with every goal."""
    results = Results(outcome.samples)
    return {
        "benchmark": "posix",
        "schema": SCHEMA,
        "machine": machine() | {"disk": outcome.disk},
        "settings": {
            "rounds": plan.rounds,
            "rounds_done": outcome.rounds_done,
            "seed": plan.seed,
            "files": plan.sizes.files,
            "documents": plan.sizes.documents,
            "sources": plan.sizes.sources,
            "stream_mib": plan.sizes.stream_mib,
            "cold": outcome.cold_means,
            "elapsed_s": rounded(outcome.elapsed_s),
        },
        "targets": outcome.targets,
        "peak_rss_mib": {name: rounded(value) for name, value in outcome.peak_rss_mib.items()},
        "workloads": [
            _workload(name, results, outcome) for name in WORKLOADS if any(results.of(name, one) for one in outcome.targets)
        ],
        "figures": [figure.as_json() for figure in outcome.figures],
        "growth": [row.as_json() for row in outcome.growth],
        "goals": [_goal(goal, results, outcome.figures) for goal in GOALS],
        "skipped": list(outcome.skipped),
        "failed": [asdict(failure) for failure in outcome.failures],
    }


def _workload(name: str, results: Results, outcome: Outcome) -> dict[str, Any]:
    first = next(sample for target in outcome.targets for sample in results.of(name, target))
    best = results.fastest(name, outcome.peers)
    targets = {}
    for target in outcome.targets:
        samples = results.of(name, target)
        if not samples:
            continue
        shown: dict[str, Any] = {"wall_us_per_op": _spread([wall_us(sample) for sample in samples])}
        for key, reader in _READERS:
            values = [value for sample in samples if (value := reader(sample)) is not None]
            if values:
                shown[key] = _spread(values)
        if samples[-1].requests is not None:
            shown["requests"] = dict(sorted(samples[-1].requests.items(), key=lambda item: -item[1]))
        resident = [sample.rss_mib for sample in samples if sample.rss_mib is not None]
        if resident:
            shown["rss_mib"] = rounded(max(resident))
        if target != "native" and (ratios := results.ratios(name, "native", target)):
            shown["ratio_native"] = _spread(ratios)
            if cpu_ratios := results.cpu_ratios(name, target):
                shown["ratio_native_cpu"] = _spread(cpu_ratios)
        if target not in ("native", *outcome.peers) and best is not None and (ratios := results.ratios(name, best, target)):
            shown["ratio_best_peer"] = _spread(ratios) | {"peer": best}
        targets[target] = shown
    return {"name": name, "ops": first.ops, "unit": first.unit, "size_bytes": first.size_bytes, "targets": targets}


def _spread(values: Sequence[float]) -> dict[str, Any]:
    return {
        "median": rounded(statistics.median(values)),
        "min": rounded(min(values)),
        "max": rounded(max(values)),
        "samples": len(values),
    }


def _goal(goal: Goal, results: Results, figures: Sequence[Figure]) -> dict[str, Any]:
    if goal.measure == "figure":
        value = next((figure.value for figure in figures if figure.name == goal.subject), None)
    else:
        value = results.value(goal)
    return {
        "name": goal.name,
        "target": goal.target,
        "value": None if value is None else rounded(value),
        "unit": goal.unit or UNITS[goal.measure],
        "goal": goal.goal,
        "better": goal.better,
        "met": None if value is None else goal.is_met(value),
    }


def table(report: dict[str, Any]) -> str:
    """For people: times of every target, then memdir in detail, then the goals."""
    settings = report["settings"]
    targets = list(report["targets"])
    lines = [
        f"{settings['rounds_done']} rounds in {settings['elapsed_s']:.0f} s, seed {settings['seed']}",
        f"on {report['machine']['disk']}, {report['machine']['cpus']} CPUs, load {report['machine']['load_1m']}",
        f"cold: {settings['cold']}",
        *(f"{name}: {what}" for name, what in report["targets"].items()),
        "",
    ]
    if report["workloads"] and settings["rounds_done"] < _ENOUGH_ROUNDS:
        lines.insert(0, f"fewer than {_ENOUGH_ROUNDS} rounds: a look, not a measurement")
    if report["workloads"]:
        lines += _times(report["workloads"], targets)
        for name in targets:
            if name.startswith("memdir"):
                lines += ["", *_details(name, report["workloads"])]
    lines += ["", *growth.table(report["growth"]), *_figure_rows(report["figures"]), *_goal_rows(report["goals"])]
    lines += [f"peak memory of {name}: {value} MiB" for name, value in report["peak_rss_mib"].items()]
    lines += [f"not measured: {text}" for text in report["skipped"]]
    lines += [
        f"FAILED: {one['part']} on {one['target']}, round {one['round'] + 1}: {one['reason']}" for one in report["failed"]
    ]
    return "\n".join(lines) + "\n"


def _times(workloads: list[dict[str, Any]], targets: list[str]) -> list[str]:
    """Microseconds an operation, median and spread."""
    rows = [f"{'us an operation':<18}" + "".join(f"{name:>27}" for name in targets)]
    for workload in workloads:
        cells = [_cell(workload["targets"].get(name, {}).get("wall_us_per_op")) for name in targets]
        rows.append(f"{workload['name']:<18}" + "".join(f"{cell:>27}" for cell in cells))
    return rows


def _details(target: str, workloads: list[dict[str, Any]]) -> list[str]:
    goals = {goal.subject: goal.goal for goal in GOALS if goal.measure == "ratio_native" and goal.target == target}
    head = f"{target:<18}{'x native':>21}{'goal':>6}  {'met':<4}{'in cpu':>7}{'x best peer':>13}"
    rows = [f"{head}{'MB/s':>23}{'cpu us':>8}{'least':>7}  requests"]
    for workload in workloads:
        shown = workload["targets"].get(target)
        if shown is None:
            continue
        ratio, peer = shown.get("ratio_native"), shown.get("ratio_best_peer", {})
        goal = goals.get(workload["name"])
        met = "" if goal is None or ratio is None else "yes" if ratio["median"] >= goal else "NO"
        row = f"{workload['name']:<18}{_cell(ratio):>21}{'' if goal is None else goal:>6}  {met:<4}"
        row += f"{_middle(shown, 'ratio_native_cpu'):>7}{_middle(shown, 'ratio_best_peer'):>13} {peer.get('peer', ''):<15}"
        row += f"{_middle(shown, 'mb_per_s'):>7}{_middle(shown, 'cpu_us_per_op'):>8}{_middle(shown, 'cpu_us_per_op', 'min'):>7}"
        rows.append(f"{row}  {_middle(shown, 'requests_per_op')}{_kinds(shown, workload['ops'])}".rstrip())
    return rows


def _kinds(shown: dict[str, Any], ops: int) -> str:
    """The kinds of requests that come at least once in ten operations."""
    often = {kind: number / ops for kind, number in shown.get("requests", {}).items() if number / ops >= 0.1}
    return f" ({', '.join(f'{kind} {_short(number)}' for kind, number in often.items())})" if often else ""


def _figure_rows(figures: list[dict[str, Any]]) -> list[str]:
    if not figures:
        return []
    rows = [f"{'figure':<34}{'value':>10}  {'unit':<12}spread"]
    for figure in figures:
        spread = "" if "spread" not in figure else " .. ".join(_short(one) for one in figure["spread"])
        note = f"  {figure['note']}" if "note" in figure else ""
        rows.append(f"{figure['name']:<34}{_short(figure['value']):>10}  {figure['unit']:<12}{spread}{note}".rstrip())
    return [*rows, ""]


def _goal_rows(goals: list[dict[str, Any]]) -> list[str]:
    rows = [f"{'goal':<34}{'of':<17}{'value':>9}{'goal':>8}  {'unit':<11}met"]
    for goal in goals:
        met = {True: "yes", False: "NO", None: "not measured"}[goal["met"]]
        rows.append(
            f"{goal['name']:<34}{goal['target']:<17}{'' if goal['value'] is None else _short(goal['value']):>9}"
            f"{goal['goal']:>8}  {goal['unit']:<11}{met}"
        )
    return rows


def _cell(spread: dict[str, Any] | None) -> str:
    if spread is None:
        return "-"
    return f"{_short(spread['median'])} ({_short(spread['min'])}-{_short(spread['max'])})"


def _middle(shown: dict[str, Any], key: str, which: str = "median") -> str:
    return _short(shown[key][which]) if key in shown else ""


def _short(value: float | None) -> str:
    """Three significant digits, no exponent."""
    if value is None:
        return "-"
    if value == 0 or abs(value) >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.3f}"
