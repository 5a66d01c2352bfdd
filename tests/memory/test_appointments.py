"""What happens once, on a day that is named, is recent context until then."""

from __future__ import annotations

from datetime import date

import pytest

from memdir.memory.appointments import appointment_day
from memdir.memory.dates import ms_of
from memdir.memory.profile import profile
from memdir_bench.memory.judging import Store
from tests.memory.reading import read

SAID = date(2026, 11, 24)


@pytest.mark.parametrize(
    ("statement", "day"),
    [
        ("My op is on 4 December.", date(2026, 12, 4)),
        ("My wedding is on 12 June 2027.", date(2027, 6, 12)),
        ("Our flight leaves on 3 January.", date(2027, 1, 3)),
        ("My surgery is scheduled for 4 December.", date(2026, 12, 4)),
        ("The exam is on Friday.", date(2026, 11, 27)),
        ("I have an interview at Monzo on Thursday.", date(2026, 11, 26)),
        ("Farah is on leave 1–14 December.", date(2026, 12, 14)),
        ("I'm in Oslo 20–27 December", date(2026, 12, 27)),
        ("dentist 4 Dec 9:30", date(2026, 12, 4)),
        ("We move in on 12 December", date(2026, 12, 12)),
        ("We're having a baby, due 9 May.", date(2027, 5, 9)),
        ("Pay rent due 2026-12-01", date(2026, 12, 1)),
        ("The hearing is on 2026-12-09.", date(2026, 12, 9)),
        ("Meine OP ist am 4. Dezember.", date(2026, 12, 4)),
        ("Ich habe am Freitag eine Prüfung", date(2026, 11, 27)),
        ("Am Freitag habe ich eine Prüfung.", date(2026, 11, 27)),
        ("Am 20. Dezember fliege ich nach Oslo", date(2026, 12, 20)),
        ("Tengo una cita con el dentista el 4 de diciembre", date(2026, 12, 4)),
        ("J'ai rendez-vous le 4 décembre chez le dentiste", date(2026, 12, 4)),
    ],
)
def test_a_day_on_which_something_happens_once(statement: str, day: date) -> None:
    assert appointment_day(statement, SAID) == day


@pytest.mark.parametrize(
    "statement",
    [
        "My birthday is on 4 December.",
        "Our anniversary is 12 June.",
        "Bin day is Tuesday.",
        "I have yoga on Thursday",
        "Team meeting is on Tuesday",
        "The library closes on Sundays.",
        "Ana was born on 4 December 1985.",
        "Ana's date of birth is 4 December 1985.",
        "I've moved in on 4 December",
        "I met Sam on 3 May",
        "I have lived here since 4 December.",
        "Release 3.1 is from 4 December 2025",
        "Mein Geburtstag ist am 4. Dezember",
        "Am 4. Dezember habe ich Ana getroffen.",
        "I am vegetarian.",
    ],
)
def test_what_comes_again_or_is_over(statement: str) -> None:
    assert appointment_day(statement, SAID) is None


def test_an_appointment_is_recent_context_from_when_it_is_said_until_some_weeks_after_its_day() -> None:
    store = Store()
    op, nuts = "My op is on 4 May.", "I'm allergic to nuts."
    store.write("/memory/2026-11-24.md", f"{op}\n{nuts}\n", now_ms=ms_of(SAID))
    for day in (SAID, date(2027, 3, 1), date(2027, 5, 4), date(2027, 5, 20)):
        shown = profile(store.latest(), now_ms=ms_of(day))
        assert (shown.static_texts, shown.dynamic_texts) == ([nuts], [op])
    late = profile(store.latest(), now_ms=ms_of(date(2027, 8, 1)))
    assert (late.static_texts, late.dynamic_texts) == ([nuts], [])


def test_what_lasts_is_no_appointment_though_a_day_is_named() -> None:
    lines = ("Insurance: Admiral, renews 14 March", "I'm moving to Lisbon on 4 December", "Exam is on 4 May")
    found = read("---\ndate: 2026-11-24\n---\n" + "".join(f"- {line}\n" for line in lines))
    assert [one.kind for one in found] == ["static", "static", "dynamic"]


def test_a_diary_tells_what_is_to_come() -> None:
    entry = "Slept badly.\nThe exam is on Friday.\nDentist on 4 December at 9:30\nRained on 4 November."
    assert [(one.text, one.kind) for one in read(entry, "/memory/journal/2026-11-30.md")] == [
        ("The exam is on Friday.", "dynamic"),
        ("Dentist on 4 December at 9:30", "dynamic"),
    ]


def test_a_changelog_announces_nothing() -> None:
    entries = ("Oct 14, 2020: Support for tests", "13 March 2017: Wouter - unit test for sockets", "2016-08-11 Faster tests")
    assert all(appointment_day(entry, SAID) is None for entry in entries)
    assert appointment_day("4 Nov: dentist on 12 December", SAID) == date(2026, 12, 12)
