"""The rows that changed since the last flush: filled under the filesystem's lock, written to SQLite outside it."""

from __future__ import annotations

from typing import Final

from memdir.fs.posix.state import INDEX_BITS, Chunk
from memdir.fs.posix.txn import Entry, Link, Note
from memdir.fs.types import Inode

_ROW_BYTES: Final = 256
"""What a row stands for in the journal, about."""


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

    def absorb(self, newer: Batch) -> None:
        """Go on as one with the batch that collected behind this one; what it deletes need not be written any more."""
        for ino in newer.gone:
            self.inodes.pop(ino, None)
        if newer.gone:
            self.chunks = {key: chunk for key, chunk in self.chunks.items() if key >> INDEX_BITS not in newer.gone}
            self.xattrs = {key: value for key, value in self.xattrs.items() if key[0] not in newer.gone}
        self.gone |= newer.gone
        self.inodes.update(newer.inodes)
        self.dentries.update(newer.dentries)
        self.chunks.update(newer.chunks)
        self.xattrs.update(newer.xattrs)
        self.intents.update(newer.intents)
        self.blobs_dropped += newer.blobs_dropped
        self.blobs_cut = (self.blobs_cut | newer.blobs_cut) - self.gone
        self.acknowledged = max(self.acknowledged, newer.acknowledged)
        self.lsn = max(self.lsn, newer.lsn)
        rows = len(self.inodes) + len(self.dentries) + len(self.gone) + len(self.intents)
        self.chunk_bytes = sum(len(chunk) for chunk in self.chunks.values() if chunk is not None)
        self.size_bytes = min(self.size_bytes + newer.size_bytes, self.chunk_bytes + rows * _ROW_BYTES)

    def holds(self, ino: int) -> bool:
        """Whether rows of `ino` are in here."""
        return ino in self.inodes or ino in self.gone
