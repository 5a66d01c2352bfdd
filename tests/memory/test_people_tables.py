"""Tables whose rows are people, in Markdown, CSV and sheets."""

from __future__ import annotations

import pytest

from memdir.memory.claims import claim_of
from memdir.memory.extract import extract
from memdir.memory.people_tables import ROWS_MAX

TEAM = """\
# Team

| name | role | tz | notes |
|---|---|---|---|
| Marek Zieliński | SRE | Europe/Warsaw | prefers async, vegan |
| Sofia Lindqvist | Data engineer | Europe/Stockholm | - |
| me | Lead | Europe/Berlin | |
"""
BIRTHDAYS = 'Name;Birthday;Gift ideas\r\nNils;1986-03-02;running shoes\r\n"Oma Gisela";1951-11-11;"theatre tickets, tea"\r\n'
SHEET = """\
## Sheet: Guests

| row | Guest | Diet | Arrives |
| --- | --- | --- | --- |
| 2 | Ana Ruiz | vegetarian | 2026-12-23 |
| 3 | Tom Okafor | no nuts | 2026-12-24 |
"""


def facts(text: str, path: str) -> set[tuple[str, str]]:
    return {(one.subject, one.text) for one in extract(text, path, byte_at=int)}


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        (
            TEAM,
            "/memory/team.md",
            {
                ("marek zieliński", "Marek Zieliński – Role: SRE"),
                ("marek zieliński", "Marek Zieliński – prefers async, vegan"),
                ("sofia lindqvist", "Sofia Lindqvist – Tz: Europe/Stockholm"),
                ("user", "Role: Lead"),
            },
        ),
        (
            BIRTHDAYS,
            "/memory/birthdays.csv",
            {
                ("nils", "Nils – Birthday: 1986-03-02"),
                ("oma gisela", "Oma Gisela – Birthday: 1951-11-11"),
                ("oma gisela", "Oma Gisela – Gift ideas: theatre tickets, tea"),
            },
        ),
        (
            SHEET,
            "/memory/guests.xlsx",
            {("ana ruiz", "Ana Ruiz – Diet: vegetarian"), ("tom okafor", "Tom Okafor – Arrives: 2026-12-24")},
        ),
    ],
)
def test_each_cell_is_a_fact_of_the_person_whose_row_it_is(text: str, path: str, expected: set[tuple[str, str]]) -> None:
    assert expected <= facts(text, path)


@pytest.mark.parametrize(
    "text",
    [
        "First Name,Last Name,Birthday\nAna,Ruiz,1990-05-03\n", "Nachname;Vorname;Geburtstag\nRuiz;Ana;1990-05-03\n",
    ],
)  # fmt: skip
def test_a_name_in_two_columns_is_one(text: str) -> None:
    assert [subject for subject, said in facts(text, "/memory/birthdays.csv") if "1990-05-03" in said] == ["ana ruiz"]


def test_a_cell_updates_like_any_other_fact() -> None:
    claim = claim_of("Marek Zieliński – Role: SRE")
    assert claim is not None
    assert (claim.subject, claim.attribute, claim.value) == ("marek zieliński", "role", "sre")


@pytest.mark.parametrize(
    "text",
    [
        "Date,Amount,Payee\n2026-01-02,12.50,Rewe\n2026-01-03,8.00,Edeka\n",
        "Kind,Meaning\nWidget,what is drawn\n",
        "name,type,default\ntimeout,int,30\nretries,int,3\n",
        "Name,Score\n" + "".join(f"Person {number},{number}\n" for number in range(ROWS_MAX + 1)),
        "Name,Score\nAna\n\0,1\n" + "x" * 10_000 + ",2\n",
        '"Name,Birthday\nAna,1990-01-01\n',
        "",
    ],
)
def test_data_and_exports_are_searched_and_not_remembered(text: str) -> None:
    assert facts(text, "/memory/data.csv") == set()


def test_a_birthday_is_no_day_of_a_journal() -> None:
    text = "# People\n\n## Nils\n- Birthday: 1986-03-02\n- Gift: shoes\n\n## Emma\n- Birthday: 2020-08-19\n- Gift: microscope\n"
    assert {("nils", "Nils – Birthday: 1986-03-02"), ("emma", "Emma – Birthday: 2020-08-19")} <= facts(
        text, "/memory/people.md"
    )


CARDS = """\
---
source: "friends.vcf"
kind: "mail"
media_type: "text/vcard"
engine: "memdir calendar"
entries: 2
---

## Ana Ruiz

- Birthday: 1990-05-03
- Organisation: Tessera

## Tom Okafor

- Telephone: +44 20 7946 0000
"""


def test_cards_of_an_address_book_are_people_and_a_large_one_is_an_export() -> None:
    for path in ("/memory/friends.vcf", "/memory/export 2026.vcf"):
        assert facts(CARDS, path) == {
            ("ana ruiz", "Ana Ruiz – Birthday: 1990-05-03"),
            ("ana ruiz", "Ana Ruiz – Organisation: Tessera"),
            ("tom okafor", "Tom Okafor – Telephone: +44 20 7946 0000"),
        }
    many = CARDS + "".join(f"\n## Person {number}\n\n- Telephone: +44 20 7946 0{number:03}\n" for number in range(ROWS_MAX))
    assert facts(many, "/memory/friends.vcf") == set()
