"""What becomes of files after the server took them: one question for all that are still processed.

The feed and listings say of a file that it is not done; it is noted. While there are such files, the server is asked, soon
after something new and then less and less often, for all documents in its pipeline at once: whatever is not among them is done,
and those that failed come with the reason. Without such files nobody asks anything.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from memdir.api.v1 import FileEntry
from memdir.client.errors import ClientError
from memdir.core.clock import Clock
from memdir.core.sqlite import Connection, Database, DiskFullError
from memdir.fs.path import decode, encode
from memdir.sync.facts import below
from memdir.sync.link import Link

log = logging.getLogger(__name__)

POLL_MIN_S: Final = 0.5
POLL_MAX_S: Final = 10.0
LOOKED_BACK_S: Final = 120.0
_LEFTS_MAX: Final = 64
_GROWTH: Final = 1.6
_SHOWN_MAX: Final = 1000
_FINAL: Final = "done"
_UNKNOWN_REASON: Final = "the server does not say why"


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFile:
    """A file that the server keeps and cannot search."""

    path: str
    document_id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far the server is with what it reads."""

    files: int
    """That it has taken and cannot search in full yet."""
    passages_left: int | None
    """Of them, that the transformer has not read yet; None where the server does not say."""
    passages_per_s: float | None
    """Over the last LOOKED_BACK_S; None when it is not known yet, or nothing gets less."""
    disk_full: bool
    """Whether the server reads none of them until its disk has room."""

    @property
    def left_s(self) -> float | None:
        """An estimate of how long it takes."""
        return None if self.passages_left is None or not self.passages_per_s else self.passages_left / self.passages_per_s


