"""Following a growing file by inotify(7): no polling, and a rotated log is followed into its successor."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_IN_MODIFY: Final = 0x002
_IN_MOVED_TO: Final = 0x080
_IN_CREATE: Final = 0x100
_IN_CLOEXEC: Final = 0o2000000
_EVENTS_BYTES: Final = 64 * 1024
_READ_BYTES: Final = 64 * 1024
_LINE_MAX_BYTES: Final = 1024 * 1024


def follow(file: Path) -> Iterator[str]:
    """Lines added to `file` from now on, for ever. OSError when its folder does not exist or cannot be watched."""
    watch = _watch(file.parent)
    fd = -1
    try:
        fd = _open(file)
        if fd >= 0:
            os.lseek(fd, 0, os.SEEK_END)
        rest = b""
        while True:
            for chunk in _new_bytes(fd):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (_decode(line) for line in lines)
                if len(rest) > _LINE_MAX_BYTES:
                    yield _decode(rest)
                    rest = b""
            if _was_replaced(file, fd):
                if fd >= 0:
                    os.close(fd)
                fd = _open(file)
                continue
            os.read(watch, _EVENTS_BYTES)  # sleeps until something happens in the folder
    finally:
        os.close(watch)
        if fd >= 0:
            os.close(fd)


def _watch(folder: Path) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    watch: int = libc.inotify_init1(_IN_CLOEXEC)
    if watch < 0:
        raise _os_error("inotify_init1")
    if libc.inotify_add_watch(watch, os.fsencode(folder), _IN_MODIFY | _IN_MOVED_TO | _IN_CREATE) < 0:
        error = _os_error(str(folder))
        os.close(watch)
        raise error
    return watch


def _os_error(what: str) -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number), what)


def _open(file: Path) -> int:
    try:
        return os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return -1


def _new_bytes(fd: int) -> Iterator[bytes]:
    while fd >= 0:
        chunk = os.read(fd, _READ_BYTES)
        if not chunk:
            return
        yield chunk


def _was_replaced(file: Path, fd: int) -> bool:
    """Whether the name now stands for another file than the one that is open."""
    try:
        now = os.stat(file)
    except FileNotFoundError:
        return False
    if fd < 0:
        return True
    held = os.fstat(fd)
    return (now.st_dev, now.st_ino) != (held.st_dev, held.st_ino)


def _decode(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")
