"""A mount beside a native directory: the same operations on both, every answer and everything visible compared.

python -m tests.exercise.difference --seed 7 --ops 200 [--profile observed] [--kind sqlite] [--remount kill]
python -m tests.exercise.difference --replay '[["mkdir", "a", 493], ...]'
"""

from __future__ import annotations

import argparse
import errno
import itertools
import json
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from memdir.fs.fuse.mounting import clear_dead_mount
from tests.exercise.generator import operations
from tests.exercise.operations import Answer, Op, World
from tests.fuse.harness import MountProcess

_CONTENTS_EVERY = 10
"""Contents are compared after so many operations and at the end; names and attributes after each."""
_SHRINK_RUNS_MAX = 400
_SHRINK_TIME_MAX_S = 20.0
_numbers = itertools.count()


class Pair:
    """A new folder in a mount and a new folder beside it. `remount` is given when the mount belongs to this pair alone."""

    def __init__(self, mounted: Path, native: Path, *, remount: Callable[[str], None] | None = None) -> None:
        name = f"pair-{os.getpid()}-{next(_numbers)}"
        self.worlds = (World(mounted / name), World(native / name))
        for world in self.worlds:
            world.root.mkdir()
        self._remount = remount
        self._nlink_matters = os.stat(self.worlds[1].root).st_nlink == 2  # not so on btrfs and overlayfs
        self._times: list[dict[str, tuple[int, int]]] = [{}, {}]

    def step(self, number: int, op: Op) -> str | None:
        """Run one operation on both sides; what differs afterwards, None when nothing does."""
        if op[0] == "remount":
            return self._mount_again(op[1])
        mine, theirs = (world.run(op) for world in self.worlds)
        if mine != theirs:
            return f"answers: mount {_short(mine)}, native {_short(theirs)}"
        return self.compare(contents=number % _CONTENTS_EVERY == _CONTENTS_EVERY - 1)

    def _mount_again(self, how: str) -> str | None:
        for world in self.worlds:
            world.close()
        if self._remount is not None:
            self._remount(how)
            self._times = [{}, {}]
        return self.compare(contents=True)

    def compare(self, *, contents: bool) -> str | None:
        found = [(world.held(), world.tree(contents=contents)) for world in self.worlds]
        for (mine, theirs), what in zip(zip(*found, strict=True), ("descriptor", "name"), strict=True):
            if difference := self._first_difference(what, mine, theirs):
                return difference
        return self._holes() if contents else self._forgotten_ctime()

    def _first_difference(self, what: str, mine: dict[Any, Answer], theirs: dict[Any, Answer]) -> str | None:
        for key in sorted(mine.keys() | theirs.keys()):
            one, other = (self._comparable(side.get(key)) for side in (mine, theirs))
            if one != other:
                return f"{what} {key!r}: mount {_short(one)}, native {_short(other)}"
        return None

    def _comparable(self, entry: Answer) -> Answer:
        """Without the link counts of folders where the native filesystem does not keep them."""
        if self._nlink_matters or not entry:
            return entry
        status, *rest = entry if isinstance(entry[0], list) else [entry]
        return [[value for place, value in enumerate(status) if place != 1 or not stat.S_ISDIR(status[0])], *rest]

    def _forgotten_ctime(self) -> str | None:
        """Where the native filesystem saw a change of an inode, the mount must have seen one."""
        now = [world.change_times() for world in self.worlds]
        for path, (ino, changed_ns) in now[1].items():
            old_native, old_mounted = self._times[1].get(path), self._times[0].get(path)
            if old_native is None or old_mounted is None or old_native[0] != ino or old_mounted[0] != now[0][path][0]:
                continue
            if changed_ns != old_native[1] and now[0][path][1] == old_mounted[1]:
                return f"name {path!r}: native has a new ctime, the mount has not"
        self._times = now
        return None

    def _holes(self) -> str | None:
        """What the mount calls a hole must be zeros; where holes begin and end is each filesystem's own."""
        for path, entry in self.worlds[1].tree(contents=True).items():
            if path and stat.S_ISREG(entry[0][0]):
                trouble = hole_trouble(self.worlds[0].root / path, entry[2])
                if trouble:
                    return f"name {path!r}: {trouble}"
        return None

    def remove(self) -> None:
        for world in self.worlds:
            world.close()
            shutil.rmtree(world.root)


def hole_trouble(path: Path, data: bytes) -> str | None:
    fd = os.open(path, os.O_RDONLY)
    try:
        at = 0
        while at < len(data):
            try:
                start = os.lseek(fd, at, os.SEEK_DATA)
            except OSError as error:
                if error.errno != errno.ENXIO:
                    raise
                start = len(data)
            if not at <= start <= len(data) or data[at:start].strip(b"\0"):
                return f"SEEK_DATA from {at} gave {start}, over bytes that are no zeros"
            at = os.lseek(fd, start, os.SEEK_HOLE) if start < len(data) else len(data)
            if not start < at <= len(data) and start < len(data):
                return f"SEEK_HOLE from {start} gave {at}"
    finally:
        os.close(fd)
    return None


