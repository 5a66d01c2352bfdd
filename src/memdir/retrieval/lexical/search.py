"""Exact BM25 without looking at every posting.

BM25 as in Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009), with k1 = 1.2, b = 0.75 and the inverse
document frequency ln(1 + (N - n + .5) / (n + .5)), which is never negative (Lucene's). A word's frequency counts its field
(`segment.TENTHS`), as BM25F does. N, n and the mean length are those of the container as it is now: neither deleted passages,
nor other containers, nor how the index is cut into segments are in a score. The parts of a sum are added in one order
everywhere (the rarest word first), so that a score is the same to the last bit.

The pruning is MaxScore (Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995): as soon as the words that
are left could not bring a passage into the best together, they find no new passages and only count in those that were found.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.lexical.arrays import Array
from memdir.retrieval.lexical.segment import FIELD_STARTS, TENTHS, Rows, Segment
from memdir.retrieval.lexical.view import Part, Parts, View
from memdir.store.types import Scope

Scores = npt.NDArray[np.float64]

K1: Final = 1.2
B: Final = 0.75
_SLACK: Final = 1 - 1e-9
"""Upper bounds are sums in another order than scores: what is this close to the bound is kept."""
_STRIDES: Final = 64
_SORTED_MAX: Final = 8192
"""Up to that many scores the k-th best is looked for among all of them."""
_DENSE: Final = 32
"""When more than one place in that many was met, all places are looked at."""
_PHRASE_MAX: Final = 8
"""Words of a phrase that are compared; further ones are passed over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A word, or several that stand side by side; each in any of its forms, by their keys. Forms of one word count as one: a
    passage holds the word as often as its commonest form. `weight` multiplies the score."""

    words: tuple[tuple[int, ...], ...]
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Postings:
    """What a view holds of a word: rows, and for each the number of its code; of a phrase the saturation itself."""

    rows: Array
    values: Array
    table: Scores | None
    bound: float
    """No saturation is higher."""
    live: int = 0

    def scored(self, values: Array, factor: float) -> Scores:
        """What postings with these values score."""
        found: Scores = factor * (values if self.table is None else self.table[values])
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A word of the query with its postings by view."""

    words: tuple[tuple[int, ...], ...]
    factor: float
    postings: tuple[_Postings | None, ...]
    live: int


def search(views: Sequence[View], parts: Parts, scope: Scope, wanted: Sequence[Wanted], limit: int) -> list[tuple[int, float]]:
    """Chunk ids and scores of the best passages of `scope`, ties by path. Every passage that holds any of what is wanted has a
    score."""
    size = sum(view.live for view in views)
    if not size or limit <= 0:
        return []
    mean_length = sum(view.length for view in views) / size
    norms = [_Saturation(view, mean_length) for view in views]
    terms = _terms(norms, wanted, size)
    threshold = 0.0
    found: list[tuple[View, Rows, Scores]] = []
    for at, view in enumerate(views):
        for part in parts.of(view, scope):
            own = [(postings, term.factor) for term in terms if (postings := term.postings[at]) is not None]
            places, scores, threshold = _ranked(part, own, limit, threshold)
            if len(places):
                found.append((view, part.row(places), scores))
    return _best(found, limit)


class _Saturation:
    """f (k1 + 1) / (f + k1 (1 - b + b length / mean)) for a view."""

    def __init__(self, view: View, mean_length: float) -> None:
        self.view = view
        self._mean_length = mean_length
        segment = view.segment
        self.table = self.of(segment.code_tf, segment.code_length)

    def of(self, tenths: Array, lengths: Array) -> Scores:
        frequency = tenths.astype(np.float64) / 10
        norm = K1 * (1 - B + B * lengths.astype(np.float64) / self._mean_length)
        values: Scores = frequency * (K1 + 1) / (frequency + norm)
        return values

    def postings(self, words: tuple[tuple[int, ...], ...]) -> _Postings | None:
        """Of a word in any form, or of a phrase; None when no passage that counts has it."""
        if len(words) > 1:
            return self._phrase(words[:_PHRASE_MAX])
        forms = [one for key in words[0] if (one := self._form(key)) is not None]
        if not forms:
            return None
        together = forms[0] if len(forms) == 1 else _any_of(forms)
        alive = self.view.alive
        live = len(together.rows) if alive is None else int(np.count_nonzero(alive[together.rows]))
        return replace(together, live=live) if live else None

    def _form(self, key: int) -> _Postings | None:
        segment = self.view.segment
        at = segment.word(key)
        if at < 0:
            return None
        postings = slice(int(segment.starts[at]), int(segment.starts[at + 1]))
        bound = float(self.of(segment.tf_max[at : at + 1], segment.length_min[at : at + 1])[0])
        return _Postings(rows=segment.rows[postings], values=segment.codes[postings], table=self.table, bound=bound)

    def _phrase(self, words: tuple[tuple[int, ...], ...]) -> _Postings | None:
        rows, tenths = _side_by_side(self.view.segment, words)
        live = len(self.view.alive_rows(rows))
        if not live:
            return None
        values = self.of(tenths, self.view.segment.lengths[rows])
        return _Postings(rows=rows, values=values, table=None, bound=float(values.max()), live=live)


