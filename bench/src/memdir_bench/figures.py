"""A measured figure beside its goal, and the few statistics we report."""

from __future__ import annotations

import math
import os
import platform
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One number. `goal` is None when none was set; `samples` says how many measurements stand behind it."""

    name: str
    value: float
    unit: str
    samples: int
    goal: float | None = None
    better: Better = "lower"
    spread: tuple[float, float] | None = None
    note: str = ""

    @property
    def met(self) -> bool | None:
        """None when there is no goal; a value that is not a number misses every goal."""
        if self.goal is None:
            return None
        return self.value <= self.goal if self.better == "lower" else self.value >= self.goal

    def as_json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"name": self.name, "value": rounded(self.value), "unit": self.unit, "samples": self.samples}
        if self.spread is not None:
            shown["spread"] = [rounded(self.spread[0]), rounded(self.spread[1])]
        if self.goal is not None:
            shown |= {"goal": self.goal, "better": self.better, "met": self.met}
        if self.note:
            shown["note"] = self.note
        return shown


def figure_of(
    goals: Mapping[str, float],
    name: str,
    value: float,
    unit: str,
    *,
    samples: int = 1,
    better: Better = "lower",
    note: str = "",
    spread: tuple[float, float] | None = None,
) -> Figure:
    """A figure with the goal of its name, when it has one."""
    return Figure(
        name=name, value=value, unit=unit, samples=samples, better=better, note=note, goal=goals.get(name), spread=spread
    )


def rounded(value: float) -> float | None:
    """Four significant digits; None for what JSON cannot say."""
    if not math.isfinite(value):
        return None
    return float(f"{value:.4g}")


def percentile(samples: Sequence[float], share: float) -> float:
    """Nearest-rank percentile: always a value that was measured. `share` from 0 to 1."""
    if not samples:
        return math.nan
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def p50_p95(
    name: str, samples: Sequence[float], *, unit: str, goal_p95: float | None = None, note: str = ""
) -> tuple[Figure, Figure]:
    """The two figures of a latency: the goal belongs to the 95th percentile."""
    count = len(samples)
    return (
        Figure(name=f"{name}_p50", value=percentile(samples, 0.5), unit=unit, samples=count, note=note),
        Figure(name=f"{name}_p95", value=percentile(samples, 0.95), unit=unit, samples=count, goal=goal_p95, note=note),
    )


def ratio_to_native(
    name: str, native_s: Sequence[float], mount_s: Sequence[float], *, goal: float | None, note: str = ""
) -> Figure:
    """How fast the mount is, as a share of the native filesystem: median over rounds of native time / mount time."""
    ratios = [native / mount for native, mount in zip(native_s, mount_s, strict=True) if mount > 0]
    if not ratios:
        return Figure(name=name, value=math.nan, unit="ratio", samples=0, goal=goal, better="higher", note=note)
    return Figure(
        name=name,
        value=statistics.median(ratios),
        unit="ratio",
        samples=len(ratios),
        goal=goal,
        better="higher",
        spread=(min(ratios), max(ratios)),
        note=note,
    )


def machine() -> dict[str, Any]:
    """What the figures were measured on; no name, no address."""
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "processor": processor(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "arch": platform.machine(),
        "load_1m": round(os.getloadavg()[0], 2),
        "root": os.geteuid() == 0,
    }


def processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """Name and generation of the processor, as Linux tells them; '' when it tells none."""
    try:
        lines = cpuinfo.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0].splitlines()
    except OSError:
        return ""
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return ", ".join(
        f"{before}{told[name]}"
        for name, before in (("model name", ""), ("cpu family", "family "), ("model", "model "))
        if told.get(name)
    )
