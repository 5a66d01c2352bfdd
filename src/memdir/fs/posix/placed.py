"""Contents that are not in the tables: large ones in blobs, absent ones nowhere.

What a transaction records of a blob is its inode's row: size, version, place. The bytes go to the blob at once, so the two must
never contradict each other, whatever happens in between:

- Bytes at or behind the recorded size do not exist. What extends a file writes them first and records the new size then; a
  process that dies between leaves them behind the end. They are cut off before the end moves over them (`_trim`).
- What changes bytes that exist is recorded first (a new version, and the note to sync), so that sync looks at the file again
  even if this process dies half-way. Such a change survives kill -9 once it was answered, as any does; in part when it was not.
- What an `fsync` promised stays through a power cut: bytes that leave the tables for a blob are synced there before the record
  that drops their chunks; the bytes that a truncation cuts off, and the blob that a removal or a truncation to nothing drops,
  are given back only after the record that says so is on the disk.
- After a power cut a blob may be shorter than recorded, where nothing was synced: the rest reads as zeros.
"""

from __future__ import annotations

import errno
from typing import Final

from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.posix.notes import Notes
from memdir.fs.posix.place import ABSENT, IN_CHUNKS, BlobStore
from memdir.fs.posix.privileges import PRIVILEGES, without_privileges
from memdir.fs.posix.state import CHUNK_BYTES
from memdir.fs.posix.txn import CUT, Txn
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE, Data, Inode, ReadResult

MOVE_MAX_CHUNKS: Final = 64
"""A file with more chunks than this in the tables (8 MiB; an older version wrote it) stays there: moving takes long."""
_ZEROS: Final = memoryview(bytes(CHUNK_BYTES))


