"""One large file: written with a real fsync, read front to back, read in single pages at random places."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

from memdir.core.limits import MIB
from memdir_bench.posix.sizes import BLOCK_BYTES, PAGE_BYTES, Sizes
from memdir_bench.posix.steps import Step, expect
from memdir_bench.posix.trees import Fixtures


def stream(folder: Path, _fixtures: Fixtures, sizes: Sizes) -> Iterator[Step]:
    """Blocks of 1 MiB; every block differs in its first bytes, and none can be compressed."""
    path, size_bytes = f"{folder}/stream.bin", sizes.stream_bytes
    body = random.Random("stream").randbytes(BLOCK_BYTES - 8)  # noqa: S311
    offsets = random.Random("pages").sample(range(size_bytes // PAGE_BYTES), sizes.random_reads)  # noqa: S311

    def write() -> None:
        block = bytearray(8) + body
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            for number in range(size_bytes // BLOCK_BYTES):
                block[:8] = number.to_bytes(8, "little")
                os.write(fd, block)
            os.fsync(fd)
        finally:
            os.close(fd)

    def read() -> None:
        fd = os.open(path, os.O_RDONLY)
        buffer = bytearray(BLOCK_BYTES)
        try:
            total = 0
            while length := os.readv(fd, [buffer]):
                total += length
        finally:
            os.close(fd)
        expect("bytes read", total, size_bytes)

    def read_pages() -> None:
        fd = os.open(path, os.O_RDONLY)
        try:
            got = sum(len(os.pread(fd, PAGE_BYTES, page * PAGE_BYTES)) for page in offsets)
        finally:
            os.close(fd)
        expect("bytes read at random", got, len(offsets) * PAGE_BYTES)

    def check() -> None:
        """The blocks are there, in order."""
        fd = os.open(path, os.O_RDONLY)
        try:
            for number in range(size_bytes // BLOCK_BYTES):
                head = os.pread(fd, 16, number * BLOCK_BYTES)
                expect(f"head of block {number}", int(head == number.to_bytes(8, "little") + body[:8]), 1)
        finally:
            os.close(fd)

    blocks = size_bytes // MIB
    yield Step(name="stream_write", ops=blocks, unit="MiB", changes=True, work=write, check=check, size_bytes=size_bytes)
    yield Step(name="stream_read_warm", ops=blocks, unit="MiB", prepare=read, work=read, size_bytes=size_bytes)
    yield Step(name="random_read_warm", ops=len(offsets), unit="read", prepare=read, work=read_pages)
    yield Step(name="stream_read_cold", ops=blocks, unit="MiB", cold="all", work=read, size_bytes=size_bytes)
    yield Step(name="random_read_cold", ops=len(offsets), unit="read", cold="all", work=read_pages)
