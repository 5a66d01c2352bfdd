"""What is measured on one store. Each part takes a fixture and gives figures, named `STORE.WHAT`."""

from __future__ import annotations

import base64
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Final

import httpx

from memdir_bench.figures import Figure, percentile
from memdir_bench.server.fixtures import Fixture
from memdir_bench.server.goals import figure
from memdir_bench.server.load import Measured, path_of
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

KINDS: Final = ("put", "add", "get", "list", "search")
TAG: Final = "bench"
SETTLE_LIMIT_S: Final = 1800.0
_BATCH: Final = 200
_PIPED_FROM: Final = 1_000_000
"""First number of the documents of `pipeline`: no other part has posted their texts, whose vectors would be known."""
_POLL_S: Final = 0.1
_FORGET_TRIES_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """How much work."""

    seconds: float = 5.0
    clients: tuple[int, ...] = (1, 16, 64)
    documents: int = 1000
    piped: int = 200
    deliveries: int = 200
    long_s: float = 60.0
    grow: tuple[int, ...] = ()


QUICK: Final = Sizes(seconds=0.5, clients=(1, 4), documents=100, piped=10, deliveries=10, long_s=1.0)
GROW: Final = (1_000, 10_000, 100_000)
QUICK_GROW: Final = (100, 300)


def fill(fixture: Fixture, first: int, last: int, *, tag: str = TAG, text: bool = True) -> None:
    """Documents `first` to `last`; without `text` such that the pipeline has next to nothing to do."""
    with fixture.client() as client:
        for start in range(first, last, _BATCH):
            operations = [
                {"op": "put", "path": path_of(number), "contentBase64": base64.b64encode(_content(number, text)).decode()}
                for number in range(start, min(last, start + _BATCH))
            ]
            answer = client.post("/v1/files:batch", json={"containerTag": tag, "operations": operations})
            _expect(answer)


def _content(number: int, text: bool) -> bytes:
    if not text:
        return b"\0%d" % number
    lines = [f"Note {number}, line {line}: {_WORDS[(number * 7 + line) % len(_WORDS)]}." for line in range(12)]
    return ("# Note\n\n" + "\n".join(lines)).encode()


_WORDS: Final = (
    "the ropes of the ship were mended by Ida", "frost came early and the blossoms were covered", "the copy was recovered",
    "bees had left the hive by noon", "certificates were handed to the pupils", "the crane lifted the stage lamps",
    "medicine went to the wrong ward and came back", "the budget was spoken of for three hours",
)  # fmt: skip


def settle(fixture: Fixture, tag: str = TAG) -> float:
    """Wait until nothing of the container is in the pipeline; how long that took, s."""
    began = time.monotonic()
    with fixture.client() as client:
        while time.monotonic() < began + SETTLE_LIMIT_S:
            answer = client.get("/v3/documents/processing", params={"containerTag": tag})
            _expect(answer)
            if answer.json()["totalCount"] == 0:
                return time.monotonic() - began
            time.sleep(_POLL_S)
    raise BenchError(f"the pipeline did not come to an end within {SETTLE_LIMIT_S:.0f} s")


