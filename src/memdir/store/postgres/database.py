"""PostgreSQL through psycopg: a bounded pool of connections, and the wall between organisations in each of them.

Transactions are READ COMMITTED: each statement sees what was committed before it began, and rows that a decision rests on
are locked (`row_lock`). A commit is on the disk when `write()` returns (`synchronous_commit`), with or without `durable`.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any, Final

import psycopg
from psycopg import pq
from psycopg.adapt import Buffer
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper, NumericBinaryLoader
from psycopg_pool import ConnectionPool, PoolTimeout

from memdir.core.errors import BusyError
from memdir.store.acting import NOBODY, acting
from memdir.store.database import Bindings, Row, Transaction
from memdir.store.postgres.dialect import explained, lost, translated

log = logging.getLogger(__name__)

POOL_MAX: Final = 24
"""Connections of a process at most: its request threads, its workers, and some to spare."""
POOL_WAIT_S: Final = 10.0
IDLE_CLOSE_S: Final = 300.0
APP_ROLE: Final = "memdir_app"
SCHEMA: Final = "memdir"
_STATEMENTS_PREPARED: Final = 256
KEEP_ALIVE: Final[dict[str, Any]] = {
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "connect_timeout": 10,
}


class PooledConnection(psycopg.Connection[Row]):
    """Remembers for whom it works, so that saying it again costs nothing."""

    acting = NOBODY


class PostgresTransaction:
    """A connection inside a transaction (or, for a single read, outside of one)."""

    def __init__(self, connection: PooledConnection) -> None:
        self._connection = connection
        self._changes = 0

    def execute(self, statement: str, bindings: Bindings = (), /) -> list[Row]:
        """Run a statement; all its rows."""
        cursor = self._connection.execute(translated(statement), bindings, binary=True)
        if (cursor.statusmessage or "").startswith(("INSERT", "UPDATE", "DELETE")):
            self._changes = cursor.rowcount
        return cursor.fetchall() if cursor.description is not None else []

    def executemany(self, statement: str, bindings: Iterable[Bindings], /) -> None:
        """Run a statement once for each of `bindings`, all sent before the first answer is waited for."""
        with self._connection.cursor() as cursor:
            cursor.executemany(translated(statement), bindings)

    def changes(self) -> int:
        """Rows that the last `insert`, `update` or `delete` touched."""
        return self._changes


class PostgresDatabase:
    """`store.database.Database`. Any thread may call."""

    row_lock = " for no key update"
    row_lock_skip = " for no key update skip locked"

    def __init__(self, url: str, *, default_acting: str = NOBODY, pool_max: int = POOL_MAX) -> None:
        """`url` is what libpq takes. `default_acting` is for whom those work who did not say: by default nobody, who sees
        nothing. The schema must be there (`schema.migrate`)."""
        self._default = default_acting
        self._pool: ConnectionPool[PooledConnection] = ConnectionPool(
            url,
            connection_class=PooledConnection,
            kwargs=KEEP_ALIVE | {"autocommit": True},
            configure=_configure,
            min_size=1,
            max_size=pool_max,
            max_idle=IDLE_CLOSE_S,
            timeout=POOL_WAIT_S,
            name="memdir",
            open=True,
        )

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[PostgresTransaction]:
        """A transaction. ContentionError when it met a deadlock: it is rolled back, and may be run again."""
        del durable  # every commit is
        with self._transaction("begin") as transaction:
            yield transaction

    @contextmanager
    def snapshot(self) -> Iterator[PostgresTransaction]:
        """Several reads of one moment."""
        with self._transaction("begin isolation level repeatable read read only") as transaction:
            yield transaction

    def all(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """Every row of a query; asked once more of another connection when one turns out to be lost."""
        try:
            for _ in range(POOL_MAX):
                connection = self._checked_out(None)
                try:
                    return PostgresTransaction(connection).execute(sql, bindings)
                except psycopg.Error as error:
                    if not lost(error):
                        raise
                    log.info("a connection to the database was lost: %s", error)
                finally:
                    self._pool.putconn(connection)
            connection = self._checked_out(None)
            try:
                return PostgresTransaction(connection).execute(sql, bindings)
            finally:
                self._pool.putconn(connection)
        except psycopg.Error as error:
            raise explained(error) from error

    def one(self, sql: str, bindings: Bindings = ()) -> Row | None:
        """The first row, or None. The query says `limit 1` where there may be many."""
        rows = self.all(sql, bindings)
        return rows[0] if rows else None

    def hold(self, transaction: Transaction, name: str) -> None:
        """An advisory lock to the end of the transaction."""
        transaction.execute("select pg_advisory_xact_lock(hashtextextended(?, 0))", (name,))

    def close(self) -> None:
        """Close the connections. Calling it twice is allowed."""
        self._pool.close()

    @contextmanager
    def _transaction(self, begin: str) -> Iterator[PostgresTransaction]:
        try:
            connection = self._checked_out(begin)
            try:
                yield PostgresTransaction(connection)
                connection.execute("commit")
            finally:
                self._returned(connection)
        except psycopg.Error as error:
            raise explained(error) from error

    def _checked_out(self, begin: str | None) -> PooledConnection:
        """A connection that works for whom the caller works, the transaction begun. Those that the server closed meanwhile
        (it was restarted) are found here and replaced."""
        wanted = acting()
        wanted = self._default if wanted is None else wanted
        for attempt in range(POOL_MAX + 1):
            try:
                connection = self._pool.getconn()
            except PoolTimeout as error:
                raise BusyError("no connection to the database was free in time", hint="try again in a few seconds") from error
            try:
                if connection.acting != wanted:
                    connection.execute("select set_config('memdir.org', %s, false)", (wanted,))
                    connection.acting = wanted
                if begin is not None:
                    connection.execute(begin)
            except BaseException as error:
                self._returned(connection)
                if attempt < POOL_MAX and lost(error):
                    continue
                raise
            return connection
        raise AssertionError("the loop returns or raises")

    def _returned(self, connection: PooledConnection) -> None:
        """Back to the pool, without a transaction; one that is broken is closed there."""
        if connection.info.transaction_status not in (pq.TransactionStatus.IDLE, pq.TransactionStatus.UNKNOWN):
            try:
                connection.execute("rollback")
            except psycopg.Error as error:
                log.info("a connection to the database was lost: %s", error)
                connection.close()
        self._pool.putconn(connection)


class _Number(NumericBinaryLoader):
    """Sums of integers are integers, as they are in SQLite."""

    def load(self, data: Buffer) -> Any:
        value: Decimal = super().load(data)
        return int(value) if value == value.to_integral_value() else float(value)


def _configure(connection: psycopg.Connection[Any]) -> None:
    """A new connection: the schema, the role behind the wall, commits that are on the disk."""
    connection.prepared_max = _STATEMENTS_PREPARED
    # In both formats: a list is dumped by what its first list was dumped by, and a smaller type would not hold the next one.
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    connection.adapters.register_loader("numeric", _Number)
    connection.execute(
        f"select set_config('search_path', '{SCHEMA}, public', false), "  # noqa: S608  constants
        "case when current_setting('synchronous_commit') = 'off' then set_config('synchronous_commit', 'on', false) end, "
        f"(select set_config('role', rolname, false) from pg_roles "
        f"where rolname = '{APP_ROLE}' and pg_has_role(session_user, oid, 'member'))"
    )
