"""The FUSE kernel protocol, version 7: opcodes, flags and message layouts.

Source of every number and layout: `include/uapi/linux/fuse.h` of the Linux kernel (7.32 in Linux 5.10 up to 7.45 in 6.18).
All integers are in the host's byte order; every struct is padded to 64 bits by its C declaration, so the layouts below are
written with `=` (native order, no implicit padding) and explicit padding fields.
"""

from __future__ import annotations

import struct
from enum import IntEnum, IntFlag
from typing import Final

MAJOR: Final = 7
MINOR_SPOKEN: Final = 45
"""The newest minor version this driver knows; the smaller of this and the kernel's is agreed on."""
MINOR_OLDEST: Final = 31
"""Linux 5.4. Older kernels have shorter INIT replies and lack MAX_PAGES and explicit invalidation."""
MINOR_NOTIFY_EPOCH: Final = 44
"""From here on (Linux 6.16) one notification makes the kernel look every cached name up again."""


class Op(IntEnum):
    """`enum fuse_opcode`."""

    LOOKUP = 1
    FORGET = 2
    GETATTR = 3
    SETATTR = 4
    READLINK = 5
    SYMLINK = 6
    MKNOD = 8
    MKDIR = 9
    UNLINK = 10
    RMDIR = 11
    RENAME = 12
    LINK = 13
    OPEN = 14
    READ = 15
    WRITE = 16
    STATFS = 17
    RELEASE = 18
    FSYNC = 20
    SETXATTR = 21
    GETXATTR = 22
    LISTXATTR = 23
    REMOVEXATTR = 24
    FLUSH = 25
    INIT = 26
    OPENDIR = 27
    READDIR = 28
    RELEASEDIR = 29
    FSYNCDIR = 30
    GETLK = 31
    SETLK = 32
    SETLKW = 33
    ACCESS = 34
    CREATE = 35
    INTERRUPT = 36
    BMAP = 37
    DESTROY = 38
    IOCTL = 39
    POLL = 40
    NOTIFY_REPLY = 41
    BATCH_FORGET = 42
    FALLOCATE = 43
    READDIRPLUS = 44
    RENAME2 = 45
    LSEEK = 46
    COPY_FILE_RANGE = 47
    SYNCFS = 50
    TMPFILE = 51
    STATX = 52
    COPY_FILE_RANGE_64 = 53


OPCODE_LIMIT: Final = 64
"""Opcodes from here on are counted as one in the statistics."""


class Init(IntFlag):
    """INIT flags; bits 32 and up travel in `flags2`, which is only looked at together with INIT_EXT."""

    ASYNC_READ = 1 << 0
    BIG_WRITES = 1 << 5
    EXPORT_SUPPORT = 1 << 4
    DO_READDIRPLUS = 1 << 13
    READDIRPLUS_AUTO = 1 << 14
    ASYNC_DIO = 1 << 15
    NO_OPEN_SUPPORT = 1 << 17
    PARALLEL_DIROPS = 1 << 18
    ABORT_ERROR = 1 << 21
    MAX_PAGES = 1 << 22
    CACHE_SYMLINKS = 1 << 23
    NO_OPENDIR_SUPPORT = 1 << 24
    EXPLICIT_INVAL_DATA = 1 << 25
    HANDLE_KILLPRIV_V2 = 1 << 28
    INIT_EXT = 1 << 30
    PASSTHROUGH = 1 << 37


class Notify(IntEnum):
    """`enum fuse_notify_code`: messages to the kernel that answer no request (`unique` 0, the code in `error`)."""

    INVAL_INODE = 2
    INVAL_ENTRY = 3
    INC_EPOCH = 8


# fuse_setattr_in.valid
FATTR_MODE: Final = 1 << 0
FATTR_UID: Final = 1 << 1
FATTR_GID: Final = 1 << 2
FATTR_SIZE: Final = 1 << 3
FATTR_ATIME: Final = 1 << 4
FATTR_MTIME: Final = 1 << 5
FATTR_ATIME_NOW: Final = 1 << 7
FATTR_MTIME_NOW: Final = 1 << 8
FATTR_CTIME: Final = 1 << 10
FATTR_KILL_SUIDGID: Final = 1 << 11

# fuse_write_in.write_flags
WRITE_KILL_SUIDGID: Final = 1 << 2

# fuse_open_out.open_flags
FOPEN_KEEP_CACHE: Final = 1 << 1
FOPEN_PASSTHROUGH: Final = 1 << 7

