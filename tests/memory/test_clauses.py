"""A sentence that says several things is several facts; what is said of another side of a thing, or of another one of several,
ends nothing that was said before."""

from __future__ import annotations

import pytest

from memdir.memory.extract import extract
from memdir_bench.memory.judging import DAY_MS, Store, shown
from tests.memory.reading import facts, read

CLAUSES = (
    ("Ana Ruiz is my sister; she lives in Graz and works as an architect.",
     ["Ana Ruiz is my sister.", "Ana Ruiz lives in Graz.", "Ana Ruiz works as an architect."]),
    ("Ben left for Siemens; Clara Vogt is my manager now.", ["Ben left for Siemens.", "Clara Vogt is my manager now."]),
    ("My sister Ana lives in Graz and works as an architect.",
     ["My sister Ana lives in Graz.", "My sister Ana works as an architect."]),
    ("I live in Porto, work at Tessera and use Vim.", ["I live in Porto.", "I work at Tessera.", "I use Vim."]),
    ("My brother Paul is a teacher – he lives in Bremen with his wife Jana.",
     ["My brother Paul is a teacher.", "Paul lives in Bremen with his wife Jana."]),
    ("I'm a nurse, I live in Lyon, and I have two cats.", ["I'm a nurse.", "I live in Lyon.", "I have two cats."]),
    ("I used to live in Porto but moved to Lisbon.", ["I moved to Lisbon."]),
    ("Rufus is our dog; he is eleven and has arthritis.", ["Rufus is our dog.", "Rufus is eleven.", "Rufus has arthritis."]),
    ("I was born in Izmir, grew up in Bremen and live in Utrecht.",
     ["I was born in Izmir.", "I grew up in Bremen.", "I live in Utrecht."]),
)  # fmt: skip
WHOLE = (
    "I left Aurora Bank and joined Kestrel Labs.",
    "Our son Emil goes to the Montessori school; our daughter Lea starts there in August.",
    "I got a Brompton for my birthday and I ride it to work.",
    "My dentist is Dr Weber, her practice is in the Hauptstrasse.",
    "I keep kosher, and my husband David doesn't.",
    "Tom is my best friend; we met in Leeds.",
    "I use fish on the laptop and zsh on servers.",
    "I like bread and butter.",
    "My phone is a Pixel 8 and my laptop a ThinkPad X1.",
    "I live in Porto, my sister Ana in Graz.",
    "My sister, who lives in Graz, is a doctor.",
)
SUBORDINATE = (
    "If I get the job at Siemens I move to Munich and my wife stays here.",
    "While I was in Oslo, Ana called and I told her about the flat.",
)


@pytest.mark.promise("facts.clauses")
@pytest.mark.parametrize(("sentence", "expected"), CLAUSES)
def test_a_sentence_that_says_several_things_is_as_many_facts(sentence: str, expected: list[str]) -> None:
    assert facts(sentence) == expected
    assert [said in sentence for said in (sentence[one.start_byte : one.end_byte] for one in read(sentence))] == [True] * len(
        expected
    )


@pytest.mark.promise("facts.clauses")
@pytest.mark.parametrize("sentence", WHOLE)
def test_what_needs_the_clause_before_it_stays_with_it(sentence: str) -> None:
    assert facts(sentence) == [sentence]


@pytest.mark.parametrize("sentence", SUBORDINATE)
def test_a_part_of_a_subordinate_clause_is_no_fact(sentence: str) -> None:
    assert set(facts(sentence)) <= {sentence}


def test_when_one_of_them_changes_the_others_stay() -> None:
    now = held(
        "Ana Ruiz is my sister; she lives in Graz and works as an architect. I live in Porto and work at Tessera.",
        "Ana moved to Vienna last month. I moved to Lisbon.",
    )
    assert set(now) == {
        "Ana Ruiz is my sister.",
        "Ana moved to Vienna last month.",
        "Ana Ruiz works as an architect.",
        "I work at Tessera.",
        "I moved to Lisbon.",
    }


