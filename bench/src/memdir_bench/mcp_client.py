"""A host's side of the Model Context Protocol, for measurements."""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from memdir.agents.installers.commands import mcp_command
from memdir_bench.session import BenchError

_PROTOCOL: Final = "2025-06-18"
_ANSWER_LIMIT_S: Final = 240.0
_END_LIMIT_S: Final = 60.0


class Tools:
    """A host's side of the Model Context Protocol over standard streams: one JSON-RPC message a line."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        self._rest = b""

    def call(self, name: str, arguments: dict[str, Any]) -> tuple[float, dict[str, Any]]:
        """Milliseconds, and the structured result. BenchError when the tool says that it failed."""
        began = time.perf_counter()
        result = self.ask("tools/call", {"name": name, "arguments": arguments})
        if result.get("isError"):
            raise BenchError(f"{name}: {str(result.get('content'))[:300]}")
        found: dict[str, Any] = result["structuredContent"]
        return (time.perf_counter() - began) * 1000, found

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        self._number += 1
        self.tell(method, params, number=self._number)
        deadline = time.monotonic() + _ANSWER_LIMIT_S
        while True:
            message = json.loads(self._line(deadline))
            if message.get("id") != self._number:
                continue
            if "error" in message:
                raise BenchError(f"{method}: {message['error']}")
            result: dict[str, Any] = message["result"]
            return result

    def tell(self, method: str, params: dict[str, Any], *, number: int | None = None) -> None:
        """A request, or without a number a notification."""
        message = {"jsonrpc": "2.0", "method": method, "params": params} | ({} if number is None else {"id": number})
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _line(self, deadline: float) -> bytes:
        assert self._process.stdout is not None
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(0.0, deadline - time.monotonic()))
            piece = os.read(self._process.stdout.fileno(), 1 << 16) if ready else b""
            if not piece:
                raise BenchError("the MCP server " + ("ended" if ready else "gave no answer"))
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line


@contextmanager
def mcp_server(env: Mapping[str, str], place: Path, *options: str) -> Iterator[Tools]:
    """Started as a host starts it, in the folder `place`, with further `options` of `memdir mcp`; at the end its input is
    closed, and it has to end by itself."""
    process = subprocess.Popen(
        [*mcp_command(shared=False), *options], cwd=place, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        tools = Tools(process)
        client = {"name": "memdir-bench", "version": "1"}
        tools.ask("initialize", {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": client})
        tools.tell("notifications/initialized", {})
        yield tools
    finally:
        _ended(process)


def _ended(process: subprocess.Popen[bytes]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.stdout.close()
    try:
        process.wait(timeout=_END_LIMIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise BenchError("an MCP server did not end when its input was closed") from None
