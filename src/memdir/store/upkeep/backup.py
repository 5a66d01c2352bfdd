"""Taking a backup of a store that is in use, and putting it into an empty store of either engine.

A backup is one moment of all tables, with the contents that they refer to; a hold keeps those from being deleted meanwhile. A
restore puts the contents in first and then replaces all rows in one transaction: killed anywhere, it has done nothing. Each
restored container gets a new epoch, because its clients may have seen what the backup has not: they compare everything.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import memdir
from memdir.core.clock import iso_ms
from memdir.core.errors import CorruptError, NotFoundError, UsageError, VersionError
from memdir.core.ids import new_id
from memdir.core.paths import ensure_dir
from memdir.store.contents.backends import new_place
from memdir.store.database import Transaction, fetch, first
from memdir.store.jobs import queue as jobs
from memdir.store.store import Store
from memdir.store.upkeep.archive import ArchiveReader, ArchiveWriter, Manifest, reading, writing
from memdir.store.upkeep.check import held
from memdir.store.upkeep.engine import BLOB_HOLDERS, DERIVED, PASSING, RUNNING, Table, Upkeep

log = logging.getLogger(__name__)

_LEFT_OUT: Final = DERIVED | PASSING | RUNNING | {"blob"}
_PAGE_ROWS: Final = 500
_PAGE_BLOBS: Final = 64
_RENEW_S: Final = 60.0
_OWNER: Final = "org_id"
"""A column that one engine has in every table, and the other only where it cannot be read from the container."""
Progress = Callable[[str, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Backed:
    """What a backup holds."""

    rows: dict[str, int]
    contents: int
    missing: list[str]
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was restored."""

    manifest: Manifest
    containers: int
    documents: int


