"""The TCP server: one port of 127.0.0.1 for NFS and MOUNT, a thread for each connection, and one pool for calls that wait for
contents of the memdir server."""

from __future__ import annotations

import contextlib
import errno
import logging
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from memdir.fs.errors import ContentsAbsentError
from memdir.fs.nfs import mount_protocol, rpc
from memdir.fs.nfs.handles import Handles
from memdir.fs.nfs.procedures import PROGRAM, VERSION, Nfs3
from memdir.fs.nfs.xdr import XdrError
from memdir.fs.source import ContentSource, wait_for

log = logging.getLogger(__name__)

_CONNECTIONS_MAX: Final = 64
_WAITING_MAX: Final = 32
"""Calls that wait for contents at the same time."""
_RUNS_MAX: Final = 8
_BUFFER_BYTES: Final = 1 << 20
_TCP_TABLE: Final = Path("/proc/net/tcp")
_PRIVILEGED_PORTS: Final = 1024

Send = Callable[[bytes], None]


class NfsServer:
    """`start`, then `stop`. `owner_uid` is who mounted: only this user and root are answered."""

    def __init__(
        self,
        nfs: Nfs3,
        handles: Handles,
        *,
        owner_uid: int,
        source: ContentSource | None = None,
        contents_timeout_s: float = 30.0,
    ) -> None:
        self._nfs = nfs
        self._handles = handles
        self._owner_uid = owner_uid
        self._source = source
        self._contents_timeout_s = contents_timeout_s
        self._changing = threading.Lock()
        self._listener: socket.socket | None = None
        self._connections: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._no_waiting = threading.Event()
        self._pool = ThreadPoolExecutor(_WAITING_MAX, thread_name_prefix="nfs-waiting")
        self._clocks: set[int] = set()
        """Of the threads that serve connections."""
        self._ended_cpu_s = 0.0
        self.counts: Counter[str] = Counter()
        self.failures = 0

    def start(self, port: int = 0) -> int:
        """Listen, and return the port."""
        self._listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, name="nfs-accept", daemon=True).start()
        return int(self._listener.getsockname()[1])

    def stop(self) -> None:
        """No call is answered any more."""
        self._stopped.set()
        if self._listener is not None:
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
        with self._lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._pool.shutdown(wait=True, cancel_futures=True)

    def cpu_s(self) -> float:
        """Processor time of the threads that answer."""
        with self._lock:
            return self._ended_cpu_s + sum(map(time.clock_gettime, self._clocks))

    def stop_waiting(self) -> None:
        """Whoever waits for contents is told to come again, now and from now on."""
        self._no_waiting.set()

    def _accept(self) -> None:
        assert self._listener is not None
        while not self._stopped.is_set():
            try:
                connection, peer = self._listener.accept()
            except OSError:
                return
            with self._lock:
                full = len(self._connections) >= _CONNECTIONS_MAX
                if not full:
                    self._connections.add(connection)
            users = frozenset[int]() if full else allowed_users(peer[1], connection.getsockname()[1], self._owner_uid)
            if not users:
                log.warning("refused a connection from port %d", peer[1])
                self._forget(connection)
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(connection, users), name="nfs", daemon=True).start()

    def _forget(self, connection: socket.socket) -> None:
        with self._lock:
            self._connections.discard(connection)
        connection.close()

    def _serve(self, connection: socket.socket, users: frozenset[int]) -> None:
        sending = threading.Lock()

        def send(reply: bytes) -> None:
            with sending, contextlib.suppress(OSError):
                connection.sendall(rpc.framed(reply))

        clock = time.pthread_getcpuclockid(threading.get_ident())
        with self._lock:
            self._clocks.add(clock)
        try:
            for message in _records(connection):
                reply = self._answer(message, users, send)
                if reply is not None:
                    send(reply)
        except (OSError, rpc.NotACallError) as error:
            if not self._stopped.is_set():
                log.info("a connection ends: %s", error)
        except Exception:
            log.exception("a connection failed")
        finally:
            with self._lock:
                self._clocks.discard(clock)
                self._ended_cpu_s += time.thread_time()
            self._forget(connection)

    def _answer(self, message: memoryview, users: frozenset[int], send: Send) -> bytes | None:
        """The reply; None when it comes later. NotACallError for what is none: the stream cannot be trusted any more."""
        try:
            call = rpc.parsed(message)
        except rpc.DeniedError as denied:
            return denied.reply
        if call.procedure and call.caller.uid not in users:
            return rpc.too_weak(call.xid)
        try:
            return self._carried_out(call)
        except ContentsAbsentError as absent:
            if self._source is None:
                return self._failed(call)
            try:
                self._pool.submit(self._later, bytes(message), absent.ino, send)
            except RuntimeError:  # it is being stopped
                return None
            return None

    def _carried_out(self, call: rpc.Call) -> bytes:
        try:
            if call.program == PROGRAM and call.version == VERSION:
                names = self._nfs.names
                self.counts[names[call.procedure] if call.procedure < len(names) else "OTHER"] += 1
                changing = self._changing if call.procedure in Nfs3.CHANGING else contextlib.nullcontext()
                with changing:
                    result = self._nfs.run(call.procedure, call.arguments, call.caller)
            elif call.program == mount_protocol.PROGRAM and call.version == mount_protocol.VERSION:
                result = mount_protocol.run(self._handles, call.procedure, call.arguments, call.caller)
            elif call.program in (PROGRAM, mount_protocol.PROGRAM):
                return rpc.refused(call.xid, rpc.PROG_MISMATCH, low=VERSION, high=VERSION)
            else:
                return rpc.refused(call.xid, rpc.PROG_UNAVAIL)
        except XdrError:
            return rpc.refused(call.xid, rpc.GARBAGE_ARGS)
        except ContentsAbsentError:
            raise
        except Exception:  # noqa: BLE001  a defect costs its call, and is logged
            return self._failed(call)
        return rpc.refused(call.xid, rpc.PROC_UNAVAIL) if result is None else rpc.accepted(call.xid, result)

    def _failed(self, call: rpc.Call) -> bytes:
        self.failures += 1
        log.exception("procedure %d of program %d failed", call.procedure, call.program)
        return rpc.refused(call.xid, rpc.SYSTEM_ERR)

    def _later(self, message: bytes, ino: int, send: Send) -> None:
        """Fetch what is missing and run the call again, until it goes through or nothing comes for too long."""
        call = rpc.parsed(memoryview(message))
        for _run in range(_RUNS_MAX):
            if not self._brought(ino):
                break
            call = rpc.parsed(memoryview(message))
            try:
                send(self._carried_out(call))
                return
            except ContentsAbsentError as absent:
                ino = absent.ino
        # The client asks again after a while, as for a file on a slow tape.
        send(rpc.accepted(call.xid, _JUKEBOX[call.procedure] if call.procedure in _JUKEBOX else _JUKEBOX[6]))

    def _brought(self, ino: int) -> bool:
        assert self._source is not None
        return None is wait_for(
            self._source, ino, silence_max_s=self._contents_timeout_s,
            is_given_up=lambda: self._no_waiting.is_set() or self._stopped.is_set(),
        )  # fmt: skip


