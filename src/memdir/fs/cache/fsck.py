"""Check a cache folder that nobody has open, and repair what can be repaired. Nothing that has bytes is thrown away: a file
without a path gets one in `/lost+found`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import apsw

from memdir.core.clock import Clock, SystemClock
from memdir.core.errors import CorruptError, NotFoundError
from memdir.core.sqlite import Database
from memdir.fs.cache import record
from memdir.fs.cache.blobcheck import BlobFault, blob_faults, forget_missing
from memdir.fs.cache.blobs import blob_path
from memdir.fs.cache.filesystem import SqliteFs
from memdir.fs.cache.folder import locked
from memdir.fs.cache.invariants import AFTER_REACH, BEFORE_REACH, UNREACHED, Invariant
from memdir.fs.cache.journal import FS_ID_BYTES, Torn, damaged_name, identity, replay, segment_paths, sync_folder
from memdir.fs.cache.salvage import salvage
from memdir.fs.cache.tables import DATABASE_NAME, is_unborn, open_database
from memdir.fs.types import ROOT_INO

FINDINGS_MAX: Final = 1000
"""Findings reported at most; a check stops looking behind them."""
LOST_FOUND: Final = b"lost+found"
_ROUNDS_MAX: Final = 3
_FAR_INO: Final = (
    "select max(next_ino, (select max(ino) from inode), (select coalesce(max(ino), 0) from dentry)) + 1000000 from meta"
)
"""A number far ahead of the counter: records that still wait in the journal may hold the next ones."""
_INDEX_ONLY: Final = re.compile(r"missing from index|wrong # of entries in index|non-unique entry in index")
"""Lines of `pragma integrity_check` that speak of an index and not of rows."""

Progress = Callable[[str, int, int], None]
"""What is being done, steps done, steps in all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that is not as it must be."""

    kind: str
    detail: str
    repaired: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.detail}"


def no_progress(_what: str, _done: int, _total: int) -> None:
    """For callers that show none."""


def check(folder: Path, *, progress: Progress = no_progress) -> list[Finding]:
    """Every broken invariant; changes nothing. BusyError while the folder is in use, NotFoundError when it holds no cache,
    VersionError when a newer memdir made it."""
    with locked(_existing(folder)):
        return _check(folder, progress)


def waiting_operations(folder: Path) -> int:
    """How many acknowledged operations are in the journal only, until the next mount. BusyError, CorruptError."""
    with locked(_existing(folder)):
        database = open_database(folder)
        try:
            count = 0

            def note(_lsn: int, _body: bytes) -> None:
                nonlocal count
                count += 1

            row = database.one("select fs_id, applied_lsn from meta")
            if row is not None:
                replay(folder, fs_id=row[0], applied_lsn=row[1], apply=note)
            return count
        finally:
            database.close()


def is_empty(folder: Path) -> bool:
    """Whether nothing was ever put into the filesystem in `folder`. BusyError, CorruptError."""
    with locked(_existing(folder)):
        if segment_paths(folder):
            return False
        database = open_database(folder)
        try:
            return not database.all("select 1 from inode where ino != 1 union all select 1 from intent limit 1")
        finally:
            database.close()


def repair(folder: Path, *, clock: Clock | None = None, progress: Progress = no_progress) -> list[Finding]:
    """Mend what `check` finds; each finding says whether it was. A damaged end of the journal is set aside as
    `damaged-journal-…` and the operations in it are lost, which a finding says. Of a damaged database what can be read is
    brought into a new one, and the damaged file is kept as `damaged-…-cache.db`; what was lost is in findings `lost`."""
    clock = clock or SystemClock()
    with locked(_existing(folder)):
        findings = _check(folder, progress)
        if not findings:
            return []
        try:
            findings += _salvage(folder, progress) if _is_damaged(findings) else []
        except CorruptError as error:
            return [*findings, Finding(kind="lost", detail=f"{error.message}; {error.hint}")]
        if not _repair_tables(folder, clock):
            return findings
        torn = _journal_damage(folder)
        if torn is not None:
            _set_aside(torn)
    SqliteFs.open(folder, clock=clock).close()  # replays the journal
    with locked(folder):
        _repair_tables(folder, clock)
        left = {(finding.kind, finding.detail) for finding in _check(folder, progress)}
    return [replace(finding, repaired=(finding.kind, finding.detail) not in left) for finding in findings]


def _existing(folder: Path) -> Path:
    if not (folder / DATABASE_NAME).exists():
        raise NotFoundError(f"{folder} holds no filesystem", hint="name the mount, or the folder with cache.db in it")
    return folder


def _is_damaged(findings: list[Finding]) -> bool:
    """Whether the file itself is, beyond its indexes, which SQLite can build again from the rows."""
    texts = [finding.detail for finding in findings if finding.kind == "database"]
    return any(not _INDEX_ONLY.search(text) for text in texts)


def _salvage(folder: Path, progress: Progress) -> list[Finding]:
    saved = salvage(folder, progress=lambda done, total: progress("saving what can be read", done, total))
    rows = ", ".join(f"{count:,} of {name}" for name, count in saved.rows.items() if count)
    findings = [
        Finding(kind="salvaged", detail=f"rows brought into a new database: {rows}; the damaged one is {saved.kept_as.name}")
    ]
    findings += [Finding(kind="lost", detail=sentence) for sentence in saved.lost]
    if saved.lost_count > len(saved.lost):
        findings.append(Finding(kind="lost", detail=f"and {saved.lost_count - len(saved.lost):,} more like these"))
    return findings


def _check(folder: Path, progress: Progress) -> list[Finding]:
    try:
        database = open_database(folder)
    except CorruptError as error:
        return [Finding(kind="database", detail=error.message)]
    try:
        findings = _check_tables(database, progress)[:FINDINGS_MAX] + _check_journal(folder, database)
        faults = blob_faults(database.reader, folder)[:FINDINGS_MAX]
        return findings + [Finding(kind=fault.kind, detail=fault.detail) for fault in faults]
    except apsw.Error as error:
        return [Finding(kind="database", detail=f"SQLite cannot read it: {error}")]
    finally:
        database.close()


def _check_tables(database: Database, progress: Progress) -> list[Finding]:
    steps = 2 + len(BEFORE_REACH) + len(AFTER_REACH)
    progress("checking", 0, steps)
    findings = [Finding(kind="database", detail=line) for line in database.integrity_errors()]
    if not findings and is_unborn(database):
        return []  # the next open makes the filesystem
    if database.one("select 1 from meta") is None:
        findings.append(Finding(kind="meta", detail="the row with the counters is missing"))
    mode = database.one("select mode from inode where ino = 1")
    if mode is None or not stat.S_ISDIR(mode[0]):
        findings.append(Finding(kind="root", detail="the root folder is missing"))
    for done, invariant in enumerate(BEFORE_REACH, start=1):
        progress("checking", done, steps)
        findings.extend(_exceptions(database, invariant))
    for ino, is_folder, named in database.all(UNREACHED)[:FINDINGS_MAX]:
        what = "folder" if is_folder else "file"
        how = "stands in a folder that no path leads to" if named else "has no name"
        findings.append(Finding(kind="orphan", detail=f"{what} {ino} {how}"))
    for done, invariant in enumerate(AFTER_REACH, start=2 + len(BEFORE_REACH)):
        progress("checking", done, steps)
        findings.extend(_exceptions(database, invariant))
    return findings


def _exceptions(database: Database, invariant: Invariant) -> list[Finding]:
    return [
        Finding(kind=invariant.kind, detail=_sentence(invariant, row)) for row in database.all(invariant.find)[:FINDINGS_MAX]
    ]


def _sentence(invariant: Invariant, row: tuple[Any, ...]) -> str:
    try:
        return invariant.sentence.format(*row)
    except (TypeError, ValueError):  # in a damaged database not even the types hold
        return f"rows that cannot be: {row!r}"


def _check_journal(folder: Path, database: Database) -> list[Finding]:
    row = database.one("select fs_id, applied_lsn from meta")
    if row is None:
        return []
    torn = replay(folder, fs_id=row[0], applied_lsn=row[1], apply=lambda _, body: _must_decode(body))
    if torn is None or not torn.damaged:
        return []
    return [Finding(kind="journal", detail=f"{torn.path.name} is damaged at byte {torn.offset}: {torn.reason}")]


def _must_decode(body: bytes) -> None:
    record.decode(body)


def _journal_damage(folder: Path) -> Torn | None:
    database = open_database(folder)
    try:
        row = database.one("select fs_id, applied_lsn from meta")
        if row is None:
            return None
        torn = replay(folder, fs_id=row[0], applied_lsn=row[1], apply=lambda _, body: _must_decode(body))
        return torn if torn is not None and torn.damaged else None
    finally:
        database.close()


def _set_aside(torn: Torn) -> None:
    """The records before the damage go on as a segment of the old name; later segments are of no use without the lost ones.

    A repair that is killed leaves the good part where it was or where it belongs, so the next one ends the same way: the whole
    segment is copied and synced before anything is cut.
    """
    fd = os.open(damaged_name(torn.path), os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb", buffering=0) as copy:
        data = memoryview(torn.path.read_bytes())
        while data:
            data = data[os.write(copy.fileno(), data) :]
        os.fsync(copy.fileno())
    sync_folder(torn.path.parent)
    for later in segment_paths(torn.path.parent):
        if later.name > torn.path.name:
            later.rename(damaged_name(later))
    if torn.offset:
        os.truncate(torn.path, torn.offset)
    else:
        torn.path.unlink()
    sync_folder(torn.path.parent)


def _repair_tables(folder: Path, clock: Clock) -> bool:
    """False when SQLite cannot even read or write the file: what the findings say stays true."""
    try:
        database = open_database(folder)
    except CorruptError:
        return False
    try:
        with database.write(durable=True) as connection:
            if database.integrity_errors():
                connection.execute("reindex")
            for _ in range(_ROUNDS_MAX):
                _repair_round(connection, folder, clock.now_ns())
    except apsw.Error:
        return False  # the transaction is rolled back
    finally:
        database.close()
    return True


def _repair_round(connection: apsw.Connection, folder: Path, now_ns: int) -> None:
    _repair_root(connection, folder, now_ns)
    for invariant in BEFORE_REACH:
        _mend(connection, invariant)
    for fault in blob_faults(connection, folder):
        if fault.file is None:
            forget_missing(connection, fault)
        else:
            _rescue(connection, folder, fault, now_ns)
    _reattach(connection, now_ns)
    for invariant in AFTER_REACH:
        _mend(connection, invariant)


def _repair_root(connection: apsw.Connection, folder: Path, now_ns: int) -> None:
    # Without the counters nobody knows what SQLite holds already; applying all of the journal again leads to the same end.
    fs_id, first_lsn = identity(folder) or (os.urandom(FS_ID_BYTES), 1)
    connection.execute(
        "insert or ignore into meta (id, fs_id, applied_lsn, next_ino, next_cookie, next_seq) values (1, ?, ?, 2, 16, 1)",
        (fs_id, first_lsn - 1),
    )
    connection.execute(
        "insert or ignore into inode (ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, parent, version)"
        " select 1, ?, coalesce(min(uid), 0), coalesce(min(gid), 0), 2, 0, ?2, ?2, ?2, 1, 0 from inode",
        (stat.S_IFDIR | 0o755, now_ns),
    )
    connection.execute("update inode set mode = ? | (mode & 4095) where ino = 1", (stat.S_IFDIR,))


def _mend(connection: apsw.Connection, invariant: Invariant) -> None:
    for row in connection.execute(invariant.find).fetchall():
        for statement in invariant.mend:
            used = tuple(row)[: 2 if "?2" in statement else 1 if "?1" in statement else 0]
            connection.execute(statement, used)


def _reattach(connection: apsw.Connection, now_ns: int) -> None:
    """Give every inode that no path leads to a name in /lost+found. A ring of folders is opened at its lowest number."""
    while unreached := list[Any](connection.execute(UNREACHED)):
        tops = [int(ino) for ino, _, named in unreached if not named]
        if not tops:
            # Only folders can hold each other up; a file below them comes along.
            tops = [min(int(ino) for ino, is_folder, _ in unreached if is_folder)]
            connection.execute("delete from dentry where ino = ?", (tops[0],))
        home = _lost_found(connection, now_ns)
        for ino in tops:
            _add_name(connection, home, f"#{ino}".encode(), ino)


def _rescue(connection: apsw.Connection, folder: Path, fault: BlobFault, now_ns: int) -> None:
    """Give a blob that nothing names a file in /lost+found."""
    assert fault.file is not None
    ((ino,),) = connection.execute(_FAR_INO)
    os.rename(blob_path(folder, fault.ino, fault.blob), blob_path(folder, ino, fault.blob))
    connection.execute(
        "insert into inode (ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, parent, version, place)"
        " select ?1, ?2, uid, gid, 1, ?3, ?4, ?4, ?5, 1, 1, ?6 from inode where ino = 1",
        (ino, stat.S_IFREG | 0o600, fault.file.size_bytes, fault.file.mtime_ns, now_ns, fault.blob),
    )
    _add_name(connection, _lost_found(connection, now_ns), f"#{fault.ino}-blob-{fault.blob}".encode(), ino)


def _lost_found(connection: apsw.Connection, now_ns: int) -> int:
    row = next(iter(connection.execute("select ino from dentry where parent = 1 and name = ?", (LOST_FOUND,))), None)
    if row is not None and _is_folder(connection, row[0]):
        return int(row[0])
    name = LOST_FOUND if row is None else LOST_FOUND + b"-memdir"
    row = next(iter(connection.execute("select ino from dentry where parent = 1 and name = ?", (name,))), None)
    if row is not None:
        return int(row[0])
    ((ino,),) = connection.execute(_FAR_INO)
    connection.execute(
        "insert into inode (ino, mode, uid, gid, nlink, size, atime_ns, mtime_ns, ctime_ns, parent, version)"
        " select ?1, ?2, uid, gid, 2, 0, ?3, ?3, ?3, 1, 0 from inode where ino = 1",
        (ino, stat.S_IFDIR | 0o700, now_ns),
    )
    _add_name(connection, ROOT_INO, name, ino)
    return int(ino)


def _is_folder(connection: apsw.Connection, ino: int) -> bool:
    row: Any = next(iter(connection.execute("select mode from inode where ino = ?", (ino,))), None)
    return row is not None and stat.S_ISDIR(row[0])


def _add_name(connection: apsw.Connection, parent: int, name: bytes, ino: int) -> None:
    connection.execute(
        "insert or replace into dentry (parent, name, ino, cookie) select ?, ?, ?, next_cookie from meta", (parent, name, ino)
    )
    connection.execute("update meta set next_cookie = next_cookie + 1")
