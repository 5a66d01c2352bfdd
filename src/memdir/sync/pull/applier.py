"""What the server has and the mount has not: put into the tree as compare-and-set, never over an unsynced edit."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from typing import Final

from memdir.client.errors import ConflictError
from memdir.fs.errors import FsError
from memdir.fs.localonly import IGNORE_FILE
from memdir.fs.path import rebase, split
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import LocalFact, RemoteFile
from memdir.sync.conflicts.copies import free_name
from memdir.sync.context import Context
from memdir.sync.local_view import MODE_MASK, stamp_of
from memdir.sync.model import ConflictRecord, Fact, Row
from memdir.sync.push.intake import walk

log = logging.getLogger(__name__)

_CONFLICT_HOLD_S: Final = 5.0
_IGNORE_PATH: Final = "/" + IGNORE_FILE.decode()


def is_lazy(path: str, size_bytes: int) -> bool:
    """Whether a file of the server may stand here without its bytes."""
    return size_bytes > 0 and path != _IGNORE_PATH


class OutdatedError(Exception):
    """The server moved on while its file was read; nothing was changed here. Read the feed and plan again."""


def download(ctx: Context, path: str, remote: Fact) -> Iterator[bytes]:
    """The bytes of exactly `remote`; OutdatedError at the end when they were others."""
    digest = hashlib.sha256()
    try:
        with (
            ctx.link.lend() as client,
            client.open_file(ctx.container, path) as (revision, pieces),
        ):
            if revision != remote.revision:
                raise OutdatedError(f"{path} is at revision {revision}, not {remote.revision}")
            for piece in pieces:
                digest.update(piece)
                yield piece
    except ConflictError as error:  # a folder stands there
        raise OutdatedError(error.message) from error
    # Whoever takes all pieces gets here before the end of them, so wrong bytes are never put into the tree.
    if digest.hexdigest() != remote.content_hash:
        raise OutdatedError(f"{path}: the bytes received are not those announced")


class Applier:
    """The steps of a plan that change the mount."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def agree(self, row: Row, entry: LocalFact | None, remote: Fact | None, since_intent: int) -> None:
        """Both sides have the same, or nothing."""
        ctx = self._ctx
        with ctx.queue.transaction() as tx:
            if remote is not None and entry is not None:
                ctx.facts.set_base(tx, row.path, remote, stamp_of(entry), since_intent=since_intent)
            elif ctx.facts.base(row.path) is not None:
                ctx.facts.set_base(tx, row.path, None)
            if entry is None:
                ctx.facts.forget_conflict(tx, row.path)
            ctx.queue.finished(tx, row)
        if remote is not None and entry is not None and entry.kind == "file":
            ctx.tell_agreed(row.path, remote.content_hash)

    def pull(self, row: Row, entry: LocalFact | None, local: Fact | None, remote: Fact, mode: int, since_intent: int) -> None:
        """Make `path` what `remote` says, with `mode`. LocalChangedError, OutdatedError, FsError, ClientError."""
        ctx = self._ctx
        applied = self._put(row.path, entry, local, remote, mode)
        if applied.kind == "file":
            ctx.local.remember(applied, remote.content_hash)
        ctx.counters.pulled += 1
        ctx.counters.last_synced_ms = ctx.now_ms()
        with ctx.queue.transaction() as tx:
            ctx.facts.set_base(tx, row.path, remote, stamp_of(applied), since_intent=since_intent)
            if mode != remote.mode and remote.kind != "symlink":
                ctx.queue.again(tx, row)  # the mode from here still has to go there
            else:
                ctx.queue.finished(tx, row)

    def _put(self, path: str, entry: LocalFact | None, local: Fact | None, remote: Fact, mode: int) -> LocalFact:
        ctx, tree = self._ctx, self._ctx.tree
        if entry is not None and remote.same_content(local):
            return tree.set_mode(path, mode=(entry.mode & ~MODE_MASK) | mode, expected=entry)
        if remote.kind == "dir":
            return tree.put_dir(path, mode=mode, expected=entry)
        if remote.kind == "file" and ctx.lazy and (entry is None or entry.kind != "file" or entry.absent_hash is not None):
            absent = self._put_absent(path, remote, mode, entry)
            if absent is not None:
                return absent
        pieces = download(ctx, path, remote)
        if remote.kind == "symlink":
            return tree.put_symlink(path, b"".join(pieces), expected=entry)
        _, mtime_ns = self._ctx.facts.remote_times(path)
        return tree.put_file(path, pieces, mode=mode, mtime_ns=mtime_ns, expected=entry)

    def _put_absent(self, path: str, remote: Fact, mode: int, entry: LocalFact | None) -> LocalFact | None:
        """Put the file without its bytes; None for what is always here: the empty file and the ignore file."""
        found = self._ctx.facts.remote_file(path, remote)
        if found is None:
            raise OutdatedError(f"{path} is not at revision {remote.revision} any more")
        size, mtime_ns = found
        if not is_lazy(path, size):
            return None
        file = RemoteFile(path=path, size=size, content_hash=remote.content_hash, mode=mode, mtime_ns=mtime_ns)
        return self._ctx.tree.put_absent(path, file, expected=entry)

    def give_up(self, row: Row, entry: LocalFact, remote: Fact | None, since_intent: int) -> None:
        """The contents of an absent file are nowhere any more, so it can be neither read nor pushed. What the server has at
        the path takes its place; when it has nothing there, the deletion there was meant for it."""
        ctx = self._ctx
        ctx.counters.lost += 1
        if remote is not None:
            log.error("%s: its contents were replaced at the server before they were fetched; taking what is there", row.path)
            self.pull(row, entry, None, remote, remote.mode, since_intent)
            return
        log.error("%s: its contents were deleted at the server before they were fetched; the name goes, too", row.path)
        self.delete(row, entry)

    def pull_mode(self, row: Row, entry: LocalFact, base: Fact | None, remote: Fact, mode: int) -> None:
        """Only the permission bits follow the server; the row is planned again."""
        ctx = self._ctx
        ctx.tree.set_mode(row.path, mode=(entry.mode & ~MODE_MASK) | mode, expected=entry)
        with ctx.queue.transaction() as tx:
            if base is not None and remote.same_content(base):
                ctx.facts.set_base(tx, row.path, remote)
            ctx.queue.again(tx, row)

    def delete(self, row: Row, entry: LocalFact) -> None:
        """The server deleted it, nothing was done to it here, and nothing stands in it."""
        ctx = self._ctx
        ctx.tree.delete(row.path, expected=entry)
        with ctx.queue.transaction() as tx:
            ctx.facts.set_base(tx, row.path, None)
            ctx.facts.forget_conflict(tx, row.path)
            ctx.queue.finished(tx, row)
        self._prune_parent(row.path)

    def conflict(self, row: Row, entry: LocalFact) -> None:
        """Keep both: the local state moves aside, and will be pushed under its new name; the path is planned again."""
        ctx = self._ctx
        aside = free_name(ctx, row.path, entry.kind)
        remote, base = ctx.facts.remote_and_base(row.path)
        record = ConflictRecord(
            path=aside,
            original=row.path,
            at_ms=ctx.now_ms(),
            base_revision=base.revision if base else 0,
            remote_revision=remote.revision if remote else 0,
        )
        with ctx.queue.transaction() as tx:
            # Noted before it happens: a crash right after the move must not leave a copy that nobody pushes.
            for path in walk(ctx, row.path):
                ctx.queue.add(tx, rebase(path, row.path, aside), delay_s=_CONFLICT_HOLD_S)
            ctx.facts.add_conflict(tx, record)
        ctx.queue.settle()  # nor may a power cut leave one: the filesystem has a journal of its own
        try:
            ctx.tree.move(row.path, aside, expected=entry)
        except (LocalChangedError, FsError):
            with ctx.queue.transaction() as tx:
                ctx.facts.forget_conflict(tx, aside)
            raise
        ctx.counters.conflicts += 1
        log.warning("conflict at %s: the local version is kept as %s", row.path, aside)
        with ctx.queue.transaction() as tx:
            ctx.queue.add_all(tx, walk(ctx, aside))
            ctx.queue.add_all(tx, [path for path in ctx.facts.known_under(row.path) if path != row.path])
            ctx.facts.set_base(tx, row.path, None)
            ctx.queue.again(tx, row)

    def _prune_parent(self, path: str) -> None:
        """A folder that came into being only because something was pulled into it goes with its last entry."""
        ctx = self._ctx
        parent = split(path)[0]
        if parent == "/" or ctx.facts.base(parent) is not None or ctx.facts.remote(parent) is not None:
            return
        entry = ctx.tree.fact(parent)
        if entry is None or ctx.queue.row(parent) is not None:
            return
        try:
            ctx.tree.delete(parent, expected=entry)
        except (FsError, LocalChangedError) as error:
            log.debug("%s stays: %s", parent, error)
            return
        self._prune_parent(parent)
