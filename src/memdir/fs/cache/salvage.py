"""A new database out of the rows that can still be read in a damaged one.

Rows are found through their trees as far as those hold. Where a tree is broken, the pages that nothing leads to any more are
looked through as well, and a row is taken for one of the table whose columns it fits. Names are kept twice (a folder's list,
and the index from an inode to its names), so one of them is enough. What nobody can read is counted and said: nothing goes
in silence, and the damaged file itself is kept beside the new one.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import apsw

from memdir.core.errors import CorruptError
from memdir.core.sqlite import Database
from memdir.fs.cache.blobs import Blobs
from memdir.fs.cache.journal import sync_folder
from memdir.fs.cache.pages import INDEX_INTERIOR, INDEX_LEAF, TABLE_INTERIOR, TABLE_LEAF, Cell, PageError, PageFile, Value
from memdir.fs.cache.tables import DATABASE_NAME, PAGE_BYTES, SCHEMA
from memdir.fs.posix.state import CHUNK_BYTES, INDEX_BITS

NAME_INDEX: Final = "dentry_by_ino"
_TABLES: Final = ("meta", "inode", "dentry", "chunk", "xattr", "intent")
_TYPES: Final[dict[str, tuple[type, ...]]] = {"INTEGER": (int,), "BLOB": (bytes,), "TEXT": (str,)}
_NEW_NAME: Final = "salvaged.db"
_KEPT_PREFIX: Final = "damaged-"
_SAID_MAX: Final = 1000
"""Lost pieces named one by one; beyond it they are counted."""

Progress = Callable[[int, int], None]
"""Pages done, pages in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Table:
    name: str
    columns: tuple[tuple[str, str, bool], ...]
    """Name, type, whether it must have a value; in the order in which SQLite stores them."""
    needed: int
    """A row written before later columns were added has at least so many."""
    without_rowid: bool
    key: str | None
    """The column that is the rowid, stored as null."""

    def fits(self, cell: Cell) -> bool:
        """Whether a row can be one of this table: number of columns and their types."""
        if (cell.rowid is None) != self.without_rowid or not self.needed <= len(cell.values) <= len(self.columns):
            return False
        return all(
            (value is None and (name == self.key or not must)) or (name != self.key and isinstance(value, _TYPES[kind]))
            for (name, kind, must), value in zip(self.columns, cell.values, strict=False)
        )


@dataclass(slots=True)
class Salvaged:
    """What was saved and what was not."""

    kept_as: Path
    """Where the damaged file is now."""
    rows: dict[str, int] = field(default_factory=dict)
    lost: list[str] = field(default_factory=list)
    """One sentence for each piece that could not be read or had to be made up, at most _SAID_MAX of them."""
    lost_count: int = 0
    damaged: set[str] = field(default_factory=set)
    """Tables of which something could not be read."""

    def lose(self, sentence: str, *tables: str) -> None:
        self.lost_count += 1
        self.damaged.update(tables)
        if len(self.lost) < _SAID_MAX:
            self.lost.append(sentence)


def salvage(folder: Path, *, progress: Progress) -> Salvaged:
    """Replace the database in `folder` (locked by the caller) by what can be read of it. The damaged one is kept.

    CorruptError when nothing can be read; then nothing was changed.
    """
    old, new = folder / DATABASE_NAME, folder / _NEW_NAME
    for leftover in (new, new.with_name(_NEW_NAME + "-wal"), new.with_name(_NEW_NAME + "-shm")):
        leftover.unlink(missing_ok=True)  # of a salvage that was cut off
    _bring_log_back(folder)
    result = Salvaged(kept_as=_free_name(folder))
    database = Database(new, migrations=SCHEMA, page_size=PAGE_BYTES)
    try:
        tables = _describe(database)
        with PageFile(old, page_bytes=PAGE_BYTES) as pages, database.write(durable=True) as connection:
            _fill(connection, tables, pages, result, progress)
            _complete(connection, folder, result)
            for name in _TABLES:
                ((result.rows[name],),) = connection.execute(f"select count(*) from {name}")  # noqa: S608 - constants
    finally:
        database.close()
    if not any(result.rows[name] for name in ("inode", "dentry", "chunk")):
        new.unlink()
        raise CorruptError(
            f"nothing in {old} can be read", hint="put it back from a copy, or move its folder away and start anew"
        )
    for suffix in ("-wal", "-shm"):
        log = old.with_name(DATABASE_NAME + suffix)
        if log.exists():
            log.rename(result.kept_as.with_name(result.kept_as.name + suffix))
    os.link(old, result.kept_as)
    os.replace(new, old)
    sync_folder(folder)
    return result


