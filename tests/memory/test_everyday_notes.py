"""Notes as people keep them by the way: a title that nothing marks, a talk with somebody, who has what now."""

from __future__ import annotations

from tests.memory.reading import facts, read


def test_a_first_line_alone_above_lines_is_the_heading_that_nothing_marks_as_one() -> None:
    talk = "1:1 with Helene, 23 Nov\n\n- she's fine with me dropping to 4 days from February\n- She's going on leave in April\n"
    assert [(one.subject, one.text) for one in read(talk, "/memory/notes.md")] == [
        ("helene", "Helene is fine with me dropping to 4 days from February"),
        ("helene", "Helene is going on leave in April"),
    ]
    trip = (
        "Trip planning - Japan March 2027\n\nHotel Gracery till 16th then Kyoto\nNadia doesn't eat raw fish\nbudget 4k each\n"
    )
    assert facts(trip, "/memory/notes.md") == [
        "Hotel Gracery till 16th then Kyoto", "Nadia doesn't eat raw fish", "budget 4k each",
    ]  # fmt: skip
    assert facts("I live in Porto\n\nbins on Tuesday\ncar: Golf\n", "/memory/notes.md")[0] == "I live in Porto"
    assert facts("Buy milk\n\ncall mum\nrenew passport\n", "/memory/notes.md") == ["call mum", "renew passport"]


def test_what_equals_something_in_a_note_is_remembered() -> None:
    said = "Bins: black tues\ndentist = Dr Amin, 0161 555 0192\nmy shoe size in EU = 42\n"
    assert "dentist = Dr Amin, 0161 555 0192" in facts(said, "/memory/notes.md")


def test_a_verb_that_begins_a_sentence_is_nobodys_name() -> None:
    said = "- Decided to stop doing retros on Fridays, moved to Monday mornings\n- Promoted Greta to senior\n"
    assert facts(said, "/memory/notes.md")[0] == "Decided to stop doing retros on Fridays, moved to Monday mornings"


def test_who_has_somebody_or_something_now_is_in_a_diary() -> None:
    said = (
        "# 2026-11-03\n\nGrandpa has a carer now, Lucia. Ana has two dogs now. We had soup, then we walked along the river.\n"
    )
    assert {"Grandpa has a carer now, Lucia.", "Ana has two dogs now."} <= set(facts(said))
