"""Searches for what is said of somebody or something that is named: statements that hold a text, by how well they answer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from memdir.core.errors import BusyError
from memdir.retrieval.containing import EMBEDDED_MAX
from memdir.retrieval.embed import MiniLmEmbedder, StaticEmbedder
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import Hit, SearchQuery
from memdir.store.types import Matrix, Scope
from tests.retrieval.conftest import ENGINES, World, world_of

MINUTES = """# Minutes

Ana Ruiz showed the new colleagues around the warehouse. The lift is out of order. Ana Ruiz came on board on 2 December 2019.
Ben Novak and Ana Ruiz look at the printer together.

The keys hang beside the door of the annex, and the desk phone of Ana
Ruiz is 3872. Please write it down somewhere.
"""
FILES = {
    "/minutes.md": MINUTES,
    "/people/ana.md": "# Ana Ruiz\n\n- Born in Graz\n- Allergic to almonds\n",
    "/people/ben.md": "# Ben Novak\n\n- Born in Lyon\n- Allergic to mango\n- Came on board in 2021\n",
    "/list.csv": "name;seat;room\nAna Ruiz;12;the annex\nBen Novak;14;floor 2\n",
    "/news.md": "Everybody who joined the company in December gets a mug. Müller & Co. delivers them.\n",
}


@pytest.fixture(scope="module", params=ENGINES)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> Iterator[World]:
    """Tests of this module only read it."""
    with world_of(FILES, tmp_path_factory.mktemp("containing"), request, static, minilm) as made:
        yield made


@pytest.fixture
def searcher(filled: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> Searcher:
    return Searcher(filled.chunks, static, minilm, words=filled.words)


def said(searcher: Searcher, question: str, *texts: str, folder: str = "/", limit: int = 20, exact: bool = False) -> list[Hit]:
    scope = Scope(container_id=1, folder=folder, exact=exact)
    return list(searcher.search(SearchQuery(text=question, scope=scope, containing=texts, limit=limit)).hits)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("since when has she been an employee", "Ana Ruiz came on board on 2 December 2019."),
        (
            "what is her internal telephone number",
            "The keys hang beside the door of the annex, and the desk phone of Ana\nRuiz is 3872.",
        ),
        ("where was she born", "- Born in Graz"),
        ("which food must she avoid", "- Allergic to almonds"),
    ],
)
def test_the_sentence_that_answers_is_among_the_first_that_hold_the_name(
    question: str, answer: str, searcher: Searcher
) -> None:
    hits = said(searcher, question, "Ana Ruiz")
    assert answer in [hit.text for hit in hits[:2]]
    assert hits[-1].text == "# Ana Ruiz"  # which answers nothing


@pytest.mark.promise("grep.containing")
def test_all_that_hold_it_are_there_and_nothing_else(searcher: Searcher) -> None:
    texts = [hit.text for hit in said(searcher, "anything", "Ana Ruiz")]
    assert len(texts) == len(set(texts)) == 8
    assert not any("Ben Novak;" in text or "mango" in text or "lift" in text or "mug" in text for text in texts)


def test_case_accents_and_white_space_do_not_matter(searcher: Searcher) -> None:
    assert {hit.text for hit in said(searcher, "phone", "ana  ruiz")} == {
        hit.text for hit in said(searcher, "phone", "Ana Ruiz")
    }
    assert [hit.path for hit in said(searcher, "who delivers the mugs", "muller & co")] == ["/news.md"]


def test_a_text_is_whole_words_where_words_are_set_apart(world: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> None:
    lines = (
        "Ana buys one.",
        "The banana costs 40 cents.",
        "That is Ana's.",
        "東京都に住んでいます。",
        "C++ is old.",
        "C is older.",
    )
    world.put("/fruit.md", "\n".join(lines), static)
    world.embed(minilm)
    searcher = Searcher(world.chunks, static, minilm, words=world.words)
    assert {hit.text for hit in said(searcher, "what", "ana")} == {"Ana buys one.", "That is Ana's."}
    assert {hit.text for hit in said(searcher, "where", "東京")} == {"東京都に住んでいます。"}
    assert {hit.text for hit in said(searcher, "what", "C++")} == {"C++ is old."}


def test_of_several_texts_each_is_held(searcher: Searcher) -> None:
    assert [hit.text for hit in said(searcher, "who works with whom", "Ana Ruiz", "Ben Novak")] == [
        "Ben Novak and Ana Ruiz look at the printer together."
    ]
    assert [hit.text for hit in said(searcher, "who is it", "Ben Novak", "born")] == ["- Born in Lyon"]
    assert said(searcher, "who is it", "Ben Novak", "almonds") == []


def test_it_stays_in_its_scope_and_in_its_limit(searcher: Searcher) -> None:
    assert {hit.path for hit in said(searcher, "born", "Ana Ruiz", folder="/people")} == {"/people/ana.md"}
    assert {hit.path for hit in said(searcher, "born", "Ana Ruiz", folder="/list.csv", exact=True)} == {"/list.csv"}
    assert [hit.text for hit in said(searcher, "where was she born", "Ana Ruiz", limit=1)] == ["- Born in Graz"]


def test_a_hit_stands_where_it_says(filled: World, searcher: Searcher) -> None:
    for hit in said(searcher, "anything", "Ana Ruiz"):
        data = FILES[hit.path or ""].encode()
        assert data[hit.start_byte : hit.end_byte].decode() == hit.text
        assert hit.start_line == data[: hit.start_byte].count(b"\n") + 1


def test_what_says_the_same_in_several_files_takes_one_place(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    for number in range(3):
        world.put(f"/{number}/notice.md", "Kestrel Works is closed on Friday.\n", static)
    world.put("/other.md", "Kestrel Works has a new roof.\n", static)
    world.embed(minilm)
    hits = said(Searcher(world.chunks, static, minilm, words=world.words), "when is it shut", "kestrel works")
    assert [(hit.path, hit.alike) for hit in hits] == [("/0/notice.md", 2), ("/other.md", 0)]


def test_among_many_the_transformer_reads_the_likeliest_and_all_are_there(
    sqlite_world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    talk = [f"Wild Arrow came up in round {number}, mostly because of item {number}." for number in range(3 * EMBEDDED_MAX)]
    talk[100] = "The most that may be spent on Wild Arrow is 44,040 EUR."
    sqlite_world.put("/talk.md", "\n".join(talk), static)
    sqlite_world.embed(minilm)
    searcher = Searcher(sqlite_world.chunks, static, minilm, words=sqlite_world.words)
    hits = said(searcher, "what is the budget", "Wild Arrow", limit=200)
    assert hits[0].text == talk[100]
    assert {hit.text for hit in hits} == set(talk)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)


def test_before_the_transformer_has_read_them_and_without_one(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    for path, text in FILES.items():
        world.put(path, text, static)
    for model in (minilm, None):
        searcher = Searcher(world.chunks, static, model, words=world.words)
        assert "- Allergic to almonds" in [hit.text for hit in said(searcher, "almonds allergy", "Ana Ruiz")][:2]


def test_a_model_that_fails_leaves_the_lines(filled: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> None:
    class Failing(MiniLmEmbedder):
        def __init__(self) -> None:
            self.__dict__.update(minilm.__dict__)

        def embed_passages(self, texts: list[str]) -> Matrix:
            raise BusyError("gone")

    hits = said(Searcher(filled.chunks, static, Failing(), words=filled.words), "where was she born", "Ana Ruiz")
    assert len(hits) == 8
    assert "- Born in Graz" in [hit.text for hit in hits[:3]]


def test_nothing_holds_what_nowhere_stands(searcher: Searcher) -> None:
    assert said(searcher, "where was he born", "Emil Sandoval") == []
    assert said(searcher, "?!", "Ana Ruiz")
