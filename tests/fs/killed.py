"""The process that is killed: run as a module it forks one child a line of its input, which lives a workload and tells of every
answered operation with a dot. It is deterministic, down to the system calls: the flusher's work is done when the seed says so.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Iterator
from pathlib import Path

from memdir.core.clock import FakeClock
from memdir.fs.cache import disk_space, flusher, journal, large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.types import ROOT_INO

from . import workload

OPERATIONS = 25


def settle(seed: int) -> None:
    """The same in the child and in the process that knows what must be found. Every other workload keeps files in blobs."""
    flusher.Flusher.start = lambda self: None  # type: ignore[method-assign]
    journal.SEGMENT_MAX_BYTES = 8_000
    disk_space.RESERVE_BYTES = 4096
    if seed % 2:
        large.BLOB_MIN_BYTES = 2_000


def lived(folder: Path, seed: int) -> Iterator[SqliteFs]:
    """Yields the filesystem after every answered change; closed at the end."""
    rng = random.Random(f"lived {seed}")
    fs = SqliteFs.open(folder, clock=FakeClock(), uid=1000, gid=1000)
    done = 0
    while done < OPERATIONS:
        if workload.step(fs, rng):
            done += 1
            yield fs
        fate = rng.random()
        if fate < 0.15:
            fs.fsync(ROOT_INO)
        elif fate < 0.35:
            fs._flusher._write()
        elif fate < 0.45:
            fs._flusher._tidy()
        elif fate < 0.52:
            held = list(fs._intents._pending)
            if held:
                fs.acknowledge(held[len(held) // 2])
                yield fs
        elif fate < 0.57:
            fs.close()
            fs = SqliteFs.open(folder, clock=FakeClock(), uid=1000, gid=1000)
    fs.close()


def main() -> None:
    for line in sys.stdin:
        folder, seed = line.rsplit(" ", 1)
        pid = os.fork()
        if not pid:
            os.read(0, 1)  # until the tracer is there
            settle(int(seed))
            for _ in lived(Path(folder), int(seed)):
                os.write(1, b".")
            os._exit(0)
        os.write(1, b"%d\n" % pid)
        os.waitpid(pid, 0)
        os.write(1, b"\n")


if __name__ == "__main__":
    main()
