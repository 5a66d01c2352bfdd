"""A search waits for what was written a moment ago, and longer before it says that there is nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from memdir.api import v1
from memdir.core.clock import Clock, SystemClock
from memdir.retrieval.types import Hit, SearchOutcome, SearchQuery
from memdir.server.dispatcher import Dispatcher
from memdir.server.http.access import Caller
from memdir.server.indexing.leases import Lease
from memdir.server.indexing.worker import Worker
from memdir.server.services.search import hits
from memdir.server.services.search import v1 as search
from memdir.store.accounts.keys import ApiKey
from memdir.store.jobs.queue import BULK
from memdir.store.store import Store
from memdir.store.types import Container
from tests.server.conftest import Putting
from tests.server.fakes import FakeEngine, HashEmbedder
from tests.server.steps import index

DENSE = "fake-dense"


@pytest.fixture
def clock() -> Clock:
    """The worker waits in real time."""
    return SystemClock()


class OnlyByMeaning(FakeEngine):
    """Finds passages by the transformer's vectors alone."""

    def __init__(self, store: Store, searched: Callable[[], None]) -> None:
        super().__init__(cast(Any, store), dense=HashEmbedder(DENSE))
        self.searches = 0
        self.models: tuple[Any, ...] = ()
        self._searched = searched

    @property
    def searcher(self) -> OnlyByMeaning:
        return self

    def wait_settled(self, _timeout_s: float) -> bool:
        return True

    def search(self, query: SearchQuery) -> SearchOutcome:
        self.searches += 1
        found = self.chunks.chunks(self.embedded(query.scope.container_id, DENSE)).values()
        span: dict[str, Any] = {"start_line": 1, "end_line": 1, "start_byte": 0, "end_byte": 4, "text": "text"}
        found_hits = [Hit(stored=stored, score=0.5, title=None, signals=None, **span) for stored in found]
        if self.searches == 1:
            self._searched()
        return SearchOutcome(hits=found_hits, total=len(found_hits), stages_ms={})


@pytest.mark.parametrize("wait_ms", [0, 1, 20_000])
def test_nothing_is_found_only_when_the_fresh_edits_have_all_their_vectors(
    store: Store, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch, wait_ms: int
) -> None:
    monkeypatch.setattr(search, "EMBED_WAIT_S", 0.0)
    seq = put("/a.md").seq
    engine: Any = OnlyByMeaning(store, lambda: worker.start())  # noqa: PLW0108  it does not exist yet
    worker = Worker(store, engine)
    for job in store.jobs.claim("index"):
        index(store, engine, Lease(store, job))  # there to be searched, but the transformer is busy
    dispatcher = Dispatcher()
    store.listen(dispatcher.notify)
    caller = Caller(key=ApiKey(id="k", org_id="local", name="test"), store=store)
    request = v1.SearchRequest(q="anything", container_tag=container.tag, wait_seq=seq, wait_ms=wait_ms)

    async def ask() -> v1.SearchResponse:
        dispatcher.attach()
        return await search.search(caller, dispatcher, engine, request)

    answer = asyncio.run(ask())
    assert worker.stop()
    if wait_ms == 1:
        assert answer.half_read == 1 or answer.results
        return
    assert answer.half_read == (None if wait_ms else 1)
    assert [hit.path for hit in answer.results] == (["/a.md"] if wait_ms else [])
    assert engine.searches == (2 if wait_ms else 1)


def test_an_edit_is_waited_for_beside_an_import_that_is_not(
    store: Store, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "EMBED_WAIT_S", 0.0)
    for number in range(30):
        put(f"/imported/{number}.md", priority=BULK)
    put("/edited.md", b"a first draft", priority=BULK)
    seq = put("/edited.md").seq
    dispatcher = Dispatcher()
    store.listen(dispatcher.notify)
    late = threading.Timer(0.3, lambda: worker.start())  # noqa: PLW0108  it does not exist yet
    engine: Any = OnlyByMeaning(store, late.start)
    worker = Worker(store, engine)
    while jobs := store.jobs.claim("index"):
        for job in jobs:
            index(store, engine, Lease(store, job))
    caller = Caller(key=ApiKey(id="k", org_id="local", name="test"), store=store)

    async def ask(wait_ms: int) -> v1.SearchResponse:
        dispatcher.attach()
        request = v1.SearchRequest(q="anything", container_tag=container.tag, wait_seq=seq, wait_ms=wait_ms)
        return await search.search(caller, dispatcher, engine, request)

    answer = asyncio.run(ask(20_000))
    assert worker.stop()
    assert answer.half_read is None
    assert "/edited.md" in [hit.path for hit in answer.results]


def test_who_saves_and_then_asks_is_answered_when_it_is_indexed(
    store: Store, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hits, "FRESH_WAIT_S", 20.0)
    engine: Any = FakeEngine(cast(Any, store))
    caller = Caller(key=ApiKey(id="k", org_id="local", name="test"), store=store)
    put("/a.md")
    put("/imported.md", priority=BULK)
    (job,) = store.jobs.claim("index", limit=1)
    looked, asked = threading.Event(), store.jobs.edits_asked

    def noted(container_ids: Sequence[int], *, until_ms: int) -> bool:
        found = asked(container_ids, until_ms=until_ms)
        looked.set()
        return found

    monkeypatch.setattr(store.jobs, "edits_asked", noted)
    waiting = threading.Thread(target=hits.wait_for_edits, args=(caller, engine, [container.id]))
    waiting.start()
    assert looked.wait(10)
    assert waiting.is_alive()
    assert not engine.in_flight.wait(0)  # imports rest
    index(store, engine, Lease(store, job))
    waiting.join(10)
    assert not waiting.is_alive()
    assert engine.in_flight.wait(0)


def test_a_search_waits_a_moment_only_for_edits_that_nobody_indexes(store: Store, container: Container, put: Putting) -> None:
    put("/a.md")
    caller = Caller(key=ApiKey(id="k", org_id="local", name="test"), store=store)
    hits.wait_for_edits(caller, cast(Any, FakeEngine(cast(Any, store))), [container.id])
    assert store.jobs.edits_asked([container.id], until_ms=store.now_ms())


def test_a_file_that_the_model_reads_for_minutes_is_not_waited_for_and_is_told(
    store: Store, container: Container, put: Putting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search, "EMBED_WAIT_S", 60.0)
    seq = put("/large.md", b"Words about pumps and valves.\n\n" * 4000).seq
    engine: Any = FakeEngine(cast(Any, store), dense=HashEmbedder(DENSE))
    for job in store.jobs.claim("index"):
        index(store, engine, Lease(store, job))
    engine = OnlyByMeaning(store, lambda: None)
    dispatcher = Dispatcher()
    caller = Caller(key=ApiKey(id="k", org_id="local", name="test"), store=store)
    request = v1.SearchRequest(q="anything", container_tag=container.tag, wait_seq=seq, wait_ms=30_000)

    async def ask() -> v1.SearchResponse:
        dispatcher.attach()
        return await asyncio.wait_for(search.search(caller, dispatcher, engine, request), 20)

    answer = asyncio.run(ask())
    assert answer.results == []
    assert answer.note == "1 file is still being read and found by words only until then"
