"""One run: fixtures, targets, rounds in random order; whatever happens, mounts and folders are gone at the end."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError, UsageError
from memdir.fs.fuse.backing import check_passthrough
from memdir_bench.figures import Figure
from memdir_bench.posix import clocks, latency, peers, trees
from memdir_bench.posix.growth import Growth, grow
from memdir_bench.posix.measure import Meter, Sample, settle
from memdir_bench.posix.sizes import ROUNDS, Sizes
from memdir_bench.posix.steps import Step
from memdir_bench.posix.suites import SUITES, Suite
from memdir_bench.posix.targets import Memdir, Peer, Target
from memdir_bench.session import BenchSession, open_session, uninterrupted

MEMDIR_OPTIONS: Final = {
    "memdir": ("--profile", "fast"),
    "memdir-observed": ("--profile", "observed"),
    "memdir-traced": ("--traces",),
    "memdir-passthrough": ("--passthrough",),
}
TARGETS: Final = ("native", *MEMDIR_OPTIONS, *peers.NAMES)
DEFAULT_TARGETS: Final = ("native", "memdir", "memdir-passthrough", *peers.DEFAULT_NAMES)
LARGE_FILES_ONLY: Final = "memdir-passthrough"
"""Differs from the observed profile in large files, so only the suite `stream` is run on it."""
_OVERDUE: Final = 4.0
"""No new round begins after so many times the estimate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked for."""

    sizes: Sizes
    rounds: int = ROUNDS
    targets: tuple[str, ...] = DEFAULT_TARGETS
    workloads: frozenset[str] = frozenset()
    """Empty: all."""
    seed: int = 1
    folder: Path | None = None
    """Where the native tree lies; None: the folder for temporary files."""
    grow: tuple[int, ...] = ()
    """How many files the trees of the growth measurement have; empty: left out."""
    latency: bool = False

    @property
    def suites(self) -> tuple[Suite, ...]:
        if not self.rounds:
            return ()
        return tuple(suite for suite in SUITES if not self.workloads or self.workloads & set(suite.names))

    def wants(self, workload: str) -> bool:
        return not self.workloads or workload in self.workloads


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Something that could not be measured."""

    target: str
    part: str
    round: int
    reason: str


@dataclass(slots=True, kw_only=True)
class Outcome:
    """Everything that one run found out."""

    samples: list[Sample] = field(default_factory=list)
    targets: dict[str, str] = field(default_factory=dict)
    """Name -> what it is."""
    peers: tuple[str, ...] = ()
    skipped: list[str] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    cold_means: str = ""
    disk: str = ""
    rounds_done: int = 0
    elapsed_s: float = 0.0
    peak_rss_mib: dict[str, float] = field(default_factory=dict)
    figures: list[Figure] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)


def order(plan: Plan, targets: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """(round, suite, target): suites shuffled in each round, the targets shuffled in each suite and next to each other in time,
    so that a ratio compares neighbours and no target always meets the warmer machine."""
    rng = random.Random(plan.seed)  # noqa: S311  an order that can be repeated
    for round_ in range(plan.rounds):
        suites = [suite.name for suite in plan.suites]
        rng.shuffle(suites)
        for suite in suites:
            row = list(targets)
            rng.shuffle(row)
            for target in row:
                if suite == "stream" or target != LARGE_FILES_ONLY:
                    yield round_, suite, target


def estimate_s(plan: Plan, targets: int) -> float:
    """From runs on the 2-core machine of docs/benchmarks.md; slow on purpose."""
    sizes = plan.sizes
    cost = {
        "small": 2.5 + sizes.files * 0.0022,
        "documents": 3.5 + sizes.documents * 0.0011,
        "sources": 1.5 + sizes.sources * 0.0025,
        "stream": 1.0 + sizes.stream_mib * 0.009,
    }
    rounds_s = plan.rounds * targets * sum(cost[suite.name] for suite in plan.suites)
    grow_s = targets * sum(2 + count * 0.003 for count in plan.grow)
    latency_s = 60 + sizes.files * 0.01 if plan.latency else 0.0
    return 10 + sizes.files * 0.001 + rounds_s + grow_s + latency_s


def progress(text: str) -> None:
    sys.stderr.write(f"bench: {text}\n")
    sys.stderr.flush()


def run(plan: Plan) -> Outcome:
    """Measure. Raises what stops everything (no room, no such folder); the rest stands in the outcome."""
    folder = check_folder(plan)
    outcome = Outcome(disk=filesystem_of(folder))
    started_s = time.monotonic()
    with open_session(folder) as session, _built(plan, session, outcome) as (fixtures, targets):
        meter = Meter(drops=clocks.can_drop_caches())
        outcome.cold_means = meter.cold_means
        outcome.samples = meter.samples
        _rounds(plan, fixtures, targets, meter, outcome)
        for name, target in targets.items():
            if target.pid is not None and target.is_well():
                outcome.peak_rss_mib[name] = clocks.resident_mib(target.pid, peak=True)
        _grow(plan, fixtures, targets, meter, outcome)
        if plan.latency:
            _latency(plan, session, targets, meter, outcome)
    outcome.elapsed_s = time.monotonic() - started_s
    return outcome


def check_folder(plan: Plan) -> Path:
    """Where everything is made; UsageError when it cannot be there."""
    folder = plan.folder or Path(tempfile.gettempdir())
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="choose another --dir")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageError(f"{folder} cannot be written to", hint="choose another --dir")
    kind = filesystem_of(folder)
    if kind.startswith("fuse"):
        raise UsageError(f"{folder} is on {kind}, which is no native filesystem", hint="choose a --dir on a local disk")
    free = shutil.disk_usage(folder).free
    if free < plan.sizes.disk_bytes:
        raise UsageError(
            f"{folder} has {free >> 20} MiB free, and the run needs about {plan.sizes.disk_bytes >> 20} MiB",
            hint="choose another --dir, or smaller --files and --stream-mib",
        )
    return folder.resolve()


