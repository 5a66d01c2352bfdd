"""Questions that need two files, and questions that ask for two things."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

import pytest

from memdir.retrieval.embed import StaticEmbedder
from memdir.retrieval.query import Searcher
from memdir.retrieval.signals import connect
from memdir.retrieval.signals.connect import Connector, Seed
from memdir.retrieval.signals.hops import HOPS_MAX
from memdir.retrieval.signals.split import split
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery
from memdir.retrieval.words import prepare
from memdir.store.passages.entity_links import SHARED_MAX, EntityLinks
from memdir.store.types import Chunk, Scope, StoredChunk
from tests.retrieval.conftest import ENGINES, World, world_on
from tests.retrieval.corpus import DOCUMENTS, NONSENSE, QUESTIONS

EVERYWHERE: Final = Scope(container_id=1)

PEOPLE: Final = ("Nora Feld", "Ivo Brandt", "Lea Sommer", "Kurt Anger", "Rita Moll", "Otto Vogt", "Jana Kern", "Max Ruhl")
PAIRS: Final = {
    "/incidents/7.md": "The mill stood still on Friday.\nNoticed by Tilda Oakes, written down by Lea Sommer.\n",
    "/people/tilda.md": "Tilda Oakes\nTelephone extension 4711, desk under the stairs.\n",
    "/meetings/roof.md": "The roof of the boathouse: we settled it, see [[Halden Paper]].\n",
    "/contracts/Halden Paper.md": "Either side may leave with a notice period of ninety days.\n",
    "/mail/1.eml": (
        "From: Eva <eva@example.org>\nTo: shop@example.org\nSubject: a wish\nMessage-ID: <q1@mail.example.org>\n"
        "Date: Mon, 2 Jun 2025 10:00:00 +0200\n\nCould somebody mend the weather vane on the tower? It needs a spare part.\n"
    ),
    "/mail/2.eml": (
        "From: Bo <bo@example.org>\nTo: eva@example.org\nSubject: Re: a wish\nIn-Reply-To: <q1@mail.example.org>\n"
        "Date: Tue, 3 Jun 2025 10:00:00 +0200\n\nYes, a spare part arrives on Thursday.\n"
    ),
    "/repo/CHANGES.md": "2.4: fixed the double charging of vouchers with `voucher_guard`.\n",
    "/repo/guard.py": "def voucher_guard(items):\n    retries_max = 12\n    return items\n",
}
FILES: Final[Mapping[str, str]] = {
    **DOCUMENTS,
    **PAIRS,
    **{
        f"/people/{number}.md": f"{name}\nTelephone extension {1000 + number}, desk by the window {number}.\n"
        for number, name in enumerate(PEOPLE)
    },
    **{
        f"/contracts/other-{number}.md": f"Paper {number}. Either side may leave with a notice period of {number} days.\n"
        for number in range(30, 38)
    },
    **{
        f"/mail/other-{number}.eml": (
            "From: Bo <bo@example.org>\nTo: you@example.org\nSubject: Re: order\nDate: Tue, 3 Jun 2025 10:00:00 +0200\n\n"
            f"A spare part arrives in week {number}.\n"
        )
        for number in range(10, 18)
    },
    **{
        f"/repo/part{number}.py": f"def part{number}(items):\n    retries_max = {number}\n    return items\n"
        for number in range(8)
    },
}
TWO_FILES: Final = {
    "who noticed on Friday that the mill stood still: telephone extension": ("/people/tilda.md", "shares Tilda Oakes"),
    "what period of notice, roof of the boathouse": (
        "/contracts/Halden Paper.md",
        "linked from /meetings/roof.md",
    ),
    "when does the spare part for the weather vane on the tower arrive": ("/mail/2.eml", "shares q1@mail.example.org"),
    "how many retries at most in the code that fixed the double charging": ("/repo/guard.py", "shares voucher_guard"),
}


@pytest.fixture(scope="module", params=ENGINES)
def filled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, static: StaticEmbedder) -> Iterator[World]:
    """Tests of this module only read it."""
    with world_on(request.param, tmp_path_factory.mktemp("hops"), request) as made:
        for path, text in FILES.items():
            made.put(path, text, static)
        yield made


def ask(world: World, static: StaticEmbedder, text: str, **more: object) -> SearchOutcome:
    return Searcher(world.chunks, static, None, words=world.words).search(SearchQuery(text=text, scope=EVERYWHERE, **more))  # type: ignore[arg-type]


def place(hits: Sequence[Hit], path: str) -> int | None:
    files = list(dict.fromkeys(hit.path for hit in hits))
    return files.index(path) if path in files else None


@pytest.mark.promise("retrieval.hops")
@pytest.mark.parametrize(("question", "second"), TWO_FILES.items())
def test_the_second_file_comes_up_and_says_why(
    filled: World, static: StaticEmbedder, question: str, second: tuple[str, str]
) -> None:
    path, why = second
    followed, plain = (ask(filled, static, question, hops=hops).hits for hops in (True, False))
    rank, before = place(followed, path), place(plain, path)
    assert rank is not None, [(hit.path, hit.score) for hit in followed]
    assert rank < 10
    assert before is None or rank <= before
    found = next(hit for hit in followed if hit.path == path)
    assert found.why == why
    assert all(hit.score < found.score for hit in plain if hit.path == path)
    assert all(hit.why is None for hit in plain)


def test_a_hop_never_stands_above_what_it_was_reached_from(filled: World, static: StaticEmbedder) -> None:
    for question in TWO_FILES:
        hits = ask(filled, static, question).hits
        assert hits[0].why is None
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        assert sum(hit.why is not None for hit in hits) <= HOPS_MAX


@pytest.mark.parametrize("limit", [1, 3, 8])
def test_the_best_are_the_same_however_many_are_shown(filled: World, static: StaticEmbedder, limit: int) -> None:
    for question in TWO_FILES:
        few, many = (ask(filled, static, question, limit=most, threshold=0.0).hits for most in (limit, 13))
        assert few == many[:limit]


@pytest.mark.parametrize("question", NONSENSE)
def test_a_question_that_finds_nothing_leads_nowhere(filled: World, static: StaticEmbedder, question: str) -> None:
    followed, plain = (ask(filled, static, question, hops=hops).hits for hops in (True, False))
    assert len(followed) > 0 or len(plain) == 0
    assert bool(followed) == bool(plain)


def test_questions_of_one_file_keep_their_first_answer(filled: World, static: StaticEmbedder) -> None:
    for question in QUESTIONS:
        followed, plain = (ask(filled, static, question, hops=hops).hits for hops in (True, False))
        assert [hit.path for hit in followed[:1]] == [hit.path for hit in plain[:1]]


def test_a_hop_stays_in_the_scope(filled: World, static: StaticEmbedder) -> None:
    searcher = Searcher(filled.chunks, static, None, words=filled.words)
    question = next(iter(TWO_FILES))
    for folder in ("/incidents", "/people"):
        hits = searcher.search(SearchQuery(text=question, scope=Scope(container_id=1, folder=folder), threshold=0.0)).hits
        assert hits
        assert all((hit.path or "").startswith(f"{folder}/") for hit in hits)


def test_links_hold_whichever_file_came_first_and_follow_moves(world: World, static: StaticEmbedder) -> None:
    world.put("/notes/a.md", "The kiln is explained in [the sheet](../sheets/kiln.md).\n", static)
    seed = next(iter(world.chunks.chunks(list(range(1, 50))).values()))
    connector = Connector(world.chunks.entity_links)

    def linked() -> set[str | None]:
        found = connector.connections(EVERYWHERE, prepare("kiln"), [Seed(stored=seed, score=1.0)])
        stored = world.chunks.chunks([connection.chunk_id for connection in found])
        return {stored[connection.chunk_id].path for connection in found if connection.why.startswith("linked from")}

    assert linked() == set()
    world.put("/sheets/kiln.md", "Cone six, twelve hours.\n", static)
    assert linked() == {"/sheets/kiln.md"}
    world.move("/sheets/kiln.md", "/kept/kiln.md")
    assert linked() == {"/kept/kiln.md"}, "by its name, wherever it is"
    world.delete("/kept/kiln.md")
    assert linked() == set()


def test_what_links_to_a_hit_is_found_too(world: World, static: StaticEmbedder) -> None:
    world.put("/sheets/kiln.md", "Ceramics oven: cone six, twelve hours.\n", static)
    world.put("/notes/price.md", "See sheets/kiln.md, the electricity costs ninety.\n", static)
    world.put("/notes/other.md", "See others/kiln.md.\n", static)
    hits = ask(world, static, "what does the electricity of the ceramics oven cost").hits
    assert {hit.path: hit.why for hit in hits}["/notes/price.md"] in ("links to /sheets/kiln.md", None)
    found = Connector(world.chunks.entity_links).connections(
        EVERYWHERE, prepare("oven"), [Seed(stored=next(hit.stored for hit in hits if hit.path == "/sheets/kiln.md"), score=1.0)]
    )
    assert {connection.why for connection in found} == {"links to /sheets/kiln.md"}


def test_a_name_in_everything_is_no_connection(world: World, static: StaticEmbedder) -> None:
    for number in range(SHARED_MAX + 2):
        world.put(f"/{number}.md", f"Day {number}: Anna Weber was here.\n", static)
    hits = ask(world, static, "who was here on day 7", limit=5).hits
    seeds = [Seed(stored=hit.stored, score=hit.score) for hit in hits]
    assert seeds
    assert Connector(world.chunks.entity_links).connections(EVERYWHERE, prepare("day 7"), seeds) == []


def test_the_same_question_has_the_same_answer_every_time(filled: World, static: StaticEmbedder) -> None:
    for question in TWO_FILES:
        first, again = (ask(filled, static, question, explain=True) for _ in range(2))
        assert first.hits == again.hits
        assert first.stages_ms.keys() >= {"hops"}


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("the boiler service and how it relates to the insurance", ("the boiler service", "the insurance")),
        ("who repaired the mill, and when did the choir rehearse", ("who repaired the mill", "when did the choir rehearse")),
        ("Where is the cellar key? What does the vet cost?", ("Where is the cellar key?", "What does the vet cost?")),
        ("compare Research and Development with Sales", ("Research and Development", "Sales")),
        ("what is the difference between the lathe and the press?", ("the lathe", "the press")),
        ("wann kommt der Monteur und wo liegt der Schlüssel", ("wann kommt der Monteur", "wo liegt der Schlüssel")),
        ("Unterschied zwischen Mietvertrag und Wartungsvertrag", ("Mietvertrag", "Wartungsvertrag")),
        ("¿cuándo llega el tren y dónde está la llave?", ("¿cuándo llega el tren", "dónde está la llave?")),
        ("où est la clé et quand arrive le train", ("où est la clé", "quand arrive le train")),
    ],
)
def test_two_questions_in_one_are_taken_apart(text: str, parts: tuple[str, ...]) -> None:
    assert split(text) == parts


@pytest.mark.parametrize(
    "text",
    [
        "Research and Development budget",
        "The mill was repaired in May. The choir rehearses on Tuesdays",
        "repository of the mill; update the documentation of the lathe",
        "who pays for the ventilation and the fans",
        "what broke and when did it start",
        '"salt and how it works"',
        "Wer hat es bestellt und wann kam es an?",
        "What did Dr. Okafor say about the mill",
        "compare the lathe with the lathe",
        "and " * 300,
        "",
    ],
)
def test_one_question_stays_one(text: str) -> None:
    assert split(text) == ()


@pytest.mark.promise("retrieval.split")
def test_both_sides_of_a_question_for_two_things_are_found(filled: World, static: StaticEmbedder) -> None:
    hits = ask(filled, static, "compare the notice period of the contracts with the bread recipe", limit=6).hits
    found = {hit.path: hit.why for hit in hits}
    assert "/home/bread.md" in found
    assert sum((path or "").startswith("/contracts/") for path in found) >= 2
    assert found["/home/bread.md"] == 'for "the bread recipe"'
    scores = [hit.score for hit in hits]
    assert scores == sorted(scores, reverse=True)
    assert len(hits) == len({hit.stored.id for hit in hits}) == 6


def test_facts_connect_the_files_that_said_them(world: World, static: StaticEmbedder) -> None:
    world.put("/memory/a.md", "The bees moved to the orchard.\n", static)
    world.put("/memory/b.md", "They are fed with syrup in autumn.\n", static)
    for name, path, parent in (("m1", "/memory/a.md", None), ("m2", "/memory/b.md", "m1")):
        world.sql(
            "insert into memory (id, container_id, root_id, parent_id, relation, version, kind, subject, text, confidence, "
            "created_at_ms, updated_at_ms) values (?, 1, ?, cast(? as text), 'extends', 1, 'static', ?, 't', 1.0, 0, 0)",
            name,
            name,
            parent,
            name,
        )
        world.sql(
            "insert into memory_source (memory_id, document_id, revision, confidence, start_byte, end_byte, start_line, "
            "end_line) values (?, ?, 1, 1.0, 0, 10, 1, 1)",
            name,
            world.documents[1, path].id,
        )
    for path, other in (("/memory/a.md", "/memory/b.md"), ("/memory/b.md", "/memory/a.md")):
        ties = world.chunks.entity_links.facts(1, [world.documents[1, path].id])
        stored = world.chunks.chunks([tie.chunk_id for tie in ties])
        assert {(stored[tie.chunk_id].path, tie.relation) for tie in ties} == {(other, "extends")}
    world.sql("update memory set is_forgotten = 1 where id = 'm2'")
    assert world.chunks.entity_links.facts(1, [world.documents[1, "/memory/a.md"].id]) == []


class ReadTogether:
    """`/b.md` was read with `/a.md`."""

    def together(self, container_id: int, document_ids: Sequence[str]) -> Mapping[str, Sequence[tuple[str, float]]]:
        return {
            document_id: [("d1/b.md", 0.8)] for document_id in document_ids if document_id == "d1/a.md" and container_id == 1
        }


def test_files_that_are_read_together_can_be_told_from_outside(world: World, static: StaticEmbedder) -> None:
    world.put("/a.md", "one\n", static)
    world.put("/b.md", "two\n", static)
    hit = ask(world, static, "one", threshold=0.0, hops=False).hits[0]
    seed = Seed(stored=replace(hit.stored), score=1.0)
    found = Connector(world.chunks.entity_links, ReadTogether()).connections(EVERYWHERE, prepare("one"), [seed])
    assert [(connection.why, connection.strength) for connection in found] == [("read together with /a.md", 0.8)]


class _Crowded:
    """Everything is mentioned in many places, each thing by another number of passages."""

    def sharing(self, container_id: int, keys: Collection[int]) -> dict[int, list[int]]:
        rng = random.Random(container_id)
        return {key: sorted(rng.sample(range(400), 2 + 5 * place % 47)) for place, key in enumerate(keys)}

    def __getattr__(self, name: str) -> Any:
        return lambda *_: [] if name == "facts" else {}


def test_the_strongest_connections_are_the_same_however_few_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["Abel", "Bruno", "Clara", "Doris", "Edgar", "Frida", "Gregor", "Hanna", "Ivan", "Jonas", "Klara", "Ludwig"]
    rng = random.Random(3)
    seeds = []
    for number, score in enumerate((0.9, 0.8, 0.8, 0.3)):
        text = "They met " + ", then ".join(rng.sample(names, 8)) + "."
        part = Chunk(ordinal=0, start_byte=0, end_byte=9, start_line=1, end_line=1, text=text, context="")
        stored = StoredChunk(id=number, document_id=f"d{number}", path=f"/{number}.md", revision=1, updated_at_ms=0, chunk=part)
        seeds.append(Seed(stored=stored, score=score))
    connector = Connector(cast(EntityLinks, _Crowded()))
    scope, query = Scope(container_id=1), prepare("who met whom")
    few = connector.connections(scope, query, seeds)
    monkeypatch.setattr(connect, "CONNECTIONS_MAX", 1_000_000)
    every = connector.connections(scope, query, seeds)
    assert few == every[: len(few)]
    assert len(few) == 120
    assert len(every) > 300
