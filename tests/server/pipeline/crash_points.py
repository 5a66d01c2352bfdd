"""A worker that is killed with SIGKILL right after its first, second, third … commit, and what the next one makes of it.

Run as a process of its own (`python -m tests.server.pipeline.crash_points FOLDER EVERY`; on PostgreSQL when
MEMDIR_DATABASE_URL names one), because every case is a fork: the modules are imported once, and each child opens the store for
itself, as a process does. Prints one JSON line for each case. Between two commits nothing on disk changes, so these are all the
moments that differ.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from memdir.server.indexing.worker import Worker
from memdir.store.acting import SYSTEM
from memdir.store.jobs import queue as jobs
from memdir.store.postgres.store import PostgresStore
from memdir.store.sqlite.store import SqliteStore
from memdir.store.tree.operations import Put
from tests.server.conftest import AnyStore
from tests.server.fakes import FakeEngine, HashEmbedder

DOCUMENTS = {
    "/memory/me.md": b"# Me\n\n- I prefer tea over coffee.\n- I live in Lisbon.\n",
    # Longer than `pipeline.TOLD_FROM_BYTES`, so that all its statuses are committed.
    "/long.md": "".join(f"# Part {number}\n\n{'Words about pumps. ' * 60}\n\n" for number in range(64)).encode(),
    "/notes.bin": b"\x00\x01\x02 no text at all",
}
POINTS_MAX = 200
LEASE_MS = 3000
"""On PostgreSQL the next worker waits for the claims of the dead one to run out."""
WAIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one case happens: a folder of its own, or a container of its own in a database that they share."""

    folder: Path
    tag: str
    url: str | None


def open_store(place: Place) -> AnyStore:
    if place.url is None:
        return SqliteStore.open(place.folder)
    jobs.LEASE_MS = LEASE_MS  # type: ignore[misc]
    return PostgresStore.open(place.url, place.folder, acting=SYSTEM)


def prepare(store: AnyStore, tag: str) -> None:
    container = store.containers.ensure("local", tag)
    for path, content in DOCUMENTS.items():
        with store.blobs.upload() as upload:
            upload.write(content)
            store.files.apply(container, Put(path=path, blob=upload.finish()))


def kill_after(store: AnyStore, commits: int) -> None:
    """From here on the process ends with that commit."""
    original: Callable[..., Any] = store.db.write
    left, lock = [commits], threading.Lock()

    @contextmanager
    def write(**options: Any) -> Iterator[Any]:
        with original(**options) as connection:
            yield connection
        with lock:
            left[0] -= 1
            if left[0] <= 0:
                os.kill(os.getpid(), signal.SIGKILL)

    store.db.write = write  # type: ignore[method-assign]


def work(store: AnyStore) -> None:
    """A worker, until nothing is left to do."""
    worker = Worker(store, FakeEngine(store, dense=HashEmbedder("fake-dense")), count=2)  # type: ignore[arg-type]
    done = threading.Event()
    store.listen(lambda _: done.set())
    worker.start()
    deadline = time.monotonic() + WAIT_S
    while store.jobs.count():
        assert time.monotonic() < deadline, "the worker did not finish"
        done.wait(0.05)
        done.clear()
    assert worker.stop()


def digest(store: AnyStore, tag: str) -> dict[str, Any]:
    """Everything that processing made, in a form that two runs can be compared by."""
    container = store.containers.get("local", tag)
    chunks = store.chunks()
    documents = {}
    for path in DOCUMENTS:
        document = store.documents.at(container.id, path)
        assert document is not None
        stored = chunks.document_chunks(document.id)
        documents[path] = {
            "status": document.status,
            "error": document.error,
            "title": document.title,
            "chunks": [one.chunk.text[:40] for one in stored],
            "ordinals": [one.chunk.ordinal for one in stored],
        }
    vectors = dict(
        store.db.all(
            "select m.name, count(*) from chunk_vector v join vector_model m on m.id = v.model_id "
            "join chunk c on c.id = v.chunk_id where c.container_id = ? group by m.name",
            (container.id,),
        )
    )
    return {
        "documents": documents,
        "vectors": vectors,
        "memories": sorted(memory.candidate.text for memory in store.memories.latest(container.id)),
        "sources": store.db.all(
            "select count(*) from memory_source s join memory m on m.id = s.memory_id where m.container_id = ?", (container.id,)
        )[0][0],
        "failed": len(store.dead_letters.listing([container.id], failed=True, limit=10)),
        "stuck": store.dead_letters.stuck(),
    }


def in_a_child(task: Callable[[], None]) -> int:
    """Run `task` in a fork. Returns the number of the signal that ended it, 0 when it ended well."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            task()
            code = 0
        finally:
            sys.stdout.flush()
            os._exit(code)
    _, state = os.waitpid(pid, 0)
    assert os.WIFSIGNALED(state) or os.WEXITSTATUS(state) == 0, "a child failed"
    return os.WTERMSIG(state) if os.WIFSIGNALED(state) else 0


def killed(place: Place, commits: int) -> None:
    """A worker that ends with its commit number `commits`, if there are so many."""
    store = open_store(place)
    prepare(store, place.tag)
    kill_after(store, commits)
    work(store)
    store.close()


def resumed(place: Place, commits: int) -> None:
    """The next worker; says what there is when it has nothing left to do."""
    store = open_store(place)
    store.recover()
    work(store)
    sys.stdout.write(json.dumps({"commits": commits} | digest(store, place.tag)) + "\n")
    store.close()


def main(folder: Path, every: int, url: str | None) -> None:
    """Every such point, one after the other, until a worker lives to the end."""
    for commits in range(1, POINTS_MAX, every):
        place = Place(folder=folder / str(commits), tag=f"notes-{commits}", url=url)
        ended_by = in_a_child(partial(killed, place, commits))
        assert ended_by in (0, signal.SIGKILL)
        in_a_child(partial(resumed, place, commits if ended_by else 0))
        if not ended_by:
            return


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), os.environ.get("MEMDIR_DATABASE_URL") or None)
