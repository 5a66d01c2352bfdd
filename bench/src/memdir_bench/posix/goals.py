"""The goals of issue 3, "Speed", in one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from memdir_bench.figures import Better

Measure = Literal["ratio_native", "ratio_compiled", "requests_per_op", "cpu_us_per_op", "mb_per_s", "figure"]
"""What of a workload: speed as a share of native, speed as a multiple of the fastest compiled libfuse program, requests from
the kernel, processor time of the daemon, a rate; `figure` is a figure of its own (`--grow`, `--latency`)."""

UNITS: Final[dict[Measure, str]] = {
    "ratio_native": "x native",
    "ratio_compiled": "x libfuse",
    "requests_per_op": "requests",
    "cpu_us_per_op": "us",
    "mb_per_s": "MB/s",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`subject` is a workload, or a figure's name."""

    subject: str
    measure: Measure
    goal: float
    target: str = "memdir"
    unit: str = ""

    @property
    def better(self) -> Better:
        return "higher" if self.measure in ("ratio_native", "ratio_compiled", "mb_per_s") else "lower"

    @property
    def name(self) -> str:
        return self.subject if self.measure == "figure" else f"{self.subject}.{self.measure}"

    def is_met(self, value: float) -> bool:
        return value >= self.goal if self.better == "higher" else value <= self.goal


def _ratios(**goals: float) -> tuple[Goal, ...]:
    return tuple(Goal(subject=name, measure="ratio_native", goal=goal) for name, goal in goals.items())


def _requests(**goals: float) -> tuple[Goal, ...]:
    return tuple(Goal(subject=name, measure="requests_per_op", goal=goal) for name, goal in goals.items())


def _figures(unit: str, **goals: float) -> tuple[Goal, ...]:
    return tuple(Goal(subject=name, measure="figure", goal=goal, unit=unit) for name, goal in goals.items())


GOALS: Final = (
    *_ratios(
        create=0.5,
        find_warm=0.9,
        ls_lr_warm=0.9,
        ripgrep_warm=0.9,
        git_status_warm=0.9,
        grep_r_warm=0.4,
        grep_r_cold=0.2,
        git_clone=0.4,
        untar=0.3,
        git_status_cold=0.25,
    ),
    Goal(subject="lookup", measure="cpu_us_per_op", goal=8.0),
    Goal(subject="lookup", measure="ratio_compiled", goal=1.0),
    *_requests(create=5.0, stat_warm=0.0, open_read_warm=0.0, grep_r_cold=1.1, ripgrep_warm=0.05, ls_lr_cold=0.1),
    Goal(subject="stream_write", measure="mb_per_s", goal=200.0),
    Goal(subject="stream_read_cold", measure="mb_per_s", goal=800.0),
    Goal(subject="stream_write", measure="ratio_native", goal=0.9, target="memdir-passthrough"),
    Goal(subject="stream_read_cold", measure="ratio_native", goal=0.9, target="memdir-passthrough"),
    *_figures("us", create_p99=150.0),
    *_figures("ms", create_max=10.0, lookup_p99_while_indexing=1.0, remote_change_visible=50.0, invalidate_10000=200.0),
    *_figures("s", remount_after_kill=0.5, mount_100000=0.5, find_100000=2.0),
    *_figures("MB", resident_100000=200.0),
    *_figures("files", lost_after_kill=0.0),
)
"""`memdir-passthrough` is `memdir mount --passthrough` (root only). What a goal is measured on: docs/benchmarks.md."""

COMPILED: Final = ("bindfs", "passthrough_hp", "passthrough", "passthrough_ll")
"""Programs in C or C++ over libfuse; the fastest of those measured is the reference."""
