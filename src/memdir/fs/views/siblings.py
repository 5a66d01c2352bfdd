"""`SiblingVfs`: beside each file that is no text stands its text, `report.pdf.pdf-transcription.md`, or why there is none.

A sibling is a view of its source, found by the source's inode: it moves, is copied and vanishes with it without anybody
following that. It can be read and nothing else; removing one does nothing and is no error, so that a folder with siblings can
be removed, and `rsync --delete` go over it, like any other. A file with the name of a sibling stands before it. In a work tree
of git they are found by name, and not listed.
"""

from __future__ import annotations

import errno
import stat
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.core.siblings import first_lines, sibling_name, source_of
from memdir.fs.errors import FsError
from memdir.fs.path import decode, encode
from memdir.fs.types import ROOT_INO, DirEntry, Inode, ReadResult
from memdir.fs.vfs import Vfs
from memdir.fs.views.layer import Layer

_INO_BASE: Final = 1 << 61
"""Above all other virtual inodes. Below it: the source's number, and which state of the sibling it is."""
_STATE_BITS: Final = 20
_COOKIE_BIT: Final = 1 << 61
"""A sibling is listed directly before its source, at the source's cookie with this bit."""
_FOREIGN_COOKIE: Final = 1 << 62
"""Cookies from here on belong to other views."""
_SUFFIX: Final = b".md"
_TEXTS_MAX_BYTES: Final = 32 << 20
"""Of texts that are kept while they are read; the one that is read is always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sibling:
    """What stands beside a file: `kind` as in its name, `size_bytes` of what `load` gives, the text without its first lines."""

    key: str
    """Names the text: another key, another text."""
    kind: str
    size_bytes: int
    load: Callable[[], bytes]


@dataclass(slots=True)
class _Shown:
    sibling: Sibling
    state: int
    """Grows when the text or its first lines became new: new contents are a new inode, so that no cached page is stale."""
    name: bytes = b""
    """Of the source, when it was last looked up."""


class SiblingVfs(Layer):
    """A `Vfs`: `base`, with siblings. `show` may be called from any thread."""

    def __init__(self, base: Vfs) -> None:
        super().__init__(base, first_ino=_INO_BASE)
        self._shown: dict[int, _Shown] = {}
        self._texts: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._lock = threading.Lock()
        # What never meets a sibling, or is refused for it as for any virtual inode, goes straight through.
        self.statfs, self.close = base.statfs, base.close
        self.setattr, self.write, self.fallocate = base.setattr, base.write, base.fallocate
        self.setxattr, self.removexattr = base.setxattr, base.removexattr
        self.readlink, self.getxattr, self.listxattr = base.readlink, base.getxattr, base.listxattr

    def show(self, path: str, sibling: Sibling | None) -> bool:
        """What stands beside the file at `path` from now on; None: nothing. False when there is no such file."""
        parent, ino, mode = ROOT_INO, ROOT_INO, 0
        parts = encode(path.strip("/")).split(b"/")
        for part in parts:
            parent = ino
            found = self._found(parent, part)
            if found is None:
                return False
            ino, mode = found.ino, found.mode
        if not stat.S_ISREG(mode):
            return False
        with self._lock:
            before = self._shown.get(ino)
            if before is not None and sibling is not None and before.sibling.key == sibling.key:
                return True
            if sibling is None:
                self._shown.pop(ino, None)
            else:
                self._shown[ino] = _Shown(sibling, 1 if before is None else before.state + 1)
        for one in (before.sibling if before is not None else None, sibling):
            if one is not None:
                self._announce(parent, parts[-1], one.kind)
        return True

    def beside(self, ino: int, name: bytes) -> tuple[bytes, Inode] | None:
        """Name and inode of the text of a file that is called `name`; None where it has none."""
        shown = self._shown.get(ino)
        sibling = None if shown is None else sibling_name(decode(name), shown.sibling.kind)
        if sibling is None:
            return None
        try:
            inode = self._inode(self._base.get(ino), name)
        except FsError:  # it is gone
            return None
        return None if inode is None else (encode(sibling), inode)

    def _announce(self, parent: int, source: bytes, kind: str) -> None:
        name = sibling_name(decode(source), kind)
        if name is not None:
            self._entry_changed(parent, encode(name))

    def _found(self, parent: int, name: bytes) -> Inode | None:
        try:
            return self._base.find(parent, name)
        except FsError:
            return None

    def _of(self, parent: int, name: bytes) -> Inode | None:
        """The sibling with this name."""
        if not self._shown or not name.endswith(_SUFFIX):
            return None
        source = source_of(decode(name))
        if source is None:
            return None
        inode = self._found(parent, encode(source[0]))
        return None if inode is None else self._inode(inode, encode(source[0]), source[1])

    def _inode(self, source: Inode, name: bytes, kind: str | None = None) -> Inode | None:
        with self._lock:
            shown = self._shown.get(source.ino)
            if shown is None or (kind is not None and kind != shown.sibling.kind):
                return None
            if shown.name != name:
                shown.state += bool(shown.name)
                shown.name = name
            return Inode(
                ino=_number(source.ino, shown.state), mode=stat.S_IFREG | (source.mode & 0o444), uid=source.uid, gid=source.gid,
                nlink=1, size=len(encode(first_lines(decode(name)))) + shown.sibling.size_bytes, atime_ns=source.mtime_ns,
                mtime_ns=source.mtime_ns, ctime_ns=source.ctime_ns, parent=source.parent,
            )  # fmt: skip

    def text(self, ino: int) -> bytes:
        """All of a sibling, by its inode; FsError when it is gone."""
        source = (ino - _INO_BASE) >> _STATE_BITS
        with self._lock:
            shown = self._shown.get(source)
            if shown is None:
                raise FsError(errno.ENOENT)
            key = (source, shown.state)
            text = self._texts.get(key)
            if text is not None:
                self._texts.move_to_end(key)
                return text
            sibling, name = shown.sibling, shown.name
        text = encode(first_lines(decode(name))) + sibling.load()
        with self._lock:
            self._texts[key] = text
            while len(self._texts) > 1 and sum(map(len, self._texts.values())) > _TEXTS_MAX_BYTES:
                self._texts.popitem(last=False)
        return text

    # fs.vfs.Vfs

    def get(self, ino: int) -> Inode:
        if ino < _INO_BASE:
            return self._base.get(ino)
        source = (ino - _INO_BASE) >> _STATE_BITS
        with self._lock:
            shown = self._shown.get(source)
            name = b"" if shown is None else shown.name
        inode = self._inode(self._base.get(source), name) if shown is not None else None
        if inode is None:
            raise FsError(errno.ENOENT)
        return inode

    def find(self, parent: int, name: bytes) -> Inode | None:
        if parent >= _INO_BASE:
            raise FsError(errno.ENOTDIR)
        return self._base.find(parent, name) or self._of(parent, name)

    def retain(self, ino: int, count: int = 1) -> None:
        if ino < _INO_BASE:
            self._base.retain(ino, count)

    def forget(self, ino: int, count: int) -> None:
        if ino < _INO_BASE:
            self._base.forget(ino, count)

    def readdir(self, ino: int, after_cookie: int = 0) -> Sequence[DirEntry]:
        if not self._shown or after_cookie >= _FOREIGN_COOKIE:
            return self._base.readdir(ino, after_cookie)
        resumed = after_cookie & _COOKIE_BIT
        real = self._base.readdir(ino, (after_cookie & ~_COOKIE_BIT) - 1 if resumed else after_cookie)
        shown = self._shown
        if any(entry.inode.ino in shown for entry in real) and self._is_in_work_tree(ino):
            return real
        listed: list[DirEntry] = []
        for entry in real:
            sibling = self._inode(entry.inode, entry.name) if entry.inode.ino in shown else None
            if sibling is not None and not (resumed and entry.cookie == after_cookie & ~_COOKIE_BIT):
                name = sibling_name(decode(entry.name), self._shown[entry.inode.ino].sibling.kind)
                if name is not None and self._found(ino, encode(name)) is None:
                    listed.append(DirEntry(entry.cookie | _COOKIE_BIT, encode(name), sibling))
            listed.append(entry)
        return listed

    def read(self, ino: int, offset: int, size: int) -> ReadResult:
        if ino < _INO_BASE:
            return self._base.read(ino, offset, size)
        return self.text(ino)[offset : offset + size]

    def allocated_bytes(self, ino: int) -> int:
        return self._base.allocated_bytes(ino) if ino < _INO_BASE else 0

    def unlink(self, parent: int, name: bytes) -> None:
        sibling = None if self._found(parent, name) is not None else self._of(parent, name)
        if sibling is None:
            self._base.unlink(parent, name)
            return
        with self._lock:
            shown = self._shown.get((sibling.ino - _INO_BASE) >> _STATE_BITS)
            if shown is not None:
                shown.state += 1  # the kernel takes the inode that it knows for removed

    def rmdir(self, parent: int, name: bytes) -> None:
        if self._is_shown(parent, name):
            raise FsError(errno.ENOTDIR)
        self._base.rmdir(parent, name)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        super().rename(parent, name, new_parent, new_name, flags)
        for folder, moved in ((new_parent, new_name), (parent, name)):  # both where two names are exchanged
            self._renamed(folder, moved)

    def link(self, ino: int, parent: int, name: bytes) -> Inode:
        linked = super().link(ino, parent, name)
        self._renamed(parent, name)
        return linked

    def _renamed(self, parent: int, name: bytes) -> None:
        """The kernel may know that there was no text beside this name."""
        inode = self._found(parent, name) if self._shown else None
        shown = None if inode is None else self._shown.get(inode.ino)
        if shown is not None:
            self._announce(parent, name, shown.sibling.kind)

    def _is_in_work_tree(self, ino: int) -> bool:
        """Whether git looks after a folder: it would take what is listed there for new files, and `git add` would add them."""
        while self._found(ino, b".git") is None:
            if ino == ROOT_INO:
                return False
            ino = self._base.get(ino).parent
        return True

    def _own_size(self, ino: int) -> int:
        return self.get(ino).size

    def _refuse_name(self, parent: int, name: bytes) -> None:
        if parent >= _INO_BASE or self._is_shown(parent, name):
            raise FsError(errno.EROFS)

    def _is_shown(self, parent: int, name: bytes) -> bool:
        """Whether the name stands for a sibling: a file of that name stands before it."""
        return bool(self._shown) and self._of(parent, name) is not None and self._found(parent, name) is None


def _number(source: int, state: int) -> int:
    return _INO_BASE + (source << _STATE_BITS) + (state & ((1 << _STATE_BITS) - 1))