def _any_of(forms: Sequence[_Postings]) -> _Postings:
    """Passages that hold any form, each with the form that scores highest. Costs what the largest form has, in copies."""
    first, *others = sorted(forms, key=lambda one: -len(one.rows))
    assert first.table is not None
    rows, values = first.rows, first.values.copy()
    for other in others:
        at = np.searchsorted(rows, other.rows)
        there = np.minimum(at, len(rows) - 1)
        hit = rows[there] == other.rows
        better = hit.copy()
        better[hit] = first.table[other.values[hit]] > first.table[values[there[hit]]]
        values[there[better]] = other.values[better]
        rows, values = np.insert(rows, at[~hit], other.rows[~hit]), np.insert(values, at[~hit], other.values[~hit])
    return _Postings(rows=rows, values=values, table=first.table, bound=max(one.bound for one in forms))


def _side_by_side(segment: Segment, words: tuple[tuple[int, ...], ...]) -> tuple[Rows, Array]:
    """Rows in which the words stand one behind the other in one field, and how often, in tenths."""
    begins = np.zeros(0, dtype=np.int64)
    for step, forms in enumerate(words):
        spots = _sorted_once(np.concatenate([_spots(segment, key) for key in forms])) - step
        begins = spots if not step else np.intersect1d(begins, spots, assume_unique=True)
    field = np.searchsorted(np.array(FIELD_STARTS), begins & 0xFFFF, side="right") - 1
    rows = begins >> 16
    first = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])) if len(rows) else rows
    return rows[first], np.add.reduceat(np.array(TENTHS)[field], first) if len(first) else np.zeros(0, dtype=np.int64)


def _sorted_once(values: Rows) -> Rows:
    """Ascending, each once. (`np.unique` hashes, which is ten times slower for what is nearly sorted.)"""
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def _spots(segment: Segment, key: int) -> Rows:
    """Where a word stands: row and position in one number."""
    at = segment.word(key)
    if at < 0:
        return np.zeros(0, dtype=np.int64)
    postings = slice(int(segment.starts[at]), int(segment.starts[at + 1]))
    count = segment.code_count[segment.codes[postings]]
    positions = segment.positions[int(segment.spots[at]) : int(segment.spots[at + 1])]
    spots: Rows = (np.repeat(segment.rows[postings].astype(np.int64), count) << 16) + positions
    return spots


def _terms(norms: Sequence[_Saturation], wanted: Sequence[Wanted], size: int) -> list[_Term]:
    """What is wanted and there, the rarest first: passages of the rarest are the fewest, and score highest."""
    weights: dict[tuple[tuple[int, ...], ...], float] = {}
    for one in wanted:
        weights[one.words] = max(one.weight, weights.get(one.words, 0.0))
    terms = []
    for words, weight in weights.items():
        postings = tuple(norm.postings(words) for norm in norms)
        live = sum(one.live for one in postings if one is not None)
        if live:
            factor = weight * math.log(1 + (size - live + 0.5) / (live + 0.5))
            terms.append(_Term(words=words, factor=factor, postings=postings, live=live))
    return sorted(terms, key=lambda term: (term.live, term.words))


