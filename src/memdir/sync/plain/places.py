"""Documents that want a place which another has: found again every time, and settled when that takes long.

Nothing is lost by it: a duplicate goes only when another document holds the same bytes at the same path, or when this mount
made it and still has its contents waiting to be pushed. Every other one gets a name of its own at the server.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final

from memdir.client.errors import AuthError, ClientError, OfflineError, RateLimitedError
from memdir.core.clock import Clock
from memdir.core.limits import NAME_MAX_BYTES
from memdir.fs.path import encode, join, split
from memdir.sync.plain.observer import Observer
from memdir.sync.plain.records import Known, Records
from memdir.sync.plain.touched import BusyDocumentError
from memdir.sync.plain.wire import Documents

log = logging.getLogger(__name__)

GRACE_S: Final = 30.0
"""So long whoever made the duplicate may settle it."""
_AT_ONCE_MAX: Final = 20


class Places:
    """Called by the one who refreshes."""

    def __init__(self, documents: Documents, records: Records, observer: Observer, clock: Clock) -> None:
        self._documents = documents
        self._records = records
        self._observer = observer
        self._clock = clock

    def settle(self) -> None:
        """Look again at what has no place; settle what had none for long. ClientError."""
        since_s = self._records.waiting_since_s
        waiting = self._records.without_place()
        for gone in since_s.keys() - {known.id for known in waiting}:
            del since_s[gone]
        for known in waiting[:_AT_ONCE_MAX]:
            self._observer.look(known.id, self._records.touched.now())
            now = self._records.known(known.id)
            if now is None or now.path is not None or now.face is None or now.filepath is None or now.status != "done":
                continue
            waits_s = self._clock.monotonic_s() - since_s.setdefault(now.id, self._clock.monotonic_s())
            try:
                self._settle(now, now.filepath, is_old=waits_s >= GRACE_S)
            except BusyDocumentError:
                continue
            except (AuthError, OfflineError, RateLimitedError):
                raise
            except ClientError as error:  # it waits on; the others do not wait for it
                log.warning("%s cannot be given a place: %s", now.filepath, error.message)

    def _settle(self, known: Known, wanted: str, *, is_old: bool) -> None:
        records = self._records
        holder = records.at(wanted)
        is_own = known.revision == 0 and bool(known.write_key) and records.sent(known.write_key) is not None
        if holder is not None:
            double = bool(known.write_key and holder.write_key) and known.face is not None and known.face.same(holder.face)
            if is_own or (is_old and (double or holder.replaces == known.id)):
                self._delete(known, wanted)
            elif is_old:
                self._move_aside(known, wanted)
            return
        if not is_old:
            return
        above = split(wanted)[0]
        while above != "/":
            blocker = records.at(above)
            if blocker is not None:  # a file stands where a folder must be
                self._move_aside(blocker, above)
                return
            above = split(above)[0]
        if records.has_below(wanted):
            self._move_aside(known, wanted)

    def _delete(self, known: Known, wanted: str) -> None:
        records = self._records
        with records.touched.changing([known.id]):
            log.info("a second document of %s goes", wanted)
            self._documents.delete([known.id])
            with records.deciding, records.transaction() as tx:
                records.forget(tx, known.id)
                records.forget_sent(tx, [known.write_key])

    def _move_aside(self, known: Known, path: str) -> None:
        aside = beside(path, known)
        with self._records.touched.changing([known.id]):
            log.warning("two documents stand at %s: one of them becomes %s", path, aside)
            self._documents.change(known.id, filepath=aside)
            self._observer.look(known.id, self._records.touched.now(), own=True)


def beside(path: str, known: Known) -> str:
    """A name beside `path`, the same for everybody: from the day the document was made, and its id."""
    parent, name = split(path)
    stem, dot, suffix = name.rpartition(".")
    if not stem:
        stem, dot, suffix = name, "", ""
    day = datetime.fromtimestamp(known.created_us / 1_000_000, tz=UTC).strftime("%Y-%m-%d")
    tail = f" (conflict {day} {''.join(char for char in known.id if char.isalnum())[-8:]}){dot}{suffix}"
    head = encode(stem)[: max(1, NAME_MAX_BYTES - len(encode(tail)))].decode("utf-8", "ignore") or "_"
    return join(parent, head + tail)
