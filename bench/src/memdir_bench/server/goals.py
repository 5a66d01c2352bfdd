"""The goals of issue 4, "Figures", in one table: figure, goal, which way is better. They are meant for two processors."""

from __future__ import annotations

from typing import Final

from memdir_bench.figures import Better, Figure

GOALS: Final[dict[str, tuple[float, Better]]] = {
    "put_16_rate": (500, "higher"),
    "get_16_rate": (1000, "higher"),
    "list_100000_p95": (20, "lower"),
    "changes_delivered_p95": (50, "lower"),
    "minute_64_errors": (0, "lower"),
    "minute_64_growth": (32, "lower"),
    "two_processes": (1.6, "higher"),
}


def figure(name: str, value: float, unit: str, *, samples: int, note: str = "", better: Better = "lower") -> Figure:
    """A figure of store and name such as `sqlite.put_16_rate`, with the goal of its name if it has one."""
    goal, wanted = GOALS.get(name.partition(".")[2], (None, better))
    return Figure(name=name, value=value, unit=unit, samples=samples, goal=goal, better=wanted, note=note)
