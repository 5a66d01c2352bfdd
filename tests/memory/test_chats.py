"""Chats as people type them: without capitals, apostrophes and subjects, with "btw" and "yeah" before what is said."""

from __future__ import annotations

import pytest

from tests.memory.reading import facts, read


def chat(*said: str, who: str = "user") -> str:
    return "".join(f"{who}: {one}\nassistant: Sure.\n" for one in said)


def told(text: str, path: str = "/memory/chat.md") -> list[tuple[str, str]]:
    return [(one.subject, one.text) for one in read(text, path)]


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("hey can you help me plan dinner? im vegan and my gf is allergic to peanuts",
         "I'm vegan and my girlfriend is allergic to peanuts"),
        ("nice. btw we moved to bristol last month", "We moved to Bristol last month"),
        ("yeah i work from home on fridays", "I work from home on Fridays"),
        ("ok so i switched from vscode to zed last week", "I switched from vscode to zed last week"),
        ("actually scratch that, we just upgraded to postgres 17", "We just upgraded to postgres 17"),
        ("got a new job!", "I got a new job!"),
        ("starting at monzo in january", "I'm starting at Monzo in January"),
        ("hab zwei katzen, mia und leo", "Ich habe zwei katzen, Mia und Leo"),
        ("bin lehrerin für mathe", "Ich bin lehrerin für mathe"),
        ("ah also dont use metric cups pls, i only have a scale", "Don't use metric cups please, I only have a scale"),
        ("bitte antworte immer auf deutsch", "Bitte antworte immer auf deutsch"),
        ("oh and my wife cant do gluten", "My wife can't do gluten"),
        ("we deploy on thursdays only btw, never on a friday", "We deploy on Thursdays only, never on a Friday"),
        ("por cierto vivo en sevilla", "Vivo en sevilla"),
        ("we moved to new york from leeds", "We moved to New York from leeds"),
        ("we moved to settings.toml", "We moved to settings.toml"),
    ],
)  # fmt: skip
def test_what_is_typed_carelessly_is_told_as_it_is_meant(typed: str, meant: str) -> None:
    assert ("user", meant) in told(chat("hello there", typed, "what do you think?"))


@pytest.mark.parametrize(
    ("typed", "subject", "meant"),
    [
        ("jess is coeliac so keep it gluten free", "jess", "Jess is coeliac so keep it gluten free"),
        ("had lunch with maria yesterday, she's moving to lyon", "maria", "Maria is moving to Lyon"),
        ("mein bruder felix arbeitet jetzt bei bosch", "felix", "Mein bruder Felix arbeitet jetzt bei bosch"),
        ("mia is vegetarian now fyi", "mia", "Mia is vegetarian now"),
        ("met ana for coffee. she's moving to basel in january", "ana", "Ana is moving to Basel in January"),
        ("sarah got married on 3 may, we may go", "sarah", "Sarah got married on 3 May, we may go"),
        ("will that work?", None, None),
    ],
)
def test_names_in_small_letters_are_names(typed: str, subject: str | None, meant: str | None) -> None:
    found = told(chat("hello there", typed, "what do you think?"))
    assert (found == []) if subject is None else ((subject, meant) in found)


def test_several_facts_of_one_message_are_told_apart_and_point_to_their_sentences() -> None:
    text = chat("my team is 5 people, im the only backend dev. our lead is called femi", "whats next?")
    found = read(text, "/memory/chat.md")
    assert [one.text for one in found] == ["My team is 5 people.", "I'm the only backend dev.", "Our lead is called femi"]
    places = [text.encode()[one.start_byte : one.end_byte].decode().strip() for one in found]
    assert places == ["my team is 5 people, im the only backend dev."] * 2 + ["our lead is called femi"]


