"""The tables in memory as an overlay over SQLite: what is fetched, what is dirty, what may be evicted.

Truth is memory over the batch being flushed over SQLite. Two batches exist at most: `_batch` collects, `_flushing` is being
written by the flusher. A row in either is in memory too and never evicted; everything else in memory is a copy of SQLite.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable
from typing import Final

from memdir.core.clock import Clock
from memdir.core.limits import MIB
from memdir.fs.cache.batch import Batch
from memdir.fs.cache.tables import Tables
from memdir.fs.posix.absent import AbsentOps
from memdir.fs.posix.notes import is_synced_type
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.state import INDEX_BITS, SIZE_MAX_BYTES, Chunk, Contents, Directory
from memdir.fs.posix.txn import Entry, Link, Txn
from memdir.fs.types import ROOT_INO, Inode

INODES_MAX: Final = 65_536
"""Inodes in memory, beside those that the kernel refers to and those not flushed yet."""
CLEAN_MAX_BYTES: Final = 16 * MIB
"""Chunks in memory that SQLite holds as well. The kernel's page cache stands before this one, so it may be small."""
_CHUNK_EXTRA_BYTES: Final = 600
"""What a chunk costs beside its bytes when it is the only one of its file: the tables around it."""
_CHILDREN_MAX: Final = 1024
"""Folders with up to this many names bring their children's inodes along when they are first read."""
_CHILDREN_MIN: Final = 4
"""Fewer missing inodes than this are fetched one by one."""
_INDEX_MASK: Final = (1 << INDEX_BITS) - 1


