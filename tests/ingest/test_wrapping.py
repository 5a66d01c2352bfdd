"""Pages of prose come as sentences, and what is not prose stays as it stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.ingest.extractors.markup import markdown
from memdir.store.text.wrapping import by_sentence, unwrapped

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
    "entries of a curriculum vitae": """Oslo, Norway | marit@solberg.example | +47 912 34 567
EXPERIENCE
Head of Finance, Fjordkraft AS 2020 - present
Responsible for budget and audit; team of seven.
Controller, Telenor 2014 - 2020
Monthly closing for three subsidiaries, introduced rolling forecasts.
EDUCATION
MSc Accounting and Auditing, NHH Bergen 2009 - 2011
LANGUAGES
Norwegian, English, German""",
}


@pytest.mark.parametrize("page", NO_PROSE.values(), ids=NO_PROSE)
def test_what_is_no_prose_keeps_its_lines(page: str) -> None:
    assert unwrapped(page) == page


@given(st.text(alphabet="ab .!:\n\r\t-1", max_size=400))
def test_no_word_is_lost_or_moved(page: str) -> None:
    assert unwrapped(page).split() == page.split()


def test_line_ends_of_html_are_spaces_but_where_they_are_kept() -> None:
    page = """<p>Normal row updates write a new version
of the row to preserve <b>old
versions</b>. Then it ends.</p><pre>a
  b

c</pre><ul><li>one
two. Three.</li></ul><p>The rest of an open</p><pre>x
 y"""
    assert markdown(page).splitlines() == [
        "Normal row updates write a new version of the row to preserve **old versions**.",
        "Then it ends.", "", "```", "a", "  b", "", "c", "```", "", "- one two. Three.", "",
        "The rest of an open", "", "```", "x", " y", "```",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "See 2. 1. Is no item. It goes on.",
        "```\nA. B is here. C is there.\n```",
        "| A is. B is. |",
        "- A is. B is.",
        "# A is. B is.",
    ],
)
def test_no_sentence_becomes_what_it_is_not(text: str) -> None:
    assert by_sentence(text) == text


@given(st.text(alphabet="aB .!:\n#-1|`", max_size=400))
def test_by_sentence_no_word_is_lost_or_moved(text: str) -> None:
    assert by_sentence(text).split() == text.split()
