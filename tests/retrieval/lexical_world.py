"""A log of passages in memory, and exhaustive BM25 over it, to compare an index of words with."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from memdir.retrieval.hashes import key_of
from memdir.store.passages.log import IndexedPassage, ListedPassage, PassageEvent
from memdir.store.text.analysis import index_terms, query_terms
from memdir.store.types import Scope

WORDS: Final = [
    *("boiler", "pressure", "serve", "garden", "server", "deploy", "config", "kubernetes", "parse", "token", "walnut"),
    *("running", "runs", "ran", "über", "Müller", "café", "東京", "京都", "letter", "paper", "network", "machine", "learning"),
    *("parseConfigFile", "retry_backoff_s", "1.2.3"),
]


class FakeLog:
    """`store.passages.log.PassageLog` over two dictionaries, with a log that can be cut off."""

    def __init__(self) -> None:
        self.held: dict[int, tuple[int, IndexedPassage]] = {}
        """Container and passage by chunk id."""
        self.log: list[tuple[int, int, PassageEvent]] = []
        self._next_chunk = 1
        self._next_event = 1
        self.reads = 0
        """Passages whose text was read."""

    def _tell(self, container_id: int, kind: str, *, chunk_id: int | None = None, document_id: str | None = None) -> None:
        event = PassageEvent(kind=kind, chunk_id=chunk_id, document_id=document_id)
        self.log.append((self._next_event, container_id, event))
        self._next_event += 1

    def put(self, container_id: int, document_id: str, path: str | None, texts: Sequence[tuple[str, str]]) -> None:
        """Passages (text and context) in place of a document's earlier ones; those that stay the same keep their ids."""
        old = {
            (p.text, p.context): p.chunk_id for c, p in self.held.values() if p.document_id == document_id and c == container_id
        }
        for text, context in dict.fromkeys(texts):
            if old.pop((text, context), None) is None:
                chunk_id, self._next_chunk = self._next_chunk, self._next_chunk + 1
                digest = key_of(f"{context}\0{text}")
                self.held[chunk_id] = (
                    container_id,
                    IndexedPassage(
                        chunk_id=chunk_id, document_id=document_id, path=path, text=text, context=context, digest=digest
                    ),
                )
                self._tell(container_id, "add", chunk_id=chunk_id)
                self._tell(container_id, "add", chunk_id=chunk_id)
        for chunk_id in old.values():
            del self.held[chunk_id]
            self._tell(container_id, "drop", chunk_id=chunk_id)

    def delete(self, container_id: int, document_id: str) -> None:
        self.put(container_id, document_id, None, [])

    def move(self, container_id: int, document_id: str, path: str | None) -> None:
        for chunk_id, (own, passage) in self.held.items():
            if own == container_id and passage.document_id == document_id:
                self.held[chunk_id] = (own, replace(passage, path=path))
        self._tell(container_id, "path", document_id=document_id)

    def hand_over(self, container_id: int, document_id: str, to: int) -> None:
        """The document goes to another container."""
        for chunk_id, (own, passage) in list(self.held.items()):
            if own == container_id and passage.document_id == document_id:
                self._tell(container_id, "drop", chunk_id=chunk_id)
                self.held[chunk_id] = (to, passage)
                self._tell(to, "add", chunk_id=chunk_id)

    def forget_events(self) -> None:
        """The log no longer reaches back."""
        self.log.clear()

    def of(self, container_id: int) -> list[IndexedPassage]:
        return [passage for _, (own, passage) in sorted(self.held.items()) if own == container_id]

    # The port.

    def bounds(self) -> tuple[int, int]:
        return (self.log[0][0] if self.log else self._next_event), self._next_event - 1

    def events(self, container_id: int, *, after: int, until: int) -> Sequence[PassageEvent]:
        return [event for number, own, event in self.log if own == container_id and after < number <= until]

    def count(self, container_id: int, *, most: int = -1) -> int:
        held = len(self.of(container_id))
        return held if most < 0 else min(most, held)

    def passages(self, container_id: int, chunk_ids: Sequence[int]) -> Sequence[IndexedPassage]:
        self.reads += len(chunk_ids)
        return [passage for passage in self.of(container_id) if passage.chunk_id in set(chunk_ids)]

    def listing(self, container_id: int, *, after: int, limit: int) -> Sequence[ListedPassage]:
        listed = [
            ListedPassage(chunk_id=p.chunk_id, document_id=p.document_id, path=p.path, digest=p.digest)
            for p in self.of(container_id)
            if p.chunk_id > after
        ]
        return listed[:limit]

    def paths(self, document_ids: Sequence[str]) -> dict[str, str | None]:
        return {p.document_id: p.path for _, p in self.held.values() if p.document_id in document_ids}


@dataclass(slots=True, kw_only=True)
class _Counted:
    passage: IndexedPassage
    text: list[str]
    context: list[str]

    @property
    def length(self) -> int:
        return len(self.text) + len(self.context)

    def frequency(self, words: Sequence[tuple[str, ...]]) -> float:
        """How often `words` are there, one behind the other; of one word its commonest form."""
        if len(words) == 1:
            return max(self.text.count(form) + self.context.count(form) for form in words[0])
        total = 0
        for terms in (self.text, self.context):
            for first in range(len(terms) - len(words) + 1):
                total += all(terms[first + at] in forms for at, forms in enumerate(words))
        return total


def exhaustive(log: FakeLog, scope: Scope, phrases: Sequence[str], limit: int) -> list[tuple[int, float]]:
    """BM25 of every passage of the container, written down as in the book; then the scope, the order and the cut."""
    every = [
        _Counted(
            passage=passage, text=index_terms(passage.text), context=index_terms(passage.context) if passage.context else []
        )
        for passage in log.of(scope.container_id)
    ]
    if not every:
        return []
    wanted: dict[tuple[tuple[str, ...], ...], None] = {}
    for phrase in phrases:
        words = query_terms(phrase)
        if " " in phrase and words:
            wanted[tuple(words)] = None
        else:
            wanted.update(((word,), None) for word in words)
    mean = sum(one.length for one in every) / len(every)
    scores = dict.fromkeys((one.passage.chunk_id for one in every), 0.0)
    for words in wanted:
        frequencies = [one.frequency(words) for one in every]
        held = sum(frequency > 0 for frequency in frequencies)
        idf = math.log(1 + (len(every) - held + 0.5) / (held + 0.5))
        for one, frequency in zip(every, frequencies, strict=True):
            norm = 1.2 * (0.25 + 0.75 * one.length / mean)
            scores[one.passage.chunk_id] += idf * frequency * 2.2 / (frequency + norm)
    found = [(one, scores[one.passage.chunk_id]) for one in every if scores[one.passage.chunk_id] > 0]
    found = [item for item in found if inside(item[0].passage, scope)]
    found.sort(key=lambda item: (-round(item[1], 9), (item[0].passage.path or "").encode(), item[0].passage.chunk_id))
    return [(one.passage.chunk_id, score) for one, score in found[:limit]]


def inside(passage: IndexedPassage, scope: Scope) -> bool:
    if scope.chosen is not None and passage.document_id not in scope.chosen:
        return False
    if scope.exact:
        return passage.path == scope.folder
    return scope.folder == "/" or (passage.path or "").startswith(scope.folder.rstrip("/") + "/")


def some_text(rng: random.Random, most: int = 25) -> str:
    return " ".join(WORDS[min(int(rng.expovariate(0.15)), len(WORDS) - 1)] for _ in range(rng.randrange(1, most)))
