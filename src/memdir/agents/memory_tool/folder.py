"""The memory tool on a folder: `memory` of a mount, or any other directory.

Every step goes from the open parent folder to one name and follows no symlink (openat(2) with O_NOFOLLOW), so a link that is
put into the way between a check and its use leads nowhere either. Changes hold a lock on the root folder (flock(2)), which
orders the memory tools of several processes; a changed file is replaced as a whole.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from memdir.agents.memory_tool.files import ENTRIES_MAX, FILE_MAX_BYTES, Entry, Kind, MemoryToolError, Names, is_hidden
from memdir.agents.memory_tool.paths import shown
from memdir.core.ids import new_id

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_NOTHING: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""What says that a path leads nowhere: no such name, a file in the middle, or a symlink."""


class FolderFiles:
    """Files below a directory, which is made when it does not exist."""

    def __init__(self, root: Path) -> None:
        self._root = root
        root.mkdir(parents=True, exist_ok=True)

    def kind(self, names: Names) -> Kind | None:
        if not names:
            return "dir"
        with _told(names), self._parent(names) as parent:
            return None if parent is None else _kind(parent, names[-1])

    def read(self, names: Names) -> bytes | None:
        if not names:
            return None
        with _told(names), self._parent(names) as parent:
            return None if parent is None else _content(parent, names)

    def create(self, names: Names, content: bytes) -> bool:
        with _told(names), self._changing(), self._parent(names, make=True) as parent:
            if parent is None:
                return False
            try:
                fd = os.open(names[-1], _NEW, 0o644, dir_fd=parent)
            except FileExistsError:
                return False
            _fill(fd, content, lambda: os.unlink(names[-1], dir_fd=parent))
            return True

    def change(self, names: Names, edit: Callable[[bytes], bytes]) -> bool:
        if not names:
            return False
        with _told(names), self._changing(), self._parent(names) as parent:
            before = None if parent is None else _content(parent, names)
            if parent is None or before is None:
                return False
            _replace(parent, names[-1], edit(before))
            return True

    def delete(self, names: Names) -> bool:
        with _told(names), self._changing(), self._parent(names) as parent:
            kind = None if parent is None else _kind(parent, names[-1])
            if parent is None or kind is None:
                return False
            if kind == "dir":
                _remove_tree(parent, names[-1])
            else:
                os.unlink(names[-1], dir_fd=parent)
            return True

    def rename(self, old: Names, new: Names) -> bool:
        with _told(old), self._changing(), self._parent(old) as source, self._parent(new, make=True) as target:
            if source is None or target is None or _stands(target, new[-1]):
                return False
            os.rename(old[-1], new[-1], src_dir_fd=source, dst_dir_fd=target)
            return True

    def below(self, names: Names, *, levels: int) -> list[Entry]:
        found: list[Entry] = []
        with _told(names), self._folder(names) as folder:
            if folder is not None:
                _collect(folder, names, levels, found)
        return found

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """The lock that changes hold, one after the other."""
        fd = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)

    @contextmanager
    def _parent(self, names: Names, *, make: bool = False) -> Iterator[int | None]:
        """The open folder that `names` stands in; None when there is none (or something else in its place)."""
        with self._folder(names[:-1], make=make) as folder:
            yield folder

    @contextmanager
    def _folder(self, names: Names, *, make: bool = False) -> Iterator[int | None]:
        fd: int | None = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)  # the root itself is the caller's choice
        try:
            for name in names:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(name, dir_fd=fd)
                try:
                    inner = os.open(name, _FOLDER, dir_fd=fd)
                except OSError as error:
                    if error.errno not in _NOTHING:
                        raise
                    inner = None
                assert fd is not None
                os.close(fd)
                fd = inner
                if fd is None:
                    break
            yield fd
        finally:
            if fd is not None:
                os.close(fd)


def _kind(parent: int, name: str) -> Kind | None:
    try:
        mode = os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode
    except OSError as error:
        if error.errno in _NOTHING:
            return None
        raise
    if stat.S_ISDIR(mode):
        return "dir"
    return "file" if stat.S_ISREG(mode) else None


def _stands(parent: int, name: str) -> bool:
    """Whether anything stands there, of whatever kind."""
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _content(parent: int, names: Names) -> bytes | None:
    try:
        fd = os.open(names[-1], _READ, dir_fd=parent)
    except OSError as error:
        if error.errno in _NOTHING or error.errno == errno.ENXIO:  # ENXIO: a socket
            return None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        return None
    with os.fdopen(fd, "rb") as source:
        raw = source.read(FILE_MAX_BYTES + 1)
    if len(raw) > FILE_MAX_BYTES:
        raise MemoryToolError(f"Error: The file {shown(names)} is larger than {FILE_MAX_BYTES:,} bytes")
    return raw


def _replace(parent: int, name: str, content: bytes) -> None:
    """Put `content` into the place of a file in one step, with its permissions."""
    mode = stat.S_IMODE(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)
    temporary = f".{new_id()}.tmp"
    _fill(os.open(temporary, _NEW, mode, dir_fd=parent), content, lambda: os.unlink(temporary, dir_fd=parent))
    os.replace(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)


def _fill(fd: int, content: bytes, undo: Callable[[], None]) -> None:
    """Write a new file and close it; when the disk is full, `undo` removes what there is of it."""
    try:
        with os.fdopen(fd, "wb") as out:
            out.write(content)
    except OSError:
        undo()
        raise


def _remove_tree(parent: int, name: str) -> None:
    """A folder and all in it; links in it are removed and not followed. Depth is bounded by the length of paths."""
    fd = os.open(name, _FOLDER, dir_fd=parent)
    try:
        for inner in sorted(os.listdir(fd)):
            if _kind(fd, inner) == "dir":
                _remove_tree(fd, inner)
            else:
                os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=parent)


def _collect(folder: int, names: Names, levels: int, found: list[Entry]) -> None:
    for name in sorted(os.listdir(folder)):
        if len(found) > ENTRIES_MAX:
            return
        kind = None if is_hidden(name) else _kind(folder, name)
        if kind is None:
            continue
        size = os.stat(name, dir_fd=folder, follow_symlinks=False).st_size if kind == "file" else 0
        found.append(Entry(names=(*names, name), kind=kind, size_bytes=size))
        if kind == "dir" and levels > 1:
            fd = os.open(name, _FOLDER, dir_fd=folder)
            try:
                _collect(fd, (*names, name), levels - 1, found)
            finally:
                os.close(fd)


@contextmanager
def _told(names: Names) -> Iterator[None]:
    """What the filesystem refuses, in words."""
    try:
        yield
    except OSError as error:
        raise MemoryToolError(f"Error: {shown(names)}: {(error.strerror or 'it cannot be reached').lower()}") from error
