"""A client of NFS version 3 written from RFC 1813, and a `Vfs` over it: the contract suite runs through the protocol."""

from __future__ import annotations

import errno
import itertools
import os
import socket
import stat
import struct
from dataclasses import dataclass
from typing import Any

from memdir.fs.errors import FsError
from memdir.fs.nfs.xdr import FALSE, TRUE, Reader, opaque, u32, u64
from memdir.fs.types import ROOT_INO, AttrChange, DirEntry, FsStats, Owner

NFS, MOUNT = 100003, 100005
ERRNO = {
    1: errno.EPERM, 2: errno.ENOENT, 5: errno.EIO, 6: errno.ENXIO, 13: errno.EACCES, 17: errno.EEXIST, 18: errno.EXDEV,
    19: errno.ENODEV, 20: errno.ENOTDIR, 21: errno.EISDIR, 22: errno.EINVAL, 27: errno.EFBIG, 28: errno.ENOSPC, 30: errno.EROFS,
    31: errno.EMLINK, 63: errno.ENAMETOOLONG, 66: errno.ENOTEMPTY, 70: errno.ESTALE, 10004: errno.EOPNOTSUPP,
}  # fmt: skip
TYPES = {1: stat.S_IFREG, 2: stat.S_IFDIR, 3: stat.S_IFBLK, 4: stat.S_IFCHR, 5: stat.S_IFLNK, 6: stat.S_IFSOCK, 7: stat.S_IFIFO}


