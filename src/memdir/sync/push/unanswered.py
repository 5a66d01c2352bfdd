"""What was sent to the server without a known answer: when the server turns out to hold it, it is ours, and not somebody else's
change that what was done here since would be in conflict with."""

from __future__ import annotations

from typing import Final

from memdir.core.sqlite import Connection, Database
from memdir.fs.path import decode, encode
from memdir.sync.model import Fact

TRIES_MAX: Final = 16
"""Of one path. An older one that is forgotten costs a conflict copy at worst."""


class Sent:
    """Thread-safe. Methods with `tx` belong into the caller's transaction."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def note(self, tx: Connection, path: str, fact: Fact, *, on_revision: int) -> bool:
        """Before sending: `fact` may stand at the server's `path` from now on, in place of the revision `on_revision`. Whether
        the same was sent before, and is not decided."""
        key = encode(path)
        values = (key, fact.kind, fact.content_hash, fact.mode, on_revision)
        held = tx.execute(
            "delete from sent where path = ? and kind = ? and content_hash = ? and mode = ? and on_revision = ? returning id",
            values,
        ).fetchall()
        tx.execute("insert into sent (path, kind, content_hash, mode, on_revision) values (?, ?, ?, ?, ?)", values)
        if not held:
            tx.execute(
                "delete from sent where path = ?1"
                " and id <= (select id from sent where path = ?1 order by id desc limit 1 offset ?2)",
                (key, TRIES_MAX),
            )
        return bool(held)

    def refused(self, tx: Connection, path: str, fact: Fact, *, on_revision: int) -> None:
        """The server did not do what was noted, and was asked once."""
        tx.execute(
            "delete from sent where path = ? and kind = ? and content_hash = ? and mode = ? and on_revision = ?",
            (encode(path), fact.kind, fact.content_hash, fact.mode, on_revision),
        )

    def is_ours(self, path: str, remote: Fact) -> bool:
        """Whether `remote`, which the server reports at `path`, is one of them."""
        return any(remote.same(fact) for fact, on_revision in self.tries(path) if on_revision < remote.revision)

    def tries(self, path: str) -> list[tuple[Fact, int]]:
        """What was sent to `path` and is not decided, each with the revision that it was sent on top of; at most TRIES_MAX."""
        rows = self._db.all("select kind, content_hash, mode, on_revision from sent where path = ?", (encode(path),))
        return [(Fact(kind=str(row[0]), content_hash=str(row[1]), mode=int(row[2])), int(row[3])) for row in rows]

    def paths(self) -> set[str]:
        """Where something was sent that is not decided."""
        return {decode(row[0]) for row in self._db.all("select distinct path from sent")}

    def decided(self, tx: Connection, path: str, revision: int) -> None:
        """Our own write at `path` came through as `revision`: what was sent before it did too, or never will."""
        tx.execute("delete from sent where path = ? and on_revision < ?", (encode(path), revision))

    def overtaken(self, tx: Connection, path: str, revision: int) -> None:
        """Somebody else's write at `path` came through: what was sent on top of an earlier revision never will. What was sent
        to a path where nothing stood may, once that is deleted."""
        tx.execute("delete from sent where path = ? and on_revision > 0 and on_revision < ?", (encode(path), revision))

    def forget(self, tx: Connection) -> None:
        """The server begins another life, in which the revisions of the former one mean nothing."""
        tx.execute("delete from sent where on_revision > 0")
