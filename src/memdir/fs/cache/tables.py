"""SQL of the cache: rows in, rows out. Nothing else knows the schema."""

from __future__ import annotations

import errno
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import apsw

from memdir.core.errors import CorruptError
from memdir.core.limits import MIB
from memdir.core.sqlite import Database
from memdir.fs.cache.batch import Batch
from memdir.fs.cache.blobs import fallocate
from memdir.fs.cache.disk_space import NO_SPACE
from memdir.fs.cache.journal import FS_ID_BYTES
from memdir.fs.errors import FsError
from memdir.fs.memory import root_inode
from memdir.fs.posix.absent import SMALL_MAX_BYTES
from memdir.fs.posix.state import COOKIE_FIRST, INDEX_BITS
from memdir.fs.posix.txn import Entry, Link, Note
from memdir.fs.types import FALLOC_KEEP_SIZE, ROOT_INO, Inode, IntentKind

DATABASE_NAME: Final = "cache.db"
SCHEMA: Final = "memdir.fs.cache.schema"
VFS: Final = "unix-excl"
"""One process has a cache open (`folder.lock_folder`). SQLite's way for that keeps the index of its log in the heap: the usual
file in shared memory kills the process with SIGBUS when a full disk cannot back one of its pages."""
PAGE_BYTES: Final = 16 * 1024
_LOG_MAX_PAGES: Final = 256 * MIB // PAGE_BYTES
"""Pages in the write-ahead log after which a commit moves them into the file, whether or not anybody waits for the disk."""
LOG_IDLE_BYTES: Final = 16 * MIB
"""A log larger than this is worth moving as soon as nothing else is going on."""

KEPT_PAGES: Final = 2 * MIB // PAGE_BYTES
"""Free pages that stay for what is written next; up to twice as many are left alone."""
VACUUM_PAGES: Final = 4 * MIB // PAGE_BYTES
"""In one transaction: what it moves goes through the log."""
_MOVED_PAGES: Final = 4
"""What moving one page may write: the page, its parent, the maps of both places."""
_VACUUM_MIN_PAGES: Final = 4

