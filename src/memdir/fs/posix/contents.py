"""Bytes of regular files: read, write, holes."""

from __future__ import annotations

import errno
import stat
from functools import partial
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.posix import holes
from memdir.fs.posix.place import ABSENT
from memdir.fs.posix.placed import PlacedOps
from memdir.fs.posix.privileges import PRIVILEGES, without_privileges
from memdir.fs.posix.state import CHUNK_BYTES, SIZE_MAX_BYTES
from memdir.fs.posix.txn import PATCH, ZERO
from memdir.fs.types import (
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE,
    FALLOC_ZERO_RANGE,
    Data,
    Inode,
    ReadResult,
)

_ZEROS: Final = memoryview(bytes(CHUNK_BYTES))
_FALLOC_MODES: Final = (
    0,
    FALLOC_KEEP_SIZE,
    FALLOC_PUNCH_HOLE | FALLOC_KEEP_SIZE,
    FALLOC_ZERO_RANGE,
    FALLOC_ZERO_RANGE | FALLOC_KEEP_SIZE,
)


class ContentOps(PlacedOps):
    """See `fs.vfs.Vfs` for what each method promises. Buffers that `read` returns never change afterwards."""

    _given_back: int = 0
    """How many removed or shortened files have given their space back to the disk."""

    def _file(self, ino: int) -> Inode:
        """A regular file; EISDIR, EINVAL."""
        inode = self._inodes.get(ino) or self._inode(ino)
        if ino in self._lent:
            self.refresh(ino)
        if inode.mode & 0o170000 != stat.S_IFREG:
            raise FsError(errno.EISDIR if inode.is_dir else errno.EINVAL)
        return inode

    def allocated_bytes(self, ino: int) -> int:
        with self._lock:
            inode = self._inode(ino)
            if inode.place > 0:
                return self._blob_store().allocated_bytes(ino, inode.place)
            if inode.place == ABSENT or not inode.is_file:  # nothing here, but a tool that believed that would copy zeros
                return inode.size
            contents = self._contents(ino)
            return min(len(contents.chunks.keys() | contents.stored) * CHUNK_BYTES, inode.size)

    def read(self, ino: int, offset: int, size: int) -> ReadResult:
        if offset < 0 or size < 0:
            raise FsError(errno.EINVAL)
        with self._lock:
            inode = self._file(ino)
            end = min(offset + size, inode.size)
            if offset >= end:
                return b""
            if self._uses is not None and inode.place != ABSENT:
                self._uses[ino] = int(self._clock.monotonic_s())
            return self._read(inode, offset, end)

    def _read(self, inode: Inode, offset: int, end: int) -> ReadResult:
        return self._read_placed(inode, offset, end) if inode.place else self._read_chunks(inode.ino, offset, end)

    def _read_chunks(self, ino: int, offset: int, end: int) -> ReadResult:
        contents = self._contents(ino)
        index, start = divmod(offset, CHUNK_BYTES)
        parts: list[Data] = []
        while offset < end:
            stop = min(start + end - offset, CHUNK_BYTES)
            chunk = self._chunk(contents, ino, index)
            if chunk is None or start >= len(chunk):
                parts.append(_ZEROS[: stop - start])
            else:
                parts.append(chunk if start == 0 and stop == len(chunk) and type(chunk) is bytes else bytes(chunk[start:stop]))
                if stop > len(chunk):
                    parts.append(_ZEROS[: stop - max(start, len(chunk))])
            offset += stop - start
            index, start = index + 1, 0
        return parts[0] if len(parts) == 1 else parts

    def write(self, ino: int, offset: int, data: Data) -> int:
        size = len(data)
        if offset < 0:
            raise FsError(errno.EINVAL)
        if offset + size > SIZE_MAX_BYTES:
            raise FsError(errno.EFBIG)
        given_back = self._given_back
        try:
            self._write(ino, offset, data)
        except FsError as error:
            if error.errno != errno.ENOSPC or not self._reclaim(given_back):
                raise
            self._write(ino, offset, data)
        self._announce()
        return size

    def _write(self, ino: int, offset: int, data: Data) -> None:
        with self._lock:
            self._prepare()
            inode = self._file(ino)
            end = max(inode.size, offset + len(data))
            if not len(data):
                return
            if (inode.place or end >= self._blob_min_bytes) and self._in_blob(inode):
                self._write_blob(inode, offset, data)
            else:
                self._write_chunks(inode, offset, data, end)

    def _write_chunks(self, inode: Inode, offset: int, data: Data, size: int) -> None:
        txn = self._begin()
        draft = txn.edit(inode)
        draft.size = size
        draft.version += 1
        draft.mtime_ns = draft.ctime_ns = txn.now_ns
        if draft.mode & PRIVILEGES:
            draft.mode = without_privileges(draft.mode)
        txn.contents.append((PATCH, inode.ino, offset, data))
        self._note_put(txn, inode)
        self._commit(txn)

    def _reclaim(self, given_back: int) -> bool:
        """The disk is full. Whether space of removed files was given back since `_given_back` was `given_back`, so that trying
        again makes sense. Called without the lock."""
        return self._given_back > given_back

    def fallocate(self, ino: int, offset: int, length: int, mode: int) -> None:
        if mode not in _FALLOC_MODES:
            raise FsError(errno.EOPNOTSUPP)
        if offset < 0 or length <= 0:
            raise FsError(errno.EINVAL)
        with self._lock:
            self._prepare()
            inode = self._file(ino)
            end = offset + length
            if end > SIZE_MAX_BYTES:
                raise FsError(errno.EFBIG)
            is_large = end >= self._blob_min_bytes and not mode & FALLOC_PUNCH_HOLE
            if (inode.place or is_large) and self._in_blob(inode):
                self._fallocate_blob(inode, offset, end, mode)
            else:
                self._fallocate_chunks(inode, offset, end, mode)
        self._announce()

    def _fallocate_chunks(self, inode: Inode, offset: int, end: int, mode: int) -> None:
        """Chunks cannot be reserved; what is this small finds room as long as anything does."""
        txn = self._begin()
        draft = txn.edit(inode)
        grown = not mode & FALLOC_KEEP_SIZE and end > inode.size
        if grown:
            draft.size = end
        zeroed = bool(mode & (FALLOC_PUNCH_HOLE | FALLOC_ZERO_RANGE)) and offset < inode.size
        if zeroed:
            txn.contents.append((ZERO, inode.ino, offset, min(end, inode.size)))
        draft.mtime_ns = draft.ctime_ns = txn.now_ns  # also when no byte reads differently: file_modified() in Linux
        draft.mode = without_privileges(draft.mode)
        if grown or zeroed:
            draft.version += 1
            self._note_put(txn, inode)
        self._commit(txn)

    def seek_data(self, ino: int, offset: int, *, hole: bool) -> int:
        with self._lock:
            inode = self._file(ino)
            if offset < 0 or offset >= inode.size:
                raise FsError(errno.ENXIO)
            if inode.place:
                self._check_present(inode)
                return self._seek_blob(inode, offset, hole=hole)
            contents = self._contents(ino)
            found = holes.seek(
                partial(self._chunk, contents, ino),
                contents.chunks.keys() | contents.stored,
                inode.size,
                offset,
                hole=hole,
            )
            if found is None:
                raise FsError(errno.ENXIO)
            return found
