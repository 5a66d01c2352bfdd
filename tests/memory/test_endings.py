"""What a later note says is over is shown no more, and what it only mentions stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.claims import claim_of
from memdir.memory.endings import WORDS_MAX, endings_of, is_ended, stems_of
from memdir.memory.extract import extract
from memdir.memory.profile import profile
from memdir.memory.reconcile import related_topics_of, topics_of
from memdir.memory.states import states_of
from memdir_bench.memory.changes import changes, pairs
from memdir_bench.memory.judging import DAY_MS, Store

from .ordinary_days import (
    DAYS,
    DAYS_IN_OTHER_LANGUAGES,
    FACTS,
    FACTS_IN_OTHER_LANGUAGES,
    HAPPENED,
    HAPPENED_IN_GERMAN,
    OF_PEOPLE,
    OF_PEOPLE_IN_GERMAN,
)
from .reading import read

FAMILIES = ("tuned", "held", "languages_tuned", "languages_held")
PAIRS = [(before, after) for family in FAMILIES for _, before, after in pairs(family)]


def latest(*notes: str, path: str = "/memory/{}/notes.md") -> list[str]:
    store = Store()
    for number, note in enumerate(notes):
        store.write(path.format(number), note, now_ms=number)
    return [one.candidate.text for one in store.latest()]


@pytest.mark.parametrize(
    ("was", "said"),
    [
        ("Ich bin Vegetarierin.", "Ich esse wieder Fleisch."),
        ("Bernd ist Vegetarier.", "Bernd isst wieder Fleisch."),
        ("Ich rauche.", "Ich habe mit dem Rauchen aufgehört."),
        ("Ich bin arbeitslos.", "Ich arbeite bei Bosch."),
        ("Ich bin verheiratet.", "Wir haben uns getrennt."),
        ("Je suis végétarienne.", "Je mange de nouveau de la viande."),
        ("Je fume.", "J'ai arrêté de fumer."),
        ("Soy vegana.", "He vuelto a comer carne."),
        ("Estoy soltera.", "Tengo novio, se llama Luis."),
    ],
)
def test_a_state_in_another_language_ends_the_one_before(was: str, said: str) -> None:
    store = Store()
    store.write("/memory/1.md", f"{was}\n", now_ms=20_000 * DAY_MS)
    store.write("/memory/2.md", f"{said}\n", now_ms=20_100 * DAY_MS)
    shown = profile(store.latest(), now_ms=20_101 * DAY_MS)
    assert shown.static_texts + shown.dynamic_texts == [said]


@pytest.mark.parametrize(
    "said", ["Vegan restaurant on Elm St", "Me gusta la comida vegana", "Vegane Küche ist toll", "Un plat végétarien"]
)
def test_food_is_no_state_of_whoever_mentions_it(said: str) -> None:
    assert states_of(said) == ()


@pytest.mark.promise("facts.endings")
def test_of_what_people_note_of_changes_most_ends_what_it_should_and_hardly_anything_else() -> None:
    tuned, held, told = changes("tuned"), changes("held"), changes("tuned", in_journal=True)
    assert tuned.ended >= 0.85 * tuned.to_end
    assert told.ended >= 0.8 * told.to_end
    assert told.stayed >= 0.95 * told.to_stay
    assert held.ended >= 0.45 * held.to_end
    assert tuned.stayed + held.stayed >= 0.95 * (tuned.to_stay + held.to_stay)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("My car is a grey Skoda Octavia.", "Sold the Skoda last week."),
        ("I take piano lessons on Tuesdays.", "No more piano lessons."),
        ("The bathroom has a damp problem.", "The damp in the bathroom is fixed."),
        ("I'm reading Middlemarch.", "Finished Middlemarch, loved it."),
        ("I don't drink coffee.", "I'm back on coffee."),
        ("My wife is Karin.", "Karin and I split up."),
        ("The standup is at 9:30.", "The standup is now at 10."),
        ("Our office is on Lindholmen.", "The office moved to Nordstan."),
        ("I'm allergic to penicillin.", "Turns out I'm not allergic to penicillin after all."),
        ("The release is planned for March 1.", "The release slipped to March 15."),
        ("The API rate limit is 100 requests per minute.", "We raised the API rate limit to 500 requests per minute."),
        ("The mobile app is written in React Native.", "We rewrote the mobile app in Flutter."),
        ("Bob is the tech lead of the search team.", "Alice took over from Bob as tech lead of the search team."),
        ("My daughter is in second grade.", "My daughter just started third grade."),
        ("I'm single.", "I'm seeing someone, her name is Petra."),
        ("We have a client called Brightwave.", "Brightwave terminated the contract."),
        ("My sister lives in Boston.", "My sister relocated to Denver."),
        ("My laptop is a 2019 MacBook.", "Work gave me a new laptop, a Framework."),
    ],
)  # fmt: skip
def test_a_fact_that_is_said_to_be_over_is_gone_in_either_order_of_dated_notes(before: str, after: str) -> None:
    assert before not in latest(before, after)
    early, late = ("/memory/2026-09-01.md", before), ("/memory/2026-10-31.md", after)
    if all(any(not one.is_passing for one in extract(text, path, byte_at=int)) for path, text in (early, late)):
        store = Store()
        for path, text in (late, early):
            store.write(path, text, now_ms=1)
        assert before not in [one.candidate.text for one in store.latest()]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("My sister works at Skoda.", "Sold the Skoda."),
        ("The weekly meeting is on Thursdays.", "Cancelled the meeting today."),
        ("Koen owns the warehouse code.", "Koen fixed the gutter."),
        ("Ana and I play tennis on Sundays.", "Tennis cancelled, rain."),
        ("We have two cats, Miso and Kuma.", "Kuma died on Sunday."),
        ("The car is a Volvo.", "The car is fixed."),
        ("I live in Lisbon.", "Just back from Lisbon, great trip."),
        ("I prefer pump 1 over the others.", "I prefer pump 2 over the others."),
        ("I live in Berlin.", "We've moved to two-week sprints."),
        ("I'm on holiday until Friday.", "Chris is back."),
        ("My father is in hospital.", "My mother was discharged today."),
        ("I play the piano.", "My grandmother sold her piano."),
        ("My flight to Berlin leaves at 9:15.", "Tom is in Berlin now."),
        ("I'm married to Karin.", "My brother got engaged."),
        ("My wife is a nurse.", "I proposed to the board that we close the shop."),
        ("My wife is pregnant.", "My sister had a baby."),
        ("I'm unemployed.", "Thursday works for me."),
        ("We rent a storage unit.", "We bought a table for the kitchen."),
        ("My therapist is Mr Okafor.", "We fired Mr. Hsu."),
        ("I live in Porto.", "Went from Porto to Braga by bus."),
        ("I live in Porto.", "Moved the boxes from Porto."),
        ("I live in Porto.", "Left Porto with the kids."),
        ("I live in Porto.", "I left Porto for the weekend."),
        ("I work at Nexia.", "Left Nexia after lunch."),
        ("I work at Nexia.", "Left Nexia and went home."),
        ("I work at Nexia.", "Moved files from Nexia to the archive."),
        ("My manager is Marta.", "Left Marta with the bill."),
        ("My mother lives in Kiel.", "Mum came over from Kiel."),
    ],
)  # fmt: skip
def test_what_is_only_mentioned_stays(before: str, after: str) -> None:
    assert before in latest(before, after)


def test_a_value_that_changed_is_remembered_in_a_journal_too() -> None:
    store = Store()
    store.write("/memory/about-me.md", "The release is planned for March 1.", now_ms=1)
    store.write("/memory/2026-11-28.md", "Slept badly.\nThe release slipped to March 15.\n", now_ms=2)
    assert [one.candidate.text for one in store.latest()] == ["The release slipped to March 15."]


@pytest.mark.parametrize(
    ("facts", "days"), [(FACTS, DAYS), (FACTS_IN_OTHER_LANGUAGES, DAYS_IN_OTHER_LANGUAGES)], ids=["english", "others"]
)
def test_an_ordinary_day_ends_nothing(facts: list[str], days: list[str]) -> None:
    for day in days:
        store = Store()
        for number, fact in enumerate(facts):
            store.write(f"/memory/{number}.md", f"{fact}\n", now_ms=20_000 * DAY_MS)
        before = {one.candidate.text for one in store.latest()}
        store.write("/memory/journal/2027-01-05.md", f"Slept badly. {day}\n", now_ms=21_000 * DAY_MS)
        assert before <= {one.candidate.text for one in store.latest()}, day


@pytest.mark.parametrize(
    ("known", "happened"), [(OF_PEOPLE, HAPPENED), (OF_PEOPLE_IN_GERMAN, HAPPENED_IN_GERMAN)], ids=["english", "german"]
)
def test_what_people_do_on_a_day_ends_nothing_of_what_is_known_of_them(known: list[str], happened: list[str]) -> None:
    assert set(known) <= set(latest(*known))
    now = latest(*known, *happened)
    assert [fact for fact in known if fact not in now] == []


def test_german_spanish_and_french_end_facts_too() -> None:
    tuned, held = changes("languages_tuned"), changes("languages_held")
    assert tuned.ended >= 0.85 * tuned.to_end
    assert held.ended
    assert tuned.stayed + held.stayed >= 0.95 * (tuned.to_stay + held.to_stay)


def test_what_only_happened_is_remembered_of_a_journal_where_a_fact_is_over_by_it() -> None:
    store = Store()
    store.write("/memory/notes.md", "I owe Karim 40 euros.\n", now_ms=1)
    store.write("/memory/2026-11-27.md", "Slept badly. Paid Anna for the tickets. Called Anna.\n", now_ms=2)
    assert [one.candidate.text for one in store.latest()] == ["I owe Karim 40 euros."]
    for now_ms in (3, 4):
        store.write("/memory/2026-11-28.md", "Slept well. Paid Karim back. Called Anna.\n", now_ms=now_ms)
        assert [one.candidate.text for one in store.latest()] == ["Paid Karim back."]
    assert store.latest()[0].candidate.kind == "dynamic"


def test_in_one_list_what_is_over_takes_the_line_above_with_it() -> None:
    text = "# Notes\n\n- I take piano lessons on Tuesdays\n- I live in Ghent\n- Stopped the piano lessons\n"
    assert [one.text for one in read(text, "/memory/notes.md")] == ["I live in Ghent", "Stopped the piano lessons"]


def test_of_several_facts_the_one_goes_that_says_most_of_what_is_over() -> None:
    shown = latest("I pay 54 euros for the phone contract. My phone number is 0171 555 0101.", "Cancelled the phone contract.")
    assert shown == ["My phone number is 0171 555 0101.", "Cancelled the phone contract."]


def test_what_my_sister_does_is_of_her_and_of_the_speaker() -> None:
    [fact] = read("My sister lives in Boston.", "/memory/notes.md")
    assert fact.subject == "sister"
    [told] = read("[10:02] Ana: My sister lives in Boston.\n[10:03] Ben: ok", "/memory/chat.md")
    assert told.subject == "ana"


def test_a_title_belongs_to_the_name() -> None:
    found = {
        claim.value for text in ("Our landlord is Mr. Pereira.", "My doctor Dr. Kim retired.") if (claim := claim_of(text))
    }
    assert found == {"mr. pereira", "dr. kim"}


def test_somebody_elses_is_not_the_users() -> None:
    assert "Joost loves his Skoda." in latest("I live in Ghent. Joost loves his Skoda.", "Sold the Skoda.")


@pytest.mark.promise("facts.aspects")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("- Allergies: penicillin, nuts", "I'm not allergic to penicillin after all."),
        ("I'm allergic to nuts and penicillin.", "I'm not allergic to penicillin any more."),
        ("- Hobbies: tennis, chess and piano", "I gave up tennis."),
        ("- Medication: ibuprofen, omeprazole", "I stopped taking ibuprofen."),
        ("I play tennis and the piano.", "I gave up the piano."),
        ("My desk is on the third floor.", "My desk is black now."),
        ("My laptop is a ThinkPad X1.", "My laptop is fast now."),
        ("Project Juniper is due on 3 March 2027.", "Project Juniper replaced SQLite with Cassandra."),
        ("Ledger is written in Go.", "Ledger runs on Postgres 16 now."),
        ("Ledger is written in Go.", "Karim left, Ana owns Ledger now."),
        ("Staging is at ledger-stg.brightloop.dev.", "Ledger runs on Postgres 16 now."),
        ("I work at Nexia.", "I joined a gym."),
        ("I work at Nexia.", "I joined Ana for lunch."),
        ("I work at Nexia.", "I joined the local choir last week."),
    ],
)
def test_what_is_over_leaves_what_stands_beside_it(before: str, after: str) -> None:
    assert before.removeprefix("- ") in latest(before, after)


@pytest.mark.promise("facts.several")
@pytest.mark.parametrize(
    ("notes", "now"),
    [
        (("- Job: baker at Nexia", "I work at Nexia."), "I joined Tessera in May."),
        (("- Job: baker at Nexia", "I work as a baker at Nexia."), "I left Nexia."),
        (("I'm a baker at Nexia.", "- Employer: Nexia"), "I joined IBM."),
        (("- Relationship status: single", "I'm single and live alone."), "I got married in June."),
        (("My editor is Vim.", "I use Vim for everything."), "I've switched to Helix."),
        (("Our database is MySQL.", "We use MySQL."), "We migrated from MySQL to Postgres."),
        (("I have a dog called Kuma.", "Kuma is a beagle.", "Kuma sleeps on the couch."), "Kuma died yesterday."),
        (("The standup is at 9:30.", "- Standup: 9:30"), "The standup is now at 10."),
    ],
)
def test_what_several_notes_say_is_over_in_all_of_them(notes: tuple[str, ...], now: str) -> None:
    assert latest(*notes, now) == [now]


@pytest.mark.promise("facts.endings")
@pytest.mark.parametrize(
    ("path", "before", "after"),
    [
        ("notes.md", "Our standup is at 9:45.", "Standup is at 10:15 now."),
        ("conventions.md", "- Line length is 100", "Line length is 120 from now on."),
        ("notes.md", "The rent is 820 euros.", "The rent is now 870 euros."),
        ("people/Tomás.md", "- In second grade", "Tomás started third grade today."),
        ("people/Rui.md", "- Drives a motorbike", "Rui sold his motorbike."),
        ("projects/ledger.md", "- Database: MySQL 8", "Ledger runs on Postgres 16 now, MySQL is gone."),
    ],
)
def test_a_line_of_a_diary_says_what_is_otherwise_now(path: str, before: str, after: str) -> None:
    store = Store()
    store.write(f"/memory/{path}", f"{before}\n", now_ms=0)
    (known,) = store.latest()
    store.write("/memory/2026-09-12.md", f"The weather was fine and we had soup.\n\n{after}\n", now_ms=DAY_MS)
    assert known.id not in {one.id for one in store.latest()}
    assert store.latest()


def test_what_is_new_is_remembered_of_a_diary() -> None:
    store = Store()
    store.write("/memory/2026-09-12.md", "Rain all day.\n\nNew laptop: Framework 13.\n", now_ms=0)
    assert [one.candidate.text for one in store.latest()] == ["New laptop: Framework 13."]


@given(st.sampled_from(PAIRS), st.sampled_from(PAIRS))
def test_every_fact_that_something_ends_is_found_by_the_words_it_is_looked_up_by(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    for fact in read(one[0], "/memory/notes.md"):
        for ender in (*read(one[1], "/memory/notes.md"), *read(other[1], "/memory/notes.md")):
            if any(is_ended(fact.text, ending) for ending in endings_of(ender.text)):
                assert topics_of(fact) & set(related_topics_of(ender))
                assert topics_of(ender) & set(related_topics_of(fact))


@given(st.text(max_size=2000))
def test_any_text_has_few_words_and_endings_that_say_something(text: str) -> None:
    assert len(stems_of(text)) <= WORDS_MAX
    assert all(ending.stems for ending in endings_of(text))
