"""What a kernel sends under pressure: positions that no listing gave, interrupts, floods of forgets, files without a name."""

from __future__ import annotations

import ctypes
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from tests.exercise.difference import OwnMount
from tests.exercise.operations import done

pytestmark = pytest.mark.mount

_libc = ctypes.CDLL(None, use_errno=True)
_DIRENT64 = struct.Struct("=QqHB")
_WAIT_S = 30.0


def until(condition: Callable[[], bool], what: str) -> None:
    """Ask again until it holds; each question is work for the mount, so nobody spins for nothing."""
    end_s = time.monotonic() + _WAIT_S
    while not condition():
        assert time.monotonic() < end_s, what


def listed(fd: int) -> Iterator[tuple[bytes, int]]:
    """Names and positions from where the descriptor stands, in a bounded number of calls."""
    buffer = ctypes.create_string_buffer(4096)
    for _ in range(1000):
        length = done(_libc.getdents64(fd, buffer, len(buffer)))
        if not length:
            return
        at, raw = 0, buffer.raw
        while at < length:
            _, cookie, record_bytes, _ = _DIRENT64.unpack_from(raw, at)
            yield raw[at + _DIRENT64.size : at + record_bytes].split(b"\0", 1)[0], cookie
            at += record_bytes
    raise AssertionError("a listing without an end")


def used_inodes(own: OwnMount) -> int:
    count: int = own.process.call("inode_count")
    return count


@pytest.mark.promise("exercise.requests-fuzzed")
def test_any_position_in_a_folder_is_a_place_to_go_on_from(own: OwnMount) -> None:
    rng = random.Random(5)
    folder = own.path / "folder"
    folder.mkdir()
    names = [b"entry-%d" % number for number in range(300)]
    for name in names:
        (folder / os.fsdecode(name)).touch()
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        whole = list(listed(fd))
        positions = [position for _, position in whole]
        assert sorted(name for name, _ in whole) == sorted([b".", b"..", *names])
        for _ in range(150):
            position = rng.choice(
                [rng.randrange(400), rng.choice(positions), rng.randrange(1 << 40), (1 << 63) - 1, 1 << 62, 0]
            )
            os.lseek(fd, position, os.SEEK_SET)
            behind = list(listed(fd))
            if position in positions:
                assert behind == whole[positions.index(position) + 1 :]
            else:
                assert set(behind) <= set(whole)
                assert len(behind) == len({name for name, _ in behind})
    finally:
        os.close(fd)


_INTERRUPTED = """
import os, signal, sys
hits = [0]
def hit(*_): hits[0] += 1
signal.signal(signal.SIGALRM, hit)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
root = sys.argv[1]
fd = os.open(root + "/big", os.O_RDWR | os.O_CREAT, 0o644)
for turn in range(150):
    data = bytes([turn % 251]) * 300_000
    assert os.pwrite(fd, data, turn) == len(data)
    assert os.pread(fd, len(data), turn) == data
    os.fsync(fd)
    path = f"{root}/f{turn}"
    with open(path, "x") as handle:
        handle.write("x" * turn)
    os.rename(path, path + "-moved")
    assert os.stat(path + "-moved").st_size == turn
    assert len(os.listdir(root)) == turn + 2
signal.setitimer(signal.ITIMER_REAL, 0)
print(hits[0])
"""


@pytest.mark.promise("exercise.requests-fuzzed")
def test_signals_in_the_middle_of_requests_harm_nothing(own: OwnMount) -> None:
    """The kernel sends INTERRUPT for a request whose process has a signal waiting; each is answered all the same."""
    (own.path / "work").mkdir()
    worker = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED, str(own.path / "work")], capture_output=True, text=True, timeout=100, check=False
    )
    assert worker.returncode == 0, worker.stderr
    assert int(worker.stdout) > 20


@pytest.mark.promise("exercise.requests-fuzzed")
def test_a_process_killed_in_the_middle_of_requests_leaves_the_mount_well(own: OwnMount) -> None:
    script = (
        "import os,sys\nprint(flush=True)\n"
        "while True: open(sys.argv[1],'wb').write(os.urandom(3_000_000)); os.stat(sys.argv[1])"
    )
    for number in range(5):
        with subprocess.Popen([sys.executable, "-c", script, str(own.path / f"f{number}")], stdout=subprocess.PIPE) as worker:
            assert worker.stdout is not None
            worker.stdout.readline()
            until((own.path / f"f{number}").exists, "nothing was written")
            worker.send_signal(signal.SIGKILL)
        assert len((own.path / f"f{number}").read_bytes()) <= 3_000_000
    (own.path / "after").write_text("well")


@pytest.mark.promise("exercise.requests-fuzzed")
def test_a_flood_of_forgets_gives_every_inode_back(own: OwnMount) -> None:
    before = used_inodes(own)
    for turn in range(3):
        for folder in range(4):
            (own.path / f"d{folder}").mkdir()
            for number in range(200):
                (own.path / f"d{folder}" / f"f{number}").write_text("x")
        assert used_inodes(own) >= before + 800, turn
        for folder in range(4):
            with os.scandir(own.path / f"d{folder}") as entries:
                assert sum(entry.stat().st_size for entry in entries) == 200
            for number in range(200):
                (own.path / f"d{folder}" / f"f{number}").unlink()
            (own.path / f"d{folder}").rmdir()
        until(lambda: used_inodes(own) == before, "inodes stay behind")
    requests = own.process.call("stats")["requests"]
    assert requests.get("BATCH_FORGET", 0) + requests.get("FORGET", 0) > 0


def test_files_held_without_a_name_go_when_their_holder_is_killed(own: OwnMount) -> None:
    before = used_inodes(own)
    script = (
        "import os,sys\n"
        "fds=[os.open(f'{sys.argv[1]}/h{n}',os.O_RDWR|os.O_CREAT) for n in range(200)]\n"
        "for n,fd in enumerate(fds): os.write(fd,b'x'*9000); os.unlink(f'{sys.argv[1]}/h{n}')\n"
        "assert all(os.pread(fd,10,8995)==b'xxxxx' for fd in fds)\n"
        "print(flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, str(own.path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        assert used_inodes(own) >= before + 200
        assert os.listdir(own.path) == []
        holder.kill()
    until(lambda: used_inodes(own) == before, "files without a name stay behind")
