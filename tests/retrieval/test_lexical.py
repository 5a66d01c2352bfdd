"""The index of words finds what exhaustive BM25 finds, whatever happens to passages, segments and files."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from memdir.retrieval.lexical import container as container_module
from memdir.retrieval.lexical.container import ContainerIndex
from memdir.retrieval.lexical.index import SegmentedIndex
from memdir.retrieval.lexical.search import search
from memdir.retrieval.lexical.terms import wanted
from memdir.retrieval.lexical.view import Parts
from memdir.store.types import Chosen, Scope
from tests.retrieval.lexical_world import WORDS, FakeLog, exhaustive, some_text

FOLDERS = ("", "/a", "/b", "/a/b", "/ab", "/a-")


def agree(index: SegmentedIndex, log: FakeLog, rng: random.Random, container_id: int, *, times: int = 3) -> None:
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
        expected = exhaustive(log, scope, phrases, limit)
        assert [chunk_id for chunk_id, _ in found] == [chunk_id for chunk_id, _ in expected], (scope, phrases, limit)
        assert [score for _, score in found] == pytest.approx([score for _, score in expected], rel=1e-9)


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
def test_the_index_is_exhaustive_bm25_after_any_changes(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    rng = random.Random(seed)
    folder = tmp_path_factory.mktemp("index")
    log = FakeLog()
    index = SegmentedIndex(log, folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(container_module, "FLUSH_WORDS", 60)
        patch.setattr(container_module, "FLUSH_AT_CLOSE_WORDS", rng.choice((1, 50)))
        patch.setattr(container_module, "INLINE_WORDS", rng.choice((20, 500)))
        patch.setattr(container_module, "WASTE_MIN", 1)
        patch.setattr(container_module, "FANOUT", 2)
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
                index = SegmentedIndex(log, folder)
            elif what < 0.65:
                index.rebuild(rng.choice((1, 2)))
            for container_id in (1, 2):
                agree(index, log, rng, container_id)
        for container_id in (1, 2):
            assert index.check(container_id, full=True) == []
        index.close()


@pytest.mark.promise("retrieved.same")
def test_scores_do_not_depend_on_how_the_index_came_about(tmp_path: Path) -> None:
    """To the last bit: built at once, or bit by bit with deletions between, in files or in memory."""
    rng = random.Random(7)
    texts = [some_text(rng) for _ in range(400)]
    log = FakeLog()
    grown = SegmentedIndex(log, tmp_path)
    for number, text in enumerate(texts):
        log.put(1, f"d{number}", f"/{number % 7}/{number}.md", [(text, "")])
        log.put(1, "gone", "/gone.md", [(some_text(rng), "")])
        if number % 10 == 0:
            grown.search(Scope(container_id=1), ["boiler"], 1)
        if number % 100 == 50:
            grown.settle(1)
    log.delete(1, "gone")
    whole = Scope(container_id=1)
    fresh = SegmentedIndex(log, None)
    for _ in range(30):
        phrases = [rng.choice(WORDS) for _ in range(4)]
        assert grown.search(whole, phrases, 50) == fresh.search(whole, phrases, 50)
    grown.close()


@pytest.mark.promise("retrieval.incremental")
def test_a_change_reads_only_what_changed(tmp_path: Path) -> None:
    rng = random.Random(8)
    log = FakeLog()
    for number in range(300):
        log.put(1, f"d{number}", f"/old/{number}.md", [(some_text(rng), "")])
    index = SegmentedIndex(log, tmp_path)
    index.settle(1)
    log.reads = 0
    log.put(1, "d5", "/old/5.md", [("zanzibar", ""), ("pemba", "")])
    assert len(index.search(Scope(container_id=1), ["zanzibar"], 10)) == 1
    assert log.reads == 2
    for number in range(300):
        log.move(1, f"d{number}", f"/new/{number}.md")
    assert len(index.search(Scope(container_id=1, folder="/new"), ["zanzibar"], 10)) == 1
    assert index.search(Scope(container_id=1, folder="/old"), ["zanzibar"], 10) == []
    log.delete(1, "d5")
    assert index.search(Scope(container_id=1), ["zanzibar"], 10) == []
    index.settle(1)
    assert log.reads == 2
    index.close()
    again = SegmentedIndex(log, tmp_path)
    agree(again, log, rng, 1)
    assert log.reads <= 2 + 300
    again.close()


@pytest.mark.promise("retrieval.scope-cost")
def test_a_search_below_ten_files_looks_at_their_passages_only() -> None:
    """Where they stood when the index was made, and where they were moved to since."""
    log = FakeLog()
    for number in range(2000):
        log.put(1, f"d{number}", f"/{number // 10}/{number}.md", [("walnut", ""), (f"number {number}", "")])
    index = ContainerIndex(1, log, None)
    index.compare()
    scope = Scope(container_id=1, folder="/7")
    assert sum(part.size for view in index.current() for part in Parts().of(view, scope)) == 20
    for number in range(500, 505):
        log.move(1, f"d{number}", f"/7/{number}.md")
    assert sum(part.size for view in index.current() for part in Parts().of(view, scope)) == 30
    assert len(search(index.current(), Parts(), scope, wanted(["walnut"]), 100)) == 15
