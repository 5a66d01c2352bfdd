"""From sizes to figures: fill a store, search in it from a process of its own, compare with what is right, serve it."""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from memdir.core.paths import under_home
from memdir.store.database import fetch
from memdir_bench.figures import Figure, machine, percentile
from memdir_bench.report import reported
from memdir_bench.scale.exact import Exhaustive, plain_fts5, timed_ms
from memdir_bench.scale.filling import fill
from memdir_bench.scale.goals import figure
from memdir_bench.scale.material import KINDS, Material
from memdir_bench.scale.queries import Answer, Ask
from memdir_bench.scale.serving import served
from memdir_bench.session import BenchError
from memdir_bench.smoke import progress

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
_ASK_LIMIT_S: Final = 3600.0
_PLAIN_QUERIES: Final = 10
"""Of each kind: a common word costs plain FTS5 a second in a million passages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """How much is measured at each size."""

    queries: int = 40
    rounds: int = 3
    updates: int = 20
    requests: int = 40
    piped: int = 2000


QUICK: Final = Work(queries=4, rounds=1, updates=2, requests=3, piped=40)


def main(args: argparse.Namespace, *, as_json: bool) -> int:
    """Measure and print. 0, or 2 when a part could not be measured."""
    return reported(run, args, as_json=as_json)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """All sizes; one that fails is reported and stops none of the others."""
    from memdir_bench.scale.throughput import throughput

    work = QUICK if args.quick else Work()
    figures: list[Figure] = []
    failed: dict[str, str] = {}
    if args.prose:
        from memdir_bench.scale import prose

        try:
            figures += prose.figures(args.prose, requests=work.requests, parent=args.dir)
        except (BenchError, OSError) as error:
            failed["prose"] = str(error)
        return {"machine": machine(), "figures": [found.as_json() for found in figures], "failed": failed}
    for passages in args.sizes:
        try:
            figures += at_size(passages, work, database_url=args.database_url, parent=args.dir, keep=args.keep)
        except (BenchError, OSError, subprocess.SubprocessError) as error:
            failed[str(passages)] = str(error)
    if not args.no_pipeline:
        try:
            figures += throughput(work.piped)
        except (BenchError, OSError) as error:
            failed["pipeline"] = str(error)
    return {"machine": machine(), "figures": [found.as_json() for found in figures], "failed": failed}


def at_size(
    passages: int, work: Work, *, database_url: str | None = None, parent: Path | None = None, keep: Path | None = None
) -> Iterator[Figure]:
    """Everything that is measured in a container of so many passages. `keep`: where filled SQLite stores stay, to be copied and
    measured again instead of being filled anew."""
    from memdir.retrieval.embed import StaticEmbedder

    with ExitStack() as held:
        folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="memdir-bench-scale-", dir=parent)))
        material = Material(dense_dim=_dense(folder).dim, static_dim=StaticEmbedder().dim)
        exact = Exhaustive(material, passages)
        for store, url in {"": None, "postgres.": database_url}.items():
            if store and url is None:
                continue
            home = folder / "home-0"
            name = f"{store}{passages}"
            filled = _filled(home, url, material, passages) if url or keep is None else _kept(keep, home, material, passages)
            yield figure(f"{name}.build_rate", passages / filled.took_s, "1/s", better="higher", note=f"{filled.took_s:.0f} s")
            if url is None:
                yield figure(f"{name}.disk", _disk_bytes(home) / passages, "bytes", note="for each passage of 22 words")
            progress(f"{name}: searching …")
            answer = _asked(home, url, filled, work, passages)
            yield from _latencies(name, answer)
            yield from _memory(name, answer)
            progress(f"{name}: comparing with what is right …")
            yield from _rightness(name, answer, exact, material, work, filled.first_chunk_id)
        progress(f"{passages}: plain FTS5 …")
        yield from _plain(folder, exact, material, passages, work)
        progress(f"{passages}: through the server …")
        yield from served(folder, str(passages), material, passages, requests=work.requests, updates=work.updates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filled:
    """A container that is there."""

    container_id: int
    first_chunk_id: int
    took_s: float


def _dense(folder: Path) -> Any:
    """The transformer, which also makes its file for all that come after."""
    from memdir.retrieval.embed import MiniLmEmbedder

    return MiniLmEmbedder(under_home(folder / "home-0").models_dir)


def _kept(keep: Path, home: Path, material: Material, passages: int) -> Filled:
    """A copy, in `home`, of the store that was filled in `keep`, now or in an earlier run."""
    source, said = keep / f"{passages}" / "home-0", keep / f"{passages}" / "filled.json"
    if not said.exists():
        if source.exists():
            shutil.rmtree(source)
        source.mkdir(parents=True)
        said.write_text(json.dumps(dataclasses.asdict(_filled(source, None, material, passages))), encoding="utf-8")
    progress(f"{passages}: copying {source} …")
    shutil.copytree(under_home(source).server_dir, under_home(home).server_dir)
    return Filled(**json.loads(said.read_text(encoding="utf-8")))


def _filled(home: Path, url: str | None, material: Material, passages: int) -> Filled:
    from memdir.retrieval.embed import StaticEmbedder
    from memdir_bench.scale.queries import opened

    folder = under_home(home).server_dir
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with opened(folder, url) as store:
        began = time.perf_counter()

        def told(done: int) -> None:
            progress(f"{passages}: filled {done:,} in {time.perf_counter() - began:.0f} s")

        container_id = fill(store, material, passages, static=StaticEmbedder().name, dense=_dense(home.parent).name, told=told)
        took_s = time.perf_counter() - began
        with store.upkeep().reading() as reader:
            first, last = fetch(reader, "select min(id), max(id) from chunk where container_id = ?", (container_id,))[0]
    if last - first + 1 != passages:
        raise BenchError(f"the container has the passages {first} to {last}, and must have {passages}")
    return Filled(container_id=container_id, first_chunk_id=first, took_s=took_s)


def _disk_bytes(home: Path) -> int:
    folder = under_home(home).server_dir
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _asked(home: Path, url: str | None, filled: Filled, work: Work, passages: int) -> Answer:
    paths = under_home(home)
    ask = Ask(
        folder=str(paths.server_dir), models=str(paths.models_dir), database_url=url, container_id=filled.container_id,
        passages=passages, queries=work.queries, rounds=work.rounds, updates=work.updates,
    )  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "memdir_bench.scale.queries"],
        input=json.dumps(dataclasses.asdict(ask)).encode(), capture_output=True, timeout=_ASK_LIMIT_S, check=False,
    )  # fmt: skip
    if done.returncode:
        raise BenchError(f"the searching process ended with {done.returncode}: {done.stderr.decode()[-2000:]}")
    return Answer(**json.loads(done.stdout))


def _latencies(name: str, answer: Answer) -> Iterator[Figure]:
    times = dict(answer.times)
    yield figure(f"{name}.first_search", times.pop("first_search")[0], "ms", note="no index files are there yet")
    for what in ("words_ready", "vectors_ready"):
        for took_ms in times.pop(what, []):
            yield figure(
                f"{name}.{what}", round(took_ms / 1000, 1), "s", note="until the index files are there, one after the other"
            )
    times.pop("whole_run")
    for part in ("lexical", "vectors", "hybrid"):
        times[part] = [took for kind in KINDS for took in times[f"{part}_{kind}"]]
    for part, samples in times.items():
        yield from three(f"{name}.{part}", samples)
    for stage, samples in answer.stages.items():
        yield figure(f"{name}.stage_{stage}_p50", percentile(samples, 0.5), "ms", samples=len(samples))


def three(name: str, samples: Sequence[float]) -> Iterator[Figure]:
    """p50, p95 and p99."""
    for share in (50, 95, 99):
        yield figure(f"{name}_p{share}", percentile(samples, share / 100), "ms", samples=len(samples))


def _memory(name: str, answer: Answer) -> Iterator[Figure]:
    for what, mib in answer.memory.items():
        yield figure(f"{name}.memory_{what}", mib, "MiB", note="of the searching process")


def _rightness(
    name: str, answer: Answer, exact: Exhaustive, material: Material, work: Work, first_chunk_id: int
) -> Iterator[Figure]:
    equal, shares = [], []
    for kind in KINDS:
        queries = material.queries(kind, work.queries)
        for query, found in zip(queries, answer.lexical[kind], strict=True):
            equal.append(exact.equal(query, [chunk_id - first_chunk_id for chunk_id in found]))
        best = exact.nearest(np.stack([query.dense for query in queries]))
        for rows, found in zip(best, answer.nearest[kind], strict=True):
            shares.append(len(rows & {chunk_id - first_chunk_id for chunk_id in found}) / max(1, len(rows)))
    yield figure(f"{name}.lexical_top10_equal", float(np.mean(equal)), "share", samples=len(equal), better="higher")
    yield figure(f"{name}.vectors_recall_at_10", float(np.mean(shares)), "share", samples=len(shares), better="higher")


def _plain(folder: Path, exact: Exhaustive, material: Material, passages: int, work: Work) -> Iterator[Figure]:
    """The same questions to a table that knows nothing of us, and to nothing at all."""
    every: list[float] = []
    brute: list[float] = []
    with plain_fts5(folder, material, passages) as plain:
        yield figure(f"{passages}.fts5_build_rate", passages / plain.built_s, "1/s", better="higher")
        yield figure(f"{passages}.fts5_disk", plain.size_bytes / passages, "bytes", note="for each passage, without its text")
        for kind in KINDS:
            queries = material.queries(kind, min(work.queries, _PLAIN_QUERIES))
            times = [timed_ms(partial(plain.search, query.text, 150))[0] for query in queries]
            brute += [timed_ms(partial(exact.bm25, query))[0] for query in queries[:3]]
            every += times
            yield from three(f"{passages}.fts5_{kind}", times)
    yield from three(f"{passages}.fts5", every)
    yield from three(f"{passages}.exhaustive", brute)