def backup(store: Store, file: Path, *, progress: Progress | None = None) -> Backed:
    """Write everything that `store` keeps into a new archive. Any number of processes may be at work. UsageError when the file
    exists; StorageError when the store of contents fails. Contents that are damaged are left out and named."""
    told = progress or (lambda _what, _done: None)
    upkeep = store.upkeep()
    with _holding(store) as renew, writing(file) as archive:
        with upkeep.reading() as reader:
            for table in upkeep.tables():
                if table.name not in _LEFT_OUT:
                    archive.rows(table.name, table.columns, _watched(_rows(reader, table), table.name, told, renew))
            large: list[tuple[str, str]] = []
            archive.blobs(_watched(_blobs(reader, upkeep, large), "blob", told, renew))
        missing = _write_contents(store, archive, large, told, renew)
        manifest = archive.finish(memdir=memdir.__version__, engine=upkeep.engine, made_at=iso_ms(time.time_ns() // 1_000_000))
    return Backed(rows=manifest.rows, contents=len(large) - len(missing), missing=missing, size_bytes=file.stat().st_size)


@contextmanager
def _holding(store: Store) -> Iterator[Callable[[], None]]:
    """No content is deleted inside the block, as long as what is given is called now and then."""
    trash = store.blobs.trash
    hold = trash.hold()
    renewed_s = time.monotonic()

    def renew() -> None:
        nonlocal renewed_s
        if time.monotonic() - renewed_s > _RENEW_S:
            trash.hold(hold)
            renewed_s = time.monotonic()

    try:
        yield renew
    finally:
        trash.let_go(hold)


def _watched(rows: Iterator[Any], name: str, told: Progress, renew: Callable[[], None]) -> Iterator[Any]:
    for count, row in enumerate(rows):
        if count % _PAGE_ROWS == 0:
            told(name, count)
            renew()
        yield row


def _rows(reader: Transaction, table: Table) -> Iterator[Sequence[Any]]:
    """Every row in the order of the key, a page at a time."""
    keys = ", ".join(table.key)
    places = [table.columns.index(column) for column in table.key]
    query = f"select {', '.join(table.columns)} from {table.name}"  # noqa: S608  names of the schema
    page = fetch(reader, f"{query} order by {keys} limit {_PAGE_ROWS}")
    while page:
        yield from page
        last = tuple(page[-1][place] for place in places)
        marks = ", ".join("?" * len(last))
        page = fetch(reader, f"{query} where ({keys}) > ({marks}) order by {keys} limit {_PAGE_ROWS}", last)


def _blobs(reader: Transaction, upkeep: Upkeep, large: list[tuple[str, str]]) -> Iterator[tuple[str, int, bytes | None]]:
    """Each content once, whoever shares it; `large` gets hash and place of those that are not in the table."""
    keys = ["hash", *owner_columns(upkeep)]
    named = ", ".join(keys)
    query = f"select size_bytes, data, place, {named} from blob where ({named}) > ({', '.join('?' * len(keys))}) "  # noqa: S608
    last: tuple[Any, ...] = ("",) * len(keys)
    given = ""
    while page := fetch(reader, f"{query}order by {named} limit {_PAGE_BLOBS}", last):
        for size_bytes, data, place, content_hash, *_ in page:
            if content_hash == given:
                continue
            given = content_hash
            if data is None and place is not None:
                large.append((content_hash, place))
            yield content_hash, size_bytes, data
        last = tuple(page[-1][3:])


def owner_columns(upkeep: Upkeep) -> list[str]:
    """Columns within whose values contents are shared."""
    return [column.strip() for column in upkeep.blob_owner.split(",") if column.strip()]


def _write_contents(
    store: Store, archive: ArchiveWriter, large: list[tuple[str, str]], told: Progress, renew: Callable[[], None]
) -> list[str]:
    missing = []
    for count, (content_hash, place) in enumerate(large):
        told("contents", count)
        try:
            archive.content(content_hash, _renewing(store.blobs.checked(content_hash, place), renew))
        except NotFoundError:
            archive.without(content_hash)
            missing.append(content_hash)
        except CorruptError as error:
            log.warning("%s", error)
            missing.append(content_hash)
    return missing


def _renewing(pieces: Iterator[bytes], renew: Callable[[], None]) -> Iterator[bytes]:
    for piece in pieces:
        renew()
        yield piece


def restore(store: Store, file: Path, *, force: bool = False, progress: Progress | None = None) -> Restored:
    """Put what an archive holds into `store`, in place of what is there: that is refused without `force` when there are
    containers (UsageError). On SQLite nobody else may have the store open. CorruptError when the archive is damaged: nothing
    was changed."""
    with reading(file) as archive:
        return _Restore(store, archive, progress or (lambda _what, _done: None)).run(force=force)


class _Restore:
    """One restore."""

    def __init__(self, store: Store, archive: ArchiveReader, told: Progress) -> None:
        self._store = store
        self._upkeep = store.upkeep()
        self._archive = archive
        self._told = told
        self._tables = self._upkeep.tables()
        self._owner = owner_columns(self._upkeep)
        self._places: dict[tuple[str, tuple[Any, ...]], str] = {}

    def run(self, *, force: bool) -> Restored:
        self._check_columns()
        self._refuse_to_overwrite(force)
        with _holding(self._store) as renew:
            try:
                self._put_contents(self._holders(), renew)
                with self._upkeep.alone() as connection:
                    self._refuse_to_overwrite(force)
                    self._empty(connection)
                    for table in self._tables:
                        self._insert(connection, table)
                    self._insert_blobs(connection)
                    counts = self._begin_anew(connection)
                    for table in self._tables:
                        if table.numbered is not None and table.name not in _LEFT_OUT:
                            self._upkeep.renumber(connection, table)
            finally:
                for place in self._places.values():
                    self._store.blobs.trash.give_up(place)
        while self._store.blobs.collect():
            self._told("deleting", 0)
        return Restored(manifest=self._archive.manifest, containers=counts[0], documents=counts[1])

    def _refuse_to_overwrite(self, force: bool) -> None:
        with self._upkeep.reading() as reader:
            row = first(reader, "select count(*) from container")
        if row is not None and row[0] and not force:
            raise UsageError(
                f"the store holds {row[0]} containers already",
                hint="--force replaces all that it holds; take a backup of it first",
            )

    def _check_columns(self) -> None:
        """The archive must not hold what this memdir has no place for."""
        there = {table.name: table for table in self._tables}
        for name, columns in self._archive.manifest.tables.items():
            table = there.get(name)
            unknown = sorted(set(columns) - set(table.columns) - {_OWNER}) if table is not None else []
            if table is None or unknown:
                raise VersionError(
                    f"the backup holds {name}{'.' + unknown[0] if unknown else ''}, which this memdir does not know",
                    hint=f"it was made by memdir {self._archive.manifest.memdir}: upgrade",
                )
            missing = sorted(table.required - set(columns) - {_OWNER})
            if missing:
                raise VersionError(f"the backup lacks {name}.{missing[0]}", hint="use the memdir that made it")

    def _holders(self) -> dict[str, set[tuple[Any, ...]]]:
        """For each content those who share it among themselves: everybody, or each organisation by itself."""
        orgs = {}
        columns = self._archive.manifest.tables["container"]
        for row in self._archive.rows("container"):
            orgs[row[columns.index("id")]] = row[columns.index("org_id")]
        found: dict[str, set[tuple[Any, ...]]] = {}
        for name in BLOB_HOLDERS:
            columns = self._archive.manifest.tables.get(name, [])
            for row in self._archive.rows(name):
                owner = (orgs.get(row[columns.index("container_id")]),) if self._owner else ()
                found.setdefault(row[columns.index("content_hash")], set()).add(owner)
        return found

    def _put_contents(self, holders: dict[str, set[tuple[Any, ...]]], renew: Callable[[], None]) -> None:
        """Large contents go to the store of contents, announced in the trash until the rows refer to them."""
        folder = ensure_dir(self._store.blobs.temp)
        for count, (content_hash, size_bytes, data) in enumerate(self._archive.blobs()):
            self._told("contents", count)
            if data is not None or not self._archive.has_content(content_hash):
                continue
            for owner in sorted(holders.get(content_hash, ())):
                file = folder / f"{new_id()}.part"
                try:
                    self._stage(content_hash, size_bytes, file, renew)
                    place = new_place(content_hash)
                    self._store.blobs.trash.expect(place, content_hash=content_hash, size_bytes=size_bytes)
                    self._places[content_hash, owner] = place
                    self._store.blobs.contents.put(place, file)
                finally:
                    file.unlink(missing_ok=True)

    def _stage(self, content_hash: str, size_bytes: int, file: Path, renew: Callable[[], None]) -> None:
        digest, written = hashlib.sha256(), 0
        with os.fdopen(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600), "wb") as out:
            for piece in self._archive.content(content_hash):
                renew()
                digest.update(piece)
                written += out.write(piece)
            out.flush()
            os.fsync(out.fileno())
        if digest.hexdigest() != content_hash or written != size_bytes:
            raise CorruptError(f"content {content_hash[:12]}… of the backup was changed", hint="take another backup")

    def _empty(self, connection: Transaction) -> None:
        """Everything goes; the places of large contents into the trash."""
        for content_hash, place, size_bytes in fetch(
            connection, "select hash, place, size_bytes from blob where place is not null"
        ):
            self._store.blobs.trash.throw(connection, place, content_hash=content_hash, size_bytes=size_bytes)
        owners = fetch(connection, f"select distinct {', '.join(self._owner)} from blob") if self._owner else [()]  # noqa: S608
        for owner in owners:
            with self._upkeep.owning(connection, owner):
                connection.execute("delete from blob")
        for table in reversed(self._tables):
            if table.name not in RUNNING | {"blob"}:
                connection.execute(f"delete from {table.name}")  # noqa: S608  names of the schema

    def _insert(self, connection: Transaction, table: Table) -> None:
        given = self._archive.manifest.tables.get(table.name)
        if given is None:
            return
        taken = [place for place, column in enumerate(given) if column in table.columns]
        names = ", ".join(given[place] for place in taken)
        sql = f"insert into {table.name} ({names}) values ({', '.join('?' * len(taken))})"  # noqa: S608  checked above
        for count, row in enumerate(self._archive.rows(table.name)):
            if len(row) != len(given):
                raise CorruptError(f"a row of {table.name} in the backup has {len(row)} values", hint="take another backup")
            if count % _PAGE_ROWS == 0:
                self._told(table.name, count)
            connection.execute(sql, tuple(row[place] for place in taken))

    def _insert_blobs(self, connection: Transaction) -> None:
        """Rows for all contents that are held, counted anew."""
        owners: dict[str, list[tuple[int, tuple[Any, ...]]]] = {}
        for row in fetch(connection, held(self._upkeep.blob_owner)):
            owners.setdefault(row[-2], []).append((row[-1], tuple(row[:-2])))
        columns = ", ".join(["hash", "size_bytes", "ref_count", "data", "place", *self._owner])
        marks = ", ".join("?" * (5 + len(self._owner)))
        for content_hash, size_bytes, data in self._archive.blobs():
            for count, owner in owners.get(content_hash, ()):
                place = self._places.get((content_hash, owner))
                if data is None and place is None:
                    continue  # named as missing by the archive; `check` tells which documents it belongs to
                with self._upkeep.owning(connection, owner):
                    connection.execute(
                        f"insert into blob ({columns}) values ({marks})",  # noqa: S608  constants
                        (content_hash, size_bytes, count, data, place, *owner),
                    )
                if place is not None:
                    self._store.blobs.trash.take(connection, place)

    def _begin_anew(self, connection: Transaction) -> tuple[int, int]:
        """A new epoch for each container, and work for every document."""
        containers = fetch(connection, "select id from container")
        for (container_id,) in containers:
            connection.execute(
                "update container set epoch = ?, profile_version = profile_version + 1 where id = ?",
                (secrets.token_hex(16), container_id),
            )
        connection.execute("update document set status = 'queued', error = null, indexed_hash = null where kind = 'file'")
        rows = fetch(connection, "select id, container_id from document where status = 'queued' order by id")
        now_ms = self._store.now_ms()
        for count, (document_id, container_id) in enumerate(rows):
            if count % _PAGE_ROWS == 0:
                self._told("queue", count)
            jobs.enqueue(
                connection,
                document_id=document_id,
                container_id=container_id,
                kind="index",
                priority=jobs.BULK,
                now_ms=now_ms,
            )
        total = first(connection, "select count(*) from document")
        assert total is not None
        return len(containers), int(total[0])