SAID_OF_ONE = """
My wife Elif is a nurse. | My wife Elif loves tulips.
My brother Paul is a teacher. | My brother Paul broke his leg.
My brother Paul is a teacher. | My brother Max is a doctor.
My desk is on the third floor. | My desk is white.
My car is a Golf. | My car is in the garage.
My doctor is Dr Meier. | My doctor is in the Hauptstrasse.
My team is called Atlas. | My team is five people.
My son is called Emil. | My son is called Jonas.
Our wedding is on 3 May. | Our wedding is in Ghent.
I live in Porto. | I live in a flat with a balcony.
My house is in Ghent. | My house is old.
My hobby is chess. | My hobby is rowing.
I drink coffee in the morning. | I drink tea in the evening.
My contract is for two years. | My contract is with Tessera.
My parents live in Malaga. | My parents are retired.
The server is in Frankfurt. | The server is called atlas.
The standup is at 10. | The standup is short.
The office is on Lindholmen. | The office is cold in winter.
The landlord is Mr Pereira. | The landlord is on holiday.
Clara is my mentor. | Dmitri is my mentor, too.
Ana Ruiz is my sister. | Ana moved to Vienna.
Tom is my best friend. | Tom moved to Leeds.
My laptop is heavy. | My laptop is slow.
Our standup is at 10. | The standup is in room 4.
Meine Frau Elif ist Krankenschwester. | Meine Frau Elif liebt Tulpen.
Mein Fahrrad ist grün. | Mein Fahrrad ist kaputt.
Ich trinke morgens Kaffee. | Ich trinke abends Tee.
Mi hermano se llama Pablo. | Mi hermano se llama Luis.
Mi clase es los martes. | Mi clase es muy divertida.
Mon appartement est petit. | Mon appartement est au deuxième étage.
Mon frère s'appelle Paul. | Mon frère s'appelle Luc.
"""
SAID_NEWLY = """
My desk is on the third floor. | My desk is on the fifth floor now.
My desk is white. | My desk is black now.
My car is a Golf. | My car is a Zoe.
My team is called Atlas. | My team is called Orion now.
My wife is Elif. | My wife is Anna.
I live in Porto. | I live in a flat in Lisbon.
My rent is 980 euros. | My rent is 1,050 euros.
The standup is at 10. | The standup moved to 11.
The office is on Lindholmen. | The office is on Kungsgatan.
I live in a flat with a balcony. | I live in a house with a garden.
I drink coffee in the morning. | I drink tea in the morning.
My insurance is with AXA. | My insurance is with Allianz now.
Our standup is at 10. | The standup is at 11.
My bike is broken. | My bike is fixed.
Mein Auto ist ein Golf. | Mein Auto ist ein Polo.
Ich trinke morgens nur noch Kaffee mit Hafermilch. | Trinke jetzt grünen Tee statt Kaffee, dem Magen zuliebe.
Unsere Tochter Lea ist neun. | Unsere Tochter Lea ist zehn.
Mi color favorito es el azul. | Mi color favorito es el verde.
Tengo 42 años. | Tengo 43 años.
Notre réunion est à 9h30. | Notre réunion est à 10h.
Mon vélo est vert. | Mon vélo est bleu.
"""


def pairs(text: str) -> list[tuple[str, str]]:
    return [(one.partition(" | ")[0], one.partition(" | ")[2]) for one in text.strip().split("\n")]


def held(*notes: str, first: str = "2026-05-01") -> list[str]:
    """What is shown after notes of different days; `first` names the first of them."""
    store = Store(None)
    for number, note in enumerate(notes):
        name = f"2026-05-{number + 1:02}" if number else first
        store.write(f"/memory/{name}.md", note + "\n", now_ms=(20_000 + number) * DAY_MS)
    return [one.text for one in shown(store, (20_000 + len(notes)) * DAY_MS)]


@pytest.mark.promise("facts.aspects")
@pytest.mark.parametrize(("before", "after"), pairs(SAID_OF_ONE))
def test_what_is_said_of_another_side_of_a_thing_or_of_another_one_ends_nothing(before: str, after: str) -> None:
    assert set(held(f"- Plays chess\n- {before}", f"- Likes tea\n- {after}")) >= {before, after}
    assert set(held(f"- Plays chess\n- {after}", f"- Likes tea\n- {before}")) >= {before, after}, "the other way round"
    assert set(held(f"- Plays chess\n- {before}\n- {after}")) >= {before, after}, "in one note"


OF_A_LINE = """
Rent: 980 euros | My rent is 1,050 euros.
Office: Basel | My office is in Bern.
Laptop: ThinkPad X1 | My laptop is a MacBook.
Team: Atlas | My team is called Orion.
"""


