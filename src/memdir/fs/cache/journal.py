"""The redo journal: what makes an answered operation survive the death of the process before SQLite has it.

A folder holds segments `journal-<first lsn, 16 hex digits>`: a header, then records. A record is

    length u32 | crc32 u32 | lsn u64 | synced_lsn u64 | body

little-endian; the checksum covers everything behind itself. `append` hands a record to the kernel with one write before
the operation is answered: the page cache keeps it when the process is killed. `sync` (fdatasync) makes it survive a power cut.

`synced_lsn` is the last record known to be on disk when this one was written. It tells two cases apart at replay when a bad
record is followed by good ones: in a region that was never synced this is what a power cut may leave (nobody was promised
anything there), in a synced region it is damage.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from memdir.core.errors import CorruptError, VersionError
from memdir.core.limits import MIB
from memdir.fs.errors import FsError
from memdir.fs.types import Data

SEGMENT_MAX_BYTES: Final = 64 * MIB
RECORD_MAX_BYTES: Final = 1 << 31
PREFIX: Final = "journal-"
FS_ID_BYTES: Final = 16

_log = logging.getLogger(__name__)

_MAGIC: Final = b"memdirJ1"
_HEAD: Final = struct.Struct("<8s16sQ")
"""magic, id of the filesystem, first lsn"""
_RECORD: Final = struct.Struct("<IIQQ")
_CHECKED: Final = struct.Struct("<QQ")
_LENGTH: Final = struct.Struct("<II")
_JOIN_MAX_BYTES: Final = 32 * 1024
"""A record is joined and written with `write`, unless its last part is larger than this: then `writev` takes it in pieces."""
_BROKEN: Final = "the journal is broken; mount again"
_TOO_LARGE: Final = "one operation is too large for the journal"
_SEARCH_LSNS: Final = 64
_SEARCH_MAX_BYTES: Final = 512 * MIB
"""Bounds of the search for a good record behind a damaged one."""
_IOV_MAX: Final = 1024
"""Pieces in one `writev` (Linux UIO_MAXIOV)."""


@dataclass(slots=True)
class _Segment:
    path: Path
    first_lsn: int
    fd: int
    size_bytes: int
    synced_bytes: int = 0
    is_full: bool = False
    """Nothing is appended any more, whatever its size."""


class Journal:
    """Appending side. `append` is called under the filesystem's lock; `sync` and `release` from any thread."""

    def __init__(self, folder: Path, *, fs_id: bytes, next_lsn: int) -> None:
        self._folder = folder
        self._fs_id = fs_id
        self._segments: list[_Segment] = []
        self._lock = threading.Lock()
        """Guards `_segments` and descriptors against being closed during a sync."""
        self.next_lsn = next_lsn
        self._synced_lsn = next_lsn - 1
        self._failed_lsn = 0
        """The last record of a sync that failed, until SQLite holds it durably; 0 for none."""
        self._broken = False

    @property
    def last_lsn(self) -> int:
        return self.next_lsn - 1

    @property
    def segment_count(self) -> int:
        return len(self._segments)

    @property
    def size_bytes(self) -> int:
        """What all segments take on the disk."""
        return sum(segment.size_bytes for segment in tuple(self._segments))

    @property
    def trouble(self) -> str | None:
        """Why nothing can be appended until the next mount; None when all is well."""
        return _BROKEN if self._broken else None

    def adopt(self, torn: Torn | None) -> None:
        """Go on behind the segments that an earlier process left, because SQLite could not take their records yet. `torn` says
        where replay ended: what stands behind it was never applied and must not stand before the records to come."""
        for path in segment_paths(self._folder):
            if torn is not None and (path.name > torn.path.name or (path == torn.path and torn.offset < _HEAD.size)):
                path.unlink()
                continue
            fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            if torn is not None and path == torn.path:
                os.ftruncate(fd, torn.offset)
            size_bytes = os.fstat(fd).st_size
            self._segments.append(_Segment(path, _first_lsn(path) or 0, fd, size_bytes, is_full=True))
        if self._segments:
            self._synced_lsn = self._segments[0].first_lsn - 1

    def rotate(self) -> None:
        """The next record begins a segment, so that `release` may take all of them. Called under the filesystem's lock."""
        if self._segments:
            self._segments[-1].is_full = True

    def append(self, parts: list[Data]) -> int:
        """Write one record, large data last; returns its size in bytes.

        FsError ENOSPC, EDQUOT, EIO, EFBIG: then nothing was written.
        """
        if self._broken:
            raise FsError(errno.EIO, _BROKEN)
        segment = self._segments[-1] if self._segments else None
        if segment is None or segment.is_full or segment.size_bytes >= SEGMENT_MAX_BYTES:
            segment = self._open_segment()
        lsn = self.next_lsn
        checked = _CHECKED.pack(lsn, self._synced_lsn)
        if len(parts[-1]) > _JOIN_MAX_BYTES:
            total = self._append_large(segment, checked, parts)
        else:
            rest = b"".join((checked, *parts))
            total = len(rest) + _LENGTH.size
            if total > RECORD_MAX_BYTES:
                raise FsError(errno.EFBIG, _TOO_LARGE)
            self._write(segment, [_LENGTH.pack(total - _RECORD.size, zlib.crc32(rest)) + rest], total)
        segment.size_bytes += total
        self.next_lsn = lsn + 1
        return total

    def _append_large(self, segment: _Segment, checked: bytes, parts: list[Data]) -> int:
        """Without joining the parts: the copy would cost more than the pieces do."""
        length = sum(map(len, parts))
        if _RECORD.size + length > RECORD_MAX_BYTES:
            raise FsError(errno.EFBIG, _TOO_LARGE)
        crc = zlib.crc32(checked)
        for part in parts:
            crc = zlib.crc32(part, crc)
        self._write(segment, [_LENGTH.pack(length, crc), checked, *parts], _RECORD.size + length)
        return _RECORD.size + length

    def _write(self, segment: _Segment, pieces: list[Data], total: int) -> None:
        """All of it, or the segment as it was."""
        try:
            written = os.write(segment.fd, pieces[0]) if len(pieces) == 1 else os.writev(segment.fd, pieces[:_IOV_MAX])
            while written < total:
                joined = memoryview(b"".join(pieces))
                more = os.write(segment.fd, joined[written:])
                written += more
        except OSError as error:
            self._undo(segment)
            raise FsError(error.errno or errno.EIO, f"the journal cannot be written: {error.strerror}") from error

    def _undo(self, segment: _Segment) -> None:
        """Cut a half-written record off. When even that fails the segment is left behind: replay stops at its torn end, so a
        record of a later segment would never be reached; refuse to go on instead."""
        try:
            os.ftruncate(segment.fd, segment.size_bytes)
        except OSError as error:
            self._broken = True
            raise FsError(errno.EIO, f"the journal cannot be repaired after a failed write: {error.strerror}") from error

    def _open_segment(self) -> _Segment:
        path = self._folder / f"{PREFIX}{self.next_lsn:016x}"
        head = _HEAD.pack(_MAGIC, self._fs_id, self.next_lsn)
        try:
            fd = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise FsError(error.errno or errno.EIO, f"the journal cannot be written: {error.strerror}") from error
        try:
            written = os.write(fd, head)
            number = 0 if written == len(head) else errno.ENOSPC
        except OSError as error:
            number = error.errno or errno.EIO
        if number:
            os.close(fd)
            with contextlib.suppress(OSError):  # an empty one says nothing, and the next try begins it anew
                path.unlink()
            raise FsError(number, f"the journal cannot be written: {os.strerror(number)}")
        segment = _Segment(path, self.next_lsn, fd, len(head))
        with self._lock:
            self._segments.append(segment)
        return segment

    def sync(self) -> None:
        """Everything appended so far is on disk when this returns. FsError EIO: the disk did not take it."""
        with self._lock:
            target_lsn = self.last_lsn
            if target_lsn <= self._synced_lsn:
                return
            if self._failed_lsn:
                raise FsError(errno.EIO, "an earlier sync of the journal failed")
            try:
                for segment in self._segments:
                    size_bytes = segment.size_bytes
                    if segment.synced_bytes == size_bytes:
                        continue
                    os.fdatasync(segment.fd)
                    if not segment.synced_bytes:
                        sync_folder(self._folder)  # the name of a new segment must last, too
                    segment.synced_bytes = size_bytes
            except OSError as error:
                # The kernel may have dropped the pages: a second try that succeeds would prove nothing.
                self._failed_lsn = target_lsn
                raise FsError(error.errno or errno.EIO, f"the journal cannot be synced: {error.strerror}") from error
            self._synced_lsn = max(self._synced_lsn, target_lsn)

    def needs_release(self) -> bool:
        """Whether records wait for SQLite to hold them durably: a full segment, or one that the disk refused."""
        return len(self._segments) > 1 or self._failed_lsn > 0

    def release(self, durable_lsn: int) -> None:
        """SQLite holds everything up to `durable_lsn` for good: delete the segments before it, except the one in use."""
        with self._lock:
            while len(self._segments) > 1 and self._segments[1].first_lsn <= durable_lsn + 1:
                self._remove(self._segments.pop(0))
            if self._segments and self._segments[-1].is_full and self.last_lsn <= durable_lsn:
                self._remove(self._segments.pop())
            if durable_lsn >= self._failed_lsn:
                self._failed_lsn = 0

    def close(self, *, durable_lsn: int) -> None:
        """Close every segment; with everything durable elsewhere they are deleted as well."""
        with self._lock:
            for segment in self._segments:
                if durable_lsn >= self.last_lsn:
                    self._remove(segment)
                else:
                    os.close(segment.fd)
            self._segments.clear()

    @staticmethod
    def _remove(segment: _Segment) -> None:
        """A segment that cannot be deleted costs space until the next open, which knows that SQLite has all of it."""
        os.close(segment.fd)
        try:
            segment.path.unlink(missing_ok=True)
        except OSError as error:
            _log.warning("%s cannot be deleted: %s", segment.path, error.strerror)