def _bring_log_back(folder: Path) -> None:
    """A salvage that was killed between setting aside the log and the database."""
    for log in folder.glob(f"{_KEPT_PREFIX}*-{DATABASE_NAME}-wal"):
        if not log.with_name(log.name.removesuffix("-wal")).exists() and not (folder / f"{DATABASE_NAME}-wal").exists():
            log.rename(folder / f"{DATABASE_NAME}-wal")


def _free_name(folder: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    names = (folder / f"{_KEPT_PREFIX}{stamp}{extra}-{DATABASE_NAME}" for extra in ("", *(f"-{n}" for n in range(2, 1000))))
    return next(name for name in names if not name.exists())


def _describe(database: Database) -> dict[str, _Table]:
    """The tables as a new database has them."""
    found = {}
    for name in _TABLES:
        rows = database.all(f"select name, type, \"notnull\", pk, dflt_value from pragma_table_xinfo('{name}')")  # noqa: S608
        ((without_rowid,),) = database.all("select wr from pragma_table_list where name = ?", (name,))
        if without_rowid:  # stored with the key first
            rows = sorted(rows, key=lambda row: row[3] or len(rows))
        key = None if without_rowid else next((row[0] for row in rows if row[3]), None)
        needed = next((at for at, row in enumerate(rows) if row[0] == "place"), len(rows))
        found[name] = _Table(
            name=name, columns=tuple((row[0], row[1], bool(row[2])) for row in rows), needed=needed,
            without_rowid=bool(without_rowid), key=key,
        )  # fmt: skip
    return found


# --- finding rows ------------------------------------------------------------------------------------------------------


def _fill(
    connection: apsw.Connection, tables: dict[str, _Table], pages: PageFile, result: Salvaged, progress: Progress
) -> None:
    owners = _owners(pages, tables, result)
    connection.execute("create temp table spare (ino integer, parent integer, name blob)")
    for done, number in enumerate(sorted(owners)):
        progress(done, pages.page_count)
        _take_page(connection, tables, pages, number, owners[number], result)
    if result.damaged - {"index"}:
        free = pages.free_pages() or set()
        for number in range(1, pages.page_count + 1):
            if number not in owners and number not in free and pages.kind(number) in (TABLE_LEAF, INDEX_LEAF, INDEX_INTERIOR):
                progress(number, pages.page_count)
                _take_page(connection, tables, pages, number, None, result)
    if result.damaged & {"dentry", ""}:
        _names_from_index(connection, result)
    connection.execute("drop table spare")


def _owners(pages: PageFile, tables: dict[str, _Table], result: Salvaged) -> dict[int, str]:
    """Which table each page of a tree belongs to, as far as the trees can be followed."""
    owners: dict[int, str] = {}
    roots = _roots(pages)
    missing = [name for name in tables if name not in roots]
    if missing:
        result.lose(f"the list of the tables is damaged: {', '.join(missing)} had to be looked for page by page", "")
    for name, root in roots.items():
        if name not in tables and name != NAME_INDEX:
            continue
        stack = [root]
        while stack:
            number = stack.pop()
            try:
                below = _below(pages, number, tables.get(name)) if number not in owners else []
            except PageError as error:
                result.lose(f"a part of the table {name} cannot be read: {error}", _table_of(name))
                continue
            owners.setdefault(number, name)
            stack.extend(below)
    return owners


def _table_of(name: str) -> str:
    """A damaged index costs nothing."""
    return "index" if name == NAME_INDEX else name


def _below(pages: PageFile, number: int, table: _Table | None) -> list[int]:
    """The pages below one of a table's (None: of an index) tree. PageError when it cannot be one."""
    kind = pages.kind(number)
    if kind not in ((INDEX_LEAF, INDEX_INTERIOR) if table is None or table.without_rowid else (TABLE_LEAF, TABLE_INTERIOR)):
        raise PageError(f"page {number} is no page of this table")
    return pages.children(number) if kind in (TABLE_INTERIOR, INDEX_INTERIOR) else []


def _roots(pages: PageFile) -> dict[str, int]:
    """Root pages by name, from the schema on page 1 (and below it)."""
    found: dict[str, int] = {}
    stack, seen = [1], {1}
    while stack:
        number = stack.pop()
        try:
            if pages.kind(number) == TABLE_INTERIOR:
                fresh = [page for page in pages.children(number) if page not in seen]
                seen.update(fresh)
                stack.extend(fresh)
                continue
            cells = list(pages.cells(number))
        except PageError:
            continue
        for cell in cells:
            if isinstance(cell, Cell) and len(cell.values) == 5:
                _, name, _, root, _ = cell.values
                if isinstance(name, str) and isinstance(root, int) and 1 < root <= pages.page_count:
                    found[name] = root
    return found


def _take_page(
    connection: apsw.Connection, tables: dict[str, _Table], pages: PageFile, number: int, owner: str | None, result: Salvaged
) -> None:
    """Every row of a page into its table; `owner` is None for a page that nothing leads to."""
    try:
        for cell in pages.cells(number):
            if isinstance(cell, PageError):
                if owner is not None:
                    result.lose(f"a row of the table {owner} cannot be read: {cell}", _table_of(owner))
            elif owner == NAME_INDEX or (owner is None and _is_spare_name(cell)):
                if _is_spare_name(cell):
                    connection.execute("insert into spare values (?, ?, ?)", cell.values)
            else:
                _take_row(connection, tables, cell, owner, result)
    except PageError as error:
        if owner is not None:
            result.lose(f"a part of the table {owner} cannot be read: {error}", _table_of(owner))


def _is_spare_name(cell: Cell) -> bool:
    """An entry of the index from inodes to names."""
    kinds = [type(value) for value in cell.values]
    return cell.rowid is None and kinds == [int, int, bytes]


def _take_row(connection: apsw.Connection, tables: dict[str, _Table], cell: Cell, owner: str | None, result: Salvaged) -> None:
    lacking = [table for table in tables.values() if {table.name, ""} & result.damaged]
    candidates = [tables[owner]] if owner is not None else [table for table in lacking if table.fits(cell)]
    for table in candidates:
        if not table.fits(cell):
            result.lose(f"a row of the table {table.name} does not fit it", table.name)
            continue
        if cell.shares:
            key = cell.rowid if cell.rowid is not None else cell.values[0]
            result.lose(f"row {key!r} of the table {table.name} shares pages with another: the contents of one are wrong")
        names = [name for name, _, _ in table.columns[: len(cell.values)]]
        values = [cell.rowid if name == table.key else value for name, value in zip(names, cell.values, strict=True)]
        marks = ",".join("?" * len(values))
        try:
            # Through the trees first, so what only looks like a row never replaces one.
            connection.execute(f"insert or ignore into {table.name} ({','.join(names)}) values ({marks})", values)  # noqa: S608
            if owner is not None and not connection.changes():
                result.lose(
                    f"a row of the table {table.name} is there twice: its page stands where another one was", table.name
                )
        except apsw.ConstraintError as error:
            if owner is not None:
                result.lose(f"a row of the table {table.name} is not allowed there: {error}", table.name)


# --- what belongs together -------------------------------------------------------------------------------------------------


def _names_from_index(connection: apsw.Connection, result: Salvaged) -> None:
    """Names that stand in the index only, at the end of their folder's list."""
    rows = list(
        connection.execute(
            "select parent, name, ino from spare where length(name) between 1 and 255 and not exists"
            " (select 1 from dentry where dentry.parent = spare.parent and dentry.name = spare.name) order by ino"
        )
    )
    ((cookie,),) = connection.execute(
        "select max((select coalesce(max(cookie), 0) from dentry), (select coalesce(max(next_cookie), 16) from meta))"
    )
    for number, row in enumerate(rows, start=cookie + 1):
        connection.execute("insert or ignore into dentry (parent, name, ino, cookie) values (?, ?, ?, ?)", (*row, number))
    if rows:
        result.lose(f"{len(rows):,} names were read from the index of names, because their folder's list is damaged")


def _complete(connection: apsw.Connection, folder: Path, result: Salvaged) -> None:
    """An inode for contents, and a folder for names, whose own row is lost."""
    now_ns = time.time_ns()
    if "inode" in result.damaged or "" in result.damaged:
        for ino, size_bytes in _ownerless_chunks(connection):
            _add_inode(connection, ino, stat.S_IFREG | 0o600, size_bytes, 0, now_ns)
            result.lose(f"file {ino}: its attributes are lost, its contents are there (perhaps shorter by zeros at the end)")
        for (ino,) in list(
            connection.execute("select distinct parent from dentry where parent not in (select ino from inode)")
        ):
            _add_inode(connection, ino, stat.S_IFDIR | 0o700, 0, 0, now_ns)
            result.lose(f"folder {ino}: its attributes are lost, its names are there")
        for blob in Blobs(folder).files():
            if not list(connection.execute("select 1 from inode where ino = ?", (blob.ino,))):
                _add_inode(connection, blob.ino, stat.S_IFREG | 0o600, blob.size_bytes, blob.blob, blob.mtime_ns)
                result.lose(f"file {blob.ino}: its attributes are lost, its contents are there")
    if result.damaged & {"chunk", ""}:
        for ino, chunks, wanted in connection.execute(_GAPS):
            result.lose(
                f"file {ino} has {wanted - chunks} of {wanted} pieces without contents; some may be lost (they read as zeros)"
            )
    if result.damaged & {"intent", "meta", ""}:
        # Which changes were not pushed yet is not known any more: the next mount with sync compares every path.
        connection.execute("update meta set unsynced = 1")


_GAPS: Final = (
    f"select ino, chunks, wanted from (select inode.ino, (inode.size + {CHUNK_BYTES - 1}) / {CHUNK_BYTES} as wanted,"  # noqa: S608
    f" (select count(*) from chunk where key between inode.ino << {INDEX_BITS} and"
    f" (inode.ino << {INDEX_BITS}) | {(1 << INDEX_BITS) - 1}) as chunks"
    f" from inode where mode & {0o170000} = {stat.S_IFREG} and place = 0 and size > 0) where chunks < wanted limit {_SAID_MAX}"
)


def _ownerless_chunks(connection: apsw.Connection) -> Iterator[tuple[int, int]]:
    """Inodes of which only contents are left, and how large the file was at least."""
    rows: list[Any] = list(
        connection.execute(
            f"select key >> {INDEX_BITS}, max(key & {(1 << INDEX_BITS) - 1}) from chunk"  # noqa: S608 - constants
            f" where key >> {INDEX_BITS} not in (select ino from inode) group by 1"
        )
    )
    for ino, last in rows:
        ((length,),) = connection.execute("select length(data) from chunk where key = ?", (ino << INDEX_BITS | last,))
        yield ino, last * CHUNK_BYTES + length


def _add_inode(connection: apsw.Connection, ino: int, mode: int, size_bytes: int, place: int, now_ns: int) -> None:
    values: tuple[Value, ...] = (
        ino, mode, os.getuid(), os.getgid(), 1, size_bytes, now_ns, now_ns, now_ns, 1, 0, place,
    )  # fmt: skip
    connection.execute(
        "insert or ignore into inode (ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, parent, version, place)"
        " values (?,?,?,?,?,?,?,?,?,?,?,?)",
        values,
    )
