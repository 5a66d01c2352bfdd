"""An MCP server on standard streams ends with its host, whichever way that ends."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp_types import INVALID_REQUEST, PARSE_ERROR

from memdir.core.processes import process as process_of
from memdir.core.processes import wait_for_end

END_S = 10.0
"""It takes half a second; the rest is for a busy machine."""
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
# A host: starts the server on the descriptors it got, tells its pid, and lives until it is killed.
HOST = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-m", "memdir.cli", "mcp"], stdin=int(sys.argv[1]), stdout=int(sys.argv[2]))
print(child.pid, flush=True)
child.wait()
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No memory server, and none is started."""
    home = {"MEMDIR_HOME": str(tmp_path), "MEMDIR_SERVER_URL": "http://127.0.0.1:9", "MEMDIR_API_KEY": "md_nobody"}
    return {**os.environ, **home}


@pytest.fixture
def pipes() -> Iterator[tuple[int, int, int, int]]:
    """Two pipes that stay open here whatever happens to the host: (read, write) to the server, (read, write) from it."""
    ends = (*os.pipe(), *os.pipe())
    yield ends
    for end in ends:
        os.close(end)


def answer(descriptor: int) -> dict[str, object]:
    """The next message of the server."""
    raw = b""
    while not raw.endswith(b"\n"):
        assert select.select([descriptor], [], [], 60)[0], "the server does not answer"
        raw += os.read(descriptor, 65536)
    message = json.loads(raw)
    assert isinstance(message, dict)
    return message


@pytest.mark.promise("agent.mcp-parent")
def test_a_server_whose_host_was_killed_ends_although_its_standard_input_stays_open(
    environment: dict[str, str], pipes: tuple[int, int, int, int]
) -> None:
    its_input, to_it, from_it, its_output = pipes
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(its_input), str(its_output)], env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, pass_fds=(its_input, its_output),
    )  # fmt: skip
    assert host.stdout is not None
    with host:
        handle = os.pidfd_open(int(host.stdout.readline()))
        try:
            os.write(to_it, json.dumps(INITIALIZE).encode() + b"\n")
            assert answer(from_it)["id"] == 1
            host.send_signal(signal.SIGKILL)
            host.wait()
            assert wait_for_end(handle, END_S)
        finally:
            if not wait_for_end(handle, 0):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)


@pytest.mark.promise("agent.mcp-parent")
def test_a_server_whose_standard_input_is_closed_ends_with_exit_code_zero_and_nothing_but_the_protocol_on_its_output(
    environment: dict[str, str],
) -> None:
    """Lines that are no messages are errors, with the id where there is one: their writer may wait for an answer."""
    command = [sys.executable, "-m", "memdir.cli", "mcp"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        lines = [
            b"this is no message",
            b"",
            b"\xff{",
            b'[{"jsonrpc":"2.0","id":2,"method":"ping"}]',
            b'{"id":3,"method":"ping"}',
        ]
        server.stdin.write(b"\n".join([*lines, json.dumps(INITIALIZE).encode(), b""]))
        server.stdin.flush()
        messages = [json.loads(server.stdout.readline()) for _ in range(5)]
        refused = [(message["id"], message["error"]["code"]) for message in messages[:-1]]
        assert refused == [(None, PARSE_ERROR), (None, PARSE_ERROR), (None, INVALID_REQUEST), (3, INVALID_REQUEST)]
        assert messages[-1]["id"] == 1
        pid = server.pid
        server.stdin.close()
        assert server.stdout.read() == b""
        assert server.wait(timeout=END_S) == 0
    assert all(message["jsonrpc"] == "2.0" for message in messages)
    assert process_of(pid) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_server_ends_when_its_host_asks_it_to_by_a_signal(environment: dict[str, str], number: signal.Signals) -> None:
    """While a thread waits for the next message; Python's own handling of SIGINT would wait for that thread."""
    command = [sys.executable, "-m", "memdir.cli", "mcp"]
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:  # fmt: skip
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
        server.stdin.flush()
        assert answer(server.stdout.fileno())["id"] == 1
        server.send_signal(number)
        try:
            assert server.wait(timeout=END_S) == -number
        finally:
            server.kill()
