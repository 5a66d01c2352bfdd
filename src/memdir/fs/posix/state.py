"""The tables of a filesystem in memory, and the one place where a transaction changes them.

A subclass that keeps its rows elsewhere overrides the `_fetch_*` hooks (a row that memory does not hold), `_log` (make a
transaction durable before it is applied) and the `_note_*` hooks (a row has a new value).
"""

from __future__ import annotations

import errno
import stat
import threading
from collections.abc import Collection, Mapping
from typing import Final

from memdir.core.clock import Clock
from memdir.core.limits import KIB, PATH_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.localonly import IGNORE_FILE, LocalOnlyRules, is_left_behind
from memdir.fs.posix.intents import IntentLog
from memdir.fs.posix.place import BlobStore
from memdir.fs.posix.txn import CUT, PATCH, Entry, Link, Txn, assign, copy_of
from memdir.fs.types import ROOT_INO, DirEntry, Inode
from memdir.fs.vfs import IntentListener, Invalidator

CHUNK_BYTES: Final = 128 * KIB
INDEX_BITS: Final = 24
"""Chunk `index` of inode `ino` has the key `ino << 24 | index`."""
SIZE_MAX_BYTES: Final = CHUNK_BYTES << INDEX_BITS
COOKIE_FIRST: Final = 16
"""Cookies below are free for what an edge adds to a listing (`.` and `..`)."""

_FOLDERS_MAX: Final = 8192
"""Remembered paths of directories."""
_TYPE: Final = 0o170000
_DIRECTORY: Final = stat.S_IFDIR

_ZEROS: Final = memoryview(bytes(CHUNK_BYTES))

Chunk = bytes | bytearray


