"""The five signals of the zero-AI design, exactly.

    S = w1 B + w2 R + w3 F + w4 T + w5 P, each 0 to 1
    B: BM25 (k1 1.2, b 0.75, idf ln((N - n + .5) / (n + .5) + 1)) divided by that of the best memory
    R: e^(-lambda days since it was made)     F: ln(1 + accesses) / ln(1 + most accesses of any)
    T: Jaccard of the query's and the memory's tags     P: 1 in the current project, else 0

Every memory that holds a word of the query is scored, not a few by BM25 alone: what is found does not depend on how much is
asked for. Where many hold one, a first pass in single precision leaves what could be among the best. Scores are of double
precision, words in one order, so that they are the same to the last bit however a memory was found; equal scores are told by
number, the older memory first.

With no threshold of the caller words that no memory has are read otherwise where they can be (see `spelling`), and two rules
keep noise out. Nothing is answered when neither the memory with the best BM25 nor one within RIVAL of it covers enough of what
was asked (see `relevance`): it is not about anything here. And a memory below FLOOR of the best BM25 is left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from memdir.retrieval.agents import scoring
from memdir.retrieval.agents.postings import DAY_MS, DECAY_FROM_DAYS, DECAY_PER_DAY, NO_ROWS, Rows, Table, Values
from memdir.retrieval.agents.relevance import COVERED_MIN, coverage
from memdir.retrieval.agents.scoring import SLACK, Part
from memdir.retrieval.agents.spelling import mended
from memdir.retrieval.agents.terms import Asked, asked, tag_key, tags_said

K1: Final = 1.2
B: Final = 0.75
FLOOR: Final = 0.2
RIVAL: Final = 0.5
_RIVALS_MAX: Final = 1000
"""When more come as close to the best, their words are common ones, and none of them is looked at."""
_BACKGROUND: Final = 1000
"""Memories thought to be there beside the real ones when words are weighed for coverage: rarity means nothing among few."""
_LEAST: Final = 1e-12
_DENSE: Final = 16
"""When one row in so many was met, all rows are looked at, of _DENSE_ROWS and more."""
_DENSE_ROWS: Final = 16_384

Scores = npt.NDArray[np.float64]
Marks = npt.NDArray[np.bool_]
Signals = tuple[Scores, Scores, Scores, Scores]


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalWeights:
    """The seed's."""

    bm25: float = 0.55
    recency: float = 0.15
    frequency: float = 0.05
    tags: float = 0.15
    project: float = 0.10
    decay_per_day: float = DECAY_PER_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentQuery:
    """What is looked for. `threshold` None: the rules above."""

    text: str
    now_ms: int
    project: str | None = None
    tags: tuple[str, ...] = ()
    only_project: bool = False
    only_tags: bool = False
    limit: int = 5
    threshold: float | None = None
    weights: SignalWeights = SignalWeights()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A memory that was found. `matched` are words of the query."""

    number: int
    score: float
    bm25: float
    recency: float
    frequency: float
    tags: float
    project: float
    bm25_raw: float
    matched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Term:
    """A stem of the query that some memory holds."""

    asked: int
    stem: str
    idf: float
    holding: int
    """Memories."""
    rows: Rows
    """Some may be of memories that went."""
    codes: Rows


def idf(total: int, holding: int) -> float:
    """The seed's inverse document frequency."""
    return math.log((total - holding + 0.5) / (holding + 0.5) + 1)


def stems_of(query: AgentQuery) -> list[str]:
    """What is searched for."""
    return [stem for one in asked(query.text, query.tags) for stem in one.stems]


def search(table: Table, query: AgentQuery) -> list[Ranked]:
    """Best first."""
    return _Search(table, query).run()


def unmatched(table: Table, number: int, query: AgentQuery) -> Ranked:
    """The signals of a memory without its words; zeros for one that is not (yet) here."""
    row = table.row_of.get(number)
    if row is None:
        return Ranked(
            number=number, score=0.0, bm25=0.0, recency=0.0, frequency=0.0, tags=0.0, project=0.0, bm25_raw=0.0, matched=()
        )
    return _Search(table, query).without_words(row)


