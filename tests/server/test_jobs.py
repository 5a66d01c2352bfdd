"""The queue: turns, leases, fencing, dead letters, and the invariant that nothing unfinished is without work."""

from __future__ import annotations

from collections import Counter

import pytest

from memdir.core.clock import FakeClock
from memdir.store.errors import SupersededError
from memdir.store.jobs.progress import Indexed
from memdir.store.jobs.queue import ATTEMPTS_MAX, BULK, DEATHS_MAX, INTERACTIVE, LEASE_MS, Job
from memdir.store.tree.operations import Delete, Put
from memdir.store.types import Container, Document
from tests.server.conftest import AnyStore, Putting

LEASE_S = LEASE_MS / 1000


def put_in(store: AnyStore, container: Container, path: str, *, priority: int = BULK, content: bytes = b"text") -> str:
    """Put a file into any container; its document's id."""
    with store.blobs.upload() as upload:
        upload.write(content)
        outcome = store.files.apply(container, Put(path=path, blob=upload.finish(), priority=priority))
    assert outcome.document is not None
    return outcome.document.id


def import_into(store: AnyStore, container: Container, count: int) -> None:
    """Many files as one import brings them: in one transaction."""
    operations = []
    for number in range(count):
        with store.blobs.upload() as upload:
            upload.write(b"imported")
            operations.append(Put(path=f"/{number:06}.md", blob=upload.finish(), priority=BULK))
    store.files.apply_all(container, operations)


def take(store: AnyStore, count: int) -> list[Job]:
    """Claim and finish one job after the other, as one worker does."""
    taken = []
    for _ in range(count):
        for job in store.jobs.claim("index"):
            taken.append(job)
            store.jobs.finish([job])
    return taken


def claim_one(store: AnyStore, kind: str = "index") -> Job:
    (job,) = store.jobs.claim(kind)
    return job


def document_of(store: AnyStore, job: Job) -> Document:
    document = store.documents.get(job.document_id)
    assert document is not None
    return document


# ---- turns


@pytest.mark.promise("pipeline.fair")
def test_a_document_beside_an_import_waits_for_one_of_them(store: AnyStore) -> None:
    busy, quiet = store.containers.ensure("local", "busy"), store.containers.ensure("local", "quiet")
    import_into(store, busy, 1000)
    take(store, 100)
    alone = put_in(store, quiet, "/note.md")
    places = [job.document_id for job in take(store, 5)]
    assert alone in places[:2]


@pytest.mark.promise("pipeline.fair")
def test_containers_with_work_take_turns_document_by_document(store: AnyStore) -> None:
    containers = [store.containers.ensure("local", name) for name in ("a", "b", "c")]
    for container, count in zip(containers, (60, 40, 20), strict=True):
        import_into(store, container, count)
    order = [job.container_id for job in take(store, 120)]
    for first in range(0, 60, 3):
        assert Counter(order[first : first + 3]) == Counter(container.id for container in containers)
    for first in range(60, 100, 2):
        assert set(order[first : first + 2]) == {containers[0].id, containers[1].id}
    assert set(order[100:]) == {containers[0].id}


def test_a_container_that_was_idle_has_saved_nothing_up(store: AnyStore) -> None:
    busy, late = store.containers.ensure("local", "busy"), store.containers.ensure("local", "late")
    put_in(store, late, "/early.md")
    take(store, 1)
    import_into(store, busy, 200)
    take(store, 100)
    import_into(store, late, 50)
    order = [job.container_id for job in take(store, 60)]
    assert Counter(order)[busy.id] == 30


def test_a_steady_trickle_does_not_starve_the_import_beside_it(store: AnyStore) -> None:
    busy, trickle = store.containers.ensure("local", "busy"), store.containers.ensure("local", "trickle")
    import_into(store, busy, 100)
    served: Counter[int] = Counter()
    for number in range(100):
        put_in(store, trickle, f"/{number}.md")
        served.update(job.container_id for job in take(store, 1))
    assert served[busy.id] >= 40


@pytest.mark.promise("pipeline.priorities")
def test_an_edit_overtakes_an_import_and_the_import_still_gets_its_share(store: AnyStore, container: Container) -> None:
    import_into(store, container, 50)
    edit = put_in(store, container, "/edit.md", priority=INTERACTIVE)
    assert claim_one(store).document_id == edit
    other = put_in(store, container, "/other.md", priority=INTERACTIVE)
    (job,) = store.jobs.claim("index", bulk_first=True)
    assert job.priority == BULK
    assert claim_one(store).document_id == other


