"""Large contents as plain sparse files beside the tables: `blobs/<inode>-<number>`, both in hex.

The inode stands in the name so that a wrong number in the tables can never show one file's bytes in another. A number is given
out once while the filesystem is open, and what no row names is swept away at the next open, so an old record never meets a new
blob of its number. What makes all this safe over a crash is written down in `fs.posix.placed`.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import logging
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.limits import MIB
from memdir.core.paths import ensure_dir
from memdir.fs.cache.journal import sync_folder
from memdir.fs.errors import FsError
from memdir.fs.types import FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE, FALLOC_ZERO_RANGE, Data

FOLDER_NAME: Final = "blobs"
STAGED_PREFIX: Final = "staged-"
OPEN_MAX: Final = 64
"""Descriptors kept open; the one not used for the longest time is closed first."""
RESERVE_MAX_BYTES: Final = 32 * MIB
_RESERVE_PART: Final = 50
"""Blobs leave a fiftieth of the disk, at most RESERVE_MAX_BYTES, to the journal and the tables: without room for a record
nothing could be removed any more."""
_UNCHECKED_MAX_BYTES: Final = 4 * MIB
"""The free space is asked for once in so many written bytes, and every time when it becomes scarce."""
MODE: Final = 0o600
LENT_MODE: Final = 0o700
"""The kernel may be writing to the file by itself (`fs.cache.lending`)."""
_ZEROS: Final = bytes(MIB)
_BLOCK_BYTES: Final = 512
"""The unit of st_blocks, whatever the disk's own blocks are."""
_SYNC_FILE_RANGE_WRITE: Final = 2
_NO_SUPPORT: Final = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})

