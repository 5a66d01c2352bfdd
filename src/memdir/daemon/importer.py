"""Copying an existing folder into a memory before it is mounted over. The source is only read.

Files go in through the filesystem's own contract (`fs.vfs.Vfs`), so every rule and every intent of a normal write holds. Each
file is written under one temporary name at the root and renamed into place when it is complete: an import that is killed
leaves no half file behind, and running it again goes on. What stands in the memory already is kept.

Kept: bytes, permission bits, modification times, symlinks (as links), hard links, holes; as root also owners.
Left out, each with its reason: what the ignore files say, version control folders, files that look like secrets, sockets, pipes
and devices, names that memdir itself provides, and what cannot be read.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from memdir.core.errors import MemdirError
from memdir.core.ignore_rules import IgnoreRules
from memdir.core.secrets import scan_bytes, scan_name, scan_stream
from memdir.daemon.ignore_rules import rules_at_root, rules_below
from memdir.fs.errors import FsError
from memdir.fs.posix.place import ABSENT
from memdir.fs.types import RENAME_NOREPLACE, ROOT_INO, AttrChange, Inode, Owner
from memdir.fs.vfs import Vfs

_TEMPORARY_NAME: Final = b".#memdir-import"
"""A name that stays local (fs.localonly), so that a half-written file is never pushed."""
_PIECE_BYTES: Final = 1024 * 1024
_SMALL_BYTES: Final = 1024 * 1024
"""Files up to this size are read once, for the scan and for the copy."""
_VERSION_CONTROL: Final = frozenset({b".git", b".hg", b".svn", b".bzr", b".jj"})
_OWN_NAMES: Final = frozenset({b"profile.md", b".memdir"})
"""At the root, memdir provides these; see fs.views."""

Progress = Callable[[int, int, str], None]
"""(files so far, bytes so far, current path)"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """One path that was left out. `path` is relative to the source; a folder ends in '/' and stands for all below it."""

    path: str
    reason: str


@dataclass(slots=True, kw_only=True)
class ImportReport:
    """What an import did. `remarks` are about paths that did come in but deserve a look."""

    files: int = 0
    folders: int = 0
    symlinks: int = 0
    size_bytes: int = 0
    unchanged: int = 0
    """Files that stood in the memory already, with the same contents."""
    skipped: list[Skipped] = field(default_factory=list)
    remarks: list[Skipped] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder whose entries are to be imported; `done` marks the visit after its entries."""

    source: bytes
    relative: str
    ino: int
    rules: IgnoreRules
    done: bool = False
    is_new: bool = False


class ImportStoppedError(MemdirError):
    """The memory cannot take more (full disk); what is in stays in."""


def import_folder(vfs: Vfs, source: Path, *, progress: Progress | None = None) -> ImportReport:
    """Copy everything below `source` into the root of `vfs` and say what happened.

    Raises UsageError when an ignore file cannot be read, ImportStoppedError when the memory refuses a write; both can be
    repaired and the import run again.
    """
    return _Importer(vfs, source, progress or (lambda _files, _size, _path: None)).run()


