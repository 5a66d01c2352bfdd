"""The tables of a filesystem in memory, and the one place where a transaction changes them.

A subclass that keeps its rows elsewhere overrides the `_fetch_*` hooks (a row that memory does not hold), `_log` (make a
transaction durable before it is applied) and the `_note_*` hooks (a row has a new value).
"""

from __future__ import annotations

import errno
import stat
import threading
from typing import Final

from memdir.core.clock import Clock
from memdir.core.limits import KIB
from memdir.fs import path as paths
from memdir.fs.errors import FsError
from memdir.fs.localonly import IGNORE_FILE, LocalOnlyRules
from memdir.fs.posix.intents import IntentLog
from memdir.fs.posix.txn import CUT, PATCH, Txn, assign
from memdir.fs.types import ROOT_INO, DirEntry, Inode
from memdir.fs.vfs import IntentListener, Invalidator

CHUNK_BYTES: Final = 128 * KIB
INDEX_BITS: Final = 24
"""Chunk `index` of inode `ino` has the key `ino << 24 | index`."""
SIZE_MAX_BYTES: Final = CHUNK_BYTES << INDEX_BITS
COOKIE_FIRST: Final = 16
"""Cookies below are free for what an edge adds to a listing (`.` and `..`)."""

_ZEROS: Final = memoryview(bytes(CHUNK_BYTES))

Chunk = bytes | bytearray
Link = tuple[int, bytes]
"""A name of an inode: (parent, name)."""


class Directory:
    """The names in one directory. `entries` keeps creation order, so its cookies grow."""

    __slots__ = ("entries", "listing")

    def __init__(self) -> None:
        self.entries: dict[bytes, tuple[int, int]] = {}
        """name -> (ino, cookie)"""
        self.listing: list[DirEntry] | None = None
        """The entries as `readdir` returns them, until a name changes."""


class Contents:
    """The chunks of one file. A chunk may be shorter than `CHUNK_BYTES`: the rest reads as zeros, as does a missing one."""

    __slots__ = ("chunks", "stored")

    def __init__(self, stored: set[int] | None = None) -> None:
        self.chunks: dict[int, Chunk] = {}
        self.stored: set[int] = stored if stored is not None else set()
        """Indexes whose present value the storage holds; memory may hold it too."""


