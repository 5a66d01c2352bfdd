"""Changes for a server without revisions: looked at before, sent one at a time for each document, and not called done before
the server is done with them.

A document that is being processed takes no second change: some servers refuse it, some forget it silently. So a change that was
sent, and one that has to wait, both end as `ServerError` ("still working on it"), and the queue asks again: the same request is
then answered from what the document shows. What the server fails to process is refused with its reason.

What cannot be closed without revisions: between our look and our change somebody else's change of the same document is
overwritten (the time of one request), and of two creations at one path both happen (`places` settles those).
"""

from __future__ import annotations

import dataclasses
import hashlib
import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from memdir.client.errors import (
    ConflictError,
    NotFoundError,
    PreconditionFailedError,
    RejectedError,
    ServerError,
    TooLargeError,
)
from memdir.client.remote import Expect
from memdir.core.clock import Clock
from memdir.core.limits import FILE_SYNC_MAX_BYTES, MIB
from memdir.fs.path import is_within, rebase, split
from memdir.sync.plain.marks import TEXT_MAX_BYTES, Face, Marks, marks_of
from memdir.sync.plain.reader import Reader
from memdir.sync.plain.records import Folder, Known, Records
from memdir.sync.plain.touched import BusyDocumentError
from memdir.sync.plain.wire import BULK_MAX, Document, Documents

log = logging.getLogger(__name__)

FRESH_S: Final = 1.0
"""A creation is made on knowledge of the server that is at most so old."""
_WORKING: Final = "the server is still working on it"
_GIVEN_UP: Final = "the server could not process it and dropped it"


class Content:
    """Bytes with their hash; large ones on disk. Use as a context."""

    def __init__(self, content: bytes | Iterable[bytes]) -> None:
        """RejectedError when there are too many."""
        self.file: IO[bytes] = SpooledTemporaryFile(max_size=8 * MIB)  # noqa: SIM115  closed by __exit__
        digest = hashlib.sha256()
        self.size_bytes = 0
        try:
            for piece in (content,) if isinstance(content, bytes) else content:
                self.size_bytes += len(piece)
                if self.size_bytes > FILE_SYNC_MAX_BYTES:
                    raise TooLargeError(f"larger than {FILE_SYNC_MAX_BYTES // MIB} MiB")  # noqa: TRY301
                digest.update(piece)
                self.file.write(piece)
        except BaseException:
            self.file.close()
            raise
        self.hash = digest.hexdigest()

    def __enter__(self) -> Content:
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def small(self) -> bytes:
        """All of it when it may be a text, else nothing."""
        if self.size_bytes > TEXT_MAX_BYTES:
            return b""
        self.file.seek(0)
        return self.file.read()


