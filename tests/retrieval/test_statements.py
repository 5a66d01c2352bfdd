"""What stands under what, and which lines are printed for it."""

from __future__ import annotations

import numpy as np
import pytest

from memdir.retrieval import lines
from memdir.retrieval.statements import statements_of
from memdir.retrieval.units import units_of
from memdir.retrieval.words import prepare


def printed(text: str, query: str) -> str:
    """The lines that words alone choose."""
    units = units_of(text)
    first, last = lines.choose(text, units, prepare(query), np.zeros(len(units), dtype=np.float32))
    return text[units[first].start : units[last].end]


def said(text: str) -> list[str]:
    return [text[one.start : one.end] for one in statements_of(text, units_of(text))]


def test_wrapped_sentences_are_found_and_lists_of_facts_are_not_joined() -> None:
    wrapped = (
        "The boat was late again because of the fog. Ms.\nVarga waited at the pier until five in the evening, and\n"
        "then she went home. Nobody called her about it."
    )
    assert [" ".join(one.split()) for one in said(wrapped)] == [
        "The boat was late again because of the fog.",
        "Ms. Varga waited at the pier until five in the evening, and then she went home.",
        "Nobody called her about it.",
    ]
    facts = "north boathouse, the temperature: 19 degrees\nupper archive by the road, door code: 1231\nold mill: 12 people\n"
    assert said(facts) == facts.strip().split("\n")


def test_rows_of_keys_and_values_are_not_joined_though_they_are_full_and_a_title_ends_in_a_stop() -> None:
    rows = (
        "garden observatory C, door code: 2475\nnorth darkroom C, inspection: 27 January\n"
        "south darkroom C, contact: Prof. Lindqvist\nsouth greenhouse C, contact: Pavel Novak\n"
    )
    assert said(rows) == rows.strip().split("\n")


def test_a_year_at_the_beginning_of_a_wrapped_line_is_no_number_of_a_list() -> None:
    text = (
        "The minutes of the last session were accepted without any changes. The\n"
        "door code of the village smithy has been changed by the board and is\n"
        "8603. Nobody remembers who planted the row of poplars along the road.\n"
    )
    assert "is\n8603." in said(text)[1]


def test_where_the_vectors_hardly_differ_words_decide() -> None:
    text = (
        "一週間ずっと雨でした。大家さんはElysium 8 Cに80277\n"
        "円を求めています。一週間ずっと雨でした。大家さんはMeridian 1 Cに49493\n"
        "円を求めています。そのあと岸に沿って歩いて帰りました。大家さんはFenix 9 Cに25345\n円を求めています。\n"
    )
    units = units_of(text)
    cosines = np.array([0.75, 0.74, 0.81, 0.80], dtype=np.float32)
    first, last = lines.choose(text, units, prepare("大家さんはElysium 8 Cにいくら求めていますか"), cosines)
    assert "80277" in text[units[first].start : units[last].end]


@pytest.mark.parametrize(
    ("text", "query", "answer"),
    [
        (
            "## Old kiln\n\nHeated twice.\nRent: 90 euros.\n\n## New kiln\n\nRent: 70 euros.\n",
            "rent of the new kiln",
            "70 euros",
        ),
        ("Ines: And the kiln, what is the code?\nKurt: That is 4411.\nInes: Fine.\n", "kiln code", "4411"),
        ("* stone cellar\n    * damp\n    * code: 7777\n* red barn\n    * code: 8888\n", "code of the red barn", "8888"),
        ("old_mill:\n  rent: 5\n  code: 6\nnew_mill:\n  rent: 7\n  code: 8\n", "rent new mill", "7"),
        ("[old_mill]\nrent = 5\n\n[new_mill]\nrent = 7\n", "rent new mill", "7"),
        ("def old_rate(x):\n    rate = 3\n\ndef new_rate(x):\n    y = x\n    rate = 4\n", "new rate", "rate = 4"),
        ("| place | code |\n| --- | --- |\n| barn | 12 |\n| mill | 34 |\n", "mill code", "34"),
        ("> When does the ferry go?\n\nAt 7:40 from pier 3.\n\n> And back?\n\nAt nine.\n", "when does the ferry go", "7:40"),
    ],
)
def test_the_answer_below_what_was_asked_for_is_printed(text: str, query: str, answer: str) -> None:
    assert answer in printed(text, query)


def test_a_title_with_a_rule_below_it_is_a_heading_and_the_rule_no_answer() -> None:
    for text in (
        "Old kiln\n--------\n\nHeated twice.\n\nNew kiln\n--------\n\nFired at 1,240 degrees.\n",
        "========\nOld kiln\n========\n\nHeated twice.\n\n========\nNew kiln\n========\n\nFired at 1,240 degrees.\n",
    ):
        assert said(text) == ["Old kiln", "Heated twice.", "New kiln", "Fired at 1,240 degrees."]
        assert printed(text, "how hot is the new kiln").endswith("Fired at 1,240 degrees.")
    assert said("----\n----\nText\n") == ["----", "----", "Text"]


@pytest.mark.parametrize("mark", ['"""', "```", "...", ":::", "'''"])
def test_what_closes_a_docstring_or_a_fence_is_no_rule_below_a_title(mark: str) -> None:
    text = f"{mark}\nFired at 1,240 degrees.\n{mark}\n\nrate = 4\n"
    found = statements_of(text, units_of(text))
    assert not any(one.heading for one in found), [text[one.start : one.end] for one in found if one.heading]


def test_code_and_references_in_a_wrapped_sentence_are_words_of_it() -> None:
    text = (
        "We have added a middleware to provide easy protection against `clickjacking\n"
        "<https://en.wikipedia.org/wiki/Clickjacking>`_ using the ``X-Frame-Options``\n"
        "header. However, if a developer relies on ``is_safe_url()`` to\n"
        "provide safe redirect targets and puts such a URL into a link, they could\n"
        "suffer from an attack.\n"
    )
    assert [one.split()[-1] for one in said(text)] == ["header.", "attack."]


def test_a_word_in_another_inflection_chooses_its_line() -> None:
    text = "Das Wetter ist in der Stadt nicht gut.\nDie Häuser am See wurden von uns verkauft.\nDer Zug ist da.\n"
    assert printed(text, "Haus") == "Die Häuser am See wurden von uns verkauft."


def test_long_answers_are_bounded() -> None:
    text = "rates:\n" + "".join(f"  option_{number}: {number}\n" for number in range(40))
    assert printed(text, "rates").count("\n") < lines.BLOCK_LINES_MAX
