"""Memories of agents with processes of their own: the commands, a death in the middle of a store, two writers, no model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from memdir.agents.service import AgentMemories
from memdir.client.local import ServerInfo
from memdir.core.errors import BusyError
from memdir.server.agents.state import STORES_PER_MINUTE, AgentMemoryState
from memdir.server.errors import RateError
from memdir.store.sqlite.store import SqliteStore
from memdir.store.store import Store
from tests.servers import ServerProcess, start

DEADLINE_S = 120.0


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server that this module's commands find."""
    running = start(tmp_path_factory.mktemp("home"), "--port", "0")
    yield running
    assert running.stop() == 0


def memdir(server: ServerProcess, *arguments: str, cwd: Path | None = None, said: str = "") -> subprocess.CompletedProcess[str]:
    """`memdir ARGUMENTS` as a process."""
    return subprocess.run(
        [sys.executable, "-m", "memdir.cli", *arguments],
        input=said,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
        cwd=cwd,
        env={**os.environ, "MEMDIR_HOME": str(server.home), "NO_COLOR": "1"},
    )


@pytest.mark.promise("agent.commands")
def test_the_commands_do_what_their_help_says(own: ServerProcess, tmp_path: Path) -> None:
    project = tmp_path / "my-saas"
    (project / ".git").mkdir(parents=True)
    (project / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    stored = memdir(own, "memory", "store", "-t", "auth", "Auth uses JWT with RS256", cwd=project)
    assert stored.returncode == 0, stored.stderr
    memory_id, path = stored.stdout.split()
    assert path.startswith("/memory/my-saas/")
    again = memdir(own, "memory", "store", "--json", "-", cwd=project, said="auth uses jwt with rs256\n")
    assert [one["id"] for one in json.loads(again.stdout)["duplicates"]] == [memory_id]
    found = memdir(own, "memory", "search", "--explain", "login", "with", "jwt", cwd=project)
    assert found.returncode == 0, found.stderr
    for signal in ("bm25 1.0000", "recency 1.0000", "frequency", "tags", "project 1.0000"):
        assert signal in found.stdout
    assert "searched for" in found.stderr
    assert memdir(own, "memory", "search", "kubernetes helm terraform").returncode == 1
    weighed = memdir(
        own, "memory", "search", "--words", "--weights", "bm25=1,tags=0,recency=0", "--tags", "auth,x", "--json", "jwt"
    )
    assert json.loads(weighed.stdout)["results"][0]["score"] == pytest.approx(1.05), "bm25 and frequency, which stayed"
    assert "no weight 'speed'" in memdir(own, "memory", "search", "--weights", "speed=1", "jwt").stderr
    assert memory_id in memdir(own, "memory", "list", "--project", "my-saas").stdout
    assert memdir(own, "memory", "list", "--tag", "nothing").returncode == 1
    assert "Auth uses JWT" in memdir(own, "memory", "show", memory_id).stdout
    assert memdir(own, "memory", "tag", memory_id, "backend", "-r", "auth").stdout == "backend\n"
    edited = memdir(own, "memory", "edit", memory_id, "Auth uses EdDSA", "--move", "platform")
    assert "/memory/platform/" in edited.stdout
    refused = memdir(own, "memory", "store", "token ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8")
    assert refused.returncode == 2
    assert "GitHub token" in refused.stderr
    stats = json.loads(memdir(own, "memory", "stats", "--json").stdout)
    assert stats["memories"] == 1
    assert memdir(own, "memory", "delete", memory_id).returncode == 0
    assert memdir(own, "memory", "delete", memory_id).returncode == 1
    assert memdir(own, "memory", "show", memory_id).returncode == 2
    assert memdir(own, "memory", "stats").returncode == 1


_KILLED = """
import os, sys, threading
from pathlib import Path
from memdir.store.sqlite.store import SqliteStore
from memdir.store.agents import memories as agent_memories
from memdir.store.accounts.keys import ApiKey
from memdir.api.agents import StoreRequest
from memdir.server.http.access import Caller
from memdir.server.agents.state import AgentMemoryState
from memdir.server.agents import writing as agents

step, folder = int(sys.argv[1]), Path(sys.argv[2])
store = SqliteStore.open(folder)
statements = 0

def traced(execution):
    global statements
    statements += 1
    if statements == step:
        os._exit(9)
    return True

class Key:
    org_id, id, prefix, is_whole = "local", "k", "/", True
    def allows(self, action, tag=None): return True
    def covers(self, path): return True

store.containers.ensure("local", "agents")
original = store.files._carried_out

def carried_out(connection, *args, **kwargs):
    class Counting:
        def execute(self, *given):
            traced(given)
            return connection.execute(*given)
        def __getattr__(self, name):
            return getattr(connection, name)
    result = original(Counting(), *args, **kwargs)
    traced(None)
    return result

store.files._carried_out = carried_out
caller = Caller(key=Key(), store=store)
request = StoreRequest(content="The ocelot job runs at noon", tags=["ops"], project="jobs")
agents.store(caller, AgentMemoryState(store), None, request)
print(statements, flush=True)
os._exit(0)
"""


@pytest.mark.promise("agent.killed")
def test_killed_in_the_middle_of_a_store_the_memory_is_whole_or_not_there(tmp_path: Path) -> None:
    """At every statement of its transaction; the last step dies behind the commit."""

    def run(step: int) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "-c", _KILLED, str(step), str(tmp_path / f"s{step}")],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
        )
        assert done.returncode in (0, 9), done.stderr
        return done.returncode, done.stdout

    code, said = run(10**6)
    assert code == 0
    count = int(said)
    assert count > 5
    for step in (1, count // 3, 2 * count // 3, count - 1, count):
        assert run(step)[0] == 9, step
        store = SqliteStore.open(tmp_path / f"s{step}")
        try:
            container = store.containers.get("local", "agents")
            records = store.agents.page(container.id, after=None, limit=10)
            files = store.documents.files(container.id, prefix="/", after="", limit=10).entries
            assert [record.path for record in records] == [entry.path for entry in files if entry.kind == "file"]
        finally:
            store.close()


def test_what_two_writers_store_at_once_is_all_there(own: ServerProcess) -> None:
    info = ServerInfo(url=own.url, pid=own.process.pid, data_dir="", version="", api_key=own.key)
    memories = AgentMemories(server=info, container="two-writers")

    def write(writer: int) -> None:
        for number in range(15):
            memories.store(f"Writer {writer} knows the {number} th fact of the tapir", project=f"p{writer % 2}")
            memories.search("tapir fact", limit=3)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, range(4)))
    assert memories.page()["total"] == 60
    found = memories.search("tapir", limit=100, threshold=0)["results"]
    assert len({hit["memory"]["id"] for hit in found}) == 60


