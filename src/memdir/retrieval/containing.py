"""Statements that hold given texts, in the order of what is asked: who is looked for is known, and what is said of them is not.

Statements about one thing are near each other for its name alone. So what they have in common, the mean of their vectors, is
taken off each and off the question; what is left tells them apart. The line vectors that are kept beside passages choose
EMBEDDED_MAX of them, and the transformer then reads these one by one: in its passage a sentence has a vector that is half
its neighbours'.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.core.errors import BusyError
from memdir.core.patterns.whole_words import whole_words
from memdir.retrieval.embed.port import Embedder, ModelUnavailableError, unpack_lines
from memdir.retrieval.fuse import Scores
from memdir.retrieval.lexical.port import LexicalIndex
from memdir.retrieval.lines import hit_at
from memdir.retrieval.question_vectors import Question, Questions
from memdir.retrieval.statements import Statement, statements_of
from memdir.retrieval.types import SearchOutcome, SearchQuery, StageTimer
from memdir.retrieval.units import Unit, units_of
from memdir.retrieval.vectors import VectorIndex
from memdir.retrieval.words import Query, prepare
from memdir.store.passages.reading import in_place
from memdir.store.protocols import ChunkStore
from memdir.store.text.analysis import folded, forms_in, languages_of
from memdir.store.text.sentences import sentences
from memdir.store.types import Matrix, StoredChunk

log = logging.getLogger(__name__)

EMBEDDED_MAX: Final = 48
"""Statements that the transformer reads by themselves, 2 to 3 ms each. Of drives of 200 and 991 files it puts the sentence that
is asked for among the first ten for .90 and .86 of all names, line vectors alone for .71 and .66."""
FOUND_MAX: Final = 2000
"""Passages that are looked up by the words of a text."""
READ_MAX: Final = 400
"""Of these the nearest to the question are read."""
_LINE_SHARE: Final = 0.5
"""Of the line vector's cosine beside that of a statement's own."""
_DIRECT_SHARE: Final = 0.1
"""More for a statement that holds the texts itself than for one below a heading that does."""
_BARE_LOSES: Final = 2.0
"""A name alone is like every question about it, and comes last."""
_WORDS_SHARE: Final = 0.5
"""For a statement with all words of the question; where a model cannot read the language they are all there is."""
_SUM_MAX: Final = (1 + _LINE_SHARE) * (1 + _DIRECT_SHARE) + _WORDS_SHARE


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Characters `start` to `end` of a passage: a sentence, or a line that is none, that holds the texts itself (`direct`) or
    stands under what does."""

    stored: StoredChunk
    start: int
    end: int
    direct: bool
    parts: tuple[tuple[int, int], ...]
    """Units of the passage that it is in, and how many of its characters."""

    @property
    def text(self) -> str:
        return self.stored.chunk.text[self.start : self.end]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainingSearch:
    """The search for sentences and lines that hold given texts."""

    chunks: ChunkStore
    words: LexicalIndex
    vectors: VectorIndex
    static: Embedder
    dense: Embedder | None
    questions: Questions

    def search(self, query: SearchQuery) -> SearchOutcome:
        """At most `query.limit` matches of all of `query.containing`, the best first; equal ones once."""
        timer = StageTimer()
        prepared = prepare(query.text)
        question = self.questions.asked(with_names(query.containing, prepared.text))
        by_text: dict[str, dict[str, Match]] = {}  # by what they say, the first of each document
        for one in self._matches(query, question):
            by_text.setdefault(_normalised(one.text), {}).setdefault(one.stored.document_id, one)
        matches = [next(iter(same.values())) for same in by_text.values()]
        timer.lap("lexical")
        dense = question.dense
        model, vector = (self.static, question.static) if self.dense is None or dense is None else (self.dense, dense)
        ids = list(dict.fromkeys(one.stored.id for one in matches))
        packed = {} if dense is None else self.chunks.line_vectors(ids, model=model.name)
        ranked = in_order(matches, query.containing, prepared, vector, model, packed)
        passing = [(score, one) for score, one in ranked if score >= (query.threshold or 0.0)]
        timer.lap("rank")
        return SearchOutcome(
            hits=[
                hit_at(one.stored, one.start, one.end, score=score, alike=len(by_text[_normalised(one.text)]) - 1)
                for score, one in passing[: query.limit]
            ],
            total=len(passing),
            stages_ms=timer.stages_ms,
            closest=ranked[0][0] if ranked else 0.0,
        )

    def _matches(self, query: SearchQuery, question: Question) -> list[Match]:
        """By path and place."""
        found = [{one for one, _ in self.words.search(query.scope, [text], FOUND_MAX)} for text in query.containing]
        complete = [one for one in found if len(one) < FOUND_MAX]
        ids = sorted(set.intersection(*(complete or found[:1])))
        if len(ids) > READ_MAX:
            cosines = self.vectors.cosines(query.scope.container_id, ids, question.static, model=self.static.name)
            ids = [ids[at] for at in np.argsort(-np.nan_to_num(cosines), kind="stable")[:READ_MAX].tolist()]
        stored = [one for one in self.chunks.chunks(ids).values() if in_place(one.path, query.scope)]
        return matches_in(sorted(stored, key=lambda one: (one.path or "", one.chunk.start_byte)), query.containing)


def matches_in(passages: Sequence[StoredChunk], texts: Sequence[str]) -> list[Match]:
    """All statements of `passages` that hold each of `texts` as whole words, in any case and with any white space, or stand
    under what does."""
    wanted = [whole_words(folded(text)) for text in texts]
    found: list[Match] = []
    for stored in passages:
        text, context = stored.chunk.text, _held(folded(stored.chunk.context), wanted)
        if len(context | _held(folded(text), wanted)) == len(wanted):
            units = units_of(text)
            statements = statements_of(text, units)
            held = [_held(folded(text[one.start : one.end]), wanted) for one in statements]
            for statement, own in zip(statements, held, strict=True):
                above = context.union(*(held[at] for at in statement.parents))
                if len(own | above) == len(wanted):
                    found += _of_statement(stored, statement, units, wanted, above)
    return found


