"""What agents' memories must reach: issue 7, "Figures". The same names hold on every machine."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from memdir_bench.figures import figure_of

_SEARCH_MS: Final = {1_000: 1.0, 50_000: 3.0, 1_000_000: 15.0}
_KINDS: Final = ("needle", "rare", "common", "mixed")

GOALS: Final[Mapping[str, float]] = {
    "seed_cases": 10,
    "seed_false_positives": 0,
    "negatives_answered": 0.05,
    "held_negatives_answered": 0.05,
    **{f"{size}.{kind}_p95": 1.0 if kind == "needle" else goal for size, goal in _SEARCH_MS.items() for kind in _KINDS},
    **{f"{size}.needles_found": 100 for size in _SEARCH_MS},
    **{f"{size}.top10_equal": 1.0 for size in (10, *_SEARCH_MS)},
    "50000.hook_p95": 60,
    "1000000.hook_p95": 90,
    "held_given": 0.85,
    "held_right_of_given": 0.80,
    "held_silent": 0.90,
    "held_capture_precision": 0.8,
    "held_capture_recall": 0.5,
    "capture_5_mib": 2.0,
    "held_updates_right": 0.95,
    "day_errors": 0,
    "day_lost": 0,
    "day_orphans": 0,
}

figure: Final = partial(figure_of, GOALS)
"""A figure with the goal of its name, when it has one."""
