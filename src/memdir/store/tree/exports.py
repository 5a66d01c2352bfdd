"""One moment of a container, held while it is read: what an export streams, however long that takes.

Beginning writes the entries to a temporary file and takes one more reference to each of their contents, in one transaction
that nobody changes the tree beside; so memory stays bounded, writers wait only for that, and nothing that was there at
that moment can go away under the reader. Ending gives the references back. Those of a process that died end by themselves
(`release_stale`).
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import TracebackType
from typing import IO, Any, Final

from memdir.core.clock import Clock
from memdir.core.errors import NotFoundError
from memdir.core.ids import new_id
from memdir.store.acting import narrowed_to
from memdir.store.contents.blobs import BlobStore
from memdir.store.database import Database, Transaction, fetch, first
from memdir.store.paths import below
from memdir.store.tree.documents import SELECT_DOCUMENT, document_of
from memdir.store.types import Container, Document

HOLD_MS: Final = 24 * 3600 * 1000
"""How long an export may take."""
_PAGE: Final = 1000


@dataclass(slots=True, kw_only=True)
class Export:
    """A container's entries at `seq`, in path order, then documents without a place. Leave it to let the contents go."""

    id: str
    container: Container
    seq: int
    count: int = 0
    size_bytes: int = 0
    """Of the contents."""
    _store: ExportStore
    _spool: IO[bytes] = field(default_factory=tempfile.TemporaryFile)

    def add(self, document: Document) -> None:
        """One more entry."""
        fields = {
            "path": document.path,
            "kind": document.kind,
            "id": document.id,
            "customId": document.custom_id,
            "metadata": dict(document.metadata),
            "taskType": None if document.task_type == "memory" else document.task_type,
            "url": document.url,
            "mode": document.mode,
            "mtimeNs": document.mtime_ns,
            "sizeBytes": document.size_bytes,
            "contentHash": document.content_hash,
            "createdAtMs": document.created_at_ms,
        }
        self._spool.write(
            json.dumps({name: value for name, value in fields.items() if value not in (None, {})}).encode() + b"\n"
        )
        self.count += 1
        self.size_bytes += document.size_bytes

    def lines(self) -> Iterator[bytes]:
        """The entries as JSON, one a line."""
        self._spool.seek(0)
        yield from self._spool

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries. While they are read, nothing else of this export may be."""
        for line in self.lines():
            yield json.loads(line)

    @property
    def manifest_bytes(self) -> int:
        """How long all `lines` are."""
        return self._spool.seek(0, 2)

    def __enter__(self) -> Export:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._spool.close()
        self._store.release(self.id, self.container.org_id)


class ExportStore:
    """The export_hold table."""

    def __init__(self, db: Database, clock: Clock, blobs: BlobStore) -> None:
        self._db = db
        self._clock = clock
        self._blobs = blobs

    def begin(self, container: Container, *, folder: str = "/") -> Export:
        """Hold what stands at and below `folder` now; with '/' also the documents without a place."""
        export_id = new_id()
        with narrowed_to(container.org_id), self._db.write() as connection:
            row = first(connection, "update container set last_seq = last_seq where id = ? returning last_seq", (container.id,))
            if row is None:
                raise NotFoundError("the container is gone")
            export = Export(id=export_id, container=container, seq=row[0], _store=self)
            try:
                for document in self._documents(connection, container.id, folder):
                    export.add(document)
                self._hold(connection, export_id, container, folder)
            except BaseException:
                export._spool.close()
                raise
        return export

    def _documents(self, connection: Transaction, container_id: int, folder: str) -> Iterator[Document]:
        start, end = below(folder)
        page = fetch(connection, f"{SELECT_DOCUMENT} where d.container_id = ? and d.path = ?", (container_id, folder))
        yield from map(document_of, page)
        after = start
        while page := fetch(
            connection,
            f"{SELECT_DOCUMENT} where d.container_id = ? and d.path > ? and d.path < ? order by d.path limit {_PAGE}",
            (container_id, after, end),
        ):
            documents = [document_of(row) for row in page]
            yield from documents
            after = documents[-1].path or end
        after = ""
        while folder == "/" and (
            page := fetch(
                connection,
                f"{SELECT_DOCUMENT} where d.container_id = ? and d.path is null and d.id > ? order by d.id limit {_PAGE}",
                (container_id, after),
            )
        ):
            documents = [document_of(row) for row in page]
            yield from documents
            after = documents[-1].id

    def _hold(self, connection: Transaction, export_id: str, container: Container, folder: str) -> None:
        start, end = below(folder)
        connection.execute(
            "insert into export_hold (export_id, org_id, content_hash, until_ms) "
            "select distinct cast(:export as text), cast(:org as text), content_hash, cast(:until as bigint) from document "
            "where container_id = :container and kind <> 'dir' and (:folder = '/' or path = :folder "
            "or (path >= :start and path < :end))",
            {
                "export": export_id,
                "org": container.org_id,
                "until": self._clock.now_ns() // 1_000_000 + HOLD_MS,
                "container": container.id,
                "folder": folder,
                "start": start,
                "end": end,
            },
        )
        connection.execute(
            "update blob set ref_count = ref_count + 1 "
            "where hash in (select content_hash from export_hold where export_id = ?)",
            (export_id,),
        )

    def release(self, export_id: str, org_id: str) -> None:
        """Give back what an export held. Once more does nothing."""
        with narrowed_to(org_id), self._db.write() as connection:
            rows = fetch(connection, "delete from export_hold where export_id = ? returning content_hash", (export_id,))
            thrown = self._blobs.release(connection, [row[0] for row in rows])
        self._blobs.tidy(thrown)

    def release_stale(self, *, all_of_them: bool = False) -> int:
        """Give back what exports held that are over their time, or (no other process uses the store) all. Returns how many
        exports there were."""
        now_ms = (1 << 62) if all_of_them else self._clock.now_ns() // 1_000_000
        rows = self._db.all("select distinct export_id, org_id from export_hold where until_ms <= ?", (now_ms,))
        for export_id, org_id in rows:
            self.release(export_id, org_id)
        return len(rows)
