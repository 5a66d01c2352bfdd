"""What behavioural memory must reach on made-up users. The issue sets no goals here: these are well above chance."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from memdir_bench.figures import figure_of

GOALS: Final[Mapping[str, float]] = {"tiers": 0.7, "who_did_it": 0.5}

figure: Final = partial(figure_of, GOALS)
"""A figure with the goal of its name, when it has one."""
