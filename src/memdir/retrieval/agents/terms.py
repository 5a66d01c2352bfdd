"""Words of memories and of queries: folded as FTS5's unicode61 does, stemmed by Porter's algorithm of 1980.

M. F. Porter, "An algorithm for suffix stripping", Program 14 (3), 1980. Runs of scripts without spaces count by pairs of
characters, as everywhere here; names in camelCase count whole and in parts. Stop words count in a memory's length and are never
looked for.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from memdir.retrieval.agents.common_words import EVERYDAY, WORK
from memdir.retrieval.agents.expansion import expand
from memdir.retrieval.agents.stems import known_stems, stem
from memdir.retrieval.agents.tools_asked import tools_asked
from memdir.store.text.passage_text import bigrams, name_parts, unspaced_runs
from memdir.store.text.stopwords import ENGLISH
from memdir.store.text.words import fold

_WORD: Final = re.compile(r"[^\W_]+")
_STOP: Final = ENGLISH
QUERY_WORDS_MAX: Final = 64
"""Different words of a query that are looked for; of more, the first ones."""
LONG_WORDS: Final = 12
"""A query of more different words is looked for without its everyday ones, and is judged sentence by sentence."""
_READ_WORDS_MAX: Final = 8 * QUERY_WORDS_MAX
_SENTENCE_END: Final = re.compile(r"(?<![.?!;])[.?!;]+\s+|\n+")
_TAG_WORDS_MAX: Final = 4


def words(text: str) -> list[str]:
    """Folded words in order, stop words too; behind them the parts of names in camelCase."""
    return _written(text) + [fold(part) for part in name_parts(text)]


def _written(text: str) -> list[str]:
    found: list[str] = _WORD.findall(fold(text))
    if not text.isascii() and unspaced_runs(text):
        found = [part for word in found for part in (_pairs(word) or [word])]
    return found


def _pairs(word: str) -> list[str]:
    return [pair for run in unspaced_runs(word) for pair in bigrams(run)]


def is_stop_word(word: str) -> bool:
    """Of a folded word."""
    return word in _STOP


def counted(content: str, tags: Iterable[str]) -> tuple[dict[str, int], int]:
    """How often each stem stands in a memory's text and tags, and how many words that are: stop words included, parts of names
    not, for |D| of BM25 is that of the text as it is written."""
    stems = known_stems()
    found: dict[str, int] = {}
    length = 0
    for text in (content, *tags):
        listed = _written(text)
        length += len(listed)
        for word in (*listed, *map(fold, name_parts(text))):
            if word not in _STOP:
                one = stems[word]
                found[one] = found.get(one, 0) + 1
    return found, length


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A word of a query: its stem, and the stems of what it abbreviates or is abbreviated to, or of tools of that kind."""

    word: str
    stems: tuple[str, ...]
    """The word's own first."""
    sentences: tuple[int, ...] = ()
    """In which of the query's it stands, ascending; its tags are the last one."""

    @property
    def is_everyday(self) -> bool:
        """Of a request rather than of what it is about."""
        return stem(self.word) in _stems_of(EVERYDAY)

    @property
    def is_of_work(self) -> bool:
        """Of any work on software."""
        return stem(self.word) in _stems_of(WORK)


@functools.cache
def _stems_of(listed: frozenset[str]) -> frozenset[str]:
    return frozenset(map(stem, listed))


def asked(query: str, tags: Sequence[str] = ()) -> list[Asked]:
    """The words that a query looks for; those of its tags count as words of it. Each stem once: the first word has it."""
    found: list[str] = []
    places: list[dict[int, None]] = []
    owner: dict[str, int] = {}
    fresh: list[tuple[str, ...]] = []
    tools = tools_asked(query)
    for sentence, word, following in _read(query, tags):
        own = owner.get(stem(word))
        if own is None and tools.get(word) == ():
            continue  # it says no more than that a tool is asked for
        if own is None:
            forms = (*expand(word, following), *tools.get(word, ()))
            stems = tuple(one for one in dict.fromkeys(map(stem, forms)) if one not in owner)
            own = len(found)
            owner.update(dict.fromkeys(stems, own))
            found.append(word)
            fresh.append(stems)
            places.append({})
        places[own][sentence] = None
    listed = [
        Asked(word=word, stems=stems, sentences=tuple(standing))
        for word, stems, standing in zip(found, fresh, places, strict=True)
    ]
    if len(listed) > LONG_WORDS:
        listed = [one for one in listed if not one.is_everyday] or listed
    return listed[:QUERY_WORDS_MAX]


def _read(query: str, tags: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Words that may be looked for, with the number of their sentence and the word behind them."""
    sentences = [words(text) for text in _SENTENCE_END.split(query)] + [[part for tag in tags for part in words(tag)]]
    pairs = (
        (number, *pair) for number, listed in enumerate(sentences) for pair in zip(listed, [*listed[1:], ""], strict=False)
    )
    return islice((told for told in pairs if told[1] not in _STOP), _READ_WORDS_MAX)


def tag_key(tag: str) -> str:
    """By what tags are compared: `Bug-Fix` and `bug fix` are the same tag."""
    return " ".join(words(tag)) or fold(tag).strip()


def tags_said(query: str, known: Iterable[str] | dict[str, object]) -> list[str]:
    """Tag keys among `known` whose words stand side by side in the query."""
    listed = words(query)[: 4 * QUERY_WORDS_MAX]
    runs: dict[str, None] = {}
    for size in range(1, _TAG_WORDS_MAX + 1):
        for at in range(len(listed) - size + 1):
            runs[" ".join(listed[at : at + size])] = None
    return [run for run in runs if run in known]