_NO_MODEL = """
import sys
from pathlib import Path
from memdir.store.sqlite.store import SqliteStore
from memdir.retrieval.agents.ranking import AgentQuery
from memdir.server.agents.state import AgentMemoryState
from memdir.server.http.access import Caller
from memdir.server.agents import context as agent_context, search as agent_search, writing as agents
from memdir.api.agents import AgentSearchRequest, ContextRequest, StoreRequest

class Key:
    org_id, id, prefix, is_whole = "local", "k", "/", True
    def allows(self, action, tag=None): return True
    def covers(self, path): return True

store = SqliteStore.open(Path(sys.argv[1]))
caller, state = Caller(key=Key(), store=store), AgentMemoryState(store)
for number in range(30):
    request = StoreRequest(content=f"Fact {number} of the civet database", tags=["civet"], project="zoo")
    agents.store(caller, state, None, request)
asked = AgentSearchRequest(q="civet db fact 7", project="zoo", record=False)
print([(hit.memory.content, hit.score > 0) for hit in agent_search.search(caller, state, None, asked).results])
told = ContextRequest(prompt="civet db fact", project="zoo", session_id="s")
assert agent_context.context(caller, state, None, told).memory_ids
loaded = sorted(name for name in sys.modules if name.startswith(("onnx", "tokenizers", "memdir.retrieval.embed", "torch")))
print("LOADED", loaded)
state.close()
store.close()
"""


