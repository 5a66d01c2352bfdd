"""What the stores need of a database engine: transactions, and rows.

The statements in this room are written once, in the SQL that SQLite and PostgreSQL share (`insert … on conflict`,
`returning`, `?` for a value, `:name` for a named one); what only one of them can do lives in `store/sqlite` and
`store/postgres`. To be kept in mind:

- columns on the right of `on conflict … do update set` are written with their table (`job.generation + 1`);
- no scalar `min(a, b)`, `max(a, b)`, `insert or …`, `is` between values, `last_insert_rowid`; `octet_length` counts bytes;
- a value that could be null and has nothing beside it to take its type from needs `cast(? as …)`;
- an empty `in ()` is allowed and false;
- many writers work at the same time on PostgreSQL, each seeing what was committed before its statement began: what is read in
  order to be written is read with `row_lock`, rows in a fixed order, the container's first;
- text that is stored holds no U+0000.
"""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeVar

from memdir.store.errors import ContentionError

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = tuple[Any, ...]
Bindings = Sequence[Any] | dict[str, Any]
ATTEMPTS_MAX: Final = 5
"""Of a transaction that others stood in the way of."""
_PAUSE_MAX_S: Final = 0.05


class Transaction(Protocol):
    """A connection inside a transaction. The rows of one `execute` are read before the next one is run."""

    def execute(self, statements: str, bindings: Bindings = ..., /) -> Iterable[Row]:
        """Run a statement."""
        ...

    def executemany(self, statement: str, bindings: Iterable[Bindings], /) -> Any:
        """Run a statement that returns nothing once for each of `bindings`, without waiting for each; `changes()` means
        nothing afterwards."""
        ...

    def changes(self) -> int:
        """Rows that the last `insert`, `update` or `delete` touched."""
        ...


Guard = Callable[[Transaction], bool]
"""Asked inside a transaction, after the document was looked at and before anything is written: may this writer still write?
Locks what it looked at until the transaction ends."""


class Database(Protocol):
    """An engine. Any thread may call; every method blocks its caller."""

    @property
    def row_lock(self) -> str:
        """Ends a select inside `write()` whose rows nobody else may change until the transaction ends."""
        ...

    @property
    def row_lock_skip(self) -> str:
        """The same for work that any of several may take: rows that others hold are passed over."""
        ...

    def hold(self, transaction: Transaction, name: str) -> None:
        """Until the transaction ends nobody else holds `name`; waits for whoever does. For what is no row, such as a file."""
        ...

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


def marks_for(values: Collection[Any]) -> str:
    """What stands between the brackets of `x in (…)` for these values; for none of them nothing is in it (`null` fits
    nothing, and PostgreSQL does not know empty brackets)."""
    return ",".join("?" * len(values)) or "null"


def run_many(transaction: Transaction, sql: str, bindings: Iterable[Bindings]) -> None:
    """Run a statement once for each of `bindings`."""
    transaction.executemany(sql, bindings)


def repeated(db: Database, work: Callable[[Transaction], T], *, attempts: int = ATTEMPTS_MAX) -> T:
    """Run `work` in a transaction, and again when it stood in another one's way. `work` must not have effects beside the
    transaction that a second run would double. ContentionError after `attempts`."""
    for _ in range(attempts - 1):
        try:
            with db.write() as transaction:
                return work(transaction)
        except ContentionError as error:
            log.debug("a transaction is run again: %s", error)
            # Whoever was in the way must get on first, or the same two meet again.
            time.sleep(random.uniform(0, _PAUSE_MAX_S))  # noqa: S311  no secret
    with db.write() as transaction:
        return work(transaction)
