"""Jobs for processes that work in one mount at the same time: `python -m tests.exercise.writers JOB FOLDER NUMBER [JSON]`.

A child says `ready`, waits for a line, works, and prints one JSON line with what it did. Only the standard library is imported,
so that it starts fast. `Team` is the other end.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import hashlib
import json
import os
import random
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
END_TIMEOUT_S = 90.0
RECORD = struct.Struct("<4sIII")
"""Mark, writer, number, length: what stands before the bytes of an appended record."""
MARK = b"REC!"
RENAME_NOREPLACE, RENAME_EXCHANGE = 1, 2
STRIPE_BYTES = 10_007
_libc = ctypes.CDLL(None, use_errno=True)

Result = dict[str, Any]


class Team:
    """Children that start at the same moment. In a `with` block; none is left behind."""

    def __init__(self, job: str, folder: Path, count: int, **options: Any) -> None:
        self.children = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.exercise.writers", job, str(folder), str(number), json.dumps(options)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for number in range(count)
        ]  # fmt: skip

    def __enter__(self) -> Team:
        for child in self.children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        return self

    def go(self) -> None:
        for child in self.children:
            assert child.stdin is not None
            child.stdin.write("go\n")
            child.stdin.flush()

    def results(self, heard: Mapping[int, bytes] | None = None) -> list[Result]:
        """What each child did; its errors are the test's. `heard` is what the test read itself, by descriptor."""
        found = []
        for child in self.children:
            assert child.stdout is not None
            before = (heard or {}).get(child.stdout.fileno(), b"").decode()
            out, trouble = child.communicate(timeout=END_TIMEOUT_S)
            assert child.returncode == 0, trouble
            found.append(json.loads((before + out).splitlines()[-1]))
        return found

    def __exit__(self, *_: object) -> None:
        for child in self.children:
            child.kill()
            child.communicate()


def run(job: str, folder: Path, count: int, **options: Any) -> list[Result]:
    with Team(job, folder, count, **options) as team:
        team.go()
        return team.results()