def test_work_that_is_claimed_together_has_one_priority_and_no_more_than_some_bytes(
    store: AnyStore, container: Container
) -> None:
    sizes = [30, 30, 30, 500, 30]
    imported = [put_in(store, container, f"/{number}.md", content=b"x" * size) for number, size in enumerate(sizes)]
    edit = put_in(store, container, "/edit.md", priority=INTERACTIVE)
    claims = [store.jobs.claim("index", limit=32, size_max_bytes=100) for _ in range(4)]
    assert [[job.document_id for job in together] for together in claims] == [[edit], imported[:4], imported[4:], []]
    store.jobs.release([job for together in claims for job in together])
    assert [job.document_id for job in store.jobs.claim("index", limit=2, bulk_first=True)] == imported[:2]


def test_an_imported_document_that_is_edited_becomes_urgent(store: AnyStore, container: Container) -> None:
    import_into(store, container, 50)
    edited = put_in(store, container, "/000049.md", priority=INTERACTIVE, content=b"edited")
    job = claim_one(store)
    assert (job.document_id, job.priority) == (edited, INTERACTIVE)
    put_in(store, container, "/000049.md", priority=BULK, content=b"imported again")
    store.jobs.release([job])
    assert claim_one(store).document_id == edited


# ---- leases and fencing


@pytest.mark.promise("pipeline.resumes")
def test_a_claim_that_is_not_the_newest_can_do_nothing(
    store: AnyStore, container: Container, clock: FakeClock, put: Putting
) -> None:
    put("/a.md", b"words")
    old = claim_one(store)
    clock.advance(LEASE_S)
    new = claim_one(store)
    assert (new.document_id, new.claims, new.deaths) == (old.document_id, old.claims + 1, 1)
    document = document_of(store, old)
    assert not store.jobs.renew(old)
    assert not store.jobs.holds(old)
    assert not store.progress.advance([old], "chunking")
    with pytest.raises(SupersededError):
        store.memories.apply(document, [], guard=store.jobs.guard(old))

    def indexed(job: Job) -> Indexed:
        return Indexed(
            document=document, job=job, status="done", error=None, media_type="", title=None, follow_up=("embed",)
        )  # fmt: skip

    assert not store.progress.indexed([indexed(old)])
    assert not store.jobs.fail(old, "too late", permanent=True)
    store.jobs.finish([old])
    store.jobs.release([old])
    assert document_of(store, new).status == "queued"
    assert store.jobs.holds(new)
    assert store.jobs.claim("index") == []
    assert store.progress.indexed([indexed(new)]) == {new.document_id}
    assert document_of(store, new).status == "done"


def test_a_lease_that_is_renewed_does_not_end(store: AnyStore, clock: FakeClock, put: Putting) -> None:
    put("/a.md")
    job = claim_one(store)
    for _ in range(5):
        clock.advance(LEASE_S * 0.9)
        assert store.jobs.renew(job)
        assert store.jobs.claim("index") == []
    clock.advance(LEASE_S)
    assert claim_one(store).claims == job.claims + 1


def test_a_lease_is_not_renewed_for_a_revision_that_is_gone(store: AnyStore, container: Container, put: Putting) -> None:
    put("/a.md", b"1")
    first = claim_one(store)
    put("/a.md", b"2")
    assert not store.jobs.renew(first)
    put("/b.md", b"1")
    second = next(job for job in store.jobs.claim("index", limit=2) if job.document_id != first.document_id)
    store.files.apply(container, Delete(path="/b.md"))
    assert not store.jobs.renew(second)


def test_work_that_kills_its_worker_comes_alone_and_is_given_up(
    store: AnyStore, container: Container, clock: FakeClock, put: Putting
) -> None:
    for number in range(6):
        put(f"/{number}.md", b"%d" % number)
    together = store.jobs.claim("index", limit=6)
    assert len(together) == 6
    clock.advance(LEASE_S)
    killer = together[0].document_id
    for death in range(1, DEATHS_MAX):
        while True:
            (alone,) = store.jobs.claim("index", limit=6)
            if alone.document_id == killer:
                break
            store.jobs.finish([alone])
        assert alone.deaths == death
        clock.advance(LEASE_S)
    assert store.jobs.claim("index", limit=6) == []
    document = store.documents.get(killer)
    assert document is not None
    assert (document.status, document.error) == ("failed", "the worker ended 3 times while it worked on this document")
    assert store.dead_letters.stuck() == []


