"""What connects passages: what a text mentions, and who else does, on both engines."""

from __future__ import annotations

import pytest

from memdir.retrieval.embed import StaticEmbedder
from memdir.store.passages.entity_links import SAME_NAME_MAX, SHARED_MAX
from memdir.store.text.mentions import base_names, file_keys, key_number, mentions, resolved
from tests.retrieval.conftest import World


def named(text: str) -> dict[str, str]:
    return {mention.key: mention.text for mention in mentions(text)}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("see [the plan](../plans/launch%202026.md#costs)", "file:launch-2026-md"),
        ("as agreed in [[Budget Review|the review]]", "file:budget-review"),
        ("copied from notes/a.md yesterday", "file:a-md"),
        ("from memdir.retrieval.query import Searcher", "file:query-py"),
        ("import { sum } from './lib/sum'", "file:sum"),
        ('#include "clock.h"', "file:clock-h"),
        ("In-Reply-To: <a1b2@mail.example.org>", "id:a1b2@mail.example.org"),
        ("ask eva.roth@example.org.", "id:eva.roth@example.org"),
        ("INC-4411 was closed", "id:inc-4411"),
        ("it came with 4fe12ab9 on Monday", "id:4fe12ab9"),
        ("the limit is rate_limit_max", "id:rate_limit_max"),
        ("then callParser fails", "id:callparser"),
        ("signed by Zoë Lindqvist's team", "name:zoe lindqvist"),
        ("wir trafen Frau Müller in Köln", "name:koln"),
        ("вчера Анна Петрова звонила", "name:анна петрова"),
        ("会議でスズキさんが", "name:スズキ"),
    ],
)
def test_what_a_passage_mentions_is_recognised(text: str, key: str) -> None:
    assert key in named(text)


@pytest.mark.parametrize(
    "text", ["The end. When it rains, we stay.", "at 10am, 5kg, 3rd of May, v2", "", "e.g. this, i.e. that"]
)
def test_plain_words_are_no_names(text: str) -> None:
    assert named(text) == {}


def test_a_reference_is_resolved_from_where_it_stands_and_from_the_root() -> None:
    assert resolved("../plans/a.md", "/notes/x.md")[0] == "/plans/a.md"
    assert list(resolved("plans/a.md", "/notes/x.md")) == ["/notes/plans/a.md", "/plans/a.md"]
    assert "/notes/Budget Review.md" in resolved("Budget Review", "/notes/x.md")
    assert "budget-review.md" in base_names("Budget Review")
    assert file_keys("/notes/Budget Review.md") == ("file:budget-review-md", "file:budget-review")


def paths(world: World, key: str, container_id: int = 1) -> set[str | None]:
    number = key_number(key)
    found = world.chunks.entity_links.sharing(container_id, [number]).get(number, [])
    return {stored.path for stored in world.chunks.chunks(found).values()}


def test_who_mentions_a_thing_follows_edits_moves_and_deletes(world: World, static: StaticEmbedder) -> None:
    world.put("/a.md", "INC-4411 was reported by Zoe Lind.\n", static)
    world.put("/b.md", "Cause of INC-4411: a full disk.\n", static)
    world.put("/c.md", "INC-4411 of somebody else.\n", static, container_id=2)
    assert paths(world, "id:inc-4411") == {"/a.md", "/b.md"}
    assert paths(world, "id:inc-4411", 2) == {"/c.md"}
    world.put("/a.md", "Nothing to see.\n", static)
    world.move("/b.md", "/kept/b.md")
    assert paths(world, "id:inc-4411") == {"/kept/b.md"}
    world.sql("update document set container_id = 2 where path = '/kept/b.md'")
    assert paths(world, "id:inc-4411") == set()
    assert paths(world, "id:inc-4411", 2) == {"/c.md", "/kept/b.md"}
    world.sql("delete from document")
    assert world.db.all("select * from chunk_tie") == []
    assert world.db.all("select * from document_name") == []


def test_what_too_many_mention_connects_nothing(world: World, static: StaticEmbedder) -> None:
    for number in range(SHARED_MAX + 1):
        world.put(f"/{number}.md", f"Anna Weber was here for {number} days." + (" RARE-77" if number < 2 else ""), static)
    assert paths(world, "name:anna weber") == set()
    assert paths(world, "id:rare-77") == {"/0.md", "/1.md"}


def test_files_are_found_by_path_and_by_name_wherever_they_are(world: World, static: StaticEmbedder) -> None:
    world.put("/plans/launch.md", "We start in May.\n", static)
    world.put("/old/launch.md", "We start in June.\n", static)
    ties = world.chunks.entity_links
    assert list(ties.at(1, ["/plans/launch.md", "/none.md"])) == ["/plans/launch.md"]
    assert [path for path, _ in ties.called(1, ["launch.md", "none.md"])["launch.md"]] == ["/old/launch.md", "/plans/launch.md"]
    world.move("/old/launch.md", "/old/start.md")
    found = ties.called(1, ["launch.md", "start.md"])
    assert {name: [path for path, _ in files] for name, files in found.items()} == {
        "launch.md": ["/plans/launch.md"],
        "start.md": ["/old/start.md"],
    }
    assert ties.called(2, ["launch.md"]) == {}
    begun = ties.beginnings([document_id for files in found.values() for _, document_id in files])
    texts = {world.chunks.chunks(ids)[ids[0]].chunk.text.strip() for ids in begun.values()}
    assert texts == {"We start in May.", "We start in June."}


def test_a_name_of_many_files_means_none_of_them(world: World, static: StaticEmbedder) -> None:
    for number in range(SAME_NAME_MAX + 1):
        world.put(f"/{number}/README.md", f"{number}\n", static)
    assert world.chunks.entity_links.called(1, ["README.md"]) == {}
