"""Random operations for `operations.World`: the same for the same seed."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Final

from tests.exercise.operations import SLOTS, Op

_FILE_SLOTS: Final = 3
"""Slots below are for files, the others for folders; now and then one is used for the other."""
_NAMES: Final = ["a", "b", "c", "d", "ä", "n" * 255]
_OFFSETS: Final = [0, 0, 1, 511, 4095, 4096, 4097, 65_536, 131_071, 131_072, 131_073, 200_000, 262_144, 300_000]
_LENGTHS: Final = [0, 1, 10, 4096, 5000, 65_537, 131_072, 140_000]
_MODES: Final = [0o644, 0o600, 0o755, 0o444, 0, 0o4755, 0o2775, 0o1777, 0o7777]
_TIMES_NS: Final = [0, 1, -1_500_000_001, 999_999_999, 123_456_789_012_345_678]
_FALLOCATE: Final = [0, 1, 1 | 2, 16, 16 | 1, 2, 64, 1 | 16 | 2]
_XATTRS: Final = ["user.a", "user.b", "trusted.t", "user.ä", "nonsense.x", "plain", "user." + "x" * 251]
_OPEN_EXTRA: Final = [
    0, os.O_CREAT, os.O_CREAT, os.O_CREAT, os.O_CREAT | os.O_EXCL, os.O_TRUNC, os.O_CREAT | os.O_TRUNC, os.O_APPEND,
    os.O_CREAT | os.O_APPEND, os.O_DIRECTORY, os.O_NOFOLLOW, os.O_PATH, os.O_CREAT | os.O_NOFOLLOW, os.O_SYNC | os.O_CREAT,
]  # fmt: skip


_BEGINNING: Final[list[Op]] = [
    ["open", 0, "a", os.O_RDWR | os.O_CREAT, 0o644], ["mkdir", "d", 0o755], ["open", 3, "d", os.O_RDONLY | os.O_DIRECTORY, 0],
    ["open", 1, "b", os.O_RDWR | os.O_CREAT, 0o644], ["write", 0, 1, 140_000], ["mkdir", "d/c", 0o755],
    ["open", 4, "d/c", os.O_RDONLY | os.O_DIRECTORY, 0], ["open", 2, "d/a", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600],
    ["symlink", "d", "c"],
]  # fmt: skip


class Generator:
    """An endless stream of operations. It remembers names and slots that are probably there, so that most operations find what
    they ask for; the rest of the names is anything."""

    def __init__(self, seed: int | str) -> None:
        self.rng = random.Random(seed)
        self.known: list[str] = []
        self.folders: list[str] = []
        weighted: list[tuple[int, Callable[[], Op]]] = [
            (14, self._open), (3, self._open_folder), (10, self._write), (10, self._names), (8, self._folders),
            (8, self._rename), (7, self._attributes), (6, self._xattr), (6, self._read), (6, self._truncate),
            (4, self._fallocate), (4, self._copy), (4, self._link), (6, self._look), (6, self._by_descriptor),
            (3, self._seek), (3, self._slot), (3, self._at),
        ]  # fmt: skip
        self._kinds = [kind for _, kind in weighted]
        self._weights = [weight for weight, _ in weighted]

    def op(self) -> Op:
        op = self.rng.choices(self._kinds, self._weights)[0]()
        self._remember(op)
        return op

    def _remember(self, op: Op) -> None:
        kind, *rest = op
        made = {"open": 1, "mkdir": 0, "mknod": 0, "symlink": 1, "rename": 1, "renameat2": 1, "link": 1}.get(kind)
        if kind in ("unlink", "rmdir", "rename"):
            self.known = [path for path in self.known if path != rest[0]]
        if made is not None and len(rest[made]) < 40 and (kind != "open" or rest[2] & os.O_CREAT):
            self.known = [*self.known, rest[made]][-12:]
        if kind == "mkdir" and len(rest[0]) < 40:
            self.folders = [*self.folders, rest[0]][-4:]

    def new_path(self) -> str:
        """A name that may be free, in a folder that is probably there."""
        name = self.rng.choice(_NAMES[:5])
        if self.folders and self.rng.random() < 0.4:
            return f"{self.rng.choice(self.folders)}/{name}"
        return name if self.rng.random() < 0.8 else self.any_path()

    # ---- arguments

    def path(self) -> str:
        """A name that is probably there."""
        return self.rng.choice(self.known) if self.known and self.rng.random() < 0.85 else self.any_path()

    def any_path(self) -> str:
        rng = self.rng
        path = "/".join(rng.choice(_NAMES[:5]) for _ in range(rng.choice([1, 1, 1, 1, 2, 2, 3])))
        odd = rng.random()
        if odd < 0.70:
            return path
        return rng.choice(
            [path + "/", path + "/.", f"./{path}", f"{path}/../{rng.choice(_NAMES)}", _NAMES[5], f"{path}/{_NAMES[5]}",
             "x" * 256, "/".join(["a"] * 2500), f"{path}//{rng.choice(_NAMES)}", "."]
        )  # fmt: skip

    def slot(self) -> int:
        """Probably one with an open file."""
        return self.rng.randrange(_FILE_SLOTS) if self.rng.random() < 0.93 else self.rng.randrange(SLOTS)

    def folder_slot(self) -> int:
        return self.rng.randrange(_FILE_SLOTS, SLOTS) if self.rng.random() < 0.93 else self.rng.randrange(SLOTS)

    def offset(self) -> int:
        if self.rng.random() < 0.05:
            return self.rng.choice([-1, 2**63 - 1, 2**62])
        return self.rng.choice(_OFFSETS) + self.rng.choice([0, 0, 0, self.rng.randrange(5000)])

    def length(self) -> int:
        return self.rng.choice(_LENGTHS)

    def number(self) -> int:
        return self.rng.randrange(1 << 30)

    def flag(self) -> bool:
        return self.rng.random() < 0.5

    # ---- operations

    def _open(self) -> Op:
        access = self.rng.choice([os.O_RDONLY, os.O_WRONLY, os.O_RDWR, os.O_RDWR, os.O_RDWR])
        extra = self.rng.choice(_OPEN_EXTRA)
        path = self.new_path() if extra & os.O_CREAT else self.path()
        return ["open", self.slot(), path, access | extra, self.rng.choice(_MODES)]

    def _open_folder(self) -> Op:
        path = self.rng.choice(self.folders) if self.folders else self.path()
        return ["open", self.folder_slot(), path, os.O_RDONLY | os.O_DIRECTORY, 0]

    def _write(self) -> Op:
        kind = self.rng.choice(["write", "pwrite", "pwritev"])
        if kind == "write":
            return [kind, self.slot(), self.number(), self.length()]
        return [kind, self.slot(), self.number(), self.length(), self.offset()]

    def _names(self) -> Op:
        kind = self.rng.choice(["mknod", "mknod", "symlink", "symlink", "unlink", "unlink"])
        if kind == "mknod":
            return [kind, self.new_path(), self.rng.choice(_MODES)]
        if kind == "unlink":
            return [kind, self.path()]
        target = self.rng.choice(
            [self.path(), self.rng.choice(_NAMES), "nowhere", "/nonexistent/x", "y" * 4095, "y" * 4096, ""]
        )
        return [kind, target, self.new_path()]

    def _folders(self) -> Op:
        if self.rng.random() < 0.7:
            return ["mkdir", self.new_path(), self.rng.choice([0o755, 0o700, 0o2775, 0o1777])]
        return ["rmdir", self.rng.choice(self.folders) if self.folders else self.path()]

    def _rename(self) -> Op:
        if self.rng.random() < 0.5:
            return ["rename", self.path(), self.rng.choice([self.path(), self.new_path()])]
        return [
            "renameat2",
            self.path(),
            self.rng.choice([self.path(), self.new_path()]),
            self.rng.choice([0, 1, 1, 2, 2, 2, 3, 8]),
        ]

    def _attributes(self) -> Op:
        rng = self.rng
        kind = rng.choice(["chmod", "chown", "utime", "utime", "utime", "access"])
        if kind == "chmod":
            return [kind, self.path(), rng.choice(_MODES)]
        if kind == "chown":
            return [kind, self.path(), rng.choice([-1, 0, 1000, 65_534]), rng.choice([-1, 0, 1000]), self.flag()]
        if kind == "access":
            return [kind, self.path(), rng.choice([os.F_OK, os.R_OK, os.W_OK, os.X_OK])]
        return [kind, self.path(), rng.choice(_TIMES_NS), self.flag()]

    def _xattr(self) -> Op:
        rng = self.rng
        kind, name = (
            rng.choice(["setxattr", "setxattr", "getxattr", "removexattr", "listxattr"]),
            rng.choice(_XATTRS[: rng.choice([2, 7])]),
        )
        if kind == "listxattr":
            return [kind, self.path()]
        if kind == "setxattr":
            return [kind, self.path(), name, "v" * rng.choice([0, 1, 100]), rng.choice([0, 0, 1, 2]), self.flag()]
        return [kind, self.path(), name]

    def _read(self) -> Op:
        if self.flag():
            return ["read", self.slot(), self.length()]
        return ["pread", self.slot(), self.length(), self.offset()]

    def _truncate(self) -> Op:
        if self.flag():
            return ["ftruncate", self.slot(), self.offset()]
        return ["truncate", self.path(), self.offset()]

    def _fallocate(self) -> Op:
        length = self.rng.choice([1, 4096, 5000, 131_072, 200_000, 0, -1])
        return ["fallocate", self.slot(), self.rng.choice(_FALLOCATE), self.rng.choice([-1, *_OFFSETS]), length]

    def _copy(self) -> Op:
        if self.rng.random() < 0.3:
            return ["sendfile", self.slot(), self.slot(), self.rng.choice(_OFFSETS), self.length()]
        at = self.rng.choice([None, self.rng.choice(_OFFSETS)])
        to = self.rng.choice([None, self.rng.choice(_OFFSETS)])
        return ["copy", self.slot(), self.slot(), self.rng.choice(_LENGTHS[1:]), at, to]

    def _link(self) -> Op:
        if self.rng.random() < 0.2:
            return ["flink", self.slot(), self.new_path()]
        return ["link", self.path(), self.new_path(), self.flag()]

    def _look(self) -> Op:
        kind = self.rng.choice(["stat", "listdir", "readlink"])
        return [kind, self.path(), self.flag()] if kind == "stat" else [kind, self.path()]

    def _by_descriptor(self) -> Op:
        rng = self.rng
        kind = rng.choice(["fsync", "fchmod", "fchown", "futime", "futime", "fsetxattr", "fgetxattr", "flistdir"])
        arguments = {
            "fsync": [self.flag()],
            "fchmod": [rng.choice(_MODES)],
            "fchown": [rng.choice([-1, 1000]), rng.choice([-1, 1000])],
            "futime": [rng.choice(_TIMES_NS)],
            "fsetxattr": [rng.choice(_XATTRS[:2]), "w" * rng.choice([0, 9]), rng.choice([0, 1, 2])],
            "fgetxattr": [rng.choice(_XATTRS[:2])],
            "flistdir": [],
        }
        return [kind, self.folder_slot() if kind == "flistdir" else self.slot(), *arguments[kind]]

    def _seek(self) -> Op:
        """Not to the ends of the number line: how far a position may go is up to the filesystem."""
        return ["lseek", self.slot(), self.rng.choice(_OFFSETS) - self.rng.choice([0, 0, 5000]), self.rng.choice([0, 1, 2, 7])]

    def _slot(self) -> Op:
        return self.rng.choice([["dup", self.slot(), self.slot()], ["close", self.slot()]])

    def _at(self) -> Op:
        """Relative to a descriptor, which may be of a folder that was removed or moved."""
        name, folder = self.rng.choice(_NAMES[:5]), self.folder_slot()
        return self.rng.choice(
            [
                ["openat", self.slot(), folder, name, os.O_RDWR | os.O_CREAT, 0o644],
                ["mkdirat", folder, name],
                ["unlinkat", folder, name, self.flag()],
                ["renameat", folder, name, self.folder_slot(), self.rng.choice(_NAMES[:5])],
            ]
        )


def operations(seed: int | str, count: int) -> list[Op]:
    """A beginning that makes something to work on, then anything."""
    generator = Generator(seed)
    ops = _BEGINNING[: generator.rng.randrange(len(_BEGINNING) + 1)]
    for op in ops:
        generator._remember(op)
    return [*ops, *(generator.op() for _ in range(count - len(ops)))]
