"""Operations on names: lookup, creation, links, removal, rename, listing."""

from __future__ import annotations

import errno
import stat
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from memdir.core.limits import NAME_MAX_BYTES, SYMLINK_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.posix.notes import Notes, is_synced_type
from memdir.fs.posix.txn import Link, Txn
from memdir.fs.types import RENAME_EXCHANGE, RENAME_NOREPLACE, ROOT_INO, DirEntry, Inode, IntentKind, Owner

LINK_MAX: Final = 65_000
S_IFMT: Final = 0o170000
S_IFDIR: Final = stat.S_IFDIR
"""For tests of the type in hot paths; `stat.S_IFMT()` is a call."""
_DOTS: Final = (b".", b"..")
_CREATABLE: Final = (stat.S_IFREG, stat.S_IFSOCK, stat.S_IFIFO, stat.S_IFCHR, stat.S_IFBLK)


def check_name(name: bytes) -> None:
    """A single component; ENAMETOOLONG, EINVAL."""
    if len(name) > NAME_MAX_BYTES:
        raise FsError(errno.ENAMETOOLONG)
    if not name or b"/" in name or b"\0" in name:
        raise FsError(errno.EINVAL, "a name is 1 to 255 bytes without '/' and NUL")


class NameOps(Notes):
    """See `fs.vfs.Vfs` for what each method promises."""

    def lookup(self, parent: int, name: bytes) -> Inode:
        inode = self.find(parent, name)
        if inode is None:
            raise FsError(errno.ENOENT)
        return inode

    def find(self, parent: int, name: bytes) -> Inode | None:
        with self._lock:
            directory = self._dirs.get(parent)
            if directory is None:
                directory = self._directory(parent)
            entry = directory.entries.get(name)
            if entry is None:
                return self._find_rare(parent, name)
            return self._inodes.get(entry[0]) or self._inode(entry[0])

    def _find_rare(self, parent: int, name: bytes) -> Inode | None:
        if name == b".":
            return self._inode(parent)
        if name == b"..":
            return self._inode(self._inode(parent).parent)
        check_name(name)
        return None

    def readdir(self, ino: int, after_cookie: int = 0) -> Sequence[DirEntry]:
        with self._lock:
            directory = self._directory(ino)
            listing = directory.listing
            if listing is None:
                self._fetch_children(ino, directory.entries)
                inode = self._inode
                listing = [DirEntry(cookie, name, inode(child)) for name, (child, cookie) in directory.entries.items()]
                if directory.is_shuffled:
                    listing.sort(key=_cookie)
                directory.listing = listing
            if not after_cookie:
                return tuple(listing)
            rest = listing[bisect_right(listing, after_cookie, key=_cookie) :]
            if not rest:  # read to its end, and the kernel keeps what it read
                directory.listing = None
            return rest

    def create(self, parent: int, name: bytes, mode: int, owner: Owner, rdev: int = 0) -> Inode:
        if mode & S_IFMT not in _CREATABLE:
            raise FsError(errno.EINVAL, "not a file type that can be created")
        return self._make(parent, name, mode, owner, rdev=rdev)

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> Inode:
        return self._make(parent, name, stat.S_IFDIR | stat.S_IMODE(mode), owner)

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> Inode:
        if not target:
            raise FsError(errno.ENOENT, "a symlink cannot be empty")
        if len(target) > SYMLINK_MAX_BYTES:
            raise FsError(errno.ENAMETOOLONG)
        if b"\0" in target:
            raise FsError(errno.EINVAL, "a symlink cannot contain NUL")
        return self._make(parent, name, stat.S_IFLNK | 0o777, owner, target=target)

    def _make(self, parent: int, name: bytes, mode: int, owner: Owner, *, rdev: int = 0, target: bytes | None = None) -> Inode:
        with self._lock:
            self._prepare()
            txn = self._begin()
            draft = self._stage_new(txn, parent, name, mode, owner, rdev=rdev, target=target)
            self._note_name(txn, IntentKind.PUT, parent, name, mode)
            if self._records_intents:
                txn.covers = draft.ino
            self._commit(txn)
            live = self._inodes[draft.ino]
        self._announce()
        return live

    def _stage_new(
        self, txn: Txn, parent: int, name: bytes, mode: int, owner: Owner, *, rdev: int = 0, target: bytes | None = None,
        replaces: bool = False, ino: int = 0,
    ) -> Inode:  # fmt: skip
        """A new inode (number `ino` if that was reserved) under a free name, with the setgid rule of inode(7): the group, and
        for folders the bit, come down."""
        if not replaces:
            self._check_free(parent, name)
        above = txn.edit(self._inode(parent))
        is_dir = mode & S_IFMT == S_IFDIR
        gid = owner.gid
        if above.mode & stat.S_ISGID:
            gid = above.gid
            if is_dir:
                mode |= stat.S_ISGID
        now_ns = txn.now_ns
        if not ino:
            ino = txn.next_ino
            txn.next_ino = ino + 1
        size = len(target) if target is not None else 0
        draft = Inode(ino, mode, owner.uid, gid, 2 if is_dir else 1, size, now_ns, now_ns, now_ns, rdev, target, parent)
        txn.inodes[ino] = draft
        self._stage_name(txn, parent, name, ino, self._place_of((parent, name), (parent, name)) if replaces else 0)
        if is_dir:
            above.nlink += 1
        return draft

    def _check_free(self, parent: int, name: bytes) -> None:
        """A name that may be created in a living directory; EEXIST, ENOENT, ENOTDIR and what `check_name` says."""
        entries = (self._dirs.get(parent) or self._directory(parent)).entries
        if name in entries or name in _DOTS:
            raise FsError(errno.EEXIST)
        check_name(name)
        if not self._inode(parent).nlink:
            raise FsError(errno.ENOENT)

    def _stage_name(self, txn: Txn, parent: int, name: bytes, ino: int, cookie: int = 0) -> None:
        """Let `name` stand for `ino` (0: for nothing) from now on; the directory's times follow. A new name comes last in a
        listing, unless it takes the place (`cookie`) of another."""
        if ino:
            if not cookie:
                cookie = txn.next_cookie
                txn.next_cookie = cookie + 1
            txn.dentries[parent, name] = (ino, cookie)
        else:
            txn.dentries[parent, name] = None
        above = txn.inodes.get(parent) or txn.edit(self._inode(parent))
        above.mtime_ns = above.ctime_ns = txn.now_ns

    def _entry(self, parent: int, name: bytes) -> Inode:
        """What an existing name stands for; ENOENT."""
        entry = (self._dirs.get(parent) or self._directory(parent)).entries.get(name)
        if entry is None:
            check_name(name)
            raise FsError(errno.ENOENT)
        return self._inodes.get(entry[0]) or self._inode(entry[0])

    def link(self, ino: int, parent: int, name: bytes) -> Inode:
        with self._lock:
            self._prepare()
            inode = self._inode(ino)
            if inode.is_dir:
                raise FsError(errno.EPERM, "a directory has one name only")
            self._check_free(parent, name)
            if not inode.nlink:
                raise FsError(errno.ENOENT)
            if inode.nlink >= LINK_MAX:
                raise FsError(errno.EMLINK)
            self._refuse_unread_rules(inode, parent, name)
            txn = self._begin()
            draft = txn.edit(inode)
            draft.nlink += 1
            draft.ctime_ns = txn.now_ns
            self._stage_name(txn, parent, name, ino)
            self._note_name(txn, IntentKind.PUT, parent, name, inode.mode)
            self._commit(txn)
        self._announce()
        return inode

    def unlink(self, parent: int, name: bytes) -> None:
        if name in _DOTS:
            raise FsError(errno.EISDIR)
        with self._lock:
            self._prepare()
            inode = self._entry(parent, name)
            if inode.mode & S_IFMT == S_IFDIR:
                raise FsError(errno.EISDIR)
            self._remove(parent, name, inode)
        self._announce()

    def rmdir(self, parent: int, name: bytes) -> None:
        if name in _DOTS:
            raise FsError(errno.EINVAL if name == b"." else errno.ENOTEMPTY)
        with self._lock:
            self._prepare()
            inode = self._entry(parent, name)
            if not inode.is_dir:
                raise FsError(errno.ENOTDIR)
            if self._directory(inode.ino).entries:
                raise FsError(errno.ENOTEMPTY)
            self._remove(parent, name, inode)
        self._announce()

    def _remove(self, parent: int, name: bytes, inode: Inode) -> None:
        txn = self._begin()
        self._stage_drop(txn, parent, inode)
        self._stage_name(txn, parent, name, 0)
        self._note_name(txn, IntentKind.DELETE, parent, name, inode.mode)
        self._commit(txn)

    def _stage_drop(self, txn: Txn, parent: int, inode: Inode) -> None:
        """`inode` loses a name in `parent`: link counts, and its end when nothing refers to it any more."""
        draft = txn.edit(inode)
        draft.ctime_ns = txn.now_ns
        if inode.is_dir:
            draft.nlink = 0
            txn.edit(self._inode(parent)).nlink -= 1
        else:
            draft.nlink -= 1
        if not draft.nlink and not inode.lookups:
            txn.gone.append(inode.ino)

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        if flags not in (0, RENAME_NOREPLACE, RENAME_EXCHANGE):
            raise FsError(errno.EINVAL)
        if name in _DOTS or new_name in _DOTS:
            raise FsError(errno.EBUSY)
        with self._lock:
            self._prepare()
            txn = self._begin()
            if self._stage_rename(txn, (parent, name), (new_parent, new_name), flags):
                self._commit(txn)
        self._announce()

    def _stage_rename(self, txn: Txn, source: tuple[int, bytes], target: tuple[int, bytes], flags: int) -> bool:
        """Stage rename(2); False when both names are the same file already, which POSIX calls a success without effect."""
        (parent, name), (new_parent, new_name) = source, target
        moved = self._entry(parent, name)
        check_name(new_name)
        found = (self._dirs.get(new_parent) or self._directory(new_parent)).entries.get(new_name)
        replaced = self._inode(found[0]) if found else None
        if flags == RENAME_NOREPLACE and replaced is not None:
            raise FsError(errno.EEXIST)
        if flags == RENAME_EXCHANGE and replaced is None:
            raise FsError(errno.ENOENT)
        if parent != new_parent:
            if not self._inode(new_parent).nlink:
                raise FsError(errno.ENOENT)
            self._check_not_within(moved, new_parent)
        if replaced is not None and flags == RENAME_EXCHANGE:
            self._check_not_within(replaced, parent)
        if replaced is moved:
            return False
        self._refuse_unread_rules(moved, new_parent, new_name)
        if replaced is not None and flags == RENAME_EXCHANGE:
            self._refuse_unread_rules(replaced, parent, name)
        if replaced is not None and flags == RENAME_EXCHANGE:
            self._note_exchange(txn, moved, source, replaced, target)
            self._stage_exchange(txn, source, moved, target, replaced)
            return True
        if replaced is not None:
            self._check_replaceable(moved, replaced, parent)
            self._stage_drop(txn, new_parent, replaced)
            if moved.place > 0 and self._blobs is not None:
                # "Write a new file, rename it over the old one" without fsync: the sooner the bytes are on their way, the
                # less a power cut can take, as with ext4's auto_da_alloc.
                self._blobs.start_writeback(moved.ino, moved.place)
            if is_synced_type(replaced.mode) and not is_synced_type(moved.mode):
                self._note_name(txn, IntentKind.DELETE, new_parent, new_name, replaced.mode)
        self._note_move(txn, moved, source, target)
        self._stage_name(txn, parent, name, 0)
        self._stage_name(txn, new_parent, new_name, moved.ino, self._place_of(source, target))
        self._stage_moved(txn, moved, parent, new_parent)
        return True

    def _stage_exchange(
        self, txn: Txn, source: tuple[int, bytes], first: Inode, target: tuple[int, bytes], second: Inode
    ) -> None:
        self._stage_name(txn, *source, second.ino, self._place_of(source, source))
        self._stage_name(txn, *target, first.ino, self._place_of(target, target))
        self._stage_moved(txn, first, source[0], target[0])
        self._stage_moved(txn, second, target[0], source[0])

    def _place_of(self, source: Link, target: Link) -> int:
        """Where the new name of a rename stands in a listing: in the place of what it replaces, else of what it was in the same
        folder; 0 for last. A program that lists a folder and saves each file by rename must come to an end."""
        entries = self._directory(target[0]).entries
        found = entries.get(target[1])
        if found is None and source[0] == target[0]:
            found = entries.get(source[1])
        return found[1] if found else 0

    def _stage_moved(self, txn: Txn, inode: Inode, old_parent: int, new_parent: int) -> None:
        draft = txn.edit(inode)
        draft.ctime_ns = txn.now_ns
        draft.parent = new_parent
        if old_parent != new_parent and inode.is_dir:
            txn.edit(self._inode(old_parent)).nlink -= 1
            txn.edit(self._inode(new_parent)).nlink += 1

    def _check_not_within(self, moved: Inode, folder: int) -> None:
        """EINVAL when `folder` is `moved` or below it."""
        if moved.is_dir and self._is_within(folder, moved.ino):
            raise FsError(errno.EINVAL, "a directory cannot move into itself")

    def _is_within(self, folder: int, top: int) -> bool:
        """Whether `folder` is `top` or below it."""
        while folder not in (top, ROOT_INO):
            folder = self._inode(folder).parent
        return folder == top

    def _check_replaceable(self, moved: Inode, replaced: Inode, parent: int) -> None:
        """What stands in the way may be replaced by `moved`, which stands in `parent`; errors in the order of Linux."""
        if moved.is_dir and not replaced.is_dir:
            raise FsError(errno.ENOTDIR)
        if not moved.is_dir and replaced.is_dir:
            # A folder above the file holds something, and Linux says so before it compares the types (do_renameat2).
            raise FsError(errno.ENOTEMPTY if self._is_within(parent, replaced.ino) else errno.EISDIR)
        if replaced.is_dir and self._directory(replaced.ino).entries:
            raise FsError(errno.ENOTEMPTY)


def _cookie(entry: DirEntry) -> int:
    return entry.cookie