def test_in_a_chat_of_people_each_is_told_of_who_says_it() -> None:
    text = (
        "12.11.26, 10:02 - Ich: hey, bin seit montag wieder single übrigens\n"
        "12.11.26, 10:06 - Jana: krass. ich hab bei bosch gekündigt\n"
        "12.11.26, 10:07 - Ich: no way\n"
        "12.11.26, 10:09 - Jana: und wir haben jetzt einen hund\n"
    )
    assert ("user", "Ich bin seit Montag wieder single übrigens") in told(text)
    assert ("jana", "Jana says: Ich habe bei bosch gekündigt") in told(text)


def test_what_a_session_at_work_is_busy_with_is_no_fact() -> None:
    """Of what the user says there only what speaks of more than the session is, as `capture` takes it from transcripts."""
    text = chat(
        "ok moved the check up but now the test fails",
        "i got the same error again",
        "lost my changes after the rebase, can i get them back",
        "switched the branch, still red",
        "quit the debugger and now it hangs",
        "turned 3 tests into one",
        "joined the two tables on user_id but its slow",
        "love it, ship it",
        "im getting weird whitespace in the output",
        "im working in the feature branch btw",
        "never force push, not even on feature branches",
        "we use postgres 15 at work",
    )
    assert told(text) == [
        ("user", "Never force push, not even on feature branches"),
        ("user", "We use postgres 15 at work"),
    ]


def test_what_is_asked_for_is_no_fact() -> None:
    asked = chat("write a haiku about rain", "i like the second line, keep that", "love the last one!", "im happy with that",
                 "i think winter is better", "lets do one about snow", "im confused, which one is final")  # fmt: skip
    assert told(asked) == []


@pytest.mark.parametrize("message", ["im a. " * 3_000, "i am so " * 5_000, "a, " * 20_000, "i live in x and " * 2_000])
def test_a_message_of_one_thing_over_and_over_is_read_in_one_pass(message: str) -> None:
    assert len(told(chat(message, message))) <= 500


def test_dictated_notes_are_read_without_what_one_says_while_thinking() -> None:
    said = (
        "Okay so, um, I saw Dr Keane this morning and she put me on ramipril. Uh, also, I need to ring the gas people.\n\n"
        "Oh and, um, Declan sold the farm. Yeah, and we booked Crete for June.\n"
    )
    for path in ("/memory/voice-memo.txt", "/memory/Recording 12.txt", "/memory/transcripts/memo_3.md"):
        found = {one.text: one.subject for one in read(said, path)}
        assert found["Dr Keane put me on ramipril."] == "user"
        assert found["I need to ring the gas people."] == "user"
        assert found["We booked Crete for June."] == "user"
        assert not any("um" in text.split() or text.startswith(("Uh", "Oh", "Yeah", "Okay")) for text in found)
    assert facts("Um 8 Uhr gehe ich immer schwimmen.\n", "/memory/notes.md") == ["Um 8 Uhr gehe ich immer schwimmen."]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I saw Dr Keane and she put me on ramipril.", [("user", "Dr Keane put me on ramipril.")]),
        ("I met Dr. Keane at the clinic and she prescribed ramipril.", None),
        ("I saw Anna Keane and she moved to York.", [("anna keane", "Anna Keane moved to York.")]),
        ("Met my mum and she sold the house.", [("user", "My mum sold the house.")]),
        ("Lunch with Ana and Ben, she is moving to Graz.", [("user", "Lunch with Ana and Ben, she is moving to Graz.")]),
    ],
)
def test_whom_one_saw_and_what_they_did(text: str, told: list[tuple[str, str]] | None) -> None:
    found = [(one.subject, one.text) for one in read(text, "/memory/notes.md")]
    assert not any(" and." in said or (said.startswith("Dr ") and "Keane" not in said) for _, said in found)
    assert told is None or found == told


def test_what_doctors_decided_is_remembered() -> None:
    for said in (
        "My GP put me on ramipril in October.",
        "The doctor has taken me off statins.",
        "Dr Keane told me to stop ibuprofen.",
        "They put me on insulin.",
    ):
        assert facts(f"Some text about the day.\n\n{said}\n", "/memory/notes.md")[-1:] == [said]
