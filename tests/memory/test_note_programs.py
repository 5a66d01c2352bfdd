"""Notes as Obsidian, Logseq, Notion, Org and Zettelkasten programs keep them: links, tags, tasks, properties, dates in names;
and what lies among them that others wrote."""

from __future__ import annotations

import random
import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.memory.extract import extract
from memdir.memory.markup import cleaned, source_at
from memdir.memory.pages import Known, pages
from memdir_bench.memory.judging import DAY_MS, Store, shown
from memdir_bench.memory.made_up_lives import life

from .reading import facts, read

pytestmark = pytest.mark.promise("facts.note-programs")


@pytest.mark.parametrize(
    ("source", "plain"),
    [
        ("My manager is [[Helen Marsh]].", "My manager is Helen Marsh."),
        ("Lunch with [[People/Ana Ruiz#Work|Ana]] and [[People/Ben]]", "Lunch with Ana and Ben"),
        ("Moved [to Porto](https://example.com/a) on ==Monday==", "Moved to Porto on Monday"),
        ("I *really* like __tea__, _strong_, `black`", "I really like tea, strong, black"),
        ("Use snake_case_names and 2 * 3 * 4", "Use snake_case_names and 2 * 3 * 4"),
        ("~~I like coffee.~~ I like tea.", "I like tea."),
        ("wants to open a bakery #ideas #work/later", "wants to open a bakery"),
        ("Deploys are announced in #releases", "Deploys are announced in #releases"),
        ("My favourite colour is #fa0 and my channel is #ops", "My favourite colour is #fa0 and my channel is #ops"),
        ("call the dentist ⏫ 📅 2026-03-09 ➕ 2026-03-01", "call the dentist 📅 2026-03-09"),
        ("Our bank is Aktia[^2] ^a1b2c3", "Our bank is Aktia"),
        ("![[garden.png]] The garden is 40 m²", "The garden is 40 m²"),
        ("See [[https://example.com][the lease]]", "See the lease"),
        ("weight:: 78.2", "weight: 78.2"),
        ("i live in Porto", "I live in Porto"),
    ],
)
def test_markup_is_no_part_of_what_is_said(source: str, plain: str) -> None:
    assert cleaned(source) == plain


PIECES = st.sampled_from(
    [
        "[[Ana Ruiz]]",
        "[[Ana|she]]",
        "**bold**",
        "_so_",
        "==x==",
        "~~gone~~",
        " #tag",
        "i am",
        "\n  ",
        "word",
        "`a`",
        "[a](b)",
        ",",
    ]
)


@given(st.lists(PIECES, max_size=12))
def test_each_place_in_the_plain_text_has_one_in_its_source(pieces: list[str]) -> None:
    source = "".join(pieces)
    plain = cleaned(source)
    for at, char in enumerate(plain):
        place = source_at(source, plain, at)
        while source[place] != char and not (char == " " and source[place].isspace()) and (char, source[place]) != ("I", "i"):
            place += 1  # markup stands before it
        assert place < len(source)
    assert source_at(source, plain, len(plain)) <= len(source)


def _marked(text: str, rng: random.Random) -> str:
    """With links, emphasis, tags and comments, as somebody may write it in Obsidian."""

    def named(found: re.Match[str]) -> str:
        name = found[0]
        return rng.choice([f"[[{name}]]", f"**{name}**", f"[[People/{name}|{name}]]", name, f"[{name}](x.md)", f"=={name}=="])

    lines = []
    for line in text.split("\n"):
        linked = re.sub(r"(?<=[a-z] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)?(?=[ .,;]|$)", named, line)
        is_said = bool(line.strip()) and not line.startswith("#")
        lines.append(linked + rng.choice(["", "", "", " #life", " #work/now", " %%check this%%"]) * is_said)
    return "\n".join(lines)


@pytest.mark.parametrize("family", ["tuned", "held"])
def test_links_emphasis_tags_and_comments_change_nothing_of_what_is_remembered(family: str) -> None:
    compared = 0
    for seed in range(6):
        for path, text, _ in life(family, seed).notes:
            if "/chats/" not in path:
                marked = _marked(text, random.Random(f"{family}{seed}{path}"))
                plain, found = read(text, path), read(marked, path)
                assert [(one.kind, one.subject, one.text) for one in found] == [
                    (one.kind, one.subject, one.text) for one in plain
                ]
                compared += 1
    assert compared > 100


