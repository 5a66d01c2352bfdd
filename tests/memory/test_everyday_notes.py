"""Notes as people keep them by the way: a title that nothing marks, a talk with somebody, who has what now."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from memdir.memory.extract import extract
from memdir.memory.journals import Journal
from memdir.memory.profile import profile
from memdir_bench.memory.judging import DAY_MS, Store, bytes_before
from tests.memory.reading import facts, read

_LINES = "Ich gehe jetzt dienstags zum Bouldern.\nJ'ai arrêté le café.\nHe dejado el café.\n"
"""Of the same day."""


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


def test_a_note_without_capitals_is_read_as_it_is_meant() -> None:
    said = (
        "moved to bristol in may",
        "im vegan",
        "jess is coeliac",
        "went climbing with tom. he's getting married",
        "gave up tea",
    )
    note = "\n".join(said)
    found = read(note, "/memory/notes.md")
    assert [(one.subject, one.text) for one in found] == [
        ("user", "I moved to Bristol in May"), ("user", "I'm vegan"), ("jess", "Jess is coeliac"),
        ("user", "Went climbing with Tom."), ("tom", "Tom is getting married"), ("user", "I gave up tea"),
    ]  # fmt: skip
    assert note.encode()[found[-1].start_byte : found[-1].end_byte].decode().strip() == "gave up tea"
    of_ana = read("moved to bristol in may\nis vegan\n", "/memory/people/ana.md")
    assert (of_ana[0].subject, of_ana[0].text) == ("ana", "Ana – moved to bristol in may")
    assert facts("# Me\n\n## Allergies\n- cats (mild)\n- strawberries\n", "/memory/me.md")[0] == "Allergies: cats (mild)"
    assert facts("x = max(a, b)\nif x == NULL {\n", "/memory/notes.md") == []


def test_where_one_lives_and_works_changes_in_small_letters_too() -> None:
    store = Store()
    store.write(
        "/memory/2026-01.md", "i live in leeds, work at asda hq\nim vegan\njess lives in new york\n", now_ms=20_000 * DAY_MS
    )
    later = "moved to york last week\nleft asda, starting at nestle\njess lives in hull now\neating fish again\n"
    store.write("/memory/2026-05.md", later, now_ms=20_100 * DAY_MS)
    shown = profile(store.latest(), now_ms=20_101 * DAY_MS)
    assert sorted(shown.static_texts + shown.dynamic_texts) == [
        "I left Asda, starting at nestle", "I moved to York last week", "I'm eating fish again", "Jess lives in Hull now",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "2026", "2026-05", "May 2026", "january", "Montag", "10.05.2026", "summer-2026", "today", "Q3 2026", "stuff",
        "phone notes", "2026/jan", "journal/may", "New note", "thoughts", "brain dump 2", "notas",
    ],
)  # fmt: skip
def test_a_note_called_after_a_time_or_after_nothing_is_the_users(name: str) -> None:
    assert [(one.subject, one.text) for one in read("- left the tennis club\n", f"/memory/{name}.md")] == [
        ("user", "I left the tennis club")
    ]


@pytest.mark.parametrize("name", ["May", "jan", "julia", "marc", "tennis club", "people/winter", "projects/spring"])
def test_a_note_called_after_somebody_or_something_is_theirs(name: str) -> None:
    assert read("- left the tennis club\n", f"/memory/{name}.md")[0].subject == name.rpartition("/")[2].casefold()


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("I met Ana for lunch. She is moving to Graz.", ("ana", "Ana is moving to Graz.")),
        ("Told Kate about the move. She works at Aviva now.", ("kate", "Kate works at Aviva now.")),
        ("Played tennis with Ines on Sunday. She lives in Porto.", ("ines", "Ines lives in Porto.")),
        ("Had a long call with Ben and Tom. He is moving to Bath.", ("user", "He is moving to Bath.")),
        ("Met Ben Smith and Tom. He is moving to Bath.", ("user", "He is moving to Bath.")),
        ("Ana called, she got the job at Siemens.", ("ana", "Ana got the job at Siemens.")),
        ("Ana came round. She's vegan now.", ("ana", "Ana is vegan now.")),
        ("Ben rang: he's moving to Leeds.", ("ben", "Ben is moving to Leeds.")),
        ("Got a text from Ana, she is pregnant!", ("ana", "Ana is pregnant!")),
        ("Ran into Kate at Tesco. She's split up with Dan.", ("kate", "Kate has split up with Dan.")),
        ("Anruf von Ben: er zieht nach Leipzig.", ("ben", "Ben zieht nach Leipzig.")),
        ("Ana rief an. Sie ist schwanger.", ("ana", "Ana ist schwanger.")),
        ("Mit Jonas Kaffee getrunken. Er hat gekündigt.", ("jonas", "Jonas hat gekündigt.")),
        ("Léa a appelé, elle déménage à Lyon.", ("léa", "Léa déménage à Lyon.")),
        ("Message de Léa : elle est enceinte.", ("léa", "Léa est enceinte.")),
        ("Llamó Marta, se muda a Sevilla.", ("marta", "Marta se muda a Sevilla.")),
    ],
)
def test_whom_a_diary_met_or_did_something_with_is_who_is_meant_behind_it(said: str, meant: tuple[str, str]) -> None:
    assert [(one.subject, one.text) for one in read(said, "/memory/journal/2026-11-02.md")][-1] == meant


@pytest.mark.parametrize("condition", ["coeliac", "asthmatic", "deaf", "dyslexic", "gluten intolerant"])
def test_what_others_have_to_know_of_somebody_is_theirs(condition: str) -> None:
    assert [(one.subject, one.text) for one in read(f"Ruth is {condition}.", "/memory/notes.md")] == [
        ("ruth", f"Ruth is {condition}.")
    ]


def test_scripts_and_commented_settings_bring_nothing() -> None:
    comment = "# This is the global list of trusted keys.  Comment lines, like this\n" * 3
    said = "\n- Birthday: 3 May\n- I live in Porto\n"
    assert facts(said, "/memory/notes.txt") != []
    assert facts(comment + said, "/memory/notes.txt") == []
    assert facts("#!/usr/bin/perl\n" + said, "/memory/notes") == []
    assert facts("# Monday\n# Tuesday\n# Wednesday\n" + said, "/memory/notes.txt") != []


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


@pytest.mark.parametrize(
    ("day", "told"),
    [
        ("Heute mit Birgit Kaffee getrunken, sie zieht im Januar nach Freiburg.", ["Birgit zieht im Januar nach Freiburg."]),
        ("Heute mit Frau Albers gesprochen, sie geht im Mai in Rente.", ["Frau Albers geht im Mai in Rente."]),
        ("J'ai déjeuné avec Clémence, elle attend un bébé pour mars. Elle quitte Orange en janvier.",
         ["Clémence attend un bébé pour mars.", "Clémence quitte Orange en janvier."]),
        ("Hier vu Hugo, il a trouvé un travail à Lille.", ["Hugo a trouvé un travail à Lille."]),
        ("Papa a été opéré de la hanche. Il rentre jeudi.", ["Papa a été opéré de la hanche.", "Papa rentre jeudi."]),
        ("Comí con Marta, se muda a Vigo en enero.", ["Marta se muda a Vigo en enero."]),
        ("Neue Chefin: Frau Albers, sehr nett.", ["Neue Chefin: Frau Albers, sehr nett."]),
        ("La nueva vecina se llama doña Pilar.", ["La nueva vecina se llama doña Pilar."]),
    ],
)  # fmt: skip
def test_in_other_languages_too_a_diary_tells_of_whom_one_met_and_what_is_new(day: str, told: list[str]) -> None:
    assert set(told) <= set(facts(f"# 2026-09-14\n\n{day}\n{_LINES}"))


@pytest.mark.parametrize(
    "heading",
    ["# 14.09.2026", "## Montag, 14. September 2026", "# 14 septembre 2026", "# lunes, 14 de septiembre de 2026", "14.09.2026",
     "# Mon 14 Sep", "# 14. September", "# Mo, 14.09.", "## 14/09/2026", "# 14.09.26", "**14.09.2026**", "# Sept 14 2026"],
)  # fmt: skip
def test_the_days_of_a_diary_are_read_as_people_write_them(heading: str) -> None:
    text = f"{heading}\n\nI got a new job at Tessera. It rained all day and we stayed at home.\n"
    written_ms = 1_796_000_000_000  # 29 November 2026
    (fact,) = extract(text, "/memory/diary.md", byte_at=bytes_before(text), written_ms=written_ms)
    assert fact.said_ms is not None
    assert datetime.fromtimestamp(fact.said_ms / 1000, UTC).date() == date(2026, 9, 14)


@pytest.mark.parametrize(
    ("headings", "days"),
    [
        (["## 30 Oct", "## 12 Dec", "## 3 Jan", "## 3 May"], ["2026-10-30", "2026-12-12", "2027-01-03", "2027-05-03"]),
        (["## 2 Jun", "## 3 May", "## 3 Jan", "## 12 Dec"], ["2027-06-02", "2027-05-03", "2027-01-03", "2026-12-12"]),
        (["# 2024", "## 30 Oct", "# 2025", "## 12 Dec"], ["None", "2024-10-30", "None", "2025-12-12"]),
        (["# Mo, 28.12.", "# Fr, 01.01."], ["2026-12-28", "2027-01-01"]),
    ],
)
def test_days_without_a_year_are_of_the_year_that_their_order_tells(headings: list[str], days: list[str]) -> None:
    journal = Journal("".join(f"{one}\n\nWords.\n\n" for one in headings), date(2027, 6, 10))
    found, position = [], 0
    for one in headings:
        found.append(str(journal.day_at(position + len(one) + 3)))
        position += len(f"{one}\n\nWords.\n\n")
    assert found == days


def test_a_day_within_a_sentence_that_is_wrapped_is_no_heading() -> None:
    text = "This package was put together by somebody we know well on\nTue, 14 Oct 2008 16:21:17 +0200.\n\nMore of it.\n"
    assert Journal(text, date(2026, 11, 29)).day_at(text.index("More")) is None


@pytest.mark.parametrize("heading", ["## 2.10.21", "# Version 3 May", "## 1.2.", "# Chapter 12", "# 03/04/2026"])
def test_what_may_be_no_day_is_none(heading: str) -> None:
    assert Journal(f"{heading}\n\nWords.\n", date(2026, 11, 29)).day_at(len(heading) + 3) is None


@pytest.mark.parametrize(
    "day",
    [
        "Jonas hat bei Bosch angefangen, er ist froh darüber.", "Ich habe mit Tim und Eva gegessen, sie sind umgezogen.",
        "La voiture est en panne. Elle doit aller au garage.", "Il pleut depuis trois jours. Il faut racheter des bottes.",
        "El coche está roto. Tiene que ir al taller.", "Das Auto ist kaputt. Es muss in die Werkstatt.",
    ],
)  # fmt: skip
def test_where_it_is_not_certain_who_is_meant_nobody_is(day: str) -> None:
    said = facts(f"# 2026-09-14\n\n{day}\n{_LINES}")
    assert all(one.rstrip(".") in f"{day} {_LINES}" for one in said)
    assert len(said) > 1


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("\tDate:\tSeptember 14, 2026 at 10:03:22 AM GMT+2\n\tWeather:\t17°C\n\tLocation:\tMainz, Germany\n\nSold the bike.\n",
         "Journal.txt"),
        ("[2026-09-14 10:03] Sold the bike. It rained.\n", "jrnl.txt"),
        ("* 2026\n** 2026-09 September\n*** 2026-09-14 Monday\nSold the bike.\n", "journal.org"),
        ("== 14 September 2026 ==\nSold the bike.\n", "diary.txt"),
        ("14 Sep 2026, 10:03\nSold the bike.\n", "diary.txt"),
        ("Monday 14th September\nSold the bike.\n", "diary.txt"),
    ],
)  # fmt: skip
def test_the_diaries_of_programs_have_their_days_and_what_they_put_above_an_entry_is_no_fact(text: str, path: str) -> None:
    (fact,) = extract(text, f"/memory/{path}", byte_at=bytes_before(text), written_ms=1_796_000_000_000)
    assert fact.text == "Sold the bike."
    assert fact.said_ms is not None
    assert datetime.fromtimestamp(fact.said_ms / 1000, UTC).date() == date(2026, 9, 14)


@pytest.mark.parametrize(
    "plan",
    ["Wir ziehen im Januar nach Graz.", "Clémence quitte Orange en janvier.", "Nos mudamos a Vigo en enero.",
     "Birgit zieht am 3. Dezember nach Wien."],
)  # fmt: skip
def test_what_is_to_come_in_other_languages_is_not_of_a_month_before(plan: str) -> None:
    text = f"# 14.09.2026\n\n{plan}\n{_LINES}"
    (fact,) = (one for one in extract(text, "/memory/diary.md", byte_at=bytes_before(text)) if one.text == plan)
    assert fact.valid_from_ms is not None
    assert datetime.fromtimestamp(fact.valid_from_ms / 1000, UTC).date() >= date(2026, 9, 14)
