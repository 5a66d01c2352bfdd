"""The exact bytes of what is shown, or the reason why they cannot be had. Nothing is given out that has another hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from memdir.client.errors import ClientError, NotFoundError, OfflineError, RejectedError, ServerError
from memdir.sync.plain.observer import Observer
from memdir.sync.plain.records import Known, Records
from memdir.sync.plain.wire import Document, Documents

_PIECE_BYTES: Final = 1 << 20


class Contents:
    """One connection's. Thread-safe."""

    def __init__(self, documents: Documents, records: Records, observer: Observer) -> None:
        self._documents = documents
        self._records = records
        self._observer = observer

    @contextmanager
    def open(self, path: str, *, stall_s: float | None = None) -> Iterator[tuple[int, Iterator[bytes]]]:
        """The revision and the bytes of what is shown at `path`. NotFoundError when nothing is, or something else by now;
        RejectedError when the server does not give the exact bytes back; ServerError while it works on them."""
        known = self._records.at(path)
        if known is None or known.face is None:
            raise NotFoundError(f"nothing stands at {path} (HTTP 404)")
        asked_at = self._records.touched.now()
        document = self._documents.get(known.id)
        if document is None:
            self._observer.gone(known.id, asked_at)
            raise NotFoundError(f"{path} is not at the server any more (HTTP 404)")
        exact = self._from_text(known, document)
        if exact is not None:
            yield known.revision, _pieces(exact)
            return
        if document.status not in ("done", "failed"):
            raise ServerError(f"the server is still working on {path}")
        self._check_same(known, document, asked_at)
        with self._documents.original(document, stall_s=stall_s) as pieces:
            yield known.revision, pieces

    def gives_back(self, path: str, content_hash: str) -> bool:
        """Whether the server gives exactly these bytes back, tried out. Costs their transfer."""
        digest = hashlib.sha256()
        try:
            with self.open(path) as (_, pieces):
                for piece in pieces:
                    digest.update(piece)
        except OfflineError:
            raise
        except ClientError:
            return False
        return digest.hexdigest() == content_hash

    def _from_text(self, known: Known, document: Document) -> bytes | None:
        assert known.face is not None
        content = document.content or ""
        if document.marks is not None and document.marks.face.content_hash == known.face.content_hash:
            exact = document.marks.restored(content)
            if exact is not None:
                return exact
        raw = content.encode("utf-8", "surrogatepass")
        return raw if hashlib.sha256(raw).hexdigest() == known.face.content_hash else None

    def _check_same(self, known: Known, document: Document, asked_at: int) -> None:
        """NotFoundError when the document is another than what is shown: that is noted, and the feed will say so."""
        marks = document.marks
        assert known.face is not None
        is_ours = marks is not None and marks.face.content_hash == known.face.content_hash
        if is_ours and marks is not None and not marks.is_edited(document.content or ""):
            if marks.how != "upload":
                raise RejectedError(
                    f"the server changed the text of {known.path} when it took it in, and does not give the exact bytes back; "
                    "they are where the file was written"
                )
            return
        if not is_ours and marks is None and known.updated_us == document.updated_us:
            return  # a file that no mount uploaded
        self._observer.take(document, asked_at)
        raise NotFoundError(f"{known.path} has other contents at the server by now (HTTP 404)")


def _pieces(content: bytes) -> Iterator[bytes]:
    for start in range(0, len(content), _PIECE_BYTES):
        yield content[start : start + _PIECE_BYTES]
