"""The score that a hit needs to be shown, unless the search says one itself."""

from __future__ import annotations

import math
from typing import Final

THRESHOLD: Final = (0.10, 0.62)
"""The least and the most."""
THRESHOLD_AT: Final = (100, 0.32)
"""Passages in scope, and the threshold there."""
THRESHOLD_RISE: Final = 0.45
"""Of the threshold's logit with the logarithm of the passages in scope: what a hit scores does not depend on how many others
there are, but the best of many that have nothing to do with the question scores higher than the best of few."""
COMPANY: Final = 0.65
"""Of the threshold that the best hit reached, for the others: that there is an answer at all is settled then."""


def threshold_beside(best: float, count: int) -> float:
    """The score that a hit needs to be shown where the best scores `best` and `count` passages are in scope."""
    threshold = threshold_among(count)
    return COMPANY * threshold if best >= threshold else threshold


def threshold_among(count: int) -> float:
    """The score that the best hit needs to be shown, where `count` passages are in scope."""
    among, there = THRESHOLD_AT
    logit = math.log(there / (1 - there)) + THRESHOLD_RISE * math.log(max(count, 1) / among)
    return min(max(1 / (1 + math.exp(-logit)), THRESHOLD[0]), THRESHOLD[1])
