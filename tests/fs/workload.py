"""Scripted workloads as endless streams of operations: the same for the same seed, on any filesystem. Run as a module it is
the child that gets killed: it writes one byte to standard output for every operation that was answered."""

from __future__ import annotations

import errno
import os
import random
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from memdir.fs.cache import large
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.errors import FsError
from memdir.fs.memory import MemoryFs
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, RENAME_EXCHANGE, ROOT_INO, AttrChange
from memdir.fs.vfs import Vfs

from .contract import CHUNK, FILE, ME

Tree = SqliteFs | MemoryFs

KINDS = ("copy", "save", "append", "churn", "big")


def operations(fs: Vfs, kind: str, seed: int) -> Iterator[None]:
    """Run one operation a step."""
    rng = random.Random(f"{kind} {seed}")
    return {"copy": _copy, "save": _save, "append": _append, "churn": _churn, "big": _big}[kind](fs, rng)


def _copy(fs: Vfs, rng: random.Random) -> Iterator[None]:
    """cp -r: folders, and files written in pieces."""
    number = 0
    while True:
        folder = fs.mkdir(ROOT_INO, b"folder-%d" % number, 0o755, ME).ino
        yield
        for name in range(rng.randrange(1, 20)):
            ino = fs.create(folder, b"file-%d" % name, FILE, ME).ino
            yield
            for piece in range(rng.randrange(4)):
                fs.write(ino, piece * 3000, rng.randbytes(3000))
                yield
            fs.setattr(ino, AttrChange(mode=0o600, mtime_ns=number))
            yield
        number += 1


def _save(fs: Vfs, rng: random.Random) -> Iterator[None]:
    """Editors: a temporary file over the real one."""
    while True:
        name = b"note-%d" % rng.randrange(5)
        ino = fs.create(ROOT_INO, b"temporary", FILE, ME).ino
        yield
        fs.write(ino, 0, rng.randbytes(rng.randrange(1, 9000)))
        yield
        fs.fsync(ino)
        yield
        fs.rename(ROOT_INO, b"temporary", ROOT_INO, name)
        yield


def _append(fs: Vfs, rng: random.Random) -> Iterator[None]:
    """A log that grows and is rotated."""
    while True:
        ino = fs.create(ROOT_INO, b"log", FILE, ME).ino
        yield
        for _ in range(rng.randrange(10, 60)):
            fs.write(ino, fs.get(ino).size, rng.randbytes(rng.randrange(1, 6000)))
            yield
        fs.setattr(ino, AttrChange(size=rng.randrange(3000)))
        yield
        fs.rename(ROOT_INO, b"log", ROOT_INO, b"log.1")
        yield


def _churn(fs: Vfs, rng: random.Random) -> Iterator[None]:
    """Names come, move and go; links and symlinks too."""
    while True:
        a, b = (b"n%d" % rng.randrange(8) for _ in range(2))
        there = {entry.name: entry.inode for entry in fs.readdir(ROOT_INO)}
        if a not in there:
            ino = fs.create(ROOT_INO, a, FILE, ME).ino if rng.random() < 0.7 else fs.symlink(ROOT_INO, a, b"to", ME).ino
            yield
            fs.setxattr(ino, b"user.k", rng.randbytes(5))
        elif rng.random() < 0.4:
            fs.unlink(ROOT_INO, a)
        elif b not in there and rng.random() < 0.5:
            fs.link(there[a].ino, ROOT_INO, b)
        else:
            fs.rename(ROOT_INO, a, ROOT_INO, b)
        yield


def _big(fs: Vfs, rng: random.Random) -> Iterator[None]:
    """Large writes, holes and cuts in a few files."""
    inos = [fs.create(ROOT_INO, b"big-%d" % number, FILE, ME).ino for number in range(3)]
    while True:
        ino = rng.choice(inos)
        if rng.random() < 0.8:
            fs.write(ino, rng.randrange(4 * CHUNK), rng.randbytes(rng.randrange(1, 3 * CHUNK)))
        else:
            fs.setattr(ino, AttrChange(size=rng.randrange(6 * CHUNK)))
        yield