def _short(answer: Answer) -> str:
    text = repr(answer)
    return text if len(text) <= 300 else f"{text[:300]}… ({len(text)})"


class DifferenceError(AssertionError):
    """The two sides are not the same."""


def first_difference(ops: Sequence[Op], pair: Pair) -> str | None:
    """Run the list; the first difference with the operation that made it."""
    for number, op in enumerate(ops):
        if difference := pair.step(number, op):
            return f"after operation {number} {op}: {difference}"
    if difference := pair.compare(contents=True):
        return f"at the end: {difference}"
    return None


def shrunk(ops: list[Op], differs: Callable[[list[Op]], bool]) -> list[Op]:
    """A shorter list that still differs: pieces are left out, large ones first (delta debugging), in bounded runs and time."""
    size, runs, end_s = max(len(ops) // 2, 1), 0, time.monotonic() + _SHRINK_TIME_MAX_S
    while runs < _SHRINK_RUNS_MAX and time.monotonic() < end_s:
        shorter = False
        for start in range(len(ops) - size, -1, -size):
            candidate = ops[:start] + ops[start + size :]
            runs += 1
            if differs(candidate):
                ops, shorter = candidate, True
            if runs >= _SHRINK_RUNS_MAX or time.monotonic() >= end_s:
                break
        if size == 1 and not shorter:
            break
        size = size if shorter and size == 1 else max(size // 2, 1)
    return ops


def compare(ops: list[Op], make_pair: Callable[[], Pair], label: str) -> None:
    """DifferenceError with the shortest list found, ready to be replayed."""

    def run(candidate: list[Op]) -> str | None:
        pair = make_pair()
        try:
            return first_difference(candidate, pair)
        finally:
            pair.remove()

    if not (found := run(ops)):
        return
    short = shrunk(ops, lambda candidate: run(candidate) is not None)
    raise DifferenceError(
        f"{label}: {found}\nshrunk to {len(short)} operations: {run(short)}\n"
        f"python -m tests.exercise.difference --replay '{json.dumps(short, ensure_ascii=True)}'"
    )


class OwnMount:
    """A mount of one test that can be unmounted, or killed, and mounted again. Every start is checked by the harness."""

    def __init__(
        self, base: Path, *, kind: str = "sqlite", profile: str = "fast", passthrough: bool = False, **config: Any
    ) -> None:
        self.path, self.native, self.data = base / "mnt", base / "native", base / "data"
        for folder in (self.path, self.native, self.data):
            folder.mkdir()
        form = "-passthrough" if passthrough else "-blobs" if "blob_min_bytes" in config else ""
        self.label = profile + form
        self._config = {
            "kind": kind,
            "folder": self.data,
            "options": {"profile": profile, "passthrough": passthrough},
            **config,
        }
        self._process = MountProcess(self.path, **self._config)
        self._process.start()

    @property
    def process(self) -> MountProcess:
        return self._process

    def again(self, how: str) -> None:
        """Mount again after `clean` or `kill`."""
        if how == "kill":
            self._process.kill()
            clear_dead_mount(self.path)
        else:
            self._process.stop()
        self._process = MountProcess(self.path, **self._config)
        first = self._process.start()
        assert first == {"ready": True}, f"{first}\n{self._process.log}"

    def pair(self) -> Pair:
        return Pair(self.path, self.native, remount=self.again)

    def stop(self, *, check: bool = True) -> None:
        self._process.stop(check=check)


def with_remounts(ops: list[Op], how: Sequence[str]) -> list[Op]:
    """`ops` with remounts spread over them."""
    spread = list(ops)
    for number, kind in enumerate(how, start=1):
        spread.insert(number * len(spread) // (len(how) + 1), ["remount", kind])
    return spread


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--ops", type=int, default=200)
    parser.add_argument("--runs", type=int, default=1, help="this many seeds from --seed on")
    parser.add_argument("--profile", choices=["fast", "observed"], default="fast")
    parser.add_argument("--kind", choices=["memory", "sqlite"], default="sqlite")
    parser.add_argument("--passthrough", action="store_true", help="the kernel reads and writes blobs by itself (observed)")
    parser.add_argument("--blobs", type=int, default=1 << 20, help="contents of this size and more are files of their own")
    parser.add_argument("--remount", choices=["clean", "kill"], action="append", default=[])
    parser.add_argument("--replay", help="operations as JSON, instead of a seed")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        mount = OwnMount(
            Path(base), kind=arguments.kind, profile=arguments.profile, passthrough=arguments.passthrough,
            blob_min_bytes=arguments.blobs,
        )  # fmt: skip
        try:
            for run in range(arguments.runs):
                seed = f"{int(arguments.seed) + run}" if arguments.seed.isdigit() else arguments.seed
                ops = json.loads(arguments.replay) if arguments.replay else operations(seed, arguments.ops)
                compare(with_remounts(ops, arguments.remount), mount.pair, f"seed {seed}")
        except DifferenceError as error:
            sys.exit(str(error))
        finally:
            mount.stop(check=False)
    sys.stdout.write("no difference\n")


if __name__ == "__main__":
    main()
