"""A process that does nothing but search in a filled store: its times, its memory, and what it found.

It has the parts of a server, loaded as a server loads them; only the vectors of queries are drawn and not the model's, after
the model has run, so that its time is in every figure. Takes an `Ask` as JSON from standard input, writes an `Answer`.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from memdir.retrieval.signals import stems_in
from memdir_bench.scale.exact import TOP, timed_ms
from memdir_bench.scale.filling import cut
from memdir_bench.scale.material import KINDS, Material, Query, folder_of, path_of

if TYPE_CHECKING:
    from memdir.retrieval.embed import Embedder
    from memdir.retrieval.embed.port import CosineScale
    from memdir.server.engine import Engine
    from memdir.store.store import Store
    from memdir.store.types import Matrix

CANDIDATES: Final = 150
"""As many as a search takes of each kind."""
_BUILDING: Final = 5
"""Searches that are timed while the first one's indexes are being made."""
_LOAD_LIMIT_S: Final = 600.0
_BUILD_LIMIT_S: Final = 3_600.0
"""For the files of the vectors, which the first search asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """What to measure. `rounds`: each query is asked so often, and its least time counts."""

    folder: str
    models: str
    database_url: str | None
    container_id: int
    passages: int
    queries: int
    rounds: int
    updates: int


@dataclass(slots=True, kw_only=True)
class Answer:
    """Milliseconds of each measurement by name, chunk ids by kind and query, MiB by name."""

    times: dict[str, list[float]] = field(default_factory=dict)
    stages: dict[str, list[float]] = field(default_factory=dict)
    lexical: dict[str, list[list[int]]] = field(default_factory=dict)
    nearest: dict[str, list[list[int]]] = field(default_factory=dict)
    memory: dict[str, float] = field(default_factory=dict)


class Drawn:
    """An embedder whose queries have drawn vectors; the real one runs and its result is thrown away."""

    def __init__(self, real: Embedder) -> None:
        self._real = real
        self.vectors: dict[str, Matrix] = {}

    @property
    def name(self) -> str:
        return self._real.name

    @property
    def dim(self) -> int:
        return self._real.dim

    @property
    def scale(self) -> CosineScale:
        return self._real.scale

    def embed_query(self, text: str) -> Matrix:
        """Shape (dim,)."""
        made = self._real.embed_query(text)
        return self.vectors.get(text, made)

    def embed_passages(self, texts: list[str]) -> Matrix:
        """Shape (len(texts), dim)."""
        return self._real.embed_passages(texts)


def memory_mib() -> dict[str, float]:
    """Of this process: resident, its fair share of it, and how much of it is not backed by a file."""
    found = {}
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]:
        name, _, value = line.partition(":")
        found[name] = int(value.split()[0]) / 1024
    return {"rss": found["Rss"], "pss": found["Pss"], "anonymous": found["Pss_Anon"]}


def answered(ask: Ask) -> Answer:
    """Everything, in order: the first search, queries of all kinds, updates."""
    from memdir.server.dispatcher import SWITCH_INTERVAL_S
    from memdir.server.engine import Engine

    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with opened(Path(ask.folder), ask.database_url) as store:
        loaded = threading.Event()
        engine = Engine(store, Path(ask.models))
        engine.start(lambda: loaded.set() if engine.settled else None)
        try:
            if not loaded.wait(_LOAD_LIMIT_S):
                raise TimeoutError("the models did not load")
            return _Asker(ask, store, engine).all()
        finally:
            engine.stop()


@contextmanager
def opened(folder: Path, database_url: str | None) -> Iterator[Store]:
    """The store in `folder`, or in a PostgreSQL database."""
    from memdir.store.acting import SYSTEM
    from memdir.store.sqlite.store import SqliteStore

    store: Store
    if database_url is None:
        store = SqliteStore.open(folder)
    else:
        from memdir.store.postgres.store import PostgresStore

        store = PostgresStore.open(database_url, folder, acting=SYSTEM)
    try:
        yield store
    finally:
        store.close()


class _Asker:
    def __init__(self, ask: Ask, store: Store, engine: Engine) -> None:
        from memdir.store.types import Scope

        assert engine.dense is not None
        self._ask = ask
        self._store = store
        self._chunks, self._vectors, self._words = engine.chunks, engine.vectors, engine.words
        self._static, self._dense = Drawn(engine.static), Drawn(engine.dense)
        self._engine = engine
        self._searcher = engine.searcher_over(self._static, self._dense)
        self._whole = Scope(container_id=ask.container_id)
        self._material = Material(dense_dim=engine.dense.dim, static_dim=engine.static.dim)
        self._answer = Answer()

    def all(self) -> Answer:
        from memdir.retrieval.vectors.index import VectorIndexes

        queries = {kind: self._material.queries(kind, self._ask.queries) for kind in KINDS}
        for query in (query for some in queries.values() for query in some):
            self._static.vectors[query.text], self._dense.vectors[query.text] = query.static, query.dense
        self._note_memory("loaded")
        first, *others = queries["mixed"]
        self._answer.times["first_search"] = [timed_ms(lambda: self._search(first, self._whole))[0]]
        self._answer.times["while_building"] = [
            timed_ms(partial(self._search, query, self._whole))[0] for query in others[:_BUILDING]
        ]
        self._answer.stages.clear()
        self._answer.times["words_ready"] = [timed_ms(lambda: self._words.settle(self._ask.container_id))[0]]
        if isinstance(self._vectors, VectorIndexes):
            vectors = self._vectors
            self._answer.times["vectors_ready"] = [timed_ms(lambda: vectors.settle(_BUILD_LIMIT_S))[0]]
        for kind, some in queries.items():
            self._by_kind(kind, some)
        self._scoped(queries["mixed"])
        self._note_memory("searched")
        self._updates()
        return self._answer

    def _note_memory(self, when: str) -> None:
        self._answer.memory |= {f"{when}_{name}": mib for name, mib in memory_mib().items()}

    def _by_kind(self, kind: str, queries: Sequence[Query]) -> None:
        best: list[list[int]] = []
        self._answer.times[f"lexical_{kind}"] = self._least(queries, lambda query: best.append(self._lexical(query)))
        self._answer.lexical[kind] = best[: len(queries)]
        near: list[list[int]] = []
        self._answer.times[f"vectors_{kind}"] = self._least(queries, lambda query: near.append(self._near(query)))
        self._answer.nearest[kind] = near[: len(queries)]
        self._answer.times[f"hybrid_{kind}"] = self._least(queries, lambda query: self._search(query, self._whole))
        self._answer.times.setdefault("hybrid_cpu", []).extend(
            self._least(queries, lambda query: self._search(query, self._whole), clock=time.process_time)
        )

    def _scoped(self, queries: Sequence[Query]) -> None:
        """Each query in a folder of ten files, each time another one."""
        from memdir.store.types import Scope

        files = np.random.default_rng(9).integers(0, self._ask.passages // 20, len(queries)).tolist()
        scopes = {
            query.text: Scope(container_id=self._ask.container_id, folder=folder_of(file))
            for query, file in zip(queries, files, strict=True)
        }
        self._answer.times["scoped"] = self._least(queries, lambda query: self._search(query, scopes[query.text]))
        self._answer.times["scoped_cpu"] = self._least(
            queries, lambda query: self._search(query, scopes[query.text]), clock=time.process_time
        )

    def _least(
        self, queries: Sequence[Query], work: Callable[[Query], Any], *, clock: Callable[[], float] = time.perf_counter
    ) -> list[float]:
        """The least time of each query. All are asked before one is asked again, and what a searcher remembers of questions is
        forgotten before each round, so that none finds its own trace."""
        rounds = []
        for _ in range(self._ask.rounds):
            self._searcher = self._engine.searcher_over(self._static, self._dense)
            stems_in.cache_clear()
            rounds.append([timed_ms(partial(work, query), of=clock)[0] for query in queries])
        return [min(times) for times in zip(*rounds, strict=True)]

    def _lexical(self, query: Query) -> list[int]:
        from memdir.retrieval.words import prepare

        found = self._words.search(self._whole, prepare(query.text).phrases, CANDIDATES)
        return [chunk_id for chunk_id, _ in found[:TOP]]

    def _near(self, query: Query) -> list[int]:
        near = self._vectors.nearest(self._whole, query.dense, model=self._dense.name, limit=CANDIDATES)
        order = np.lexsort((near.ids, -near.cosines))[:TOP]
        ids: list[int] = near.ids[order].tolist()
        return ids

    def _search(self, query: Query, scope: Any) -> None:
        from memdir.retrieval.types import SearchQuery

        outcome = self._searcher.search(SearchQuery(text=query.text, scope=scope, threshold=0.0))
        for stage, took_ms in outcome.stages_ms.items():
            self._answer.stages.setdefault(stage, []).append(took_ms)

    def _updates(self) -> None:
        """A file gets other passages: from the commit of its words, and of its vectors, to a search that finds them."""
        from memdir.retrieval.words import prepare

        random = np.random.default_rng(11)
        for number in range(self._ask.updates):
            file = int(random.integers(0, self._ask.passages // 20))
            row = self._store.documents.at(self._ask.container_id, path_of(file))
            assert row is not None
            word = f"fresh{number}zzq"
            text = f"{word} {' '.join(self._material.words[int(at)] for at in random.integers(0, 9000, 20))}"
            static, dense = self._static.embed_passages([text]), self._dense.embed_passages([text])
            ids = self._chunks.replace_chunks(row, cut([text]), model=self._static.name, vectors=static)
            phrases = prepare(word).phrases
            took_ms, found = timed_ms(partial(self._words.search, self._whole, phrases, CANDIDATES))
            if [chunk_id for chunk_id, _ in found] != list(ids):
                raise AssertionError(f"{word} was not found after its commit: {found}")
            self._answer.times.setdefault("visible_by_words", []).append(took_ms)
            self._chunks.add_vectors(ids, model=self._dense.name, vectors=dense)
            took_ms, near = timed_ms(
                partial(self._vectors.nearest, self._whole, dense[0], model=self._dense.name, limit=CANDIDATES)
            )
            if ids[0] not in near.ids.tolist():
                raise AssertionError(f"{word} is not near itself after its commit")
            self._answer.times.setdefault("visible_by_vector", []).append(took_ms)


def main() -> None:
    began = time.perf_counter()
    answer = answered(Ask(**json.loads(sys.stdin.read())))
    answer.times["whole_run"] = [(time.perf_counter() - began) * 1000]
    sys.stdout.write(json.dumps(dataclasses.asdict(answer)))


if __name__ == "__main__":
    main()
