"""The 22 procedures of NFS version 3 over a `Vfs` (RFC 1813, section 3). None has state of its own, so that any connection may
carry any call.

Permissions are checked here, because no kernel stands before this server: by mode bits, and the owner of a file may always read
and write it, as RFC 1813 (4.4) asks for clients that checked at open.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
from collections.abc import Callable, Iterator
from typing import Final

from memdir.core.clock import Clock, SystemClock
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.nfs import attributes, permissions, status
from memdir.fs.nfs.handles import Handles
from memdir.fs.nfs.permissions import allows, check_change, need
from memdir.fs.nfs.rpc import Caller
from memdir.fs.nfs.xdr import FALSE, TRUE, Reader, XdrError, opaque, u32, u64
from memdir.fs.types import ROOT_INO, AttrChange, Inode, Owner, joined
from memdir.fs.vfs import Vfs

PROGRAM: Final = 100003
VERSION: Final = 3
IO_MAX_BYTES: Final = 1 << 20
_NAME_MAX_BYTES: Final = 4096
"""Longer ones are no names; those over 255 are answered NAMETOOLONG."""
_HANDLE_MAX_BYTES: Final = 64
_PATH_MAX_BYTES: Final = 4096
_COOKIE_VERIFIER: Final = b"memdir\0\1"
"""Cookies hold for ever (`DirEntry.cookie`), so a listing never has to begin anew."""
_FIRST_COOKIE: Final = 3
"""1 is `.`, 2 is `..`; those of the filesystem follow, moved by two."""
_ENTRY_SLACK_BYTES: Final = 256


_MADE: Final = {3: stat.S_IFBLK, 4: stat.S_IFCHR, 6: stat.S_IFSOCK, 7: stat.S_IFIFO}
_READ, _LOOKUP, _MODIFY, _EXTEND, _DELETE, _EXECUTE = 0x01, 0x02, 0x04, 0x08, 0x10, 0x20
_UNSTABLE, _FILE_SYNC = 0, 2
_UNCHECKED, _GUARDED, _EXCLUSIVE = 0, 1, 2


class _StatusError(Exception):
    """A refusal that has a number of NFS's own."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Nfs3:
    """Calls that change something are to come one after the other: what they say of before and after belongs together."""

    CHANGING: Final = frozenset({2, 7, 8, 9, 10, 11, 12, 13, 14, 15})

    def __init__(self, vfs: Vfs, handles: Handles, *, read_only: bool = False, clock: Clock | None = None) -> None:
        self._vfs = vfs
        self._clock = clock or SystemClock()
        self._handles = handles
        self._read_only = read_only
        self.verifier = os.urandom(8)
        """Another one after a restart: clients send again what they have not committed."""
        self._fsid = int.from_bytes(handles.of(0)[:8], "big")
        self._procedures: tuple[tuple[str, Callable[[Reader, Caller], bytes], bytes], ...] = (
            ("NULL", self._null, b""),
            ("GETATTR", self._getattr, b""),
            ("SETATTR", self._setattr, FALSE + FALSE),
            ("LOOKUP", self._lookup, FALSE),
            ("ACCESS", self._access, FALSE),
            ("READLINK", self._readlink, FALSE),
            ("READ", self._read, FALSE),
            ("WRITE", self._write, FALSE + FALSE),
            ("CREATE", self._create, FALSE + FALSE),
            ("MKDIR", self._mkdir, FALSE + FALSE),
            ("SYMLINK", self._symlink, FALSE + FALSE),
            ("MKNOD", self._mknod, FALSE + FALSE),
            ("REMOVE", self._remove, FALSE + FALSE),
            ("RMDIR", self._rmdir, FALSE + FALSE),
            ("RENAME", self._rename, FALSE * 4),
            ("LINK", self._link, FALSE * 3),
            ("READDIR", self._readdir, FALSE),
            ("READDIRPLUS", self._readdirplus, FALSE),
            ("FSSTAT", self._fsstat, FALSE),
            ("FSINFO", self._fsinfo, FALSE),
            ("PATHCONF", self._pathconf, FALSE),
            ("COMMIT", self._commit, FALSE + FALSE),
        )
        self.names = tuple(name for name, _run, _failed in self._procedures)

    def run(self, procedure: int, arguments: Reader, caller: Caller) -> bytes | None:
        """The result, a refusal included; None for a procedure that is none. XdrError for arguments that cannot be read, and
        ContentsAbsentError when contents must be fetched before: then nothing was changed."""
        if procedure >= len(self._procedures):
            return None
        _name, run, failed = self._procedures[procedure]
        try:
            return run(arguments, caller)
        except ContentsAbsentError:
            raise
        except FsError as error:
            return u32(status.OF_ERRNO.get(error.errno, status.SERVERFAULT)) + failed
        except _StatusError as error:
            return u32(error.number) + failed

    # --- arguments and results

    def _inode(self, reader: Reader) -> Inode:
        ino = self._handles.ino(reader.opaque(_HANDLE_MAX_BYTES))
        if ino is None:
            raise _StatusError(status.BADHANDLE)
        try:
            return self._vfs.get(ino)
        except FsError as error:
            raise _StatusError(status.STALE if error.errno == errno.ENOENT else status.SERVERFAULT) from error

    def _dir(self, reader: Reader) -> Inode:
        inode = self._inode(reader)
        if not inode.is_dir:
            raise FsError(errno.ENOTDIR)
        return inode

    @staticmethod
    def _name(reader: Reader) -> bytes:
        name = bytes(reader.opaque(_NAME_MAX_BYTES))
        if not name or b"/" in name or b"\0" in name:
            raise FsError(errno.EACCES if not name else errno.EINVAL)
        if len(name) > 255:
            raise FsError(errno.ENAMETOOLONG)
        return name

    def _new_name(self, reader: Reader) -> bytes:
        name = self._name(reader)
        if name in (b".", b".."):
            raise FsError(errno.EEXIST)
        return name

    def _fattr(self, inode: Inode) -> bytes:
        used = self._vfs.allocated_bytes(inode.ino) if inode.is_file else inode.size
        return attributes.fattr(inode, used, self._fsid)

    def _after(self, inode: Inode) -> bytes:
        """post_op_attr. An inode that is gone has none."""
        try:
            return TRUE + self._fattr(self._vfs.get(inode.ino))
        except FsError:
            return FALSE

    def _found(self, inode: Inode) -> bytes:
        """A handle and attributes, both present, as CREATE and its like return them."""
        return TRUE + opaque(self._handles.of(inode.ino)) + TRUE + self._fattr(inode)

    def _sattr(self, reader: Reader) -> AttrChange:
        mode = reader.u32() & 0o7777 if reader.flag() else None
        uid = reader.u32() if reader.flag() else None
        gid = reader.u32() if reader.flag() else None
        size = reader.u64() if reader.flag() else None
        return AttrChange(
            mode=mode, uid=uid, gid=gid, size=size, atime_ns=self._set_time(reader), mtime_ns=self._set_time(reader)
        )

    def _set_time(self, reader: Reader) -> int | None:
        how = reader.u32()
        if how > 2:
            raise XdrError("no way to set a time")
        if how == 1:
            return self._clock.now_ns()
        if how == 0:
            return None
        seconds, rest = reader.u32(), reader.u32()
        if rest >= 1_000_000_000:
            raise FsError(errno.EINVAL)
        return seconds * 1_000_000_000 + rest

    def _changing(self) -> None:
        if self._read_only:
            raise FsError(errno.EROFS)

    def _may_remove(self, parent: Inode, name: bytes, caller: Caller) -> None:
        """Write in the folder; in a sticky one only what is one's own."""
        self._changing()
        need(parent, caller, permissions.W | permissions.X)
        if parent.mode & stat.S_ISVTX and caller.uid not in (0, parent.uid):
            found = self._vfs.find(parent.ino, name)
            if found is not None and found.uid != caller.uid:
                raise FsError(errno.EACCES)

    # --- the procedures

    def _null(self, _reader: Reader, _caller: Caller) -> bytes:
        return b""

    def _getattr(self, reader: Reader, _caller: Caller) -> bytes:
        return u32(status.OK) + self._fattr(self._inode(reader))

    def _setattr(self, reader: Reader, caller: Caller) -> bytes:
        inode, change = self._inode(reader), self._sattr(reader)
        guard = (reader.u32(), reader.u32()) if reader.flag() else None
        before = attributes.before(inode)
        if guard is not None and guard != attributes.nfstime(inode.ctime_ns):
            raise _StatusError(status.NOT_SYNC)
        self._changing()
        check_change(inode, change, caller)
        self._vfs.setattr(inode.ino, change)
        return u32(status.OK) + before + self._after(inode)

    def _lookup(self, reader: Reader, caller: Caller) -> bytes:
        folder, name = self._dir(reader), self._name(reader)
        need(folder, caller, permissions.X)
        found = self._vfs.find(folder.ino, name)
        if found is None:
            return u32(status.OF_ERRNO[errno.ENOENT]) + self._after(folder)
        return u32(status.OK) + opaque(self._handles.of(found.ino)) + TRUE + self._fattr(found) + self._after(folder)

    def _access(self, reader: Reader, caller: Caller) -> bytes:
        inode, wanted = self._inode(reader), reader.u32()
        allowed = 0
        if allows(inode, caller, permissions.R):
            allowed |= _READ
        if allows(inode, caller, permissions.W) and not self._read_only:
            allowed |= _MODIFY | _EXTEND | (_DELETE if inode.is_dir else 0)
        if allows(inode, caller, permissions.X):
            allowed |= _LOOKUP if inode.is_dir else _EXECUTE
        return u32(status.OK) + TRUE + self._fattr(inode) + u32(allowed & wanted)

    def _readlink(self, reader: Reader, _caller: Caller) -> bytes:
        inode = self._inode(reader)
        return u32(status.OK) + self._after(inode) + opaque(self._vfs.readlink(inode.ino))

    def _read(self, reader: Reader, caller: Caller) -> bytes:
        inode, offset, count = self._inode(reader), reader.u64(), min(reader.u32(), IO_MAX_BYTES)
        if not inode.is_file:
            raise FsError(errno.EISDIR if inode.is_dir else errno.EINVAL)
        # Whoever may execute a file must be able to read it: the client loads the program.
        if not allows(inode, caller, permissions.X):
            need(inode, caller, permissions.R, owner_may=True)
        data = joined(self._vfs.read(inode.ino, offset, count)) if offset < inode.size else b""
        end = TRUE if offset + len(data) >= inode.size else FALSE
        return u32(status.OK) + self._after(inode) + u32(len(data)) + end + opaque(data)

    def _write(self, reader: Reader, caller: Caller) -> bytes:
        inode, offset, count, stable = self._inode(reader), reader.u64(), reader.u32(), reader.u32()
        data = reader.opaque(IO_MAX_BYTES)
        if stable > _FILE_SYNC:
            raise XdrError("no way to write")
        if not inode.is_file:
            raise FsError(errno.EISDIR if inode.is_dir else errno.EINVAL)
        self._changing()
        need(inode, caller, permissions.W, owner_may=True)
        before = attributes.before(inode)
        written = self._vfs.write(inode.ino, offset, data[:count]) if data[:count] else 0
        if stable != _UNSTABLE:
            self._vfs.fsync(inode.ino)
        return (
            u32(status.OK)
            + before
            + self._after(inode)
            + u32(written)
            + u32(_FILE_SYNC if stable else _UNSTABLE)
            + self.verifier
        )

    def _create(self, reader: Reader, caller: Caller) -> bytes:
        folder, name, how = self._dir(reader), self._new_name(reader), reader.u32()
        if how > _EXCLUSIVE:
            raise XdrError("no way to create")
        verifier = bytes(reader.fixed(8)) if how == _EXCLUSIVE else b""
        change = AttrChange() if how == _EXCLUSIVE else self._sattr(reader)
        self._changing()
        before = attributes.before(folder)
        found = self._vfs.find(folder.ino, name)
        if found is not None:
            if (
                how == _GUARDED
                or not found.is_file
                or (how == _EXCLUSIVE and attributes.stamps(verifier) != (found.atime_ns, found.mtime_ns))
            ):
                raise FsError(errno.EEXIST)
            if how == _UNCHECKED and change.size is not None:
                need(found, caller, permissions.W, owner_may=True)
                found = self._vfs.setattr(found.ino, AttrChange(size=change.size))
        else:
            need(folder, caller, permissions.W | permissions.X)
            mode = stat.S_IFREG | (0o644 if change.mode is None else change.mode)
            found = self._vfs.create(folder.ino, name, mode, self._owner(change, caller))
            if how == _EXCLUSIVE:
                # As RFC 1813 proposes: where the client sets times anyhow, a repeated call finds its own verifier.
                atime_ns, mtime_ns = attributes.stamps(verifier)
                found = self._vfs.setattr(found.ino, AttrChange(atime_ns=atime_ns, mtime_ns=mtime_ns))
            elif change.size or change.atime_ns is not None or change.mtime_ns is not None:
                found = self._vfs.setattr(
                    found.ino, AttrChange(size=change.size or None, atime_ns=change.atime_ns, mtime_ns=change.mtime_ns)
                )
        return u32(status.OK) + self._found(found) + before + self._after(folder)

    @staticmethod
    def _owner(change: AttrChange, caller: Caller) -> Owner:
        """Root may make files of others."""
        uid = change.uid if change.uid is not None and caller.uid == 0 else caller.uid
        gid = change.gid if change.gid is not None and caller.uid == 0 else caller.gid
        return Owner(uid, gid)

    def _mkdir(self, reader: Reader, caller: Caller) -> bytes:
        folder, name, change = self._dir(reader), self._new_name(reader), self._sattr(reader)
        self._changing()
        need(folder, caller, permissions.W | permissions.X)
        before = attributes.before(folder)
        mode = 0o755 if change.mode is None else change.mode
        made = self._vfs.mkdir(folder.ino, name, stat.S_IFDIR | mode, self._owner(change, caller))
        return u32(status.OK) + self._found(made) + before + self._after(folder)

    def _symlink(self, reader: Reader, caller: Caller) -> bytes:
        folder, name, change = self._dir(reader), self._new_name(reader), self._sattr(reader)
        target = bytes(reader.opaque(_PATH_MAX_BYTES))
        self._changing()
        need(folder, caller, permissions.W | permissions.X)
        before = attributes.before(folder)
        made = self._vfs.symlink(folder.ino, name, target, self._owner(change, caller))
        return u32(status.OK) + self._found(made) + before + self._after(folder)

    def _mknod(self, reader: Reader, caller: Caller) -> bytes:
        folder, name, kind = self._dir(reader), self._new_name(reader), reader.u32()
        if kind not in _MADE:
            raise _StatusError(status.BADTYPE)
        change = self._sattr(reader)
        rdev = os.makedev(reader.u32(), reader.u32()) if kind in (3, 4) else 0
        self._changing()
        if kind in (3, 4) and caller.uid != 0:
            raise FsError(errno.EPERM)
        need(folder, caller, permissions.W | permissions.X)
        before = attributes.before(folder)
        mode = _MADE[kind] | (0o644 if change.mode is None else change.mode)
        made = self._vfs.create(folder.ino, name, mode, self._owner(change, caller), rdev)
        return u32(status.OK) + self._found(made) + before + self._after(folder)

    def _remove(self, reader: Reader, caller: Caller) -> bytes:
        folder, name = self._dir(reader), self._name(reader)
        self._may_remove(folder, name, caller)
        before = attributes.before(folder)
        self._vfs.unlink(folder.ino, name)
        return u32(status.OK) + before + self._after(folder)

    def _rmdir(self, reader: Reader, caller: Caller) -> bytes:
        folder, name = self._dir(reader), self._name(reader)
        if name in (b".", b".."):
            raise FsError(errno.EINVAL if name == b"." else errno.EEXIST)
        self._may_remove(folder, name, caller)
        before = attributes.before(folder)
        self._vfs.rmdir(folder.ino, name)
        return u32(status.OK) + before + self._after(folder)

    def _rename(self, reader: Reader, caller: Caller) -> bytes:
        source, name = self._dir(reader), self._name(reader)
        target, new_name = self._dir(reader), self._name(reader)
        if {name, new_name} & {b".", b".."}:
            raise FsError(errno.EINVAL)
        self._may_remove(source, name, caller)
        self._may_remove(target, new_name, caller)
        before, there = attributes.before(source), attributes.before(target)
        self._vfs.rename(source.ino, name, target.ino, new_name)
        return u32(status.OK) + before + self._after(source) + there + self._after(target)

    def _link(self, reader: Reader, caller: Caller) -> bytes:
        inode, folder, name = self._inode(reader), self._dir(reader), self._new_name(reader)
        self._changing()
        need(folder, caller, permissions.W | permissions.X)
        before = attributes.before(folder)
        linked = self._vfs.link(inode.ino, folder.ino, name)
        return u32(status.OK) + self._after(linked) + before + self._after(folder)

    def _listing(self, folder: Inode, cookie: int) -> Iterator[tuple[int, bytes, Inode]]:
        if cookie < 1:
            yield 1, b".", folder
        if cookie < 2:
            yield 2, b"..", self._vfs.lookup(folder.ino, b"..") if folder.ino != ROOT_INO else folder
        for entry in self._vfs.readdir(folder.ino, max(cookie - _FIRST_COOKIE + 1, 0)):
            yield entry.cookie + _FIRST_COOKIE - 1, entry.name, entry.inode

    def _readdir(self, reader: Reader, caller: Caller) -> bytes:
        folder, cookie, verifier, room = self._dir(reader), reader.u64(), bytes(reader.fixed(8)), reader.u32()
        return self._listed(folder, caller, cookie, verifier, room, room, plus=False)

    def _readdirplus(self, reader: Reader, caller: Caller) -> bytes:
        folder, cookie, verifier = self._dir(reader), reader.u64(), bytes(reader.fixed(8))
        names_room, room = reader.u32(), reader.u32()
        return self._listed(folder, caller, cookie, verifier, names_room, room, plus=True)

    def _listed(
        self, folder: Inode, caller: Caller, cookie: int, verifier: bytes, names_room: int, room: int, *, plus: bool
    ) -> bytes:
        del verifier  # a cookie is never given to another entry: none is ever too old
        need(folder, caller, permissions.R)
        parts, is_whole = list[bytes](), True
        room, names_room = min(room, IO_MAX_BYTES) - _ENTRY_SLACK_BYTES, min(names_room, IO_MAX_BYTES)
        for at, name, inode in self._listing(folder, cookie):
            entry = TRUE + u64(inode.ino) + opaque(name) + u64(at)
            names_room -= len(entry)
            if plus:
                entry += TRUE + self._fattr(inode) + TRUE + opaque(self._handles.of(inode.ino))
            room -= len(entry)
            is_whole = room >= 0 and (names_room >= 0 or not plus)
            if not is_whole:
                break
            parts.append(entry)
        if not parts and not is_whole:
            raise _StatusError(status.TOOSMALL)
        end = TRUE if is_whole else FALSE
        return u32(status.OK) + self._after(folder) + _COOKIE_VERIFIER + b"".join(parts) + FALSE + end

    def _fsstat(self, reader: Reader, _caller: Caller) -> bytes:
        inode = self._inode(reader)
        return u32(status.OK) + self._after(inode) + attributes.fsstat(self._vfs.statfs())

    def _fsinfo(self, reader: Reader, _caller: Caller) -> bytes:
        inode = self._inode(reader)
        # Links, symbolic links, the same properties everywhere, times can be set.
        numbers = struct.pack(
            ">IIIIIIIQIII",
            IO_MAX_BYTES,
            IO_MAX_BYTES,
            4096,
            IO_MAX_BYTES,
            IO_MAX_BYTES,
            4096,
            64 << 10,
            (1 << 63) - 1,
            0,
            1,
            0x1B,
        )
        return u32(status.OK) + self._after(inode) + numbers

    def _pathconf(self, reader: Reader, _caller: Caller) -> bytes:
        inode = self._inode(reader)
        # Longer names are refused and not cut; only root gives files away; case counts and is kept.
        return u32(status.OK) + self._after(inode) + struct.pack(">IIIIII", 65_000, self._vfs.statfs().name_max, 1, 1, 0, 1)

    def _commit(self, reader: Reader, _caller: Caller) -> bytes:
        inode = self._inode(reader)
        reader.u64()
        reader.u32()
        before = attributes.before(inode)
        self._vfs.fsync(inode.ino)
        return u32(status.OK) + before + self._after(inode) + self.verifier
