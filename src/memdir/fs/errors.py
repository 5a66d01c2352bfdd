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
