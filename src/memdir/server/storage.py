"""Which store a process works on: SQLite in the data folder, owned by one process, or PostgreSQL, shared by any number."""

from __future__ import annotations

import fcntl
import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from memdir.core.errors import BusyError, MemdirError, NotFoundError, UsageError
from memdir.core.paths import AppPaths, ensure_private_dir
from memdir.core.sqlite import migration_steps, schema_version
from memdir.store.acting import NOBODY, SYSTEM
from memdir.store.contents.backends import ENV_BLOBS
from memdir.store.contents.choice import open_contents
from memdir.store.sqlite.store import DATABASE_NAME, MIGRATIONS, SqliteStore
from memdir.store.store import Store

log = logging.getLogger(__name__)

ENV_DATABASE_URL: Final = "MEMDIR_DATABASE_URL"
LOCK_NAME: Final = "lock"
_URL_MAX_BYTES: Final = 4096
_HINT: Final = "a PostgreSQL URL looks like postgresql://user@host/database; without one the server keeps its data in SQLite"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """What was said on the command line; what was not is looked up in the environment."""

    database_url: str | None = None
    database_url_file: Path | None = None
    """A file that holds the URL: a password has no business among the arguments, which every user of the machine can read."""
    blobs: str | None = None
    """Where large contents are kept, as `open_contents` takes it; None: what MEMDIR_BLOBS says, or the server's folder."""

    def url(self) -> str | None:
        """The database's URL, None for SQLite. UsageError for one that names something else; it never shows the URL."""
        url = self.database_url or ""
        if not url and self.database_url_file is not None:
            try:
                url = self.database_url_file.read_bytes()[:_URL_MAX_BYTES].decode().strip()
            except (OSError, ValueError) as error:
                reason = error.strerror if isinstance(error, OSError) else "not text"
                raise UsageError(f"{self.database_url_file} cannot be read: {reason}") from None
        url = url or os.environ.get(ENV_DATABASE_URL, "").strip()
        if not url:
            return None
        if not url.startswith(("postgresql://", "postgres://")):
            raise UsageError("the database URL names no PostgreSQL database", hint=_HINT)
        return url


@contextmanager
def opened_store(options: StorageOptions, paths: AppPaths) -> Iterator[Store]:
    """The store, for a process that serves or works.

    BusyError when another process owns the SQLite database; StorageError when the PostgreSQL server cannot be reached.
    """
    url = options.url()
    ensure_private_dir(paths.server_dir)
    if url is None:
        with owned(paths.server_dir), _recovered(_sqlite(options, paths)) as store:
            yield store
    else:
        if options.database_url and urlsplit(options.database_url).password:
            log.warning("the password of the database is among the arguments, which other users can read: set %s, or use "
                        "--database-url-file", ENV_DATABASE_URL)  # fmt: skip
        with _recovered(_postgres(url, options, paths)) as store:
            yield store


@contextmanager
def shared_store(options: StorageOptions, paths: AppPaths) -> Iterator[Store]:
    """The store of a server that is at work, for a process that it started: nothing is cleared up, no schema is changed."""
    url = options.url()
    opened = _sqlite(options, paths, migrates=False) if url is None else _postgres(url, options, paths)
    with _closed(opened) as store:
        yield store


@contextmanager
def owned(folder: Path) -> Iterator[None]:
    """The data folder belongs to one process at a time; the kernel frees the lock with the process."""
    fd = os.open(folder / LOCK_NAME, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(fd, 32, 0).decode("ascii", "replace").strip()
            raise BusyError(
                f"another server (pid {owner or 'unknown'}) runs on {folder}",
                hint="`memdir server status` shows it, `memdir server stop` ends it",
            ) from None
        os.ftruncate(fd, 0)
        os.pwrite(fd, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        os.close(fd)


@contextmanager
def _recovered(store: Store) -> Iterator[Store]:
    try:
        store.blobs.check_place()
        store.recover()
        yield store
    finally:
        store.close()


def _sqlite(options: StorageOptions, paths: AppPaths, *, migrates: bool = True) -> Store:
    contents = open_contents(options.blobs or os.environ.get(ENV_BLOBS), paths.server_dir / "blobs")
    return SqliteStore.open(paths.server_dir, contents=contents, migrates=migrates)


def _postgres(url: str, options: StorageOptions, paths: AppPaths, *, acting: str = NOBODY) -> Store:
    _check_psycopg()
    from memdir.store.postgres.store import PostgresStore

    contents = open_contents(options.blobs or os.environ.get(ENV_BLOBS), paths.server_dir / "blobs")
    return PostgresStore.open(url, paths.server_dir, contents=contents, acting=acting)


def _check_psycopg() -> None:
    if importlib.util.find_spec("psycopg") is None or importlib.util.find_spec("psycopg_pool") is None:
        raise MemdirError("PostgreSQL needs the package psycopg, which is not installed", hint="pip install 'memdir[postgres]'")


@contextmanager
def maintained_store(options: StorageOptions, paths: AppPaths, *, alone: bool, new: bool = False) -> Iterator[Store]:
    """The store, for a command that looks after it. `alone`: no server may have the SQLite database open (on PostgreSQL others
    wait when they have to); otherwise one may be at work. `new`: it is made when there is none.

    NotFoundError when there is nothing to look after; BusyError when a server is in the way.
    """
    url = options.url()
    if url is not None:
        ensure_private_dir(paths.server_dir)
        with _closed(_postgres(url, options, paths, acting=SYSTEM)) as store:
            yield store
        return
    if not new and not (paths.server_dir / DATABASE_NAME).exists():
        raise NotFoundError(f"there is no server's database in {paths.server_dir}", hint="`memdir server start` makes one")
    ensure_private_dir(paths.server_dir)
    with ExitStack() as held:
        served = False
        try:
            held.enter_context(owned(paths.server_dir))
        except BusyError:
            if alone:
                raise
            served = True
        yield held.enter_context(_closed(_sqlite(options, paths, migrates=not served)))


def is_served(paths: AppPaths) -> bool:
    """Whether a server process has the SQLite database now."""
    try:
        with owned(paths.server_dir):
            return False
    except BusyError:
        return True


def schema_versions(options: StorageOptions, paths: AppPaths) -> tuple[int, int]:
    """Version of the database's schema, 0 without one, and the one that this memdir works with. Changes nothing."""
    url = options.url()
    if url is None:
        return schema_version(paths.server_dir / DATABASE_NAME), len(migration_steps(MIGRATIONS))
    _check_psycopg()
    from memdir.store.postgres.migrations import versions

    return versions(url)


@contextmanager
def _closed(store: Store) -> Iterator[Store]:
    try:
        yield store
    finally:
        store.close()