DAILY = """---
date: 2026-03-20
tags: [daily]
mood: ok
---
# Friday 20 March 2026
prev:: [[2026-03-19]]
weight:: 78.2

## Log
- moved in!! New address: Rua das Flores 14, 4050-262 Porto
- sold the bike to [[Tomás]] for 180€
- [[Helen Marsh]] is on leave until June, [[Dario]] is my manager in the meantime
- I'm on the [[platform]] team now

> [!quote] Marcus
> I live in Rome.

> [!info] I'm allergic to penicillin.

%% I live in Oslo. %%

## Tasks
- [x] call the dentist ✅ 2026-03-18
- [ ] ask [[Karl]] about the drill
"""


def test_a_daily_note_of_obsidian() -> None:
    kinds = {one.text: one.kind for one in read(DAILY, "/memory/Daily/2026-03-20.md")}
    assert kinds == {
        "moved in!!": "dynamic",
        "New address: Rua das Flores 14, 4050-262 Porto": "static",
        "sold the bike to Tomás for 180€": "dynamic",
        "Helen Marsh is on leave until June.": "dynamic",
        "Dario is my manager in the meantime": "dynamic",
        "I'm on the platform team now": "static",
        "I'm allergic to penicillin.": "static",
        "ask Karl about the drill": "dynamic",
    }


def test_a_clause_has_its_own_place_although_links_stand_before_it() -> None:
    found = [one for one in read(DAILY, "/memory/Daily/2026-03-20.md") if "Dario" in one.text]
    assert DAILY.encode()[found[0].start_byte : found[0].end_byte].decode() == "[[Dario]] is my manager in the meantime"


def test_a_new_address_takes_the_place_of_the_old_one() -> None:
    store = Store()
    store.write("/memory/me.md", "- Address: Lange Straat 9, Utrecht\n- Phone: 030 1234\n", now_ms=0)
    store.write("/memory/Daily/2026-03-20.md", DAILY, now_ms=DAY_MS)
    said = [one.text for one in shown(store, DAY_MS)]
    assert [one for one in said if "ddress" in one] == ["New address: Rua das Flores 14, 4050-262 Porto"]
    assert "Phone: 030 1234" in said


LOGSEQ = """- Met [[Ines Kowalski]] for coffee
\t- she's moving to Gdańsk in April
\t- wants to start a bakery #ideas
- DONE pay the rent
  :LOGBOOK:
  CLOCK: [2026-03-02 Mon 09:12:33]--[2026-03-02 Mon 09:20:11] =>  00:07:38
  :END:
- TODO renew passport
  SCHEDULED: <2026-03-10 Tue>
- collapsed:: true
  We signed the lease for the shop.
- ((64f0a1b2-1234-4abc-9def-001122334455))
- [[Garden]]
"""


def test_a_journal_of_logseq() -> None:
    assert facts(LOGSEQ, "/memory/journals/2026_03_02.md") == [
        "Met Ines Kowalski for coffee", "Ines Kowalski is moving to Gdańsk in April", "Ines Kowalski wants to start a bakery",
        "renew passport SCHEDULED: <2026-03-10 Tue>", "We signed the lease for the shop.",
    ]  # fmt: skip
    page = "tags:: person\nbirthday:: [[Jul 9th]]\nalias:: Ines\n\n- Her husband is [[Marek]]\n"
    assert facts(page, "/memory/pages/Ines Kowalski.md") == [
        "Ines Kowalski – birthday: Jul 9th", "Ines Kowalski's husband is Marek",
    ]  # fmt: skip


def test_a_page_of_notion_is_of_whom_it_is_called_after_and_not_of_the_user() -> None:
    text = "# Dr Patel\n\nPhone: +44 20 7946 0018\nAddress: 12 Harley Mews, London\nLast edited time: March 3, 2026 10:11 PM\n"
    path = "/memory/Contacts 1f2e3d4c5b6a79887766554433221100/Dr Patel 0a1b2c3d4e5f60718293a4b5c6d7e8f9.md"
    assert {one.text: one.subject for one in read(text, path)} == {
        "Dr Patel – Phone: +44 20 7946 0018": "dr patel", "Dr Patel – Address: 12 Harley Mews, London": "dr patel",
    }  # fmt: skip


