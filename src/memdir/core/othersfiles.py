"""Changing a file that belongs to somebody else: read whole, replaced in one step, with its owner, mode and attributes.
Nothing is written over what somebody changed meanwhile; a file that cannot be replaced safely is left alone with an error."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from memdir.core.errors import StorageError
from memdir.core.paths import sync_folder


def read_file(path: Path, *, max_bytes: int) -> tuple[bytes, os.stat_result] | None:
    """The bytes of a file that may be replaced; None when there is none. StorageError for one that may not."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    with os.fdopen(fd, "rb") as handle:
        info = os.fstat(fd)
        if not stat.S_ISREG(info.st_mode):
            raise StorageError("it is no plain file", hint="move it away")
        if info.st_nlink > 1:
            raise StorageError(
                "it has more than one name (hard links)", hint="replace it by a copy of its own, or make the change by hand"
            )
        if not info.st_mode & 0o222 or not os.access(path, os.W_OK):
            raise StorageError("it is read-only", hint="make it writable first")
        data = handle.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise StorageError(f"it has more than {max_bytes >> 20} MiB", hint="make the change by hand")
    return data, info


def replace_file(path: Path, data: bytes, info: os.stat_result | None) -> None:
    """Put `data` in the place of the file atomically, with its owner, mode and attributes. StorageError when it belongs to
    somebody else and cannot be given back to them, or was changed since `info`."""
    fd, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            out.flush()
            if info is None:
                os.fchmod(fd, 0o666 & ~_umask())
            else:
                _as_before(fd, path, info)
            os.fsync(fd)
        if info is None:
            os.link(temporary, path)  # not over a file that somebody made meanwhile
            os.unlink(temporary)
        else:
            _check_unchanged(path, info)
            os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    with suppress(OSError):  # a folder that cannot be synced (a network filesystem) holds the new name all the same
        sync_folder(path.parent)


def _check_unchanged(path: Path, info: os.stat_result) -> None:
    now = os.stat(path, follow_symlinks=False)
    if (now.st_ino, now.st_mtime_ns, now.st_size) != (info.st_ino, info.st_mtime_ns, info.st_size):
        raise StorageError("somebody else is writing to it")


def _as_before(fd: int, path: Path, info: os.stat_result) -> None:
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (info.st_uid, info.st_gid):
        try:
            os.fchown(fd, info.st_uid, info.st_gid)
        except PermissionError:
            raise StorageError("it belongs to somebody else") from None
    os.fchmod(fd, stat.S_IMODE(info.st_mode))
    for name in os.listxattr(path):
        try:
            os.setxattr(fd, name, os.getxattr(path, name))
        except OSError as error:
            if error.errno not in (errno.ENOTSUP, errno.EPERM, errno.ENODATA):
                raise


def _umask() -> int:
    """From the kernel's account: os.umask would change it for a moment, for all threads."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o022
