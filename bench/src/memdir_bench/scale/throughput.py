"""Short memories through the whole pipeline of a real server, from the first request to the last vector."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, Final

import httpx

from memdir_bench.corpus import SUBJECTS
from memdir_bench.figures import Figure
from memdir_bench.scale.goals import figure
from memdir_bench.scale.serving import saved, visible_figures
from memdir_bench.server.fixtures import Fixture, fixture
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

_TAG: Final = "short"
_CLIENTS: Final = 8
"""They share the processors with the server, so each is a plain connection: a request costs it a third of a millisecond."""
_BATCH: Final = 100
_POLL_S: Final = 0.1
"""Asking costs the server some milliseconds, which are no part of what is measured."""
_WAITING_MIN: Final = 32
"""An import with no more left is as good as over."""
_IDLE_CPU_S: Final = 0.05
"""A server that used less between two looks has nothing left to do."""
_LIMIT_S: Final = 3600.0

Send = Callable[[Fixture, range], None]


def memory_text(number: int) -> str:
    """About 22 words, 30 tokens; no two are the same."""
    subject = SUBJECTS[number % len(SUBJECTS)]
    rest = number // len(SUBJECTS)
    parts = []
    for words in (subject.actors, subject.acts, subject.things, subject.places):
        parts.append(words[rest % len(words)])
        rest //= len(words)
    told = " ".join(parts)
    return f"Entry {number}: on day {number % 365} {told}, then went home and wrote down what there was to say about it."


def throughput(count: int) -> Iterator[Figure]:
    """Documents a second, each a request of its own and in batches, until all are done; and what one costs the processors."""
    with tempfile.TemporaryDirectory(prefix="memdir-bench-scale-") as folder, fixture(Path(folder)) as one:
        _send_batches(one, range(-_BATCH, 0))
        _embedded(one)  # models are loaded
        yield from _through(one, "pipeline", _send_each, range(count))
        yield from _through(one, "pipeline_batch", _send_batches, range(count, 2 * count))
        yield from _saved_meanwhile(one, range(2 * count, 4 * count))
    from memdir.retrieval.embed import MiniLmEmbedder  # the bound: the model alone

    with tempfile.TemporaryDirectory(prefix="memdir-bench-scale-") as folder:
        model = MiniLmEmbedder(Path(folder))
        texts = [memory_text(number) for number in range(min(count, 300))]
        model.embed_passages(texts[:10])
        began_cpu = time.process_time()
        model.embed_passages(texts)
        cost_ms = (time.process_time() - began_cpu) * 1000 / len(texts)
        yield figure("pipeline_model_cpu", cost_ms, "ms", samples=len(texts), note="of the transformer alone, for one")


def _through(one: Fixture, name: str, send: Send, numbers: range) -> Iterator[Figure]:
    """Rates to three places, and the processor time of everything, the vectors of memories too."""
    count = len(numbers)
    progress(f"{name}: {count} short memories through the pipeline …")
    cpu_before, began = one.cpu_s(), time.monotonic()
    send(one, numbers)
    sent_s = time.monotonic() - began
    _found(one, numbers[-1])
    found_s = time.monotonic() - began
    _embedded(one)
    took_s = time.monotonic() - began
    cpu_s = _idle_cpu_s(one) - cpu_before
    yield figure(f"{name}_sent_rate", count / sent_s, "1/s", samples=count, better="higher", note="answered and durable")
    yield figure(
        f"{name}_searchable_rate", count / found_s, "1/s", samples=count, better="higher", note="the last one is found"
    )
    yield figure(f"{name}_rate", count / took_s, "1/s", samples=count, better="higher", note="all have all vectors")
    yield figure(f"{name}_cpu", cpu_s * 1000 / count, "ms", samples=count, note="of the server, for one")


def _send_each(one: Fixture, numbers: range) -> None:
    with one.client() as client:
        address, headers = client.base_url, {**client.headers, "Content-Type": "application/json"}

    def some(part: range) -> None:
        with closing(HTTPConnection(address.host, address.port, timeout=_LIMIT_S)) as connection:
            for number in part:
                body = json.dumps({"content": memory_text(number), "containerTag": _TAG})
                connection.request("POST", "/v3/documents", body, headers)
                answer = connection.getresponse()
                told = answer.read()
                if answer.status >= 300:
                    raise BenchError(f"a document was answered {answer.status}: {told[:300]!r}")

    with ThreadPoolExecutor(_CLIENTS) as pool:
        for done in [pool.submit(some, numbers[at::_CLIENTS]) for at in range(_CLIENTS)]:
            done.result()


def _send_batches(one: Fixture, numbers: range) -> None:
    with one.client() as client:
        for at in range(0, len(numbers), _BATCH):
            contents = [memory_text(number) for number in numbers[at : at + _BATCH]]
            _taken(client.post("/v3/documents/batch", json={"contents": contents, "containerTag": _TAG}))


def _saved_meanwhile(one: Fixture, numbers: range) -> Iterator[Figure]:
    """Files that a person saves, one after the other, as long as an import into the same container goes on."""
    progress(f"files saved while {len(numbers)} others are imported …")
    times: list[tuple[float, float]] = []
    with ThreadPoolExecutor(1) as pool, one.client() as client:
        sent = pool.submit(_send_batches, one, numbers)
        while not times or not sent.done() or _waiting(client) > _WAITING_MIN:
            times.append(saved(client, f"/saved/{len(times)}.md", f"saved{len(times)}qqz", tag=_TAG))
        sent.result()
    yield from visible_figures("import_", times)
    _embedded(one)


def _taken(answer: Any) -> None:
    if answer.status_code >= 300:
        raise BenchError(f"a document was answered {answer.status_code}: {answer.text[:300]}")


def _found(one: Fixture, number: int) -> None:
    """Wait until a search finds a document by its words."""
    text = memory_text(number)
    body = {"q": text, "containerTag": _TAG, "searchMode": "documents", "limit": 1}
    with one.client() as client:
        _until(lambda: text in str(client.post("/v4/search", json=body).json()))


def _embedded(one: Fixture) -> None:
    """Wait until no document is in the pipeline."""
    with one.client() as client:
        _until(lambda: not _waiting(client))


def _waiting(client: httpx.Client) -> int:
    """Documents in the pipeline."""
    return int(client.get(f"/v3/documents/processing?containerTag={_TAG}&limit=1").json()["totalCount"])


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + _LIMIT_S
    while not true():
        if time.monotonic() > deadline:
            raise BenchError(f"the pipeline did not come to an end within {_LIMIT_S:.0f} s")
        time.sleep(_POLL_S)


def _idle_cpu_s(one: Fixture) -> float:
    """The processor time used when nothing is left to do."""
    used = one.cpu_s()
    while True:
        time.sleep(1.0)
        before, used = used, one.cpu_s()
        if used - before < _IDLE_CPU_S:
            return used
