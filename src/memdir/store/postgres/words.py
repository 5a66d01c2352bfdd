"""The words of passages in PostgreSQL: BM25 over an inverted index of numbers.

`ts_rank` knows neither how rare a word is nor how long a passage, so the words are kept as arrays (`chunk_words`), found
through their GIN index and weighed here as `retrieval.lexical` does it: BM25 with k1 = 1.2, b = 0.75 (Robertson and Zaragoza,
"The Probabilistic Relevance Framework", 2009), the inverse document frequency within the container (Lucene's, which is never
negative), and what a word counts in text and headings inside its frequency. Words are the terms of `store.text.analysis`.

The cost of a query is bounded: of each word at most MATCHES_MAX passages are looked up, of all together about CANDIDATES_MAX,
rare words first. A word that more passages hold still counts in the passages that were found. What a container is like (how
many passages, how long, how common a word) is read from the SAMPLE passages with the lowest hash, which are a fair sample; a
container that has no more is known exactly.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.store.database import Database, Transaction, fetch, first
from memdir.store.passages.reading import is_whole
from memdir.store.postgres.rows import scope_condition
from memdir.store.text.analysis import index_terms, query_terms
from memdir.store.types import Chunk, Scope

SAMPLE: Final = 512
MATCHES_MAX: Final = 5_000
CANDIDATES_MAX: Final = 20_000
ENOUGH: Final = 2_000
"""Passages found by rarer words that make looking up very common ones needless."""
PHRASES_MAX: Final = 64
"""Of one query; `retrieval.words` makes no more."""
COUNT_MAX: Final = 32_767
_PHRASE_MAX: Final = 8
"""Words of a phrase that are compared; further ones are passed over."""
_K1: Final = 1.2
_B: Final = 0.75
_IDF_COMMON: Final = math.log(2)
"""Of a word that half of the passages hold."""
_NOTHING: Final = 1e-9
"""Less is the rounding of what was taken back."""
_HASH_END: Final = float(1 << 64)


Words = tuple[tuple[str, ...], ...]
"""A word, or several that stand side by side; each in any of its forms, as terms."""


def counted_terms(chunk: Chunk) -> tuple[int, dict[str, int]]:
    """How many terms a passage has with the headings above it, and how often each is there."""
    counts = Counter(term for text in (chunk.text, chunk.context) for term in index_terms(text))
    return counts.total(), {term: min(count, COUNT_MAX) for term, count in counts.items()}


def wanted(phrases: Sequence[str]) -> list[Words]:
    """What to look up. What is one word to a person may be several terms (a name in parts, a run of Chinese): any of them will
    do."""
    found: dict[Words, None] = {}
    for phrase in phrases:
        words = query_terms(phrase)
        if " " in phrase.strip() and words:
            found[tuple(words[:_PHRASE_MAX])] = None
        else:
            found.update(((word,), None) for word in words)
    return list(found)[:PHRASES_MAX]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSample:
    """What a container is like. With more than SAMPLE passages `size` and `mean_length` are estimates (about 5 % off)."""

    taken: int
    size: float
    mean_length: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A word or phrase of a query: the keys of the forms of each word, how many passages hold them all (counted up to
    MATCHES_MAX)."""

    words: Words
    keys: list[list[int]]
    matches: int
    idf: float

    @property
    def is_common(self) -> bool:
        return self.matches >= MATCHES_MAX


SAMPLED: Final = "(select id, text_hash from chunk where container_id = ? order by text_hash limit ?)"


def sample(reader: Transaction, container_id: int) -> ContainerSample:
    """Looks at SAMPLE passages."""
    row = first(
        reader,
        "select count(*), coalesce(sum(w.length), 0), "  # noqa: S608
        f"(select s.text_hash from {SAMPLED} s order by s.text_hash desc limit 1) "
        f"from {SAMPLED} c join chunk_words w on w.chunk_id = c.id",
        (container_id, SAMPLE, container_id, SAMPLE),
    )
    assert row is not None
    taken, length, last = row
    size = float(taken)
    if taken >= SAMPLE:
        # The hashes are spread evenly: the share of all values that lie below the last one holds this many.
        size = max(size, taken * _HASH_END / (int.from_bytes(bytes(last)[:8], "big") + 1))
    return ContainerSample(taken=taken, size=size, mean_length=length / taken if taken else 1.0)


