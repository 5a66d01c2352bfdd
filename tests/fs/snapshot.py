"""A whole tree as plain values, to compare filesystems with each other and with a real directory."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from memdir.fs import path as paths
from memdir.fs.types import ROOT_INO, Inode
from memdir.fs.vfs import Vfs

from .contract import text

Node = tuple[object, ...]


def of_vfs(fs: Vfs) -> dict[str, Node]:
    """Everything, in listing order, times and inode numbers too."""
    found = {"/": _node(fs, fs.get(ROOT_INO))}
    stack = [("/", ROOT_INO)]
    while stack:
        folder, ino = stack.pop()
        for entry in fs.readdir(ino):
            path = paths.join(folder, paths.decode(entry.name))
            found[path] = (entry.cookie, *_node(fs, entry.inode))
            if entry.inode.is_dir:
                stack.append((path, entry.inode.ino))
    return found


def _node(fs: Vfs, inode: Inode) -> Node:
    data = text(fs, inode.ino) if inode.is_file else inode.target
    xattrs = tuple(sorted((name, fs.getxattr(inode.ino, name)) for name in fs.listxattr(inode.ino)))
    return (
        inode.ino, inode.mode, inode.uid, inode.gid, inode.nlink, inode.size, inode.atime_ns, inode.mtime_ns, inode.ctime_ns,
        inode.version, inode.parent if inode.is_dir else 0, data, xattrs,
    )  # fmt: skip


def visible(fs: Vfs) -> dict[str, Node]:
    """What a process would see and a real directory must show as well."""
    found: dict[str, Node] = {}
    stack = [("", ROOT_INO)]
    while stack:
        folder, ino = stack.pop()
        for entry in fs.readdir(ino):
            inode, path = entry.inode, f"{folder}/{paths.decode(entry.name)}"
            if inode.is_dir:
                found[path] = ("dir", stat.S_IMODE(inode.mode))
                stack.append((path, inode.ino))
            elif inode.is_symlink:
                found[path] = ("symlink", inode.target)
            else:
                found[path] = ("file", stat.S_IMODE(inode.mode), inode.nlink, text(fs, inode.ino))
    return found


def of_directory(top: Path) -> dict[str, Node]:
    """The same of a real directory."""
    found: dict[str, Node] = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            full = os.path.join(folder, name)
            path, status = full[len(str(top)) :], os.lstat(full)
            if stat.S_ISLNK(status.st_mode):
                found[path] = ("symlink", os.fsencode(os.readlink(full)))
            elif stat.S_ISDIR(status.st_mode):
                found[path] = ("dir", stat.S_IMODE(status.st_mode))
            else:
                found[path] = ("file", stat.S_IMODE(status.st_mode), status.st_nlink, Path(full).read_bytes())
    return found
