"""The index of words finds what exhaustive BM25 finds, whatever happens to passages and files."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memdir.retrieval.hashes import key_of
from memdir.retrieval.lexical import container as container_module
from memdir.retrieval.lexical.container import ContainerWords
from memdir.retrieval.lexical.files import INSIDE
from memdir.retrieval.lexical.index import WordIndexes
from memdir.store.text.analysis import query_terms
from memdir.store.types import Chosen, Scope
from tests.retrieval.lexical_world import WORDS, FakeLog, exhaustive, some_text

FOLDERS = ("", "/a", "/b", "/a/b", "/ab", "/a-")


def agree(index: WordIndexes, log: FakeLog, rng: random.Random, container_id: int, *, times: int = 3) -> None:
    """Some queries, in the container and in places of it."""
    documents = sorted({passage.document_id for passage in log.of(container_id)})
    for _ in range(times):
        chosen = None
        if documents and rng.random() < 0.4:
            chosen = Chosen(ids=frozenset(rng.sample(documents, rng.randrange(len(documents) + 1))), but=rng.random() < 0.5)
        folder = rng.choice(FOLDERS)
        if rng.random() < 0.3:
            scope = Scope(container_id=container_id, folder=f"{folder}/d{rng.randrange(9)}.md", exact=True, chosen=chosen)
        else:
            scope = Scope(container_id=container_id, folder=folder or "/", chosen=chosen)
        phrases = [rng.choice(WORDS) for _ in range(rng.randrange(1, 6))]
        phrases += ["machine learning", "boiler pressure"] if rng.random() < 0.4 else []
        limit = rng.choice((1, 3, 10, 1000))
        found = index.search(scope, phrases, limit)
        expected = dict(exhaustive(log, scope, phrases, 1000))
        assert len(found) == min(limit, len(expected)), (scope, phrases, limit)
        assert {chunk_id for chunk_id, _ in found} <= expected.keys(), (scope, phrases, limit)


def change(log: FakeLog, rng: random.Random, *, passages: int = 4) -> None:
    """Something happens to a document."""
    container_id, number = rng.choice((1, 1, 2)), rng.randrange(9)
    document_id = f"d{container_id}-{number}"
    path = None if rng.random() < 0.1 else f"{rng.choice(FOLDERS)}/d{number}.md"
    known = [p for p in log.of(container_id) if p.document_id == document_id]
    kind = rng.random()
    if kind < 0.6 or not known:
        kept = [(p.text, p.context) for p in known if rng.random() < 0.5]
        new = [(some_text(rng), rng.choice(("", some_text(rng, 4)))) for _ in range(rng.randrange(1, passages))]
        log.put(container_id, document_id, known[0].path if known else path, [*kept, *new])
    elif kind < 0.75:
        log.move(container_id, document_id, path)
    elif kind < 0.9:
        log.delete(container_id, document_id)
    else:
        log.hand_over(container_id, document_id, 3 - container_id)
        log.hand_over(3 - container_id, document_id, container_id)


@pytest.mark.promise("retrieval.bm25", "retrieved.brute-force", "retrieved.scope", "retrieved.containers")
@settings(max_examples=4, deadline=None, phases=[Phase.generate])  # a smaller seed is no smaller case
@given(seed=st.integers(0, 2**32))
def test_the_index_finds_what_exhaustive_bm25_finds_after_any_changes(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("index")
    log = FakeLog()
    index = WordIndexes(log, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container_module, "PAGE", rng.choice((1, 3, 500)))
        patch.setattr(container_module, "WASTE_MIN", rng.choice((3, 500)))
        for _ in range(12):
            for _ in range(rng.randrange(1, 5)):
                change(log, rng)
            what = rng.random()
            if what < 0.2:
                log.forget_events()
            elif what < 0.4:
                index.settle(1)
            elif what < 0.55:
                index.close()
                index = WordIndexes(log, folder)
            elif what < 0.65:
                index.rebuild(rng.choice((1, 2)))
            for container_id in (1, 2):
                agree(index, log, rng, container_id)
        for container_id in (1, 2):
            assert index.check(container_id, full=True) == []
        index.close()


@pytest.mark.promise("retrieval.bm25")
def test_passages_are_scored_as_exhaustive_bm25_scores_them(tmp_path: Path) -> None:
    """Those in files and those that came since; but for lengths above forty words, which tantivy keeps in one byte, and words
    in several forms, of which only the order is compared elsewhere."""
    rng = random.Random(9)
    log = FakeLog()
    index = WordIndexes(log, tmp_path)
    for number in range(300):
        log.put(1, f"d{number}", f"/{number}.md", [(some_text(rng), rng.choice(("", some_text(rng, 4))))])
        if number == 280:
            index.settle(1)
    plain = [word for word in WORDS if len(query_terms(word)) == len(query_terms(word)[0]) == 1]
    pairs: list[tuple[float, float]] = []
    whole = Scope(container_id=1)
    for _ in range(60):
        phrases = [rng.choice(plain) for _ in range(rng.randrange(1, 6))]
        expected = dict(exhaustive(log, whole, phrases, 1000))
        pairs += [(expected[chunk_id], score) for chunk_id, score in index.search(whole, phrases, 1000)]
    index.close()
    ours, theirs = np.array(pairs).T
    assert np.corrcoef(ours, theirs)[0, 1] > 0.98
    assert np.median(np.abs(ours - theirs) / theirs) < 0.05


@pytest.mark.promise("retrieved.same")
def test_the_same_question_is_answered_the_same(tmp_path: Path) -> None:
    """While nothing changes, before and after a start."""
    rng = random.Random(7)
    log = FakeLog()
    for number in range(400):
        log.put(1, f"d{number}", f"/{number % 7}/{number}.md", [(some_text(rng), "")])
    asked = [[rng.choice(WORDS) for _ in range(4)] for _ in range(30)]
    answers = []
    for _ in range(2):
        index = WordIndexes(log, tmp_path)
        answers += [[index.search(Scope(container_id=1), phrases, 50) for phrases in asked] for _ in range(2)]
        index.settle(1)
        index.close()
    assert answers[1:] == answers[:-1]


@pytest.mark.promise("retrieval.incremental")
def test_a_change_reads_only_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(8)
    log = FakeLog()
    for number in range(300):
        log.put(1, f"d{number}", f"/old/{number}.md", [(some_text(rng), "")])
    index = WordIndexes(log, tmp_path)
    index.settle(1)
    monkeypatch.setattr(WordIndexes, "follow", lambda self, container_id: None)
    log.reads = 0
    log.put(1, "d5", "/old/5.md", [("zanzibar", ""), ("pemba", "")])
    assert len(index.search(Scope(container_id=1), ["zanzibar"], 10)) == 1
    assert log.reads == 2
    index.settle(1)
    assert log.reads == 4
    for number in range(300):
        log.move(1, f"d{number}", f"/new/{number}.md")
    assert len(index.search(Scope(container_id=1, folder="/new"), ["zanzibar"], 10)) == 1
    assert index.search(Scope(container_id=1, folder="/old"), ["zanzibar"], 10) == []
    log.delete(1, "d5")
    assert index.search(Scope(container_id=1), ["zanzibar"], 10) == []
    assert log.reads == 4, "a move reads nothing until the background writes new places down"
    index.settle(1)
    assert log.reads == 4 + 299
    index.close()
    again = WordIndexes(log, tmp_path)
    agree(again, log, rng, 1)
    assert log.reads == 4 + 299
    again.close()


@pytest.mark.promise("retrieval.scope-cost")
def test_a_folder_is_a_list_of_its_passages(monkeypatch: pytest.MonkeyPatch) -> None:
    """tantivy goes through the shortest list of those that must all hold a passage: that of a folder of ten files is short."""
    monkeypatch.setattr(WordIndexes, "follow", lambda self, container_id: None)
    log = FakeLog()
    for number in range(1000):
        log.put(1, f"d{number}", f"/{number // 10}/{number}.md", [("walnut", ""), (f"number {number}", "")])
    own = ContainerWords(1, log, None)
    own.compare()
    assert own.snapshot.searcher.doc_freq(INSIDE, key_of("/7/")) == 20
    for number in range(500, 505):
        log.move(1, f"d{number}", f"/7/{number}.md")
    own.step()
    assert len(own.snapshot.moved) == 5
    while own.tidy():
        pass
    assert own.snapshot.searcher.doc_freq(INSIDE, key_of("/7/")) == 30
    assert own.snapshot.moved == {}
