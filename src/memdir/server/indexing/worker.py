"""Takes documents through the pipeline, on threads of the server process or of a worker process.

`index`: bytes → text → passages with words and static vectors, in one transaction: searchable. `embed`: the transformer's
vectors, in batches over several documents: done. `memory`: what a document under the memory paths says. Each is a job in the
database with a lease, so a crash at any step is repeated, never skipped; every step may be repeated.

The order: edits before imports, but every fourth claim takes an import's job, so that it goes on under any number of edits; one
thread indexes edits only, so that none waits for a long document of an import. Between two pieces of work a thread yields to
searches in flight, for YIELD_MAX_S at most, and to requests that wait for each other, for CROWDED_REST times what it took.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, NoReturn

from memdir.core.errors import BusyError, MemdirError, StorageError, UnreachableError
from memdir.ingest.sandbox import Sandbox
from memdir.retrieval.embed.port import LineEmbedder
from memdir.server.engine import Engine
from memdir.server.indexing.extraction import extract
from memdir.server.indexing.known_facts import KnownFacts
from memdir.server.indexing.leases import COMPUTE_S, Lease, Leases, PermanentError, StepTimeoutError, StoppingError
from memdir.server.indexing.memory_step import remember_all
from memdir.server.indexing.memory_vectors import MemoryVectors
from memdir.server.indexing.pipeline import Failed, index_all
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.errors import DiskFullError, SupersededError
from memdir.store.jobs.queue import BULK, INTERACTIVE, NO_SIZE, Job
from memdir.store.store import Store
from memdir.store.text.passage_text import embedded_text

log = logging.getLogger(__name__)

WORKERS_MAX: Final = 16
TOGETHER_MAX: Final = 16
TOGETHER_MAX_BYTES: Final = 64 << 10
"""Documents that are claimed together, and how much they hold: bounds how long others wait for them (indexing: some 15 ms)."""
TOGETHER_S: Final = 2.0
"""Time limit of one computation over one of them; one that takes longer is done again alone, after the others."""
EXTRACTING: Final = 2
"""Files of imports, and large ones, that are read at the same time: a film does not hold up a letter."""
EMBED_JOBS: Final = 32
EMBED_CHUNKS: Final = 16
"""Passages in one go: bounds how much a crash repeats, and how long the vectors of an edit wait (about .2 s)."""
BULK_EVERY: Final = 4
"""Every such claim of a thread takes an import's work before an edit's."""
LONG_EDIT_S: Final = 0.1
"""How long the threads for imports leave edits to the thread for edits while it works: two that take what comes in would make
small batches of what one takes together."""
GATHER_S: Final = 0.05
"""How long the memory step waits for more documents after it took few: one for sixteen costs little more than one for two. What
it took is found before that."""
YIELD_MAX_S: Final = 0.05
"""How long work in the background waits, between two pieces of it, for searches in flight."""
CROWDED_REST: Final = 3.0
"""While requests wait for each other, a thread rests this many times as long as its last step took: what they brought is then
indexed in larger batches. `memdir bench server`: 16 clients add 470 documents a second, and 290 with a fixed rest of 50 ms."""
STOP_S: Final = 5.0
_INTERRUPT_S: Final = 2.0
"""How long before the end of a stop computations are ended that take long; they are repeated after the next start."""
_CROWDED_REST_MAX_S: Final = 2.0
_BLOCKED_S: Final = 1.0
"""How long work waits after an error, and how long until what is due and was not taken (a model is not there yet) is tried."""
_LOOK_S: Final = 0.01
"""The least time between two looks for work that is due."""
_IDLE_S: Final = 60.0
"""Upper bound of a wait; wake-ups come from commits, this only limits the cost of a lost one."""
Step = Callable[[Sequence[Lease]], Failed]
"""Takes documents of one organisation through a step and returns those that failed; what it raises is of all of them."""
_NOT_ITS_FAULT: Final = (BusyError, StorageError, DiskFullError)
"""What a step may meet that says nothing about the document: it waits and is tried again as often as needed."""


def leave() -> NoReturn:
    """End the process although a step of the worker or the loading of a model still runs: every commit is safe, what was not
    finished is repeated after the next start, and closing the store would wait for it."""
    log.info("stopped in the middle of background work, which goes on after the next start")
    logging.shutdown()
    os._exit(0)


def _taken(queue: deque[str]) -> list[str]:
    """What is in it; other threads take, too."""
    taken = []
    with suppress(IndexError):
        while True:
            taken.append(queue.popleft())
    return taken


class _Loop:
    """One thread: claims work of one kind, step by step, until there is no more; then it waits for the scheduler."""

    def __init__(self, name: str, kind: str, priority: int, step: Callable[[_Loop], bool]) -> None:
        self.name = name
        self.kind = kind
        self.priority = priority
        self.step = step
        self.wake = threading.Event()
        self.bulk_first = False
        """Whether this claim takes an import's work first."""
        self.bulk = False
        """Whether it took an import's work."""
        self._turns = 0

    def next_turn(self) -> None:
        """Another claim."""
        self._turns += 1
        self.bulk_first = self.priority == BULK and self._turns % BULK_EVERY == 0


