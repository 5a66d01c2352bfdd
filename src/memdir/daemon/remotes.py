"""Which API a server speaks, asked once a connection: our own, or Supermemory's alone."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from memdir.core.limits import MIB
from memdir.fs.errors import FsError
from memdir.fs.tree import LocalChangedError

if TYPE_CHECKING:
    from memdir.client.http import Client
    from memdir.client.remote import Remote
    from memdir.fs.tree import SyncTree
    from memdir.sync.plain.records import Records

log = logging.getLogger(__name__)

_TEXT_MAX_BYTES: Final = 16 * MIB
"""A larger file is not searched for the lines of a hit."""


class Remotes:
    """One mount's. Keeps what is to be known of a plain server (plain.db) from the first time until `close`."""

    def __init__(self, folder: Path, container: str, tree: SyncTree, *, max_delete: str) -> None:
        self._folder = folder
        self._max_delete = max_delete
        self._container = container
        self._tree = tree
        self._records: Records | None = None
        self._lock = threading.Lock()
        self._closed = False

    def speaking(self, client: Client) -> Remote:
        """`client` itself when the server has `/v1`, else the translation. ClientError, and `client` closed, when that cannot
        be found out now."""
        from memdir.client.errors import ClientError, NotFoundError
        from memdir.sync.plain.remote import PlainRemote
        from memdir.sync.push.max_delete import parse_max_delete

        try:
            client.capabilities()
        except NotFoundError:
            log.info("%s has no /v1: syncing over /v3 and /v4", client.base_url)
        except ClientError:
            client.close()
            raise
        else:
            return client
        return PlainRemote(
            client, self._opened(), container=self._container, local_text=self._local_text,
            max_delete=parse_max_delete(self._max_delete),
        )  # fmt: skip

    def close(self) -> None:
        """Nobody works with what was given out any more."""
        with self._lock:
            self._closed = True
            if self._records is not None:
                self._records.close()

    def _opened(self) -> Records:
        from memdir.client.errors import OfflineError
        from memdir.sync.plain.records import Records

        with self._lock:
            if self._closed:
                raise OfflineError("the mount ends")
            if self._records is None:
                self._records = Records(self._folder)
            return self._records

    def _local_text(self, path: str) -> bytes | None:
        entry = self._tree.fact(path)
        if entry is None or entry.kind != "file" or entry.absent_hash is not None or entry.size > _TEXT_MAX_BYTES:
            return None
        try:
            return bytes(self._tree.read(entry, 0, entry.size))
        except (FsError, LocalChangedError) as error:
            log.debug("%s is not searched for lines: %s", path, error)
            return None