def _ranked(part: Part, terms: Sequence[tuple[_Postings, float]], limit: int, threshold: float) -> tuple[Rows, Scores, float]:
    """Places that are among the best `limit` of all with a score of at least `threshold`, their scores, and what the limit-th
    best scores at least."""
    left = np.cumsum([0.0, *(postings.bound * factor for postings, factor in reversed(terms))])[::-1]
    gathered: Scores | None = None
    met: list[Rows] = []
    scores = first_scores = np.zeros(0, dtype=np.float64)
    done = 0
    for done, (postings, factor) in enumerate(terms):
        if left[done] < threshold * _SLACK:
            break
        places, values = part.postings(postings.rows, postings.values)
        scores = postings.scored(values, factor)
        if met:
            if gathered is None:
                gathered = np.zeros(part.size, dtype=np.float64)
                gathered[met[0]] = first_scores
            gathered[places] += scores
            scores = gathered[places]
        else:
            first_scores = scores
        met.append(places)
        threshold = max(threshold, _kth(scores, limit))
    else:
        done = len(terms)
    if not met:
        return np.zeros(0, dtype=np.int64), scores, threshold
    places, scores = _promising(part, met, gathered, first_scores, threshold * _SLACK - left[done])
    for at in range(done, len(terms)):
        postings, factor = terms[at]
        _add(part, postings, factor, places, scores)
        threshold = max(threshold, _kth(scores, limit))
        kept = scores >= threshold * _SLACK - left[at + 1]
        places, scores = places[kept], scores[kept]
    threshold = max(threshold, _kth(scores, limit))
    kept = scores >= threshold
    return places[kept], scores[kept], threshold


def _promising(
    part: Part, met: Sequence[Rows], gathered: Scores | None, first_scores: Scores, least: float
) -> tuple[Rows, Scores]:
    """The places met, without those that score less; ascending."""
    if gathered is None:
        kept = np.flatnonzero(first_scores >= least)
        return met[0][kept], first_scores[kept]
    if sum(map(len, met)) * _DENSE > part.size:
        places = np.flatnonzero(gathered >= max(least, np.finfo(np.float64).tiny))
    else:
        together = np.concatenate(met)
        places = _sorted_once(together[gathered[together] >= least])
    return places, gathered[places]


def _add(part: Part, postings: _Postings, factor: float, places: Rows, scores: Scores) -> None:
    """Add what a word counts at some places."""
    rows = part.row(places).astype(postings.rows.dtype)
    at = np.minimum(np.searchsorted(postings.rows, rows), len(postings.rows) - 1)
    hit = np.flatnonzero(postings.rows[at] == rows)
    scores[hit] += postings.scored(postings.values[at[hit]], factor)


def _kth(scores: Scores, limit: int) -> float:
    """At most the `limit`-th best of the scores (of different passages): the `limit`-th best of the maxima of groups, when
    they are many."""
    if len(scores) > max(_SORTED_MAX, 2 * limit * _STRIDES):
        whole = len(scores) // _STRIDES * _STRIDES
        scores = scores[:whole].reshape(_STRIDES, -1).max(axis=0)
    if len(scores) < limit:
        return 0.0
    return float(np.partition(scores, len(scores) - limit)[len(scores) - limit])


def _best(found: Sequence[tuple[View, Rows, Scores]], limit: int) -> list[tuple[int, float]]:
    """Chunk ids and scores, the best first. The paths of passages are looked at where nothing else orders two of them: rows of
    one view are in the order of paths already, unless their documents have moved."""
    if not found:
        return []
    scores = np.concatenate([item[2] for item in found])
    least = np.partition(scores, len(scores) - limit)[len(scores) - limit] if len(scores) > limit else 0.0
    ranked: list[tuple[float, int, int, int, int, int]] = []
    for at, (view, rows, own) in enumerate(found):
        better = own > least
        equal = np.flatnonzero(own == least)
        better[equal if view.moved else equal[:limit]] = True
        segment, kept = view.segment, rows[better]
        documents = segment.document_of(kept)
        columns = (-own[better], np.full(len(kept), at), kept, documents, segment.doc_keys[documents], segment.chunk_ids[kept])
        ranked += zip(*(column.tolist() for column in columns), strict=True)
    ranked.sort()
    best: list[tuple[int, float]] = []
    for negative, group in groupby(ranked, key=itemgetter(0)):
        equals = list(group)
        if len(equals) > 1 and (found[equals[0][1]][0].moved or equals[0][1] != equals[-1][1]):
            equals.sort(key=lambda one: (_path(found[one[1]][0], *one[2:4]), *one[4:]))
        best += [(one[-1], -negative) for one in equals[: limit - len(best)]]
        if len(best) >= limit:
            break
    return best


def _path(view: View, row: int, document: int) -> bytes:
    return view.moved[row] if row in view.moved else view.segment.path(document)
