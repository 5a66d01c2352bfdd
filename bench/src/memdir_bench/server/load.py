"""Clients in a process of their own: each a connection that sends the next request when the last one was answered.

The generator shares the machine with the server, so it does as little as it can: bytes are made before, an answer is read up to
its length and not parsed. What it costs all the same is measured and reported beside the server's share. One order of requests
for one seed.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final
from urllib.parse import urlsplit

SAMPLES_MAX: Final = 200_000
WARM_S: Final = 0.5
"""Requests of the first moments are made and not counted."""
_LENGTH: Final = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
QUESTIONS: Final = (
    "who mended the ropes", "protecting fruit from freezing", "medicine handed to the wrong ward", "recovery of a copy",
    "insects that make honey", "marks and certificates of pupils", "music before the performance", "heavy goods lifted",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What to send. `documents` are numbered from 0 in container `tag`, as `put` names them."""

    urls: tuple[str, ...]
    key: str
    kind: str
    clients: int
    seconds: float
    tag: str = "bench"
    documents: int = 1000
    size_bytes: int = 1000
    seed: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What came back. Errors by status, 0 for a broken connection."""

    count: int
    errors: dict[str, int]
    elapsed_s: float
    client_cpu_s: float
    latencies_ms: list[float]

    @property
    def rate(self) -> float:
        return self.count / self.elapsed_s


def path_of(number: int) -> str:
    """Where document `number` stands: a hundred to a folder."""
    return f"/d{number // 100}/f{number}.md"


def requests(load: Load, client: int) -> Callable[[], bytes]:
    """What makes the bytes of a client's next request."""
    chance = random.Random(f"{load.seed} {client}")  # noqa: S311
    head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {load.key}\r\n"

    def with_body(method: str, path: str, body: bytes, kind: str = "application/json") -> bytes:
        start = f"{method} {path} HTTP/1.1\r\n{head}Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
        return start.encode() + body

    def put() -> bytes:
        number = chance.randrange(load.documents)
        content = (f"{chance.random()} " * (load.size_bytes // 20 + 1)).encode()[: load.size_bytes]
        return with_body("PUT", f"/v1/files/put{path_of(number)}?containerTag={load.tag}-puts", content, "text/plain")

    def add() -> bytes:
        text = (f"{chance.random()} " * (load.size_bytes // 20 + 1))[: load.size_bytes]
        return with_body("POST", "/v3/documents", json.dumps({"content": text, "containerTag": f"{load.tag}-adds"}).encode())

    def get() -> bytes:
        number = chance.randrange(load.documents)
        return f"GET /v1/files{path_of(number)}?containerTag={load.tag} HTTP/1.1\r\n{head}\r\n".encode()

    def page() -> bytes:
        body = {"containerTags": [load.tag], "limit": 50, "page": chance.randrange(1, max(2, load.documents // 50))}
        return with_body("POST", "/v3/documents/list", json.dumps(body).encode())

    def search() -> bytes:
        body = {"containerTag": load.tag, "q": f"{chance.choice(QUESTIONS)} {chance.randrange(10**6)}", "limit": 10}
        return with_body("POST", "/v1/search", json.dumps(body).encode())

    def mixed() -> bytes:
        return chance.choice((put, get, get, get, page))()

    return {"put": put, "add": add, "get": get, "list": page, "search": search, "mixed": mixed}[load.kind]


class _Client(asyncio.Protocol):
    """One connection."""

    def __init__(self, make: Callable[[], bytes], record: Callable[[int, float], None], done: asyncio.Future[None]) -> None:
        self._make = make
        self._record = record
        self._done = done
        self._buffer = b""
        self._need = 0
        self._began = 0.0
        self.stopping = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._send()

    def _send(self) -> None:
        self._began = time.perf_counter()
        self._transport.write(self._make())

    def data_received(self, data: bytes) -> None:
        self._buffer = self._buffer + data if self._buffer else data
        if not self._need:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            found = _LENGTH.search(self._buffer, 0, end)
            self._need = end + 4 + (int(found[1]) if found is not None else 0)
        if len(self._buffer) < self._need:
            return
        self._record(int(self._buffer[9:12]), time.perf_counter() - self._began)
        self._buffer, self._need = b"", 0
        if self.stopping:
            self._transport.close()
        else:
            self._send()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if not self.stopping:
            self._record(0, time.perf_counter() - self._began)
        if not self._done.done():
            self._done.set_result(None)


def _always(client: _Client) -> Callable[[], _Client]:
    return lambda: client


async def run(load: Load) -> Measured:
    """Send for `seconds`, after a short warm-up that is not counted."""
    loop = asyncio.get_running_loop()
    samples: list[float] = []
    errors: Counter[str] = Counter()
    counting = False

    def record(status: int, elapsed_s: float) -> None:
        if not 200 <= status < 300:
            errors[str(status)] += 1
        elif counting and len(samples) < SAMPLES_MAX:
            samples.append(elapsed_s * 1000)

    clients: list[_Client] = []
    ends = []
    for number in range(load.clients):
        where = urlsplit(load.urls[number % len(load.urls)])
        done: asyncio.Future[None] = loop.create_future()
        made = _Client(requests(load, number), record, done)
        await loop.create_connection(_always(made), where.hostname or "127.0.0.1", where.port or 80)
        clients.append(made)
        ends.append(done)
    await asyncio.sleep(min(WARM_S, load.seconds / 4))
    counting = True
    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.wait(ends, timeout=load.seconds)
    elapsed_s, used_s = time.perf_counter() - began, time.process_time() - cpu
    counting = False
    for made in clients:
        made.stopping = True
    await asyncio.wait(ends, timeout=10)
    return Measured(count=len(samples), errors=dict(errors), elapsed_s=elapsed_s, client_cpu_s=used_s, latencies_ms=samples)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m memdir_bench.server.load`: a Load as JSON on standard input, a Measured on standard output."""
    del arguments
    given: dict[str, Any] = json.load(sys.stdin)
    measured = asyncio.run(run(Load(**{**given, "urls": tuple(given["urls"])})))
    json.dump(asdict(measured), sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