class PlacedOps(Notes):
    """The parts of content operations that concern files with a place. The lock is held."""

    def _blob_store(self) -> BlobStore:
        if self._blobs is None:
            raise FsError(errno.EIO, "large contents are elsewhere, and this filesystem has no place for them")
        return self._blobs

    def _check_present(self, inode: Inode) -> None:
        if inode.place == ABSENT:
            raise ContentsAbsentError(inode.ino)

    def _read_placed(self, inode: Inode, offset: int, end: int) -> ReadResult:
        self._check_present(inode)
        data = self._blob_store().read(inode.ino, inode.place, offset, end - offset)
        missing = end - offset - len(data)
        if not missing:
            return data
        parts: list[Data] = [data] if data else []
        while missing:
            parts.append(_ZEROS[:missing])
            missing -= len(parts[-1])
        return parts[0] if len(parts) == 1 else parts

    def _in_blob(self, inode: Inode) -> bool:
        """Whether the contents are in a blob, from now on if they are large and can be moved there."""
        if inode.place > 0:
            return True
        self._check_present(inode)
        contents = self._contents(inode.ino)
        if self._blobs is None or max(len(contents.chunks), len(contents.stored)) > MOVE_MAX_CHUNKS:
            return False
        self._move_to_blob(inode)
        return True

    def _move_to_blob(self, inode: Inode) -> None:
        """Same bytes, another place: no version, no note."""
        ino, blobs, contents = inode.ino, self._blob_store(), self._contents(inode.ino)
        indexes = sorted(contents.chunks.keys() | contents.stored)
        blob = blobs.create(ino)
        try:
            for index in indexes:
                chunk = self._chunk(contents, ino, index)
                if chunk is not None:
                    blobs.write(ino, blob, index * CHUNK_BYTES, chunk)
            blobs.resize(ino, blob, inode.size)
            if indexes and self._is_promised(ino):
                self._sync_blob(ino, blob)
            txn = self._begin(quiet=True)
            txn.edit(inode).place = blob
            if indexes:
                txn.contents.append((CUT, ino, 0, 0))
            self._commit(txn)
        except BaseException:
            blobs.discard(ino, blob)
            raise

    def _trim(self, inode: Inode) -> None:
        """Let the blob end where the file does, so that no byte from behind the end shows up when the file grows. What stands
        there may have been synced as a part of a longer file: it goes only when the record that cut it off is on the disk."""
        blobs = self._blob_store()
        if blobs.size(inode.ino, inode.place) > inode.size:
            self._sync_log()
            blobs.resize(inode.ino, inode.place, inode.size)
        if blobs.is_cut(inode.place):
            self._sync_blob(inode.ino, inode.place)  # a power cut must not undo it once the file has grown

    def _stage_written(self, txn: Txn, inode: Inode, size: int, *, is_new: bool) -> None:
        """The row after contents changed; `is_new` unless an earlier transaction of the same operation said so already."""
        draft = txn.edit(inode)
        draft.size = size
        if is_new:
            draft.version += 1
        draft.mtime_ns = draft.ctime_ns = txn.now_ns
        if draft.mode & PRIVILEGES:
            draft.mode = without_privileges(draft.mode)
        self._touch_rules(inode.ino)
        self._note_put(txn, inode)

    def _record_written(self, inode: Inode, size: int, *, is_new: bool = True) -> None:
        txn = self._begin()
        self._stage_written(txn, inode, size, is_new=is_new)
        self._commit(txn)

    def _write_blob(self, inode: Inode, offset: int, data: Data) -> None:
        blobs, ino, place, size = self._blob_store(), inode.ino, inode.place, inode.size
        end = offset + len(data)
        if end > size:
            self._trim(inode)
            blobs.check_room(end - max(offset, size))
        if offset < size:
            self._record_written(inode, size)
        if end <= size:
            blobs.write(ino, place, offset, data)
            return
        try:
            blobs.write(ino, place, offset, data)
            self._record_written(inode, end, is_new=offset >= size)
        except FsError:
            blobs.resize(ino, place, size)
            raise

    def _fallocate_blob(self, inode: Inode, offset: int, end: int, mode: int) -> None:
        blobs, ino, place, size = self._blob_store(), inode.ino, inode.place, inode.size
        grows = end > size and not mode & FALLOC_KEEP_SIZE
        zeroes = bool(mode & (FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE)) and offset < size
        if end > size:
            self._trim(inode)
        if not mode & FALLOC_PUNCH_HOLE:
            blobs.allocate(ino, place, offset, end)
        if zeroes:
            self._record_written(inode, size)
            blobs.zero(ino, place, offset, min(end, size), allocated=not mode & FALLOC_PUNCH_HOLE)
        if grows:
            blobs.resize(ino, place, end)
            self._record_written(inode, end, is_new=not zeroes)
        if not grows and not zeroes:
            self._touch(inode)

    def _touch(self, inode: Inode) -> None:
        """An allocation after which no byte reads differently moves the times all the same: file_modified() in Linux."""
        txn = self._begin()
        draft = txn.edit(inode)
        draft.mtime_ns = draft.ctime_ns = txn.now_ns
        draft.mode = without_privileges(draft.mode)
        self._commit(txn)

    def _seek_blob(self, inode: Inode, offset: int, *, hole: bool) -> int:
        found = self._blob_store().seek(inode.ino, inode.place, offset, hole=hole)
        if hole:
            return offset if found is None else min(found, inode.size)
        if found is None or found >= inode.size:
            raise FsError(errno.ENXIO)
        return found

    def _stage_placed_size(self, inode: Inode, draft: Inode, size: int) -> None:
        """Truncation of a file with a place; `_finish_size` goes on once it is recorded."""
        if not size and inode.ino not in self._lent:  # the kernel goes on writing to the blob of a lent one
            draft.place, draft.target = IN_CHUNKS, None
        elif size != inode.size:
            self._check_present(inode)
            if size > inode.size:
                self._trim(inode)
                self._blob_store().resize(inode.ino, inode.place, size)

    def _finish_size(self, inode: Inode) -> None:
        self._touch_rules(inode.ino)
        if inode.place > 0 and inode.ino in self._lent:
            self._trim(inode)
        elif inode.place > 0:
            self._note_cut(inode)

    def _touch_rules(self, ino: int) -> None:
        """What changes chunks says so when it is applied; nothing is applied to a blob."""
        if ino == self._ignore_ino:
            self._rules_stale = self._hindered = True
