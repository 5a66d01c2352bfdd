"""The judge of "no word in common" is strict: it may call different words equal, never equal words different."""

from __future__ import annotations

import pytest

from memdir_bench.words import content_stems, shared_stems


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("running costs", "the cost of this"),
        ("Zoë's bakery", "a ZOE at the oven"),
        ("battery", "Batteries are empty"),
        ("photo", "three photographs"),
        ("stopped", "it stops"),
        ("measurement", "we measured it"),
    ],
)
def test_the_same_word_in_another_form_is_seen(query: str, text: str) -> None:
    assert shared_stems(query, text) != set()


@pytest.mark.parametrize(
    ("query", "text"), [("a loaf of bread", "the sourdough rose"), ("what is it", "what it is"), ("", "text")]
)
def test_different_words_and_stop_words_do_not_count(query: str, text: str) -> None:
    assert shared_stems(query, text) == set()


def test_words_of_other_scripts_are_words() -> None:
    assert content_stems("лиса и кабель") >= {"лиса"}
    assert shared_stems("積雪", "積雪") == {"積雪"}
