"""Looking after a PostgreSQL store."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import errors as pg
from psycopg import sql

from memdir.core.errors import BusyError
from memdir.store.acting import SYSTEM, acting_as
from memdir.store.database import Transaction, fetch
from memdir.store.postgres.database import KEEP_ALIVE, SCHEMA, PostgresDatabase
from memdir.store.postgres.dialect import explained
from memdir.store.upkeep.engine import Finding, Table

log = logging.getLogger(__name__)

_COLUMNS: Final = (
    "select a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.atthasdef, a.attidentity <> '', "
    "coalesce(array_position(i.indkey::int2[], a.attnum), -1) from pg_attribute a "
    "left join pg_index i on i.indrelid = a.attrelid and i.indisprimary "
    "where a.attrelid = cast(? as regclass) and a.attnum > 0 and not a.attisdropped and a.attgenerated = '' order by a.attnum"
)
_REFERENCES: Final = (
    "select c.conrelid::regclass::text, c.confrelid::regclass::text, "
    "(select array_agg(a.attname::text order by k.n) from unnest(c.conkey) with ordinality k (num, n) "
    "join pg_attribute a on a.attrelid = c.conrelid and a.attnum = k.num), "
    "(select array_agg(a.attname::text order by k.n) from unnest(c.confkey) with ordinality k (num, n) "
    "join pg_attribute a on a.attrelid = c.confrelid and a.attnum = k.num) "
    "from pg_constraint c join pg_namespace n on n.oid = c.connamespace where c.contype = 'f' and n.nspname = ? "
    "order by 1, 2, 3"
)
_OLDER: Final = (
    "select count(*) from ("
    "select backend_xmin from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid() "
    "union all select transaction from pg_prepared_xacts where database = current_database() "
    "union all select xmin from pg_replication_slots) as open (xmin) "
    "where xmin is not null and age(xmin) >= age(%s::xid)"
)
"""Whoever may still see rows that were deleted before a transaction, and so keeps them from being removed (PostgreSQL manual,
"Routine Vacuuming"). Sessions of other users, autovacuum's too, are seen by a superuser or with `pg_read_all_stats`."""
_OLDER_WAIT_S: Final = 5.0
_LOCK_MS: Final = 10_000
"""So long `vacuum full` waits for a table: who asks for it meanwhile waits behind it."""
_OLDER_POLL_S: Final = 0.1
_FULL_MAX: Final = 2
"""Runs of `vacuum full` in one call."""