def sync_folder(folder: Path) -> None:
    """Make created and deleted names in `folder` survive a power cut."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


# ---- reading


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Where reading stopped before the end of the segments."""

    path: Path
    offset: int
    reason: str
    damaged: bool
    """True when good records that vouch for it follow: the disk lost what it had promised. False for an unfinished write."""


def segment_paths(folder: Path) -> list[Path]:
    """The segments in order."""
    return sorted(path for path in folder.iterdir() if path.name.startswith(PREFIX) and _first_lsn(path) is not None)


def identity(folder: Path) -> tuple[bytes, int] | None:
    """The filesystem's id and the first lsn that the segments tell of; None without a readable segment."""
    for path in segment_paths(folder):
        head = path.read_bytes()[: _HEAD.size]
        if len(head) == _HEAD.size:
            magic, fs_id, first_lsn = _HEAD.unpack(head)
            if magic == _MAGIC:
                return fs_id, first_lsn
    return None


def damaged_name(path: Path) -> Path:
    """Where a segment is set aside, out of the sight of replay."""
    return path.with_name(f"damaged-{path.name}")


def _first_lsn(path: Path) -> int | None:
    digits = path.name[len(PREFIX) :]
    try:
        return int(digits, 16) if len(digits) == 16 else None
    except ValueError:
        return None


