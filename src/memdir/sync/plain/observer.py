"""From a document as the server says it to what the mount shows, and the changes in between. One document at a time.

Several documents may want the same place: the API allows it, and two mounts that create at the same moment make it so. One is
shown, the same for everybody who looks: the one that takes the other's place by its own word, else the older. The others are
kept at the server and get a place later (`places`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from typing import Final

from memdir.client.errors import AuthError, ClientError, OfflineError, RateLimitedError, RejectedError
from memdir.core.clock import Clock
from memdir.core.limits import FILE_SYNC_MAX_BYTES, MIB, SYMLINK_MAX_BYTES
from memdir.fs.errors import FsError
from memdir.fs.path import checked, split
from memdir.sync.plain.marks import Face
from memdir.sync.plain.records import Known, Records
from memdir.sync.plain.wire import Document, Documents

log = logging.getLogger(__name__)

FOREIGN_MAX_BYTES: Final = 64 * MIB
"""A file that no mount uploaded is fetched once to know its hash, up to this size."""
SEEN_S: Final = 60.0
"""A failed document stays for two minutes; one that was seen in work more recently and is gone did not fail."""
_TEXT_TYPES: Final = frozenset({"text", "webpage", "tweet", "notion_doc", "github_markdown", "google_doc", "granola"})
_TRIES: Final = 8
_FOREIGN_MODE: Final = 0o644
NO_PLACE: Final = "no-place"
"""The note of a document that must wait for its place."""


class RestoredError(Exception):
    """A document is older than it was: the server was put back to an earlier state."""


class UnreadableError(Exception):
    """The exact bytes of a document cannot be had, so it is not shown."""


class Observer:
    """Works on the records of one container. Thread-safe."""

    def __init__(self, documents: Documents, records: Records, clock: Clock) -> None:
        self._documents = documents
        self._records = records
        self._clock = clock

    def take(self, document: Document, asked_at: int, *, own: bool = False) -> None:
        """Note what the server says. Nothing happens when this mount changed the document since `asked_at`, unless it is `own`:
        the caller is the one who changes it. RestoredError; ClientError when the server does not answer."""
        self._take(document, asked_at, frozenset(), own=own)

    def look(self, document_id: str, asked_at: int, *, own: bool = False) -> None:
        """Ask for one document and note what is said, also that it is gone."""
        self._look(document_id, asked_at, frozenset(), own=own)

    def gone(self, document_id: str, asked_at: int, *, own: bool = False) -> None:
        """The server does not have it any more. What it was done with was deleted. What it was working on, too, when that was
        seen a moment ago: what a server cannot process, it shows as failed for a while before it drops it by itself. Nobody's
        file goes because of that."""
        records = self._records
        with records.deciding:
            known = records.known(document_id)
            if known is None or (not own and records.touched.is_stale(document_id, asked_at)):
                return
            is_deleted = known.status == "done" or (known.status not in ("failed", "dropped") and self._is_seen(document_id))
            with records.transaction() as tx:
                if is_deleted:
                    records.forget(tx, document_id)
                    if known.path is not None:
                        records.log(tx, "delete", known.path)
                elif known.path is not None:
                    records.put(tx, dataclasses.replace(known, status="dropped", note="the server gave it up"))
                else:
                    records.forget(tx, document_id)

    def note_seen(self, document_id: str) -> None:
        """The server has it now, and works on it."""
        self._records.seen_at_s[document_id] = self._clock.monotonic_s()

    def _is_seen(self, document_id: str) -> bool:
        return self._clock.monotonic_s() - self._records.seen_at_s.get(document_id, float("-inf")) <= SEEN_S

    # --- one look ------------------------------------------------------------------------------------------------

    def _look(self, document_id: str, asked_at: int, waiting: frozenset[str], *, own: bool = False) -> None:
        document = self._documents.get(document_id)
        if document is None:
            self.gone(document_id, asked_at, own=own)
        else:
            self._take(document, asked_at, waiting, own=own)

    def _take(self, document: Document, asked_at: int, waiting: frozenset[str], *, own: bool = False) -> None:
        records = self._records
        old = records.known(document.id)
        if not own and records.touched.is_stale(document.id, asked_at):
            return
        if old is not None and document.updated_us < old.updated_us:
            if document.content is None:  # a listing may lag behind; the document itself does not
                self._look(document.id, asked_at, waiting, own=own)
                return
            raise RestoredError(document.id)
        if document.status != "done":
            self._note_unsettled(document, asked_at, own=own)
            return
        if old is not None and old.status == "done" and _is_same(old, document):
            return
        face, note = None, ""
        path = placed(document)
        if path is not None:
            try:
                examined = self._examined(document, old)
            except UnreadableError as error:
                note = str(error)
            except (AuthError, OfflineError, RateLimitedError):
                raise
            except ClientError as error:  # of this document alone: the others go on, and it is asked for again
                log.info("document %s cannot be looked at: %s", document.id, error.message)
                self._note_unsettled(dataclasses.replace(document, status="unknown"), asked_at, own=own)
                return
            else:
                if examined is None:
                    self.gone(document.id, asked_at, own=own)
                    return
                document, face = examined
                path = placed(document)
        verified: set[str] = set()
        for _ in range(_TRIES):
            in_the_way = self._place(document, path, face, note, asked_at, waiting, verified, own=own)
            if not in_the_way:
                return
            for document_id in in_the_way:
                verified.add(document_id)
                self._look(document_id, asked_at, waiting | {document.id})
        self._note_unsettled(dataclasses.replace(document, status="unknown"), asked_at, own=own)

    def _note_unsettled(self, document: Document, asked_at: int, *, own: bool) -> None:
        """It is being worked on, or failed: what is shown stays, nothing new is shown."""
        records = self._records
        with records.deciding:
            if not own and records.touched.is_stale(document.id, asked_at):
                return
            old = records.known(document.id)
            known = Known(
                id=document.id, filepath=document.filepath, path=old.path if old else None, face=old.face if old else None,
                revision=old.revision if old else 0, custom_id=document.custom_id, write_key=old.write_key if old else "",
                replaces=old.replaces if old else "", created_us=document.created_us, updated_us=document.updated_us,
                status=document.status, note=document.reason,
            )  # fmt: skip
            self.note_seen(document.id)
            if known != old:
                with records.transaction() as tx:
                    records.put(tx, known)

    # --- what it shows -------------------------------------------------------------------------------------------

    def _examined(self, document: Document, old: Known | None) -> tuple[Document, Face] | None:
        """What the document shows, and the document as it was asked for once more where the listing does not tell. None when it
        is gone meanwhile."""
        marks = document.marks
        asked = document.content is not None
        unclear = marks is None or (old is not None and old.face is not None and old.write_key == marks.key)
        if unclear and not asked:
            again = self._documents.get(document.id)
            if again is None:
                return None
            document, marks, asked = again, again.marks, True
        if marks is not None and not (asked and marks.is_edited(document.content or "")):
            return document, marks.face
        mode = _FOREIGN_MODE if marks is None else marks.face.mode
        return document, self._foreign_face(document, mode)

    def _foreign_face(self, document: Document, mode: int) -> Face:
        """Of what no mount wrote."""
        if document.type in _TEXT_TYPES and document.content is not None:
            content = document.content.encode("utf-8", "surrogatepass")
            size, digest = len(content), hashlib.sha256(content)
        else:
            size, digest = 0, hashlib.sha256()
            try:
                with self._documents.original(document) as pieces:
                    for piece in pieces:
                        size += len(piece)
                        digest.update(piece)
                        if size > FOREIGN_MAX_BYTES:
                            raise UnreadableError(f"it is larger than {FOREIGN_MAX_BYTES // MIB} MiB and no mount wrote it")
            except RejectedError as error:
                raise UnreadableError(error.message) from error
        return Face(
            kind="file", content_hash=digest.hexdigest(), size_bytes=size, mode=mode, mtime_ns=document.updated_us * 1000
        )

    # --- where it stands -----------------------------------------------------------------------------------------

    def _place(
        self, document: Document, path: str | None, face: Face | None, note: str, asked_at: int, waiting: frozenset[str],
        verified: set[str], *, own: bool,
    ) -> list[str]:  # fmt: skip
        """Show it at `path`; or name the documents in its way that must be looked at first. Those in `waiting` are about to
        leave their places."""
        records = self._records
        with records.deciding:
            if not own and records.touched.is_stale(document.id, asked_at):
                return []
            old = records.known(document.id)
            known = Known(
                id=document.id, filepath=document.filepath, path=None, face=face, revision=old.revision if old else 0,
                custom_id=document.custom_id, write_key=document.marks.key if document.marks else "",
                replaces=document.marks.replaces if document.marks else "", created_us=document.created_us,
                updated_us=document.updated_us, status="done", note=note,
            )  # fmt: skip
            leaving: list[Known] = []
            if path is not None and face is not None:
                holder, above, below = self._neighbours(path, document.id)
                unknown = [other.id for other in (holder, above) if other is not None and other.id not in verified | waiting]
                if unknown and not (holder is not None and holder.status == "dropped"):
                    return unknown
                stays = [other for other in (above,) if other is not None and other.id not in waiting]
                if stays or below or (holder is not None and not self._yields(holder, known, waiting)):
                    known = dataclasses.replace(known, note=NO_PLACE)
                else:
                    known = dataclasses.replace(known, path=path)
                    leaving = [other for other in (holder, above) if other is not None]
            records.seen_at_s.pop(document.id, None)
            self._show(known, old, leaving)
            return []

    def _neighbours(self, path: str, document_id: str) -> tuple[Known | None, Known | None, bool]:
        """Who is shown at `path`, who is shown as a file above it, and whether others are shown below it."""
        records = self._records
        holder = records.at(path)
        above, parent = None, split(path)[0]
        while parent != "/" and above is None:
            above = records.at(parent)
            parent = split(parent)[0]
        below = any(other.id != document_id for other in records.shown_below(path)[:2])
        return (
            None if holder is None or holder.id == document_id else holder,
            None if above is None or above.id == document_id else above,
            below,
        )

    @staticmethod
    def _yields(holder: Known, known: Known, waiting: frozenset[str]) -> bool:
        if holder.id in waiting or holder.status == "dropped" or known.replaces == holder.id:
            return True
        return holder.replaces != known.id and known.order < holder.order

    def _show(self, known: Known, old: Known | None, leaving: list[Known]) -> None:
        records, path = self._records, known.path
        before = old.path if old is not None else None
        same = old is not None and known.face is not None and known.face.same(old.face)
        with records.transaction() as tx:
            for other in leaving:
                if other.status == "dropped":
                    records.forget(tx, other.id)
                else:
                    records.put(tx, dataclasses.replace(other, path=None, note=NO_PLACE))
                if other.path != path:
                    assert other.path is not None
                    records.log(tx, "delete", other.path)
            if before is not None and before != path and not (same and path is not None and not leaving):
                records.log(tx, "delete", before)
                before = None
            if path is not None and (before != path or not same):
                folders = [folder for folder in (records.folder(path), *records.folders_below(path)) if folder is not None]
                if folders:  # empty ones, of this side only
                    for folder in folders:
                        records.forget_folder(tx, folder.path)
                    records.log(tx, "delete", path)
                if before is None or before == path:
                    seq = records.log(tx, "put", path, known=known)
                else:
                    seq = records.log(tx, "move", path, source=before)
                known = dataclasses.replace(known, revision=seq)
            records.put(tx, known)


def placed(document: Document) -> str | None:
    """Where the document wants to be shown; None for one without a place in a mount."""
    filepath = document.filepath
    marks = document.marks
    if filepath is None or (marks is not None and marks.face.kind == "container"):
        return None
    if marks is not None and marks.face.kind == "symlink" and marks.face.size_bytes > SYMLINK_MAX_BYTES:
        return None
    if marks is not None and marks.face.size_bytes > FILE_SYNC_MAX_BYTES:
        return None
    try:
        return filepath if filepath != "/" and checked(filepath) == filepath else None
    except FsError:
        return None


def _is_same(old: Known, document: Document) -> bool:
    """Nothing happened to it since it was looked at, and it is where it wants to be."""
    marks = document.marks
    return (
        old.updated_us == document.updated_us
        and old.filepath == document.filepath
        and old.write_key == (marks.key if marks is not None else "")
        and old.note != NO_PLACE
        and (document.content is None or marks is None or old.face is None or not _is_hidden_edit(old, document))
    )


def _is_hidden_edit(old: Known, document: Document) -> bool:
    """Somebody else wrote another text within the same millisecond, or before we first looked."""
    marks = document.marks
    assert marks is not None
    return old.face is not None and marks.is_edited(document.content or "") and old.face.content_hash == marks.face.content_hash