def fill(writer: int, number: int, length: int) -> bytes:
    """Bytes that belong to one record."""
    unit = hashlib.sha256(f"{writer} {number}".encode()).digest()
    return (unit * (length // len(unit) + 1))[:length]


# ---- jobs


def append(folder: Path, number: int, sizes: list[int]) -> Result:
    """One write(2) for each record."""
    fd = os.open(folder / "log", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    for record, length in enumerate(sizes):
        data = RECORD.pack(MARK, number, record, length) + fill(number, record, length)
        if os.write(fd, data) != len(data):
            raise AssertionError("a write was cut short")
    os.close(fd)
    return {"records": len(sizes)}


def _wins(attempts: int, attempt: Callable[[int], object], lost: tuple[int, ...]) -> list[int]:
    """The attempts that went well; the others must have failed in the way given."""
    won = []
    for one in range(attempts):
        try:
            attempt(one)
        except OSError as error:
            if error.errno not in lost:
                raise
        else:
            won.append(one)
    return won


def race(folder: Path, number: int, attempts: int) -> Result:
    """Each of these can be done by one process only."""

    def create(one: int) -> None:
        fd = os.open(folder / f"created-{one}", os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        os.write(fd, b"%d" % number)
        os.close(fd)

    def take(one: int) -> None:
        (folder / f"token-{one}").rename(folder / f"taken-{number}-{one}")

    def give(one: int) -> None:
        mine = folder / f"mine-{number}-{one}"
        mine.write_text(f"{number}")
        _renameat2(mine, folder / f"given-{one}", RENAME_NOREPLACE)

    def link(one: int) -> None:
        os.link(folder / "source", folder / f"linked-{one}")

    gone, there = (errno.ENOENT,), (errno.EEXIST,)
    return {
        "created": _wins(attempts, create, there),
        "folders": _wins(attempts, lambda one: (folder / f"folder-{one}").mkdir(), there),
        "unlinked": _wins(attempts, lambda one: (folder / f"doomed-{one}").unlink(), gone),
        "taken": _wins(attempts, take, gone),
        "given": _wins(attempts, give, there),
        "linked": _wins(attempts, link, there),
        "removed": _wins(attempts, lambda one: (folder / f"empty-{one}").rmdir(), gone),
    }


def _renameat2(source: Path, target: Path, flags: int) -> None:
    if _libc.renameat2(-100, os.fsencode(source), -100, os.fsencode(target), flags) != 0:
        raise OSError(ctypes.get_errno(), "renameat2")


def stripes(folder: Path, number: int, total: int, writers: int) -> Result:
    """Every writer fills its own parts of one file, in an order of its own."""
    fd = os.open(folder / "striped", os.O_RDWR)
    mine = list(range(number, total, writers))
    random.Random(number).shuffle(mine)
    for stripe in mine:
        os.pwrite(fd, fill(number, stripe, STRIPE_BYTES), stripe * STRIPE_BYTES)
    os.close(fd)
    return {"stripes": len(mine)}


def count_up(folder: Path, number: int, rounds: int, kind: str) -> Result:
    """Read, add one, write: right only as long as the lock keeps the others out."""
    lock = fcntl.flock if kind == "flock" else fcntl.lockf
    with (folder / "counter").open("r+b", buffering=0) as handle:
        for _ in range(rounds):
            lock(handle, fcntl.LOCK_EX)
            value = int(os.pread(handle.fileno(), 20, 0))
            os.pwrite(handle.fileno(), b"%020d" % (value + 1), 0)
            lock(handle, fcntl.LOCK_UN)
    return {"rounds": rounds}


def truncate_and_read(folder: Path, number: int, rounds: int, size: int) -> Result:
    """Writer 0 empties and fills the file anew with one letter; the others must never see anything but letters and zeros."""
    fd = os.open(folder / "shrinking", os.O_RDWR)
    allowed = bytes([0, *b"ABCDEFGH"])
    read = turn = 0
    while not (folder / "finished").exists():
        turn += 1
        if number == 0:
            os.ftruncate(fd, turn % 3 * 5000)
            os.pwrite(fd, bytes([allowed[1 + turn % 8]]) * (size - turn), 0)
            if turn == rounds:
                (folder / "finished").touch()
        else:
            data = os.pread(fd, size + 1, 0)
            if len(data) > size or data.strip(allowed):
                raise AssertionError(f"{len(data)} bytes with {data.strip(allowed)[:40]!r}")
            read += len(data)
    os.close(fd)
    return {"read": read}


def replace_and_read(folder: Path, number: int, rounds: int) -> Result:
    """Even ones replace `whole` by rename and exchange `left` and `right`; odd ones always find all three, complete."""
    for turn in range(rounds):
        if number % 2 == 0:
            text = fill(number, turn, 100 + turn * 97 % 9000).hex()
            new = folder / f"new-{number}"
            new.write_text(f"{hashlib.sha256(text.encode()).hexdigest()} {text}")
            new.rename(folder / "whole")
            _renameat2(folder / "left", folder / "right", RENAME_EXCHANGE)
        else:
            digest, text = (folder / "whole").read_text().split(" ")
            if hashlib.sha256(text.encode()).hexdigest() != digest:
                raise AssertionError("half of a file was seen")
            for name in ("left", "right"):
                if (folder / name).read_text() not in ("left", "right"):
                    raise AssertionError(name)
    return {}


def soak(folder: Path, number: int, seconds: float) -> Result:
    """Anything, in a folder of its own that must end as remembered, and in a shared one where others get in the way."""
    rng = random.Random(f"soak {number}")
    own, shared = folder / f"own-{number}", folder / "shared"
    own.mkdir()
    contents: dict[str, bytes] = {}
    end_s, count, told_s = time.monotonic() + seconds, 0, 0.0
    while time.monotonic() < end_s:
        _work_alone(rng, own, contents)
        with contextlib.suppress(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError):
            _work_in_the_crowd(rng, shared, number)
        count += 1
        if time.monotonic() - told_s > 0.25:
            told_s = time.monotonic()
            sys.stdout.write(f"{count}\n")
            sys.stdout.flush()
    found = {path.name: path.read_bytes() for path in own.iterdir()}
    if found != contents:
        raise AssertionError(f"writer {number}: {sorted(found)} instead of {sorted(contents)}, or other bytes")
    return {"count": count}


def _work_alone(rng: random.Random, own: Path, contents: dict[str, bytes]) -> None:
    name = f"f{rng.randrange(30)}"
    path = own / name
    kind = rng.randrange(6)
    if kind == 0 or name not in contents:
        contents[name] = rng.randbytes(rng.choice([10, 3000, 70_000]))
        path.write_bytes(contents[name])
    elif kind == 1:
        with path.open("ab") as handle:
            handle.write(b"more")
        contents[name] += b"more"
    elif kind == 2:
        os.truncate(path, len(contents[name]) // 2)
        contents[name] = contents[name][: len(contents[name]) // 2]
    elif kind == 3:
        other = f"f{rng.randrange(30)}"
        path.rename(own / other)
        contents[other] = contents.pop(name)
    elif kind == 4:
        path.unlink()
        del contents[name]
    elif path.read_bytes() != contents[name]:
        raise AssertionError(f"{path} is not what was written")


def _work_in_the_crowd(rng: random.Random, shared: Path, number: int) -> None:
    path, other = shared / f"s{rng.randrange(12)}", shared / f"s{rng.randrange(12)}"
    kind = rng.randrange(8)
    if kind == 0:
        path.write_bytes(fill(number, kind, 5000))
    elif kind == 1:
        path.rename(other)
    elif kind == 2:
        path.unlink()
    elif kind == 3:
        os.link(path, other)
    elif kind == 4:
        os.listdir(shared)
    elif kind == 5:
        path.read_bytes()
    elif kind == 6:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        os.write(fd, b"line\n")
        os.fsync(fd)
        os.close(fd)
    else:
        os.setxattr(path, "user.soak", b"%d" % number)


JOBS: dict[str, Callable[..., Result]] = {
    "append": append, "race": race, "stripes": stripes, "count_up": count_up, "truncate_and_read": truncate_and_read,
    "replace_and_read": replace_and_read, "soak": soak,
}  # fmt: skip


def records(data: bytes) -> Iterator[tuple[int, int]]:
    """The records of a log, each whole and behind the other; AssertionError where one is torn."""
    at = 0
    while at < len(data):
        mark, writer, record, length = RECORD.unpack_from(data, at)
        assert mark == MARK, f"no record begins at byte {at} of {len(data)}"
        at += RECORD.size
        assert data[at : at + length] == fill(writer, record, length), f"the record at byte {at} is torn"
        at += length
        yield writer, record


def main() -> None:
    job, folder, number, options = sys.argv[1:]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    result = JOBS[job](Path(folder), int(number), **json.loads(options))
    sys.stdout.write(json.dumps(result) + "\n")


if __name__ == "__main__":
    main()
