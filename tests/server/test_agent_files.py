"""A memory of an agent as a file: what is written and read, and what the file says beside it."""

from __future__ import annotations

from memdir.memory.extract import extract
from memdir.store import agentfiles


def test_facts_of_a_memory_are_what_it_says_and_about_its_project() -> None:
    file = agentfiles.rendered(
        "Deploy window: Friday\n\nThe API is versioned by date.",
        tags=["release"], project="shop", created_at_ms=0, updated_at_ms=0, metadata={"from": "mem0"},
    )  # fmt: skip
    found = extract(file.decode(), "/memory/shop/deploy-window-friday-9cb261.md", byte_at=int)
    assert [(fact.subject, fact.text) for fact in found] == [
        ("shop", "Shop – Deploy window: Friday"),
        ("shop", "The API is versioned by date."),
    ]