class State:
    """Tables, commit and apply. One reentrant lock guards everything."""

    def __init__(self, *, clock: Clock, uid: int, gid: int) -> None:
        self._clock = clock
        self._lock = threading.RLock()
        self.uid = uid
        self.gid = gid
        self._inodes: dict[int, Inode] = {}
        self._dirs: dict[int, Directory] = {}
        self._links: dict[int, tuple[Link, ...]] = {}
        self._files: dict[int, Contents] = {}
        self._xattrs: dict[int, dict[bytes, bytes]] = {}
        self._frozen: dict[int, Chunk] = {}
        """Chunks, by key, that another thread reads right now: never written in place."""
        self._intents = IntentLog()
        self._records_intents = True
        self._rules = LocalOnlyRules()
        self._rules_stale = False
        """The ignore file changed since `_rules` were read."""
        self._ignore_ino = 0
        self._next_ino = ROOT_INO + 1
        self._next_cookie = COOKIE_FIRST
        self._listeners: list[IntentListener] = []
        self._invalidators: list[Invalidator] = []
        self._unannounced = False

    # ---- rows that memory does not hold; a storage overrides these

    def _fetch_inode(self, ino: int) -> tuple[Inode, tuple[Link, ...]] | None:  # noqa: ARG002 - a hook
        """The stored inode and its names."""
        return None

    def _fetch_entries(self, ino: int) -> dict[bytes, tuple[int, int]]:  # noqa: ARG002 - a hook
        """The stored names of a directory in cookie order."""
        return {}

    def _fetch_children(self, ino: int, entries: dict[bytes, tuple[int, int]]) -> None:
        """All inodes of a folder are about to be read: a chance to bring them in with one query."""

    def _fetch_indexes(self, ino: int) -> set[int]:  # noqa: ARG002 - a hook
        """Which chunks of a file are stored."""
        return set()

    def _fetch_chunk(self, ino: int, index: int) -> bytes:
        raise FsError(errno.EIO, f"chunk {index} of inode {ino} is not there")

    def _fetch_xattrs(self, ino: int) -> dict[bytes, bytes]:  # noqa: ARG002 - a hook
        return {}

    def _log(self, txn: Txn) -> None:
        """Make `txn` durable; raise FsError and nothing happened."""

    def _note(self, txn: Txn) -> None:
        """`txn` was applied: its inodes, names, xattrs and intents have new values."""

    def _note_chunk(self, ino: int, index: int, chunk: Chunk | None) -> None:
        """A chunk has a new value; None for a hole."""

    def _forget_contents(self, ino: int, contents: Contents) -> None:
        """A file is gone for good, with these chunks."""

    def _make_room(self) -> None:
        """Called at the start of every change, without a transaction: may wait, may raise FsError."""

    # ---- access

    def _inode(self, ino: int) -> Inode:
        """The live inode; ENOENT."""
        inode = self._inodes.get(ino)
        if inode is None:
            found = self._fetch_inode(ino)
            if found is None:
                raise FsError(errno.ENOENT)
            inode = found[0]
            self._inodes[ino] = inode
            self._links[ino] = found[1]
        return inode

    def _directory(self, ino: int) -> Directory:
        """The names in `ino`; ENOENT, ENOTDIR."""
        directory = self._dirs.get(ino)
        if directory is None:
            if not stat.S_ISDIR(self._inode(ino).mode):
                raise FsError(errno.ENOTDIR)
            directory = Directory()
            directory.entries = self._fetch_entries(ino)
            self._dirs[ino] = directory
        return directory

    def _contents(self, ino: int) -> Contents:
        contents = self._files.get(ino)
        if contents is None:
            contents = self._files[ino] = Contents(self._fetch_indexes(ino))
        return contents

    def _chunk(self, contents: Contents, ino: int, index: int) -> Chunk | None:
        """The chunk, None for a hole."""
        chunk = contents.chunks.get(index)
        if chunk is None and index in contents.stored:
            chunk = contents.chunks[index] = self._fetch_chunk(ino, index)
        return chunk

    def _xattrs_of(self, ino: int) -> dict[bytes, bytes]:
        values = self._xattrs.get(ino)
        if values is None:
            self._inode(ino)
            values = self._xattrs[ino] = self._fetch_xattrs(ino)
        return values

    def _paths_of(self, ino: int) -> list[str]:
        """Every path of an inode, sorted; empty when it is unlinked."""
        if ino == ROOT_INO:
            return ["/"]
        self._inode(ino)
        links = self._links[ino]
        if len(links) == 1:
            return [self._path(*links[0])]
        return sorted(self._path(parent, name) for parent, name in links)

    def _path(self, parent: int, name: bytes) -> str:
        """The path of a name in a directory."""
        parts = [name]
        while parent != ROOT_INO:
            self._inode(parent)
            links = self._links[parent]
            if not links:  # a removed directory that a process still stands in: nothing can be below it
                raise FsError(errno.ENOENT)
            parent, name = links[0]
            parts.append(name)
        return "/" + "/".join(map(paths.decode, reversed(parts)))

    # ---- change

    def _begin(self, *, quiet: bool = False) -> Txn:
        now_ns = self._clock.now_ns()
        return Txn(now_ns, next_ino=self._next_ino, next_cookie=self._next_cookie, quiet=quiet)

    def _commit(self, txn: Txn) -> None:
        """Log, then apply. Whatever apply needs from the storage was loaded while staging, so it cannot fail half-way."""
        self._preload(txn)
        self._log(txn)
        self._apply(txn)
        self._note(txn)
        if txn.intents:
            self._unannounced = True

    def _preload(self, txn: Txn) -> None:
        for kind, ino, start, extra in txn.contents:
            contents = self._contents(ino)
            if kind == PATCH:
                end = start + len(extra)  # type: ignore[arg-type]
            elif kind == CUT:
                end = start
            else:
                end = int(extra)
            for edge in (start, end):
                if edge % CHUNK_BYTES:
                    self._chunk(contents, ino, edge // CHUNK_BYTES)

    def _apply(self, txn: Txn) -> None:
        inodes = self._inodes
        self._next_ino = txn.next_ino
        self._next_cookie = txn.next_cookie
        for ino, draft in txn.inodes.items():
            live = inodes.get(ino)
            if live is None:
                self._insert(draft)
            else:
                assign(live, draft)
        for parent, name, ino, cookie in txn.dentries:
            self._apply_name(parent, name, ino, cookie)
        for kind, ino, start, extra in txn.contents:
            contents = self._contents(ino)
            if ino == self._ignore_ino:
                self._rules_stale = True
            if kind == PATCH:
                self._apply_patch(contents, ino, start, extra)  # type: ignore[arg-type]
            elif kind == CUT:
                self._apply_cut(contents, ino, start)
            else:
                self._apply_zero(contents, ino, start, int(extra))
        for ino, name, value in txn.xattrs:
            values = self._xattrs_of(ino)
            if value is None:
                values.pop(name, None)
            else:
                values[name] = value
        for ino in txn.gone:
            self._inodes.pop(ino, None)
            self._links.pop(ino, None)
            self._dirs.pop(ino, None)
            held = self._files.pop(ino, None)
            if held is not None:
                self._forget_contents(ino, held)
            self._xattrs.pop(ino, None)
        self._intents.apply(txn)

    def _insert(self, draft: Inode) -> None:
        """A new inode; its draft stays a frozen row, so the live object is another one."""
        live = Inode(
            ino=draft.ino, mode=draft.mode, uid=draft.uid, gid=draft.gid, nlink=draft.nlink, size=draft.size,
            atime_ns=draft.atime_ns, mtime_ns=draft.mtime_ns, ctime_ns=draft.ctime_ns, rdev=draft.rdev,
            target=draft.target, parent=draft.parent, version=draft.version,
        )  # fmt: skip
        ino = draft.ino
        self._inodes[ino] = live
        self._links[ino] = ()
        self._xattrs[ino] = {}
        if stat.S_ISDIR(draft.mode):
            self._dirs[ino] = Directory()
        elif stat.S_ISREG(draft.mode):
            self._files[ino] = Contents()

    def _apply_name(self, parent: int, name: bytes, ino: int, cookie: int) -> None:
        directory = self._directory(parent)
        directory.listing = None
        covered = self._intents.covered
        if parent == ROOT_INO and name == IGNORE_FILE:
            self._rules_stale = True
            covered.clear()
        old = directory.entries.pop(name, None)
        link = (parent, name)
        if old is not None and old[0] in self._links:
            self._links[old[0]] = tuple(other for other in self._links[old[0]] if other != link)
            covered.discard(old[0])
        if ino:
            directory.entries[name] = (ino, cookie)
            if stat.S_ISDIR(self._inode(ino).mode):
                covered.clear()  # every path below reads differently
            covered.discard(ino)
            links = self._links[ino]
            self._links[ino] = (*links, link) if links else (link,)

    def _apply_patch(self, contents: Contents, ino: int, offset: int, data: Chunk | memoryview) -> None:
        view = memoryview(data)
        index, start = divmod(offset, CHUNK_BYTES)
        done, total = 0, len(view)
        while done < total:
            take = min(CHUNK_BYTES - start, total - done)
            self._patch_chunk(contents, ino, index, start, view[done : done + take])
            done += take
            index, start = index + 1, 0

    def _patch_chunk(self, contents: Contents, ino: int, index: int, start: int, piece: memoryview) -> None:
        old = self._chunk(contents, ino, index) or b"" if start or len(piece) < CHUNK_BYTES else b""
        end = start + len(piece)
        new: Chunk
        if start == 0 and end >= len(old):
            new = bytes(piece)
        else:
            if isinstance(old, bytearray) and self._frozen.get(ino << INDEX_BITS | index) is not old:
                new = old
            else:
                new = bytearray(old)
            if start > len(new):
                new.extend(_ZEROS[: start - len(new)])
            new[start:end] = piece
        self._set_chunk(contents, ino, index, new)

    def _apply_cut(self, contents: Contents, ino: int, size: int) -> None:
        index, keep = divmod(size, CHUNK_BYTES)
        if keep:
            old = self._chunk(contents, ino, index)
            if old is not None and len(old) > keep:
                self._set_chunk(contents, ino, index, bytes(old[:keep]))
            index += 1
        for beyond in [held for held in contents.chunks.keys() | contents.stored if held >= index]:
            self._drop_chunk(contents, ino, beyond)

    def _apply_zero(self, contents: Contents, ino: int, start: int, end: int) -> None:
        first, last = start // CHUNK_BYTES, (end - 1) // CHUNK_BYTES
        for index in sorted(held for held in contents.chunks.keys() | contents.stored if first <= held <= last):
            base = index * CHUNK_BYTES
            low, high = max(start - base, 0), min(end - base, CHUNK_BYTES)
            if low == 0 and high == CHUNK_BYTES:
                self._drop_chunk(contents, ino, index)
                continue
            old = self._chunk(contents, ino, index) or b""
            if low < len(old):
                new = bytearray(old)
                high = min(high, len(new))
                new[low:high] = _ZEROS[: high - low]
                self._set_chunk(contents, ino, index, new)

    def _set_chunk(self, contents: Contents, ino: int, index: int, chunk: Chunk) -> None:
        contents.chunks[index] = chunk
        contents.stored.discard(index)
        self._note_chunk(ino, index, chunk)

    def _drop_chunk(self, contents: Contents, ino: int, index: int) -> None:
        contents.chunks.pop(index, None)
        contents.stored.discard(index)
        self._note_chunk(ino, index, None)

    def _announce(self) -> None:
        """Tell the listeners about new intents; called with the lock released."""
        if self._unannounced:
            self._unannounced = False
            for listener in self._listeners:
                listener()