class Overlay(AbsentOps):
    """The fetch and note hooks of `State` over `Tables`."""

    def __init__(self, tables: Tables, *, clock: Clock, uid: int, gid: int) -> None:
        super().__init__(clock=clock, uid=uid, gid=gid)
        self._tables = tables
        self._batch = Batch()
        self._flushing: Batch | None = None
        self._flushing_bytes = 0
        self._stored_next_ino = 0
        """Inode numbers from here on are in no earlier batch: SQLite has nothing of them to fetch or to delete."""
        self._applied_lsn = 0
        self._crowd_at = INODES_MAX
        """How many inodes in memory call for eviction."""
        self._crowd_told = False
        self._forgotten = 0
        """Inodes that the kernel gave back since the last round of eviction, while memory was crowded."""
        self._clean: dict[int, int] = {}
        """Key and size of chunks that may be evicted, oldest first."""
        self._clean_bytes = 0

    # ---- fetch

    def _fetch_inode(self, ino: int) -> tuple[Inode, tuple[Link, ...]] | None:
        if self._batch.holds(ino) or (self._flushing is not None and self._flushing.holds(ino)):
            return None  # gone, and SQLite does not know it yet
        self._check_crowd()
        return self._tables.inode(ino)

    def _fetch_entries(self, ino: int) -> dict[bytes, Entry]:
        if ino >= self._stored_next_ino:
            return {}
        entries = self._tables.entries(ino)
        if len(entries) <= _CHILDREN_MAX:
            self._fetch_children(ino, entries)
        return entries

    def _fetch_children(self, ino: int, entries: dict[bytes, Entry]) -> None:
        """Bring the inodes of a folder into memory with one query, unless most of them are there."""
        missing = [child for child, _ in entries.values() if child not in self._inodes]
        if len(missing) < _CHILDREN_MIN:
            return
        self._check_crowd()
        held = [self._batch] if self._flushing is None else [self._batch, self._flushing]
        for name, inode in self._tables.children(ino):
            child = inode.ino
            if child in self._inodes or any(batch.holds(child) for batch in held):
                continue
            one_name = inode.nlink == 1 or stat.S_ISDIR(inode.mode)
            self._links[child] = ((ino, name),) if one_name else self._tables.links(child)
            self._inodes[child] = inode

    def _fetch_indexes(self, ino: int) -> set[int]:
        return self._tables.indexes(ino) if ino < self._stored_next_ino else set()

    def _fetch_chunk(self, ino: int, index: int) -> bytes:
        key = ino << INDEX_BITS | index
        data = self._tables.chunk(key)
        self._count_clean(key, len(data))
        return data

    def _fetch_xattrs(self, ino: int) -> dict[bytes, bytes]:
        return self._tables.xattrs(ino) if ino < self._stored_next_ino else {}

    def _absent_numbers(self, content_hash: bytes | None, limit: int, max_bytes: int = SIZE_MAX_BYTES) -> list[int]:
        """By hash also those that SQLite does not hold yet, because nothing may be missed there; else SQLite's will do."""
        numbers = dict.fromkeys(self._tables.absent_numbers(content_hash, limit, max_bytes))
        if content_hash is not None:
            for batch in (self._batch, self._flushing):
                for ino, draft in batch.inodes.items() if batch is not None else ():
                    if draft.place == ABSENT and draft.target == content_hash:
                        numbers[ino] = None
        return list(numbers)

    def _held_numbers(self) -> list[int]:
        return self._tables.held_numbers()

    def held_bytes(self) -> int:
        """As far as SQLite knows, which is a fraction of a second behind."""
        return self._tables.held_bytes()

    def special_count(self) -> int:
        numbers = self._tables.special_numbers()  # reads every inode: nobody waits for that
        with self._lock:
            for batch in (self._flushing, self._batch):
                if batch is not None:
                    drafts = batch.inodes.items()
                    numbers |= {ino for ino, draft in drafts if draft.nlink and not is_synced_type(draft.mode)}
                    numbers -= {ino for ino, draft in drafts if not draft.nlink} | set(batch.gone)
        return len(numbers)

    # ---- note

    def _note(self, txn: Txn) -> None:
        batch = self._batch
        batch.inodes.update(txn.inodes)
        if txn.dentries:
            batch.dentries.update(txn.dentries)
        if txn.xattrs or txn.gone or txn.dropped or txn.acknowledged:
            self._note_rare(txn)
        for note in txn.intents:
            batch.intents[note[0]] = note

    def _note_rare(self, txn: Txn) -> None:
        batch = self._batch
        for ino, name, value in txn.xattrs:
            batch.xattrs[ino, name] = value
        for ino in txn.gone:
            self._note_gone(ino)
        for seq in txn.dropped:
            batch.intents[seq] = None
        if txn.acknowledged:
            batch.acknowledged = txn.acknowledged

    def _note_gone(self, ino: int) -> None:
        batch = self._batch
        batch.inodes.pop(ino, None)
        for key in [key for key in batch.xattrs if key[0] == ino] if batch.xattrs else ():
            del batch.xattrs[key]
        if ino < self._stored_next_ino:
            batch.gone.add(ino)

    def _note_chunk(self, ino: int, index: int, chunk: Chunk | None) -> None:
        key = ino << INDEX_BITS | index
        chunks = self._batch.chunks
        if chunk is not None and key not in chunks:
            self._batch.chunk_bytes += len(chunk)
        chunks[key] = chunk
        size = self._clean.pop(key, None)
        if size is not None:
            self._clean_bytes -= size

    def _forget_contents(self, ino: int, contents: Contents) -> None:
        """Hook of `_apply`: a file is gone; its chunks need not be written any more."""
        base = ino << INDEX_BITS
        for index in contents.chunks:
            self._batch.chunks.pop(base | index, None)
            size = self._clean.pop(base | index, None)
            if size is not None:
                self._clean_bytes -= size

    # ---- flush, the parts that need the lock

    def _take_batch(self) -> Batch:
        """Freeze what was collected; from now on changes go into a new batch. O(1)."""
        batch = self._batch
        batch.next_ino = self._next_ino
        batch.next_cookie = self._next_cookie
        batch.next_seq = self._intents.next_seq
        batch.unsynced = self._unsynced()
        self._batch = Batch()
        self._flushing = batch
        self._flushing_bytes = batch.size_bytes + batch.chunk_bytes
        self._frozen = batch.chunks
        self._stored_next_ino = self._next_ino
        return batch

    def _take_back(self) -> None:
        """SQLite cannot take the frozen batch: join it with what collected behind it, which may delete most of it."""
        if self._flushing is not None:
            batch, self._flushing, self._flushing_bytes, self._frozen = self._flushing, None, 0, {}
            batch.absorb(self._batch)
            self._batch = batch

    def _unsynced(self) -> bool:
        """Whether changes were made that left no intent."""
        raise TypeError("implemented by SqliteFs")

    def _flushed(self, batch: Batch) -> None:
        """`batch` is in SQLite. What it held in chunks counts as clean once `_mark_clean` was there."""
        self._flushing = None
        self._flushing_bytes = 0
        self._frozen = {}
        self._applied_lsn = batch.lsn

    def _mark_clean(self, written: Iterable[tuple[int, Chunk | None]]) -> None:
        """Chunks of a batch that is in SQLite may be evicted from now on, unless they changed again."""
        files, changed = self._files, self._batch.chunks
        for key, chunk in written:
            contents = files.get(key >> INDEX_BITS)
            if chunk is not None and contents is not None:
                index = key & _INDEX_MASK
                if contents.chunks.get(index) is chunk and key not in changed:
                    contents.stored.add(index)
                    self._count_clean(key, len(chunk))

    # ---- evict

    def _count_clean(self, key: int, size_bytes: int) -> None:
        """A chunk in memory equals its row. Over the bound the oldest such chunk leaves memory."""
        if key in self._clean:
            return
        self._clean[key] = size_bytes + _CHUNK_EXTRA_BYTES
        self._clean_bytes += size_bytes + _CHUNK_EXTRA_BYTES
        while self._clean_bytes > CLEAN_MAX_BYTES and len(self._clean) > 1:
            oldest = next(iter(self._clean))
            self._clean_bytes -= self._clean.pop(oldest)
            ino = oldest >> INDEX_BITS
            contents = self._files.get(ino)
            if contents is None:
                continue
            contents.chunks.pop(oldest & _INDEX_MASK, None)
            if not contents.chunks and ino != key >> INDEX_BITS and not self._is_held(ino):
                del self._files[ino]  # not of the file that the operation under way works on

    def _is_held(self, ino: int) -> bool:
        """Whether SQLite does not have the newest rows of `ino` yet."""
        return self._batch.holds(ino) or (self._flushing is not None and self._flushing.holds(ino))

    def _check_crowd(self) -> None:
        """Called when an inode is fetched: nothing may be evicted in the middle of an operation, so only ask for it."""
        if len(self._inodes) > self._crowd_at and not self._crowd_told:
            self._crowd_told = True
            self._ask_for_eviction()

    def _count_forgotten(self) -> None:
        """The kernel gave an inode back: once many could go, look at them again."""
        if len(self._inodes) > INODES_MAX:
            self._forgotten += 1
            if self._forgotten == INODES_MAX // 8:
                self._crowd_at = INODES_MAX
                self._ask_for_eviction()

    def _ask_for_eviction(self) -> None:
        raise TypeError("implemented by SqliteFs")

    def _evictable(self) -> list[int]:
        """The inodes to look at when memory is crowded, oldest first; nothing otherwise. What has to stay, because it is not in
        SQLite yet or the kernel refers to it, is not looked at again before memory has grown or the kernel has forgotten an
        eighth of the bound."""
        if len(self._inodes) <= self._crowd_at:
            return []
        self._crowd_told = False
        self._forgotten = 0
        return list(self._inodes)

    def _evicted(self) -> None:
        """The end of a round of `_evict_inodes`."""
        self._crowd_at = max(INODES_MAX, len(self._inodes) + INODES_MAX // 8)
        self._forget_folders()

    def _evict_inodes(self, candidates: Iterable[int]) -> None:
        """Between operations: drop the clean ones of `candidates` to which the kernel does not refer, with all that hangs on
        them, until 7/8 of the bound are left."""
        for ino in candidates:
            if len(self._inodes) <= INODES_MAX * 7 // 8:
                return
            inode = self._inodes.get(ino)
            if inode is None or inode.lookups or not inode.nlink or ino == ROOT_INO or self._is_held(ino):
                continue
            del self._inodes[ino]
            for parent, _ in self._links.pop(ino, ()):
                above = self._dirs.get(parent)
                if above is not None:
                    above.listing = None  # it holds the evicted inode
            self._dirs.pop(ino, None)
            self._xattrs.pop(ino, None)
            contents = self._files.pop(ino, None)
            if contents is not None:
                for index in contents.chunks:
                    self._clean_bytes -= self._clean.pop(ino << INDEX_BITS | index, 0)


__all__ = ["CLEAN_MAX_BYTES", "INODES_MAX", "Directory", "Overlay"]