# Messages, named after their C structs.
IN_HEADER: Final = struct.Struct("=IIQQIIIHH")
"""len, opcode, unique, nodeid, uid, gid, pid, total_extlen, padding"""
OUT_HEADER: Final = struct.Struct("=IiQ")
"""len, error (0 or -errno), unique"""
INIT_IN: Final = struct.Struct("=IIII")
"""major, minor, max_readahead, flags; then flags2 when INIT_EXT is set (7.36)"""
INIT_OUT: Final = struct.Struct("=IIIIHHIIHHII24x")
"""major, minor, max_readahead, flags, max_background, congestion_threshold, max_write, time_gran, max_pages, map_alignment,
flags2, max_stack_depth (7.40), unused: 64 bytes since 7.23"""
ATTR: Final = struct.Struct("=QQQqqqIIIIIIIIII")
"""ino, size, blocks, atime, mtime, ctime, the three nanosecond parts, mode, nlink, uid, gid, rdev, blksize, flags.
Seconds are declared unsigned and read by the kernel as signed: times before 1970 work."""
ENTRY_HEAD: Final = struct.Struct("=QQQQII")
"""nodeid, generation, entry_valid, attr_valid (seconds), and their nanosecond parts; an ATTR follows"""
ATTR_OUT_OFFSET: Final = 24
"""fuse_attr_out is (attr_valid, attr_valid_nsec, dummy, attr). With whole seconds its bytes are exactly those of
fuse_entry_out from here on, so one encoding serves both replies."""
SETATTR_IN: Final = struct.Struct("=IIQQQqqqIIIIIIII")
"""valid, padding, fh, size, lock_owner, atime, mtime, ctime, nanosecond parts, mode, unused, uid, gid, unused"""
FORGET_IN: Final = struct.Struct("=Q")
INTERRUPT_IN: Final = struct.Struct("=Q")
"""The number of the request whose caller got a signal."""
BATCH_FORGET_IN: Final = struct.Struct("=II")
FORGET_ONE: Final = struct.Struct("=QQ")
MKNOD_IN: Final = struct.Struct("=IIII")
"""mode, rdev, umask, padding"""
MKDIR_IN: Final = struct.Struct("=II")
"""mode, umask"""
RENAME_IN: Final = struct.Struct("=Q")
RENAME2_IN: Final = struct.Struct("=QII")
"""newdir, flags, padding"""
LINK_IN: Final = struct.Struct("=Q")
OPEN_IN: Final = struct.Struct("=II")
"""flags, open_flags"""
CREATE_IN: Final = struct.Struct("=IIII")
"""flags, mode, umask, open_flags"""
OPEN_OUT: Final = struct.Struct("=QII")
"""fh, open_flags, backing_id"""
RELEASE_IN: Final = struct.Struct("=QIIQ")
"""fh, flags, release_flags, lock_owner"""
READ_IN: Final = struct.Struct("=QQIIQII")
"""fh, offset, size, read_flags, lock_owner, flags, padding"""
WRITE_IN: Final = struct.Struct("=QQIIQII")
"""fh, offset, size, write_flags, lock_owner, flags, padding"""
WRITE_OUT: Final = struct.Struct("=II")
"""size, padding"""
STATFS_OUT: Final = struct.Struct("=QQQQQIII28x")
"""blocks, bfree, bavail, files, ffree, bsize, namelen, frsize, padding, spare"""
SETXATTR_IN: Final = struct.Struct("=II")
"""size, flags (the short form; SETXATTR_EXT is not asked for)"""
GETXATTR_IN: Final = struct.Struct("=II")
"""size, padding; listxattr uses it too"""
GETXATTR_OUT: Final = struct.Struct("=II")
FALLOCATE_IN: Final = struct.Struct("=QQQII")
"""fh, offset, length, mode, padding"""
LSEEK_IN: Final = struct.Struct("=QQII")
"""fh, offset, whence, padding"""
LSEEK_OUT: Final = struct.Struct("=Q")
COPY_FILE_RANGE_IN: Final = struct.Struct("=QQQQQQQ")
"""fh_in, off_in, nodeid_out, fh_out, off_out, len, flags"""
COPY_FILE_RANGE_OUT: Final = struct.Struct("=Q")
"""bytes copied (COPY_FILE_RANGE_64 only; the older request is answered with WRITE_OUT)"""
DIRENT: Final = struct.Struct("=QQII")
"""ino, off, namelen, type; the name follows, padded to 8 bytes"""
NOTIFY_INVAL_INODE_OUT: Final = struct.Struct("=Qqq")
"""ino, offset, length (0: to the end)"""
NOTIFY_INVAL_ENTRY_OUT: Final = struct.Struct("=QII")
"""parent, namelen, flags; the name and a NUL follow"""

IN_HEADER_BYTES: Final = IN_HEADER.size
OUT_HEADER_BYTES: Final = OUT_HEADER.size
ENTRY_OUT_BYTES: Final = ENTRY_HEAD.size + ATTR.size
READ_BUFFER_SLACK_BYTES: Final = 4096
"""Room beside the data of a WRITE for its headers; the kernel refuses to hand out requests to a smaller buffer."""
READ_BUFFER_MIN_BYTES: Final = 8192 + 65536 + READ_BUFFER_SLACK_BYTES
"""FUSE_MIN_READ_BUFFER, and the largest extended attribute with its name."""
