"""The same text in many files takes one place: a licence in forty packages, a README that was copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from memdir.retrieval.candidates import Candidate
from memdir.retrieval.signals import passage_stems

ALIKE: Final = 0.85
"""Share of words (Jaccard) from which two passages say the same: licences that differ in a name and a year share .9."""
_LENGTHS: Final = 0.8
"""Passages of other lengths are not compared."""
WORDS_MIN: Final = 40
"""Different words of a passage; shorter ones are only taken for the same if they are: in a note one word tells them apart."""
LOOKED_AT_MAX: Final = 60
"""Of a ranking; each is compared with those before it that are kept."""


def without_copies(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The candidates without those that say the same as a better one in another file; that one counts the files (`alike`)."""
    kept: list[tuple[Candidate, frozenset[str], set[str]]] = []
    for candidate in ranked[:LOOKED_AT_MAX]:
        chunk = candidate.stored.chunk
        words = passage_stems("", chunk.text)
        same = next(
            (
                one
                for one in kept
                if one[0].stored.document_id != candidate.stored.document_id
                and _same(words, chunk.text, one[1], one[0].stored.chunk.text)
            ),
            None,
        )
        if same is None:
            kept.append((candidate, words, set()))
        else:
            same[2].add(candidate.stored.document_id)
    for candidate, _, others in kept:
        candidate.alike = len(others)
    return [candidate for candidate, _, _ in kept] + list(ranked[LOOKED_AT_MAX:])


def _same(words: frozenset[str], text: str, other_words: frozenset[str], other: str) -> bool:
    if text == other:
        return True
    few, many = sorted((len(words), len(other_words)))
    if few < WORDS_MIN or few < _LENGTHS * many:
        return False
    shared = len(words & other_words)
    return shared >= ALIKE * (len(words) + len(other_words) - shared)
