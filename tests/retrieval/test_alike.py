"""The same text in many files takes one place."""

from __future__ import annotations

import pytest

from memdir.retrieval.candidates import Candidate
from memdir.retrieval.near_duplicates import without_copies
from memdir.store.types import Chunk, StoredChunk

LICENCE = (
    "Copyright (c) {year} {name}. Permission is hereby granted, free of charge, to any person obtaining a copy of this "
    "software and associated documentation files, to deal in the software without restriction, including the rights to "
    "use, copy, modify, merge, publish, distribute, sublicense, and sell copies of it, and to permit persons to whom it is "
    "furnished to do so, subject to the following conditions: the above notice shall be included in all substantial portions. "
    "It is provided as is, with no warranty of any kind, express or implied, of merchantability or fitness for a purpose."
)


def candidate(number: int, document: str, text: str, score: float) -> Candidate:
    chunk = Chunk(ordinal=0, start_byte=0, end_byte=len(text), start_line=1, end_line=1, text=text, context="")
    stored = StoredChunk(id=number, document_id=document, path=f"/{document}", revision=1, updated_at_ms=0, chunk=chunk)
    return Candidate(stored=stored, lexical=0, static=0, dense=None, path=0, semantic=0, score=score)


@pytest.mark.promise("real.alike")
def test_a_licence_in_forty_packages_is_one_hit_that_counts_the_others() -> None:
    names = ("Ada", "Ben", "Carla", "Dora", "Emil")
    many = [candidate(n, f"p{n}", LICENCE.format(year=1990 + n, name=names[n % 5]), 1 - n / 100) for n in range(40)]
    other = candidate(99, "note", "The harbour master keeps the licence of the pilot boat in the blue cupboard.", 0.3)
    kept = without_copies([*many, other], 10)
    assert [(one.stored.path, one.alike) for one in kept] == [("/p0", 39), ("/note", 0)]


def test_short_lines_that_share_words_are_no_copies_and_equal_ones_are() -> None:
    ranked = [
        candidate(1, "a", "Ada likes green tea.", 0.9),
        candidate(2, "b", "Ada likes black tea.", 0.8),
        candidate(3, "c", "Ada likes green tea.", 0.7),
    ]
    assert [(one.stored.path, one.alike) for one in without_copies(ranked, 10)] == [("/a", 1), ("/b", 0)]


def test_what_a_file_says_twice_stays() -> None:
    ranked = [candidate(1, "a", "Ada likes green tea.", 0.9), candidate(2, "a", "Ada likes green tea.", 0.8)]
    assert len(without_copies(ranked, 10)) == 2