def test_getting_on_clears_the_suspicion(store: AnyStore, clock: FakeClock, put: Putting) -> None:
    put("/a.md")
    claim_one(store)
    clock.advance(LEASE_S)
    job = claim_one(store)
    assert job.deaths == 1
    store.jobs.release([job])
    assert claim_one(store).deaths == 1


# ---- work that was given up


@pytest.mark.promise("pipeline.dead-letters")
def test_work_given_up_is_kept_with_its_reason_and_can_be_tried_again(
    store: AnyStore, container: Container, clock: FakeClock, put: Putting
) -> None:
    put("/bad.md")
    put("/good.md")
    for _ in range(ATTEMPTS_MAX):
        clock.advance(61)
        for job in store.jobs.claim("index", limit=2):
            if document_of(store, job).path == "/bad.md":
                store.jobs.fail(job, "it \0broke")
            else:
                store.jobs.release([job])
    (letter,) = store.dead_letters.listing([container.id], failed=True, limit=10)
    assert (letter.path, letter.container_tag, letter.state) == ("/bad.md", container.tag, "failed")
    assert (letter.kind, letter.attempts, letter.reason) == ("index", ATTEMPTS_MAX, "it \ufffdbroke")
    assert letter.at_ms == clock.now_ns() // 1_000_000
    rows = store.dead_letters.listing([container.id], failed=False, limit=10)
    assert {(row.path, row.state) for row in rows} == {("/bad.md", "failed"), ("/good.md", "waiting")}
    bad = store.documents.at(container.id, "/bad.md")
    assert bad is not None
    assert (bad.status, bad.error) == ("failed", "it \ufffdbroke")
    store.jobs.finish([claim_one(store)])
    assert (store.jobs.count(), store.jobs.due_s([("index", BULK)])) == (0, {})
    assert store.dead_letters.retry([], document_id=bad.id) == 0
    assert store.dead_letters.retry([container.id], document_id="another") == 0
    assert store.dead_letters.retry([container.id], document_id=bad.id) == 1
    assert (document_of(store, claim_one(store)).status, store.dead_letters.listing([container.id], failed=True, limit=9)) == (
        "queued",
        [],
    )


def test_a_permanent_failure_is_given_up_at_once_and_the_next_revision_starts_afresh(store: AnyStore, put: Putting) -> None:
    put("/a.md", b"1")
    job = claim_one(store)
    assert store.jobs.fail(job, "unreadable", permanent=True)
    assert document_of(store, job).status == "failed"
    put("/a.md", b"2")
    again = claim_one(store)
    assert (again.attempts, again.deaths, document_of(store, again).status) == (0, 0, "queued")


def test_what_is_not_the_documents_fault_does_not_count(store: AnyStore, clock: FakeClock, put: Putting) -> None:
    put("/a.md")
    for _ in range(3 * ATTEMPTS_MAX):
        job = claim_one(store)
        assert job.attempts == 0
        assert not store.jobs.fail(job, "the database is away", counted=False)
        clock.advance(1)


def test_retries_of_what_failed_together_are_spread(store: AnyStore, clock: FakeClock, put: Putting) -> None:
    for number in range(40):
        put(f"/{number}.md")
    for job in store.jobs.claim("index", limit=40):
        store.jobs.fail(job, "the model is away")
    back = []
    for _ in range(10):
        clock.advance(0.05)
        back.append(len(store.jobs.claim("index", limit=40)))
    assert sum(back) == 40
    assert max(back) < 20


# ---- nothing is stuck


@pytest.mark.promise("pipeline.statuses")
def test_a_document_without_the_work_that_would_finish_it_is_found_and_put_right(
    store: AnyStore, container: Container, put: Putting
) -> None:
    for path in ("/a.md", "/b.md", "/c.md"):
        put(path)
    assert store.dead_letters.stuck() == []
    ids = {}
    for path, status in (("/a.md", "chunking"), ("/b.md", "embedding"), ("/c.md", "done")):
        document = store.documents.at(container.id, path)
        assert document is not None
        ids[path] = document.id
        with store.db.write() as connection:
            connection.execute("update document set status = ? where id = ?", (status, document.id))
            connection.execute("delete from job where document_id = ?", (document.id,))
    assert sorted(store.dead_letters.stuck()) == sorted([ids["/a.md"], ids["/b.md"]])
    assert store.dead_letters.unstick() == 2
    assert store.dead_letters.stuck() == []
    assert claim_one(store, "index").document_id == ids["/a.md"]
    assert claim_one(store, "embed").document_id == ids["/b.md"]
