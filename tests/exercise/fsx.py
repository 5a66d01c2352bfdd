"""A byte exerciser after the idea of fsx: random reads, writes, mappings, truncations, holes and copies in two files of a
mount, every byte compared with arrays in memory. Same seed, same operations:

    python -m tests.exercise.fsx --seed 7 --ops 20000 [--profile observed] [--blobs 5000]
"""

from __future__ import annotations

import argparse
import ctypes
import mmap
import os
import random
import sys
import tempfile
from collections import deque
from pathlib import Path
from typing import Any, Final

from tests.exercise.difference import OwnMount, hole_trouble
from tests.exercise.operations import done

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
KEEP_SIZE, PUNCH, ZERO = 1, 2, 16
SIZE_MAX_BYTES: Final = 2_600_000
"""Past two blobs of 1 MiB and twenty chunks of 128 KiB."""
_EDGES: Final = [0, 4096, 65_536, 131_072, 262_144, 1_048_576, 2_097_152]
"""Where pages, chunks, write requests and blobs begin."""
_TOLD: Final = 25
"""Operations that a failure tells of."""
_POOL_BYTES: Final = 4_000_000
_CHECK_EVERY: Final = 500


class Exerciser:
    """Two files and their models. AssertionError with seed, operation and the last operations when a byte differs."""

    def __init__(self, own: OwnMount, seed: int) -> None:
        self.own = own
        self.seed = seed
        self.rng = random.Random(f"fsx {seed}")
        self.pool = self.rng.randbytes(_POOL_BYTES)
        self.paths = [own.path / f"fsx-{seed}-{number}" for number in range(2)]
        self.models = [bytearray(), bytearray()]
        self.fds = [os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644) for path in self.paths]
        self.mapped: set[int] = set()
        """Files with mapped pages that may not have been written back."""
        self.log: deque[str] = deque(maxlen=_TOLD)
        self.count = 0
        weighted: list[tuple[int, Any]] = [
            (20, self.write), (16, self.read), (10, self.map_read), (12, self.map_write), (8, self.truncate), (6, self.punch),
            (6, self.zero), (4, self.allocate), (6, self.copy), (3, self.append), (2, self.reopen), (2, self.sync),
            (2, self.drop), (2, self.drop_by_notice), (1, self.rename_over),
        ]  # fmt: skip
        self._kinds = [kind for _, kind in weighted]
        self._weights = [weight for weight, _ in weighted]

    def run(self, ops: int, *, remounts: int = 0) -> None:
        """`remounts` of them, alternately clean and by SIGKILL, are spread over the run."""
        due = {(number + 1) * ops // (remounts + 1): ("kill", "clean")[number % 2] for number in range(remounts)}
        for self.count in range(1, ops + 1):
            if how := due.get(self.count):
                self.remount(how)
            self.rng.choices(self._kinds, self._weights)[0](self.rng.randrange(2))
            if self.count % _CHECK_EVERY == 0:
                self.check()
        self.check()
        self.close()

    def close(self) -> None:
        for fd in self.fds:
            os.close(fd)
        self.fds = []

    # ---- arguments and comparison

    def _place(self) -> int:
        """An offset, half of them close to an edge."""
        if self.rng.random() < 0.5:
            return max(self.rng.choice(_EDGES) + self.rng.randrange(-300, 300), 0)
        return self.rng.randrange(SIZE_MAX_BYTES)

    def _length(self) -> int:
        return self.rng.choice([1, 100, 511, 4096, 5000, 20_000, 20_000, 66_000, 140_000])

    def _range(self, which: int) -> tuple[int, int]:
        """A range that begins in the file where there is one."""
        size = len(self.models[which])
        start = min(self._place(), max(size - 1, 0))
        return start, self.rng.randrange(1, self._length() + 1)

    def _bytes(self, length: int) -> bytes:
        start = self.rng.randrange(_POOL_BYTES - length)
        return self.pool[start : start + length]

    def _note(self, text: str) -> None:
        self.log.append(f"{self.count}: {text}")

    def _same(self, which: int, start: int, got: bytes, expected: bytes | bytearray) -> None:
        if got == expected:
            return
        at = next((n for n, (one, other) in enumerate(zip(got, expected, strict=False)) if one != other), None)
        where = f"byte {start + at}" if at is not None else f"{len(got)} bytes instead of {len(expected)}"
        raise AssertionError(f"seed {self.seed}, operation {self.count}, file {which}: {where}\n" + "\n".join(self.log))

    def _grow(self, which: int, end: int) -> None:
        model = self.models[which]
        if end > len(model):
            model.extend(bytes(end - len(model)))

    def _put(self, which: int, start: int, data: bytes) -> None:
        self._grow(which, start + len(data))
        self.models[which][start : start + len(data)] = data

    def _blank(self, which: int, start: int, end: int) -> None:
        end = min(end, len(self.models[which]))
        if start < end:
            self.models[which][start:end] = bytes(end - start)

    # ---- operations

    def write(self, which: int) -> None:
        start, length = self._place(), self.rng.randrange(1, self._length() + 1)
        data = self._bytes(length)
        self._note(f"write {which} {start}+{length}")
        assert os.pwrite(self.fds[which], data, start) == length
        self._put(which, start, data)

    def append(self, which: int) -> None:
        data = self._bytes(self._length())
        if len(self.models[which]) + len(data) > SIZE_MAX_BYTES:
            return
        self._note(f"append {which} +{len(data)}")
        fd = os.open(self.paths[which], os.O_WRONLY | os.O_APPEND)
        try:
            assert os.write(fd, data) == len(data)
        finally:
            os.close(fd)
        self._put(which, len(self.models[which]), data)

    def read(self, which: int) -> None:
        start, length = self._place(), self.rng.randrange(1, self._length() + 1)
        self._note(f"read {which} {start}+{length}")
        self._same(which, start, os.pread(self.fds[which], length, start), self.models[which][start : start + length])

    def map_read(self, which: int) -> None:
        start, length = self._range(which)
        end = min(start + length, len(self.models[which]))
        if start >= end:
            return
        self._note(f"mapread {which} {start}..{end}")
        with self._view(which, start, end, mmap.ACCESS_READ) as (view, base):
            self._same(which, start, view[start - base : end - base], self.models[which][start:end])

    def map_write(self, which: int) -> None:
        start, length = self._range(which)
        data = self._bytes(length)
        if start + length > len(self.models[which]):
            os.ftruncate(self.fds[which], start + length)
        self._note(f"mapwrite {which} {start}+{length}")
        with self._view(which, start, start + length, mmap.ACCESS_WRITE) as (view, base):
            view[start - base : start - base + length] = data
            if self.rng.random() < 0.3:
                view.flush()
            else:
                self.mapped.add(which)
        self._put(which, start, data)

    def _view(self, which: int, start: int, end: int, access: int) -> Any:
        return _View(self.fds[which], start, end, access)

    def truncate(self, which: int) -> None:
        size = self.rng.choice([self._place(), self._place(), self.rng.randrange(5000), len(self.models[which])])
        self._note(f"truncate {which} {size}")
        if self.rng.random() < 0.5:
            os.ftruncate(self.fds[which], size)
        else:
            os.truncate(self.paths[which], size)
        del self.models[which][size:]
        self._grow(which, size)

    def punch(self, which: int) -> None:
        start, length = self._place(), self._length()
        self._note(f"punch {which} {start}+{length}")
        self._fallocate(which, PUNCH | KEEP_SIZE, start, length)
        self._blank(which, start, start + length)

    def zero(self, which: int) -> None:
        start, length, keep = self._place(), self._length(), self.rng.random() < 0.5
        self._note(f"zero {which} {start}+{length} keep={keep}")
        self._fallocate(which, ZERO | (KEEP_SIZE if keep else 0), start, length)
        self._blank(which, start, start + length)
        if not keep:
            self._grow(which, start + length)

    def allocate(self, which: int) -> None:
        start, length, keep = self._place(), self._length(), self.rng.random() < 0.5
        self._note(f"allocate {which} {start}+{length} keep={keep}")
        self._fallocate(which, KEEP_SIZE if keep else 0, start, length)
        if not keep:
            self._grow(which, start + length)

    def _fallocate(self, which: int, mode: int, start: int, length: int) -> None:
        done(_libc.fallocate(self.fds[which], mode, start, length))

    def copy(self, which: int) -> None:
        target = self.rng.randrange(2)
        start, length = self._range(which)
        to = self._place()
        length = min(length, max(len(self.models[which]) - start, 0))
        if not length or (target == which and abs(start - to) < length):
            return
        self._note(f"copy {which} {start}+{length} to {target} {to}")
        at = 0
        while at < length:
            copied = os.copy_file_range(self.fds[which], self.fds[target], length - at, start + at, to + at)
            if not copied:
                raise AssertionError(f"seed {self.seed}, operation {self.count}: nothing was copied\n" + "\n".join(self.log))
            self._put(target, to + at, bytes(self.models[which][start + at : start + at + copied]))
            at += copied

    def reopen(self, which: int) -> None:
        self._note(f"reopen {which}")
        os.close(self.fds[which])
        self.fds[which] = os.open(self.paths[which], os.O_RDWR)

    def sync(self, which: int) -> None:
        self._note(f"fsync {which}")
        self.rng.choice([os.fsync, os.fdatasync])(self.fds[which])
        self.mapped.discard(which)

    def drop(self, which: int) -> None:
        """The kernel lets go of its clean pages."""
        self._note(f"drop {which}")
        os.posix_fadvise(self.fds[which], 0, 0, os.POSIX_FADV_DONTNEED)

    def drop_by_notice(self, which: int) -> None:
        """The filesystem says that the file changed, as after a remote change; dirty mapped pages must survive that."""
        self._note(f"notice {which}")
        self.own.process.call("notice", ino=os.fstat(self.fds[which]).st_ino)

    def rename_over(self, which: int) -> None:
        """A new file takes the place of an open one."""
        other = self.own.path / f"fsx-{self.seed}-new"
        data = self._bytes(self._length())
        self._note(f"rename over {which} +{len(data)}")
        other.write_bytes(data)
        os.rename(other, self.paths[which])
        self._same(which, 0, os.pread(self.fds[which], 10_000, 0), self.models[which][:10_000])  # still the old one
        os.close(self.fds[which])
        self.fds[which] = os.open(self.paths[which], os.O_RDWR)
        self.models[which] = bytearray(data)
        self.mapped.discard(which)

    def remount(self, how: str) -> None:
        """A kill may take mapped pages that nobody asked to write back; everything that was answered stays."""
        self._note(f"remount {how}")
        for which in sorted(self.mapped):
            os.fsync(self.fds[which])
        self.mapped.clear()
        self.close()
        self.own.again(how)
        self.fds = [os.open(path, os.O_RDWR) for path in self.paths]
        self.check()

    def check(self) -> None:
        """All bytes, the size and the holes."""
        for which, model in enumerate(self.models):
            size = os.fstat(self.fds[which]).st_size
            assert size == len(model), f"seed {self.seed}, operation {self.count}\n" + "\n".join(self.log)
            self._same(which, 0, self.paths[which].read_bytes(), model)
            if trouble := hole_trouble(self.paths[which], bytes(model)):
                raise AssertionError(f"seed {self.seed}, operation {self.count}: {trouble}\n" + "\n".join(self.log))


class _View:
    """A mapping from the page that `start` is on."""

    def __init__(self, fd: int, start: int, end: int, access: int) -> None:
        self._base = start - start % mmap.PAGESIZE
        self._view = mmap.mmap(fd, end - self._base, access=access, offset=self._base)

    def __enter__(self) -> tuple[mmap.mmap, int]:
        return self._view, self._base

    def __exit__(self, *_: object) -> None:
        self._view.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--ops", type=int, default=20_000)
    parser.add_argument("--remounts", type=int, default=3)
    parser.add_argument("--profile", choices=["fast", "observed"], default="fast")
    parser.add_argument("--passthrough", action="store_true", help="the kernel reads and writes blobs by itself (observed)")
    parser.add_argument("--blobs", type=int, default=1 << 20, help="contents of this size and more are files of their own")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        own = OwnMount(Path(base), profile=arguments.profile, passthrough=arguments.passthrough, blob_min_bytes=arguments.blobs)
        try:
            Exerciser(own, arguments.seed).run(arguments.ops, remounts=arguments.remounts)
        finally:
            own.stop(check=False)
    sys.stdout.write(f"{arguments.ops} operations, no difference\n")


if __name__ == "__main__":
    main()