def test_org() -> None:
    text = (
        "#+TITLE: Life\n* Health\n** Allergies\n   - penicillin\n* TODO Renew the insurance\n  DEADLINE: <2026-12-18 Fri>\n"
        "* DONE Cancel the gym\n  CLOSED: [2026-11-01 Sun]\n* Home\n  We live at /Lindenstrasse 4/, third floor.\n"
    )
    assert facts(text, "/memory/life.org") == [
        "Allergies: penicillin", "Renew the insurance DEADLINE: <2026-12-18 Fri>", "We live at Lindenstrasse 4, third floor.",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("path", "day"),
    [
        ("/memory/2026_03_02.md", "2026-03-02"),
        ("/memory/202603021412 Why I left.md", "2026-03-02"),
        ("/memory/2 March 2026.md", "2026-03-02"),
        ("/memory/Mar 2nd, 2026.md", "2026-03-02"),
    ],
)
def test_days_in_names_of_files(path: str, day: str) -> None:
    (fact,) = read("I live in Porto.\n", path)
    assert fact.said_ms is not None
    assert datetime.fromtimestamp(fact.said_ms / 1000, UTC).date().isoformat() == day
    assert fact.subject == "user"


CLIPPED = (
    "I used to drink six cups a day. I live in Seattle, and my husband works at a roastery.\nI'm a nurse.\n"
    "- Green tea is better\n- Ana Lowe lives in Graz\n"
)


@pytest.mark.promise("facts.hearsay")
@pytest.mark.parametrize(
    ("head", "path"),
    [
        ('---\nsource: "https://blog.example.com/quit"\nauthor: Sandra Lowe\n---\n', "/memory/How I quit coffee.md"),
        ("# How I quit coffee\nSource: <https://blog.example.com/quit>\n\n", "/memory/notes/coffee.md"),
        ("---\ntags: [clippings, health]\n---\n", "/memory/coffee.md"),
        ("---\ntags:\n  - health\n  - clippings\n---\n", "/memory/coffee.md"),
        ("tags:: book, coffee\n\n", "/memory/pages/coffee.md"),
        ('---\ntype: Web\nauthors: "[[Ann Lowe]]"\nurl: https://a.example/x\n---\n', "/memory/coffee.md"),
        ("", "/memory/Clippings/coffee.md"),
        ("", "/memory/3_Book notes/coffee.md"),
        ("", "/memory/Rezepte/kaffee.md"),
    ],
)
def test_what_was_clipped_or_is_about_a_book_is_nobodys_fact(head: str, path: str) -> None:
    assert facts(head + CLIPPED, path) == []


def test_but_a_persons_page_may_name_their_site() -> None:
    text = "---\nurl: https://ana.example.com\ncompany: Nexo\n---\n- Lives in Graz\n"
    assert facts(text, "/memory/people/ana ruiz.md") == ["Ana Ruiz – Company: Nexo", "Ana Ruiz – Lives in Graz"]


def test_a_page_tagged_as_a_persons_is_of_them_wherever_it_lies() -> None:
    for tags in ("tags: [person, work]", "tags:\n  - work\n  - person", "tags:\n- Contacts"):
        assert facts(f"---\n{tags}\n---\n- Finance, third floor\n- Knows everybody in Graz\n", "/memory/Ana Ruiz.md") == [
            "Ana Ruiz – Finance, third floor",
            "Ana Ruiz – Knows everybody in Graz",
        ]


def test_lists_of_links_and_tables_of_numbers_state_nothing() -> None:
    links = "# Home\n- [[Garden]]\n- [[People/Ana]]\n- [lease](lease.pdf)\n- https://example.com\n"
    assert facts(links, "/memory/home moc.md") == []
    table = "| date | ferritin |\n| --- | --- |\n| 2025-09-01 | 12 |\n| 2026-03-01 | 40 |\n"
    assert facts(table, "/memory/blood.md") == []


