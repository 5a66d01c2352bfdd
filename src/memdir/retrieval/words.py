"""Words of queries and lines: tokens, stop words, abbreviations, a light stem, and the FTS5 match expression.

The stem is for comparing words here (lines, paths); the index does its own Porter stemming.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from memdir.retrieval.stopwords import ENGLISH, fold, stop_words_for
from memdir.store.texts import bigrams, name_parts, unspaced_runs

TERMS_MAX: Final = 32
"""Terms of one query that reach the index; a whole pasted page must not become a thousand of them."""

_WORD: Final = re.compile(r"\w+")

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


def words(text: str) -> list[str]:
    """Folded words; runs of unspaced scripts as bigrams; parts of camelCase names beside the whole."""
    found: list[str] = _WORD.findall(fold(text.replace("_", " ")))
    if not text.isascii() and unspaced_runs(text):
        found = [part for word in found for part in _parts(word)]
    found.extend(fold(part) for part in name_parts(text))
    return found


def _parts(word: str) -> list[str]:
    """The bigrams of a word in an unspaced script; a word in another script itself."""
    runs = unspaced_runs(word)
    return [pair for run in runs for pair in bigrams(run)] if runs else [word]


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """A light English stem (the plural rules of Harman's S-stemmer, then -ing, -ed, -ly); short words stay."""
    if len(word) > 4 and word.endswith("ies"):
        word = word[:-3] + "y"
    elif len(word) > 4 and word.endswith(("sses", "shes", "ches", "xes")):
        word = word[:-2]
    elif len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for suffix in ("ing", "ed", "ly"):
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            word = word[: -len(suffix)]
            break
    if len(word) > 4 and word[-1] == word[-2] and word[-1] not in "lsz":
        word = word[:-1]
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


def stems(text: str) -> list[str]:
    """Stems of all words but English stop words."""
    return [stem(word) for word in words(text) if word not in ENGLISH]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A query made ready: `terms` are distinct and in order, `expansions` say the same in another way."""

    text: str
    terms: tuple[str, ...]
    expansions: tuple[str, ...]
    match: str
    """FTS5 expression; empty when no term is left."""

    @property
    def stems(self) -> frozenset[str]:
        """Stems of terms and expansions."""
        return frozenset(stem(word) for part in (*self.terms, *self.expansions) for word in part.split())


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
    return Query(text=plain, terms=terms, expansions=expansions, match=_match(terms, expansions))


def _match(terms: Iterable[str], expansions: Iterable[str]) -> str:
    """Every term as a quoted string, joined by OR. An expansion of several words is a phrase."""
    return " OR ".join(dict.fromkeys(_quoted(part) for part in (*terms, *expansions)))


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