def replay(folder: Path, *, fs_id: bytes, applied_lsn: int, apply: Callable[[int, bytes], None]) -> Torn | None:
    """Call `apply(lsn, body)` for every record behind `applied_lsn`, in order; says where and why it had to stop early.
    VersionError: a newer memdir wrote them.

    Memory: one segment at a time.
    """
    expected = applied_lsn + 1
    segments = segment_paths(folder)
    for number, path in enumerate(segments):
        later = segments[number + 1 :]
        following = _first_lsn(later[0]) if later else None
        if following is not None and following <= expected:
            continue  # all of it is in SQLite
        data = path.read_bytes()
        if len(data) < _HEAD.size:
            return Torn(path=path, offset=0, reason="the header is cut off", damaged=_vouched(data, 0, expected, later))
        magic, owner, first_lsn = _HEAD.unpack_from(data)
        if magic != _MAGIC and magic.startswith(_MAGIC[:-1]) and magic[-1:].isdigit():
            raise VersionError(f"{path} was made by a newer memdir", hint="upgrade memdir; nothing was touched")
        if magic != _MAGIC or first_lsn != _first_lsn(path):
            damaged = _vouched(data, 0, expected, later)
            return Torn(path=path, offset=0, reason="the header is damaged", damaged=damaged)
        if owner != fs_id:
            return Torn(path=path, offset=0, reason="it belongs to another filesystem", damaged=True)
        if first_lsn > expected:
            damaged = _vouched(b"", 0, expected, [path, *later])
            return Torn(path=path, offset=0, reason=f"records {expected} to {first_lsn - 1} are missing", damaged=damaged)
        at = _HEAD.size
        for end, lsn, body in _records(data, first_lsn):
            if lsn >= expected:
                try:
                    apply(lsn, body)
                except CorruptError as error:
                    return Torn(path=path, offset=at, reason=error.message, damaged=True)
                expected = lsn + 1
            at = end
        if at < len(data):
            damaged = _vouched(data, at, expected, later)
            return Torn(path=path, offset=at, reason="a record is cut off or fails its checksum", damaged=damaged)
    return None


