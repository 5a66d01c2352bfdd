"""A memory of an agent as a file: what is written and read, and what the file says beside it."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memdir.memory.extract import extract
from memdir.store.agents import files as agent_files
from memdir.store.agents.files import Draft

WRITTEN = Draft(content="Text.", created_at_ms=1_700_000_000_000, updated_at_ms=1_700_000_001_000)

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
values = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | texts, lambda inner: st.lists(inner, max_size=3))


def read(text: str) -> Draft:
    return agent_files.parsed(text, created_at_ms=WRITTEN.created_at_ms, updated_at_ms=WRITTEN.updated_at_ms)


@settings(max_examples=150)
@given(content=texts, tags=st.lists(texts, max_size=4), metadata=st.dictionaries(texts, values, max_size=3))
def test_what_is_written_is_read_back(content: str, tags: list[str], metadata: dict[str, object]) -> None:
    draft = Draft(
        content=f"---\n{content} # x", tags=tuple(tags), metadata=metadata, created_at_ms=-5, updated_at_ms=1_700_000_000_123
    ).clean()
    assert read(agent_files.rendered(draft).decode()) == draft


@pytest.mark.parametrize(
    ("front", "tags"),
    [
        ("tags: [auth, '#ops']", ("auth", "ops")),
        ("Tags: auth, #ops", ("auth", "ops")),
        ("tag: auth", ("auth",)),
        ("tags:\r\n  - auth\r\n  - auth", ("auth",)),
        ("tags:", ()),
        ("tags: [broken", ("[broken",)),
    ],
)
def test_tags_are_read_however_a_person_writes_them(front: str, tags: tuple[str, ...]) -> None:
    said = read(f"\ufeff---\r\n{front}\r\n---\r\n\r\nSome text\r\n")
    assert (said.tags, said.content) == (tags, "Some text")


def test_a_time_that_is_none_is_the_files_own() -> None:
    for time in ("last week", "9999-12-31", "0001-01-01"):
        said = read(f"---\ncreated: {time}\nmodified: 2025-02-16\n---\nText")
        assert (said.created_at_ms, said.updated_at_ms) == (WRITTEN.created_at_ms, 1_739_664_000_000)


def test_fields_of_a_persons_own_are_metadata_and_their_secrets_are_not() -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"
    said = read(f'---\nauthor: Ida\nAliases: [one, two]\nkey: {token}\nmetadata: {{"n": 1}}\n---\nText {token}').redacted()
    assert said.metadata == {"author": "Ida", "Aliases": ["one", "two"], "key": "[redacted]", "n": 1}
    assert said.content == "Text [redacted]"
    assert read(agent_files.rendered(said).decode()).metadata == said.metadata


def test_facts_of_a_memory_are_what_it_says_and_about_its_project() -> None:
    draft = Draft(
        content="Deploy window: Friday\n\nThe API is versioned by date.", tags=("release",), project="shop",
        created_at_ms=0, updated_at_ms=0, metadata={"from": "mem0"},
    )  # fmt: skip
    found = extract(agent_files.rendered(draft).decode(), "/memory/shop/deploy-window-friday-9cb261.md", byte_at=int)
    assert [(fact.subject, fact.text) for fact in found] == [
        ("shop", "Shop – Deploy window: Friday"),
        ("shop", "The API is versioned by date."),
    ]
