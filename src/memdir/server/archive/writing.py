"""Archives as streams: tar (POSIX.1-2001 pax), the same in gzip, zip. Memory does not grow with the contents.

The same entries give the same bytes: no clock, no user names.
"""

from __future__ import annotations

import io
import stat
import struct
import tarfile
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from typing import Final, cast

from memdir.core.errors import CorruptError
from memdir.server.archive.members import PIECE_BYTES, ZIP_ENTRIES_MAX, Format, Member
from memdir.store.errors import InvalidError

_BLOCK: Final = 512
_GZIP_WINDOW: Final = 31
"""zlib: 15 bits, with gzip's header and trailer."""
_TYPES: Final = {"file": tarfile.REGTYPE, "dir": tarfile.DIRTYPE, "symlink": tarfile.SYMTYPE}
_STAT: Final = {"file": stat.S_IFREG, "dir": stat.S_IFDIR, "symlink": stat.S_IFLNK}
_DOS_FIRST_S: Final = 315_532_800
_DOS_LAST_S: Final = 4_354_819_198
"""1980 to 2107: what the date of a zip entry can say."""
_ZIP64_BYTES: Final = 1 << 31


def written(members: Iterable[Member], form: Format) -> Iterator[bytes]:
    """The archive, in pieces of about 1 MiB."""
    if form == "zip":
        return _gathered(_zip(members))
    pieces = _tar(members)
    return _gathered(_gzip(pieces) if form == "tar.gz" else pieces)


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Small pieces put together, so that each costs one turn of the server and not hundreds."""
    waiting: list[bytes] = []
    size = 0
    for piece in pieces:
        if piece:
            waiting.append(piece)
            size += len(piece)
        if size >= PIECE_BYTES:
            yield b"".join(waiting)
            waiting.clear()
            size = 0
    if waiting:
        yield b"".join(waiting)


def _tar(members: Iterable[Member]) -> Iterator[bytes]:
    for member in members:
        info = tarfile.TarInfo(member.name)
        info.type = _TYPES[member.kind]
        info.mode = member.mode
        seconds, nanos = divmod(member.mtime_ns, 1_000_000_000)
        info.mtime = seconds
        if nanos or seconds < 0:
            info.pax_headers = {"mtime": _decimal(member.mtime_ns)}
        if member.kind == "symlink":
            info.linkname = b"".join(member.content()).decode("utf-8", "surrogateescape")
        elif member.kind == "file":
            info.size = member.size_bytes
        yield info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")
        if member.kind == "file":
            yield from _exactly(member)
            yield b"\0" * (-member.size_bytes % _BLOCK)
    yield b"\0" * (2 * _BLOCK)


def _decimal(mtime_ns: int) -> str:
    """Seconds with all nine digits, which a float would lose."""
    seconds, nanos = divmod(abs(mtime_ns), 1_000_000_000)
    return f"{'-' if mtime_ns < 0 else ''}{seconds}.{nanos:09d}"


def _exactly(member: Member) -> Iterator[bytes]:
    """The content, which must have the size that was announced."""
    size = 0
    for piece in member.content():
        size += len(piece)
        yield piece
    if size != member.size_bytes:
        raise CorruptError(f"{member.name} has {size} bytes and not {member.size_bytes}")


def _gzip(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP_WINDOW)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


class _Sink(io.RawIOBase):
    """Where `zipfile` writes: cannot seek, so it describes each entry behind its content."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        piece = bytes(cast(bytes, data))
        self._pieces.append(piece)
        return len(piece)

    def drained(self) -> bytes:
        """What was written since the last call."""
        whole = b"".join(self._pieces)
        self._pieces.clear()
        return whole


def _zip(members: Iterable[Member]) -> Iterator[bytes]:
    sink = _Sink()
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_DEFLATED) as archive:
        for count, member in enumerate(members):
            if count >= ZIP_ENTRIES_MAX:
                raise InvalidError(f"a zip can have at most {ZIP_ENTRIES_MAX} entries here", hint="take a tar")
            info = _zip_info(member)
            with archive.open(info, "w", force_zip64=member.size_bytes >= _ZIP64_BYTES) as out:
                if member.kind != "dir":
                    for piece in _exactly(member):
                        out.write(piece)
                        yield sink.drained()
            yield sink.drained()
    yield sink.drained()


def _zip_info(member: Member) -> zipfile.ZipInfo:
    seconds = member.mtime_ns // 1_000_000_000
    date = time.gmtime(min(max(seconds, _DOS_FIRST_S), _DOS_LAST_S))[:6]
    info = zipfile.ZipInfo(member.name + ("/" if member.kind == "dir" else ""), date)
    info.create_system = 3
    info.external_attr = (_STAT[member.kind] | member.mode) << 16 | (0x10 if member.kind == "dir" else 0)
    info.compress_type = zipfile.ZIP_DEFLATED if member.kind == "file" else zipfile.ZIP_STORED
    if -(1 << 31) <= seconds < 1 << 31:
        info.extra = struct.pack("<HHBl", 0x5455, 5, 1, seconds)  # Info-ZIP's extended timestamp: seconds, in UTC
    return info
