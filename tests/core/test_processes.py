"""Who holds a lock and who is inside a folder, asked of /proc."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memdir.core.errors import BusyError
from memdir.core.filelock import locked_file
from memdir.core.processes import command_line, lock_holders, process, processes_inside, wait_for_end

Spawn = Callable[..., "subprocess.Popen[str]"]

LOCKS = {
    "flock": "import fcntl; fcntl.flock(f, fcntl.LOCK_EX)",
    "fcntl": "import fcntl; fcntl.lockf(f, fcntl.LOCK_EX)",
    "open file description": (
        "import fcntl, struct; fcntl.fcntl(f, fcntl.F_OFD_SETLK, struct.pack('hhqqi4x', fcntl.F_WRLCK, 0, 0, 0, 0))"
    ),
}


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """A Python process that runs `code`, says ready, and waits."""
    children: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: object, cwd: Path | str = "/") -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", f"import sys\n{code}\nprint('ready', flush=True)\ninput()", *map(str, arguments)],
            cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        children.append(child)
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        return child

    yield start
    for child in children:
        child.kill()
        child.communicate(timeout=20)


@pytest.mark.parametrize("kind", LOCKS)
def test_the_holder_of_a_lock_is_named_whatever_its_kind(kind: str, spawn: Spawn, tmp_path: Path) -> None:
    file = tmp_path / "a lock"
    before_s = time.time()
    child = spawn(f"f = open(sys.argv[1], 'ab')\n{LOCKS[kind]}", file)
    [holder] = lock_holders(file)
    assert holder.pid == child.pid
    assert str(holder) == f"{holder.name}, pid {child.pid}"
    assert abs(holder.started_at_s - before_s) < 60
    assert lock_holders(tmp_path / "none") == []


def test_a_file_that_is_only_open_has_no_holder(spawn: Spawn, tmp_path: Path) -> None:
    spawn("f = open(sys.argv[1], 'ab')", tmp_path / "file")
    assert lock_holders(tmp_path / "file") == []


def test_who_waits_for_a_turn_in_vain_learns_who_has_it(spawn: Spawn, tmp_path: Path) -> None:
    child = spawn(f"f = open(sys.argv[1], 'ab')\n{LOCKS['flock']}", tmp_path / "turn")
    with pytest.raises(BusyError, match=rf"busy \(.*pid {child.pid}\)"), locked_file(
        tmp_path / "turn", deadline=time.monotonic(), busy="busy"
    ):  # fmt: skip
        pass
    child.communicate("\n", timeout=20)
    with locked_file(tmp_path / "turn", deadline=time.monotonic(), busy="busy"):
        assert [holder.pid for holder in lock_holders(tmp_path / "turn")] == []  # it is this process


@pytest.mark.parametrize("how", ["cwd", "open", "mapped"])
def test_a_process_inside_a_folder_is_found(how: str, spawn: Spawn, tmp_path: Path) -> None:
    inside = tmp_path / "in side"
    inside.mkdir()
    (inside / "file").write_bytes(b"x" * mmap.PAGESIZE)
    code = {
        "cwd": "",
        "open": "f = open(sys.argv[1])",
        "mapped": "import mmap\nwith open(sys.argv[1]) as f: m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)",
    }[how]
    child = spawn(code, inside / "file", cwd=inside if how == "cwd" else "/")
    assert [user.pid for user in processes_inside(str(inside))] == [child.pid]
    assert processes_inside(str(inside), but=child.pid) == []
    assert processes_inside(str(tmp_path / "in")) == []


def test_a_process_is_described_until_it_ended(spawn: Spawn) -> None:
    child = spawn("", "word")
    known = process(child.pid)
    assert known is not None
    assert not known.is_stopped
    assert command_line(child.pid)[-1] == "word"
    os.kill(child.pid, signal.SIGSTOP)
    os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOWAIT)
    stopped = process(child.pid)
    assert stopped is not None
    assert stopped.is_stopped
    handle = os.pidfd_open(child.pid)
    try:
        assert not wait_for_end(handle, 0)
        child.kill()
        assert wait_for_end(handle, 20)
    finally:
        os.close(handle)
    assert process(child.pid) is None  # its parent has not asked for it yet: nobody runs
