"""An index of pages in memory, for folders and workspaces: Tantivy, with titles counting more than text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import tantivy

_WORD: Final = re.compile(r"\w+", re.UNICODE)
_WORDS_MAX: Final = 40
_HEAP_BYTES: Final = 64 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """`key` names what is found."""

    key: str
    title: str
    text: str


class LocalIndex:
    """Searched by any of the words of a question, stemmed as English."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        builder = tantivy.SchemaBuilder()
        builder.add_text_field("key", stored=True, tokenizer_name="raw")
        builder.add_text_field("title", stored=True, tokenizer_name="en_stem")
        builder.add_text_field("text", stored=True, tokenizer_name="en_stem")
        self._index = tantivy.Index(builder.build())
        writer = self._index.writer(_HEAP_BYTES, 1)
        self.count = 0
        for one in entries:
            writer.add_document(tantivy.Document(key=one.key, title=one.title, text=one.text))
            self.count += 1
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def search(self, query: str, limit: int) -> list[tuple[Entry, str]]:
        """The best entries with the lines of each that hold most of the words."""
        words = list(dict.fromkeys(word.lower() for word in _WORD.findall(query)))[:_WORDS_MAX]
        if not words:
            return []
        parsed = self._index.parse_query(" ".join(words), ["title", "text"], field_boosts={"title": 2.0})
        searcher = self._index.searcher()
        found = []
        for _score, address in searcher.search(parsed, limit).hits:
            document: Any = searcher.doc(address)
            entry = Entry(key=document["key"][0], title=document["title"][0], text=document["text"][0])
            found.append((entry, snippet(entry.text, words)))
        return found


def snippet(text: str, words: Iterable[str], max_chars: int = 300) -> str:
    """The line with most of the words, from the first of them on when it is long."""
    wanted = {word.lower()[:6] for word in words if len(word) > 2}
    best, most = "", 0
    for line in text.split("\n"):
        count = len({word[:6] for word in _WORD.findall(line.lower())} & wanted)
        if count > most:
            best, most = line.strip(), count
    best = best or text.strip()[:max_chars]
    if len(best) > max_chars:
        at = min((place for word in wanted if (place := best.lower().find(word)) >= 0), default=0)
        best = best[max(at - 60, 0) :][:max_chars]
    return best