@pytest.mark.parametrize(("line", "later"), pairs(OF_A_LINE))
def test_a_line_with_a_key_gives_a_value_of_any_side_but_how_it_is(line: str, later: str) -> None:
    key = line.partition(":")[0]
    assert held(line, later, first="user") == [later]
    assert set(held(line, f"My {key.casefold()} is slow.", first="user")) == {line, f"My {key.casefold()} is slow."}


@pytest.mark.parametrize(("before", "after"), pairs(SAID_NEWLY))
def test_another_value_of_the_same_side_ends_the_former(before: str, after: str) -> None:
    now = held(f"- Plays chess\n- {before}", f"- Likes tea\n- {after}")
    assert after in now
    assert before not in now


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("Lunch with Ana, she is moving to Graz in March.", "Ana is moving to Graz in March."),
        ("Called mum, her hip operation is on 3 December in Lübeck.", "Mum's hip operation is on 3 December in Lübeck."),
        ("Talked to Piotr, he's leaving in May.", "Piotr is leaving in May."),
        ("Saw Marta in the corridor, she's been moved to the Vienna office.", "Marta has been moved to the Vienna office."),
        ("Coffee with Lena who got a job at the zoo.", "Lena got a job at the zoo."),
        ("Met my brother, he's getting married in June.", "My brother is getting married in June."),
        (
            "Oma Gisela's 75th was lovely. She is moving to the care home in January.",
            "Oma Gisela is moving to the care home in January.",
        ),
        ("Ana's sister is a nurse. She lives in Kiel.", "Ana's sister lives in Kiel."),
    ],
)
def test_a_diary_tells_of_whom_one_met(said: str, expected: str) -> None:
    found = [one.text for one in extract(said, "/memory/journal/2026-11-19.md", byte_at=int) if not one.is_passing]
    assert expected in found


@pytest.mark.parametrize(
    "said", ["Phoned Mum, she was watching snooker.", "Lunch with Ana and Tom, she is moving to Graz in March."]
)
def test_what_somebody_just_did_or_who_is_not_told_is_of_nobody(said: str) -> None:
    found = extract(said, "/memory/journal/2026-11-19.md", byte_at=int)
    assert not [one.text for one in found if not one.is_passing and one.text.startswith(("Mum", "Ana is", "Tom is"))]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "I'm Nadia Rahman, 41, and live in Toronto with my husband Daniel.",
            ["I'm Nadia Rahman.", "I'm 41.", "I live in Toronto with my husband Daniel."],
        ),
        (
            "I'm Leo, a 29-year-old nurse from Leeds, currently living in Bergen.",
            ["I'm Leo.", "I'm a 29-year-old nurse from Leeds.", "I'm currently living in Bergen."],
        ),
        (
            "I'm a 34 y/o teacher, married, two kids, living near Lyon.",
            ["I'm a 34 y/o teacher.", "I'm married.", "I have two kids.", "I'm living near Lyon."],
        ),
        ("I'm good with dates, names and faces.", ["I'm good with dates, names and faces."]),
        (
            "Ich heiße Eva Kolb, bin 41 und wohne mit meinem Mann in Regensburg.",
            ["Ich heiße Eva Kolb.", "Ich bin 41.", "Ich wohne mit meinem Mann in Regensburg."],
        ),
        ("Ich singe im Domchor und gehe gern bergsteigen.", ["Ich singe im Domchor und gehe gern bergsteigen."]),
        (
            "Me llamo Inés Prado, tengo 38 años y vivo en Vigo con mi pareja.",
            ["Me llamo Inés Prado.", "Tengo 38 años.", "Vivo en Vigo con mi pareja."],
        ),
        (
            "Je m'appelle Luc Martin, j'ai 45 ans et j'habite à Nantes.",
            ["Je m'appelle Luc Martin.", "J'ai 45 ans.", "J'habite à Nantes."],
        ),
    ],
)
def test_whoever_introduces_themselves_says_several_things(said: str, expected: list[str]) -> None:
    assert [one.text for one in extract(said, "/memory/me.md", byte_at=int)] == expected


def test_of_a_family_each_has_a_heading_whatever_stands_below() -> None:
    text = "# Familie\n\n## Lotte\n- Allergie: Erdbeeren\n\n## Emil\n- Schwimmkurs samstags 9 Uhr\n"
    found = {one.text: one.subject for one in extract(text, "/memory/Familie.md", byte_at=int)}
    assert found["Emil – Schwimmkurs samstags 9 Uhr"] == "emil"
