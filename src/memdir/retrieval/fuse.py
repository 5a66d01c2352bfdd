"""From the scores of each signal to one: normalisation, the convex combination, and how sure the vectors are. Pure numbers.

Convex combination of scores normalised by their theoretical minimum and observed maximum ("TM2C2", Bruch, Gai and Ingber, "An
Analysis of Fusion Functions for Hybrid Retrieval", 2023).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.embed.port import CosineScale
from memdir.store.passages.vectors import dots
from memdir.store.types import Matrix

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


NEAR_SHARE: Final = 0.5
"""Of the way from an unrelated cosine to one that is as likely an answer as not: where nothing is as near as that, the nearest
gets no full score for it, and words decide."""
PRIOR_OF_WORDS: Final = 3.0
"""How much of the words' score a prior takes, for each point of cosine that it takes."""
FEEDBACK: Final = 3
"""Best passages that are taken for answers when others are judged by their likeness to them."""


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
    feedback: float = 0.4
    """How much likeness to the best passages counts beside likeness to the question, see `fed_back`."""
    next_in_file: float = 0.85
    """Each further passage of the same file counts this much less, so that other files are seen too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scales:
    """What the cosines of the two models mean. Without a transformer `dense` says nothing."""

    static: CosineScale
    dense: CosineScale


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
    prior: Scores
    """What was taken from `cosine` because of the kind of text (`retrieval.text_kinds`)."""
    semantic: Scores
    """How sure the vectors are in absolute terms, 0 to 1."""
    fused: Scores
    scales: Scales


def fuse(
    *,
    ids: Rows,
    lexical: Scores,
    static: Scores,
    dense: Scores | None,
    path: Scores,
    scales: Scales,
    tuning: Tuning,
    prior: Scores | None = None,
) -> Signals:
    """`lexical` is BM25 (0 for no match), `static` and `dense` cosines (NaN for no vector), `path` 0 to 1; `prior` is
    taken from cosines."""
    prior = np.zeros(len(ids)) if prior is None else prior
    static = np.nan_to_num(static, nan=0.0) - prior
    lexical = _to_unit(lexical) * (1.0 - PRIOR_OF_WORDS * prior)
    cosine = None
    if dense is None or np.isnan(dense).all():
        dense, semantic = None, scales.static.certainty(static)
    else:
        cosine = borrowed(dense, static, scales) - prior
        semantic = scales.dense.certainty(cosine)
        dense = _near(cosine, scales)
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
        prior=prior,
        semantic=semantic,
        fused=fused,
        scales=scales,
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
        prior=signals.prior[rows],
        semantic=signals.semantic[rows],
        fused=signals.fused[rows],
    )
    if picked.cosine is None or picked.dense is None:
        return picked
    cosine = picked.cosine + tuning.best_line * np.nan_to_num(
        np.maximum(best_line - picked.prior - picked.cosine, 0.0), nan=0.0
    )
    dense = _near(cosine, signals.scales)
    return replace(
        picked,
        cosine=cosine,
        dense=dense,
        semantic=signals.scales.dense.certainty(cosine),
        fused=picked.fused + tuning.dense * (dense - picked.dense),
    )


def fed_back(signals: Signals, gists: Matrix, tuning: Tuning) -> Signals:
    """`signals` with what the best FEEDBACK passages are about moved into the question: others like them rise, also where they
    say it in other words (Rocchio, "Relevance feedback in information retrieval", 1971, the best of the first look taken for
    relevant). `gists` has a normalised vector for each row, NaN where there is none: such a row counts as the mean of the rest.

    The order changes, `semantic` does not: how sure a passage is stays a matter between it and the question.
    """
    if signals.cosine is None or signals.dense is None or tuning.feedback == 0 or len(signals.ids) < 2:
        return signals
    best = np.lexsort((signals.ids, -signals.fused))[:FEEDBACK]
    if np.isnan(gists[best]).any():
        return signals
    # As far as each is sure to be an answer: what only happens to be nearest says nothing.
    gist = (signals.semantic[best] @ gists[best] / len(best)).astype(np.float32)
    likeness = dots(gists, gist).astype(np.float64)
    likeness = np.where(np.isnan(likeness), np.nanmean(likeness), likeness)
    dense = _near(signals.cosine + tuning.feedback * likeness, signals.scales)
    return replace(signals, dense=dense, fused=signals.fused + tuning.dense * (dense - signals.dense))


def doubted(signals: Signals, doubts: Scores, tuning: Tuning) -> Signals:
    """`signals` in which a row's vector counts for less, in order and certainty, by how little the transformer could read, 0 to
    1: of the passage or of the question."""
    if signals.dense is None:
        return signals
    dense = signals.dense * (1.0 - doubts)
    return replace(
        signals,
        dense=dense,
        semantic=signals.semantic * (1.0 - doubts),
        fused=signals.fused + tuning.dense * (dense - signals.dense),
    )


def borrowed(dense: Scores, static: Scores, scales: Scales) -> Scores:
    """A passage whose dense vector is still being made gets its static cosine, moved to the dense scale."""
    low, high = scales.static.unrelated, scales.static.close
    share = (static - low) / (high - low)
    moved = scales.dense.unrelated + share * (scales.dense.close - scales.dense.unrelated)
    return np.where(np.isnan(dense), moved, dense)


def _near(cosine: Scores, scales: Scales) -> Scores:
    scale = scales.dense
    return _to_unit(cosine - scale.unrelated, least=NEAR_SHARE * (scale.middle - scale.unrelated))


def _to_unit(values: Scores, *, least: float = 0.0) -> Scores:
    """From the theoretical minimum 0 (negative cosines mean nothing) to the observed maximum, or `least` where that is more."""
    top = float(values.max(initial=least))
    return np.clip(values / top, 0.0, 1.0) if top > 0 else np.zeros_like(values)