def requests(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Rate, latency and processor time of each kind at each number of clients."""
    fill(fixture, 0, sizes.documents)
    settle(fixture)
    for kind in KINDS:
        for clients in sizes.clients:
            progress(f"{fixture.store}: {kind} with {clients} clients")
            measured, server_ms = fixture.load(kind, clients, sizes.seconds, documents=sizes.documents)
            yield from _request_figures(f"{fixture.store}.{kind}_{clients}", measured, server_ms)
            for tag in (f"{TAG}-puts", f"{TAG}-adds"):
                _forget(fixture, tag)


def _request_figures(name: str, measured: Measured, server_ms: float) -> Iterator[Figure]:
    note = f"errors: {measured.errors}" if measured.errors else ""
    count = measured.count
    yield figure(f"{name}_rate", measured.rate, "1/s", samples=count, better="higher", note=note)
    for share in (50, 95, 99):
        yield figure(f"{name}_p{share}", percentile(measured.latencies_ms, share / 100), "ms", samples=count)
    yield figure(f"{name}_server_cpu", server_ms, "ms", samples=count, note="processor time of the server for one request")
    yield figure(f"{name}_client_cpu", measured.client_cpu_s * 1000 / count, "ms", samples=count)


def _forget(fixture: Fixture, tag: str) -> None:
    """What puts left in the pipeline would be paid for by the next measurement."""
    with fixture.client() as client:
        for _ in range(_FORGET_TRIES_MAX):
            answer = client.delete(f"/v3/container-tags/{tag}")
            if answer.status_code != 503:  # workers were writing there at the same time
                break
        if answer.status_code != 404:
            _expect(answer)


def pipeline(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Documents through the whole pipeline, and what one takes of the processor. None of their texts is known by then."""
    tag = f"{TAG}-pipe"
    progress(f"{fixture.store}: {sizes.piped} documents through the pipeline")
    cpu_before, began = fixture.cpu_s(), time.monotonic()
    fill(fixture, _PIPED_FROM, _PIPED_FROM + sizes.piped, tag=tag)
    settle(fixture, tag)
    elapsed_s = time.monotonic() - began
    name = f"{fixture.store}.pipeline"
    yield figure(f"{name}_rate", sizes.piped / elapsed_s, "1/s", samples=sizes.piped, better="higher", note="0.6 KB each")
    yield figure(f"{name}_cpu", (fixture.cpu_s() - cpu_before) * 1000 / sizes.piped, "ms", samples=sizes.piped)
    yield figure(f"{fixture.store}.resident", fixture.resident_mib(), "MiB", samples=1)


def deliveries(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """From the answer to a put to the arrival of the change at somebody who waits for it (a change that comes before the
    answer counts as 0)."""
    tag = f"{TAG}-feed"
    fill(fixture, 0, 1, tag=tag, text=False)
    arrived: dict[int, float] = {}
    more = threading.Condition()

    def listen() -> None:
        since = 0
        with fixture.client() as client:
            while since <= sizes.deliveries:
                answer = client.get("/v1/changes", params={"containerTag": tag, "since": since, "wait": 10})
                now = time.perf_counter()
                page = answer.json()
                if not page["changes"]:
                    return
                with more:
                    arrived.update((change["seq"], now) for change in page["changes"])
                    since = max(arrived)
                    more.notify_all()

    listener = threading.Thread(target=listen, name="bench-feed")
    listener.start()
    waits = []
    with fixture.client() as client:
        for number in range(sizes.deliveries):
            answer = client.put(f"/v1/files/n{number}", params={"containerTag": tag}, content=b"\0")
            answered = time.perf_counter()
            _expect(answer)
            seq = answer.json()["revision"]
            with more:
                if not more.wait_for(partial(arrived.__contains__, seq), timeout=10):
                    raise BenchError(f"change {seq} was not delivered within 10 s")
            waits.append(max(0.0, arrived[seq] - answered) * 1000)
    listener.join(timeout=30)
    for share in (50, 95, 99):
        name = f"{fixture.store}.changes_delivered_p{share}"
        yield figure(name, percentile(waits, share / 100), "ms", samples=len(waits))


def a_minute(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """64 clients that read, list and write, and what the memory does meanwhile."""
    clients = sizes.clients[-1]
    fill(fixture, 0, sizes.documents)
    settle(fixture)
    fixture.load("search", 1, sizes.seconds)  # models are loaded, whatever part came before
    progress(f"{fixture.store}: {clients} clients for {sizes.long_s:.0f} s")
    fixture.load("mixed", clients, sizes.long_s / 4, documents=sizes.documents)  # caches and arenas get their size
    before = fixture.resident_mib()
    measured, _ = fixture.load("mixed", clients, sizes.long_s, documents=sizes.documents)
    growth = fixture.resident_mib() - before
    name = f"{fixture.store}.minute_{clients}"
    note = f"{sizes.long_s:.0f} s, {measured.rate:.0f} requests a second"
    yield figure(f"{name}_errors", sum(measured.errors.values()), "requests", samples=measured.count, note=note)
    yield figure(f"{name}_growth", growth, "MiB", samples=1, note=f"from {before:.0f} MiB")


def growth(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Get, list and put as the container grows, and the bytes of a document."""
    tag, there = f"{TAG}-grow", 0
    for count in sizes.grow:
        progress(f"{fixture.store}: growing to {count} documents")
        began, bytes_before = time.monotonic(), fixture.data_bytes()
        fill(fixture, there, count, tag=tag, text=False)
        rate = (count - there) / (time.monotonic() - began)
        settle(fixture, tag)
        yield figure(
            f"{fixture.store}.fill_{count}_rate", rate, "1/s", samples=count - there, better="higher", note="in batches"
        )
        if bytes_before:
            size = (fixture.data_bytes() - bytes_before) / (count - there)
            yield figure(f"{fixture.store}.document_{count}_disk", size, "bytes", samples=count - there, note="without chunks")
        there = count
        for kind in ("get", "list", "put"):
            measured, server_ms = fixture.load(kind, 1, sizes.seconds, documents=count, tag=tag)
            yield from _request_figures(f"{fixture.store}.{kind}_{count}", measured, server_ms)
        yield figure(f"{fixture.store}.resident_{count}", fixture.resident_mib(), "MiB", samples=1)


def processes(fixture: Fixture, sizes: Sizes) -> Iterator[Figure]:
    """Reads that cost processor time, by all processes of the fixture."""
    fill(fixture, 0, sizes.documents)
    settle(fixture)
    measured, server_ms = fixture.load("list", 16, sizes.seconds, documents=sizes.documents)
    yield from _request_figures(f"{fixture.store}.list_by_{len(fixture.servers)}", measured, server_ms)


def processes_ratio(figures: list[Figure]) -> Iterator[Figure]:
    """Two processes beside one."""
    rates = {found.name: found.value for found in figures}
    ratio = rates["postgres.list_by_2_rate"] / rates["postgres.list_by_1_rate"]
    yield figure("postgres.two_processes", ratio, "x", samples=2, better="higher", note="pages of 50, 16 clients")


def _expect(answer: httpx.Response) -> None:
    if answer.status_code >= 300:
        raise BenchError(
            f"{answer.request.method} {answer.request.url.path} was answered {answer.status_code}: {answer.text[:300]}"
        )