def test_a_relative_clause_says_nothing_of_the_user() -> None:
    assert facts("I met Ana, who is married now and lives in Graz.\n", "/memory/me.md") == [
        "Ana is married now.", "Ana lives in Graz.",
    ]  # fmt: skip


def test_lists_in_front_matter() -> None:
    text = '---\nlanguages: [Portuguese, English]\nhobbies:\n  - chess\n  - sailing\npartner: "[[Ana]]"\nname: [NAME]\n---\n'
    assert facts(text, "/memory/me.md") == ["Languages: Portuguese, English", "Hobbies: chess, sailing", "Partner: Ana"]


def test_pages_of_people_and_projects_are_told_by_their_folders() -> None:
    notes = {
        "/memory/People/Tomás.md": "Plays bass in a band.\nRehearsal opens at eight.\n",
        "/memory/Projects/Oslo trip.md": "---\nstatus: planning\n---\n- Hotel: Citybox\n",
        "/memory/me.md": "My manager is [[Helen Marsh]].\n",
    }
    store = Store()
    for path, text in notes.items():
        store.write(path, text, now_ms=0)
    known = [Known(memory=one, place=f"{one.document_id}:1") for one in store.latest()]
    found = pages(known, now_ms=0)
    assert [line for line in found["people.md"].splitlines() if line.startswith("## ")] == ["## Tomás", "## Helen Marsh"]
    assert "Oslo trip – Status: planning" in found["projects.md"]
    assert "Tomás – Plays bass" not in found["projects.md"]


@pytest.mark.parametrize("name", ["README.md", "index.md", "notes.md", "profile.md", "allergies.md"])
def test_what_lies_in_the_folder_of_a_person_or_project_is_of_them(name: str) -> None:
    text = "# Ana Ruiz\n\n- Lives in Porto\n- Allergic to nuts\n\nI met her in Graz.\n"
    for folder in ("people/Ana Ruiz", "Contacts/Ana Ruiz", "10 People/Ana Ruiz/health"):
        found = extract(text, f"/memory/{folder}/{name}", byte_at=lambda at: at)
        assert {one.text for one in found if one.subject == "ana ruiz"} == {
            "Ana Ruiz – Lives in Porto",
            "Ana Ruiz – Allergic to nuts",
        }
        assert {one.text for one in found if one.subject == "user"} <= {"I met her in Graz."}
    found = extract("- Owner: Ben\n", f"/memory/Projects/Archive/Heron/{name}", byte_at=lambda at: at)
    assert [(one.subject, one.text) for one in found] == [("heron", "Heron – Owner: Ben")]


def test_a_diary_in_the_folder_of_a_person_keeps_what_lasts() -> None:
    text = "Had lunch with Ana.\n\nShe moved to Lisbon.\n"
    found = extract(text, "/memory/people/Ana Ruiz/2026-03-02.md", byte_at=lambda at: at)
    assert [one.text for one in found if not one.is_passing] == ["Ana Ruiz moved to Lisbon."]


def test_what_somebody_has_several_of_is_not_replaced_by_another_one() -> None:
    store = Store()
    store.write(
        "/memory/me.md",
        "- Allergies: penicillin\n- Languages: Portuguese, English\n- Child: Mira\n- Keys: at Zoe's\n",
        now_ms=0,
    )
    store.write("/memory/health.md", "# Me\n\n## Allergies\n- cats (mild)\n", now_ms=DAY_MS)
    store.write(
        "/memory/now.md", "- Languages: Portuguese, English, Norwegian\n- Child: Tom\n- Keys: in the shed\n", now_ms=2 * DAY_MS
    )
    store.write("/memory/user.md", "## Gifts\n- a kite for Mira\n", now_ms=2 * DAY_MS)
    store.write("/memory/profile.md", "## Gifts\n- socks for Tom\n", now_ms=3 * DAY_MS)
    assert sorted(one.text for one in shown(store, 3 * DAY_MS)) == [
        "Allergies: cats (mild)", "Allergies: penicillin", "Child: Mira", "Child: Tom", "Gifts: a kite for Mira",
        "Gifts: socks for Tom", "Keys: in the shed", "Languages: Portuguese, English, Norwegian",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        '---\nmodule: "AI"\n---\n# Fluent\n\nAn aspect of a [[World]] that can change. All others are called [[Static]]\n',
        "# Agents\n\nAn [[Agent]] (see [[Reflex]]) which chooses [[Action|actions]]. This type of agent is quite flexible.\n",
        "# Be bored\n\nThe idea is that when you are bored your mind rests.\nAfter that you will want to do something.\n",
    ],
)
def test_a_note_that_explains_something_is_about_nobody(text: str) -> None:
    assert facts(text, "/memory/AI/x.md") == []


