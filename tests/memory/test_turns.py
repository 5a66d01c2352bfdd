"""Whose "I" it is where several speak: chats, conversations with a model, letters with a head."""

from __future__ import annotations

from datetime import date

import pytest

from memdir.memory.claims import claim_of, says
from memdir.memory.extract import extract
from memdir.memory.statements import statements
from memdir.memory.turns import ME, turns
from memdir_bench.memory.judging import DAY_MS, Store, shown

from .reading import facts, read

HEAD = "From: Liv Stenmark <liv@example.org>\nTo: Tobias\nDate: Wed, 18 Nov 2026 10:00:00 +0100\n"
FEB = date(2026, 2, 1)
MAIL = f"{HEAD}\nHi!\n\nI live in Malmö. I don't eat meat.\n"


@pytest.mark.promise("facts.speakers")
def test_what_somebody_writes_in_a_mail_is_theirs() -> None:
    found = read(MAIL, "/memory/mail.md")
    assert [(one.subject, one.text) for one in found] == [
        ("liv stenmark", "Liv Stenmark says: I live in Malmö."),
        ("liv stenmark", "Liv Stenmark says: I don't eat meat."),
    ]


def test_a_mail_as_it_was_delivered_is_one() -> None:
    received = "Received: from a.example by b.example;\n\tWed, 18 Nov 2026 10:00:00 +0100\n"
    delivered = f"From liv@example.org Wed Nov 18 10:00:00 2026\n{received}{HEAD}Content-Transfer-Encoding: 8bit\n"
    assert [one.subject for one in read(f"{delivered}\nI live in Malmö.\n", "/memory/mail.txt")] == ["liv stenmark"]
    nameless = "Message-ID: <1@b.example>\nContent-Type: text/plain\nSubject: Hi\n\nI live in Malmö.\n"
    assert [one.subject for one in read(nameless, "/memory/mail.txt")] == ["somebody"]


def test_what_a_model_says_in_a_chat_is_nobodys_and_who_talks_with_it_is_the_user() -> None:
    text = (
        "[2026-11-15 10:02] Tobias: I don't take meetings on fridays\n[2026-11-15 10:03] Assistant: I'd recommend running.\n"
        "[2026-11-15 10:04] Tobias: I always run in the evenings\n"
    )
    assert [(one.subject, one.text) for one in read(text, "/memory/chat.txt")] == [
        ("user", "I don't take meetings on Fridays"),
        ("user", "I always run in the evenings"),
    ]


@pytest.mark.parametrize(
    ("text", "speakers", "day"),
    [
        ("12/11/2026, 19:02 - Nadia: the keys\n13/11/2026, 19:03 - Rosa: congrats\n", ["Nadia", "Rosa"], date(2026, 11, 12)),
        ("11/12/2026, 7:02 PM - Nadia: keys\n11/13/2026, 7:03 PM - me: congrats\n", ["Nadia", ME], date(2026, 11, 12)),
        ("12/11/2026, 19:02 - Nadia: keys\n12/11/2026, 19:03 - Rosa: congrats\n", ["Nadia", "Rosa"], None),
        ("1.2.26, 10:02 - +1 123 456 789: x\n1.2.26, 10:03 - Bo left\n1.2.26, 10:04 - Cy: ok\n", ["+1 123 456 789", "Cy"], FEB),
        ("1.2.26, 10:02 - Ana: hi\n1.2.26, 10:03 - Bo left\n1.2.26, 10:04 - Ana: ok\n", ["Ana", "Ana"], FEB),
        ("[10:02] ana: hi\n[10:03] bo: hello\n", ["ana", "bo"], None),
        ("2026-11-12 10:02 <ana> hi\n2026-11-12 10:03 <bo> hello\n", ["ana", "bo"], date(2026, 11, 12)),
        ("Ana [12.11.26 10:02]\nhi\nBo [12.11.26 10:03]\nhello\n", ["Ana", "Bo"], date(2026, 11, 12)),
        ("Ana Ruiz  10:02 AM\nhi\n\nBo  10:05 AM\nhello\n", ["Ana Ruiz", "Bo"], None),
        ("---- Forwarded message ----\nFrom: Ana <a@x.example>\nDate: 3 Nov 2026\n\nhi\n", ["Ana"], date(2026, 11, 3)),
        ("user: hi\nassistant: hello\n", [ME], None),
        ("From: me\nSubject: notes\n\nI live in Ghent.\n", [ME], None),
    ],
)  # fmt: skip
def test_who_speaks_and_when(text: str, speakers: list[str], day: date | None) -> None:
    found = turns(text)
    assert found is not None
    assert [one.speaker for one in found] == speakers
    assert found[0].day == day


@pytest.mark.parametrize(
    "text",
    [
        "Name: Ana\nCity: Graz\n",
        "From: Lisbon\nTo: Porto\nTrain: 10:02\n\nI booked the hotel.\n",
        "10:02 the train leaves\n",
        "Gym 9:30\nLunch 12:00\n",
        "",
    ],
)
def test_a_list_of_keys_is_no_chat(text: str) -> None:
    assert turns(text) is None


def test_a_text_in_which_only_a_model_speaks_says_nothing() -> None:
    assert facts("assistant: I live in Ghent.\n", "/memory/chat.md") == []


def test_what_is_reported_is_claimed_of_who_says_it() -> None:
    found = claim_of(says("Liv", "I live in Malmö."))
    assert found is not None
    assert (found.subject, found.attribute, found.value) == ("liv", "lives in", "malmö")
    other = claim_of(says("Liv", "Ana lives in Graz."))
    assert other is not None
    assert other.subject == "ana"


