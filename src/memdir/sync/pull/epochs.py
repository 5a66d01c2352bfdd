"""Whether the server still tells the history that this mount knows, and if not, up to where both are the same.

A server that was restored from a backup, or whose files were put back by hand, forgets what came after; it may count on from
there, and then the same number means another change. So each change has a token, and the mount keeps a ladder of them: numbers
with their tokens, close together at the end and further apart towards the beginning. The highest one that the server still
knows is the point up to which both lived the same life.
"""

from __future__ import annotations

from typing import Final

from memdir.client.errors import ConflictError, CursorGoneError, NotFoundError
from memdir.core.sqlite import Connection, Database
from memdir.sync.link import Link

MARKS_MAX: Final = 64
_DENSE: Final = 32
"""So many marks at the end are all kept; of the older ones every second goes when there are too many."""


class Marks:
    """The ladder, in sync.db."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def note(self, tx: Connection, seq: int, token: str) -> None:
        """The change `seq` was reached and has `token`; empty for a server that draws none."""
        if not token or seq <= 0:
            return
        tx.execute("insert or replace into mark (seq, token) values (?, ?)", (seq, token))
        rows = tx.execute("select seq from mark order by seq desc").fetchall()
        if len(rows) > MARKS_MAX:
            tx.executemany("delete from mark where seq = ?", [(row[0],) for row in rows[_DENSE:-1:2]])

    def token(self, seq: int) -> str:
        """Of the change `seq`; empty when it is not known."""
        row = self._db.one("select token from mark where seq = ?", (seq,))
        return "" if row is None else str(row[0])

    def forget_after(self, tx: Connection, seq: int) -> None:
        """What was noted behind `seq` belongs to a life that is over."""
        tx.execute("delete from mark where seq > ?", (seq,))

    def common_point(self, link: Link, container: str) -> int:
        """The number of the highest mark that the server knows, 0 for none. Asks a handful of times. ClientError."""
        marks = [(int(row[0]), str(row[1])) for row in self._db.all("select seq, token from mark order by seq")]
        low, high, common = 0, len(marks), 0
        while low < high:
            middle = (low + high) // 2
            seq, token = marks[middle]
            try:
                page = link.call(lambda client, seq=seq, token=token: client.changes(container, since=seq, token=token))  # type: ignore[misc]
            except CursorGoneError:
                low = middle + 1  # not told any more: what is younger tells
            except (ConflictError, NotFoundError):
                high = middle
            else:
                if not page.token:
                    return 0  # a server that does not look at tokens says nothing by its answer
                low, common = middle + 1, seq
        return common