def filesystem_of(folder: Path) -> str:
    """The type of the filesystem that holds `folder`."""
    from memdir.fs.fuse.mountpoint import mounts

    real = f"{folder.resolve()}/"
    kind = ""
    longest = -1
    for entry in mounts():
        place = entry.mountpoint.rstrip("/") + "/"
        if real.startswith(place) and len(place) >= longest:
            kind, longest = entry.fstype, len(place)
    return kind


@contextmanager
def _built(plan: Plan, session: BenchSession, outcome: Outcome) -> Iterator[tuple[trees.Fixtures, dict[str, Target]]]:
    """The fixtures, and the targets that could be started."""
    targets: dict[str, Target] = {}
    try:
        for name in plan.targets:
            made = _make(name, session)
            if isinstance(made, str):
                outcome.skipped.append(made)
                progress(f"skipped {made}")
                continue
            try:
                with uninterrupted():
                    targets[name] = made
                    made.start()
            except (MemdirError, OSError) as error:
                if not made.is_peer:
                    raise
                outcome.skipped.append(f"{name}: {error}")
                progress(f"skipped {name}: {error}")
                made.stop()
                del targets[name]
        outcome.targets = {name: target.describes for name, target in targets.items()}
        outcome.peers = tuple(name for name, target in targets.items() if target.is_peer)
        _say_plan(plan, targets, outcome)
        (session.folder / "fixtures").mkdir()
        yield (
            trees.build(
                session.folder / "fixtures", plan.sizes, seed=plan.seed, has_git=_has_git(outcome),
                wanted=frozenset(suite.name for suite in plan.suites),
            ),
            targets,
        )  # fmt: skip
    finally:
        with uninterrupted():
            for target in targets.values():
                target.stop()


def _has_git(outcome: Outcome) -> bool:
    for program, what in (("git", "git workloads"), ("rg", "ripgrep workloads")):
        if shutil.which(program) is None:
            outcome.skipped.append(f"{what}: {program} is not installed")
            progress(f"skipped {outcome.skipped[-1]}")
    return shutil.which("git") is not None


def _say_plan(plan: Plan, targets: dict[str, Target], outcome: Outcome) -> None:
    minutes = estimate_s(plan, len(targets)) / 60
    parts = [f"{plan.rounds} rounds of {', '.join(suite.name for suite in plan.suites)}"] if plan.suites else []
    parts += [f"growth to {max(plan.grow):,} files"] if plan.grow else []
    parts += ["latency"] if plan.latency else []
    progress(
        f"{' and '.join(parts) or 'nothing'} on {', '.join(targets)} ({outcome.disk}, seed {plan.seed}): "
        f"about {minutes:.1f} minutes; Ctrl-C cleans up"
    )


