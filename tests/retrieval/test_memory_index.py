"""Memories are searched as passages are, at any number, and only those that hold."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from memdir.memory.reconcile import Change
from memdir.retrieval import memories as module
from memdir.retrieval.embed import StaticEmbedder
from memdir.retrieval.memories import EXACT_MAX, FoundMemory, MemoryIndex
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import SearchOutcome, SearchQuery
from memdir.store.memories.writing import Origin
from memdir.store.protocols import ChunkStore
from memdir.store.types import MemoryCandidate, Scope
from tests.retrieval.conftest import World

PEOPLE = ["Ida", "Noor", "Pim", "Zoe", "Max", "Lea", "Tom", "Eva"]
VERBS = ["prefers", "dislikes", "owns", "repairs", "sells", "borrowed", "painted", "studied"]
THINGS = ["tea", "boats", "pianos", "gardens", "novels", "bicycles", "lamps", "maps", "ships", "bread", "cameras", "violins"]
PLACES = ["Lisbon", "Oslo", "Turin", "Bergen", "Porto", "Cork", "Gdansk", "Malmo"]


def candidate(text: str) -> MemoryCandidate:
    return MemoryCandidate(
        kind="static", subject="user", text=text, confidence=0.9, start_line=1, end_line=1, start_byte=0, end_byte=len(text)
    )


def say(world: World, texts: Sequence[str], *, container_id: int = 1, forget_after_ms: int | None = None) -> list[str]:
    origin = Origin(container_id=container_id, caller="k", forget_after_ms=forget_after_ms)
    return world.memories.say(container_id, [(origin, Change(action="add", candidate=candidate(text))) for text in texts])


class Searching:
    """An index over a world, asked in short."""

    def __init__(self, world: World, static: StaticEmbedder) -> None:
        self.world = world
        self.index = MemoryIndex(world.store.memory_search, world.chunks)
        self.searcher = Searcher(world.chunks, static, None, words=world.words)

    def found(
        self, text: str, *, container_id: int = 1, limit: int = 10, threshold: float | None = None, **how: object
    ) -> list[str]:
        return [world_text(self.world, one) for one in self.scored(text, container_id, limit, threshold, **how)]

    def scored(
        self, text: str, container_id: int = 1, limit: int = 10, threshold: float | None = None, **how: object
    ) -> list[FoundMemory]:
        query = SearchQuery(text=text, scope=Scope(container_id=container_id), limit=limit, threshold=threshold, lines=False)
        now_ms = self.world.store.now_ms()
        return self.index.search(container_id, query, self.searcher, now_ms=now_ms, **how)  # type: ignore[arg-type]


def world_text(world: World, one: FoundMemory) -> str:
    return world.memories.many([one.id])[one.id].candidate.text


@pytest.mark.promise("retrieval.memories-ranked")
def test_only_what_holds_is_found_and_every_change_is_seen_at_once(world: World, static: StaticEmbedder) -> None:
    searching = Searching(world, static)
    assert searching.found("tea") == []
    first, second = say(world, ["Ida prefers tea over coffee.", "The boat lies in Lisbon."])
    say(world, ["Noor prefers tea."], container_id=2)
    assert searching.found("who drinks tea or coffee") == ["Ida prefers tea over coffee."]
    assert searching.found("tea", container_id=2) == ["Noor prefers tea."]
    assert searching.found("quantum chromodynamics lattice") == []
    (newer,) = world.memories.say(
        1,
        [
            (
                Origin(container_id=1, caller="k"),
                Change(
                    action="supersede", candidate=candidate("Ida prefers cocoa over tea."), memory_id=first, relation="updates"
                ),
            )
        ],
    )
    assert searching.found("tea") == ["Ida prefers cocoa over tea."]
    memory = world.memories.get(newer)
    assert memory is not None
    world.memories.forget(memory)
    assert searching.found("tea") == []
    assert searching.found("tea", forgotten=True) == ["Ida prefers cocoa over tea."]
    say(world, ["The tea party is on Friday."], forget_after_ms=world.store.now_ms() + 1000)
    assert searching.found("tea party") == ["The tea party is on Friday."]
    world.clock.advance(2)
    assert searching.found("tea party") == []
    assert searching.found("boat", only={second}) == ["The boat lies in Lisbon."]
    assert searching.found("boat", only=set()) == []


def test_a_search_holds_its_container_to_the_end(world: World, static: StaticEmbedder) -> None:
    """What another search brings up to date meanwhile would be other rows than those it looks at."""

    class Watched(Searcher):
        def over(self, chunks: ChunkStore) -> Searcher:
            other = super().over(chunks)
            whole = other.search

            def search(query: SearchQuery) -> SearchOutcome:
                held.append(index._held[1].lock.locked())
                return whole(query)

            other.search = search  # type: ignore[method-assign]
            return other

    say(world, ["Ida prefers tea."])
    held: list[bool] = []
    index = MemoryIndex(world.store.memory_search, world.chunks)
    query = SearchQuery(text="tea", scope=Scope(container_id=1), lines=False)
    assert index.search(1, query, Watched(world.chunks, static, None), now_ms=world.store.now_ms())
    assert held == [True]


def test_a_memory_scores_as_a_passage_with_the_same_words_does(world: World, static: StaticEmbedder) -> None:
    text = "Ida repairs old violins in Turin."
    others = [f"{name} sells bread in Cork." for name in PEOPLE]
    say(world, [text, *others])
    for number, other in enumerate([text, *others]):
        world.put(f"/{number}.txt", other, static)
    searching = Searching(world, static)
    for question in ("who repairs violins", "Ida", "music in Italy"):
        memory = {world_text(world, one): one.score for one in searching.scored(question, threshold=0.0, limit=20)}
        query = SearchQuery(text=question, scope=Scope(container_id=1), limit=20, threshold=0.0, lines=False)
        passage = {hit.stored.chunk.text: hit.score for hit in searching.searcher.search(query).hits}
        assert memory[text] == pytest.approx(passage[text], abs=0.1), question


def test_vectors_come_from_the_store_once_the_worker_made_them(world: World, static: StaticEmbedder) -> None:
    say(world, [f"{name} owns a lamp." for name in PEOPLE])
    waiting = world.store.memory_search.to_embed(100)
    assert {memory.text for memory in waiting} == {f"{name} owns a lamp." for name in PEOPLE}
    vectors = static.embed_passages([memory.text for memory in waiting])
    world.store.memory_search.add_vectors(waiting, {static.name: vectors})
    assert world.store.memory_search.to_embed(100) == []
    stored = world.store.memory_search.vectors([waiting[0].id], model=static.name)[waiting[0].id]
    np.testing.assert_allclose(np.frombuffer(stored, dtype="<f2"), vectors[0], atol=1e-3)
    assert world.store.memory_search.ask_again(model=static.name) == 0
    assert world.store.memory_search.ask_again(model="another") == len(PEOPLE)
    world.sql("delete from memory")
    assert world.store.memory_search.vectors([memory.id for memory in waiting], model=static.name) == {}


@pytest.mark.promise("retrieval.memories-ranked")
def test_among_thousands_the_nearest_are_those_of_a_comparison_of_all(
    sqlite_world: World, static: StaticEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(3)
    every = [f"{p} {v} {t} in {c}." for p in PEOPLE for v in VERBS for t in THINGS for c in PLACES]
    rng.shuffle(every)
    say(sqlite_world, every)
    assert len(every) > EXACT_MAX
    waiting = sqlite_world.store.memory_search.to_embed(len(every))
    vectors = static.embed_passages([memory.text for memory in waiting])
    for first in range(0, len(waiting), 400):
        some = waiting[first : first + 400]
        sqlite_world.store.memory_search.add_vectors(some, {static.name: vectors[first : first + 400]})
    searching = Searching(sqlite_world, static)
    questions = [f"which {rng.choice(THINGS)} did {rng.choice(PEOPLE)} have in {rng.choice(PLACES)}" for _ in range(15)]
    short = [searching.scored(question, limit=10) for question in questions]
    monkeypatch.setattr(module, "EXACT_MAX", len(every))
    same = 0
    for question, found in zip(questions, short, strict=True):
        exact = searching.scored(question, limit=10)
        assert found[0].score == pytest.approx(exact[0].score, abs=0.02)
        same += len({one.id for one in found} & {one.id for one in exact})
        assert searching.scored(question, limit=10) == exact, "the same question has the same answer"
    assert same >= 0.9 * 10 * len(questions)
