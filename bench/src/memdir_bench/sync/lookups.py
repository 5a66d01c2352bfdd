"""How long a lookup takes, asked in a process of its own: `python -m memdir_bench.sync.lookups FOLDER`.

Names that do not exist, each asked for once, so that the kernel has no answer and asks the daemon. One question every 2 ms: who
asks more often measures a queue that it made itself. Says when it has begun; ends with
its standard input, and prints the waits in ms as JSON.
"""

from __future__ import annotations

import itertools
import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memdir_bench.session import BenchError

_PAUSE_S: Final = 0.002
_SAMPLES_MAX: Final = 1_000_000
_END_LIMIT_S: Final = 30.0


@contextmanager
def timed_lookups(folder: Path) -> Iterator[Callable[[], list[float]]]:
    """Ask until the given function is called, which tells the waits in ms."""
    command = [sys.executable, "-m", "memdir_bench.sync.lookups", str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asking:

        def waits() -> list[float]:
            said, _ = asking.communicate(timeout=_END_LIMIT_S)
            if asking.returncode:
                raise BenchError(f"the lookups below {folder} failed")
            found: list[float] = json.loads(said)
            return found

        try:
            assert asking.stdout is not None
            asking.stdout.readline()  # it has begun
            yield waits
        finally:
            asking.kill()


def main() -> None:
    folder = sys.argv[1]
    waits_ms: list[float] = []
    for number in itertools.count():
        if len(waits_ms) >= _SAMPLES_MAX or select.select([sys.stdin], [], [], _PAUSE_S)[0]:
            break
        path = os.path.join(folder, f"nobody-{number}")
        started_ns = time.perf_counter_ns()
        os.path.lexists(path)
        waits_ms.append(round((time.perf_counter_ns() - started_ns) / 1e6, 4))
        if not number:
            sys.stdout.write("begun\n")
            sys.stdout.flush()
    json.dump(waits_ms, sys.stdout)


if __name__ == "__main__":
    main()
