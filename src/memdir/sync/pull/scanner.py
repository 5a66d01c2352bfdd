"""Comparing everything: the first meeting with a server, a feed that was cut off, a server that was wiped or restored, and now
and then for no reason at all (`sync.pull.repair`).

The listing replaces the `remote` facts in one transaction; then every path of either side is looked at. Within one life of the
server, what the listing lacks was deleted. After another one began (`sync.pull.epochs`), facts up to the common point hold;
what came later is known to this mount only, and is done again: overwritten contents are put, deletions repeated. What is new
on both sides meets as among strangers, who keep both.

More missing paths than `MaxDelete` allows, or a server that lost everything, are a question for a person: the paths are held
back, neither deleted here nor put there, until `confirm_deletions` or `upload_again`.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from memdir.api.v1 import FileEntry
from memdir.core.limits import FILE_SYNC_MAX_BYTES
from memdir.core.sqlite import Connection
from memdir.fs.path import decode, encode
from memdir.sync.context import Context
from memdir.sync.facts import OTHER_LIFE, SAME_LIFE, fact_of
from memdir.sync.local_view import MODE_MASK, stamp_of
from memdir.sync.model import Fact
from memdir.sync.pull.arrivals import Arrivals
from memdir.sync.pull.epochs import Marks
from memdir.sync.pull.listing import Listing, list_everything
from memdir.sync.push.intake import walk
from memdir.sync.push.max_delete import MaxDelete

log = logging.getLogger(__name__)

OTHER_LIFE_KEY: Final = "other_life"
"""In `meta`: not empty once the server was wiped or restored under this mount, so that what it lacks need not have been deleted
by anybody."""
RESCAN_KEY: Final = "rescan"
"""In `meta`: why everything has to be compared before anything is pushed; empty for no reason."""
FORKED: Final = "forked"
_MOVES_MAX: Final = 1_000_000
_ARRIVED_MAX: Final = 200_000
_STEP: Final = 1000
"""Entries put into the mount at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Agreed:
    """A row of `base`; `kind` is empty for a tombstone."""

    path: str
    kind: str
    content_hash: str
    mode: int
    revision: int
    held: int


@dataclass(slots=True, kw_only=True)
class _Verdict:
    """What a comparison concludes for the agreements."""

    missing: list[str]
    """The server had it and has it no longer."""
    lost: list[str]
    """This mount knows that the server took it, and the server does not."""
    taken_back: list[str]
    """Nothing is agreed on there any more: both sides are looked at as strangers'."""
    older: list[FileEntry]
    """What the server has is older than what was agreed on later: that is agreed on again, so the later state is done again."""
    returned: list[str]
    """Was held back, and stands there again."""
    standing: int = 0
    """How many agreed paths the server still has."""