_JUKEBOX: Final = {
    procedure: (10008).to_bytes(4, "big") + b"\0\0\0\0" * (2 if procedure in Nfs3.CHANGING else 1) for procedure in range(1, 22)
}
"""NFS3ERR_JUKEBOX with no attributes, in the shape of each procedure that may have to wait."""


def _records(connection: socket.socket) -> Iterator[memoryview]:
    """Whole messages, put together from their fragments (RFC 5531, section 11). OSError for one that is too long."""
    buffer = b""
    before = b""
    """Fragments of a message that goes on."""
    while True:
        at = 0
        while len(buffer) - at >= 4:
            mark = int.from_bytes(buffer[at : at + 4], "big")
            end = at + 4 + (mark & ~rpc.LAST_FRAGMENT)
            if len(before) + end - at > rpc.MESSAGE_MAX_BYTES:
                raise OSError(errno.EMSGSIZE, f"a message of more than {rpc.MESSAGE_MAX_BYTES} bytes")
            if len(buffer) < end:
                break
            piece = memoryview(buffer)[at + 4 : end]
            if not mark & rpc.LAST_FRAGMENT:
                before += piece
            else:
                yield memoryview(before + piece) if before else piece
                before = b""
            at = end
        more = connection.recv(_BUFFER_BYTES)
        if not more:
            return
        buffer = buffer[at:] + more if at < len(buffer) else more


def allowed_users(peer_port: int, port: int, owner_uid: int) -> frozenset[int]:
    """Whose calls are believed of a connection on this machine: of root's (the kernel's own client is) the owner's and root's,
    of the owner's the owner's alone, of any other nobody's. Where the system does not tell whose it is, a port that only root
    may use is root's."""
    uid = peer_uid(peer_port, port)
    if uid == 0 or (uid is None and peer_port < _PRIVILEGED_PORTS):
        return frozenset({0, owner_uid})
    return frozenset({owner_uid}) if uid == owner_uid else frozenset()


def peer_uid(peer_port: int, port: int) -> int | None:
    """Whose a TCP connection from `peer_port` to `port` on 127.0.0.1 is, by the table of the kernel (proc(5))."""
    try:
        rows = _TCP_TABLE.read_text().splitlines()[1:]
    except OSError:
        return None
    wanted = (f"0100007F:{peer_port:04X}", f"0100007F:{port:04X}")
    for row in rows:
        fields = row.split()
        if (fields[1], fields[2]) == wanted:
            return int(fields[7])
    return None
