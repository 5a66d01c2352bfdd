"""One transaction: the new values of every row that an operation changes. It is logged as one record and applied as a whole."""

from __future__ import annotations

from typing import Final

from memdir.fs.types import Data, Inode, IntentKind

PATCH: Final = 1
"""(PATCH, ino, offset, data): these bytes stand at `offset` now."""
CUT: Final = 2
"""(CUT, ino, size): no byte at or behind `size` is kept."""
ZERO: Final = 3
"""(ZERO, ino, offset, end): the range reads as zeros; whole chunks in it become holes."""

Link = tuple[int, bytes]
"""A name of an inode: (parent, name)."""
Entry = tuple[int, int]
"""What a name stands for: (ino, cookie). Links and entries are shared by the tables, the transaction and the cache's batch."""
ContentChange = tuple[int, int, int, "Data | int"]
Note = tuple[int, IntentKind, bytes, "bytes | None"]
"""(seq, kind, path, source): an intent as it is recorded. A plain tuple with raw paths, because most are never read: every
create, rename and unlink makes one, and it becomes an `Intent` when the sync engine asks for it."""


class Txn:
    """What an operation will change. Values are absolute, so that applying a record needs nothing but the state before it.

    `inodes` holds private copies ("drafts") that are never written again after commit: they double as the rows that the
    cache's flusher writes later. `quiet` transactions come from the server and record no intent.
    """

    __slots__ = (
        "acknowledged", "contents", "covers", "dentries", "dropped", "gone", "inodes", "intents", "next_cookie", "next_ino",
        "now_ns", "quiet", "xattrs",
    )  # fmt: skip

    def __init__(self, now_ns: int, next_ino: int, next_cookie: int, quiet: bool = False) -> None:
        self.now_ns = now_ns
        self.next_ino = next_ino
        self.next_cookie = next_cookie
        self.quiet = quiet
        self.inodes: dict[int, Inode] = {}
        self.dentries: dict[Link, Entry | None] = {}
        """What a name stands for from now on; None removes it."""
        self.contents: list[ContentChange] = []
        self.xattrs: list[tuple[int, bytes, bytes | None]] = []
        self.gone: list[int] = []
        """Inodes deleted for good, with contents and xattrs."""
        self.intents: list[Note] = []
        self.dropped: list[int] = []
        """Sequence numbers of unread intents that a newer one replaces."""
        self.covers = 0
        """An inode of which every path has an unread PUT once this is applied; 0 for none."""
        self.acknowledged = 0
        """Intents up to this sequence number are no longer needed; 0 for none."""

    def edit(self, inode: Inode) -> Inode:
        """The draft of `inode` in this transaction, made on first use."""
        draft = self.inodes.get(inode.ino)
        if draft is None:
            draft = self.inodes[inode.ino] = copy_of(inode)
        return draft


_new_inode: Final = Inode.__new__


def copy_of(inode: Inode) -> Inode:
    """The attributes as they are now; by hand, because this runs with every write."""
    draft = _new_inode(Inode)
    draft.ino = inode.ino
    draft.mode = inode.mode
    draft.uid = inode.uid
    draft.gid = inode.gid
    draft.nlink = inode.nlink
    draft.size = inode.size
    draft.atime_ns = inode.atime_ns
    draft.mtime_ns = inode.mtime_ns
    draft.ctime_ns = inode.ctime_ns
    draft.rdev = inode.rdev
    draft.target = inode.target
    draft.parent = inode.parent
    draft.version = inode.version
    draft.place = inode.place
    draft.lookups = 0
    draft.encoded = None
    return draft


def assign(live: Inode, draft: Inode) -> None:
    """Give `live` the attributes of `draft`; drops the edge's encoded form, keeps the kernel's references."""
    live.mode = draft.mode
    live.uid = draft.uid
    live.gid = draft.gid
    live.nlink = draft.nlink
    live.size = draft.size
    live.atime_ns = draft.atime_ns
    live.mtime_ns = draft.mtime_ns
    live.ctime_ns = draft.ctime_ns
    live.rdev = draft.rdev
    live.target = draft.target
    live.parent = draft.parent
    live.version = draft.version
    live.place = draft.place
    live.encoded = None
