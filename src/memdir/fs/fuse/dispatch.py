"""From one request of the kernel to its answer. No I/O of its own: bytes in, bytes out.

Whatever comes, an answer goes back: a refusal is its errno; a request that makes no sense or a defect of ours is EIO and a line
in the log; an unknown request is ENOSYS, which the kernel takes as "do not ask again".
"""

from __future__ import annotations

import errno
import logging
import sys
from collections.abc import Callable, Sequence
from typing import Final

from memdir.core.clock import Clock
from memdir.fs.errors import ContentsAbsentError, FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Init, Op
from memdir.fs.fuse.attributes import AttributeEncoder
from memdir.fs.fuse.backing import Backings
from memdir.fs.fuse.contents import ContentHandlers
from memdir.fs.fuse.listing import ListingHandlers
from memdir.fs.fuse.metadata import MetadataHandlers
from memdir.fs.fuse.names import NameHandlers, OpenHandlers
from memdir.fs.fuse.options import FuseOptions, Profile
from memdir.fs.fuse.syncs import SyncThread
from memdir.fs.fuse.waiting import WaitingRequests
from memdir.fs.fuse.wire import HEADER_INO, HEADER_OPCODE, HEADER_UNIQUE, OK, Handler, Header, MalformedRequestError, Reply
from memdir.fs.types import Data
from memdir.fs.vfs import Vfs

_log = logging.getLogger(__name__)

Answer = bytes | Sequence[Data] | None
"""A whole reply message, in one buffer or several, or None when the kernel expects none."""

_JOIN_MAX_BYTES: Final = 16_384
"""Up to here copying a payload behind its header is cheaper than a second buffer."""
_ERRNO_LIMIT: Final = 512
"""The kernel refuses replies with larger error numbers."""
_SILENT: Final = frozenset({Op.FORGET, Op.BATCH_FORGET, Op.INTERRUPT, Op.NOTIFY_REPLY})
_STACK_DEPTH: Final = 1
"""Filesystems below one that passes through: a backing file may not lie on a stacked one itself (the daemon serves it then)."""
_CHANGING: Final = (
    Op.SETATTR, Op.SYMLINK, Op.MKNOD, Op.MKDIR, Op.UNLINK, Op.RMDIR, Op.RENAME, Op.RENAME2, Op.LINK, Op.WRITE, Op.SETXATTR,
    Op.REMOVEXATTR, Op.CREATE, Op.FALLOCATE, Op.COPY_FILE_RANGE, Op.COPY_FILE_RANGE_64,
)  # fmt: skip
_WANTED: Final = (
    Init.ASYNC_READ | Init.BIG_WRITES | Init.EXPORT_SUPPORT | Init.DO_READDIRPLUS | Init.READDIRPLUS_AUTO | Init.ASYNC_DIO
    | Init.PARALLEL_DIROPS | Init.ABORT_ERROR | Init.MAX_PAGES | Init.CACHE_SYMLINKS | Init.EXPLICIT_INVAL_DATA
    | Init.HANDLE_KILLPRIV_V2 | Init.INIT_EXT
)  # fmt: skip
"""Asked for when offered. Deliberately absent: WRITEBACK_CACHE (a write is complete only when it is in the cache database),
POSIX_ACL, POSIX_LOCKS and FLOCK_LOCKS (the kernel keeps locks by itself), ATOMIC_O_TRUNC (truncation comes as SETATTR), and
DONT_MASK. HANDLE_KILLPRIV_V2 moves the clearing of setuid bits on write, truncate and chown from the kernel, which would ask
for `security.capability` before every write, to the filesystem, which does it as a part of the operation."""


