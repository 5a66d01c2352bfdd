"""Short memories through the whole pipeline of a real server, from the first request to the last vector."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import httpx

from memdir.bench.corpus import SUBJECTS
from memdir.bench.figures import Figure
from memdir.bench.scale.goals import figure
from memdir.bench.server.runs import settle
from memdir.bench.server.stand import Stand, stand
from memdir.bench.session import BenchError
from memdir.bench.smoke import progress

_TAG: Final = "short"
_CLIENTS: Final = 4


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
    """Documents a second, each a request of its own, until all of them are done; and what one costs the processors."""
    with tempfile.TemporaryDirectory(prefix="memdir-bench-scale-") as folder, stand(Path(folder)) as one:
        progress(f"{count} short memories through the pipeline …")
        _post(one, range(-50, 0))
        settle(one, _TAG)  # models are loaded
        cpu_before, began = one.cpu_s(), time.monotonic()
        _post(one, range(count))
        sent_s = time.monotonic() - began
        settle(one, _TAG)
        took_s = time.monotonic() - began
        yield figure(
            "pipeline_rate", count / took_s, "1/s", samples=count, better="higher", note=f"all sent after {sent_s:.1f} s"
        )
        yield figure(
            "pipeline_cpu", (one.cpu_s() - cpu_before) * 1000 / count, "ms", samples=count, note="of the server, for one"
        )
    from memdir.retrieval.embed import MiniLmEmbedder  # the bound: the model alone

    with tempfile.TemporaryDirectory(prefix="memdir-bench-scale-") as folder:
        model = MiniLmEmbedder(Path(folder))
        texts = [memory_text(number) for number in range(min(count, 300))]
        model.embed_passages(texts[:10])
        began_cpu = time.process_time()
        model.embed_passages(texts)
        cost_ms = (time.process_time() - began_cpu) * 1000 / len(texts)
        yield figure("pipeline_model_cpu", cost_ms, "ms", samples=len(texts), note="of the transformer alone, for one")


def _post(one: Stand, numbers: range) -> None:
    def some(part: range) -> None:
        with one.client() as client:
            for number in part:
                _sent(client, memory_text(number))

    with ThreadPoolExecutor(_CLIENTS) as pool:
        for done in [pool.submit(some, numbers[at::_CLIENTS]) for at in range(_CLIENTS)]:
            done.result()


def _sent(client: httpx.Client, text: str) -> None:
    answer = client.post("/v3/documents", json={"content": text, "containerTag": _TAG})
    if answer.status_code >= 300:
        raise BenchError(f"a document was answered {answer.status_code}: {answer.text[:300]}")
