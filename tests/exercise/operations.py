"""Operations on a directory as plain lists, and a `World` that runs them with system calls: the same list on a mount and on a
native directory. A list can be printed, cut down and run again; what it names and is not there is an errno like any other."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import random
import stat
from pathlib import Path
from typing import Any

Op = list[Any]
"""The name of an operation and its arguments, as JSON can hold them."""
Answer = Any
"""What an operation returned, or `errno NAME`."""

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_AT_FDCWD = -100
_AT_SYMLINK_FOLLOW = 0x400
SLOTS = 5
"""Descriptors that a world holds at most."""
OLD_NS = 1 << 60
"""Times before this one (July 2006) were set by an operation, later ones are the moment of a change."""
_RETURNED_BYTES_MAX = 600_000


def done(result: int) -> int:
    """The result of a libc call, or its errno raised."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _link(source: str, target: str, *, follow: bool) -> int:
    """linkat(2): os.link follows a symlink only when it is given a folder's descriptor."""
    flags = _AT_SYMLINK_FOLLOW if follow else 0
    return done(_libc.linkat(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), flags))


def pattern(number: int, length: int) -> bytes:
    """Bytes that tell by themselves where they come from."""
    return random.Random(number).randbytes(length)


def moment(time_ns: int) -> int | str:
    """A time as two filesystems can agree on it."""
    return time_ns if time_ns < OLD_NS else "new"


