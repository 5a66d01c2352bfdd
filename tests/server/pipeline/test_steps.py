"""Steps that are cancelled, take too long or are repeated, and statuses as somebody who polls sees them."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest

from memdir.server.indexing.interrupt import Interruptible
from memdir.server.indexing.known_facts import KnownFacts
from memdir.server.indexing.leases import Lease, Leases, StepTimeoutError
from memdir.server.indexing.pipeline import TOLD_FROM_BYTES, index_all
from memdir.server.indexing.worker import Worker
from memdir.store.errors import SupersededError
from memdir.store.jobs.queue import BULK, INTERACTIVE, LEASE_MS, Job
from memdir.store.tree.documents import STATUSES
from memdir.store.types import Chunk, Container
from tests.server.conftest import AnyStore, Putting, until
from tests.server.fakes import FakeEngine, HashEmbedder
from tests.server.pipeline.conftest import WAIT_S, Events, Working, document_at, drained, status, texts
from tests.server.steps import index, remember

LONG = "".join(f"Paragraph {number} says something about pumps.\n\n" for number in range(60_000)).encode()
"""Cutting it takes seconds."""


poll = partial(until, limit_s=WAIT_S, every_s=0.01)


def endless(*_: object) -> None:
    """A document that sends its reader round in circles; slowly, for a processor has other tests."""
    pause = threading.Event()
    while True:
        pause.wait(0.001)


# ---- ending a computation


def test_a_computation_ends_where_it_is_and_the_thread_goes_on() -> None:
    computing = Interruptible()
    began, ended = threading.Event(), []

    def work() -> None:
        began.set()
        for _ in itertools.count():
            pass

    def thread() -> None:
        with pytest.raises(KeyError, match="enough"):
            computing.run(work)
        ended.append(sum(range(1000)))

    running = threading.Thread(target=thread)
    running.start()
    assert began.wait(WAIT_S)
    assert computing.stop(KeyError("enough"))
    running.join(WAIT_S)
    assert ended == [499500]
    assert not computing.stop(KeyError("too late"))


def test_a_computation_that_ends_by_itself_is_never_hit_afterwards() -> None:
    """The stop and the end meet at random; whatever comes first, nothing is raised outside of `run`."""
    outcomes = set()
    for round_ in range(300):
        computing = Interruptible()
        go = threading.Event()

        def stop(computing: Interruptible = computing, go: threading.Event = go, spin: int = round_ * 7) -> None:
            go.wait(WAIT_S)
            for _ in range(spin):
                pass
            computing.stop(KeyError("enough"))

        stopping = threading.Thread(target=stop)
        stopping.start()

        def compute(go: threading.Event = go) -> int:
            go.set()
            return sum(1 for _ in range(3000))

        try:
            outcomes.add(computing.run(compute))
        except KeyError:
            outcomes.add("stopped")
        for _ in range(200):  # an exception that was left behind would strike here
            pass
        stopping.join(WAIT_S)
    assert outcomes <= {3000, "stopped"}


def test_an_error_of_the_computation_is_its_own() -> None:
    with pytest.raises(ZeroDivisionError):
        Interruptible().run(lambda: 1 // 0)


# ---- cancellation


@pytest.mark.promise("pipeline.cancelled")
def test_a_newer_revision_ends_the_cutting_of_the_older_one(
    store: AnyStore,
    container: Container,
    put: Putting,
    events: Events,
    working: Working,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began, ended = threading.Event(), threading.Event()
    cut = "memdir.server.indexing.pipeline.chunker.cut"
    from memdir.ingest import chunker

    original = chunker.cut

    def chunk(text: Any, path: str) -> Any:
        if "endless" in text.text:
            began.set()
            try:
                endless()
            finally:
                ended.set()
        return original(text, path)

    monkeypatch.setattr(cut, chunk)
    engine = FakeEngine(store)
    working(engine)
    put("/a.md", b"endless")
    assert began.wait(WAIT_S)
    put("/a.md", b"the newer words")
    events.until(lambda: status(store, container, "/a.md") == "done")
    assert ended.is_set()
    document = document_at(store, container, "/a.md")
    assert (texts(engine, document), document.error) == (["the newer words"], None)


@pytest.mark.promise("pipeline.cancelled")
def test_a_newer_revision_ends_the_embedding_within_a_batch_and_stores_nothing(
    store: AnyStore,
    container: Container,
    put: Putting,
) -> None:
    engine = FakeEngine(store)
    put("/a.md", LONG[: 1 << 20])
    (job,) = store.jobs.claim("index")
    batches = []
    original = engine.static.embed_passages

    def embed(passages: list[str]) -> Any:
        batches.append(len(passages))
        if len(batches) == 2:
            put("/a.md", b"the newer words")
        return original(passages)

    engine.static.embed_passages = embed  # type: ignore[method-assign]
    with pytest.raises(SupersededError):
        index(store, engine, Lease(store, job))  # type: ignore[arg-type]
    assert len(batches) == 2
    document = document_at(store, container, "/a.md")
    assert (texts(engine, document), document.status) == ([], "queued")


def test_passages_of_a_claim_that_is_not_the_newest_are_not_stored(
    store: AnyStore,
    container: Container,
    put: Putting,
) -> None:
    put("/a.md", b"words")
    (old,) = store.jobs.claim("index")
    with store.db.write() as connection:
        connection.execute("update job set leased_until_ms = 1")
    (new,) = store.jobs.claim("index")
    engine = FakeEngine(store)
    document = document_at(store, container, "/a.md")
    chunk = Chunk(ordinal=0, start_byte=0, end_byte=5, start_line=1, end_line=1, text="words", context="")
    vectors = engine.static.embed_passages(["words"])
    for job, stored in ((old, []), (new, ["words"])):
        engine.chunks.replace_chunks(document, [chunk], model="fake-static", vectors=vectors, guard=store.jobs.guard(job))
        assert texts(engine, document) == stored


def test_a_deleted_document_ends_its_step(
    store: AnyStore,
    put: Putting,
) -> None:
    engine = FakeEngine(store)
    put("/a.md", b"words")
    (job,) = store.jobs.claim("index")
    with store.db.write() as connection:
        connection.execute("delete from document")
    index(store, engine, Lease(store, job))  # type: ignore[arg-type]
    with pytest.raises(SupersededError):
        Lease(store, job).check()


def test_memories_decided_on_an_older_state_are_decided_again(
    store: AnyStore,
    container: Container,
    put: Putting,
) -> None:
    engine = FakeEngine(store)
    for path in ("/memory/a.md", "/memory/b.md"):
        put(path, b"- I prefer tea over coffee.\n")
        (job,) = store.jobs.claim("index")
        index(store, engine, Lease(store, job))  # type: ignore[arg-type]
    first, second = store.jobs.claim("memory", limit=2)

    class Overtaken(KnownFacts):
        def concerned(self, *concerned_by: Any) -> Any:
            found = super().concerned(*concerned_by)
            remember(store, KnownFacts(store), Lease(store, first))
            return found

    with pytest.raises(SupersededError):
        remember(store, Overtaken(store), Lease(store, second))
    remember(store, KnownFacts(store), Lease(store, second))
    assert [memory.candidate.text for memory in engine.memories.latest(container.id)] == ["I prefer tea over coffee."]
    assert store.jobs.count() == 0


# ---- poison


@pytest.mark.promise("pipeline.poison")
def test_documents_that_raise_loop_or_break_the_model_fail_alone(
    store: AnyStore,
    container: Container,
    put: Putting,
    events: Events,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from memdir.ingest import chunker

    original = chunker.cut

    def chunk(text: Any, path: str) -> Any:
        if "loops" in text.text:
            endless()
        if "raises" in text.text:
            raise RecursionError("too deep")
        return original(text, path)

    monkeypatch.setattr("memdir.server.indexing.pipeline.chunker.cut", chunk)
    reasons = {
        "loops": "reading the document took more than 0.5 s",
        "raises": "RecursionError: too deep",
        "poison": "RuntimeError: the model broke",
    }
    names = ["loops0", *(f"{kind}{number}" for number in range(3) for kind in ("raises", "poison", "good"))]
    for name in names:
        put(f"/{name}.md", f"{name[:-1]} {name[-1]}".encode())
    worker = Worker(store, FakeEngine(store, poison="poison"), count=2, limit_s=0.5)  # type: ignore[arg-type]
    worker.start()
    try:
        events.until(drained(store))
    finally:
        assert worker.stop()
    for name in names:
        document = document_at(store, container, f"/{name}.md")
        reason = reasons.get(name[:-1])
        assert (document.status, document.error) == ("done" if reason is None else "failed", reason)
    attempts = {letter.path: letter.attempts for letter in store.dead_letters.listing([container.id], failed=True, limit=99)}
    assert (attempts["/loops0.md"], attempts["/raises0.md"]) == (1, 5)
    assert store.dead_letters.stuck() == []


def test_a_step_that_takes_too_long_is_ended_by_the_watch(
    store: AnyStore,
    put: Putting,
) -> None:
    put("/a.md", b"words")
    (job,) = store.jobs.claim("index")
    leases = Leases(store, limit_s=0.2)
    leases.start()
    with leases.hold([job]) as (lease,), pytest.raises(StepTimeoutError):
        lease.compute(endless)
    leases.close()


# ---- stopping


def test_a_worker_that_stops_in_the_middle_gives_its_work_back(
    store: AnyStore,
    put: Putting,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = threading.Event()

    def chunk(*_: object) -> None:
        began.set()
        endless()

    monkeypatch.setattr("memdir.server.indexing.pipeline.chunker.cut", chunk)
    put("/a.md", b"words")
    worker = Worker(store, FakeEngine(store))  # type: ignore[arg-type]
    worker.start()
    assert began.wait(WAIT_S)
    assert worker.stop(timeout_s=4.0)
    (job,) = store.jobs.claim("index")
    assert (job.attempts, job.deaths) == (0, 0)


def test_leases_of_a_step_under_way_are_renewed(
    store: AnyStore,
    put: Putting,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("memdir.server.indexing.leases.RENEW_S", 0.05)
    monkeypatch.setattr("memdir.server.indexing.leases.TICK_S", 0.02)
    put("/a.md", b"words")
    (job,) = store.jobs.claim("index")
    row = "select leased_until_ms from job"
    first = store.db.all(row)[0][0]
    leases = Leases(store)
    leases.start()
    with leases.hold([job]) as (lease,):
        poll(lambda: bool(store.db.all(row)[0][0] > first))
        lease.check()
        put("/a.md", b"other words")
        poll(lambda: lease._refused is not None)
        with pytest.raises(SupersededError):
            lease.check()
    leases.close()
    assert store.db.all(row)[0][0] <= store.now_ms() + LEASE_MS


# ---- statuses


@pytest.mark.promise("pipeline.statuses")
def test_every_status_is_seen_in_order_and_none_goes_back_when_steps_are_repeated(
    store: AnyStore,
    container: Container,
    put: Putting,
    events: Events,
) -> None:
    seen: list[str] = []
    looking = threading.Lock()

    def look(_: object = None) -> None:
        with looking:
            now = status(store, container, "/a.md")
            if not seen or seen[-1] != now:
                seen.append(now)

    class Watching(HashEmbedder):
        """Looks while it works, and fails at first."""

        failures = 2

        def embed_passages(self, texts: list[str]) -> Any:
            look()
            if self.failures:
                self.failures -= 1
                raise RuntimeError("not now")
            return super().embed_passages(texts)

    put("/a.md", b"# Title\n\n" + b"words and more words\n\n" * (TOLD_FROM_BYTES // 20))
    look()
    engine = FakeEngine(store, dense=Watching("fake-dense"))
    engine.static = Watching("fake-static")

    def looking_first(call: Callable[..., Any]) -> Callable[..., Any]:
        def looked(*args: Any, **options: Any) -> Any:
            look()
            return call(*args, **options)

        return looked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store.blobs, "small", looking_first(store.blobs.small))
        patch.setattr(store.embedding, "missing", looking_first(store.embedding.missing))
        store.listen(look)
        worker = Worker(store, engine)  # type: ignore[arg-type]
        worker.start()
        try:
            events.until(lambda: status(store, container, "/a.md") == "done")
        finally:
            assert worker.stop()
    look()
    assert seen == list(STATUSES)
    assert store.dead_letters.stuck() == []


def test_short_documents_are_indexed_with_few_commits(
    store: AnyStore, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    advance = store.progress.advance

    def noted(claimed: Sequence[Job], to: str) -> set[str]:
        told.append(to)
        return advance(claimed, to)

    monkeypatch.setattr(store.progress, "advance", noted)
    for number in range(10):
        put(f"/{number}.md", f"# Title\n\nwords {number}".encode())
    claimed = store.jobs.claim("index", limit=10)
    engine = FakeEngine(store, dense=HashEmbedder("fake-dense"))
    assert index_all(store, engine, [Lease(store, job) for job in claimed]) == []  # type: ignore[arg-type]
    assert {status(store, container, f"/{number}.md") for number in range(10)} == {"embedding"}
    assert told == []


def test_an_edit_is_awaited_until_it_is_indexed_and_an_import_is_not(
    store: AnyStore, container: Container, put: Putting
) -> None:
    def awaited() -> bool:
        return store.jobs.edits_asked([container.id], until_ms=store.now_ms())

    assert not awaited()
    put("/import.md", b"words", priority=BULK)
    assert not awaited()
    put("/edit.md", b"words")
    assert awaited()
    assert not store.jobs.edits_asked([container.id], until_ms=store.now_ms() - 60_000)
    assert not store.jobs.edits_asked([container.id + 1], until_ms=store.now_ms())
    (claimed,) = store.jobs.claim("index", limit=1, priority_max=INTERACTIVE)
    assert awaited()
    store.jobs.fail(claimed, "broken")
    assert not awaited()
