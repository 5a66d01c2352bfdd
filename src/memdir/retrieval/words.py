"""Words of queries and lines: stop words, abbreviations, and what to look up in the index."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from memdir.store.text.analysis import query_terms, query_words
from memdir.store.text.languages import of_query
from memdir.store.text.stopwords import STOP_WORDS, stop_words_for
from memdir.store.text.words import stem, words

TERMS_MAX: Final = 32
"""Terms of one query that reach the index; a whole pasted page must not become a thousand of them."""

_PAIRS: Final = (
    ("k8s", "kubernetes"),
    ("db", "database"),
    ("pg", "postgres"),
    ("auth", "authentication"),
    ("authn", "authentication"),
    ("authz", "authorization"),
    ("config", "configuration"),
    ("cfg", "configuration"),
    ("conf", "configuration"),
    ("repo", "repository"),
    ("env", "environment"),
    ("deps", "dependencies"),
    ("dep", "dependency"),
    ("pkg", "package"),
    ("lib", "library"),
    ("dir", "directory"),
    ("doc", "documentation"),
    ("docs", "documentation"),
    ("spec", "specification"),
    ("impl", "implementation"),
    ("func", "function"),
    ("fn", "function"),
    ("param", "parameter"),
    ("arg", "argument"),
    ("args", "arguments"),
    ("var", "variable"),
    ("const", "constant"),
    ("init", "initialize"),
    ("util", "utility"),
    ("perf", "performance"),
    ("prod", "production"),
    ("dev", "development"),
    ("admin", "administrator"),
    ("app", "application"),
    ("async", "asynchronous"),
    ("sync", "synchronization"),
    ("msg", "message"),
    ("err", "error"),
    ("req", "request"),
    ("resp", "response"),
    ("temp", "temporary"),
    ("tmp", "temporary"),
    ("max", "maximum"),
    ("min", "minimum"),
    ("num", "number"),
    ("js", "javascript"),
    ("ts", "typescript"),
    ("py", "python"),
    ("ci", "continuous integration"),
    ("cd", "continuous deployment"),
    ("ui", "user interface"),
    ("api", "application programming interface"),
    ("ml", "machine learning"),
    ("ai", "artificial intelligence"),
    ("llm", "large language model"),
    ("os", "operating system"),
    ("vm", "virtual machine"),
    ("pr", "pull request"),
    ("i18n", "internationalization"),
    ("l10n", "localization"),
    ("a11y", "accessibility"),
)


def _both_ways() -> dict[str, tuple[str, ...]]:
    table: dict[str, list[str]] = {}
    for short, long in _PAIRS:
        table.setdefault(short, []).append(long)
        if " " not in long:
            table.setdefault(long, []).append(short)
    return {word: tuple(others) for word, others in table.items()}


ABBREVIATIONS: Final = _both_ways()


_STOP_ANYWHERE: Final = frozenset().union(*STOP_WORDS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query made ready: `terms` are distinct and in order, `expansions` say the same in another way."""

    text: str
    terms: tuple[str, ...]
    expansions: tuple[str, ...]
    forms: tuple[frozenset[str], ...]
    """For each word of the query, and each one that says the same, the terms of `store.text.analysis` that stand for it."""
    foreign: tuple[str, ...]
    """Stems in the query's language, when that is hardly English: a word by itself does not tell what language it is in."""

    @property
    def phrases(self) -> tuple[str, ...]:
        """What to look up, any of it: words, and phrases of several words."""
        return (*self.terms, *self.expansions, *self.foreign)

    @property
    def words(self) -> frozenset[str]:
        """Words of terms and expansions."""
        return frozenset(word for part in (*self.terms, *self.expansions) for word in part.split())

    @property
    def stems(self) -> frozenset[str]:
        """Stems of terms and expansions."""
        return frozenset(stem(word) for word in self.words)


def prepare(text: str) -> Query:
    """Stop words go unless nothing else is there; abbreviations are added both ways."""
    plain = " ".join(text.split())
    all_words = words(plain)
    stop = stop_words_for(all_words)
    kept = [word for word in all_words if word not in stop] or all_words
    terms = tuple(dict.fromkeys(kept))[:TERMS_MAX]
    folded = f" {' '.join(all_words)} "
    extra = [other for term in terms for other in ABBREVIATIONS.get(term, ())]
    extra += [short for short, long in _PAIRS if " " in long and f" {long} " in folded]
    expansions = tuple(other for other in dict.fromkeys(extra) if other not in terms)[:TERMS_MAX]
    return Query(text=plain, terms=terms, expansions=expansions, forms=_forms(plain, stop), foreign=_foreign(plain, terms))


def _foreign(plain: str, terms: tuple[str, ...]) -> tuple[str, ...]:
    """Stems that looking up each of `terms` alone does not find: folded and alone, a word is mostly taken for English."""
    if of_query(plain)[0] == "english":
        return ()
    alone = {form for term in terms for forms in query_terms(term) for form in forms}
    likeliest = dict.fromkeys(forms[0] for word, forms in query_words(plain) if word not in _STOP_ANYWHERE)
    return tuple(form for form in likeliest if form not in alone)[:TERMS_MAX]


def telling(terms: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `terms` that are a stop word of no language, unless all are: too short a question does not tell its language."""
    return tuple(term for term in terms if term not in _STOP_ANYWHERE) or terms


def _forms(plain: str, stop: frozenset[str]) -> tuple[frozenset[str], ...]:
    """A word and its abbreviation count once."""
    asked = query_words(plain)
    kept = [(word, forms) for word, forms in asked if word not in stop] or asked
    found = dict.fromkeys(
        frozenset(forms).union(
            *(forms for other in ABBREVIATIONS.get(word, ()) if " " not in other for _, forms in query_words(other))
        )
        for word, forms in kept
    )
    return tuple(found)[:TERMS_MAX]
