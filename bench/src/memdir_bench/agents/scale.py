"""From a number of memories to figures: fill a real server, run its hook, search in its store, compare with what is right."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import httpx

from memdir.core.paths import under_home
from memdir_bench.agenthook import run_hook
from memdir_bench.agents.accuracy import asked_of
from memdir_bench.agents.filling import IMPORTED_MAX, completed, imported
from memdir_bench.agents.goals import figure
from memdir_bench.agents.haystack import KINDS, Haystack
from memdir_bench.agents.judges import Exhaustive, plain_fts5
from memdir_bench.agents.queries import CONTAINER, Answered, Asked
from memdir_bench.figures import Figure, percentile
from memdir_bench.programs import run_checked
from memdir_bench.server.fixtures import Fixture, Running, fixture
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

_ASK_LIMIT_S: Final = 1800.0
_HOOK_LIMIT_S: Final = 10.0
_COMPARED: Final = 10
"""Questions of each kind that are scored exhaustively: a second each in a million."""
_PLAIN: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How much is measured at each size."""

    questions: int = 100
    rounds: int = 3
    hooks: int = 60
    stores: int = 40


QUICK: Final = Work(questions=8, rounds=1, hooks=5, stores=3)


def at_size(count: int, work: Work, *, parent: Path | None = None) -> Iterator[Figure]:
    """Everything that is measured in a container of so many memories."""
    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="memdir-bench-agents-", dir=parent)))
        haystack = Haystack(count)
        data = under_home(folder / "home-0").server_dir
        now = datetime.now(UTC)
        with fixture(folder) as one, one.client() as client:
            yield from imported(one, client, haystack, now)
        stored = min(count, IMPORTED_MAX)
        database = sum(path.stat().st_size for path in data.glob("*.db*"))
        yield figure(f"{count}.database", database / stored, "bytes", samples=stored, note="of SQLite's files, for each")
        yield figure(f"{count}.disk", _bytes_below(data) / stored, "bytes", samples=stored, note="for each, files and all")
        yield from completed(data, haystack, now)
        progress(f"{count}: searching …")
        answer = _asked(data, count, work)
        yield from _latencies(count, answer)
        progress(f"{count}: comparing with every memory scored …")
        yield from _rightness(haystack, answer, work, older_days=(answer.at_s - now.timestamp()) / 86_400)
        progress(f"{count}: plain FTS5 …")
        yield from _plain(folder, haystack, work)
        progress(f"{count}: the hook …")
        with fixture(folder) as one, one.client() as client:
            yield from _read(client, one, count)
            yield from _hooked(one.servers[0], haystack, work.hooks)
            yield figure(f"{count}.server_resident", one.resident_mib(), "MiB", note="the whole server, after the hooks")


def _read(client: httpx.Client, one: Fixture, count: int) -> Iterator[Figure]:
    """A server that has just started, until it answers, and until it rests."""
    began = time.perf_counter()
    _asked_when_read(client)
    read_s = time.perf_counter() - began
    yield figure(f"{count}.first_search", read_s * 1000, "ms", note="of a server after import")
    yield figure(f"{count}.rests", read_s + one.rested_s(), "s", note="until the server's work at its start is done")


