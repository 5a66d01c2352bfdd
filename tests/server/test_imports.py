"""Imports are read by a process of their own: it comes with the work, ends with it, and may die at any time."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from memdir.core.errors import UsageError
from memdir.server.indexing.import_process import ENV_CORES, IDLE_S, cores
from tests.server.conftest import until
from tests.servers import ServerProcess, start

COUNT = 400
WORDS = ("harbour", "orchard", "theatre", "clinic", "meadow", "quarry", "bakery", "viaduct")


def children(pid: int) -> list[int]:
    """Its processes that read imports."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (FileNotFoundError, ProcessLookupError):
                continue
            if parent == pid and b"memdir.server.indexing.import_process" in line:
                found.append(int(entry.name))
    return found


def posted(client: httpx.Client, tag: str) -> None:
    texts = [
        f"Note {number}: the {WORDS[number % 8]} opens at {number} past noon, says {WORDS[number // 8 % 8]}."
        for number in range(COUNT)
    ]
    for first in range(0, COUNT, 100):
        client.post(
            "/v3/documents/batch", json={"containerTag": tag, "contents": texts[first : first + 100]}
        ).raise_for_status()


def left(client: httpx.Client, tag: str) -> int:
    return int(client.get("/v3/documents/processing", params={"containerTag": tag}).json()["totalCount"])


@pytest.fixture
def own(tmp_path: Path) -> Iterator[ServerProcess]:
    running = start(tmp_path / "home", "--port", "0")
    yield running
    running.stop(signal.SIGKILL)


@pytest.mark.promise("real.imports")
def test_an_import_is_read_by_a_process_that_gives_way_and_ends(own: ServerProcess) -> None:
    with own.client() as client:
        posted(client, "many")
        until(lambda: children(own.process.pid))
        (child,) = children(own.process.pid)
        until(lambda: os.getpriority(os.PRIO_PROCESS, child) > os.getpriority(os.PRIO_PROCESS, own.process.pid))
        client.put("/v1/files/note.md", params={"containerTag": "edit"}, content=b"The spare key hangs at the bakery.\n")
        body = {"q": "where is the spare key", "containerTag": "edit", "waitSeq": 1, "waitMs": 5000}
        assert client.post("/v1/search", json=body).json()["results"], "an edit does not wait for the import"
        until(lambda: left(client, "many") == 0)
        found = client.post("/v4/search", json={"q": "Note 123", "containerTag": "many", "searchMode": "documents"}).json()
        assert "Note 123:" in found["results"][0]["chunk"]
        until(lambda: not children(own.process.pid), IDLE_S + 60)
    assert own.stop() == 0


def test_a_killed_process_loses_nothing_and_another_one_goes_on(own: ServerProcess) -> None:
    with own.client() as client:
        posted(client, "many")
        until(lambda: children(own.process.pid))
        os.kill(children(own.process.pid)[0], signal.SIGKILL)
        until(lambda: left(client, "many") == 0)
        listed = client.post("/v3/documents/list", json={"containerTags": ["many"], "limit": 1}).json()
        assert listed["pagination"]["totalItems"] == COUNT
    assert own.stop() == 0


def test_a_server_that_stops_in_the_middle_takes_the_process_along(own: ServerProcess) -> None:
    with own.client() as client:
        posted(client, "many")
        until(lambda: children(own.process.pid))
    (child,) = children(own.process.pid)
    assert own.stop() == 0
    until(lambda: not Path(f"/proc/{child}").exists(), 20)


@pytest.mark.parametrize(("said", "read"), [("", None), ("1", 1), (" 8 ", 8)])
def test_the_processors_are_counted(said: str, read: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV_CORES, said)
    assert cores() == read


@pytest.mark.parametrize("said", ["0", "-1", "two", "1.5"])
def test_what_is_no_number_of_processors_is_refused(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENV_CORES, said)
    with pytest.raises(UsageError, match="number of processors"):
        cores()