class Dispatcher:
    """Answers requests on `vfs`. `on_init` is told the agreed minor version once, before the first other request."""

    def __init__(
        self, vfs: Vfs, options: FuseOptions, clock: Clock, *, on_init: Callable[[int], None] | None = None,
        waiting: WaitingRequests | None = None, syncs: SyncThread | None = None,
        backings: Backings | None = None,
    ) -> None:  # fmt: skip
        self._vfs, self._clock, self._waiting, self._syncs = vfs, clock, waiting, syncs
        self._options = options
        self._on_init = on_init
        self._encoder = AttributeEncoder(options.timeout_s, vfs.allocated_bytes, options.passthrough)
        self._handlers: dict[int, Handler] = {Op.INIT: self._init}
        self._families = (
            NameHandlers(vfs, self._encoder, negative_timeout_s=options.timeout_s),
            MetadataHandlers(vfs, self._encoder, clock),
            ContentHandlers(vfs, read_max_bytes=options.max_write_bytes),
            ListingHandlers(vfs, self._encoder),
        )
        self.backings = backings if backings is not None or options.passthrough is None else Backings(options.passthrough)
        self._opens = OpenHandlers(vfs, self._encoder, options.observer, self.backings)
        self.counts = [0] * abi.OPCODE_LIMIT
        """Requests by opcode; the last place counts those of unknown kinds."""
        self.passes_through = False
        """Whether the kernel agreed to read and write large files by itself."""
        self.failures = 0
        """Requests that were answered with EIO because of their form or a defect."""

    def answer(self, buffer: memoryview, length: int) -> Answer:
        """The reply to the request in the first `length` bytes of `buffer`. Never raises."""
        if length < abi.IN_HEADER_BYTES:
            self.failures += 1
            _log.error("a request of %d bytes is shorter than its header", length)
            return None
        header = abi.IN_HEADER.unpack_from(buffer)
        opcode = header[HEADER_OPCODE]
        self.counts[opcode if opcode < abi.OPCODE_LIMIT else -1] += 1
        handler = self._handlers.get(opcode)
        if handler is None:
            reply: Reply = self._unhandled(opcode)
        else:
            try:
                reply = handler(header[HEADER_INO], buffer[abi.IN_HEADER_BYTES : length], header)
            except ContentsAbsentError as error:
                reply = self._parked(error.ino, buffer, length, header)
            except FsError as error:
                reply = error.errno
            except Exception as error:  # noqa: BLE001  one broken request must not end the mount
                reply = self._failed(opcode, header, error)
        if type(reply) is bytes and len(reply) <= _JOIN_MAX_BYTES:
            return abi.OUT_HEADER.pack(abi.OUT_HEADER_BYTES + len(reply), 0, header[HEADER_UNIQUE]) + reply
        if reply is None or opcode in _SILENT:
            return None
        return _message(reply, header[HEADER_UNIQUE])

    def twin(self) -> Dispatcher:
        """Another one for the same agreed connection, for another thread: handlers may keep buffers between requests."""
        twin = Dispatcher(self._vfs, self._options, self._clock, waiting=self._waiting, backings=self.backings)
        twin._install(zero_message_open=Op.OPEN not in self._handlers)
        return twin

    def refusal(self, buffer: memoryview) -> bytes:
        """EIO for the request in `buffer`, whose answer the kernel did not take."""
        header = abi.IN_HEADER.unpack_from(buffer)
        return refusal(header[HEADER_UNIQUE], errno.EIO)

    def _parked(self, ino: int, buffer: memoryview, length: int, header: Header) -> Reply:
        """Let the request wait for contents; None (no answer yet), or why it cannot wait."""
        if self._waiting is None:
            return errno.EIO
        return self._waiting.park(header[HEADER_UNIQUE], ino, bytes(buffer[:length]))

    def _interrupt(self, ino: int, body: memoryview, header: Header) -> Reply:
        (unique,) = abi.INTERRUPT_IN.unpack_from(body)
        if self._waiting is not None:
            self._waiting.interrupt(unique)
        return None

    def _unhandled(self, opcode: int) -> Reply:
        if opcode in _SILENT:
            return None
        if Op.INIT in self._handlers and len(self._handlers) == 1:
            return errno.EIO  # nothing can be asked before INIT
        return errno.ENOSYS

    def _failed(self, opcode: int, header: Header, error: Exception) -> Reply:
        self.failures += 1
        if isinstance(error, MalformedRequestError):
            _log.error("malformed request %d on inode %d: %s", opcode, header[HEADER_INO], error)
        else:
            _log.error("request %d on inode %d failed", opcode, header[HEADER_INO], exc_info=error)
        return errno.EIO

    def _init(self, ino: int, body: memoryview, header: Header) -> Reply:
        """Agree on version and features (the comment above FUSE_KERNEL_VERSION in fuse.h describes the exchange)."""
        major, minor, readahead, flags = abi.INIT_IN.unpack_from(body)
        if major > abi.MAJOR:
            return abi.INIT_OUT.pack(abi.MAJOR, abi.MINOR_SPOKEN, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)  # the kernel asks again
        if (major, minor) < (abi.MAJOR, abi.MINOR_OLDEST):
            _log.error("this kernel speaks FUSE %d.%d; %d.%d or newer is needed", major, minor, abi.MAJOR, abi.MINOR_OLDEST)
            return errno.EPROTO
        if flags & Init.INIT_EXT and len(body) >= abi.INIT_IN.size + 4:
            flags |= int.from_bytes(body[abi.INIT_IN.size : abi.INIT_IN.size + 4], sys.byteorder) << 32
        agreed = flags & (_WANTED | Init.NO_OPEN_SUPPORT | Init.NO_OPENDIR_SUPPORT)
        if self.backings is not None:
            agreed |= flags & Init.PASSTHROUGH
            self.passes_through = bool(agreed & Init.PASSTHROUGH)
        self._install(zero_message_open=bool(agreed & Init.NO_OPEN_SUPPORT))
        minor = min(minor, abi.MINOR_SPOKEN)
        if self._on_init is not None:
            self._on_init(minor)
        options = self._options
        return abi.INIT_OUT.pack(
            abi.MAJOR,
            minor,
            max(readahead, options.readahead_bytes),
            agreed & 0xFFFF_FFFF,
            options.max_background,
            options.max_background * 3 // 4,
            options.max_write_bytes,
            1,
            options.max_write_bytes // 4096,
            0,
            agreed >> 32,
            _STACK_DEPTH if self.passes_through else 0,
        )

    def _install(self, *, zero_message_open: bool) -> None:
        """Fill the table. What is missing from it is answered ENOSYS: FLUSH, ACCESS, POLL, BMAP, STATX, TMPFILE, OPENDIR and
        locks always, OPEN and CREATE (the kernel then sends MKNOD) in the fast profile."""
        table: dict[int, Handler] = {}
        for family in self._families:
            table.update(family.handlers())
        if self._syncs is not None:
            table.update(self._syncs.handlers())
        if self._options.profile is Profile.OBSERVED or not zero_message_open:
            table.update(self._opens.handlers())
        table[Op.RELEASE] = table.get(Op.RELEASE, _ok)
        table[Op.RELEASEDIR] = _ok
        table[Op.DESTROY] = _ok
        table[Op.INTERRUPT] = self._interrupt
        table[Op.IOCTL] = _no_ioctl
        if self._options.read_only:
            table.update(dict.fromkeys(_CHANGING, _read_only))
        if self._options.tracer is not None:
            self._options.tracer.install(table)
        self._handlers.clear()
        self._handlers.update(table)