def test_but_what_a_short_note_tells_of_a_thing_is_remembered() -> None:
    for said in (
        "A spare key is at the neighbour's.",
        "The process for refunds is owned by Ana.",
        "You need the VPN for staging.",
    ):
        assert facts(said + "\n", "/memory/notes.md") == [said]


def test_boxes_and_tags_before_a_line() -> None:
    text = (
        "- [/] paint the fence\n- [-] call the bank\n- [>] mow the lawn\n- [!] the boiler leaks\n"
        "- #event dinner with [[Jenna Wolf]] on Friday\n"
    )
    assert facts(text, "/memory/notes.md") == ["paint the fence", "the boiler leaks", "dinner with Jenna Wolf on Friday"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Adresse: Allee 1, Halle", "Neue Adresse: Gartenweg 3, Leipzig"),
        ("Dirección: Calle Sol 1, Lugo", "Nueva dirección: Calle Mayor 5, Valencia"),
        ("Adresse : 3 rue Haute, Metz", "Nouvelle adresse : 12 rue des Lilas, Lyon"),
    ],
)
def test_a_new_address_in_other_languages(old: str, new: str) -> None:
    store = Store()
    store.write("/memory/me.md", f"- {old}\n", now_ms=0)
    store.write("/memory/2026-11-20.md", f"## Heute\n- {new}\n- Zahnarzt angerufen\n", now_ms=DAY_MS)
    said = [(one.kind, one.text) for one in shown(store, DAY_MS) if one.kind == "static"]
    assert said == [("static", new)]


def test_prices_addresses_and_birthdays_are_no_marks_of_a_manual() -> None:
    text = "- Rent $900, water $40\n- Spotify 17.99, NYT 12.50\n- Accountant: Kirsi, kirsi@example.fi\n- Car insurance 410.20\n"
    assert len(facts(text, "/memory/Areas/Finances.md")) == 4
    assert facts("husband, b. 1984-02-17 in Turku\n", "/memory/People/Sami.md") == ["Sami – husband, b. 1984-02-17 in Turku"]


def test_news_of_a_friend_and_a_new_rule_in_a_daily_note() -> None:
    text = (
        "Woke early.\nLunch with Liisa. She's starting a new job at the library in January!\nNew rule: no phone after 21:00\n"
    )
    assert facts(text, "/memory/Daily/2026-11-25.md") == [
        "Liisa is starting a new job at the library in January!", "New rule: no phone after 21:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "path",
    [
        *("/memory/sed/AUTHORS", "/memory/lib/NOTICE.txt", "/memory/lib/changelog.gz", "/memory/x/debian.changelog"),
        *("/memory/x/TODO.Debian", "/memory/CHANGELOG.md", "/memory/api/LICENSE-MIT", "/memory/x/READ_ME.hack"),
        *("/memory/x/README", "/memory/x/README.txt", "/memory/x/mail-FAQ.txt", "/memory/x/CHANGES2.7", "/memory/x/LIESMICH"),
        *("/memory/x/main.py", "/memory/x/colors.rc", "/memory/x/colors.default", "/memory/x/values.yaml", "/memory/x/a.hlp"),
    ],
)
def test_what_comes_with_every_program_is_nobodys_fact(path: str) -> None:
    text = "- Use one process for each queue\n- Ana Ruiz prefers tabs\n"
    assert facts(text, path) == []
    for own in ("/memory/api/README.md", "/memory/TODO", "/memory/news.md", "/memory/Authors.md", "/memory/changes.md"):
        assert len(facts(text, own)) == 2


