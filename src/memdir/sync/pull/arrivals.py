"""New files of a listing, put into the mount many at once and without their bytes: names first.

A container of 10,000 files takes a second or two this way and none of its bytes. What is put here is agreed on in the same
breath: `settle` belongs into the transaction that notes the listing. A crash between the two leaves absent files that the next
comparison finds equal to the server's.
"""

from __future__ import annotations

from collections.abc import Sequence

from memdir.api.v1 import FileEntry
from memdir.core.sqlite import Connection
from memdir.fs.errors import FsError
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import LocalFact, RemoteFile
from memdir.sync.context import Context
from memdir.sync.local_view import stamp_of
from memdir.sync.model import Fact
from memdir.sync.pull.applier import is_lazy


class Arrivals:
    """Used for one listing, page by page."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx
        self._put: list[tuple[FileEntry, LocalFact, int]] = []
        """What was put, and the newest intent of the filesystem before."""

    def take(self, entries: Sequence[FileEntry]) -> None:
        """Put what is new here: nothing stands at its path, nothing was ever agreed on there and nothing waits."""
        ctx = self._ctx
        if not ctx.lazy:
            return
        new = [entry for entry in entries if self._is_new(entry)]
        for entry in new:
            if entry.kind == "dir":
                self._put_folder(entry)
        files = [entry for entry in new if entry.kind == "file" and is_lazy(entry.path, entry.size_bytes)]
        since = ctx.tree.newest_intent()
        facts = ctx.tree.put_new_absent([_remote_file(entry) for entry in files])
        self._put += [(entry, fact, since) for entry, fact in zip(files, facts, strict=True) if fact is not None]

    def _is_new(self, entry: FileEntry) -> bool:
        ctx, path = self._ctx, entry.path
        if ctx.is_excluded(path) or ctx.facts.is_known(path) or ctx.queue.touches_move(path):
            return False
        return ctx.tree.fact(path) is None

    def _put_folder(self, entry: FileEntry) -> None:
        since = self._ctx.tree.newest_intent()
        try:
            fact = self._ctx.tree.put_dir(entry.path, mode=entry.mode, expected=None)
        except (LocalChangedError, FsError):
            return  # somebody was faster, or a file stands above it: then it is planned like everything else
        self._put.append((entry, fact, since))

    def settle(self, tx: Connection) -> set[str]:
        """Note what was put as agreed on; the paths that need no further look. What was changed here since it was put is agreed
        on all the same, as what it was: the change is planned on top of that."""
        ctx = self._ctx
        settled: set[str] = set()
        for entry, fact, since in self._put:
            agreed = Fact(kind=entry.kind, content_hash=entry.content_hash, mode=entry.mode & 0o777, revision=entry.revision)
            ctx.facts.set_base(tx, entry.path, agreed, stamp_of(fact), since_intent=since)
            if ctx.tree.fact(entry.path) == fact:
                settled.add(entry.path)
            else:
                ctx.queue.add(tx, entry.path)
        ctx.counters.pulled += len(settled)
        return settled


def _remote_file(entry: FileEntry) -> RemoteFile:
    return RemoteFile(
        path=entry.path, size=entry.size_bytes, content_hash=entry.content_hash, mode=entry.mode, mtime_ns=entry.mtime_ns
    )
