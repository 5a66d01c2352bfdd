"""Who may do what: by mode bits, since no kernel stands before the server."""

from __future__ import annotations

import errno

from memdir.fs.errors import FsError
from memdir.fs.nfs.rpc import Caller
from memdir.fs.types import AttrChange, Inode

R, W, X = 4, 2, 1


def allows(inode: Inode, caller: Caller, wanted: int) -> bool:
    """By mode bits, as Linux decides (path_resolution(7)); root needs one x bit to execute a file."""
    mode = inode.mode
    if caller.uid == 0:
        return not wanted & X or inode.is_dir or bool(mode & 0o111)
    if caller.uid == inode.uid:
        mode >>= 6
    elif inode.gid == caller.gid or inode.gid in caller.groups:
        mode >>= 3
    return mode & wanted == wanted


def need(inode: Inode, caller: Caller, wanted: int, *, owner_may: bool = False) -> None:
    """EACCES unless the bits allow it, or `owner_may` and it is the owner."""
    if not (owner_may and caller.uid == inode.uid) and not allows(inode, caller, wanted):
        raise FsError(errno.EACCES)


def check_change(inode: Inode, change: AttrChange, caller: Caller) -> None:
    """Whether a SETATTR is allowed, as chmod(2), chown(2), truncate(2) and utimensat(2) are."""
    if change.size is not None:
        if not inode.is_file:
            raise FsError(errno.EISDIR if inode.is_dir else errno.EINVAL)
        need(inode, caller, W, owner_may=True)
    is_owner = caller.uid in (0, inode.uid)
    if change.mode is not None and not is_owner:
        raise FsError(errno.EPERM)
    if change.uid is not None and change.uid != inode.uid and caller.uid != 0:
        raise FsError(errno.EPERM)
    gives_group = change.gid is not None and change.gid != inode.gid and caller.uid != 0
    if gives_group and not (is_owner and change.gid in caller.groups | {caller.gid}):
        raise FsError(errno.EPERM)
    if (change.atime_ns is not None or change.mtime_ns is not None) and not is_owner:
        need(inode, caller, W)
