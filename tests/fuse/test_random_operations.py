"""Random operations, the same on a mount and on a directory of the native filesystem: every answer must be equal."""

from __future__ import annotations

import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from memdir.fs.types import RENAME_EXCHANGE, RENAME_NOREPLACE
from tests.fuse.test_names import renameat2

pytestmark = pytest.mark.mount

_NAMES = ["a", "b", "c", "ä", "n" * 255]
_STEPS = 150


class World:
    """One directory; `do` runs an operation and tells what came of it: a value, or the errno."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.open: dict[int, int] = {}

    def do(self, action: Callable[[World], object]) -> object:
        try:
            return action(self)
        except OSError as error:
            return f"errno {error.errno}"

    def close(self) -> None:
        for fd in self.open.values():
            os.close(fd)

    def tree(self) -> dict[str, object]:
        """Everything that can be seen, except inode numbers and times."""
        found: dict[str, object] = {}
        for folder, names, files in os.walk(self.root):
            for name in (*names, *files):
                path = os.path.join(folder, name)
                info = os.lstat(path)
                shown: list[object] = [info.st_mode, info.st_nlink]
                if stat.S_ISREG(info.st_mode):
                    shown += [info.st_size, Path(path).read_bytes()]
                elif stat.S_ISLNK(info.st_mode):
                    shown.append(os.readlink(path))
                found[os.path.relpath(path, self.root)] = shown
        return found


def _random_path(rng: random.Random) -> str:
    return "/".join(rng.choice(_NAMES) for _ in range(rng.choice([1, 1, 1, 2, 2, 3])))


def _random_action(rng: random.Random) -> tuple[str, Callable[[World], object]]:
    path, other = _random_path(rng), _random_path(rng)
    slot, offset = rng.randrange(4), rng.choice([0, 1, 4095, 4096, 130_000, 131_072, 200_000])
    data = rng.randbytes(rng.choice([0, 1, 10, 5000, 140_000]))
    flags = rng.choice([0, RENAME_NOREPLACE, RENAME_EXCHANGE])
    mode = rng.choice([0o644, 0o600, 0o755, 0o7777, 0o444])
    size = rng.choice([0, 1, 5000, 131_072, 300_000])

    def opened(world: World) -> object:
        if slot in world.open:
            os.close(world.open.pop(slot))
        wanted = rng_flags | os.O_RDWR
        world.open[slot] = os.open(world.root / path, wanted, 0o644)
        return "open"

    rng_flags = rng.choice([0, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC, os.O_CREAT | os.O_TRUNC, os.O_APPEND])

    def on_open(call: Callable[[int], object]) -> Callable[[World], object]:
        return lambda world: call(world.open[slot]) if slot in world.open else "closed"

    actions: list[tuple[str, Callable[[World], object]]] = [
        (f"open {path} {rng_flags:o} as {slot}", opened),
        (f"open {path} {rng_flags:o} as {slot}", opened),
        (f"pwrite {slot} {offset} {len(data)}", on_open(lambda fd: os.pwrite(fd, data, offset))),
        (f"write {slot} {len(data)}", on_open(lambda fd: os.write(fd, data))),
        (f"pread {slot} {offset}", on_open(lambda fd: os.pread(fd, 150_000, offset))),
        (f"ftruncate {slot} {size}", on_open(lambda fd: os.ftruncate(fd, size))),
        (f"fstat {slot}", on_open(lambda fd: (os.fstat(fd).st_size, os.fstat(fd).st_nlink, os.fstat(fd).st_mode))),
        (f"mkdir {path}", lambda world: os.mkdir(world.root / path)),
        (f"mkdir {path}", lambda world: os.mkdir(world.root / path)),
        (f"rmdir {path}", lambda world: os.rmdir(world.root / path)),
        (f"unlink {path}", lambda world: os.unlink(world.root / path)),
        (f"rename {path} {other}", lambda world: os.rename(world.root / path, world.root / other)),
        (f"renameat2 {path} {other} {flags}", lambda world: renameat2(world.root / path, world.root / other, flags)),
        (f"link {path} {other}", lambda world: os.link(world.root / path, world.root / other, follow_symlinks=False)),
        (f"symlink {other} {path}", lambda world: os.symlink(other, world.root / path)),
        (f"chmod {path} {mode:o}", lambda world: os.chmod(world.root / path, mode)),
        (f"truncate {path} {size}", lambda world: os.truncate(world.root / path, size)),
        (f"listdir {path}", lambda world: sorted(os.listdir(world.root / path))),
        (f"stat {path}", lambda world: (os.stat(world.root / path).st_mode, os.lstat(world.root / path).st_nlink)),
    ]
    return rng.choice(actions)


def _compare(seed: int, place: Path, native: Path) -> None:
    rng = random.Random(seed)
    worlds = [World(place), World(native)]
    history: list[str] = []
    try:
        for step in range(_STEPS):
            name, action = _random_action(rng)
            history.append(name)
            answers = [world.do(action) for world in worlds]
            assert answers[0] == answers[1], (seed, step, history[-25:], _short(answers))
            if step % 25 == 24:
                assert worlds[0].tree() == worlds[1].tree(), (seed, step, history)
        assert worlds[0].tree() == worlds[1].tree(), (seed, history)
    finally:
        for world in worlds:
            world.close()


def _short(answers: list[object]) -> list[str]:
    return [repr(answer)[:200] for answer in answers]


@pytest.mark.promise("parts.contract")
@pytest.mark.parametrize("seed", range(20))
def test_a_mount_answers_like_the_native_filesystem(seed: int, place: Path, tmp_path: Path) -> None:
    native = tmp_path / "native"
    native.mkdir()
    _compare(seed, place, native)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_a_mount_answers_like_the_native_filesystem_in_many_more_cases(seed: int, place: Path, tmp_path: Path) -> None:
    native = tmp_path / "native"
    native.mkdir()
    _compare(seed, place, native)