def _make(name: str, session: BenchSession) -> Target | str:
    if name == "native":
        return Target(name, session.folder / name)
    if name in MEMDIR_OPTIONS:
        if name == LARGE_FILES_ONLY:
            try:
                check_passthrough()
            except UsageError as error:
                return f"{name}: {error.message}"
        return Memdir(name, session, options=MEMDIR_OPTIONS[name])
    program = peers.find(name, session.folder)
    if isinstance(program, str):
        return program
    return Peer(name, session.folder, command=program.command, describes=program.describes)


def _rounds(plan: Plan, fixtures: trees.Fixtures, targets: dict[str, Target], meter: Meter, outcome: Outcome) -> None:
    by_name = {suite.name: suite for suite in plan.suites}
    steps = list(order(plan, list(targets)))
    started_s = time.monotonic()
    allowed_s = _OVERDUE * estimate_s(plan, len(targets)) + 60
    for number, (round_, suite, name) in enumerate(steps):
        outcome.rounds_done = round_
        first = number == 0 or steps[number - 1][0] != round_
        if first and round_ and time.monotonic() - started_s > allowed_s:
            outcome.skipped.append(f"rounds {round_ + 1} to {plan.rounds}: the run took too long")
            progress(f"skipped {outcome.skipped[-1]}")
            return
        progress(f"round {round_ + 1} of {plan.rounds}: {suite} on {name} ({number + 1} of {len(steps)})")
        folder = targets[name].root / f"round-{round_}-{suite}"
        try:
            _one(plan, by_name[suite].steps(_made(folder), fixtures, plan.sizes), targets[name], meter, round_)
        except (MemdirError, OSError, subprocess.SubprocessError) as error:
            outcome.failures.append(Failure(target=name, part=suite, round=round_, reason=str(error)))
            progress(f"{suite} on {name} failed: {error}")
        finally:
            with uninterrupted():
                _clear(folder, targets[name])
    outcome.rounds_done = plan.rounds


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def _one(plan: Plan, steps: Iterator[Step], target: Target, meter: Meter, round_: int) -> None:
    for step in steps:
        if plan.wants(step.name):
            meter.run(target, step, round_=round_)
        elif step.changes:
            step.work()


def _clear(folder: Path, target: Target) -> None:
    """Away with what the suite made; a target that no longer answers is started anew."""
    if not target.is_well():
        target.kill()
        target.restart()
    if folder.exists():
        shutil.rmtree(folder)
    settle(target, changed=True)


def _of_small_files(targets: dict[str, Target]) -> list[tuple[str, Target]]:
    return [(name, target) for name, target in targets.items() if name != LARGE_FILES_ONLY]


def _grow(plan: Plan, fixtures: trees.Fixtures, targets: dict[str, Target], meter: Meter, outcome: Outcome) -> None:
    for name, target in _of_small_files(targets) if plan.grow else ():
        progress(f"growth to {max(plan.grow):,} files on {name}")
        with _guarded(outcome, name, "growth"):
            outcome.figures += grow(target, plan.grow, fixtures, drops=meter.drops, into=outcome.growth)
        with uninterrupted():
            for left in target.root.glob("grown-*"):
                shutil.rmtree(left)


def _latency(plan: Plan, session: BenchSession, targets: dict[str, Target], meter: Meter, outcome: Outcome) -> None:
    amounts = latency.Amounts.of(plan.sizes, plan.rounds or ROUNDS)
    for name, target in _of_small_files(targets):
        progress(f"latency of create on {name}")
        with _guarded(outcome, name, "latency of create"):
            outcome.figures += latency.creates(target, amounts)
    parts: dict[str, Callable[[], list[Figure]]] = {
        "a remote change": lambda: latency.remote_changes(session, amounts),
        "a mount after SIGKILL": lambda: latency.kills(session, amounts),
        "a change between two mounts": lambda: latency.between_mounts(session, amounts),
        "lookups beside an indexing server": lambda: latency.lookups_while_indexing(session, amounts, drops=meter.drops),
    }
    for part, measure in parts.items() if "memdir" in targets else ():
        progress(f"latency of {part}")
        with _guarded(outcome, "memdir", part):
            outcome.figures += measure()


@contextmanager
def _guarded(outcome: Outcome, target: str, part: str) -> Iterator[None]:
    """A part that fails is named, and the others go on."""
    try:
        yield
    except (MemdirError, OSError, subprocess.SubprocessError) as error:
        outcome.failures.append(Failure(target=target, part=part, round=0, reason=str(error)))
        progress(f"{part} on {target} failed: {error}")
