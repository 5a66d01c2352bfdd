"""A TCP proxy between mounts and their server that counts: bytes each way, and requests."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

_PIECE_BYTES: Final = 1 << 16
_REQUEST: Final = b" HTTP/1.1\r\n"
"""The end of a request line. Contents travel in base64 or as random bytes and do not hold it."""
_ACCEPT_S: Final = 0.2
_JOIN_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """What went through so far. `sent` is from the mounts to the server."""

    sent_bytes: int = 0
    received_bytes: int = 0
    requests: int = 0

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(
            sent_bytes=self.sent_bytes - other.sent_bytes,
            received_bytes=self.received_bytes - other.received_bytes,
            requests=self.requests - other.requests,
        )


class CountingProxy:
    """Two threads a connection; a mount keeps at most 16 connections."""

    def __init__(self, server_url: str) -> None:
        parts = urlsplit(server_url)
        self._target = (parts.hostname or "127.0.0.1", parts.port or 80)
        self._lock = threading.Lock()
        self._traffic = Traffic()
        self._open: dict[tuple[socket.socket, socket.socket], threading.Thread] = {}
        self._stopping = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(_ACCEPT_S)
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._thread.start()

    def traffic(self) -> Traffic:
        with self._lock:
            return self._traffic

    def close(self) -> None:
        """End every connection."""
        self._stopping.set()
        self._thread.join(_JOIN_S)
        self._listener.close()
        with self._lock:
            left = dict(self._open)
        for (near, far), thread in left.items():
            _shut(near, far)
            thread.join(_JOIN_S)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                near, _ = self._listener.accept()
            except TimeoutError:
                continue
            try:
                far = socket.create_connection(self._target)
            except OSError:  # the server is away: so are we
                near.close()
                continue
            thread = threading.Thread(target=self._serve, args=(near, far), daemon=True)
            with self._lock:
                self._open[near, far] = thread
            thread.start()

    def _serve(self, near: socket.socket, far: socket.socket) -> None:
        """One connection, until both sides are done."""
        with near, far:
            near.settimeout(None)
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            back = threading.Thread(target=self._carry, args=(far, near, False), daemon=True)
            back.start()
            self._carry(near, far, True)
            back.join()
        with self._lock:
            del self._open[near, far]

    def _carry(self, source: socket.socket, to: socket.socket, is_sent: bool) -> None:
        tail = b""
        try:
            while piece := source.recv(_PIECE_BYTES):
                requests = 0
                if is_sent:
                    seen = tail + piece
                    requests, tail = seen.count(_REQUEST), seen[1 - len(_REQUEST) :]
                self._count(len(piece), requests, is_sent)
                to.sendall(piece)
        except OSError:
            return  # one side broke off; the other learns of it below
        finally:
            _shut(source, to)

    def _count(self, size_bytes: int, requests: int, is_sent: bool) -> None:
        with self._lock:
            known = self._traffic
            self._traffic = Traffic(
                sent_bytes=known.sent_bytes + size_bytes * is_sent,
                received_bytes=known.received_bytes + size_bytes * (not is_sent),
                requests=known.requests + requests,
            )


def _shut(*ends: socket.socket) -> None:
    for end in ends:
        with suppress(OSError):  # it is gone already
            end.shutdown(socket.SHUT_RDWR)


@contextmanager
def counting_proxy(server_url: str) -> Iterator[CountingProxy]:
    """A proxy that ends with the block."""
    proxy = CountingProxy(server_url)
    try:
        yield proxy
    finally:
        proxy.close()
