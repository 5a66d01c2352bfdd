"""SQLite through apsw: one serialized writer, a reader per thread, numbered migrations.

The SQL lives in `.sql` files beside the room that owns the tables: `NNNN_name.sql`, applied in order inside one
transaction each; `PRAGMA user_version` holds the last one applied. Journal mode WAL; `synchronous=NORMAL` keeps every
commit over a crash of the process, and a consistent earlier state over a power cut (sqlite.org/pragma.html).
"""

from __future__ import annotations

import errno
import logging
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any, Final

import apsw

from memdir.core.errors import BusyError, CorruptError, MemdirError, StorageError, VersionError
from memdir.core.paths import ensure_dir, explained, sync_folder
from memdir.core.processes import lock_holders

log = logging.getLogger(__name__)

Row = tuple[Any, ...]
Connection = apsw.Connection
"""For annotations in rooms that may not import apsw."""
Bindings = Sequence[Any] | dict[str, Any]
DiskFullError = apsw.FullError
"""A write found no room; its transaction did not happen."""

BUSY_TIMEOUT_MS: Final = 10_000
_WRITABLE_HINT: Final = "make the folder and its files writable for you (`memdir doctor` checks them), or set MEMDIR_HOME"
_READERS_MAX: Final = 64
_READER_CACHE_MIB: Final = 2
"""There are some thirty, and what the system keeps of the file is shared by all of them."""
_LOG_HEAD_BYTES: Final = 32
_FRAME_HEAD_BYTES: Final = 24
"""At the beginning of the write-ahead log, and before each page in it (https://www.sqlite.org/fileformat2.html#walformat)."""
_DESCRIPTORS_NEEDED: Final = 4


