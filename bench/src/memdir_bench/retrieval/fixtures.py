"""A collection inside a real store: files put, taken through the worker's pipeline, and searched as a server searches."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.errors import MemdirError
from memdir.retrieval.embed import Embedder
from memdir.retrieval.fuse import Tuning
from memdir.retrieval.types import SearchQuery
from memdir.retrieval.words import prepare
from memdir.store.types import Scope
from memdir_bench.retrieval.collections import Text

if TYPE_CHECKING:
    from memdir.retrieval.query import Searcher
    from memdir.server.engine import Engine
    from memdir.store.store import Store

DEPTH: Final = 150
"""Passages that a ranking of files is made of: enough for about the first hundred files."""
SHORT: Final = 30
"""The same for measures that look at the first ten files."""
_POLL_S: Final = 0.2
_STALLED_S: Final = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """One filled container and its models."""

    engine: Engine
    scope: Scope

    def searcher(self, tuning: Tuning | None = None, *, dense: bool = True) -> Searcher:
        """The product's searcher, or one that is tuned otherwise."""
        return self.engine.searcher_over(self.engine.static, self.engine.dense if dense else None, tuning)

    def ranked(self, searcher: Searcher, question: str, depth: int = DEPTH) -> list[str]:
        """Files in the order of their best passages."""
        found = searcher.search(SearchQuery(text=question, scope=self.scope, limit=depth, threshold=0.0, lines=False))
        return list(dict.fromkeys(hit.path or "" for hit in found.hits))

    def by_words(self, question: str) -> list[str]:
        """Files in the order of the lexical signal alone."""
        found = self.engine.searcher.words.search(self.scope, prepare(question).phrases, DEPTH)
        return self._files([chunk_id for chunk_id, _ in sorted(found, key=lambda pair: (-pair[1], pair[0]))])

    def by_vectors(self, question: str, model: Embedder) -> list[str]:
        """Files in the order of one vector signal alone."""
        near = self.engine.vectors.nearest(self.scope, model.embed_query(prepare(question).text), model=model.name, limit=DEPTH)
        return self._files([chunk_id for _, chunk_id in sorted(zip((-near.cosines).tolist(), near.ids.tolist(), strict=True))])

    def _files(self, chunk_ids: Sequence[int]) -> list[str]:
        stored = self.engine.chunks.chunks(chunk_ids)
        return list(dict.fromkeys(stored[chunk_id].path or "" for chunk_id in chunk_ids if chunk_id in stored))


@contextmanager
def filled(texts: Sequence[Text], dense: Embedder | None, say: Callable[[str], None]) -> Iterator[Fixture]:
    """A new store with `texts` in one container, all of them searchable by all signals. Gone afterwards."""
    from memdir.server.engine import Engine
    from memdir.server.indexing.worker import Worker
    from memdir.store.sqlite.store import SqliteStore

    with tempfile.TemporaryDirectory(prefix="memdir-bench-") as folder:
        store = SqliteStore.open(Path(folder))
        engine = Engine(store, Path(folder) / "models", dense=lambda: dense)
        worker = Worker(store, engine)
        settled = threading.Event()

        def changed() -> None:
            worker.models_changed()
            settled.set()

        try:
            container_id = put_all(store, texts)
            engine.start(changed)
            worker.start()
            engine.join()
            _drained(store, say)
            yield Fixture(engine=engine, scope=Scope(container_id=container_id))
        finally:
            worker.stop()
            engine.stop()
            store.close()


def put_all(store: Store, texts: Sequence[Text]) -> int:
    """Put files into a container of their own; returns its id."""
    from memdir.store.tree.operations import Put

    container = store.containers.ensure("bench", "collection")
    for text in texts:
        with store.blobs.upload() as upload:
            upload.write(text.text.encode())
            store.files.apply(container, Put(path=text.path, blob=upload.finish()))
    return container.id


def _drained(store: Store, say: Callable[[str], None]) -> None:
    """Wait for the worker; MemdirError when nothing moves any more."""
    least, moved = store.jobs.count(), time.monotonic()
    told = moved
    while (left := store.jobs.count()) > 0:
        now = time.monotonic()
        if left < least:
            least, moved = left, now
        if now - moved > _STALLED_S:
            raise MemdirError(f"the pipeline does not go on, {left} jobs are left", hint="run it again with MEMDIR_DEBUG=1")
        if now - told > 10:
            say(f"{left} jobs are left …")
            told = now
        time.sleep(_POLL_S)