class _Search:
    def __init__(self, table: Table, query: AgentQuery) -> None:
        self._table = table
        self._query = query
        self._asked: list[Asked] = asked(query.text, query.tags)
        if query.threshold is None:
            self._asked = mended(self._asked, table.holding)
        terms = []
        for at, one in enumerate(self._asked):
            for stem in one.stems:
                rows, codes = table.postings(stem)
                if holding := table.living(rows):
                    weight = idf(table.live, holding)
                    terms.append(_Term(asked=at, stem=stem, idf=weight, holding=holding, rows=rows, codes=codes))
        self._terms = sorted(terms, key=lambda term: (term.holding, term.stem))
        self._met = sum(len(term.rows) for term in self._terms)
        self._saturation = _saturation(table)
        given = dict.fromkeys(map(tag_key, query.tags))
        said = (tag for tag in tags_said(query.text, table.tags) if tag not in given and table.living(table.tagged(tag)))
        self._tags = [*given, *said]
        self._allowed = self._mask(list(given))

    def run(self) -> list[Ranked]:
        """See `search`."""
        if not self._terms:
            return []
        dense = self._met * _DENSE > self._table.size >= _DENSE_ROWS
        rows, best_raw = self._among_all() if dense else self._among_few()
        return self._ranked(rows, best_raw) if len(rows) else []

    def without_words(self, row: int) -> Ranked:
        """See `unmatched`."""
        rows = np.array([row], dtype=np.int32)
        return self._shown(rows, np.zeros(1), self._bm25(rows)[1], 1.0)[0]

    def _among_few(self) -> tuple[Rows, float]:
        """The best rows, and the best BM25 of all: looking at the rows that hold a word, in double precision."""
        table = self._table
        sums = table.workspace()
        for term in self._terms:
            sums[term.rows] += self._worth(term)
        if self._met * _DENSE > table.size:
            touched = np.flatnonzero(sums[: table.size]).astype(np.int32)
        else:
            touched = np.unique(np.concatenate([term.rows for term in self._terms]))
        raw = sums[touched]
        sums[touched] = 0
        table.keep_workspace(sums)
        if len(table.dead) or self._allowed is not None:
            there = table.alive.values if self._allowed is None else table.alive.values & self._allowed
            kept = there[touched]
            touched, raw = touched[kept], raw[kept]
        best_raw = float(raw.max(initial=0.0))
        if not best_raw or not self._answers(lambda share: touched[raw >= best_raw * share]):
            return NO_ROWS, 0.0
        bm25 = raw / best_raw
        if self._query.threshold is None:
            kept = bm25 >= FLOOR
            touched, bm25 = touched[kept], bm25[kept]
        return _leading(touched, self._sum(bm25, self._signals(touched)), self._query.limit), best_raw

    def _among_all(self) -> tuple[Rows, float]:
        """Rows that may be among the best, and the best BM25 of all: looking at all rows."""
        table, query = self._table, self._query
        work = table.workspace()
        sums = work.view(np.float32)[: table.size]
        whole = []
        for term in self._terms:
            if len(term.rows) * _DENSE > table.size:
                spread = partial(self._spread, term)
                whole.append((table.whole(term.stem, spread, mean=table.mean_words), term.idf))
            else:
                sums[term.rows] += self._worth(term)
        sums[table.dead] = 0
        tops = scoring.add_up(sums, whole, self._allowed)
        top = float(tops.max())
        rows = scoring.at_least(sums, tops, max(_LEAST, top * (1 - SLACK)))
        raw, _ = self._bm25(rows)
        best_raw = float(raw.max(initial=0.0))

        def near(share: float) -> Rows:
            found: Rows = rows[raw == best_raw] if share == 1.0 else scoring.at_least(sums, tops, top * share * (1 - SLACK))
            return found if len(found) > _RIVALS_MAX else found[self._bm25(found)[0] >= best_raw * share]

        leading = NO_ROWS
        if best_raw and self._answers(near):
            floor = best_raw * FLOOR * (1 - SLACK) if query.threshold is None else 0.0
            leading = scoring.leading(sums, tops, query.weights.bm25 / best_raw, self._parts(), floor=floor, limit=query.limit)
        sums.fill(0)
        table.keep_workspace(work)
        return leading, best_raw

    def _answers(self, near: Callable[[float], Rows]) -> bool:
        """Whether anything is to be answered. `near`: rows with such a share of the best BM25."""
        if self._query.threshold is not None or self._covers(near(1.0)):
            return True
        rivals = near(RIVAL)
        return len(rivals) <= _RIVALS_MAX and self._covers(rivals)

    def _parts(self) -> list[Part]:
        """What is added to BM25."""
        table, query, weights = self._table, self._query, self._query.weights
        now_days = query.now_ms / DAY_MS
        if weights.decay_per_day == DECAY_PER_DAY and table.created_max_days <= now_days:
            scale = weights.recency * math.exp(-DECAY_PER_DAY * (now_days - DECAY_FROM_DAYS))
            parts = [Part(table.growth.values, scale, weights.recency)]
        else:
            age_days = np.maximum(0.0, now_days - table.created_days.values)
            recency = np.exp(-weights.decay_per_day * age_days).astype(np.float32)
            parts = [Part(recency, weights.recency, weights.recency)]
        if table.accesses_max:
            scale = weights.frequency / math.log1p(table.accesses_max)
            parts.append(Part(table.access_logs.values, scale, weights.frequency))
        number = table.projects.get(query.project) if query.project is not None else None
        if number is not None:
            own = table.whole(f"\0project {number}", lambda low: table.project_of.values[low:] == number)
            parts.append(Part(own, weights.project, weights.project))
        if any(tag in table.tags for tag in self._tags):
            own = table.whole("\0tags " + "\0".join(self._tags), self._tags_of_all)
            parts.append(Part(own, weights.tags, weights.tags))
        return parts

    def _mask(self, tags: Sequence[str]) -> npt.NDArray[np.bool_] | None:
        """Rows that may be found; None: all."""
        table, query = self._table, self._query
        allowed = None
        if query.only_project and query.project is not None:
            allowed = table.project_of.values == table.projects.get(query.project, -2)
        if query.only_tags and tags:
            tagged = np.zeros(table.size, dtype=bool)
            for tag in tags:
                tagged[table.tagged(tag)] = True
            allowed = tagged if allowed is None else allowed & tagged
        return allowed

    def _tags_of_all(self, low: int) -> Values:
        """The Jaccard coefficient of the rows from `low` on."""
        table = self._table
        common = np.zeros(table.size - low, dtype=np.float32)
        for tag in self._tags:
            rows = table.tagged(tag)
            common[rows[rows.searchsorted(low) :] - low] += 1
        made: Values = common / (table.tag_counts.values[low:] + np.float32(len(self._tags)) - common)
        return made

    def _worth(self, term: _Term) -> Scores:
        """BM25 of a word's postings."""
        return term.idf * self._saturation[term.codes]

    def _spread(self, term: _Term, low: int) -> Values:
        """The same without the weight of the word, for every row from `low` on."""
        made = np.zeros(self._table.size - low, dtype=np.float32)
        first = int(term.rows.searchsorted(low))
        made[term.rows[first:] - low] = self._saturation[term.codes[first:]]
        return made

    def _bm25(self, rows: Rows) -> tuple[Scores, Marks]:
        """In double precision, the rarest word first; and which words each row holds, shape (terms, rows)."""
        raw = np.zeros(len(rows))
        held = np.zeros((len(self._terms), len(rows)), dtype=bool)
        for term, own in zip(self._terms, held, strict=True):
            at = np.minimum(term.rows.searchsorted(rows), len(term.rows) - 1)
            np.equal(term.rows[at], rows, out=own)
            raw[own] += term.idf * self._saturation[term.codes[at[own]]]
        return raw, held

    def _covers(self, rows: Rows) -> bool:
        """Whether one of some memories covers enough of the question."""
        total = self._table.live + _BACKGROUND
        rarest = idf(total, 0)
        rarities = [0.0] * len(self._asked)
        for term in self._terms:
            rarities[term.asked] = max(rarities[term.asked], idf(total, term.holding))
        weighed = [rarity or rarest for rarity in rarities]
        owners = [term.asked for term in self._terms]
        held = self._bm25(rows)[1].T.tobytes()
        patterns = {held[low : low + len(owners)] for low in range(0, len(held), len(owners))}
        return any(
            coverage(self._asked, weighed, set(compress(owners, pattern)), rarest=rarest) >= COVERED_MIN for pattern in patterns
        )

    def _signals(self, rows: Rows) -> Signals:
        """Recency, frequency, tags, project of rows, in double precision."""
        table, query = self._table, self._query
        age_days = np.maximum(0.0, query.now_ms / DAY_MS - table.created_days.values[rows])
        recency = np.exp(-query.weights.decay_per_day * age_days)
        most = math.log1p(table.accesses_max)
        frequency = np.log1p(table.accesses.values[rows]) / most if most else np.zeros(len(rows))
        number = table.projects.get(query.project) if query.project is not None else None
        project = np.zeros(len(rows)) if number is None else (table.project_of.values[rows] == number).astype(np.float64)
        return recency, frequency, self._jaccard(rows), project

    def _jaccard(self, rows: Rows) -> Scores:
        """Of the tags of the query and of rows."""
        common = np.zeros(len(rows))
        if not self._tags:
            return common
        for tag in self._tags:
            tagged = self._table.tagged(tag)
            if len(tagged):
                at = np.minimum(np.searchsorted(tagged, rows), len(tagged) - 1)
                common += tagged[at] == rows
        union = len(self._tags) + self._table.tag_counts.values[rows] - common
        return np.divide(common, union, out=np.zeros(len(rows)), where=union > 0)

    def _sum(self, bm25: Any, signals: Signals) -> Scores:
        weights = self._query.weights
        recency, frequency, tags, project = signals
        made: Scores = (
            weights.bm25 * bm25
            + weights.recency * recency
            + weights.frequency * frequency
            + weights.tags * tags
            + weights.project * project
        )
        return made

    def _ranked(self, rows: Rows, best_raw: float) -> list[Ranked]:
        query = self._query
        least = -1.0 if query.threshold is None else query.threshold
        floor = FLOOR if query.threshold is None else 0.0
        shown = self._shown(rows, *self._bm25(rows), best_raw)
        shown.sort(key=lambda one: (-one.score, one.number))
        return [one for one in shown if one.score >= least and one.bm25 >= floor][: query.limit]

    def _shown(self, rows: Rows, raw: Scores, held: Marks, best_raw: float) -> list[Ranked]:
        """Rows with all their signals; `raw` and `held` as `_bm25` says."""
        bm25 = raw / best_raw
        signals = self._signals(rows)
        words = self._matched(held)
        columns = (self._table.numbers.values[rows], self._sum(bm25, signals), bm25, *signals, raw)
        return [
            Ranked(
                number=number,
                score=score,
                bm25=share,
                recency=recency,
                frequency=frequency,
                tags=tags,
                project=project,
                bm25_raw=own,
                matched=words[at],
            )
            for at, (number, score, share, recency, frequency, tags, project, own) in enumerate(
                zip(*(column.tolist() for column in columns), strict=True)
            )
        ]

    def _matched(self, held: Marks) -> list[tuple[str, ...]]:
        """The words of the query in each row."""
        asked_in = np.zeros((len(self._asked), held.shape[1]), dtype=bool)
        for term, own in zip(self._terms, held, strict=True):
            asked_in[term.asked] |= own
        words = [one.word for one in self._asked]
        return [tuple(compress(words, column)) for column in asked_in.T.tolist()]


def _saturation(table: Table) -> Scores:
    """What BM25 makes of each pair of frequency and length, without the idf."""
    frequency, length = table.code_tf.values, table.code_length.values
    made: Scores = frequency * (K1 + 1) / (frequency + K1 * (1 - B + B * length / (table.mean_words or 1.0)))
    return made


def _leading(rows: Rows, scores: Any, limit: int) -> Rows:
    """The best `limit` rows, and all that tie with the last of them."""
    if len(rows) <= limit:
        return rows
    leading: Rows = rows[scores >= np.partition(scores, len(scores) - limit)[len(scores) - limit]]
    return leading
