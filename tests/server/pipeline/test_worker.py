"""The worker over a real store with models that answer at once."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from memdir.retrieval.lexical.choice import word_indexes, words_among
from memdir.retrieval.query import Searcher
from memdir.retrieval.types import SearchOutcome, SearchQuery
from memdir.server.engine import Engine
from memdir.server.indexing.in_flight import SearchesInFlight
from memdir.server.indexing.pipeline import BINARY_NOTE
from memdir.server.indexing.worker import EMBED_CHUNKS, Worker
from memdir.server.services.search.hits import current_hits
from memdir.store.acting import acting_as
from memdir.store.errors import SupersededError
from memdir.store.jobs import queue as jobs
from memdir.store.jobs.queue import Job
from memdir.store.tree.operations import Delete, Move, Put
from memdir.store.types import Container, Matrix, Scope
from tests.server.conftest import AnyStore, Putting
from tests.server.fakes import FakeEngine, HashEmbedder
from tests.server.pipeline.conftest import WAIT_S, Events, Working, document_at, drained, indexed, status, texts


def test_work_goes_on_more_slowly_while_requests_crowd(store: AnyStore, put: Putting) -> None:
    asked = 0
    drained = threading.Event()

    def crowded() -> bool:
        nonlocal asked
        asked += 1
        if store.jobs.count() == 0:
            drained.set()
        return True

    for number in range(5):
        put(f"/{number}.md")
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    worker = Worker(store, engine, crowded=crowded)  # type: ignore[arg-type]
    worker.start()
    assert drained.wait(WAIT_S)
    assert worker.stop()
    assert asked >= 2, "each step gives way once: indexing, embedding"


def test_threads_are_woken_for_work_of_their_kind_alone(
    store: AnyStore, put: Putting, events: Events, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim, claimed = store.jobs.claim, set[str]()

    def noted(kind: str, **rest: Any) -> list[Job]:
        claimed.add(kind)
        return claim(kind, **rest)

    monkeypatch.setattr(store.jobs, "claim", noted)
    working(FakeEngine(store, dense=HashEmbedder("fake-dense")))
    put("/a.md", b"some words")
    events.until(drained(store))
    assert claimed == {"index", "embed"}


@pytest.mark.promise("parts.worker")
def test_a_text_is_searchable_with_words_and_both_kinds_of_vectors(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    put("/a.md", b"# Title\n\nSome words.\n")
    working(engine)
    events.until(lambda: status(store, container, "/a.md") == "done")
    document = document_at(store, container, "/a.md")
    assert (document.title, document.error, document.media_type) == ("Title", None, "text/markdown")
    (stored,) = engine.chunks.document_chunks(document.id)
    for model in ("fake-static", "fake-dense"):
        assert engine.embedded(container.id, model) == [stored.id]
    assert store.jobs.count() == 0


def test_a_binary_file_is_done_with_a_note_and_keeps_its_bytes(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    engine = FakeEngine(store)
    put("/a.bin", b"words that are cut away by the next put")
    working(engine)
    events.until(lambda: status(store, container, "/a.bin") == "done")
    put("/a.bin", b"\x7fELF\x00\x01\x02" * 100)
    events.until(lambda: document_at(store, container, "/a.bin").error == BINARY_NOTE)
    document = document_at(store, container, "/a.bin")
    assert texts(engine, document) == []
    assert store.blobs.content(document.content_hash) == b"\x7fELF\x00\x01\x02" * 100


def test_an_empty_file_is_done(store: AnyStore, container: Container, put: Putting, events: Events, working: Working) -> None:
    put("/empty.md", b"")
    working(FakeEngine(store, dense=HashEmbedder("fake-dense")))
    events.until(lambda: status(store, container, "/empty.md") == "done")


def test_a_move_and_a_touch_do_not_embed_again(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    dense = HashEmbedder("fake-dense")
    engine = FakeEngine(store, dense=dense)
    put("/a/x.md", b"the only text")
    working(engine)
    events.until(drained(store))
    seen = (len(engine.static.seen), len(dense.seen))
    store.files.apply(container, Move(from_path="/a", path="/b"))
    put("/b/x.md", b"the only text", mtime_ns=99)
    assert status(store, container, "/b/x.md") == "done"
    assert store.jobs.count() == 0
    assert (len(engine.static.seen), len(dense.seen)) == seen


def test_another_extension_cuts_anew_but_embeds_nothing_twice(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    dense = HashEmbedder("fake-dense")
    put("/a.tmp", b"the only text")
    working(FakeEngine(store, dense=dense))
    events.until(drained(store))
    store.files.apply(container, Move(from_path="/a.tmp", path="/a.md"))
    events.until(lambda: drained(store)() and status(store, container, "/a.md") == "done")
    assert document_at(store, container, "/a.md").media_type == "text/markdown"
    assert len(dense.seen) == 1


def test_a_poisoned_document_fails_alone_with_its_reason(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    for number in range(5):
        put(f"/good{number}.md", b"good %d" % number)
        put(f"/bad{number}.md", b"poison %d" % number)
    working(FakeEngine(store, poison="poison"))
    events.until(drained(store))
    for number in range(5):
        assert status(store, container, f"/good{number}.md") == "done"
        bad = document_at(store, container, f"/bad{number}.md")
        assert (bad.status, bad.error) == ("failed", "RuntimeError: the model broke")
    put("/bad0.md", b"healed")
    events.until(drained(store))
    assert status(store, container, "/bad0.md") == "done"


def test_a_text_that_breaks_the_transformer_stays_searchable_by_words(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    for number in range(6):
        put(f"/{number}.md", b"poison" if number == 3 else b"good %d" % number)
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense", poison="poison"))
    working(engine)
    events.until(drained(store))
    for number in range(6):
        document = document_at(store, container, f"/{number}.md")
        assert document.status == "done"
        assert (document.error or "").startswith("found by words only") == (number == 3)
    assert len(engine.embedded(container.id, "fake-dense")) == 5


def test_an_edit_during_indexing_wins(store: AnyStore, container: Container, put: Putting) -> None:
    engine = FakeEngine(store)
    put("/a.md", b"old words")
    (job,) = store.jobs.claim("index")
    original = engine.static.embed_passages

    def edit_meanwhile(passages: list[str]) -> object:
        put("/a.md", b"new words")
        return original(passages)

    engine.static.embed_passages = edit_meanwhile  # type: ignore[method-assign, assignment]
    with pytest.raises(SupersededError):
        indexed(store, engine, job)
    store.jobs.release([job])
    engine.static.embed_passages = original  # type: ignore[method-assign]
    (again,) = store.jobs.claim("index")
    indexed(store, engine, again)
    assert texts(engine, document_at(store, container, "/a.md")) == ["new words"]
    assert store.jobs.count() == 0


def test_an_edit_while_documents_are_indexed_together_is_no_fault(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working, caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr("memdir.server.indexing.pipeline._STATIC_BATCH", 1)
    for number in range(6):
        put(f"/{number}.md", b"good %d" % number)
    engine = FakeEngine(store)
    original, edited = engine.static.embed_passages, list[str]()

    def edit_meanwhile(passages: list[str]) -> object:
        made = original(passages)
        if not edited:
            edited.extend(f"/{number}.md" for number in range(6))
            for path in edited:
                put(path, b"new words")
        return made

    engine.static.embed_passages = edit_meanwhile  # type: ignore[method-assign, assignment]
    working(engine)
    events.until(drained(store))
    assert edited
    assert [texts(engine, document_at(store, container, path)) for path in edited] == 6 * [["new words"]]
    assert not caplog.records, "nothing went wrong"


def test_a_move_during_indexing_loses_nothing(store: AnyStore, container: Container, put: Putting) -> None:
    engine = FakeEngine(store)
    put("/a/x.md", b"words")
    (job,) = store.jobs.claim("index")
    store.files.apply(container, Move(from_path="/a", path="/b"))
    indexed(store, engine, job)
    assert status(store, container, "/b/x.md") == "done"
    assert store.jobs.count() == 0


def test_work_under_way_at_a_crash_is_done_after_the_next_start(
    store: AnyStore, container: Container, put: Putting, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "LEASE_MS", 1000)
    put("/a.md", b"words")
    (job,) = store.jobs.claim("index")
    assert store.progress.advance([job], "chunking")
    store.recover()
    events = Events(store)
    working(FakeEngine(store, dense=HashEmbedder("fake-dense")))
    events.until(lambda: status(store, container, "/a.md") == "done")


def test_a_lost_blob_fails_the_document_and_does_not_spin(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/a.md", b"words")
    with acting_as("local"), store.db.write() as connection:
        connection.execute("delete from blob")
    working(FakeEngine(store))
    events.until(lambda: status(store, container, "/a.md") == "failed")
    assert document_at(store, container, "/a.md").error == "the content is gone"


def test_memories_follow_their_document_in_and_out_of_the_memory_paths(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    engine = FakeEngine(store)

    def facts() -> list[str]:
        return [memory.candidate.text for memory in engine.memories.latest(container.id)]

    def version() -> int:
        return store.containers.get("local", container.tag).profile_version

    working(engine)
    put("/notes/me.md", b"- I prefer tea over coffee.\n")
    events.until(drained(store))
    assert (facts(), version()) == ([], 0)
    store.files.apply(container, Move(from_path="/notes", path="/memory"))
    events.until(drained(store))
    assert facts() == ["I prefer tea over coffee."]
    first = version()
    assert first > 0
    put("/memory/me.md", b"- I prefer coffee over tea.\n")
    events.until(drained(store))
    assert facts() == ["I prefer coffee over tea."]
    store.files.apply(container, Move(from_path="/memory", path="/notes"))
    events.until(drained(store))
    assert facts() == []
    store.files.apply(container, Move(from_path="/notes", path="/memory"))
    events.until(drained(store))
    before = version()
    store.files.apply(container, Delete(path="/memory", recursive=True))
    assert facts() == []
    assert version() > before > first


def test_new_memory_paths_read_the_documents_again(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    engine = FakeEngine(store)
    working(engine)
    put("/facts/me.md", b"- I prefer tea over coffee.\n")
    put("/memory/me.md", b"- I live in Lisbon.\n")
    events.until(drained(store))
    assert [m.candidate.text for m in engine.memories.latest(container.id)] == ["I live in Lisbon."]
    store.containers.change_settings(container.id, {"memoryFilesystemPaths": ["/facts/"]})
    changed = store.containers.get("local", container.tag)
    assert store.files.reread_memories(changed, container.memory_paths) == 2
    events.until(drained(store))
    assert [m.candidate.text for m in engine.memories.latest(container.id)] == ["I prefer tea over coffee."]


def test_a_model_that_comes_later_gets_its_vectors(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    put("/a.md", b"words")
    (job,) = store.jobs.claim("index")
    indexed(store, FakeEngine(store), job)
    assert status(store, container, "/a.md") == "done"
    assert store.embedding.backfill(model="fake-dense") == 1
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    working(engine)
    events.until(drained(store))
    assert len(engine.embedded(container.id, "fake-dense")) == 1
    assert store.embedding.backfill(model="fake-dense") == 0


def test_a_long_log_does_not_keep_the_notes_beside_it_waiting(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    dense = HashEmbedder("fake-dense")
    engine = FakeEngine(store, dense=dense)
    put("/big.log", "".join(f"10:{number:05d} INFO the pump number {number} was checked\n" for number in range(4000)).encode())
    put("/note.md", b"The spare key hangs at the bakery.\n")
    while claimed := store.jobs.claim("index"):
        indexed(store, engine, claimed[0])
    working(engine)
    events.until(drained(store))
    place = next(number for number, text in enumerate(dense.seen) if "spare key" in text)
    assert len(dense.seen) > 3 * EMBED_CHUNKS
    assert place < EMBED_CHUNKS


_NOTE_IS_QUEUED = "select 1 from job j join document d on d.id = j.document_id where d.path = '/note.md' and j.kind = 'embed'"


@pytest.mark.promise("pipeline.priorities")
def test_an_edit_waits_for_a_few_passages_of_the_import_that_is_being_embedded(
    store: AnyStore,
    container: Container,
    put: Putting,
    events: Events,
    working: Working,
) -> None:
    class Interrupted(HashEmbedder):
        """Somebody saves a file while it is at the first passages; its vectors are due before the second ones are through."""

        def embed_passages(self, texts: list[str]) -> Matrix:
            if not self.seen:
                put("/note.md", b"The spare key hangs at the bakery.\n")
            elif len(self.seen) == EMBED_CHUNKS:
                events.until(lambda: store.db.one(_NOTE_IS_QUEUED) is not None)
            return super().embed_passages(texts)

    dense = Interrupted("fake-dense")
    engine = FakeEngine(store, dense=dense)
    for number in range(4 * EMBED_CHUNKS):
        put(f"/import/{number}.md", b"entry %d" % number, priority=jobs.BULK)
    while claimed := store.jobs.claim("index"):
        indexed(store, engine, claimed[0])
    working(engine)
    events.until(drained(store))
    place = next(number for number, text in enumerate(dense.seen) if "spare key" in text)
    assert place in (EMBED_CHUNKS, 2 * EMBED_CHUNKS), (
        "the batch under way, and one that began before the vectors of the edit were asked for"
    )
    assert len(dense.seen) == 4 * EMBED_CHUNKS + 1


def test_an_import_rests_after_a_few_passages_while_somebody_searches(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Searched(SearchesInFlight):
        """A search begins before the first passages and ends when it is waited for."""

        def wait(self, timeout_s: float) -> bool:
            if dense.seen and not rested:
                assert not super().wait(0)
                rested.append(len(dense.seen))
                search.close()
            return super().wait(timeout_s)

    monkeypatch.setattr("memdir.server.indexing.worker.YIELD_MAX_S", WAIT_S)
    rested: list[int] = []
    dense = HashEmbedder("fake-dense")
    engine = FakeEngine(store, dense=dense)
    for number in range(2 * EMBED_CHUNKS):
        put(f"/import/{number}.md", b"entry %d" % number, priority=jobs.BULK)
    while claimed := store.jobs.claim("index"):
        indexed(store, engine, claimed[0])
    engine.in_flight = Searched()
    with ExitStack() as search:
        search.enter_context(engine.in_flight.search())
        working(engine)
        events.until(drained(store))
    assert (rested, len(dense.seen)) == ([EMBED_CHUNKS], 2 * EMBED_CHUNKS)


def test_an_import_goes_on_although_somebody_always_searches(
    store: AnyStore, put: Putting, events: Events, working: Working
) -> None:
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    for number in range(3):
        put(f"/import/{number}.md", b"entry %d" % number, priority=jobs.BULK)
    with engine.in_flight.search():
        working(engine)
        events.until(drained(store))


def test_an_edit_does_not_wait_for_a_long_one_that_is_being_indexed(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    class Long(HashEmbedder):
        def embed_passages(self, texts: list[str]) -> Matrix:
            if any("long" in text for text in texts):
                begun.set()
                assert released.wait(WAIT_S)
            return super().embed_passages(texts)

    begun, released = threading.Event(), threading.Event()
    engine = FakeEngine(store)
    engine.static = Long("fake-static")
    put("/long.md", b"a long one")
    working(engine)
    assert begun.wait(WAIT_S)
    put("/note.md", b"another")
    try:
        events.until(lambda: status(store, container, "/note.md") == "done")
    finally:
        released.set()
    events.until(drained(store))


def test_facts_of_an_edit_have_their_vectors_before_more_documents_are_waited_for(
    store: AnyStore, put: Putting, events: Events, working: Working, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memdir.server.indexing.worker.GATHER_S", 2 * WAIT_S)
    working(FakeEngine(store, dense=HashEmbedder("fake-dense")))
    put("/memory/me.md", b"# Me\n\n- I prefer tea over coffee.\n- My bicycle is green.\n")
    events.until(drained(store))
    events.until(lambda: not store.memory_search.to_embed(1))


def test_no_search_is_in_flight_when_the_last_has_ended() -> None:
    in_flight = SearchesInFlight()
    with ExitStack() as first, ExitStack() as second:
        first.enter_context(in_flight.search())
        second.enter_context(in_flight.search())
        first.close()
        assert not in_flight.wait(0)
        second.close()
        assert in_flight.wait(0)


def test_without_a_transformer_what_waited_for_it_is_done(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a.md", b"words")
    (job,) = store.jobs.claim("index")
    indexed(store, FakeEngine(store, dense=HashEmbedder("fake-dense")), job)
    assert status(store, container, "/a.md") == "embedding"
    store.embedding.abandon()
    assert (status(store, container, "/a.md"), store.jobs.count()) == ("done", 0)


def test_a_file_longer_than_what_is_decoded_says_so(
    store: AnyStore, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memdir.server.indexing.pipeline.TEXT_MAX_BYTES", 1000)
    monkeypatch.setattr("memdir.ingest.text.TEXT_MAX_BYTES", 1000)
    put("/long.md", b"words and words\n" * 1000)
    (job,) = store.jobs.claim("index")
    indexed(store, FakeEngine(store), job)
    assert "too long" in (document_at(store, container, "/long.md").error or "")


def test_the_real_engine_says_what_is_missing_instead_of_hanging(
    store: AnyStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from memdir.core.errors import BusyError
    from memdir.retrieval.embed import ModelUnavailableError

    def missing() -> None:
        raise ModelUnavailableError("the package is not installed", hint="install it")

    monkeypatch.setattr("memdir.retrieval.embed.StaticEmbedder", missing)
    engine = Engine(store, tmp_path)
    called = threading.Event()
    engine.start(called.set)
    engine.join()
    try:
        assert (engine.ready, engine.settled) == (False, True)
        with pytest.raises(BusyError, match="not installed"):
            _ = engine.searcher
    finally:
        assert engine.stop()


def test_chunks_of_a_symlink_or_folder_are_never_asked_for(store: AnyStore, container: Container, put: Putting) -> None:
    put("/link", b"target", kind="symlink")
    store.files.apply(container, Put(path="/dir", kind="dir"))
    assert store.jobs.count() == 0


def test_a_passage_that_an_edit_took_away_while_a_search_read_it_is_not_shown(
    store: AnyStore, container: Container, put: Putting
) -> None:
    put("/a.md", b"The zebra crossing is painted.\n")
    engine = FakeEngine(store)
    for job in store.jobs.claim("index", limit=10):
        indexed(store, engine, job)
    beside = word_indexes(store)
    words = words_among((beside,) if beside else (), engine.chunks)
    searcher = Searcher(engine.chunks, engine.static, None, words=words)

    def search(query: SearchQuery) -> SearchOutcome:
        outcome = searcher.search(query)
        assert [hit.path for hit in outcome.hits] == ["/a.md"]
        put("/a.md", b"The violin concert is cancelled.\n")
        for job in store.jobs.claim("index", limit=10):
            indexed(store, engine, job)
        return outcome

    engine.searcher = SimpleNamespace(search=search)  # type: ignore[attr-defined]
    query = SearchQuery(text="zebra crossing", scope=Scope(container_id=container.id), limit=5, threshold=0.0)
    found, _ = current_hits(SimpleNamespace(store=store), engine, query)  # type: ignore[arg-type]
    words.close()
    assert found == []


def test_what_a_search_shows_is_read_by_the_transformer_before_the_rest_of_an_import(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    for number in range(100):
        put(f"/{number:02d}.md", f"Number {number} of an import.\n".encode(), priority=jobs.BULK)
    put("/99.md", b"The walnut tree was planted.\n", priority=jobs.BULK)
    dense = HashEmbedder("fake-dense")
    engine = FakeEngine(store, dense=dense)
    for job in store.jobs.claim("index", limit=200):
        indexed(store, engine, job)
    beside = word_indexes(store)
    words = words_among((beside,) if beside else (), engine.chunks)
    engine.searcher = Searcher(engine.chunks, engine.static, None, words=words)  # type: ignore[attr-defined]
    query = SearchQuery(text="walnut planted", scope=Scope(container_id=container.id), limit=1, threshold=0.0)
    caller = SimpleNamespace(store=store)
    found, _ = current_hits(caller, engine, query)  # type: ignore[arg-type]
    words.close()
    assert [document.path for _, document in found] == ["/99.md"]
    working(engine)
    events.until(drained(store))
    assert "walnut" in dense.seen[0]
    assert len(dense.seen) == 100
    assert store.jobs.hasten("embed", [found[0][1].id]) == 0