def _records(data: bytes, first_lsn: int) -> Iterator[tuple[int, int, bytes]]:
    """(end offset, lsn, body) of every good record, up to the first bad one."""
    at, lsn = _HEAD.size, first_lsn
    while True:
        found = _record_at(data, at)
        if found is None or found[0] != lsn:
            return
        body = found[2]
        at += _RECORD.size + len(body)
        yield at, lsn, body
        lsn += 1


def _record_at(data: bytes, at: int) -> tuple[int, int, bytes] | None:
    """(lsn, synced_lsn, body) when a good record stands at `at`."""
    if at + _RECORD.size > len(data):
        return None
    length, crc, lsn, synced_lsn = _RECORD.unpack_from(data, at)
    end = at + _RECORD.size + length
    if end > len(data) or zlib.crc32(memoryview(data)[at + _LENGTH.size : end]) != crc:
        return None
    return lsn, synced_lsn, data[at + _RECORD.size : end]


def _vouched(data: bytes, at: int, lost_lsn: int, later: list[Path]) -> bool:
    """Whether a good record behind the bad one at `at` says that record `lost_lsn` was on disk.

    Records behind a damaged length are found by the lsn that they must carry; a few lsns are enough. Looking costs a bounded
    amount of work: when contents look like records too often, the answer is the one that throws nothing away.
    """
    if any(_synced_at_start(path) >= lost_lsn for path in later):
        return True
    budget_bytes = _SEARCH_MAX_BYTES
    for lsn in range(lost_lsn + 1, lost_lsn + 1 + _SEARCH_LSNS):
        wanted = struct.pack("<Q", lsn)
        position = data.find(wanted, at + _LENGTH.size)
        while position >= 0:
            budget_bytes -= _checked_bytes(data, position - _LENGTH.size)
            if budget_bytes < 0:
                return True
            found = _record_at(data, position - _LENGTH.size)
            if found is not None and found[0] == lsn and _any_synced(data, position - _LENGTH.size, lost_lsn):
                return True
            position = data.find(wanted, position + 1)
    return False


def _checked_bytes(data: bytes, at: int) -> int:
    """How many bytes testing for a record at `at` reads."""
    length = _LENGTH.unpack_from(data, at)[0]
    return length if at + _RECORD.size + length <= len(data) else _RECORD.size


def _any_synced(data: bytes, at: int, lost_lsn: int) -> bool:
    """Whether a record from the good one at `at` on vouches for `lost_lsn`."""
    while True:
        found = _record_at(data, at)
        if found is None:
            return False
        if found[1] >= lost_lsn:
            return True
        at += _RECORD.size + len(found[2])


def _synced_at_start(path: Path) -> int:
    """What the records of a later segment vouch for; -1 when it has none."""
    data = path.read_bytes()
    at, best = _HEAD.size, -1
    while True:
        found = _record_at(data, at)
        if found is None:
            return best
        best = max(best, found[1])
        at += _RECORD.size + len(found[2])
