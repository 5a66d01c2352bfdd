"""One error for a filesystem operation: an errno. The edges (FUSE, NFS, shell) hand the number on as it is."""

from __future__ import annotations

import errno
import os

from memdir.core.errors import MemdirError


class FsError(MemdirError):
    """A refused filesystem operation. `errno` is the Linux number, e.g. `errno.ENOENT`."""

    def __init__(self, number: int, detail: str = "") -> None:
        super().__init__(detail or os.strerror(number))
        self.errno = number

    def __repr__(self) -> str:
        return f"FsError({errno.errorcode.get(self.errno, self.errno)})"


class ContentsAbsentError(FsError):
    """EIO, because the bytes of inode `ino` are on the server only. Nothing was changed; once they were brought
    (`fs.source.ContentSource`), the same operation goes through."""

    def __init__(self, ino: int) -> None:
        super().__init__(errno.EIO, "the contents are on the server only")
        self.ino = ino
