"""Everything the server has, as it was at one moment.

A page of the listing is a snapshot, two pages are two. When the number of the last change is the same on all of them, they are
one. Otherwise the feed from the first page's number on tells the rest, but for one thing: what was renamed from a part that was
not listed yet to one that was, is in no page and has nothing to be renamed from. So the places that a rename led to meanwhile
are listed once more, until there are none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from memdir.api.v1 import FileEntry, FilesPage
from memdir.client.errors import ConflictError, CursorGoneError, NotFoundError, ServerError
from memdir.sync.context import Context

_PAGES_MAX: Final = 100_000
_TRIES: Final = 3
_ROUNDS: Final = 10
"""So many times renames may come in while the places of earlier ones are listed."""
NO_EPOCH: Final = "-"
"""Of a container that is not there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Entries in no order. The feed from `last_seq` on brings what came while they were read."""

    entries: list[FileEntry]
    epoch: str
    last_seq: int
    token: str


def list_everything(ctx: Context) -> Listing:
    """All entries of the container. ClientError; ServerError when it changes its life again and again meanwhile."""
    for _ in range(_TRIES):
        found = _listed(ctx)
        if found is not None:
            return found
    raise ServerError("the server was restored or wiped while it was listed")


def _listed(ctx: Context) -> Listing | None:
    pages = list(_pages(ctx, "/"))
    first, last = pages[0], pages[-1]
    if any(page.epoch != first.epoch or page.last_seq < first.last_seq for page in pages):
        return None
    entries = {entry.path: entry for page in pages for entry in page.entries}
    if last.last_seq > first.last_seq and not _add_renamed(ctx, entries, first):
        return None
    return Listing(entries=list(entries.values()), epoch=first.epoch, last_seq=first.last_seq, token=first.token)


def _add_renamed(ctx: Context, entries: dict[str, FileEntry], first: FilesPage) -> bool:
    """List where renames led since `first`; False when that cannot be told."""
    seq, token = first.last_seq, first.token
    for _ in range(_ROUNDS):
        places: set[str] = set()
        more = True
        while more:
            try:
                page = ctx.link.call(lambda client, seq=seq, token=token: client.changes(ctx.container, since=seq, token=token))  # type: ignore[misc]
            except (ConflictError, CursorGoneError, NotFoundError):
                return False
            if page.epoch != first.epoch or page.last_seq < seq:
                return False
            places.update(change.path for change in page.changes if change.kind == "move")
            seq, more = page.changes[-1].seq if page.has_more else page.last_seq, page.has_more
            token = page.token
        if not places:
            return True
        for place in sorted(places):
            for listed in _pages(ctx, place):
                entries.update((entry.path, entry) for entry in listed.entries)
    return False


def _pages(ctx: Context, prefix: str) -> Iterator[FilesPage]:
    after: str | None = None
    for _ in range(_PAGES_MAX):
        cursor = after
        try:
            page = ctx.link.call(
                lambda client, cursor=cursor: client.list_files(ctx.container, prefix=prefix, after=cursor)  # type: ignore[misc]
            )
        except NotFoundError:
            page = FilesPage(entries=[], next_after=None, last_seq=0, epoch=NO_EPOCH)
        yield page
        after = page.next_after
        if after is None:
            return
