"""Who opens, reads and changes what in ordinary folders, by fanotify(7). For root alone: only root is told who it was.

One mark for each folder, events by file handle and name (Linux 5.9), so that nothing is opened for us and nobody waits for us.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ACCESS, CLOSE_WRITE, CLOSE_NOWRITE, OPEN = 0x1, 0x8, 0x10, 0x20
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
OVERFLOW, ON_FOLDER = 0x4000, 0x40000000
"""These bits mean the same in inotify(7)."""
CHANGES: Final = CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
_ON_CHILD: Final = 0x08000000
_MASK: Final = CHANGES | ACCESS | CLOSE_NOWRITE | OPEN | ON_FOLDER | _ON_CHILD
_CLOEXEC, _NONBLOCK, _UNLIMITED_MARKS, _REPORT_FOLDER_AND_NAME = 0x1, 0x2, 0x20, 0xC00
_MARK_ADD, _MARK_ONLY_FOLDERS = 0x1, 0x8
_FOLDER_AND_NAME: Final = 2
"""FAN_EVENT_INFO_TYPE_DFID_NAME"""
_HERE: Final = -100
"""AT_FDCWD"""
_EVENT: Final = struct.Struct("=IBBHQii")
_INFO: Final = struct.Struct("=BxHQIi")
"""Type, length, filesystem, length and type of the handle that follows."""
_HANDLE_MAX_BYTES: Final = 128
_BUFFER_BYTES: Final = 2 << 20

_Handle = tuple[int, int, bytes]
"""Of a folder: its filesystem, the handle's type, the handle."""


class Fanotify:
    """Of folders that are added one by one. `read` tells what happened since."""

    def __init__(self) -> None:
        """PermissionError for who is not root, OSError where the kernel has no fanotify."""
        self._libc = ctypes.CDLL(None, use_errno=True)
        if os.geteuid() != 0:
            raise PermissionError("only root is told who reads")
        flags = _CLOEXEC | _NONBLOCK | _UNLIMITED_MARKS | _REPORT_FOLDER_AND_NAME
        self.fd = self._checked(self._libc.fanotify_init(flags, os.O_RDONLY | os.O_LARGEFILE))
        self._folders: dict[_Handle, int] = {}
        self._handles: dict[int, _Handle] = {}
        self.missed = 0
        """How often the system had more to say than it kept."""

    def close(self) -> None:
        os.close(self.fd)

    def add(self, folder: Path, watch: int) -> None:
        """Tell also of what stands in a folder, by the number `watch`. OSError for a filesystem that has no handles."""
        name = os.fsencode(folder)
        handle = ctypes.create_string_buffer(struct.pack("=Ii", _HANDLE_MAX_BYTES, 0), 8 + _HANDLE_MAX_BYTES)
        mount = ctypes.c_int()
        self._checked(self._libc.name_to_handle_at(_HERE, name, handle, ctypes.byref(mount), 0))
        size, kind = struct.unpack_from("=Ii", handle)
        mask = ctypes.c_uint64(_MASK)
        self._checked(self._libc.fanotify_mark(self.fd, _MARK_ADD | _MARK_ONLY_FOLDERS, mask, _HERE, name))
        self._handles[watch] = found = _filesystem_of(name), kind, handle.raw[8 : 8 + size]
        self._folders[found] = watch

    def forget(self, watch: int) -> None:
        """A folder that is gone."""
        handle = self._handles.pop(watch, None)
        if handle is not None:
            self._folders.pop(handle, None)

    def read(self) -> Iterator[tuple[int, int, int, str]]:
        """Process, what it did, the number of the folder, and the name there; "." for the folder itself. All that the system
        keeps (16,384 events) at most."""
        data, at = waiting_in(self.fd, _BUFFER_BYTES), 0
        while at < len(data):
            length, _version, _, head, mask, _fd, pid = _EVENT.unpack_from(data, at)
            if mask & OVERFLOW:
                self.missed += 1
            found = self._where(data, at + head, at + length)
            at += length
            if found is not None:
                yield pid, mask, *found

    def _where(self, data: bytes, at: int, end: int) -> tuple[int, str] | None:
        while at < end:
            kind, length, filesystem, size, handle_type = _INFO.unpack_from(data, at)
            if kind == _FOLDER_AND_NAME:
                handle_end = at + _INFO.size + size
                watch = self._folders.get((filesystem, handle_type, data[at + _INFO.size : handle_end]))
                return None if watch is None else (watch, os.fsdecode(data[handle_end : at + length].split(b"\0", 1)[0]))
            at += length
        return None

    @staticmethod
    def _checked(result: int) -> int:
        if result < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number))
        return result


def waiting_in(fd: int, most_bytes: int) -> bytes:
    """What can be read without waiting; empty when that is nothing."""
    try:
        return os.read(fd, most_bytes)
    except BlockingIOError:
        return b""


def _filesystem_of(name: bytes) -> int:
    return os.statvfs(name).f_fsid & 0xFFFF_FFFF_FFFF_FFFF
