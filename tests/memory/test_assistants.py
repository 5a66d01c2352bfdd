"""What other assistants remember of their user, copied out of them into a file among the memories."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from memdir.memory.assertions import is_meant
from memdir.memory.assistants import as_list, is_of_assistant

from .reading import facts, read

pytestmark = pytest.mark.promise("facts.assistants")

CHATGPT = """\
Is a 34-year-old data engineer living in Leipzig.
User's name is Jonas Weber and they prefer to be called Jo.
Has two cats named Miso and Nori.
User's partner, Lena, is a pediatric nurse working night shifts.
Is planning a two-week trip to Japan in April 2027 with Lena.
User drives a 2019 Skoda Octavia.
Is allergic to shellfish.
Avoids dairy.
Does bouldering twice a week at Kosmos.
User would like code examples in type-annotated Python 3.12.
"""
CONTEXT = """\
1. [2024-06-11]. User lives in Porto.

2. [2024-07-02]. User is learning Portuguese with a tutor named Inês.

3. [2025-01-19]. User has moved to Lisbon.

4. [2025-02-10]. Prefers window seats.
"""
EXPORT = """\
```
## Identity
[2025-03-14] - Lives in Leipzig, Germany

## Preferences
[unknown] - Prefers metric units
[2025-06-02] - Likes hiking in Saxon Switzerland
```
"""


@pytest.mark.parametrize(
    "name",
    [
        *("chatgpt-memories", "chatgpt-memory", "claude-memory-export", "memories-from-chatgpt", "gemini-saved-info"),
        *("gpt-4o-memories", "my-ai-memory", "what-chatgpt-knows-about-me", "memories-(export)", "memory-export-2026-03-01"),
    ],
)
def test_names_of_such_files(name: str) -> None:
    assert is_of_assistant(name)


@pytest.mark.parametrize(
    "name", ["claude-pricing", "memories", "memories-of-paris", "llm-context-windows", "gemini", "gpt-5-facts"]
)
def test_names_of_other_files(name: str) -> None:
    assert not is_of_assistant(name)


def test_every_line_is_of_the_user() -> None:
    found = read(CHATGPT.replace(".\nAvoids", " and avoids"), "/memory/ChatGPT memories.md")
    assert [one.text for one in found] == CHATGPT.splitlines()
    assert {one.subject for one in found} == {"user"}


def test_a_verb_at_the_beginning_is_nobodys_name() -> None:
    found = read("- Doesn't drink alcohol.\n- Theo is 9.\n- Can’t eat nuts.\n", "/memory/chatgpt memory.md")
    assert {one.text: one.subject for one in found} == {
        "Doesn't drink alcohol.": "user", "Theo is 9.": "theo", "Can’t eat nuts.": "user",
    }  # fmt: skip


def test_paragraphs_and_other_languages() -> None:
    assert facts(CHATGPT.replace("\n", "\n\n"), "/memory/saved memories.md") == CHATGPT.splitlines()
    said = ["Hat zwei Katzen namens Miso und Nori.", "Lernt gerade Japanisch.", "Nutzer bevorzugt kurze Antworten."]
    found = read("Das weiß ich:\n\n" + "\n".join(said), "/memory/ChatGPT Erinnerungen.txt")
    assert [(one.subject, one.text) for one in found] == [("user", one) for one in said]


def test_days_stand_before_the_lines_and_are_no_part_of_them() -> None:
    found = {one.text: one.said_ms for one in read(CONTEXT, "/memory/chatgpt memory.txt")}
    assert list(found) == [
        "User is learning Portuguese with a tutor named Inês.", "User has moved to Lisbon.", "Prefers window seats.",
    ]  # fmt: skip
    assert found["Prefers window seats."] == int(datetime(2025, 2, 10, tzinfo=UTC).timestamp()) * 1000
    assert all(one.kind == "static" for one in read(CONTEXT, "/memory/chatgpt memory.txt"))


def test_all_of_it_may_stand_in_a_fence() -> None:
    wanted = ["Lives in Leipzig, Germany", "Prefers metric units", "Likes hiking in Saxon Switzerland"]
    assert facts(EXPORT, "/memory/claude export.md") == wanted
    assert facts(EXPORT, "/memory/snippets.md") == []
    assert facts(f"Notes:\n{EXPORT}", "/memory/claude export.md") == []


@pytest.mark.parametrize("text", [CHATGPT, CONTEXT, EXPORT, f"{CONTEXT}\n```\na\n```\n", "[2024-06-11] X\n[n/a] Y\n"])
def test_each_character_stays_where_it_was(text: str) -> None:
    plain = as_list(text)
    assert len(plain) == len(text)
    assert [len(line) for line in plain.split("\n")] == [len(line) for line in text.split("\n")]


def test_places_are_those_of_the_file() -> None:
    for one in read(CONTEXT, "/memory/chatgpt memory.txt"):
        assert one.text in CONTEXT.encode()[one.start_byte : one.end_byte].decode()


@pytest.mark.parametrize("path", ["/memory/memory_export.json", "/memory/memories.csv", "/memory/log.jsonl"])
def test_what_programs_read_is_no_list_of_facts(path: str) -> None:
    assert facts('{"memories": [{"content": "User lives in Oslo"}]}\n1,User lives in Bergen,2026-05-01\n', path) == []


@pytest.mark.parametrize(
    ("statement", "meant"),
    [
        ("Is a 34-year-old data engineer", True), ("Is planning a trip", True),
        ("Is allergic to cats?", False), ("Is a visa needed for Japan", False), ("Is the meeting on Friday", False),
        ("Is anything missing", False), ("Does Ana eat fish", False), ("User would like short answers", True),
        ("I would go", False),
    ],
)  # fmt: skip
def test_a_statement_without_a_subject_is_no_question(statement: str, meant: bool) -> None:
    assert is_meant(statement) == meant
