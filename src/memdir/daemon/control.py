"""Talking to a mount's daemon: one JSON object a line over a Unix socket, one question and one answer a connection.

Request `{"op": …, "args": {…}}`; answer `{"ok": true, "result": {…}}` or `{"ok": false, "error": …, "hint": …}`. Lines are at
most CONTROL_MESSAGE_MAX_BYTES long. Standard library and `core` only: every `memdir grep` starts with it.
"""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path
from typing import Any, Final

from memdir.core.errors import MemdirError
from memdir.core.limits import CONTROL_MESSAGE_MAX_BYTES

_RECEIVE_BYTES: Final = 1 << 16


class ControlError(MemdirError):
    """The daemon refused or failed; the message is the daemon's own."""


class DaemonGoneError(ControlError):
    """Nobody listens on the socket: the daemon ended or was killed."""


class ControlTimeoutError(ControlError):
    """The daemon did not answer in time; whether the operation happened is not known."""


class ControlClient:
    """One mount's control socket. Holds no connection between calls; may be used from several threads."""

    def __init__(self, socket_file: str | Path) -> None:
        self._socket_file = str(socket_file)

    def call(self, op: str, timeout_s: float, /, **args: Any) -> dict[str, Any]:
        """Run `op` in the daemon and return its result. `timeout_s` bounds the whole exchange; it is positional only, because
        operations have arguments of that name too."""
        deadline = time.monotonic() + timeout_s
        line = json.dumps({"op": op, "args": args}).encode("ascii") + b"\n"
        if len(line) > CONTROL_MESSAGE_MAX_BYTES:
            raise ControlError(f"the request {op} is longer than {CONTROL_MESSAGE_MAX_BYTES} bytes")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            try:
                connection.settimeout(_left(deadline, op))
                connection.connect(self._socket_file)
                connection.sendall(line)
                answer = _receive_line(connection, deadline, op)
            except TimeoutError:
                raise ControlTimeoutError(
                    f"the daemon did not answer {op!r} within {timeout_s:g} s", hint="see `memdir logs`"
                ) from None
            except (FileNotFoundError, ConnectionError) as error:
                raise DaemonGoneError(
                    "the daemon of this mount does not run", hint="mount it again with `memdir mount`; nothing is lost"
                ) from error
            except OSError as error:
                raise ControlError(f"cannot reach the daemon at {self._socket_file}: {error}") from error
        return _result(answer, op)


def _left(deadline: float, op: str) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError(op)
    return left


def _receive_line(connection: socket.socket, deadline: float, op: str) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        connection.settimeout(_left(deadline, op))
        piece = connection.recv(_RECEIVE_BYTES)
        if not piece:
            raise ConnectionResetError("the daemon closed the connection without an answer")
        pieces.append(piece)
        size += len(piece)
        if size > CONTROL_MESSAGE_MAX_BYTES:
            raise ControlError(f"the answer to {op} is longer than {CONTROL_MESSAGE_MAX_BYTES} bytes")
        if piece.endswith(b"\n"):
            return b"".join(pieces)


def _result(line: bytes, op: str) -> dict[str, Any]:
    try:
        answer = json.loads(line)
    except ValueError as error:
        raise ControlError(f"the daemon's answer to {op!r} is not JSON") from error
    if not isinstance(answer, dict):
        raise ControlError(f"the daemon's answer to {op!r} is not an object")
    if answer.get("ok") is True and isinstance(answer.get("result"), dict):
        result: dict[str, Any] = answer["result"]
        return result
    raise ControlError(str(answer.get("error") or f"the daemon failed at {op!r}"), hint=str(answer.get("hint") or ""))