_TYPE: Final = 0o170000
_COLUMNS: Final = "ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, rdev, parent, version, target, place"
_PUT_INODE: Final = f"insert or replace into inode ({_COLUMNS}) values (?,?,?,?,?,?,?,?,?,?,?,?,?,?)"  # noqa: S608 - constants
_GET_INODE: Final = f"select {_COLUMNS} from inode where ino = ?"  # noqa: S608 - constants
_GET_CHILDREN: Final = (
    "select dentry.name, " + ", ".join(f"inode.{name}" for name in _COLUMNS.split(", "))  # noqa: S608 - constants
    + " from dentry join inode on inode.ino = dentry.ino where dentry.parent = ?"
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """The counters of a filesystem as of `applied_lsn`."""

    fs_id: bytes
    applied_lsn: int
    next_ino: int
    next_cookie: int
    next_seq: int
    unsynced: bool


class Tables:
    """One database. Reading methods may be called from any thread; `write` from one at a time."""

    def __init__(self, folder: Path, *, uid: int, gid: int, now_ns: int) -> None:
        """Open or create; a new database gets its root folder, owned by uid and gid."""
        self.path = folder / DATABASE_NAME
        self._closed = False
        try:
            self._open(uid, gid, now_ns)
        except apsw.FullError as error:
            raise FsError(errno.ENOSPC, f"{self.path} cannot be opened: the disk is full") from error

    def _open(self, uid: int, gid: int, now_ns: int) -> None:
        self.database = open_database(self.path.parent)
        # Open as long as SQLite is: closing any descriptor of a file lets go of all locks that the process has on it.
        self._file_fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        self._reserved_bytes = 0
        try:
            if is_unborn(self.database):
                self._create(uid, gid, now_ns)
        except BaseException:
            self.close()
            raise

    def _create(self, uid: int, gid: int, now_ns: int) -> None:
        """Durable before anything is answered: a journal without the database that its segments name could not be replayed."""
        with self.database.write(durable=True) as connection:
            connection.execute(
                "insert into meta (id, fs_id, applied_lsn, next_ino, next_cookie, next_seq) values (1, ?, 0, ?, ?, 1)",
                (os.urandom(FS_ID_BYTES), ROOT_INO + 1, COOKIE_FIRST),
            )
            connection.execute(_PUT_INODE, _row(root_inode(uid, gid, now_ns)))

    def meta(self) -> Meta:
        """The counters; CorruptError when the row is missing."""
        row = self.database.one("select fs_id, applied_lsn, next_ino, next_cookie, next_seq, unsynced from meta")
        if row is None:
            raise CorruptError(f"{self.path} has no meta row", hint="run memdir fsck")
        fs_id, applied_lsn, next_ino, next_cookie, next_seq, unsynced = row
        return Meta(
            fs_id=fs_id, applied_lsn=applied_lsn, next_ino=next_ino, next_cookie=next_cookie, next_seq=next_seq,
            unsynced=bool(unsynced),
        )  # fmt: skip

    # ---- reading

    def inode(self, ino: int) -> tuple[Inode, tuple[Link, ...]] | None:
        """An inode and its names."""
        row = self._one(_GET_INODE, (ino,))
        return None if row is None else (_inode(row), self.links(ino))

    def links(self, ino: int) -> tuple[Link, ...]:
        """The names of an inode."""
        return tuple((parent, name) for parent, name in self._all("select parent, name from dentry where ino = ?", (ino,)))

    def entries(self, ino: int) -> dict[bytes, Entry]:
        """The names in a folder, in cookie order."""
        rows = self._all("select name, ino, cookie from dentry where parent = ? order by cookie", (ino,))
        return {name: (child, cookie) for name, child, cookie in rows}

    def children(self, ino: int) -> list[tuple[bytes, Inode]]:
        """The inodes that stand in a folder, with the name they have there, in one query."""
        return [(row[0], _inode(row[1:])) for row in self._all(_GET_CHILDREN, (ino,))]

    def indexes(self, ino: int) -> set[int]:
        """Which chunks of a file are stored."""
        first = ino << INDEX_BITS
        rows = self._all("select key from chunk where key between ? and ?", (first, first | (1 << INDEX_BITS) - 1))
        return {key - first for (key,) in rows}

    def chunk(self, key: int) -> bytes:
        """A chunk; EIO when it is not there."""
        row = self._one("select data from chunk where key = ?", (key,))
        if row is None:
            raise FsError(errno.EIO, f"chunk {key & (1 << INDEX_BITS) - 1} of inode {key >> INDEX_BITS} is not there")
        data: bytes = row[0]
        return data

    def xattrs(self, ino: int) -> dict[bytes, bytes]:
        return dict(self._all("select name, value from xattr where ino = ? order by name", (ino,)))

    def intents(self) -> list[Note]:
        """Every unacknowledged intent in order."""
        rows = self._all("select seq, kind, path, source from intent order by seq", ())
        return [(seq, IntentKind(kind), path, source) for seq, kind, path, source in rows]

    def placed(self) -> list[tuple[int, int, int]]:
        """(inode, blob, size) of every file in a blob."""
        return [(ino, place, size) for ino, place, size in self._all("select ino, place, size from inode where place > 0", ())]

    def highest_blob(self) -> int:
        """The highest number of a blob, 0 without one."""
        row = self._one("select max(place) from inode where place > 0", ())
        return (row[0] if row else None) or 0

    def unlinked(self) -> list[int]:
        """Inodes without a name."""
        return [ino for (ino,) in self._all("select ino from inode where nlink = 0", ())]

    def absent_totals(self) -> tuple[int, int]:
        """How many files are absent, and their size in bytes."""
        row = self._one("select count(*), coalesce(sum(size), 0) from inode where place = -1", ())
        return (0, 0) if row is None else (int(row[0]), int(row[1]))

    def absent_numbers(self, content_hash: bytes | None, limit: int, max_bytes: int) -> list[int]:
        """Absent files with this hash, or all: small ones first, the newest first among those."""
        if content_hash is not None:
            sql = "select ino from inode where place = -1 and target = ? limit ?"
            return [ino for (ino,) in self._all(sql, (content_hash, limit))]
        sql = "select ino from inode where place = -1 and size <= ? order by size > ?, mtime_ns desc limit ?"
        return [ino for (ino,) in self._all(sql, (max_bytes, SMALL_MAX_BYTES, limit))]

    def held_numbers(self) -> list[int]:
        """Files that have contents here, the longest unchanged first."""
        sql = "select ino from inode where place != -1 and size > 0 and nlink > 0 and mode & ? = ? order by mtime_ns"
        return [ino for (ino,) in self._all(sql, (_TYPE, stat.S_IFREG))]

    def held_bytes(self) -> int:
        """The sizes of files that have contents here."""
        sql = "select coalesce(sum(size), 0) from inode where place != -1 and mode & ? = ?"
        row = self._one(sql, (_TYPE, stat.S_IFREG))
        return 0 if row is None else int(row[0])

    def special_numbers(self) -> set[int]:
        """Sockets, FIFOs and device nodes that have a name."""
        sql = "select ino from inode where nlink > 0 and mode & ? not in (?, ?, ?)"
        return {ino for (ino,) in self._all(sql, (_TYPE, stat.S_IFREG, stat.S_IFDIR, stat.S_IFLNK))}

    def inode_count(self) -> int:
        row = self._one("select count(*) from inode", ())
        return 0 if row is None else int(row[0])

    def _all(self, sql: str, bindings: tuple[Any, ...]) -> list[Any]:
        if self._closed:
            raise FsError(errno.ESHUTDOWN, "the filesystem is closed")
        try:
            return self.database.all(sql, bindings)
        except apsw.Error as error:
            raise FsError(errno_of(error), f"the cache cannot be read: {error}") from error

    def _one(self, sql: str, bindings: tuple[Any, ...]) -> Any:
        rows = self._all(sql, bindings)
        return rows[0] if rows else None

    # ---- writing

    def write(self, batch: Batch, *, durable: bool) -> bool:
        """The whole batch and its lsn in one transaction; with `durable` it survives a power cut when this returns.

        Whether the disk keeps blocks for every page that stands in the log only, so that the log can always be moved into the
        file. They are asked for before the commit: behind it somebody else may take them. FsError ENOSPC, EIO: nothing of the
        batch was written.
        """
        self._check_fits(batch)
        try:
            with self.database.write(durable=durable) as connection:
                self._write_rows(connection, batch)
                needed_bytes = self.database.page_count() * PAGE_BYTES
                is_kept = self._keeps_blocks(needed_bytes)
        except apsw.Error as error:
            raise self._refused(error, "the cache cannot be written") from error
        if is_kept:
            self._reserved_bytes = needed_bytes
        return is_kept

    def _keeps_blocks(self, needed_bytes: int) -> bool:
        if needed_bytes <= self._reserved_bytes:
            return True
        return fallocate(self._file_fd, FALLOC_KEEP_SIZE, 0, needed_bytes) not in NO_SPACE

    def _refused(self, error: apsw.Error, what: str) -> FsError:
        """What SQLite could not write, as an error of the disk. On a full one the log is cut back."""
        number = errno_of(error)
        if isinstance(error, apsw.IOError) and self.database.system_errno() in NO_SPACE:
            number = self.database.system_errno()
        if number in NO_SPACE:
            self.database.cut_log()
        return FsError(number, f"{what}: {error}")

    def _check_fits(self, batch: Batch) -> None:
        """Not even begun when the log cannot hold it: a try that fails takes the last space from those who give some back."""
        found = os.statvfs(self.path)
        if found.f_bavail * found.f_frsize < self.needed_bytes(batch):
            raise FsError(errno.ENOSPC, "the cache cannot be written: the disk is full")

    def needed_bytes(self, batch: Batch) -> int:
        """What writing a batch takes from the disk at least."""
        return max(batch.chunk_bytes - self.database.log_spare_bytes(), 0)

    @staticmethod
    def _write_rows(connection: apsw.Connection, batch: Batch) -> None:
        execute_many = connection.executemany
        removed = [key for key, value in batch.dentries.items() if value is None]
        execute_many("delete from dentry where parent = ? and name = ?", removed)
        execute_many(
            "insert or replace into dentry (parent, name, ino, cookie) values (?,?,?,?)",
            ((*key, *value) for key, value in batch.dentries.items() if value is not None),
        )
        execute_many(_PUT_INODE, (_row(inode) for inode in batch.inodes.values()))
        execute_many("delete from chunk where key = ?", ((key,) for key, data in batch.chunks.items() if data is None))
        execute_many(
            "insert or replace into chunk (key, data) values (?,?)",
            ((key, data) for key, data in sorted(batch.chunks.items()) if data is not None),
        )
        execute_many("delete from xattr where ino = ? and name = ?", (key for key, v in batch.xattrs.items() if v is None))
        execute_many(
            "insert or replace into xattr (ino, name, value) values (?,?,?)",
            ((*key, value) for key, value in batch.xattrs.items() if value is not None),
        )
        for ino in batch.gone:
            connection.execute("delete from inode where ino = ?", (ino,))
            connection.execute("delete from xattr where ino = ?", (ino,))
            first = ino << INDEX_BITS
            connection.execute("delete from chunk where key between ? and ?", (first, first | (1 << INDEX_BITS) - 1))
        execute_many("delete from intent where seq = ?", ((seq,) for seq, intent in batch.intents.items() if intent is None))
        execute_many(
            "insert or replace into intent (seq, kind, path, source) values (?,?,?,?)",
            ((note[0], note[1].value, note[2], note[3]) for note in batch.intents.values() if note is not None),
        )
        connection.execute("delete from intent where seq <= ?", (batch.acknowledged,))
        connection.execute(
            "update meta set applied_lsn = ?, next_ino = ?, next_cookie = ?, next_seq = ?, unsynced = ?",
            (batch.lsn, batch.next_ino, batch.next_cookie, batch.next_seq, int(batch.unsynced)),
        )

    def sync(self) -> None:
        """Everything written so far survives a power cut when this returns. FsError."""
        try:
            self.database.sync()
        except OSError as error:
            raise FsError(error.errno or errno.EIO, f"the cache cannot be synced: {error.strerror}") from error

    def is_untidy(self) -> bool:
        """Whether the write-ahead log should be moved into the database when nothing else is to be done, or free pages given
        back."""
        return self.database.log_bytes() > LOG_IDLE_BYTES or self.database.free_pages() > 2 * KEPT_PAGES

    def vacuum(self, *, keep_pages: int) -> bool:
        """Give free pages back to the disk, up to `VACUUM_PAGES`, when there are more than `keep_pages`. FsError.

        They leave the file with the next checkpoint. True when there is more to do.
        """
        try:
            free = self.database.free_pages()
            if free <= keep_pages:
                return False
            found = os.statvfs(self.path)
            fitting = found.f_bavail * found.f_frsize // (_MOVED_PAGES * PAGE_BYTES)
            self.database.vacuum(max(_VACUUM_MIN_PAGES, min(VACUUM_PAGES, free - keep_pages, fitting)))
            return keep_pages < self.database.free_pages() < free
        except apsw.Error as error:
            raise self._refused(error, "the cache cannot be made smaller") from error

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database and give its space back. FsError."""
        try:
            self.database.checkpoint()
        except apsw.Error as error:
            raise FsError(errno_of(error), f"the cache's log cannot be emptied: {error}") from error

    def close(self) -> None:
        self._closed = True
        try:
            self.database.close()
        finally:
            os.close(self._file_fd)


def open_database(folder: Path) -> Database:
    """The cache's database, made if it is missing.

    A deleted file's bytes may stay in it until they are overwritten, as on any disk: overwriting them at once would make
    deleting a file as expensive as writing it.
    """
    return Database(
        folder / DATABASE_NAME, migrations=SCHEMA, page_size=PAGE_BYTES, secure_delete="fast",
        checkpoint_pages=_LOG_MAX_PAGES, gives_back=True, vfs=VFS,
    )  # fmt: skip


def is_missing(folder: Path) -> bool:
    """Whether there is no database in `folder`, or nothing but its name (nor a log from which SQLite would fill it)."""
    database, log = folder / DATABASE_NAME, folder / f"{DATABASE_NAME}-wal"
    return not database.exists() or not (database.stat().st_size or (log.exists() and log.stat().st_size))


def is_unborn(database: Database) -> bool:
    """Whether making it was cut off before there was a filesystem in it."""
    return database.one("select 1 from meta union all select 1 from inode union all select 1 from dentry limit 1") is None


def errno_of(error: apsw.Error) -> int:
    """The errno a failed SQLite call stands for."""
    if isinstance(error, apsw.FullError):
        return errno.ENOSPC
    if isinstance(error, apsw.ReadOnlyError):
        return errno.EROFS
    return errno.EIO


def _row(inode: Inode) -> tuple[object, ...]:
    return (
        inode.ino, inode.mode, inode.uid, inode.gid, inode.nlink, inode.size, inode.atime_ns, inode.mtime_ns,
        inode.ctime_ns, inode.rdev, inode.parent, inode.version, inode.target, inode.place,
    )  # fmt: skip


_MODES: Final[dict[int, int]] = {}
"""The few modes that files really have, as one object each."""
_MODES_MAX: Final = 256


def _inode(row: tuple[Any, ...]) -> Inode:
    ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, rdev, parent, version, target, place = row
    if ctime_ns == mtime_ns:  # one object for equal numbers: most files never have three different times
        ctime_ns = mtime_ns
    if atime_ns == mtime_ns:
        atime_ns = mtime_ns
    mode = _MODES.setdefault(mode, mode) if len(_MODES) < _MODES_MAX else mode
    return Inode(
        ino=ino, mode=mode, uid=uid, gid=gid, nlink=nlink, size=size, atime_ns=atime_ns, mtime_ns=mtime_ns,
        ctime_ns=ctime_ns, rdev=rdev, parent=parent, version=version, target=target, place=place,
    )  # fmt: skip