class Directory:
    """The names in one directory."""

    __slots__ = ("entries", "is_shuffled", "listing")

    def __init__(self) -> None:
        self.entries: dict[bytes, Entry] = {}
        self.listing: list[DirEntry] | None = None
        """The entries as `readdir` returns them, until a name changes."""
        self.is_shuffled = False
        """A rename left a name with an older cookie than the names before it: `entries` is in cookie order no more."""


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
        self._folders: dict[int, tuple[bytes, bool]] = {ROOT_INO: (b"/", False)}
        """What `_folder_path` found, until a directory moves or goes."""
        self._blobs: BlobStore | None = None
        self._lent: Collection[int] = ()
        """Inodes whose blobs the kernel may be writing to: their rows are brought up to date before they are used."""
        self._blob_min_bytes = SIZE_MAX_BYTES + 1
        """A file that grows to this size moves into a blob."""
        self._frozen: Mapping[int, Chunk | None] = {}
        """Chunks, by key, that another thread reads right now: never written in place."""
        self._intents = IntentLog()
        self._records_intents = True
        self._rules = LocalOnlyRules()
        self._rules_stale = False
        """The ignore file changed since `_rules` were read."""
        self._hindered = False
        """Something must be seen to before the next change (see `_prepare`): one flag, because every change asks."""
        self._ignore_ino = 0
        self._next_ino = ROOT_INO + 1
        self._next_cookie = COOKIE_FIRST
        self._listeners: list[IntentListener] = []
        self._invalidators: list[Invalidator] = []
        self._unannounced = False
        self._absent_files = 0
        self._absent_bytes = 0
        self._uses: dict[int, int] | None = None
        """When each inode was last read or written, in seconds of the monotonic clock; None while nobody evicts. Bounded by the
        files that have contents here."""

    # ---- rows that memory does not hold; a storage overrides these

    def _fetch_inode(self, ino: int) -> tuple[Inode, tuple[Link, ...]] | None:  # noqa: ARG002 - a hook
        """The stored inode and its names."""
        return None

    def _fetch_entries(self, ino: int) -> dict[bytes, Entry]:  # noqa: ARG002 - a hook
        """The stored names of a directory in cookie order."""
        return {}

    def _fetch_children(self, ino: int, entries: dict[bytes, Entry]) -> None:
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

    def _blob_dropped(self, ino: int, blob: int) -> None:
        """An inode has lost this blob, or is gone: its file goes once that is on the disk."""

    def _note_cut(self, inode: Inode) -> None:
        """A truncation was recorded: its blob is cut once that is on the disk."""

    def _is_promised(self, ino: int) -> bool:  # noqa: ARG002 - a hook
        """Whether an fsync may have covered contents of `ino`."""
        return False

    def refresh(self, ino: int) -> None:
        """Bring the row of a lent blob up to date."""

    def _sync_log(self) -> None:
        """Every record up to now survives a power cut. FsError."""

    def _sync_blob(self, ino: int, blob: int) -> None:
        """The same for a blob."""

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

    def _folder_path(self, ino: int) -> tuple[bytes, bool]:
        """The path of a directory with a slash at its end, and whether all in it stays local because of a name on the way."""
        trail: list[bytes] = []
        at = ino
        while (known := self._folders.get(at)) is None:
            self._inode(at)
            links = self._links[at]
            if not links:  # a removed directory that a process still stands in: nothing can be below it
                raise FsError(errno.ENOENT)
            at, name = links[0]
            trail.append(name)
        if not trail:
            return known
        trail.reverse()
        found = known[0] + b"/".join(trail) + b"/", known[1] or any(map(is_left_behind, trail))
        if len(found[0]) <= PATH_MAX_BYTES:
            if len(self._folders) >= _FOLDERS_MAX:
                self._forget_folders()
            self._folders[ino] = found
        return found

    def _forget_folders(self) -> None:
        """Paths of directories may read differently now."""
        self._folders = {ROOT_INO: (b"/", False)}

    # ---- change

    def _begin(self, *, quiet: bool = False) -> Txn:
        return Txn(self._clock.now_ns(), self._next_ino, self._next_cookie, quiet)

    def _commit(self, txn: Txn) -> None:
        """Log, then apply. Whatever apply needs from the storage was loaded while staging, so it cannot fail half-way."""
        if txn.contents:
            self._preload(txn)
        self._log(txn)
        self._apply(txn)
        self._note(txn)
        if txn.intents:
            self._unannounced = True

    def _preload(self, txn: Txn) -> None:
        for kind, ino, start, extra in txn.contents:
            contents = self._contents(ino)
            if not contents.stored:
                continue
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
        fresh_cookie, self._next_cookie = self._next_cookie, txn.next_cookie
        for ino, draft in txn.inodes.items():
            live = inodes.get(ino)
            if live is None:
                self._insert(draft)
                continue
            if live.place or draft.place:
                self._note_place(live, draft)
            assign(live, draft)
        for link, entry in txn.dentries.items():
            self._apply_name(link, entry, fresh_cookie)
        for kind, ino, start, extra in txn.contents:
            contents = self._contents(ino)
            if ino == self._ignore_ino:
                self._rules_stale = self._hindered = True
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
            self._apply_gone(ino)
        if txn.intents or txn.covers or txn.dropped or txn.acknowledged:
            self._intents.apply(txn)

    def _apply_gone(self, ino: int) -> None:
        live = self._inodes.pop(ino, None)
        if live is not None and live.place:
            self._note_place(live, None)
        self._links.pop(ino, None)
        self._dirs.pop(ino, None)
        held = self._files.pop(ino, None)
        if held is not None:
            self._forget_contents(ino, held)
        self._xattrs.pop(ino, None)
        if self._uses:
            self._uses.pop(ino, None)

    def _note_place(self, before: Inode, after: Inode | None) -> None:
        """A file whose contents are not, or from now on will not be, in the tables changes or goes."""
        self._count_absent(before, after)
        if before.place > 0 and (after is None or after.place != before.place):
            self._blob_dropped(before.ino, before.place)

    def _count_absent(self, before: Inode | None, after: Inode | None) -> None:
        for inode, sign in ((before, -1), (after, 1)):
            if inode is not None and inode.place < 0:
                self._absent_files += sign
                self._absent_bytes += sign * inode.size

    def _insert(self, draft: Inode) -> None:
        """A new inode; its draft stays a frozen row, so the live object is another one."""
        if draft.place < 0:
            self._count_absent(None, draft)
        self._inodes[draft.ino] = copy_of(draft)
        self._links[draft.ino] = ()

    def _apply_name(self, link: Link, entry: Entry | None, fresh_cookie: int) -> None:
        parent, name = link
        directory = self._dirs.get(parent) or self._directory(parent)
        directory.listing = None
        if name == IGNORE_FILE and parent == ROOT_INO:
            self._rules_stale = self._hindered = True
            self._intents.covered.clear()
        links = self._links
        old = directory.entries.pop(name, None)
        if old is not None and old[0] in links:
            self._drop_link(old[0], link)
        if entry is not None:
            ino = entry[0]
            if ino not in links:
                self._inode(ino)
            directory.entries[name] = entry
            if entry[1] < fresh_cookie:
                directory.is_shuffled = True
            held = links[ino]
            links[ino] = (*held, link) if held else (link,)
            self._intents.covered.discard(ino)

    def _drop_link(self, ino: int, link: Link) -> None:
        held = self._links[ino]
        if link in held:  # a damaged table may lack it, and a change that was logged must not stop half-way
            at = held.index(link)
            self._links[ino] = held[:at] + held[at + 1 :]  # the fastest way: a file may have 65,000 names
        if self._inodes[ino].mode & _TYPE == _DIRECTORY:  # every path below reads differently
            self._forget_folders()
            self._intents.covered.clear()
        else:
            self._intents.covered.discard(ino)

    def _apply_patch(self, contents: Contents, ino: int, offset: int, data: Chunk | memoryview) -> None:
        index, start = divmod(offset, CHUNK_BYTES)
        done, total = 0, len(data)
        if start + total <= CHUNK_BYTES:
            self._patch_chunk(contents, ino, index, start, data)
            return
        view = memoryview(data)
        while done < total:
            take = min(CHUNK_BYTES - start, total - done)
            self._patch_chunk(contents, ino, index, start, view[done : done + take])
            done += take
            index, start = index + 1, 0

    def _patch_chunk(self, contents: Contents, ino: int, index: int, start: int, piece: Chunk | memoryview) -> None:
        end = start + len(piece)
        old = self._chunk(contents, ino, index) or b"" if start or end < CHUNK_BYTES else b""
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