def lexical(db: Database, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
    """Chunk ids and BM25 for any of `phrases`, best first, ties by id."""
    asked = wanted(phrases)
    if not asked:
        return []
    with db.snapshot() as reader:
        # Words belong to a container, so an index finds them; read from end to end the table shows those of all containers.
        fetch(reader, "select set_config('enable_seqscan', 'off', true)")
        around = sample(reader, scope.container_id)
        if not around.taken:
            return []
        parts = _parts(reader, scope.container_id, asked, around)
        several = [part for part in parts if len(part.keys) > 1]
        # A passage may hold the words of a phrase and not the phrase: those are looked at, and some spare ones fill in.
        rows = _ranked(reader, scope, parts, around, 2 * limit if several else limit)
        if several:
            rows = _without_torn_phrases(reader, rows, several, around)
    return rows[:limit]


def _parts(reader: Transaction, container_id: int, asked: Sequence[Words], around: ContainerSample) -> list[_Part]:
    """The parts that occur in the container, the rarest first."""
    flat = list(dict.fromkeys(term for words in asked for forms in words for term in forms))
    found = fetch(reader, "select term, term_key(?, term) from unnest(cast(? as text[])) term", (container_id, flat))
    key_of = {term: int(key) for term, key in found}
    keys = [[[key_of[term] for term in forms] for forms in words] for words in asked]
    count = "select {0}, count(*) from (select from chunk_words w where {1} limit ?) held"
    counted: dict[int, int] = dict(
        fetch(
            reader,
            " union all ".join(count.format(number, _held(len(own))) for number, own in enumerate(keys)),
            [value for own in keys for value in (*own, MATCHES_MAX)],
        )
    )
    common = [number for number, matches in counted.items() if matches >= MATCHES_MAX]
    share = _shares(reader, container_id, [keys[number] for number in common], around)
    parts = []
    for number, own in enumerate(keys):
        matches = float(counted[number])
        if number in common:
            matches = max(matches, around.size * share[common.index(number)])
        size = max(around.size, matches)
        idf = math.log(1 + (size - matches + 0.5) / (matches + 0.5))
        parts.append(_Part(words=asked[number], keys=own, matches=int(counted[number]), idf=idf))
    return sorted((part for part in parts if part.matches), key=lambda part: part.matches)


def _held(count: int) -> str:
    """The condition that `w` holds `count` words, each in any form."""
    return " and ".join(["w.words && cast(? as bigint[])"] * count)


def _shares(reader: Transaction, container_id: int, keys: Sequence[list[list[int]]], around: ContainerSample) -> list[float]:
    """The share of the container's passages that hold all of each, from the sample."""
    if not keys:
        return []
    columns = ", ".join(f"count(*) filter (where {_held(len(own))})" for own in keys)
    row = first(
        reader,
        f"select {columns} from {SAMPLED} c join chunk_words w on w.chunk_id = c.id",  # noqa: S608
        (*(forms for own in keys for forms in own), container_id, SAMPLE),
    )
    assert row is not None
    return [hits / around.taken for hits in row]


def _ranked(
    reader: Transaction, scope: Scope, parts: Sequence[_Part], around: ContainerSample, limit: int
) -> list[tuple[int, float]]:
    """Passages in scope that hold any of the parts, by BM25."""
    if not parts:
        return []
    query = _Query(around)
    looked_up = _looked_up(parts, scope)
    selects = []
    for part in looked_up:
        score = "cast(0 as float8)" if part.is_common else query.score(part)
        selects.append(
            f"(select w.chunk_id, {score} as score from chunk_words w {query.inside(scope)} and {query.held(part)} "  # noqa: S608
            f"limit {query.bind(MATCHES_MAX)})"
        )
    found = f"select t.chunk_id, sum(t.score) as score from ({' union all '.join(selects)}) t group by t.chunk_id"  # noqa: S608
    others = [part for part in parts if part.is_common or part not in looked_up]
    if others:
        more = " + ".join(f"coalesce({query.score(part)}, 0)" for part in others)
        found = f"select f.chunk_id, f.score + {more} as score from ({found}) f join chunk_words w on w.chunk_id = f.chunk_id"  # noqa: S608
    rows = fetch(
        reader,
        f"select r.chunk_id, r.score from ({found}) r order by r.score desc, r.chunk_id limit {query.bind(limit)}",  # noqa: S608
        query.bindings,
    )
    return [(int(chunk_id), float(score)) for chunk_id, score in rows]


def _looked_up(parts: Sequence[_Part], scope: Scope) -> list[_Part]:
    """The parts whose passages are found, the rarest first. A word that most passages hold finds none in the whole container
    when the others find enough: it could only decide between equals."""
    found: list[_Part] = []
    total = 0
    for part in parts:
        if found and total + part.matches > CANDIDATES_MAX:
            break
        if total >= ENOUGH and part.idf <= _IDF_COMMON and is_whole(scope):
            break
        total += part.matches
        found.append(part)
    return found


def _without_torn_phrases(
    reader: Transaction, rows: Sequence[tuple[int, float]], several: Sequence[_Part], around: ContainerSample
) -> list[tuple[int, float]]:
    """What a phrase gave to passages that hold its words becomes what it is worth as often as they stand side by side there."""
    scores = dict(rows)
    for part in several:
        query = _Query(around)
        held = fetch(
            reader,
            f"select w.chunk_id, {query.score(part)}, w.length, c.text, c.context from chunk_words w "  # noqa: S608
            f"join chunk c on c.id = w.chunk_id where w.chunk_id = any({query.bind(list(scores))}) and {query.held(part)}",
            query.bindings,
        )
        for chunk_id, score, length, text, context in held:
            often = sum(_side_by_side(kept, part.words) for kept in (text, context))
            norm = _K1 * (1 - _B + _B * length / max(around.mean_length, 1.0))
            scores[chunk_id] += part.idf * (_K1 + 1) * often / (often + norm) - score
    left = [(chunk_id, score) for chunk_id, score in scores.items() if score > _NOTHING]
    return sorted(left, key=lambda row: (-row[1], row[0]))


def _side_by_side(text: str, words: Words) -> int:
    """How often the words stand one behind the other, each in any form."""
    terms = index_terms(text)
    begins = range(len(terms) - len(words) + 1)
    return sum(all(terms[at + step] in forms for step, forms in enumerate(words)) for at in begins)


class _Query:
    """A statement in the making: its values by name."""

    def __init__(self, around: ContainerSample) -> None:
        self.bindings: dict[str, object] = {}
        self._base = self.bind(_K1 * (1 - _B))
        self._slope = self.bind(_K1 * _B / max(around.mean_length, 1.0))

    def bind(self, value: object) -> str:
        """The placeholder of a value."""
        name = f"p{len(self.bindings)}"
        self.bindings[name] = value
        return f":{name}"

    def held(self, part: _Part) -> str:
        """The condition that `w` holds all words of a part, each in any form."""
        return " and ".join(f"w.words && cast({self.bind(forms)} as bigint[])" for forms in part.keys)

    def inside(self, scope: Scope) -> str:
        """Join and condition that keep words `w` inside a scope. The keys of words are those of the container already."""
        if is_whole(scope):
            return "where true"
        where, bindings = scope_condition(scope)
        for value in bindings:
            where = where.replace("?", self.bind(value), 1)
        return f"join chunk c on c.id = w.chunk_id {where}"

    def score(self, part: _Part) -> str:
        """BM25 of a part in the row `w`; null where it is not. A word counts as often as its commonest form, a phrase as often
        as its rarest word."""
        often = f"least({', '.join(map(self._often, part.keys))})"
        if len(part.keys) > 1:  # `least` passes over nulls
            often = f"case when {self.held(part)} then {often} end"
        # f (k + 1) / (f + K) with the frequency f named once, because finding it is what costs.
        weight = f"cast({self.bind(part.idf * (_K1 + 1))} as float8)"
        length = f"(cast({self._base} as float8) + cast({self._slope} as float8) * w.length)"
        return f"{weight} * (1 - {length} / (cast({often} as float8) + {length}))"

    def _often(self, forms: list[int]) -> str:
        """`greatest` passes over nulls."""
        counts = (f"w.counts[array_position(w.words, cast({self.bind(key)} as bigint))]" for key in forms)
        return f"greatest({', '.join(counts)})"
