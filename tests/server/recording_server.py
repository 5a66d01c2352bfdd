"""`python -m tests.server.recording_server FILE …`: a server process that writes every SQL statement that it runs on its
database into FILE, each once: SQLite's as JSON lines, PostgreSQL's pickled, with the bindings that it first had and for whom
it ran."""

from __future__ import annotations

import json
import os
import pickle
import sys
import threading
from typing import Any

import apsw

from memdir.server.__main__ import main


def record(path: str) -> None:
    """From now on, in connections that are opened later."""
    seen: set[str] = set()
    lock = threading.Lock()
    out = open(path, "a", encoding="utf-8", buffering=1)  # noqa: SIM115  as long as the process

    def told(_cursor: Any, sql: str, _bindings: Any) -> bool:
        with lock:
            if sql not in seen:
                seen.add(sql)
                out.write(json.dumps(sql) + "\n")
        return True

    def opened(connection: apsw.Connection) -> None:
        if connection.filename.endswith("memdir.db"):
            connection.exec_trace = told

    apsw.connection_hooks.append(opened)


def record_postgres(path: str) -> None:
    """From now on, in every transaction."""
    from memdir.store.acting import SYSTEM, acting
    from memdir.store.postgres.database import PostgresTransaction

    seen: set[str] = set()
    lock = threading.Lock()
    out = open(path, "ab", buffering=0)  # noqa: SIM115  as long as the process
    execute, executemany = PostgresTransaction.execute, PostgresTransaction.executemany

    def told(sql: str, bindings: Any) -> None:
        with lock:
            if sql not in seen:
                seen.add(sql)
                out.write(pickle.dumps((sql, bindings, acting() or SYSTEM)))

    def executed(self: PostgresTransaction, statement: str, bindings: Any = (), /) -> Any:
        told(statement, bindings)
        return execute(self, statement, bindings)

    def executed_many(self: PostgresTransaction, statement: str, bindings: Any, /) -> None:
        every = list(bindings)
        for one in every[:1]:
            told(statement, one)
        executemany(self, statement, every)

    PostgresTransaction.execute = executed  # type: ignore[method-assign]
    PostgresTransaction.executemany = executed_many  # type: ignore[method-assign]


if __name__ == "__main__":
    (record_postgres if os.environ.get("MEMDIR_DATABASE_URL") else record)(sys.argv.pop(1))
    sys.exit(main())