class Scanner:
    """Runs with the feed stopped (its caller holds the puller's lock)."""

    def __init__(self, ctx: Context, marks: Marks, max_delete: MaxDelete) -> None:
        self._ctx = ctx
        self._marks = marks
        self._max_delete = max_delete

    def agree_on_arrived(self) -> None:
        """After the death of the daemon within a comparison, before anybody changes it: what is here by name only came from the
        server. Once it is deleted or replaced, nothing would tell that."""
        ctx = self._ctx
        if ctx.has_met() and not ctx.facts.text(RESCAN_KEY):
            return
        entries = ctx.tree.absent_files(_ARRIVED_MAX, max_bytes=FILE_SYNC_MAX_BYTES)
        with ctx.queue.transaction() as tx:
            for entry in entries:
                if entry.absent_hash is not None and not ctx.facts.is_known(entry.path):
                    fact = Fact(kind="file", content_hash=entry.absent_hash, mode=entry.mode & MODE_MASK)
                    ctx.facts.set_base(tx, entry.path, fact, stamp_of(entry))

    def compare_everything(self, *, forked: bool = False) -> None:
        """List the server, replace what is known of it, look at every path. ClientError: nothing was changed. `forked`: the
        server is known to tell another history."""
        ctx = self._ctx
        # What is put from the listing needs no look, and a folder that it only makes on the way belongs to nobody.
        here = list(walk(ctx, "/"))
        listing = list_everything(ctx)
        known_epoch, watermark = ctx.facts.text("epoch"), ctx.facts.watermark
        forked = bool(known_epoch) and (forked or known_epoch != listing.epoch or listing.last_seq < watermark)
        common = self._marks.common_point(ctx.link, ctx.container) if forked else listing.last_seq
        deleted = self._known_deleted(listing, common) if forked else []
        gone = {entry.path for entry in deleted}
        arrivals = Arrivals(ctx)
        for start in range(0, len(listing.entries), _STEP):
            arrivals.take([entry for entry in listing.entries[start : start + _STEP] if entry.path not in gone])
        with ctx.queue.transaction() as tx:
            moves = ctx.queue.moves(_MOVES_MAX)
            for move in moves:
                if not forked and 0 < move.answered_seq <= listing.last_seq:
                    ctx.facts.move_base(tx, move.source, move.path, move.answered_seq)  # the feed would have told us
            verdict = self._verdict(tx, {entry.path: entry for entry in listing.entries}, common, forked=forked)
            held = self._hold(tx, verdict, forked=forked)
            self._apply(tx, verdict, held, deleted)
            tx.execute("delete from remote")
            ctx.inflight.forget_all(tx)
            for entry in listing.entries:
                ctx.facts.set_remote(tx, entry.path, entry)
                ctx.inflight.note(tx, entry)
            if not forked:
                self._agree_on_ours(tx, listing)
            for move in moves:
                ctx.queue.drop_move(tx, move)
            if forked:
                ctx.sent.forget(tx)
                self._marks.forget_after(tx, common)
                ctx.facts.set_value(tx, OTHER_LIFE_KEY, 1)
                for counter in ("profile_version", "siblings_told", "siblings_version"):
                    ctx.facts.set_value(tx, counter, 0)
            ctx.facts.set_value(tx, "epoch", listing.epoch)
            ctx.facts.set_value(tx, "watermark", listing.last_seq)
            ctx.facts.set_value(tx, RESCAN_KEY, "")
            self._marks.note(tx, listing.last_seq, listing.token)
            settled = arrivals.settle(tx)
            ctx.queue.add_all(tx, [entry.path for entry in listing.entries if entry.path not in settled])
            base = tx.execute("select path from base where kind != ''").fetchall()
            agreed = [decode(row[0]) for row in base if isinstance(row[0], bytes)]
            ctx.queue.add_all(tx, [path for path in agreed if path not in settled])
            ctx.queue.add_all(tx, here)
        ctx.queue.settle()  # what was put from the listing is agreed on even after a power cut
        log.info(
            "compared everything: %d entries at the server, epoch %s, seq %d", len(listing.entries), listing.epoch,
            listing.last_seq,
        )  # fmt: skip
        if forked:
            log.warning("the server was wiped or restored: its history is ours up to number %d", common)

    def _agree_on_ours(self, tx: Connection, listing: Listing) -> None:
        """What stands there by a write of ours whose answer was lost: agreed on before the feed tells what came after it."""
        ctx = self._ctx
        sent = ctx.sent.paths()
        for entry in listing.entries if sent else ():
            if entry.path in sent and ctx.sent.is_ours(entry.path, fact_of(entry)):
                base = ctx.facts.base(entry.path)
                if base is None or base.revision < entry.revision:
                    ctx.facts.set_base(tx, entry.path, fact_of(entry))
                    ctx.sent.decided(tx, entry.path, entry.revision)

    def confirm_deletions(self) -> int:
        """Somebody looked at it: what is held back is deleted here. How many paths that are."""
        return self._release(forget=False)

    def upload_again(self) -> int:
        """What is held back is put at the server again, as if it were new. How many paths that are."""
        return self._release(forget=True)

    def _release(self, *, forget: bool) -> int:
        ctx = self._ctx
        with ctx.queue.transaction() as tx:
            paths = ctx.facts.release_held(tx, forget=forget)
            ctx.queue.add_all(tx, paths)
        return len(paths)

    # --- concluding ----------------------------------------------------------------------------------------------

    def _known_deleted(self, listing: Listing, common: int) -> list[FileEntry]:
        """What the server has again although it had told that it went: of a time that both know, and not among what it held
        when this mount last heard of it. Empty when that is more than may go unasked: then it comes back."""
        facts = self._ctx.facts
        found = [
            entry
            for entry in listing.entries
            if entry.revision <= common and facts.remote_and_base(entry.path) == (None, None)
        ]  # fmt: skip
        if self._max_delete.allows(len(found), len(listing.entries)):
            return found
        log.error("%d paths that were deleted are at the server again; they come back here, too", len(found))
        return []

    def _verdict(self, tx: Connection, there: dict[str, FileEntry], common: int, *, forked: bool) -> _Verdict:
        verdict = _Verdict(missing=[], lost=[], taken_back=[], older=[], returned=[])
        for agreed in _agreements(tx):
            entry = there.get(agreed.path)
            verdict.standing += entry is not None and bool(agreed.kind)
            if agreed.held:
                if entry is not None:
                    (verdict.taken_back if agreed.held == OTHER_LIFE else verdict.returned).append(agreed.path)
            elif agreed.revision <= common or not forked:
                if entry is None and agreed.kind and agreed.revision <= common:
                    verdict.missing.append(agreed.path)
            elif not agreed.kind:
                verdict.taken_back.append(agreed.path)
            elif entry is None:
                verdict.lost.append(agreed.path)
            elif entry.revision <= common:
                verdict.older.append(entry)
            elif (entry.revision, entry.content_hash) != (agreed.revision, agreed.content_hash):
                verdict.taken_back.append(agreed.path)
        return verdict

    def _hold(self, tx: Connection, verdict: _Verdict, *, forked: bool) -> list[str]:
        """The missing paths when they are too many to be believed; none otherwise."""
        # What is gone here, too, and what was changed here since needs no protection: it is planned by what it is now.
        missing = [path for path in (*verdict.missing, *verdict.lost) if self._ctx.tree.fact(path) is not None]
        total = self._ctx.facts.base_count()
        everything = forked and verdict.standing == 0 and bool(verdict.lost)
        if not missing or (self._max_delete.allows(len(missing), total) and not everything):
            return []
        log.error(
            "%d of %d paths are missing at the server%s; nothing of them is deleted or put there before it is confirmed",
            len(missing), total, ", which was wiped or restored" if forked else "",
        )  # fmt: skip
        self._ctx.facts.hold(tx, missing, OTHER_LIFE if forked else SAME_LIFE)
        return missing

    def _apply(self, tx: Connection, verdict: _Verdict, held: Sequence[str], deleted: Sequence[FileEntry]) -> None:
        facts = self._ctx.facts
        for path in {*verdict.lost, *verdict.taken_back}.difference(held):
            facts.set_base(tx, path, None)
        tx.executemany("update base set held = 0 where path = ?", [(encode(path),) for path in verdict.returned])
        for entry in (*verdict.older, *deleted):
            facts.set_base(tx, entry.path, fact_of(entry))


def _agreements(tx: Connection) -> list[_Agreed]:
    rows = tx.execute("select path, kind, content_hash, mode, revision, held from base").fetchall()
    return [
        _Agreed(path=decode(row[0]), kind=row[1], content_hash=row[2], mode=row[3], revision=row[4], held=row[5])  # type: ignore[arg-type]
        for row in rows
    ]
