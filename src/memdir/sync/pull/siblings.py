"""The texts beside files, brought from the server and kept by the hash of the file's contents: they are here without it.

The server numbers them as it reads files; what came behind the last number is asked for whenever the feed says that there is
more. Which file has which contents is known from what was agreed on (`base`), so a file that is moved or copied keeps its text.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from typing import Final

from memdir.api.v1 import SiblingEntry
from memdir.client.errors import NotFoundError
from memdir.core.sqlite import Connection, Database
from memdir.fs.path import decode
from memdir.fs.views.siblings import Sibling
from memdir.sync.context import Context

_SINCE: Final = "siblings_version"
_PAGES_MAX: Final = 100_000
_LATER_MAX: Final = 10_000
"""Files that are not here yet although their text is; more are found at the next start."""
_LOOKS_MAX: Final = 60
"""A file that was deleted meanwhile never comes."""
_LEVEL: Final = 6

Show = Callable[[str, Sibling | None], bool]
"""(path, what stands beside it from now on); False when no such file is here."""


class Siblings:
    """What stands beside the files of one mount."""

    def __init__(self, ctx: Context, db: Database, show: Show) -> None:
        self._ctx = ctx
        self._db = db
        self._show = show
        self._later: dict[str, tuple[SiblingEntry, int]] = {}
        """Texts whose files are not here yet, and how often that was looked at."""
        ctx.on_agreed.append(self._agreed)

    def begin(self) -> None:
        """Show what is known, and forget texts of contents that no file has."""
        with self._db.write() as tx:
            tx.execute(
                "delete from sibling where not exists (select 1 from base b where b.content_hash = sibling.content_hash "
                "and b.kind = 'file')"
            )
        for path, content_hash in self._placed():
            self._show(path, self._known(content_hash))

    def _agreed(self, path: str, content_hash: str) -> None:
        """Show what is known of contents that stand at `path`, perhaps in another file than before: one that was deleted and
        made again is nothing new to the server. From any thread."""
        if (known := self._known(content_hash)) is not None:
            self._show(path, known)

    def refresh(self) -> bool:
        """Bring what is new. False while files whose text came are still to come themselves. ClientError."""
        for _ in range(_PAGES_MAX):
            since = self._ctx.facts.number(_SINCE)
            page = self._ctx.link.call(lambda client: client.siblings(self._ctx.container, since=since))  # noqa: B023
            for entry in page.siblings:
                self._take(entry)
            if page.last_version != since:
                with self._db.write() as tx:
                    self._ctx.facts.set_value(tx, _SINCE, page.last_version)
            if not page.has_more:
                break
        self._later = {
            path: (entry, looks + 1)
            for path, (entry, looks) in self._later.items()
            if looks < _LOOKS_MAX and not self._place(entry)
        }
        return not self._later

    def _take(self, entry: SiblingEntry) -> None:
        if entry.kind is not None:
            row = self._db.one("select text_version from sibling where content_hash = ?", (entry.content_hash,))
            if row is None or row[0] != entry.text_version:
                text = entry.text.encode() if entry.text is not None else self._fetched(entry.content_hash)
                if text is None:
                    return
                with self._db.write() as tx:
                    _keep(tx, entry, text)
        if not self._place(entry) and len(self._later) < _LATER_MAX:
            self._later[entry.path] = (entry, 0)

    def _fetched(self, content_hash: str) -> bytes | None:
        try:
            return self._ctx.link.call(lambda client: client.sibling_text(self._ctx.container, content_hash))
        except NotFoundError:
            return None  # it has other contents by now, and another entry

    def _place(self, entry: SiblingEntry) -> bool:
        agreed = self._ctx.facts.base(entry.path)
        remote = self._ctx.facts.remote(entry.path)
        if agreed is None or agreed.content_hash != entry.content_hash:
            return remote is not None and remote.content_hash != entry.content_hash  # it was replaced: another entry comes
        return self._show(entry.path, None if entry.kind is None else self._known(entry.content_hash))

    def _known(self, content_hash: str) -> Sibling | None:
        row = self._db.one("select kind, text_version, size_bytes from sibling where content_hash = ?", (content_hash,))
        if row is None:
            return None
        return Sibling(kind=row[0], key=f"{content_hash} {row[1]}", size_bytes=row[2], load=lambda: self._text(content_hash))

    def _text(self, content_hash: str) -> bytes:
        row = self._db.one("select text from sibling where content_hash = ?", (content_hash,))
        return b"" if row is None else zlib.decompress(row[0])

    def _placed(self) -> Iterator[tuple[str, str]]:
        rows = self._db.all(
            "select b.path, b.content_hash from sibling s join base b on b.content_hash = s.content_hash and b.kind = 'file'"
        )
        for path, content_hash in rows:
            yield decode(path), content_hash


def _keep(tx: Connection, entry: SiblingEntry, text: bytes) -> None:
    tx.execute("delete from sibling where content_hash = ?", (entry.content_hash,))
    tx.execute(
        "insert into sibling (content_hash, kind, text_version, size_bytes, text) values (?, ?, ?, ?, ?)",
        (entry.content_hash, entry.kind, entry.text_version, len(text), zlib.compress(text, _LEVEL)),
    )