class RpcError(Exception):
    """The call was not accepted; `status` is accept_stat, or -1 when it was denied."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


class StatusError(Exception):
    """nfsstat3 other than OK, with what stands behind it."""

    def __init__(self, status: int, rest: Reader) -> None:
        super().__init__(status)
        self.status = status
        self.rest = rest


@dataclass(frozen=True, kw_only=True)
class Attributes:
    kind: int
    mode: int
    nlink: int
    uid: int
    gid: int
    size: int
    used: int
    rdev: int
    fsid: int
    ino: int
    atime_ns: int
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, kw_only=True)
class Wcc:
    before: tuple[int, int, int] | None
    """size, mtime, ctime"""
    after: Attributes | None


def attributes(reader: Reader) -> Attributes:
    kind, mode, nlink, uid, gid = (reader.u32() for _ in range(5))
    size, used = reader.u64(), reader.u64()
    rdev = os.makedev(reader.u32(), reader.u32())
    fsid, ino = reader.u64(), reader.u64()
    times = [when(reader) for _ in range(3)]
    return Attributes(
        kind=kind, mode=TYPES[kind] | mode, nlink=nlink, uid=uid, gid=gid, size=size, used=used, rdev=rdev, fsid=fsid, ino=ino,
        atime_ns=times[0], mtime_ns=times[1], ctime_ns=times[2],
    )  # fmt: skip


def when(reader: Reader) -> int:
    seconds = reader.u32()
    return seconds * 10**9 + reader.u32()


def maybe(reader: Reader) -> Attributes | None:
    return attributes(reader) if reader.flag() else None


def wcc(reader: Reader) -> Wcc:
    before = (reader.u64(), when(reader), when(reader)) if reader.flag() else None
    return Wcc(before=before, after=maybe(reader))


def sattr(change: AttrChange) -> bytes:
    parts = [FALSE if value is None else TRUE + u32(value) for value in (change.mode, change.uid, change.gid)]
    parts.append(FALSE if change.size is None else TRUE + u64(change.size))
    times = (change.atime_ns, change.mtime_ns)
    return b"".join(parts) + b"".join(
        u32(0) if at_ns is None else u32(2) + struct.pack(">II", *divmod(at_ns, 10**9)) for at_ns in times
    )


class Connection:
    """One TCP connection; `uid` and `gid` go along by AUTH_SYS."""

    def __init__(self, port: int, *, uid: int = 0, gid: int = 0) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self.uid, self.gid = uid, gid
        self._xids = itertools.count(1)

    def close(self) -> None:
        self.socket.close()

    def message(self, program: int, procedure: int, body: bytes, *, version: int = 3, rpc_version: int = 2) -> bytes:
        credential = u32(0) + opaque(b"test") + u32(self.uid) + u32(self.gid) + u32(0)
        head = struct.pack(">IIIIII", next(self._xids), 0, rpc_version, program, version, procedure)
        return head + u32(1) + opaque(credential) + u32(0) + opaque(b"") + body

    def send(self, message: bytes, *, fragments: int = 1) -> None:
        step = -(-len(message) // fragments)
        pieces = [message[at : at + step] for at in range(0, len(message), step)]
        for number, piece in enumerate(pieces, start=1):
            last = 0x80000000 if number == len(pieces) else 0
            self.socket.sendall(u32(last | len(piece)) + piece)

    def receive(self) -> Reader:
        (mark,) = struct.unpack(">I", self._exactly(4))
        assert mark & 0x80000000
        return Reader(memoryview(self._exactly(mark & 0x7FFFFFFF)))

    def _exactly(self, length: int) -> bytes:
        data = b""
        while len(data) < length:
            piece = self.socket.recv(length - len(data))
            if not piece:
                raise ConnectionError("the server closed the connection")
            data += piece
        return data

    def call(self, program: int, procedure: int, body: bytes = b"", **more: Any) -> Reader:
        """The result of an accepted call; RpcError."""
        self.send(self.message(program, procedure, body, **more))
        return accepted(self.receive())

    def nfs(self, procedure: int, body: bytes = b"") -> Reader:
        """What stands behind the status; StatusError."""
        reply = self.call(NFS, procedure, body)
        status = reply.u32()
        if status:
            raise StatusError(status, reply)
        return reply

    def mount(self, path: str) -> bytes:
        reply = self.call(MOUNT, 1, opaque(path.encode()))
        status = reply.u32()
        if status:
            raise StatusError(status, reply)
        return bytes(reply.opaque(64))


def accepted(reply: Reader) -> Reader:
    reply.u32()
    assert reply.u32() == 1
    if reply.u32() != 0:
        raise RpcError(-1)
    reply.u32()
    reply.opaque(400)
    status = reply.u32()
    if status:
        raise RpcError(status)
    return reply


class NfsInode:
    """Attributes as GETATTR tells them at this moment."""

    def __init__(self, fs: NfsFs, ino: int) -> None:
        self.fs, self.ino = fs, ino

    def __getattr__(self, name: str) -> Any:
        if name in ("version", "encoded", "place", "lookups"):
            return getattr(self.fs.behind.get(self.ino), name)
        return getattr(self.fs.attributes(self.ino), name)

    @property
    def is_dir(self) -> bool:
        return stat.S_ISDIR(self.mode)

    @property
    def is_file(self) -> bool:
        return stat.S_ISREG(self.mode)


class NfsFs:
    """See `fs.vfs.Vfs`: every call is answered by NFS and nothing else. `behind` shows what the protocol does not carry."""

    def __init__(self, connection: Connection, root: bytes, behind: Any) -> None:
        self.nfs = connection.nfs
        self._connection = connection
        self.behind = behind
        self._handles = {ROOT_INO: root}

    def _call(self, procedure: int, body: bytes) -> Reader:
        try:
            return self.nfs(procedure, body)
        except StatusError as error:
            number = ERRNO.get(error.status, errno.EIO)
            raise FsError(errno.ENOENT if number == errno.ESTALE else number) from error

    def handle(self, ino: int) -> bytes:
        return opaque(self._handles.get(ino) or self._handles[ROOT_INO][:16] + ino.to_bytes(8, "big"))

    def attributes(self, ino: int) -> Attributes:
        return attributes(self._call(1, self.handle(ino)))

    def _known(self, reader: Reader) -> NfsInode:
        handle = bytes(reader.opaque(64))
        ino = int.from_bytes(handle[16:], "big")
        self._handles[ino] = handle
        return NfsInode(self, ino)

    def get(self, ino: int) -> NfsInode:
        self.attributes(ino)
        return NfsInode(self, ino)

    def lookup(self, parent: int, name: bytes) -> NfsInode:
        return self._known(self._call(3, self.handle(parent) + opaque(name)))

    def find(self, parent: int, name: bytes) -> NfsInode | None:
        try:
            return self.lookup(parent, name)
        except FsError as error:
            if error.errno == errno.ENOENT:
                return None
            raise

    def setattr(self, ino: int, change: AttrChange) -> NfsInode:
        self._call(2, self.handle(ino) + sattr(change) + FALSE)
        return NfsInode(self, ino)

    def readlink(self, ino: int) -> bytes:
        reply = self._call(5, self.handle(ino))
        maybe(reply)
        return bytes(reply.opaque(4096))

    def _made(self, reply: Reader) -> NfsInode:
        assert reply.flag()
        made = self._known(reply)
        assert maybe(reply) is not None
        wcc(reply)
        return made

    def _as(self, owner: Owner, mode: int | None) -> bytes:
        return sattr(AttrChange(mode=None if mode is None else mode & 0o7777, uid=owner.uid, gid=owner.gid))

    def create(self, parent: int, name: bytes, mode: int, owner: Owner, rdev: int = 0) -> NfsInode:
        kind = stat.S_IFMT(mode)
        if kind == stat.S_IFREG:
            return self._made(self._call(8, self.handle(parent) + opaque(name) + u32(1) + self._as(owner, mode)))
        number = {value: key for key, value in TYPES.items()}[kind]
        device = struct.pack(">II", os.major(rdev), os.minor(rdev)) if number in (3, 4) else b""
        return self._made(self._call(11, self.handle(parent) + opaque(name) + u32(number) + self._as(owner, mode) + device))

    def mkdir(self, parent: int, name: bytes, mode: int, owner: Owner) -> NfsInode:
        return self._made(self._call(9, self.handle(parent) + opaque(name) + self._as(owner, mode)))

    def symlink(self, parent: int, name: bytes, target: bytes, owner: Owner) -> NfsInode:
        body = self.handle(parent) + opaque(name) + self._as(owner, None) + opaque(target)
        return self._made(self._call(10, body))

    def link(self, ino: int, parent: int, name: bytes) -> NfsInode:
        self._call(15, self.handle(ino) + self.handle(parent) + opaque(name))
        return NfsInode(self, ino)

    def unlink(self, parent: int, name: bytes) -> None:
        self._call(12, self.handle(parent) + opaque(name))

    def rmdir(self, parent: int, name: bytes) -> None:
        self._call(13, self.handle(parent) + opaque(name))

    def rename(self, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int = 0) -> None:
        if flags:
            self.behind.rename(parent, name, new_parent, new_name, flags)
            return
        self._call(14, self.handle(parent) + opaque(name) + self.handle(new_parent) + opaque(new_name))

    def read(self, ino: int, offset: int, size: int) -> bytes:
        data = b""
        while size > 0:
            reply = self._call(6, self.handle(ino) + u64(offset) + u32(min(size, 1 << 20)))
            maybe(reply)
            count, end = reply.u32(), reply.flag()
            piece = bytes(reply.opaque(1 << 20))
            assert len(piece) == count
            data += piece
            offset, size = offset + count, size - count
            if end:
                break
        return data

    def write(self, ino: int, offset: int, data: Any) -> int:
        done = 0
        for at in range(0, len(data), 1 << 20):
            piece = bytes(data[at : at + (1 << 20)])
            body = self.handle(ino) + u64(offset + at) + u32(len(piece)) + u32(0) + opaque(piece)
            reply = self._call(7, body)
            wcc(reply)
            done += reply.u32()
        return done

    def readdir(self, ino: int, after_cookie: int = 0, *, plus: bool = True, room: int = 2048) -> list[DirEntry]:
        """In small pieces, without `.` and `..`."""
        found, cookie, end = [], after_cookie, False
        while not end:
            if plus:
                reply = self._call(17, self.handle(ino) + u64(cookie) + b"\0" * 8 + u32(room) + u32(room))
            else:
                reply = self._call(16, self.handle(ino) + u64(cookie) + b"\0" * 8 + u32(room))
            maybe(reply)
            reply.fixed(8)
            while reply.flag():
                number, name, cookie = reply.u64(), bytes(reply.opaque(255)), reply.u64()
                if plus:
                    given = maybe(reply)
                    assert given is None or given.ino == number
                    assert reply.flag()
                    self._known(reply)
                if name not in (b".", b".."):
                    found.append(DirEntry(cookie, name, NfsInode(self, number)))  # type: ignore[arg-type]
            end = reply.flag()
        return found

    def statfs(self) -> FsStats:
        reply = self._call(18, self.handle(ROOT_INO))
        maybe(reply)
        total, free, available, inodes, inodes_free = (reply.u64() for _ in range(5))
        return FsStats(
            block_size=4096, blocks=total // 4096, blocks_free=free // 4096, blocks_available=available // 4096, inodes=inodes,
            inodes_free=inodes_free,
        )  # fmt: skip

    def allocated_bytes(self, ino: int) -> int:
        return self.attributes(ino).used

    def fsync(self, ino: int) -> None:
        self._call(21, self.handle(ino) + u64(0) + u32(0))

    # what the protocol does not have

    def fallocate(self, ino: int, offset: int, length: int, mode: int) -> None:
        self.behind.fallocate(ino, offset, length, mode)

    def seek_data(self, ino: int, offset: int, *, hole: bool) -> int:
        found: int = self.behind.seek_data(ino, offset, hole=hole)
        return found

    def getxattr(self, ino: int, name: bytes) -> bytes:
        found: bytes = self.behind.getxattr(ino, name)
        return found

    def setxattr(self, ino: int, name: bytes, value: bytes, flags: int = 0) -> None:
        self.behind.setxattr(ino, name, value, flags)

    def listxattr(self, ino: int) -> list[bytes]:
        return list(self.behind.listxattr(ino))

    def removexattr(self, ino: int, name: bytes) -> None:
        self.behind.removexattr(ino, name)

    def retain(self, ino: int, count: int = 1) -> None:
        self.behind.retain(ino, count)

    def forget(self, ino: int, count: int) -> None:
        self.behind.forget(ino, count)
