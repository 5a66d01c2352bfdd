"""What a ranking is worth, and how sure that is.

nDCG with the gains of the judgements and a discount of log2(rank + 1) (Järvelin and Kekäläinen, "Cumulated gain-based
evaluation of IR techniques", 2002); recall, reciprocal rank and success count every gain above 0 alike. Intervals are
percentiles of the bootstrap over the questions (Efron, 1979); a difference between two ways of ranking is taken question by
question, so that what is hard for both does not count as noise.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]

MEASURES: Final = ("ndcg_10", "recall_5", "recall_10", "recall_100", "mrr", "success_1")
RESAMPLES: Final = 2000
_SEED: Final = 1


def ndcg(ranking: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    """Gain of the first `depth` beside that of the best order there could be. 0 when nothing is relevant."""
    got = sum(gains.get(name, 0) / math.log2(rank + 2) for rank, name in enumerate(ranking[:depth]))
    best = sum(gain / math.log2(rank + 2) for rank, gain in enumerate(sorted(gains.values(), reverse=True)[:depth]))
    return got / best if best else 0.0


def recall(ranking: Sequence[str], gains: Mapping[str, int], depth: int) -> float:
    """Share of what is relevant that is among the first `depth`."""
    relevant = {name for name, gain in gains.items() if gain > 0}
    return len(relevant.intersection(ranking[:depth])) / len(relevant) if relevant else 0.0


def reciprocal_rank(ranking: Sequence[str], gains: Mapping[str, int]) -> float:
    """1 by the rank of the first relevant one, 0 without any."""
    return next((1.0 / rank for rank, name in enumerate(ranking, start=1) if gains.get(name, 0) > 0), 0.0)


def measured(rankings: Sequence[Sequence[str]], gains: Sequence[Mapping[str, int]]) -> dict[str, Values]:
    """Each measure for each question. A ranking names every file at most once."""
    values: dict[str, list[float]] = {name: [] for name in MEASURES}
    for ranking, judged in zip(rankings, gains, strict=True):
        values["ndcg_10"].append(ndcg(ranking, judged, 10))
        for depth in (5, 10, 100):
            values[f"recall_{depth}"].append(recall(ranking, judged, depth))
        values["mrr"].append(reciprocal_rank(ranking, judged))
        values["success_1"].append(float(bool(ranking) and judged.get(ranking[0], 0) > 0))
    return {name: np.array(each) for name, each in values.items()}


def interval(values: Values, *, level: float = 0.95) -> tuple[float, float]:
    """Bootstrap interval of the mean; the same values always give the same interval."""
    if not len(values):
        return (math.nan, math.nan)
    random = np.random.default_rng(_SEED)
    means = values[random.integers(0, len(values), (RESAMPLES, len(values)))].mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return (float(low), float(high))


def difference(ours: Values, theirs: Values) -> tuple[float, tuple[float, float]]:
    """Mean of the differences question by question, and its interval."""
    each = ours - theirs
    return (float(each.mean()), interval(each))


def wilson(found: int, count: int, *, z: float = 1.96) -> tuple[float, float]:
    """Interval of a share (Wilson, 1927), which stays inside 0 to 1 for shares near them."""
    if not count:
        return (math.nan, math.nan)
    share = found / count
    middle = (share + z * z / (2 * count)) / (1 + z * z / count)
    half = z * math.sqrt(share * (1 - share) / count + z * z / (4 * count * count)) / (1 + z * z / count)
    return (max(0.0, middle - half), min(1.0, middle + half))
