"""Keeping up with the server: what changed since last time, what it is still working on, what went.

Changes are listed by `updatedAt`, newest first, back to a while before the newest one that was taken in: equal times, and
documents that became visible late, are looked at again and found unchanged. The watermark moves when a whole reading was taken
in; a document that could not be looked at is noted as unsettled and asked for by itself. All times are the server's.

A deletion shows only by absence. It is believed after two equal readings of everything (one is enough when nothing is missing),
each between equal totals, and after the server said 404 for the document itself. Of more than a few at once the feed says
nothing: it is cut, so that the engine compares everything and asks, as it does when a whole tree is missing.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from memdir.client.errors import NotFoundError, RejectedError, ServerError
from memdir.core.clock import Clock
from memdir.sync.plain.marks import Face, Marks
from memdir.sync.plain.observer import Observer, RestoredError
from memdir.sync.plain.places import Places
from memdir.sync.plain.records import Records
from memdir.sync.plain.wire import PAGE, Document, Documents
from memdir.sync.push.max_delete import DELETIONS_FREE, MaxDelete

log = logging.getLogger(__name__)

OVERLAP_S: Final = 10.0
"""How far before the newest change a reading goes back."""
SCAN_EVERY_S: Final = 900.0
SCAN_PAUSE_S: Final = 2.0
"""Between two scans that a wrong total asks for."""
_READINGS_MAX: Final = 5
_PAGES_MAX: Final = 100_000
_LOOKS_MAX: Final = 200
"""Documents that are asked for one by one in one reading."""
_MARKER_TEXT: Final = (
    "memdir recognises this container by this document. When it is deleted, every mount compares everything with the server."
)


class UnstableError(ServerError):
    """The listing changed under every reading."""


class Reader:
    """One connection's. `refresh` is called by any thread, one at a time."""

    def __init__(self, container: str, documents: Documents, records: Records, clock: Clock, max_delete: MaxDelete) -> None:
        self._container = container
        self._documents = documents
        self._records = records
        self._clock = clock
        self._max_delete = max_delete
        self._observer = Observer(documents, records, clock)
        self._places = Places(documents, records, self._observer, clock)
        self._recognised = False

    @property
    def observer(self) -> Observer:
        return self._observer

    def refresh(self, *, max_age_s: float = 0.0) -> None:
        """Bring the records up to date, unless that was done less than `max_age_s` ago. ClientError."""
        records = self._records
        with records.refreshing:
            if self._clock.monotonic_s() - records.refreshed_at_s < max_age_s:
                return
            try:
                self._recognise()
                if records.text("scanned"):
                    self._read_changes()
                else:
                    self._read_all_first()
            except RestoredError as error:
                log.warning("the server was put back to an earlier state (document %s): comparing everything", error)
                with records.transaction() as tx:
                    records.begin_life(tx, records.text("marker"))
                self._read_all_first()
            self._places.settle()
            records.refreshed_at_s = self._clock.monotonic_s()

    # --- which container it is -----------------------------------------------------------------------------------

    def _recognise(self) -> None:
        """Find or make the marker document, once a connection. Another one than before: another container, or a wiped one."""
        if self._recognised:
            return
        name = marker_name(self._container)
        marker = self._documents.get(name)
        if marker is None:
            face = Face(kind="container", content_hash=hashlib.sha256(b"").hexdigest(), size_bytes=0, mode=0, mtime_ns=0)
            metadata = Marks(face=face, how="inline", key=name).write({})
            try:
                made = self._documents.add(_MARKER_TEXT, custom_id=name, metadata=metadata, filepath=None, remembered=False)
            except (NotFoundError, RejectedError) as error:
                raise ServerError(f"the server takes no documents: {error.message}") from error
        else:
            made = marker.id
        records = self._records
        if records.text("marker") != made:
            if records.text("marker"):
                log.warning("the container is another one than before: comparing everything")
            with records.deciding, records.transaction() as tx:
                records.begin_life(tx, made)
        self._recognised = True

    # --- changes -------------------------------------------------------------------------------------------------

    def _read_all_first(self) -> None:
        records = self._records
        asked_at = records.touched.now()
        listed = self._listing()
        for document in sorted(listed.values(), key=lambda document: document.order):
            self._observer.take(document, asked_at)
        newest = max((document.updated_us for document in listed.values()), default=0)
        with records.deciding, records.transaction() as tx:
            records.set_value(tx, "watermark_us", newest)
            records.set_value(tx, "scanned", 1)
            records.cut_feed(tx)
        records.scanned_at_s = self._clock.monotonic_s()

    def _read_changes(self) -> None:
        records = self._records
        asked_at = records.touched.now()
        watermark_us = records.number("watermark_us")
        for _ in range(_READINGS_MAX):
            found, total, stable = self._newer(watermark_us - int(OVERLAP_S * 1_000_000))
            for document in sorted(found.values(), key=lambda document: (document.updated_us, document.id)):
                self._observer.take(document, asked_at)
            if stable:
                break
        else:
            raise UnstableError("the server's list of documents changes all the time")
        newest_us = max((document.updated_us for document in found.values()), default=0)
        if newest_us > watermark_us:
            with records.transaction() as tx:
                records.set_value(tx, "watermark_us", newest_us)
        self._look_at_unsettled()
        self._look_for_deletions(total, asked_at)

    def _newer(self, floor_us: int) -> tuple[dict[str, Document], int, bool]:
        """Documents changed since `floor_us`, how many there are in all, and whether the list stood still meanwhile."""
        found: dict[str, Document] = {}
        total, stable = 0, True
        for number in range(1, _PAGES_MAX):
            page = self._documents.page(number, sort="updatedAt", order="desc")
            if number > 1 and page.total != total:
                stable = False
            total = page.total
            for document in page.documents:
                found.setdefault(document.id, document)
            if len(page.documents) < PAGE or page.documents[-1].updated_us < floor_us:
                break
        return found, total, stable

    def _look_at_unsettled(self) -> None:
        """One call for all that the server was still working on; then each that it is done with by itself."""
        records = self._records
        tracked = records.unsettled(_LOOKS_MAX)
        if not tracked:
            return
        asked_at = records.touched.now()
        try:
            listed, total = self._documents.processing()
        except (NotFoundError, RejectedError) as error:
            log.debug("the server does not say what it is processing: %s", error.message)
            listed, total = [], 1
        working = set(listed) if len(listed) >= total else set()
        for document_id in tracked:
            if document_id in working:
                continue
            try:
                self._observer.look(document_id, asked_at)
            except (ServerError, RejectedError) as error:  # of this document alone; it stays unsettled
                log.info("document %s cannot be looked at: %s", document_id, error.message)

    # --- deletions -----------------------------------------------------------------------------------------------

    def _look_for_deletions(self, total: int, asked_at: int) -> None:
        """Look at everything when the total is not what it should be, and once in a while."""
        records, now_s = self._records, self._clock.monotonic_s()
        since_s = now_s - records.scanned_at_s
        wrong = total != records.count() and records.touched.is_quiet_since(asked_at)
        if since_s >= SCAN_EVERY_S or (wrong and since_s >= SCAN_PAUSE_S):
            self.scan()

    def scan(self) -> None:
        """Find out what went. UnstableError when the list never stood still; then nothing is concluded."""
        records = self._records
        records.scanned_at_s = self._clock.monotonic_s()
        asked_at = records.touched.now()
        before = records.ids()
        listed = self._listing()
        if before.keys() - listed.keys():
            listed = self._confirmed(listed)
        for document in sorted(listed.values(), key=lambda document: document.order):
            if before.get(document.id) != document.updated_us:
                self._observer.take(document, asked_at)
        missing = sorted(before.keys() - listed.keys())
        if len(missing) > DELETIONS_FREE or not self._max_delete.allows(len(missing), len(before)):
            self._many_gone(missing, asked_at)
            return
        for document_id in missing:
            self._observer.look(document_id, asked_at)

    def _confirmed(self, listed: dict[str, Document]) -> dict[str, Document]:
        """Two readings in a row with the same documents in them."""
        for _ in range(_READINGS_MAX):
            again = self._listing()
            if again.keys() == listed.keys():
                return again
            listed = again
        raise UnstableError("the server's list of documents changes all the time")

    def _listing(self) -> dict[str, Document]:
        """Every document of the container: a reading during which the totals agreed with each other and with what came."""
        for _ in range(_READINGS_MAX):
            found: dict[str, Document] = {}
            totals: set[int] = set()
            for number in range(1, _PAGES_MAX):
                page = self._documents.page(number, sort="createdAt", order="asc")
                totals.add(page.total)
                found.update((document.id, document) for document in page.documents)
                if len(page.documents) < PAGE:
                    break
            if totals == {len(found)}:
                return found
        raise UnstableError("the server's list of documents changes all the time")

    def _many_gone(self, missing: list[str], asked_at: int) -> None:
        """The engine decides about so many: they leave the listing, and the feed is cut so that it is asked for."""
        records = self._records
        for document_id in missing[:DELETIONS_FREE]:
            if self._documents.get(document_id) is not None:
                raise UnstableError("the server's list of documents lacks some that are there")
        log.warning("%d documents are missing at the server: comparing everything", len(missing))
        with records.deciding, records.transaction() as tx:
            for document_id in missing:
                known = records.known(document_id)
                if known is None or records.touched.is_stale(document_id, asked_at):
                    continue
                if known.status == "done" or known.path is None:
                    records.forget(tx, document_id)
            records.cut_feed(tx)


def marker_name(container: str) -> str:
    """The custom id of a container's marker document: of letters, digits and hyphens, as the API asks."""
    return f"memdir-container-{hashlib.sha256(container.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}"
