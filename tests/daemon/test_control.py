"""The control socket: one question, one answer, and nobody can hurt the daemon with it."""

from __future__ import annotations

import json
import os
import socket
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memdir.core.errors import MemdirError
from memdir.core.limits import CONTROL_MESSAGE_MAX_BYTES
from memdir.daemon.control import ControlClient, ControlError, ControlTimeoutError, DaemonGoneError
from memdir.daemon.control_server import ControlServer


@pytest.fixture
def hold() -> threading.Event:
    return threading.Event()


@pytest.fixture
def served(tmp_path: Path, hold: threading.Event) -> Iterator[Path]:
    def fail(_: dict[str, Any]) -> dict[str, Any]:
        raise MemdirError("it cannot be", hint="do something else")

    def wait(_: dict[str, Any]) -> dict[str, Any]:
        hold.wait(20.0)
        return {}

    def crash(_: dict[str, Any]) -> dict[str, Any]:
        raise ZeroDivisionError

    path = tmp_path / "run" / "m.sock"
    server = ControlServer(path, {"echo": lambda args: args, "fail": fail, "crash": crash, "wait": wait})
    server.start()
    yield path
    hold.set()
    server.stop()


def test_arguments_go_there_and_come_back_whatever_they_contain(served: Path) -> None:
    args = {"text": "naïve \udcff \n\0 日本", "list": [1, None, {"a": 2.5}], "flag": True}
    assert ControlClient(served).call("echo", 5.0, **args) == args


def test_an_error_keeps_its_message_and_hint(served: Path) -> None:
    with pytest.raises(ControlError, match="it cannot be") as caught:
        ControlClient(served).call("fail", 5.0)
    assert caught.value.hint == "do something else"


def test_a_defect_in_an_operation_is_an_answer_and_the_server_lives(served: Path) -> None:
    with pytest.raises(ControlError, match="internal error"):
        ControlClient(served).call("crash", 5.0)
    assert ControlClient(served).call("echo", 5.0, a=1) == {"a": 1}


def test_an_unknown_operation_is_refused(served: Path) -> None:
    with pytest.raises(ControlError, match="unknown operation"):
        ControlClient(served).call("nothing", 5.0)


def test_a_slow_answer_is_a_timeout(served: Path) -> None:
    with pytest.raises(ControlTimeoutError):
        ControlClient(served).call("wait", 0.1)


def test_a_missing_daemon_is_said_to_be_gone(tmp_path: Path) -> None:
    with pytest.raises(DaemonGoneError):
        ControlClient(tmp_path / "no.sock").call("echo", 1.0)


def test_the_socket_of_a_killed_daemon_is_said_to_be_gone_and_replaced_by_the_next(tmp_path: Path) -> None:
    path = tmp_path / "m.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(path))
    with pytest.raises(DaemonGoneError):
        ControlClient(path).call("echo", 1.0)
    server = ControlServer(path, {"echo": lambda args: args})
    server.start()
    assert ControlClient(path).call("echo", 5.0) == {}
    server.stop()
    assert not path.exists()


def test_the_socket_is_private(served: Path) -> None:
    assert stat.S_IMODE(served.stat().st_mode) == 0o600
    assert stat.S_IMODE(served.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("line", [b"\n", b"[]\n", b"{\n", b"null\n", b'{"op": 1, "args": 2}\n', b"\xff\xfe\n", b'{"op": {}}\n'])
def test_nonsense_gets_an_error_and_the_server_lives(served: Path, line: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(5.0)
        connection.connect(str(served))
        connection.sendall(line)
        assert json.loads(connection.recv(65536))["ok"] is False
    assert ControlClient(served).call("echo", 5.0, a=1) == {"a": 1}


def test_silent_callers_block_nobody(served: Path) -> None:
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(8)]
    try:
        for connection in silent:
            connection.connect(str(served))
        assert ControlClient(served).call("echo", 5.0, a=1) == {"a": 1}
    finally:
        for connection in silent:
            connection.close()


def test_callers_at_once_all_get_their_own_answer(served: Path) -> None:
    answers: dict[int, dict[str, Any]] = {}

    def ask(number: int) -> None:
        answers[number] = ControlClient(served).call("echo", 20.0, number=number)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(30)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30.0)
    assert answers == {number: {"number": number} for number in range(30)}


def test_a_request_that_is_too_long_is_refused_before_it_is_sent(served: Path) -> None:
    with pytest.raises(ControlError, match="longer than"):
        ControlClient(served).call("echo", 5.0, text="x" * CONTROL_MESSAGE_MAX_BYTES)


def test_the_control_modules_load_nothing_heavy() -> None:
    import subprocess
    import sys

    code = (
        "import sys; import memdir.daemon.registry, memdir.daemon.control, memdir.client.local; "
        "print([m for m in ('httpx', 'pydantic', 'apsw', 'numpy', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.strip() == "[]"
