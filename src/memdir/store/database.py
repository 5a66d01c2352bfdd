"""What the stores need of a database engine: transactions, and rows.

The statements in this room are written once, in the SQL that SQLite and PostgreSQL share (`insert … on conflict`,
`returning`, `?` for a value, `:name` for a named one); what only one of them can do lives in `store/sqlite` and
`store/postgres`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

Row = tuple[Any, ...]
Bindings = Sequence[Any] | dict[str, Any]


class Transaction(Protocol):
    """A connection inside a transaction. The rows of one `execute` are read before the next one is run."""

    def execute(self, statements: str, bindings: Bindings = ..., /) -> Iterable[Row]:
        """Run a statement."""
        ...

    def changes(self) -> int:
        """Rows that the last `insert`, `update` or `delete` touched."""
        ...


Guard = Callable[[Transaction], bool]
"""Asked inside a transaction, after the document was looked at and before anything is written: may this writer still write?
Locks what it looked at until the transaction ends."""


class Database(Protocol):
    """An engine. Any thread may call; every method blocks its caller."""

    def write(self, *, durable: bool = False) -> AbstractContextManager[Transaction]:
        """A transaction: commits when the block ends, rolls back when it raises. They do not nest."""
        ...

    def snapshot(self) -> AbstractContextManager[Transaction]:
        """Several reads of one moment."""
        ...

    def all(self, sql: str, bindings: Bindings = ()) -> list[Row]:
        """Every row of a query. Sees every write that returned before."""
        ...

    def one(self, sql: str, bindings: Bindings = ()) -> Row | None:
        """The first row, or None."""
        ...


def fetch(transaction: Transaction, sql: str, bindings: Bindings = ()) -> list[Row]:
    """Run a statement to its end and return all its rows."""
    return list(transaction.execute(sql, bindings))


def first(transaction: Transaction, sql: str, bindings: Bindings = ()) -> Row | None:
    """The first row of a statement, or None."""
    rows = fetch(transaction, sql, bindings)
    return rows[0] if rows else None


def run_many(transaction: Transaction, sql: str, bindings: Iterable[Bindings]) -> None:
    """Run a statement once for each of `bindings`."""
    for values in bindings:
        transaction.execute(sql, values)
