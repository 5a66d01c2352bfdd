"""Vectors of memories: the same text is never embedded twice."""

from __future__ import annotations

from memdir.server.indexing.known_facts import KnownFacts
from memdir.server.indexing.leases import Lease
from memdir.server.indexing.memory_vectors import MEMORIES_MAX, MemoryVectors
from memdir.store.types import Container
from tests.server.conftest import AnyStore, Putting
from tests.server.fakes import FakeEngine, HashEmbedder
from tests.server.pipeline.conftest import Events, Working, indexed
from tests.server.steps import remember

MODELS = ("fake-static", "fake-dense")


def remembered(store: AnyStore, engine: FakeEngine) -> None:
    """Everything indexed and remembered, nothing embedded, on this thread."""
    for kind in ("index", "memory"):
        while claimed := store.jobs.claim(kind):
            for job in claimed:
                if kind == "index":
                    indexed(store, engine, job)
                else:
                    remember(store, KnownFacts(store), Lease(store, job))


def with_vectors(store: AnyStore, container: Container) -> set[str]:
    """What those memories say that have vectors of both models."""
    memories = {memory.id: memory.candidate.text for memory in store.memories.latest(container.id)}
    held = [set(store.memory_search.vectors(list(memories), model=model)) for model in MODELS]
    return {memories[memory_id] for memory_id in set.intersection(*held)}


def test_a_memory_that_is_a_whole_document_takes_the_vectors_of_its_passage(
    store: AnyStore, container: Container, put: Putting, events: Events, working: Working
) -> None:
    dense = HashEmbedder("fake-dense")
    engine = FakeEngine(store, dense=dense)
    texts = {f"I prefer pump {number} over the others." for number in range(5)}
    for text in texts:
        put(None, text.encode())
    working(engine)
    events.until(lambda: with_vectors(store, container) == texts)
    assert sorted(dense.seen) == sorted(texts)
    assert sorted(engine.static.seen) == sorted(texts)
    for memory in store.memories.latest(container.id):
        stored = store.memory_search.vectors([memory.id], model="fake-dense")[memory.id]
        assert stored == dense.embed_query(memory.candidate.text).astype("<f2").tobytes()


def test_memories_that_wait_for_their_passages_hold_up_no_others(store: AnyStore, container: Container, put: Putting) -> None:
    dense = HashEmbedder("fake-dense")
    engine = FakeEngine(store, dense=dense)
    put(None, b"- I live in Lisbon.\n- I prefer tea over coffee.\n")
    remembered(store, engine)
    for number in range(MEMORIES_MAX + 3):
        put(None, f"I prefer pump {number} over the others.".encode())
    remembered(store, engine)
    vectors = MemoryVectors(store, engine)  # type: ignore[arg-type]
    did = [vectors.step() for _ in range(3)]
    assert sorted(did) == [False, False, True]
    assert with_vectors(store, container) == {"I live in Lisbon.", "I prefer tea over coffee."}
    assert len(dense.seen) == 2
