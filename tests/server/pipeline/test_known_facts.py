"""The memory step decides as if it read every fact of the container for every document."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from memdir.ingest.text import decode
from memdir.memory.extract import extract
from memdir.memory.reconcile import reconcile
from memdir.server.indexing.known_facts import KnownFacts
from memdir.server.indexing.leases import Lease
from memdir.server.indexing.memory_step import remember_all
from memdir.store.memories.memories import Decided
from memdir.store.store import Store
from memdir.store.tree.operations import Put
from memdir.store.types import Container, Document, MemoryCandidate
from tests.server.conftest import AnyStore, Putting
from tests.server.fakes import FakeEngine
from tests.server.pipeline.conftest import indexed

NAMES = ("Ida", "Omar", "Lena")
PLACES = ("Oslo", "Bergen", "Turku", "Riga")


def said(rng: random.Random) -> str:
    lines = [
        rng.choice(
            (
                f"- {rng.choice(NAMES)} lives in {rng.choice(PLACES)}.",
                f"- {rng.choice(NAMES)} works at the {rng.choice(PLACES)} harbour.",
                f"- The launch date is {rng.randrange(1, 4)} May.",
                f"- I prefer {rng.choice(('tea', 'TEA', 'coffee'))}.",
            )
        )
        for _ in range(rng.randrange(0, 4))
    ]
    return "# Notes\n\n" + "\n".join(lines) + "\n"


def put_document(put: Putting, path: str, text: str) -> Document:
    document = put(path, text.encode()).document
    assert document is not None
    return document


def put_in(store: AnyStore, container: Container, contents: dict[str, bytes]) -> None:
    for path, content in contents.items():
        with store.blobs.upload() as upload:
            upload.write(content)
            store.files.apply(container, Put(path=path, blob=upload.finish()))


def read(document: Document, text: str) -> Sequence[MemoryCandidate]:
    decoded = decode(text.encode())
    assert decoded is not None
    return extract(decoded.text, document.path or "", byte_at=decoded.byte_at)


def one_step(store: Store, container: Container, document: Document, text: str, facts: KnownFacts) -> None:
    """What `remembering.remember` does, beside what it would decide with everything at hand."""
    now = store.containers.by_id(container.id)
    assert now is not None
    candidates = read(document, text)
    own = store.memories.standing(document.id)
    mine = {memory.id for memory in own}
    everything = [memory for memory in store.memories.latest(container.id, limit=10_000) if memory.id not in mine]
    changes = reconcile(candidates, own=own, others=facts.concerned(now, candidates, own))
    assert changes == reconcile(candidates, own=own, others=everything)
    changed = store.memories.apply(document, changes, version=now.profile_version)
    facts.applied(now, [Decided(document=document, changes=changes)], changed=changed)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_facts_concerned_lead_to_the_same_decisions_as_all_facts(
    store: Store, container: Container, put: Putting, seed: int
) -> None:
    rng = random.Random(seed)
    facts = KnownFacts(store)
    documents: dict[str, Document] = {}
    for step in range(60):
        path = f"/memory/n{rng.randrange(8)}.md"
        text = said(rng)
        documents[path] = document = put_document(put, path, text)
        one_step(store, container, document, text, facts)
        if step % 9 == 4:  # somebody else changes something
            latest = store.memories.latest(container.id)
            if latest:
                store.memories.forget(rng.choice(list(latest)))
        if step % 13 == 6 and documents:
            gone = documents.pop(rng.choice(sorted(documents)))
            store.memories.forget_document(gone)


def facts_of(store: Store, container: Container) -> list[tuple[object, ...]]:
    """All versions of all facts."""
    roots = {memory.root_id for memory in store.memories.latest(container.id, forgotten=True)}
    return sorted(
        (memory.candidate.text, memory.version, memory.is_latest, memory.relation, memory.source_count)
        for memory in store.memories.versions(sorted(roots))
    )


def test_documents_read_together_leave_what_one_after_the_other_leaves(store: AnyStore) -> None:
    """The same contents in two containers, in several rounds of edits."""
    rng = random.Random(3)
    engine, facts = FakeEngine(store), KnownFacts(store)
    both = [store.containers.ensure("local", tag) for tag in ("together", "alone")]
    for _ in range(3):
        contents = {f"/memory/n{number}.md": said(rng).encode() for number in rng.sample(range(8), 5)}
        for container in both:
            put_in(store, container, contents)
        while claimed := store.jobs.claim("index"):
            indexed(store, engine, claimed[0])
        claimed = store.jobs.claim("memory", limit=99)
        for container, at_once in zip(both, (99, 1), strict=True):
            jobs = [job for job in claimed if job.container_id == container.id]
            for first in range(0, len(jobs), at_once):
                leases = [Lease(store, job) for job in jobs[first : first + at_once]]
                assert not remember_all(store, facts, leases)
        assert store.jobs.count("memory") == 0
        together, alone = (facts_of(store, container) for container in both)
        assert together == alone
    assert len(together) > 3


def test_only_the_first_document_reads_all_facts(
    store: Store, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = KnownFacts(store)
    reads = 0
    latest = store.memories.latest

    def counted(container_id: int, *, limit: int = 1000, forgotten: bool = False) -> object:
        nonlocal reads
        reads += 1
        return latest(container_id, limit=limit, forgotten=forgotten)

    for number in range(5):
        text = f"- Person{number} lives in Oslo.\n"
        document = put_document(put, f"/memory/p{number}.md", text)
        now = store.containers.by_id(container.id)
        assert now is not None
        candidates = read(document, text)
        with monkeypatch.context() as patched:
            patched.setattr(store.memories, "latest", counted)
            others = facts.concerned(now, candidates, ())
        changes = reconcile(candidates, own=(), others=others)
        changed = store.memories.apply(document, changes, version=now.profile_version)
        facts.applied(now, [Decided(document=document, changes=changes)], changed=changed)
    assert candidates
    assert reads == 1
