"""READDIR and READDIRPLUS: a directory as the kernel wants it.

A directory position is the filesystem's cookie plus two, since positions 1 and 2 belong to `.` and `..`.
"""

from __future__ import annotations

import stat
from typing import Final

from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.attributes import AttributeEncoder
from memdir.fs.fuse.wire import Handler, Header, Reply
from memdir.fs.vfs import Vfs

_DOTS: Final = 2
_TYPE_SHIFT: Final = 12
"""dirent type = file type bits of the mode, shifted (DT_* in readdir(3))."""
_TYPE_DIR: Final = stat.S_IFDIR >> _TYPE_SHIFT
_NO_ENTRY: Final = bytes(abi.ENTRY_OUT_BYTES)
"""A node id of 0: the name only. Also for the dots, which the kernel never takes references on."""
_PADDING: Final = [bytes(-length % 8) for length in range(8)]


class ListingHandlers:
    """Both listings; `plus` adds attributes, so that a following stat of every name needs no request."""

    def __init__(self, vfs: Vfs, encoder: AttributeEncoder) -> None:
        self._vfs = vfs
        self._encode = encoder.entry

    def handlers(self) -> dict[int, Handler]:
        return {abi.Op.READDIR: self.readdir, abi.Op.READDIRPLUS: self.readdirplus}

    def readdir(self, ino: int, body: memoryview, header: Header) -> Reply:
        _, position, size, _, _, _, _ = abi.READ_IN.unpack_from(body)
        out, room = self._dots(ino, position, size, b"")
        head = abi.DIRENT.pack
        for entry in self._vfs.readdir(ino, max(position - _DOTS, 0)):
            name = entry.name
            length = abi.DIRENT.size + len(name)
            room -= length + -length % 8
            if room < 0:
                break
            inode = entry.inode
            out.append(head(inode.ino, entry.cookie + _DOTS, len(name), inode.mode >> _TYPE_SHIFT))
            out.append(name)
            out.append(_PADDING[length % 8])
        return b"".join(out)

    def readdirplus(self, ino: int, body: memoryview, header: Header) -> Reply:
        """Every entry that is handed out with attributes is retained; one that vanished meanwhile goes out as a mere name,
        which the kernel then looks up."""
        _, position, size, _, _, _, _ = abi.READ_IN.unpack_from(body)
        out, room = self._dots(ino, position, size, _NO_ENTRY)
        head, encode, retain = abi.DIRENT.pack, self._encode, self._vfs.retain
        for entry in self._vfs.readdir(ino, max(position - _DOTS, 0)):
            name = entry.name
            length = abi.ENTRY_OUT_BYTES + abi.DIRENT.size + len(name)
            room -= length + -length % 8
            if room < 0:
                break
            inode = entry.inode
            try:
                retain(inode.ino)
                out.append(inode.encoded or encode(inode))
            except FsError:
                out.append(_NO_ENTRY)
            out.append(head(inode.ino, entry.cookie + _DOTS, len(name), inode.mode >> _TYPE_SHIFT))
            out.append(name)
            out.append(_PADDING[length % 8])
        return b"".join(out)

    def _dots(self, ino: int, position: int, size: int, front: bytes) -> tuple[list[bytes], int]:
        """The records of `.` and `..` that come after `position`, and the room left."""
        out: list[bytes] = []
        if position < _DOTS:
            parent = self._vfs.get(ino).parent or ino
            for cookie, name, target in ((1, b".", ino), (2, b"..", parent)):
                record = front + abi.DIRENT.pack(target, cookie, len(name), _TYPE_DIR) + name.ljust(8, b"\0")
                if position < cookie and len(record) <= size:
                    out.append(record)
                    size -= len(record)
        return out, size
