"""Real servers and real worker processes: as many as asked for, killed with kill -9 under load, ended with SIGTERM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from memdir.core.clock import SystemClock
from memdir.store.jobs.queue import DEATHS_MAX
from memdir.store.store import Store
from tests.server.conftest import OpenStore, until
from tests.servers import ServerProcess, start

WAIT_S = 300.0
TAG = "notes"


poll = partial(until, limit_s=WAIT_S, every_s=0.1)


@contextmanager
def workers(home: Path, url: str, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """`memdir server worker`, ended with SIGTERM."""
    home.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "memdir.cli", "server", "worker", *arguments],
        env={**os.environ, "MEMDIR_HOME": str(home), "MEMDIR_DATABASE_URL": url},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(30) in (0, -signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """Whichever of its threads started them."""
    lists = [task / "children" for task in Path(f"/proc/{pid}/task").iterdir()]
    return [int(word) for file in lists for word in file.read_text().split()]


def content(number: int) -> str:
    return f"# Note {number}\n\nThe pump of house {number} was checked.\n\n- I prefer pump {number} over the others.\n"


class Writers:
    """Clients that put documents and remember which were acknowledged. What failed is put again, as a client would."""

    def __init__(self, url: Callable[[], str], key: str, count: int) -> None:
        self.acknowledged: dict[str, str] = {}
        self._url = url
        self._key = key
        self._left = list(range(count))
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(4)]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        with httpx.Client(
            headers={"Authorization": f"Bearer {self._key}"}, timeout=30, trust_env=False, verify=False
        ) as client:
            while True:
                with self._lock:
                    if not self._left:
                        return
                    number = self._left.pop()
                path = f"/memory/{number}.md" if number % 5 == 0 else f"/work/{number}.md"
                poll(lambda number=number, path=path: self._put(client, number, path), every_s=0.25)  # type: ignore[misc]

    def _put(self, client: httpx.Client, number: int, path: str) -> bool:
        try:
            answer = client.put(
                f"{self._url()}/v1/files{path}",
                params={"containerTag": TAG},
                content=content(number),
            )
        except httpx.TransportError:
            return False
        if answer.status_code not in (200, 201):
            return False
        with self._lock:
            self.acknowledged[path] = content(number)
        return True

    def join(self) -> None:
        for thread in self._threads:
            thread.join(WAIT_S)
            assert not thread.is_alive()


def settled(client: httpx.Client) -> bool:
    answer = client.get("/v3/documents/processing", params={"containerTag": TAG})
    return answer.status_code == 200 and answer.json()["totalCount"] == 0


def check_effects(store: Store, client: httpx.Client, acknowledged: dict[str, str]) -> None:
    """Everything acknowledged is there, was processed, and had its effect once."""
    for path, text in acknowledged.items():
        answer = client.get(f"/v1/files{path}", params={"containerTag": TAG})
        assert answer.text == text
    container = store.containers.get("local", TAG)
    poll(lambda: store.jobs.count() == 0)
    assert store.dead_letters.stuck() == []
    assert store.dead_letters.listing([container.id], failed=True, limit=10) == []
    chunks = store.chunks()
    for path, text in acknowledged.items():
        document = store.documents.at(container.id, path)
        assert document is not None
        assert (document.status, document.error) == ("done", None)
        stored = chunks.document_chunks(document.id)
        assert [one.chunk.ordinal for one in stored] == list(range(len(stored)))
        assert "".join(one.chunk.text for one in stored).count("was checked") == text.count("was checked")
    facts = sorted(memory.candidate.text for memory in store.memories.latest(container.id))
    numbers = [path.removeprefix("/memory/").removesuffix(".md") for path in acknowledged if path.startswith("/memory/")]
    assert facts == sorted(f"I prefer pump {number} over the others." for number in numbers)


class Killing:
    """A server, and workers beside it on PostgreSQL, that are killed while clients write."""

    def __init__(self, home: Path, url: str | None, *, separate: bool) -> None:
        self._home = home
        self._url = url
        self._arguments = ("--port", "0", "--workers", "0" if separate else "2")
        self.server = self._start()

    def _start(self) -> ServerProcess:
        return start(self._home, *self._arguments, database_url=self._url)

    def kill_server(self) -> None:
        assert self.server.stop(signal.SIGKILL) == -signal.SIGKILL
        self.server = self._start()

    def url(self) -> str:
        return self.server.url


def is_one_kill_from_given_up(store: Store) -> bool:
    """Whether there is work that would be taken for what kills its workers, once it has ended another one."""
    with store.upkeep().reading() as reader:
        return bool(list(reader.execute("select 1 from job where deaths >= ? limit 1", (DEATHS_MAX - 1,))))


def run_load(place: Killing, store: Store, *, documents: int, kill: Callable[[], None], kills: int) -> None:
    """Write, kill in between, wait until all is processed, compare."""
    store.containers.ensure("local", TAG)
    writers = Writers(place.url, place.server.key, documents)
    for turn in range(1, kills + 1):
        poll(lambda turn=turn: len(writers.acknowledged) >= documents * turn // (kills + 1), every_s=0.01)  # type: ignore[misc]
        poll(lambda: not is_one_kill_from_given_up(store), every_s=0.01)
        kill()
    writers.join()
    assert len(writers.acknowledged) == documents
    with place.server.client() as client:
        poll(lambda: settled(client))
        check_effects(store, client, writers.acknowledged)


@pytest.mark.parametrize(("documents", "kills"), [(24, 2), pytest.param(600, 12, marks=pytest.mark.long)])
@pytest.mark.promise("pipeline.kill", "pipeline.resumes")
def test_kill_9_of_the_server_under_load_loses_nothing_acknowledged(
    tmp_path: Path, open_store: OpenStore, request: pytest.FixtureRequest, documents: int, kills: int
) -> None:
    is_postgres = "postgres" in request.node.callspec.id
    url: str | None = request.getfixturevalue("database_url") if is_postgres else None
    place = Killing(tmp_path / "home", url, separate=False)
    try:
        store = open_store(SystemClock()) if is_postgres else _beside(tmp_path / "home")
        run_load(place, store, documents=documents, kill=place.kill_server, kills=kills)
        if not is_postgres:
            store.close()
    finally:
        assert place.server.stop() == 0


def _beside(home: Path) -> Store:
    """A second look into the database of a running server, as the tests of damage take it too."""
    from memdir.store.sqlite.store import SqliteStore

    return SqliteStore.open(home / "data" / "server")


@pytest.mark.parametrize(("documents", "kills"), [(24, 1), pytest.param(400, 12, marks=pytest.mark.long)])
@pytest.mark.promise("pipeline.kill", "pipeline.workers")
def test_kill_9_of_worker_processes_under_load_loses_nothing(
    tmp_path: Path, postgres_store: Store, database_url: str, documents: int, kills: int
) -> None:
    place = Killing(tmp_path / "home", database_url, separate=True)
    try:
        with workers(tmp_path / "workers", database_url, "--workers", "2") as parent:
            poll(lambda: len(children_of(parent.pid)) == 2)
            killed: set[int] = set()

            def kill() -> None:
                child = children_of(parent.pid)[0]
                os.kill(child, signal.SIGKILL)
                killed.add(child)
                poll(lambda: len(set(children_of(parent.pid)) - killed) == 2)

            run_load(place, postgres_store, documents=documents, kill=kill, kills=kills)
            assert len(killed) == kills
    finally:
        assert place.server.stop() == 0


@pytest.mark.promise("pipeline.workers")
def test_without_workers_documents_wait_until_a_worker_process_comes_and_what_it_leaves_is_taken_over(
    tmp_path: Path, postgres_store: Store, database_url: str
) -> None:
    server = start(tmp_path / "home", "--port", "0", "--workers", "0", database_url=database_url)
    try:
        with server.client() as client:

            def put(path: str) -> None:
                assert client.put(f"/v1/files{path}", params={"containerTag": TAG}, content=content(1)).status_code == 201

            put("/a.md")
            # A worker that claimed it and is gone: nobody gives the lease back.
            (claimed,) = postgres_store.jobs.claim("index", owner="gone")
            assert postgres_store.jobs.renew(claimed)
            put("/b.md")
            assert postgres_store.jobs.count() == 2
            with workers(tmp_path / "worker", database_url):
                poll(lambda: settled(client))
            put("/c.md")
            assert not settled(client)
    finally:
        assert server.stop() == 0


def test_worker_processes_end_with_the_one_that_started_them(tmp_path: Path, database_url: str) -> None:
    with workers(tmp_path / "workers", database_url, "--workers", "2") as parent:
        poll(lambda: len(children_of(parent.pid)) == 2)
        children = children_of(parent.pid)
        parent.kill()
        parent.wait(30)
        poll(lambda: not any(Path(f"/proc/{child}/exe").exists() and _runs(child) for child in children))


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except FileNotFoundError:
        return False


def test_on_sqlite_a_worker_process_is_refused_with_what_to_do(tmp_path: Path) -> None:
    ran: Any = subprocess.run(
        [sys.executable, "-m", "memdir.cli", "server", "worker"],
        env={**os.environ, "MEMDIR_HOME": str(tmp_path), "MEMDIR_DATABASE_URL": ""},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 2
    assert b"separate workers need PostgreSQL" in ran.stderr
    assert b"memdir server run --workers N" in ran.stderr
