"""The same work on 1,000, 10,000 and 100,000 files: what an operation costs as the tree grows; and mount, find, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from memdir_bench.figures import Figure, rounded
from memdir_bench.posix import clocks
from memdir_bench.posix.measure import Meter
from memdir_bench.posix.sizes import SMALL_FILE_BYTES
from memdir_bench.posix.steps import Program, Step, expect
from memdir_bench.posix.suites import read_each, small_file_paths, stat_each, write_new
from memdir_bench.posix.targets import Memdir, Target
from memdir_bench.posix.trees import NEEDLE, Fixtures

COUNTS: Final = (1000, 10_000, 100_000)
QUICK_COUNTS: Final = (50, 500)


@dataclass(slots=True, kw_only=True)
class Growth:
    """One workload on one target: files -> microseconds an operation."""

    workload: str
    target: str
    us_per_op: dict[int, float] = field(default_factory=dict)

    @property
    def factor(self) -> float | None:
        """How many times as much an operation costs on the largest tree as on the smallest; 1 is perfect."""
        if len(self.us_per_op) < 2:
            return None
        return self.us_per_op[max(self.us_per_op)] / self.us_per_op[min(self.us_per_op)]

    def as_json(self) -> dict[str, Any]:
        factor = self.factor
        return {
            "workload": self.workload,
            "target": self.target,
            "us_per_op": {str(count): rounded(value) for count, value in self.us_per_op.items()},
            "factor": None if factor is None else rounded(factor),
        }


def steps(folder: Path, count: int, fixtures: Fixtures) -> Iterator[Step]:
    """Names are asked for one by one and by the usual programs."""
    paths = small_file_paths(folder, count)
    for parent in sorted({os.path.dirname(path) for path in paths}):
        os.mkdir(parent)
    data = (b"memory " * (SMALL_FILE_BYTES // 7 + 1))[:SMALL_FILE_BYTES]
    place, empty = str(folder), str(fixtures.empty)

    def stat() -> None:
        stat_each(paths)

    def read() -> None:
        read_each(paths, SMALL_FILE_BYTES)

    find, listing, grep = Program("find", place), Program("ls", "-lR", place), Program("grep", "-rl", NEEDLE, place, codes=(1,))

    def found() -> None:
        expect("files that find listed", find.output.count(b".txt\n"), count)

    def listed() -> None:
        expect("files that ls listed", listing.output.count(b".txt\n"), count)

    load_find, load_ls = Program("find", empty), Program("ls", "-lR", empty)
    load_grep = Program("grep", "-rl", NEEDLE, empty, codes=(1,))
    yield Step(name="create", ops=count, unit="file", changes=True, work=lambda: write_new(paths, data))
    yield Step(name="stat_warm", ops=count, unit="file", prepare=stat, work=stat)
    yield Step(name="find_warm", ops=count, unit="file", prepare=find, work=find, check=found)
    yield Step(name="ls_lr_warm", ops=count, unit="file", prepare=listing, work=listing, check=listed)
    yield Step(name="lookup", ops=count, unit="file", cold="names", work=stat)
    yield Step(name="find_cold", ops=count, unit="file", cold="all", load=load_find, work=find, check=found)
    yield Step(name="ls_lr_cold", ops=count, unit="file", cold="all", load=load_ls, work=listing, check=listed)
    yield Step(name="open_read_cold", ops=count, unit="file", cold="all", work=read)
    yield Step(name="grep_r_cold", ops=count, unit="file", cold="all", load=load_grep, work=grep)


def removal(folder: Path, count: int) -> Step:
    """The last step, after everything that needs the tree."""
    return Step(
        name="rm_rf", ops=count, unit="file", changes=True, work=Program("rm", "-rf", str(folder)),
        check=lambda: expect("folder that is left", int(folder.exists()), 0),
    )  # fmt: skip


def grow(target: Target, counts: Sequence[int], fixtures: Fixtures, *, drops: bool, into: list[Growth]) -> list[Figure]:
    """All sizes on one target; adds to `into`. For memdir, returns what its largest tree means for mount, find and memory."""
    if isinstance(target, Memdir):
        target.restart()  # so that its memory is that of this tree
    meter = Meter(drops=drops)
    figures: list[Figure] = []
    for count in counts:
        folder = target.root / f"grown-{count}"
        folder.mkdir()
        for step in steps(folder, count, fixtures):
            _note(meter.run(target, step, round_=0).wall_s, step, target, count, into)
        if isinstance(target, Memdir) and count == max(counts):
            figures = _with_all(target, folder, count, empty=fixtures.empty, drops=drops)
        step = removal(folder, count)
        _note(meter.run(target, step, round_=0).wall_s, step, target, count, into)
    return figures


def _note(wall_s: float, step: Step, target: Target, count: int, into: list[Growth]) -> None:
    row = next((one for one in into if (one.workload, one.target) == (step.name, target.name)), None)
    if row is None:
        into.append(row := Growth(workload=step.name, target=target.name))
    row.us_per_op[count] = wall_s / step.ops * 1e6


def _with_all(target: Memdir, folder: Path, count: int, *, empty: Path, drops: bool) -> list[Figure]:
    """Mounted anew over a cold disk: `memdir mount`, the first find, and the most memory, before and after."""
    before_mb = _peak_mb(target)
    target.stop()
    if drops:
        clocks.drop_caches(clocks.DROP_ALL)
    target.load_programs()
    Program("find", str(empty))()
    started_s = time.perf_counter()
    target.start()
    mount_s = time.perf_counter() - started_s
    find = Program("find", str(folder))
    started_s = time.perf_counter()
    find()
    find_s = time.perf_counter() - started_s
    expect("files that find listed", find.output.count(b".txt\n"), count)
    Program("ls", "-lR", str(folder))()
    after_mb = _peak_mb(target)
    return [
        Figure(name=f"mount_{count}", value=mount_s, unit="s", samples=1, note="the whole memdir mount command"),
        Figure(name=f"find_{count}", value=find_s, unit="s", samples=1, note="the first after the mount"),
        Figure(
            name=f"resident_{count}",
            value=max(before_mb, after_mb),
            unit="MB",
            samples=2,
            note="the most, while they were made too",
        ),
        Figure(
            name=f"resident_{count}_mounted_anew", value=after_mb, unit="MB", samples=1, note="the most, ls -lR of everything"
        ),
    ]


def _peak_mb(target: Target) -> float:
    return 0.0 if target.pid is None else clocks.resident_mib(target.pid, peak=True) * 1.048576


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Microseconds an operation at each size."""
    if not rows:
        return []
    counts = list(dict.fromkeys(count for row in rows for count in row["us_per_op"]))
    head = (
        f"{'growth, us an operation':<26}{'target':<18}" + "".join(f"{int(count):>12,}" for count in counts) + f"{'factor':>9}"
    )
    lines = [head]
    for row in sorted(rows, key=lambda one: one["workload"]):
        cells = "".join(f"{row['us_per_op'].get(count, float('nan')):>12.2f}" for count in counts)
        factor = "" if row["factor"] is None else f"{row['factor']:.2f}"
        lines.append(f"{row['workload']:<26}{row['target']:<18}{cells}{factor:>9}")
    return [*lines, ""]