class Database:
    """A database file with one writer and any number of reading threads.

    `write()` is a transaction: it commits when the block ends and rolls back when it raises. Transactions do not nest.
    """

    def __init__(
        self, path: Path, *, migrations: str, page_size: int = 4096, cache_mib: int = 16, secure_delete: str = "on",
        checkpoint_pages: int = 1000, gives_back: bool = False, vfs: str | None = None,
        migrates: bool = True, reads_own_writes: bool = False,
    ) -> None:  # fmt: skip
        """Open or create `path` (0600). `migrations` is the package that holds the `.sql` files.

        `cache_mib` is of the writer. `secure_delete` is "on" (deleted rows are overwritten with zeros) or "fast" (only where
        that costs no further write). A commit moves the write-ahead log into the file once it has `checkpoint_pages`. A new
        file that `gives_back` can be made smaller by `vacuum`, for which SQLite keeps a map of its pages. `vfs` is another way
        to the disk than the usual. Without `migrates` the file must have the schema of this memdir already: another process
        may be using it. With `reads_own_writes`, `all` and `one` inside a transaction of the same thread see what it has
        written so far.

        Raises VersionError when the file was written by a newer memdir, CorruptError when it is not a database or damaged,
        BusyError when another program keeps it locked, StorageError when the system lets nobody write it.
        """
        ensure_dir(path.parent)
        try:
            os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EMFILE, errno.ENFILE):
                raise
            raise StorageError(f"{path} cannot be opened: {error.strerror}", hint=_WRITABLE_HINT) from error
        self.path = path
        self._page_size = page_size
        self._secure_delete = secure_delete
        self._checkpoint_pages = checkpoint_pages
        self._gives_back = gives_back
        self._vfs = vfs
        self._reads_own_writes = reads_own_writes
        self._writing_thread = 0
        self._lock = threading.RLock()
        self._local = threading.local()
        self._readers: dict[threading.Thread, apsw.Connection] = {}
        self._closed = False
        self._commits = self._settled = 0
        self._settling = threading.Lock()
        self._syncs = False
        try:
            self._writer = self._connect(cache_mib)
            self._migrate(migrations, allowed=migrates)
        except apsw.FullError:
            raise
        except apsw.Error as error:
            raise opening_error(path, error) from error

    def _connect(self, cache_mib: int) -> apsw.Connection:
        connection = apsw.Connection(str(self.path), vfs=self._vfs)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if self._gives_back and not self.path.stat().st_size:  # said of a file that has pages it would be written into them
            connection.execute(f"pragma page_size={self._page_size}; pragma auto_vacuum=incremental")
        for pragma in (
            f"page_size={self._page_size}",
            "journal_mode=wal",
            "synchronous=normal",
            "foreign_keys=on",
            f"secure_delete={self._secure_delete}",
            f"wal_autocheckpoint={self._checkpoint_pages}",
            "temp_store=memory",
            f"cache_size=-{cache_mib * 1024}",
        ):
            connection.execute(f"pragma {pragma}")
        return connection

    def _migrate(self, package: str, *, allowed: bool) -> None:
        steps = migration_steps(package)
        (current,) = next(iter(self._writer.execute("pragma user_version")))
        if current > len(steps):
            raise VersionError(
                f"{self.path} was made by a newer memdir (schema {current}, this one knows up to {len(steps)})",
                hint="upgrade memdir; the file was not touched",
            )
        if current < len(steps) and not allowed:
            raise VersionError(
                f"{self.path} has the schema {current}, this memdir works with {len(steps)}",
                hint="`memdir server stop`, then `memdir server migrate` or any start of the server",
            )
        for number, sql in enumerate(steps, start=1):
            if number <= current:
                continue
            with self.write(durable=True) as connection:
                connection.execute(sql)
                connection.execute(f"pragma user_version={number}")

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[apsw.Connection]:
        """The writer inside an immediate transaction, held by this thread alone until the block ends.

        With `durable` this commit and every earlier one survive a power cut when the block has ended (the write-ahead log is
        synced), otherwise only the death of the process.
        """
        with self._lock:
            if durable != self._syncs:
                self._writer.execute("pragma synchronous=full" if durable else "pragma synchronous=normal")
                self._syncs = durable
            self._writer.execute("begin immediate")
            self._writing_thread = threading.get_ident() if self._reads_own_writes else 0
            try:
                yield self._writer
                self._writer.execute("commit")
                self._commits += 1
            except BaseException:  # a commit that fails (disk full) leaves the transaction open, too
                if self._writer.in_transaction:
                    self._writer.execute("rollback")
                raise
            finally:
                self._writing_thread = 0

    @property
    def reader(self) -> apsw.Connection:
        """This thread's read connection; sees every commit made before its statement began."""
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect(_READER_CACHE_MIB)
            connection.execute("pragma query_only=on")
            with self._lock:
                self._close_left_behind()
                if len(self._readers) >= _READERS_MAX:
                    connection.close()
                    raise RuntimeError(f"more than {_READERS_MAX} threads read {self.path.name}")
                self._readers[threading.current_thread()] = connection
            self._local.connection = connection
        return connection

    def _close_left_behind(self) -> None:
        """Close the connections of threads that ended."""
        for thread in [thread for thread in self._readers if not thread.is_alive()]:
            self._readers.pop(thread).close()

    def all(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """Every row of a query on this thread's reader."""
        return list(self._seen().execute(sql, bindings))

    def one(self, sql: str, bindings: Bindings = ()) -> Row | None:
        """The first row, or None."""
        return next(iter(self._seen().execute(sql, bindings)), None)

    def _seen(self) -> apsw.Connection:
        """The writer for the thread that is in its transaction, where that was asked for; else this thread's reader."""
        inside = self._writing_thread and self._writing_thread == threading.get_ident()
        return self._writer if inside else self.reader

    @contextmanager
    def snapshot(self) -> Iterator[apsw.Connection]:
        """This thread's reader, held at one moment for several statements."""
        reader = self.reader
        reader.execute("begin")
        try:
            yield reader
        finally:
            reader.execute("rollback")

    def checkpoint(self) -> bool:
        """Move the write-ahead log into the database file and empty it. False when a reader kept it from being emptied."""
        with self._lock:
            ((busy, _, _),) = self._writer.execute("pragma wal_checkpoint(truncate)")
        return not busy

    def sync(self) -> None:
        """Every commit so far survives a power cut when this returns. OSError.

        Writes nothing, so that it needs no room: all that can be missing is in the write-ahead log, because a checkpoint syncs
        the file before the log begins again. (An `update` that changes no value would not do: SQLite then commits nothing.)
        """
        with self._lock:
            try:
                fd = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)

    def settle(self) -> None:
        """Like `sync`, while others go on writing, and one sync for all who wait: who comes while one is running waits for the
        next, which also covers everybody else who came meanwhile. OSError.

        The writer's lock is not needed: a commit is in the log file when `write()` has ended, and leaves it only after a
        checkpoint that synced the database file.
        """
        wanted = self._commits
        with self._settling:
            if self._settled >= wanted:
                return
            reached = self._commits
            try:
                fd = os.open(f"{self.path}-wal", os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return
            try:
                os.fdatasync(fd)
            finally:
                os.close(fd)
            if not self._settled:  # SQLite makes the log's name durable with its own first sync only
                sync_folder(self.path.parent)
            self._settled = reached

    def log_bytes(self) -> int:
        """Size of the write-ahead log."""
        try:
            return os.stat(f"{self.path}-wal").st_size
        except FileNotFoundError:
            return 0

    def log_spare_bytes(self) -> int:
        """What of the write-ahead log's file the next commit may write over: all, if everything in it stands in the database
        file already, else what is behind the last commit."""
        with self._lock:
            frames, moved = self._log_frames()
        return max(self.log_bytes() - (0 if moved == frames else self._log_end(frames)), 0)

    def cut_log(self) -> None:
        """Give back what a commit that failed has left in the log's file, behind the last one that succeeded. SQLite writes on
        from there and reads nothing behind it, so that only the disk's room is concerned. One process only has the file."""
        with self._lock:
            end_bytes = self._log_end(self._log_frames()[0])
            if self.log_bytes() > end_bytes:
                os.truncate(f"{self.path}-wal", end_bytes)

    def _log_frames(self) -> tuple[int, int]:
        """Pages in the log up to the last commit, and how many of them stand in the database file."""
        frames, moved = self._writer.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_NOOP)
        return max(frames, 0), max(moved, 0)

    def _log_end(self, frames: int) -> int:
        return _LOG_HEAD_BYTES + frames * (self._page_size + _FRAME_HEAD_BYTES) if frames else 0

    def system_errno(self) -> int:
        """What the system said to the writer's last failed call: SQLite calls a full quota an I/O error."""
        return int(self._writer.system_errno)

    def page_count(self) -> int:
        """Pages of the database, those in the write-ahead log included."""
        with self._lock:
            ((count,),) = self._writer.execute("pragma page_count")
        return int(count)

    def free_pages(self) -> int:
        """Pages of the file that hold nothing, if it is one that can be made smaller; 0 otherwise."""
        with self._lock:
            ((mode, free),) = self._writer.execute(
                "select auto_vacuum, freelist_count from pragma_auto_vacuum, pragma_freelist_count"
            )
        return int(free) if mode else 0

    def vacuum(self, pages: int) -> None:
        """Take up to that many free pages from the end of the file, which gets shorter with the next checkpoint."""
        with self._lock:
            self._writer.execute(f"pragma incremental_vacuum({pages})").fetchall()

    def compact(self, *, full: bool) -> bool:
        """Bring the planner's statistics up to date and empty the write-ahead log; with `full` the file is written anew first,
        without what nobody uses. False when a reader kept the log from being emptied."""
        with self._lock:
            self._writer.execute("analyze")
            if full:
                self._writer.execute("vacuum")
            ((busy, _, _),) = self._writer.execute("pragma wal_checkpoint(truncate)")
        return not busy

    def file_bytes(self) -> int:
        """Size of the file."""
        return os.stat(self.path).st_size

    def integrity_errors(self) -> list[str]:
        """What `PRAGMA integrity_check` finds, at most 100 lines; empty when all is well.

        On a connection of its own: one that has checked before keeps what it knew of a full-text index, and calls the index
        damaged when segments have gone since (seen with SQLite 3.54.1; searching is not concerned).
        """
        connection = self._connect(_READER_CACHE_MIB)
        try:
            rows = [str(row[0]) for row in connection.execute("pragma integrity_check(100)")]
        finally:
            connection.close()
        return [] if rows == ["ok"] else rows

    def close(self) -> None:
        """Checkpoint and close every connection. Calling it twice is allowed."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            for connection in self._readers.values():
                connection.close()
            try:
                self._writer.execute("pragma wal_checkpoint(truncate)").fetchall()
            except DiskFullError:
                log.warning("%s: the disk is full; the write-ahead log stays beside it for the next opening", self.path)
            self._writer.close()


def opening_error(path: Path, error: apsw.Error) -> MemdirError:
    """What SQLite's refusal to open or read `path` means to a person."""
    if isinstance(error, (apsw.NotADBError, apsw.CorruptError)):
        what = "is not a SQLite database" if isinstance(error, apsw.NotADBError) else f"is damaged: {error}"
        return CorruptError(f"{path} {what}", hint="`memdir fsck --repair` saves what can be read")
    if isinstance(error, (apsw.BusyError, apsw.LockedError)):
        return locked_error(path)
    try:
        with (
            ExitStack() as held
        ):  # SQLite does not tell which error of the system it met: it needs the file, its log and its index
            for _ in range(_DESCRIPTORS_NEEDED):
                held.callback(os.close, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as refused:
        known = explained(refused) if refused.errno in (errno.EMFILE, errno.ENFILE) else None
        if known is not None:
            return known
    return StorageError(f"{path} cannot be opened: {error}", hint=_WRITABLE_HINT)


def locked_error(path: Path) -> BusyError:
    """Another program kept the database locked for the whole of BUSY_TIMEOUT_MS: who it is."""
    holders = ", ".join(map(str, lock_holders(path))) or "a program that cannot be seen from here"
    return BusyError(
        f"{path} is locked by {holders}, for {BUSY_TIMEOUT_MS // 1000} s at least",
        hint="close it there; no program but memdir may write this file",
    )


def schema_version(path: Path) -> int:
    """Number of the last migration that a database file went through; 0 for one that is not there. Changes nothing."""
    if not path.exists():
        return 0
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        try:
            ((version,),) = connection.execute("pragma user_version")
        finally:
            connection.close()
    except apsw.Error as error:
        raise opening_error(path, error) from error
    return int(version)


def migration_steps(package: str) -> list[str]:
    """The texts of `NNNN_*.sql` in `package`, in order; numbers must be 1, 2, 3 … without a gap."""
    files = sorted((entry.name, entry) for entry in resources.files(package).iterdir() if entry.name.endswith(".sql"))
    for expected, (name, _) in enumerate(files, start=1):
        if not name.startswith(f"{expected:04d}_"):
            raise CorruptError(f"{package}: expected migration {expected:04d}, found {name}")
    return [entry.read_text(encoding="utf-8") for _, entry in files]
