"""Notes as people type them: a line for each fact, a sentence about somebody beside one about the user, boxes to tick."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest

from memdir.memory.extract import extract
from memdir.store.types import MemoryCandidate

WRITTEN_MS = int(datetime(2026, 11, 27, tzinfo=UTC).timestamp() * 1000)


def facts(text: str, path: str) -> list[MemoryCandidate]:
    return list(extract(text, path, byte_at=lambda place: place, written_ms=WRITTEN_MS))


def said(text: str, path: str) -> list[str]:
    return [fact.text for fact in facts(text, path)]


@pytest.mark.parametrize("path", ["/memory/me.txt", "/memory/ich.txt", "/memory/sobre-mi.md", "/user/moi.txt"])
def test_a_file_about_oneself_is_read_line_by_line(path: str) -> None:
    lines = [
        "Name: Carys Morgan",
        "Born in Swansea on 2 February 1984",
        "Left-handed",
        "Shoe size 39",
        "Married to Huw, two kids: Nia (9) and Tomos (6)",
    ]
    assert said("\n".join(lines), path) == lines


def test_of_a_paragraph_that_is_wrapped_no_line_stands_for_itself() -> None:
    text = "My landlord is called Jürgen Sommer and he lives on the ground floor, with a\nDog that barks at Postmen.\n"
    assert said(text, "/memory/house.md") == [" ".join(text.split())]


def test_lines_of_a_short_note_are_remembered_as_items_are() -> None:
    text = (
        "The boiler is serviced every October by Dai Pritchard.\nWifi network is called BrackenNet.\n"
        "Nia plays the harp and is allergic to cats.\nTomos started swimming lessons in September.\n"
    )
    assert len(said(text, "/memory/house.txt")) == 4


def test_but_not_those_of_a_letter_or_of_a_list_of_names() -> None:
    told = ["Huw has accepted the lectureship in Cardiff.", "I gave up coffee in January."]
    letter = "\n".join(["Dear Soph,\n", "thanks for the parcel!", *told, "The kids took it well.", "Love, Carys"])
    assert said(letter, "/memory/to-sophie.txt") == told
    assert said("Clark Cooper\nFred L. Drake, Jr.\nGreg Stein (Windows backend)\nJames Clark\n", "/memory/authors.txt") == []


OF_A_HOUSEHOLD = """
Dmitri is our SRE.
Our nanny Rosa comes on Mondays.
The plumber is called Ken.
The car needs new tyres by March.
The vet is Dr Okafor on Mill Lane.
We have two cats, Miso and Tofu.
The spare key is with Mrs Bell next door.
I take 20 mg of citalopram every morning.
I can't swim.
I'm trying to lose five kilos.
I snore.
I hate meetings before 10.
Tom owes me 200 euros.
The team meets in room 3.12.
Our Q3 goal is 10,000 users.
We deploy from main every Friday.
The API key lives in 1Password.
My passport expires in October 2027.
Marta and Ole are getting divorced.
Fridays I work from home.
"""


@pytest.mark.promise("facts.lists")
@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("path", ["/memory/notes.md", "/memory/2026-03-01.md"])
def test_items_of_a_list_that_speaks_of_the_user_are_remembered_however_long_it_is(path: str, times: int) -> None:
    lines = OF_A_HOUSEHOLD.strip().split("\n")
    text = "".join(f"- {line}\n" for line in lines)
    text += "".join(
        f"- The shelf number {n} in the cellar holds box {n} and I keep my winter things in it.\n"
        for n in range(20 * (times - 1))
    )
    assert set(said(text, path)) >= set(lines)


@pytest.mark.parametrize(
    "alone", ["Dmitri is our SRE.", "I can't swim.", "I'm trying to lose five kilos.", "I snore.", "Fridays I work from home."]
)
def test_what_one_says_of_oneself_and_of_ones_own_people_is_remembered_alone(alone: str) -> None:
    assert said(f"It rained all day. {alone} The bus was late.\n", "/memory/2026-03-01.md") == [alone]


@pytest.mark.parametrize(
    "passing", ["I can't find the receipt.", "I can't believe it.", "I'm trying to open the door.", "That is my point."]
)
def test_what_one_only_tries_or_thinks_is_not(passing: str) -> None:
    kept = [
        fact.text
        for fact in facts(f"It rained all day. {passing} The bus was late.\n", "/memory/2026-03-01.md")
        if not fact.is_passing
    ]
    assert kept == []


def test_who_is_named_beside_what_the_user_says_is_remembered_too() -> None:
    text = (
        "We decided not to buy the house in Mariakerke, too much work on the roof. We'll stay with Argenta for the mortgage, "
        "and Marek agrees. Eva's parents (Marek and Halina) live in Poznań. We visit them every Easter. Marek had a stroke "
        "in July."
    )
    assert len(said(text, "/memory/decisions.md")) == 5


def test_of_a_journal_what_lasts_and_not_the_weather() -> None:
    text = (
        "# 20 October 2026\n\nCancelled the gym membership. Swimming on Wednesdays with Lotte instead. It rained. And I've "
        "started learning the cello. My desk arrives Thursday. Bike is at the repair shop.\n"
    )
    found = {fact.text: fact.kind for fact in facts(text, "/memory/journal/2026-10-20.md")}
    assert found == {
        "Cancelled the gym membership.": "static",
        "Swimming on Wednesdays with Lotte instead.": "static",
        "And I've started learning the cello.": "static",
        "My desk arrives Thursday.": "dynamic",
    }


def test_lines_that_begin_with_a_day_are_a_journal() -> None:
    text = "Nov 3: worked on the registry.\nNov 4: dentist.\nNov 5: sick.\nNov 6: stopped the vitamin D.\n"
    assert said(text, "/memory/log.md") == ["Nov 6: stopped the vitamin D."]


def test_an_open_task_is_recent_and_a_ticked_one_is_gone() -> None:
    found = facts("- [ ] call the notary about the house\n- [x] cancel Telenet\n", "/memory/todo.md")
    assert [(fact.text, fact.kind) for fact in found] == [("To do: call the notary about the house", "dynamic")]


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("From the 1st of October I'm living in Ghent.", date(2026, 9, 3)),
        ("From the 1st of August I'm living in Ghent.", date(2026, 8, 1)),
        ("My sister Aoife is pregnant, due in November.", date(2026, 9, 3)),
        ("I have lived in Ghent since October.", date(2025, 10, 1)),
    ],
)
def test_what_begins_on_a_day_to_come_began_when_it_was_said(text: str, since: date) -> None:
    [fact] = facts(text, "/memory/journal/2026-09-03.md")
    assert fact.subject in {"user", "aoife"}
    assert fact.valid_from_ms is not None
    assert datetime.fromtimestamp(fact.valid_from_ms / 1000, UTC).date() == since


def test_a_deadline_that_moved_is_no_move_of_anybody() -> None:
    [fact] = facts("- deadline for Harvest MVP moved from 15 Dec to 20 Jan\n", "/memory/work/one-on-one.md")
    assert (fact.subject, fact.text) == ("harvest mvp", "deadline for Harvest MVP moved from 15 Dec to 20 Jan")
    assert fact.valid_from_ms == WRITTEN_MS


def test_what_stands_above_a_log_in_the_same_file_lasts() -> None:
    text = (
        "# Health\n\nBlood type: A+\nMeds: levothyroxine every morning\nGP: Dr. Sommer\n\n"
        "## Log\n- 2026-11-03: Mood: low\n- 2026-11-10: started physio on Mondays\n- 2026-11-24: knee is fine again\n"
    )
    lasting = [one.text for one in facts(text, "/memory/health.md") if one.kind == "static"]
    assert lasting == ["Blood type: A+", "Meds: levothyroxine every morning", "GP: Dr. Sommer"]


def test_minutes_say_who_was_there_and_what_each_said() -> None:
    text = (
        "# Weekly sync\n\nAttendees: Ana Ruiz, Jonas, Priya, me\n\n## Notes\n- Priya: hiring is paused until January\n"
        "- Cost: 40 a month\n- Ana will be on parental leave from February\n"
    )
    said = {one.text: one.subject for one in facts(text, "/memory/2026-11-17 weekly sync.md")}
    assert said["Priya: hiring is paused until January"] == "priya"
    assert said["Ana will be on parental leave from February"] == "ana"
    assert not any("Cost" in one for one in said)


def test_what_is_known_of_a_car_and_of_children_stands_beside_days_and_names() -> None:
    car = (
        "# Car\n\nTyres: winter on since 2026-10-28\nInsurance: HUK24, renews 1 Jan\nNext inspection (TÜV): March 2027\n\n"
        "2026-06-01 oil change at 82,000 km\n2026-10-28 winter tyres\n2026-11-12 brake pads front\n"
    )
    assert said(car, "/memory/car.md") == [
        "Car – Tyres: winter on since 2026-10-28", "Car – Insurance: HUK24, renews 1 Jan",
        "Car – Next inspection (TÜV): March 2027", "2026-06-01 oil change at 82,000 km", "2026-10-28 winter tyres",
        "2026-11-12 brake pads front",
    ]  # fmt: skip
    kids = "Mila (2018-04-03): 2nd grade. Allergic to cashews.\nTheo (2021-09-15): Kita Sonnenblume. Hates socks.\n"
    assert said(kids, "/memory/kids.md") == [
        "Kids – Mila (2018-04-03): 2nd grade. Allergic to cashews.",
        "Kids – Theo (2021-09-15): Kita Sonnenblume. Hates socks.",
    ]


def test_technical_lines_with_a_key_are_notes_and_technical_items_are_a_manuals() -> None:
    network = (
        "- Router: FRITZ!Box, http://192.168.178.1\n- NAS: 192.168.178.20, 2.4.1\n- Printer: http://192.168.178.30\n"
        "- ISP: Telekom, until 2027-05\n"
    )
    assert len(said(network, "/memory/network.md")) == 4
    assert said(network, "/memory/network.txt") == []
    release = "- `--all` takes names\n- http://a.example is asked once\n- Fixed a crash in src/main.c\n- New option --quick\n"
    assert said(release, "/memory/1.5.3.md") == []


RULES = (
    "# Conventions\n- Run tests with make\n- Use spaces, not tabs\n- Squash commits before merging\n"
    "- Pin versions in the lock file\n- Adapt tools, do not wrap them\n- Koen reviews migrations\n"
)


@pytest.mark.parametrize(
    ("path", "subject"), [("CLAUDE.md", "user"), ("conventions.md", "conventions"), ("projects/heron.md", "heron")]
)
def test_the_verb_at_the_beginning_of_a_rule_is_nobodys_name(path: str, subject: str) -> None:
    assert [one.subject for one in facts(RULES, f"/memory/{path}")] == [subject] * 5 + ["koen"]


def test_she_in_notes_of_a_talk_is_whom_it_was_with() -> None:
    text = "## 2026-11-05\n- She wants me to lead the team\n- Told her I'd like to go down to 80%\n"
    for path in ("/memory/1-1 Marta.md", "/memory/Coffee with Marta.md"):
        found = {one.text: one.subject for one in facts(text, path)}
        assert found == {"Marta wants me to lead the team": "marta", "Told her I'd like to go down to 80%": "user"}


def test_lines_of_ideas_say_that_they_are() -> None:
    assert said("- Blog post about queues\n- Build a cold frame\n", "/memory/ideas.md") == [
        "Ideas: Blog post about queues", "Ideas: Build a cold frame",
    ]  # fmt: skip


def test_rows_of_a_table_name_their_columns() -> None:
    text = (
        "| Item | Bought | Price |\n| --- | --- | --- |\n| Bosch WAN282 washing machine | 2024-03-02 | 489 € |\n"
        "| Sony A7 | 2023-11-11 | - |\n\n| Who | Likes |\n| --- | --- |\n| Ana | tea |\n"
    )
    assert said(text, "/memory/inventory.md") == [
        "Inventory – Bosch WAN282 washing machine: Bought 2024-03-02 – Price 489 €", "Inventory – Sony A7: Bought 2023-11-11",
        "Ana – Likes: tea",
    ]  # fmt: skip


def test_a_title_is_told_with_what_it_stands_under() -> None:
    text = "# Reading list\n\n## Want to read\n- Seeing Like a State\n- Tiles expire after 90 days\n"
    assert said(text, "/memory/reading list.md") == [
        "Reading list – Want to read: Seeing Like a State", "Tiles expire after 90 days",
    ]  # fmt: skip


def test_a_memory_bank_is_kept_whole_and_its_next_steps_are_tasks() -> None:
    tech = "# Tech Context\n\n## Technologies Used\n- Expo SDK 52\n- Go 1.23 for the relay\n- `pnpm dev` on port 8081\n"
    assert said(tech, "/memory/memory-bank/techContext.md") == [
        "Technologies Used: Expo SDK 52", "Technologies Used: Go 1.23 for the relay",
        "Technologies Used: pnpm dev on port 8081",
    ]  # fmt: skip
    active = "# Active Context\n\n## Next Steps\n- Ask Lena for the icons\n\n## Learnings\n- MBTiles are opened read-only\n"
    assert [(one.kind, one.text) for one in facts(active, "/memory/memory-bank/activeContext.md")] == [
        ("dynamic", "Active Context – Next Steps: Ask Lena for the icons"), ("static", "MBTiles are opened read-only"),
    ]  # fmt: skip


def test_lines_with_names_and_pairs_of_two_sentences_are_lines_like_others() -> None:
    text = (
        "# House stuff\n\nLiving room paint is Farrow & Ball Skimming Stone.\nSpare key is with Marlene at number 12.\n"
        "Landlord: Herr Wendt. He only answers texts.\n"
    )
    assert said(text, "/memory/house.md") == [
        "Living room paint is Farrow & Ball Skimming Stone.", "Spare key is with Marlene at number 12.",
        "House – Landlord: Herr Wendt. He only answers texts.",
    ]  # fmt: skip
    reminders = "- Ask Nuno about the boat\n- The ferry leaves at nine\n"
    assert said(reminders, "/memory/trip.md") == ["Trip – Ask Nuno about the boat", "Trip – The ferry leaves at nine"]


def test_what_extractors_say_of_a_file_is_no_fact() -> None:
    text = (
        '---\nsource: "me.pdf"\nsha256: "63ee"\nkind: "pdf"\nmedia_type: "application/pdf"\nengine: "pypdfium2 5.15.2"\n'
        'author: "anonymous"\n'
        "pages: 3\n---\n\n## Page 1\n\nI live in Porto.\n"
    )
    assert said(text, "/memory/me.pdf") == ["I live in Porto."]


def test_a_log_that_somebody_keeps_is_remembered_with_and_without_bullets() -> None:
    entries = ["2026-11-15: long run 14 km, knee hurts again", "2026-11-18: physio says tendinitis, no running for 3 weeks"]
    for lines in (entries, [f"- {one}" for one in entries], [one.replace(":", "") for one in entries]):
        assert said("\n".join(lines), "/memory/training.md") == [line.removeprefix("- ") for line in lines]


def test_lines_of_a_households_notes_tell_times_and_numbers() -> None:
    text = (
        "# École Jeanne-Lajoie\nNico: grade 1, teacher Mme Tremblay, room 104\nDrop-off 8:20, pick-up 15:10 (Fri 14:30)\n"
        "Peanut-free school!\nPA days 2026/27: 27 Nov, 15 Jan, 12 Feb\n"
    )
    found = " ".join(said(text, "/memory/kids school.md"))
    assert "Drop-off 8:20, pick-up 15:10" in found
    assert "PA days 2026/27: 27 Nov, 15 Jan" in found


def test_amounts_and_dates_as_germans_write_them_are_no_versions_of_a_program() -> None:
    text = (
        "# Wohnung Lenaustraße 8\nVermieter: Herr Aydin, 0151 555 0101, am besten abends anrufen\n"
        "Miete 1.080 € kalt, Nebenkosten 210 €\nZählerstand Strom 31.10.2026: 48211\n"
        "Müll: Dienstag Papier, Donnerstag Restmüll\n"
    )
    assert said(text, "/memory/Wohnung.md") == [
        "Wohnung – Vermieter: Herr Aydin, 0151 555 0101, am besten abends anrufen",
        "Wohnung – Miete 1.080 € kalt, Nebenkosten 210 €", "Zählerstand Strom 31.10.2026: 48211",
        "Wohnung – Müll: Dienstag Papier, Donnerstag Restmüll",
    ]  # fmt: skip


def test_notes_of_a_talk_are_about_whom_it_was_with() -> None:
    text = (
        "# 1:1 Bea / Nadia\n\n## 2026-11-17\n- promotion case: needs two more peer reviews\n- wants to move to Platform in Q1\n"
    )
    assert {one.text: one.subject for one in facts(text, "/memory/1-1 with Bea.md")} == {
        "Bea – promotion case: needs two more peer reviews": "bea", "Bea – wants to move to Platform in Q1": "bea",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        ("emergency.md", "Blood type: 0 negative\nAllergies: sulfa drugs\n", "Allergies: sulfa drugs"),
        ("travel preferences.md", "- aisle seat, never the last row\n- No red-eyes\n", "Travel preferences: No red-eyes"),
        ("medication.md", "- Ramipril 2.5 mg in the morning\n- Allergic to sulfa drugs\n", "Allergic to sulfa drugs"),
    ],
)  # fmt: skip
def test_what_is_called_after_a_side_of_life_is_about_the_user(path: str, text: str, expected: str) -> None:
    found = {one.text: one.subject for one in facts(text, f"/memory/{path}")}
    assert found[expected] == "user"


def test_the_first_line_of_a_note_that_is_called_so_is_its_heading() -> None:
    assert said("Meds (updated 20 Nov)\nLevothyroxine 75 mcg\nVitamin D 2000 IU\n", "/memory/meds.md") == [
        "Meds (updated 20 Nov): Levothyroxine 75 mcg",
        "Meds (updated 20 Nov): Vitamin D 2000 IU",
    ]
    assert said("Allergies\npenicillin\ncats\n", "/memory/allergies.md") == ["Allergies: penicillin", "Allergies: cats"]
    assert said(
        "Reise nach Japan\nIch brauche noch einen neuen Pass.\nLena verträgt keinen Fisch.\n", "/memory/reise-japan.md"
    )[0] == ("Ich brauche noch einen neuen Pass.")
    assert said("# Languages\n- Urdu\n- Go\n\n# Shoe size\n42\n", "/memory/me.md") == [
        "Languages: Urdu",
        "Languages: Go",
        "Shoe size: 42",
    ]
    assert said("Favourites\nBand: U2\nTea: oolong\n", "/memory/me.md") == ["Band: U2", "Tea: oolong"]
    assert said("Books I like\n- Emma\n- Dune\n", "/memory/me.md") == ["Books I like: Emma", "Books I like: Dune"]
    assert said("- [ ] ID\n- [ ] fix tap\n", "/memory/todo.md") == ["To do: ID", "To do: fix tap"]
