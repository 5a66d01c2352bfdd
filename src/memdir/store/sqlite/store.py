"""One folder, one database, and the stores over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from memdir.core.clock import Clock, SystemClock
from memdir.core.sqlite import Database
from memdir.store.sqlite.blobs import BlobStore
from memdir.store.sqlite.changes import ChangeStore
from memdir.store.sqlite.containers import ContainerStore
from memdir.store.sqlite.documents import DocumentStore
from memdir.store.sqlite.embedding import EmbeddingQueue
from memdir.store.sqlite.files import FileTree
from memdir.store.sqlite.jobs import JobStore
from memdir.store.sqlite.keys import KeyStore

DATABASE_NAME: Final = "memdir.db"
_CACHE_MIB: Final = 8


class SqliteStore:
    """Everything the server keeps. Thread-safe; every method of the sub-stores may block.

    Derived rows of other stores (chunks, memories) hang on `document (id)` with `on delete cascade`; what must follow a
    deleted row elsewhere (a full-text index) belongs in a trigger. A document's place and revision are read from its row.
    """

    def __init__(self, db: Database, folder: Path, clock: Clock) -> None:
        self.db = db
        self.folder = folder
        self._clock = clock
        self._listeners: list[Callable[[int], None]] = []
        self.containers = ContainerStore(db, clock)
        self.documents = DocumentStore(db, clock)
        self.blobs = BlobStore(db, folder)
        self.changes = ChangeStore(db)
        self.jobs = JobStore(db, clock)
        self.embedding = EmbeddingQueue(db, clock)
        self.keys = KeyStore(db, clock)
        self.files = FileTree(db, clock, self.blobs, self.notify)

    @classmethod
    def open(cls, folder: Path, *, clock: Clock | None = None) -> SqliteStore:
        """Open or create the store in `folder`. VersionError and CorruptError as in `core.sqlite`."""
        db = Database(folder / DATABASE_NAME, migrations="memdir.store.sqlite.schema", cache_mib=_CACHE_MIB)
        return cls(db, folder, clock or SystemClock())

    def recover(self) -> None:
        """Clear up after a process that is gone: leases, half uploads, unreferenced files. Only the one process that owns
        the folder calls this, before it begins."""
        self.jobs.release_all()
        self.blobs.recover()

    def listen(self, listener: Callable[[int], None]) -> None:
        """`listener` gets a container's id, on the committing thread, after each commit that others may wait for."""
        self._listeners.append(listener)

    def notify(self, container_id: int) -> None:
        """Tell the listeners that something happened in a container."""
        for listener in tuple(self._listeners):
            listener(container_id)

    def now_ms(self) -> int:
        """The store's clock, milliseconds since the epoch."""
        return self._clock.now_ns() // 1_000_000

    def close(self) -> None:
        """Close the database; the store cannot be used after that."""
        self.db.close()
