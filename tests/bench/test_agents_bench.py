"""`memdir bench agents`: it asks what it says, its judges see what is wrong, and the design's ten cases come out."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from memdir.store.database import fetch
from memdir.store.sqlite.store import SqliteStore
from memdir_bench.agents import corpus, prompts, scale
from memdir_bench.agents.accuracy import seed_cases, thousand
from memdir_bench.agents.day_simulation import day, fact
from memdir_bench.agents.goals import GOALS
from memdir_bench.agents.haystack import KINDS, NEEDLES, WORDS, Ask, Haystack
from memdir_bench.agents.judges import Exhaustive, plain_fts5
from tests.servers import ServerProcess, start


@pytest.fixture(scope="module")
def told() -> list[corpus.Told]:
    return corpus.memories()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    server = start(tmp_path_factory.mktemp("home"), "--port", "0")
    yield server
    assert server.stop() == 0


def test_a_thousand_memories_of_many_projects_are_the_same_every_time(told: list[corpus.Told]) -> None:
    assert told == corpus.memories()
    assert len(told) == 1000
    assert len({(one.content, one.project) for one in told}) == 1000
    assert len({one.project for one in told}) == 25
    assert min(Counter(one.sort for one in told).values()) == 200


def test_there_are_hundreds_of_questions_half_of_them_about_what_nothing_was_tuned_to(told: list[corpus.Told]) -> None:
    asked = corpus.questions(told)
    assert asked == corpus.questions(told)
    assert len(asked) >= 200
    assert set(Counter(one.kind for one in asked)) == {*corpus.KINDS, *corpus.NEGATIVE_KINDS}
    assert 0.4 < sum(one.held for one in asked) / len(asked) < 0.6
    assert all(one.relevant and one.relevant <= one.same for one in asked if one.kind in corpus.KINDS)
    assert not any(one.relevant or one.same for one in asked if one.kind in corpus.NEGATIVE_KINDS)


def test_held_questions_have_wordings_and_chatter_of_their_own(told: list[corpus.Told]) -> None:
    asked = corpus.questions(told)
    everyday = {held: {one.text for one in asked if one.kind == "everyday" and one.held == held} for held in (False, True)}
    assert len(everyday[False]) == len(everyday[True]) == 25
    assert not everyday[False] & everyday[True]
    chatty = [one for one in asked if one.kind in ("chatty", "chatty_negative")]
    assert min(len(one.text.split()) for one in chatty) > 130
    for held, other in ((False, True), (True, False)):
        texts = " ".join(one.text for one in chatty if one.held == held)
        assert any(sentence in texts for sentence in prompts.CHATTER[held])
        assert not any(sentence in texts for sentence in prompts.CHATTER[other])
    for sort, wordings in corpus._REWORDED_HELD.items():
        assert not set(wordings) & set(corpus._ASKED["reworded"][sort])


def test_no_memory_is_about_what_negatives_ask_for(told: list[corpus.Told]) -> None:
    everything = " ".join(one.content for one in told).casefold()
    absent = [topic for line in prompts.ABSENT.strip().split("\n") for topic in line.split("|")]
    assert [topic for topic in absent if topic in everything] == []


def test_a_typo_is_one_word_of_a_question_that_was_right(told: list[corpus.Told]) -> None:
    words = {word for one in told for word in one.content.casefold().replace("`", " ").split()}
    known = {word.strip(".,:;()") for word in words} | words
    changed = [
        sum(word.casefold().strip(".,:;()?") not in known for word in one.text.split())
        for one in corpus.questions(told)
        if one.kind == "typo"
    ]
    assert sum(count >= 1 for count in changed) > 0.85 * len(changed), "some typos make another word that exists"


def test_needles_stand_in_one_place_each_and_small_haystacks_have_fewer() -> None:
    haystack = Haystack(500)
    texts = [text for block in haystack.blocks() for text in haystack.texts(block)]
    assert (len(texts), len(haystack.needles)) == (500, NEEDLES)
    for ask in haystack.asks("needle", NEEDLES):
        word = ask.text.split()[-1]
        assert [place for place, text in enumerate(texts) if word in text] == [ask.needle]
    assert len(Haystack(10).needles) == 5
    tokens = sum(len(text) for text in texts) / len(texts) / 4
    assert 20 < tokens < 32, "the design's memories have about 25 tokens"


def test_the_judge_computes_the_designs_formula_and_sees_a_wrong_answer() -> None:
    haystack = Haystack(300)
    exact = Exhaustive(haystack)
    (block,) = haystack.blocks()
    row = block.words[7].tolist()
    ask = Ask(kind="mixed", text="", project=f"project-{block.projects[7]:02d}", words=(row[0], row[3]))
    scores = exact.scores(ask)
    rows = [[] if place in haystack.needles else words for place, words in enumerate(block.words.tolist())]
    tags = [len(set(pair)) for pair in block.tags.tolist()]
    lengths = [(17 if place in haystack.needles else WORDS) + tags[place] for place in range(300)]
    mean = sum(lengths) / 300

    def bm25(place: int) -> float:
        total = 0.0
        for word in dict.fromkeys(ask.words):
            having = sum(word in words for words in rows)
            idf = math.log((300 - having + 0.5) / (having + 0.5) + 1)
            times = rows[place].count(word)
            total += idf * times * 2.2 / (times + 1.2 * (0.25 + 0.75 * lengths[place] / mean))
        return total

    raw = [bm25(place) for place in range(300)]
    most = math.log1p(int(block.accesses.max()))
    for place in np.flatnonzero(scores >= 0).tolist():
        project = 0.10 * (block.projects[place] == block.projects[7])
        others = 0.15 * math.exp(-0.01 * block.ages_days[place]) + 0.05 * math.log1p(block.accesses[place]) / most + project
        assert scores[place] == pytest.approx(0.55 * raw[place] / max(raw) + others)
    best = sorted(np.flatnonzero(scores >= 0).tolist(), key=lambda place: -scores[place])[:10]
    answer = [(place, float(scores[place])) for place in best]
    assert exact.equal(ask, answer)
    assert not exact.equal(ask, answer[:-1])
    assert not exact.equal(ask, [(answer[-1][0], answer[0][1]), *answer[1:]])
    assert not exact.equal(ask, [*answer[:-1], (answer[-1][0], answer[-1][1] + 0.01)])


def test_plain_fts5_holds_the_same_texts(tmp_path: Path) -> None:
    haystack = Haystack(300)
    with plain_fts5(tmp_path, haystack) as plain:
        for ask in haystack.asks("needle", 20):
            assert plain.search(ask.text)[0] == ask.needle
        assert plain.size_bytes > 10_000
    assert not list(tmp_path.iterdir())


def test_what_sessions_learn_are_different_things() -> None:
    words = {fact(number, turn)[1] for number in range(8) for turn in range(100)}
    assert len(words) == 800


@pytest.mark.promise("agent.seed-cases")
def test_the_designs_ten_cases_come_first_and_nothing_comes_for_the_negative(running: ServerProcess) -> None:
    with running.client() as client:
        figures = {made.name: made for made in seed_cases(client)}
    assert {name: made.value for name, made in figures.items()} == {"seed_cases": 10, "seed_false_positives": 0}
    assert all(made.met for made in figures.values())


@pytest.mark.promise("agent.bench")
def test_accuracy_is_told_for_each_kind_of_question_with_an_interval(running: ServerProcess) -> None:
    with running.client() as client:
        figures = {made.name: made for made in thousand(client, 12)}
    for kind in (*corpus.KINDS[:-1], "all", "held"):
        top1, mrr = figures[f"{kind}_top1"], figures[f"{kind}_mrr"]
        assert top1.value <= figures[f"{kind}_fact1"].value
        assert 0 <= top1.value <= mrr.value <= figures[f"{kind}_top10"].value <= 1
        assert top1.spread is not None
        assert top1.spread[0] <= top1.value <= top1.spread[1]
    assert figures["words_top10"].value > 0.8, "asked in their own words"
    assert figures["negatives_answered"].value < 0.15
    assert {f"{kind}_answered" for kind in corpus.NEGATIVE_KINDS} <= figures.keys()


@pytest.mark.long
@pytest.mark.promise("agent.bench")
def test_a_size_is_filled_searched_compared_and_hooked(tmp_path: Path) -> None:
    figures = {made.name: made for made in scale.at_size(2500, scale.QUICK, parent=tmp_path)}
    assert figures["2500.top10_equal"].value == 1.0
    assert figures["2500.needles_found"].value == 100
    for name in (*KINDS, "hook", *(f"fts5_{kind}" for kind in KINDS)):
        assert 0 < figures[f"2500.{name}_p50"].value <= figures[f"2500.{name}_p95"].value
    measured = {name.partition(".")[2] for name in figures}
    assert {goal.partition(".")[2] for goal in GOALS if "." in goal} <= measured, "every goal has its figure"
    assert not list(tmp_path.iterdir())


@pytest.mark.long
@pytest.mark.promise("agent.parallel")
def test_eight_sessions_side_by_side_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    figures = {made.name: made for made in day(sessions=8, prompts=6, parent=tmp_path)}
    wrong = {name: made.value for name, made in figures.items() if name in GOALS and not made.met}
    assert wrong == {}
    assert (figures["day_undead"].value, figures["day_foreign"].value) == (0, 0)
    assert figures["day_lost"].samples == 8 * 5, "of six, one was deleted"
    assert figures["day_told"].value > 0
    assert not list(tmp_path.iterdir())


def test_records_of_hits_are_read_by_their_number_and_not_by_walking_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore.open(tmp_path / "server")
    asked: list[tuple[str, tuple[int, ...]]] = []

    def noted(_: object, sql: str, bindings: tuple[int, ...] = ()) -> list[object]:
        asked.append((sql, bindings))
        return []

    try:
        with monkeypatch.context() as patched:
            patched.setattr(type(store.agents._db), "all", noted)
            store.agents.many(1, [1, 2, 3])
            store.agent_feed.indexed(1, [1, 2, 3])
        with store.upkeep().reading() as connection:
            plans = [fetch(connection, f"explain query plan {sql}", bindings)[0][-1] for sql, bindings in asked]
        assert len(plans) == 2
        assert all("INTEGER PRIMARY KEY" in plan for plan in plans), plans
    finally:
        store.close()
