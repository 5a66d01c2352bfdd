"""An index of pages in memory: Tantivy over passages, so that a long page is found by one of its parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import tantivy

from memdir.store.text.stopwords import STOP_WORDS

_WORD: Final = re.compile(r"\w+", re.UNICODE)
_WORDS_MAX: Final = 40
_HEAP_BYTES: Final = 64 << 20
_PASSAGE_CHARS: Final = 1200
_PASSAGES_A_RESULT: Final = 6
"""How many passages are looked at for each page that is wanted: several of one page come one after the other."""
_TITLE_BOOST: Final = 1.5
_COMMON: Final = frozenset().union(*STOP_WORDS.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`key` names what is found."""

    key: str
    title: str
    text: str


class LocalIndex:
    """Searched by any of the words of a question, stemmed as English; words that every page has do not count."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("key", stored=True, tokenizer_name="raw")
        builder.add_text_field("title", stored=True, tokenizer_name="en_stem")
        builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(_HEAP_BYTES, 1)
        self.count = 0
        for one in entries:
            for passage in _passages(one.text):
                writer.add_document(tantivy.Document(key=one.key, title=one.title, text=passage))
            self.count += 1
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, query: str, limit: int) -> list[tuple[Entry, str]]:
        """The best entries, each with its best passage as text, and the line of it that holds most of the words."""
        every = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_WORDS_MAX]
        words = [word for word in every if word not in _COMMON] or every
        if not words:
            return []
        parsed = self._index.parse_query(" ".join(words), ["title", "text"], field_boosts={"title": _TITLE_BOOST})
        searcher = self._index.searcher()
        found: dict[str, tuple[Entry, str]] = {}
        for _score, address in searcher.search(parsed, limit * _PASSAGES_A_RESULT).hits:
            document: Any = searcher.doc(address)
            key = document["key"][0]
            if key not in found:
                entry = Entry(key=key, title=document["title"][0], text=document["text"][0])
                found[key] = entry, snippet(entry.text, words)
        return list(found.values())[:limit]


def _passages(text: str) -> Iterator[str]:
    """Whole lines, together about so long."""
    kept: list[str] = []
    length = 0
    for line in text.split("\n"):
        kept.append(line)
        length += len(line) + 1
        if length >= _PASSAGE_CHARS:
            yield "\n".join(kept)
            kept, length = [], 0
    if length or not text:
        yield "\n".join(kept)


def stems(text: str) -> set[str]:
    """The words of three letters and more as they are compared: the beginning of plain ones, the whole of identifiers."""
    found = (word.lower() for word in _WORD.findall(text) if len(word) > 2)
    return {word if "_" in word or not word.isalpha() else word[:6] for word in found if word not in _COMMON}


def snippet(text: str, words: Iterable[str], max_chars: int = 300) -> str:
    """The line with most of the words, from the first of them on when it is long."""
    wanted = stems(" ".join(words))
    best, most = "", 0
    for line in text.split("\n"):
        count = len(stems(line) & wanted)
        if count > most:
            best, most = line.strip(), count
    best = best or text.strip()[:max_chars]
    if len(best) > max_chars:
        at = min((place for word in wanted if (place := best.lower().find(word)) >= 0), default=0)
        best = best[max(at - 60, 0) :][:max_chars]
    return best
