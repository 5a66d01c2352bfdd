"""Sentences end where they end, whatever stands before the stop."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.extract import extract
from memdir.retrieval.units import units_of
from memdir.store.text.sentences import sentences


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("Ask Dr. Okafor. He knows.", 2),
        ("J. R. Smith came. I did too.", 2),
        ("Am 3. Juni kommt er. Danach nicht.", 2),
        ("Es gibt z. B. Äpfel, u.a. rote. Gut.", 2),
        ("No. I did not. See No. 5 for more.", 3),
        ("Use e.g. this (i.e. that). Done.", 2),
        ("Version 1.2.3 is out. Get it!", 2),
        ("Tom Harris Jr. has the key. We met at 5 p.m. in Oslo.", 2),
        ("He has 12. The rest is mine.", 2),
        ("Wait… what? Yes.", 2),
        ("これは本です。次の文。", 2),
        ("A paragraph without an end\n\nAnd another.", 2),
        ("1. First item", 1),
    ],
)
def test_a_text_has_its_sentences(text: str, count: int) -> None:
    assert len(list(sentences(text))) == count


@given(st.text(alphabet="aB1. \n!?。…)Dr", max_size=60))
def test_sentences_lie_in_order_and_leave_out_white_space_only(text: str) -> None:
    position = 0
    for start, end in sentences(text):
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip() != ""
        position = end
    assert not text[position:].strip()


def test_a_fact_about_a_person_with_a_title_is_remembered_whole() -> None:
    text = "# Health\n\nMy dentist is Dr. Okafor in Mill Street. She always wants cash.\n"
    said = [candidate.text for candidate in extract(text, "/user.md", byte_at=lambda place: place)]
    assert said == ["My dentist is Dr. Okafor in Mill Street.", "Dr. Okafor always wants cash."]


def test_a_long_line_is_not_taken_apart_after_a_title() -> None:
    text = "Questions about the kiln go to Ms. O'Connell on weekdays. " + "The rest of this line is there to make it long. " * 5
    units = units_of(text)
    assert text[units[0].start : units[0].end] == "Questions about the kiln go to Ms. O'Connell on weekdays."


def test_a_row_of_dots_takes_no_longer_than_other_text() -> None:
    """Of 100,000 it took minutes: each was taken for the beginning of the row."""
    text = "." * 100_000 + "x and one. Two"
    assert [text[first:last][-5:] for first, last in sentences(text)] == [" one.", "Two"]
