"""Search by meaning over a small memory: the file, the line, the scope, the score."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.retrieval.embed import MiniLmEmbedder, StaticEmbedder
from memdir.retrieval.lines import BLOCK_LINES_MAX
from memdir.retrieval.query import Searcher
from memdir.retrieval.threshold import threshold_among, threshold_beside
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery
from memdir.store.types import Matrix, Nearest, Scope
from tests.retrieval.conftest import ENGINES, World, world_of
from tests.retrieval.corpus import DOCUMENTS, NONSENSE, QUESTIONS, UNRELATED


@pytest.fixture(scope="module", params=ENGINES)
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> Iterator[World]:
    """The corpus, indexed by both models; tests of this module only read it."""
    with world_of(DOCUMENTS, tmp_path_factory.mktemp("search"), request, static, minilm) as made:
        yield made


@pytest.fixture
def searcher(filled: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> Searcher:
    return Searcher(filled.chunks, static, minilm, words=filled.words)


def ask(searcher: Searcher, text: str, folder: str = "/", *, exact: bool = False, **more: object) -> SearchOutcome:
    return searcher.search(SearchQuery(text=text, scope=Scope(container_id=1, folder=folder, exact=exact), **more))  # type: ignore[arg-type]


def check_place(hit: Hit, data: bytes, encoding: str = "utf-8") -> None:
    """The text is exactly the bytes, and stands on the lines that are named."""
    assert data[hit.start_byte : hit.end_byte].decode(encoding) == hit.text
    before = data[: hit.start_byte].decode(encoding)
    assert hit.start_line == before.count("\n") + 1
    assert hit.end_line == hit.start_line + hit.text.count("\n")
    assert hit.end_line - hit.start_line < BLOCK_LINES_MAX


@pytest.mark.parametrize(("question", "answer"), QUESTIONS.items())
def test_a_question_without_the_words_finds_the_file_and_the_line(
    searcher: Searcher, question: str, answer: tuple[str, str]
) -> None:
    path, words = answer
    hits = ask(searcher, question, limit=3, threshold=0.0).hits
    hit = next((hit for hit in hits if hit.path == path), None)
    assert hit is not None, [(hit.path, hit.score) for hit in hits]
    assert words in hit.text


def test_most_questions_are_answered_first(searcher: Searcher) -> None:
    best = {question: ask(searcher, question, threshold=0.0).hits[0] for question in QUESTIONS}
    assert sum(best[question].path == path for question, (path, _) in QUESTIONS.items()) >= len(QUESTIONS) - 1
    shown = [question for question in QUESTIONS if ask(searcher, question).hits]
    assert len(shown) >= 0.8 * len(QUESTIONS)


@pytest.mark.promise("parts.exact-ranges")
@pytest.mark.promise("retrieval.spans")
def test_every_hit_stands_exactly_where_it_says(searcher: Searcher) -> None:
    for question in (*QUESTIONS, *NONSENSE, "日曜日", "Papier Freitag"):
        for hit in ask(searcher, question, limit=40, threshold=0.0).hits:
            check_place(hit, DOCUMENTS[hit.path or ""].encode())


@pytest.mark.parametrize("question", NONSENSE)
def test_a_question_about_nothing_here_finds_nothing(searcher: Searcher, question: str) -> None:
    outcome = ask(searcher, question)
    assert list(outcome.hits) == []
    assert outcome.total == 0


@pytest.mark.parametrize("question", ["", "   ", "?!", "\x00", "。"])
def test_a_query_without_words_finds_nothing(searcher: Searcher, question: str) -> None:
    assert list(ask(searcher, question).hits) == []


@pytest.mark.parametrize(
    "question", ['"', "a AND b", "NEAR(", "text:cat", "cat*", "-cat", "'; drop table chunk; --", "x" * 4000]
)
def test_a_query_is_never_syntax(searcher: Searcher, question: str) -> None:
    ask(searcher, question)
    assert ask(searcher, "cat").hits[0].path == "/home/cat.md"


@pytest.mark.promise("parts.lexical")
def test_exact_words_are_found_in_any_script(searcher: Searcher) -> None:
    assert ask(searcher, "本屋").hits[0].path == "/ja/駅.txt"
    assert ask(searcher, "Biotonne").hits[0].path == "/de/müll.md"
    assert ask(searcher, "ball bearings").hits[0].text.startswith("Okano,Nagoya")


def test_the_scope_is_never_left(searcher: Searcher) -> None:
    for folder in ("/home", "/home/", "/work", "/none", "/hom"):
        for question in QUESTIONS:
            hits = ask(searcher, question, folder, limit=50, threshold=0.0).hits
            assert all((hit.path or "").startswith(folder.rstrip("/") + "/") for hit in hits)
            assert bool(hits) == (folder in {"/home", "/home/", "/work"})
    only = ask(searcher, "what is our pet scared of", "/home/cat.md", exact=True, threshold=0.0).hits
    assert {hit.path for hit in only} == {"/home/cat.md"}
    other = searcher.search(SearchQuery(text="cat", scope=Scope(container_id=2), threshold=0.0))
    assert list(other.hits) == []


def test_the_best_of_a_small_scope_does_not_depend_on_the_rest(searcher: Searcher) -> None:
    assert ask(searcher, "animal", "/home", threshold=0.0).hits[0].path == "/home/cat.md"


def test_results_are_ordered_bounded_and_the_same_every_time(searcher: Searcher) -> None:
    outcome = ask(searcher, "who repairs things", limit=5, threshold=0.0, explain=True)
    assert len(outcome.hits) == 5
    assert outcome.total >= 5
    scores = [hit.score for hit in outcome.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert ask(searcher, "who repairs things", limit=5, threshold=0.0, explain=True).hits == outcome.hits
    assert set(outcome.stages_ms) == {"embed", "lexical", "vectors", "fetch", "rank", "hops", "lines"}
    for hit in outcome.hits:
        assert hit.signals is not None
        assert set(hit.signals) == {"lexical", "static", "dense", "path", "coverage"}
    assert ask(searcher, "who repairs things", threshold=0.0).hits[0].signals is None


def test_a_good_answer_scores_high_and_a_poor_one_low(searcher: Searcher) -> None:
    good = ask(searcher, "how much pressure does the boiler need").hits[0].score
    poor = ask(searcher, NONSENSE[0], threshold=0.0).hits[0].score
    assert good > 0.7
    assert poor < threshold_among(1)


@pytest.mark.promise("retrieval.nothing")
def test_a_question_about_nothing_in_the_memory_finds_nothing(searcher: Searcher) -> None:
    shown = [question for question in UNRELATED if ask(searcher, question).hits]
    assert len(shown) <= len(UNRELATED) // 20, shown


STRANGE = {
    "/de.md": ("Der Ersatzschlüssel liegt bei der Nachbarin im dritten Stock.", "wo ist der Ersatzschlüssel"),
    "/fr.md": ("Le plombier vient jeudi pour réparer la fuite sous l'évier.", "quand vient le plombier"),
    "/es.md": ("Lucía es alérgica a las nueces y al marisco.", "a qué es alérgica Lucía"),
    "/es/casa.md": ("Nos mudamos a Sevilla el 30 de junio, el camión llega a las ocho.", "cuándo nos mudamos"),
    "/it.md": ("Giulia è allergica alle noci e ai crostacei.", "a cosa è allergica Giulia"),
    "/ru.md": ("Техосмотр машины в октябре, тормоза скрипят.", "когда техосмотр машины"),
    "/zh.md": ("我们六月三十日搬家到成都，卡车八点到。", "什么时候搬家"),
    "/ja.md": ("合鍵は三階の隣の人に預けてある。", "合鍵はどこにある"),
}
STRANGE_UNRELATED = (
    "wie entstehen Vulkane", "règles du rugby", "historia de los aztecas", "regole della pallavolo", "правила хоккея",
    "罗马皇帝", "月までの距離", "gefavofe sugas", "vugis dogom lopudob",
)  # fmt: skip


@pytest.mark.promise("retrieval.nothing")
def test_words_decide_where_the_transformer_cannot_read(
    sqlite_world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    for path, (text, _) in STRANGE.items():
        sqlite_world.put(path, text + "\n", static)
    sqlite_world.embed(minilm)
    searcher = Searcher(sqlite_world.chunks, static, minilm, words=sqlite_world.words)
    for path, (_, question) in STRANGE.items():
        assert [hit.path for hit in ask(searcher, question).hits] == [path]
    assert [question for question in (*STRANGE_UNRELATED, *UNRELATED) if ask(searcher, question).hits] == []


def test_beside_a_hit_that_is_sure_others_need_less(searcher: Searcher) -> None:
    assert threshold_beside(0.9, 100) < threshold_among(100) == threshold_beside(0.1, 100)
    silence, company = threshold_among(len(DOCUMENTS)), threshold_beside(1.0, len(DOCUMENTS))
    others = [hit.score for question in QUESTIONS for hit in ask(searcher, question).hits[1:]]
    assert company <= min(others) < silence, others
    assert min(ask(searcher, question).hits[0].score for question in QUESTIONS if ask(searcher, question).hits) >= silence


def test_what_is_not_shown_tells_how_close_it_came(searcher: Searcher) -> None:
    question = "how much pressure does the boiler need"
    shown = ask(searcher, question)
    assert shown.closest == pytest.approx(shown.hits[0].score, abs=1e-4)
    silent = ask(searcher, question, threshold=1.0)
    assert (list(silent.hits), silent.closest) == ([], shown.closest)
    assert ask(searcher, NONSENSE[0]).closest < 0.1


@pytest.mark.promise("retrieval.calibrated")
def test_a_hit_scores_the_same_among_few_passages_and_among_many(
    sqlite_world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    answers = {path: DOCUMENTS[path] for path in ("/home/cat.md", "/work/incident.md", "/money/loan.md")}
    questions = ("what is our pet scared of", "why was the website offline", "home loan interest rate")
    for path, text in answers.items():
        sqlite_world.put(path, text, static)
        sqlite_world.put(path, text, static, container_id=2)
    for path, text in DOCUMENTS.items():
        if path not in answers:
            sqlite_world.put(path, text, static, container_id=2)
    for number in range(60):
        sqlite_world.put(f"/stars/{number}.txt", f"Galaxy {number} has {number * 7} stars.\n", static, container_id=2)
    sqlite_world.embed(minilm)
    searcher = Searcher(sqlite_world.chunks, static, minilm, words=sqlite_world.words)
    for question in questions:
        scores = []
        for container_id in (1, 2):
            scope = Scope(container_id=container_id)
            hits = searcher.search(SearchQuery(text=question, scope=scope, threshold=0.0, limit=50)).hits
            scores.append(max(hit.score for hit in hits if hit.path in answers))
        assert abs(scores[0] - scores[1]) < 0.05, (question, scores)
    assert threshold_among(1) < threshold_among(100) < threshold_among(1_000) < threshold_among(100_000) < 0.7


def test_a_line_about_something_else_than_its_passage_is_found(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    world.put(
        "/bakery/dough-log.md",
        "# Dough log\n\nBulk 4 h at 25 C, the loaves spread flat on the peel.\nDropped hydration to 70 %, crumb tighter.\n"
        "Mia burnt her wrist on the deck oven, cooled it ten minutes.\nNew flour has 13.1 % protein.\n",
        static,
    )
    world.put("/clinic/rooms.md", "# Clinic\n\nThe waiting room is painted in May.\nPatients park in the yard.\n", static)
    world.put("/shop/safety.md", "# Safety rules\n\nKeep the exit free.\nWear shoes with a steel cap.\n", static)
    world.embed(minilm)
    hits = ask(Searcher(world.chunks, static, minilm, words=world.words), "scald on her hand").hits
    assert hits[0].path == "/bakery/dough-log.md"
    assert "Mia burnt her wrist" in hits[0].text


def test_a_passage_is_not_shown_for_standing_near_a_good_one(searcher: Searcher) -> None:
    """The best answer is sure; what merely comes next in order must be sure by itself."""
    hits = ask(searcher, "how much pressure does the boiler need", limit=40).hits
    assert hits[0].path == "/home/boiler.md"
    assert len(hits) <= 5


def test_the_name_of_a_file_counts(world: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> None:
    world.put("/docs/passport.txt", "Expires 2029-03-01, issued in Graz.\n", static)
    world.put("/docs/library-card.txt", "Expires 2027-01-01, issued in Wien.\n", static)
    world.embed(minilm)
    hits = (
        Searcher(world.chunks, static, minilm, words=world.words)
        .search(SearchQuery(text="passport", scope=Scope(container_id=1)))
        .hits
    )
    assert hits[0].path == "/docs/passport.txt"


def test_abbreviations_are_understood_both_ways(world: World, static: StaticEmbedder) -> None:
    world.put("/a.md", "The k8s cluster has three nodes.", static)
    world.put("/b.md", "Our kubernetes upgrade is planned for May.", static)
    searcher = Searcher(world.chunks, static, None, words=world.words)
    for question in ("k8s", "Kubernetes"):
        assert {hit.path for hit in ask(searcher, question, threshold=0.0).hits} == {"/a.md", "/b.md"}


def test_a_fresh_passage_is_found_before_the_transformer_has_seen_it(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    for number in range(5):
        world.put(f"/{number}.md", f"Old note number {number} about the weather in town.", static)
    world.embed(minilm)
    world.put("/fresh.md", "The dentist moved the appointment to Tuesday.", static)
    hits = (
        Searcher(world.chunks, static, minilm, words=world.words)
        .search(SearchQuery(text="dentist appointment", scope=Scope(container_id=1)))
        .hits
    )
    assert hits[0].path == "/fresh.md"


def test_words_find_a_passage_that_the_transformer_has_not_seen_among_many_it_has_seen_in_vain(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    filler = "lorem ipsum dolor " * 600
    world.put("/seen.json", f'{{"k":"{filler * 8}"}}', static)
    world.put("/auth.md", "The refresh token looked expired: a clock ran ahead.\n", static)
    world.embed(minilm)
    world.put("/fresh.json", f'{{"k":"{filler}the zanzibar password is under the mat {"sit amet " * 1000}"}}', static)
    hits = ask(Searcher(world.chunks, static, minilm, words=world.words), "zanzibar password").hits
    assert [hit.path for hit in hits][:1] == ["/fresh.json"]
    assert "zanzibar" in hits[0].text
    assert hits[0].score > 0.9
    assert all(hit.score < 0.5 for hit in hits[1:])


def test_a_memory_that_is_all_about_one_thing_still_answers(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    for number in range(50):
        world.put(f"/deep/{number}.md", f"Entry {number}: the umbrella stands behind the wardrobe.", static)
    world.embed(minilm)
    searcher = Searcher(world.chunks, static, minilm, words=world.words)
    assert len(ask(searcher, "where is protection from rain", limit=10).hits) == 10
    assert ask(searcher, "quarterly interest rate of the central bank").total == 0


def test_moves_edits_and_deletes_are_seen_at_once(world: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> None:
    searcher = Searcher(world.chunks, static, minilm, words=world.words)
    world.put("/a/cat.md", "The cat sleeps on the piano.", static)
    world.put("/a/dog.md", "The dog digs in the garden.", static)
    world.embed(minilm)
    assert ask(searcher, "cat", "/a").hits[0].path == "/a/cat.md"
    world.move("/a/cat.md", "/b/cat.md")
    assert all(hit.path != "/a/cat.md" for hit in ask(searcher, "cat", threshold=0.0).hits)
    assert ask(searcher, "cat", "/b").hits[0].path == "/b/cat.md"
    world.put("/b/cat.md", "The parrot sleeps on the piano.", static)
    assert ask(searcher, "parrot").hits[0].text == "The parrot sleeps on the piano."
    world.delete("/b/cat.md")
    assert all(hit.path == "/a/dog.md" for hit in ask(searcher, "piano parrot", threshold=0.0).hits)


def test_lines_are_exact_in_other_encodings_and_long_lines(
    world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    lines = ["Erste Zeile über Äpfel.", "Die Birnen sind süß.", "Am Ende kommt Käse."]
    sources = {
        "/w.txt": ("\n".join(lines).encode("cp1252"), "cp1252"),
        "/u16.txt": (b"\xff\xfe" + "\r\n".join(lines).encode("utf-16-le"), "utf-16-le"),
        "/bom.txt": (b"\xef\xbb\xbf" + "\n".join(lines).encode(), "utf-8"),
        "/long.txt": (
            (" ".join(["Filler about nothing at all."] * 60) + " Die Birnen sind süß. " + "More filler. " * 60).encode(),
            "utf-8",
        ),
    }
    for path, (data, _) in sources.items():
        world.put(path, data, static)
    world.embed(minilm)
    for path, (data, encoding) in sources.items():
        hits = ask(Searcher(world.chunks, static, minilm, words=world.words), "Birnen", path, exact=True).hits
        assert "Die Birnen sind süß." in hits[0].text
        assert len(hits[0].text) < 200
        assert data[hits[0].start_byte : hits[0].end_byte].decode(encoding) == hits[0].text


def test_a_sentence_that_is_wrapped_is_shown_whole(world: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> None:
    world.put(
        "/a.txt",
        "We met on Friday and talked about many small things before lunch was served.\n"
        "The harbour master told us that the ferry to the island only runs when the\n"
        "wind stays below six, and that tickets are sold on board.\n"
        "Afterwards everybody went home by bus because it was raining.\n",
        static,
    )
    world.embed(minilm)
    hit = ask(Searcher(world.chunks, static, minilm, words=world.words), "boat to the island in a storm").hits[0]
    assert (hit.start_line, hit.end_line) == (2, 3)


def test_the_example_memory_answers_its_questions(world: World, static: StaticEmbedder, minilm: MiniLmEmbedder) -> None:
    examples = Path(__file__).parents[2] / "examples"
    questions = json.loads((examples / "questions.json").read_bytes())["questions"]
    root = examples / "atlas"
    for file in sorted(root.rglob("*")):
        if file.is_file():
            world.put("/" + file.relative_to(root).as_posix(), file.read_bytes(), static)
    world.embed(minilm)
    searcher = Searcher(world.chunks, static, minilm, words=world.words)
    asked = [question for question in questions if question["kind"] == "meaning"]
    found = lines = shown = 0
    for question in asked:
        folder = "/" + (question["scope"] or "")
        hits = ask(searcher, question["query"], folder, limit=question["within"], threshold=0.0).hits
        mine = [hit for hit in hits if hit.path == "/" + question["expect_path"]]
        found += bool(mine)
        lines += any(words in hit.text for hit in mine for words in question["expect_line_contains"])
        shown += any(hit.path == "/" + question["expect_path"] for hit in ask(searcher, question["query"], folder).hits)
    assert shown >= 0.8 * len(asked)
    assert found >= len(asked) - 1
    assert lines >= 0.85 * len(asked)


class _Noting:
    """An index that notes whose nearest it was asked for."""

    def __init__(self, chunks: Any) -> None:
        self._chunks = chunks
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chunks, name)

    def nearest(self, scope: Scope, query: Matrix, *, model: str, limit: int) -> Nearest:
        self.asked.append(model)
        near: Nearest = self._chunks.nearest(scope, query, model=model, limit=limit)
        return near


def test_static_neighbours_are_looked_for_only_while_the_transformer_has_not_seen_all(
    sqlite_world: World, static: StaticEmbedder, minilm: MiniLmEmbedder
) -> None:
    for number, text in enumerate(("The kettle whistles at six.", "Rent is due on the third.", "The fern likes shade.")):
        sqlite_world.put(f"/{number}.md", text, static)
    sqlite_world.embed(minilm)
    vectors = _Noting(sqlite_world.chunks)
    searcher = Searcher(sqlite_world.chunks, static, minilm, words=sqlite_world.words, vectors=vectors)
    query = SearchQuery(text="what boils in the morning", scope=Scope(container_id=1), threshold=0.0)
    assert {hit.path for hit in searcher.search(query).hits} == {"/0.md", "/1.md", "/2.md"}
    assert vectors.asked == [minilm.name]
    sqlite_world.put("/3.md", "Water boils at dawn.", static)
    vectors.asked.clear()
    assert "/3.md" in {hit.path for hit in searcher.search(query).hits}
    assert vectors.asked == [minilm.name, static.name]
