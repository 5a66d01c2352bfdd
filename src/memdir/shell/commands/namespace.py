"""What a command of ours sees: the memory, by `Files`, and the interpreter's own files beside it, under one tree of paths."""

from __future__ import annotations

import errno
import math
import os
import posixpath
import stat
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from memdir.core.limits import PATH_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.types import Inode

if TYPE_CHECKING:
    from memdir.shell.files import Files

_LINKS_MAX: Final = 40
"""As the kernel: more symlinks in one path is ELOOP."""
_NS: Final = 1_000_000_000
_TYPES: Final = {"file": stat.S_IFREG, "directory": stat.S_IFDIR, "symlink": stat.S_IFLNK, "fifo": stat.S_IFIFO}


class Namespace:
    """Paths are absolute or relative to `cwd`. Methods raise FsError."""

    def __init__(self, mounts: Mapping[str, Files], scratch: Any, cwd: str, *, timeout_s: float = math.inf) -> None:
        """`scratch` is the interpreter's `FileSystem`. After `timeout_s` every method refuses: ETIMEDOUT."""
        self._deadline_s = time.monotonic() + timeout_s
        self._mounts = mounts
        self._scratch = scratch
        self.cwd = cwd

    def absolute(self, path: str) -> str:
        """Without `.`, `..` and doubled slashes."""
        if not path:
            raise FsError(errno.ENOENT)
        if len(path) > PATH_MAX_BYTES:
            raise FsError(errno.ENAMETOOLONG)
        if time.monotonic() > self._deadline_s:
            raise FsError(errno.ETIMEDOUT, "the command took too long")
        return "/" + posixpath.normpath(posixpath.join(self.cwd, path)).lstrip("/")

    def resolved(self, path: str, *, last: bool = True) -> str:
        """With links followed, of the last name only with `last`; what is not there stays as it is."""
        place = self.absolute(path)
        for _ in range(_LINKS_MAX + 1):
            names = place.strip("/").split("/")
            number = self._first_link(place, names)
            if number is None or (number == len(names) - 1 and not last):
                return place
            before = "/" + "/".join(names[:number])
            target = self._readlink("/" + "/".join(names[: number + 1]))
            place = "/" + posixpath.normpath(posixpath.join(before, target, *names[number + 1 :])).lstrip("/")
        raise FsError(errno.ELOOP)

    def lstat(self, path: str) -> Inode:
        """ENOENT, ENOTDIR."""
        return self._lstat(self._at(path, last=False))

    def stat(self, path: str) -> Inode:
        """With links followed."""
        return self._lstat(self._at(path))

    def exists(self, path: str) -> bool:
        """With links followed."""
        return self._try(path) is not None

    def is_dir(self, path: str) -> bool:
        """With links followed."""
        found = self._try(path)
        return found is not None and found.is_dir

    def is_there(self, path: str) -> bool:
        """Also a link that leads nowhere."""
        try:
            self.lstat(path)
        except FsError:
            return False
        return True

    def read(self, path: str) -> bytes:
        """The whole contents."""
        place = self._at(path)
        files, inside = self._owner(place)
        return files.read(inside) if files else self._asked("read_file", place)

    def write(self, path: str, data: bytes) -> None:
        """Put `data` into the file, which is made when there is none."""
        place = self._at(path)
        files, inside = self._owner(place)
        if files:
            files.write(inside, data)
        else:
            self._asked("write_file", place, data)

    def names(self, path: str) -> list[str]:
        """What stands in a folder, by name."""
        place = self._at(path)
        files, inside = self._owner(place)
        if files:
            return [entry.name for entry in files.entries(inside)]
        inner = {mount[1:] for mount in self._mounts} if place == "/" else set()
        return sorted(inner | {str(entry["name"]) for entry in self._asked("read_dir", place)})

    def mkdir(self, path: str, *, parents: bool = False) -> None:
        """EEXIST; with `parents` also what is missing above it, and a folder that is there is well."""
        place = self.resolved(path)
        files, inside = self._owner(place)
        if files:
            files.mkdir(inside, parents=parents)
        elif self.is_there(place) and not (parents and self.is_dir(place)):
            raise FsError(errno.EEXIST)
        else:
            self._asked("mkdir", place, parents)

    def remove(self, path: str) -> None:
        """A file, a link, or an empty folder."""
        place = self._at(path, last=False)
        if place in self._mounts or place == "/":
            raise FsError(errno.EBUSY)
        files, inside = self._owner(place)
        if files:
            files.remove(inside)
        else:
            self._asked("remove", place)

    def rename(self, source: str, target: str) -> None:
        """As rename(2): EXDEV between the memory and what stands beside it."""
        old, new = self._at(source, last=False), self._at(target, last=False)
        if old in self._mounts:
            raise FsError(errno.EBUSY)
        (from_files, from_inside), (to_files, to_inside) = self._owner(old), self._owner(new)
        if from_files is not to_files:
            raise FsError(errno.EXDEV)
        if from_files:
            from_files.rename(from_inside, to_inside)
        else:
            self._asked("rename", old, new)

    def symlink(self, target: str, path: str) -> None:
        """EEXIST."""
        place = self._at(path, last=False)
        files, inside = self._owner(place)
        if self.is_there(place):
            raise FsError(errno.EEXIST)
        if files:
            files.symlink(target, inside)
        else:
            self._asked("symlink", target, place)

    def link(self, source: str, target: str) -> None:
        """EXDEV outside one memory."""
        old, new = self._at(source, last=False), self._at(target, last=False)
        (from_files, from_inside), (to_files, to_inside) = self._owner(old), self._owner(new)
        if from_files is not to_files:
            raise FsError(errno.EXDEV)
        if not from_files:
            raise FsError(errno.EPERM)
        from_files.link(from_inside, to_inside)

    def readlink(self, path: str) -> str:
        """EINVAL."""
        place = self._at(path, last=False)
        if not self._is_link(place):
            raise FsError(errno.EINVAL if self.is_there(place) else errno.ENOENT)
        return self._readlink(place)

    def chmod(self, path: str, mode: int) -> None:
        """Permission bits."""
        place = self._at(path)
        files, inside = self._owner(place)
        if files:
            files.chmod(inside, mode)
        else:
            self._asked("chmod", place, mode)

    def set_times(self, path: str, *, atime_ns: int | None, mtime_ns: int | None) -> None:
        """EPERM outside the memory, where files have no times of their own to set."""
        place = self._at(path)
        files, inside = self._owner(place)
        if not files:
            raise FsError(errno.EPERM)
        files.set_times(inside, atime_ns=atime_ns, mtime_ns=mtime_ns)

    # --- inside --------------------------------------------------------------------------------------------------

    def _at(self, path: str, *, last: bool = True) -> str:
        place = self.resolved(path, last=last)
        if path.endswith("/") and path.strip("/") and not self._lstat(self.resolved(path)).is_dir:
            raise FsError(errno.ENOTDIR)
        return place

    def _owner(self, place: str) -> tuple[Files | None, str]:
        for mount, files in self._mounts.items():
            if place == mount or place.startswith(mount + "/"):
                return files, place[len(mount) :] or "/"
        return None, place

    def _first_link(self, place: str, names: list[str]) -> int | None:
        """Which of the `names` of `place` is a link, the first; None without one."""
        files, inside = self._owner(place)
        if files:
            number = files.first_link(inside)
            return None if number is None else number + len(names) - len(inside.strip("/").split("/"))
        steps = ("/" + "/".join(names[: number + 1]) for number in range(len(names)))
        return next((number for number, step in enumerate(steps) if self._is_link(step)), None)

    def _try(self, path: str) -> Inode | None:
        try:
            return self.stat(path)
        except FsError:
            return None

    def _lstat(self, place: str) -> Inode:
        files, inside = self._owner(place)
        if files:
            return files.stat(inside)
        if place == "/":
            return _of_scratch(self._asked("stat", place))
        parent, _, name = place.rpartition("/")
        for entry in self._asked("read_dir", parent or "/"):
            if entry["name"] == name:
                return _of_scratch(entry["metadata"])
        raise FsError(errno.ENOENT)

    def _is_link(self, place: str) -> bool:
        try:
            return self._lstat(place).is_symlink
        except FsError:
            return False

    def _readlink(self, place: str) -> str:
        files, inside = self._owner(place)
        return files.readlink(inside) if files else str(self._asked("read_link", place))

    def _asked(self, what: str, *args: Any) -> Any:
        """What the interpreter's filesystem answers; it raises BashError with a text and no number."""
        from bashkit import BashError

        try:
            return getattr(self._scratch, what)(*args)
        except (BashError, OSError, RuntimeError) as error:
            text = str(error).lower()
            for number, words in _SAID:
                if words in text:
                    raise FsError(number) from None
            raise FsError(errno.EIO, str(error)) from None


_SAID: Final = (
    (errno.ENOENT, "not found"),
    (errno.ENOENT, "no such file"),
    (errno.EISDIR, "is a directory"),
    (errno.ENOTDIR, "not a directory"),
    (errno.EEXIST, "exist"),
    (errno.ENOTEMPTY, "not empty"),
    (errno.ENOSPC, "limit"),
)


def _of_scratch(given: Mapping[str, Any]) -> Inode:
    modified, created = (int(given[key] * _NS) for key in ("modified", "created"))
    return Inode(
        ino=0, mode=_TYPES.get(given["file_type"], stat.S_IFREG) | int(given["mode"]), uid=os.getuid(), gid=os.getgid(),
        nlink=1, size=int(given["size"]), atime_ns=modified, mtime_ns=modified, ctime_ns=created,
    )  # fmt: skip
