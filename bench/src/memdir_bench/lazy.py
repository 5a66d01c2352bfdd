"""How soon a large memory can be used on a machine that has none of its contents."""

from __future__ import annotations

import os
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.api.v1 import BatchOperation
from memdir.client.http import Client, inline
from memdir.client.local import running_server
from memdir.core.limits import BATCH_MAX_BYTES, BATCH_MAX_ITEMS, KIB
from memdir_bench.session import BenchError, BenchSession

FILES: Final = 10_000
FILE_BYTES: Final = 100 * KIB
_FOLDER_FILES: Final = 100
_READS: Final = 50
_LIMIT_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyMountFigures:
    """Seconds since the mount command was started, but for the reads."""

    files: int
    size_bytes: int
    mount_command_s: float
    all_names_s: float
    """Until `find` shows every file."""
    first_read_s: float
    """Until the first read of an absent file had its bytes, after all names."""
    read_p50_ms: float
    """One absent file, read whole, one after the other."""
    read_max_ms: float


def fill_container(session: BenchSession, container: str, *, files: int, file_bytes: int, seed: int = 1) -> None:
    """Put files of random bytes (which no server tries to read as text) into a container, beside every mount."""
    session.memdir("server", "start")
    info = running_server(session.paths())
    if info is None:
        raise BenchError("the server of the benchmark does not run")
    dice = random.Random(seed)  # noqa: S311  not a secret
    step = max(1, min(BATCH_MAX_ITEMS, BATCH_MAX_BYTES // 2 // file_bytes))
    with Client.to(info) as client:
        for first in range(0, files, step):
            numbers = range(first, min(first + step, files))
            operations = [
                BatchOperation(
                    op="put", path=_path(number), content_base64=inline(dice.randbytes(file_bytes)), if_none_match=True
                )
                for number in numbers
            ]
            if any(result.status >= 300 for result in client.batch(container, operations)):
                raise BenchError("the server refused a file of the benchmark")


def measure_lazy_mount(session: BenchSession, container: str, place: Path, *, files: int, file_bytes: int) -> LazyMountFigures:
    """Mount a container that `fill_container` made where nothing of it is yet; the mount stays for the caller."""
    started_s = time.perf_counter()
    session.mount(container, "--path", str(place), "--prefetch", "none")
    mounted_s = time.perf_counter() - started_s
    while sum(len(names) for _, _, names in os.walk(place)) < files:  # profile.md comes on top
        if time.perf_counter() - started_s > _LIMIT_S:
            raise BenchError(f"the names of {files} files did not come within {_LIMIT_S:.0f} s")
        time.sleep(0.02)
    names_s = time.perf_counter() - started_s
    reads_ms = []
    chosen = random.Random(2).sample(range(files), min(_READS, files))  # noqa: S311  not a secret
    for number in chosen:
        before_s = time.perf_counter()
        if len((place / _path(number).lstrip("/")).read_bytes()) != file_bytes:
            raise BenchError(f"{_path(number)} is not whole")
        reads_ms.append((time.perf_counter() - before_s) * 1000)
    ordered = sorted(reads_ms)
    return LazyMountFigures(
        files=files,
        size_bytes=files * file_bytes,
        mount_command_s=round(mounted_s, 3),
        all_names_s=round(names_s, 3),
        first_read_s=round(names_s + reads_ms[0] / 1000, 3),
        read_p50_ms=round(ordered[len(ordered) // 2], 2),
        read_max_ms=round(ordered[-1], 2),
    )


def _path(number: int) -> str:
    return f"/{number // _FOLDER_FILES:03}/{number:06}.bin"
