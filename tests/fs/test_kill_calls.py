"""kill -9 before each of the system calls that write: what was answered is there, what was not is whole or not there, and the
sync engine hears of both."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from memdir.core.clock import FakeClock
from memdir.fs.cache import disk_space, flusher, journal, large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.fsck import check

from . import killed, snapshot
from .conftest import GID, UID

CALLS = (
    "write,writev,pwrite64,pwritev,ftruncate,truncate,fallocate,fsync,fdatasync,sync_file_range,"
    "openat,close,mkdir,unlink,unlinkat,rename,renameat,renameat2"
)
State = tuple[object, ...]

pytestmark = [
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed (apt-get install strace)"),
    pytest.mark.promise("survives.kill"),
]


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> None:
    """`settle` sets these for the process: they are put back afterwards."""
    monkeypatch.setattr(flusher.Flusher, "start", flusher.Flusher.start)
    monkeypatch.setattr(journal, "SEGMENT_MAX_BYTES", journal.SEGMENT_MAX_BYTES)
    monkeypatch.setattr(large, "BLOB_MIN_BYTES", large.BLOB_MIN_BYTES)
    monkeypatch.setattr(disk_space, "RESERVE_BYTES", disk_space.RESERVE_BYTES)


class Children:
    """A process that forks children to be traced; forking is quicker than starting an interpreter for each."""

    def __init__(self, module: str = "tests.fs.killed") -> None:
        self._server = subprocess.Popen(
            [sys.executable, "-m", module], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._in, self._out = self._server.stdin, self._server.stdout

    def run(self, folder: Path, seed: int, *options: str) -> tuple[int, str]:
        """Live one workload under strace with these options; (answered operations, what strace said)."""
        self._in.write(f"{folder} {seed}\n".encode())
        pid = int(self._out.readline())
        with subprocess.Popen(
            ["strace", "-f", "-p", str(pid), "-e", f"trace={CALLS}", *options], stderr=subprocess.PIPE, text=True, bufsize=1
        ) as tracer:
            assert tracer.stderr is not None
            attached = tracer.stderr.readline()
            if "attached" not in attached:
                self._in.write(b".")
                self._out.readline()
                pytest.skip(f"no process can be traced here: {attached.strip()}")
            self._in.write(b".")
            said = tracer.stderr.read()
        return self._out.readline().count(b"."), said

    def close(self) -> None:
        self._in.close()
        self._server.wait(30)
        self._out.close()


@pytest.fixture
def children() -> Iterator[Children]:
    served = Children()
    with contextlib.closing(served):
        yield served


def state_of(fs: SqliteFs) -> State:
    return snapshot.visible(fs), tuple(sorted(fs._intents._pending.items()))


def kill_at_calls(children: Children, top: Path, seed: int, *, kills: int | None) -> int:
    """Kill at `kills` of the calls, at even distances, or at every one; returns how many."""
    killed.settle(seed)
    states: list[State] = [({}, ())]
    states += [state_of(fs) for fs in killed.lived(top / "whole", seed)]
    answered, said = children.run(top / "counted", seed)
    assert answered == len(states) - 1
    names = re.findall(rf"^(?:\[pid +\d+\] )?({CALLS.replace(',', '|')})\(", said, re.MULTILINE)
    calls = [(name, names[: at + 1].count(name)) for at, name in enumerate(names)]  # strace counts each call by itself
    assert len(calls) > 100
    step = 1 if kills is None else max(len(calls) // kills, 1)
    chosen = calls[seed % step :: step]
    for name, number in chosen:
        folder = top / f"{name}-{number}"
        count, said = children.run(folder, seed, "-e", f"inject={name}:signal=KILL:when={number}")
        assert "killed by SIGKILL" in said
        if (folder / "cache.db").exists():
            assert check(folder) == [], f"{name} {number}"
        with SqliteFs.open(folder, clock=FakeClock(), uid=UID, gid=GID) as fs:
            found = state_of(fs)
        allowed = states[count : count + 2]
        if len(allowed) == 2:  # a write into a blob is told to the sync engine before it is done
            allowed.append((allowed[0][0], allowed[1][1]))
        assert found in allowed, f"{count} answered operations are not what is there: {name} {number}"
        assert check(folder) == []
        shutil.rmtree(folder)
    return len(chosen)


@pytest.mark.parametrize("seed", range(5))
def test_a_kill_at_a_system_call_loses_nothing_that_was_answered(children: Children, tmp_path: Path, seed: int) -> None:
    assert kill_at_calls(children, tmp_path, seed, kills=6) >= 6


@pytest.mark.long
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("seed", range(20))
def test_a_kill_at_every_system_call_loses_nothing(children: Children, tmp_path: Path, seed: int) -> None:
    kill_at_calls(children, tmp_path, seed, kills=None)
