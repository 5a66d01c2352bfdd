"""`MountedFs`: a mount as a `Vfs`, every call answered by system calls and nothing else, so that the contract suite runs on it.

An inode number becomes a descriptor: one that a lookup left behind, or one that `open_by_handle_at` makes from the number (the
driver supports exports). What no system call shows, the version of contents, is read from the filesystem behind the mount.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from memdir.fs.errors import FsError
from memdir.fs.types import ROOT_INO, AttrChange, DirEntry, FsStats, Owner

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]
_HANDLE_TYPE_INO64_GEN = 0x81
"""FILEID_INO64_GEN of include/linux/exportfs.h: the upper and lower half of the number, then the generation."""
_DIRENT64 = struct.Struct("=QqHB")
_LISTING_BYTES = 32 * 1024
_READ_STEP_BYTES = 1 << 20
_CAP_FSETID = 1 << 4
_CAP_VERSION_3 = 0x20080522


def _done(result: int) -> int:
    """The result of a libc call, or its errno raised."""
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _getdents64(fd: int, buffer: ctypes.Array[ctypes.c_char]) -> int:
    """A removed folder is ENOENT for the kernel and empty for readdir(3), which hides that."""
    try:
        return _done(_libc.getdents64(fd, buffer, len(buffer)))
    except FileNotFoundError:
        return 0


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """What a system call refuses is a refusal of the filesystem; a handle to nothing is ESTALE for the kernel."""
    try:
        yield
    except OSError as error:
        raise FsError(errno.ENOENT if error.errno == errno.ESTALE else error.errno or errno.EIO) from error


@contextlib.contextmanager
def _without_fsetid() -> Iterator[None]:
    """This thread without CAP_FSETID, which would let root keep setuid bits on files it writes to."""
    header = struct.pack("=Ii", _CAP_VERSION_3, 0)
    before = ctypes.create_string_buffer(24)
    _done(_libc.capget(header, before))
    effective, *rest = struct.unpack("=6I", before.raw)
    _done(_libc.capset(header, struct.pack("=6I", effective & ~_CAP_FSETID, *rest)))
    try:
        yield
    finally:
        _done(_libc.capset(header, before.raw))


class MountedInode:
    """Attributes as fstat tells them at this moment, like the live view that a filesystem hands out."""

    def __init__(self, fs: MountedFs, ino: int) -> None:
        self.fs = fs
        self.ino = ino

    def __getattr__(self, name: str) -> Any:
        status = self.fs.status(self.ino)
        return getattr(status, "st_" + name)

    @property
    def version(self) -> int:
        return self.fs.behind.get(self.ino).version

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


class MountedFs:
    """See `fs.vfs.Vfs`. `behind` is the filesystem that the mount shows. Close it before the unmount."""

    def __init__(self, root: Path, behind: Any) -> None:
        self.behind = behind
        self._fds = {ROOT_INO: os.open(root, os.O_PATH | os.O_DIRECTORY)}
        self._anchor = os.open(root, os.O_RDONLY | os.O_DIRECTORY)
        self._held: dict[int, int] = {}

    def close(self) -> None:
        for fd in (*self._fds.values(), self._anchor):
            os.close(fd)
        self._fds.clear()

    # ---- from numbers to descriptors

    def _fd(self, ino: int) -> int:
        """A descriptor of the inode. One that has no name and that nobody retains is let go, as the kernel does it."""
        fd = self._fds.get(ino)
        if fd is None:
            fd = self._fds[ino] = self._by_handle(ino)
        if not os.fstat(fd).st_nlink and not self._held.get(ino):
            os.close(self._fds.pop(ino))
            raise FsError(errno.ENOENT)
        return fd

    def _by_handle(self, ino: int) -> int:
        handle = struct.pack("=IiIII", 12, _HANDLE_TYPE_INO64_GEN, ino >> 32, ino & 0xFFFFFFFF, 0)
        return _done(_libc.open_by_handle_at(self._anchor, handle, os.O_PATH))

    def _path(self, ino: int) -> str:
        return f"/proc/self/fd/{self._fd(ino)}"

    @contextlib.contextmanager
    def _opened(self, ino: int, flags: int) -> Iterator[int]:
        with _refusals():
            fd = os.open(self._path(ino), flags)
            try:
                yield fd
            finally:
                os.close(fd)

    def status(self, ino: int) -> os.stat_result:
        with _refusals():
            return os.fstat(self._fd(ino))

    def _take(self, parent: int, name: bytes) -> MountedInode:
        fd = os.open(name, os.O_PATH | os.O_NOFOLLOW, dir_fd=self._fd(parent))
        ino = os.fstat(fd).st_ino
        if ino in self._fds:
            os.close(fd)
        else:
            self._fds[ino] = fd
        return MountedInode(self, ino)

    # ---- fs.vfs.Vfs

    def get(self, ino: int) -> MountedInode:
        self.status(ino)
        return MountedInode(self, ino)

    def lookup(self, parent: int, name: bytes) -> MountedInode:
        with _refusals():
            return self._take(parent, name)

    def find(self, parent: int, name: bytes) -> MountedInode | None:
        try:
            return self.lookup(parent, name)
        except FsError as error:
            if error.errno != errno.ENOENT:
                raise
            return None

    def retain(self, ino: int, count: int = 1) -> None:
        self.status(ino)
        self._held[ino] = self._held.get(ino, 0) + count

    def forget(self, ino: int, count: int) -> None:
        if ino in self._held:
            self._held[ino] = max(self._held[ino] - count, 0)

    def setattr(self, ino: int, change: AttrChange) -> MountedInode:
        """One system call for each thing to change; a changed owner clears setuid, so the mode comes after it."""
        with _refusals():
            path = self._path(ino)
            if change.size is not None:
                with _without_fsetid():
                    os.truncate(path, change.size)
            if change.uid is not None or change.gid is not None:
                os.chown(path, -1 if change.uid is None else change.uid, -1 if change.gid is None else change.gid)
            if change.mode is not None:
                os.chmod(path, change.mode)
            if change.atime_ns is not None and change.mtime_ns is not None:
                os.utime(path, ns=(change.atime_ns, change.mtime_ns))
        return self.get(ino)

    def readlink(self, ino: int) -> bytes:
        with _refusals():
            target = ctypes.create_string_buffer(8192)
            try:
                length = _done(_libc.readlinkat(self._fd(ino), b"", target, len(target)))
            except FileNotFoundError as error:  # readlinkat(2) of a descriptor that is no symlink
                raise OSError(errno.EINVAL, "no symlink") from error
            return target.raw[:length]

    def create(self, parent: int, name: bytes, mode: int, owner: Owner, rdev: int = 0) -> MountedInode:
        with _refusals():
            if stat.S_ISREG(mode):
                flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW
                os.close(os.open(name, flags, stat.S_IMODE(mode), dir_fd=self._fd(parent)))
            else:
                os.mknod(name, mode, rdev, dir_fd=self._fd(parent))
            return self._given_to(owner, parent, name)

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> MountedInode:
        with _refusals():
            os.mkdir(name, mode, dir_fd=self._fd(parent))
            return self._given_to(owner, parent, name)

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> MountedInode:
        with _refusals():
            os.symlink(target, name, dir_fd=self._fd(parent))
            return self._given_to(owner, parent, name)

    def _given_to(self, owner: Owner, parent: int, name: bytes) -> MountedInode:
        """Root created it; the group of a setgid folder stays."""
        folder = self._fd(parent)
        gid = -1 if os.fstat(folder).st_mode & stat.S_ISGID else owner.gid
        os.chown(name, owner.uid, gid, dir_fd=folder, follow_symlinks=False)
        return self._take(parent, name)

    def link(self, ino: int, parent: int, name: bytes) -> MountedInode:
        with _refusals():
            os.link(self._path(ino), name, dst_dir_fd=self._fd(parent), follow_symlinks=True)
        return self.get(ino)

    def unlink(self, parent: int, name: bytes) -> None:
        with _refusals():
            os.unlink(name, dir_fd=self._fd(parent))

    def rmdir(self, parent: int, name: bytes) -> None:
        with _refusals():
            os.rmdir(name, dir_fd=self._fd(parent))

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        with _refusals():
            _done(_libc.renameat2(self._fd(parent), name, self._fd(new_parent), new_name, flags))

    def read(self, ino: int, offset: int, size: int) -> bytes:
        pieces = []
        with self._opened(ino, os.O_RDONLY) as fd:
            while size:
                piece = os.pread(fd, min(size, _READ_STEP_BYTES), offset)
                if not piece:
                    break
                pieces.append(piece)
                offset, size = offset + len(piece), size - len(piece)
        return b"".join(pieces)

    def write(self, ino: int, offset: int, data: bytes | bytearray | memoryview) -> int:
        with self._opened(ino, os.O_WRONLY) as fd, _without_fsetid():
            return os.pwrite(fd, data, offset)

    def fallocate(self, ino: int, offset: int, length: int, mode: int) -> None:
        with self._opened(ino, os.O_WRONLY) as fd:
            _done(_libc.fallocate(fd, mode, offset, length))

    def seek_data(self, ino: int, offset: int, *, hole: bool) -> int:
        with self._opened(ino, os.O_RDONLY) as fd:
            return os.lseek(fd, offset, os.SEEK_HOLE if hole else os.SEEK_DATA)

    def readdir(self, ino: int, after_cookie: int = 0) -> list[DirEntry]:
        """getdents64(2); a cookie is the position behind an entry. Positions last as long as a stream (POSIX), and a kernel
        that keeps listings compares its own with the folder only where a stream begins: so begin, then seek."""
        entries: list[DirEntry] = []
        buffer = ctypes.create_string_buffer(_LISTING_BYTES)
        with self._opened(ino, os.O_RDONLY | os.O_DIRECTORY) as fd:
            _getdents64(fd, buffer)
            os.lseek(fd, after_cookie, os.SEEK_SET)
            while length := _getdents64(fd, buffer):
                at = 0
                while at < length:
                    _, cookie, record_bytes, _ = _DIRENT64.unpack_from(buffer.raw, at)
                    name = buffer.raw[at + _DIRENT64.size : at + record_bytes].split(b"\0", 1)[0]
                    at += record_bytes
                    if name not in (b".", b".."):
                        entries.append(DirEntry(cookie, name, self._take(ino, name)))  # type: ignore[arg-type]
        return entries

    def allocated_bytes(self, ino: int) -> int:
        with _refusals():
            return os.lstat(self._path(ino)).st_blocks * 512

    def getxattr(self, ino: int, name: bytes) -> bytes:
        with _refusals():
            return os.getxattr(self._path(ino), name)

    def setxattr(self, ino: int, name: bytes, value: bytes, flags: int = 0) -> None:
        with _refusals():
            os.setxattr(self._path(ino), name, value, flags)

    def listxattr(self, ino: int) -> list[bytes]:
        with _refusals():
            return [os.fsencode(name) for name in os.listxattr(self._path(ino))]

    def removexattr(self, ino: int, name: bytes) -> None:
        with _refusals():
            os.removexattr(self._path(ino), name)

    def statfs(self) -> FsStats:
        with _refusals():
            info = os.fstatvfs(self._fds[ROOT_INO])
        return FsStats(
            block_size=info.f_frsize, blocks=info.f_blocks, blocks_free=info.f_bfree, blocks_available=info.f_bavail,
            inodes=info.f_files, inodes_free=info.f_ffree, name_max=info.f_namemax,
        )  # fmt: skip

    def fsync(self, ino: int) -> None:
        with self._opened(ino, os.O_RDONLY) as fd:
            os.fsync(fd)
