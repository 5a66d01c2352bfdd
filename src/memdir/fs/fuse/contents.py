"""Requests about the contents of files."""

from __future__ import annotations

import errno
import os
import stat
from typing import Final

from memdir.core.limits import MIB
from memdir.fs.fuse import abi
from memdir.fs.fuse.wire import HEADER_UID, OK, SETID_BITS, Handler, Header, MalformedRequestError, Reply
from memdir.fs.types import AttrChange, Data, ReadResult
from memdir.fs.vfs import Vfs

_PIECES_MAX: Final = 1000
"""Buffers of one writev(2) beside the header: IOV_MAX is 1024."""
_COPY_STEP_BYTES: Final = MIB
_COPY_MAX_BYTES: Final = 8 * MIB
"""One COPY_FILE_RANGE request copies at most this much and says so; the caller asks again. Longer ones would make everybody
else wait."""


class ContentHandlers:
    """READ, WRITE, FSYNC, LSEEK, FALLOCATE, COPY_FILE_RANGE."""

    def __init__(self, vfs: Vfs, *, read_max_bytes: int) -> None:
        self._vfs = vfs
        self._read_max_bytes = read_max_bytes
        self._get = vfs.get
        self._read = vfs.read
        self._write = vfs.write

    def handlers(self) -> dict[int, Handler]:
        return {
            abi.Op.READ: self.read,
            abi.Op.WRITE: self.write,
            abi.Op.FSYNC: self.fsync,
            abi.Op.FSYNCDIR: self.fsync,
            abi.Op.SYNCFS: self.fsync,
            abi.Op.LSEEK: self.lseek,
            abi.Op.FALLOCATE: self.fallocate,
            abi.Op.COPY_FILE_RANGE: self.copy_file_range,
            abi.Op.COPY_FILE_RANGE_64: self.copy_file_range_64,
        }

    def read(self, ino: int, body: memoryview, header: Header) -> Reply:
        _, offset, size, _, _, _, _ = abi.READ_IN.unpack_from(body)
        data = self._read(ino, offset, min(size, self._read_max_bytes))
        if type(data) is bytes:
            return data
        pieces = _pieces(data)
        return pieces if len(pieces) <= _PIECES_MAX else b"".join(pieces)

    def write(self, ino: int, body: memoryview, header: Header) -> Reply:
        """The filesystem clears setuid and setgid with every write; a writer who may keep them (CAP_FSETID: the kernel
        tells by a missing flag) gets them back."""
        _, offset, size, flags, _, _, _ = abi.WRITE_IN.unpack_from(body)
        data = body[abi.WRITE_IN.size :]
        if len(data) != size:
            raise MalformedRequestError(f"{size} bytes to write were announced and {len(data)} came")
        mode = self._get(ino).mode
        written = self._write(ino, offset, data)
        if mode & SETID_BITS and not flags & abi.WRITE_KILL_SUIDGID:
            self._give_back(ino, mode)
        return abi.WRITE_OUT.pack(written, 0)

    def _give_back(self, ino: int, mode: int) -> None:
        """The setuid and setgid bits that a change of contents took away."""
        self._vfs.setattr(ino, AttrChange(mode=stat.S_IMODE(mode)))

    def fsync(self, ino: int, body: memoryview, header: Header) -> Reply:
        self._vfs.fsync(ino)
        return OK

    def lseek(self, ino: int, body: memoryview, header: Header) -> Reply:
        """The kernel does SEEK_SET, SEEK_CUR and SEEK_END itself."""
        _, offset, whence, _ = abi.LSEEK_IN.unpack_from(body)
        if whence not in (os.SEEK_DATA, os.SEEK_HOLE):
            return errno.EINVAL
        return abi.LSEEK_OUT.pack(self._vfs.seek_data(ino, offset, hole=whence == os.SEEK_HOLE))

    def fallocate(self, ino: int, body: memoryview, header: Header) -> Reply:
        """Whether the caller may keep setuid is not said here, nor with a copy: root may."""
        _, offset, length, mode, _ = abi.FALLOCATE_IN.unpack_from(body)
        before = self._get(ino).mode
        self._vfs.fallocate(ino, offset, length, mode)
        if before & SETID_BITS and header[HEADER_UID] == 0:
            self._give_back(ino, before)
        return OK

    def copy_file_range(self, ino: int, body: memoryview, header: Header) -> Reply:
        return abi.WRITE_OUT.pack(self._copy(ino, body, header), 0)

    def copy_file_range_64(self, ino: int, body: memoryview, header: Header) -> Reply:
        return abi.COPY_FILE_RANGE_OUT.pack(self._copy(ino, body, header))

    def _copy(self, ino: int, body: memoryview, header: Header) -> int:
        """Bytes copied. The kernel has refused overlapping ranges of one file. The pieces are copied before they are written,
        because they may be views of the very buffers that the write changes."""
        _, source, target_ino, _, target, length, flags = abi.COPY_FILE_RANGE_IN.unpack_from(body)
        if flags:
            raise MalformedRequestError(f"copy_file_range knows no flags, not even {flags:#x}")
        before = self._get(target_ino).mode
        done = 0
        wanted = min(length, _COPY_MAX_BYTES)
        while done < wanted:
            data = b"".join(_pieces(self._read(ino, source + done, min(_COPY_STEP_BYTES, wanted - done))))
            if (
                not done
            ):  # what is there now (a read brings the size of a lent file up to date): a copy may make its source grow
                wanted = min(wanted, self._get(ino).size - source)
            if not data:
                break
            done += self._write(target_ino, target + done, data)
        if done and before & SETID_BITS and header[HEADER_UID] == 0:
            self._give_back(target_ino, before)
        return done


def _pieces(data: ReadResult) -> list[Data]:
    return [data] if isinstance(data, bytes | bytearray | memoryview) else list(data)
