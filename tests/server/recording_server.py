"""`python -m tests.server.recording_server FILE …`: a server process that writes every SQL statement that it runs
on its SQLite database into FILE, each once, as JSON lines."""

from __future__ import annotations

import json
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


if __name__ == "__main__":
    record(sys.argv.pop(1))
    sys.exit(main())