class _Importer:
    def __init__(self, vfs: Vfs, source: Path, progress: Progress) -> None:
        self._vfs = vfs
        self._source = os.fsencode(source)
        self._progress = progress
        self._report = ImportReport()
        self._links: dict[tuple[int, int], int] = {}
        """(device, inode) of source files with several names -> inode in the memory."""
        self._may_chown = os.geteuid() == 0

    def run(self) -> ImportReport:
        self._remove_temporary()
        stack = [_Folder(self._source, "", ROOT_INO, rules_at_root(Path(os.fsdecode(self._source))))]
        while stack:
            folder = stack.pop()
            if folder.done:
                self._finish(folder)
                continue
            stack.append(_Folder(folder.source, folder.relative, folder.ino, folder.rules, True, folder.is_new))
            stack.extend(reversed(self._enter(folder)))
        self._vfs.fsync(ROOT_INO)
        return self._report

    def _enter(self, folder: _Folder) -> list[_Folder]:
        """Import the entries of one folder; its subfolders are created and returned."""
        subfolders = []
        try:
            names = sorted(os.listdir(folder.source))
        except OSError as error:
            self._skip(folder.relative + "/", f"cannot be read: {error.strerror}")
            return []
        for name in names:
            path = f"{folder.relative}/{os.fsdecode(name)}" if folder.relative else os.fsdecode(name)
            try:
                subfolder = self._entry(folder, name, path)
            except FsError as error:
                self._refused(path, error)
                continue
            except OSError as error:
                self._skip(path, f"cannot be read: {error.strerror}")
                continue
            if subfolder is not None:
                subfolders.append(subfolder)
        return subfolders

    def _entry(self, folder: _Folder, name: bytes, path: str) -> _Folder | None:
        source = os.path.join(folder.source, name)
        info = os.lstat(source)
        is_dir = stat.S_ISDIR(info.st_mode)
        reason = self._left_out(folder, name, path, is_dir=is_dir)
        if reason is not None:
            self._skip(path + "/" if is_dir else path, reason)
        elif is_dir:
            return self._folder(folder, name, path, info)
        elif stat.S_ISLNK(info.st_mode):
            self._symlink(folder, name, path, info)
        elif stat.S_ISREG(info.st_mode):
            self._file(folder, name, path, info)
        else:
            self._skip(path, f"a {_kind(info.st_mode)}, which a memory does not hold")
        return None

    def _left_out(self, folder: _Folder, name: bytes, path: str, *, is_dir: bool) -> str | None:
        if name in _VERSION_CONTROL:
            return "version control data; clone the repository inside the mount to have it there"
        if folder.ino == ROOT_INO and name in _OWN_NAMES:
            return "memdir provides this name itself"
        ignored = folder.rules.reason(path, is_dir=is_dir)
        if ignored is not None:
            return f"ignored by {ignored}"
        if is_dir:
            return None
        secret = scan_name(path)
        return f"secret: {secret}" if secret else None

    def _folder(self, folder: _Folder, name: bytes, path: str, info: os.stat_result) -> _Folder | None:
        existing = self._lookup(folder.ino, name)
        if existing is not None and not existing.is_dir:
            self._skip(path + "/", "the memory has a file of this name")
            return None
        is_new = existing is None
        if existing is None:
            # Writable for the time being: a read-only folder must still take its own entries.
            existing = self._vfs.mkdir(folder.ino, name, stat.S_IMODE(info.st_mode) | 0o700, self._owner(info))
            self._report.folders += 1
        source = os.path.join(folder.source, name)
        rules = rules_below(folder.rules, Path(os.fsdecode(source)), path)
        return _Folder(source, path, existing.ino, rules, False, is_new)

    def _finish(self, folder: _Folder) -> None:
        """After its entries: they have moved the folder's times."""
        if not folder.is_new:
            return
        try:
            info = os.stat(folder.source, follow_symlinks=False)
        except OSError as error:
            self._remark(folder.relative + "/", f"vanished while it was copied: {error.strerror}")
            return
        self._vfs.setattr(
            folder.ino,
            AttrChange(mode=stat.S_IMODE(info.st_mode), atime_ns=info.st_atime_ns, mtime_ns=info.st_mtime_ns),
        )

    def _symlink(self, folder: _Folder, name: bytes, path: str, info: os.stat_result) -> None:
        target = os.readlink(os.path.join(folder.source, name))
        existing = self._lookup(folder.ino, name)
        if existing is not None:
            same = existing.is_symlink and self._vfs.readlink(existing.ino) == target
            self._keep(path, same=same)
            return
        self._vfs.symlink(folder.ino, name, target, self._owner(info))
        self._report.symlinks += 1
        if _escapes(path, os.fsdecode(target)):
            self._remark(path, f"a link that leads out of the folder, to {os.fsdecode(target)}")

    def _file(self, folder: _Folder, name: bytes, path: str, info: os.stat_result) -> None:
        self._progress(self._report.files, self._report.size_bytes, path)
        existing = self._lookup(folder.ino, name)
        linked = self._links.get((info.st_dev, info.st_ino)) if info.st_nlink > 1 else None
        if linked is not None and existing is None:
            self._vfs.link(linked, folder.ino, name)
            self._report.files += 1
            return
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK  # a pipe swapped in now must not block
        with open(os.open(os.path.join(folder.source, name), flags), "rb", buffering=0) as handle:
            opened = os.fstat(handle.fileno())
            if not stat.S_ISREG(opened.st_mode):
                self._skip(path, "changed its type while it was copied")
                return
            small = handle.read(opened.st_size + 1) if opened.st_size <= _SMALL_BYTES else None
            secret = scan_stream(handle) if small is None else scan_bytes(small)
            if secret is not None:
                self._skip(path, f"secret: {secret}")
                return
            if existing is not None:
                self._keep(path, same=existing.is_file and self._same(existing, handle, opened.st_size))
                return
            ino = self._copy(folder.ino, name, handle, opened, small)
            after = os.fstat(handle.fileno())
        if (after.st_mtime_ns, after.st_size) != (opened.st_mtime_ns, opened.st_size):
            self._remark(path, "changed while it was copied")
        if info.st_nlink > 1:
            self._links[info.st_dev, info.st_ino] = ino

    def _copy(self, parent: int, name: bytes, handle: io.FileIO, info: os.stat_result, small: bytes | None) -> int:
        inode = self._vfs.create(ROOT_INO, _TEMPORARY_NAME, stat.S_IFREG | 0o600, self._owner(info))
        try:
            size = 0
            if small is None:
                for offset, piece in _data(handle.fileno(), info):
                    self._vfs.write(inode.ino, offset, piece)
                size = info.st_size
            elif small:
                size = self._vfs.write(inode.ino, 0, small)
            attributes = AttrChange(
                mode=stat.S_IMODE(info.st_mode),
                size=size if inode.size != size else None,
                atime_ns=info.st_atime_ns,
                mtime_ns=info.st_mtime_ns,
            )
            self._vfs.setattr(inode.ino, attributes)
            self._vfs.rename(ROOT_INO, _TEMPORARY_NAME, parent, name, RENAME_NOREPLACE)
        except BaseException:
            self._remove_temporary()
            raise
        self._report.files += 1
        self._report.size_bytes += size
        return inode.ino

    def _same(self, existing: Inode, handle: io.FileIO, size: int) -> bool:
        if existing.size != size:
            return False
        if existing.place == ABSENT:  # its bytes are on the server only; their hash is here
            handle.seek(0)
            return hashlib.file_digest(handle, "sha256").digest() == existing.target
        for offset in range(0, size, _PIECE_BYTES):
            ours = self._vfs.read(existing.ino, offset, _PIECE_BYTES)
            joined = bytes(ours) if isinstance(ours, bytes | bytearray | memoryview) else b"".join(ours)
            if joined != os.pread(handle.fileno(), _PIECE_BYTES, offset):
                return False
        return True

    def _keep(self, path: str, *, same: bool) -> None:
        if same:
            self._report.unchanged += 1
        else:
            self._skip(path, "the memory has its own version, which is kept")

    def _lookup(self, parent: int, name: bytes) -> Inode | None:
        try:
            return self._vfs.lookup(parent, name)
        except FsError as error:
            if error.errno == errno.ENOENT:
                return None
            raise

    def _owner(self, info: os.stat_result) -> Owner:
        return Owner(info.st_uid, info.st_gid) if self._may_chown else Owner(os.geteuid(), os.getegid())

    def _remove_temporary(self) -> None:
        if self._lookup(ROOT_INO, _TEMPORARY_NAME) is not None:
            self._vfs.unlink(ROOT_INO, _TEMPORARY_NAME)

    def _refused(self, path: str, error: FsError) -> None:
        """The memory's own refusal: of this file, or of everything."""
        if error.errno in (errno.EFBIG, errno.ENAMETOOLONG, errno.EEXIST, errno.EMLINK):
            self._skip(path, f"refused: {error.message}")
            return
        raise ImportStoppedError(
            f"the import stopped at {path}: {error.message}",
            hint="what was copied so far is kept; make room, then run the same command again",
        ) from error

    def _skip(self, path: str, reason: str) -> None:
        self._report.skipped.append(Skipped(path=path, reason=reason))

    def _remark(self, path: str, reason: str) -> None:
        self._report.remarks.append(Skipped(path=path, reason=reason))


def _data(fd: int, info: os.stat_result) -> Iterator[tuple[int, bytes]]:
    """(offset, bytes) of everything but holes, up to the size the file had when it was opened."""
    offset = 0
    while offset < info.st_size:
        try:
            offset = os.lseek(fd, offset, os.SEEK_DATA)
            end = min(os.lseek(fd, offset, os.SEEK_HOLE), info.st_size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # nothing but a hole from here on
                return
            raise
        while offset < end:
            piece = os.pread(fd, min(_PIECE_BYTES, end - offset), offset)
            if not piece:
                return
            yield offset, piece
            offset += len(piece)


def _escapes(path: str, target: str) -> bool:
    if target.startswith("/"):
        return True
    joined = os.path.normpath(os.path.join(os.path.dirname(path), target))
    return joined == ".." or joined.startswith("../")


def _kind(mode: int) -> str:
    if stat.S_ISSOCK(mode):
        return "socket"
    return "named pipe" if stat.S_ISFIFO(mode) else "device"
