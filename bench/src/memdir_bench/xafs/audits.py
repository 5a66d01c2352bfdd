"""Shortcuts that would answer without finding anything: what share of the questions each of them gets right."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from memdir_bench.words import STOP_WORDS
from memdir_bench.xafs.questions import Question, is_right, normalised
from memdir_bench.xafs.wording import VALUES

_K1: Final = 1.2
_B: Final = 0.75
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")


def audit(questions: Sequence[Question], files: Mapping[str, str]) -> dict[str, float]:
    """Shares by shortcut. `files`: path -> text."""
    sentences = [one.strip() for text in files.values() for one in _SENTENCE.split(text) if one.strip()]
    index = _Bm25([_words(sentence) for sentence in sentences])
    guesses = {kind: _most_frequent(pattern, sentences) for kind, pattern in VALUES.items()}
    found: Counter[str] = Counter()
    for question in questions:
        answer = normalised(question.answer)
        found["the question itself"] += answer in normalised(question.prompt)
        found["names of files"] += any(answer in normalised(path) for path in files)
        found["the most frequent value"] += is_right(guesses[question.kind], question.answer)
        best = index.best(_words(question.prompt))
        values = re.findall(VALUES[question.kind], sentences[best]) if best is not None else []
        found["BM25's nearest sentence"] += any(is_right(value, question.answer) for value in values[:1])
    names = ("the question itself", "names of files", "the most frequent value", "BM25's nearest sentence")
    return {name: round(found[name] / max(len(questions), 1), 4) for name in names}


def _most_frequent(pattern: str, sentences: Sequence[str]) -> str:
    counts = Counter(match for sentence in sentences for match in re.findall(pattern, sentence))
    return counts.most_common(1)[0][0] if counts else ""


def _words(text: str) -> list[str]:
    return [word for word in re.findall(r"\w+", text.casefold()) if word not in STOP_WORDS]


class _Bm25:
    """Okapi BM25 over sentences (Robertson and Zaragoza, 2009)."""

    def __init__(self, documents: Sequence[Sequence[str]]) -> None:
        self._lengths = [len(document) for document in documents]
        self._average = sum(self._lengths) / max(len(documents), 1)
        self._postings: dict[str, list[tuple[int, int]]] = {}
        for number, document in enumerate(documents):
            for word, count in Counter(document).items():
                self._postings.setdefault(word, []).append((number, count))

    def best(self, words: Sequence[str]) -> int | None:
        """The number of the best document."""
        scores: Counter[int] = Counter()
        total = len(self._lengths)
        for word in words:
            postings = self._postings.get(word, ())
            weight = math.log(1 + (total - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                norm = count + _K1 * (1 - _B + _B * self._lengths[number] / self._average)
                scores[number] += weight * count * (_K1 + 1) / norm  # type: ignore[assignment]
        return scores.most_common(1)[0][0] if scores else None
