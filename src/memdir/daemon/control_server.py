"""The daemon's end of the control socket: see `control` for the protocol.

Only this user (and root) is answered: the socket is 0600 in a private folder, and the kernel is asked who is calling
(SO_PEERCRED, unix(7)). A fixed number of threads answers; a slow or silent caller is dropped after a while.
"""

from __future__ import annotations

import json
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError, UsageError
from memdir.core.limits import CONTROL_MESSAGE_MAX_BYTES
from memdir.core.paths import ensure_private_dir

log = logging.getLogger(__name__)

Operation = Callable[[dict[str, Any]], dict[str, Any]]

THREADS: Final = 12
_PENDING_MAX: Final = 64
_REQUEST_TIMEOUT_S: Final = 10.0
_ANSWER_TIMEOUT_S: Final = 30.0
_UCRED = struct.Struct("iII")
"""struct ucred: pid, uid, gid."""


class ControlServer:
    """Answers `operations` by name on the socket `path`."""

    def __init__(self, path: Path, operations: Mapping[str, Operation]) -> None:
        self._path = path
        self._operations = dict(operations)
        self._listener: socket.socket | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._free = threading.BoundedSemaphore(_PENDING_MAX)

    def start(self) -> None:
        """Listen; a stale socket file of a dead daemon is replaced (the caller holds the mount's lock)."""
        ensure_private_dir(self._path.parent)
        self._path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            listener.bind(str(self._path))
            os.chmod(self._path, 0o600)
            listener.listen(_PENDING_MAX)
        except BaseException:
            listener.close()
            raise
        self._listener = listener
        self._pool = ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="control")
        threading.Thread(target=self._accept, args=(listener,), name="control", daemon=True).start()

    def stop(self) -> None:
        """Close the socket; answers under way are finished as far as they can be."""
        if self._listener is None or self._pool is None:
            return
        listener, self._listener = self._listener, None
        try:
            listener.shutdown(socket.SHUT_RDWR)  # wakes accept(2)
        except OSError as error:
            log.debug("control socket: %s", error)
        listener.close()
        self._path.unlink(missing_ok=True)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                if self._listener is None:
                    return  # closed by stop()
                log.exception("the control socket failed")
                time.sleep(0.1)
                continue
            pool = self._pool
            if pool is None or not self._free.acquire(blocking=False):
                connection.close()
                continue
            try:
                pool.submit(self._serve, connection)
            except RuntimeError:  # shut down between
                self._free.release()
                connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection:
                if not _is_allowed(connection):
                    return
                line = _read_line(connection, time.monotonic() + _REQUEST_TIMEOUT_S)
                if line is None:
                    return
                answer = json.dumps(self._answer(line)).encode("ascii") + b"\n"
                if len(answer) > CONTROL_MESSAGE_MAX_BYTES:
                    answer = b'{"ok": false, "error": "the answer is too long", "hint": "ask for less"}\n'
                connection.settimeout(_ANSWER_TIMEOUT_S)
                connection.sendall(answer)
        except OSError as error:
            log.info("a control connection ended early: %s", error)
        finally:
            self._free.release()

    def _parsed(self, line: bytes) -> tuple[Operation, dict[str, Any]]:
        request = json.loads(line)
        if not isinstance(request, dict) or not isinstance(request.get("args", {}), dict):
            raise UsageError("a request is an object with op and args")
        operation = self._operations.get(str(request.get("op")))
        if operation is None:
            raise UsageError(f"unknown operation {request.get('op')!r}")
        return operation, dict(request.get("args") or {})

    def _answer(self, line: bytes) -> dict[str, Any]:
        try:
            operation, args = self._parsed(line)
            return {"ok": True, "result": operation(args)}
        except MemdirError as error:
            return {"ok": False, "error": error.message, "hint": error.hint}
        except ValueError as error:
            return {"ok": False, "error": f"bad request: {error}", "hint": ""}
        except Exception as error:
            log.exception("a control operation failed")
            return {"ok": False, "error": f"internal error: {error!r}", "hint": "see `memdir logs`"}


def _is_allowed(connection: socket.socket) -> bool:
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size)
    pid, uid, _ = _UCRED.unpack(raw)
    if uid in (0, os.getuid()):
        return True
    log.warning("refused a control connection of pid %d, uid %d", pid, uid)
    return False


def _read_line(connection: socket.socket, deadline: float) -> bytes | None:
    """One line without its end; None when the caller went away, was too slow or said too much."""
    data = bytearray()
    while len(data) <= CONTROL_MESSAGE_MAX_BYTES:
        left_s = deadline - time.monotonic()
        if left_s <= 0:
            return None
        connection.settimeout(left_s)
        piece = connection.recv(1 << 16)
        if not piece:
            return None
        data += piece
        if piece.endswith(b"\n"):
            return bytes(data[:-1])
    return None