class Inflight:
    """Thread-safe. Rows: at most one a file of the container."""

    def __init__(self, db: Database, link: Link, container: str, clock: Clock) -> None:
        self._db = db
        self._link = link
        self._container = container
        self._clock = clock
        self._polling = threading.Lock()
        self._interval_s = POLL_MIN_S
        self._due_s = 0.0
        self._total: int | None = None
        """What the server counted, when it could not name all of them."""
        self._lefts: deque[tuple[float, int]] = deque(maxlen=_LEFTS_MAX)
        """When how many passages were left."""
        self._disk_full = False
        self._waiting = any(self.counts())  # what failed may have been tried again since
        self.on_news: Callable[[], None] = _nothing
        """Called when something new is processed."""

    def note(self, tx: Connection, entry: FileEntry) -> None:
        """The server says how far it is with a file."""
        if entry.kind != "file" or entry.status == _FINAL:
            tx.execute("delete from processing where path = ? and revision <= ?", (encode(entry.path), entry.revision))
            return
        error = (entry.error or _UNKNOWN_REASON) if entry.status == "failed" else None
        tx.execute(
            "insert into processing (path, document_id, revision, error) values (?, ?, ?, ?)"
            " on conflict (path) do update set document_id = excluded.document_id, revision = excluded.revision,"
            " error = excluded.error where excluded.revision >= processing.revision",
            (encode(entry.path), entry.document_id, entry.revision, error),
        )
        if error is None:
            self._interval_s, self._due_s, self._waiting = POLL_MIN_S, self._clock.monotonic_s() + POLL_MIN_S, True

    def forget(self, tx: Connection, path: str) -> None:
        """It went from the server, with all below it, or stands elsewhere under another name."""
        low, high = below(path)
        tx.execute("delete from processing where path = ?1 or (path >= ?2 and path < ?3)", (encode(path), low, high))

    def moved(self, tx: Connection, source: str, path: str) -> None:
        """The server renamed: what is processed is so under another name."""
        self.forget(tx, path)
        low, high = below(source)
        tx.execute(
            "update processing set path = cast(?1 || substr(path, ?2) as blob) where path = ?3 or (path >= ?4 and path < ?5)",
            (encode(path), len(encode(source)) + 1, encode(source), low, high),
        )

    def forget_all(self, tx: Connection) -> None:
        """A listing says it all anew."""
        tx.execute("delete from processing")

    # --- asking --------------------------------------------------------------------------------------------------

    def wait_s(self) -> float | None:
        """How long until the next question; None for none."""
        return max(0.0, self._due_s - self._clock.monotonic_s()) if self._waiting else None

    def poll_if_due(self) -> bool:
        """Ask when it is time. Whether something was learnt."""
        if not self._waiting or self._clock.monotonic_s() < self._due_s or not self._link.is_open():
            return False
        if not self._polling.acquire(blocking=False):
            return False
        try:
            return self.poll()
        except (ClientError, DiskFullError) as error:  # asked again, and a full disk is told by who has something to lose
            log.debug("what the server is processing is not known: %s", error)
            return False
        finally:
            self._interval_s = min(POLL_MAX_S, self._interval_s * _GROWTH)
            self._due_s = self._clock.monotonic_s() + self._interval_s
            self._polling.release()

    def poll(self) -> bool:
        """Ask once; whether something was learnt. ClientError."""
        before = self._rows()
        answer = self._link.call(lambda client: client.in_pipeline(self._container))
        self._total = None if answer.complete else answer.total - len(answer.failed)
        self._note_left(answer.passages_left)
        self._disk_full = answer.disk_full
        if not answer.complete:
            before = [row for row in before if row[1] in answer.failed]  # of the others nothing can be said
        left = [row for row in before if row[1] not in answer.pending]
        with self._db.write() as tx:
            for path, document_id, revision, error in left:
                reason = answer.failed.get(document_id)
                if reason is None and error is None:
                    tx.execute("delete from processing where path = ? and revision = ?", (path, revision))
                elif reason is not None:
                    tx.execute(
                        "update processing set error = ? where path = ? and revision = ?",
                        (reason or _UNKNOWN_REASON, path, revision),
                    )
            for path, document_id, revision, error in before:
                if error is not None and document_id in answer.pending:
                    tx.execute("update processing set error = null where path = ? and revision = ?", (path, revision))
        self._waiting = self._count_pending() > 0
        return bool(left)

    def _note_left(self, left: int | None) -> None:
        now_s = self._clock.monotonic_s()
        while self._lefts and (not left or now_s - self._lefts[0][0] > LOOKED_BACK_S):
            self._lefts.popleft()
        if left is not None:
            self._lefts.append((now_s, left))

    # --- telling -------------------------------------------------------------------------------------------------

    def progress(self) -> Progress:
        """As the server said last."""
        known = self.counts()[0]
        lefts = list(self._lefts)
        rate = None
        if len(lefts) > 1 and lefts[0][1] > lefts[-1][1]:
            rate = (lefts[0][1] - lefts[-1][1]) / max(0.001, lefts[-1][0] - lefts[0][0])
        return Progress(
            files=known if self._total is None else min(known, self._total),
            passages_left=lefts[-1][1] if lefts and known else None,
            passages_per_s=rate,
            disk_full=self._disk_full and known > 0,
        )

    def counts(self) -> tuple[int, int]:
        """How many files are processed, and how many failed."""
        row = self._db.one(
            "select count(*) filter (where error is null), count(*) filter (where error is not null) from processing"
        )
        assert row is not None
        return int(row[0]), int(row[1])

    def failed(self, limit: int = _SHOWN_MAX, scope: str = "/") -> Sequence[FailedFile]:
        """Files that failed at and below `scope`, in path order."""
        low, high = below(scope)
        rows = self._db.all(
            "select path, document_id, error from processing where error is not null"
            " and (path = ?1 or (path >= ?2 and path < ?3)) order by path limit ?4",
            (encode(scope), low, high, limit),
        )
        return [FailedFile(path=decode(row[0]), document_id=row[1], error=row[2]) for row in rows]

    def retry(self, path: str | None) -> int:
        """Let the server try those at and below `path` again that failed; how many. Ends quietly when it cannot be asked."""
        count = 0
        for failed in self.failed(scope=path or "/"):
            document_id = failed.document_id
            try:
                done = self._link.call(
                    lambda client, document_id=document_id: client.retry_document(self._container, document_id)  # type: ignore[misc]
                )
            except ClientError as error:
                log.info("the server does not try %s again: %s", failed.path, error.message)
                break
            if done:
                count += 1
                with self._db.write() as tx:
                    tx.execute("update processing set error = null where document_id = ?", (document_id,))
        if count:
            self._interval_s, self._due_s, self._waiting = POLL_MIN_S, self._clock.monotonic_s(), True
            self.on_news()
        return count

    def _rows(self) -> list[tuple[bytes, str, int, str | None]]:
        rows = self._db.all("select path, document_id, revision, error from processing")
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def _count_pending(self) -> int:
        row = self._db.one("select count(*) from processing where error is null")
        return int(row[0]) if row else 0


def _nothing() -> None:
    return
