"""What the sync engine must look at again, in order, coalesced while it has not looked.

Rules, in the words of the planner's three facts:
- PUT and DELETE only say "look at this path"; the newest one of a path replaces an unread older one.
- A MOVE is structure and keeps its place: after it, paths mean something else, so nothing recorded before it absorbs what
  comes later. It says everything about its target: a file that it replaces gets no DELETE of its own.
- Read means handed out by `read`; from then on a new change of the same path is recorded again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Final

from memdir.fs import path as paths
from memdir.fs.posix.txn import Note, Txn
from memdir.fs.types import Intent, IntentKind

_PUT: Final = IntentKind.PUT
_MOVE: Final = IntentKind.MOVE


class IntentLog:
    """Recorded intents in memory; their durable form is the transaction that carried them."""

    def __init__(self) -> None:
        self._pending: dict[int, Note] = {}
        self._unread: dict[bytes, int] = {}
        self.covered: set[int] = set()
        """Inodes of which every path has an unread PUT (or never gets one): a write to one of them records nothing."""
        self.next_seq = 1

    def __len__(self) -> int:
        return len(self._pending)

    def restore(self, notes: Iterable[Note], next_seq: int) -> None:
        """Take over what an earlier process recorded; all of it counts as unread, none of it coalesces."""
        self._pending = {note[0]: note for note in notes}
        self._unread.clear()
        self.covered.clear()
        self.next_seq = next_seq

    def stage(self, txn: Txn, kind: IntentKind, path: bytes, source: bytes | None = None) -> None:
        """Add an intent to `txn` unless an unread one already says the same."""
        if kind is not _MOVE:
            unread = self._unread.get(path)
            if unread is not None and unread not in txn.dropped:
                if self._pending[unread][1] is kind:
                    return
                txn.dropped.append(unread)
        txn.intents.append((self.next_seq + len(txn.intents), kind, path, source))

    def apply(self, txn: Txn) -> None:
        """Record what `txn` staged."""
        for seq in txn.dropped:
            dropped = self._pending.pop(seq, None)
            if dropped is not None and self._unread.get(dropped[2]) == seq:
                del self._unread[dropped[2]]
        for note in txn.intents:
            seq, kind, path, _ = note
            self._pending[seq] = note
            self.next_seq = seq + 1
            if kind is _PUT:
                self._unread[path] = seq
                continue
            self.covered.clear()
            if kind is _MOVE:
                self._unread.clear()
            else:
                self._unread[path] = seq
        if txn.covers:
            self.covered.add(txn.covers)
        if txn.acknowledged:
            self._forget(txn.acknowledged)

    def read(self, after_seq: int, limit: int) -> Sequence[Intent]:
        """The next `limit` intents behind `after_seq`, which no longer absorb new ones."""
        notes = list(islice((note for seq, note in self._pending.items() if seq > after_seq), limit))
        for seq, _, path, _ in notes:
            if self._unread.get(path) == seq:
                del self._unread[path]
        if notes:
            self.covered.clear()
        return [
            Intent(
                seq=seq, kind=kind, path=paths.decode(path), source=None if source is None else paths.decode(source)
            )
            for seq, kind, path, source in notes
        ]  # fmt: skip

    def left(self, after_seq: int) -> int:
        """How many stand behind `after_seq`; they go on absorbing new ones."""
        return len(self._pending) - len(self.acknowledgeable(after_seq))

    def acknowledgeable(self, seq: int) -> list[int]:
        """Sequence numbers up to `seq` that are still held."""
        result = []
        for held in self._pending:
            if held > seq:
                break
            result.append(held)
        return result

    def _forget(self, seq: int) -> None:
        for held in self.acknowledgeable(seq):
            path = self._pending.pop(held)[2]
            if self._unread.get(path) == held:
                del self._unread[path]
                self.covered.clear()
