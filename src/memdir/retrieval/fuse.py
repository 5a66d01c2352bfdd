"""From the scores of each signal to one: normalisation, the convex combination, and how sure the vectors are. Pure numbers.

Convex combination of scores normalised by their theoretical minimum and observed maximum ("TM2C2", Bruch, Gai and Ingber, "An
Analysis of Fusion Functions for Hybrid Retrieval", 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """What the fusion weighs. The defaults are the product's; benchmarks take parts away."""

    lexical: float = 0.35
    static: float = 0.10
    dense: float = 0.50
    """Goes to the static vectors where there are none of a transformer."""
    path: float = 0.05
    best_line: float = 0.4
    """How far the best line of a passage pulls the passage's cosine up to its own. On three small memories .3 to .5 put more
    answers first than 0; on Cranfield that changes nothing, on CISI it adds half a point of nDCG@10. More lets headings win."""
    coverage: float = 0.5
    """To what power the share of the query's words that a passage holds is taken, before its words count."""
    next_in_file: float = 0.85
    """Each further passage of the same file counts this much less, so that other files are seen too."""


DENSE_RANGE: Final = (0.05, 0.50)
STATIC_RANGE: Final = (0.15, 0.60)
"""Cosines of unrelated and of closely related text, by model; used to move one scale onto the other."""

BACKGROUND: Final = 0.06
"""Mean cosine of a query with everything, when there is too little in scope to measure it."""
DENSE_CERTAIN: Final = (0.10, 0.42)
STATIC_CERTAIN: Final = (0.12, 0.45)
"""Cosines above the background between which certainty goes from 0 to 1. Measured on the example memory: what answers a query
without sharing a word with it stands .19 to .45 above, the best of nonsense .13 to .18."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """Columns over the candidates. `lexical`, `static`, `dense` and `path` as they entered the fusion, 0 to 1."""

    ids: Rows
    lexical: Scores
    static: Scores
    dense: Scores | None
    path: Scores
    cosine: Scores | None
    """`dense` before it was normalised: cosines, borrowed ones included."""
    semantic: Scores
    """How sure the vectors are in absolute terms, 0 to 1."""
    fused: Scores
    background: float
    """Mean cosine of the query with everything in scope."""


def fuse(
    *,
    ids: Rows,
    lexical: Scores,
    static: Scores,
    dense: Scores | None,
    path: Scores,
    background: float = BACKGROUND,
    tuning: Tuning = Tuning(),
) -> Signals:
    """`lexical` is BM25 (0 for no match), `static` and `dense` cosines (NaN for no vector), `path` 0 to 1. `background` is the
    mean cosine of the query with everything in scope, of the dense model when there is one."""
    static = np.nan_to_num(static, nan=0.0)
    lexical = _to_unit(lexical)
    cosine = None
    if dense is None or np.isnan(dense).all():
        dense, semantic = None, ramp(static - background, STATIC_CERTAIN)
    else:
        cosine = borrowed(dense, static)
        semantic = ramp(cosine - background, DENSE_CERTAIN)
        dense = _to_unit(cosine)
    static = _to_unit(static)
    fused = tuning.lexical * lexical + tuning.static * static + tuning.path * path
    fused = fused + tuning.dense * (static if dense is None else dense)
    return Signals(
        ids=ids,
        lexical=lexical,
        static=static,
        dense=dense,
        path=path,
        cosine=cosine,
        semantic=semantic,
        fused=fused,
        background=background,
    )


def raised(signals: Signals, rows: Rows, best_line: Scores, tuning: Tuning) -> Signals:
    """`signals` of `rows` alone, with the cosine of each passage raised towards that of its best line: a line about something
    else than the rest of its passage is not lost in the mean. `best_line` is NaN for a passage without line vectors."""
    picked = replace(
        signals,
        ids=signals.ids[rows],
        lexical=signals.lexical[rows],
        static=signals.static[rows],
        dense=None if signals.dense is None else signals.dense[rows],
        path=signals.path[rows],
        cosine=None if signals.cosine is None else signals.cosine[rows],
        semantic=signals.semantic[rows],
        fused=signals.fused[rows],
    )
    if picked.cosine is None or picked.dense is None:
        return picked
    cosine = picked.cosine + tuning.best_line * np.nan_to_num(np.maximum(best_line - picked.cosine, 0.0), nan=0.0)
    dense = _to_unit(cosine)
    return replace(
        picked,
        cosine=cosine,
        dense=dense,
        semantic=ramp(cosine - signals.background, DENSE_CERTAIN),
        fused=picked.fused + tuning.dense * (dense - picked.dense),
    )


def borrowed(dense: Scores, static: Scores) -> Scores:
    """A passage whose dense vector is still being made gets its static cosine, moved to the dense scale (the line that maps
    STATIC_RANGE to DENSE_RANGE)."""
    low, high = STATIC_RANGE
    dense_low, dense_high = DENSE_RANGE
    moved = dense_low + (static - low) / (high - low) * (dense_high - dense_low)
    return np.where(np.isnan(dense), moved, dense)


def ramp(values: Scores, bounds: tuple[float, float]) -> Scores:
    """0 below the first bound, 1 above the second, a line between."""
    return np.clip((values - bounds[0]) / (bounds[1] - bounds[0]), 0.0, 1.0)


def _to_unit(values: Scores) -> Scores:
    """From the theoretical minimum 0 (negative cosines mean nothing) to the observed maximum."""
    top = float(values.max(initial=0.0))
    return np.clip(values / top, 0.0, 1.0) if top > 0 else np.zeros_like(values)