def _ok(ino: int, body: memoryview, header: Header) -> Reply:
    return OK


def _no_ioctl(ino: int, body: memoryview, header: Header) -> Reply:
    """What a regular file says to isatty(3), which Python asks at every open."""
    return errno.ENOTTY


def _read_only(ino: int, body: memoryview, header: Header) -> Reply:
    return errno.EROFS


def success(unique: int) -> bytes:
    """The answer to a request that has nothing to tell."""
    return abi.OUT_HEADER.pack(abi.OUT_HEADER_BYTES, 0, unique)


def refusal(unique: int, number: int) -> bytes:
    """The answer to a request that fails with an errno."""
    return abi.OUT_HEADER.pack(abi.OUT_HEADER_BYTES, -number if 0 < number < _ERRNO_LIMIT else -errno.EIO, unique)


def _message(reply: Reply, unique: int) -> Answer:
    """The forms of a reply that are not a short payload."""
    if reply is None:
        return None
    if isinstance(reply, int):
        return refusal(unique, reply)
    pieces: Sequence[Data] = [reply] if isinstance(reply, bytes | bytearray | memoryview) else reply
    length = abi.OUT_HEADER_BYTES + sum(map(len, pieces))
    return [abi.OUT_HEADER.pack(length, 0, unique), *pieces]
