"""A working day in minutes: sessions side by side, each a host with an MCP server of its own, running the hook on every prompt.

Every session stores facts that only it knows, finds them again, deletes some, and is told by its hook what it stored before.
At the end everything that was acknowledged and not deleted must be there, once, and every process that was started must be
gone.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import httpx

from memdir_bench.agenthook import run_hook
from memdir_bench.agents.goals import figure
from memdir_bench.figures import Figure, percentile
from memdir_bench.mcp_client import Tools, mcp_server
from memdir_bench.server.fixtures import Running, fixture
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

SESSIONS: Final = 8
PROMPTS: Final = 40
"""Of each session; with their stores below what a container takes in a minute."""
CONTAINER: Final = "day"
_DELETE_EVERY: Final = 5
_ERRORS_SHOWN: Final = 5


@dataclass(slots=True, kw_only=True)
class Lived:
    """What one session did and saw."""

    kept: dict[str, str] = field(default_factory=dict)
    """Contents by id: stored, acknowledged, not deleted."""
    deleted: set[str] = field(default_factory=set)
    errors: list[str] = field(default_factory=list)
    calls: int = 0
    told: int = 0
    store_ms: list[float] = field(default_factory=list)
    search_ms: list[float] = field(default_factory=list)
    hook_ms: list[float] = field(default_factory=list)


def day(*, sessions: int = SESSIONS, prompts: int = PROMPTS, parent: Path | None = None) -> Iterator[Figure]:
    """The whole of it, on a server of its own."""
    with tempfile.TemporaryDirectory(prefix="memdir-bench-agents-", dir=parent) as name:
        folder = Path(name)
        with fixture(folder) as one:
            progress(f"{sessions} sessions of {prompts} prompts …")
            server = one.servers[0]
            with ThreadPoolExecutor(sessions) as pool:
                lived = list(pool.map(lambda number: _session(server, folder, number, prompts), range(sessions)))
            orphans = _left(server.home, {server.process.pid})
            with one.client() as client:
                standing = _standing(client)
            yield from _judged(lived, standing, orphans)


def _judged(lived: list[Lived], standing: dict[str, str], orphans: list[int]) -> Iterator[Figure]:
    errors = [error for one in lived for error in one.errors]
    for error in errors[:_ERRORS_SHOWN]:
        progress(f"error: {error}")
    kept = {memory_id: content for one in lived for memory_id, content in one.kept.items()}
    deleted = {memory_id for one in lived for memory_id in one.deleted}
    lost = sum(standing.get(memory_id) != content for memory_id, content in kept.items())
    calls = sum(one.calls for one in lived)
    yield figure("day_errors", len(errors), "times", samples=calls, note=f"{len(lived)} sessions side by side")
    yield figure("day_lost", lost, "memories", samples=len(kept))
    yield figure("day_undead", len(deleted & standing.keys()), "memories", samples=len(deleted), note="deleted and still there")
    yield figure("day_foreign", len(standing.keys() - kept.keys() - deleted), "memories", samples=len(standing))
    yield figure("day_orphans", len(orphans), "processes", samples=len(lived))
    yield figure("day_told", sum(one.told for one in lived), "blocks", better="higher", note="that hooks printed")
    for name in ("store", "search", "hook"):
        samples = [took for one in lived for took in getattr(one, f"{name}_ms")]
        for share in (50, 95):
            yield figure(f"day_{name}_p{share}", percentile(samples, share / 100), "ms", samples=len(samples))


def _session(server: Running, folder: Path, number: int, prompts: int) -> Lived:
    """One host, from its start to its end."""
    lived = Lived()
    place = folder / f"project-{number}"
    place.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")}
    env |= {"MEMDIR_HOME": str(server.home), "MEMDIR_AGENT_CONTAINER": CONTAINER}
    try:
        with mcp_server(env, place) as tools:
            for turn in range(prompts):
                _turn(tools, env, place, lived, number, turn)
    except (BenchError, OSError, subprocess.SubprocessError) as error:
        lived.errors.append(f"session {number}: {error}")
    return lived


def fact(number: int, turn: int) -> tuple[str, str]:
    """What session `number` learns at a turn, and the word that only it has."""
    word = f"k{number}w{turn:03d}z"
    return f"The build of module {word} needs flag --{word}-fast, found out at step {turn} of session {number}.", word


def _turn(tools: Tools, env: dict[str, str], place: Path, lived: Lived, number: int, turn: int) -> None:
    content, word = fact(number, turn)
    prompt = f"which flag does module {fact(number, turn // 2)[1]} need" if turn else "let us begin"
    hook = run_hook(prompt, session_id=f"session-{number}", cwd=str(place), env=env)
    lived.hook_ms.append(hook.wall_ms)
    lived.told += bool(hook.said)
    try:
        took_ms, stored = tools.call("memory_store", {"content": content, "tags": ["build", f"s{number}"]})
        lived.store_ms.append(took_ms)
        memory_id = stored["memories"][0]["id"]
        lived.kept[memory_id] = content
        took_ms, found = tools.call("memory_search", {"query": f"flag of {word}"})
        lived.search_ms.append(took_ms)
        if not found["results"] or found["results"][0]["id"] != memory_id:
            lived.errors.append(f"{word} was stored and is not what a search finds first")
        if turn % _DELETE_EVERY == _DELETE_EVERY - 1:
            del lived.kept[memory_id]
            tools.call("memory_delete", {"id": memory_id})
            lived.deleted.add(memory_id)
    except BenchError as error:
        lived.errors.append(f"session {number}, turn {turn}: {error}")
    lived.calls += 4


def _left(home: Path, expected: set[int]) -> list[int]:
    """Processes that work on this home and should be gone."""
    mark = f"MEMDIR_HOME={home}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdecimal() or int(entry.name) in expected:
            continue
        try:
            environment = (entry / "environ").read_bytes().split(b"\0")
        except OSError:  # it ended meanwhile, or is another user's
            continue
        if mark in environment:
            found.append(int(entry.name))
    return found


def _standing(client: httpx.Client) -> dict[str, str]:
    """Contents by id, of all memories that the server lists."""
    found: dict[str, str] = {}
    after: dict[str, str] = {}
    while True:
        answer = client.get("/v1/agents/memories", params={"containerTag": CONTAINER, "limit": "100", **after})
        if answer.status_code != 200:
            raise BenchError(f"the list was answered {answer.status_code}: {answer.text[:300]}")
        page = answer.json()
        found.update((memory["id"], memory["content"]) for memory in page["memories"])
        if not page["nextAfter"]:
            return found
        after = {"after": page["nextAfter"]}