_libc: Final = ctypes.CDLL(None, use_errno=True)
"""For fallocate(2) with a mode and sync_file_range(2), which `os` lacks; the GIL is released during a call."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BlobFile:
    """One file found in the folder."""

    ino: int
    blob: int
    size_bytes: int
    mtime_ns: int
    is_lent: bool


class Blobs:
    """The blobs of one cache folder: a `fs.posix.place.BlobStore`. Methods are called with the filesystem's lock held, except
    `sync`, `sync_all`, `remove` and what `StagedBlob` does: these use descriptors of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / FOLDER_NAME
        self._made = False
        self._numbers = threading.Lock()
        self._next = 1
        self._open: dict[int, int] = {}
        """Descriptors by number, the least recently used first."""
        self._dirty: dict[int, tuple[int, int]] = {}
        """Blobs with bytes that no sync has reached: inode, and which change was the last."""
        self._changes = 0
        self._new: set[int] = set()
        """Blobs whose names no sync has reached."""
        self._cut: set[int] = set()
        """Blobs that were cut since they were synced."""
        self._failed: set[int] = set()
        """Blobs of which the disk refused bytes: the kernel may have dropped them, so a later sync would prove nothing."""
        self.has_orphans = False
        """The disk did not let a blob go that no row names: the next open looks for such."""
        self._unchecked_bytes = _UNCHECKED_MAX_BYTES

    # ---- finding

    def path(self, ino: int, blob: int) -> Path:
        return blob_path(self.folder.parent, ino, blob)

    def files(self) -> Iterator[BlobFile]:
        """Every blob in the folder; numbers given out from now on are beyond them."""
        for file in blob_files(self.folder.parent):
            self.number_after(file.blob)
            yield file

    def number_after(self, highest: int) -> None:
        """Numbers up to `highest` are in use."""
        with self._numbers:
            self._next = max(self._next, highest + 1)

    def take_number(self) -> int:
        with self._numbers:
            number = self._next
            self._next = number + 1
            return number

    def descriptor(self, ino: int, blob: int) -> int:
        """An open descriptor, valid while the lock is held."""
        fd = self._open.pop(blob, -1)
        if fd < 0:
            if len(self._open) >= OPEN_MAX:
                os.close(self._open.pop(next(iter(self._open))))
            try:
                fd = os.open(self.path(ino, blob), os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError as error:
                raise FsError(errno.EIO, f"the contents of inode {ino} (blob {blob}) are not there; run memdir fsck") from error
            except OSError as error:
                raise _refused(error) from error
        self._open[blob] = fd
        return fd

    # ---- fs.posix.place.BlobStore

    def create(self, ino: int) -> int:
        self.make_folder()
        blob = self.take_number()
        try:
            fd = os.open(self.path(ino, blob), os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, MODE)
        except OSError as error:
            raise _refused(error) from error
        if len(self._open) >= OPEN_MAX:
            os.close(self._open.pop(next(iter(self._open))))
        self._open[blob] = fd
        self._new.add(blob)
        return blob

    def make_again(self, ino: int, blob: int) -> None:
        """An empty blob in the place of one that a power cut took."""
        self.make_folder()
        os.close(os.open(self.path(ino, blob), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, MODE))

    def discard(self, ino: int, blob: int) -> None:
        self.let_go(blob)
        self.remove(ino, blob)

    def size(self, ino: int, blob: int) -> int:
        return os.fstat(self.descriptor(ino, blob)).st_size

    def allocated_bytes(self, ino: int, blob: int) -> int:
        """Through the name when the blob is not open: a listing of many large files must not cost the descriptors in use.
        A disk that counts only what it has placed already (Btrfs, ZFS) says nothing for bytes just written, which copying
        tools would take for one large hole: then the size counts."""
        fd = self._open.get(blob)
        try:
            found = os.stat(self.path(ino, blob)) if fd is None else os.fstat(fd)
        except FileNotFoundError:
            return 0  # a read says that it is missing
        if not found.st_blocks and found.st_size and self.seek(ino, blob, 0, hole=False) is not None:
            return found.st_size
        return found.st_blocks * _BLOCK_BYTES

    def read(self, ino: int, blob: int, offset: int, size: int) -> bytes:
        fd = self.descriptor(ino, blob)
        try:
            data = os.pread(fd, size, offset)
            while 0 < len(data) < size:
                more = os.pread(fd, size - len(data), offset + len(data))
                if not more:
                    break
                data += more
        except OSError as error:
            raise _refused(error) from error
        return data

    def write(self, ino: int, blob: int, offset: int, data: Data) -> None:
        fd = self.descriptor(ino, blob)
        self.soil(ino, blob)
        _write_all(fd, offset, data)

    def check_room(self, size_bytes: int) -> None:
        self._unchecked_bytes += size_bytes
        if self._unchecked_bytes < _UNCHECKED_MAX_BYTES:
            return
        found = os.statvfs(self.folder.parent)
        left = found.f_bavail * found.f_frsize - size_bytes - self._reserve(found)
        if left < 0:
            raise FsError(errno.ENOSPC, "the disk under the cache is full")
        if left > 2 * _UNCHECKED_MAX_BYTES:
            self._unchecked_bytes = 0

    @staticmethod
    def _reserve(found: os.statvfs_result) -> int:
        return min(RESERVE_MAX_BYTES, found.f_blocks * found.f_frsize // _RESERVE_PART)

    def reserve_bytes(self, found: os.statvfs_result) -> int:
        """What of the free space blobs never take."""
        return self._reserve(found)

    def resize(self, ino: int, blob: int, size: int) -> None:
        fd = self.descriptor(ino, blob)
        try:
            if size < os.fstat(fd).st_size:
                self._cut.add(blob)
            os.ftruncate(fd, size)
        except OSError as error:
            raise _refused(error) from error
        self.soil(ino, blob)

    def is_cut(self, blob: int) -> bool:
        return blob in self._cut

    def zero(self, ino: int, blob: int, start: int, end: int, *, allocated: bool) -> None:
        fd = self.descriptor(ino, blob)
        end = min(end, os.fstat(fd).st_size)
        if start >= end:
            return
        self.soil(ino, blob)
        mode = FALLOC_ZERO_RANGE if allocated else FALLOC_PUNCH_HOLE
        number = fallocate(fd, mode | FALLOC_KEEP_SIZE, start, end - start)
        if number in _NO_SUPPORT:  # tmpfs knows no zero range, others know neither
            for offset in range(start, end, len(_ZEROS)):
                _write_all(fd, offset, memoryview(_ZEROS)[: min(len(_ZEROS), end - offset)])
        elif number:
            raise FsError(number)

    def allocate(self, ino: int, blob: int, start: int, end: int) -> None:
        fd = self.descriptor(ino, blob)
        self._unchecked_bytes = _UNCHECKED_MAX_BYTES
        found = os.fstat(fd)
        taken = (
            found.st_blocks * _BLOCK_BYTES
        )  # a sparse file may be far larger: filling its holes needs room like growing does
        self.check_room(max(end - max(start, found.st_size), end - start - taken, 0))
        number = fallocate(fd, FALLOC_KEEP_SIZE, start, end - start)
        if number and number not in _NO_SUPPORT:  # a disk that cannot reserve had the room a moment ago
            raise FsError(number)
        self.soil(ino, blob)

    def seek(self, ino: int, blob: int, offset: int, *, hole: bool) -> int | None:
        try:
            return os.lseek(self.descriptor(ino, blob), offset, os.SEEK_HOLE if hole else os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:
                return None
            raise _refused(error) from error

    def start_writeback(self, ino: int, blob: int) -> None:
        if blob in self._dirty:
            with contextlib.suppress(FsError):  # whoever reads it is told
                _libc.sync_file_range(self.descriptor(ino, blob), ctypes.c_int64(0), ctypes.c_int64(0), _SYNC_FILE_RANGE_WRITE)

    # ---- durability

    def soil(self, ino: int, blob: int) -> None:
        """It has bytes that no sync has reached."""
        self._changes += 1
        self._dirty[blob] = (ino, self._changes)

    def is_dirty(self, blob: int) -> bool:
        """Whether a power cut may still take bytes of it."""
        return blob in self._dirty or blob in self._new

    def sync(self, ino: int, blob: int) -> None:
        """The bytes written so far, and the blob's name, survive a power cut. EIO: the disk did not take them. Any thread."""
        if blob in self._failed:
            raise FsError(errno.EIO, "an earlier sync of this file failed")
        if not self.is_dirty(blob):
            return
        is_new, change = blob in self._new, self._dirty.get(blob)
        try:
            fd = os.open(self.path(ino, blob), os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:  # removed meanwhile
            return
        except OSError as error:
            raise _refused(error) from error
        try:
            os.fdatasync(fd)
            if is_new:
                sync_folder(self.folder)
                self._new.discard(blob)
        except OSError as error:
            self._failed.add(blob)
            raise _refused(error) from error
        finally:
            os.close(fd)
        if self._dirty.get(blob) == change:
            self._dirty.pop(blob, None)
            self._cut.discard(blob)

    def sync_all(self) -> None:
        """The same for every blob but those known to have failed. Any thread."""
        for blob, (ino, _) in list(self._dirty.items()):
            if blob not in self._failed:
                self.sync(ino, blob)

    def sync_names(self) -> None:
        """What was removed stays so through a power cut."""
        if self._made and self.folder.is_dir():
            try:
                sync_folder(self.folder)
            except OSError as error:
                raise _refused(error) from error

    # ---- removal

    def let_go(self, blob: int) -> None:
        """No row names it any more: forget what is known of it."""
        fd = self._open.pop(blob, -1)
        if fd >= 0:
            os.close(fd)
        self._dirty.pop(blob, None)
        self._new.discard(blob)
        self._cut.discard(blob)
        self._failed.discard(blob)

    def remove(self, ino: int, blob: int) -> None:
        """Delete the file. Any thread; giving back the space of a large one may take a while. A failure costs space
        until the next open, and nothing else."""
        self._made = True
        try:
            self.path(ino, blob).unlink(missing_ok=True)
        except OSError as error:
            _log.warning("blob %d of inode %d cannot be removed: %s", blob, ino, error)
            self.has_orphans = True

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)
        self._open.clear()

    # ---- staging

    def make_folder(self) -> None:
        if not self._made:
            try:
                if not self.folder.is_dir():
                    ensure_dir(self.folder)
                    sync_folder(self.folder.parent)
            except OSError as error:
                raise _refused(error) from error
            self._made = True

    def staged(self) -> StagedBlob:
        """Contents that come in pieces, for a file that may not exist yet."""
        self.make_folder()
        return StagedBlob(self)


class StagedBlob:
    """A blob in the making, used by one thread and without the filesystem's lock. `finish` or `abandon` ends it."""

    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs
        self._number = blobs.take_number()
        self._path = blobs.folder / f"{STAGED_PREFIX}{self._number:x}"
        self.size_bytes = 0
        try:
            self._fd = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, MODE)
        except OSError as error:
            raise _refused(error) from error

    def append(self, data: Data) -> None:
        self._blobs.check_room(len(data))
        _write_all(self._fd, self.size_bytes, data)
        self.size_bytes += len(data)

    def finish(self, ino: int) -> int:
        """Make it durable as a blob of `ino` that no record names yet; its number."""
        try:
            os.rename(self._path, self._blobs.path(ino, self._number))
            self._path = self._blobs.path(ino, self._number)
            os.fdatasync(self._fd)
            sync_folder(self._blobs.folder)
        except OSError as error:
            raise _refused(error) from error
        os.close(self._fd)
        self._fd = -1
        return self._number

    def abandon(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            with contextlib.suppress(FileNotFoundError):
                self._path.unlink()


def blob_path(cache_folder: Path, ino: int, blob: int) -> Path:
    """Where a blob is."""
    return cache_folder / FOLDER_NAME / f"{ino:x}-{blob:x}"


def blob_files(cache_folder: Path) -> Iterator[BlobFile]:
    """Every blob of a cache folder."""
    folder = cache_folder / FOLDER_NAME
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            parts = entry.name.split("-")
            try:
                ino, blob = (int(part, 16) for part in parts)
            except ValueError:
                continue
            found = entry.stat(follow_symlinks=False)
            yield BlobFile(
                ino=ino, blob=blob, size_bytes=found.st_size, mtime_ns=found.st_mtime_ns, is_lent=bool(found.st_mode & 0o100)
            )


def cut_file(path: Path, size_bytes: int) -> None:
    """Cut a blob that nobody has open, for good."""
    fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.ftruncate(fd, size_bytes)
        os.fdatasync(fd)
    finally:
        os.close(fd)


def remove_staged(folder: Path) -> None:
    """Delete what a download left unfinished. `folder` is the cache's."""
    for path in (folder / FOLDER_NAME).glob(f"{STAGED_PREFIX}*"):
        path.unlink()


def _write_all(fd: int, offset: int, data: Data) -> None:
    try:
        written = os.pwrite(fd, data, offset)
        while written < len(data):
            written += os.pwrite(fd, memoryview(data)[written:], offset + written)
    except OSError as error:
        raise _refused(error) from error


def fallocate(fd: int, mode: int, start: int, length: int) -> int:
    """fallocate(2); 0 or the errno."""
    if _libc.fallocate(fd, mode, ctypes.c_int64(start), ctypes.c_int64(length)) == 0:
        return 0
    return ctypes.get_errno()


def _refused(error: OSError) -> FsError:
    return FsError(error.errno or errno.EIO, f"large contents cannot be kept: {error.strerror}")
