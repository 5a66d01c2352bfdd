"""Comparing everything: the first meeting with a server, a server that was wiped or restored, a feed that was cut off.

The listing replaces the `remote` facts in one transaction; then every path of either side is looked at. Deletions are never
concluded from another epoch: there the two sides meet as strangers, and what is on one side only is copied to the other.
Within the same epoch, what the listing lacks was deleted; when that is more than a fair share, nothing is deleted before
somebody confirms it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Final

from memdir.api.v1 import FileEntry, FilesPage
from memdir.client.errors import NotFoundError
from memdir.core.sqlite import Connection
from memdir.fs.path import decode, encode
from memdir.sync.arrivals import Arrivals
from memdir.sync.context import Context
from memdir.sync.intake import walk

log = logging.getLogger(__name__)

DELETIONS_FREE: Final = 25
"""So many missing paths are believed without a question …"""
DELETIONS_SHARE: Final = 0.3
"""… and up to this share of all agreed paths."""
_PAGES_MAX: Final = 100_000
HELD_KEY: Final = "held_deletions"
CONFIRMED_KEY: Final = "deletions_confirmed"
OTHER_LIFE_KEY: Final = "other_life"
"""In `meta`: not empty once the server was wiped or restored under this mount, so that what it lacks need not have been deleted
by anybody."""


class Scanner:
    """Runs with the feed stopped (its caller holds the puller's lock)."""

    def __init__(self, ctx: Context) -> None:
        self._ctx = ctx

    def compare_everything(self) -> None:
        """List the server, replace what is known of it, look at every path. ClientError: nothing was changed."""
        ctx = self._ctx
        # What is put from the listing needs no look, and a folder that it only makes on the way belongs to nobody.
        here = list(walk(ctx, "/"))
        pages, arrivals = [], Arrivals(ctx)
        for page in self._pages():
            pages.append(page)
            arrivals.take(page.entries)
        if not pages:
            return
        # Later pages may be newer than the first: the feed from the first one's number on brings the rest.
        had_epoch = bool(ctx.facts.text("epoch"))
        epoch, watermark = pages[0].epoch, pages[0].last_seq
        entries = [entry for page in pages for entry in page.entries]
        with ctx.queue.transaction() as tx:
            same_life = ctx.facts.text("epoch") == epoch and watermark >= ctx.facts.watermark
            kept = self._kept_back(tx, {entry.path for entry in entries}, watermark) if same_life else []
            tx.execute("delete from remote")
            for entry in (*kept, *entries):
                ctx.facts.set_remote(tx, entry.path, entry)
            if not same_life:
                tx.execute("delete from base")
                ctx.sent.forget(tx)
            for move in ctx.queue.moves(1_000_000):
                ctx.queue.drop_move(tx, move)
            ctx.facts.set_value(tx, "epoch", epoch)
            ctx.facts.set_value(tx, "watermark", watermark)
            ctx.facts.set_value(tx, HELD_KEY, len(kept))
            ctx.facts.set_value(tx, "rescan", "")
            if not same_life:
                ctx.facts.set_value(tx, "profile_version", 0)
                if had_epoch:
                    ctx.facts.set_value(tx, OTHER_LIFE_KEY, 1)
            settled = arrivals.settle(tx)
            ctx.queue.add_all(tx, [entry.path for entry in entries if entry.path not in settled])
            if same_life:
                base = tx.execute("select path from base where kind != ''").fetchall()
                agreed = [decode(row[0]) for row in base if isinstance(row[0], bytes)]
                ctx.queue.add_all(tx, [path for path in agreed if path not in settled])
            ctx.queue.add_all(tx, here)
        log.info("compared everything: %d entries at the server, epoch %s, seq %d", len(entries), epoch, watermark)

    def confirm_deletions(self) -> None:
        """Somebody looked at it: the next comparison believes any number of missing paths."""
        with self._ctx.queue.transaction() as tx:
            self._ctx.facts.set_value(tx, CONFIRMED_KEY, 1)
            self._ctx.facts.set_value(tx, "rescan", "1")

    def _pages(self) -> Iterator[FilesPage]:
        ctx = self._ctx
        after: str | None = None
        for _ in range(_PAGES_MAX):
            cursor = after
            try:
                page = ctx.link.call(lambda client, cursor=cursor: client.list_files(ctx.container, after=cursor))  # type: ignore[misc]
            except NotFoundError:
                page = FilesPage(entries=[], next_after=None, last_seq=0, epoch="-")
            yield page
            after = page.next_after
            if after is None:
                return

    def _kept_back(self, tx: Connection, listed: set[str], watermark: int) -> list[FileEntry]:
        """The paths to keep as if they were still there, because too many are missing at once."""
        ctx = self._ctx
        rows = tx.execute(
            "select path, kind, content_hash, mode, revision from base where kind != '' and revision <= ?", (watermark,)
        ).fetchall()
        missing = [row for row in rows if isinstance(row[0], bytes) and decode(row[0]) not in listed]
        confirmed = ctx.facts.number(CONFIRMED_KEY)
        ctx.facts.set_value(tx, CONFIRMED_KEY, 0)
        if confirmed or len(missing) <= max(DELETIONS_FREE, int(len(rows) * DELETIONS_SHARE)):
            return []
        log.error("%d of %d paths are missing at the server; deleting nothing before it is confirmed", len(missing), len(rows))
        return [_as_entry(tx, row) for row in missing]


def _as_entry(tx: Connection, row: tuple[object, ...]) -> FileEntry:
    path, kind, content_hash, mode, revision = row
    assert isinstance(path, bytes)
    known = tx.execute("select size_bytes, mtime_ns from remote where path = ?", (path,)).fetchall()
    size_bytes, mtime_ns = known[0] if known else (0, 0)
    assert encode(decode(path)) == path
    return FileEntry.model_validate(
        {
            "path": decode(path), "kind": kind, "content_hash": content_hash, "mode": mode, "revision": revision,
            "size_bytes": size_bytes, "mtime_ns": mtime_ns, "document_id": "", "status": "done",
        }
    )  # fmt: skip
