"""Any number of server and worker processes over one PostgreSQL."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from memdir.core.clock import Clock, SystemClock
from memdir.store.acting import NOBODY
from memdir.store.contents.backends import Contents
from memdir.store.contents.blobs import BlobStore
from memdir.store.postgres.database import PostgresDatabase
from memdir.store.postgres.migrations import migrate
from memdir.store.postgres.notices import Notices
from memdir.store.store import Store

if TYPE_CHECKING:
    from memdir.store.postgres.chunks import PostgresChunkStore
    from memdir.store.postgres.upkeep import PostgresUpkeep


class PostgresStore(Store):
    """For many users. Each process has its own; `folder` holds uploads under way, and
    the large contents unless there is another store for them; then it is shared by all processes."""

    def __init__(self, db: PostgresDatabase, url: str, folder: Path, clock: Clock, *, contents: Contents | None = None) -> None:
        super().__init__(db, BlobStore(db, folder, contents=contents, clock=clock), clock)
        self.db = db
        self.folder = folder
        self._lock = threading.Lock()
        self._chunks: PostgresChunkStore | None = None
        self._url = url
        self._notices = Notices(url, super().notify)

    @classmethod
    def open(
        cls,
        url: str,
        folder: Path,
        *,
        clock: Clock | None = None,
        contents: Contents | None = None,
        acting: str = NOBODY,
    ) -> PostgresStore:
        """Open the store at `url`, its schema made or brought up to date. `acting` is for whom those work who do not say.

        StorageError when the database cannot be reached, VersionError when a newer memdir made it.
        """
        migrate(url)
        return cls(PostgresDatabase(url, default_acting=acting), url, folder, clock or SystemClock(), contents=contents)

    def chunks(self) -> PostgresChunkStore:
        """Passages in the database."""
        with self._lock:
            if self._chunks is None:
                from memdir.store.postgres.chunks import PostgresChunkStore

                self._chunks = PostgresChunkStore(self.db)
            return self._chunks

    def passage_log(self) -> None:
        """Words are searched in the database."""

    def upkeep(self) -> PostgresUpkeep:
        """PostgreSQL's own tools."""
        from memdir.store.postgres.upkeep import PostgresUpkeep

        return PostgresUpkeep(self.db, self._url)

    def recover(self) -> None:
        """Nothing: other processes live on the same database. Leases of one that is gone run out."""

    def listen(self, listener: Callable[[int], None]) -> None:
        """`listener` gets a container's id after each commit of any process, and EVERY_CONTAINER when some may be missing."""
        super().listen(listener)
        self._notices.listen()

    def notify(self, container_id: int) -> None:
        """Tell the listeners, here and in the other processes."""
        super().notify(container_id)
        self._notices.say(container_id)

    def close(self) -> None:
        """Say what is still to be said, and close the connections."""
        self._notices.close()
        self.blobs.close()
        self.db.close()