class World:
    """One directory and the descriptors held in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.fds: dict[int, int] = {}

    def run(self, op: Op) -> Answer:
        name, *arguments = op
        try:
            return getattr(self, f"do_{name}")(*arguments)
        except OSError as error:
            return f"errno {errno.errorcode.get(error.errno or 0, error.errno)}"

    def close(self) -> None:
        """Let every descriptor go; closing on a dead mount may fail and frees it all the same."""
        for fd in self.fds.values():
            with contextlib.suppress(OSError):
                os.close(fd)
        self.fds.clear()

    def _at(self, path: str) -> str:
        return os.path.join(self.root, path)

    def _fd(self, slot: int) -> int:
        try:
            return self.fds[slot]
        except KeyError:
            raise OSError(errno.EBADF, "an empty slot") from None

    # ---- descriptors

    def do_open(self, slot: int, path: str, flags: int, mode: int) -> Answer:
        self._put(slot, os.open(self._at(path), flags, mode))

    def do_openat(self, slot: int, folder: int, name: str, flags: int, mode: int) -> Answer:
        self._put(slot, os.open(name, flags, mode, dir_fd=self._fd(folder)))

    def do_dup(self, slot: int, other: int) -> Answer:
        self._put(other, os.dup(self._fd(slot)))

    def _put(self, slot: int, fd: int) -> None:
        old = self.fds.pop(slot, None)
        self.fds[slot] = fd
        if old is not None:
            os.close(old)

    def do_close(self, slot: int) -> Answer:
        fd = self._fd(slot)
        del self.fds[slot]
        os.close(fd)

    def do_read(self, slot: int, size: int) -> Answer:
        return os.read(self._fd(slot), min(size, _RETURNED_BYTES_MAX))

    def do_pread(self, slot: int, size: int, offset: int) -> Answer:
        return os.pread(self._fd(slot), min(size, _RETURNED_BYTES_MAX), offset)

    def do_write(self, slot: int, number: int, size: int) -> Answer:
        return os.write(self._fd(slot), pattern(number, size))

    def do_pwrite(self, slot: int, number: int, size: int, offset: int) -> Answer:
        return os.pwrite(self._fd(slot), pattern(number, size), offset)

    def do_pwritev(self, slot: int, number: int, size: int, offset: int) -> Answer:
        return os.pwritev(self._fd(slot), [pattern(number, size), b"", b"tail"], offset)

    def do_lseek(self, slot: int, offset: int, whence: int) -> Answer:
        fd = self._fd(slot)
        if stat.S_ISDIR(os.fstat(fd).st_mode):
            raise OSError(errno.EISDIR, "positions in folders are the filesystem's own")
        return os.lseek(fd, offset, whence)

    def do_ftruncate(self, slot: int, size: int) -> Answer:
        os.ftruncate(self._fd(slot), size)

    def do_fallocate(self, slot: int, mode: int, offset: int, length: int) -> Answer:
        return done(_libc.fallocate(self._fd(slot), mode, offset, length))

    def do_copy(self, source: int, target: int, length: int, at: int | None, to: int | None) -> Answer:
        return os.copy_file_range(self._fd(source), self._fd(target), length, at, to)

    def do_sendfile(self, target: int, source: int, at: int, length: int) -> Answer:
        return os.sendfile(self._fd(target), self._fd(source), at, length)

    def do_fsync(self, slot: int, data_only: bool) -> Answer:
        (os.fdatasync if data_only else os.fsync)(self._fd(slot))

    def do_fchmod(self, slot: int, mode: int) -> Answer:
        os.fchmod(self._fd(slot), mode)

    def do_fchown(self, slot: int, uid: int, gid: int) -> Answer:
        os.fchown(self._fd(slot), uid, gid)

    def do_futime(self, slot: int, time_ns: int) -> Answer:
        os.utime(self._fd(slot), ns=(time_ns, time_ns))

    def do_fsetxattr(self, slot: int, name: str, value: str, flags: int) -> Answer:
        os.setxattr(self._fd(slot), name, value.encode(), flags)

    def do_fgetxattr(self, slot: int, name: str) -> Answer:
        return os.getxattr(self._fd(slot), name)

    def do_flistdir(self, slot: int) -> Answer:
        return sorted(os.listdir(self._fd(slot)))

    def do_mkdirat(self, folder: int, name: str) -> Answer:
        os.mkdir(name, 0o755, dir_fd=self._fd(folder))

    def do_unlinkat(self, folder: int, name: str, is_folder: bool) -> Answer:
        (os.rmdir if is_folder else os.unlink)(name, dir_fd=self._fd(folder))

    def do_renameat(self, folder: int, name: str, other: int, new_name: str) -> Answer:
        os.rename(name, new_name, src_dir_fd=self._fd(folder), dst_dir_fd=self._fd(other))

    def do_flink(self, slot: int, path: str) -> Answer:
        return _link(f"/proc/self/fd/{self._fd(slot)}", self._at(path), follow=True)

    # ---- paths

    def do_mkdir(self, path: str, mode: int) -> Answer:
        os.mkdir(self._at(path), mode)

    def do_rmdir(self, path: str) -> Answer:
        os.rmdir(self._at(path))

    def do_unlink(self, path: str) -> Answer:
        os.unlink(self._at(path))

    def do_mknod(self, path: str, mode: int) -> Answer:
        os.mknod(self._at(path), stat.S_IFREG | mode)

    def do_rename(self, path: str, other: str) -> Answer:
        os.rename(self._at(path), self._at(other))

    def do_renameat2(self, path: str, other: str, flags: int) -> Answer:
        source, target = os.fsencode(self._at(path)), os.fsencode(self._at(other))
        return done(_libc.renameat2(_AT_FDCWD, source, _AT_FDCWD, target, flags))

    def do_link(self, path: str, other: str, follow: bool) -> Answer:
        return _link(self._at(path), self._at(other), follow=follow)

    def do_symlink(self, target: str, path: str) -> Answer:
        os.symlink(target, self._at(path))

    def do_readlink(self, path: str) -> Answer:
        return os.readlink(self._at(path))

    def do_chmod(self, path: str, mode: int) -> Answer:
        os.chmod(self._at(path), mode)

    def do_chown(self, path: str, uid: int, gid: int, follow: bool) -> Answer:
        os.chown(self._at(path), uid, gid, follow_symlinks=follow)

    def do_truncate(self, path: str, size: int) -> Answer:
        os.truncate(self._at(path), size)

    def do_utime(self, path: str, time_ns: int, follow: bool) -> Answer:
        os.utime(self._at(path), ns=(time_ns + 1, time_ns), follow_symlinks=follow)

    def do_access(self, path: str, mode: int) -> Answer:
        return os.access(self._at(path), mode)

    def do_stat(self, path: str, follow: bool) -> Answer:
        return shown(os.stat(self._at(path), follow_symlinks=follow))

    def do_listdir(self, path: str) -> Answer:
        return sorted(os.listdir(self._at(path)))

    def do_setxattr(self, path: str, name: str, value: str, flags: int, follow: bool) -> Answer:
        os.setxattr(self._at(path), name, value.encode(), flags, follow_symlinks=follow)

    def do_getxattr(self, path: str, name: str) -> Answer:
        return os.getxattr(self._at(path), name)

    def do_removexattr(self, path: str, name: str) -> Answer:
        os.removexattr(self._at(path), name)

    def do_listxattr(self, path: str) -> Answer:
        return sorted(name for name in os.listxattr(self._at(path)) if name.startswith(("user.", "trusted.")))

    # ---- what can be seen

    def held(self) -> dict[int, Answer]:
        """The state of every descriptor, also of those whose file has no name any more."""
        found: dict[int, Answer] = {}
        for slot, fd in self.fds.items():
            position = None
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode):
                try:
                    position = os.lseek(fd, 0, os.SEEK_CUR)
                except OSError as error:  # O_PATH
                    position = -(error.errno or 0)
            found[slot] = (shown(status), position)
        return found

    def tree(self, *, contents: bool) -> dict[str, Answer]:
        """All names, with attributes, and on request with contents and extended attributes."""
        found: dict[str, Answer] = {"": shown(os.stat(self.root))}
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                path = os.path.join(folder, name)
                status = os.lstat(path)
                entry: list[Answer] = [shown(status)]
                if contents:
                    entry.append(sorted((key, os.getxattr(path, key, follow_symlinks=False)) for key in _xattrs(path)))
                    if stat.S_ISREG(status.st_mode):
                        entry.append(Path(path).read_bytes())
                if stat.S_ISLNK(status.st_mode):
                    entry.append(os.readlink(path))
                found[os.path.relpath(path, self.root)] = entry
        return found

    def change_times(self) -> dict[str, tuple[int, int]]:
        """For every name its inode number and ctime."""
        found = {}
        for folder, folders, files in os.walk(self.root):
            for name in (*folders, *files):
                status = os.lstat(os.path.join(folder, name))
                found[os.path.relpath(os.path.join(folder, name), self.root)] = (status.st_ino, status.st_ctime_ns)
        return found


def _xattrs(path: str) -> list[str]:
    return [name for name in os.listxattr(path, follow_symlinks=False) if name.startswith(("user.", "trusted."))]


def shown(status: os.stat_result) -> Answer:
    """The attributes that two filesystems agree on: a folder's size, device and inode numbers are their own."""
    size = None if stat.S_ISDIR(status.st_mode) else status.st_size
    return [status.st_mode, status.st_nlink, status.st_uid, status.st_gid, size, moment(status.st_mtime_ns)]
