"""What is planned is known, and changes nothing until it has come true."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.dates import is_planned, ms_of, since
from memdir.memory.profile import profile
from memdir_bench.memory.judging import DAY_MS, Store


def latest(*notes: str) -> list[str]:
    store = Store()
    for number, note in enumerate(notes):
        store.write(f"/memory/{number}/notes.md", note, now_ms=number * DAY_MS)
    return [one.candidate.text for one in store.latest()]


@pytest.mark.promise("facts.plans")
@pytest.mark.parametrize(
    ("now", "plan"),
    [
        ("I live in Porto.", "I'm moving to Braga in March."),
        ("I live in Porto.", "Next spring I'm relocating to Ghent for a year."),
        ("I live in Porto.", "In two weeks I'm moving to Lisbon."),
        ("I live in Porto.", "I'm moving to Lisbon on 3 January."),
        ("I live in Porto.", "Tomorrow I'm moving to Lisbon."),
        ("I work at Nexia.", "I'm starting at Tessera on Monday."),
        ("I work at Nexia.", "Next month I start at Tessera."),
        ("I work at Nexia.", "My last day at Nexia is 31 January."),
        ("I work at Nexia.", "From January I work at Tessera."),
        ("Ana works at Nexia.", "Ana is joining Tessera next week."),
        ("My sister lives in Boston.", "My sister is moving to Denver next summer."),
        ("My editor is Vim.", "I'm switching to Helix next week."),
        ("My car is a Golf.", "I'm selling the Golf next week."),
        ("Alice is our tech lead.", "Bob is taking over as tech lead in February."),
        ("Ich arbeite bei Nexia.", "Ab Januar arbeite ich bei Tessera."),
        ("Ich wohne in Graz.", "Ich ziehe im März nach Wien."),
        ("Vivo en Sevilla.", "El mes que viene me mudo a Madrid."),
        ("J'habite à Lyon.", "Je déménage à Paris en mars."),
    ],
)
def test_a_plan_is_remembered_beside_what_holds(now: str, plan: str) -> None:
    assert latest(now, plan) == [now, plan]
    assert latest(plan, now) == [plan, now]
    for note in (f"- {now}\n- {plan}\n", f"- {plan}\n- {now}\n"):
        assert sorted(latest(note)) == sorted([now, plan])


@pytest.mark.promise("facts.plans")
@pytest.mark.parametrize(
    "done",
    [
        "I'm moving to Braga.",
        "I moved to Braga in March.",
        "As of this week I live in Braga.",
        "I'm living in Braga until next summer.",
        "We moved to Braga last month, next year we want a garden.",
    ],
)
def test_what_is_so_already_is_no_plan(done: str) -> None:
    assert not is_planned(done)
    assert "I live in Porto." not in latest("I live in Porto.", done)


@pytest.mark.promise("facts.plans")
def test_the_profile_has_both_until_the_day_has_come() -> None:
    store = Store()
    store.write("/memory/2026-10-01.md", "I live in Porto.", now_ms=0)
    store.write("/memory/2026-11-20.md", "I'm moving to Braga in March.", now_ms=DAY_MS)
    plan, now = "I'm moving to Braga in March.", "I live in Porto."
    assert set(profile(store.latest(), now_ms=ms_of(date(2027, 2, 28))).static_texts) == {now, plan}
    assert profile(store.latest(), now_ms=ms_of(date(2027, 3, 1))).static_texts == [plan]


@pytest.mark.promise("facts.plans")
@pytest.mark.parametrize(
    ("plan", "day"),
    [
        ("I'm moving to Braga in March.", "2027-03-01"),
        ("I'm moving to Braga in December.", "2026-12-01"),
        ("I'm moving to Braga on 3 January.", "2027-01-03"),
        ("I'm moving to Braga on January 3, 2028.", "2028-01-03"),
        ("I'm moving to Braga next week.", "2026-11-23"),
        ("I'm moving to Braga next month.", "2026-12-01"),
        ("I'm moving to Braga next quarter.", "2027-01-01"),
        ("I'm moving to Braga next spring.", "2027-03-01"),
        ("I'm moving to Braga at the end of the year.", "2027-01-01"),
        ("I'm moving to Braga in two weeks.", "2026-12-04"),
        ("Tomorrow I'm moving to Braga.", "2026-11-21"),
        ("I'm starting at Tessera on Monday.", "2026-11-23"),
        ("Ab Januar arbeite ich bei Tessera.", "2027-01-01"),
        ("I'm moving to Braga after the holidays.", "2027-11-20"),
        ("I moved to Braga in March.", "2026-03-01"),
    ],
)
def test_a_plan_holds_from_the_day_that_it_names(plan: str, day: str) -> None:
    said = date(2026, 11, 20)
    assert since(plan, said, value="tessera" if "Tessera" in plan else "braga") == date.fromisoformat(day)


@pytest.mark.promise("facts.plans")
def test_a_plan_that_came_true_is_over_and_so_is_what_was_before() -> None:
    plan = "I'm moving to Braga in March."
    assert latest("I live in Porto.", plan, "I live in Braga now.") == ["I live in Braga now."]
    assert latest("I live in Porto.", plan, "I'm moving to Faro in April.") == [
        "I live in Porto.",
        "I'm moving to Faro in April.",
    ]
    assert latest("I work at Nexia.", "I'm joining Tessera in January.", "I joined Tessera.") == ["I joined Tessera."]


@given(
    st.dates(),
    st.sampled_from(["in May", "next month", "next quarter", "next winter", "in 99 years", "on Monday", "in 2 days"]),
)
def test_a_plan_of_any_day_holds_after_it(said: date, when: str) -> None:
    day = since(f"I'm moving to Braga {when}.", said, value="braga")
    assert day > said or said.year not in range(1900, 2101)
