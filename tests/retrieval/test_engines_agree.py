"""Both engines find the same, whatever is in the container."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from memdir.retrieval.embed import StaticEmbedder
from memdir.retrieval.lexical.choice import word_indexes, words_among
from memdir.retrieval.lexical.port import LexicalIndex
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import SearchQuery
from memdir.retrieval.words import prepare
from memdir.store.types import Chosen, Scope
from tests.retrieval.conftest import ENGINES, World, world_on
from tests.retrieval.corpus import DOCUMENTS, QUESTIONS

WORDS: Final = """
    run jump connect relate hope general operate nation happy fly café naïve résumé über boiler pressure serve garden
    server deploy config index kubernetes parse token münchen 東京 京都 본문 häuser retry_backoff_s parseHTTPResponse 2024-05-01
"""
STEMS: Final = WORDS.split()
ENDINGS: Final = ("", "s", "ed", "ing", "ly", "ation", "ational", "ness", "er", "ity", "able", "ement", "y")


def made_up_text(rng: random.Random) -> str:
    def word() -> str:
        stem = rng.choice(STEMS)
        made = stem + rng.choice(ENDINGS) if stem.isascii() else stem
        return rng.choice((made, made.upper(), made.capitalize()))

    lines = [" ".join(word() for _ in range(rng.randrange(3, 25))) for _ in range(rng.randrange(1, 6))]
    return f"# {word()} {word()}\n\n" + "\n".join(lines) + f"\n{word()}{word().capitalize()}Config\n"


@pytest.fixture(scope="module")
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, static: StaticEmbedder
) -> Iterator[tuple[World, World]]:
    """The same documents in both; tests only read them."""
    rng = random.Random(5)
    texts = {f"/{rng.choice('abc')}/{number}.md": made_up_text(rng) for number in range(120)} | DOCUMENTS
    with (
        world_on(ENGINES[0], tmp_path_factory.mktemp("one"), request) as first,
        world_on(ENGINES[1], tmp_path_factory.mktemp("other"), request) as second,
    ):
        for world in (first, second):
            for path, text in texts.items():
                world.put(path, text, static)
        yield first, second


def by_place(world: World, scored: list[tuple[int, float]]) -> dict[tuple[str | None, int], float]:
    stored = world.chunks.chunks([chunk_id for chunk_id, _ in scored])
    return {(stored[chunk_id].path, stored[chunk_id].chunk.ordinal): score for chunk_id, score in scored}


@pytest.fixture(scope="module")
def indexes(both: tuple[World, World]) -> Iterator[tuple[LexicalIndex, LexicalIndex]]:
    """What the product searches words with."""
    made = [words_among([one for one in (word_indexes(world.store),) if one], world.chunks) for world in both]
    yield made[0], made[1]
    for index in made:
        index.close()


@pytest.mark.promise("store.one-contract")
@pytest.mark.parametrize("folder", ["/", "/a", "/home"])
def test_words_score_the_same(both: tuple[World, World], indexes: tuple[LexicalIndex, LexicalIndex], folder: str) -> None:
    """Nearly: tantivy keeps a passage's length in one byte, and estimates how many passages hold a form of a word."""
    rng = random.Random(6)
    scope = Scope(container_id=1, folder=folder)
    pairs: list[tuple[float, float]] = []
    for _ in range(60):
        words = [rng.choice(STEMS) + (rng.choice(ENDINGS) if rng.random() < 0.5 else "") for _ in range(rng.randrange(1, 5))]
        phrases = prepare(" ".join(words)).phrases
        one, other = (by_place(world, index.search(scope, phrases, 1000)) for world, index in zip(both, indexes, strict=True))
        assert one.keys() == other.keys(), phrases
        pairs += [(score, other[place]) for place, score in one.items()]
    assert len(pairs) > (500 if folder == "/" else 5)
    if folder == "/home":
        return  # too few to compare
    ours, theirs = np.array(pairs).T
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert np.median(np.abs(ours - theirs) / ours) < 0.15


def test_vectors_and_names_are_the_same(both: tuple[World, World], static: StaticEmbedder) -> None:
    for scope in (
        Scope(container_id=1),
        Scope(container_id=1, folder="/home"),
        Scope(container_id=1, folder="/home/cat.md", exact=True),
        Scope(
            container_id=1,
            chosen=Chosen(ids=frozenset({f"d1/{letter}/{n}.md" for letter in "abc" for n in range(90)}), but=True),
        ),
    ):
        for question in QUESTIONS:
            query = static.embed_query(question)
            near = [world.chunks.nearest(scope, query, model=static.name, limit=10_000) for world in both]
            places = [
                by_place(world, list(zip(n.ids.tolist(), n.cosines.tolist(), strict=True)))
                for world, n in zip(both, near, strict=True)
            ]
            assert places[1] == pytest.approx(places[0], abs=2e-3)
            assert near[1].counted == near[0].counted
            for world, n in zip(both, near, strict=True):
                again = world.chunks.cosines(1, n.ids.tolist(), query, model=static.name)
                np.testing.assert_allclose(again, n.cosines, atol=1e-6)
            words = prepare(question).words | {"cat", "boilers", "wifi", "駅", "müll", "night"}
            named = [by_place(world, world.chunks.named(scope, words, model=static.name, limit=50)) for world in both]
            assert named[0] == named[1]
            assert named[0]


def test_a_search_gives_the_same_answer(
    both: tuple[World, World], indexes: tuple[LexicalIndex, LexicalIndex], static: StaticEmbedder
) -> None:
    for question in QUESTIONS:
        query = SearchQuery(text=question, scope=Scope(container_id=1), threshold=0.0)
        one, other = (
            Searcher(world.chunks, static, None, words=index).search(query).hits
            for world, index in zip(both, indexes, strict=True)
        )
        assert [(hit.path, hit.text) for hit in one[:5]] == [(hit.path, hit.text) for hit in other[:5]]
        assert [hit.score for hit in other] == pytest.approx([hit.score for hit in one], abs=0.01)


def test_a_phrase_is_more_than_its_words(tmp_path: Path, request: pytest.FixtureRequest, static: StaticEmbedder) -> None:
    for engine in ENGINES:
        with world_on(engine, tmp_path / engine, request) as world:
            world.put("/side.md", "We use continuous integrations everywhere.", static)
            world.put("/apart.md", "The integration of continuous rivers.", static)
            world.put("/other.md", "Nothing of the kind.", static)
            hits = world.words.search(Scope(container_id=1), ["continuous integration"], 10)
            assert {path for path, _ in by_place(world, hits)} == {"/side.md"}, engine
