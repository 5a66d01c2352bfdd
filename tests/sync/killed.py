"""The process that is killed: run as a module it forks one child a line of its input (folder, seed), which lives a workload in
a filesystem on disk with a sync engine on it, and tells of every answered operation with a dot. All of it in one thread, so
that it is the same down to the system calls. Its server is in the process that judges, behind a socket in the folder."""

from __future__ import annotations

import os
import pickle
import random
import socket
import socketserver
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from memdir.client.http import Client
from memdir.core.clock import FakeClock
from memdir.fs.cache.filesystem import SqliteFs
from memdir.sync.engine import Engine
from tests.fs import killed, workload
from tests.sync.fake_server import KEY, FakeServer, transport

OPERATIONS = 16
_LENGTH = struct.Struct("<I")
_ROUNDS_MAX = 60
SOCKET = "server.sock"


class Machine:
    """A mount's filesystem in `folder`, and the engine that syncs it."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.clock = FakeClock()
        self.fs = SqliteFs.open(folder, clock=self.clock, uid=1000, gid=1000)
        self.engine = Engine(
            folder=folder, container="c", tree=self.fs, factory=lambda: Client("http://far", KEY, transport=_Far(folder)),
            clock=self.clock, rng=random.Random(seed), host="laptop",
        )  # fmt: skip

    def work(self) -> None:
        """Take in what was done, let the debounce pass, push."""
        self.engine.run_until_idle()
        self.clock.advance(3.0)
        self.engine.run_until_idle()

    def settle(self) -> None:
        """Until nothing waits."""
        for _ in range(_ROUNDS_MAX):
            self.work()
            if not self.engine.status().queue_length:
                return
            self.clock.advance(60.0)
        raise AssertionError(f"not settled: {self.engine.queue_rows(20)} {self.engine.renames(20)}")

    def close(self) -> None:
        self.engine.close()
        self.fs.close()

    def tree(self) -> dict[str, tuple[str, bytes]]:
        """As the server's: kinds and contents by path."""
        found: dict[str, tuple[str, bytes]] = {}
        pending = list(self.fs.children("/"))
        while pending:
            entry = pending.pop()
            if entry.kind == "dir":
                pending.extend(self.fs.children(entry.path))
            content = self.fs.read(entry, 0, entry.size) if entry.kind == "file" else entry.target or b""
            found[entry.path] = (entry.kind, bytes(content))
        return found


def lived(folder: Path, seed: int) -> Iterator[Machine]:
    """Yields the machine after every answered change; closed at the end."""
    rng = random.Random(f"synced {seed}")
    machine = Machine(folder, seed)
    done = 0
    while done < OPERATIONS:
        if workload.step(machine.fs, rng, steps=workload.USERS_STEPS):
            done += 1
            yield machine
        if rng.random() < 0.3:
            machine.work()
    machine.work()
    machine.close()


class _Far(httpx.BaseTransport):
    """To the server in the other process; one connection a request."""

    def __init__(self, folder: Path) -> None:
        self._address = str(folder / SOCKET)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        asked = pickle.dumps((request.method, str(request.url), request.headers.raw, request.read()))
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self._address)
            connection.sendall(_LENGTH.pack(len(asked)) + asked)
            status, headers, content = pickle.loads(_received(connection))
        return httpx.Response(status, headers=headers, content=content)


def _received(connection: socket.socket) -> bytes:
    (length,) = _LENGTH.unpack(connection.recv(_LENGTH.size, socket.MSG_WAITALL))
    return connection.recv(length, socket.MSG_WAITALL)


@contextmanager
def serving(folder: Path, server: FakeServer) -> Iterator[None]:
    """`server` behind the socket in `folder`. A request that arrived is carried out whole, whoever dies meanwhile."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            method, url, headers, content = pickle.loads(_received(self.request))
            answer = transport(server).handle_request(httpx.Request(method, url, headers=headers, content=content))
            told = pickle.dumps((answer.status_code, answer.headers.raw, answer.read()))
            try:
                self.request.sendall(_LENGTH.pack(len(told)) + told)
            except OSError:
                return  # killed before its answer

    with socketserver.UnixStreamServer(str(folder / SOCKET), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            listener.shutdown()
            thread.join(10)


def main() -> None:
    for line in sys.stdin:
        folder, seed = line.rsplit(" ", 1)
        pid = os.fork()
        if not pid:
            os.read(0, 1)  # until the tracer is there
            killed.settle(int(seed))
            for _ in lived(Path(folder), int(seed)):
                os.write(1, b".")
            os._exit(0)
        os.write(1, b"%d\n" % pid)
        os.waitpid(pid, 0)
        os.write(1, b"\n")


if __name__ == "__main__":
    main()
