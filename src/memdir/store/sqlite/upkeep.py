"""Looking after a SQLite store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from memdir.core.sqlite import Database
from memdir.store.database import Transaction, fetch
from memdir.store.upkeep.engine import Finding, Table

_FINDINGS_MAX: Final = 100


class SqliteUpkeep:
    """`store.upkeep.engine.Upkeep` for a database file."""

    engine = "sqlite"
    blob_owner = ""

    def __init__(self, db: Database) -> None:
        self._db = db

    def tables(self) -> list[Table]:
        """From the schema; the tables of the full-text index are no tables of ours."""
        names = self._db.all(
            "select name from pragma_table_list where schema = 'main' and type = 'table' and name not like 'sqlite%' "
            "order by name"
        )
        found = {name: self._table(name) for (name,) in names}
        ordered: dict[str, Table] = {}
        while len(ordered) < len(found):  # ends: foreign keys make no circle between tables
            for name, table in found.items():
                parents = {row[0] for row in self._db.all('select "table" from pragma_foreign_key_list(?)', (name,))}
                if name not in ordered and parents - {name} <= ordered.keys():
                    ordered[name] = table
        return list(ordered.values())

    def _table(self, name: str) -> Table:
        rows = self._db.all('select name, type, "notnull", dflt_value, pk from pragma_table_info(?)', (name,))
        keys = sorted((row[4], row[0]) for row in rows if row[4])
        alone = [row[0] for row in rows if row[4] and row[1].lower() == "integer"]
        numbered = alone[0] if len(keys) == 1 and alone else None
        return Table(
            name=name,
            columns=tuple(row[0] for row in rows),
            key=tuple(column for _, column in keys),
            bytes_columns=frozenset(row[0] for row in rows if row[1].lower() == "blob"),
            required=frozenset(row[0] for row in rows if row[2] and row[3] is None and row[0] != numbered),
            numbered=numbered,
        )

    def alone(self) -> AbstractContextManager[Transaction]:
        """There is one writer."""
        return self._db.write(durable=True)

    def owning(self, transaction: Transaction, owner: Sequence[Any]) -> AbstractContextManager[None]:
        """There is no wall."""
        del transaction, owner
        return nullcontext()

    def reading(self) -> AbstractContextManager[Transaction]:
        """A read transaction."""
        return self._db.snapshot()

    def damage(self) -> Iterator[Finding]:
        """Pages, indexes and references."""
        for line in self._db.integrity_errors():
            yield Finding(kind="database", detail=f"the database file is damaged: {line}")
        rows = self._db.all(
            'select "table", parent, count(*) from pragma_foreign_key_check group by 1, 2 limit ?', (_FINDINGS_MAX,)
        )
        for table, parent, count in rows:
            yield Finding(kind="reference", detail=f"{count} rows of {table} refer to a {parent} that does not exist")

    def mend(self, finding: Finding) -> bool:
        """Rows whose parent is gone go as they would have gone with it; indexes are made again."""
        if finding.kind == "reference":
            with self._db.write() as connection:
                rows = fetch(connection, 'select distinct "table", rowid, parent, fkid from pragma_foreign_key_check')
                for table, rowid, _, _ in rows:
                    if rowid is not None:
                        connection.execute(f"delete from {table} where rowid = ?", (rowid,))  # noqa: S608  names of the schema
                self._delete_without_rowid(connection, {row[0] for row in rows if row[1] is None})
                return not fetch(connection, "select 1 from pragma_foreign_key_check limit 1")
        with self._db.write() as connection:
            connection.execute("reindex")
        return not self._db.integrity_errors()

    def _delete_without_rowid(self, connection: Transaction, tables: set[str]) -> None:
        for table in sorted(tables):
            keys = self._db.all('select "from", "table", "to" from pragma_foreign_key_list(?)', (table,))
            for column, parent, target in keys:
                connection.execute(
                    f"delete from {table} where {column} is not null and not exists "  # noqa: S608  names of the schema
                    f"(select 1 from {parent} p where p.{target or 'id'} = {table}.{column})"
                )

    def renumber(self, transaction: Transaction, table: Table) -> None:
        """SQLite does so by itself."""

    def compact(self, *, full: bool) -> bool:
        """With `full` write the file anew."""
        return self._db.compact(full=full)

    def empty_log(self) -> bool:
        """Into the file, which overwrites what is deleted."""
        return self._db.checkpoint()

    def size_bytes(self) -> int:
        """File and log."""
        return self._db.file_bytes() + self._db.log_bytes()
