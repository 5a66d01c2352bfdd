"""Filesystem work in plain system calls, timed: the same on a native folder and on a mount. Each returns seconds."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from memdir_bench.programs import run_checked

SMALL_FILES: Final = 5000
SMALL_FILE_BYTES: Final = 1024
FILES_PER_FOLDER: Final = 100
SAVES: Final = 1000
STREAM_BYTES: Final = 128 * 1024 * 1024
BLOCK_BYTES: Final = 1024 * 1024
DROP_CACHES: Final = Path("/proc/sys/vm/drop_caches")


def small_files(folder: Path) -> list[str]:
    """The paths every small-file workload uses."""
    return [f"{folder}/d{number // FILES_PER_FOLDER:03d}/file-{number:05d}.txt" for number in range(SMALL_FILES)]


def timed(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def create(folder: Path) -> float:
    """5,000 files of 1 KiB in folders of 100."""
    paths = small_files(folder)
    for parent in sorted({os.path.dirname(path) for path in paths}):
        os.makedirs(parent)
    data = b"memory " * (SMALL_FILE_BYTES // 7) + b"\n" * (SMALL_FILE_BYTES % 7)

    def work() -> None:
        for path in paths:
            fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
            os.write(fd, data)
            os.close(fd)

    return timed(work)


def stat_all(folder: Path) -> float:
    """The first stat of each file after it was written."""
    paths = small_files(folder)

    def work() -> None:
        for path in paths:
            os.stat(path)

    return timed(work)


def read_all(folder: Path) -> float:
    """Open, read and close each small file."""
    paths = small_files(folder)

    def work() -> None:
        for path in paths:
            fd = os.open(path, os.O_RDONLY)
            if len(os.read(fd, 4096)) != SMALL_FILE_BYTES:
                raise OSError(f"{path} was read short")
            os.close(fd)

    return timed(work)


def save_by_rename(folder: Path) -> float:
    """As editors save: write a temporary file beside the target and rename it over."""
    paths = small_files(folder)[:SAVES]
    data = b"a new version of this note\n" * 40

    def work() -> None:
        for path in paths:
            temporary = path + ".tmp"
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            os.write(fd, data)
            os.close(fd)
            os.rename(temporary, path)

    return timed(work)


def list_tree(folder: Path) -> float:
    """`ls -lR`, the second time."""
    command = ["ls", "-lR", str(folder)]

    def work() -> None:
        run_checked(command, stdout=subprocess.DEVNULL, limit_s=120)

    work()
    return timed(work)


def write_stream(folder: Path) -> float:
    """128 MiB in blocks of 1 MiB, with fsync."""
    block = os.urandom(BLOCK_BYTES)

    def work() -> None:
        fd = os.open(f"{folder}/stream.bin", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for _ in range(STREAM_BYTES // BLOCK_BYTES):
            os.write(fd, block)
        os.fsync(fd)
        os.close(fd)

    return timed(work)


def read_stream(folder: Path) -> float:
    """The same file, front to back."""

    def work() -> None:
        fd = os.open(f"{folder}/stream.bin", os.O_RDONLY)
        total = 0
        while block := os.read(fd, BLOCK_BYTES):
            total += len(block)
        os.close(fd)
        if total != STREAM_BYTES:
            raise OSError(f"read {total} bytes of {STREAM_BYTES}")

    return timed(work)


def can_drop_caches() -> bool:
    """Only root may, and not in every container."""
    return os.access(DROP_CACHES, os.W_OK)


def drop_caches() -> None:
    """Make the next reads cold, on every filesystem of the machine."""
    os.sync()
    DROP_CACHES.write_text("3\n", encoding="ascii")
