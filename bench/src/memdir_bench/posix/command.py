"""From options to a run to an exit code."""

from __future__ import annotations

import argparse
import json
import signal
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from memdir.core.errors import UsageError
from memdir_bench.posix import report
from memdir_bench.posix.growth import COUNTS, QUICK_COUNTS
from memdir_bench.posix.run import DEFAULT_TARGETS, TARGETS, Outcome, Plan, run
from memdir_bench.posix.sizes import FILES, QUICK_FILES, QUICK_ROUNDS, QUICK_STREAM_MIB, ROUNDS, STREAM_MIB, Sizes
from memdir_bench.posix.suites import SUITES, WORKLOADS


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when memdir or the native folder could not be measured."""
    plan = plan_of(args)
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # mounts and folders are cleaned up then, too
    try:
        outcome = run(plan)
    finally:
        signal.signal(signal.SIGTERM, before)
    shown = report.as_json(plan, outcome)
    text = json.dumps(shown, indent=2) + "\n"
    if args.output is not None:
        _write(args.output, text)
    sys.stdout.write(text if as_json else report.table(shown))
    return exit_code(outcome)


def exit_code(outcome: Outcome) -> int:
    """A peer that fails is no failure of ours."""
    return 2 if any(failure.target not in outcome.peers for failure in outcome.failures) else 0


def plan_of(args: argparse.Namespace) -> Plan:
    """The options as a plan; UsageError names what there is."""
    sizes = Sizes(
        files=args.files or (QUICK_FILES if args.quick else FILES),
        stream_mib=args.stream_mib or (QUICK_STREAM_MIB if args.quick else STREAM_MIB),
    )
    return Plan(
        sizes=sizes,
        rounds=args.rounds if args.rounds is not None else QUICK_ROUNDS if args.quick else ROUNDS,
        targets=_chosen("target", args.targets, TARGETS) or DEFAULT_TARGETS,
        workloads=workloads_of(args.workload),
        seed=args.seed,
        folder=args.dir,
        grow=() if not args.grow else QUICK_COUNTS if args.quick else COUNTS,
        latency=args.latency,
    )


def workloads_of(names: Iterable[str]) -> frozenset[str]:
    """Names of workloads, or of suites, which stand for all of theirs."""
    suites = {suite.name: suite.names for suite in SUITES}
    chosen = _chosen("workload", names, (*suites, *WORKLOADS))
    return frozenset(workload for name in chosen for workload in suites.get(name, (name,)))


def _chosen(what: str, names: Iterable[str], known: Sequence[str]) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(part for name in names for part in name.split(",") if part))
    for name in chosen:
        if name not in known:
            raise UsageError(f"there is no {what} {name!r}", hint=f"one of: {', '.join(known)}")
    return chosen


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}", hint="choose another --output") from None
