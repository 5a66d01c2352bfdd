"""What is done with the files of a mount, told to whoever traces it. Installed only when somebody does: else it costs nothing.

Handlers are wrapped where the table of requests is filled. A request that failed is not told. Contents are read for small files
that are opened for writing, so that a change can be told as one. It needs the observed profile, in which opens and closes
are seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from memdir.core.clock import Clock
from memdir.fs.errors import FsError
from memdir.fs.fuse import abi
from memdir.fs.fuse.abi import Op
from memdir.fs.fuse.wire import HEADER_OPCODE, HEADER_PID, Handler, Header, Reply, one_name, two_names
from memdir.fs.operations import CONTENT_MAX_BYTES, COPY_MS, Kind, OpenedLast, Operation
from memdir.fs.path import decode
from memdir.fs.types import VIRTUAL_INO_BASE
from memdir.fs.vfs import Vfs

_OPEN_MAX: Final = 4096
_HELD_MAX_BYTES: Final = 64 << 20
_READS_MAX: Final = 8
"""Files that a process read last: what it makes with the same contents is a copy."""


@dataclass(slots=True)
class _Open:
    """A file that is open somewhere."""

    path: str
    pid: int
    count: int = 0
    created: bool = False
    is_read: bool = False
    is_written: bool = False
    before: bytes | None = None
    read_from: int = -1
    read_to: int = 0
    copied_from: tuple[str, int] | None = None
    """The path and the number of a file that the kernel copied from."""


class Recorder(Protocol):
    """Is told of operations in the request loop: returns at once, and touches nothing in the mount."""

    def who(self, pid: int, /) -> tuple[str, str] | None:
        """Name of the program and key of its session; None for a process of which nothing is told."""
        ...

    def keeps_contents(self, actor: str, session_key: str, /) -> bool:
        """Whether what that program makes and deletes is wanted with its contents."""
        ...

    def take(self, operation: Operation) -> None:
        """The next one."""
        ...


class Tracer:
    """`paths_of` gives the paths of an inode."""

    def __init__(
        self,
        vfs: Vfs,
        paths_of: Callable[[int], Sequence[str]],
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._vfs, self._paths_of, self._recorder, self._clock = vfs, paths_of, recorder, clock
        self._open: dict[int, _Open] = {}
        self._held_bytes = 0
        self._readers: OpenedLast[str, tuple[int, int]] = OpenedLast(_READS_MAX)
        """The inode number, and when."""

    def install(self, table: dict[int, Handler]) -> None:
        """Wrap the handlers of a table."""
        wraps: dict[int, Callable[[Handler], Handler]] = {
            Op.CREATE: self._create, Op.OPEN: self._opened, Op.RELEASE: self._release, Op.READ: self._read,
            Op.WRITE: self._written, Op.SETATTR: self._setattr, Op.FALLOCATE: self._written,
            Op.COPY_FILE_RANGE: self._copied, Op.COPY_FILE_RANGE_64: self._copied,
            Op.MKDIR: self._mkdir, Op.UNLINK: self._unlink, Op.RMDIR: self._rmdir, Op.RENAME: self._rename,
            Op.RENAME2: self._rename, Op.LINK: self._link, Op.READDIR: self._browse, Op.READDIRPLUS: self._browse,
        }  # fmt: skip
        for op, wrap in wraps.items():
            if op in table:
                table[op] = wrap(table[op])

    # paths, contents, time

    def _path(self, ino: int) -> str | None:
        if ino >= VIRTUAL_INO_BASE:
            return None
        if ino == 1:
            return "/"
        found = self._paths_of(ino)
        return found[0] if found else None

    def _below(self, parent: int, name: bytes) -> str | None:
        folder = self._path(parent)
        return None if folder is None else f"{folder.rstrip('/')}/{decode(name)}"

    def _contents(self, ino: int) -> bytes | None:
        """Of a small file that is here."""
        try:
            size = self._vfs.get(ino).size
            if size > CONTENT_MAX_BYTES:
                return None
            found = self._vfs.read(ino, 0, size)
        except FsError:
            return None
        return bytes(found) if isinstance(found, bytes | bytearray | memoryview) else b"".join(bytes(one) for one in found)

    def _tell(self, kind: Kind, pid: int, path: str | None, raw: str, **more: Any) -> None:
        who = None if path is None else self._recorder.who(pid)
        if path is not None and who is not None:
            at_ms = self._clock.now_ns() // 1_000_000
            operation = Operation(kind=kind, at_ms=at_ms, pid=pid, actor=who[0], session_key=who[1], path=path, raw=raw, **more)
            self._recorder.take(operation)

    def _keeps_contents(self, pid: int) -> bool:
        who = self._recorder.who(pid)
        return who is not None and self._recorder.keeps_contents(*who)

    # opens

    def _begin(self, ino: int, path: str | None, header: Header, flags: int, *, created: bool) -> None:
        if path is None or len(self._open) >= _OPEN_MAX:
            return
        self._recorder.who(header[HEADER_PID])  # asked while it is there
        known = self._open.get(ino)
        if known is None:
            known = self._open[ino] = _Open(path=path, pid=header[HEADER_PID], created=created)
        known.count += 1
        writes = flags & os.O_ACCMODE != os.O_RDONLY
        if not writes:
            known.is_read = True
            self._readers.note(header[HEADER_PID], path, (ino, self._clock.now_ns()))
        elif not created and known.before is None and not known.is_written and self._held_bytes < _HELD_MAX_BYTES:
            known.before = self._contents(ino)
            self._held_bytes += len(known.before or b"")

    def _create(self, handler: Handler) -> Handler:
        def create(ino: int, body: memoryview, header: Header) -> Reply:
            name = one_name(body[abi.CREATE_IN.size :])
            reply = handler(ino, body, header)
            if type(reply) is bytes:
                flags, _, _, _ = abi.CREATE_IN.unpack_from(body)
                made = int(abi.ENTRY_HEAD.unpack_from(reply)[0])
                self._begin(made, self._below(ino, name), header, flags, created=True)
            return reply

        return create

    def _opened(self, handler: Handler) -> Handler:
        def opened(ino: int, body: memoryview, header: Header) -> Reply:
            reply = handler(ino, body, header)
            if type(reply) is bytes:
                flags, _ = abi.OPEN_IN.unpack_from(body)
                self._begin(ino, self._path(ino), header, flags, created=False)
            return reply

        return opened

    def _release(self, handler: Handler) -> Handler:
        def release(ino: int, body: memoryview, header: Header) -> Reply:
            known = self._open.get(ino)
            if known is not None:
                known.count -= 1
                if known.count <= 0:
                    del self._open[ino]
                    self._held_bytes -= len(known.before or b"")
                    self._closed(ino, known)
            return handler(ino, body, header)

        return release

    def _closed(self, ino: int, known: _Open) -> None:
        if known.is_written or known.created:
            try:
                size = self._vfs.get(ino).size
            except FsError:
                return  # gone meanwhile
            source = self._source_of(ino, known, size) if known.created else ""
            wants_contents = not known.created or not size or self._keeps_contents(known.pid)
            after = self._contents(ino) if wants_contents else None
            if source:
                raw = "copy_file_range" if known.copied_from else "read, create, write"
                self._tell("copy", known.pid, source, raw, target=known.path, after=after, size_bytes=size)
            else:
                raw = "create, write" if known.created else "open, write"
                self._tell(
                    "write",
                    known.pid,
                    known.path,
                    raw,
                    before=known.before,
                    after=after,
                    created=known.created,
                    size_bytes=size,
                )
        elif known.is_read:
            length = max(0, known.read_to - max(0, known.read_from))
            self._tell("read", known.pid, known.path, "open, read", size_bytes=length)

    def _source_of(self, ino: int, known: _Open, size: int) -> str:
        """A file that was copied from, or that the same process read, with the same contents (of a large one: as long)."""
        if known.copied_from is not None:
            path, source = known.copied_from
            return path if self._is_as_long(source, size) and self._contents(source) == self._contents(ino) else ""
        if not 0 < size <= CONTENT_MAX_BYTES:
            return ""
        since_ns = self._clock.now_ns() - COPY_MS * 1_000_000
        for path, (source, at_ns) in reversed(self._readers.of(known.pid).items()):
            is_told = path != known.path and at_ns >= since_ns
            if is_told and self._is_as_long(source, size) and self._contents(source) == self._contents(ino):
                return path
        return ""

    def _is_as_long(self, ino: int, size: int) -> bool:
        try:
            return self._vfs.get(ino).size == size
        except FsError:
            return False

    def _read(self, handler: Handler) -> Handler:
        def read(ino: int, body: memoryview, header: Header) -> Reply:
            known = self._open.get(ino)
            if known is not None:
                _, offset, size, _, _, _, _ = abi.READ_IN.unpack_from(body)
                known.is_read = True
                known.read_from = offset if known.read_from < 0 else min(known.read_from, offset)
                known.read_to = max(known.read_to, offset + size)
            return handler(ino, body, header)

        return read

    def _mark(self, ino: int) -> None:
        known = self._open.get(ino)
        if known is not None:
            known.is_written = True

    def _written(self, handler: Handler) -> Handler:
        def written(ino: int, body: memoryview, header: Header) -> Reply:
            self._mark(ino)
            return handler(ino, body, header)

        return written

    def _setattr(self, handler: Handler) -> Handler:
        def setattr_(ino: int, body: memoryview, header: Header) -> Reply:
            if not int(abi.SETATTR_IN.unpack_from(body)[0]) & abi.FATTR_SIZE:
                return handler(ino, body, header)
            if ino in self._open:
                self._mark(ino)
                return handler(ino, body, header)
            path, before = self._path(ino), self._contents(ino)  # truncate(2) by name: no open, no close
            reply = handler(ino, body, header)
            if type(reply) is bytes:
                after = self._contents(ino)
                self._tell(
                    "write", header[HEADER_PID], path, "truncate", before=before, after=after, size_bytes=len(after or b"")
                )
            return reply

        return setattr_

    def _copied(self, handler: Handler) -> Handler:
        def copied(ino: int, body: memoryview, header: Header) -> Reply:
            target = int(abi.COPY_FILE_RANGE_IN.unpack_from(body)[2])
            reply = handler(ino, body, header)
            known, source = self._open.get(target), self._open.get(ino)
            if known is not None and type(reply) is bytes:
                known.is_written = True
                known.copied_from = (source.path, ino) if source is not None else known.copied_from
            return reply

        return copied

    # names

    def _mkdir(self, handler: Handler) -> Handler:
        def mkdir(ino: int, body: memoryview, header: Header) -> Reply:
            name = one_name(body[abi.MKDIR_IN.size :])
            reply = handler(ino, body, header)
            if type(reply) is bytes:
                self._tell("mkdir", header[HEADER_PID], self._below(ino, name), "mkdir")
            return reply

        return mkdir

    def _link(self, handler: Handler) -> Handler:
        def link(ino: int, body: memoryview, header: Header) -> Reply:
            (existing,) = abi.LINK_IN.unpack_from(body)
            name = one_name(body[abi.LINK_IN.size :])
            path, target = self._path(existing), self._below(ino, name)
            reply = handler(ino, body, header)
            if type(reply) is bytes and target is not None:
                self._tell("copy", header[HEADER_PID], path, "link", target=target, after=self._contents(existing))
            return reply

        return link

    def _gone(self, handler: Handler, kind: Literal["delete", "rmdir"]) -> Handler:
        def gone(ino: int, body: memoryview, header: Header) -> Reply:
            name = one_name(body)
            inode = self._vfs.find(ino, name)
            path = self._below(ino, name)
            wants_contents = inode is not None and kind == "delete" and self._keeps_contents(header[HEADER_PID])
            before = self._contents(inode.ino) if inode is not None and wants_contents else None
            age_ms = 0 if inode is None else max(0, (self._clock.now_ns() - inode.mtime_ns) // 1_000_000)
            reply = handler(ino, body, header)
            if reply == b"":
                raw = "unlink" if kind == "delete" else "rmdir"
                self._tell(kind, header[HEADER_PID], path, raw, before=before, fields={"file_age_ms": age_ms})
            return reply

        return gone

    def _unlink(self, handler: Handler) -> Handler:
        return self._gone(handler, "delete")

    def _rmdir(self, handler: Handler) -> Handler:
        return self._gone(handler, "rmdir")

    def _rename(self, handler: Handler) -> Handler:
        def rename(ino: int, body: memoryview, header: Header) -> Reply:
            (folder,) = abi.RENAME_IN.unpack_from(body)
            is_second = header[HEADER_OPCODE] == Op.RENAME2
            name, new_name = two_names(body[abi.RENAME2_IN.size if is_second else abi.RENAME_IN.size :])
            path, target = self._below(ino, name), self._below(folder, new_name)
            old, there = self._vfs.find(ino, name), self._vfs.find(folder, new_name)
            before = self._contents(there.ino) if there is not None and there.is_file else None
            after = self._contents(old.ino) if old is not None and old.is_file else None
            reply = handler(ino, body, header)
            if path is not None and target is not None and reply == b"":
                if old is not None and old.ino in self._open:
                    self._open[old.ino].path = target
                self._tell(
                    "rename", header[HEADER_PID], path, "rename", target=target, before=before, after=after,
                    replaced=there is not None,
                )  # fmt: skip
            return reply

        return rename

    def _browse(self, handler: Handler) -> Handler:
        def browse(ino: int, body: memoryview, header: Header) -> Reply:
            reply = handler(ino, body, header)
            if abi.READ_IN.unpack_from(body)[1] == 0 and type(reply) is bytes:
                path = self._path(ino)
                count = 0 if path is None else len(self._vfs.readdir(ino, 0))
                self._tell("browse", header[HEADER_PID], path, "readdir", size_bytes=count)
            return reply

        return browse
