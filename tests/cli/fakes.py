"""A mount without a kernel: a real registry record, a held lock, and a control socket that answers what a test says."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from memdir.core.errors import MemdirError
from memdir.core.paths import app_paths
from memdir.daemon.registry import MountLock, MountRecord, MountRegistry, MountSpec

Handler = Callable[[dict[str, Any]], dict[str, Any]]


class FakeMount:
    """Looks alive to every command: this process is its daemon. Answers operations by `handlers`, records them in `calls`."""

    def __init__(self, name: str, path: Path, handlers: dict[str, Handler], **options: Any) -> None:
        path.mkdir(parents=True, exist_ok=True)
        self.path = path
        self.handlers = handlers
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.registry = MountRegistry(app_paths())
        record = self.registry.allocate(MountSpec(name=name, path=str(path), **options))
        self._lock = MountLock.acquire(record.lock_file)
        self.record: MountRecord = dataclasses.replace(record, pid=os.getpid())
        self.registry.save(self.record)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(self.record.socket_file)
        self._listener.listen(8)
        self._thread = threading.Thread(target=self._serve, name="fake-daemon")
        self._thread.start()

    def _serve(self) -> None:
        while True:
            connection, _ = self._listener.accept()
            with connection, connection.makefile("rb") as lines:
                line = lines.readline()
                if not line:
                    return
                connection.sendall(json.dumps(self._answer(json.loads(line))).encode() + b"\n")

    def _answer(self, request: dict[str, Any]) -> dict[str, Any]:
        self.calls.append((request["op"], request["args"]))
        handler = self.handlers.get(request["op"])
        if handler is None:
            return {"ok": False, "error": f"unknown operation {request['op']}", "hint": "none"}
        try:
            return {"ok": True, "result": handler(request["args"])}
        except MemdirError as error:
            return {"ok": False, "error": error.message, "hint": error.hint}

    def die(self) -> None:
        """As after kill -9: the lock is free, the record still names a process, nobody listens."""
        self._stop_listening()
        self._lock.release()

    def close(self) -> None:
        self.die()
        Path(self.record.socket_file).unlink(missing_ok=True)

    def _stop_listening(self) -> None:
        if not self._thread.is_alive():
            return
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as wake:
            wake.connect(self.record.socket_file)  # a connection without a request ends the thread
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._listener.close()


def hit(
    path: str, *, line: int = 1, last: int | None = None, text: str = "text", kind: str = "chunk", **more: Any
) -> dict[str, Any]:
    """One search hit as the daemon sends it."""
    return {
        "path": path,
        "document_id": "D1",
        "kind": kind,
        "start_line": line,
        "end_line": last if last is not None else line,
        "text": text,
        "score": 0.5,
        "title": None,
        **more,
    }


def found(*hits: dict[str, Any], **more: Any) -> Handler:
    """A grep handler that always answers these hits."""
    answer = {"hits": list(hits), "pending": [], "offline": False, "note": None, "timing_ms": 1.0, **more}
    return lambda args: answer