@pytest.mark.parametrize(
    "name", ["notes.txt", "NOTES.TXT", "notes.org", "ideas v2.1", "Dr. Smith", "voice.m4a", "letter.docx", ".plan"]
)
def test_but_what_people_write_is(name: str) -> None:
    assert "Ana Ruiz prefers tabs" in " ".join(facts("- Ana Ruiz prefers tabs\n", f"/memory/{name}"))


AUTHORS = """This game came to me as a listing. I have tried to keep all that was good in it, and I left out a few things
that spoil it. Wormholes have been deleted, since nobody liked them. The maps are drawn at random, and no
two games have the same ones. Monsters grow with the level of the player who meets them first.

Some of the sounds need a card. The sounds were made by friends, whom I have to thank for many evenings. Whoever plays alone
starts in the village, and whoever joins others starts where they stand. The clock runs on while a game is saved.

The rooms are written in a language of their own. I have kept it as small as I could, and the compiler lies beside it. The
old rooms still work, but for the two with mirrors. Rings are found in the second part only, and swords in the third.

Please report what breaks, with the level and the time. I am sure there is much. The next release has trees.
"""


def test_what_an_author_tells_of_a_work_is_nobodys_fact() -> None:
    assert facts(AUTHORS, "/memory/phantasia.txt") == []
    own = AUTHORS.replace("I am sure there is much.", "I live in Graz with my sister.")
    assert "I live in Graz with my sister." in facts(own, "/memory/phantasia.txt")
    assert facts(AUTHORS, "/memory/2026-11-20.md")


def test_what_explains_a_thing_to_its_readers_is_nobodys_fact_though_its_author_speaks() -> None:
    text = "You start with a sword. You may sell it. If you wait, it rusts. I prefer the bow. Your pet follows you.\n\n"
    assert facts(text * 6, "/memory/strategy.txt") == []
    assert "I prefer the bow." in facts("You start with a sword. I prefer the bow.\n", "/memory/strategy.txt")


def test_sayings_and_a_readme_with_badges_are_nobodys_fact() -> None:
    assert facts("I love you.\n%\nI live in Seattle.\n%\nI hate cats.\n%\n", "/memory/love") == []
    badge = "![Build](https://github.com/a/b/workflows/c/badge.svg)\n\n- Check the built-in help\n- Ana Ruiz prefers tabs\n"
    assert facts(badge, "/memory/irssi/README.md") == []


def test_notes_in_restructured_text_have_headings_and_manuals_are_nobodys_fact() -> None:
    text = (
        "********\nHolidays\n********\n\nTents\n~~~~~\n\n- Two ropes and the big tarp\n\n"
        "Stoves\n^^^^^^\n\nI never cook with gas.\n\n.. note:: Ana prefers wood\n"
    )
    assert facts(text, "/memory/camping.rst") == [
        "Camping – Tents: Two ropes and the big tarp",
        "I never cook with gas.",
        "Ana prefers wood",
    ]
    for mark in (".. code-block:: ini\n\n   a = 1\n", ".. _tents:\n", ".. toctree::\n   a\n", "See :ref:`tents`.\n"):
        assert facts(f"{text}\n{mark}", "/memory/camping.rst") == []


def test_a_rule_below_a_line_is_no_fence_and_a_fence_no_heading() -> None:
    assert facts("Tents\n~~~~~\n\n- Two ropes and the big tarp\n", "/memory/me.md") == ["Tents: Two ropes and the big tarp"]
    assert facts("- I like tea\n\nHow to brew:\n~~~\nI am code\n~~~\n- I like rye\n", "/memory/me.md") == [
        "I like tea",
        "I like rye",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Heron v2.8.1 Release Notes\n====\n\nFixes since v2.8\n\n * The log was broken.  This has been fixed.\n",
        "2023-08-01  Ana Ruiz  <ana@example.org>\n\n\t* src/a.c: Lives in one place now.\n\t* Tests are run first.\n",
        "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: heron\nLicense: MIT\n",
    ],
)
def test_release_notes_change_logs_and_copyrights_are_known_by_what_they_say(text: str) -> None:
    """Under another name than their own 32 of git's release notes brought facts."""
    assert facts(text, "/memory/note.md") == []
    assert facts("# Release notes\n\n- The notes for 2.1 are due on Thursday\n", "/memory/note.md") != []
