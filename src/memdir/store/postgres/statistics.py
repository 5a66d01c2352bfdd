"""Keeps PostgreSQL's statistics of our tables up to date while they grow.

The database gathers them by itself only once a minute (autovacuum). Until then a table that was just filled counts as empty,
and a search takes several times as long.
"""

from __future__ import annotations

import logging
import threading
from typing import Final

import psycopg
from psycopg import sql

from memdir.store.postgres.database import KEEP_ALIVE, SCHEMA

log = logging.getLogger(__name__)

DELAY_S: Final = 1.0
"""From a commit to the look, and so between two: sessions at work report what they changed once a second …"""
REPORTED_S: Final = 11.0
"""… and sessions at rest after ten."""
_ROWS: Final = 50
_SHARE: Final = 3
"""A table is looked at again when _ROWS and a third of its rows changed: some thirty times while it grows to a million."""
_CHANGED: Final = "select relname from pg_stat_user_tables where schemaname = %s and n_mod_since_analyze > %s + n_live_tup / %s"


class Statistics:
    """One thread, from the first commit on."""

    def __init__(self, url: str) -> None:
        """`url` as its owner, who alone may gather statistics."""
        self._url = url
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._written = threading.Event()
        self._closing = threading.Event()

    def written(self) -> None:
        """Something was committed. Returns at once; any thread."""
        self._written.set()
        with self._lock:
            if self._thread is None and not self._closing.is_set():
                self._thread = threading.Thread(target=self._run, name="memdir-statistics", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End after the table under way."""
        self._closing.set()
        self._written.set()
        with self._lock:
            thread = self._thread
        if thread is not None:
            thread.join()

    def _run(self) -> None:
        while self._written.wait():
            self._written.clear()
            if self._closing.wait(DELAY_S):
                return
            self._try()
            if not self._written.wait(REPORTED_S):
                self._try()

    def _try(self) -> None:
        try:
            self.gather()
        except psycopg.Error as error:
            log.info("statistics of the database could not be gathered yet: %s", error)

    def gather(self) -> list[str]:
        """Look at the tables of which much changed. Returns their names."""
        with psycopg.connect(self._url, autocommit=True, **KEEP_ALIVE) as connection:
            names = [name for (name,) in connection.execute(_CHANGED, (SCHEMA, _ROWS, _SHARE)).fetchall()]
            for name in names:
                if not self._closing.is_set():
                    connection.execute(sql.SQL("analyze {}").format(sql.Identifier(SCHEMA, name)))
        return names
