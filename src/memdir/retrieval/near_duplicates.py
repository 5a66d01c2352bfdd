"""The same text in many files takes one place: a licence in forty packages, a README that was copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.retrieval.candidates import Candidate
from memdir.retrieval.signals import text_stems

ALIKE: Final = 0.85
"""Share of words (Jaccard) from which two passages say the same: licences that differ in a name and a year share .9."""
_LENGTHS: Final = 0.8
"""Passages of other lengths are not compared."""
WORDS_MIN: Final = 40
"""Different words of a passage; shorter ones are only taken for the same if they are: in a note one word tells them apart."""
LOOKED_AT_MAX: Final = 60
"""Of a ranking; each is compared with those before it that are kept."""


def without_copies(ranked: Sequence[Candidate], limit: int) -> list[Candidate]:
    """The candidates without those that say the same as one of the best `limit` in another file; that one counts the files
    (`alike`)."""
    shown: list[tuple[Candidate, frozenset[str], set[str]]] = []
    rest: list[Candidate] = []
    for candidate in ranked[:LOOKED_AT_MAX]:
        text = candidate.stored.chunk.text
        words = text_stems(text)
        document = candidate.stored.document_id
        same = next(
            (
                files
                for one, its_words, files in shown
                if one.stored.document_id != document and _same(words, text, its_words, one.stored.chunk.text)
            ),
            None,
        )
        if same is not None:
            same.add(document)
        elif len(shown) < limit:
            shown.append((candidate, words, set()))
        else:
            rest.append(candidate)
    for candidate, _, files in shown:
        candidate.alike = len(files)
    return [*(candidate for candidate, _, _ in shown), *rest, *ranked[LOOKED_AT_MAX:]]


def _same(words: frozenset[str], text: str, other_words: frozenset[str], other: str) -> bool:
    few, many = len(words), len(other_words)
    if few > many:
        few, many = many, few
    if few < _LENGTHS * many:
        return False  # asked hundreds of times in a search, and nearly always the answer
    if few < WORDS_MIN:
        return text == other
    shared = len(words & other_words)
    return shared >= ALIKE * (few + many - shared)
