"""Turns of a life in a diary, and what they end of what is known of somebody."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memdir.memory.claims import claim_of
from memdir.memory.extract import extract
from tests.memory.test_endings import latest

DAY = "/memory/2026-11-03.md"


@pytest.mark.parametrize(
    "said",
    [
        "Got the offer from Bitwerk, 78k, starting in May.",
        "Lumen turned me down after the third round.",
        "They rejected my visa application.",
        "Our offer on the house was accepted.",
        "The bank approved our mortgage.",
        "I failed the bar exam.",
        "I tore my ACL, no running until spring.",
        "The biopsy came back clean.",
        "We put Bella to sleep today.",
        "Ben proposed to Carla and she said yes.",
        "Rafa and Ines are getting divorced.",
        "Lea starts school in August.",
        "Carlos got engaged.",
        "Inês got the fellowship in Ghent!",
        "The twins are in second grade now and love chess.",
        "Emma plays the violin now.",
        "Klaus is an electrician.",
        "The dentist pulled a molar.",
    ],
)
def test_a_turn_of_a_life_is_remembered_of_a_page_of_a_diary(said: str) -> None:
    kept = [one.text for one in extract(f"Slept badly. {said} Emails until noon.", DAY, byte_at=int) if not one.is_passing]
    assert kept == [said]


@pytest.mark.parametrize(
    "said",
    [
        "The lift let me down again.",
        "Passed the time with a book.",
        "The tests are fine.",
        "Signed a postcard.",
        "Got the bus.",
        "The doctor was late.",
    ],
)
def test_what_passes_is_not(said: str) -> None:
    assert [one for one in extract(f"Slept badly. {said} Emails until noon.", DAY, byte_at=int) if not one.is_passing] == []


OF_NORA = (
    "Nora lives in Ghent.", "Nora's birthday is 3 May.", "Nora is allergic to nuts.", "Nora likes tea.", "Nora has two kids.",
    "Nora speaks Dutch.", "Nora is vegetarian.", "Nora prefers written updates.",
)  # fmt: skip
OF_HER_POST = ("Nora owns ingestion.", "Nora works at Nexia.", "Nora leads the data team.", "Nora reports to me.")


@pytest.mark.parametrize(
    "left", ["Nora quit.", "Nora has resigned.", "Nora left the company.", "Nora was laid off.", "Nora retired in May."]
)
def test_who_leaves_a_post_keeps_all_that_is_not_of_it(left: str) -> None:
    """ "Nora quit" ended all that was known of her, her allergy and her birthday, too."""
    for fact in OF_NORA:
        assert fact in latest(fact, left)
    for fact in OF_HER_POST:
        assert fact not in latest(fact, left)


@pytest.mark.parametrize("moved", ["Nora moved to the platform team.", "Nora moved to the third floor.", "Nora changed teams."])
def test_who_moves_within_a_company_keeps_their_home_and_all_else(moved: str) -> None:
    for fact in OF_NORA:
        assert fact in latest(fact, moved)
    assert "Nora sits next to me." not in latest("Nora sits next to me.", moved)


def test_who_moves_house_keeps_their_role_and_all_else() -> None:
    for fact in (*OF_NORA[1:], *OF_HER_POST, "Nora is our tech lead."):
        assert fact in latest(fact, "Nora moved to Lille.")
    assert "Nora lives in Ghent." not in latest("Nora lives in Ghent.", "Nora moved to Lille.")


@pytest.mark.parametrize(
    "said", ["Ana is home.", "Mum is home from hospital.", "Jonas is home for Christmas.", "Dad is home now."]
)
def test_who_is_home_is_no_home(said: str) -> None:
    """ "Ana is home" made Ana the place where the user lives."""
    assert claim_of(said) is None
    assert "I live in Porto." in latest("I live in Porto.", said)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("My mother lives in Bremen.", "Mum moved to Kiel."),
        ("Dad drives a Skoda.", "My father sold the Skoda."),
        ("My father is in rehab.", "Dad is out of rehab."),
        ("I work at Nexia.", "I quit my job."),
        ("My wife works at the museum.", "My wife left the museum."),
        ("My brother lives with us.", "My brother moved out."),
    ],
)
def test_the_same_person_in_another_word(before: str, after: str) -> None:
    assert before not in latest(before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("Mum drives a Golf.", "I sold the Golf."),
        ("I drive a Golf.", "Mum sold the Golf."),
        ("Dad lives in Ulm.", "Mum moved to Kiel."),
        ("My mother is in hospital.", "My father is out of hospital."),
        ("I live in Graz.", "I quit my job."),
        ("My husband plays the tuba.", "My husband left the harbour."),
    ],
)
def test_another_person_is_left_alone(before: str, after: str) -> None:
    assert before in latest(before, after)


def test_who_somebody_is_by_profession_is_theirs_and_so_is_what_follows() -> None:
    found = {
        one.text: one.subject
        for one in extract(
            "Met Ana at the fair. She's a nurse from Bilbao. Rain. Klaus is an electrician. He works at Nexia. "
            "Postgres is a database server. Docker is a container engine.",
            DAY,
            byte_at=int,
        )
        if not one.is_passing
    }
    assert found.pop("Met Ana at the fair.") == "user"
    assert found == {
        "Ana is a nurse from Bilbao.": "ana", "Klaus is an electrician.": "klaus", "Klaus works at Nexia.": "klaus",
    }  # fmt: skip


def test_a_day_without_a_year_is_past_where_its_own_clause_tells_so() -> None:
    said = "Signed the contract with Vento Norte today, I start there on 1 December. Signed the lease on 1 December."
    days = [one.valid_from_ms for one in extract(said, DAY, byte_at=int)]
    assert [datetime.fromtimestamp(one / 1000, UTC).year for one in days if one is not None] == [2026, 2025]
