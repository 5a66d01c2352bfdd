"""Taking documents through the pipeline, on threads of the server process.

`index`: bytes → text → passages with words and static vectors, in one transaction: searchable. `embed`: the transformer's
vectors, in batches over several documents: done. `memory`: what a document under the memory paths says. Each is a job on disk
with a lease, so a crash at any step is repeated, never skipped; every step may be repeated. One indexing thread takes
interactive jobs only, so that an edit never waits behind an import.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from memdir.core.errors import MemdirError
from memdir.core.sqlite import DiskFullError
from memdir.retrieval.embed.port import LineEmbedder
from memdir.server.engine import Engine
from memdir.server.pipeline import SupersededError, index, remember
from memdir.store.jobs import ATTEMPTS_MAX, BULK, INTERACTIVE, Job
from memdir.store.store import Store
from memdir.store.texts import embedded_text

log = logging.getLogger(__name__)

EMBED_JOBS: Final = 32
EMBED_CHUNKS: Final = 32
"""Passages in one go: bounds how long an edit waits behind an import (about half a second) and how much a crash repeats."""
REASON_MAX_CHARS: Final = 500
STOP_S: Final = 5.0
_BLOCKED_S: Final = 1.0
_FULL_S: Final = 10.0
_IDLE_S: Final = 60.0
"""Upper bound of a wait; wake-ups come from commits, this only limits the cost of a lost one."""


class Worker:
    """Threads that work the job table until `stop`."""

    def __init__(self, store: Store, engine: Engine) -> None:
        self._store = store
        self._engine = engine
        self._stopping = threading.Event()
        loops: Sequence[tuple[str, Callable[[], bool], str, int]] = (
            ("index-now", lambda: self._index_one(INTERACTIVE), "index", INTERACTIVE),
            ("index", lambda: self._index_one(BULK), "index", BULK),
            ("memory", self._remember_one, "memory", BULK),
            ("embed", self._embed_some, "embed", BULK),
        )
        self._wakes = [threading.Event() for _ in loops]
        self._threads = [
            threading.Thread(target=self._loop, args=(wake, step, kind, priority), name=f"memdir-{name}", daemon=True)
            for wake, (name, step, kind, priority) in zip(self._wakes, loops, strict=True)
        ]

    def start(self) -> None:
        """Begin."""
        self._store.listen(lambda _: self.wake())
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Look for work now. Any thread."""
        for wake in self._wakes:
            wake.set()

    def stop(self, *, timeout_s: float = STOP_S) -> bool:
        """End after the step under way. Returns whether all threads ended in time; a step that did not is repeated after the
        next start, because its lease is released then."""
        self._stopping.set()
        self.wake()
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def _loop(self, wake: threading.Event, step: Callable[[], bool], kind: str, priority: int) -> None:
        while not self._stopping.is_set():
            wake.clear()
            try:
                if step():
                    continue
                pause = self._store.jobs.next_due_s(kind, priority_max=priority)
            except DiskFullError:
                log.error("no room on the disk to go on indexing; trying again every %g s", _FULL_S)  # noqa: TRY400  no bug
                pause = _FULL_S
            except Exception:
                # The database is busy, or a bug: what was claimed comes back when its lease ends.
                log.exception("a worker step failed")
                pause = _BLOCKED_S
            # A job that is due and was not taken waits for a model; the engine wakes us when it is there.
            wake.wait(_IDLE_S if pause is None else min(_IDLE_S, pause or _BLOCKED_S))

    def _index_one(self, priority: int) -> bool:
        if not self._engine.ready:
            return False
        claimed = self._store.jobs.claim("index", priority_max=priority)
        for job in claimed:
            self._guarded(job, lambda job: index(self._store, self._engine, job))
        return bool(claimed)

    def _remember_one(self) -> bool:
        if not self._engine.ready:
            return False
        claimed = self._store.jobs.claim("memory")
        for job in claimed:
            self._guarded(job, lambda job: remember(self._store, self._engine, job))
        return bool(claimed)

    def _guarded(self, job: Job, work: Callable[[Job], None]) -> None:
        """Run one job; what goes wrong with it is its own affair."""
        try:
            work(job)
        except SupersededError:
            # Deleted or replaced under our hands; a row that is still there asks for the newer content.
            self._store.jobs.release([job])
        except Exception as error:
            log.warning("%s of document %s failed (attempt %d)", job.kind, job.document_id, job.attempts + 1, exc_info=True)
            if self._store.jobs.fail(job):
                self._give_up(job, error)
        self._store.notify(job.container_id)

    def _give_up(self, job: Job, error: Exception) -> None:
        document = self._store.documents.get(job.document_id)
        if document is None:
            return
        reason = error.message if isinstance(error, MemdirError) else f"{type(error).__name__}: {error}"
        reason = reason[:REASON_MAX_CHARS].encode("utf-8", "replace").decode()
        if job.kind == "index":
            self._store.documents.set_status(document, "failed", error=reason)
        else:
            self._store.documents.set_status(document, document.status, error=f"memories could not be read: {reason}")

    def _embed_some(self) -> bool:
        """One batch of passages for the most urgent documents. Returns whether there may be more."""
        dense = self._engine.dense
        if dense is None:
            return False
        claimed = self._store.jobs.claim("embed", limit=EMBED_JOBS)
        if not claimed:
            return False
        try:
            missing = self._store.embedding.missing(claimed, model=dense.name, limit=EMBED_CHUNKS)
            self._embed(dense.name, [chunk_id for chunk_id, _ in missing])
            ended = self._store.embedding.settle(claimed, model=dense.name)
        except Exception:
            log.warning("a batch of %d documents could not be embedded, trying them one by one", len(claimed), exc_info=True)
            ended = self._embed_singly(claimed, dense.name)
        for container_id in {job.container_id for job in ended}:
            self._store.notify(container_id)
        return True

    def _embed(self, model: str, chunk_ids: Sequence[int]) -> None:
        dense = self._engine.dense
        assert dense is not None
        stored = self._engine.chunks.chunks(chunk_ids)
        ids = [chunk_id for chunk_id in chunk_ids if chunk_id in stored]
        if ids:
            chunks = [stored[chunk_id].chunk for chunk_id in ids]
            lines = None
            if isinstance(dense, LineEmbedder):
                vectors, lines = dense.embed_chunks(chunks)
            else:
                vectors = dense.embed_passages([embedded_text(chunk) for chunk in chunks])
            self._engine.chunks.add_vectors(ids, model=model, vectors=vectors, lines=lines)

    def _embed_singly(self, claimed: Sequence[Job], model: str) -> list[Job]:
        """After a batch failed: find the document that spoils it. It stays searchable by words and static vectors."""
        ended: list[Job] = []
        for job in claimed:
            try:
                missing = self._store.embedding.missing([job], model=model, limit=EMBED_CHUNKS)
                self._embed(model, [chunk_id for chunk_id, _ in missing])
                ended += self._store.embedding.settle([job], model=model)
            except Exception as error:
                log.warning("embedding of document %s failed (attempt %d)", job.document_id, job.attempts + 1, exc_info=True)
                if job.attempts + 1 >= ATTEMPTS_MAX:
                    note = f"found by words only, the model failed: {type(error).__name__}: {error}"[:REASON_MAX_CHARS]
                    ended += self._store.embedding.settle([job], model=model, note=note)
                else:
                    self._store.jobs.fail(job)
        return ended
