"""Since when a statement holds: what its words, its line, and its file's name say; and who "she" is."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.dates import DAY_MS, day_of, ms_of, since
from memdir.memory.extract import extract
from memdir.memory.journals import Journal, named_by
from memdir.memory.pronouns import resolved

SAID = date(2026, 11, 25)  # a Wednesday


@pytest.mark.parametrize(
    ("statement", "day"),
    [
        ("I moved to Lisbon in May.", date(2026, 5, 1)),
        ("I have lived in Porto since March 2025.", date(2025, 3, 1)),
        ("On 3 March I joined Tessera.", date(2026, 3, 3)),
        ("On December 3rd I joined Tessera.", date(2025, 12, 3)),
        ("I joined Tessera last Monday.", date(2026, 11, 23)),
        ("I moved two years ago.", date(2024, 11, 25)),
        ("Yesterday I moved to Graz.", date(2026, 11, 24)),
        ("In 2024 I moved to Graz.", date(2024, 1, 1)),
        ("I moved to Graz last month.", date(2026, 10, 1)),
        ("I moved to Graz last year.", date(2025, 1, 1)),
        ("Since 2026-02-01 I live in Graz.", date(2026, 2, 1)),
        ("I am moving to Graz in May.", SAID),  # the next one
        ("I will join Tessera on 3 March.", SAID),
        ("I joined Tessera on 3 March 2027.", SAID),  # a day to come begins nothing yet
        ("I may move.", SAID),
        ("We march on.", SAID),
        ("On 31 February I joined.", SAID),
    ],
)
def test_a_statement_holds_from_the_day_that_it_names(statement: str, day: date) -> None:
    assert since(statement, SAID) == day


def test_a_date_that_a_statement_is_about_is_not_since_when_it_holds() -> None:
    (fact,) = extract("- The deadline of Heron is 3 March 2020\n", "/memory/2026-11-25.md", byte_at=int)
    assert fact.valid_from_ms == fact.said_ms == ms_of(SAID)


@given(st.text(max_size=80), st.dates(min_value=date(1000, 1, 1)))
def test_nothing_holds_from_a_day_after_it_was_said(statement: str, said: date) -> None:
    assert since(statement, said) <= said


def test_a_journal_dates_what_stands_below_a_day() -> None:
    text = (
        "# Diary\n\n## 2026-03-01\nPorto.\n### evening\nRain.\n## Notes\nfree\n- 2026-04-01: moved\n- other\n\n"
        "Monday, 2 May 2026\nhello\n\nMay 5, 2026: x\ny\n"
    )
    journal = Journal(text)
    days = {
        "Porto": date(2026, 3, 1), "Rain": date(2026, 3, 1), "free": None, "moved": date(2026, 4, 1), "other": None,
        "hello": date(2026, 5, 2), ": x": date(2026, 5, 5), "\ny\n": date(2026, 5, 2),
    }  # fmt: skip
    assert {word: journal.day_at(text.index(word)) for word in days} == days


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("/memory/2026-03-01.md", date(2026, 3, 1)), ("/memory/20260301 trip.md", date(2026, 3, 1)),
        ("/memory/2026/03/01.md", date(2026, 3, 1)), ("/memory/IMG_99999999.md", None), ("/memory/2026-13-01.md", None),
        ("/memory/me.md", None),
    ],
)  # fmt: skip
def test_a_file_s_name_tells_its_day(path: str, day: date | None) -> None:
    assert named_by(path) == day


def test_weekdays_in_a_note_of_a_week_are_its_days() -> None:
    text = "# Week 47\n\n## Mon\n- gym 45 min\n\n**Wednesday**\n- Priti is off sick\n\n## Plans\n- more sleep\n"
    for path in ("/memory/2026-W47.md", "/memory/weeks/2026w47.md"):
        found = {one.text: one for one in extract(text, path, byte_at=lambda at: at, written_ms=ms_of(date(2026, 12, 9)))}
        gym = next(one for said, one in found.items() if "gym" in said)
        assert (gym.kind, gym.said_ms) == ("dynamic", ms_of(date(2026, 11, 16)))
        assert found["Priti is off sick"].said_ms == ms_of(date(2026, 11, 18))
    text = "# KW 46\n## Freitag\nA.\n# KW 47\n## Freitag\nB.\n# Week 50\n## Sat\nC.\n"
    several = Journal(text, date(2026, 12, 1))
    assert several.day_at(text.index("A.")) == date(2026, 11, 13)
    assert several.day_at(text.index("B.")) == date(2026, 11, 20)
    assert several.day_at(text.index("C.")) == date(2025, 12, 13)  # the week 50 that was
    plan = "# Couch to 5k\n\n## Week 1\n### Monday\nRun.\n## Week 9\n### Monday\nRun far.\n"
    assert Journal(plan, date(2026, 12, 1)).day_at(plan.index("Run far")) is None
    assert Journal("# Week 53, 2026\n## Fri\nA\n").day_at(25) == date(2027, 1, 1)
    assert Journal("# Week 60\n## Fri\nA\n", date(2026, 12, 1)).day_at(20) is None
    assert Journal("# Meals\n## Monday\nCurry\n", date(2026, 12, 1)).day_at(22) is None
    assert named_by("/memory/2026-W99.md") is None


def test_the_first_writing_is_of_the_day_in_the_front_matter_and_a_later_one_is_not() -> None:
    text = "---\ncreated: 2024-02-03\n---\n- I live in Porto\n"
    first = extract(text, "/memory/me.md", byte_at=int, written_ms=ms_of(SAID))
    later = extract(text, "/memory/me.md", byte_at=int, written_ms=ms_of(SAID), is_first_writing=False)
    assert [day_of(one.said_ms or 0) for one in (*first, *later)] == [date(2024, 2, 3), SAID]


def test_a_statement_of_the_day_on_which_it_is_written_has_its_time() -> None:
    noon = ms_of(SAID) + DAY_MS // 2
    text = f"# {SAID}\n- I live in Porto\n# {SAID - timedelta(days=1)}\n- I work at Nexia\n"
    found = {one.text: one.said_ms for one in extract(text, "/memory/journal.md", byte_at=int, written_ms=noon)}
    assert found == {"I live in Porto": noon, "I work at Nexia": ms_of(SAID) - DAY_MS}


@pytest.mark.parametrize(
    ("said", "goes_on", "found"),
    [
        (["Ana Ruiz works at Tessera.", "She lives in Ghent."], [False, True], "Ana Ruiz lives in Ghent."),
        (["My wife is Ines.", "Her birthday is 3 May."], [False, True], "Ines's birthday is 3 May."),
        (["My wife is Ines.", "He lives in Ghent."], [False, True], "He lives in Ghent."),
        (["Ana Ruiz works at Tessera.", "It rained.", "She lives in Ghent."], [False, True, True], "She lives in Ghent."),
        (["Ana Ruiz works at Tessera.", "She lives in Ghent."], [False, False], "She lives in Ghent."),
        (["The report is done.", "She lives in Ghent."], [False, True], "She lives in Ghent."),
        (["Ana Ruiz works at Tessera.", "She likes tea.", "He lives in Ghent."], [False, True, True], "He lives in Ghent."),
    ],
)
def test_a_pronoun_is_whom_the_sentence_before_names(said: list[str], goes_on: list[bool], found: str) -> None:
    assert resolved(said, goes_on=goes_on)[-1] == found


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("Hotel: Nohga, 13–18 Dec, conf. 8837", date(2026, 11, 29)),
        ("Flights: LH716 on 12 Dec", date(2026, 11, 29)),
        ("Lives in Porto since 12 December", date(2025, 12, 12)),
        ("Sold the Golf on 12 December", date(2025, 12, 12)),
        ("Birthday party 14 Nov", date(2026, 11, 14)),
    ],
)
def test_a_day_without_a_year_is_the_nearest_unless_it_is_told_as_past(text: str, day: date) -> None:
    """What is to come holds from when it was said."""
    assert since(text, date(2026, 11, 29)) == day
