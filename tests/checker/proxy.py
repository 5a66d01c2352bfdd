"""A network between a mount and its server that goes wrong by a seeded plan: it understands HTTP/1.1 just enough to know where
a request and its answer begin and end.

One thread a connection, at most CONNECTIONS_MAX; a fresh connection to the server for every exchange, so that what was cut in
the middle of one cannot reach the next.
"""

from __future__ import annotations

import random
import socket
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Final

CONNECTIONS_MAX: Final = 64
_HEAD_MAX_BYTES: Final = 1 << 16
_PIECE_BYTES: Final = 1 << 16
_IDLE_S: Final = 60.0


class Fault(Enum):
    """What happens to one exchange."""

    NONE = "none"
    DELAY = "delay"
    REFUSE = "refuse"
    """The connection ends before the server hears of it."""
    CUT_REQUEST = "cut request"
    """The server gets half of the body."""
    LOSE_ANSWER = "lose answer"
    CUT_ANSWER = "cut answer"
    REPEAT = "repeat"
    """The server gets the request twice, the client the second answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Weather:
    """How often what goes wrong, in exchanges of a thousand."""

    delay: int = 0
    refuse: int = 0
    cut_request: int = 0
    lose_answer: int = 0
    cut_answer: int = 0
    repeat: int = 0
    delay_max_s: float = 0.4

    def choose(self, rng: random.Random) -> Fault:
        number = rng.randrange(1000)
        for fault, share in (
            (Fault.DELAY, self.delay), (Fault.REFUSE, self.refuse), (Fault.CUT_REQUEST, self.cut_request),
            (Fault.LOSE_ANSWER, self.lose_answer), (Fault.CUT_ANSWER, self.cut_answer), (Fault.REPEAT, self.repeat),
        ):  # fmt: skip
            number -= share
            if number < 0:
                return fault
        return Fault.NONE


CALM: Final = Weather()
ROUGH: Final = Weather(delay=150, refuse=30, cut_request=30, lose_answer=40, cut_answer=30, repeat=40)


class _EndedError(Exception):
    """One side closed the connection."""


class Proxy:
    """Listens on a port of its own at 127.0.0.1 for connections to `upstream`. `weather` may be changed any time."""

    def __init__(self, upstream: tuple[str, int], *, seed: int, weather: Weather = CALM) -> None:
        self.upstream, self.weather = upstream, weather
        self.faults: Counter[Fault] = Counter()
        self._rng = random.Random(seed)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._open: set[socket.socket] = set()
        self._is_cut = False
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._acceptor = threading.Thread(target=self._accept, name="proxy", daemon=True)
        self._acceptor.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def cut(self) -> None:
        """The network is gone: what is open ends, nothing new gets through."""
        self._is_cut = True
        self._drop_all()

    def heal(self) -> None:
        self._is_cut, self.weather = False, CALM

    def join_again(self) -> None:
        """After a `cut`, with the weather as it was."""
        self._is_cut = False

    def close(self) -> None:
        self._stopping.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._drop_all()
        for thread in (self._acceptor, *self._threads):
            thread.join(10)
            assert not thread.is_alive()

    def _drop_all(self) -> None:
        with self._lock:
            held = list(self._open)
        for connection in held:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue  # it has ended by itself

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            if self._is_cut or len(self._threads) >= CONNECTIONS_MAX:
                connection.close()
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), name="proxy-connection", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(_IDLE_S)
        self._hold(client)
        try:
            reader = _Reader(client)
            while not self._is_cut and self._exchange(client, reader):
                pass
        except (OSError, _EndedError):
            pass  # one of the two has gone: so does the other
        finally:
            self._let_go(client)

    def _exchange(self, client: socket.socket, reader: _Reader) -> bool:
        """One request and its answer; False when the connection is to end."""
        head = reader.head()
        body = reader.body(head)
        with self._lock:
            fault = self.weather.choose(self._rng)
            delay_s = self._rng.uniform(0, self.weather.delay_max_s)
            share = self._rng.random()
            self.faults[fault] += 1
        if fault is Fault.DELAY and self._stopping.wait(delay_s):
            return False
        if fault is Fault.REFUSE:
            return False
        if fault is Fault.CUT_REQUEST:
            self._ask(head + body[: int(len(body) * share)], None)
            return False
        if fault is Fault.REPEAT:
            self._ask(head + body, _ignore)
        if fault is Fault.LOSE_ANSWER:
            self._ask(head + body, _ignore)
            return False
        if fault is Fault.CUT_ANSWER:
            held: list[bytes] = []
            self._ask(head + body, held.append)
            whole = b"".join(held)
            client.sendall(whole[: int(len(whole) * share)])
            return False
        return self._ask(head + body, client.sendall)

    def _ask(self, request: bytes, answer: Callable[[bytes], object] | None) -> bool:
        """Send to the server and pass the answer on as it comes; with None nothing is waited for. Whether the answer had an
        end of its own, so that the client can go on."""
        with socket.create_connection(self.upstream, timeout=_IDLE_S) as server:
            self._hold(server)
            try:
                server.sendall(request)
                if answer is None:
                    return False
                reader = _Reader(server)
                head = reader.head()
                answer(head)
                return reader.pass_body(head, answer)
            finally:
                self._let_go(server)

    def _hold(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.add(connection)

    def _let_go(self, connection: socket.socket) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.close()


class _Reader:
    """Bytes of one connection, cut where HTTP cuts them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._held = b""

    def _more(self) -> None:
        piece = self._connection.recv(_PIECE_BYTES)
        if not piece:
            raise _EndedError
        self._held += piece

    def _take(self, count: int) -> bytes:
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def _until(self, mark: bytes) -> bytes:
        while mark not in self._held:
            if len(self._held) > _HEAD_MAX_BYTES:
                raise _EndedError
            self._more()
        return self._take(self._held.index(mark) + len(mark))

    def head(self) -> bytes:
        return self._until(b"\r\n\r\n")

    def body(self, head: bytes) -> bytes:
        held: list[bytes] = []
        if _length(head) is not None or _is_chunked(head):
            self.pass_body(head, held.append)
        return b"".join(held)

    def pass_body(self, head: bytes, take: Callable[[bytes], object]) -> bool:
        if head.split(b" ", 2)[1:2] in ([b"204"], [b"304"]):
            return True
        if _is_chunked(head):
            while True:
                line = self._until(b"\r\n")
                size = int(line.split(b";")[0], 16)
                take(line)
                self._pass(size + 2, take)
                if not size:
                    return True
        length = _length(head)
        if length is None:
            self._pass_rest(take)
            return False
        self._pass(length, take)
        return b"connection: close" not in head.lower()

    def _pass(self, count: int, take: Callable[[bytes], object]) -> None:
        while count:
            if not self._held:
                self._more()
            piece = self._take(count)
            take(piece)
            count -= len(piece)

    def _pass_rest(self, take: Callable[[bytes], object]) -> None:
        try:
            while True:
                if self._held:
                    take(self._take(len(self._held)))
                self._more()
        except _EndedError:
            return


def _length(head: bytes) -> int | None:
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    return None


def _is_chunked(head: bytes) -> bool:
    return b"transfer-encoding: chunked" in head.lower()


def _ignore(_: bytes) -> None:
    return
