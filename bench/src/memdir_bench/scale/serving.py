"""A real server on the filled store: what it holds in memory, and how long it takes from the outside."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from memdir_bench.figures import Figure, percentile
from memdir_bench.posix.clocks import resident_mib
from memdir_bench.scale.filling import TAG, TEAMS
from memdir_bench.scale.goals import figure
from memdir_bench.scale.material import Material, folder_of, path_of
from memdir_bench.server.fixtures import fixture
from memdir_bench.session import BenchError

_FOUND_LIMIT_S: Final = 60.0


def served(folder: Path, name: str, material: Material, passages: int, *, requests: int, updates: int) -> Iterator[Figure]:
    """Searches over HTTP: everywhere, in one folder, filtered by metadata; files that are put and found; memory. No question is
    asked twice, since the server remembers their vectors. Asked when the server's work at its start is done."""
    queries = material.queries("mixed", 3 * requests)
    with fixture(folder) as one, one.client() as client:
        pid = one.servers[0].process.pid
        yield figure(f"{name}.server_idle", resident_mib(pid), "MiB", note="before its first search")
        _search(client, {"q": queries[0].text})
        yield figure(f"{name}.server_rests", one.rested_s(), "s", note="after its first search: it reads its indexes")
        kinds: dict[str, dict[str, Any]] = {
            "http": {},
            "http_scoped": {"filepath": folder_of(passages // 400) + "/"},
            "http_filtered": {"filters": {"AND": [{"key": "team", "value": f"t{3 % TEAMS}"}]}},
        }
        for at, (kind, more) in enumerate(kinds.items()):
            own = queries[at * requests : (at + 1) * requests]
            answers = [_search(client, {"q": query.text} | more) for query in own]
            parts = {
                kind: [took_ms for took_ms, _ in answers],
                f"{kind}_around": [took_ms - answer["timing"] for took_ms, answer in answers],
            }
            for part, times in parts.items():
                for share in (50, 95, 99):
                    yield figure(f"{name}.{part}_p{share}", percentile(times, share / 100), "ms", samples=len(times))
        yield from _visible(client, name, passages, updates)
        yield figure(f"{name}.server_resident", resident_mib(pid), "MiB", note="the whole server, after searches and updates")
        yield figure(f"{name}.server_peak", resident_mib(pid, peak=True), "MiB")


def _search(client: httpx.Client, body: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    answer = client.post("/v4/search", json={"containerTag": TAG, "searchMode": "documents", "limit": 10} | body)
    took_ms = (time.perf_counter() - began) * 1000
    if answer.status_code != 200:
        raise BenchError(f"a search was answered {answer.status_code}: {answer.text[:300]}")
    found: dict[str, Any] = answer.json()
    return took_ms, found


def _visible(client: httpx.Client, name: str, passages: int, updates: int) -> Iterator[Figure]:
    times = [saved(client, path_of(number * 7 % max(1, passages // 20)), f"novel{number}qqz") for number in range(updates)]
    yield from visible_figures(f"{name}.", times)


def saved(client: httpx.Client, path: str, word: str, *, tag: str = TAG) -> tuple[float, float]:
    """Put a file with a word of its own: ms from the answer to the first search that finds it by the word, and to the last of
    its vectors."""
    answer = client.put(f"/v1/files{path}", params={"containerTag": tag}, content=f"{word} lies in the third drawer")
    if answer.status_code >= 300:
        raise BenchError(f"a put was answered {answer.status_code}: {answer.text[:300]}")
    document = f"/v3/documents/{answer.json()['documentId']}"
    began = time.perf_counter()
    _until(began, lambda: word in str(_search(client, {"q": word, "containerTag": tag})[1]))
    found_ms = (time.perf_counter() - began) * 1000
    _until(began, lambda: client.get(document).json()["status"] == "done")
    return found_ms, (time.perf_counter() - began) * 1000


def visible_figures(prefix: str, times: Sequence[tuple[float, float]]) -> Iterator[Figure]:
    """Of several that were saved."""
    for what, some in zip(("put_found", "visible_by_meaning"), zip(*times, strict=True), strict=True):
        for share in (50, 95):
            yield figure(f"{prefix}{what}_p{share}", percentile(some, share / 100), "ms", samples=len(some))


def _until(began: float, true: Any) -> None:
    while not true():
        if time.perf_counter() > began + _FOUND_LIMIT_S:
            raise BenchError(f"a file that was put was not found within {_FOUND_LIMIT_S:.0f} s")
