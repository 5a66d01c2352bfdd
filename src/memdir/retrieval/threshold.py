"""The score that a hit needs to be shown, unless the search says one itself."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

POINTS: Final = ((10, 0.10), (30, 0.215), (1_600, 0.62))
"""Passages in scope, and the threshold there; below the first and above the last it stays. Between them its logit rises with
the logarithm of their number: what a hit scores does not depend on how many others there are, but the best of many that have
nothing to do with the question scores higher than the best of few. Among ten a loose hit is shown, for there is little to
read."""
COMPANY: Final = 0.65
"""Of the threshold that the best hit reached, for the others: that there is an answer at all is settled then."""


def threshold_beside(best: float, count: int) -> float:
    """The score that a hit needs to be shown where the best scores `best` and `count` passages are in scope."""
    threshold = threshold_among(count)
    return COMPANY * threshold if best >= threshold else threshold


def threshold_among(count: int) -> float:
    """The score that the best hit needs to be shown, where `count` passages are in scope."""
    for (few, low), (many, high) in pairwise(POINTS):
        if count <= many:
            share = math.log(max(count, few) / few) / math.log(many / few)
            return 1 / (1 + math.exp(-(_logit(low) + share * (_logit(high) - _logit(low)))))
    return POINTS[-1][1]


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
