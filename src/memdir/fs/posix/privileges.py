"""Which mode bits somebody else's write takes away."""

from __future__ import annotations

import stat
from typing import Final

PRIVILEGES: Final = stat.S_ISUID | stat.S_ISGID


def without_privileges(mode: int) -> int:
    """The mode after somebody wrote to or took over a regular file: no setuid, and no setgid where the group may execute
    (setgid without group execution means mandatory locking; inode(7))."""
    if not stat.S_ISREG(mode):
        return mode
    mode &= ~stat.S_ISUID
    return mode & ~stat.S_ISGID if mode & stat.S_IXGRP else mode
