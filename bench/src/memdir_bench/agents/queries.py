"""A process that does nothing but search for memories in a filled store: what a search takes inside the server, and finds.

`times` are of the search itself: words, index, five signals, records of the best. `service` is what the route calls, which
also finds the container and makes the answer, but for HTTP and JSON. Takes an `Asked` as JSON from standard input, writes an
`Answered`.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from memdir_bench.agents.haystack import KINDS, Ask, Haystack
from memdir_bench.agents.judges import TOP
from memdir_bench.posix.clocks import resident_mib

if TYPE_CHECKING:
    from memdir.server.agents.state import AgentMemoryState
    from memdir.server.engine import Engine

CONTAINER = "haystack"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What to measure. `rounds`: each question is asked so often with all others between, and its least time counts."""

    folder: str
    count: int
    questions: int
    rounds: int
    stores: int


@dataclass(slots=True, kw_only=True)
class Answered:
    """Milliseconds by kind, of the clock and of the processor; by kind and question the content and score of the best ten."""

    first_ms: float = 0.0
    at_s: float = 0.0
    """When the answers below were given, since 1970."""
    times: dict[str, list[float]] = field(default_factory=dict)
    cpu: dict[str, list[float]] = field(default_factory=dict)
    service: list[float] = field(default_factory=list)
    recorded: list[float] = field(default_factory=list)
    stores: list[float] = field(default_factory=list)
    after_stores: list[float] = field(default_factory=list)
    """Searches, each the first one after a store."""
    before_stores: list[float] = field(default_factory=list)
    found: dict[str, list[list[tuple[str, float]]]] = field(default_factory=dict)
    resident_mib: float = 0.0
    index_bytes: int = 0


def answered(asked: Asked) -> Answered:
    """The first search, which loads what there is to load; then all kinds."""
    from memdir.api import agents as wire
    from memdir.retrieval.agents.ranking import AgentQuery
    from memdir.server.agents import reading as agent_reading
    from memdir.server.agents import writing as agents
    from memdir.server.agents.search import search as search_memories
    from memdir.server.agents.state import AgentMemoryState
    from memdir.server.http.access import Caller
    from memdir.server.in_process import KEY
    from memdir.store.acting import act_as
    from memdir.store.sqlite.store import SqliteStore

    act_as(KEY.org_id)
    haystack = Haystack(asked.count)
    questions = {kind: haystack.asks(kind, asked.questions) for kind in KINDS}
    store = SqliteStore.open(Path(asked.folder))
    state = AgentMemoryState(store)
    answer = Answered()
    try:
        caller = Caller(key=KEY, store=store)

        def search(ask: Ask, **more: Any) -> tuple[float, float, wire.AgentSearchResponse]:
            request = wire.AgentSearchRequest(
                container_tag=CONTAINER, q=ask.text, project=ask.project, limit=TOP, **({"record": False} | more)
            )
            began_cpu, began = time.thread_time(), time.perf_counter()
            found = search_memories(caller, state, cast("Engine", None), request)  # no model is asked
            return (time.perf_counter() - began) * 1000, (time.thread_time() - began_cpu) * 1000, found

        container = store.containers.get(KEY.org_id, CONTAINER)
        answer.first_ms = _first(state, container.id, search, questions["common"][0])
        answer.at_s = time.time()
        for kind, some in questions.items():
            answers = [search(ask, threshold=None if kind == "needle" else 0.0)[2] for ask in some]
            answer.found[kind] = [[(hit.memory.content, hit.score) for hit in found.results] for found in answers]

        def inside(ask: Ask) -> tuple[float, float]:
            began_cpu, began = time.thread_time(), time.perf_counter()
            query = AgentQuery(text=ask.text, now_ms=store.now_ms(), project=ask.project, limit=TOP)
            agent_reading.ranked_records(caller, state, container.id, query)
            return (time.perf_counter() - began) * 1000, (time.thread_time() - began_cpu) * 1000

        least: dict[tuple[str, int], tuple[float, float]] = {}
        for _ in range(asked.rounds):
            for kind, some in questions.items():
                for at, ask in enumerate(some):
                    took, cpu = inside(ask)
                    before = least.get((kind, at), (took, cpu))
                    least[kind, at] = (min(before[0], took), min(before[1], cpu))
        for kind in KINDS:
            answer.times[kind] = [took for (one, _), (took, _) in least.items() if one == kind]
            answer.cpu[kind] = [cpu for (one, _), (_, cpu) in least.items() if one == kind]
        answer.service = [min(search(ask)[0] for _ in range(asked.rounds)) for ask in questions["needle"]]
        answer.recorded = [search(ask, record=True)[0] for ask in questions["mixed"]]
        answer.resident_mib = resident_mib(os.getpid())
        answer.index_bytes = agent_reading.stats(caller, state, CONTAINER).index_bytes
        for at, ask in enumerate(questions["mixed"][: asked.stores]):
            answer.before_stores.append(inside(ask)[0])
            began = time.perf_counter()
            agents.store(caller, state, None, wire.StoreRequest(container_tag=CONTAINER, content=f"{ask.text} {at * at}th"))
            answer.stores.append((time.perf_counter() - began) * 1000)
            answer.after_stores.append(inside(ask)[0])
    finally:
        state.close()
        store.close()
    return answer


def _first(state: AgentMemoryState, container_id: int, search: Callable[..., object], ask: Ask) -> float:
    """The first search of a process, index and all."""
    began = time.perf_counter()
    state.index(container_id).load(lambda: None)
    search(ask)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    sys.stdout.write(json.dumps(dataclasses.asdict(answered(Asked(**json.loads(sys.stdin.read()))))))