class PostgresUpkeep:
    """`store.upkeep.engine.Upkeep` for PostgreSQL. What only the database's owner may do is done on a connection of its own, as
    the user that the URL names."""

    engine = "postgres"
    blob_owner = "org_id, "

    def __init__(self, db: PostgresDatabase, url: str) -> None:
        self._db = db
        self._url = url

    def tables(self) -> list[Table]:
        """From the catalogue; columns that the server computes are left out."""
        names = [
            row[0]
            for row in self._db.all(
                "select c.relname::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
                "where n.nspname = ? and c.relkind in ('r', 'p') and not c.relispartition order by 1",
                (SCHEMA,),
            )
        ]
        references = [(_bare(child), _bare(parent)) for child, parent, _, _ in self._db.all(_REFERENCES, (SCHEMA,))]
        ordered: dict[str, Table] = {}
        while len(ordered) < len(names):  # ends: foreign keys make no circle between tables
            for name in names:
                parents = {parent for child, parent in references if child == name} - {name}
                if name not in ordered and parents <= ordered.keys():
                    ordered[name] = self._table(name)
        return list(ordered.values())

    def _table(self, name: str) -> Table:
        rows = self._db.all(_COLUMNS, (f"{SCHEMA}.{name}",))
        numbered = [row[0] for row in rows if row[4]]
        return Table(
            name=name,
            columns=tuple(row[0] for row in rows),
            key=tuple(column for _, column in sorted((row[5], row[0]) for row in rows if row[5] >= 0)),
            bytes_columns=frozenset(row[0] for row in rows if row[1] == "bytea"),
            required=frozenset(row[0] for row in rows if row[2] and not row[3] and not row[4]),
            numbered=numbered[0] if numbered else None,
        )

    @contextmanager
    def alone(self) -> Iterator[Transaction]:
        """Other writers wait until the block ends."""
        with acting_as(SYSTEM), self._db.write(durable=True) as connection:
            names = ", ".join(table.name for table in self.tables() if table.name != "schema_version")
            connection.execute(f"lock table {names} in share row exclusive mode")
            yield connection

    @contextmanager
    def owning(self, transaction: Transaction, owner: Sequence[Any]) -> Iterator[None]:
        """Contents are written by their organisation only, not by the system."""
        transaction.execute("select set_config('memdir.org', ?, true)", (owner[0],))
        yield
        transaction.execute("select set_config('memdir.org', ?, true)", (SYSTEM,))

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """Repeatable read, behind no wall."""
        with acting_as(SYSTEM), self._db.snapshot() as connection:
            yield connection

    def damage(self) -> Iterator[Finding]:
        """References, and indexes that were never finished. (Pages are `pg_amcheck`'s affair.)"""
        with self.reading() as reader:
            for child, parent, columns, keys in fetch(reader, _REFERENCES, (SCHEMA,)):
                ((count,),) = fetch(reader, f"select count(*) from {child} c where {_orphaned(parent, columns, keys)}")  # noqa: S608
                if count:
                    detail = f"{count} rows of {_bare(child)} refer to a {_bare(parent)} that does not exist"
                    yield Finding(kind="reference", detail=detail)
            rows = fetch(
                reader,
                "select i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indexrelid "
                "join pg_namespace n on n.oid = c.relnamespace where n.nspname = ? and not i.indisvalid order by 1",
                (SCHEMA,),
            )
        for (name,) in rows:
            yield Finding(kind="index", detail=f"the index {_bare(name)} is not finished, and not used")

    def mend(self, finding: Finding) -> bool:
        """Rows whose parent is gone go as they would have gone with it; indexes are made again."""
        if finding.kind == "index":
            self._as_owner(sql.SQL("reindex index {}").format(sql.Identifier(SCHEMA, finding.detail.split()[2])))
            return True
        with self.alone() as connection:
            for child, parent, columns, keys in fetch(connection, _REFERENCES, (SCHEMA,)):
                connection.execute(f"delete from {child} c where {_orphaned(parent, columns, keys)}")  # noqa: S608
        return True

    def renumber(self, transaction: Transaction, table: Table) -> None:
        """The sequence goes behind the largest number; only its owner may say so."""
        transaction.execute("savepoint renumber")
        transaction.execute("set local role none")
        transaction.execute(
            f"select setval(pg_get_serial_sequence('{SCHEMA}.{table.name}', '{table.numbered}'), "  # noqa: S608  names of the schema
            f"greatest((select coalesce(max({table.numbered}), 0) + 1 from {table.name}), "
            f"nextval(pg_get_serial_sequence('{SCHEMA}.{table.name}', '{table.numbered}'))), false)"
        )
        transaction.execute("rollback to renumber")  # the role; a sequence is not part of the transaction

    def compact(self, *, full: bool) -> bool:
        """`vacuum`, which lets dead rows be used again, and with `full` writes every table anew. The log stays until the server
        has no use for it.

        The plain one comes first always: unlike `vacuum full`, it lets dead rows go also while a transaction is open in another
        database of the server (`PROC_IN_VACUUM` in PostgreSQL's `vacuum_rel`). With `full` transactions that are open have
        _OLDER_WAIT_S to end: autovacuum's last a moment. One that began meanwhile, and is as old because of another database's,
        may have kept rows: then all is done once more."""
        begun = self._as_owner(sql.SQL("select pg_current_xact_id()::xid::text"))[0][0]
        for _ in range(_FULL_MAX if full else 1):
            deadline_s = time.monotonic() + (_OLDER_WAIT_S if full else 0.0)
            while (are_older := self._are_older(begun)) and time.monotonic() < deadline_s:
                time.sleep(_OLDER_POLL_S)
            for options in ("analyze", "full, analyze") if full else ("analyze",):
                for table in self.tables():
                    self._as_owner(sql.SQL("vacuum ({}) {}").format(sql.SQL(options), sql.Identifier(SCHEMA, table.name)))
            try:
                self._as_owner(sql.SQL("checkpoint"))
            except pg.InsufficientPrivilege:
                log.info("the database does not let us make a checkpoint; it makes them itself")
            if are_older or not self._are_older(begun):
                return not are_older
        return False

    def _are_older(self, begun: str) -> bool:
        return bool(self._as_owner(sql.SQL(_OLDER), (begun,))[0][0])

    def _as_owner(self, statement: sql.SQL | sql.Composed, values: Sequence[str] | None = None) -> list[Any]:
        """The rows, none for a statement that gives none."""
        try:
            with psycopg.connect(self._url, autocommit=True, **KEEP_ALIVE) as connection:
                connection.execute(sql.SQL("set lock_timeout = {}").format(_LOCK_MS))
                cursor = connection.execute(statement, values)
                return cursor.fetchall() if cursor.description else []
        except pg.LockNotAvailable as error:
            raise BusyError(
                "somebody else uses the database, a dump or a long query", hint="try again when it has ended"
            ) from error
        except pg.InsufficientPrivilege:
            raise
        except psycopg.Error as error:
            raise explained(error) from error

    def empty_log(self) -> bool:
        """The server's own doing."""
        return True

    def size_bytes(self) -> int:
        """The database on the server's disk, without its log."""
        row: Any = self._db.one("select pg_database_size(current_database())")
        return int(row[0])


def _bare(name: str) -> str:
    return name.removeprefix(f"{SCHEMA}.")


def _orphaned(parent: str, columns: list[str], keys: list[str]) -> str:
    present = " and ".join(f"c.{column} is not null" for column in columns)
    same = " and ".join(f"p.{key} = c.{column}" for key, column in zip(keys, columns, strict=True))
    return f"{present} and not exists (select 1 from {parent} p where {same})"  # noqa: S608  names of the schema