def test_minutes_in_which_one_is_me_are_of_each_member() -> None:
    text = "Standup\n\nMe: finished the upgrade in staging\nAyo: out sick\nSofie: leaves for Klarna on 15 Jan\n"
    assert [(one.subject, one.kind) for one in read(text, "/memory/2026-11-20.md")] == [
        ("user", "dynamic"), ("ayo", "dynamic"), ("sofie", "dynamic"),
    ]  # fmt: skip


def test_what_a_language_model_makes_of_the_lines_of_a_conversation_is_not_the_users() -> None:
    text = "[10:02] Ana: hello there\n[10:03] Claude: Lisbon is home to me.\n"
    restated = [(2, "I live in Lisbon.")]
    assert extract(text, "/memory/chat.md", byte_at=int, restated=restated) == ()
    assert [
        one.text for one in extract("hello\n\nLisbon is home.\n", "/memory/a.md", byte_at=int, restated=[(3, restated[0][1])])
    ]


def test_a_conversation_behind_front_matter_is_one() -> None:
    text = "---\ndate: 2026-11-15\n---\n[10:02] Liv: I live in Malmö.\n[10:03] Bo: I live in Kiel.\n"
    assert [(one.speaker, one.text) for one in statements(text)] == [("Liv", "I live in Malmö."), ("Bo", "I live in Kiel.")]
    assert [one.subject for one in read(text, "/memory/chat.md")] == ["liv", "bo"]


@pytest.mark.promise("facts.speakers")
@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        ("# Chat with Noor\n\nNoor: The shop was shut.\nme: I live in Porto now.\nNoor: Oh!\n", ["I live in Porto now."]),
        ("**Me:** I work at Tessera.\n\n**Ingrid:** I live in Graz.\n", ["I work at Tessera.", "Ingrid says: I live in Graz."]),
        ("Oskar: Lunch was good.\nMe: Ben works at Tessera.\nOskar: Ah, I see.\n", ["Ben works at Tessera."]),
        ("Me: allergic to nuts\nElif: lactose intolerant\n", ["Me: allergic to nuts", "Elif: lactose intolerant"]),
        ("Me: Deniz, 34\nCity: Bern\n", ["Me: Deniz, 34", "City: Bern"]),
    ],
)
def test_lines_with_names_are_a_chat_where_the_user_speaks_in_one(chat: str, expected: list[str]) -> None:
    assert facts(chat) == expected


@pytest.mark.promise("facts.speakers")
def test_what_one_says_ends_nothing_else_of_theirs_and_nothing_of_anybody_elses() -> None:
    said = [
        "Bea: I'm vegan now.", "Me: I eat meat again.", "Bea: I work at Vestas now.", "Bea: My new phone is a Pixel 9.",
        "Otto: I'm married.", "Me: I'm single again.", "Otto: My son is called Emil.", "Bea: My son is called Tom.",
    ]  # fmt: skip
    chat = "".join(f"[03/03/2026, 10:{minute:02}] {one}\n" for minute, one in enumerate(said))
    assert facts(chat, "/memory/chats/group.txt") == [
        words if who == "Me" else says(who, words) for who, _, words in (one.partition(": ") for one in said)
    ]


@pytest.mark.promise("facts.speakers")
def test_what_one_says_later_ends_what_they_said_and_not_what_the_user_is() -> None:
    own = ["I'm single.", "I have a car.", "I'm a vegetarian."]
    before = ["I live in Graz.", "I have a red car.", "I'm single."]
    after = ["I moved to Wien.", "I sold my red car.", "I'm married now."]
    store = Store()
    store.write("/memory/me.md", "".join(f"- {one}\n" for one in own), now_ms=20_000 * DAY_MS)
    for day, said in enumerate((before, after)):
        chat = "[10:00] Me: hello!\n" + "".join(f"[10:0{number + 1}] Bea: {one}\n" for number, one in enumerate(said))
        store.write(f"/memory/chats/2026-03-0{day + 4}.txt", chat, now_ms=(20_010 + day) * DAY_MS)
    assert {one.text for one in shown(store, 20_020 * DAY_MS)} == {*own, *(says("Bea", one) for one in after)}


OF_TWO = (
    ("people/bea.md: - Single\n- Has a red car\n", "people/otto.md: - Married\n- Sold his red car\n"),
    ("2026-03-01.md: Bea is single. Bea lives in Porto. Bea has a car.", "2026-03-05.md: I moved to Lisbon. I sold my car."),
    (
        "2026-03-01.md: My brother is single. My brother lives in Porto.",
        "2026-03-05.md: My sister is married. My sister moved to Lisbon.",
    ),
)


@pytest.mark.promise("facts.speakers")
@pytest.mark.parametrize(("of_one", "of_another"), OF_TWO)
def test_what_is_said_of_one_ends_nothing_of_another(of_one: str, of_another: str) -> None:
    store, both = Store(), 0
    for number, note in enumerate((of_one, of_another)):
        path, _, text = note.partition(": ")
        both += len(text.strip().splitlines()) if text.startswith("-") else text.count(".")
        store.write(f"/memory/{path}", f"{text}\n", now_ms=(20_000 + number) * DAY_MS)
    assert len(shown(store, 20_005 * DAY_MS)) == both


def test_what_stands_below_the_name_of_somebody_is_said_of_them() -> None:
    text = "## Bea\n\n- Married\n- Lives in Graz\n\n## Otto\n\n- Single\n- Lives in Linz\n"
    assert facts(text, "/memory/people.md") == ["Bea – Married", "Bea – Lives in Graz", "Otto – Single", "Otto – Lives in Linz"]