def _held(said: str, wanted: Sequence[re.Pattern[str]]) -> frozenset[int]:
    """The numbers of the texts that it holds."""
    return frozenset(number for number, one in enumerate(wanted) if one.search(said))


def with_names(texts: Sequence[str], said: str) -> str:
    """What is said, behind those of `texts` that it does not hold: "where was she born" becomes "Ana Ruiz: where was she
    born". Else what names nobody would be like everything that names nobody."""
    normalised = _normalised(said)
    missing = [text for text in texts if _normalised(text) not in normalised]
    return f"{', '.join(missing)}: {said}" if missing else said


def _normalised(text: str) -> str:
    return " ".join(folded(text).split())


def _of_statement(
    stored: StoredChunk, statement: Statement, units: Sequence[Unit], wanted: Sequence[re.Pattern[str]], above: frozenset[int]
) -> list[Match]:
    """Its sentences; `above`: numbers of the texts that it stands under."""
    found = []
    for start, end in sentences(stored.chunk.text, statement.start, statement.end):
        own = _held(folded(stored.chunk.text[start:end]), wanted)
        direct = len(own) == len(wanted)
        if direct or (not statement.lead and len(own | above) == len(wanted)):
            numbers = range(statement.first, statement.last + 1)
            shared = ((number, min(units[number].end, end) - max(units[number].start, start)) for number in numbers)
            parts = tuple((number, size) for number, size in shared if size > 0)
            found.append(Match(stored=stored, start=start, end=end, direct=direct, parts=parts))
    return found


def in_order(
    matches: Sequence[Match],
    texts: Sequence[str],
    query: Query,
    question: Matrix,
    model: Embedder,
    packed: Mapping[int, bytes],
) -> list[tuple[float, Match]]:
    """The best first, ties in the order given, with scores from 0 to 1. `question`: its vector by `model`, shape (dim,), as
    `with_names` says it; `packed`: by passage the vectors of its lines, for those that have them."""
    if not matches:
        return []
    names = [_normalised(text) for text in texts]
    direct = np.array([one.direct for one in matches])
    words = _WORDS_SHARE * np.array([_share_of_words(one.text, query) for one in matches])
    words -= _BARE_LOSES * np.array([_is_bare(one.text, names) for one in matches])
    lines = _centred_cosines(_line_vectors(matches, packed, len(question)), question, direct)
    first = np.argsort(-(lines + words), kind="stable")
    best, rest = first[:EMBEDDED_MAX], first[EMBEDDED_MAX:]
    own = lines[best]
    try:
        vectors = model.embed_passages([with_names(texts, matches[at].text) for at in best.tolist()])
        own = _centred_cosines(vectors, question, direct[best])
    except (BusyError, ModelUnavailableError) as error:
        log.warning("statements are compared by the lines of their passages only: %s", error.message)
    total = own + _LINE_SHARE * lines[best] + words[best]
    order = np.argsort(-total, kind="stable")
    ranked = np.concatenate((best[order], rest))
    sums = np.minimum.accumulate(np.concatenate((total[order], (1 + _LINE_SHARE) * lines[rest] + words[rest])))
    scores = np.clip((1 + sums / _SUM_MAX) / 2, 0.0, 1.0)
    return [(float(score), matches[at]) for score, at in zip(scores, ranked.tolist(), strict=True)]


def _centred_cosines(vectors: Matrix, question: Matrix, direct: npt.NDArray[np.bool_]) -> Scores:
    """Cosines with the question without what the statements that hold the texts have in common; a little more for these."""
    there: npt.NDArray[np.bool_] = np.any(vectors != 0, axis=1)
    among = vectors[there & direct] if np.any(there & direct) else vectors[there]
    common = among.sum(axis=0) / (len(among) + 1)  # of few the mean is mostly each of them
    apart = np.where(there[:, None], vectors - common, 0.0)
    norms = np.linalg.norm(apart, axis=1) * np.linalg.norm(question - common)
    cosines: Scores = (apart @ (question - common)) / np.where(norms > 0, norms, 1.0)
    return cosines + _DIRECT_SHARE * direct


def _line_vectors(matches: Sequence[Match], packed: Mapping[int, bytes], dim: int) -> Matrix:
    """Of each statement the mean of its lines' vectors, each by how much of it is in the line; zeros where there are none."""
    vectors = np.zeros((len(matches), dim), dtype=np.float32)
    lines: dict[int, Matrix] = {}
    for row, one in enumerate(matches):
        if blob := packed.get(one.stored.id):
            if one.stored.id not in lines:
                lines[one.stored.id] = unpack_lines(blob, dim=dim)
            for number, size in one.parts:
                if number < len(lines[one.stored.id]):
                    vectors[row] += size * lines[one.stored.id][number]
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Matrix = (vectors / np.where(norms > 0, norms, 1.0)).astype(np.float32)
    return unit


def _is_bare(text: str, names: Sequence[str]) -> bool:
    """Whether it is the names (normalised) and nothing else: a heading, an entry of a list."""
    left = _normalised(text)
    for name in names:
        left = left.replace(name, " ")
    return not any(map(str.isalnum, left))


def _share_of_words(text: str, query: Query) -> float:
    have = frozenset(forms_in(text, languages_of(text)))
    return sum(not have.isdisjoint(forms) for forms in query.forms) / max(1, len(query.forms))
