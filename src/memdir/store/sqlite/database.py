"""SQLite as an engine of the stores: one writer at a time, so that locks of rows are not needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import apsw

from memdir.core import sqlite
from memdir.store.contents.durability import promised
from memdir.store.database import Transaction
from memdir.store.errors import DiskFullError


class SqliteDatabase(sqlite.Database):
    """`core.sqlite.Database` with what `store.database.Database` asks for beside it."""

    row_lock = ""
    row_lock_skip = ""

    @contextmanager
    def write(self, *, durable: bool = False) -> Iterator[apsw.Connection]:
        """As in `core.sqlite`; a full disk is said in the stores' words. A commit that a client will be told of is durable as
        well, by a sync that is shared with all who wait for one."""
        try:
            with super().write(durable=durable) as connection:
                yield connection
            if promised() and not durable:
                self.settle()
        except apsw.FullError as error:
            raise DiskFullError from error

    def hold(self, transaction: Transaction, name: str) -> None:
        """The writer is alone anyway."""
        del transaction, name
