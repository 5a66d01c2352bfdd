"""Rows of a statement, for code inside a transaction."""

from __future__ import annotations

import apsw

from memdir.core.sqlite import Bindings, Row


def fetch(connection: apsw.Connection, sql: str, bindings: Bindings = ()) -> list[Row]:
    """Run a statement to its end and return all its rows."""
    return list(connection.execute(sql, bindings))
