"""The contract of a filesystem: what FUSE, NFS and the shell call, and what the cache and `MemoryFs` provide. No I/O.

Rules that hold for every method:
- A refusal raises `FsError` with the errno that Linux gives for the same call, and changes nothing.
- Names are single components of 1 to 255 bytes without `/` and NUL; longer ones raise ENAMETOOLONG.
- A returned `Inode` is a live view owned by the filesystem: read it, never write it.
- When a mutating method returns, the change survives the death of the process; after `fsync` returns, a power cut too.
- Permissions are checked by the caller's edge (the kernel, under `default_permissions`), not here; POSIX side effects of
  an operation (times, link counts, clearing of setuid, setgid inheritance) happen here.
- Methods may be called from several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from memdir.fs.types import AttrChange, Data, DirEntry, FsStats, Inode, Owner, ReadResult


class Vfs(Protocol):
    """Operations by inode number, after the shape of the FUSE kernel protocol."""

    def get(self, ino: int) -> Inode:
        """The inode; ENOENT when it is gone for good."""
        ...

    def lookup(self, parent: int, name: bytes) -> Inode:
        """The inode a name stands for; ENOENT, ENOTDIR, ENAMETOOLONG. `.` and `..` work."""
        ...

    def find(self, parent: int, name: bytes) -> Inode | None:
        """As `lookup`, with None for a name that is not there: the kernel asks for absent names as often as for present ones
        (every create does), and an exception would cost more than all the rest of the answer."""
        ...

    def retain(self, ino: int, count: int = 1) -> None:
        """Count references the kernel now holds; an unlinked inode lives until they are forgotten."""
        ...

    def forget(self, ino: int, count: int) -> None:
        """Take references back. At zero an unlinked inode is deleted with its contents."""
        ...

    def setattr(self, ino: int, change: AttrChange) -> Inode:
        """chmod, chown, truncate, utimens in one step; sets ctime unless given. EFBIG, EISDIR for size on a directory."""
        ...

    def readlink(self, ino: int) -> bytes:
        """The target as stored; EINVAL when it is no symlink."""
        ...

    def create(self, parent: int, name: bytes, mode: int, owner: Owner, rdev: int = 0) -> Inode:
        """A new regular file, or a socket, FIFO or device node, which is stored but never synced. `mode` with type bits."""
        ...

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> Inode: ...

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> Inode: ...

    def link(self, ino: int, parent: int, name: bytes) -> Inode:
        """A hard link; EPERM on a directory, EMLINK past 65,000."""
        ...

    def unlink(self, parent: int, name: bytes) -> None:
        """EISDIR on a directory."""
        ...

    def rmdir(self, parent: int, name: bytes) -> None:
        """ENOTDIR, ENOTEMPTY."""
        ...

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        """rename(2) with RENAME_NOREPLACE and RENAME_EXCHANGE. EINVAL when a directory would move into itself."""
        ...

    def allocated_bytes(self, ino: int) -> int:
        """What the contents take on the disk, for st_blocks: less than the size where there are holes. The size itself when
        they are on the server only."""
        ...

    def read(self, ino: int, offset: int, size: int) -> ReadResult:
        """Up to `size` bytes; shorter only at the end of the file. EISDIR, EIO."""
        ...

    def write(self, ino: int, offset: int, data: Data) -> int:
        """All of `data` or an error; returns its length. EFBIG, ENOSPC."""
        ...

    def fallocate(self, ino: int, offset: int, length: int, mode: int) -> None:
        """Allocate, punch a hole or zero a range (`FALLOC_*`); other modes EOPNOTSUPP."""
        ...

    def seek_data(self, ino: int, offset: int, *, hole: bool) -> int:
        """lseek with SEEK_DATA, or SEEK_HOLE when `hole`; ENXIO past the end."""
        ...

    def readdir(self, ino: int, after_cookie: int = 0) -> Sequence[DirEntry]:
        """Entries behind `after_cookie` in cookie order, without `.` and `..`. ENOTDIR."""
        ...

    def getxattr(self, ino: int, name: bytes) -> bytes:
        """ENODATA when there is none."""
        ...

    def setxattr(self, ino: int, name: bytes, value: bytes, flags: int = 0) -> None:
        """XATTR_CREATE: EEXIST; XATTR_REPLACE: ENODATA. Values up to 64 KiB (E2BIG), names up to 255 bytes (ERANGE)."""
        ...

    def listxattr(self, ino: int) -> Sequence[bytes]: ...

    def removexattr(self, ino: int, name: bytes) -> None: ...

    def statfs(self) -> FsStats: ...

    def fsync(self, ino: int) -> None:
        """When it returns, every name, attribute and small content acknowledged so far survives a power cut, and so do the
        contents of `ino`; with the root, all contents (that is syncfs)."""
        ...

    def close(self) -> None:
        """Flush and release. The object cannot be used afterwards."""
        ...


class Lender(Protocol):
    """A filesystem that can let the kernel read and write some of its files directly."""

    def lend(self, ino: int, *, writable: bool, is_new: bool) -> int | None:
        """A descriptor of the file that holds the contents, for the caller to close; None when they are not in one. `is_new`:
        just created, so that it may as well begin in one. Until `take_back` what `refresh` finds there is what the inode is."""
        ...

    def lend_for_writing(self, ino: int) -> None:
        """What was lent may be written to from now on."""
        ...

    def refresh(self, ino: int) -> None:
        """Take over what was written to the file; nothing happens to one that is not lent."""
        ...

    def take_back(self, ino: int) -> None:
        """Nobody has it open any more."""
        ...

    def is_lent(self, ino: int) -> bool: ...


class Invalidator(Protocol):
    """What a filesystem calls when something changed behind the kernel's back (a remote change, a new profile).

    Called without locks held, from any thread; must not block and must not raise.
    """

    def inode_changed(self, ino: int) -> None:
        """Forget cached attributes and contents of `ino`."""
        ...

    def entry_changed(self, parent: int, name: bytes) -> None:
        """Forget the cached (positive or negative) entry."""
        ...


IntentListener = Callable[[], None]
"""Called after an intent was recorded, outside locks, from the writing thread: set an event and return."""
