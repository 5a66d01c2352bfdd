"""One folder, one SQLite database, one server process."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.clock import Clock, SystemClock
from memdir.store.contents.backends import Contents
from memdir.store.contents.blobs import BlobStore
from memdir.store.sqlite.database import SqliteDatabase
from memdir.store.store import Store

if TYPE_CHECKING:
    from memdir.store.sqlite.chunks import SqliteChunkStore
    from memdir.store.sqlite.passage_log import SqlitePassageLog
    from memdir.store.sqlite.upkeep import SqliteUpkeep

DATABASE_NAME: Final = "memdir.db"
MIGRATIONS: Final = "memdir.store.sqlite.schema"
_CACHE_MIB: Final = 2
"""Of the writer: a commit is small, and the system keeps the file anyway."""


class SqliteStore(Store):
    """The default: embedded, one writer, many readers."""

    def __init__(self, db: SqliteDatabase, folder: Path, clock: Clock, *, contents: Contents | None = None) -> None:
        super().__init__(db, BlobStore(db, folder, contents=contents, clock=clock), clock)
        self.db = db
        self.folder = folder
        self._lock = threading.Lock()
        self._chunks: SqliteChunkStore | None = None

    @classmethod
    def open(
        cls, folder: Path, *, clock: Clock | None = None, contents: Contents | None = None, migrates: bool = True
    ) -> SqliteStore:
        """Open or create the store in `folder`. VersionError and CorruptError as in `core.sqlite`; without `migrates` also
        VersionError for an older schema."""
        db = SqliteDatabase(folder / DATABASE_NAME, migrations=MIGRATIONS, cache_mib=_CACHE_MIB, migrates=migrates)
        return cls(db, folder, clock or SystemClock(), contents=contents)

    def chunks(self) -> SqliteChunkStore:
        """Passages in FTS5 and in memory."""
        with self._lock:
            if self._chunks is None:
                from memdir.store.sqlite.chunks import SqliteChunkStore

                self._chunks = SqliteChunkStore(self.db)
            return self._chunks

    def passage_log(self) -> SqlitePassageLog:
        """This process owns the database."""
        from memdir.store.sqlite.passage_log import SqlitePassageLog

        return SqlitePassageLog(self.db)

    def upkeep(self) -> SqliteUpkeep:
        """SQLite's own tools."""
        from memdir.store.sqlite.upkeep import SqliteUpkeep

        return SqliteUpkeep(self.db)

    def recover(self) -> None:
        """Clear up after a process that is gone: leases, half uploads, unreferenced files. Only the one process that owns
        the folder calls this."""
        self.jobs.release_all()
        self.answers.release_all()
        self.exports.release_stale(all_of_them=True)
        self.blobs.recover()

    def close(self) -> None:
        """Close the database."""
        self.blobs.close()
        self.db.close()
