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

from memdir.fs.posix.txn import Txn
from memdir.fs.types import Intent, IntentKind


class IntentLog:
    """Recorded intents in memory; their durable form is the transaction that carried them."""

    def __init__(self) -> None:
        self._pending: dict[int, Intent] = {}
        self._unread: dict[str, int] = {}
        self.covered: set[int] = set()
        """Inodes of which every path has an unread PUT (or never gets one): a write to one of them records nothing."""
        self.next_seq = 1

    def __len__(self) -> int:
        return len(self._pending)

    def restore(self, intents: Iterable[Intent], next_seq: int) -> None:
        """Take over what an earlier process recorded; all of it counts as unread, none of it coalesces."""
        self._pending = {intent.seq: intent for intent in intents}
        self._unread.clear()
        self.covered.clear()
        self.next_seq = next_seq

    def stage(self, txn: Txn, kind: IntentKind, path: str, source: str | None = None) -> None:
        """Add an intent to `txn` unless an unread one already says the same."""
        if kind is not IntentKind.MOVE:
            unread = self._unread.get(path)
            if unread is not None and unread not in txn.dropped:
                if self._pending[unread].kind is kind:
                    return
                txn.dropped.append(unread)
        seq = self.next_seq + len(txn.intents)
        txn.intents.append(Intent(seq=seq, kind=kind, path=path, source=source))

    def apply(self, txn: Txn) -> None:
        """Record what `txn` staged."""
        for seq in txn.dropped:
            dropped = self._pending.pop(seq, None)
            if dropped is not None and self._unread.get(dropped.path) == seq:
                del self._unread[dropped.path]
        for intent in txn.intents:
            self._pending[intent.seq] = intent
            self.next_seq = intent.seq + 1
            if intent.kind is IntentKind.PUT:
                self._unread[intent.path] = intent.seq
                continue
            self.covered.clear()
            if intent.kind is IntentKind.MOVE:
                self._unread.clear()
            else:
                self._unread[intent.path] = intent.seq
        if txn.covers:
            self.covered.add(txn.covers)
        if txn.acknowledged:
            self._forget(txn.acknowledged)

    def read(self, after_seq: int, limit: int) -> Sequence[Intent]:
        """The next `limit` intents behind `after_seq`, which no longer absorb new ones."""
        result = list(islice((intent for seq, intent in self._pending.items() if seq > after_seq), limit))
        for intent in result:
            if self._unread.get(intent.path) == intent.seq:
                del self._unread[intent.path]
        if result:
            self.covered.clear()
        return result

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
            intent = self._pending.pop(held)
            if self._unread.get(intent.path) == held:
                del self._unread[intent.path]
                self.covered.clear()
