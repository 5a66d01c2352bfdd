"""A mount's process, filesystem and sync on one disk, with kill -9 before each of the system calls that write: what was
answered is in the mount, the queue goes on, and in the end the server has exactly what the mount has."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from memdir.core.sqlite import Database
from memdir.fs.cache.fsck import check
from tests.fs import killed as fs_killed
from tests.fs.test_kill_calls import CALLS, Children, _restored
from tests.sync import killed
from tests.sync.fake_server import FakeServer

__all__ = ["_restored"]

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)"),
    pytest.mark.promise("survives.kill"),
]
Tree = dict[str, tuple[str, bytes]]


@pytest.fixture
def children() -> Iterator[Children]:
    served = Children("tests.sync.killed")
    with closing(served):
        yield served


def live(children: Children, folder: Path, seed: int, *options: str) -> tuple[int, str, FakeServer]:
    """One life in a fresh folder; how many operations were answered, what strace said, and the server it leaves."""
    folder.mkdir(parents=True)
    server = FakeServer()
    with killed.serving(folder, server):
        count, said = children.run(folder, seed, *options)
    (folder / killed.SOCKET).unlink()
    return count, said, server


def judge(folder: Path, seed: int, server: FakeServer, allowed: list[Tree]) -> None:
    """The mount has one of the `allowed` trees, and after a while the server has it, too."""
    if (folder / "cache.db").exists():
        assert check(folder) == []
    with killed.serving(folder, server):
        machine = killed.Machine(folder, seed)
        try:
            assert machine.tree() in allowed, "what was answered is not what is there"
            before = machine.tree()
            machine.settle()
            assert machine.tree() == before == server.tree()
            assert machine.engine.status().conflicts == 0
        finally:
            machine.close()
    assert check(folder) == []
    database = Database(folder / "sync.db", migrations="memdir.sync.schema")
    assert database.all("pragma integrity_check") == [("ok",)]
    assert database.all("select path from queue union all select path from move") == []
    database.close()


def kill_at_calls(children: Children, top: Path, seed: int, *, kills: int | None) -> int:
    """Kill at `kills` of the calls, at even distances, or at every one; returns how many."""
    fs_killed.settle(seed)
    (top / "whole").mkdir()
    with killed.serving(top / "whole", FakeServer()):
        trees: list[Tree] = [{}, *(machine.tree() for machine in killed.lived(top / "whole", seed))]
    count, said, server = live(children, top / "counted", seed)
    assert count == len(trees) - 1
    judge(top / "counted", seed, server, [trees[-1]])
    names = re.findall(rf"^(?:\[pid +\d+\] )?({CALLS.replace(',', '|')})\(", said, re.MULTILINE)
    calls = [(name, names[: at + 1].count(name)) for at, name in enumerate(names)]  # strace counts each call by itself
    assert len(calls) > 100
    step = 1 if kills is None else max(len(calls) // kills, 1)
    chosen = calls[seed % step :: step]
    for name, number in chosen:
        folder = top / f"{name}-{number}"
        count, said, server = live(children, folder, seed, "-e", f"inject={name}:signal=KILL:when={number}")
        assert "killed by SIGKILL" in said
        try:
            judge(folder, seed, server, trees[count : count + 2])
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, killed at {name} {number} after {count} operations: {error}") from error
        shutil.rmtree(folder)
    return len(chosen)


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_at_a_system_call_leaves_the_queue_intact(children: Children, tmp_path: Path, seed: int) -> None:
    assert kill_at_calls(children, tmp_path, seed, kills=3) >= 3


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(20))
def test_a_kill_at_every_system_call_leaves_the_queue_intact(children: Children, tmp_path: Path, seed: int) -> None:
    kill_at_calls(children, tmp_path, seed, kills=None)