_NAME_STEPS = ("create", "mkdir", "symlink", "unlink", "rmdir", "rename", "exchange", "put", "delete")
_STEPS = (*_NAME_STEPS, "create", "rename", "link", "write", "write", "write", "cut", "chmod", "xattr", "punch")


USERS_STEPS = tuple(kind for kind in _STEPS if kind not in ("put", "delete"))
"""Those that do not come from the sync."""


def step(fs: Tree, rng: random.Random, *, refusals: Collection[int] = (), steps: Sequence[str] = _STEPS) -> bool:
    """One random operation that is one record of the journal; False when it was refused, raised when with one of `refusals`. It
    may be called on a tree that an earlier process left."""
    folders = [ROOT_INO, *(entry.inode.ino for entry in fs.readdir(ROOT_INO) if entry.inode.is_dir)]
    parent, other = rng.choice(folders), rng.choice(folders)
    name, new = (b"n%d" % rng.randrange(6) for _ in range(2))
    kind = rng.choice(steps)
    try:
        if kind in _NAME_STEPS:
            _step_name(fs, rng, kind, (parent, name), (other, new))
        elif kind == "link":
            fs.link(fs.lookup(parent, name).ino, other, new)
        else:
            _step_file(fs, rng, kind, fs.lookup(parent, name).ino)
    except FsError as error:
        if error.errno in refusals:
            raise
        return False
    except LocalChangedError:
        return False
    return True


def _step_name(fs: Tree, rng: random.Random, kind: str, source: tuple[int, bytes], target: tuple[int, bytes]) -> None:
    if kind == "create":
        fs.create(*source, FILE, ME)
    elif kind == "mkdir":
        fs.mkdir(ROOT_INO, source[1], 0o755, ME)
    elif kind == "symlink":
        fs.symlink(*source, b"target" * rng.randrange(1, 90), ME)
    elif kind == "unlink":
        fs.unlink(*source)
    elif kind == "rmdir":
        fs.rmdir(*source)
    elif kind == "put":
        path = "/" + source[1].decode()
        fs.put_file(path, [rng.randbytes(rng.randrange(5000))], mode=0o644, mtime_ns=1, expected=fs.fact(path))
    elif kind == "delete":
        path = "/" + source[1].decode()
        fact = fs.fact(path)
        if fact is None or fact.kind == "dir":
            raise FsError(errno.ENOENT)
        fs.delete(path, expected=fact)
    else:
        fs.rename(*source, *target, RENAME_EXCHANGE if kind == "exchange" else 0)


def _step_file(fs: Tree, rng: random.Random, kind: str, ino: int) -> None:
    size = fs.get(ino).size
    if kind == "write":
        length = rng.choice((1, 700, 5000, 40_000))
        fs.write(ino, rng.choice((0, size, rng.randrange(size + 1), size + 9000)), rng.randbytes(rng.randrange(1, length + 1)))
    elif kind == "cut":
        fs.setattr(ino, AttrChange(size=rng.choice((0, size // 2, size + 100))))
    elif kind == "chmod":
        fs.setattr(ino, AttrChange(mode=rng.choice((0o600, 0o644))))
    elif kind == "xattr":
        fs.setxattr(ino, b"user.k", rng.randbytes(9))
    else:
        start = rng.randrange(size + 1)
        fs.fallocate(ino, start, rng.randrange(1, 9000), FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE)


def main() -> None:
    folder, kind, seed, *blob_min_bytes = sys.argv[1:]
    if blob_min_bytes:
        large.BLOB_MIN_BYTES = int(blob_min_bytes[0])  # type: ignore[misc]
    fs = SqliteFs.open(Path(folder))
    for _ in operations(fs, kind, int(seed)):
        os.write(1, b".")


if __name__ == "__main__":
    main()
