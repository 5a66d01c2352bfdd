"""Pages of prose come as sentences, and what is not prose stays as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.store.text.wrapping import unwrapped

PROSE = """The tender of Blue Harbor was opened on Monday, and of the four offers two were late. Blue
Harbor has to be handed over in June. Odile Iversen, who is responsible for it, asked Blue
Harbor's engineer for another week to look at the drawings. Nobody objected to that then.
The harbour master was absent"""


def test_a_name_that_was_broken_over_two_lines_is_one_again_and_each_sentence_has_a_line() -> None:
    assert unwrapped(PROSE).split("\n") == [
        "The tender of Blue Harbor was opened on Monday, and of the four offers two were late.",
        "Blue Harbor has to be handed over in June.",
        "Odile Iversen, who is responsible for it, asked Blue Harbor's engineer for another week to look at the drawings.",
        "Nobody objected to that then.",
        "The harbour master was absent",
    ]


NO_PROSE = {
    "heading": """3.2 Distances
The distances between the posts were measured again by two people on foot, and they agree.""",
    "items": """- the first item of a list that goes on to the very end of its line and no further than
- the second item, which is as long as the one before it, and so it is no rest of that""",
    "code": """modb1 <- glm(yb1 ~ x, family = binomial(link = 'probit'), data = observations, weights)
modb2 <- glm(yb2 ~ x, family = binomial(link = 'probit'), data = observations, weights)""",
    "table": """Lisbon 2021 1,204 17.3 88 4.1 Porto 2021 990 16.1 71 3.9 Faro 2021 410 18.0 60 2.2 12
Lisbon 2022 1,310 17.9 91 4.3 Porto 2022 981 16.8 70 3.7 Faro 2022 422 18.4 63 2.4 13""",
    "contents": """Introduction to the history of the harbour and of its four basins ................... 12
The quays, their builders, and what is left of either of them today ................. 48""",
    "address": "Ana Ruiz\nRua do Sol 4\n4000 Porto\nPortugal",
}


@pytest.mark.parametrize("page", NO_PROSE.values(), ids=NO_PROSE)
def test_what_is_no_prose_keeps_its_lines(page: str) -> None:
    assert unwrapped(page) == page


@given(st.text(alphabet="ab .!:\n\r\t-1", max_size=400))
def test_no_word_is_lost_or_moved(page: str) -> None:
    assert unwrapped(page).split() == page.split()
