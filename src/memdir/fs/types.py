"""The nouns of the filesystem contract.

`Inode` is deliberately a mutable, slotted record and not a frozen dataclass: it is the hot object of the driver (a kernel
LOOKUP must cost microseconds), it is owned by the filesystem that hands it out, and callers only read it.
"""

from __future__ import annotations

import stat
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

ROOT_INO: Final = 1
VIRTUAL_INO_BASE: Final = 1 << 60
"""Inode numbers from here on belong to views (profile.md, .memdir); real ones stay below 2**39."""

RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2

FALLOC_KEEP_SIZE: Final = 0x01
FALLOC_PUNCH_HOLE: Final = 0x02
FALLOC_ZERO_RANGE: Final = 0x10

XATTR_CREATE: Final = 1
XATTR_REPLACE: Final = 2

Data = bytes | bytearray | memoryview
ReadResult = Data | Sequence[Data]
"""What `read` returns: one buffer, or several that follow each other (ready for `writev`)."""


def joined(parts: ReadResult) -> bytes:
    """A read result in one piece."""
    if isinstance(parts, bytes | bytearray | memoryview):
        return bytes(parts)
    return b"".join(parts)


class Inode:
    """Attributes of one file, directory, symlink or special file. Times are nanoseconds since the epoch.

    `encoded` belongs to the edge: it may keep its wire form there, and the filesystem sets it to None whenever an
    attribute changes. `lookups` counts references the kernel holds (`Vfs.retain`, `Vfs.forget`).
    `version` grows by one with every change of the contents; it is never reused for an inode.
    `place` says where the contents of a regular file are (`fs.posix.place`); 0 for everything else.
    `target` is where a symlink points, and of a file whose contents are absent their SHA-256; None for everything else.
    """

    __slots__ = (
        "atime_ns", "ctime_ns", "encoded", "gid", "ino", "lookups", "mode", "mtime_ns", "nlink", "parent", "place",
        "rdev", "size", "target", "uid", "version",
    )  # fmt: skip

    def __init__(  # noqa: PLR0917 - by position, because keywords would double what making an inode costs
        self, ino: int, mode: int, uid: int, gid: int, nlink: int, size: int, atime_ns: int, mtime_ns: int,
        ctime_ns: int, rdev: int = 0, target: bytes | None = None, parent: int = 0, version: int = 0,
        place: int = 0,
    ) -> None:  # fmt: skip
        self.ino = ino
        self.mode = mode
        self.uid = uid
        self.gid = gid
        self.nlink = nlink
        self.size = size
        self.atime_ns = atime_ns
        self.mtime_ns = mtime_ns
        self.ctime_ns = ctime_ns
        self.rdev = rdev
        self.target = target
        self.parent = parent
        self.version = version
        self.place = place
        self.lookups = 0
        self.encoded: bytes | None = None

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)

    @property
    def is_symlink(self) -> bool:
        return stat.S_ISLNK(self.mode)

    def __repr__(self) -> str:
        return f"<Inode {self.ino} {stat.filemode(self.mode)} size={self.size} nlink={self.nlink}>"


@dataclass(frozen=True, slots=True)
class Owner:
    """Who asks: the uid and gid that a created file gets."""

    uid: int
    gid: int


@dataclass(frozen=True, slots=True)
class DirEntry:
    """One name in a directory. `cookie` is positive, unique in the directory, grows with creation, and is where a later
    `readdir` goes on; entries never move between cookies, so a listing survives changes made while it runs."""

    cookie: int
    name: bytes
    inode: Inode


@dataclass(frozen=True, slots=True, kw_only=True)
class AttrChange:
    """What `setattr` shall change; None leaves a field as it is. `mode` are permission bits only."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime_ns: int | None = None
    mtime_ns: int | None = None
    ctime_ns: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FsStats:
    """statfs: sizes in blocks of `block_size` bytes."""

    block_size: int
    blocks: int
    blocks_free: int
    blocks_available: int
    inodes: int
    inodes_free: int
    name_max: int = 255


class IntentKind(Enum):
    """What the sync engine must look at again."""

    PUT = "put"
    """The path's contents, mode or existence may have changed: compare it with what was last agreed on."""
    DELETE = "delete"
    MOVE = "move"
    """`source` (a file or a whole subtree) now stands at `path`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Intent:
    """One durable note of the filesystem to the sync engine, in commit order (`seq`). Paths are absolute in the mount,
    `/a/b`, decoded with surrogateescape."""

    seq: int
    kind: IntentKind
    path: str
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalFact:
    """What stands at a path now. `version` lets a later write say "only if nothing happened since"."""

    path: str
    ino: int
    kind: str
    """`file`, `dir` or `symlink`; other types are never synced."""
    mode: int
    """Permission bits."""
    size: int
    mtime_ns: int
    version: int
    target: bytes | None = None
    """Where a symlink points."""
    absent_hash: str | None = None
    """SHA-256 (lower-case hex) of a file's contents while only the server has them; None when they are here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file of the server that shall stand at `path` without its bytes."""

    path: str
    size: int
    content_hash: str
    """SHA-256, lower-case hex."""
    mode: int
    mtime_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AbsentTotals:
    """How many files have their contents on the server only, and how many bytes that is."""

    files: int
    size_bytes: int
