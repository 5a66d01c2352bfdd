"""The first of the three facts: what stands in the mount now, with its content hash."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterator
from typing import Final

from memdir.core.limits import MIB
from memdir.fs.tree import LocalChangedError, SyncTree
from memdir.fs.types import LocalFact
from memdir.sync.facts import Facts
from memdir.sync.model import EMPTY_HASH, Fact, Stamp

PIECE_BYTES: Final = MIB
"""hashlib gives the interpreter lock away for pieces of this size, so that a large hash does not stop the filesystem."""
_KNOWN_MAX: Final = 4096
MODE_MASK: Final = 0o777
"""What is synced of a mode: setuid, setgid and sticky stay a matter of the machine."""


class LocalView:
    """Facts of local paths; hashes are computed once for a version of an inode."""

    def __init__(self, tree: SyncTree, facts: Facts) -> None:
        self._tree = tree
        self._facts = facts
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[int, int], str] = OrderedDict()

    def look(self, path: str) -> tuple[LocalFact, Fact] | None:
        """What stands at `path`, None for nothing that can be synced. LocalChangedError when it changes while being read."""
        entry = self._tree.fact(path)
        return None if entry is None else (entry, self.fact_of(entry))

    def fact_of(self, entry: LocalFact) -> Fact:
        """The fact of exactly this version."""
        return Fact(kind=entry.kind, content_hash=self._hash(entry), mode=shared_mode(entry))

    def pieces(self, entry: LocalFact) -> Iterator[bytes]:
        """The contents of exactly this version. LocalChangedError once it is outdated."""
        for offset in range(0, entry.size, PIECE_BYTES):
            piece = self._tree.read(entry, offset, min(PIECE_BYTES, entry.size - offset))
            if len(piece) != min(PIECE_BYTES, entry.size - offset):
                raise LocalChangedError(f"{entry.path} changed while it was read")
            yield piece

    def content(self, entry: LocalFact) -> bytes:
        """All of it: a file's bytes, a symlink's target, nothing for a folder."""
        if entry.kind == "file":
            return b"".join(self.pieces(entry))
        return entry.target or b"" if entry.kind == "symlink" else b""

    def remember(self, entry: LocalFact, content_hash: str) -> None:
        """The hash of this version is known from elsewhere (it was just pulled)."""
        with self._lock:
            self._known[entry.ino, entry.version] = content_hash
            self._known.move_to_end((entry.ino, entry.version))
            while len(self._known) > _KNOWN_MAX:
                self._known.popitem(last=False)

    def _hash(self, entry: LocalFact) -> str:
        if entry.kind == "dir":
            return EMPTY_HASH
        if entry.kind == "symlink":
            return hashlib.sha256(entry.target or b"").hexdigest()
        if entry.absent_hash is not None:
            return entry.absent_hash
        with self._lock:
            known = self._known.get((entry.ino, entry.version))
        if known is not None:
            return known
        stored = self._facts.base_stamp(entry.path)
        if stored is not None and stored[0] == stamp_of(entry):
            return stored[1]
        digest = hashlib.sha256()
        for piece in self.pieces(entry):
            digest.update(piece)
        self.remember(entry, digest.hexdigest())
        return digest.hexdigest()


def stamp_of(entry: LocalFact) -> Stamp:
    """What names this version of the contents."""
    return Stamp(ino=entry.ino, version=entry.version)


def shared_mode(entry: LocalFact) -> int:
    """The part of the mode that both sides compare."""
    return 0o777 if entry.kind == "symlink" else entry.mode & MODE_MASK