class Worker:
    """Threads that work the job table until `stop`."""

    def __init__(
        self,
        store: Store,
        engine: Engine,
        *,
        count: int = 1,
        limit_s: float = COMPUTE_S,
        crowded: Callable[[], bool] = lambda: False,
        imports_elsewhere: Callable[[], bool] = lambda: False,
        only_imports: bool = False,
    ) -> None:
        """`count` threads index and as many embed; 0: other processes do the work. `limit_s` is the time limit of one
        computation over one document; `crowded` says whether requests of the same process wait for each other, and
        `imports_elsewhere` whether another process reads imports now. `only_imports`: this is that process."""
        self._store = store
        self._engine = engine
        self._crowded = crowded
        self._imports_elsewhere = imports_elsewhere
        self._priority_min = BULK if only_imports else INTERACTIVE
        self._stopping = threading.Event()
        self._news = threading.Event()
        """There may be new work."""
        self._told_full = False
        """Whether the log has it that the disk is full, and nothing was done since."""
        self._edits_rest = threading.Event()
        """The thread for edits has nothing to index."""
        self._edits_rest.set()
        self._leases = Leases(store, limit_s=limit_s)
        self._facts = KnownFacts(store)
        self._memory_vectors = MemoryVectors(store, engine)
        self._sandbox = Sandbox()
        loops: list[_Loop] = []
        if count and not only_imports:
            loops.append(_Loop("index-now", "index", INTERACTIVE, self._index_some))
            loops.append(_Loop("extract-now", "extract", INTERACTIVE, self._extract_one))
        if count:
            loops.append(_Loop("memory", "memory", BULK, self._remember_some))
            loops += [_Loop("extract", "extract", BULK, self._extract_one) for _ in range(EXTRACTING)]
        for _ in range(count):
            loops += [_Loop("index", "index", BULK, self._index_some), _Loop("embed", "embed", BULK, self._embed_some)]
        self._loops = loops
        self._classes = [(kind, priority) for kind in {loop.kind for loop in loops} for priority in (INTERACTIVE, BULK)]
        self._threads = [
            threading.Thread(target=self._run, args=(loop,), name=f"memdir-{loop.name}", daemon=True) for loop in loops
        ]
        if loops:
            self._threads.append(threading.Thread(target=self._schedule, name="memdir-schedule", daemon=True))

    def start(self) -> None:
        """Begin."""
        self._store.listen(lambda _: self.wake())
        self._leases.start()
        for thread in self._threads:
            thread.start()

    def wake(self) -> None:
        """Look for work now. Any thread."""
        self._news.set()

    def models_changed(self) -> None:
        """The engine has loaded a model, or has all it will have: see to the vectors that lack, and look for work."""
        if self._threads and self._engine.settled:
            dense = self._engine.dense
            if self._engine.ready:
                self._store.memory_search.ask_again(model=(dense or self._engine.static).name)
            if dense is None:
                self._store.embedding.abandon()
            else:
                count = self._store.embedding.backfill(model=dense.name)
                log.info("model %s is ready, %d documents to embed", dense.name, count)
        self.wake()

    def stop(self, *, timeout_s: float = STOP_S) -> bool:
        """End after the step under way and give leases back. Returns whether all threads ended in time; a step that did not is
        repeated after the next start, and can write nothing any more."""
        self._stopping.set()
        self.wake()
        for loop in self._loops:
            loop.wake.set()
        deadline = time.monotonic() + timeout_s
        self._join(deadline - min(_INTERRUPT_S, timeout_s / 2))
        self._leases.stop()
        ended = self._join(deadline)
        self._leases.close()
        self._sandbox.close()
        return ended

    def _join(self, deadline_s: float) -> bool:
        for thread in self._threads:
            thread.join(max(0.0, deadline_s - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    @acting_as(SYSTEM)
    def _schedule(self) -> None:
        """Ask once what is due, after each commit, and wake the threads that it is for."""
        while not self._stopping.is_set():
            self._news.clear()
            try:
                pause_s = self._wake_due()
            except Exception:  # the database is busy, or a bug
                log.exception("it could not be asked what work is due")
                pause_s = _BLOCKED_S
            self._stopping.wait(_LOOK_S)
            self._news.wait(pause_s)

    def _wake_due(self) -> float:
        """Wake the threads that have work which is due. Returns the seconds until more may be."""
        due_s = self._store.jobs.due_s(self._classes)
        embeds_memories = self._priority_min == INTERACTIVE and bool(self._store.memory_search.to_embed(1))
        pause_s = _IDLE_S
        for loop in self._loops:
            priorities = range(self._priority_min, self._priority_max(loop) + 1)
            first_s = min((due_s.get((loop.kind, priority), _IDLE_S) for priority in priorities), default=_IDLE_S)
            if first_s == 0 or (embeds_memories and loop.kind == "memory"):
                loop.wake.set()
                first_s = _BLOCKED_S
            pause_s = min(pause_s, first_s)
        return pause_s

    @acting_as(SYSTEM)
    def _run(self, loop: _Loop) -> None:
        while loop.wake.wait() and not self._stopping.is_set():
            loop.wake.clear()
            try:
                self._work(loop)
            except DiskFullError:
                if not self._told_full:
                    log.error("no room on the disk to go on indexing; trying again every %g s", _BLOCKED_S)  # noqa: TRY400  no bug
                self._told_full = True
                self._stopping.wait(_BLOCKED_S)
            except Exception:
                # The database is busy, or a bug: what was claimed comes back when its lease ends.
                log.exception("a worker step failed")
                self._stopping.wait(_BLOCKED_S)

    def _work(self, loop: _Loop) -> None:
        """All that is due of the thread's kind; what waits for a model stays due. DiskFullError when there is no room."""
        while not self._stopping.is_set():
            self._store.blobs.check_room()
            began_s = time.monotonic()
            if not loop.step(loop):
                return
            self._told_full = False
            self._yield(loop, time.monotonic() - began_s)

    def _yield(self, loop: _Loop, took_s: float) -> None:
        """After a step that took so long: to requests that wait for each other, and, but for indexing an edit, to searches."""
        if self._crowded():
            self._stopping.wait(min(_CROWDED_REST_MAX_S, CROWDED_REST * took_s))
        if loop.bulk or loop.kind == "memory":
            self._engine.in_flight.wait(YIELD_MAX_S)

    def _index_some(self, loop: _Loop) -> bool:
        """Take some short documents, or one long one, through indexing together."""
        if not self._engine.ready:
            return False
        claimed = self._claim(loop, limit=TOGETHER_MAX, size_max_bytes=TOGETHER_MAX_BYTES)
        self._take(claimed, partial(index_all, self._store, self._engine))
        return bool(claimed)

    def _extract_one(self, loop: _Loop) -> bool:
        """Read one file that is no text, in a process apart."""
        claimed = self._claim(loop, limit=1)
        self._take(claimed, self._extract)
        return bool(claimed)

    def _extract(self, leases: Sequence[Lease]) -> Failed:
        for lease in leases:
            extract(self._store, self._sandbox, lease)
        return []

    def _remember_some(self, loop: _Loop) -> bool:
        """Facts of some documents; then vectors of memories that have none: of many documents when the last are read, of an
        edit at once."""
        if not self._engine.ready:
            return False
        claimed = self._claim(loop, limit=TOGETHER_MAX, size_max_bytes=TOGETHER_MAX_BYTES)
        if not claimed:
            return self._priority_min == INTERACTIVE and self._memory_vectors.step()
        self._take(claimed, partial(remember_all, self._store, self._facts))
        self._memory_vectors.begin_anew()
        if self._priority_min == INTERACTIVE and len(claimed) < TOGETHER_MAX:
            self._memory_vectors.step()
            self._stopping.wait(GATHER_S)
        return True

    def _take(self, claimed: Sequence[Job], step: Step) -> None:
        """Take documents through a step, those of an organisation together."""
        of_org = {job.org_id: [other for other in claimed if other.org_id == job.org_id] for job in claimed}
        for org_id, together in of_org.items():
            with acting_as(org_id):
                self._take_together(together, step)
        self._told(claimed)

    def _take_together(self, together: Sequence[Job], step: Step) -> None:
        """What goes wrong with one is its own affair. Those that hold the others up, and all if a transaction of them fails,
        are done again alone."""
        alone: Sequence[Job] = together if len(together) == 1 else ()
        if not alone:
            with self._leases.hold(together, limit_s=TOGETHER_S) as leases:
                try:
                    failed = step(leases)
                except (SupersededError, StoppingError):  # one of them changed meanwhile, or the server ends: no fault
                    failed, alone = [], together
                except Exception:
                    log.warning(
                        "%s of %d documents together failed, trying them one by one",
                        together[0].kind,
                        len(together),
                        exc_info=True,
                    )
                    failed, alone = [], together
            alone = alone or [lease.job for lease, error in failed if isinstance(error, StepTimeoutError)]
            self._end_all(failed, but=alone)
        for job in alone:
            with self._leases.hold([job]) as leases:
                try:
                    failed = step(leases)
                except Exception as error:  # noqa: BLE001  logged and recorded by `_end`
                    failed = [(leases[0], error)]
            self._end_all(failed)

    def _end_all(self, failed: Failed, *, but: Sequence[Job] = ()) -> None:
        for lease, error in failed:
            if lease.job not in but:
                self._end(lease.job, error)

    def _claim(self, loop: _Loop, *, limit: int, size_max_bytes: int = NO_SIZE) -> list[Job]:
        loop.next_turn()
        if loop.kind == "index" and loop.priority == BULK and not self._edits_rest.wait(LONG_EDIT_S):
            loop.bulk_first = True
        claimed = self._store.jobs.claim(
            loop.kind, owner=self._leases.owner, limit=limit, priority_max=self._priority_max(loop),
            priority_min=self._priority_min, bulk_first=loop.bulk_first, size_max_bytes=size_max_bytes,
        )  # fmt: skip
        loop.bulk = bool(claimed) and claimed[0].priority == BULK
        if loop.priority == INTERACTIVE:
            (self._edits_rest.clear if claimed else self._edits_rest.set)()
        return claimed

    def _priority_max(self, loop: _Loop) -> int:
        return INTERACTIVE if self._imports_elsewhere() else loop.priority

    def _told(self, jobs: Sequence[Job]) -> None:
        for container_id in {job.container_id for job in jobs}:
            self._store.notify(container_id)

    def _end(self, job: Job, error: Exception) -> None:
        """A step ended with an error: the claim is given back, or fails."""
        if isinstance(error, (SupersededError, StoppingError)):
            # Deleted or replaced under our hands; a row that is still there asks for the newer content.
            self._store.jobs.release([job])
            return
        known = isinstance(error, (PermanentError, UnreachableError, *_NOT_ITS_FAULT))
        log.warning(
            "%s of document %s failed (attempt %d): %s", job.kind, job.document_id, job.attempts + 1, error, exc_info=not known
        )
        reason = error.message if isinstance(error, MemdirError) else f"{type(error).__name__}: {error}"
        given_up = self._store.jobs.fail(
            job, reason, permanent=isinstance(error, PermanentError), counted=not isinstance(error, _NOT_ITS_FAULT)
        )
        if given_up:
            log.warning("%s of document %s was given up: %s", job.kind, job.document_id, reason)

    def _embed_some(self, loop: _Loop) -> bool:
        """One batch of passages for the most urgent documents. Returns whether there may be more."""
        dense = self._engine.dense
        if dense is None:
            return False
        shown = _taken(self._engine.shown)
        if shown:
            self._store.jobs.hasten("embed", shown)
        claimed = self._claim(loop, limit=EMBED_JOBS)
        if not claimed:
            return False
        with self._leases.hold(claimed):
            try:
                ended = self._embed_batch(claimed, dense.name, shortest_first=not loop.bulk_first)
            except _NOT_ITS_FAULT:
                self._store.jobs.release(claimed)
                raise
            except Exception:
                log.warning(
                    "a batch of %d documents could not be embedded, trying them one by one", len(claimed), exc_info=True
                )
                ended = self._embed_singly(claimed, dense.name)
        self._told(ended)
        return True

    def _embed_batch(self, claimed: Sequence[Job], model: str, *, shortest_first: bool = True) -> list[Job]:
        """Vectors for the next passages of some documents. Returns the jobs that ended with it."""
        queue = self._store.embedding
        batch = queue.missing(claimed, model=model, limit=EMBED_CHUNKS, shortest_first=shortest_first)
        if len(batch.served) == 1:  # several short ones are through before anybody could see it
            queue.announce(batch)
        self._embed(model, batch.chunk_ids)
        return queue.settle(claimed, batch, model=model)

    def _embed(self, model: str, chunk_ids: Sequence[int]) -> None:
        """Those of the passages that are still there."""
        dense = self._engine.dense
        assert dense is not None
        stored = self._engine.chunks.chunks(chunk_ids)
        ids = [chunk_id for chunk_id in chunk_ids if chunk_id in stored]
        if not ids:
            return
        chunks = [stored[chunk_id].chunk for chunk_id in ids]
        lines: list[bytes] | None = None
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
                ended += self._embed_batch([job], model)
            except Exception as error:  # noqa: BLE001  logged and recorded by `_end`
                self._end(job, error)
        return ended