def _hooked(server: Running, haystack: Haystack, times: int) -> Iterator[Figure]:
    """The command that hosts run, from exec to exit, each in a session of its own."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("MEMDIR_")}
    env |= {"MEMDIR_HOME": str(server.home), "MEMDIR_AGENT_CONTAINER": CONTAINER}
    needles = haystack.asks("needle", times)
    runs = []
    for number in range(times):
        ask = needles[number % len(needles)]
        runs.append(run_hook(ask.text, session_id=f"bench-{number}", cwd=str(server.home), env=env))
    took = [run.wall_ms for run in runs]
    silent = sum(not run.said for run in runs)
    cost_ms = sum(run.cpu_ms for run in runs) / times
    yield figure(f"{haystack.count}.hook_cpu", cost_ms, "ms", samples=times, note="of its own process, for each")
    bare = [_timed_ms([sys.executable, "-I", "-S", "-c", ""], env) for _ in range(max(5, times // 3))]
    for share in (50, 95, 99):
        yield figure(f"{haystack.count}.hook_p{share}", percentile(took, share / 100), "ms", samples=len(took))
    yield figure(f"{haystack.count}.hook_silent", silent, "times", samples=len(took), note="printed nothing")
    yield figure(f"{haystack.count}.python_p50", percentile(bare, 0.5), "ms", samples=len(bare), note="the interpreter alone")


def _asked_when_read(client: httpx.Client) -> None:
    """A search, again and again while the server says that it is still reading."""
    body = {"containerTag": CONTAINER, "q": "anything", "record": False}
    limit_s = time.monotonic() + _ASK_LIMIT_S
    while client.post("/v1/agents/search", json=body, timeout=_ASK_LIMIT_S).status_code == httpx.codes.SERVICE_UNAVAILABLE:
        if time.monotonic() > limit_s:
            raise BenchError("the server did not read its memories")
    asked_of(client, "/v1/agents/search", body)


def _timed_ms(command: Sequence[str], env: dict[str, str]) -> float:
    began = time.perf_counter()
    run_checked(command, env=env, limit_s=_HOOK_LIMIT_S)
    return (time.perf_counter() - began) * 1000


def _bytes_below(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _asked(data: Path, count: int, work: Work) -> Answered:
    asked = Asked(folder=str(data), count=count, questions=work.questions, rounds=work.rounds, stores=work.stores)
    done = subprocess.run(
        [sys.executable, "-m", "memdir_bench.agents.queries"], input=json.dumps(dataclasses.asdict(asked)).encode(),
        capture_output=True, timeout=_ASK_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BenchError(f"the searching process ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return Answered(**json.loads(done.stdout))


def _latencies(count: int, answer: Answered) -> Iterator[Figure]:
    yield figure(f"{count}.load", answer.first_ms, "ms", note="the first search of a process, all read from the store")
    for kind in KINDS:
        for name, samples in ((kind, answer.times[kind]), (f"{kind}_cpu", answer.cpu[kind])):
            for share in (50, 95, 99):
                yield figure(f"{count}.{name}_p{share}", percentile(samples, share / 100), "ms", samples=len(samples))
    for share in (50, 95):
        value = percentile(answer.service, share / 100)
        yield figure(f"{count}.service_p{share}", value, "ms", samples=len(answer.service), note="needles, the answer made")
    for share in (50, 95):
        value = percentile(answer.recorded, share / 100)
        yield figure(
            f"{count}.recorded_p{share}", value, "ms", samples=len(answer.recorded), note="mixed, counted as an access"
        )
    stores = {
        "store": (answer.stores, "a memory, near-duplicates looked for"),
        "before_store": (answer.before_stores, "mixed, each asked once"),
        "after_store": (answer.after_stores, "the same, first search after a store"),
    }
    for name, (samples, note) in stores.items():
        for share in (50, 95):
            yield figure(f"{count}.{name}_p{share}", percentile(samples, share / 100), "ms", samples=len(samples), note=note)
    yield figure(f"{count}.resident", answer.resident_mib, "MiB", note="of the searching process")
    yield figure(f"{count}.index", answer.index_bytes / count, "bytes", note="of the index, for each memory")


def _rightness(haystack: Haystack, answer: Answered, work: Work, *, older_days: float) -> Iterator[Figure]:
    count = haystack.count
    seen = {text for answers in answer.found.values() for found in answers for text, _ in found}
    place_of: dict[str, int] = {}
    for block in haystack.blocks():
        place_of.update((text, block.first + at) for at, text in enumerate(haystack.texts(block)) if text in seen)
    needles = haystack.asks("needle", work.questions)
    first = sum(
        bool(found) and place_of.get(found[0][0]) == ask.needle
        for ask, found in zip(needles, answer.found["needle"], strict=True)
    )
    yield figure(
        f"{count}.needles_found", 100 * first / len(needles), "of 100", samples=len(needles), better="higher", note="top-1"
    )
    exact = Exhaustive(haystack, older_days=older_days)
    equal: list[bool] = []
    for kind in KINDS[1:]:
        pairs = list(zip(haystack.asks(kind, work.questions), answer.found[kind], strict=True))[:_COMPARED]
        equal += [exact.equal(ask, [(place_of.get(text, -1), score) for text, score in found]) for ask, found in pairs]
    yield figure(f"{count}.top10_equal", sum(equal) / len(equal), "share", samples=len(equal), better="higher")


def _plain(folder: Path, haystack: Haystack, work: Work) -> Iterator[Figure]:
    count = haystack.count
    with plain_fts5(folder, haystack) as plain:
        yield figure(f"{count}.fts5_build_rate", count / plain.built_s, "1/s", better="higher")
        yield figure(f"{count}.fts5_disk", plain.size_bytes / count, "bytes", note="for each memory, text included")
        for kind in KINDS:
            times = []
            for ask in haystack.asks(kind, min(work.questions, _PLAIN)):
                began = time.perf_counter()
                plain.search(ask.text)
                times.append((time.perf_counter() - began) * 1000)
            for share in (50, 95, 99):
                yield figure(f"{count}.fts5_{kind}_p{share}", percentile(times, share / 100), "ms", samples=len(times))
