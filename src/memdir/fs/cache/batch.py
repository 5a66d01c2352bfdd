"""The rows that changed since the last flush: filled under the filesystem's lock, written to SQLite outside it."""

from __future__ import annotations

from memdir.fs.posix.state import Chunk
from memdir.fs.posix.txn import Entry, Link, Note
from memdir.fs.types import Inode


class Batch:
    """New values by key; None (and `gone`) deletes. Consistent with exactly the journal record `lsn`.

    Every change of a file's contents, names or xattrs also changes its inode's row, so `inodes` and `gone` together name
    everything that memory must not evict while this batch is not in SQLite.
    """

    __slots__ = (
        "acknowledged", "blobs_cut", "blobs_dropped", "chunk_bytes",
        "chunks", "dentries", "gone", "inodes", "intents", "lsn", "next_cookie", "next_ino",
        "next_seq", "size_bytes", "unsynced", "xattrs",
    )  # fmt: skip

    def __init__(self) -> None:
        self.inodes: dict[int, Inode] = {}
        self.dentries: dict[Link, Entry | None] = {}
        self.chunks: dict[int, Chunk | None] = {}
        self.xattrs: dict[tuple[int, bytes], bytes | None] = {}
        self.gone: set[int] = set()
        self.intents: dict[int, Note | None] = {}
        self.blobs_dropped: list[tuple[int, int]] = []
        """(inode, blob) of files to be removed once this is on the disk."""
        self.blobs_cut: set[int] = set()
        """Inodes whose blob may be longer than their size in here."""
        self.size_bytes = 0
        """Journal bytes of the records in here: a bound for the memory that they hold."""
        self.chunk_bytes = 0
        """Size of the chunks in here when they first changed: a small write may hold a whole one."""
        self.acknowledged = 0
        """Intents up to this one are deleted."""
        self.lsn = 0
        self.next_ino = 0
        self.next_cookie = 0
        self.next_seq = 0
        self.unsynced = False

    def __bool__(self) -> bool:
        return self.lsn > 0

    def holds(self, ino: int) -> bool:
        """Whether rows of `ino` are in here."""
        return ino in self.inodes or ino in self.gone
