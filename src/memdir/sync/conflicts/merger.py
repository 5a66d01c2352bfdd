"""Merging a file that both sides changed, where that can be said line by line (`merge`); else it stays a conflict.

The result is put over the local state as compare-and-set, and only then the remote state is noted as agreed on: what is left
is a change of one side, which the same row pushes. A crash between the two merges again, and `merge` gives the same again.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Iterator
from typing import Final

from memdir.client.errors import NotFoundError, RejectedError, ServerError
from memdir.fs.tree import LocalChangedError
from memdir.fs.types import LocalFact
from memdir.sync.conflicts.merge import TEXT_MAX_BYTES, merge
from memdir.sync.contents.former import VERSIONS_MAX, former_version
from memdir.sync.context import Context
from memdir.sync.local_view import MODE_MASK
from memdir.sync.model import EMPTY_HASH, Fact, Row
from memdir.sync.pull.applier import OutdatedError, download

log = logging.getLogger(__name__)

_PLACES_MAX: Final = 4
"""Other paths that are asked for the base's contents."""
_BASE_TRIES: Final = 3
"""A server that fails at telling former contents is asked so often before both are kept instead."""


class _NotHereError(Exception):
    """These contents cannot be had; nothing was changed."""


class Merger:
    """The step between a plan that says conflict and the copy that keeps both."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def merge(self, row: Row, entry: LocalFact, remote: Fact, base: Fact | None) -> bool:
        """Merge both changes of a text into the mount; the row is planned again. False, and nothing has changed, when that
        cannot be done cleanly. LocalChangedError, OutdatedError, FsError, ClientError: as for every other step of a plan."""
        ctx, path = self._ctx, row.path
        if base is None or {entry.kind, remote.kind, base.kind} != {"file"} or not self._is_small(path, entry, remote):
            return False
        try:
            former = self._base_content(row, base)
        except _NotHereError as error:
            log.info("%s is not merged: %s", path, error)
            return False
        ours = ctx.local.content(entry)
        merged = merge(former, ours, b"".join(download(ctx, path, remote)), path=path)
        if merged is None:
            return False
        local_mode = entry.mode & MODE_MASK
        mode = local_mode if remote.mode == base.mode else remote.mode
        if merged != ours or mode != local_mode:
            full_mode = (entry.mode & ~MODE_MASK) | mode
            put = ctx.tree.put_file(path, [merged], mode=full_mode, mtime_ns=ctx.clock.now_ns(), expected=entry)
            ctx.local.remember(put, hashlib.sha256(merged).hexdigest())
        ctx.counters.merged += 1
        log.info("%s was changed on both sides; merged", path)
        with ctx.queue.transaction() as tx:
            ctx.facts.set_base(tx, path, remote)
            ctx.queue.again(tx, row)
        return True

    def recall(self, row: Row, remote: Fact, base: Fact | None) -> bool:
        """A write of ours whose answer was lost may have come through and been replaced, which a feed that was cut off does not
        tell any more, and the versions do. Then that is agreed on, and the row is planned again. False: nothing has changed."""
        ctx, path = self._ctx, row.path
        tries = ctx.sent.tries(path)
        if not tries:
            return False
        try:
            page = ctx.link.call(lambda client: client.versions(ctx.container, path, limit=VERSIONS_MAX))
        except (NotFoundError, RejectedError) as error:
            log.info("%s: the server does not tell former contents: %s", path, error.message)
            return False
        except ServerError:
            if row.attempts < _BASE_TRIES:
                raise
            return False
        known = base.revision if base is not None else 0
        for version in page.versions:
            held = Fact(
                kind=version.kind, content_hash=version.content_hash, mode=version.mode & MODE_MASK, revision=version.revision
            )
            if known < held.revision < remote.revision and any(
                held.same(fact) and on_revision < held.revision for fact, on_revision in tries
            ):
                with ctx.queue.transaction() as tx:
                    ctx.facts.set_base(tx, path, held)
                    ctx.sent.decided(tx, path, held.revision)
                    ctx.queue.again(tx, row)
                return True
        return False

    def _is_small(self, path: str, entry: LocalFact, remote: Fact) -> bool:
        found = self._ctx.facts.remote_file(path, remote)
        if found is None:
            raise OutdatedError(f"{path} is not at revision {remote.revision} any more")
        return entry.absent_hash is None and max(entry.size, found[0]) <= TEXT_MAX_BYTES

    # --- the base ------------------------------------------------------------------------------------------------

    def _base_content(self, row: Row, base: Fact) -> bytes:
        """What both last agreed on: from another file here, from the versions the server keeps, from another path there."""
        if base.content_hash == EMPTY_HASH:
            return b""
        try:
            for content in self._candidates(row.path, base.content_hash):
                if hashlib.sha256(content).hexdigest() == base.content_hash:
                    return content
        except (NotFoundError, RejectedError) as error:
            raise _NotHereError(f"the server does not tell former contents: {error.message}") from error
        except ServerError as error:
            if row.attempts < _BASE_TRIES:
                raise
            raise _NotHereError(f"the server fails at telling former contents: {error.message}") from error
        raise _NotHereError("what both sides agreed on last is nowhere any more")

    def _candidates(self, path: str, content_hash: str) -> Iterator[bytes]:
        ctx = self._ctx
        places = [place for place in ctx.facts.paths_with(content_hash, _PLACES_MAX) if place != path]
        for place in places:
            yield self._local_content(place)
        version = former_version(ctx, path, content_hash)
        if version is not None and version.size_bytes <= TEXT_MAX_BYTES:
            with ctx.link.lend() as client, client.open_version(ctx.container, version.version) as pieces:
                yield _joined(pieces)
        for place in places:
            try:
                with ctx.link.lend() as client, client.open_file(ctx.container, place) as (_, pieces):
                    yield _joined(pieces)
            except NotFoundError:
                continue

    def _local_content(self, path: str) -> bytes:
        entry = self._ctx.tree.fact(path)
        if entry is None or entry.kind != "file" or entry.absent_hash is not None or entry.size > TEXT_MAX_BYTES:
            return b""
        try:
            return self._ctx.local.content(entry)
        except LocalChangedError:
            return b""


def _joined(pieces: Iterable[bytes]) -> bytes:
    """All of it; nothing when it is more than is ever merged."""
    taken = bytearray()
    for piece in pieces:
        taken += piece
        if len(taken) > TEXT_MAX_BYTES:
            return b""
    return bytes(taken)
