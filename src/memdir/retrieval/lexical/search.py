"""Passages by words: a question as a query of tantivy's, and the same by hand for passages that it does not have yet.

BM25 is tantivy's, k1 = 1.2, b = 0.75, with the inverse document frequency ln(1 + (N - n + .5) / (n + .5)) (Robertson and
Zaragoza, "The Probabilistic Relevance Framework", 2009; never negative, as Lucene's). A word may stand in the index in several
forms; each counts as rare as all of them together, so that a rare form is not worth more than the word.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, product
from typing import Final

from tantivy import Occur, Query, Schema, Searcher

from memdir.retrieval.hashes import key_of
from memdir.retrieval.lexical.container import Snapshot
from memdir.retrieval.lexical.files import INSIDE, WORDS
from memdir.retrieval.lexical.terms import Terms, places, sayable
from memdir.store.passages.reading import in_place, is_everywhere
from memdir.store.text.analysis import query_terms
from memdir.store.types import Scope

Words = tuple[tuple[str, ...], ...]
"""A word, or several that stand side by side; each in any of its forms, as terms."""

_K1: Final = 1.2
_B: Final = 0.75
_GONE_MAX: Final = 1_000
_PHRASE_MAX: Final = 8
"""Words of a phrase that are compared; further ones are passed over."""
_PHRASE_FORMS_MAX: Final = 16
"""Ways to write one phrase that are looked up."""


def found_in(snapshot: Snapshot, schema: Schema, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
    """Passages in a scope that hold any of `phrases`, each a word or several words that stand side by side: ids and scores, the
    best first, ties by id. What is one word to a person may be several to the index (a name in parts, a run of Chinese): any
    of them will do."""
    searcher = snapshot.searcher
    wanted = _wanted(phrases)
    queries = [query for words in wanted if (query := _query(searcher, schema, words)) is not None]
    found: list[tuple[int, float]] = []
    if queries:
        query = _within(Query.boolean_query([(Occur.Should, one) for one in queries]), schema, scope, snapshot.moved)
        hits = searcher.search(query, limit + min(len(snapshot.gone), _GONE_MAX), count=False).hits
        ids = searcher.fast_field_values("chunk", [address for _, address in hits])
        left_out = {*snapshot.gone, *(one.passage.chunk_id for one in snapshot.fresh)}
        found = [
            (int(chunk_id), float(score))
            for chunk_id, (score, _) in zip(ids, hits, strict=True)
            if chunk_id is not None and chunk_id not in left_out
        ]
    if snapshot.fresh:
        found += _fresh(snapshot, scope, wanted)
    return sorted(found, key=lambda one: (-one[1], one[0]))[:limit]


def _wanted(phrases: Sequence[str]) -> list[Words]:
    """Words, each in any of its forms, and phrases of them; each once."""
    found: dict[Words, None] = {}
    for phrase in phrases:
        words = [tuple(map(sayable, forms)) for forms in query_terms(phrase)]
        if " " in phrase.strip() and len(words) > 1:
            found[tuple(words[:_PHRASE_MAX])] = None
        else:
            found.update(((word,), None) for word in words)
    return list(found)


def _query(searcher: Searcher, schema: Schema, words: Words) -> Query | None:
    """None when no passage can hold them."""
    if len(words) == 1:
        return _word(searcher, schema, words[0])
    there = [[form for form in forms if searcher.doc_freq(WORDS, form)] for forms in words]
    ways = [Query.phrase_query(schema, WORDS, list(way)) for way in islice(product(*there), _PHRASE_FORMS_MAX)]
    return Query.disjunction_max_query(ways) if ways else None


def _word(searcher: Searcher, schema: Schema, forms: Sequence[str]) -> Query | None:
    """A word in those of its forms that are there. A passage in two languages may hold two: the better one counts. A plain term
    where one is there, so that tantivy may skip what cannot be among the best."""
    counts = {form: count for form in dict.fromkeys(forms) if (count := searcher.doc_freq(WORDS, form))}
    together = _idf(searcher, forms)
    queries = [
        Query.boost_query(Query.term_query(schema, WORDS, form, index_option="freq"), together / _idf(searcher, (form,)))
        for form in counts
    ]
    return queries[0] if len(queries) == 1 else Query.disjunction_max_query(queries) if queries else None


def _fresh(snapshot: Snapshot, scope: Scope, wanted: Sequence[Words]) -> list[tuple[int, float]]:
    """Passages that are not in the index yet, scored with its frequencies."""
    inside = [one for one in snapshot.fresh if _is_inside(one, scope, snapshot.moved)]
    held = int(snapshot.searcher.num_docs)
    mean = (snapshot.mean * held + sum(one.length for one in snapshot.fresh)) / (held + len(snapshot.fresh))
    scores = dict.fromkeys((one.passage.chunk_id for one in inside), 0.0)
    for words in wanted:
        weight = sum(_idf(snapshot.searcher, forms) for forms in words) * (_K1 + 1)
        for one in inside:
            if often := _often(one, words):
                norm = _K1 * (1 - _B + _B * one.length / max(1.0, mean))
                scores[one.passage.chunk_id] += weight * often / (often + norm)
    return [(chunk_id, score) for chunk_id, score in scores.items() if score]


def _often(terms: Terms, words: Words) -> int:
    """How often words stand side by side; of one word its commonest form."""
    if len(words) == 1:
        return max(sum(field.count(form) for field in terms.fields) for form in words[0])
    return sum(
        all(field[at + step] in forms for step, forms in enumerate(words))
        for field in terms.fields
        for at in range(len(field) - len(words) + 1)
    )


def _is_inside(terms: Terms, scope: Scope, moved: Mapping[int, str | None]) -> bool:
    passage = terms.passage
    path = moved.get(terms.document, passage.path)
    return (scope.chosen is None or passage.document_id in scope.chosen) and in_place(path, scope)


def _idf(searcher: Searcher, forms: Sequence[str]) -> float:
    """Of a word in any of its forms, as if passages held them independently of each other."""
    total = max(1, int(searcher.num_docs))
    without = math.prod(max(0.0, 1 - searcher.doc_freq(WORDS, form) / total) for form in dict.fromkeys(forms))
    count = total * (1 - without)
    return math.log(1 + (total - count + 0.5) / (count + 0.5))


def _within(query: Query, schema: Schema, scope: Scope, moved: Mapping[int, str | None]) -> Query:
    """The same in a scope only. `moved`: documents (by key) that stand elsewhere than the index says, and where."""
    parts = [(Occur.Must, query)]
    if not is_everywhere(scope):
        folder = scope.folder if scope.exact else scope.folder.rstrip("/") + "/"
        inside = Query.term_query(schema, INSIDE, key_of(folder), index_option="basic")
        if moved:
            here = [key for key, path in moved.items() if key_of(folder) in places(path)]
            stays = [(Occur.Must, inside), (Occur.MustNot, _documents(schema, moved))]
            inside = Query.boolean_query([(Occur.Should, Query.boolean_query(stays)), (Occur.Should, _documents(schema, here))])
        parts.append((Occur.Must, Query.const_score_query(inside, 0.0)))
    if scope.chosen is not None:
        chosen = _documents(schema, map(key_of, scope.chosen.ids))
        parts.append((Occur.MustNot if scope.chosen.but else Occur.Must, Query.const_score_query(chosen, 0.0)))
    return query if len(parts) == 1 else Query.boolean_query(parts)


def _documents(schema: Schema, keys: Iterable[int]) -> Query:
    listed = list(keys)
    return Query.term_set_query(schema, "document", listed) if listed else Query.empty_query()