class Writer:
    """One connection's. Thread-safe; of one document only one change is under way."""

    def __init__(self, documents: Documents, records: Records, reader: Reader, clock: Clock) -> None:
        self._documents = documents
        self._records = records
        self._reader = reader
        self._observer = reader.observer
        self._clock = clock

    # --- files ---------------------------------------------------------------------------------------------------

    def put(
        self,
        path: str,
        content: bytes | Iterable[bytes],
        *,
        kind: str,
        mode: int,
        mtime_ns: int,
        expect: Expect | None,
        key: str,
    ) -> Known | Folder:
        """Put the exact bytes; what stands there then. ClientError."""
        if kind == "dir":
            return self._put_folder(path, mode, mtime_ns, expect)
        with Content(content) as whole:
            face = Face(kind=kind, content_hash=whole.hash, size_bytes=whole.size_bytes, mode=mode, mtime_ns=mtime_ns)
            known = self._records.at(path)
            if known is None or known.status == "dropped":
                self._reader.refresh(max_age_s=FRESH_S)
                known = self._records.at(path)
            self._check_place(path)
            if known is not None and known.status != "dropped":
                return self._replace(path, known, face, whole, expect, key)
            return self._create(path, known, face, whole, expect, key)

    def _check_place(self, path: str) -> None:
        """ConflictError when a folder stands at `path`, or a file above it."""
        records = self._records
        if records.folder(path) is not None or records.has_below(path):
            raise ConflictError(f"{path} is a folder (HTTP 409)")
        above = split(path)[0]
        while above != "/":
            if records.at(above) is not None:
                raise ConflictError(f"{above} is no folder (HTTP 409)")
            above = split(above)[0]

    def _replace(self, path: str, known: Known, face: Face, whole: Content | None, expect: Expect | None, key: str) -> Known:
        with self._changing([known.id]):
            document = self._looked_at(known, key)
            now = self._records.at(path)
            if now is None or document is None:
                raise PreconditionFailedError(f"{path} is not there any more", current=None)
            assert now.face is not None
            if document.status == "done" and now.face.same(face):
                return self._settled(now, key)
            _check(expect, now)
            if now.id != document.id:
                raise ServerError(f"{path} is another document by now")
            same_bytes = document.status == "done" and (now.face.kind, now.face.content_hash) == (face.kind, face.content_hash)
            self._send_over(path, document, face, whole, key, same_bytes=same_bytes)
            self._observer.look(document.id, self._records.touched.now(), own=True)
        return self._result(path, face, key)

    def keep(
        self, path: str, content_hash: str, *, mode: int, mtime_ns: int, expect: Expect | None, key: str
    ) -> Known | Folder:
        """Give another mode to a file that has these contents already. PreconditionFailedError when it has others."""
        known = self._records.at(path)
        if known is None or known.face is None or known.status == "dropped" or known.face.content_hash != content_hash:
            raise PreconditionFailedError(f"{path} has other contents", current=known.entry() if known and known.face else None)
        face = dataclasses.replace(known.face, mode=mode, mtime_ns=mtime_ns)
        return self._replace(path, known, face, None, expect, key)

    def _send_over(
        self, path: str, document: Document, face: Face, whole: Content | None, key: str, *, same_bytes: bool
    ) -> None:
        if same_bytes:  # only the mode: without new contents nothing has to be processed again
            self._change(document.id, metadata=_same_marks(document, face, key).write(document.metadata))
            return
        if whole is None:
            raise PreconditionFailedError(f"{path} has other contents", current=None)
        marks, text = marks_of(face, whole.small(), key=key)
        metadata = marks.write(document.metadata)
        if marks.how != "upload":
            self._change(document.id, content=text, metadata=metadata)
        elif document.custom_id:
            self._upload(path, whole, custom_id=document.custom_id, metadata=metadata)
        else:  # nothing to find it by: another document takes its place
            self._add(path, dataclasses.replace(marks, replaces=document.id), "", whole, key)

    def _create(self, path: str, dropped: Known | None, face: Face, whole: Content, expect: Expect | None, key: str) -> Known:
        records = self._records
        if expect is not None and expect.revision is not None and (dropped is None or dropped.revision != expect.revision):
            raise PreconditionFailedError(f"nothing stands at {path}", current=None)
        made = records.sent(key)
        if made is not None and self._was_made(path, made, key):
            known = records.known(records.sent(key) or "")
            if known is not None and known.path not in (None, path):
                self._forget_sent(key)
                raise PreconditionFailedError(f"{path} was renamed by others", current=None)
            return self._result(path, face, key)
        marks, text = marks_of(face, whole.small(), key=key)
        self._add(path, marks, text, whole, key)
        return self._result(path, face, key)

    def _was_made(self, path: str, made: str, key: str) -> bool:
        """Whether an earlier try of the same creation reached the server. RejectedError when it was given up there."""
        document = self._documents.get(made or custom_id_of(key))
        if document is None and made:
            self._forget_sent(key)
            raise RejectedError(f"{_GIVEN_UP}: {path}")
        if document is None:
            return False
        if document.status == "failed":
            self._forget_sent(key)
            raise RejectedError(f"{_GIVEN_UP}: {document.reason or 'it gives no reason'}")
        if not made:
            with self._records.transaction() as tx:
                self._records.note_sent(tx, key, document.id)
        self._observer.take(document, self._records.touched.now(), own=True)
        return True

    def _add(self, path: str, marks: Marks, text: str, whole: Content, key: str) -> None:
        records = self._records
        with records.transaction() as tx:
            records.note_sent(tx, key, "")
        with records.touched.changing([]):
            metadata, custom_id = marks.write({}), custom_id_of(key)
            if marks.how == "upload":
                made = self._upload(path, whole, custom_id=custom_id, metadata=metadata)
            else:
                with _one_at_a_time():
                    made = self._documents.add(
                        text, custom_id=custom_id, metadata=metadata, filepath=path, remembered=marks.how == "text"
                    )
            with records.transaction() as tx:
                records.note_sent(tx, key, made)
        self._observer.look(made, records.touched.now())

    def _upload(self, path: str, whole: Content, *, custom_id: str, metadata: dict[str, object]) -> str:
        whole.file.seek(0)
        with _one_at_a_time():
            return self._documents.upload(
                whole.file, name=split(path)[1], custom_id=custom_id, metadata=metadata, filepath=path
            )

    def _change(self, document_id: str, **fields: object) -> None:
        with _one_at_a_time():
            self._documents.change(document_id, **fields)

    def _looked_at(self, known: Known, key: str) -> Document | None:
        """The document as it is now, noted; None when it is gone. ServerError while it is being processed, RejectedError when
        it failed with what `key` sent."""
        asked_at = self._records.touched.now()
        document = self._documents.get(known.id)
        if document is None:
            self._observer.gone(known.id, asked_at, own=True)
            left = self._records.known(known.id)
            if left is not None and left.status == "dropped":
                raise RejectedError(f"{_GIVEN_UP}: {known.filepath}")
            return None
        self._observer.take(document, asked_at, own=True)
        if document.status not in ("done", "failed"):
            raise ServerError(_WORKING)
        if document.status == "failed" and document.marks is not None and document.marks.key == key:
            raise RejectedError(f"{_GIVEN_UP}: {document.reason or 'it gives no reason'}")
        return document

    def _result(self, path: str, face: Face, key: str) -> Known:
        """What stands at `path` after our change. ServerError while the server works on it."""
        now = self._records.at(path)
        if now is not None and now.status == "done" and now.face is not None and now.face.same(face):
            return self._settled(now, key)
        raise ServerError(_WORKING)

    def _settled(self, known: Known, key: str) -> Known:
        if self._records.sent(key) is not None:
            self._forget_sent(key)
        return known

    def _forget_sent(self, key: str) -> None:
        with self._records.transaction() as tx:
            self._records.forget_sent(tx, [key])

    # --- folders -------------------------------------------------------------------------------------------------

    def _put_folder(self, path: str, mode: int, mtime_ns: int, expect: Expect | None) -> Folder:
        """A folder is noted here; the server has none."""
        records = self._records
        with records.deciding:
            held = records.at(path)
            if held is not None:
                raise PreconditionFailedError(f"{path} is a file", current=held.entry())
            folder = records.folder(path)
            if folder is not None:
                if folder.mode == mode:
                    return folder
                if expect is not None and expect.revision != folder.revision:
                    raise PreconditionFailedError(f"{path} is there", current=folder.entry())
            elif expect is not None and expect.revision is not None:
                raise PreconditionFailedError(f"nothing stands at {path}", current=None)
            made = Folder(path=path, mode=mode, mtime_ns=mtime_ns, revision=0)
            with records.transaction() as tx:
                seq = records.log(tx, "put", path, known=made)
                made = Folder(path=path, mode=mode, mtime_ns=mtime_ns, revision=seq)
                records.put_folder(tx, made)
            return made

    # --- deletes -------------------------------------------------------------------------------------------------

    def delete(
        self, path: str, *, recursive: bool, expect: Expect | None, unchanged_since: int | None = None
    ) -> tuple[int, int]:
        """Delete what stands there; the number of the change, and how many documents and folders went. By id, never by a path's
        prefix: what others put there a moment ago is not ours to delete. With `unchanged_since` only when nothing of it is
        newer than that number."""
        records = self._records
        self._reader.refresh()
        known, folder = records.at(path), records.folder(path)
        below, folders = records.shown_below(path), records.folders_below(path)
        if known is None and folder is None and not (recursive and below):
            raise NotFoundError(f"nothing stands at {path} (HTTP 404)")
        stands = known or folder
        if expect is not None and stands is not None and expect.revision != stands.revision:
            raise PreconditionFailedError(f"{path} is another by now", current=stands.entry())
        if (below or folders) and not recursive:
            raise ConflictError(f"{path} is not empty (HTTP 409)")
        going = ([known] if known is not None else []) + below
        folders = ([folder] if folder is not None else []) + folders
        newest = max([one.revision for one in going] + [one.revision for one in folders], default=0)
        if unchanged_since is not None and newest > unchanged_since:
            raise PreconditionFailedError(f"{path} has something newer in it", current=None)
        if any(one.status not in ("done", "failed", "dropped") for one in going):
            raise ServerError(_WORKING)
        with self._changing([one.id for one in going]):
            there = [one.id for one in going if one.status != "dropped"]
            for start in range(0, len(there), BULK_MAX):
                with _one_at_a_time():
                    self._documents.delete(there[start : start + BULK_MAX])
            with records.deciding, records.transaction() as tx:
                for one in going:
                    records.forget(tx, one.id)
                for gone in folders:
                    records.forget_folder(tx, gone.path)
                seq = records.log(tx, "delete", path)
        return seq, len(going) + len(folders)

    # --- renames -------------------------------------------------------------------------------------------------

    def move(
        self, source: str, path: str, *, expect: Expect | None, replace: bool, key: str
    ) -> tuple[int, int, Known | Folder]:
        """Give another path to a document, or to every document of a folder one after the other. Broken off in the middle, what
        was renamed stands below the new name, and the same request again renames the rest."""
        records = self._records
        self._reader.refresh()
        known, folder = records.at(source), records.folder(source)
        moving = ([known] if known is not None else []) + records.shown_below(source)
        folders = ([folder] if folder is not None else []) + records.folders_below(source)
        if not moving and not folders:
            raise NotFoundError(f"nothing stands at {source} (HTTP 404)")
        if expect is not None and known is not None and expect.revision != known.revision:
            raise PreconditionFailedError(f"{source} is another by now", current=known.entry())
        taken = [one for one in (records.at(path), records.folder(path)) if one is not None]
        taken += records.shown_below(path)
        if is_within(path, source) or (taken and (not replace or len(taken) > 1 or not isinstance(taken[0], Known))):
            raise ConflictError(f"something stands at {path} (HTTP 409)")
        if any(one.status != "done" for one in moving):
            raise ServerError(_WORKING)
        if taken:
            self.delete(path, recursive=False, expect=None)
        with self._changing([one.id for one in moving]):
            moved = self._rename_each(moving, source, path, key)
            if not moved and not folders:
                raise NotFoundError(f"nothing stands at {source} any more (HTTP 404)")
            return self._note_move(moved, folders, source, path, whole=len(moved) == len(moving))

    def _rename_each(self, moving: list[Known], source: str, path: str, key: str) -> list[Known]:
        moved = []
        for one in moving:
            assert one.path is not None
            target = rebase(one.path, source, path)
            document = self._documents.get(one.id)
            if document is None or document.filepath not in (one.path, target):
                continue  # gone, or somewhere else by now: seen with the next reading
            if document.status != "done":
                raise ServerError(_WORKING)
            if document.filepath != target:
                fields: dict[str, object] = {"filepath": target}
                if document.marks is not None:  # as of another write, so that other mounts need not look at the contents
                    marks = dataclasses.replace(document.marks, key=f"{key}-{one.id}")
                    fields["metadata"] = marks.write(document.metadata)
                self._change(one.id, **fields)
            moved.append(one)
        return moved

    def _note_move(
        self, moved: list[Known], folders: list[Folder], source: str, path: str, *, whole: bool
    ) -> tuple[int, int, Known | Folder]:
        """One change when all of it moved, else one for each document."""
        records = self._records
        result: Known | Folder | None = None
        with records.deciding, records.transaction() as tx:
            seq = records.log(tx, "move", path, source=source) if whole else 0
            for folder in folders:
                target = rebase(folder.path, source, path)
                records.forget_folder(tx, folder.path)
                if not whole:
                    records.log(tx, "delete", folder.path)
                    seq = records.log(tx, "put", target, known=dataclasses.replace(folder, path=target))
                there = dataclasses.replace(folder, path=target, revision=seq)
                records.put_folder(tx, there)
                result = there if target == path else result
            for one in moved:
                assert one.path is not None
                known, target = records.known(one.id), rebase(one.path, source, path)
                if known is None or known.path is None:
                    continue
                if not whole:
                    seq = records.log(tx, "move", target, source=known.path)
                there_now = dataclasses.replace(known, path=target, filepath=target, revision=seq, status="queued")
                records.put(tx, there_now)
                self._observer.note_seen(one.id)
                result = there_now if target == path else result
        return seq, len(moved) + len(folders), result or Folder(path=path, mode=0o755, mtime_ns=0, revision=seq)

    # --- one at a time -------------------------------------------------------------------------------------------

    @contextmanager
    def _changing(self, ids: list[str]) -> Iterator[None]:
        try:
            with self._records.touched.changing(ids):
                yield
        except BusyDocumentError as error:
            raise ServerError(_WORKING) from error


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    """A 409 says that the document's last change is still being processed."""
    try:
        yield
    except ConflictError as error:
        raise ServerError(f"{_WORKING}: {error.message}") from error
    except NotFoundError as error:
        raise ServerError(f"it went while it was changed: {error.message}") from error


def _check(expect: Expect | None, now: Known) -> None:
    if expect is not None and expect.revision != now.revision:
        raise PreconditionFailedError(f"{now.path} is another by now", current=now.entry())


def _same_marks(document: Document, face: Face, key: str) -> Marks:
    """Marks of a document whose contents stay: those it has, else such as fit what it gives back."""
    marks = document.marks
    if marks is not None and marks.face.content_hash == face.content_hash:
        return dataclasses.replace(marks, face=face, key=key)
    content = (document.content or "").encode("utf-8", "surrogatepass")
    if hashlib.sha256(content).hexdigest() == face.content_hash:
        return marks_of(face, content, key=key)[0]
    return Marks(face=face, how="upload", key=key)


def custom_id_of(key: str) -> str:
    """Letters, digits and a hyphen, at most 100 characters."""
    return f"memdir-{hashlib.sha256(key.encode()).hexdigest()[:48]}"