@pytest.mark.promise("agent.no-model")
def test_without_semantic_no_model_is_loaded_and_the_answer_is_always_the_same(tmp_path: Path) -> None:
    said = []
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", _NO_MODEL, str(tmp_path / seed)],
            capture_output=True,
            text=True,
            timeout=DEADLINE_S,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": seed},
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0] == said[1]
    assert "LOADED []" in said[0]
    assert "Fact 7 of the civet database" in said[0].split(",")[0]


def test_accesses_outlive_the_server(tmp_path: Path) -> None:
    running = start(tmp_path / "home", "--port", "0")
    try:
        memories = AgentMemories(
            server=ServerInfo(url=running.url, pid=1, data_dir="", version="", api_key=running.key), container="agents"
        )
        memory = memories.store("The pangolin report is due on Friday")["memories"][0]
        for _ in range(3):
            assert memories.search("pangolin report")["results"]
        assert running.stop() == 0
        running = start(tmp_path / "home", "--port", "0")
        again = AgentMemories(
            server=ServerInfo(url=running.url, pid=1, data_dir="", version="", api_key=running.key), container="agents"
        )
        assert again.get(memory["id"])["accessCount"] == 3
    finally:
        running.stop()


def test_what_a_busy_database_did_not_take_is_counted_once_later() -> None:
    accesses: Counter[int] = Counter()
    counted: Counter[int] = Counter()
    troubles = [BusyError("the database is locked")]

    def count(container_id: int, *, searches: int) -> None:
        if troubles:
            raise troubles.pop()
        counted[container_id] += searches

    store = SimpleNamespace(
        agents=SimpleNamespace(count_accesses=accesses.update),
        agent_usage=SimpleNamespace(count=count),
        containers=SimpleNamespace(by_id=lambda _: SimpleNamespace(org_id=1)),
        agent_feed=None,
        passage_log=lambda: None,
    )
    state = AgentMemoryState(cast("Store", store))
    state._accesses.update([7, 7])
    state._counts.update({(1, "searches"): 2, (2, "searches"): 1})
    state.flush()
    state.flush()
    state.flush()
    assert (dict(accesses), dict(counted)) == ({7: 2}, {1: 2, 2: 1})


def test_what_a_session_was_told_is_known_at_once_and_written_once_when_the_database_can() -> None:
    written: list[tuple[object, ...]] = []
    troubles = [BusyError("the database is locked")]

    def injected(*values: object) -> None:
        if troubles:
            raise troubles.pop()
        written.append(values)

    store = SimpleNamespace(
        agent_usage=SimpleNamespace(injected=injected, seen=lambda *_: {"old"}),
        containers=SimpleNamespace(by_id=lambda number: SimpleNamespace(org_id=1) if number == 1 else None),
        agent_feed=None,
        passage_log=lambda: None,
    )
    state = AgentMemoryState(cast("Store", store))
    state._closing.set()  # no thread writes meanwhile
    state.told(1, "session", "codex", {"new": 7})
    state.told(2, "session", "codex", {"of a container that goes": 7})
    assert state.seen(1, "session") == {"old", "new"}
    assert state.seen(1, "another") == {"old"}
    state.flush()
    assert (written, state.seen(1, "session")) == ([], {"old", "new"})
    state.flush()
    state.flush()
    assert written == [(1, "session", "codex", {"new": 7})]
    assert state.seen(1, "session") == {"old"}, "the store knows now"


@pytest.mark.promise("agent.limits")
def test_a_container_takes_so_many_memories_a_minute() -> None:
    now_s = [0.0]
    state = AgentMemoryState(
        cast("Store", SimpleNamespace(agent_feed=None, passage_log=lambda: None)), monotonic_s=lambda: now_s[0]
    )
    state.take(1, STORES_PER_MINUTE)
    with pytest.raises(RateError, match="a minute") as refused:
        state.take(1, 1)
    assert refused.value.retry_after_s >= 1
    state.take(2, 1)
    now_s[0] += 1.0
    state.take(1, STORES_PER_MINUTE // 60)
