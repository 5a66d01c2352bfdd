"""The goals of issue 5 in one table: figure, goal, which way is better. Meant for two processors and a quiet machine."""

from __future__ import annotations

from typing import Final

from memdir_bench.figures import Better, Figure

GOALS: Final[dict[str, tuple[float, Better]]] = {
    "untar_rate": (200, "higher"),
    "untar_lookup_p99": (2, "lower"),
    "untar_daemon_growth": (64, "lower"),
    "untar_server_growth": (256, "lower"),
    "visible_max": (2000, "lower"),
}
"""The server's growth has the models of the worker in it, which it loads for its first documents."""


def figure(name: str, value: float, unit: str, *, samples: int = 1, note: str = "", better: Better = "lower") -> Figure:
    """A figure with the goal of its name, if it has one."""
    goal, wanted = GOALS.get(name, (None, better))
    return Figure(name=name, value=value, unit=unit, samples=samples, goal=goal, better=wanted, note=note)
