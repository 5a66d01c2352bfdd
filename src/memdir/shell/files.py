"""Files by path on a `fs.vfs.Vfs`: what the interpreter's filesystem port and the shell's own commands work with.

Paths are absolute, `/`-separated, and the root of the filesystem is "/". Links are never followed here: `stat` is an lstat,
and a path that leads through a link is ENOTDIR; the interpreter follows links above all its filesystems, so that no link can
name anything outside them. Every method raises FsError with the errno that Linux gives.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

from memdir.core.limits import MIB
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.path import encode
from memdir.fs.source import wait_for
from memdir.fs.types import ROOT_INO, AttrChange, Inode, Owner, joined

if TYPE_CHECKING:
    from memdir.fs.source import ContentSource
    from memdir.fs.vfs import Vfs

R = TypeVar("R")

_PIECE_BYTES: Final = MIB
_FILE_MODE: Final = 0o644
_DIR_MODE: Final = 0o755
FILE_MAX_BYTES: Final = 64 * MIB
"""The interpreter holds a file that it reads or writes in memory as a whole: a longer one is EFBIG."""
_FETCH_TRIES: Final = 3
"""A file may change while its contents are fetched; then they are fetched again."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One name in a folder."""

    name: str
    inode: Inode


class Files:
    """Thread-safe as the `Vfs` is."""

    def __init__(self, vfs: Vfs, *, contents: ContentSource | None = None, fetch_timeout_s: float = 30.0) -> None:
        """`contents` brings what is on the server only, and is waited for at most `fetch_timeout_s` for a file."""
        self.vfs = vfs
        self._contents = contents
        self._fetch_timeout_s = fetch_timeout_s
        self._owner = Owner(os.getuid(), os.getgid())

    def stat(self, path: str) -> Inode:
        """ENOENT, ENOTDIR."""
        inode = self._find(path)
        if inode is None:
            raise FsError(errno.ENOENT)
        return inode

    def first_link(self, path: str) -> int | None:
        """How many names stand before the first link on the way to `path`, itself included; None without one. Names behind one
        that is not there are not looked at."""
        ino = ROOT_INO
        for number, part in enumerate(_parts(path)):
            found = self.vfs.find(ino, part)
            if found is None or not (found.is_dir or found.is_symlink):
                return None
            if found.is_symlink:
                return number
            ino = found.ino
        return None

    def exists(self, path: str) -> bool:
        """Also a link that leads nowhere."""
        try:
            return self._find(path) is not None
        except FsError as error:
            if error.errno in (errno.ENOTDIR, errno.ENOENT, errno.ENAMETOOLONG):
                return False
            raise

    def read(self, path: str) -> bytes:
        """The whole contents. EISDIR, EINVAL for a link or what is no file, EFBIG past FILE_MAX_BYTES."""
        inode = self._file(path)
        if inode.size > FILE_MAX_BYTES:
            raise FsError(errno.EFBIG, f"longer than {FILE_MAX_BYTES // MIB} MiB")
        return self._fetching(lambda: joined(self.vfs.read(inode.ino, 0, inode.size))) if inode.size else b""

    def write(self, path: str, data: bytes) -> None:
        """Put `data` in the place of what the file holds, or make it."""
        if len(data) > FILE_MAX_BYTES:
            raise FsError(errno.EFBIG)
        parent, name = self._place(path)
        inode = self.vfs.find(parent, name)
        if inode is None:
            inode = self.vfs.create(parent, name, stat.S_IFREG | _FILE_MODE, self._owner)
        else:
            self._is_file(inode)
            if inode.size:
                inode = self.vfs.setattr(inode.ino, AttrChange(size=0))
        self._write_at(inode.ino, 0, data)

    def append(self, path: str, data: bytes) -> None:
        """Add `data` to the end of the file, or make it."""
        parent, name = self._place(path)
        inode = self.vfs.find(parent, name)
        if inode is None:
            inode = self.vfs.create(parent, name, stat.S_IFREG | _FILE_MODE, self._owner)
        self._is_file(inode)
        if inode.size + len(data) > FILE_MAX_BYTES:
            raise FsError(errno.EFBIG)
        self._write_at(inode.ino, inode.size, data)

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        """EEXIST; with `parents` also what is missing above it, and a folder that is there is well."""
        if not parents:
            parent, name = self._place(path)
            self.vfs.mkdir(parent, name, stat.S_IFDIR | _DIR_MODE, self._owner)
            return
        ino = ROOT_INO
        for part in _parts(path):
            found = self.vfs.find(ino, part)
            if found is None:
                found = self.vfs.mkdir(ino, part, stat.S_IFDIR | _DIR_MODE, self._owner)
            elif not found.is_dir:
                raise FsError(errno.ENOTDIR if found.is_symlink else errno.EEXIST)
            ino = found.ino

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """A file, a link or an empty folder; with `recursive` a folder with all in it."""
        parent, name = self._place(path)
        inode = self.vfs.lookup(parent, name)
        if not inode.is_dir:
            self.vfs.unlink(parent, name)
            return
        if recursive:
            self._empty(inode.ino)
        self.vfs.rmdir(parent, name)

    def entries(self, path: str) -> list[Entry]:
        """What stands in a folder, by name; names that are no UTF-8 are left out, as the interpreter cannot say them."""
        inode = self.stat(path)
        if not inode.is_dir:
            raise FsError(errno.ENOTDIR)
        found = []
        for entry in self.vfs.readdir(inode.ino):
            try:
                found.append(Entry(entry.name.decode("utf-8"), entry.inode))
            except UnicodeDecodeError:
                continue
        return sorted(found, key=lambda entry: entry.name)

    def rename(self, source: str, target: str) -> None:
        """As rename(2)."""
        parent, name = self._place(source)
        new_parent, new_name = self._place(target)
        self.vfs.rename(parent, name, new_parent, new_name)

    def copy(self, source: str, target: str) -> None:
        """Contents and mode of a file."""
        mode = self._file(source).mode
        data, is_new = self.read(source), not self.exists(target)
        self.write(target, data)
        if is_new:
            self.chmod(target, stat.S_IMODE(mode))

    def symlink(self, target: str, path: str) -> None:
        """A link at `path` that says `target`."""
        parent, name = self._place(path)
        self.vfs.symlink(parent, name, encode(target), self._owner)

    def link(self, source: str, target: str) -> None:
        """A hard link at `target`."""
        parent, name = self._place(target)
        self.vfs.link(self.stat(source).ino, parent, name)

    def readlink(self, path: str) -> str:
        """EINVAL when it is none."""
        return self.vfs.readlink(self.stat(path).ino).decode("utf-8", "surrogateescape")

    def chmod(self, path: str, mode: int) -> None:
        """Permission bits."""
        self.vfs.setattr(self.stat(path).ino, AttrChange(mode=mode & 0o7777))

    def set_times(self, path: str, *, atime_ns: int | None = None, mtime_ns: int | None = None) -> None:
        """As utimensat(2)."""
        self.vfs.setattr(self.stat(path).ino, AttrChange(atime_ns=atime_ns, mtime_ns=mtime_ns))

    # --- inside --------------------------------------------------------------------------------------------------

    def _find(self, path: str) -> Inode | None:
        ino = ROOT_INO
        inode: Inode | None = None
        for part in _parts(path):
            inode = self.vfs.find(ino, part)
            if inode is None:
                return None
            ino = inode.ino
        return inode or self.vfs.get(ino)

    def _place(self, path: str) -> tuple[int, bytes]:
        """The folder and the name; EEXIST for the root, which has none."""
        parts = _parts(path)
        if not parts:
            raise FsError(errno.EEXIST)
        ino = ROOT_INO
        for part in parts[:-1]:
            ino = self.vfs.lookup(ino, part).ino
        return ino, parts[-1]

    def _file(self, path: str) -> Inode:
        inode = self.stat(path)
        self._is_file(inode)
        return inode

    @staticmethod
    def _is_file(inode: Inode) -> None:
        if not inode.is_file:
            raise FsError(errno.EISDIR if inode.is_dir else errno.EINVAL)

    def _write_at(self, ino: int, offset: int, data: bytes) -> None:
        for at in range(0, len(data), _PIECE_BYTES):
            piece = data[at : at + _PIECE_BYTES]
            self._fetching(lambda at=at, piece=piece: self.vfs.write(ino, offset + at, piece))  # type: ignore[misc]

    def _empty(self, ino: int) -> None:
        for entry in list(self.vfs.readdir(ino)):
            if entry.inode.is_dir:
                self._empty(entry.inode.ino)
                self.vfs.rmdir(ino, entry.name)
            else:
                self.vfs.unlink(ino, entry.name)

    def _fetching(self, call: Callable[[], R]) -> R:
        """What `call` gives; contents that are on the server only are brought, and waited for."""
        for _ in range(_FETCH_TRIES):
            try:
                return call()
            except ContentsAbsentError as absent:
                self._bring(absent.ino)
        return call()

    def _bring(self, ino: int) -> None:
        if self._contents is None:
            raise FsError(errno.EIO, "the contents are on the server only")
        error = wait_for(self._contents, ino, silence_max_s=self._fetch_timeout_s)
        if error is not None:
            raise error


def _parts(path: str) -> list[bytes]:
    """The names on the way; EINVAL for `..`, which the interpreter resolves before it asks."""
    parts = [encode(part) for part in path.split("/") if part not in ("", ".")]
    if b".." in parts:
        raise FsError(errno.EINVAL, f"{path!r} leaves the filesystem")
    return parts
