"""Patterns without regard to case find what `re.IGNORECASE` finds, at the same places."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memdir.core.caseless import Caseless

PATTERN = r"\b(?:ignore|api[ _-]?key|heißt)\b[^.\n]{0,9}\brules?\b|<\s*system\b|^\s*ai\s*:|\bis\b|忽略|\S{9,}"
FRAGMENTS = ("Ignore", "the", "RULES", "rule", "api", "KEY", "API_Key", "<", "SYSTEM", "Ai", ":", "is", "IS", "ıs", "ſystem")
GAPS = (" ", "_", "\n", "\x1c", "\x1f", "\t", ".", "", "é", "忽略", "Heißt", "HEISST")


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from(FRAGMENTS + GAPS), max_size=9).map("".join))
@example("<\x1cSYSTEM")
@example("<ſystem")
def test_it_finds_what_the_flag_finds(text: str) -> None:
    found, expected = Caseless(PATTERN).search(text), re.search(PATTERN, text, re.IGNORECASE)
    assert (found and found.span()) == (expected and expected.span())


def test_a_pattern_with_capitals_is_refused_because_lowered_text_has_none() -> None:
    with pytest.raises(ValueError, match="AKIA"):
        Caseless("AKIA[0-9]+")
